// The integral: log P(A > B) of a tier A over all that stands below it, B, and its slopes.
//
// With d_a = w_a − lse(w_B), proposition 1 of Ma et al. (2021) after u = exp(−eˣ) reads
//
//     P(A > B) = ∫ exp F(x) dx,    F(x) = x − eˣ + Σ_{a∈A} log(1 − exp(−z_a)),    z_a = e^{x + d_a}
//
// over the real line. With r(z) = z / (e^z − 1):  ∂F/∂d_a = r(z_a),  dr/dx = r (1 − z − r),  so that
//
//     ∂ log P/∂d_a = E[r(z_a)]    over the nodes of whatever rule integrates exp F.
//
// exp F is entire and log-concave: one mode, x* between 0 and log(1 + |A|).
//
// **Weak items.** Where z stays small over the whole bump, log(1 − e^−z) = log z − z/2 + P(z²) with a
// short polynomial P. All weak items together then enter every node by a few power sums,
// S_1 = Σ z and S_j = p_j Σ z^2j, and only the others, "mid", are looked at node by node.
//
// **Hermite.** Most tiers have an F close to a parabola. There Gauss-Hermite at the mode, after a
// cubic map x = x* + σ (u + a u² + b u³) that takes out skewness and kurtosis, needs 8 nodes in
// float and 16 or 24 in double. A certificate decides: the last two Hermite coefficients of the
// mapped integrand must be small. Where a bump is wide, two may be so by chance (one tier of 100,000
// at random, off by 2e-5 in float): there the third last must be small as well.
//
// **Legendre.** Where it is not ("walls": many items that nearly always win), Gauss-Legendre
// between the two points where F has fallen by `drop`: 24 nodes in float (48 for large tiers), 96 in
// double.
//
// Errors of log P relative to max(1, |log P|) are measured by benchmarks/accuracy.py, and held below
// 1e-5 in float and 1e-12 in double by tests/plackett_luce/test_accuracy.py.
#pragma once

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "constants.hpp"
#include "elementary.hpp"

