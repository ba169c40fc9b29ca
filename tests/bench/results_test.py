"""Documents of results: their verdicts, their check, their Markdown and chart, and the comparison with a baseline."""

import contextlib
import io
import json
import random
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path

MODELS = Path(__file__).resolve().parents[2] / "bench/models"
RESULTS = MODELS.parent / "results"
sys.path.insert(0, str(MODELS))
import chart
import check_baseline
import intervals
import join
import report
from pairs import Best, Pair, Rules, Series
from session import Row

intervals.RESAMPLES = 200  # what is tested here does not hang on more


def row(ratio=1.5, spread=0.01, count=20, seed=1, model="mlp", version="1.31.1"):
    rng = random.Random(seed)
    series = Series(Best(80.0, 50.0), Rules())
    for n in range(count):
        series.add(Pair(1e6, 1e6 * ratio * rng.lognormvariate(0, spread), 80.0, 50.0, group=n // 4))
    facts = {"PyC": {"version": "0.1.0", "cold_ms": 100.0, "warm_ms": 1.0, "rss_mib": 90.0},
             "rival": {"version": version, "cold_ms": 50.0, "warm_ms": None, "rss_mib": 80.0}}
    return Row(model, 1, "PyC", "rival", series, facts, 1e-6)


def document(*rows, mode="rivals"):
    figures = [report.row_of(one, mode, 1.03) for one in rows]
    settings = {"pairs": 20, "tries": 60, "burst_ms": 30.0, "renew": 4, "settle_ms": 20.0, "fma_floor": 0.97, "copy_floor": 0.97,
                "steal_share": 0.005, "wait_share": 0.01, "limit": 1.03}
    machine = {"architecture": "any", "cpu": "a <CPU>", "features": ["fma"], "cores": 2, "memory_gib": 8.0, "kernel": "6"}
    return {"format": report.FORMAT, "mode": mode, "date": "2026-01-02T03:04:05Z", "commit": "abc", "machine": machine,
            "load_average": 0.1, "settings": settings, "engines": {"PyC": {"version": "0.1.0"}}, "rows": figures,
            "means": report.means_of(figures, mode, 1.03)}


class Joined(unittest.TestCase):
    def test_pairs_of_short_runs_decide_together(self):
        halves = [document(row(count=12, seed=seed)) for seed in (1, 2)]
        self.assertEqual([half["rows"][0]["verdict"] for half in halves], ["inconclusive"] * 2)
        halves[1]["commit"] = "def"
        halves[1]["settings"] = {**halves[1]["settings"], "copy_floor": 0.7}
        whole = join.join(halves)
        (found,) = whole["rows"]
        self.assertEqual((found["kept"], found["tries"], found["verdict"], len(found["ratios"])), (24, 24, "faster", 6))
        self.assertEqual((whole["commit"], report.problems(whole), whole["means"][0]["verdict"]), ("abc, def", [], "faster"))
        self.assertIn("- 2026-01-02T03:04:05Z, commit def, load 0.1: mlp (1); copy_floor 0.7\n", report.markdown(whole))

    def test_what_was_joined_before_keeps_its_runs(self):
        before = join.join([document(row(seed=1)), document(row(seed=2))])
        after = join.join([before, document(row(model="bert"))])
        self.assertEqual((len(before["runs"]), after["runs"][:2], len(after["runs"])), (2, before["runs"], 3))

    def test_models_of_one_run_are_kept_and_machines_never_mixed(self):
        one, other = document(row(model="mlp")), document(row(model="bert"))
        self.assertEqual([each["model"] for each in join.join([one, other])["rows"]], ["bert", "mlp"])
        other["machine"] = {**other["machine"], "cores": 4}
        self.assertRaises(ValueError, join.join, [one, other])


class Rows(unittest.TestCase):
    def verdict(self, *args, mode="rivals", **options):
        return report.row_of(row(*args, **options), mode, 1.03)["verdict"]

    def test_verdicts_beside_rivals(self):
        self.assertEqual(self.verdict(1.5), "faster")
        self.assertEqual(self.verdict(0.5), "slower")
        self.assertEqual(self.verdict(1.0, spread=0.003), "same")

    def test_planted_slow_down_is_found(self):
        self.assertEqual(self.verdict(1.1, mode="before_after"), "slower")
        self.assertEqual(self.verdict(1.0, mode="before_after"), "within")

    def test_planted_noise_is_inconclusive(self):
        for mode in ("rivals", "before_after"):
            self.assertEqual(self.verdict(1.0, spread=0.4, mode=mode), "inconclusive")

    def test_19_pairs_decide_nothing(self):
        self.assertEqual(self.verdict(9.0, count=19), "inconclusive")
        self.assertEqual(self.verdict(1.0, count=19, mode="before_after"), "inconclusive")
        self.assertEqual(self.verdict(1.0, count=0), "inconclusive")

    def test_an_error_is_a_failure(self):
        self.assertEqual(report.row_of(Row("mlp", 1, "PyC", "rival", error="outputs differ"), "rivals", 1.03)["verdict"], "failed")

    def test_an_engine_that_cannot_run_a_model_is_unavailable_and_not_in_the_mean(self):
        figures = document(row(2.0), Row("b", 1, "PyC", "rival", error="no such op", unavailable=True))
        self.assertEqual([one["verdict"] for one in figures["rows"]], ["faster", "unavailable"])
        self.assertEqual([(mean["models"], mean["of"], mean["verdict"]) for mean in figures["means"]], [(1, 1, "faster")])
        self.assertEqual(report.problems(figures), [])

    def test_mean_of_fewer_models_than_there_are_is_inconclusive(self):
        means = document(row(2.0), row(2.0, count=5, model="other"))["means"]
        self.assertEqual([(mean["models"], mean["of"], mean["verdict"]) for mean in means], [(1, 2, "inconclusive")])


class Document(unittest.TestCase):
    def test_good_one_has_no_problems(self):
        self.assertEqual(report.problems(json.loads(json.dumps(document(row(), row(0.7, model="b"))))), [])

    def test_missing_stamps_and_intervals_are_problems(self):
        for stamp in report.STAMPS:
            self.assertTrue(report.problems({**document(row()), stamp: None}), stamp)
        for change in ({"low": None}, {"median": 99.0}, {"kept": 30}, {"verdict": "passed"}):
            damaged = document(row())
            damaged["rows"][0] |= change
            self.assertTrue(report.problems(damaged), change)

    def test_a_verdict_of_few_pairs_is_a_problem(self):
        damaged = document(row(count=5))
        damaged["rows"][0]["verdict"] = "faster"
        self.assertIn("faster after 5 pairs", report.problems(damaged)[0])

    def test_markdown_has_stamps_and_rows(self):
        text = report.markdown(document(row(), row(count=0, model="busy"), Row("broken", 2, "PyC", "rival", error="no memory")))
        for part in ("2026-01-02", "abc", "a <CPU>", "features: fma", "PyC 0.1.0", "| mlp | 1 |", "20 of 20", "failed: no memory", "geometric mean"):
            self.assertIn(part, text)
        tables = [line for line in text.splitlines() if line.startswith("|")]
        self.assertEqual({line.count("|") for line in tables}, {10, 7})

    def test_chart_parses_and_has_a_bar_per_row(self):
        for mode in ("rivals", "before_after"):
            root = xml.etree.ElementTree.fromstring(chart.svg(document(row(), row(0.2, model="a<b"), row(1, spread=0.5), mode=mode)))
            space = "{http://www.w3.org/2000/svg}"
            bars = [rect for rect in root.iter(f"{space}rect") if rect.get("class") != "page"]
            self.assertEqual(len(bars), 4)  # three rows and their mean
            self.assertIn("PyC 0.1.0; any, Linux 6, 8.0 GiB, fma", root.find(f"{space}desc").text)
            self.assertIn("prefers-color-scheme:dark", root.find(f"{space}style").text)

    def test_chart_of_failures_only(self):
        xml.etree.ElementTree.fromstring(chart.svg(document(Row("broken", 1, "PyC", "rival", error="no"))))


class Stored(unittest.TestCase):
    def test_stored_results_are_whole_and_their_pages_are_theirs(self):
        for file in sorted(RESULTS.glob("models_*.json")):
            with self.subTest(file.name):
                stored = json.loads(file.read_text(encoding="utf-8"))
                self.assertEqual(report.problems(stored), [])
                self.assertEqual(file.with_suffix(".md").read_text(encoding="utf-8"), report.markdown(stored))
                self.assertEqual(file.with_suffix(".svg").read_text(encoding="utf-8"), chart.svg(stored))


class Baseline(unittest.TestCase):
    def check(self, result, baseline):
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            code = check_baseline.check(result, baseline)
        return code, output.getvalue()

    def assert_verdict(self, result, baseline, code, verdict):
        found, text = self.check(result, baseline)
        self.assertEqual(found, code, text)
        self.assertTrue(text.startswith(verdict), text)

    def test_same(self):
        self.assert_verdict(document(row(seed=1)), document(row(seed=2)), 0, "same")

    def test_faster(self):
        self.assert_verdict(document(row(2.0)), document(row(1.5)), 0, "faster")

    def test_planted_slow_down_exits_1(self):
        self.assert_verdict(document(row(1.35)), document(row(1.5)), 1, "slower")

    def test_planted_noise_is_inconclusive(self):
        self.assert_verdict(document(row(spread=0.4, seed=1)), document(row(spread=0.4, seed=2)), 2, "inconclusive")

    def test_few_pairs_are_inconclusive(self):
        self.assert_verdict(document(row(count=10)), document(row()), 2, "inconclusive")

    def test_another_machine_is_inconclusive(self):
        other = document(row())
        other["machine"]["cores"] = 16
        self.assert_verdict(document(row()), other, 2, "inconclusive")

    def test_another_version_of_the_rival_is_inconclusive(self):
        self.assert_verdict(document(row()), document(row(version="1.21")), 2, "inconclusive")

    def test_a_model_that_is_gone_is_inconclusive(self):
        code, text = self.check(document(row()), document(row(), row(model="gone")))
        self.assertEqual(code, 2)
        self.assertIn("gone, 1 threads, beside rival: not in the result", text)

    def test_slower_outweighs_inconclusive(self):
        now, before = document(row(1.0), row(count=5, model="b")), document(row(1.5), row(model="b"))
        self.assertEqual(self.check(now, before)[0], 1)

    def test_a_damaged_baseline_is_an_error(self):
        self.assertEqual(self.check(document(row()), {"format": "other"})[0], 1)

    def test_the_program(self):
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for name, ratio in (("now", 1.2), ("before", 1.5)):
                files.append(Path(folder, name))
                files[-1].write_text(json.dumps(document(row(ratio))), encoding="utf-8")
            done = subprocess.run([sys.executable, "-B", MODELS / "check_baseline.py", *files], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertTrue(done.stdout.endswith("1 slower\n"), done.stdout)


if __name__ == "__main__":
    unittest.main()
