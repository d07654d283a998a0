// Tiers of at most five items: summed over their subsets, without an integral, eight tiers at a time.
#pragma once

#include "elementary.hpp"

namespace tierrank::TIERRANK_SET {

constexpr int FEW = 5;

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

} // namespace tierrank::TIERRANK_SET
