// Expected DCG@k under the Plackett-Luce model, without sampling, and its gradient.
//
// Item j arrives at an exponential time of rate e^{w_j}; the order of arrivals is the ranking. At time t = e^u,
// with z_j = e^{w_j + u}, item j has arrived with probability p_j = 1 − e^{−z_j}, independently of the others: the
// number of those above an item that arrives just then is Poisson-binomial. So
//
//     E[DCG@k] = ∫ Σ_i a_i Σ_{r<k} P(r of the others have arrived) / log2(2 + r) du,     a_i = gain_i z_i e^{−z_i}.
//
// The sum over i is one polynomial product: with F⁰_j[r] the probability that r of the first j items have arrived,
// and F¹_j[r] the same, summed over which of these arrives now, weighted by a,
//
//     F⁰_j[r] = q_j F⁰_{j−1}[r] + p_j F⁰_{j−1}[r − 1],      F¹_j the same + a_j F⁰_{j−1}[r],      q = 1 − p,
//
// and the integrand is Σ_r F¹_n[r] / log2(2 + r). Going back over the items, by the same two lines turned round,
// gives the slopes by every a_j and p_j: sums of positive numbers and one difference, nothing is divided out.
// That is O(n k) a node for the value, and four times that with the gradient. Of F only every √n-th is kept.
//
// Nodes: the trapezoidal rule in v, u = −lse(w) − shift + v − e^{−v}, which ends double-exponentially at both
// sides; its error falls as e^{−2π²/(k h²)} where k cuts the list, and as e^{−c/h} else. Where scores leave a gap,
// nothing arrives: each cluster of scores has nodes of its own. Eight nodes are worked on side by side.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "metric_pairs.hpp"

