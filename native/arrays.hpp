// Arrays as they come from Python: contiguous, on the CPU, and checked.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <stdexcept>
#include <vector>

namespace tierrank {

namespace nb = nanobind;
using namespace nb::literals; // "name"_a

template <class T> using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Out = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Offsets = In<std::int64_t>;
template <class T> using Matrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

inline void require(bool holds, const char *what) {
    if (!holds) throw std::invalid_argument(what);
}

// 0 = offsets[0] ≤ offsets[1] ≤ … ≤ offsets[last] = end
inline void check_offsets(const Offsets &offsets, std::int64_t end, const char *what) {
    const std::int64_t *at = offsets.data(), n = std::int64_t(offsets.shape(0));
    bool rising = n > 0 && at[0] == 0 && at[n - 1] == end;
    for (std::int64_t i = 1; i < n; ++i) rising &= at[i - 1] <= at[i];
    require(rising, what);
}

// 0 ≤ index < end
inline void check_indices(const In<std::int64_t> &index, std::int64_t end, const char *what) {
    bool inside = true;
    for (std::size_t i = 0; i < index.shape(0); ++i)
        inside &= index.data()[i] >= 0 && index.data()[i] < end;
    require(inside, what);
}

// Numbers that are left to Python, as it takes them: entry, start, end
template <class Left> nb::list as_tuples(const std::vector<Left> &left) {
    nb::list all;
    for (const Left &one : left) all.append(nb::make_tuple(one.entry, one.start, one.end));
    return all;
}

// What each part of the core offers to Python, in the file of that name.
void bind_likelihood(nb::module_ &m);
void bind_objectives(nb::module_ &m);
void bind_metric_objectives(nb::module_ &m);
void bind_letor(nb::module_ &m);
void bind_xc(nb::module_ &m);
void bind_graphs(nb::module_ &m);
void bind_drawing(nb::module_ &m);
void bind_products(nb::module_ &m);
void bind_forest(nb::module_ &m);
void bind_pairs(nb::module_ &m);
void bind_strict_lists(nb::module_ &m);
void bind_stage_hessians(nb::module_ &m);
void bind_tied_lists(nb::module_ &m);

} // namespace tierrank
