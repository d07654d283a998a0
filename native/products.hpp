// Inner products of rows of a matrix, where a sparse pattern asks for them.
#pragma once

#include <algorithm>

#include "kernels.hpp"
#include "threads.hpp"
#include "vector.hpp"

namespace tierrank::TIERRANK_SET {

// Z_i · Z_j
template <class T> TIERRANK_INLINE T inner_product(const T *a, const T *b, std::int64_t n) {
    Vec<T> all(T(0));
    std::int64_t k = 0;
    for (; k + LANES <= n; k += LANES) all = fma(Vec<T>::load(a + k), Vec<T>::load(b + k), all);
    T total = sum(all);
    for (; k < n; ++k) total += a[k] * b[k];
    return total;
}

template <class T> void inner_products(const Products<T> &p, int threads) {
    constexpr std::int64_t rows_at_once = 64;
    const std::int64_t tasks = (p.rows + rows_at_once - 1) / rows_at_once;
    parallel(tasks, threads, [&](std::int64_t task) {
        const std::int64_t end = std::min(p.rows, (task + 1) * rows_at_once);
        for (std::int64_t i = task * rows_at_once; i < end; ++i)
            for (std::int64_t e = p.starts[i]; e < p.starts[i + 1]; ++e)
                p.out[e] = inner_product(p.Z + i * p.width, p.Z + p.columns[e] * p.width, p.width);
    });
}

} // namespace tierrank::TIERRANK_SET