namespace tierrank::TIERRANK_SET {

constexpr std::int64_t padded(std::int64_t n) { return (n + LANES - 1) / LANES * LANES; }

// Rules and thresholds a kind of float. `reach` is the largest z of a weak item at the outermost
// node, `span` the u of that node, more or less.
struct Hermite {
    int count;
    const double *nodes, *weights, *last, *last_but_one, *last_but_two;
};
#define TIERRANK_HERMITE(K)                                                                        \
    Hermite { K, HERMITE_##K##_NODES, HERMITE_##K##_WEIGHTS, HERMITE_##K##_LAST,                   \
              HERMITE_##K##_LAST_BUT_ONE, HERMITE_##K##_LAST_BUT_TWO }

struct Legendre {
    int count;
    const double *nodes, *weights;
};
#define TIERRANK_LEGENDRE(K) Legendre{K, LEGENDRE_##K##_NODES, LEGENDRE_##K##_WEIGHTS}

template <class T> struct Scheme;
template <> struct Scheme<float> {
    static constexpr int degree = 7, most_nodes = 48;
    static constexpr const double *weak = WEAK_FLOAT;
    static constexpr double reach = 4.0, span = 4.2, doubt = 2e-4;
    static constexpr double skew_for_few_nodes = 0.2, spread_for_fewest = 0.0;
    static constexpr Hermite fewest = TIERRANK_HERMITE(8), few = TIERRANK_HERMITE(8),
                             many = TIERRANK_HERMITE(16);
    static constexpr Legendre legendre = TIERRANK_LEGENDRE(24), legendre_of_large = TIERRANK_LEGENDRE(48);
    static constexpr double drop = 13.5, tolerance = 1.0;
};
template <> struct Scheme<double> {
    static constexpr int degree = 18, most_nodes = 96;
    static constexpr const double *weak = WEAK_DOUBLE;
    static constexpr double reach = 5.0, span = 5.0, doubt = 1e-8;
    static constexpr double skew_for_few_nodes = 0.11, spread_for_fewest = 0.011;
    static constexpr Hermite fewest = TIERRANK_HERMITE(16), few = TIERRANK_HERMITE(24),
                             many = TIERRANK_HERMITE(48);
    static constexpr Legendre legendre = TIERRANK_LEGENDRE(96), legendre_of_large = legendre;
    static constexpr double drop = 34.0, tolerance = 3.0;
};
#undef TIERRANK_HERMITE
#undef TIERRANK_LEGENDRE

constexpr double WIDEST_FOR_FEW = 0.33;  // σ beyond which the fewest nodes never do
constexpr double MOST_SPREAD = 0.5;      // max(c₃², |c₄|) beyond which no Hermite rule does
constexpr double THIRD = 2.0;            // × doubt: the third last coefficient of a wide bump
constexpr std::int64_t LARGE_TIER = 4096; // from here on walls are steeper than few nodes follow
constexpr double INVINCIBLE = 1e30;      // e^d of an item that nothing beats: q = 1, r = 0
constexpr std::int64_t BLOCK = 256;      // numbers that are added up one by one
constexpr int MAX_STEPS = 60;            // Newton needs 3 a search on average and 9 at worst

// A sum of many sums: what each addition loses is kept beside it. A million equal numbers would lose
// the same each time, and the sum a thousand times more than one rounding.
struct LongSum {
    Vec<double> total = 0.0, lost = 0.0;
    TIERRANK_INLINE void add(Vec<double> x) {
        const Vec<double> sum = total + x, back = sum - total;
        lost += (total - (sum - back)) + (x - back);
        total = sum;
    }
    TIERRANK_INLINE double value() const { return sum(total + lost); }
};

// A tier as the integral takes it. With d = (score − top) − log_below:
//     worth[a] · scale = e^d, in the scores' own kind of float.
// Both arrays run to a multiple of LANES: over worths of 0 and scores of `top`.
template <class T> struct Tier {
    const T *worth, *score;
    std::int64_t size;
    double top, scale, log_below;
};

template <class T> class Integral {
  public:
    // nodes of the last call: e^x = y · growth[k], with weights share[k] that sum to 1
    int nodes = 0;
    double y = 1.0;
    alignas(64) double growth[Scheme<T>::most_nodes], share[Scheme<T>::most_nodes];

    // log P; fills slope [padded size], unless it is null, with E[r]
    double operator()(const Tier<T> &tier, T *slope) {
        weak_z.resize(padded(tier.size));
        double value;
        if (!hermite(tier, value)) value = legendre(tier);
        if (slope) slopes(tier, slope);
        return value;
    }

    // Second derivatives, over the nodes of the last call. In d, the Hessian of log P is
    //
    //     M_ab = δ_ab E[r'_a] + cov(r_a, r_b),    r' = dr/dx = r (1 − z − r),
    //
    // a diagonal plus the covariance of r over the nodes. Fills out [padded size] with M u and
    // returns 1ᵀM u; with u null it fills in the diagonal of M and returns 1ᵀM 1.
    double hessian(const Tier<T> &tier, const double *u, double *out) const {
        const std::int64_t end = padded(tier.size);
        const V scale = V(T(tier.scale * y)), smallest = V(T(1e-30)); // padding: r = 1, not 0/0
        double along[S::most_nodes]; // Σ_b r_b u_b at every node, less its mean
        {
            W sums[S::most_nodes];
            for (int k = 0; k < nodes; ++k) sums[k] = W(0.0);
            for (std::int64_t i = 0; i < end; i += LANES) {
                const V z = max(V::load(tier.worth + i) * scale, smallest);
                W by = present(i, tier.size);
                if (u) by = by * load_up_to(u + i, tier.size - i);
                for (int k = 0; k < nodes; ++k)
                    sums[k] = fma(wide(decay(z * V(T(growth[k]))).r), by, sums[k]);
            }
            double mean = 0.0;
            for (int k = 0; k < nodes; ++k) mean += share[k] * (along[k] = sum(sums[k]));
            for (int k = 0; k < nodes; ++k) along[k] -= mean;
        }
        W whole(0.0);
        for (std::int64_t i = 0; i < end; i += LANES) {
            const V worth = max(V::load(tier.worth + i) * scale, smallest);
            V r[S::most_nodes], mean(T(0)), second(T(0));
            for (int k = 0; k < nodes; ++k) {
                const V z = worth * V(T(growth[k])), weight = V(T(share[k]));
                r[k] = decay(z).r;
                mean = fma(weight, r[k], mean);
                second = fma(weight, r[k] * one_less_z_less_r(z, r[k]), second);
            }
            V cross(T(0)), variance(T(0));
            for (int k = 0; k < nodes; ++k) {
                const V weight = V(T(share[k]));
                cross = fma(weight * (r[k] - mean), V(T(along[k])), cross);
                variance = fma(weight * (r[k] - mean), r[k] - mean, variance);
            }
            W by = present(i, tier.size);
            if (u) by = by * load_up_to(u + i, tier.size - i);
            const W product = fma(wide(second), by, wide(cross) * present(i, tier.size));
            whole += product;
            (u ? product : wide(second + variance)).store(out + i);
        }
        return sum(whole);
    }

  private:
    using S = Scheme<T>;
    using V = Vec<T>;
    using W = Vec<double>;

    // 1 for the items of a tier, 0 for its padding
    static W present(std::int64_t i, std::int64_t size) {
        W v(1.0);
        for (std::int64_t k = std::max<std::int64_t>(size - i, 0); k < LANES; ++k) v.set(int(k), 0.0);
        return v;
    }
    static W load_up_to(const double *from, std::int64_t count) {
        if (count >= LANES) return W::load(from);
        W v(0.0);
        for (int k = 0; k < count; ++k) v.set(k, from[k]);
        return v;
    }
    // 1 − z − r, by its series −z/2 − z²/12 + z⁴/720 − … where the difference would lose digits
    static V one_less_z_less_r(V z, V r) {
        const V v = z * z;
        V p = V(T(1.0 / 1209600.0));
        p = fma(p, v, V(T(-1.0 / 30240.0)));
        p = fma(p, v, V(T(1.0 / 720.0)));
        p = fma(p, v, V(T(-1.0 / 12.0)));
        const V series = fma(p, v, z * V(T(-0.5)));
        const V far = (V(T(1)) - min(z, V(MOST_EXPONENT<T> - T(7)))) - r;
        return select(z < V(T(sizeof(T) == 4 ? 0.5 : 0.1)), series, far);
    }

    std::vector<T> weak_z, mid, ratio;      // ratio: [mid items, nodes] r of each
    std::vector<std::int64_t> where;        // of the mid items in the tier
    alignas(64) double log_f[S::most_nodes], stretch[S::most_nodes];

    // power sums of the weak items at some e^x
    double weak_count, weak_scores, moment[S::degree + 1], largest_weak;

    // F', F'', F''' and F'''' of the mid items at the same e^x
    double mid_slopes[4];

    struct Shape { // of the bump: mode relative to the present e^x, width, cubic map
        double shift, width, a, b, skew, spread;
        bool near; // whether all this is trustworthy from here
    };

    // The items split at e^x = y: z ≤ bound is weak.
    void split(const Tier<T> &tier, double at, double bound) {
        const std::int64_t end = padded(tier.size);
        const V scale = V(T(tier.scale * at)), limit = V(T(bound));
        const double factor = tier.scale * at;
        LongSum scores, first, power[S::degree];
        V biggest(T(0));
        mid.clear();
        where.clear();
        // sums go over to double after a few items, and in double begin anew: ten thousand equal
        // numbers, added one by one, would all be rounded the same way
        constexpr std::int64_t block = sizeof(T) == 4 ? 64 : BLOCK;
        for (std::int64_t start = 0; start < end; start += block) {
            const std::int64_t stop = std::min(start + block, end);
            V s1(T(0)), s[S::degree];
            W some_scores(0.0);
            for (V &p : s) p = V(T(0));
            for (std::int64_t i = start; i < stop; i += LANES) {
                V z = V::load(tier.worth + i) * scale;
                W t = wide(V::load(tier.score + i)) - W(tier.top);
                const auto weak = z <= limit;
                if (!weak.all()) {
                    for (int k = 0; k < LANES; ++k)
                        if (!weak[k]) {
                            mid.push_back(T(std::min(double(tier.worth[i + k]) * factor, INVINCIBLE)));
                            where.push_back(i + k);
                            z.set(k, T(0));
                            t.set(k, 0.0);
                        }
                }
                z.store(weak_z.data() + i);
                some_scores += t;
                biggest = max(biggest, z);
                s1 += z;
                const V v = z * z;
                V p = v;
                for (int j = 0; j < S::degree; ++j) {
                    s[j] += p;
                    p *= v;
                }
            }
            scores.add(some_scores);
            first.add(wide(s1));
            for (int j = 0; j < S::degree; ++j) power[j].add(wide(s[j]));
        }
        weak_count = double(tier.size - std::int64_t(mid.size()));
        weak_scores = scores.value();
        largest_weak = largest(biggest);
        moment[0] = first.value();
        for (int j = 0; j < S::degree; ++j) moment[j + 1] = S::weak[j] * power[j].value();
    }

    // With u = 1 − z − r:  r' = r u,  u' = −(z + r'),  and so on.
    void slopes_of_mid() {
        V sums[4] = {V(T(0)), V(T(0)), V(T(0)), V(T(0))};
        const std::int64_t count = std::int64_t(mid.size());
        mid.resize(padded(count), T(INVINCIBLE));
        W totals[4] = {W(0.0), W(0.0), W(0.0), W(0.0)};
        for (std::int64_t i = 0; i < count; i += LANES) {
            const V z = min(V::load(mid.data() + i), V(MOST_EXPONENT<T> - T(7)));
            const V r = decay(z).r, u = V(T(1)) - z - r;
            const V r1 = r * u, u1 = -(z + r1);
            const V r2 = fma(r1, u, r * u1), u2 = -(z + r2);
            const V r3 = fma(r2, u, fma(r1 + r1, u1, r * u2));
            sums[0] += r, sums[1] += r1, sums[2] += r2, sums[3] += r3;
            if ((i & 511) == 0 || i + LANES >= count)
                for (int k = 0; k < 4; ++k) totals[k] += wide(sums[k]), sums[k] = V(T(0));
        }
        for (int k = 0; k < 4; ++k) mid_slopes[k] = sum(totals[k]);
        mid.resize(count);
    }

    // Derivatives of F in x at e^x = y, and from them mode, width and the cubic map.
    Shape locate() const {
        double f2 = -(y + 0.5 * moment[0]), f1 = 1.0 + weak_count + f2, f3 = f2, f4 = f2;
        for (int j = 1; j <= S::degree; ++j) {
            const double k = 2.0 * j;
            double term = k * moment[j];
            f1 += term, term *= k;
            f2 += term, term *= k;
            f3 += term, term *= k;
            f4 += term;
        }
        if (!mid.empty())
            f1 += mid_slopes[0], f2 += mid_slopes[1], f3 += mid_slopes[2], f4 += mid_slopes[3];

        // the root of f1 + f2 δ + f3 δ²/2 + f4 δ³/6 by two steps of Newton's
        const double h = -f1 / f2;
        double d = h;
        for (int step = 0; step < 2; ++step)
            d -= (f1 + d * (f2 + d * (0.5 * f3 + d * f4 / 6.0))) / (f2 + d * (f3 + 0.5 * d * f4));
        const double ratio_of_steps = d / h;
        if (!(ratio_of_steps > 1.0 / 3.0 && ratio_of_steps < 3.0)) d = std::clamp(h, -1.0, 1.0);

        double g2 = f2 + d * (f3 + 0.5 * d * f4), g3 = f3 + d * f4;
        if (!(g2 < 0.0)) g2 = f2, g3 = f3;
        Shape s;
        s.shift = d;
        s.width = std::sqrt(-1.0 / g2);
        const double c3 = g3 * s.width * s.width * s.width;
        const double c4 = f4 / (g2 * g2);
        s.a = c3 / 6.0;
        const double b = c4 / 24.0 + 5.0 * c3 * c3 / 72.0;
        s.b = std::max(b, 0.4 * s.a * s.a); // so that the map grows
        s.skew = c3 * c3 + 100.0 * (s.b - b);
        s.spread = std::max(c3 * c3, std::abs(c4));
        const double out = d + s.width * S::span * (1.0 + S::span * (s.a + S::span * s.b));
        s.near = std::abs(d) < 0.7 * s.width && largest_weak * exp1(out) < 1.02 * S::reach;
        return s;
    }

    // z up to here at the mode stays within `reach` at the outermost node
    static double bound_for(double at) {
        const double c = (S::span + 0.1) / std::sqrt(at) + 0.05;
        return S::reach / (1.0 + c * (1.0 + 0.5 * c * (1.0 + c * (1.0 / 3.0 + c / 12.0))));
    }

    // e^x near the mode: the root of y = 1 + n/(1 + z/2), because r(z) is near 1/(1 + z/2)
    static double first_guess(const Tier<T> &tier) {
        const std::int64_t end = padded(tier.size);
        const V scale = V(T(tier.scale));
        W total(0.0);
        for (std::int64_t i = 0; i < end; i += LANES) {
            const V d = min(V::load(tier.worth + i) * scale, V(T(INVINCIBLE)));
            total += wide(d / (d + V(T(1))));
        }
        const double n = double(tier.size), p = sum(total) / n;
        const double m = std::min(p / std::max(1.0 - p, 1e-4), 1e4), l = 0.5 - 0.25 * m;
        return (1.0 + n) / (l + std::sqrt(l * l + 0.5 * m * (1.0 + n)));
    }

    bool hermite(const Tier<T> &tier, double &value) {
        y = first_guess(tier);
        Shape shape;
        for (int attempt = 0;; ++attempt) {
            split(tier, y, bound_for(y));
            if (!mid.empty()) slopes_of_mid();
            shape = locate();
            if (shape.near) break;
            if (attempt == 2 || !std::isfinite(shape.shift)) return false;
            y *= exp1(std::clamp(shape.shift, -2.0, 2.0));
        }
        if (shape.spread < S::spread_for_fewest && integrate(tier, S::fewest, shape, value))
            return true;
        if (shape.spread >= S::spread_for_fewest && shape.skew < S::skew_for_few_nodes &&
            shape.width < WIDEST_FOR_FEW && integrate(tier, S::few, shape, value))
            return true;
        return shape.spread <= MOST_SPREAD && integrate(tier, S::many, shape, value);
    }

    // x = log y + τ, τ = δ + σ (u + a u² + b u³); false if the certificate fails
    bool integrate(const Tier<T> &tier, const Hermite &rule, const Shape &s, double &value) {
        nodes = rule.count;
        for (int k = 0; k < nodes; k += LANES) {
            const W u = W::load(rule.nodes + k);
            const W tau = fma(u * fma(fma(u, W(s.b), W(s.a)), u, W(1.0)), W(s.width), W(s.shift));
            set_node(k, tau);
            fma(fma(u, W(3.0 * s.b), W(2.0 * s.a)), u, W(1.0)).store(stretch + k);
        }
        add_mid();
        const double reference = log_f[nodes / 2];
        W total(0.0), last(0.0), last_but_one(0.0), last_but_two(0.0);
        for (int k = 0; k < nodes; k += LANES) {
            const W f = exp(W::load(log_f + k) - W(reference)) * W::load(stretch + k);
            const W part = f * W::load(rule.weights + k);
            part.store(share + k);
            total += part;
            last = fma(f, W::load(rule.last + k), last);
            last_but_one = fma(f, W::load(rule.last_but_one + k), last_but_one);
            last_but_two = fma(f, W::load(rule.last_but_two + k), last_but_two);
        }
        const double t = sum(total);
        if (!(std::abs(sum(last)) + std::abs(sum(last_but_one)) < S::doubt * t)) return false;
        if (nodes == S::many.count && !(std::abs(sum(last_but_two)) < THIRD * S::doubt * t)) return false;
        normalise(t);
        constexpr double ROOT_2PI = 2.5066282746310002;
        value = log_of(tier, reference, s.width * ROOT_2PI * t);
        return true;
    }

    // e^x relative to y, and F there without the mid items, less its value at y
    void set_node(int k, W tau) {
        const W e = exp(tau), square = e * e;
        e.store(growth + k);
        W powers(moment[S::degree]);
        for (int j = S::degree - 1; j > 0; --j) powers = fma(powers, square, W(moment[j]));
        const W f = fma(e - W(1.0), W(-(y + 0.5 * moment[0])), tau * W(1.0 + weak_count));
        fma(powers, square, f).store(log_f + k);
    }

    // Σ log q of the mid items at every node, and their r. A product is brought back to [1, 2)
    // after 16 items, before it can leave the range. What rounding takes from it is kept beside it,
    // because a million equal items, q = 1 − t with a tiny t, all lose the same.
    void add_mid() {
        const std::int64_t count = std::int64_t(mid.size());
        if (!count) return;
        ratio.resize(std::size_t(count) * nodes);
        for (int k = 0; k < nodes; k += LANES) {
            const V e = convert<T>(W::load(growth + k));
            W product(1.0), whole(0.0), lost(0.0);
            for (std::int64_t start = 0; start < count; start += 16) {
                W rounding(0.0); // the product so far is product + rounding
                for (std::int64_t i = start; i < std::min(start + 16, count); ++i) {
                    const auto [t, q, r] = decay(e * V(mid[i]));
                    const W taken = product * wide(t), factor = wide(q);
                    const auto near_one = wide(t) < W(0.5);
                    const W next = select(near_one, product - taken, product * factor);
                    rounding = fma(rounding, factor, select(near_one, (product - next) - taken, W(0.0)));
                    product = next;
                    r.store(ratio.data() + i * nodes + k);
                }
                lost += rounding / product;
                whole += exponent(product);
                product = mantissa(product);
            }
            const W logs = fma(whole, W(LN2), log(product) + lost);
            (W::load(log_f + k) + logs).store(log_f + k);
        }
    }

    void normalise(double total) {
        for (int k = 0; k < nodes; k += LANES)
            (W::load(share + k) * W(1.0 / total)).store(share + k);
    }

    // Σ_weak log z − Σ_weak z/2 − y + log y, which the nodes are relative to, and the sum itself
    double log_of(const Tier<T> &tier, double reference, double total) const {
        return reference + std::log(total) + (1.0 + weak_count) * std::log(y) - y -
               0.5 * moment[0] + (weak_scores - weak_count * tier.log_below);
    }

    // E[r]: weak, 1 − z E[g]/2 + Σ 2j p_j E[g^2j] z^2j with g the growth; mid, as they were kept
    void slopes(const Tier<T> &tier, T *slope) const {
        double half = 0.0, c[S::degree] = {};
        W w[S::most_nodes / LANES];
        for (int k = 0; k < nodes; k += LANES) {
            w[k / LANES] = W::load(share + k);
            half += 0.5 * sum(w[k / LANES] * W::load(growth + k));
        }
        for (int j = 0; j < S::degree; ++j) {
            W total(0.0);
            for (int k = 0; k < nodes; k += LANES) {
                const W g = W::load(growth + k);
                w[k / LANES] = w[k / LANES] * g * g;
                total += w[k / LANES];
            }
            c[j] = 2.0 * (j + 1) * S::weak[j] * sum(total);
        }
        const std::int64_t end = padded(tier.size);
        for (std::int64_t i = 0; i < end; i += LANES) {
            const V z = V::load(weak_z.data() + i), v = z * z;
            V p = T(c[S::degree - 1]);
            for (int j = S::degree - 2; j >= 0; --j) p = fma(p, v, V(T(c[j])));
            fma(p, v, fma(z, V(T(-half)), V(T(1)))).store(slope + i);
        }
        for (std::size_t i = 0; i < mid.size(); ++i) {
            V total(T(0));
            for (int k = 0; k < nodes; k += LANES)
                total = fma(convert<T>(W::load(share + k)), V::load(ratio.data() + i * nodes + k), total);
            slope[where[i]] = sum(total);
        }
        for (std::int64_t i = tier.size; i < end; ++i) slope[i] = T(0);
    }

    // Gauss-Legendre between the two ends. `weak` items are those within `reach` at the right end.
    double legendre(const Tier<T> &tier) {
        const auto [left, right] = bracket(tier, y);
        y = exp1(right);
        split(tier, y, S::reach);
        const Legendre &rule = tier.size < LARGE_TIER ? S::legendre : S::legendre_of_large;
        nodes = rule.count;
        const double half = 0.5 * (right - left);
        for (int k = 0; k < nodes; k += LANES)
            set_node(k, (W::load(rule.nodes + k) - W(1.0)) * W(half));
        add_mid();
        double reference = log_f[0];
        for (int k = 1; k < nodes; ++k) reference = std::max(reference, log_f[k]);
        W total(0.0);
        for (int k = 0; k < nodes; k += LANES) {
            const W part = exp(W::load(log_f + k) - W(reference)) * W::load(rule.weights + k);
            part.store(share + k);
            total += part;
        }
        const double t = sum(total);
        normalise(t);
        return log_of(tier, reference, t * half);
    }

    struct Point {
        double f, slope, second;
    };

    // F, F' and F'' at x, without log Π z of nothing: plainly, item by item
    Point at(const Tier<T> &tier, double x) const {
        const std::int64_t end = padded(tier.size);
        const double ex = exp1(x);
        const V scale = V(T(tier.scale * ex));
        W logs(0.0), slope(0.0), second(0.0);
        for (std::int64_t i = 0; i < end; i += LANES) {
            V z = min(V::load(tier.worth + i) * scale, V(MOST_EXPONENT<T> - T(7)));
            if (i + LANES > tier.size)
                for (std::int64_t k = tier.size - i; k < LANES; ++k) z.set(int(k), MOST_EXPONENT<T> - T(7));
            const auto [t, q, r] = decay(z);
            logs += log(wide(q));
            slope += wide(r);
            second += wide(r * (V(T(1)) - z - r));
        }
        return {x - ex + sum(logs), 1.0 - ex + sum(slope), sum(second) - ex};
    }

    // The two ends between which F stays within `drop` of its maximum, to about `tolerance`.
    std::pair<double, double> bracket(const Tier<T> &tier, double from) const {
        // φ(y) = 1 + Σ r(y e^d) − y is convex and falls: Newton's steps in y do not overshoot
        double ey = std::max(from, 1e-3), x = std::log(ey);
        Point p = at(tier, x);
        for (int step = 0; step < MAX_STEPS && p.slope * p.slope >= 0.04 * -p.second; ++step) {
            ey = std::max(ey - p.slope * ey / p.second, 1e-3);
            x = std::log(ey);
            p = at(tier, x);
        }
        const double level = p.f - 0.5 * p.slope * p.slope / p.second - S::drop;
        const double width = std::sqrt(-2.0 * S::drop / p.second);

        // To the right F falls much as y (e^t − 1 − t) + (−F'' − y) t²/2 does, with t = x − x*
        const double steady = -p.second - ey;
        double t = width;
        for (int step = 0; step < 4; ++step) {
            const double grown = std::exp(t);
            const double excess = ey * (grown - 1.0 - t) + 0.5 * steady * t * t - S::drop;
            t -= excess / (ey * (grown - 1.0) + steady * t);
        }
        double right = x + t;
        for (int step = 0; step < MAX_STEPS; ++step) {
            p = at(tier, right);
            if (std::abs(p.f - level) < S::tolerance) break;
            right -= (p.f - level) / p.slope;
        }

        // To the left it may be a long flat stretch or a wall. F(0) − F(x) ≥ −x − 1 is the floor.
        const double floor = -S::drop - 1.5;
        double left = std::max(floor, x - 1.15 * width);
        for (int step = 0; step < MAX_STEPS; ++step) {
            p = at(tier, left);
            const double excess = level - p.f;
            if (std::abs(excess) < S::tolerance) break;
            // the nearer root of slope·h + second·h²/2 = excess, or Newton's step without one
            const double discriminant = p.slope * p.slope + 2.0 * p.second * excess;
            const double h = discriminant > 0.0
                                 ? 2.0 * excess / (p.slope + std::sqrt(discriminant))
                                 : excess / p.slope;
            left = std::max(floor, left + h);
        }
        return {left, right};
    }
};

} // namespace tierrank::TIERRANK_SET
