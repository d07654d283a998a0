// Decimal numbers in bytes, read to the last bit as Python's `float` reads them.
//
// A number is w · 10^q with a whole w. If w < 2^53 and |q| ≤ 22 then both w and 10^|q| are doubles,
// and one product or quotient rounds once (Clinger). Else a product of w with 128 bits of 5^q tells
// the nearest double, except in rare cases (Lemire, "Number parsing at a gigabyte per second", 2021).
// Those, and what lies outside the range of normal doubles, are left to Python's `float`.
// (std::from_chars would read all of them, but not every standard library has it for doubles.)
#pragma once

#include <array>
#include <bit>
#include <limits>

#include "text.hpp"

namespace tierrank::text {

// Powers of five ----------------------------------------------------------------------------------

inline constexpr int SMALLEST_POWER = -342, LARGEST_POWER = 308;

struct Power { // the leading 128 bits of 5^q
    std::uint64_t high, low;
};
using Powers = std::array<Power, LARGEST_POWER - SMALLEST_POWER + 1>;

// A large whole number, by its 32-bit digits, the lowest first.
template <int digits> struct Large {
    std::array<std::uint32_t, digits> digit{};

    void multiply(std::uint32_t by) {
        std::uint64_t carry = 0;
        for (auto &d : digit) d = std::uint32_t(carry += std::uint64_t(d) * by), carry >>= 32;
    }
    void divide(std::uint32_t by) { // rounded down
        std::uint64_t rest = 0;
        for (int i = digits; i-- > 0;) {
            rest = rest << 32 | digit[i];
            digit[i] = std::uint32_t(rest / by);
            rest %= by;
        }
    }
    // the leading 128 bits: of the five highest digits, with zeros below the last
    Power leading() const {
        int top = digits - 1;
        while (digit[top] == 0) --top;
        const auto at = [&](int i) { return i < 0 ? std::uint64_t(0) : std::uint64_t(digit[i]); };
        const int zeros = std::countl_zero(digit[top]);
        const auto pair = [&](int i) { // 64 bits, shifted so that the highest bit is set
            const std::uint64_t both = at(i) << 32 | at(i - 1);
            return zeros ? both << zeros | at(i - 2) >> (32 - zeros) : both;
        };
        return {pair(top), pair(top - 2)};
    }
};

// Cut off for positive q, and where 5^−q does not fit 64 bits; rounded up for q = −1 … −27.
inline const Powers &powers_of_five() {
    static const Powers table = [] {
        Powers made;
        Large<24> power; // 5^308 has 716 bits
        power.digit[0] = 1;
        for (int q = 0; q <= LARGEST_POWER; ++q, power.multiply(5))
            made[q - SMALLEST_POWER] = power.leading();
        Large<32> inverse; // ⌊2^1023 / 5^−q⌋ has 229 bits or more, and 128 are taken
        inverse.digit[31] = std::uint32_t(1) << 31;
        for (int q = -1; q >= SMALLEST_POWER; --q) {
            inverse.divide(5);
            Power &here = made[q - SMALLEST_POWER] = inverse.leading();
            if (q >= -27 && ++here.low == 0) ++here.high;
        }
        return made;
    }();
    return table;
}

// The nearest double ------------------------------------------------------------------------------

struct Nearest {
    double value;
    bool sure;
};

// The double next to w · 10^q, w > 0, and whether it is sure to be; by Lemire's algorithm.
inline Nearest nearest(std::uint64_t w, std::int64_t q, const Powers &powers) {
    constexpr Nearest unsure{0.0, false};
    if (q < SMALLEST_POWER || q > LARGEST_POWER) return unsure;
    const int zeros = std::countl_zero(w);
    w <<= zeros;
    using Wide = unsigned __int128;
    const Power &power = powers[std::size_t(q - SMALLEST_POWER)];
    const Wide product = Wide(w) * power.high;
    std::uint64_t high = std::uint64_t(product >> 64), low = std::uint64_t(product);
    if ((high & 0x1FF) == 0x1FF) { // what the low half of the power adds may carry
        const std::uint64_t more = std::uint64_t(Wide(w) * power.low >> 64);
        low += more;
        if (low < more) ++high;
        if (low == ~std::uint64_t(0) && (q < -27 || q > 55)) return unsure;
    }
    const int upper = int(high >> 63), shift = upper + 9;
    std::uint64_t mantissa = high >> shift;
    // ⌊q log2 10⌋ = (217706 q) >> 16 in this range
    std::int64_t exponent = ((217706 * q) >> 16) + 63 + upper - zeros + 1023;
    if (exponent <= 0) return unsure;
    const bool halfway = low <= 1 && q >= -4 && q <= 23 && (mantissa & 3) == 1;
    if (halfway && mantissa << shift == high) mantissa &= ~std::uint64_t(1); // to even
    mantissa = (mantissa + (mantissa & 1)) >> 1;
    if (mantissa >= std::uint64_t(1) << 53) {
        mantissa = std::uint64_t(1) << 52;
        ++exponent;
    }
    if (exponent >= 0x7FF) return unsure;
    mantissa &= ~(std::uint64_t(1) << 52);
    return {std::bit_cast<double>(mantissa | std::uint64_t(exponent) << 52), true};
}

// Numbers as they are written ---------------------------------------------------------------------

enum class Kind { number, missing, for_python, no_number };

struct Number {
    double value;
    Kind kind;
    const Byte *end;
};

inline constexpr int MOST_DIGITS = 19; // that surely fit 64 bits
inline constexpr double EXACT_POWERS[23] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
};

