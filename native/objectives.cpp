// Objectives that need no integral, for Python: tierrank.losses calls this. Each function says whether all
// scores were finite.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <string>

#include "layout.hpp"

namespace tierrank {
namespace {

Choice choice_of(const std::string &name) {
    if (name == "breslow") return Choice::breslow;
    if (name == "efron") return Choice::efron;
    if (name == "subset") return Choice::subset;
    if (name == "subset, backward") return Choice::subset_backward;
    throw std::invalid_argument("no tiers are chosen by " + name);
}

template <class T>
Lists<T> lists_with_gradient(const Layout &layout, const In<T> &scores, const Out<double> &value,
                             const Optional<Out<T>> &gradient) {
    Lists<T> lists = lists_of(layout, scores);
    require(std::int64_t(value.shape(0)) == layout.lists(), "one value a list");
    lists.gradient = numbers(gradient, layout.rows, "one slope a row, or none");
    return lists;
}

bool any_nan(const Out<double> &values) {
    bool found = false;
    for (std::size_t i = 0; i < values.shape(0); ++i) found |= values.data()[i] != values.data()[i];
    return found;
}

template <class T>
bool staged_log_prob(const std::string &choice, const Layout &layout, const In<T> &scores,
                     const Optional<In<double>> &bottom, int threads, const Out<double> &value,
                     const Optional<Out<T>> &gradient, const Optional<Out<double>> &bottom_gradient) {
    StagedLists<T> staged{choice_of(choice), lists_with_gradient(layout, scores, value, gradient),
                          value.data()};
    staged.lists.bottom = numbers(bottom, layout.lists(), "one bottom a list, or none");
    staged.lists.bottom_gradient =
        numbers(bottom_gradient, layout.lists(), "one slope a list, or none");
    require(!staged.lists.gradient || !staged.lists.bottom || staged.lists.bottom_gradient,
            "gradients in scores and bottom go together");
    nb::gil_scoped_release release;
    kernels().of<T>().staged_log_prob(staged, threads);
    return !any_nan(value);
}

template <class T>
bool cross_entropy(const Layout &layout, const In<T> &scores, const In<double> &grades,
                   const Offsets &grade_offsets, bool above_0, int threads,
                   const Out<double> &value, const Optional<Out<T>> &gradient) {
    require(grade_offsets.shape(0) == layout.list_offsets.shape(0),
            "grade_offsets need one number more than there are lists");
    check_offsets(grade_offsets, std::int64_t(grades.shape(0)),
                  "grade_offsets must rise from 0 to the number of grades");
    const std::int64_t *at = grade_offsets.data(), *tiers = layout.list_offsets.data();
    bool enough = true;
    for (std::int64_t i = 0; i < layout.lists(); ++i) enough &= at[i + 1] - at[i] >= tiers[i + 1] - tiers[i];
    require(enough, "one grade an upper tier");
    const CrossEntropies<T> given{lists_with_gradient(layout, scores, value, gradient),
                                  grades.data(), at, above_0, value.data()};
    nb::gil_scoped_release release;
    kernels().of<T>().cross_entropy(given, threads);
    return !any_nan(value);
}

// Arrays are taken as they are, never converted: what fills a copy would be lost.
template <class T> void bind_for(nb::module_ &m) {
    m.def("staged_log_prob", &staged_log_prob<T>, "choice"_a, "layout"_a, "scores"_a.noconvert(),
          "bottom"_a.noconvert().none(), "threads"_a, "value"_a.noconvert(),
          "gradient"_a.noconvert().none() = nb::none(),
          "bottom_gradient"_a.noconvert().none() = nb::none());
    m.def("cross_entropy", &cross_entropy<T>, "layout"_a, "scores"_a.noconvert(),
          "grades"_a.noconvert(), "grade_offsets"_a.noconvert(), "above_0"_a, "threads"_a,
          "value"_a.noconvert(), "gradient"_a.noconvert().none() = nb::none());
}

} // namespace

void bind_objectives(nb::module_ &m) {
    bind_for<float>(m);
    bind_for<double>(m);
}

} // namespace tierrank
