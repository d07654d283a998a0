// Second derivatives of the likelihood: H·v and the diagonal of H, list by list.
//
// With M a tier's Hessian in d (Integral::hessian), d_a = w_a − lse(below), σ the softmax of what is
// below, v̄ = σ·v, u = v − v̄ and pull = Σ E[r_a]:
//
//     above   (H v)_a =  (M u)_a
//     below   (H v)_b = −σ_b (1ᵀM u + pull (v_b − v̄))
//     below    H_bb   = −pull σ_b + (1ᵀM 1 + pull) σ_b²
//
// and the items below sum that over the tiers above them. A tier's weight multiplies its M and pull.
// Log-sum-exps are pairs (maximum, log of the sum relative to it): their sum would lose what sets
// apart scores near ±1e4.
#pragma once

#include "few.hpp"
#include "integral.hpp"
#include "kernels.hpp"
#include "log_sums.hpp"
#include "threads.hpp"

namespace tierrank::TIERRANK_SET {

template <class T> class HessianWorker {
  public:
    void list(const HessianProducts<T> &q, std::int64_t i) {
        const Lists<T> &p = q.lists;
        const std::int64_t lo = p.list_offsets[i], tiers = p.list_offsets[i + 1] - lo;
        const std::int64_t start = p.row_offsets[i], n = p.rows(i);
        if (q.bottom_out) q.bottom_out[i] = 0.0;
        // H 1 = 0: taken off first, a constant leaves nothing at all, and no rounding either
        shift = q.vector && n ? q.vector[start] : 0.0;
        upper.assign(n, 0);
        for (std::int64_t k = p.tier_offsets[lo]; k < p.tier_offsets[lo + tiers]; ++k)
            upper[p.order[k] - start] = 1;

        // from the bottom up: what is below every tier, and the mean of v over it
        LogSum under;
        if (p.bottom && p.bottom[i] > NOTHING) under.add(p.bottom[i]);
        for (std::int64_t row = 0; row < n; ++row)
            if (!upper[row]) under.add(double(p.scores[start + row]));
        below.resize(tiers), pull.resize(tiers), push.resize(tiers), mean.assign(tiers, 0.0);
        for (std::int64_t j = tiers - 1; j >= 0; --j) {
            below[j] = under.settled();
            for (std::int64_t k = p.tier_offsets[lo + j]; k < p.tier_offsets[lo + j + 1]; ++k)
                under.add(double(p.scores[p.order[k]]));
        }
        if (q.vector) means_below(q, i, tiers);

        for (std::int64_t j = 0; j < tiers; ++j) tier(q, lo + j, j);

        // from the top down: what every item owes to the tiers above it
        double owed = 0.0, more = 0.0; // pull; and 1ᵀM u − pull v̄, or 1ᵀM 1 + pull
        Settled reached;
        const auto charge = [&](double w, double v) {
            const double share = reached.share(w);
            // H is negative semidefinite: of its diagonal, what is above 0 by rounding is 0
            return q.vector ? -share * (more + owed * v)
                            : std::min(share * (share * more - owed), 0.0);
        };
        const auto of = [&](const double *vector, std::int64_t k) {
            return vector ? vector[k] - shift : 0.0;
        };
        for (std::int64_t j = 0; j < tiers; ++j) {
            if (owed != 0.0) {
                for (std::int64_t k = p.tier_offsets[lo + j]; k < p.tier_offsets[lo + j + 1]; ++k) {
                    const std::int64_t row = p.order[k];
                    q.out[row] += charge(double(p.scores[row]), of(q.vector, row));
                }
                const double shrink = reached.share(below[j]);
                owed *= shrink;
                more *= q.vector ? shrink : shrink * shrink;
            }
            owed += pull[j];
            more += push[j] + pull[j] * (q.vector ? -mean[j] : 1.0);
            reached = below[j];
        }
        for (std::int64_t row = 0; row < n; ++row)
            if (!upper[row])
                q.out[start + row] =
                    owed != 0.0 ? charge(double(p.scores[start + row]), of(q.vector, start + row)) : 0.0;
        if (q.bottom_out && owed != 0.0 && p.bottom && p.bottom[i] > NOTHING)
            q.bottom_out[i] = charge(p.bottom[i], of(q.bottom_vector, i));
    }

  private:
    double shift = 0.0; // what all of a list's part of the vector is taken relative to
    std::vector<char> upper;
    std::vector<Settled> below;
    std::vector<double> pull, push, mean, along, second;
    std::vector<T> worth, score, slope;
    Integral<T> integral;

    void means_below(const HessianProducts<T> &q, std::int64_t i, std::int64_t tiers) {
        const Lists<T> &p = q.lists;
        if (!tiers) return;
        const std::int64_t lo = p.list_offsets[i], start = p.row_offsets[i];
        double running = 0.0;
        if (!below[tiers - 1].nothing()) {
            for (std::int64_t row = 0; row < p.rows(i); ++row)
                if (!upper[row])
                    running += below[tiers - 1].share(double(p.scores[start + row])) *
                               (q.vector[start + row] - shift);
            if (p.bottom && p.bottom[i] > NOTHING)
                running += below[tiers - 1].share(p.bottom[i]) * (q.bottom_vector[i] - shift);
        }
        mean[tiers - 1] = running;
        for (std::int64_t j = tiers - 1; j > 0; --j) {
            const Settled &above = below[j - 1];
            running = below[j].nothing() ? 0.0 : running * above.share(below[j]);
            for (std::int64_t k = p.tier_offsets[lo + j]; k < p.tier_offsets[lo + j + 1]; ++k) {
                const std::int64_t row = p.order[k];
                running += above.share(double(p.scores[row])) * (q.vector[row] - shift);
            }
            mean[j - 1] = running;
        }
    }

    // M u of one tier into out, 1ᵀM u into push; or M_aa and 1ᵀM 1
    void tier(const HessianProducts<T> &q, std::int64_t tier, std::int64_t j) {
        const Lists<T> &p = q.lists;
        const std::int64_t from = p.tier_offsets[tier], size = p.tier_size(tier);
        const std::int64_t *rows = p.order + from;
        const double weight = p.weight(tier);
        pull[j] = push[j] = 0.0;
        if (below[j].nothing() || weight == 0.0) {
            for (std::int64_t a = 0; a < size; ++a) q.out[rows[a]] = 0.0;
            return;
        }
        if (size == 1) {
            const double d = below[j].distance(double(p.scores[rows[0]]));
            const double e = std::exp(-std::abs(d)), r = (d > 0.0 ? e : 1.0) / (1.0 + e);
            const double u = q.vector ? (q.vector[rows[0]] - shift) - mean[j] : 1.0;
            pull[j] = weight * r;
            q.out[rows[0]] = push[j] = -weight * r * (1.0 - r) * u;
            return;
        }
        const std::int64_t end = padded(size);
        worth.resize(end), score.resize(end), slope.resize(end), second.resize(end);
        const Tier<T> held = hold(p.scores, rows, size, below[j], worth.data(), score.data()).tier;
        along.assign(end, 1.0);
        if (q.vector)
            for (std::int64_t a = 0; a < size; ++a) along[a] = (q.vector[rows[a]] - shift) - mean[j];
        if (size <= FEW && ordinary(size)) {
            push[j] = weight * few(int(size), q.vector == nullptr);
        } else {
            integral(held, slope.data());
            push[j] = weight * integral.hessian(held, q.vector ? along.data() : nullptr, second.data());
        }
        for (std::int64_t a = 0; a < size; ++a) {
            pull[j] += weight * double(slope[a]);
            q.out[rows[a]] = weight * (q.vector ? second[a] : std::min(second[a], 0.0));
        }
    }
    // Whether the sums over subsets keep their digits: beside an item that nearly always or nearly
    // never wins, second derivatives are far smaller than what they are differences of.
    bool ordinary(std::int64_t size) const {
        for (std::int64_t a = 0; a < size; ++a)
            if (!(worth[a] > T(1e-4) && worth[a] < T(1e4))) return false;
        return true;
    }

    // the same for a tier of few items, of which M is written out
    double few(int n, bool diagonal) {
        double D[FEW], M[FEW * FEW], whole = 0.0;
        for (int a = 0; a < n; ++a) D[a] = double(worth[a]);
        few_hessian(n, D, M);
        few_slopes(n, D, slope.data());
        for (int a = 0; a < n; ++a) {
            double product = 0.0;
            for (int b = 0; b < n; ++b) product += M[a * n + b] * along[b];
            whole += product;
            second[a] = diagonal ? M[a * n + a] : product;
        }
        return whole;
    }
};

template <class T> void hessian_product(const HessianProducts<T> &q, int threads) {
    const auto ranges = equal_shares(q.lists, 4000.0).ranges;
    parallel(std::int64_t(ranges.size()), threads, [&](std::int64_t k) {
        HessianWorker<T> worker;
        for (std::int64_t i = ranges[k].first; i < ranges[k].second; ++i) worker.list(q, i);
    });
}

} // namespace tierrank::TIERRANK_SET
