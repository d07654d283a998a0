"""Elementary functions that LLVM can vectorise, for the compiled kernels.

Numba calls libm for `exp` and `log`, one number at a time. Written as arithmetic, without a
branch or a call, the same functions run 4 or 8 numbers at a time on any CPU.

What runs once a node and item exists in float32 and float64, chosen by the argument: float32 is
twice as fast, being half as wide. The rest is in float64.

Flags: `reassoc` lets LLVM vectorise sums, but would also let it turn (1 − s) − s·p into
1 − (s + s·p), which loses every digit of a small 1 − e^−z. So it is on for sums only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic, overload, register_jitable

from tierrank.compilation import compiled, digest

HERE = Path(__file__).parent
SOURCES = digest([*HERE.glob("*.py"), HERE.parent / "quadrature.py"])

ELEMENTWISE = {"contract", "nsz"}
OPTIONS: Any = {"error_model": "numpy", "fastmath": ELEMENTWISE}

LOG2E = 1.4426950408889634
LN2 = 0.6931471805599453


def jit(*, sums: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Compile without the GIL and without checks for division by zero, which block vectorising."""
    flags = ELEMENTWISE | ({"reassoc"} if sums else set())
    return partial(compiled, sources=SOURCES, nogil=True, error_model="numpy", fastmath=flags)


def _bitcast(from_type: Any, to_type: Any) -> Any:
    @intrinsic
    def bitcast(context, value):
        def generate(context, builder, signature, arguments):
            return builder.bitcast(arguments[0], context.get_value_type(to_type))

        return to_type(from_type), generate

    return bitcast


# What the two kinds of float are made of, and e^f − 1 for |f| ≤ ln(2)/2: a polynomial in f, from
# its highest power down (Chebyshev fits; relative errors of 2e-18 and 1.2e-8 before rounding).


def _float64_expm1(f):
    p = 2.0918129537789706e-09
    p = p * f + 2.5110037721946562e-08
    p = p * f + 2.7557263301250924e-07
    p = p * f + 2.7557240918265525e-06
    p = p * f + 2.480158733642153e-05
    p = p * f + 0.00019841269890047406
    p = p * f + 0.0013888888888879082
    p = p * f + 0.008333333333319601
    p = p * f + 0.04166666666666668
    p = p * f + 0.1666666666666668
    p = p * f + 0.5
    p = p * f + 1.0
    return p * f


def _float32_expm1(f):
    p = np.float32(0.0013933641121625462)
    p = p * f + np.float32(0.008369148562621179)
    p = p * f + np.float32(0.04166646500523263)
    p = p * f + np.float32(0.16666505259761719)
    p = p * f + np.float32(0.5000000013457808)
    p = p * f + np.float32(1.000000010771635)
    return p * f


FLOAT64 = SimpleNamespace(
    real=np.float64, integer=np.int64, shift=52, bias=1023, most=700.0,
    bits_of=_bitcast(types.float64, types.int64), from_bits=_bitcast(types.int64, types.float64),
    expm1=register_jitable(**OPTIONS)(_float64_expm1),
)  # fmt: skip
FLOAT32 = SimpleNamespace(
    real=np.float32, integer=np.int32, shift=23, bias=127, most=80.0,
    bits_of=_bitcast(types.float32, types.int32), from_bits=_bitcast(types.int32, types.float32),
    expm1=register_jitable(**OPTIONS)(_float32_expm1),
)  # fmt: skip


float64_bits = FLOAT64.bits_of


