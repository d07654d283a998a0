// The likelihood of lists of tiers and its gradient: ragged, without padding.
//
// A list is worked through from below: the worth of its last tier, then of each tier above it, in
// one unit, e^(w − top) with the list's best score as top. Each upper tier's term is an integral
// (integral.hpp) or a sum over subsets (few.hpp). With pull_m = Σ_a ∂/∂d_a, an item below tiers
// 1 … m has
//
//     ∂ log P/∂w = −e^(w − top) · owed,    owed = Σ_m pull_m / (worth below tier m).
//
// A list whose upper scores reach further down than e^−RANGE of its top cannot be held in one unit:
// there, log-sum-exps are kept as pairs (maximum, log of the sum relative to it) in double.
#pragma once

#include "few.hpp"
#include "hessian.hpp"
#include "integral.hpp"
#include "kernels.hpp"
#include "log_sums.hpp"
#include "rows.hpp"

namespace tierrank::TIERRANK_SET {

constexpr std::int64_t CHUNK = 4096; // rows that are worked on together

// A chunk of lists --------------------------------------------------------------------------------

template <class T> class Worker {
  public:
    // lists lo … hi − 1, all of them by this thread; only a single long list asks for others
    void run(const Lists<T> &p, std::int64_t lo, std::int64_t hi, int threads) {
        for (std::int64_t i = lo; i < hi;) {
            std::int64_t last = i, rows = 0;
            while (last < hi && (last == i || rows + p.rows(last) <= CHUNK)) rows += p.rows(last++);
            chunk(p, i, last, threads);
            i = last;
        }
        // what one long list needed is not kept for good
        if (worth.capacity() > 64 * CHUNK) *this = Worker();
    }

  private:
    using V = Vec<T>;
    using W = Vec<double>;

    // items of the upper tiers, tier by tier, each padded: worth, score, slope
    std::vector<T> worth, score, slope, own_exponentials;
    std::vector<std::int64_t> begin;                    // [tiers] where they start
    std::vector<double> below, value, pull, tier_worth; // [tiers]; below: worth of what is below
    std::vector<double> second, push; // with a diagonal: M_aa of every item, and 1ᵀM 1 of every tier
    std::vector<T> tops;                                // [lists]
    std::vector<double> bottoms;                        // [lists] worth of the bottom
    std::vector<char> done;                             // [lists]
    Integral<T> integral;

    struct Batch { // tiers of one size that wait until there are eight of them
        int count = 0;
        std::int64_t tier[LANES];
    } batches[FEW + 1];

    void chunk(const Lists<T> &p, std::int64_t lo, std::int64_t hi, int threads) {
        const std::int64_t first = p.list_offsets[lo], tiers = p.list_offsets[hi] - first;
        begin.resize(tiers), below.resize(tiers), value.resize(tiers), pull.resize(tiers);
        tier_worth.resize(tiers);
        tops.resize(hi - lo), bottoms.resize(hi - lo), done.assign(hi - lo, 0);
        std::int64_t room = 0;
        for (std::int64_t j = 0; j < tiers; ++j) {
            begin[j] = room;
            room += padded(p.tier_offsets[first + j + 1] - p.tier_offsets[first + j]);
        }
        for (Batch &batch : batches) batch.count = 0; // what a call left that ran out of memory
        worth.resize(room), score.resize(room), slope.resize(room);
        if (p.diagonal) second.resize(room), push.resize(tiers);
        T *e = p.gradient;
        if (!e) {
            own_exponentials.resize(p.row_offsets[hi] - p.row_offsets[lo]);
            e = own_exponentials.data() - p.row_offsets[lo];
        }
        for (std::int64_t i = lo; i < hi; ++i) {
            if (!climb(p, i, first, e, tops[i - lo], bottoms[i - lo], threads)) {
                done[i - lo] = 1;
                continue;
            }
            for (std::int64_t j = p.list_offsets[i] - first; j < p.list_offsets[i + 1] - first; ++j)
                term(p, first, j, double(tops[i - lo]));
        }
        for (int n = 1; n <= FEW; ++n) flush(p, first, n);
        for (std::int64_t i = lo; i < hi; ++i)
            if (!done[i - lo]) descend(p, i, first, e, bottoms[i - lo], threads);
    }

    // Worths below every upper tier of a list; false if that is settled already: there is nothing
    // to do, a score is not finite, or one unit cannot hold it.
    bool climb(const Lists<T> &p, std::int64_t i, std::int64_t first, T *e, T &top, double &bottom,
               int threads) {
        const std::int64_t start = p.row_offsets[i], n = p.rows(i);
        p.log_prob[i] = T(0);
        if (p.bottom_gradient) p.bottom_gradient[i] = 0.0;
        if (n == 0) return false;
        const T *w = p.scores + start;
        top = largest_score(w, n, threads);
        if (!(top - top == T(0))) {
            p.log_prob[i] = std::numeric_limits<T>::quiet_NaN();
            return false;
        }
        exponentials(w, n, top, e + start, threads);

        // gather the upper tiers, and take them out of the rows
        T lowest = top;
        for (std::int64_t j = p.list_offsets[i]; j < p.list_offsets[i + 1]; ++j) {
            const std::int64_t at = begin[j - first], from = p.tier_offsets[j];
            const std::int64_t size = p.tier_offsets[j + 1] - from, end = padded(size);
            double all = 0.0;
            for (std::int64_t a = 0; a < size; ++a) {
                const std::int64_t row = p.order[from + a];
                const T x = e[row];
                worth[at + a] = x;
                score[at + a] = p.scores[row];
                lowest = std::min(lowest, p.scores[row]);
                e[row] = T(0);
                all += double(x);
            }
            for (std::int64_t a = size; a < end; ++a) worth[at + a] = T(0), score[at + a] = top;
            tier_worth[j - first] = all;
        }

        double under = total(e + start, n, threads);
        const double drop = p.bottom ? p.bottom[i] - double(top) : NOTHING;
        bottom = drop == NOTHING ? 0.0 : exp1(drop);
        under += bottom;
        const bool nothing_below = under == 0.0 && drop == NOTHING && p.upper_rows(i) == n;
        const bool narrow = double(top) - double(lowest) <= RANGE && drop <= RANGE &&
                            (nothing_below || under >= 1.8e-35); // e^−RANGE
        if (!narrow) {
            wide_list(p, i, first);
            return false;
        }
        for (std::int64_t j = p.list_offsets[i + 1] - 1; j >= p.list_offsets[i]; --j) {
            below[j - first] = under;
            under += tier_worth[j - first];
        }
        return true;
    }

    // The term of one tier: at once, or with seven others of its size.
    void term(const Lists<T> &p, std::int64_t first, std::int64_t j, double top) {
        const std::int64_t size = p.tier_size(first + j);
        value[j] = pull[j] = 0.0;
        if (below[j] == 0.0 || p.weight(first + j) == 0.0) { // nothing below, or it counts nothing
            std::fill_n(slope.begin() + begin[j], padded(size), T(0));
            if (p.diagonal) {
                std::fill_n(second.begin() + begin[j], padded(size), 0.0);
                push[j] = 0.0;
            }
        } else if (size <= FEW) {
            Batch &batch = batches[size];
            batch.tier[batch.count++] = j;
            if (batch.count == LANES) flush(p, first, int(size));
        } else {
            const Tier<T> tier{worth.data() + begin[j], score.data() + begin[j],
                               size,                    top,
                               1.0 / below[j],          std::log(below[j])};
            T *slopes = p.gradient ? slope.data() + begin[j] : nullptr;
            const double log_p = integral(tier, slopes);
            if (p.diagonal) push[j] = integral.hessian(tier, nullptr, second.data() + begin[j]);
            finish(p, first, j, log_p, slopes ? total(slopes, padded(size)) : 0.0);
        }
    }

    void finish(const Lists<T> &p, std::int64_t first, std::int64_t j, double log_p, double sum_of) {
        const double weight = p.weight(first + j);
        value[j] = weight * log_p;
        pull[j] = weight * sum_of;
        if (weight == 1.0) return;
        const std::int64_t items = padded(p.tier_size(first + j));
        multiply(slope.data() + begin[j], items, T(weight));
        if (p.diagonal) {
            multiply(second.data() + begin[j], items, weight);
            push[j] *= weight;
        }
    }

    void flush(const Lists<T> &p, std::int64_t first, int n) {
        switch (n) {
        case 1: return flush<1>(p, first);
        case 2: return flush<2>(p, first);
        case 3: return flush<3>(p, first);
        case 4: return flush<4>(p, first);
        default: return flush<FEW>(p, first);
        }
    }
    template <int n> void flush(const Lists<T> &p, std::int64_t first) {
        Batch &batch = batches[n];
        if (!batch.count) return;
        W D[n], slopes[n];
        for (int k = 0; k < LANES; ++k) {
            const std::int64_t j = batch.tier[k < batch.count ? k : 0];
            const double scale = 1.0 / below[j];
            for (int a = 0; a < n; ++a) D[a].set(k, scale * double(worth[begin[j] + a]));
        }
        const W log_p = n == 1 ? single_item(D[0], slopes[0]) : log(few_items<n>(D, slopes));
        W seconds[n + 1];
        if (p.diagonal) {
            W toward[n];
            for (int a = 0; a <= n; ++a) { // one item after the other, then all of them
                for (int b = 0; b < n; ++b) toward[b] = W(a == b || a == n ? 1.0 : 0.0);
                seconds[a] = few_second<n>(D, toward);
            }
        }
        W all = slopes[0];
        for (int a = 1; a < n; ++a) all += slopes[a];
        for (int k = 0; k < batch.count; ++k) {
            const std::int64_t j = batch.tier[k];
            for (int a = 0; a < n; ++a) slope[begin[j] + a] = T(slopes[a][k]);
            if (p.diagonal) {
                for (int a = 0; a < n; ++a) second[begin[j] + a] = seconds[a][k];
                push[j] = seconds[n][k];
            }
            finish(p, first, j, log_p[k], all[k]);
        }
        batch.count = 0;
    }

    // Sum the terms of a list, and charge every item for the tiers above it.
    void descend(const Lists<T> &p, std::int64_t i, std::int64_t first, T *e, double bottom,
                 int threads) {
        double all = 0.0, owed = 0.0;
        const std::int64_t lo = p.list_offsets[i], hi = p.list_offsets[i + 1];
        for (std::int64_t j = lo; j < hi; ++j) {
            all += value[j - first];
            if (below[j - first] > 0.0) owed += pull[j - first] / below[j - first];
        }
        p.log_prob[i] = T(all);
        if (!p.gradient) return;
        if (p.bottom_gradient) p.bottom_gradient[i] = -owed * bottom;
        const std::int64_t start = p.row_offsets[i], n = p.rows(i);
        if (p.diagonal) descend_diagonal(p, i, first, e);
        multiply(e + start, n, T(-owed), threads);
        owed = 0.0;
        for (std::int64_t j = lo; j < hi; ++j) {
            const std::int64_t at = begin[j - first], from = p.tier_offsets[j];
            const std::int64_t size = p.tier_offsets[j + 1] - from;
            const T charge = T(owed);
            for (std::int64_t a = 0; a < size; ++a)
                p.gradient[p.order[from + a]] = slope[at + a] - charge * worth[at + a];
            if (below[j - first] > 0.0) owed += pull[j - first] / below[j - first];
        }
    }

    // The diagonal of H: M_aa for an item's own tier, and for what is below tiers 1 … m
    // Σ_m −pull_m σ + (1ᵀM_m 1 + pull_m) σ², with σ = e^(w − top) / (worth below tier m).
    // H is negative semidefinite: what is above 0 by rounding is 0.
    void descend_diagonal(const Lists<T> &p, std::int64_t i, std::int64_t first, const T *e) {
        double owed = 0.0, square = 0.0;
        const auto charge = [&](double x) { return std::min(x * (x * square - owed), 0.0); };
        const auto pass = [&](std::int64_t j) { // from above tier j to below it
            const double under = below[j - first];
            if (under == 0.0) return;
            owed += pull[j - first] / under;
            square += (push[j - first] + pull[j - first]) / (under * under);
        };
        const std::int64_t lo = p.list_offsets[i], hi = p.list_offsets[i + 1];
        for (std::int64_t j = lo; j < hi; ++j) pass(j);
        // the last tier; rows of upper tiers hold 0 here
        for (std::int64_t row = p.row_offsets[i]; row < p.row_offsets[i + 1]; ++row)
            p.diagonal[row] = charge(double(e[row]));
        owed = square = 0.0;
        for (std::int64_t j = lo; j < hi; ++j) {
            const std::int64_t at = begin[j - first], from = p.tier_offsets[j];
            for (std::int64_t a = 0; a < p.tier_size(j); ++a)
                p.diagonal[p.order[from + a]] =
                    std::min(second[at + a], 0.0) + charge(double(worth[at + a]));
            pass(j);
        }
    }

    // A list with scores too far apart for one unit ------------------------------------------------

    void wide_list(const Lists<T> &p, std::int64_t i, std::int64_t first) {
        const std::int64_t lo = p.list_offsets[i], hi = p.list_offsets[i + 1];
        std::vector<char> upper(p.rows(i), 0);
        for (std::int64_t k = p.tier_offsets[lo]; k < p.tier_offsets[hi]; ++k)
            upper[p.order[k] - p.row_offsets[i]] = 1;
        LogSum under;
        if (p.bottom && p.bottom[i] > NOTHING) under.add(p.bottom[i]);
        for (std::int64_t row = p.row_offsets[i]; row < p.row_offsets[i + 1]; ++row)
            if (!upper[row - p.row_offsets[i]]) under.add(double(p.scores[row]));
        std::vector<Settled> below_tier(hi - lo);
        for (std::int64_t j = hi - 1; j >= lo; --j) {
            below_tier[j - lo] = under.settled();
            for (std::int64_t k = p.tier_offsets[j]; k < p.tier_offsets[j + 1]; ++k)
                under.add(double(p.scores[p.order[k]]));
        }
        double all = 0.0;
        for (std::int64_t j = lo; j < hi; ++j) all += wide_term(p, first, j - first, below_tier[j - lo]);
        p.log_prob[i] = T(all);
        if (!p.gradient) return;
        if (p.diagonal)
            HessianWorker<T>().list({p, nullptr, nullptr, p.diagonal, nullptr}, i);

        // `owed` relative to the log-sum-exp below the tier reached, which only shrinks
        double owed = 0.0;
        Settled reached;
        const auto charge = [&](double w) { return owed != 0.0 ? owed * reached.share(w) : 0.0; };
        for (std::int64_t j = lo; j < hi; ++j) {
            const std::int64_t at = begin[j - first], from = p.tier_offsets[j];
            for (std::int64_t a = 0; a < p.tier_size(j); ++a) {
                const std::int64_t row = p.order[from + a];
                p.gradient[row] = T(double(slope[at + a]) - charge(double(p.scores[row])));
            }
            if (owed != 0.0) owed *= reached.share(below_tier[j - lo]);
            owed += pull[j - first];
            reached = below_tier[j - lo];
        }
        for (std::int64_t row = p.row_offsets[i]; row < p.row_offsets[i + 1]; ++row)
            if (!upper[row - p.row_offsets[i]]) p.gradient[row] = T(-charge(double(p.scores[row])));
        if (p.bottom_gradient && p.bottom[i] > NOTHING) p.bottom_gradient[i] = -charge(p.bottom[i]);
    }

    double wide_term(const Lists<T> &p, std::int64_t first, std::int64_t j, const Settled &under) {
        const std::int64_t size = p.tier_size(first + j), at = begin[j], end = padded(size);
        value[j] = pull[j] = 0.0;
        if (under.nothing() || p.weight(first + j) == 0.0) {
            std::fill_n(slope.begin() + at, end, T(0));
            return 0.0;
        }
        const std::int64_t *rows = p.order + p.tier_offsets[first + j];
        const auto [tier, missed] = hold(p.scores, rows, size, under, worth.data() + at, score.data() + at);
        below[j] = 1.0;
        if (size <= FEW) {
            Batch &batch = batches[size];
            const Batch waiting = std::exchange(batch, Batch{1, {j}});
            flush(p, first, int(size));
            batch = waiting;
        } else {
            const double log_p = integral(tier, slope.data() + at);
            finish(p, first, j, log_p, total(slope.data() + at, end));
        }
        return value[j] + p.weight(first + j) * missed;
    }
};

template <class T> void log_prob(const Lists<T> &p, int threads) {
    // long lists first, one after the other, each by all threads; then ranges of the others
    static thread_local Worker<T> mine;
    for (std::int64_t i : p.shares->long_lists) mine.run(p, i, i + 1, threads);
    const auto &ranges = p.shares->ranges;
    parallel(std::int64_t(ranges.size()), threads, [&](std::int64_t k) {
        static thread_local Worker<T> worker;
        worker.run(p, ranges[k].first, ranges[k].second, 1);
    });
}

} // namespace tierrank::TIERRANK_SET
