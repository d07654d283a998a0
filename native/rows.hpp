// Passes over the rows of a list, eight at a time: the best score, exponentials relative to it, sums.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "elementary.hpp"
#include "integral.hpp"
#include "kernels.hpp"
#include "threads.hpp"

namespace tierrank::TIERRANK_SET {

constexpr double RANGE = 80.0; // scores of a list that one unit, e^(w − top), holds reach so far down

template <class T> TIERRANK_INLINE Vec<T> load_some(const T *from, std::int64_t count, T fill) {
    if (count >= LANES) return Vec<T>::load(from);
    Vec<T> v(fill);
    for (int k = 0; k < count; ++k) v.set(k, from[k]);
    return v;
}
template <class T> TIERRANK_INLINE void store_some(Vec<T> v, T *to, std::int64_t count) {
    if (count >= LANES) return v.store(to);
    for (int k = 0; k < count; ++k) to[k] = v[k];
}

// Calls work(i) for the vectors that begin at rows i = 0, 8, …; the last one ends with the list, and may
// have rows in common with the one before. Only a list of less than eight has a vector that is not full.
template <class F> TIERRANK_INLINE void each_vector(std::int64_t n, F work) {
    std::int64_t i = 0;
    for (; i + LANES <= n; i += LANES) work(i);
    if (i < n) work(std::max<std::int64_t>(n - LANES, 0));
}

// the largest score; NaN if one is not finite
template <class T> TIERRANK_INLINE T largest_score(const T *w, std::int64_t n) {
    using V = Vec<T>;
    V most(w[0]), doubt(T(0));
    each_vector(n, [&](std::int64_t i) {
        const V x = load_some(w + i, n, w[0]);
        most = max(most, x);
        doubt += x - x; // NaN from then on
    });
    const T nan_or_0 = sum(doubt);
    return nan_or_0 == T(0) ? largest(most) : std::numeric_limits<T>::quiet_NaN();
}

// e^(w − top). In float, the digits that the difference loses are brought back to first order.
TIERRANK_INLINE Vec<double> relative(Vec<double> w, Vec<double> top) { return exp(w - top); }
TIERRANK_INLINE Vec<float> relative(Vec<float> w, Vec<float> top) {
    const Vec<float> t = w - top, back = t - w;
    const Vec<float> lost = (w - (t - back)) - (back + top), e = exp(t);
    return fma(e, lost, e);
}
template <class T> TIERRANK_INLINE void exponentials(const T *w, std::int64_t n, T top, T *e) {
    each_vector(n, [&](std::int64_t i) {
        store_some(relative(load_some(w + i, n, top), Vec<T>(top)), e + i, n);
    });
}
// In blocks: ten thousand equal numbers, added one by one, would all be rounded the same way.
template <class T> TIERRANK_INLINE double total(const T *e, std::int64_t n) {
    LongSum all;
    for (std::int64_t start = 0; start < n; start += BLOCK) {
        Vec<double> part(0.0);
        for (std::int64_t i = start; i < std::min(start + BLOCK, n); i += LANES)
            part += wide(load_some(e + i, n - i, T(0)));
        all.add(part);
    }
    return all.value();
}
// Σ f(0) + … + f(n − 1) of single numbers, in blocks; four sums side by side, so that none waits for
// the one before.
template <class F> TIERRANK_INLINE double sum_of(std::int64_t n, F f) {
    double all = 0.0;
    for (std::int64_t start = 0; start < n; start += BLOCK) {
        const std::int64_t end = std::min(start + BLOCK, n);
        double part[4] = {};
        std::int64_t k = start;
        for (; k + 4 <= end; k += 4)
            for (int lane = 0; lane < 4; ++lane) part[lane] += f(k + lane);
        for (; k < end; ++k) part[0] += f(k);
        all += (part[0] + part[1]) + (part[2] + part[3]);
    }
    return all;
}
template <class T> TIERRANK_INLINE void multiply(T *e, std::int64_t n, T factor) {
    for (std::int64_t i = 0; i < n; i += LANES)
        store_some(load_some(e + i, n - i, T(0)) * Vec<T>(factor), e + i, n - i);
}

// The same over a long list, shared between threads; parts are put together in their order, so
// that the number of threads changes nothing.
template <class F> TIERRANK_INLINE void by_segments(std::int64_t n, int threads, F work) {
    const std::int64_t count = (n + SEGMENT - 1) / SEGMENT;
    parallel(count, threads, [&](std::int64_t s) {
        work(s, s * SEGMENT, std::min(SEGMENT, n - s * SEGMENT));
    });
}

template <class T> TIERRANK_INLINE T largest_score(const T *w, std::int64_t n, int threads) {
    if (n <= LONG_LIST) return largest_score(w, n);
    std::vector<T> parts((n + SEGMENT - 1) / SEGMENT);
    by_segments(n, threads, [&](std::int64_t s, std::int64_t at, std::int64_t count) {
        parts[s] = largest_score(w + at, count);
    });
    return largest_score(parts.data(), std::int64_t(parts.size()));
}
template <class T>
TIERRANK_INLINE void exponentials(const T *w, std::int64_t n, T top, T *e, int threads) {
    if (n <= LONG_LIST) return exponentials(w, n, top, e);
    by_segments(n, threads, [&](std::int64_t, std::int64_t at, std::int64_t count) {
        exponentials(w + at, count, top, e + at);
    });
}
template <class T> TIERRANK_INLINE double total(const T *e, std::int64_t n, int threads) {
    if (n <= LONG_LIST) return total(e, n);
    std::vector<double> parts((n + SEGMENT - 1) / SEGMENT);
    by_segments(n, threads, [&](std::int64_t s, std::int64_t at, std::int64_t count) {
        parts[s] = total(e + at, count);
    });
    double all = 0.0;
    for (double part : parts) all += part;
    return all;
}
template <class T> TIERRANK_INLINE void multiply(T *e, std::int64_t n, T factor, int threads) {
    if (n <= LONG_LIST) return multiply(e, n, factor);
    by_segments(n, threads, [&](std::int64_t, std::int64_t at, std::int64_t count) {
        multiply(e + at, count, factor);
    });
}

// Calls work(i, threads) for all lists: the long ones first, one after the other, each for all threads;
// then ranges of the others, each list for one thread.
template <class T, class F> TIERRANK_INLINE void by_lists(const Lists<T> &p, int threads, F work) {
    for (std::int64_t i : p.shares->long_lists) work(i, threads);
    const auto &ranges = p.shares->ranges;
    parallel(std::int64_t(ranges.size()), threads, [&](std::int64_t k) {
        for (std::int64_t i = ranges[k].first; i < ranges[k].second; ++i) work(i, 1);
    });
}

} // namespace tierrank::TIERRANK_SET
