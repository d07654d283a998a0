// Lists whose tiers are chosen one after the other, by sums of worths: PL-LB, Efron's approximation and
// PMOP-FD, with their gradients, in one pass.
//
// Let S_1 … S_G be a list's tiers in the order in which they are chosen, and R_g = S_g ∪ … ∪ S_G what is
// left at stage g. With n = |S_g|, its share o = Σ_{S_g} e^w / Σ_{R_g} e^w, and b = 1 − o, stage g adds
//
//     breslow    Σ_{S_g} (w − lse R_g)
//     efron      Σ_{S_g} (w − lse R_g) − Σ_{k=1…n} log A_k,    A_k = b + o k/n
//     subset     log o
//
// and the last stage, which has no choice, nothing. (Terms without scores are added in Python.) So an
// item of S_g has the slope  gain − e^(w − lse R_g) · own,  and one below it  −e^(w − lse R_g) · below:
//
//                gain         own              below
//     breslow    1            n                n
//     efron      1            Σ (k/n)/A_k      Σ 1/A_k
//     subset     e^w/Σ_{S_g}  1                1
//
// As in lists.hpp, a list is summed in one unit, e^(w − top), if that can hold it.
#pragma once

#include "kernels.hpp"
#include "log_sums.hpp"
#include "rows.hpp"

