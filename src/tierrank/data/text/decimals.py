"""Decimal numbers in bytes, read to the last bit as Python's `float` reads them; for numba.

A number is w · 10^q with a whole w. If w < 2^53 and |q| ≤ 22 then both w and 10^|q| are floats,
and one product or quotient rounds once (Clinger). Else a product of w with 128 bits of 5^q tells
the nearest float, except in rare cases (Lemire, "Number parsing at a gigabyte per second", 2021).
Those, and what lies outside the range of normal floats, are left to Python's `float`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba.extending import register_jitable

U = np.uint64
OPTIONS: Any = {"error_model": "numpy", "forceinline": True}

SMALLEST_POWER, LARGEST_POWER = -342, 308
MOST_DIGITS = 19  # that surely fit 64 bits
EXACT_POWERS = tuple(10.0**q for q in range(23))

NUMBER, MISSING, FOR_PYTHON, NO_NUMBER = 0, 1, 2, 3
NULL, NAN, INF, INFINITY = (np.frombuffer(s, np.uint8) for s in (b"null", b"nan", b"inf", b"inity"))


@cache
def powers_of_five() -> np.ndarray[Any, np.dtype[np.uint64]]:
    """[powers, 2] the leading 128 bits of 5^q, high and low, q = −342 … 308.

    Cut off for positive q; rounded up for negative ones, of which none is exact.
    """
    table = np.empty((LARGEST_POWER - SMALLEST_POWER + 1, 2), dtype=np.uint64)
    for row, q in enumerate(range(SMALLEST_POWER, LARGEST_POWER + 1)):
        power = 5 ** abs(q)
        if q < 0:
            bits = (power - 1).bit_length()  # 2^bits ≥ power
            bits = bits + 127 if q >= -27 else 2 * bits + 128
            leading = 2**bits // power + 1
        else:
            leading = power << 128
        leading >>= leading.bit_length() - 128
        table[row] = leading >> 64, leading & (2**64 - 1)
    return table


@register_jitable(**OPTIONS)
def is_digit(byte):
    return byte >= 48 and byte <= 57


@register_jitable(**OPTIONS)
def ends_token(byte):
    """Blanks, the end of the line, and the # of a comment."""
    return byte == 32 or (byte >= 9 and byte <= 13) or byte == 35


@register_jitable(**OPTIONS)
def product(a, b):
    """High and low 64 bits of a · b."""
    half = U(32)
    low = U(0xFFFFFFFF)
    a0, a1, b0, b1 = a & low, a >> half, b & low, b >> half
    bottom = a0 * b0
    middle = a1 * b0 + (bottom >> half)
    other = a0 * b1 + (middle & low)
    return a1 * b1 + (middle >> half) + (other >> half), (other << half) | (bottom & low)


@register_jitable(error_model="numpy")
def nearest(w, q, powers):
    """The float next to w · 10^q, w > 0, and whether it is sure to be; by Lemire's algorithm."""
    if q < SMALLEST_POWER or q > LARGEST_POWER:
        return 0.0, False
    zeros = 0
    for bits in (32, 16, 8, 4, 2, 1):
        if w >> U(64 - bits) == U(0):
            w <<= U(bits)
            zeros += bits
    row = q - SMALLEST_POWER
    high, low = product(w, powers[row, 0])
    if high & U(0x1FF) == U(0x1FF):  # what the low half of the power adds may carry
        more, _ = product(w, powers[row, 1])
        low += more
        if low < more:
            high += U(1)
        if low == U(0xFFFFFFFFFFFFFFFF) and (q < -27 or q > 55):
            return 0.0, False
    upper = high >> U(63)
    shift = upper + U(9)
    mantissa = high >> shift
    exponent = ((217706 * q) >> 16) + 63 + np.int64(upper) - zeros + 1023
    if exponent <= 0:
        return 0.0, False
    halfway = low <= U(1) and q >= -4 and q <= 23 and mantissa & U(3) == U(1)
    if halfway and mantissa << shift == high:
        mantissa &= ~U(1)  # to even
    mantissa = (mantissa + (mantissa & U(1))) >> U(1)
    if mantissa >= U(1) << U(53):
        mantissa = U(1) << U(52)
        exponent += 1
    if exponent >= 0x7FF:
        return 0.0, False
    bits = np.uint64((mantissa & ~(U(1) << U(52))) | (U(exponent) << U(52)))
    return bits.view(np.float64), True


