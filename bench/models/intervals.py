"""Medians of ratios with their 95 % intervals, and what may be said of them. Standard library only; the draws are seeded.

Ratios come in groups, a list for each set of processes. Processes differ, since each lies elsewhere in memory, and the pairs of
one set share that: so groups are drawn first, then ratios within them.
"""

import math
import random
import statistics
from dataclasses import dataclass

RESAMPLES = 2000
SEED = 20240229
MINIMUM_PAIRS = 20


@dataclass(frozen=True)
class Estimate:
    """A median and the interval that holds it in 95 of 100 repetitions."""

    median: float
    low: float
    high: float


def flat(groups):
    return [ratio for group in groups for ratio in group]


def _resampled_median(rng, groups):
    picked = rng.choices(groups, k=len(groups))
    return statistics.median(flat(rng.choices(group, k=len(group)) for group in picked))


def _interval(draws):
    draws = sorted(draws)
    last = len(draws) - 1
    return draws[math.floor(0.025 * last)], draws[math.ceil(0.975 * last)]


def _check(groups):
    if not groups or not all(groups):
        raise ValueError("no ratios")


def median_of(groups):
    """The median of all ratios and its bootstrap interval."""
    _check(groups)
    rng = random.Random(SEED)
    low, high = _interval(_resampled_median(rng, groups) for _ in range(RESAMPLES))
    return Estimate(statistics.median(flat(groups)), low, high)


def quotient_of(now, before):
    """The median of `now` over the median of `before`; both are resampled."""
    _check(now)
    _check(before)
    rng = random.Random(SEED)
    draws = (_resampled_median(rng, now) / _resampled_median(rng, before) for _ in range(RESAMPLES))
    low, high = _interval(draws)
    return Estimate(statistics.median(flat(now)) / statistics.median(flat(before)), low, high)


def geometric_mean_of(models):
    """The geometric mean of the models' medians; every model is resampled."""
    _check(models)
    for groups in models:
        _check(groups)

    def mean(values):
        return math.exp(statistics.fmean(map(math.log, values)))

    rng = random.Random(SEED)
    draws = (mean([_resampled_median(rng, groups) for groups in models]) for _ in range(RESAMPLES // 4))
    low, high = _interval(draws)
    return Estimate(mean([statistics.median(flat(groups)) for groups in models]), low, high)


def classify(estimate, tolerance):
    """faster, slower, same or inconclusive, of a ratio that is above 1 where the subject is faster.

    A difference counts when the interval leaves out 1 and the median is beyond the tolerance; two are the same when the
    whole interval is within it. Everything else is noise and called inconclusive.
    """
    top, bottom = 1 + tolerance, 1 / (1 + tolerance)
    if estimate.low > 1 and estimate.median > top:
        return "faster"
    if estimate.high < 1 and estimate.median < bottom:
        return "slower"
    if estimate.low >= bottom and estimate.high <= top:
        return "same"
    return "inconclusive"


def within_limit(estimate, limit):
    """within, slower or inconclusive, of the time after over the time before: the interval's upper end must keep the limit."""
    if estimate.high <= limit:
        return "within"
    if estimate.low > limit:
        return "slower"
    return "inconclusive"
