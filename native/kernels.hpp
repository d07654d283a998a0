// What every set of instructions offers: one table of functions, filled by kernels.cpp.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace tierrank {

// How lists are shared between threads: it depends on their shape alone, and not on the number of
// threads, so that neither does any result.
struct Shares {
    std::vector<std::int64_t> long_lists;                        // each by all threads
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;   // of the others, each by one thread
};

// Lists of upper tiers as tierrank.tiers lays them out: the rows of list i are
// row_offsets[i] … row_offsets[i + 1] − 1; its upper tiers are list_offsets[i] …; the rows of tier j
// are order[tier_offsets[j]] … Rows that no upper tier names are the list's last tier.
template <class T> struct Lists {
    std::int64_t lists;
    const std::int64_t *row_offsets, *order, *tier_offsets, *list_offsets;
    const Shares *shares;
    const T *scores;
    const double *bottom;       // [lists] lse of what stands below all rows, −inf for nothing; or null
    const double *tier_weights; // [upper tiers], or null: all 1
    T *log_prob;                // [lists] NaN where a score is not finite
    T *gradient;                // [rows], or null
    double *bottom_gradient;    // [lists], or null
    double *diagonal = nullptr; // [rows] of each list's Hessian, in the same pass; with a gradient

    std::int64_t rows(std::int64_t i) const { return row_offsets[i + 1] - row_offsets[i]; }
    std::int64_t upper_rows(std::int64_t i) const {
        return tier_offsets[list_offsets[i + 1]] - tier_offsets[list_offsets[i]];
    }
    std::int64_t tier_size(std::int64_t j) const { return tier_offsets[j + 1] - tier_offsets[j]; }
    double weight(std::int64_t j) const { return tier_weights ? tier_weights[j] : 1.0; }
};

constexpr std::int64_t SEGMENT = 1 << 16; // rows of a long list that one thread takes
constexpr std::int64_t LONG_LIST = 2 * SEGMENT;
constexpr double RANGE_COST = 20000.0; // what is worth handing over to another thread: some 0.1 ms

// Ranges of lists that cost about so much, in rows: a tier costs as much as some 20 of them.
template <class T>
Shares equal_shares(const Lists<T> &p, double cost, std::int64_t longest = INT64_MAX) {
    Shares shares;
    std::int64_t from = 0;
    double spent = 0.0;
    const auto close = [&](std::int64_t to, std::int64_t next) {
        if (to > from) shares.ranges.emplace_back(from, to);
        from = next, spent = 0.0;
    };
    for (std::int64_t i = 0; i < p.lists; ++i) {
        if (p.rows(i) > longest) {
            close(i, i + 1);
            shares.long_lists.push_back(i);
            continue;
        }
        spent += double(p.rows(i)) + 20.0 * double(p.list_offsets[i + 1] - p.list_offsets[i]);
        if (spent >= cost) close(i + 1, i + 1);
    }
    close(p.lists, p.lists);
    return shares;
}

// Each list's Hessian times its part of a vector, or its diagonal.
template <class T> struct HessianProducts {
    Lists<T> lists; // without results
    const double *vector, *bottom_vector; // [rows] and [lists], or null: the diagonal
    double *out, *bottom_out;             // [rows] and [lists]; bottom_out may be null
};

// Lists whose tiers are chosen one after the other, by sums of worths (stages.hpp).
enum class Choice {
    breslow,         // PL-LB
    efron,           // PL-Efron
    subset,          // PMOP-FD
    subset_backward, // the same, worst tier first
};
template <class T> struct StagedLists {
    Choice choice;
    Lists<T> lists;
    double *value; // [lists] log-probabilities, without what does not depend on the scores
};

// Σ_j p_j log softmax(w)_j over the rows of every list, p by the grades of tiers (cross_entropy.hpp). Grades
// grade_offsets[i] … grade_offsets[i + 1] − 1 are of the upper tiers of list i, and of its last tier; where
// that has none, it is 0.
template <class T> struct CrossEntropies {
    Lists<T> lists;
    const double *grades;
    const std::int64_t *grade_offsets;
    bool above_0;  // whether grades up to 0 count for nothing
    double *value; // [lists]
};

