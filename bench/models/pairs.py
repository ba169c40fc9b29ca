"""Pairs of adjacent timings: which of them count, and how many are taken."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Rules:
    """When a pair is dropped."""

    fma_floor: float = 0.97  # parts of the best rates seen
    copy_floor: float = 0.97
    steal_share: float = 0.005  # of the machine's time during the pair, taken by the hypervisor
    wait_share: float = 0.01  # of the engines' time, in which their threads waited for a core


@dataclass(frozen=True)
class Pair:
    a_ns: float
    b_ns: float
    fma: float  # the lower of the rates before and after
    copy: float
    steal: float = 0.0
    wait: float = 0.0
    group: int = 0  # pairs of the same processes have the same number

    @property
    def ratio(self):
        """Time of b over time of a: above 1 where a is faster."""
        return self.b_ns / self.a_ns


@dataclass
class Best:
    """The best rates of the probes seen so far."""

    fma: float = 0.0
    copy: float = 0.0

    def see(self, fma, copy):
        self.fma = max(self.fma, fma)
        self.copy = max(self.copy, copy)


def drop_reason(pair, best, rules):
    """Why a pair does not count: steal, wait, fma or copy; None where it does."""
    if pair.steal > rules.steal_share:
        return "steal"
    if pair.wait > rules.wait_share:
        return "wait"
    if pair.fma < rules.fma_floor * best.fma:
        return "fma"
    if pair.copy < rules.copy_floor * best.copy:
        return "copy"
    return None


@dataclass
class Series:
    """All pairs of one model, thread count and rival. Whether one counts depends on the best rates of the whole run, so it is
    decided again whenever they rise."""

    best: Best
    rules: Rules
    pairs: list = field(default_factory=list)

    def add(self, pair):
        self.pairs.append(pair)

    def kept(self):
        return [pair for pair in self.pairs if drop_reason(pair, self.best, self.rules) is None]

    def dropped(self):
        """How many pairs were dropped, by reason."""
        counts = {}
        for pair in self.pairs:
            reason = drop_reason(pair, self.best, self.rules)
            if reason is not None:
                counts[reason] = counts.get(reason, 0) + 1
        return counts


def collect(several, measure, wanted, tries, late=lambda: False):
    """Measures pairs for each of several series in turn until all keep `wanted` pairs, each with at most `tries`, or it is late.

    measure(i, n) returns the n-th pair of series i.
    """
    for n in range(tries):
        open_ones = [i for i, series in enumerate(several) if len(series.kept()) < wanted]
        if not open_ones:
            return
        for i in open_ones:
            if late():
                return
            several[i].add(measure(i, n))
