// Eight numbers at a time, on the compiler's own vector extensions.
//
// A Vec<T> always has eight lanes, whatever the machine has: on a narrow one it is two or four
// registers. So every set of instructions runs the same code, and a tier of any size the same sums.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

// The set of instructions that a file is compiled for is a namespace of its own: the linker must
// never take a function that was compiled for one set to serve another.
#ifndef TIERRANK_SET
#define TIERRANK_SET baseline
#endif

// Vectors live in registers only while the functions that take them are inlined: the compiler would
// pass them through memory.
#define TIERRANK_INLINE [[gnu::always_inline]] inline

namespace tierrank::TIERRANK_SET {

constexpr int LANES = 8;

#if defined(__AVX512F__)
constexpr int REGISTER = 64;
#elif defined(__AVX2__)
constexpr int REGISTER = 32;
#else
constexpr int REGISTER = 16;
#endif

template <class T> struct Real; // what a kind of float is made of

template <> struct Real<float> {
    using Bits = std::uint32_t;
    static constexpr int shift = 23, bias = 127;
    static constexpr float magic = 12582912.0f; // 1.5 · 2^23: adding it rounds to a whole number
};

template <> struct Real<double> {
    using Bits = std::uint64_t;
    static constexpr int shift = 52, bias = 1023;
    static constexpr double magic = 6755399441055744.0; // 1.5 · 2^52
};

template <class T, int n> struct RegisterOf {
    typedef T Type __attribute__((vector_size(n * sizeof(T))));
    typedef T InMemory __attribute__((vector_size(n * sizeof(T)), aligned(alignof(T)), may_alias));
};
template <class T, int n> using Register = typename RegisterOf<T, n>::Type;
template <class T, int n> using InMemory = typename RegisterOf<T, n>::InMemory;

template <class T> struct Vec {
    static constexpr int width = REGISTER / sizeof(T) < LANES ? REGISTER / sizeof(T) : LANES;
    static constexpr int parts = LANES / width;
    using Part = Register<T, width>;
    using BitPart = Register<typename Real<T>::Bits, width>;
    using MaskPart = Register<std::make_signed_t<typename Real<T>::Bits>, width>;
    using Anywhere = InMemory<T, width>;

    Part part[parts];

    Vec() = default;
    TIERRANK_INLINE Vec(T x) {
        for (int p = 0; p < parts; ++p) part[p] = Part{} + x;
    }

    TIERRANK_INLINE static Vec load(const T *from) {
        Vec v;
        for (int p = 0; p < parts; ++p) v.part[p] = reinterpret_cast<const Anywhere *>(from)[p];
        return v;
    }
    TIERRANK_INLINE void store(T *to) const {
        for (int p = 0; p < parts; ++p) reinterpret_cast<Anywhere *>(to)[p] = part[p];
    }

    TIERRANK_INLINE T operator[](int lane) const { return part[lane / width][lane % width]; }
    TIERRANK_INLINE void set(int lane, T x) { part[lane / width][lane % width] = x; }

    // one part after the other; the compiler unrolls it
    template <class F, class... V> TIERRANK_INLINE static Vec map(F f, const V &...v) {
        Vec out;
        for (int p = 0; p < parts; ++p) out.part[p] = f(v.part[p]...);
        return out;
    }

    TIERRANK_INLINE friend Vec operator+(Vec a, Vec b) { return map([](Part x, Part y) { return x + y; }, a, b); }
    TIERRANK_INLINE friend Vec operator-(Vec a, Vec b) { return map([](Part x, Part y) { return x - y; }, a, b); }
    TIERRANK_INLINE friend Vec operator*(Vec a, Vec b) { return map([](Part x, Part y) { return x * y; }, a, b); }
    TIERRANK_INLINE friend Vec operator/(Vec a, Vec b) { return map([](Part x, Part y) { return x / y; }, a, b); }
    TIERRANK_INLINE Vec operator-() const {
        return map([](Part x) { return -x; }, *this);
    }
    TIERRANK_INLINE Vec &operator+=(Vec b) { return *this = *this + b; }
    TIERRANK_INLINE Vec &operator-=(Vec b) { return *this = *this - b; }
    TIERRANK_INLINE Vec &operator*=(Vec b) { return *this = *this * b; }
};

// Comparisons give a mask, as the compiler does: all bits of a lane set, or none. It is signed, as the
// compiler's is: a choice by it then needs no comparison with 0, and min and max are one instruction.
template <class T> struct Mask {
    using V = Vec<T>;
    typename V::MaskPart part[V::parts];

    TIERRANK_INLINE friend Mask operator&(Mask a, Mask b) {
        for (int p = 0; p < V::parts; ++p) a.part[p] &= b.part[p];
        return a;
    }
    TIERRANK_INLINE bool all() const {
        typename V::MaskPart both = part[0];
        for (int p = 1; p < V::parts; ++p) both &= part[p];
        using Words = Register<std::uint64_t, sizeof(T) * V::width / 8>;
        const Words words = std::bit_cast<Words>(both);
        std::uint64_t yes = words[0];
        for (int i = 1; i < int(sizeof both) / 8; ++i) yes &= words[i];
        return yes == ~std::uint64_t(0);
    }
    TIERRANK_INLINE bool operator[](int lane) const { return part[lane / V::width][lane % V::width] != 0; }
};

template <class T> TIERRANK_INLINE Mask<T> operator<(Vec<T> a, Vec<T> b) {
    Mask<T> m;
    for (int p = 0; p < Vec<T>::parts; ++p) m.part[p] = a.part[p] < b.part[p];
    return m;
}
template <class T> TIERRANK_INLINE Mask<T> operator<=(Vec<T> a, Vec<T> b) {
    Mask<T> m;
    for (int p = 0; p < Vec<T>::parts; ++p) m.part[p] = a.part[p] <= b.part[p];
    return m;
}

template <class T> TIERRANK_INLINE Vec<T> select(Mask<T> m, Vec<T> yes, Vec<T> no) {
    Vec<T> out;
    for (int p = 0; p < Vec<T>::parts; ++p) out.part[p] = m.part[p] ? yes.part[p] : no.part[p];
    return out;
}
template <class T> TIERRANK_INLINE Vec<T> min(Vec<T> a, Vec<T> b) { return select(a < b, a, b); }
template <class T> TIERRANK_INLINE Vec<T> max(Vec<T> a, Vec<T> b) { return select(b < a, a, b); }
template <class T> TIERRANK_INLINE Vec<T> abs(Vec<T> v) { return max(v, -v); }

// a · b + c, in one instruction where there is one
template <class T> TIERRANK_INLINE Vec<T> fma(Vec<T> a, Vec<T> b, Vec<T> c) { return a * b + c; }

template <class T> TIERRANK_INLINE T sum(Vec<T> v) {
    auto all = v.part[0];
    for (int p = 1; p < Vec<T>::parts; ++p) all += v.part[p];
    T total = all[0];
    for (int i = 1; i < Vec<T>::width; ++i) total += all[i];
    return total;
}
template <class T> TIERRANK_INLINE T largest(Vec<T> v) {
    T most = v[0];
    for (int i = 1; i < LANES; ++i) most = v[i] > most ? v[i] : most;
    return most;
}

template <class To, class From> TIERRANK_INLINE Vec<To> convert(Vec<From> v) {
    if constexpr (std::is_same_v<To, From>) {
        return v;
    } else { // in pieces that are one register of either kind
        using Wide = std::conditional_t<(sizeof(To) > sizeof(From)), Vec<To>, Vec<From>>;
        constexpr int n = Wide::width;
        Vec<To> out;
        for (int i = 0; i < LANES / n; ++i)
            reinterpret_cast<InMemory<To, n> *>(&out)[i] = __builtin_convertvector(
                (reinterpret_cast<const InMemory<From, n> *>(&v)[i]), Register<To, n>);
        return out;
    }
}
template <class T> TIERRANK_INLINE Vec<double> wide(Vec<T> v) { return convert<double>(v); }

// Numbers by their bits ---------------------------------------------------------------------------

// 2^n of a whole number n to which `magic` was added: n stands in the low bits
template <class T> TIERRANK_INLINE Vec<T> power_of_two(Vec<T> shifted) {
    using R = Real<T>;
    Vec<T> out;
    for (int p = 0; p < Vec<T>::parts; ++p) {
        auto bits = std::bit_cast<typename Vec<T>::BitPart>(shifted.part[p]);
        out.part[p] = std::bit_cast<typename Vec<T>::Part>((bits + R::bias) << R::shift);
    }
    return out;
}

// x = mantissa · 2^exponent with a mantissa in [1, 2), for a positive normal x
template <class T> TIERRANK_INLINE Vec<T> mantissa(Vec<T> x) {
    using R = Real<T>;
    using B = typename R::Bits;
    constexpr B keep = (B(1) << R::shift) - 1, one = B(R::bias) << R::shift;
    Vec<T> out;
    for (int p = 0; p < Vec<T>::parts; ++p) {
        auto bits = std::bit_cast<typename Vec<T>::BitPart>(x.part[p]);
        out.part[p] = std::bit_cast<typename Vec<T>::Part>((bits & keep) | one);
    }
    return out;
}
template <class T> TIERRANK_INLINE Vec<T> exponent(Vec<T> x) {
    using R = Real<T>;
    Vec<T> out;
    const auto magic = std::bit_cast<typename R::Bits>(R::magic);
    for (int p = 0; p < Vec<T>::parts; ++p) {
        auto bits = std::bit_cast<typename Vec<T>::BitPart>(x.part[p]);
        auto whole = std::bit_cast<typename Vec<T>::Part>((bits >> R::shift) + magic);
        out.part[p] = whole - (R::magic + R::bias);
    }
    return out;
}

} // namespace tierrank::TIERRANK_SET
