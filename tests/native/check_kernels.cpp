// The kernels of every set of instructions that this machine runs, beside plain sums in long double: no
// Python needed, so that they can be checked under sanitizers, and for other processors in an emulator.
//
//     check_kernels [problems of each kind, 40] [threads, 2]
//
// The reference takes the trapezoidal rule, which converges geometrically for an analytic integrand that
// dies out at both ends; derivatives beyond the first are central differences. Python's tests compare with
// mpmath and enumeration, and go to the extremes; these see that every set computes the same thing.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "kernels.hpp"

namespace {

using tierrank::Kernels;
using Real = long double;
using Reals = std::vector<Real>;
using Doubles = std::vector<double>;
using Indices = std::vector<std::int64_t>;

std::mt19937_64 random_bits(1);
std::int64_t whole(std::int64_t from, std::int64_t to) {
    return std::uniform_int_distribution<std::int64_t>(from, to)(random_bits);
}
double normal(double spread) { return std::normal_distribution<double>(0.0, spread)(random_bits); }

int threads = 2;
const char *set_name = "";
double worst = 0.0; // error of the present kernel, as a part of what is allowed

void close(const char *what, double found, Real expected, double allowed) {
    const Real error = std::abs(Real(found) - expected) / std::max<Real>(1.0L, std::abs(expected));
    worst = std::max(worst, double(error) / allowed);
    if (error <= allowed) return;
    std::printf("%s, %s: %.17g, not %.17Lg\n", set_name, what, found, expected);
    std::exit(1);
}

// The reference -----------------------------------------------------------------------------------

struct Term {
    Real log_p;
    Reals slope;
};

// log ∫ exp F, F = x − eˣ + Σ log(1 − exp(−e^{x + d})), and its slopes E[z / (e^z − 1)]
Term tier_term(const Reals &d) {
    const auto F = [&](Real x) {
        Real f = x - std::exp(x);
        for (const Real one : d) {
            const Real z = std::exp(x + one);
            f += z > 1.0L ? std::log1p(-std::exp(-z)) : std::log(-std::expm1(-z));
        }
        return f;
    };
    Real low = -1.0L, high = std::log(1.0L + Real(d.size())) + 1.0L; // the mode is between
    for (int step = 0; step < 60; ++step) {
        const Real third = (high - low) / 3.0L;
        (F(low + third) < F(high - third) ? low : high) += (F(low + third) < F(high - third) ? third : -third);
    }
    const Real mode = low, top = F(mode);
    const auto end = [&](Real step) { // where F has fallen by 50
        Real x = mode;
        for (; std::abs(step) > 1e-3L; step *= 0.5L)
            while (F(x + step) > top - 50.0L) x += step;
        return x;
    };
    const Real left = end(-8.0L), right = end(8.0L);
    constexpr int POINTS = 500;
    const Real h = (right - left) / POINTS;
    Term term{0.0L, Reals(d.size(), 0.0L)};
    Real total = 0.0L;
    for (int k = 0; k <= POINTS; ++k) {
        const Real x = left + Real(k) * h, f = std::exp(F(x) - top);
        total += f;
        for (std::size_t a = 0; a < d.size(); ++a) {
            const Real z = std::exp(x + d[a]);
            term.slope[a] += f * (z < 1e-30L ? 1.0L : z > 1e4L ? 0.0L : z / std::expm1(z));
        }
    }
    for (Real &slope : term.slope) slope /= total;
    term.log_p = top + std::log(h * total);
    return term;
}

// One list: `tiers` of rows, best first; all other rows, and a bottom, are below them.
struct List {
    std::vector<Indices> tiers;
    Doubles weights;
    bool with_bottom;
};

// The log-probability and its slopes by rows, the bottom's being the last.
Real list_term(const List &list, const Reals &scores, Reals &slope) {
    const std::size_t rows = scores.size() - 1;
    std::vector<bool> below(rows + 1, true);
    below[rows] = list.with_bottom;
    slope.assign(rows + 1, 0.0L);
    Real log_p = 0.0L;
    for (std::size_t j = 0; j < list.tiers.size(); ++j) {
        for (const std::int64_t row : list.tiers[j]) below[std::size_t(row)] = false;
        Real most = -INFINITY, total = 0.0L;
        for (std::size_t row = 0; row <= rows; ++row)
            if (below[row]) most = std::max(most, scores[row]);
        if (most == -INFINITY) break;
        for (std::size_t row = 0; row <= rows; ++row)
            if (below[row]) total += std::exp(scores[row] - most);
        const Real lse = most + std::log(total);
        Reals d;
        for (const std::int64_t row : list.tiers[j]) d.push_back(scores[std::size_t(row)] - lse);
        const Term term = tier_term(d);
        const Real weight = list.weights[j];
        log_p += weight * term.log_p;
        Real pull = 0.0L;
        for (std::size_t a = 0; a < d.size(); ++a) {
            slope[std::size_t(list.tiers[j][a])] += weight * term.slope[a];
            pull += weight * term.slope[a];
        }
        for (std::size_t row = 0; row <= rows; ++row)
            if (below[row]) slope[row] -= pull * std::exp(scores[row] - lse);
    }
    return log_p;
}

// H · v as the central difference of the slopes
Reals list_product(const List &list, const Reals &scores, const Reals &v) {
    constexpr Real h = 1e-4L;
    Reals ahead = scores, back = scores, up, down;
    for (std::size_t i = 0; i < v.size(); ++i) ahead[i] += h * v[i], back[i] -= h * v[i];
    list_term(list, ahead, up);
    list_term(list, back, down);
    for (std::size_t i = 0; i < v.size(); ++i) up[i] = (up[i] - down[i]) / (2.0L * h);
    return up;
}

// Kernels -----------------------------------------------------------------------------------------

// Several lists at once, as the kernels take them, with sizes on either side of what they treat apart.
template <class T> void check_lists(const Kernels &kernels, int problems) {
    const double exact = sizeof(T) == 4 ? 1e-5 : 1e-12, second = sizeof(T) == 4 ? 2e-4 : 1e-6;
    const std::int64_t sizes[] = {1, 2, 3, 4, 5, 6, 8, 13, 40, 90};
    std::vector<List> lists;
    Indices row_offsets{0}, order, tier_offsets{0}, list_offsets{0};
    std::vector<T> scores;
    Doubles bottom, weights;
    for (int i = 0; i < problems; ++i) {
        List list;
        const std::int64_t start = row_offsets.back(), last = whole(0, 9);
        const double spread = std::pow(10.0, double(whole(-1, 2)) / 1.5), at = normal(20.0);
        Indices rows;
        for (std::int64_t tiers = whole(0, 3), j = 0; j < tiers; ++j) {
            list.tiers.emplace_back(std::size_t(sizes[whole(0, 9)]));
            list.weights.push_back(whole(0, 2) ? 1.0 : 0.5 * double(whole(0, 4)));
        }
        for (const Indices &tier : list.tiers) rows.resize(rows.size() + tier.size());
        rows.resize(rows.size() + std::size_t(last));
        for (std::size_t k = 0; k < rows.size(); ++k) rows[k] = std::int64_t(k);
        std::shuffle(rows.begin(), rows.end(), random_bits);
        std::size_t next = 0;
        for (std::size_t j = 0; j < list.tiers.size(); ++j) {
            for (std::int64_t &row : list.tiers[j]) order.push_back(start + (row = rows[next++]));
            tier_offsets.push_back(std::int64_t(order.size()));
            weights.push_back(list.weights[j]);
        }
        list.with_bottom = whole(0, 1) == 1;
        bottom.push_back(list.with_bottom ? at + normal(spread) : -INFINITY);
        for (std::size_t k = 0; k < rows.size(); ++k) scores.push_back(T(at + normal(spread)));
        row_offsets.push_back(std::int64_t(scores.size()));
        list_offsets.push_back(std::int64_t(tier_offsets.size()) - 1);
        lists.push_back(std::move(list));
    }
    const std::size_t n = scores.size(), count = lists.size();
    Doubles bottom_slope(count), diagonal(n), vector(n), bottom_vector(count);
    Doubles product(n), bottom_product(count);
    std::vector<T> log_prob(count), slope(n);
    for (double &v : vector) v = normal(1.0);
    for (double &v : bottom_vector) v = normal(1.0);
    tierrank::Lists<T> p{std::int64_t(count), row_offsets.data(), order.data(), tier_offsets.data(),
                         list_offsets.data(), nullptr, scores.data(), bottom.data(), weights.data(),
                         log_prob.data(), slope.data(), bottom_slope.data(), diagonal.data()};
    const tierrank::Shares shares = tierrank::equal_shares(p, tierrank::RANGE_COST, tierrank::LONG_LIST);
    p.shares = &shares;
    kernels.of<T>().log_prob(p, threads);
    kernels.of<T>().hessian_product({p, vector.data(), bottom_vector.data(), product.data(), bottom_product.data()},
                                   threads);

    for (std::size_t i = 0; i < count; ++i) {
        const auto start = std::size_t(row_offsets[i]), stop = std::size_t(row_offsets[i + 1]);
        Reals w(scores.begin() + std::ptrdiff_t(start), scores.begin() + std::ptrdiff_t(stop));
        Reals v(vector.begin() + std::ptrdiff_t(start), vector.begin() + std::ptrdiff_t(stop)), gradient;
        w.push_back(lists[i].with_bottom ? Real(bottom[i]) : 0.0L);
        v.push_back(bottom_vector[i]);
        close("log-probability", double(log_prob[i]), list_term(lists[i], w, gradient), exact);
        const Reals bent = list_product(lists[i], w, v);
        for (std::size_t row = start; row < stop; ++row) {
            close("gradient", double(slope[row]), gradient[row - start], 5.0 * exact);
            close("Hessian product", product[row], bent[row - start], second);
        }
        close("gradient of the bottom", bottom_slope[i], gradient.back(), 5.0 * exact);
        close("Hessian product of the bottom", bottom_product[i], bent.back(), second);
        if (start == stop) continue;
        const auto row = std::size_t(whole(0, std::int64_t(stop - start) - 1));
        Reals only(w.size(), 0.0L);
        only[row] = 1.0L;
        close("Hessian diagonal", diagonal[start + row], list_product(lists[i], w, only)[row], second);
    }
}

void check_tied_terms(const Kernels &kernels, int problems) {
    constexpr std::int64_t items = 40;
    Indices named, tier_offsets{0}, matrix_offsets{0};
    std::vector<char> last;
    Doubles worth(items), log_worth(items), below;
    for (std::int64_t i = 0; i < items; ++i) worth[i] = std::exp(log_worth[i] = -std::abs(normal(2.0)));
    for (int j = 0; j < problems; ++j) {
        const std::int64_t size = whole(0, 2) ? whole(1, 7) : whole(8, 20);
        for (std::int64_t a = 0; a < size; ++a) named.push_back(whole(0, items - 1));
        tier_offsets.push_back(std::int64_t(named.size()));
        last.push_back(char(whole(0, 5) == 0));
        matrix_offsets.push_back(matrix_offsets.back() + (last.back() ? 0 : size * size));
        below.push_back(std::exp(normal(2.0)));
    }
    Doubles value(last.size()), slopes(named.size()), matrices(std::size_t(matrix_offsets.back()));
    kernels.tied_terms({problems, named.data(), tier_offsets.data(), last.data(), worth.data(), log_worth.data(),
                        below.data(), matrix_offsets.data(), value.data(), slopes.data(), matrices.data()},
                       threads);
    for (std::size_t j = 0; j < std::size_t(problems); ++j) {
        if (last[j]) continue;
        Reals d;
        const auto start = std::size_t(tier_offsets[j]), size = std::size_t(tier_offsets[j + 1]) - start;
        for (std::size_t a = 0; a < size; ++a)
            d.push_back(Real(log_worth[std::size_t(named[start + a])]) - std::log(Real(below[j])));
        const Term term = tier_term(d);
        close("value of a tie", value[j], term.log_p, 1e-12);
        const auto column = std::size_t(whole(0, std::int64_t(size) - 1));
        constexpr Real h = 1e-4L;
        d[column] += h;
        const Term up = tier_term(d);
        d[column] -= 2.0L * h;
        const Term down = tier_term(d);
        for (std::size_t a = 0; a < size; ++a) {
            close("slope of a tie", slopes[start + a], term.slope[a], 1e-11);
            close("Hessian of a tie", matrices[std::size_t(matrix_offsets[j]) + a * size + column],
                  (up.slope[a] - down.slope[a]) / (2.0L * h), 1e-6);
        }
    }
}

Real softplus(Real x) { return std::max(x, 0.0L) + std::log1p(std::exp(-std::abs(x))); }

// The loss of a pair as a function of x = w_j − w_i and its parameter; by the definition of each model.
using PairLoss = std::function<Real(Real x, Real parameter)>;
struct PairCase {
    tierrank::PairKind kind;
    const char *name;
    PairLoss loss;
};
const PairCase PAIRS[] = {
    {tierrank::PairKind::rao_kupper_win, "Rao-Kupper win", [](Real x, Real c) { return softplus(x + c); }},
    {tierrank::PairKind::rao_kupper_tie, "Rao-Kupper tie",
     [](Real x, Real c) { return softplus(x - c) + softplus(-x - c); }},
    {tierrank::PairKind::davidson_win, "Davidson win",
     [](Real x, Real b) { return 0.5L * x + std::log(2.0L * std::cosh(0.5L * x) + std::exp(b)); }},
    {tierrank::PairKind::davidson_tie, "Davidson tie",
     [](Real x, Real b) { return std::log(2.0L * std::cosh(0.5L * x) + std::exp(b)) - b; }},
    {tierrank::PairKind::hinge, "hinge", [](Real x, Real margin) { return std::max(x + margin, 0.0L); }},
};
Real slope_of(const PairLoss &loss, Real x, Real parameter) {
    constexpr Real h = 1e-5L;
    return (loss(x + h, parameter) - loss(x - h, parameter)) / (2.0L * h);
}

template <class T> void check_pairs(const Kernels &kernels, int problems) {
    const double exact = sizeof(T) == 4 ? 1e-5 : 1e-12, slope_error = sizeof(T) == 4 ? 1e-5 : 1e-8;
    for (const PairCase &pair : PAIRS) {
        const Real parameter = 0.7L;
        if (pair.kind != tierrank::PairKind::hinge) { // inside a list, of tiers one after the other
            const std::int64_t n = 10 * problems + whole(0, 7);
            std::vector<T> scores;
            Indices start, stop;
            for (std::int64_t i = 0; i < n; ++i) {
                scores.push_back(T(normal(2.0)));
                start.push_back(std::min((i / 5 + 1) * 5, n));
                stop.push_back(std::min(start.back() + 37, n));
            }
            Doubles loss(n), by_parameter(n), gradient(n);
            kernels.of<T>().pair_sums({pair.kind, n, scores.data(), start.data(), stop.data(), double(parameter),
                                       loss.data(), by_parameter.data(), gradient.data()},
                                      threads);
            Reals expected(n, 0.0L);
            for (std::int64_t i = 0; i < n; ++i) {
                Real all = 0.0L;
                for (std::int64_t j = start[i]; j < stop[i]; ++j) {
                    const Real x = Real(scores[j]) - Real(scores[i]), slope = slope_of(pair.loss, x, parameter);
                    all += pair.loss(x, parameter);
                    expected[j] += slope, expected[i] -= slope;
                }
                close(pair.name, loss[i], all, exact);
            }
            for (std::int64_t i = 0; i < n; ++i) close(pair.name, gradient[i], expected[i], slope_error);
        }
        if (pair.kind == tierrank::PairKind::hinge || pair.kind == tierrank::PairKind::rao_kupper_win) {
            const std::int64_t lists = 3, labels = 1000 + whole(0, 99);
            std::vector<T> named, scores, counts;
            Indices borders{0};
            for (std::int64_t i = 0; i < lists; ++i) {
                for (std::int64_t k = whole(0, 4); k > 0; --k) named.push_back(T(normal(1.0)));
                borders.push_back(std::int64_t(named.size()));
                for (std::int64_t j = 0; j < labels; ++j) scores.push_back(T(normal(1.0)));
            }
            for (std::int64_t j = 0; j < labels; ++j) counts.push_back(T(whole(0, 2)));
            Doubles loss(lists), slope(named.size());
            std::vector<T> label_slope(scores.size());
            kernels.of<T>().block_pair_sums({pair.kind, lists, labels, named.data(), borders.data(), scores.data(),
                                             counts.data(), double(parameter), loss.data(), slope.data(),
                                             label_slope.data()},
                                            threads);
            for (std::int64_t i = 0; i < lists; ++i) {
                Real all = 0.0L;
                for (std::int64_t a = borders[i]; a < borders[i + 1]; ++a) {
                    Real down = 0.0L;
                    for (std::int64_t j = 0; j < labels; ++j) {
                        const Real x = Real(scores[i * labels + j]) - Real(named[a]);
                        all += Real(counts[j]) * pair.loss(x, parameter);
                        down -= Real(counts[j]) * slope_of(pair.loss, x, parameter);
                    }
                    close(pair.name, slope[a], down, slope_error);
                }
                close(pair.name, loss[i], all, exact);
            }
        }
    }
}

void check_products(const Kernels &kernels) {
    constexpr std::int64_t rows = 70, width = 21;
    Doubles Z(rows * width);
    for (double &z : Z) z = normal(1.0);
    Indices starts{0}, columns;
    for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t k = whole(0, 5); k > 0; --k) columns.push_back(whole(0, rows - 1));
        starts.push_back(std::int64_t(columns.size()));
    }
    Doubles out(columns.size());
    kernels.of<double>().inner_products({rows, width, starts.data(), columns.data(), Z.data(), out.data()},
                                        threads);
    for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t e = starts[i]; e < starts[i + 1]; ++e) {
            Real total = 0.0L;
            for (std::int64_t k = 0; k < width; ++k) total += Real(Z[i * width + k]) * Real(Z[columns[e] * width + k]);
            close("inner product", out[e], total, 1e-13);
        }
}