// Inner products Z_i · Z_j for the entries i, j of a sparse pattern: row i has the columns
// columns[starts[i]] … columns[starts[i + 1] − 1].
template <class T> struct Products {
    std::int64_t rows, width;
    const std::int64_t *starts, *columns;
    const T *Z; // [rows, width]
    T *out;     // [entries]
};

// Pairs of items i and j further down their list (pairs.hpp): i with j = start[i] … stop[i] − 1, where
// i < start[i] ≤ stop[i] ≤ items, and neither start nor stop ever falls.
enum class PairKind {
    rao_kupper_win,
    rao_kupper_tie,
    davidson_win,
    davidson_tie,
    hinge,
    rao_kupper_win_second, // second derivatives, in the place of slopes
    rao_kupper_tie_second,
    davidson_second,
};

template <class T> struct Pairs {
    PairKind kind;
    std::int64_t items;
    const T *scores;
    const std::int64_t *start, *stop;
    double parameter;
    double *loss, *by_parameter; // [items] sums over the pairs of i
    double *gradient;            // [items] of the sum of all losses; of second derivatives, the Hessian's diagonal
};

// Pairs of what lists name with a block of labels: entries borders[i] … borders[i + 1] − 1 of `named`
// with all of row i of `scores`, the j-th of which counts counts[j] times.
template <class T> struct BlockPairs {
    PairKind kind;
    std::int64_t lists, labels;
    const T *named;
    const std::int64_t *borders;
    const T *scores, *counts; // [lists, labels] and [labels]
    double parameter;
    double *loss, *slope; // [lists] and [named]
    T *label_slope;       // [lists, labels], or null
};

// Tiers of lists with small ties (tied_lists.hpp): items are indices of worths, and log_worth is at
// most 0. `last` tiers, with nothing below them, have neither term nor matrix.
struct TiedTerms {
    std::int64_t tiers;
    const std::int64_t *items, *tier_offsets;
    const char *last;
    const double *worth, *log_worth, *below; // below: [tiers] worth of what is below
    const std::int64_t *matrix_offsets;
    double *value, *slopes; // [tiers] and [entries]
    double *matrices;       // n × n numbers a tier, or null
};

// Lists for a metric (metric_pairs.hpp, expected_dcg.hpp): rows by list and, best first, tier.
struct MetricLists {
    std::int64_t lists;
    const std::int64_t *offsets;     // [lists + 1] rows of a list
    const double *scores, *gains;    // [rows] gains are not negative
    double *value, *gradient;        // [lists], and [rows] or null
};
enum class PairWeighting { ranknet, lambdarank, ndcg_loss1, ndcg_loss2, ndcg_loss2pp };
enum class SwapMetric { ndcg, map, mrr, precision };
struct LambdaLists : MetricLists {
    const std::int64_t *tiers; // [rows]
    PairWeighting weighting;
    SwapMetric metric;
    std::int64_t k;
    double sigma, mu;
    double *hessian; // [rows] its diagonal, or null
};

template <class T> struct KernelsFor {
    void (*log_prob)(const Lists<T> &, int threads);
    void (*hessian_product)(const HessianProducts<T> &, int threads);
    void (*staged_log_prob)(const StagedLists<T> &, int threads);
    void (*cross_entropy)(const CrossEntropies<T> &, int threads);
    void (*inner_products)(const Products<T> &, int threads);
    void (*pair_sums)(const Pairs<T> &, int threads);
    void (*block_pair_sums)(const BlockPairs<T> &, int threads);
};

struct Kernels {
    const char *name;
    KernelsFor<float> of_float;
    KernelsFor<double> of_double;
    void (*tied_terms)(const TiedTerms &, int threads);
    void (*lambda_loss)(const LambdaLists &, int threads);
    void (*approx_ndcg)(const MetricLists &, double temperature, int threads);
    void (*expected_dcg)(const MetricLists &, std::int64_t k, double fineness, int threads);

    template <class T> const KernelsFor<T> &of() const {
        if constexpr (sizeof(T) == 4)
            return of_float;
        else
            return of_double;
    }
};

std::vector<const Kernels *> sets_that_run(); // on this machine, from the plainest to the widest
const Kernels &kernels();                     // of the set that this process uses

} // namespace tierrank
