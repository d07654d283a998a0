// Losses that stand for a metric and look at the pairs of a list: LambdaLoss and ApproxNDCG, value and slopes
// in one pass. Rows stand best tier first, gains are 0 or more; everything is in double, and a list is one thread's.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "pairs.hpp"

namespace tierrank::TIERRANK_SET {

// The numbers of one list, with LANES of padding behind it.
class Padded {
  public:
    void resize(std::int64_t n) { numbers.assign(std::size_t(n + LANES), 0.0); }
    double &operator[](std::int64_t i) { return numbers[std::size_t(i)]; }
    double *at(std::int64_t i) { return numbers.data() + i; }

  private:
    std::vector<double> numbers;
};

// Lanes of the vector that begins at j and are before n
TIERRANK_INLINE Mask<double> before(std::int64_t j, std::int64_t n) {
    static constexpr double LANE[LANES] = {0, 1, 2, 3, 4, 5, 6, 7};
    return Vec<double>::load(LANE) < Vec<double>(double(n - j));
}

inline double log_discount(std::int64_t place, std::int64_t k) { // places count from 1
    return place <= k ? 1.0 / std::log2(1.0 + double(place)) : 0.0;
}

// -- LambdaLoss -----------------------------------------------------------------------------------
//
//     loss = Σ_{i above j} ω_ij log2(1 + e^{−σ(s_i − s_j)})        i in a better tier than j
//
// With the items in places 1, 2, …, by falling score, every weight has the form, for places a < b of a pair,
//
//     ω = (α_a − β_b + μ δ_{b − a}) · |G_a − G_b|          δ_m = 1/D_m − 1/D_{m+1},  D_m = log2(1 + m)
//
// |Δ NDCG| by a swap: α = β = 1/D. |Δ P@k|: α = β = 1/k up to place k. With c relevant items up to a place, S the
// sum of 1/place over these, and R in all, |Δ AP| R is: α = (c + [not relevant])/a − S, β = (c + [relevant])/b − S.
// With r₁, r₂ the first places of relevant items, |Δ RR|: α = 1/a up to r₁, then 1/r₁ (not relevant) or 1/r₂;
// β = 1/r₁ of a relevant item, else 1/min(b, r₂). NDCG-Loss1 has G_i/D_i on all pairs of i with others.
//
// Of equal scores the worse tier comes first. Items of equal score and tier are averaged over their orders: the
// loss is the same in each, and so each item gets the mean of their slopes.
struct LambdaScratch {
    std::vector<std::int64_t> order;
    Padded score, gain, tier, alpha, beta, delta, slope, second;
    void resize(std::int64_t n) {
        order.resize(std::size_t(n));
        for (Padded *each : {&score, &gain, &tier, &alpha, &beta, &slope, &second}) each->resize(n);
        delta.resize(n + 1);
    }
};

inline void swap_differences(const LambdaLists &p, std::int64_t n, LambdaScratch &x) {
    const std::int64_t k = std::min(p.k, n);
    double relevant = 0.0, sum = 0.0, all = 0.0;
    std::int64_t first = n + 1, second = n + 1; // places of the first two that are relevant
    for (std::int64_t a = n; a >= 1; --a)
        if (x.gain[a - 1] > 0.0) all += 1.0, second = first, first = a;
    for (std::int64_t i = 0; i < n; ++i) {
        const double place = double(i + 1), hit = x.gain[i] > 0.0;
        switch (p.metric) {
        case SwapMetric::ndcg: x.alpha[i] = x.beta[i] = log_discount(i + 1, k); break;
        case SwapMetric::precision: x.alpha[i] = x.beta[i] = i < k ? 1.0 / double(p.k) : 0.0; break;
        case SwapMetric::map:
            relevant += hit, sum += hit / place;
            x.alpha[i] = ((relevant + 1.0 - hit) / place - sum) / std::max(all, 1.0);
            x.beta[i] = ((relevant + hit) / place - sum) / std::max(all, 1.0);
            break;
        case SwapMetric::mrr:
            x.alpha[i] = i + 1 <= first ? 1.0 / place : 1.0 / double(hit > 0.0 ? second : first);
            x.beta[i] = 1.0 / double(hit > 0.0 ? first : std::min(i + 1, second));
        }
    }
}

inline void lambda_loss_of_list(const LambdaLists &p, std::int64_t list, LambdaScratch &x) {
    using V = Vec<double>;
    const std::int64_t start = p.offsets[list], n = p.offsets[list + 1] - start;
    const double *scores = p.scores + start, *gains = p.gains + start;
    x.resize(n);
    std::iota(x.order.begin(), x.order.end(), 0);
    std::sort(x.order.begin(), x.order.end(), [&](std::int64_t a, std::int64_t b) {
        return scores[a] != scores[b] ? scores[a] > scores[b] : a > b;
    });
    for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t row = x.order[std::size_t(i)];
        x.score[i] = p.sigma * scores[row], x.gain[i] = gains[row];
        x.tier[i] = double(p.tiers[start + row]);
    }
    const bool by_distance = p.weighting == PairWeighting::ndcg_loss2 || p.weighting == PairWeighting::ndcg_loss2pp;
    const bool by_swap = p.weighting == PairWeighting::lambdarank || p.weighting == PairWeighting::ndcg_loss2pp;
    const bool alike = p.weighting == PairWeighting::ranknet, one_sided = p.weighting == PairWeighting::ndcg_loss1;
    if (by_swap) swap_differences(p, n, x);
    if (by_distance) {
        const double mu = by_swap ? p.mu : 1.0;
        for (std::int64_t m = 1; m < n; ++m) x.delta[m] = mu * (log_discount(m, n) - log_discount(m + 1, n));
    }
    if (one_sided)
        for (std::int64_t i = 0; i < n; ++i) x.alpha[i] = x.gain[i] * log_discount(i + 1, p.k);

