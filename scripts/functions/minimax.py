"""Minimax polynomials with rounded coefficients, as used in src/loop/functions*.cpp (needs mpmath).

minimax(f, powers, lo, hi, weight) finds c minimizing max |weight(x) (sum c[i] x^powers[i] - f(x))|
on [lo, hi] by Remez exchange; rounded(...) then rounds the coefficients to `bits` one after the
other, refitting the rest to what each rounding left behind.
"""
from mpmath import mp, mpf, matrix, lu_solve, cos, pi, frexp, ldexp, nint

mp.prec = 160


def round_to(value, bits):
    mantissa, exponent = frexp(value)
    return ldexp(nint(ldexp(mantissa, bits)), exponent - bits)


def minimax(f, powers, lo, hi, weight, points=None):
    n = len(powers)
    lo, hi = mpf(lo), mpf(hi)
    count = points or 30 * (n + 1)
    xs = [(lo + hi) / 2 - (hi - lo) / 2 * cos(pi * i / (count - 1)) for i in range(count)]
    fs = [f(x) for x in xs]
    ws = [weight(x) for x in xs]
    rows = [[x**p for p in powers] for x in xs]
    ref = [round(i * (count - 1) / n) for i in range(n + 1)]
    for _ in range(40):
        a = matrix(n + 1, n + 1)
        b = matrix(n + 1, 1)
        for i, k in enumerate(ref):
            for j in range(n):
                a[i, j] = rows[k][j]
            a[i, n] = (-1) ** i / ws[k]
            b[i] = fs[k]
        solution = lu_solve(a, b)
        c = [solution[j] for j in range(n)]
        level = abs(solution[n])
        errors = [ws[k] * (sum(c[j] * rows[k][j] for j in range(n)) - fs[k]) for k in range(count)]
        # One extremum from every run of equal sign; then drop the smallest from the ends.
        extrema = []
        for k, e in enumerate(errors):
            if extrema and (errors[extrema[-1]] > 0) == (e > 0):
                if abs(e) > abs(errors[extrema[-1]]):
                    extrema[-1] = k
            else:
                extrema.append(k)
        while len(extrema) > n + 1:
            extrema.pop(0 if abs(errors[extrema[0]]) < abs(errors[extrema[-1]]) else -1)
        worst = max(abs(e) for e in errors)
        if len(extrema) < n + 1 or worst < level * mpf("1.001"):
            break
        ref = extrema
    return c, worst


def rounded(f, powers, lo, hi, weight, bits):
    # Powers that all vanish inside the interval cannot be fitted: there the lowest go last.
    order = list(powers) if lo >= 0 or hi <= 0 else list(reversed(powers))
    chosen = {}
    for k, power in enumerate(order):
        rest = lambda x: f(x) - sum(v * x**p for p, v in chosen.items())
        free = sorted(order[k:])
        c, worst = minimax(rest, free, lo, hi, weight)
        chosen[power] = round_to(c[free.index(power)], bits)
    fixed = [chosen[p] for p in powers]
    count = 400
    lo, hi = mpf(lo), mpf(hi)
    worst = mpf(0)
    for i in range(count + 1):
        x = lo + (hi - lo) * i / count
        worst = max(worst, abs(weight(x) * (sum(v * x**p for v, p in zip(fixed, powers)) - f(x))))
    return fixed, worst


def show(name, coefficients, worst):
    text = ", ".join(float(c).hex().replace("0000000p", "p") for c in coefficients)
    print(f"{name}: error 2^{float(mp.log(worst, 2)):.2f}\n  {text}", flush=True)