// Objectives for a metric -------------------------------------------------------------------------

using tierrank::PairWeighting;
using tierrank::SwapMetric;

Real discount(std::int64_t place, std::int64_t k) { return place <= k ? 1.0L / std::log2(1.0L + Real(place)) : 0.0L; }

// The metric of gains in the order of their places, by its definition
Real metric_of(SwapMetric metric, std::int64_t k, const Reals &gains) {
    Real found = 0.0L, hits = 0.0L, relevant = 0.0L;
    for (std::size_t i = 0; i < gains.size(); ++i) {
        const auto place = std::int64_t(i) + 1;
        const bool hit = gains[i] > 0.0L;
        hits += hit, relevant += hit;
        if (metric == SwapMetric::ndcg) found += gains[i] * discount(place, k);
        if (metric == SwapMetric::precision && hit && place <= k) found += 1.0L / Real(k);
        if (metric == SwapMetric::map && hit) found += hits / Real(place);
        if (metric == SwapMetric::mrr && hit && hits == 1.0L) found = 1.0L / Real(place);
    }
    return metric == SwapMetric::map && relevant > 0.0L ? found / relevant : found;
}

// Loss, slopes and second derivatives of LambdaLoss, pair by pair; swaps are done, and the metric measured.
Real lambda_term(PairWeighting weighting, SwapMetric metric, std::int64_t k, Real sigma, Real mu, const Reals &scores,
                 const Reals &gains, const Indices &tiers, Reals &slope, Reals &second) {
    const std::size_t n = scores.size();
    std::vector<std::size_t> order(n), place(n);
    for (std::size_t i = 0; i < n; ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
    Reals placed(n);
    for (std::size_t r = 0; r < n; ++r) place[order[r]] = r + 1, placed[r] = gains[order[r]];
    slope.assign(n, 0.0L), second.assign(n, 0.0L);
    Real loss = 0.0L;
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) {
            const bool one_sided = weighting == PairWeighting::ndcg_loss1;
            const auto first = std::int64_t(std::min(place[i], place[j]));
            if (i == j || (one_sided ? false : tiers[i] >= tiers[j] || first > k)) continue;
            const auto apart = std::int64_t(std::max(place[i], place[j])) - first;
            Reals swapped = placed;
            std::swap(swapped[place[i] - 1], swapped[place[j] - 1]);
            const Real by_swap = std::abs(metric_of(metric, k, swapped) - metric_of(metric, k, placed));
            const Real nearer = discount(apart, apart), farther = discount(apart + 1, apart + 1);
            const Real by_distance = (nearer - farther) * std::abs(gains[i] - gains[j]);
            Real weight = 1.0L;
            if (weighting == PairWeighting::lambdarank) weight = by_swap;
            if (weighting == PairWeighting::ndcg_loss2) weight = by_distance;
            if (weighting == PairWeighting::ndcg_loss2pp) weight = by_swap + mu * by_distance;
            if (one_sided) weight = gains[i] * discount(std::int64_t(place[i]), k);
            weight /= std::log(2.0L);
            const Real x = sigma * (scores[j] - scores[i]), share = 1.0L / (1.0L + std::exp(-x));
            loss += weight * softplus(x);
            slope[j] += weight * sigma * share, slope[i] -= weight * sigma * share;
            const Real bend = weight * sigma * sigma * share * (1.0L - share);
            second[i] += bend, second[j] += bend;
        }
    return loss;
}

