// Cross-entropies between given shares of a list's items and the softmax of their scores: ListNet and
// AttRank, with their gradients, in one pass. With top the list's best score,
//
//     Σ_j p_j log q_j = Σ_j p_j (w_j − top) − log Σ_j e^(w_j − top),    ∂/∂w_j = p_j − q_j.
//
// p_j ∝ e^{grade of j}, or 0 for grades up to 0 (AttRank); if that is so for all, there is nothing to compare
// with, and no loss. Items of a tier have the same share p. The last tier's is taken for all rows first, and
// what upper tiers have beyond it is added: so a last tier of a million is never gathered.
#pragma once

#include "kernels.hpp"
#include "log_sums.hpp"
#include "rows.hpp"

namespace tierrank::TIERRANK_SET {

// The shares p of an item: of every upper tier, then of the last one. False if all are 0.
template <class T>
TIERRANK_INLINE bool shares_of_list(const CrossEntropies<T> &given, std::int64_t i, std::vector<double> &shares) {
    const Lists<T> &p = given.lists;
    const double *grades = given.grades + given.grade_offsets[i];
    const std::int64_t first = p.list_offsets[i], upper = p.list_offsets[i + 1] - first;
    const std::int64_t in_last = p.rows(i) - p.upper_rows(i);
    shares.assign(grades, grades + upper);
    shares.push_back(given.grade_offsets[i + 1] - given.grade_offsets[i] > upper ? grades[upper] : 0.0);
    const std::int64_t tiers = upper + (in_last > 0);
    const double best = *std::max_element(shares.begin(), shares.begin() + tiers);
    double total = 0.0;
    for (std::int64_t j = 0; j < tiers; j += LANES) {
        const auto x = load_some(shares.data() + j, tiers - j, best), e = exp(x - Vec<double>(best));
        const auto nothing = x <= Vec<double>(given.above_0 ? 0.0 : NOTHING);
        store_some(select(nothing, Vec<double>(0.0), e), shares.data() + j, tiers - j);
    }
    for (std::int64_t j = 0; j < upper; ++j) total += double(p.tier_size(first + j)) * shares[j];
    if (in_last > 0)
        total += double(in_last) * shares[upper];
    else
        shares[upper] = 0.0;
    if (total == 0.0) return false;
    for (double &share : shares) share /= total;
    return true;
}

// Σ e^(w − top) and Σ (w − top)
struct RowSums {
    double worth = 0.0, distance = 0.0;
};

// Fills e with e^(w − top), unless it is null. (Of an item so far down that w − top loses digits, the
// softmax has none to lose: no need for `relative`.)
template <class T> TIERRANK_INLINE RowSums row_sums(const T *w, std::int64_t n, T top, T *e) {
    Vec<double> worth(0.0), distance(0.0);
    const Vec<T> from(top);
    const std::int64_t whole = n / LANES * LANES;
    for (std::int64_t start = 0; start < whole; start += BLOCK) { // as in `total`
        Vec<double> worth_part(0.0), distance_part(0.0);
        for (std::int64_t i = start; i < std::min(start + BLOCK, whole); i += LANES) {
            const Vec<T> t = Vec<T>::load(w + i) - from, x = exp(t);
            if (e) x.store(e + i);
            worth_part += wide(x), distance_part += wide(t);
        }
        worth += worth_part, distance += distance_part;
    }
    if (whole < n) { // the last vector: what is in the one before too does not count again
        const std::int64_t i = std::max<std::int64_t>(n - LANES, 0);
        const Vec<T> t = load_some(w + i, n, top) - from, x = exp(t), none(T(0));
        if (e) store_some(x, e + i, n);
        Vec<T> lane;
        for (int k = 0; k < LANES; ++k) lane.set(k, T(k));
        const auto counts = (Vec<T>(T(whole - i)) <= lane) & (lane < Vec<T>(T(n - i)));
        worth += wide(select(counts, x, none)), distance += wide(select(counts, t, none));
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

// e ↦ floor − e · inverse
template <class T> TIERRANK_INLINE void slopes(T *e, std::int64_t n, T inverse, T floor) {
    const Vec<T> by(-inverse), base(floor);
    const std::int64_t last = std::max<std::int64_t>(n - LANES, 0);
    const Vec<T> ending = fma(load_some(e + last, n, T(0)), by, base); // before its rows are changed
    for (std::int64_t i = 0; i < last; i += LANES)
        fma(Vec<T>::load(e + i), by, base).store(e + i);
    store_some(ending, e + last, n);
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
    given.value[i] = 0.0;
    if (n == 0) return;
    const T top = largest_score(p.scores + start, n, threads);
    if (!(top - top == T(0))) {
        given.value[i] = std::numeric_limits<double>::quiet_NaN();
        return;
    }
    static thread_local std::vector<double> shares;
    if (!shares_of_list(given, i, shares)) {
        if (gradient) std::fill_n(gradient, n, T(0));
        return;
    }
    RowSums sums = row_sums(p.scores + start, n, top, gradient, threads);
    if (!(sums.distance > NOTHING)) // floats near ±1e38 are further apart than a float holds
        sums.distance = sum_of(n, [&](std::int64_t k) { return double(p.scores[start + k]) - double(top); });
    const double floor = shares.back();
    double value = -std::log(sums.worth);
    if (floor != 0.0) value += floor * sums.distance;
    if (gradient) slopes(gradient, n, T(1.0 / sums.worth), T(floor), threads);
    for (std::int64_t j = first; j < end; ++j) {
        const double more = shares[j - first] - floor;
        if (more == 0.0) continue;
        const T step = T(more);
        const std::int64_t *rows = p.order + p.tier_offsets[j];
        value += more * sum_of(p.tier_size(j), [&](std::int64_t k) {
            if (gradient) p.gradient[rows[k]] += step;
            return double(p.scores[rows[k]]) - double(top);
        });
    }
    given.value[i] = value;
}

template <class T> void cross_entropy(const CrossEntropies<T> &p, int threads) {
    by_lists(p.lists, threads, [&](std::int64_t i, int threads_of_list) {
        cross_entropy_of_list(p, i, threads_of_list);
    });
}

} // namespace tierrank::TIERRANK_SET
