"""A whole measurement with planted engines and a planted machine, and the dialogue with a worker process."""

import random
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench/models"))
import engines
import intervals
import report
import session
from engines import Engine, EngineError
from pairs import Rules

intervals.RESAMPLES = 200  # what is tested here does not hang on more
BEFORE, AFTER = Engine("before", "pyc", "a.so"), Engine("after", "pyc", "b.so")
RIVAL = Engine("rival", "onnxruntime")
FACTS = {"version": "1", "cold_ms": 1.0, "warm_ms": None, "rss_mib": 1.0}


class PlantedWorker:
    """Times drawn around what `milliseconds` says of the engine; `calls` records the turns."""

    milliseconds = {}
    spread = 0.005
    broken = ()
    calls = []

    def __init__(self, engine, *_):
        if engine.label in self.broken:
            raise EngineError(f"{engine.label}: no such op")
        self.engine, self.pid, self.facts = engine, "self", FACTS
        self.rng = random.Random(engine.label)

    def run(self, runs):
        self.calls.append(self.engine.label)
        centre = self.milliseconds[self.engine.label] * 1e6
        return [centre * self.rng.lognormvariate(0, self.spread) for _ in range(runs)]

    def close(self):
        self.calls.append(f"end {self.engine.label}")


class PlantedProbe:
    def __init__(self, rates):
        self.next = rates

    def rates(self, _):
        return self.next()


class Measure(unittest.TestCase):
    def measure(self, milliseconds, others, mode, rates=lambda: (80.0, 50.0), compare=lambda a, b: 0.0, **planted):
        worker = type("Worker", (PlantedWorker,), {"milliseconds": milliseconds, "calls": [], **planted})
        plan = session.Plan(settle_ms=0.0)
        # The machine that runs this test may be busy; what it does is not what is tested.
        rules = Rules(steal_share=1e9, wait_share=1e9)
        with mock.patch.object(session, "Worker", worker):
            one = session.Session(PlantedProbe(rates), 2, plan, rules, Path("."))
            rows = one.measure(Path("mlp.onnx"), Path("mlp.npz"), compare, 1, BEFORE, others)
        return [report.row_of(row, mode, 1.03) for row in rows], worker.calls

    def verdict(self, *args, **planted):
        return self.measure(*args, **planted)[0][0]["verdict"]

    def test_equal_builds_are_within_the_limit(self):
        self.assertEqual(self.verdict({"before": 10, "after": 10}, [AFTER], "before_after"), "within")

    def test_planted_slow_down_is_found(self):
        self.assertEqual(self.verdict({"before": 10, "after": 10.6}, [AFTER], "before_after"), "slower")

    def test_planted_noise_is_inconclusive(self):
        self.assertEqual(self.verdict({"before": 40, "after": 40}, [AFTER], "before_after", spread=0.4), "inconclusive")

    def test_a_machine_that_changes_its_speed_is_inconclusive(self):
        rng = random.Random(1)
        rows, _ = self.measure({"before": 10, "after": 10}, [AFTER], "before_after", rates=lambda: (rng.uniform(40, 80), 50.0))
        self.assertEqual(rows[0]["verdict"], "inconclusive")
        self.assertEqual(rows[0]["tries"], session.Plan().tries)
        self.assertLess(rows[0]["kept"], 20)

    def test_engines_take_turns_and_change_who_begins(self):
        _, calls = self.measure({"before": 40, "after": 40, "rival": 40}, [AFTER, RIVAL], "rivals")
        self.assertEqual(calls[3:11], ["before", "after", "before", "rival", "after", "before", "rival", "before"])

    def test_processes_are_renewed_in_the_other_order(self):
        rows, calls = self.measure({"before": 40, "after": 40}, [AFTER], "before_after")
        ends = [call for call in calls if call.startswith("end")]
        self.assertEqual(ends[:4], ["end after", "end before", "end before", "end after"])
        self.assertEqual(len(ends), 2 * 6)  # five renewals, and the end
        self.assertEqual([len(group) for group in rows[0]["ratios"]], [4] * 6)

    def test_outputs_that_differ_fail_before_any_time_counts(self):
        def compare(ours, theirs):
            raise ValueError("output 0 differs")

        rows, calls = self.measure({"before": 10, "after": 10}, [AFTER], "before_after", compare=compare)
        self.assertEqual((rows[0]["verdict"], rows[0]["error"]), ("failed", "output 0 differs"))
        self.assertNotIn("after", calls)

    def test_a_rival_that_cannot_run_it_is_unavailable_and_the_others_go_on(self):
        rows, _ = self.measure({"before": 10, "after": 10}, [RIVAL, AFTER], "rivals", broken=("rival",))
        self.assertEqual([row["verdict"] for row in rows], ["unavailable", "same"])

    def test_a_build_that_cannot_run_it_failed(self):
        for broken in ("before", "after"):
            self.assertEqual(self.verdict({"before": 10, "after": 10}, [AFTER], "before_after", broken=(broken,)), "failed")


class Dialogue(unittest.TestCase):
    def worker(self, program):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file, mock.patch.object(engines, "WORKER", file.name):
            file.write(program)
            file.flush()
            return engines.Worker(RIVAL, "m.onnx", "m.npz", 1, "o.npz")

    def test_answers(self):
        program = ('import json, sys\nfor line in sys.stdin:\n    c = json.loads(line)\n'
                   '    print(json.dumps({"ns": [5] * c["runs"]} if c["do"] == "run" else {"version": c["engine"]}), flush=True)\n')
        worker = self.worker(program)
        self.assertEqual(worker.facts, {"version": "onnxruntime"})
        self.assertEqual(worker.run(3), [5, 5, 5])
        worker.close()

    def test_an_error_is_told(self):
        with self.assertRaisesRegex(EngineError, "rival: no such op"):
            self.worker('input()\nprint(\'{"error": "no such op"}\', flush=True)\ninput()\n')

    def test_a_process_that_ends_is_an_error(self):
        with self.assertRaisesRegex(EngineError, "the process ended with 3"):
            self.worker("input()\nraise SystemExit(3)\n")


if __name__ == "__main__":
    unittest.main()