def for_both(declared: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """Overload a function of one float by what a maker makes of that kind of float."""

    def register(maker: Callable[[SimpleNamespace], Any]) -> Callable[[SimpleNamespace], Any]:
        @overload(declared, jit_options=OPTIONS)
        def choose(x):
            return maker(FLOAT32 if x == types.float32 else FLOAT64)

        return maker

    return register


def power_of_two(x):
    """2^x for a whole number x held in a float."""
    raise NotImplementedError("for compiled code")


@for_both(power_of_two)
def _power_of_two(kind):
    from_bits, integer = kind.from_bits, kind.integer
    bias, shift = integer(kind.bias), integer(kind.shift)

    def implementation(x):
        # through int32, because AVX2 cannot turn doubles into int64
        return from_bits((integer(np.int32(x)) + bias) << shift)

    return implementation


def exp(x):
    """e^x, with x held in ±700 (float64) or ±80 (float32)."""
    raise NotImplementedError("for compiled code")


@for_both(exp)
def _exp(kind):
    expm1, most, half = kind.expm1, kind.real(kind.most), kind.real(0.5)
    log2e, ln2 = kind.real(LOG2E), kind.real(LN2)

    def implementation(x):
        x = min(max(x, -most), most)
        exponent = np.floor(x * log2e + half)
        scale = power_of_two(exponent)
        return scale * expm1(x - exponent * ln2) + scale

    return implementation


def decay(x):
    """(t, q, r) = (e^−x, 1 − e^−x, x / (e^x − 1)) for x ≥ 0, each relative to its own size."""
    raise NotImplementedError("for compiled code")


@for_both(decay)
def _decay(kind):
    expm1, most, half, one = kind.expm1, kind.real(kind.most), kind.real(0.5), kind.real(1.0)
    log2e, ln2 = kind.real(LOG2E), kind.real(LN2)

    def implementation(x):
        x = min(x, most)
        exponent = np.floor(half - x * log2e)
        p = expm1(-x - exponent * ln2)
        scale = power_of_two(exponent)
        t = scale * p + scale
        q = (one - scale) - scale * p
        return t, q, x * t / q

    return implementation


def slopes(x):
    """(log q, r, dr/dlog x) with q and r as in `decay`; the logarithm is rough."""
    raise NotImplementedError("for compiled code")


@for_both(slopes)
def _slopes(kind):
    most, one = kind.real(kind.most), kind.real(1.0)

    def implementation(x):
        x = min(x, most)
        _, q, r = decay(x)
        return rough_log(q), r, r * (one - x - r)

    return implementation


def lost(t, q):
    """What rounding took from q = 1 − t, to first order in log q; 0 where q has its own digits.

    One rounding is nothing, but ten thousand equal items make the same one.
    """
    raise NotImplementedError("for compiled code")


@overload(lost, jit_options=OPTIONS)
def _lost(t, q):
    real = np.float32 if t == types.float32 else np.float64
    half, one, zero = real(0.5), real(1.0), real(0.0)

    def implementation(t, q):
        return (one - q) - t if t < half else zero

    return implementation


def renormalise(x):
    """(mantissa in [1, 2), exponent) of a positive normal number."""
    raise NotImplementedError("for compiled code")


@for_both(renormalise)
def _renormalise(kind):
    bits_of, from_bits, integer = kind.bits_of, kind.from_bits, kind.integer
    bias, shift = integer(kind.bias), integer(kind.shift)
    mantissa = integer((1 << kind.shift) - 1)
    exponent_of_one = integer(kind.bias << kind.shift)

    def implementation(x):
        bits = bits_of(x)
        return from_bits((bits & mantissa) | exponent_of_one), (bits >> shift) - bias

    return implementation


def whole_numbers(x, count):
    """An array of integers as wide as a float of x's kind, so that both fill a vector alike."""
    raise NotImplementedError("for compiled code")


@overload(whole_numbers)
def _whole_numbers(x, count):
    integer = FLOAT32.integer if x == types.float32 else FLOAT64.integer
    return lambda x, count: np.empty(count, integer)


def rough_log(x):
    """log x of a positive normal number, to 1e-7: for searches."""
    raise NotImplementedError("for compiled code")


@for_both(rough_log)
def _rough_log(kind):
    real = kind.real
    half, one, two, ln2, root = real(0.5), real(1.0), real(2.0), real(LN2), real(2.0**0.5)
    third, fifth, seventh = real(1 / 3), real(1 / 5), real(1 / 7)

    def implementation(x):
        m, exponent = renormalise(x)
        above = m > root
        m = half * m if above else m
        e = real(np.int32(exponent))
        e = e + one if above else e
        s = (m - one) / (m + one)
        t = s * s
        return e * ln2 + two * s * (one + t * (third + t * (fifth + t * seventh)))

    return implementation


@jit()
def is_finite(x):
    """Whether a float64 is a number: by its bits, which no flag of the compiler can doubt."""
    return (float64_bits(x) & 0x7FF0000000000000) != 0x7FF0000000000000


@jit()
def log(x):
    """log x in float64 for a positive normal x, to 2 ulp, by atanh of (m − 1)/(m + 1)."""
    m, exponent = renormalise(x)
    above = m > 1.4142135623730951
    m = 0.5 * m if above else m
    e = np.float64(np.int32(exponent))
    e = e + 1.0 if above else e
    s = (m - 1.0) / (m + 1.0)
    t = s * s
    p = 1.0 / 21.0
    p = p * t + 1.0 / 19.0
    p = p * t + 1.0 / 17.0
    p = p * t + 1.0 / 15.0
    p = p * t + 1.0 / 13.0
    p = p * t + 1.0 / 11.0
    p = p * t + 1.0 / 9.0
    p = p * t + 1.0 / 7.0
    p = p * t + 1.0 / 5.0
    p = p * t + 1.0 / 3.0
    return e * LN2 + 2.0 * (s + s * t * p)
