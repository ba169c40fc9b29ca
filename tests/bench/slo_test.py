"""The checker of run logs: a sound log is kept, and each promise that is broken by itself is named."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SLO = ROOT / "scripts/slo.py"


def compiled(ms, asked=True, hit=True, model="mlp.ir"):
    return {"event": "compile", "model": model, "ms": ms, "asked_cache": asked, "hit": hit}


def sound():
    events = [compiled(40.0, asked=False, hit=False) for _ in range(20)]
    events += [compiled(30.0, hit=False) for _ in range(5)] + [compiled(1.0) for _ in range(95)]
    events += [{"event": "run", "model": "mlp.ir", "us": 5.0 + i, "ok": True, "fallbacks": 0} for i in range(20)]
    events += [{"event": "budget", "model": "mlp.ir", "bytes": 100, "peak": 100, "refused_by_name": False},
               {"event": "budget", "model": "mlp.ir", "bytes": 50, "peak": -1, "refused_by_name": True}]
    return events


def judged(events, *flags):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as log:
        log.write("".join(json.dumps(event) + "\n" for event in events))
        log.flush()
        done = subprocess.run([sys.executable, "-B", SLO, log.name, *flags], capture_output=True, text=True)
    return done.returncode, [line for line in done.stdout.splitlines() if not line.startswith("kept")]


class Slo(unittest.TestCase):
    def test_a_sound_log_is_kept(self):
        self.assertEqual(judged(sound(), "--p50-us", "15", "--p95-us", "24"), (0, []))

    def expect_broken(self, events, name, *flags):
        code, lines = judged(events, *flags)
        self.assertEqual(code, 1)
        self.assertEqual(len(lines), 1, lines)
        self.assertTrue(lines[0].startswith(f"broken: {name}"), lines)

    def test_each_promise_is_broken_by_name(self):
        self.expect_broken(sound() + [compiled(10.1) for _ in range(6)], "cached compile p95")
        self.expect_broken(sound() + [compiled(50.1, asked=False, hit=False) for _ in range(2)], "uncached compile p95")
        self.expect_broken(sound() + [compiled(30.0, hit=False)], "cache hits")
        over = {"event": "budget", "model": "mlp.ir", "bytes": 100, "peak": 101, "refused_by_name": False}
        self.expect_broken(sound() + [over], "budgets kept")
        self.expect_broken(sound() + [over | {"peak": -1}], "budgets kept")
        ran = {"event": "run", "model": "mlp.ir", "us": 5.0, "ok": True, "fallbacks": 1}
        self.expect_broken(sound() + [ran], "runs with a fallback")
        self.expect_broken(sound() + [ran | {"ok": False, "fallbacks": 0}], "runs that succeed")
        self.expect_broken(sound(), "run p50", "--p50-us", "13")
        self.expect_broken(sound(), "run p95", "--p95-us", "22")

    def test_a_fallback_rate_can_be_allowed(self):
        ran = {"event": "run", "model": "mlp.ir", "us": 5.0, "ok": True, "fallbacks": 1}
        self.assertEqual(judged(sound() + [ran], "--fallback-rate", "0.05")[0], 0)

    def test_what_lacks_is_no_success(self):
        for kind in ("compile", "run", "budget"):
            code, lines = judged([e for e in sound() if e["event"] != kind])
            self.assertEqual(code, 2)
            self.assertTrue(lines)
        self.assertEqual(judged([])[0], 2)
        self.assertEqual(judged([{"event": "compile"}])[0], 2)
        self.assertEqual(subprocess.run([sys.executable, SLO, "/nonexistent"], capture_output=True).returncode, 2)


if __name__ == "__main__":
    unittest.main()
