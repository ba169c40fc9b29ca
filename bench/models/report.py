"""Results as one JSON document, its check, and its Markdown."""

import statistics

import machine
from intervals import MINIMUM_PAIRS, classify, flat, geometric_mean_of, median_of, within_limit

FORMAT = "pyc.bench.models/1"
TOLERANCE = 0.01  # what counts as the same speed as a rival's
VERDICTS = {"rivals": ("faster", "slower", "same", "inconclusive", "unavailable", "failed"),
            "before_after": ("within", "slower", "inconclusive", "failed")}
STAMPS = ("date", "commit", "machine", "settings", "engines")
# A reader compares figures with their inputs: enough digits for that.
DIGITS = 5


def _rounded(value):
    return float(f"{value:.{DIGITS}g}")


def _estimate(estimate):
    return {"median": _rounded(estimate.median), "low": _rounded(estimate.low), "high": _rounded(estimate.high)}


def _verdict(mode, estimate, limit):
    return within_limit(estimate, limit) if mode == "before_after" else classify(estimate, TOLERANCE)


def row_of(row, mode, limit):
    """The figures of one session.Row; fewer kept pairs than MINIMUM_PAIRS decide nothing."""
    figures = {"model": row.model, "threads": row.threads, "a": row.a, "b": row.b}
    if row.error:
        return {**figures, "verdict": "unavailable" if row.unavailable else "failed", "error": row.error}
    kept = row.series.kept()
    figures |= {"difference": _rounded(row.difference), "tries": len(row.series.pairs), "kept": len(kept),
                "dropped": row.series.dropped(), "facts": row.facts, "verdict": "inconclusive"}
    if not kept:
        return figures
    numbers = dict.fromkeys(pair.group for pair in kept)
    ratios = [[_rounded(pair.ratio) for pair in kept if pair.group == number] for number in numbers]
    figures |= {"a_ms": _rounded(statistics.median(pair.a_ns for pair in kept) * 1e-6),
                "b_ms": _rounded(statistics.median(pair.b_ns for pair in kept) * 1e-6)}
    return judged(figures, ratios, mode, limit)


def judged(figures, ratios, mode, limit):
    """The figures with what the ratios of their kept pairs, in groups, say."""
    estimate = median_of(ratios)
    enough = len(flat(ratios)) >= MINIMUM_PAIRS
    return {**figures, "ratios": ratios, "ratio_stdev": _rounded(statistics.pstdev(flat(ratios))), **_estimate(estimate),
            "verdict": _verdict(mode, estimate, limit) if enough else "inconclusive"}


def means_of(rows, mode, limit):
    """The geometric mean over the models an engine can run, by rival and thread count; inconclusive unless all kept enough pairs."""
    means = []
    groups = {}
    for row in rows:
        if row["verdict"] == "unavailable":
            continue
        groups.setdefault((row["threads"], row["a"], row["b"]), []).append(row)
    for (threads, a, b), group in groups.items():
        usable = [row["ratios"] for row in group if row.get("kept", 0) >= MINIMUM_PAIRS]
        if not usable:
            continue
        estimate = geometric_mean_of(usable)
        verdict = _verdict(mode, estimate, limit) if len(usable) == len(group) else "inconclusive"
        means.append({"threads": threads, "a": a, "b": b, "models": len(usable), "of": len(group), **_estimate(estimate),
                      "verdict": verdict})
    return means


def problems(document):
    """What is wrong with a document: a figure without its interval, count or stamp is no result."""
    found = []
    if document.get("format") != FORMAT:
        return [f"format is {document.get('format')!r}, not {FORMAT!r}"]
    found += [f"no {name}" for name in STAMPS if not document.get(name)]
    mode = document.get("mode")
    if mode not in VERDICTS:
        return [*found, f"unknown mode {mode!r}"]
    if not document.get("rows"):
        found.append("no rows")
    for row in document.get("rows", []):
        found += [f"{row.get('model')}, {row.get('threads')} threads: {text}" for text in _row_problems(row, mode)]
    return found


