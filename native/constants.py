"""Makes constants.hpp: quadrature rules and the polynomial of weak items, to the last digit.

python native/constants.py > native/constants.hpp      (needs mpmath)
"""

from __future__ import annotations

from mpmath import mp, mpf

mp.dps = 60


def roots(polynomial, guesses):
    """Newton's method from float64 guesses; `polynomial(x)` gives value and derivative."""
    found = []
    for x in map(mpf, guesses):
        for _ in range(8):
            value, slope = polynomial(x)
            x -= value / slope
        found.append(x)
    return found


def hermite(count):
    """Nodes u, c = w e^(u²/2) and c h_(K−1), … c h_(K−3): w sums to 1, h are orthonormal."""
    import numpy as np

    def table(u):
        h = [mpf(1), u]
        for j in range(1, count):
            h.append((u * h[j] - mp.sqrt(j) * h[j - 1]) / mp.sqrt(j + 1))
        return h

    def polynomial(u):
        h = table(u)
        return h[count], mp.sqrt(count) * h[count - 1]

    nodes = roots(polynomial, np.polynomial.hermite_e.hermegauss(count)[0])
    rows = []
    for u in nodes:
        h = table(u)
        c = mp.exp(u * u / 2) / (count * h[count - 1] ** 2)
        rows.append((u, c, *(c * h[count - k] for k in (1, 2, 3))))
    return [list(column) for column in zip(*rows, strict=True)]


def legendre(count):
    """Nodes on [−1, 1] and their weights."""
    import numpy as np

    def polynomial(x):
        before, here = mpf(1), x
        for k in range(2, count + 1):
            before, here = here, ((2 * k - 1) * x * here - (k - 1) * before) / k
        return here, count * (x * here - before) / (x * x - 1)

    nodes = roots(polynomial, np.polynomial.legendre.leggauss(count)[0])
    return [nodes, [2 / ((1 - x * x) * polynomial(x)[1] ** 2) for x in nodes]]


def weak(reach, degree):
    """P of log((1 − e^−z)/z) = −z/2 + P(z²) for z ≤ reach: coefficients of z², z⁴, …"""

    def function(v):
        half = mp.sqrt(v) / 2
        return mp.log(mp.sinh(half) / half) / v

    top = mpf(reach) ** 2
    points = [top * (mp.cos(mp.pi * (k + mpf(1) / 2) / degree) + 1) / 2 for k in range(degree)]
    matrix, right = mp.matrix(degree, degree), mp.matrix(degree, 1)
    for i, v in enumerate(points):
        right[i] = function(v)
        for j in range(degree):
            matrix[i, j] = v**j
    return list(mp.lu_solve(matrix, right))


def write(name, numbers, comment=""):
    print(f"inline constexpr double {name}[{len(numbers)}] = {{{comment}")
    line = "   "
    for number in numbers:
        word = f" {float(number)!r},"
        if len(line) + len(word) > 99:
            print(line)
            line = "   "
        line += word
    print(line + "\n};")


print("// Made by constants.py; what the numbers are is said there and in integral.hpp.")
print("#pragma once\n\nnamespace tierrank {\n")
write("WEAK_FLOAT", weak(4, 7))
write("WEAK_DOUBLE", weak(5, 18))
for count in (8, 16, 24, 48):
    names = ("NODES", "WEIGHTS", "LAST", "LAST_BUT_ONE", "LAST_BUT_TWO")
    for what, numbers in zip(names, hermite(count), strict=True):
        write(f"HERMITE_{count}_{what}", numbers)
for count in (24, 48, 96):
    for what, numbers in zip(("NODES", "WEIGHTS"), legendre(count), strict=True):
        write(f"LEGENDRE_{count}_{what}", numbers)
print("\n} // namespace tierrank")
