// Terms of small tiers with all their second derivatives, for lists with ties (tied_lists.cpp).
//
// A tier A over everything below it, whose worth is T, has log P(A > below) as a function of
// d_a = w_a − log T. Its slopes are E[r_a], and its matrix of second derivatives is
//
//     M_ab = E[(r_a − E r_a) (r_b − E r_b)] + δ_ab E[r_a (1 − z_a − r_a)]
//
// over the nodes of the integral (integral.hpp). Tiers of at most FEW items go by the recursion over
// subsets (few.hpp), eight at a time.
#pragma once

#include "few.hpp"
#include "integral.hpp"
#include "kernels.hpp"
#include "pairs.hpp"
#include "threads.hpp"

namespace tierrank::TIERRANK_SET {

// log chance(all) with two derivatives in log D. With N(S) = Σ_{a∈S} D_a chance(S \ a),
// chance(S) = N(S) / (1 + Σ_S D), and D_a = e^{d_a} is its own derivative: so numerator and quotient
// are differentiated twice as they are built. Fills own [n] and matrix [n · n], and returns chance(all).
template <int n>
inline Vec<double> few_hessian(const Vec<double> *D, Vec<double> *own, Vec<double> *matrix) {
    using V = Vec<double>;
    constexpr int all = (1 << n) - 1;
    V chance[1 << n], slope[1 << n][n], hessian[1 << n][n][n]; // of hessian, b ≤ c only
    chance[0] = V(1.0);
    for (int b = 0; b < n; ++b) {
        slope[0][b] = V(0.0);
        for (int c = b; c < n; ++c) hessian[0][b][c] = V(0.0);
    }
    for (int s = 1; s <= all; ++s) {
        V total(1.0), drawn(0.0), first[n], second[n][n];
        for (int b = 0; b < n; ++b) {
            first[b] = V(0.0);
            for (int c = b; c < n; ++c) second[b][c] = V(0.0);
        }
        for (int a = 0; a < n; ++a)
            if (s >> a & 1) {
                const int o = s ^ (1 << a);
                const V part = D[a] * chance[o];
                total += D[a];
                drawn += part;
                first[a] += part;
                second[a][a] += part;
                for (int b = 0; b < n; ++b) {
                    const V moved = D[a] * slope[o][b];
                    first[b] += moved;
                    if (b < a)
                        second[b][a] += moved;
                    else // on the diagonal it comes from both sides
                        second[a][b] += b == a ? moved + moved : moved;
                    for (int c = b; c < n; ++c) second[b][c] = fma(D[a], hessian[o][b][c], second[b][c]);
                }
            }
        const V inverse = V(1.0) / total;
        chance[s] = drawn * inverse;
        V of[n];
        for (int b = 0; b < n; ++b) {
            of[b] = s >> b & 1 ? D[b] : V(0.0);
            slope[s][b] = (first[b] - chance[s] * of[b]) * inverse;
        }
        for (int b = 0; b < n; ++b)
            for (int c = b; c < n; ++c) {
                V less = fma(slope[s][b], of[c], slope[s][c] * of[b]);
                if (b == c) less = fma(chance[s], of[b], less);
                hessian[s][b][c] = (second[b][c] - less) * inverse;
            }
    }
    const V whole = V(1.0) / chance[all];
    for (int a = 0; a < n; ++a) own[a] = slope[all][a] * whole;
    for (int a = 0; a < n; ++a)
        for (int b = a; b < n; ++b)
            matrix[a * n + b] = matrix[b * n + a] = hessian[all][a][b] * whole - own[a] * own[b];
    return chance[all];
}

class TiedWorker {
  public:
    void run(const TiedTerms &p, std::int64_t lo, std::int64_t hi) {
        for (Batch &batch : batches) batch.count = 0; // what a call left that ran out of memory
        for (std::int64_t j = lo; j < hi; ++j) term(p, j);
        for (int n = 2; n <= FEW; ++n) flush(p, n);
    }

  private:
    using W = Vec<double>;

    std::vector<double> worth, score, slope, centred, weighted; // the last two [items, nodes]
    Integral<double> integral;
    struct Batch {
        int count = 0;
        std::int64_t tier[LANES];
    } batches[FEW + 1];

