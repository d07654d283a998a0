"""Elementary functions that LLVM can vectorise, for the compiled kernels.

Numba calls libm for `exp` and `log`, one number at a time. Written as arithmetic, without a
branch or a call, the same functions run 4 or 8 numbers at a time on any CPU.

Flags: `reassoc` lets LLVM vectorise sums, but would also let it turn (1 − s) − s·p into
1 − (s + s·p), which loses every digit of a small 1 − e^−z. So it is on for sums only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic, overload

from tierrank.compilation import compiled

LOG2E = 1.4426950408889634
LN2 = 0.6931471805599453

EXPONENT = 0x7FF0000000000000
MANTISSA = 0x000FFFFFFFFFFFFF
ONE = 0x3FF0000000000000

ELEMENTWISE = {"contract", "nsz"}


def jit(*, sums: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Compile without the GIL and without checks for division by zero, which block vectorising."""
    flags = ELEMENTWISE | ({"reassoc"} if sums else set())
    return partial(compiled, nogil=True, error_model="numpy", fastmath=flags)


@intrinsic
def bits_of(context, x):
    """The 64 bits of a double as an integer."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(types.int64))

    return types.int64(types.float64), generate


@intrinsic
def from_bits(context, x):
    """The double that has these 64 bits."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(types.float64))

    return types.float64(types.int64), generate


@jit()
def is_finite(x):
    return (bits_of(x) & EXPONENT) != EXPONENT


@jit()
def power_of_two(exponent):
    # through int32, because AVX2 cannot turn doubles into int64
    return from_bits((np.int64(np.int32(exponent)) + 1023) << 52)


@jit()
def expm1_reduced(f):
    """e^f − 1 for |f| ≤ ln(2)/2, relative error 2e-18 before rounding (Chebyshev, degree 12)."""
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


@jit()
def expm1_reduced_single(f):
    """The same for float32 results: degree 6, relative error 1.2e-8."""
    p = 0.0013933641121625462
    p = p * f + 0.008369148562621179
    p = p * f + 0.04166646500523263
    p = p * f + 0.16666505259761719
    p = p * f + 0.5000000013457808
    p = p * f + 1.000000010771635
    return p * f


@jit()
def exp(x):
    """e^x, with x held in [−700, 700]."""
    x = min(max(x, -700.0), 700.0)
    exponent = np.floor(x * LOG2E + 0.5)
    scale = power_of_two(exponent)
    return scale * expm1_reduced(x - exponent * LN2) + scale


def decay(z, like):
    """(e^−z, 1 − e^−z) for z ≥ 0, each relative to its own size; as exact as `like`'s dtype."""
    raise NotImplementedError("compiled code only")


@overload(decay, jit_options={"fastmath": ELEMENTWISE, "error_model": "numpy"})
def _decay(z, like):
    expm1 = expm1_reduced_single if like.dtype == types.float32 else expm1_reduced

    def implementation(z, like):
        z = min(z, 700.0)
        exponent = np.floor(0.5 - z * LOG2E)
        p = expm1(-z - exponent * LN2)
        scale = power_of_two(exponent)
        return scale * p + scale, (1.0 - scale) - scale * p

    return implementation


@jit()
def log(x):
    """log x for a positive normal x, to 2 ulp, by atanh of (m − 1)/(m + 1)."""
    bits = bits_of(x)
    exponent = np.float64(np.int32(bits >> 52) - 1023)
    m = from_bits((bits & MANTISSA) | ONE)
    half = m > 1.4142135623730951
    m = 0.5 * m if half else m
    exponent = exponent + 1.0 if half else exponent
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
    return exponent * LN2 + 2.0 * (s + s * t * p)


@jit()
def rough_log(x):
    """log x to 1e-7, for searches."""
    bits = bits_of(x)
    exponent = np.float64(np.int32(bits >> 52) - 1023)
    m = from_bits((bits & MANTISSA) | ONE)
    half = m > 1.4142135623730951
    m = 0.5 * m if half else m
    exponent = exponent + 1.0 if half else exponent
    s = (m - 1.0) / (m + 1.0)
    t = s * s
    return exponent * LN2 + 2.0 * s * (1.0 + t * (1.0 / 3.0 + t * (0.2 + t * (1.0 / 7.0))))
