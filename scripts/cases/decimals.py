"""Exact elementary functions of one number, from decimals of 60 digits or more."""

from decimal import Decimal, localcontext

from cases.numerics import exp_exact, INF, NAN, PI

TINY = Decimal("1e-9")  # below this the series below are exact to 60 digits


def series(d, *coefficients):
    """d·(c0 + c1·d + c2·d² …) with coefficients as (numerator, denominator)."""
    total, power = Decimal(0), d
    for above, below in coefficients:
        total += power * above / below
        power *= d
    return total


def expm1_decimal(d):
    return series(d, (1, 1), (1, 2), (1, 6), (1, 24), (1, 120), (1, 720)) if abs(d) < TINY else d.exp() - 1


def log1p_decimal(d):
    return series(d, (1, 1), (-1, 2), (1, 3), (-1, 4), (1, 5), (-1, 6)) if abs(d) < TINY else (1 + d).ln()


def expm1_exact(x):
    if abs(x) > 800 or x == 0:
        return x if x == 0 else INF if x > 0 else -1.0
    return float(expm1_decimal(Decimal(x)))


def log1p_exact(x):
    if x <= -1 or x == INF or x == 0:
        return NAN if x < -1 else -INF if x == -1 else x
    return float(log1p_decimal(Decimal(x)))


def exp2_exact(x):
    if abs(x) > 2000:
        return INF if x > 0 else 0.0
    return float(Decimal(2) ** Decimal(x))


def log2_exact(x):
    if x <= 0 or x == INF:
        return NAN if x < 0 else -INF if x == 0 else INF
    return float(Decimal(x).ln() / Decimal(2).ln())


def pi_decimal():
    """To the precision of the context, by Machin's formula."""
    def arccot(n):
        term, total, k, sign = Decimal(1) / n, Decimal(0), 1, 1
        while term > Decimal(10) ** -(digits + 5):
            total += sign * term / k
            term /= n * n
            k, sign = k + 2, -sign
        return total
    with localcontext() as context:
        digits = context.prec
        context.prec += 10
        return 4 * (4 * arccot(5) - arccot(239))


def sin_cos(x):
    """Both, of a finite number of any size."""
    d = Decimal(x)
    with localcontext() as context:
        context.prec = 60 + max(0, d.adjusted())
        half_pi = pi_decimal() / 2
        turns = (d / half_pi).to_integral_value()
        rest = d - turns * half_pi
        context.prec = 60
        rest = +rest
        sine, cosine, term, n = Decimal(0), Decimal(0), Decimal(1), 0
        while n < 60:
            sign = -1 if n % 4 >= 2 else 1
            if n % 2:
                sine += sign * term
            else:
                cosine += sign * term
            n += 1
            term = term * rest / n
        quarter = int(turns) % 4
        return [(sine, cosine), (cosine, -sine), (-sine, -cosine), (-cosine, sine)][quarter]


def sin_exact(x):
    return x if x == 0 else NAN if abs(x) == INF else float(sin_cos(x)[0])


def cos_exact(x):
    return NAN if abs(x) == INF else float(sin_cos(x)[1])


def tan_exact(x):
    if x == 0 or abs(x) == INF:
        return x if x == 0 else NAN
    sine, cosine = sin_cos(x)
    return float(sine / cosine)


def atan_decimal(d):
    halvings = 0
    while abs(d) > Decimal("0.05"):
        d = d / (1 + (1 + d * d).sqrt())
        halvings += 1
    total, power, k = Decimal(0), d, 1
    while k < 60:
        total += power / k
        power *= -d * d
        k += 2
    return total * 2 ** halvings


def atan_exact(x):
    if x == 0 or abs(x) == INF:
        return x if x == 0 else float(PI / 2) * (1 if x > 0 else -1)
    return float(atan_decimal(Decimal(x)))