Real approx_term(Real temperature, const Reals &scores, const Reals &gains) {
    Real total = 0.0L;
    for (std::size_t i = 0; i < scores.size(); ++i) {
        Real rank = 1.0L;
        for (std::size_t j = 0; j < scores.size(); ++j)
            if (j != i) rank += 1.0L / (1.0L + std::exp((scores[i] - scores[j]) / temperature));
        total += gains[i] / std::log2(1.0L + rank);
    }
    return total;
}

// E[DCG@k] by going through all orders: who comes next, out of those that are left
Real expected_term(std::int64_t k, const Reals &scores, const Reals &gains, std::vector<bool> &placed,
                   std::int64_t next) {
    if (next > k || next > std::int64_t(scores.size())) return 0.0L;
    Real left = 0.0L, total = 0.0L;
    for (std::size_t i = 0; i < scores.size(); ++i)
        if (!placed[i]) left += std::exp(scores[i]);
    for (std::size_t i = 0; i < scores.size(); ++i) {
        if (placed[i]) continue;
        placed[i] = true;
        const Real after = expected_term(k, scores, gains, placed, next + 1);
        placed[i] = false;
        total += std::exp(scores[i]) / left * (gains[i] * discount(next, k) + after);
    }
    return total;
}

void check_metric_objectives(const Kernels &kernels, int problems) {
    Indices offsets{0}, tiers;
    Doubles scores, gains, hits;
    for (int list = 0; list < problems; ++list) {
        const std::int64_t n = list % 2 ? whole(1, 6) : whole(7, 40); // to enumerate, and not
        const double spread = std::pow(10.0, double(whole(-1, 1)) / 2.0);
        std::int64_t tier = 0;
        for (std::int64_t i = 0; i < n; ++i, tier += whole(0, 2) == 0) {
            scores.push_back(normal(spread));
            tiers.push_back(tier);
            gains.push_back(1.0 / double(1 + tier) * double(tier < 4)); // falls with the tier; at last 0
            hits.push_back(double(tier < 2));
        }
        offsets.push_back(std::int64_t(scores.size()));
    }
    const std::size_t rows = scores.size(), lists = offsets.size() - 1;
    Doubles value(lists), gradient(rows), hessian(rows);
    const auto of_list = [&](const auto &numbers, std::size_t list) {
        return Reals(numbers.begin() + offsets[list], numbers.begin() + offsets[list + 1]);
    };
    using Value = std::function<Real(const Reals &)>;
    const auto by_differences = [&](const char *what, const Value &term, std::size_t list) {
        constexpr Real h = 1e-5L;
        Reals w = of_list(scores, list);
        for (std::size_t i = 0; i < w.size(); ++i) {
            Reals up = w, down = w;
            up[i] += h, down[i] -= h;
            const Real slope = (term(up) - term(down)) / (2.0L * h);
            close(what, gradient[std::size_t(offsets[list]) + i], slope, 1e-8);
        }
    };
    struct Case {
        PairWeighting weighting;
        SwapMetric metric;
    };
    const Case cases[] = {
        {PairWeighting::ranknet, SwapMetric::ndcg},      {PairWeighting::lambdarank, SwapMetric::ndcg},
        {PairWeighting::ndcg_loss1, SwapMetric::ndcg},   {PairWeighting::ndcg_loss2, SwapMetric::ndcg},
        {PairWeighting::ndcg_loss2pp, SwapMetric::ndcg}, {PairWeighting::lambdarank, SwapMetric::map},
        {PairWeighting::lambdarank, SwapMetric::mrr},    {PairWeighting::lambdarank, SwapMetric::precision},
    };
    for (const Case &each : cases) {
        const Doubles &given = each.metric == SwapMetric::ndcg ? gains : hits;
        // average precision and reciprocal rank know no end
        const bool cut = each.metric == SwapMetric::ndcg || each.metric == SwapMetric::precision;
        const std::int64_t k = cut && whole(0, 2) ? whole(1, 12) : std::int64_t(1) << 40;
        const double sigma = 0.7, mu = 3.0;
        const tierrank::MetricLists of{std::int64_t(lists), offsets.data(), scores.data(),
                                       given.data(),        value.data(),   gradient.data()};
        kernels.lambda_loss({of, tiers.data(), each.weighting, each.metric, k, sigma, mu, hessian.data()}, threads);
        for (std::size_t list = 0; list < lists; ++list) {
            const auto start = std::size_t(offsets[list]);
            const Indices own(tiers.begin() + offsets[list], tiers.begin() + offsets[list + 1]);
            Reals slope, second;
            const Real loss = lambda_term(each.weighting, each.metric, k, sigma, mu, of_list(scores, list),
                                          of_list(given, list), own, slope, second);
            close("LambdaLoss", value[list], loss, 1e-12);
            for (std::size_t i = 0; i < own.size(); ++i) {
                close("slope of LambdaLoss", gradient[start + i], slope[i], 1e-12);
                close("second derivative of LambdaLoss", hessian[start + i], second[i], 1e-12);
            }
        }
    }

    const tierrank::MetricLists p{std::int64_t(lists), offsets.data(), scores.data(),
                                  gains.data(),        value.data(),   gradient.data()};
    const double temperature = 0.4;
    kernels.approx_ndcg(p, temperature, threads);
    for (std::size_t list = 0; list < lists; ++list) {
        const auto term = [&](const Reals &w) { return approx_term(temperature, w, of_list(gains, list)); };
        close("ApproxNDCG", value[list], term(of_list(scores, list)), 1e-12);
        by_differences("slope of ApproxNDCG", term, list);
    }
    for (const std::int64_t k : {std::int64_t(1), std::int64_t(2), std::int64_t(10)}) {
        kernels.expected_dcg(p, k, 1.0, threads);
        for (std::size_t list = 0; list < lists; ++list) {
            const std::int64_t n = offsets[list + 1] - offsets[list];
            if (n > 6 && k > 2) continue; // n (n − 1) … orders of the first k
            const auto term = [&](const Reals &w) {
                std::vector<bool> placed(w.size(), false);
                return expected_term(k, w, of_list(gains, list), placed, 1);
            };
            close("expected DCG", value[list], term(of_list(scores, list)), 1e-11);
            by_differences("slope of expected DCG", term, list);
        }
    }
}

} // namespace

int main(int argc, char **argv) {
    const int problems = argc > 1 ? std::atoi(argv[1]) : 40;
    if (argc > 2) threads = std::atoi(argv[2]);
    for (const Kernels *set : tierrank::sets_that_run()) {
        set_name = set->name;
        std::printf("%s, errors as a part of what is allowed:", set_name);
        const auto check = [](const char *what, const auto &kernel) {
            worst = 0.0;
            kernel();
            std::printf(" %s %.2g", what, worst);
        };
        check("lists in float", [&] { check_lists<float>(*set, problems); });
        check("and double", [&] { check_lists<double>(*set, problems); });
        check("· ties", [&] { check_tied_terms(*set, problems); });
        check("· pairs in float", [&] { check_pairs<float>(*set, problems); });
        check("and double", [&] { check_pairs<double>(*set, problems); });
        check("· products", [&] { check_products(*set); });
        check("· for a metric", [&] { check_metric_objectives(*set, problems); });
        std::printf("\n");
    }
}