    void term(const TiedTerms &p, std::int64_t j) {
        const std::int64_t size = p.tier_offsets[j + 1] - p.tier_offsets[j];
        if (p.last[j]) { // nothing below it
            p.value[j] = 0.0;
            std::fill_n(p.slopes + p.tier_offsets[j], size, 0.0);
        } else if (size == 1) { // −log(1 + 1/D), with all digits of a large D
            const double D = p.worth[p.items[p.tier_offsets[j]]] / p.below[j], own = 1.0 / (1.0 + D);
            p.value[j] = -std::log1p(1.0 / D);
            p.slopes[p.tier_offsets[j]] = own;
            if (p.matrices) p.matrices[p.matrix_offsets[j]] = -own * own * D;
        } else if (size <= FEW) {
            Batch &batch = batches[size];
            batch.tier[batch.count++] = j;
            if (batch.count == LANES) flush(p, int(size));
        } else {
            many(p, j, size);
        }
    }

    void flush(const TiedTerms &p, int n) {
        switch (n) {
        case 2: return flush<2>(p);
        case 3: return flush<3>(p);
        case 4: return flush<4>(p);
        default: return flush<FEW>(p);
        }
    }
    template <int n> void flush(const TiedTerms &p) {
        Batch &batch = batches[n];
        if (!batch.count) return;
        W D[n], own[n], matrix[n * n];
        for (int k = 0; k < LANES; ++k) {
            const std::int64_t j = batch.tier[k < batch.count ? k : 0], start = p.tier_offsets[j];
            for (int a = 0; a < n; ++a) D[a].set(k, p.worth[p.items[start + a]] / p.below[j]);
        }
        const W log_p = log(p.matrices ? few_hessian<n>(D, own, matrix) : few_items<n>(D, own));
        for (int k = 0; k < batch.count; ++k) {
            const std::int64_t j = batch.tier[k];
            p.value[j] = log_p[k];
            for (int a = 0; a < n; ++a) p.slopes[p.tier_offsets[j] + a] = own[a][k];
            if (p.matrices)
                for (int a = 0; a < n * n; ++a) p.matrices[p.matrix_offsets[j] + a] = matrix[a][k];
        }
        batch.count = 0;
    }

    void many(const TiedTerms &p, std::int64_t j, std::int64_t size) {
        const std::int64_t start = p.tier_offsets[j], end = padded(size);
        worth.assign(end, 0.0);
        score.assign(end, 0.0);
        slope.resize(end);
        for (std::int64_t a = 0; a < size; ++a) {
            worth[a] = p.worth[p.items[start + a]];
            score[a] = p.log_worth[p.items[start + a]];
        }
        const Tier<double> tier{worth.data(), score.data(), size, 0.0, 1.0 / p.below[j], std::log(p.below[j])};
        p.value[j] = integral(tier, p.matrices ? nullptr : slope.data());
        if (!p.matrices) {
            std::copy_n(slope.data(), size, p.slopes + start);
            return;
        }
        const int nodes = integral.nodes;
        centred.resize(size * nodes);
        weighted.resize(size * nodes);
        double *out = p.matrices + p.matrix_offsets[j];
        for (std::int64_t a = 0; a < size; ++a) {
            const W strength(std::min(worth[a] * tier.scale, INVINCIBLE) * integral.y);
            double *row = centred.data() + a * nodes;
            W mean(0.0), second(0.0);
            for (int k = 0; k < nodes; k += LANES) {
                const W z = min(strength * W::load(integral.growth + k), W(MOST_EXPONENT<double> - 7.0));
                const W r = decay(z).r, part = W::load(integral.share + k) * r;
                mean += part;
                second = fma(part, W(1.0) - z - r, second);
                r.store(row + k);
            }
            const double own = p.slopes[start + a] = sum(mean);
            for (int k = 0; k < nodes; k += LANES) {
                const W c = W::load(row + k) - W(own);
                c.store(row + k);
                (c * W::load(integral.share + k)).store(weighted.data() + a * nodes + k);
            }
            for (std::int64_t b = 0; b <= a; ++b) {
                W both(0.0);
                for (int k = 0; k < nodes; k += LANES)
                    both = fma(W::load(row + k), W::load(weighted.data() + b * nodes + k), both);
                out[a * size + b] = out[b * size + a] = sum(both) + (a == b ? sum(second) : 0.0);
            }
        }
    }
};

inline void tied_terms(const TiedTerms &p, int threads) {
    // in pairs of items and the like: a few operations a subset, or a pass over all nodes
    const auto ranges = cut_by_cost(p.tiers, [&](std::int64_t j) {
        const double size = double(p.tier_offsets[j + 1] - p.tier_offsets[j]);
        return p.last[j] ? 1.0 : size <= FEW ? 4.0 * size * size : 200.0 * size;
    });
    parallel(std::int64_t(ranges.size()), threads, [&](std::int64_t k) {
        static thread_local TiedWorker worker;
        worker.run(p, ranges[k].first, ranges[k].second);
    });
}

} // namespace tierrank::TIERRANK_SET
