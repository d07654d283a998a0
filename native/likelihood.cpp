// The likelihood of lists of tiers, for Python: tierrank.plackett_luce calls this.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "kernels.hpp"

namespace tierrank {
namespace {

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

template <class T>
Lists<T> lists_of(const Layout &layout, const In<T> &scores, const In<double> &bottom,
                  const In<double> &tier_weights) {
    require(std::int64_t(scores.shape(0)) == layout.rows, "one score a row");
    require(bottom.shape(0) == 0 || std::int64_t(bottom.shape(0)) == layout.lists(),
            "one bottom a list, or none");
    require(tier_weights.shape(0) == 0 || std::int64_t(tier_weights.shape(0)) == layout.tiers(),
            "one weight an upper tier, or none");
    Lists<T> lists{};
    lists.lists = layout.lists();
    lists.row_offsets = layout.row_offsets.data();
    lists.order = layout.order.data();
    lists.tier_offsets = layout.tier_offsets.data();
    lists.list_offsets = layout.list_offsets.data();
    lists.scores = scores.data();
    lists.bottom = bottom.shape(0) ? bottom.data() : nullptr;
    lists.tier_weights = tier_weights.shape(0) ? tier_weights.data() : nullptr;
    return lists;
}

// an array of that length, or an empty one: null
template <class T> T *optional(const Out<T> &out, std::int64_t length, const char *what) {
    require(out.shape(0) == 0 || std::int64_t(out.shape(0)) == length, what);
    return out.shape(0) ? out.data() : nullptr;
}

template <class T>
void log_prob(const Layout &layout, const In<T> &scores, const In<double> &bottom,
              const In<double> &tier_weights, int threads, const Out<double> &log_prob,
              const Out<T> &gradient, const Out<double> &bottom_gradient,
              const Out<double> &diagonal, const Out<double> &bottom_diagonal) {
    Lists<T> lists = lists_of(layout, scores, bottom, tier_weights);
    require(std::int64_t(log_prob.shape(0)) == layout.lists(), "one log-probability a list");
    lists.log_prob = log_prob.data();
    lists.gradient = optional(gradient, layout.rows, "one slope a row, or none");
    lists.bottom_gradient = optional(bottom_gradient, layout.lists(), "one slope a list, or none");
    lists.diagonal = optional(diagonal, layout.rows, "one second derivative a row, or none");
    lists.bottom_diagonal =
        optional(bottom_diagonal, layout.lists(), "one second derivative a list, or none");
    require(!lists.gradient || !layout.lists() || lists.bottom_gradient,
            "gradients in scores and bottom go together");
    require(!lists.diagonal || (lists.gradient && lists.bottom_diagonal),
            "a diagonal comes with a gradient, and in scores and bottom together");
    nb::gil_scoped_release release;
    kernels().of<T>().log_prob(lists, threads);
}

template <class T>
void hessian_product(const Layout &layout, const In<T> &scores, const In<double> &bottom,
                     const In<double> &tier_weights, int threads, const In<double> &vector,
                     const In<double> &bottom_vector, const Out<double> &out,
                     const Out<double> &bottom_out) {
    const bool diagonal = vector.shape(0) == 0;
    require(diagonal || (std::int64_t(vector.shape(0)) == layout.rows &&
                         std::int64_t(bottom_vector.shape(0)) == layout.lists()),
            "a vector has a number a row, and its bottom one a list; empty ones ask for the diagonal");
    require(std::int64_t(out.shape(0)) == layout.rows, "one result a row");
    require(std::int64_t(bottom_out.shape(0)) == layout.lists(), "one bottom result a list");
    const HessianProducts<T> products{lists_of(layout, scores, bottom, tier_weights),
                               diagonal ? nullptr : vector.data(),
                               diagonal ? nullptr : bottom_vector.data(), out.data(),
                               bottom_out.data()};
    nb::gil_scoped_release release;
    kernels().of<T>().hessian_product(products, threads);
}

// every row of a list times the list's number
template <class T>
void scale_lists(const Offsets &row_offsets, const In<T> &rows, const In<T> &by_list,
                 const Out<T> &out) {
    const std::int64_t lists = std::int64_t(by_list.shape(0)), *at = row_offsets.data();
    require(std::int64_t(row_offsets.shape(0)) == lists + 1, "one factor a list");
    require(out.shape(0) == rows.shape(0), "one result a row");
    check_offsets(row_offsets, std::int64_t(rows.shape(0)), "row_offsets must rise from 0 to the rows");
    nb::gil_scoped_release release;
    for (std::int64_t i = 0; i < lists; ++i) {
        const T factor = by_list.data()[i];
        for (std::int64_t row = at[i]; row < at[i + 1]; ++row) out.data()[row] = rows.data()[row] * factor;
    }
}

// Arrays are taken as they are, never converted: what fills a copy would be lost.
template <class T> void bind_for(nb::module_ &m) {
    m.def("log_prob", &log_prob<T>, "layout"_a, "scores"_a.noconvert(), "bottom"_a.noconvert(),
          "tier_weights"_a.noconvert(), "threads"_a, "log_prob"_a.noconvert(),
          "gradient"_a.noconvert(), "bottom_gradient"_a.noconvert(), "diagonal"_a.noconvert(),
          "bottom_diagonal"_a.noconvert());
    m.def("hessian_product", &hessian_product<T>, "layout"_a, "scores"_a.noconvert(),
          "bottom"_a.noconvert(), "tier_weights"_a.noconvert(), "threads"_a,
          "vector"_a.noconvert(), "bottom_vector"_a.noconvert(), "out"_a.noconvert(),
          "bottom_out"_a.noconvert());
    m.def("scale_lists", &scale_lists<T>, "row_offsets"_a.noconvert(), "rows"_a.noconvert(),
          "by_list"_a.noconvert(), "out"_a.noconvert());
}

} // namespace

void bind_likelihood(nb::module_ &m) {
    nb::class_<Layout>(m, "Layout")
        .def(nb::init<Offsets, Offsets, Offsets, Offsets>(), "row_offsets"_a.noconvert(),
             "order"_a.noconvert(), "tier_offsets"_a.noconvert(), "list_offsets"_a.noconvert())
        .def("ranges", &Layout::ranges);
    bind_for<float>(m);
    bind_for<double>(m);
}

} // namespace tierrank