namespace tierrank::TIERRANK_SET {

constexpr double NODE_FROM = -3.6, NODE_SHIFT = 0.7; // e^{−3.6 − e^{3.6}} of the first arrival's time
constexpr double ARRIVED = 40.0;                     // e^{−40}: who is that late does not exist
constexpr double CLUSTER_GAP = 64.0;                 // of scores: beyond it, all of one before any of the other
constexpr double LATEST = 6.5;                       // of log z: e^−665 is nothing, and z² is finite
constexpr double NO_PLACE_LEFT = 1e-18;

struct ArrivalScratch {
    std::vector<double> sorted, discount, gradient;
    std::vector<Vec<double>> kept, block, by_f0, by_f1;
};

// z of an item, and its chances to be still out and to have arrived
struct Arrival {
    Vec<double> z, q, p;
};
TIERRANK_INLINE Arrival arrival(double score, Vec<double> u) {
    const Vec<double> z = exp(min(Vec<double>(score) + u, Vec<double>(LATEST)));
    const auto [q, p, unused] = decay(z);
    (void)unused;
    return {z, q, p};
}

// One more item: F⁰ and F¹, interleaved as (F⁰[r], F¹[r]), in place
TIERRANK_INLINE void arrive(Vec<double> *f, std::int64_t places, const Arrival &item, double gain) {
    using V = Vec<double>;
    const V a = V(gain) * item.z * item.q;
    for (std::int64_t r = places - 1; r > 0; --r) {
        f[2 * r + 1] = fma(item.q, f[2 * r + 1], fma(item.p, f[2 * r - 1], a * f[2 * r]));
        f[2 * r] = fma(item.q, f[2 * r], item.p * f[2 * r - 2]);
    }
    f[1] = fma(item.q, f[1], a * f[0]);
    f[0] = item.q * f[0];
}

// Adds what eight nodes give; false if at the first of them k items have arrived for sure.
inline bool add_nodes(const MetricLists &p, std::int64_t list, std::int64_t k, double top, Vec<double> u,
                      Vec<double> weight, double &value, ArrivalScratch &x) {
    using V = Vec<double>;
    const std::int64_t start = p.offsets[list], n = p.offsets[list + 1] - start;
    const double *scores = p.scores + start, *gains = p.gains + start;
    const std::int64_t step = std::max<std::int64_t>(1, std::int64_t(std::sqrt(double(n)))), width = 2 * k;
    const auto reach = [&](std::int64_t j) { return std::min(j + 1, k); }; // numbers of j items that can have arrived

    x.block.assign(std::size_t((step + 1) * width), V(0.0));
    if (p.gradient) x.kept.resize(std::size_t((n / step + 1) * width));
    V *f = x.block.data();
    f[0] = V(1.0);
    for (std::int64_t j = 0; j < n; ++j) {
        if (p.gradient && j % step == 0) std::copy_n(f, width, x.kept.data() + j / step * width);
        arrive(f, reach(j + 1), arrival(scores[j] - top, u), gains[j]);
    }
    V inside(0.0), total(0.0);
    for (std::int64_t r = 0; r < k; ++r) {
        inside += f[2 * r];
        total = fma(V(x.discount[std::size_t(r)]), f[2 * r + 1], total);
    }
    if (k < n && inside[0] < NO_PLACE_LEFT) return false;
    value += sum(weight * total);
    if (!p.gradient) return true;

    // slopes by F⁰_j[r] and F¹_j[r]; for r = k they are 0
    x.by_f0.assign(std::size_t(k + 1), V(0.0)), x.by_f1.assign(std::size_t(k + 1), V(0.0));
    V *b0 = x.by_f0.data(), *b1 = x.by_f1.data();
    for (std::int64_t r = 0; r < k; ++r) b1[r] = V(x.discount[std::size_t(r)]);
    for (std::int64_t from = (n - 1) / step * step; from >= 0; from -= step) {
        const std::int64_t to = std::min(from + step, n);
        std::copy_n(x.kept.data() + from / step * width, width, x.block.data());
        for (std::int64_t j = from; j + 1 < to; ++j) { // the block's F again
            V *next = x.block.data() + (j + 1 - from) * width;
            std::copy_n(next - width, width, next);
            arrive(next, reach(j + 1), arrival(scores[j] - top, u), gains[j]);
        }
        for (std::int64_t j = to - 1; j >= from; --j) {
            const V *before = x.block.data() + (j - from) * width;
            const auto [z, q, p_j] = arrival(scores[j] - top, u);
            const V a = V(gains[j]) * z * q;
            V by_a(0.0), by_p(0.0);
            const std::int64_t places = reach(j);
            for (std::int64_t r = 0; r < places; ++r) {
                const V f0 = before[2 * r], f1 = before[2 * r + 1];
                const V up0 = b0[r + 1] - b0[r], up1 = b1[r + 1] - b1[r];
                by_a = fma(b1[r], f0, by_a);
                by_p = fma(up1, f1, fma(up0, f0, by_p));
                b0[r] = fma(p_j, up0, fma(a, b1[r], b0[r]));
                b1[r] = fma(p_j, up1, b1[r]);
            }
            const V out = z * q; // dp/dw, and da/dw = gain z q (1 − z)
            const V slope = out * fma(V(gains[j]) * (V(1.0) - z), by_a, by_p);
            x.gradient[std::size_t(j)] += sum(weight * slope);
        }
    }
    return true;
}

inline void expected_dcg_of_list(const MetricLists &p, std::int64_t most, double fineness, std::int64_t list,
                                 ArrivalScratch &x) {
    const std::int64_t start = p.offsets[list], n = p.offsets[list + 1] - start, k = std::min(most, n);
    double value = 0.0;
    p.value[list] = 0.0;
    if (p.gradient) std::fill_n(p.gradient + start, n, 0.0);
    const double *gains = p.gains + start;
    if (!std::any_of(gains, gains + n, [](double gain) { return gain > 0.0; })) return;
    x.sorted.assign(p.scores + start, p.scores + start + n);
    std::sort(x.sorted.begin(), x.sorted.end(), std::greater<>());
    x.gradient.assign(std::size_t(n), 0.0);
    x.discount.resize(std::size_t(k));
    for (std::int64_t r = 0; r < k; ++r) x.discount[std::size_t(r)] = log_discount(r + 1, k);
    double h = 0.25;
    if (k < n) h = std::min(h, 0.65 / std::sqrt(double(k)));
    h *= fineness;
    bool places_left = true;
    for (std::int64_t from = 0, to; from < std::min(n, k) && places_left; from = to) {
        double worths = 0.0;
        const double top = x.sorted[std::size_t(from)];
        double last = top;
        for (to = from; to < n && last - x.sorted[std::size_t(to)] < CLUSTER_GAP; ++to)
            last = x.sorted[std::size_t(to)], worths += std::exp(last - top);
        const double begin = -std::log(worths) - NODE_SHIFT; // of u, which counts from −top
        const double end = std::log(ARRIVED) + (top - last);
        for (double v = NODE_FROM; places_left;) {
            Vec<double> u, weight(0.0);
            bool after = false;
            for (int lane = 0; lane < LANES; ++lane, v += h) {
                const double bend = std::exp(-v), at = begin + v - bend;
                after |= at > end;
                u.set(lane, at);
                if (at <= end) weight.set(lane, h * (1.0 + bend));
            }
            places_left = add_nodes(p, list, k, top, u, weight, value, x);
            if (after) break;
        }
    }
    p.value[list] = value;
    if (p.gradient) std::copy_n(x.gradient.data(), n, p.gradient + start);
}

inline void expected_dcg(const MetricLists &p, std::int64_t k, double fineness, int threads) {
    by_cost<ArrivalScratch>(
        p.lists, threads,
        [&](std::int64_t i) {
            const std::int64_t n = p.offsets[i + 1] - p.offsets[i];
            return 1.0 + 60.0 * double(n) * double(std::min(n, k));
        },
        [&](std::int64_t i, ArrivalScratch &x) { expected_dcg_of_list(p, k, fineness, i, x); });
}

} // namespace tierrank::TIERRANK_SET
