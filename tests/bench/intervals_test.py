"""Intervals of medians and what may be said of them: a planted slow-down is found, planted noise is inconclusive."""

import random
import statistics
import sys
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench/models"))
import intervals


def drawn(centre, spread, count, seed, group_spread=0.0):
    """Groups of four ratios around a centre; the groups' own centres may differ."""
    rng = random.Random(seed)
    groups = []
    while count > 0:
        middle = centre * rng.lognormvariate(0, group_spread)
        groups.append([middle * rng.lognormvariate(0, spread) for _ in range(min(4, count))])
        count -= 4
    return groups


class MedianOf(unittest.TestCase):
    def test_equal_ratios_have_no_width(self):
        self.assertEqual(intervals.median_of([[1.5] * 20]), intervals.Estimate(1.5, 1.5, 1.5))

    def test_same_ratios_give_same_interval(self):
        ratios = drawn(1, 0.1, 20, 3)
        self.assertEqual(intervals.median_of(ratios), intervals.median_of(list(ratios)))

    def test_interval_is_around_the_median(self):
        groups = drawn(2, 0.2, 31, 4)
        estimate = intervals.median_of(groups)
        ratios = intervals.flat(groups)
        self.assertEqual(estimate.median, statistics.median(ratios))
        self.assertTrue(min(ratios) <= estimate.low < estimate.median < estimate.high <= max(ratios))

    @mock.patch.object(intervals, "RESAMPLES", 200)
    def test_interval_holds_the_true_median_about_95_times_in_100(self):
        held = 0
        for seed in range(200):
            estimate = intervals.median_of(drawn(1, 0.05, 25, seed))
            held += estimate.low <= 1 <= estimate.high
        self.assertTrue(180 <= held <= 199, held)

    def test_more_pairs_are_narrower(self):
        few, many = (intervals.median_of(drawn(1, 0.1, count, 5)) for count in (20, 500))
        self.assertLess(many.high - many.low, (few.high - few.low) / 2)

    def test_a_few_outliers_do_not_move_it(self):
        estimate = intervals.median_of([[1.0] * 27 + [9.0] * 3])
        self.assertEqual((estimate.low, estimate.median, estimate.high), (1.0, 1.0, 1.0))

    def test_nothing_is_an_error(self):
        self.assertRaises(ValueError, intervals.median_of, [])
        self.assertRaises(ValueError, intervals.median_of, [[1.0], []])

    @mock.patch.object(intervals, "RESAMPLES", 200)
    def test_processes_that_differ_widen_it(self):
        """Where every set of processes has its own speed, pairs of one set say less than as many of different ones."""
        held, held_without = 0, 0
        for seed in range(60):
            groups = drawn(1, 0.002, 20, seed, group_spread=0.02)
            for one, count in ((groups, 0), ([intervals.flat(groups)], 1)):
                estimate = intervals.median_of(one)
                good = estimate.low <= 1 <= estimate.high
                held, held_without = held + (good and not count), held_without + (good and count)
        self.assertGreaterEqual(held, 50)
        self.assertLess(held_without, held)


class GeometricMeanOf(unittest.TestCase):
    def test_of_medians(self):
        estimate = intervals.geometric_mean_of([[[0.5] * 20], [[2.0] * 20], [[8.0] * 20]])
        self.assertAlmostEqual(estimate.median, 2.0)
        self.assertAlmostEqual(estimate.low, estimate.high)

    def test_a_model_without_pairs_is_an_error(self):
        self.assertRaises(ValueError, intervals.geometric_mean_of, [[[1.0]], []])


class Classify(unittest.TestCase):
    def verdict(self, low, median, high):
        return intervals.classify(intervals.Estimate(median, low, high), 0.05)

    def test_verdicts(self):
        self.assertEqual(self.verdict(1.06, 1.10, 1.15), "faster")
        self.assertEqual(self.verdict(0.80, 0.85, 0.90), "slower")
        self.assertEqual(self.verdict(0.97, 1.00, 1.03), "same")

    def test_wide_intervals_are_inconclusive(self):
        self.assertEqual(self.verdict(0.80, 1.00, 1.25), "inconclusive")
        self.assertEqual(self.verdict(0.99, 1.20, 1.40), "inconclusive")
        self.assertEqual(self.verdict(0.70, 0.80, 1.01), "inconclusive")

    def test_sure_but_small_and_not_within_the_tolerance_is_inconclusive(self):
        self.assertEqual(self.verdict(1.01, 1.04, 1.07), "inconclusive")


class WithinLimit(unittest.TestCase):
    def verdict(self, ratios):
        return intervals.within_limit(intervals.median_of(ratios), 1.03)

    def test_no_change_is_within(self):
        self.assertEqual(self.verdict(drawn(1.0, 0.01, 20, 1)), "within")

    def test_planted_slow_down_is_found(self):
        self.assertEqual(self.verdict(drawn(1.06, 0.01, 20, 1)), "slower")

    def test_planted_noise_is_inconclusive(self):
        for seed in range(5):
            self.assertEqual(self.verdict(drawn(1.0, 0.3, 20, seed)), "inconclusive", seed)

    def test_upper_end_decides(self):
        self.assertEqual(intervals.within_limit(intervals.Estimate(1.0, 0.99, 1.03), 1.03), "within")
        self.assertEqual(intervals.within_limit(intervals.Estimate(1.0, 0.99, 1.031), 1.03), "inconclusive")


if __name__ == "__main__":
    unittest.main()
