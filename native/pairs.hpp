// Sums over pairs of items: RankNet, Rao-Kupper, Davidson and the hinge, value and slopes in one pass.
//
// A pair is an item i and an item j that should not stand above it, with x = w_j − w_i. Each kind of
// pair is a function of x and one parameter and gives (loss, ∂loss/∂x, ∂loss/∂parameter). A loss is a
// sum of positive parts, so that no digits are lost, wherever the scores and the parameter lie.
//
// What runs once a pair is in the scores' own kind of float. After a tile, of at most ROWS items i
// and COLUMNS items j, the sums go over to double.
//
// A score that is not finite makes a loss that is not: sums begin with w_i − w_i, and max(0, x) gives
// back an x that is not a number.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "elementary.hpp"
#include "kernels.hpp"
#include "threads.hpp"

namespace tierrank::TIERRANK_SET {

// Kinds of pairs ----------------------------------------------------------------------------------

template <class T> struct PairTerms {
    Vec<T> loss, slope, by_parameter;
};
struct Slopes { // x = w_j − w_i: what w_j gets, w_i gets with the other sign,
    static constexpr double of_own = -1.0;
};
struct SecondDerivatives { // but of a second derivative with the same
    static constexpr double of_own = 1.0;
};

template <class T> struct Softplus {
    Vec<T> value, slope;
};

// log(1 + e^x) and its slope
template <class T> TIERRANK_INLINE Softplus<T> softplus(Vec<T> x) {
    const Vec<T> nothing(T(0)), e = exp(-abs(x));
    const auto [log_total, inverse] = log1p(e);
    return {max(nothing, x) + log_total, select(nothing < x, inverse, e * inverse)};
}

// −log P(i above j) = softplus(x + c), with c = log θ; RankNet is c = 0
template <class T> struct RaoKupperWin : Slopes {
    Vec<T> c;
    TIERRANK_INLINE PairTerms<T> operator()(Vec<T> own, Vec<T> other) const {
        const auto [loss, slope] = softplus((other - own) + c);
        return {loss, slope, slope};
    }
};

// −log P(tie) + log(1 − θ^−2) = softplus(x − c) + softplus(−x − c)
template <class T> struct RaoKupperTie : Slopes {
    Vec<T> c;
    TIERRANK_INLINE PairTerms<T> operator()(Vec<T> own, Vec<T> other) const {
        const Vec<T> x = other - own;
        const auto [loss, slope] = softplus(x - c);
        const auto [mirrored, back] = softplus(-x - c);
        return {loss + mirrored, slope - back, -(slope + back)};
    }
};

// What Davidson's wins and ties share. With m the largest of ±x/2 and β = log v:
//     total = (e^(x/2) + e^(−x/2) + v) / e^m is in [1, 3].
template <class T> struct DavidsonParts {
    Vec<T> log_total, i_above, j_above, tie, lead; // lead: |x|/2 − β
};
template <class T> TIERRANK_INLINE DavidsonParts<T> davidson(Vec<T> x, Vec<T> beta) {
    using V = Vec<T>;
    const V nothing(T(0)), a = V(T(0.5)) * abs(x), lead = a - beta;
    const V second = exp(-abs(lead)), smallest = exp(-(a + max(beta, a)));
    const auto [log_total, inverse] = log1p(second + smallest);
    const auto leads = nothing < lead, behind = nothing < x;
    const V favourite = select(leads, inverse, inverse * second);
    const V tie = select(leads, inverse * second, inverse);
    const V outsider = inverse * smallest;
    return {log_total, select(behind, outsider, favourite), select(behind, favourite, outsider), tie,
            lead};
}

// −log P(i above j) = log total + max(β − |x|/2, 0) + max(x, 0)
template <class T> struct DavidsonWin : Slopes {
    Vec<T> beta;
    TIERRANK_INLINE PairTerms<T> operator()(Vec<T> own, Vec<T> other) const {
        const Vec<T> nothing(T(0)), x = other - own;
        const auto p = davidson(x, beta);
        return {p.log_total + (max(nothing, -p.lead) + max(nothing, x)),
                fma(p.tie, Vec<T>(T(0.5)), p.j_above), p.tie};
    }
};

// −log P(tie) = log total + max(|x|/2 − β, 0)
template <class T> struct DavidsonTie : Slopes {
    Vec<T> beta;
    TIERRANK_INLINE PairTerms<T> operator()(Vec<T> own, Vec<T> other) const {
        const auto p = davidson(other - own, beta);
        return {p.log_total + max(Vec<T>(T(0)), p.lead), Vec<T>(T(0.5)) * (p.j_above - p.i_above),
                -(p.i_above + p.j_above)};
    }
};

// max(0, margin + x), and its slope, which is 0 at the corner
template <class T> struct Hinge : Slopes {
    Vec<T> margin;
    TIERRANK_INLINE PairTerms<T> operator()(Vec<T> own, Vec<T> other) const {
        const Vec<T> nothing(T(0)), reach = (other - own) + margin;
        return {max(nothing, reach), select(nothing < reach, Vec<T>(T(1)), nothing), nothing};
    }
};

// Second derivatives of pairs ---------------------------------------------------------------------

// σ(x) (1 − σ(x)), which is softplus″
template <class T> TIERRANK_INLINE Vec<T> sigmoid_slope(Vec<T> x) {
    const Vec<T> e = exp(-abs(x)), total = Vec<T>(T(1)) + e;
    return e / (total * total);
}

template <class T> struct RaoKupperWinSecond : SecondDerivatives {
    Vec<T> c;
    TIERRANK_INLINE PairTerms<T> operator()(Vec<T> own, Vec<T> other) const {
        const Vec<T> nothing(T(0));
        return {nothing, sigmoid_slope((other - own) + c), nothing};
    }
};

template <class T> struct RaoKupperTieSecond : SecondDerivatives {
    Vec<T> c;
    TIERRANK_INLINE PairTerms<T> operator()(Vec<T> own, Vec<T> other) const {
        const Vec<T> nothing(T(0)), x = other - own;
        return {nothing, sigmoid_slope(x - c) + sigmoid_slope(x + c), nothing};
    }
};

// Wins and ties alike: the variance of ½, −½ and 0 with weights up, down and tie, e^(x/2), e^(−x/2)
// and e^β, which is (up · down + ¼ (up + down) · tie) / total², all of it positive.
template <class T> struct DavidsonSecond : SecondDerivatives {
    Vec<T> beta;
    TIERRANK_INLINE PairTerms<T> operator()(Vec<T> own, Vec<T> other) const {
        using V = Vec<T>;
        const V nothing(T(0)), half = V(T(0.5)) * abs(other - own), most = max(beta, half);
        const V up = exp(half - most), down = exp(-half - most), tie = exp(beta - most);
        const V inverse = V(T(1)) / (up + down + tie);
        const V spread = fma(V(T(0.25)) * (up + down), tie, up * down);
        return {nothing, spread * inverse * inverse, nothing};
    }
};

// Ranges of units for threads: cut by what they cost, never by how many threads there are, since each
// range has sums of its own. There are not many more than MOST_RANGES.
constexpr double RANGE_COST = 1 << 16, MOST_RANGES = 64; // pairs: a range is worth handing over

template <class F>
std::vector<std::pair<std::int64_t, std::int64_t>> cut_by_cost(std::int64_t units, F cost) {
    double total = 0.0, here = 0.0;
    for (std::int64_t i = 0; i < units; ++i) total += cost(i);
    const double enough = std::max(RANGE_COST, total / MOST_RANGES);
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
    std::int64_t from = 0;
    for (std::int64_t i = 0; i < units; ++i)
        if ((here += cost(i)) >= enough || i + 1 == units) {
            ranges.emplace_back(from, i + 1);
            from = i + 1;
            here = 0.0;
        }
    return ranges;
}

// Pairs inside lists ------------------------------------------------------------------------------

constexpr std::int64_t ROWS = 64, COLUMNS = 512;

template <class T> struct PairSum { // over the pairs of one i with a range of j
    Vec<T> loss, slope, by_parameter;

    TIERRANK_INLINE void add(const PairTerms<T> &p) {
        loss += p.loss;
        slope += p.slope;
        by_parameter += p.by_parameter;
    }
};

// Pairs of `own` with others[from] … others[to − 1]. Whole vectors are read, from a multiple of LANES
// on, so that what one item adds to `pull` the next reads back as it was written.
template <class T, class Pair>
TIERRANK_INLINE PairSum<T> along_row(const Pair &pair, T own, const T *others, std::int64_t from,
                                     std::int64_t to, T *pull) {
    using V = Vec<T>;
    static constexpr T LANE[LANES] = {0, 1, 2, 3, 4, 5, 6, 7};
    const V here(own), nothing(T(0)), start = here - here;
    PairSum<T> sums{start, start, start};
    for (std::int64_t k = from / LANES * LANES; k < to; k += LANES) {
        PairTerms<T> terms = pair(here, V::load(others + k));
        if (k < from || k + LANES > to) {
            const V lane = V::load(LANE);
            const auto counts = (V(T(from - k)) <= lane) & (lane < V(T(to - k)));
            terms = {select(counts, terms.loss, nothing), select(counts, terms.slope, nothing),
                     select(counts, terms.by_parameter, nothing)};
        }
        sums.add(terms);
        (V::load(pull + k) + terms.slope).store(pull + k);
    }
    return sums;
}

// Items lo … hi − 1; `scores` has LANES numbers more than there are items. Adds to `gradient`, the
// first entry of which is item lo.
template <class T, class Pair>
void pairs_of_items(const Pair &pair, const Pairs<T> &p, const T *scores, std::int64_t lo,
                    std::int64_t hi, double *gradient) {
    alignas(64) T pull[COLUMNS + LANES];
    for (std::int64_t first = lo, last; first < hi; first = last) {
        const std::int64_t end = p.stop[first];
        for (last = first; last < std::min(first + ROWS, hi) && p.stop[last] == end; ++last)
            p.loss[last] = p.by_parameter[last] = 0.0;
        for (std::int64_t left = p.start[first]; left < end; left += COLUMNS) {
            const std::int64_t right = std::min(left + COLUMNS, end), width = right - left;
            std::fill_n(pull, width + LANES, T(0));
            for (std::int64_t i = first; i < last; ++i) {
                const std::int64_t from = std::max(p.start[i] - left, std::int64_t(0));
                if (from >= width) break; // and so for all after it
                const PairSum<T> sums = along_row(pair, scores[i], scores + left, from, width, pull);
                p.loss[i] += sum(wide(sums.loss));
                gradient[i - lo] += Pair::of_own * sum(wide(sums.slope));
                p.by_parameter[i] += sum(wide(sums.by_parameter));
            }
            for (std::int64_t k = 0; k < width; ++k) gradient[left - lo + k] += double(pull[k]);
        }
    }
}

template <class T, class Pair> void pair_sums_of(const Pair &pair, const Pairs<T> &p, int threads) {
    std::vector<T> scores(p.items + LANES, T(0));
    std::copy_n(p.scores, p.items, scores.begin());
    std::fill_n(p.gradient, p.items, 0.0);
    const auto ranges = cut_by_cost(p.items, [&](std::int64_t i) {
        return double(p.stop[i] - p.start[i] + 1);
    });
    if (ranges.size() == 1) return pairs_of_items(pair, p, scores.data(), 0, p.items, p.gradient);

    // other ranges of i may have the same j, so each has a gradient of its own, added in their order
    const std::int64_t count = std::int64_t(ranges.size());
    std::vector<std::vector<double>> parts(count);
    parallel(count, threads, [&](std::int64_t k) {
        const auto [lo, hi] = ranges[k];
        parts[k].assign(std::max(p.stop[hi - 1], hi) - lo, 0.0);
        pairs_of_items(pair, p, scores.data(), lo, hi, parts[k].data());
    });
    for (std::int64_t k = 0; k < count; ++k)
        for (std::size_t a = 0; a < parts[k].size(); ++a)
            p.gradient[ranges[k].first + std::int64_t(a)] += parts[k][a];
}

template <class T> void pair_sums(const Pairs<T> &p, int threads) {
    const Vec<T> at{T(p.parameter)};
    switch (p.kind) {
    case PairKind::rao_kupper_win: return pair_sums_of(RaoKupperWin<T>{{}, at}, p, threads);
    case PairKind::rao_kupper_tie: return pair_sums_of(RaoKupperTie<T>{{}, at}, p, threads);
    case PairKind::davidson_win: return pair_sums_of(DavidsonWin<T>{{}, at}, p, threads);
    case PairKind::davidson_tie: return pair_sums_of(DavidsonTie<T>{{}, at}, p, threads);
    case PairKind::rao_kupper_win_second: return pair_sums_of(RaoKupperWinSecond<T>{{}, at}, p, threads);
    case PairKind::rao_kupper_tie_second: return pair_sums_of(RaoKupperTieSecond<T>{{}, at}, p, threads);
    case PairKind::davidson_second: return pair_sums_of(DavidsonSecond<T>{{}, at}, p, threads);
    case PairKind::hinge: return; // inside lists hinges are summed by sorting, in Python
    }
}

// Pairs with a block of labels --------------------------------------------------------------------

constexpr std::int64_t LABELS = 1024; // whose slopes stay in the cache while all that a list names goes by

template <class T, class Pair>
void pairs_of_list(const Pair &pair, const BlockPairs<T> &p, std::int64_t i) {
    using V = Vec<T>;
    alignas(64) T pull[LABELS], row[LABELS], counts[LABELS];
    const std::int64_t first = p.borders[i], last = p.borders[i + 1];
    p.loss[i] = 0.0;
    std::fill(p.slope + first, p.slope + last, 0.0);
    for (std::int64_t left = 0; left < p.labels; left += LABELS) {
        // copies to whole vectors: what is behind the last label counts nothing
        const std::int64_t width = std::min(LABELS, p.labels - left);
        const std::int64_t end = (width + LANES - 1) / LANES * LANES;
        std::copy_n(p.scores + i * p.labels + left, width, row);
        std::copy_n(p.counts + left, width, counts);
        std::fill(row + width, row + end, T(0));
        std::fill(counts + width, counts + end, T(0));
        std::fill_n(pull, end, T(0));
        for (std::int64_t a = first; a < last; ++a) {
            const V own(p.named[a]);
            V loss = own - own, slope = loss;
            for (std::int64_t k = 0; k < end; k += LANES) {
                const V times = V::load(counts + k);
                const PairTerms<T> terms = pair(own, V::load(row + k));
                const V one = times * terms.slope;
                loss = fma(times, terms.loss, loss);
                slope += one;
                (V::load(pull + k) + one).store(pull + k);
            }
            p.loss[i] += sum(wide(loss));
            p.slope[a] -= sum(wide(slope));
        }
        if (p.label_slope) std::copy_n(pull, width, p.label_slope + i * p.labels + left);
    }
}

template <class T, class Pair>
void block_pair_sums_of(const Pair &pair, const BlockPairs<T> &p, int threads) {
    const auto ranges = cut_by_cost(p.lists, [&](std::int64_t i) {
        return double((p.borders[i + 1] - p.borders[i]) * p.labels + 1);
    });
    parallel(std::int64_t(ranges.size()), threads, [&](std::int64_t k) {
        for (std::int64_t i = ranges[k].first; i < ranges[k].second; ++i) pairs_of_list(pair, p, i);
    });
}

template <class T> void block_pair_sums(const BlockPairs<T> &p, int threads) {
    const Vec<T> at{T(p.parameter)};
    if (p.kind == PairKind::hinge)
        block_pair_sums_of(Hinge<T>{{}, at}, p, threads);
    else
        block_pair_sums_of(RaoKupperWin<T>{{}, at}, p, threads);
}

} // namespace tierrank::TIERRANK_SET