def _row_problems(row, mode):
    verdict = row.get("verdict")
    if verdict not in VERDICTS[mode]:
        return [f"unknown verdict {verdict!r}"]
    if verdict in ("failed", "unavailable"):
        return [] if row.get("error") else [f"{verdict} without a reason"]
    found = []
    kept, ratios = row.get("kept", 0), row.get("ratios", [])
    if kept != len(flat(ratios)) or kept + sum(row.get("dropped", {}).values()) != row.get("tries"):
        found.append("the counts of pairs do not agree")
    if verdict != "inconclusive" and kept < MINIMUM_PAIRS:
        found.append(f"{verdict} after {kept} pairs")
    if ratios and not _has_interval(row):
        found.append("no median with its interval")
    return found


def _has_interval(row):
    low, median, high = (row.get(name) for name in ("low", "median", "high"))
    return None not in (low, median, high) and low <= median <= high


def _times(row):
    if "median" not in row:
        return "| | "
    return f"{row['a_ms']:.4g} | {row['b_ms']:.4g} | {row['median']:.3f} ({row['low']:.3f}–{row['high']:.3f}) "


def markdown(document):
    """The document's tables with all of its stamps."""
    before_after = document["mode"] == "before_after"
    stamp = document["machine"]
    lines = ["# PyC before and after" if before_after else "# Networks beside other engines", ""]
    lines.append(f"{document['date']}, commit {document['commit']}; {machine.signature(stamp)}, {stamp['memory_gib']} GiB, "
                 f"Linux {stamp['kernel']}, load {document['load_average']:.1f} at the start.")
    lines.append(f"CPU features: {' '.join(stamp['features'])}.")
    lines.append("Engines: " + ", ".join(f"{label} {facts['version']}" for label, facts in document["engines"].items()) + ".")
    s = document["settings"]
    lines.append(f"Pairs of adjacent bursts ({s['burst_ms']:g} ms) in turn, new processes after every {s['renew']}, until {s['pairs']} are kept, at most {s['tries']} tries; dropped: steal time over "
                 f"{s['steal_share']:.1%}, the engines' threads waiting for a core over {s['wait_share']:.1%}, a probe under {s['fma_floor']:.0%} (fma) or {s['copy_floor']:.0%} (copy) of the best"
                 + ("; real-time priority." if s.get("realtime") else "."))
    meaning = f"below 1: {document['rows'][0]['b']} is faster; at most {s['limit']:g} is wanted" if before_after else "above 1: PyC is faster"
    lines += [f"Ratio: median of the pairs' time of b over time of a, 95 % bootstrap interval ({meaning}). Fewer than "
              f"{MINIMUM_PAIRS} kept pairs decide nothing.", ""]
    if "runs" in document:
        lines += ["Joined from these runs, with the settings of the first unless said (model and threads):", "",
                  *(f"- {run}" for run in document["runs"]), ""]
    lines += ["| model | threads | a | b | a, ms | b, ms | ratio | kept of tries (dropped) | verdict |", "|---|---|---|---|---|---|---|---|---|"]
    for row in document["rows"]:
        head = f"| {row['model']} | {row['threads']} | {row['a']} | {row['b']} | "
        if "error" in row:
            reason = row["error"].replace("|", "/")
            lines.append(f"{head}| | | | {row['verdict']}: {reason} |")
            continue
        dropped = ", ".join(f"{reason} {count}" for reason, count in row["dropped"].items())
        count = f"{row['kept']} of {row['tries']}" + (f" ({dropped})" if dropped else "")
        lines.append(f"{head}{_times(row)}| {count} | {row['verdict']} |")
    for mean in document["means"]:
        lines.append(f"| geometric mean of {mean['models']} of {mean['of']} | {mean['threads']} | {mean['a']} | {mean['b']} | | | "
                     f"{mean['median']:.3f} ({mean['low']:.3f}–{mean['high']:.3f}) | | {mean['verdict']} |")
    return "\n".join([*lines, "", *_loading(document)]) + "\n"


def _loading(document):
    """Compile times and memory of each engine, one line per model and thread count."""
    lines = ["| model | threads | engine | load or compile, ms | again, ms | peak memory, MiB |", "|---|---|---|---|---|---|"]
    seen = set()
    for row in document["rows"]:
        for label, facts in row.get("facts", {}).items():
            key = (row["model"], row["threads"], label)
            if key in seen:
                continue
            seen.add(key)
            warm = "" if facts["warm_ms"] is None else f"{facts['warm_ms']:.1f}"
            lines.append(f"| {key[0]} | {key[1]} | {label} | {facts['cold_ms']:.0f} | {warm} | {facts['rss_mib']:.0f} |")
    return lines
