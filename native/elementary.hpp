// exp, log and their kin as plain arithmetic on vectors: no branch, no call, no table.
//
// Polynomials are Chebyshev fits; their relative errors before rounding are given with each.
#pragma once

#include "vector.hpp"

namespace tierrank::TIERRANK_SET {

constexpr double LOG2E = 1.4426950408889634, LN2 = 0.6931471805599453;

// e^f − 1 for |f| ≤ ln(2)/2: 2e-18 and 1.2e-8
TIERRANK_INLINE Vec<double> expm1_near_0(Vec<double> f) {
    Vec<double> p = 2.0918129537789706e-09;
    p = fma(p, f, Vec<double>(2.5110037721946562e-08));
    p = fma(p, f, Vec<double>(2.7557263301250924e-07));
    p = fma(p, f, Vec<double>(2.7557240918265525e-06));
    p = fma(p, f, Vec<double>(2.480158733642153e-05));
    p = fma(p, f, Vec<double>(0.00019841269890047406));
    p = fma(p, f, Vec<double>(0.0013888888888879082));
    p = fma(p, f, Vec<double>(0.008333333333319601));
    p = fma(p, f, Vec<double>(0.04166666666666668));
    p = fma(p, f, Vec<double>(0.1666666666666668));
    p = fma(p, f, Vec<double>(0.5));
    p = fma(p, f, Vec<double>(1.0));
    return p * f;
}
TIERRANK_INLINE Vec<float> expm1_near_0(Vec<float> f) {
    Vec<float> p = 0.0013933641121625462f;
    p = fma(p, f, Vec<float>(0.008369148562621179f));
    p = fma(p, f, Vec<float>(0.04166646500523263f));
    p = fma(p, f, Vec<float>(0.16666505259761719f));
    p = fma(p, f, Vec<float>(0.5000000013457808f));
    p = fma(p, f, Vec<float>(1.000000010771635f));
    return p * f;
}

// x = n log 2 + f with a whole n: 2^n and f. log 2 is taken off in two parts, the first of which
// has so few bits that n times it is exact.
template <class T> struct Reduced {
    Vec<T> power, rest;
};
TIERRANK_INLINE Reduced<double> reduce(Vec<double> x) {
    const Vec<double> magic = Real<double>::magic;
    const Vec<double> shifted = fma(x, Vec<double>(LOG2E), magic), n = shifted - magic;
    const Vec<double> f = fma(n, Vec<double>(-0.693147180369123816490), x);
    return {power_of_two(shifted), fma(n, Vec<double>(-1.90821492927058770002e-10), f)};
}
TIERRANK_INLINE Reduced<float> reduce(Vec<float> x) {
    const Vec<float> magic = Real<float>::magic;
    const Vec<float> shifted = fma(x, Vec<float>(float(LOG2E)), magic), n = shifted - magic;
    const Vec<float> f = fma(n, Vec<float>(-0.693359375f), x);
    return {power_of_two(shifted), fma(n, Vec<float>(2.12194440e-4f), f)};
}

template <class T> constexpr T MOST_EXPONENT = sizeof(T) == 4 ? T(87) : T(708);

// e^x, with x held where the result is a normal number
template <class T> TIERRANK_INLINE Vec<T> exp(Vec<T> x) {
    const auto [s, f] = reduce(max(min(x, Vec<T>(MOST_EXPONENT<T>)), Vec<T>(-MOST_EXPONENT<T>)));
    return fma(s, expm1_near_0(f), s);
}

// (t, q, r) = (e^−z, 1 − e^−z, z / (e^z − 1)) for z > 0, each to its own last digits
template <class T> struct Decay {
    Vec<T> t, q, r;
};
template <class T> TIERRANK_INLINE Decay<T> decay(Vec<T> z) {
    z = min(z, Vec<T>(MOST_EXPONENT<T> - T(7))); // beyond, q is 1 and r is nothing
    const auto [s, f] = reduce(-z);
    const Vec<T> p = expm1_near_0(f);
    const Vec<T> t = fma(s, p, s), q = (Vec<T>(1) - s) - s * p;
    return {t, q, z * t / q};
}

// log x of a positive normal x, to 2 ulp: 2 atanh((m − 1)/(m + 1)) of a mantissa in [√½, √2]
TIERRANK_INLINE Vec<double> log(Vec<double> x) {
    using V = Vec<double>;
    const V raw = mantissa(x);
    const auto large = V(1.4142135623730951) < raw;
    const V m = select(large, raw * V(0.5), raw);
    const V e = exponent(x) + select(large, V(1.0), V(0.0));
    const V s = (m - V(1.0)) / (m + V(1.0)), t = s * s;
    V p = 1.0 / 21.0;
    for (double k = 19.0; k > 2.0; k -= 2.0) p = fma(p, t, V(1.0 / k));
    return fma(e, V(LN2), fma(s * t, p, s) * V(2.0));
}

// 2 atanh(√u)/√u for 0 ≤ u ≤ 1/25: 1e-19 and 2e-9
TIERRANK_INLINE Vec<double> atanh_by_square(Vec<double> u) {
    Vec<double> p = 0.13859266262922756;
    p = fma(p, u, Vec<double>(0.13170842135182226));
    p = fma(p, u, Vec<double>(0.15391304916792625));
    p = fma(p, u, Vec<double>(0.18181658708249215));
    p = fma(p, u, Vec<double>(0.22222224448051128));
    p = fma(p, u, Vec<double>(0.2857142855401201));
    p = fma(p, u, Vec<double>(0.40000000000068175));
    p = fma(p, u, Vec<double>(0.6666666666666656));
    return fma(p, u, Vec<double>(2.0));
}
TIERRANK_INLINE Vec<float> atanh_by_square(Vec<float> u) {
    Vec<float> p = 0.30437402613105163f;
    p = fma(p, u, Vec<float>(0.3995257315084188f));
    p = fma(p, u, Vec<float>(0.6666704915197339f));
    return fma(p, u, Vec<float>(1.9999999952020506f));
}

// log(1 + x) and 1/(1 + x) for 0 ≤ x ≤ 2, with all digits of a small x (relative errors of 2.8 and 1.5 ε). With
// 1 + x = 2^e (1 + f), e = 0 or 1:  log(1 + f) = 2 atanh(z),  z = f/(2 + f),  |z| ≤ 1/5.
template <class T> struct Log1p {
    Vec<T> log, inverse;
};
template <class T> TIERRANK_INLINE Log1p<T> log1p(Vec<T> x) {
    using V = Vec<T>;
    const auto large = V(T(0.5)) < x;
    const V f = select(large, x - V(T(1)), x); // this and the next are doubled if e = 1
    const V f_and_two = x + select(large, V(T(3)), V(T(2)));
    const V total = V(T(1)) + x;
    const V q = V(T(1)) / (total * f_and_two); // the one division for both results
    const V z = f * total * q;
    return {fma(z, atanh_by_square(z * z), select(large, V(T(LN2)), V(T(0)))), f_and_two * q};
}

// One number -------------------------------------------------------------------------------------

inline double exp1(double x) { return std::exp(std::fmin(std::fmax(x, -708.0), 708.0)); }

} // namespace tierrank::TIERRANK_SET
