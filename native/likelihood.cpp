// The likelihood of lists of tiers, for Python: tierrank.plackett_luce calls this.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "layout.hpp"

namespace tierrank {
namespace {

// the number of the first list whose log-probability is NaN, or −1
template <class T>
std::int64_t log_prob(const Layout &layout, const In<T> &scores, const Optional<In<double>> &bottom,
                      const Optional<In<double>> &tier_weights, int threads, const Out<T> &log_prob,
                      const Optional<Out<T>> &gradient, const Optional<Out<double>> &bottom_gradient,
                      const Optional<Out<double>> &diagonal) {
    Lists<T> lists = lists_of(layout, scores, bottom, tier_weights);
    require(std::int64_t(log_prob.shape(0)) == layout.lists(), "one log-probability a list");
    lists.log_prob = log_prob.data();
    lists.gradient = numbers(gradient, layout.rows, "one slope a row, or none");
    lists.bottom_gradient = numbers(bottom_gradient, layout.lists(), "one slope a list, or none");
    lists.diagonal = numbers(diagonal, layout.rows, "one second derivative a row, or none");
    require(lists.gradient || !(lists.bottom_gradient || lists.diagonal),
            "slopes in bottom and a diagonal come with slopes in the scores");
    nb::gil_scoped_release release;
    kernels().of<T>().log_prob(lists, threads);
    for (std::int64_t i = 0; i < lists.lists; ++i)
        if (lists.log_prob[i] != lists.log_prob[i]) return i;
    return -1;
}

template <class T>
void hessian_product(const Layout &layout, const In<T> &scores, const Optional<In<double>> &bottom,
                     const Optional<In<double>> &tier_weights, int threads,
                     const Optional<In<double>> &vector, const Optional<In<double>> &bottom_vector,
                     const Out<double> &out, const Out<double> &bottom_out) {
    require(vector.has_value() == bottom_vector.has_value(),
            "a vector and its bottom go together; neither asks for the diagonal");
    require(std::int64_t(out.shape(0)) == layout.rows, "one result a row");
    require(std::int64_t(bottom_out.shape(0)) == layout.lists(), "one bottom result a list");
    const HessianProducts<T> products{
        lists_of(layout, scores, bottom, tier_weights),
        numbers(vector, layout.rows, "a vector has one number a row"),
        numbers(bottom_vector, layout.lists(), "a vector's bottom has one number a list"),
        out.data(), bottom_out.data()};
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
    m.def("log_prob", &log_prob<T>, "layout"_a, "scores"_a.noconvert(), "bottom"_a.noconvert().none(),
          "tier_weights"_a.noconvert().none(), "threads"_a, "log_prob"_a.noconvert(),
          "gradient"_a.noconvert().none() = nb::none(),
          "bottom_gradient"_a.noconvert().none() = nb::none(),
          "diagonal"_a.noconvert().none() = nb::none());
    m.def("hessian_product", &hessian_product<T>, "layout"_a, "scores"_a.noconvert(),
          "bottom"_a.noconvert().none(), "tier_weights"_a.noconvert().none(), "threads"_a,
          "vector"_a.noconvert().none(), "bottom_vector"_a.noconvert().none(), "out"_a.noconvert(),
          "bottom_out"_a.noconvert());
    m.def("scale_lists", &scale_lists<T>, "row_offsets"_a.noconvert(), "rows"_a.noconvert(),
          "by_list"_a.noconvert(), "out"_a.noconvert());
}

} // namespace

void bind_likelihood(nb::module_ &m) {
    nb::class_<Layout>(m, "Layout")
        .def(nb::init<Offsets, Offsets, Offsets, Offsets>(), "row_offsets"_a.noconvert(),
             "order"_a.noconvert(), "tier_offsets"_a.noconvert(), "list_offsets"_a.noconvert())
        .def_prop_ro("lists", &Layout::lists)
        .def_ro("rows", &Layout::rows)
        .def_prop_ro("ranges", [](const Layout &layout) { return layout.shares.ranges; });
    bind_for<float>(m);
    bind_for<double>(m);
}

} // namespace tierrank
