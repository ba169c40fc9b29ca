"""Which pairs of timings count, and how many are taken."""

import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench/models"))
import machine
from pairs import Best, Pair, Rules, Series, collect, drop_reason


def pair(**changes):
    return Pair(**{"a_ns": 100.0, "b_ns": 150.0, "fma": 80.0, "copy": 50.0, **changes})


class DropReason(unittest.TestCase):
    best = Best(80.0, 50.0)

    def reason(self, **changes):
        return drop_reason(pair(**changes), self.best, Rules())

    def test_quiet_pair_counts(self):
        self.assertIsNone(self.reason())

    def test_probe_at_the_floor_counts(self):
        self.assertIsNone(self.reason(fma=0.971 * 80, copy=0.971 * 50))

    def test_slow_probes_drop(self):
        self.assertEqual(self.reason(fma=0.969 * 80), "fma")
        self.assertEqual(self.reason(copy=0.969 * 50), "copy")

    def test_steal_time_drops(self):
        self.assertIsNone(self.reason(steal=0.004))
        self.assertEqual(self.reason(steal=0.006), "steal")

    def test_waiting_for_a_core_drops(self):
        self.assertIsNone(self.reason(wait=0.009))
        self.assertEqual(self.reason(wait=0.011), "wait")


class SeriesOfPairs(unittest.TestCase):
    def test_ratio_is_b_over_a(self):
        self.assertEqual(pair().ratio, 1.5)

    def test_a_better_rate_seen_later_drops_earlier_pairs(self):
        best = Best(80.0, 50.0)
        series = Series(best, Rules())
        series.add(pair())
        self.assertEqual(len(series.kept()), 1)
        best.see(90.0, 40.0)
        self.assertEqual((best.fma, best.copy), (90.0, 50.0))
        self.assertEqual(series.kept(), [])
        self.assertEqual(series.dropped(), {"fma": 1})


class Collect(unittest.TestCase):
    def run_with(self, steals, wanted, tries):
        """Series whose n-th pair has the given steal share; also the order in which pairs were taken."""
        several = [Series(Best(80.0, 50.0), Rules()) for _ in steals]
        order = []

        def measure(i, n):
            order.append(i)
            return pair(steal=steals[i](n))

        collect(several, measure, wanted, tries)
        return several, order

    def test_stops_when_enough_are_kept(self):
        (series,), _ = self.run_with([lambda n: 0.0], 20, 60)
        self.assertEqual((len(series.pairs), len(series.kept())), (20, 20))

    def test_dropped_pairs_are_taken_again(self):
        (series,), _ = self.run_with([lambda n: 0.5 if n % 2 else 0.0], 20, 60)
        self.assertEqual((len(series.pairs), len(series.kept())), (39, 20))

    def test_tries_are_bounded(self):
        (series,), _ = self.run_with([lambda n: 0.5], 20, 60)
        self.assertEqual((len(series.pairs), len(series.kept())), (60, 0))

    def test_series_take_turns(self):
        _, order = self.run_with([lambda n: 0.0, lambda n: 0.5 if n == 0 else 0.0], 2, 9)
        self.assertEqual(order, [0, 1, 0, 1, 1])

    def test_no_pair_begins_late(self):
        series, order = Series(Best(80.0, 50.0), Rules()), []

        def measure(i, n):
            order.append(n)
            return pair()

        collect([series], measure, 20, 60, lambda: len(order) == 3)
        self.assertEqual((order, len(series.kept())), ([0, 1, 2], 3))


class Machine(unittest.TestCase):
    def test_steal_is_the_eighth_number(self):
        self.assertEqual(machine.parse_steal(f"cpu  1 2 3 4 5 6 7 {4 * machine.TICKS} 0 0"), 4.0)
        self.assertEqual(machine.parse_steal("cpu  1 2 3 4"), 0.0)

    def test_waiting_is_counted_over_all_threads(self):
        with tempfile.TemporaryDirectory() as folder:
            for thread, text in (("1", "500 2000000000 3"), ("2", "0 500000000 1")):
                Path(folder, thread).mkdir()
                Path(folder, thread, "schedstat").write_text(text, encoding="utf-8")
            with mock.patch.object(machine, "Path", lambda _: Path(folder)):
                self.assertEqual(machine.waited(1), 2.5)

    def test_a_process_that_is_gone_has_not_waited(self):
        self.assertEqual(machine.waited(-1), 0.0)

    def limits(self, runtime, release):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("sched_rt_period_us", "1000000"), ("sched_rt_runtime_us", runtime), ("osrelease", release)):
                Path(folder, name).write_text(text + "\n", encoding="utf-8")
            return machine.realtime_limits(folder)

    def test_what_stops_real_time_processes_is_said(self):
        self.assertEqual(self.limits("-1", "6.1.0-13-arm64"), [])
        (throttled,) = self.limits("950000", "6.1.0")
        self.assertIn("950 of 1000 ms", throttled)
        self.assertIn("sched_rt_runtime_us=-1", throttled)
        (served,) = self.limits("-1", "6.18.44-cloud")
        self.assertIn("fair_server", served)
        self.assertEqual(machine.realtime_limits("/nowhere"), [])


if __name__ == "__main__":
    unittest.main()
