// Lists of tiers as they come from Python, checked, for the kernels that work on them.
#pragma once

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
    }
    std::int64_t lists() const { return std::int64_t(list_offsets.shape(0)) - 1; }
    std::int64_t tiers() const { return std::int64_t(tier_offsets.shape(0)) - 1; }

    // the ranges of lists that threads are given; long lists are shared out by themselves
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges() const {
        Lists<double> shape{};
        shape.lists = lists();
        shape.row_offsets = row_offsets.data();
        shape.list_offsets = list_offsets.data();
        return equal_ranges(shape, RANGE_COST, LONG_LIST);
    }

    Offsets row_offsets, order, tier_offsets, list_offsets;
    std::int64_t rows;
};

// an array of that length, or an empty one: null
template <class Array>
auto optional(const Array &array, std::int64_t length, const char *what) -> decltype(array.data()) {
    require(array.shape(0) == 0 || std::int64_t(array.shape(0)) == length, what);
    return array.shape(0) ? array.data() : nullptr;
}

template <class T> Lists<T> lists_of(const Layout &layout, const In<T> &scores) {
    require(std::int64_t(scores.shape(0)) == layout.rows, "one score a row");
    Lists<T> lists{};
    lists.lists = layout.lists();
    lists.row_offsets = layout.row_offsets.data();
    lists.order = layout.order.data();
    lists.tier_offsets = layout.tier_offsets.data();
    lists.list_offsets = layout.list_offsets.data();
    lists.scores = scores.data();
    return lists;
}
template <class T>
Lists<T> lists_of(const Layout &layout, const In<T> &scores, const In<double> &bottom,
                  const In<double> &tier_weights) {
    Lists<T> lists = lists_of(layout, scores);
    lists.bottom = optional(bottom, layout.lists(), "one bottom a list, or none");
    lists.tier_weights = optional(tier_weights, layout.tiers(), "one weight an upper tier, or none");
    return lists;
}

} // namespace tierrank
