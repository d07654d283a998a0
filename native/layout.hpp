// Lists of tiers as they come from Python, checked, for the kernels that work on them.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "kernels.hpp"

namespace tierrank {

// A layout of tiers, checked once and used many times: every index that a kernel follows is inside.
class Layout {
  public:
    Layout(Offsets row_offsets, Offsets order, Offsets tier_offsets, Offsets list_offsets)
        : row_offsets(row_offsets), order(order), tier_offsets(tier_offsets),
          list_offsets(list_offsets) {
        require(row_offsets.shape(0) > 0 && row_offsets.shape(0) == list_offsets.shape(0),
                "row_offsets and list_offsets need one number more than there are lists");
        require(tier_offsets.shape(0) > 0, "tier_offsets need one number more than there are tiers");
        rows = row_offsets.data()[row_offsets.shape(0) - 1];
        check_offsets(row_offsets, rows, "row_offsets must rise from 0");
        check_offsets(list_offsets, std::int64_t(tier_offsets.shape(0)) - 1,
                      "list_offsets must rise from 0 to the number of upper tiers");
        check_offsets(tier_offsets, std::int64_t(order.shape(0)),
                      "tier_offsets must rise from 0 to the length of order");
        for (std::int64_t i = 0; i < lists(); ++i) {
            const std::int64_t lo = row_offsets.data()[i], hi = row_offsets.data()[i + 1];
            const std::int64_t from = tier_offsets.data()[list_offsets.data()[i]];
            const std::int64_t to = tier_offsets.data()[list_offsets.data()[i + 1]];
            bool inside = true;
            for (std::int64_t k = from; k < to; ++k)
                inside &= order.data()[k] >= lo && order.data()[k] < hi;
            require(inside, "order names a row that is not of its list");
        }
        shares = equal_shares(as_lists<double>(), RANGE_COST, LONG_LIST);
    }
    std::int64_t lists() const { return std::int64_t(list_offsets.shape(0)) - 1; }
    std::int64_t tiers() const { return std::int64_t(tier_offsets.shape(0)) - 1; }

    // without scores and results
    template <class T> Lists<T> as_lists() const {
        Lists<T> p{};
        p.lists = lists();
        p.row_offsets = row_offsets.data();
        p.order = order.data();
        p.tier_offsets = tier_offsets.data();
        p.list_offsets = list_offsets.data();
        p.shares = &shares;
        return p;
    }

    Offsets row_offsets, order, tier_offsets, list_offsets;
    std::int64_t rows;
    Shares shares;
};

template <class Array> using Optional = std::optional<Array>;

// the numbers of an array of that length; null if there is none
template <class Array>
auto *numbers(const Optional<Array> &array, std::int64_t length, const char *what) {
    require(!array || std::int64_t(array->shape(0)) == length, what);
    return array ? array->data() : nullptr;
}

template <class T> Lists<T> lists_of(const Layout &layout, const In<T> &scores) {
    require(std::int64_t(scores.shape(0)) == layout.rows, "one score a row");
    Lists<T> lists = layout.as_lists<T>();
    lists.scores = scores.data();
    return lists;
}
template <class T>
Lists<T> lists_of(const Layout &layout, const In<T> &scores, const Optional<In<double>> &bottom,
                  const Optional<In<double>> &tier_weights) {
    Lists<T> lists = lists_of(layout, scores);
    lists.bottom = numbers(bottom, layout.lists(), "one bottom a list, or none");
    lists.tier_weights = numbers(tier_weights, layout.tiers(), "one weight an upper tier, or none");
    return lists;
}

} // namespace tierrank
