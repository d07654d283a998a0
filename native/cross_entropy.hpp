// Cross-entropies between given shares of a list's items and the softmax of their scores: ListNet and
// AttRank, with their gradients, in one pass. With top the list's best score,
//
//     Σ_j p_j log q_j = Σ_j p_j (w_j − top) − log Σ_j e^(w_j − top),    ∂/∂w_j = p_j − q_j.
//
// All items of a tier have the same share p. The last tier's, `floor`, is taken for all rows first, and
// what the upper tiers have beyond that is added: so a last tier of a million is never gathered. Shares of
// a list add up to 1, or all are 0: then there is nothing to compare with, and no loss.
#pragma once

#include "kernels.hpp"
#include "rows.hpp"

namespace tierrank::TIERRANK_SET {

// Σ e^(w − top) and Σ (w − top)
struct RowSums {
    double worth = 0.0, distance = 0.0;
};

// Fills e with e^(w − top), unless it is null.
template <class T> TIERRANK_INLINE RowSums row_sums(const T *w, std::int64_t n, T top, T *e) {
    using V = Vec<double>;
    V worth(0.0), distance(0.0);
    for (std::int64_t start = 0; start < n; start += BLOCK) { // as in `total`
        V worth_part(0.0), distance_part(0.0);
        for (std::int64_t i = start; i < std::min(start + BLOCK, n); i += LANES) {
            const Vec<T> x = load_some(w + i, n - i, top);
            Vec<T> y = relative(x, Vec<T>(top));
            if (e) store_some(y, e + i, n - i);
            for (std::int64_t k = n - i; k < LANES; ++k) y.set(int(k), T(0));
            worth_part += wide(y);
            distance_part += wide(x) - V(double(top));
        }
        worth += worth_part, distance += distance_part;
    }
    return {sum(worth), sum(distance)};
}
template <class T>
TIERRANK_INLINE RowSums row_sums(const T *w, std::int64_t n, T top, T *e, int threads) {
    if (n <= LONG_LIST) return row_sums(w, n, top, e);
    std::vector<RowSums> parts((n + SEGMENT - 1) / SEGMENT);
    by_segments(n, threads, [&](std::int64_t s, std::int64_t at, std::int64_t count) {
        parts[s] = row_sums(w + at, count, top, e ? e + at : e);
    });
    RowSums all;
    for (const RowSums &part : parts) all.worth += part.worth, all.distance += part.distance;
    return all;
}
// The same one by one in double: floats near ±1e38 are further apart than a float holds.
template <class T> RowSums row_sums_in_double(const T *w, std::int64_t n, T top, T *e) {
    RowSums all;
    for (std::int64_t i = 0; i < n; ++i) {
        const double distance = double(w[i]) - double(top), x = std::exp(distance);
        if (e) e[i] = T(x);
        all.worth += x, all.distance += distance;
    }
    return all;
}

// e ↦ floor − e · inverse
template <class T> TIERRANK_INLINE void slopes(T *e, std::int64_t n, T inverse, T floor) {
    const Vec<T> by(-inverse), base(floor);
    for (std::int64_t i = 0; i < n; i += LANES)
        store_some(fma(load_some(e + i, n - i, T(0)), by, base), e + i, n - i);
}
template <class T> TIERRANK_INLINE void slopes(T *e, std::int64_t n, T inverse, T floor, int threads) {
    if (n <= LONG_LIST) return slopes(e, n, inverse, floor);
    by_segments(n, threads, [&](std::int64_t, std::int64_t at, std::int64_t count) {
        slopes(e + at, count, inverse, floor);
    });
}

template <class T> void cross_entropy_of_list(const CrossEntropies<T> &given, std::int64_t i, int threads) {
    const Lists<T> &p = given.lists;
    const std::int64_t start = p.row_offsets[i], n = p.rows(i);
    const std::int64_t first = p.list_offsets[i], end = p.list_offsets[i + 1];
    T *gradient = p.gradient ? p.gradient + start : nullptr;
    p.log_prob[i] = 0.0;
    if (n == 0) return;
    const T top = largest_score(p.scores + start, n, threads);
    if (!(top - top == T(0))) {
        p.log_prob[i] = std::numeric_limits<double>::quiet_NaN();
        return;
    }
    const double floor = given.floor[i];
    bool any_share = floor != 0.0;
    for (std::int64_t j = first; j < end; ++j) any_share |= given.shares[j] != 0.0;
    if (!any_share) {
        if (gradient) std::fill_n(gradient, n, T(0));
        return;
    }
    RowSums sums = row_sums(p.scores + start, n, top, gradient, threads);
    if (!(sums.worth >= 1.0)) sums = row_sums_in_double(p.scores + start, n, top, gradient);
    double value = -std::log(sums.worth);
    if (floor != 0.0) value += floor * sums.distance;
    if (gradient) slopes(gradient, n, T(1.0 / sums.worth), T(floor), threads);
    for (std::int64_t j = first; j < end; ++j) {
        const double more = given.shares[j] - floor;
        if (more == 0.0) continue;
        const T step = T(more);
        const std::int64_t *rows = p.order + p.tier_offsets[j], size = p.tier_size(j);
        value += more * distances(p.scores, rows, size, top);
        if (gradient)
            for (std::int64_t k = 0; k < size; ++k) p.gradient[rows[k]] += step;
    }
    p.log_prob[i] = value;
}

template <class T> void cross_entropy(const CrossEntropies<T> &p, int threads) {
    by_lists(p.lists, threads, [&](std::int64_t i, int threads_of_list) {
        cross_entropy_of_list(p, i, threads_of_list);
    });
}

} // namespace tierrank::TIERRANK_SET