@register_jitable(error_model="numpy")
def leading_digits(text, at):
    """The first 19 digits that count, of more, and the power of ten that goes with them."""
    w = U(0)
    kept = 0
    power = 0
    after_point = False
    while True:
        byte = text[at]
        if byte == 46:
            after_point = True
        elif is_digit(byte):
            if kept < MOST_DIGITS:
                w = w * U(10) + (U(byte) - U(48))
                if w > U(0):
                    kept += 1
                power -= after_point
            else:
                power += not after_point
        else:
            return w, power, kept
        at += 1


@register_jitable(error_model="numpy")
def matches(text, at, word):
    """Whether letters stand at a place, in either case."""
    for letter in word:
        if text[at] | 32 != letter:
            return False  # at the newline that ends the text, if not before
        at += 1
    return True


@register_jitable(error_model="numpy")
def word_value(text, at, negative):
    """NULL, NaN, inf and infinity, in any case: value, what it is, end."""
    if matches(text, at, NULL):
        return np.nan, MISSING, at + 4
    if matches(text, at, NAN):
        return np.nan, MISSING, at + 3
    if matches(text, at, INF):
        at += 3
        if matches(text, at, INFINITY):
            at += 5
        return -np.inf if negative else np.inf, NUMBER, at
    return 0.0, NO_NUMBER, at


@register_jitable(**OPTIONS)
def number(text, at, powers):
    """Read the number at a place of a text that ends with a newline.

    Returns
    -------
    value, what it is (NUMBER, MISSING, FOR_PYTHON or NO_NUMBER), where it ends
    """
    negative = text[at] == 45
    if negative or text[at] == 43:
        at += 1
    first = at
    w = U(0)
    while is_digit(text[at]):
        w = w * U(10) + (U(text[at]) - U(48))
        at += 1
    digits = at - first
    q = 0
    if text[at] == 46:
        at += 1
        point = at
        while is_digit(text[at]):
            w = w * U(10) + (U(text[at]) - U(48))
            at += 1
        q = point - at
        digits -= q
    if digits == 0:
        value, kind, at = word_value(text, first, negative)
        return value, kind if ends_token(text[at]) else NO_NUMBER, at
    cut = False
    if digits > MOST_DIGITS:
        w, q, kept = leading_digits(text, first)
        cut = kept == MOST_DIGITS
    if text[at] | 32 == 101:
        at += 1
        minus = text[at] == 45
        if minus or text[at] == 43:
            at += 1
        if not is_digit(text[at]):
            return 0.0, NO_NUMBER, at
        power = 0
        while is_digit(text[at]):
            if power < 10**15:
                power = power * 10 + (np.int64(text[at]) - 48)
            at += 1
        q += -power if minus else power
    if not ends_token(text[at]):
        return 0.0, NO_NUMBER, at
    sure = True
    if w == U(0):
        value = 0.0
    elif w < U(1) << U(53) and q >= -22 and q <= 22 and not cut:
        value = np.float64(np.int64(w))
        if q < 0:
            value /= EXACT_POWERS[-q]
        else:
            value *= EXACT_POWERS[q]
    else:
        value, sure = nearest(w, q, powers)
        if cut and sure:  # the digits left out are more than 0 and less than 1
            above, sure = nearest(w + U(1), q, powers)
            sure = sure and above == value
    return -value if negative else value, NUMBER if sure else FOR_PYTHON, at