def asin_decimal(d):
    return d * PI / 2 if abs(d) == 1 else atan_decimal(d / (1 - d * d).sqrt())


def asin_exact(x):
    return x if x == 0 else NAN if abs(x) > 1 else float(asin_decimal(Decimal(x)))


def acos_exact(x):
    if abs(x) > 1:
        return NAN
    return 0.0 if x == 1 else float(PI / 2 - asin_decimal(Decimal(x)))


def sinh_exact(x):
    if abs(x) > 800 or x == 0:
        return x if x == 0 else INF if x > 0 else -INF
    d = Decimal(x)
    e = expm1_decimal(d)
    return float((e + e / (e + 1)) / 2)


def cosh_exact(x):
    return INF if abs(x) > 800 else float((Decimal(x).exp() + Decimal(-x).exp()) / 2)


def asinh_exact(x):
    if x == 0 or abs(x) == INF:
        return x
    d = abs(Decimal(x))
    y = float(log1p_decimal(d + d * d / (1 + (1 + d * d).sqrt())))
    return y if x > 0 else -y


def acosh_exact(x):
    if x < 1 or x == INF:
        return NAN if x < 1 else INF
    d = Decimal(x)
    return float((d + (d * d - 1).sqrt()).ln())


def atanh_exact(x):
    if abs(x) >= 1 or x == 0:
        return x if x == 0 else NAN if abs(x) > 1 else INF * x
    d = Decimal(x)
    return float(log1p_decimal(2 * d / (1 - d)) / 2)


def softplus_exact(x):
    if abs(x) > 800:
        return x if x > 0 else 0.0
    return float(log1p_decimal(Decimal(x).exp()))


def mish_exact(x):
    if x == -INF or abs(x) > 800:
        return NAN if x == -INF else x if x > 0 else -0.0
    # tanh(log(1 + e)) = (e² + 2e) / (e² + 2e + 2)
    e = Decimal(x).exp()
    return x if x == 0 else float(Decimal(x) * (e * e + 2 * e) / (e * e + 2 * e + 2))


def swish_exact(x, alpha):
    if abs(x) == INF:
        return x if (x > 0) == (alpha > 0) else NAN
    if abs(x * alpha) > 800:
        return x if x * alpha > 0 else x * 0.0
    return x if x == 0 else float(Decimal(x) / (1 + (-Decimal(alpha) * Decimal(x)).exp()))


def elu_exact(x, alpha, gamma=1.0):
    if x >= 0:
        return x * gamma if abs(x) == INF else float(Decimal(x) * Decimal(gamma)) if x else x
    e = Decimal(-1) if x < -800 else expm1_decimal(Decimal(x))
    return float(e * Decimal(alpha) * Decimal(gamma))


def celu_exact(x, alpha):
    if x >= 0:
        return x + 0.0
    e = Decimal(-1) if x / alpha < -800 else expm1_decimal(Decimal(x) / Decimal(alpha))
    return float(e * Decimal(alpha))


def pow_exact(x, y):
    """C's pow for finite positive x that are no special case; Python's own for the others."""
    if not (0 < x < INF and abs(y) < INF and x != 1 and y != 0):
        return pow_special(x, y)
    exponent = Decimal(y) * Decimal(x).ln()
    return exp_exact(float(exponent)) if abs(exponent) > 800 else float(exponent.exp())


def pow_special(x, y):
    whole = abs(y) < INF and y == int(y)
    odd = whole and int(y) % 2 == 1
    if y == 0 or x == 1:
        return 1.0
    if abs(y) == INF:
        return 1.0 if abs(x) == 1 else INF if (abs(x) > 1) == (y > 0) else 0.0
    if x == 0 or abs(x) == INF:
        size = INF if (x == 0) == (y < 0) else 0.0
        return -size if odd and str(x).startswith("-") else size
    if not whole:
        return NAN
    size = pow_exact(-x, y) if x != -1 else 1.0
    return -size if odd else size
