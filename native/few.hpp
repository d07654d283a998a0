// Tiers of at most five items: summed over their subsets, without an integral, eight tiers at a time.
#pragma once

#include "elementary.hpp"

namespace tierrank::TIERRANK_SET {

constexpr int FEW = 5;

// A tier of one: log P = −log(1 + 1/D) and its slope 1/(1 + D), with all digits at either end.
inline Vec<double> single_item(Vec<double> D, Vec<double> &slope) {
    using V = Vec<double>;
    const auto strong = V(1.0) < D;
    const V x = select(strong, V(1.0) / D, D);
    const auto [log_total, inverse] = log1p(x);
    slope = select(strong, x * inverse, inverse);
    return select(strong, V(0.0), log(D)) - log_total;
}

// The items of a subset S are all drawn before those below with probability
//
//     chance(S) = Σ_{a∈S} D_a chance(S \ a) / (1 + Σ_{a∈S} D_a),    D_a = worth of a / worth below,
//
// every term positive: exact to rounding. `blame` is ∂ log chance(all) / ∂ chance(S), from the full
// set down. Fills slope[a] = ∂ log chance(all) / ∂ log D_a and returns chance(all).
template <int n> inline Vec<double> few_items(const Vec<double> *D, Vec<double> *slope) {
    using V = Vec<double>;
    constexpr int all = (1 << n) - 1;
    V chance[1 << n], inverse[1 << n], blame[1 << n];
    inverse[0] = chance[0] = V(1.0);
    blame[0] = V(0.0);
    for (int s = 1; s <= all; ++s) {
        V total(1.0), drawn(0.0);
        for (int a = 0; a < n; ++a)
            if (s >> a & 1) {
                total += D[a];
                drawn = fma(D[a], chance[s ^ (1 << a)], drawn);
            }
        inverse[s] = V(1.0) / total;
        chance[s] = drawn * inverse[s];
        blame[s] = V(0.0);
    }
    for (int a = 0; a < n; ++a) slope[a] = V(0.0);
    blame[all] = V(1.0) / chance[all];
    for (int s = all; s > 0; --s) {
        const V share = blame[s] * inverse[s];
        for (int a = 0; a < n; ++a)
            if (s >> a & 1) {
                const int others = s ^ (1 << a);
                const V part = share * D[a];
                slope[a] = fma(part, chance[others] - chance[s], slope[a]);
                blame[others] += part;
            }
    }
    return chance[all];
}

// ∂² log chance(all) along Σ_a toward_a d_a, each toward_a 0 or 1: an entry of the Hessian's diagonal
// where it is one item, and the sum of all entries where it is all of them. D_a = e^d is its own
// derivative, so numerator and quotient are differentiated twice as they are built.
template <int n> inline Vec<double> few_second(const Vec<double> *D, const Vec<double> *toward) {
    using V = Vec<double>;
    constexpr int all = (1 << n) - 1;
    V chance[1 << n], first[1 << n], second[1 << n];
    chance[0] = V(1.0);
    first[0] = second[0] = V(0.0);
    for (int s = 1; s <= all; ++s) {
        V total(1.0), moved(0.0), drawn(0.0), drawn1(0.0), drawn2(0.0);
        for (int a = 0; a < n; ++a)
            if (s >> a & 1) {
                const V c = chance[s ^ (1 << a)], c1 = first[s ^ (1 << a)];
                total += D[a];
                moved = fma(D[a], toward[a], moved);
                drawn = fma(D[a], c, drawn);
                drawn1 = fma(D[a], fma(toward[a], c, c1), drawn1);
                drawn2 = fma(D[a], fma(toward[a], c + c1 + c1, second[s ^ (1 << a)]), drawn2);
            }
        const V inverse = V(1.0) / total;
        chance[s] = drawn * inverse;
        first[s] = (drawn1 - chance[s] * moved) * inverse;
        second[s] = (drawn2 - (first[s] + first[s] + chance[s]) * moved) * inverse;
    }
    const V inverse = V(1.0) / chance[all], slope = first[all] * inverse;
    return second[all] * inverse - slope * slope;
}

// The whole Hessian [n, n] of one tier, its directions side by side in the lanes:
// M_ab = (along a and b − along a − along b) / 2.
template <int n> inline void few_hessian(const double *strength, double *M) {
    using V = Vec<double>;
    V D[n], toward[n];
    for (int a = 0; a < n; ++a) D[a] = V(strength[a]);
    double along[n][n];
    int lane = 0, at[LANES][2];
    const auto settle = [&] {
        const V found = few_second<n>(D, toward);
        for (int k = 0; k < lane; ++k) along[at[k][0]][at[k][1]] = found[k];
        lane = 0;
    };
    for (int a = 0; a < n; ++a)
        for (int b = a; b < n; ++b) {
            for (int c = 0; c < n; ++c) toward[c].set(lane, c == a || c == b ? 1.0 : 0.0);
            at[lane][0] = a, at[lane][1] = b;
            if (++lane == LANES) settle();
        }
    if (lane) {
        for (int c = 0; c < n; ++c)
            for (int k = lane; k < LANES; ++k) toward[c].set(k, 0.0);
        settle();
    }
    for (int a = 0; a < n; ++a)
        for (int b = a; b < n; ++b)
            M[a * n + b] = M[b * n + a] =
                a == b ? along[a][a] : 0.5 * (along[a][b] - along[a][a] - along[b][b]);
}
template <int n, class T> inline void few_slopes(const double *strength, T *slope) {
    Vec<double> D[n], slopes[n];
    for (int a = 0; a < n; ++a) D[a] = Vec<double>(strength[a]);
    few_items<n>(D, slopes);
    for (int a = 0; a < n; ++a) slope[a] = T(slopes[a][0]);
}
template <class T> inline void few_slopes(int n, const double *strength, T *slope) {
    switch (n) {
    case 2: return few_slopes<2>(strength, slope);
    case 3: return few_slopes<3>(strength, slope);
    case 4: return few_slopes<4>(strength, slope);
    default: return few_slopes<FEW>(strength, slope);
    }
}
inline void few_hessian(int n, const double *strength, double *M) {
    switch (n) {
    case 2: return few_hessian<2>(strength, M);
    case 3: return few_hessian<3>(strength, M);
    case 4: return few_hessian<4>(strength, M);
    default: return few_hessian<FEW>(strength, M);
    }
}

} // namespace tierrank::TIERRANK_SET