namespace tierrank::TIERRANK_SET {

// What the n draws from a tier come to: Σ log A, and the columns `own` and `below` of the table above
struct Draws {
    double logs, own, below;
};

inline Draws efron_draws(std::int64_t n, double o, double b) {
    using V = Vec<double>;
    constexpr std::int64_t TOGETHER = 16 * LANES; // A ≥ 1/n: a product of 16 of them is a normal number
    const V step = 1.0 / double(n), last = double(n), share = o, rest = b, none = 0.0, one = 1.0;
    V logs = none, own = none, below = none, k = none;
    for (int lane = 0; lane < LANES; ++lane) k.set(lane, lane + 1.0);
    for (std::int64_t start = 0; start < n; start += TOGETHER) {
        V product = one, own_part = none, below_part = none;
        for (std::int64_t i = start; i < std::min(start + TOGETHER, n); i += LANES) {
            const V kept = k * step, A = fma(share, kept, rest), inverse = one / A;
            const auto inside = k <= last;
            product *= select(inside, A, one);
            own_part += select(inside, kept * inverse, none);
            below_part += select(inside, inverse, none);
            k += V(double(LANES));
        }
        logs += log(product), own += own_part, below += below_part;
    }
    return {sum(logs), sum(own), sum(below)};
}

inline Draws draws(Choice choice, std::int64_t n, double o, double b) {
    if (choice == Choice::efron) return efron_draws(n, o, b);
    const double times = choice == Choice::breslow ? double(n) : 1.0;
    return {0.0, times, times};
}

template <class T> class StageWorker {
  public:
    void list(const StagedLists<T> &staged, std::int64_t i, int threads) {
        const Lists<T> &p = staged.lists;
        staged.value[i] = 0.0;
        if (p.bottom_gradient) p.bottom_gradient[i] = 0.0;
        const std::int64_t n = p.rows(i);
        if (n == 0) return;
        const T top = largest_score(p.scores + p.row_offsets[i], n, threads);
        if (!(top - top == T(0)))
            staged.value[i] = std::numeric_limits<double>::quiet_NaN();
        else if (gather(p, i, top, threads))
            in_one_unit(staged, i, threads);
        else
            far_apart(staged, i);
        if (n > LONG_LIST) *this = StageWorker(); // what it needed is not kept for good
    }

  private:
    static constexpr std::int64_t LAST = -1; // the tier that the layout leaves out
    static constexpr double LEAST = 1.8e-35; // e^−RANGE: what one unit holds is worth no less

    T *e = nullptr;                           // e^(w − top) by row, 0 in upper tiers
    std::vector<T> worth, scratch;            // the same of the upper tiers, in the layout's order
    std::vector<double> tier_worth, tier_sum; // [upper tiers of the list] Σ e^(w − top) and Σ (w − top)
    double last = 0.0, bottom = 0.0;          // worth of the last tier, and the bottom's part of it

    template <class Worth> struct Stage {
        std::int64_t tier;
        Worth own, below; // of S_g, and of what stays behind
        double gain = 0.0, charge = 0.0;
    };
    std::vector<Stage<double>> stages;

    static bool any_last(const Lists<T> &p, std::int64_t i) {
        return p.upper_rows(i) < p.rows(i) || (p.bottom && p.bottom[i] > NOTHING);
    }

    // The stages in their order, with what each leaves behind. own(tier) is the worth of a tier.
    template <class Worth, class Own, class Add>
    static void arrange(std::vector<Stage<Worth>> &stages, const StagedLists<T> &staged, std::int64_t i,
                        Own own, Add add) {
        const Lists<T> &p = staged.lists;
        const bool backward = staged.choice == Choice::subset_backward, with_last = any_last(p, i);
        const auto append = [&](std::int64_t tier) { stages.push_back({tier, own(tier), Worth()}); };
        stages.clear();
        if (backward) {
            if (with_last) append(LAST);
            for (std::int64_t j = p.list_offsets[i + 1] - 1; j >= p.list_offsets[i]; --j) append(j);
        } else {
            for (std::int64_t j = p.list_offsets[i]; j < p.list_offsets[i + 1]; ++j) append(j);
            if (with_last) append(LAST);
        }
        for (std::int64_t g = std::int64_t(stages.size()) - 2; g >= 0; --g)
            stages[g].below = add(stages[g + 1].own, stages[g + 1].below);
    }

    // Worths of all tiers in one unit; false if it cannot hold them.
    bool gather(const Lists<T> &p, std::int64_t i, T top, int threads) {
        const std::int64_t start = p.row_offsets[i], n = p.rows(i), first = p.list_offsets[i];
        const std::int64_t tiers = p.list_offsets[i + 1] - first, upper = p.upper_rows(i);
        const std::int64_t from = p.tier_offsets[first];
        if (!p.gradient) scratch.resize(n);
        e = p.gradient ? p.gradient : scratch.data() - start;
        exponentials(p.scores + start, n, top, e + start, threads);
        worth.resize(upper), tier_worth.resize(tiers), tier_sum.resize(tiers);
        bool held = true;
        for (std::int64_t j = 0; j < tiers; ++j) {
            const std::int64_t *rows = p.order + p.tier_offsets[first + j], size = p.tier_size(first + j);
            T *own = worth.data() + (p.tier_offsets[first + j] - from);
            tier_sum[j] = sum_of(size, [&](std::int64_t k) {
                const T x = std::exchange(e[rows[k]], T(0));
                held &= x >= T(LEAST);
                own[k] = x;
                return double(p.scores[rows[k]]) - double(top);
            });
            tier_worth[j] = sum_of(size, [&](std::int64_t k) { return double(own[k]); });
        }
        const double drop = p.bottom ? p.bottom[i] - double(top) : NOTHING;
        bottom = drop == NOTHING ? 0.0 : exp1(drop);
        last = total(e + start, n, threads) + bottom;
        return held && drop <= RANGE && (!any_last(p, i) || last >= LEAST);
    }

    void in_one_unit(const StagedLists<T> &staged, std::int64_t i, int threads) {
        const Lists<T> &p = staged.lists;
        const std::int64_t first = p.list_offsets[i], from = p.tier_offsets[first];
        arrange(
            stages, staged, i,
            [&](std::int64_t tier) { return tier == LAST ? last : tier_worth[tier - first]; },
            [](double own, double below) { return own + below; });
        double value = 0.0, owed = 0.0, owed_by_last = 0.0;
        for (Stage<double> &stage : stages) {
            const std::int64_t size = stage.tier == LAST ? 1 : p.tier_size(stage.tier);
            stage.charge = owed;
            if (&stage != &stages.back()) {
                const double left = stage.own + stage.below, inverse = 1.0 / left;
                const double o = stage.own * inverse, b = stage.below * inverse;
                const Draws drawn = draws(staged.choice, size, o, b);
                stage.charge += drawn.own * inverse;
                owed += drawn.below * inverse;
                if (staged.choice >= Choice::subset) {
                    value += std::log(o);
                    stage.charge -= 1.0 / stage.own; // the gain is in proportion to e^w too
                } else {
                    value += tier_sum[stage.tier - first] - double(size) * std::log(left) - drawn.logs;
                    stage.gain = 1.0;
                }
            }
            if (stage.tier == LAST) owed_by_last = stage.charge;
        }
        staged.value[i] = value;
        if (!p.gradient) return;
        if (p.bottom_gradient) p.bottom_gradient[i] = -owed_by_last * bottom;
        multiply(e + p.row_offsets[i], p.rows(i), T(-owed_by_last), threads);
        for (const Stage<double> &stage : stages) {
            if (stage.tier == LAST) continue;
            const T gain = T(stage.gain), charge = T(stage.charge);
            for (std::int64_t k = p.tier_offsets[stage.tier]; k < p.tier_offsets[stage.tier + 1]; ++k)
                p.gradient[p.order[k]] = gain - charge * worth[k - from];
        }
    }

    // The same for scores too far apart for one unit: by log-sum-exps, everything relative to lse R_g.
    void far_apart(const StagedLists<T> &staged, std::int64_t i) {
        const Lists<T> &p = staged.lists;
        std::vector<char> upper(p.rows(i), 0);
        for (std::int64_t k = p.tier_offsets[p.list_offsets[i]]; k < p.tier_offsets[p.list_offsets[i + 1]]; ++k)
            upper[p.order[k] - p.row_offsets[i]] = 1;
        const auto for_rows = [&](std::int64_t tier, auto work) {
            if (tier == LAST) {
                for (std::int64_t k = 0; k < p.rows(i); ++k)
                    if (!upper[k]) work(p.row_offsets[i] + k);
            } else {
                for (std::int64_t k = p.tier_offsets[tier]; k < p.tier_offsets[tier + 1]; ++k) work(p.order[k]);
            }
        };
        const bool with_bottom = p.bottom && p.bottom[i] > NOTHING;
        std::vector<Stage<LogSum>> log_stages;
        arrange(
            log_stages, staged, i,
            [&](std::int64_t tier) {
                LogSum own;
                if (tier == LAST && with_bottom) own.add(p.bottom[i]);
                for_rows(tier, [&](std::int64_t row) { own.add(double(p.scores[row])); });
                return own;
            },
            [](LogSum own, const LogSum &below) {
                own.add(below);
                return own;
            });
        double value = 0.0, owed = 0.0;
        Settled reached;
        for (const Stage<LogSum> &stage : log_stages) {
            LogSum sum = stage.own;
            sum.add(stage.below);
            const Settled left = sum.settled(), own = stage.own.settled(), below = stage.below.settled();
            if (owed != 0.0) owed *= reached.share(left);
            reached = left;
            const bool chosen = &stage != &log_stages.back(), subset = staged.choice >= Choice::subset;
            double charge = owed;
            if (chosen) {
                const std::int64_t size = stage.tier == LAST ? 1 : p.tier_size(stage.tier);
                const Draws drawn = draws(staged.choice, size, left.share(own), left.share(below));
                if (subset)
                    value += (own.most - left.most) + (own.log_sum - left.log_sum);
                else
                    for_rows(stage.tier, [&](std::int64_t row) { value += left.distance(double(p.scores[row])); });
                value -= drawn.logs;
                charge += drawn.own;
                owed += drawn.below;
            }
            const auto slope = [&](double w) {
                const double gain = !chosen ? 0.0 : subset ? own.share(w) : 1.0;
                return gain - charge * left.share(w);
            };
            if (!p.gradient) continue;
            for_rows(stage.tier, [&](std::int64_t row) { p.gradient[row] = T(slope(double(p.scores[row]))); });
            if (stage.tier == LAST && with_bottom) p.bottom_gradient[i] = slope(p.bottom[i]);
        }
        staged.value[i] = value;
    }
};

template <class T> void staged_log_prob(const StagedLists<T> &p, int threads) {
    by_lists(p.lists, threads, [&](std::int64_t i, int threads_of_list) {
        static thread_local StageWorker<T> worker;
        worker.list(p, i, threads_of_list);
    });
}

} // namespace tierrank::TIERRANK_SET