struct Leading {
    std::uint64_t w = 0;
    std::int64_t power = 0;
    int kept = 0;
};

// The first 19 digits that count, of more, and the power of ten that goes with them.
inline Leading leading_digits(const Byte *at) {
    Leading found;
    for (bool after_point = false;; ++at) {
        if (*at == '.') {
            after_point = true;
        } else if (!is_digit(*at)) {
            return found;
        } else if (found.kept < MOST_DIGITS) {
            found.w = found.w * 10 + (*at - '0');
            found.kept += found.w > 0;
            found.power -= after_point;
        } else {
            found.power += !after_point;
        }
    }
}

// Whether small letters stand at a place, in either case; a newline is none.
inline bool matches(const Byte *at, const char *word) {
    for (; *word; ++at, ++word)
        if ((*at | 32) != Byte(*word)) return false;
    return true;
}

// NULL, NaN, inf and infinity, in any case
inline Number word_value(const Byte *at, bool negative) {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    constexpr double inf = std::numeric_limits<double>::infinity();
    if (matches(at, "null")) return {nan, Kind::missing, at + 4};
    if (matches(at, "nan")) return {nan, Kind::missing, at + 3};
    if (!matches(at, "inf")) return {0.0, Kind::no_number, at};
    at += matches(at + 3, "inity") ? 8 : 3;
    return {negative ? -inf : inf, Kind::number, at};
}

// The number at a place of a text that ends with a newline. It must end where its token does.
inline Number number(const Byte *at, const Powers &powers) {
    const bool negative = *at == '-';
    if (negative || *at == '+') ++at;
    const Byte *const first = at;
    std::uint64_t w = 0;
    for (; is_digit(*at); ++at) w = w * 10 + (*at - '0');
    std::int64_t digits = at - first, q = 0;
    if (*at == '.') {
        const Byte *const point = ++at;
        for (; is_digit(*at); ++at) w = w * 10 + (*at - '0');
        q = point - at;
        digits -= q;
    }
    if (digits == 0) {
        Number found = word_value(first, negative);
        if (!ends_token(*found.end)) found.kind = Kind::no_number;
        return found;
    }
    bool cut = false;
    if (digits > MOST_DIGITS) {
        const Leading leading = leading_digits(first);
        w = leading.w;
        q = leading.power;
        cut = leading.kept == MOST_DIGITS;
    }
    if ((*at | 32) == 'e') {
        ++at;
        const bool minus = *at == '-';
        if (minus || *at == '+') ++at;
        if (!is_digit(*at)) return {0.0, Kind::no_number, at};
        std::int64_t power = 0;
        for (; is_digit(*at); ++at)
            if (power < 1'000'000'000'000'000) power = power * 10 + (*at - '0');
        q += minus ? -power : power;
    }
    if (!ends_token(*at)) return {0.0, Kind::no_number, at};
    Nearest found{0.0, true};
    if (w == 0) {
        // 0, whatever the power
    } else if (w < std::uint64_t(1) << 53 && q >= -22 && q <= 22 && !cut) {
        found.value = double(std::int64_t(w));
        if (q < 0)
            found.value /= EXACT_POWERS[-q];
        else
            found.value *= EXACT_POWERS[q];
    } else {
        found = nearest(w, q, powers);
        if (cut && found.sure) { // the digits left out are more than 0 and less than 1
            const Nearest above = nearest(w + 1, q, powers);
            found.sure = above.sure && above.value == found.value;
        }
    }
    return {negative ? -found.value : found.value, found.sure ? Kind::number : Kind::for_python, at};
}

} // namespace tierrank::text
