"""Prints the coefficients used in src/loop/functions*.cpp; needs mpmath. Takes a few minutes.

The polynomials of log, and of exp inside tanh, in f32 come from fpminimax of Sollya, see f32.sollya. Those of tanh, erf
and log in f32 are where search.cpp starts.
"""
import sys

from mpmath import mp, mpf, asin, atan, cos, erf, erfc, exp, log, pi, sin, sqrt, tanh, taylor

from minimax import minimax, round_to, rounded, show

TINY = mpf(2) ** -40


def one(x):
    return mpf(1)


def series(f, order):
    """f near 0, where its closed form cancels: its Taylor series, by powers of x."""
    return taylor(f, 0, order)


def ratio(f, drop, step):
    """(f(s) - the terms below s^drop) / s^drop as a function of z = s^step, for odd or even f."""
    terms = series(f, 60)

    def g(z):
        s = z if step == 1 else sqrt(z)
        if abs(s) < mpf("0.05"):
            return sum(terms[k] * s ** (k - drop) for k in range(drop, 61))
        return (f(s) - sum(terms[k] * s**k for k in range(drop))) / s**drop

    return g


def fit(name, f, drop, step, count, lo, hi, weight):
    show(name, *rounded(ratio(f, drop, step), list(range(count)), lo, hi, weight, 53))


def main():
    mp.prec = 200
    ln2 = log(2)
    edge = ln2 / 2 + mpf(2) ** -20
    z_log = ((sqrt(2) - 1) / (sqrt(2) + 1)) ** 2 + mpf(2) ** -30
    z_trig = (pi / 4) ** 2 + mpf(2) ** -20
    z_atan = (sqrt(2) - 1) ** 2 + mpf(2) ** -30
    two_atanh = lambda s: log((1 + s) / (1 - s))
    fit("exp wide: from r^3", exp, 3, 1, 10, -edge, edge, one)
    fit("exp narrow: from r^2", exp, 2, 1, 7, -edge, edge, one)
    fit("log wide: from s^5", two_atanh, 5, 2, 8, TINY, z_log, lambda z: z)
    fit("log narrow: from s^3", two_atanh, 3, 2, 5, TINY, z_log, lambda z: z)
    fit("sin wide: from r^3", sin, 3, 2, 7, TINY, z_trig, lambda z: z)
    fit("cos wide: from r^4", cos, 4, 2, 7, TINY, z_trig, lambda z: z * z)
    fit("sin narrow: from r^3", sin, 3, 2, 5, TINY, z_trig, lambda z: z)
    fit("cos narrow: from r^2", cos, 2, 2, 6, TINY, z_trig, lambda z: z)
    fit("asin wide: from x^3", asin, 3, 2, 14, TINY, mpf("0.2501"), lambda z: z)
    fit("asin narrow: from x^3", asin, 3, 2, 8, TINY, mpf("0.2501"), lambda z: z)
    fit("atan wide: from t^3", atan, 3, 2, 12, TINY, z_atan, lambda z: z)
    fit("atan narrow: from t^3", atan, 3, 2, 7, TINY, z_atan, lambda z: z)
    fit("erf wide: from x^3", erf, 3, 2, 13, TINY, mpf(1), lambda z: z)
    erf_pieces()
    f32_fits()
    two_over_pi()


def erf_pieces():
    """erfc(c + t) for c = 1.125, 1.375 ... 5.875 and |t| <= 1/8."""
    for i in range(20):
        c = mpf(1) + mpf(2 * i + 1) / 8
        powers = list(range(12))
        fitted = rounded(lambda t: erfc(c + t), powers, -0.125, 0.125, one, 53)
        show(f"erfc at {float(c)}", *fitted)


def f32_fits():
    z0 = mpf(2) ** -30
    relative = lambda z: z * sqrt(z) / tanh(sqrt(z))
    show("tanh of f32: from x^3",
         *rounded(ratio(tanh, 3, 2), list(range(7)), z0, 0.9**2, relative, 24))
    slope = lambda z: erf(sqrt(z)) / sqrt(z) - 1
    show("erf of f32: erf(x)/x - 1", *rounded(slope, list(range(7)), z0, mpf(1), one, 24))
    # The error of 1 - p^2 is 2p times that of p.
    root = lambda t: sqrt(erfc(t + 1.25))
    twice = lambda t: 2 * root(t)
    nearest("erf of f32: sqrt(erfc(1.25 + t))", root, 11, -0.25, 3.925 - 1.25, twice)
    exp_f32()


def nearest(name, f, count, lo, hi, weight, points=None):
    """Each coefficient of the unrounded minimax polynomial rounded on its own, for where rounding matters little."""
    c, worst = minimax(f, list(range(count)), lo, hi, weight, points)
    show(name, [round_to(v, 24) for v in c], worst)


def exp_f32():
    """exp(r) = 1 + (r + r^2 q(r)). The roundings of r, of the inner sum and of the outer one come close to 1 ulp where
    r < -1/4, so the error of q counts 20 times there; it counts half where exp(r) > 1, whose ulp is twice as large."""
    edge = log(2) / 2 + mpf(2) ** -12

    def weight(r):
        ulp = mpf(2) ** (-24 if r < 0 else -23)
        return (r * r / ulp + mpf(2) ** -20) / (1 if r < -0.25 else 20)

    nearest("exp of f32: from r^2, errors in ulp", ratio(exp, 2, 1), 5, -edge, edge, weight, 300)


def two_over_pi():
    """For x = 2^(g w) X: 2^(g w) 2/pi less what only adds multiples of 4 to X 2/pi, in pieces."""
    for name, bits, width, groups, pieces in (("f64", 53, 32, 32, 4), ("f32", 24, 16, 8, 2)):
        mp.prec = 1600
        print(f"2/pi for {name}")
        for g in range(groups):
            rest = mpf(2) ** (g * width) * 2 / pi
            rest = rest % (mpf(2) ** (bits - 1 + 2))
            row = []
            for _ in range(pieces):
                row.append(float(rest))
                rest -= mpf(row[-1])
            print("  " + ", ".join(v.hex() for v in row))


if __name__ == "__main__":
    sys.exit(main())