    const V nothing(0.0), one(1.0);
    double loss = 0.0;
    for (std::int64_t i = 0; i < std::min(n, p.k); ++i) { // a pair beyond place k counts for nothing
        const V own(x.score[i]), gain(x.gain[i]), tier(x.tier[i]), alpha(x.alpha[i] + (alike ? 1.0 : 0.0));
        V sum(0.0), pull(0.0), curve(0.0);
        for (std::int64_t j = i + 1; j < n; j += LANES) {
            const V behind = V::load(x.score.at(j)) - own, other = V::load(x.tier.at(j)); // behind ≤ 0
            const auto [soft, slope] = softplus(behind);
            const auto inside = before(j, n), right = tier < other, wrong = other < tier;
            V for_i, for_j; // weights of the pair where i, or j, should be above
            if (one_sided) {
                for_i = select(inside, alpha, nothing), for_j = select(inside, V::load(x.alpha.at(j)), nothing);
            } else {
                V weight = alpha - V::load(x.beta.at(j)) + V::load(x.delta.at(j - i));
                if (!alike) weight *= abs(gain - V::load(x.gain.at(j)));
                for_i = select(inside & right, weight, nothing), for_j = select(inside & wrong, weight, nothing);
            }
            const V both = for_i + for_j, by_behind = both * slope - for_j;
            sum += select(inside, both * soft - for_j * behind, nothing);
            pull += by_behind;
            (V::load(x.slope.at(j)) + by_behind).store(x.slope.at(j));
            if (p.hessian) {
                const V bend = both * slope * (one - slope);
                curve += bend;
                (V::load(x.second.at(j)) + bend).store(x.second.at(j));
            }
        }
        loss += tierrank::TIERRANK_SET::sum(sum);
        x.slope[i] -= tierrank::TIERRANK_SET::sum(pull);
        x.second[i] += tierrank::TIERRANK_SET::sum(curve);
    }
    p.value[list] = loss / LN2;
    for (std::int64_t from = 0, to; from < n; from = to) { // runs of the same score and tier
        double slope = 0.0, second = 0.0;
        for (to = from; to < n && x.score[to] == x.score[from] && x.tier[to] == x.tier[from]; ++to)
            slope += x.slope[to], second += x.second[to];
        const double each = p.sigma / (LN2 * double(to - from));
        for (std::int64_t i = from; i < to; ++i) {
            const std::int64_t row = start + x.order[std::size_t(i)];
            if (p.gradient) p.gradient[row] = slope * each;
            if (p.hessian) p.hessian[row] = second * each * p.sigma;
        }
    }
}

