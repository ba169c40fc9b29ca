"""Measures one model: the engines take turns, a short burst each, with the probes around every pair."""

import statistics
import time
from dataclasses import dataclass, field

import machine
from engines import OURS, EngineError, Worker
from pairs import Best, Pair, Series, collect

CALIBRATION = 20  # probes before the first pair


@dataclass(frozen=True)
class Plan:
    """How long to measure."""

    pairs: int = 24  # to keep: a few more than are needed, since a better rate seen later drops some again
    tries: int = 72
    burst_ms: float = 30.0  # runs of one engine before the other's turn, at least one run
    renew: int = 4  # pairs of the same processes: where one lies in memory changes its speed by percents
    settle_ms: float = 60.0  # pause after a burst: threads that wait for work spin for a while, and Linux owes other processes 50 ms a second
    seconds: float = 86400.0  # for the whole run: no pair begins later


@dataclass
class Row:
    """What was measured of one model and thread count for one pair of engines."""

    model: str
    threads: int
    a: str
    b: str
    series: Series = None
    facts: dict = field(default_factory=dict)  # by engine: version, cold_ms, warm_ms, rss_mib
    difference: float = None  # of the outputs, as a part of their largest magnitude
    error: str = ""
    unavailable: bool = False  # the error is the other engine's own


class Team:
    """The worker of each engine; a context manager that ends the processes."""

    def __init__(self, make):
        self._make = make
        self.workers = {}

    def start(self, engine):
        self.workers[engine] = self._make(engine)

    def leave(self, engine):
        if engine in self.workers:
            self.workers.pop(engine).close()

    def renew(self):
        """New processes, started in the other order."""
        for engine in reversed(list(self.workers)):
            self.leave(engine)
            self.start(engine)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for worker in self.workers.values():
            worker.close()


class Session:
    def __init__(self, probe, cores, plan, rules, scratch):
        self.probe = probe
        self.cores = cores
        self.plan = plan
        self.rules = rules
        self.scratch = scratch
        self.best = {}  # by threads
        self.end = time.monotonic() + plan.seconds

    def _best(self, threads):
        if threads not in self.best:
            self.best[threads] = Best()
            for _ in range(CALIBRATION):
                self.best[threads].see(*self.probe.rates(threads))
        return self.best[threads]

    def measure(self, model, inputs, compare, threads, subject, others):
        """One row per other engine; compare(subject's outputs, other's) returns a difference or raises ValueError."""
        rows = [Row(model.stem, threads, subject.label, other.label) for other in others]
        with Team(lambda engine: Worker(engine, model, inputs, threads, self._outputs(engine))) as team:
            try:
                team.start(subject)
            except EngineError as error:
                for row in rows:
                    row.error = str(error)
                return rows
            running = []
            for row, other in zip(rows, others):
                try:
                    team.start(other)
                    row.difference = compare(self._outputs(subject), self._outputs(other))
                except (EngineError, ValueError) as error:
                    row.error, row.unavailable = str(error), isinstance(error, EngineError) and other.kind not in OURS
                    team.leave(other)
                    continue
                row.facts = {each.label: team.workers[each].facts for each in (subject, other)}
                row.series = Series(self._best(threads), self.rules)
                running.append((row, other))
            try:
                self._collect(team, subject, running, threads)
            except EngineError as error:
                for row, _ in running:
                    row.error = str(error)
        return rows

    def _outputs(self, engine):
        return self.scratch / f"outputs-{engine.label.replace(' ', '-')}.npz"

    def _collect(self, team, subject, running, threads):
        runs = {engine: self._burst(worker) for engine, worker in team.workers.items()}
        round_now = 0

        def measure(i, n):
            nonlocal round_now
            if n // self.plan.renew != round_now:
                round_now = n // self.plan.renew
                team.renew()
            other = running[i][1]
            # Who begins changes from pair to pair.
            order = (subject, other) if n % 2 == 0 else (other, subject)
            return self._pair(team, subject, other, order, runs, threads, round_now)

        collect([row.series for row, _ in running], measure, self.plan.pairs, self.plan.tries,
                lambda: time.monotonic() >= self.end)

    def _burst(self, worker):
        """Runs that take about burst_ms."""
        shortest = min(worker.run(2))
        return max(1, round(self.plan.burst_ms * 1e6 / shortest))

    def _pair(self, team, a, b, order, runs, threads, group):
        fma_before, copy_before = self.probe.rates(threads)
        stolen, began = machine.stolen(), time.perf_counter()
        times, running, waited = {}, 0.0, 0.0
        for engine in order:
            worker = team.workers[engine]
            burst_began, waited_before = time.perf_counter(), machine.waited(worker.pid)
            times[engine] = statistics.median(worker.run(runs[engine]))
            running += time.perf_counter() - burst_began
            waited += machine.waited(worker.pid) - waited_before
            time.sleep(self.plan.settle_ms * 1e-3)
        steal = (machine.stolen() - stolen) / ((time.perf_counter() - began) * self.cores)
        fma_after, copy_after = self.probe.rates(threads)
        self.best[threads].see(max(fma_before, fma_after), max(copy_before, copy_after))
        return Pair(times[a], times[b], min(fma_before, fma_after), min(copy_before, copy_after), steal,
                    max(0.0, waited) / (running * threads), group)
