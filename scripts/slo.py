#!/usr/bin/env python3
"""slo.py LOG: whether a run log keeps what PyC promises about service. Prints a line a promise; exits 1 where one is broken, 2 where the
log cannot be read or has nothing to judge one by.

A log is lines of JSON, an event each (pyc_bench_slo writes one):
  {"event": "compile", "model", "ms", "asked_cache": bool, "hit": bool}
  {"event": "run", "model", "us", "ok": bool, "fallbacks": N}
  {"event": "budget", "model", "bytes", "peak" (-1: refused), "refused_by_name": bool}
Times of compiles without a cache are promised for tests/models/mlp.ir; those of runs have a limit where one is given.
"""

import argparse
import json
import math
import sys

UNCACHED_MODEL = "mlp.ir"
CACHED_P95_MS, UNCACHED_P95_MS, HITS, KEPT = 10.0, 50.0, 0.95, 1.0


class NothingToJudge(Exception):
    """The log lacks the events that a promise is about."""


def quantile(values, part):
    """The smallest value that at least this part of them is not above."""
    if not values:
        raise NothingToJudge
    return sorted(values)[max(0, math.ceil(part * len(values)) - 1)]


def share(flags):
    flags = list(flags)
    if not flags:
        raise NothingToJudge
    return sum(flags) / len(flags)


def is_kept(event):
    """A budget is kept, or refused by its name; both is neither."""
    if event["peak"] < 0:
        return event["refused_by_name"]
    return 0 <= event["peak"] <= event["bytes"]


def promises(events, fallback_rate, p50_us, p95_us):
    """(name, how it is computed, limit, whether less is better) of each."""
    of = {kind: [e for e in events if e["event"] == kind] for kind in ("compile", "run", "budget")}
    asked = [e for e in of["compile"] if e["asked_cache"]]
    fresh = [e["ms"] for e in of["compile"] if not e["asked_cache"] and e["model"] == UNCACHED_MODEL]
    times = [e["us"] for e in of["run"]]
    yield "cached compile p95, ms", lambda: quantile([e["ms"] for e in asked if e["hit"]], 0.95), CACHED_P95_MS, True
    yield "uncached compile p95, ms", lambda: quantile(fresh, 0.95), UNCACHED_P95_MS, True
    yield "cache hits", lambda: share(e["hit"] for e in asked), HITS, False
    yield "budgets kept", lambda: share(is_kept(e) for e in of["budget"]), KEPT, False
    yield "runs that succeed", lambda: share(e["ok"] for e in of["run"]), 1.0, False
    yield "runs with a fallback", lambda: share(e["fallbacks"] > 0 for e in of["run"]), fallback_rate, True
    if p50_us is not None:
        yield "run p50, us", lambda: quantile(times, 0.5), p50_us, True
    if p95_us is not None:
        yield "run p95, us", lambda: quantile(times, 0.95), p95_us, True


def check(events, fallback_rate=0.0, p50_us=None, p95_us=None):
    """The exit code, and the lines that say why."""
    code, lines = 0, []
    for name, compute, limit, less in promises(events, fallback_rate, p50_us, p95_us):
        try:
            found = compute()
        except NothingToJudge:
            lines.append(f"nothing to judge: {name}")
            code = max(code, 2)
            continue
        kept = found <= limit if less else found >= limit
        lines.append(f"{'kept' if kept else 'broken'}: {name}: {found:.4g}, promised at {'most' if less else 'least'} {limit:.4g}")
        if not kept and code == 0:
            code = 1
    return code, lines


def read(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log")
    parser.add_argument("--fallback-rate", type=float, default=0.0)
    parser.add_argument("--p50-us", type=float)
    parser.add_argument("--p95-us", type=float)
    given = parser.parse_args()
    try:
        code, lines = check(read(given.log), given.fallback_rate, given.p50_us, given.p95_us)
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"slo: {given.log}: cannot be judged: {error!r}", file=sys.stderr)
        return 2
    print("\n".join(lines))
    return code


if __name__ == "__main__":
    sys.exit(main())