// Calls work(list, scratch) for all lists, in ranges of about equal cost.
template <class Scratch, class Cost, class F>
void by_cost(std::int64_t lists, int threads, Cost cost, F work) {
    const auto ranges = cut_by_cost(lists, cost);
    parallel(std::int64_t(ranges.size()), threads, [&](std::int64_t r) {
        Scratch scratch;
        for (std::int64_t i = ranges[r].first; i < ranges[r].second; ++i) work(i, scratch);
    });
}
inline double pairs_of(const MetricLists &p, std::int64_t i) {
    const double n = double(p.offsets[i + 1] - p.offsets[i]);
    return 1.0 + 10.0 * n + n * n / 2.0;
}

inline void lambda_loss(const LambdaLists &p, int threads) {
    by_cost<LambdaScratch>(
        p.lists, threads, [&](std::int64_t i) { return pairs_of(p, i); },
        [&](std::int64_t i, LambdaScratch &x) { lambda_loss_of_list(p, i, x); });
}

// -- ApproxNDCG -----------------------------------------------------------------------------------
//
//     Σ_i G_i / log2(1 + r_i),      r_i = 1 + Σ_{j≠i} 1/(1 + e^{−(s_j − s_i)/T})
//
// and, with c_i the derivative by r_i, the slope by s_i is Σ_j σ′((s_j − s_i)/T)/T (c_j − c_i).
struct ApproxScratch {
    Padded score, rank, by_rank, slope;
};

inline void approx_ndcg_of_list(const MetricLists &p, double temperature, std::int64_t list, ApproxScratch &x) {
    using V = Vec<double>;
    const std::int64_t start = p.offsets[list], n = p.offsets[list + 1] - start;
    const V nothing(0.0), one(1.0);
    for (Padded *each : {&x.score, &x.rank, &x.by_rank, &x.slope}) each->resize(n);
    for (std::int64_t i = 0; i < n; ++i) x.score[i] = p.scores[start + i] / temperature, x.rank[i] = 1.0;
    for (std::int64_t i = 0; i < n; ++i) {
        const V own(x.score[i]);
        V above(0.0);
        for (std::int64_t j = i + 1; j < n; j += LANES) {
            const V ahead = V::load(x.score.at(j)) - own, e = exp(-abs(ahead)), share = one / (one + e);
            const auto inside = before(j, n);
            const V j_above = select(inside, select(nothing < ahead, share, e * share), nothing);
            above += j_above;
            (V::load(x.rank.at(j)) + select(inside, one - j_above, nothing)).store(x.rank.at(j));
        }
        x.rank[i] += sum(above);
    }
    double value = 0.0;
    for (std::int64_t i = 0; i < n; ++i) {
        const double gain = p.gains[start + i], log_rank = std::log1p(x.rank[i]);
        value += gain * LN2 / log_rank;
        x.by_rank[i] = -gain * LN2 / ((1.0 + x.rank[i]) * log_rank * log_rank);
    }
    p.value[list] = value;
    if (!p.gradient) return;
    for (std::int64_t i = 0; i < n; ++i) {
        const V own(x.score[i]), by_own(x.by_rank[i]);
        V pull(0.0);
        for (std::int64_t j = i + 1; j < n; j += LANES) {
            const V steep = sigmoid_slope(V::load(x.score.at(j)) - own);
            const V moved = select(before(j, n), steep * (V::load(x.by_rank.at(j)) - by_own), nothing);
            pull += moved;
            (V::load(x.slope.at(j)) - moved).store(x.slope.at(j));
        }
        x.slope[i] += sum(pull);
        p.gradient[start + i] = x.slope[i] / temperature;
    }
}

inline void approx_ndcg(const MetricLists &p, double temperature, int threads) {
    by_cost<ApproxScratch>(
        p.lists, threads, [&](std::int64_t i) { return pairs_of(p, i); },
        [&](std::int64_t i, ApproxScratch &x) { approx_ndcg_of_list(p, temperature, i, x); });
}

} // namespace tierrank::TIERRANK_SET
