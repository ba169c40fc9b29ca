"""Whole networks, timed in turn with other engines or with another build of PyC: ./dev bench models [OPTION...]

Beside ONNX Runtime and OpenVINO:    bench/models
Two builds of PyC, before and after: bench/models --before COMMIT | --a LIBPYC.SO --b LIBPYC.SO

Writes NAME.json, NAME.md and NAME.svg. Exits 0 when everything is decided (before and after: within the limit), 1 when outputs
differ, an engine fails or the new build is slower, 2 when something is inconclusive.
"""

import argparse
import dataclasses
import datetime
import functools
import json
import os
import sys
import tempfile
from pathlib import Path

import builds
import chart
import check_baseline
import machine
import model_sets
import report
from engines import Engine
from intervals import MINIMUM_PAIRS
from pairs import Rules
from session import Plan, Session

ROOT = Path(__file__).resolve().parents[2]
SCRATCH = ROOT / "build/bench"
BUILT = ROOT / "build/release/libpyc.so"
RIVALS = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO", "torch": "PyTorch", "pyc-unfused": "PyC unfused"}


def library(text):
    """The path of a libpyc.so; libpyc_llvm.so lies beside it."""
    path = Path(text).resolve()
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"there is no {text}")
    return path


def parse():
    parser = argparse.ArgumentParser(prog="bench/models", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", metavar="COMMIT", help="compare this commit's build with --b")
    parser.add_argument("--a", metavar="LIB", type=library, help="the libpyc.so before")
    parser.add_argument("--b", metavar="LIB", type=library, default=BUILT, help="the libpyc.so now")
    parser.add_argument("--limit", type=float, default=1.03, help="before and after: what the upper end of the interval may be")
    parser.add_argument("--rivals", default="onnxruntime,openvino", help=f"some of {', '.join(RIVALS)}")
    parser.add_argument("--sets", default="skeletons", help=f"some of {', '.join(model_sets.SETS)}, or all")
    parser.add_argument("--models", type=Path, default=ROOT.parent / "shared/models", help="the folder with the sets")
    parser.add_argument("--filter", default="", help="only models whose name contains one of these (a,b,...)")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--out", type=Path, help="results without suffix (default: build/bench/results/DATE)")
    parser.add_argument("--baseline", type=Path, help="compare with this stored result at the end (check_baseline.py)")
    parser.add_argument("--realtime", action="store_true", help="run before all other processes (needs the right to)")
    parser.add_argument("--probe", type=Path, default=ROOT / "build/release/libpyc_bench_probe.so")
    for defaults in (Plan(), Rules()):
        for field in dataclasses.fields(defaults):
            parser.add_argument("--" + field.name.replace("_", "-"), type=field.type, default=getattr(defaults, field.name))
    args = parser.parse_args()
    if args.before and args.a:
        parser.error("--before and --a exclude one another")
    args.mode = "before_after" if args.before or args.a else "rivals"
    unknown = [name for name in args.rivals.split(",") if name not in RIVALS]
    if unknown:
        parser.error(f"there is no rival '{unknown[0]}'")
    args.sets = list(model_sets.SETS) if args.sets == "all" else args.sets.split(",")
    if not set(args.sets) <= set(model_sets.SETS):
        parser.error(f"--sets takes some of {', '.join(model_sets.SETS)}, or all")
    if args.tries < args.pairs:
        parser.error("--tries is less than --pairs")
    return args


def of_args(kind, args):
    return kind(**{field.name: getattr(args, field.name) for field in dataclasses.fields(kind)})


def origin(path):
    """The commit a library was built from, where that is known, or else what tells it from others."""
    return machine.commit(ROOT) if path in (BUILT, BUILT.resolve()) else f"sha256 {builds.digest(path)}"


def engines(args):
    """The engine that every pair has, the others, and where those of PyC come from."""
    if args.mode == "rivals":
        rivals = [Engine(RIVALS[kind], kind, str(args.b)) for kind in args.rivals.split(",")]
        return Engine("PyC", "pyc", str(args.b)), rivals, {"PyC": origin(args.b)}
    if args.before:
        print(f"building {args.before}", flush=True)
        before, args.a = builds.build_commit(ROOT, args.before, os.environ.get("PYC_JOBS", os.cpu_count()))
    else:
        before = origin(args.a)
    return Engine("before", "pyc", str(args.a)), [Engine("after", "pyc", str(args.b))], {"before": before, "after": origin(args.b)}


def chosen_models(args):
    """The models to measure; a set that is not there is said so."""
    words = args.filter.split(",")
    chosen = []
    for name in args.sets:
        found = model_sets.sources(args.models, name)
        if not found:
            print(f"bench models, set {name}: NOT RUN (there are no models in {args.models / model_sets.SETS[name]})")
        chosen += [source for source in found if any(word in source.name for word in words)]
    return chosen


def measure(args, sources, session, subject, others):
    """All rows, given out anew after each model."""
    rows = []
    tool = args.models.parent / "tools/fill_skeletons.py"
    for source in sources:
        model, inputs = model_sets.prepare(source, tool, session.scratch)
        compare = functools.partial(model_sets.difference, source)
        for threads in map(int, args.threads.split(",")):
            for row in session.measure(model, inputs, compare, threads, subject, others):
                rows.append(row)
                print_row(report.row_of(row, args.mode, args.limit))
        model.unlink()
        inputs.unlink()
        yield rows


def print_row(row):
    line = f"{row['model']}, {row['threads']} threads, {row['b']} over {row['a']}: "
    if "error" in row:
        line += f"{row['verdict']}: {row['error']}"
    elif "median" in row:
        line += f"{row['median']:.3f} ({row['low']:.3f} to {row['high']:.3f}), {row['kept']} of {row['tries']} pairs: {row['verdict']}"
    else:
        line += f"inconclusive: none of {row['tries']} pairs kept {row['dropped']}"
    print(line, flush=True)


def make_document(args, rows, commits, date, load):
    """Rows are judged by the best rates of the whole run."""
    figures = [report.row_of(row, args.mode, args.limit) for row in rows]
    versions = {}
    for row in rows:
        for label, facts in row.facts.items():
            versions[label] = {"version": facts["version"] + (f" ({commits[label]})" if label in commits else "")}
    settings = {**dataclasses.asdict(of_args(Plan, args)), **dataclasses.asdict(of_args(Rules, args)), "limit": args.limit,
                "realtime": args.realtime}
    return {
        "format": report.FORMAT, "mode": args.mode, "date": date, "commit": machine.commit(ROOT), "machine": machine.describe(),
        "load_average": load, "settings": settings, "engines": versions, "rows": figures, "means": report.means_of(figures, args.mode, args.limit),
    }


def write(document, out):
    out.parent.mkdir(parents=True, exist_ok=True)
    for suffix, text in ((".json", json.dumps(document, indent=1, ensure_ascii=False) + "\n"), (".md", report.markdown(document)),
                         (".svg", chart.svg(document))):
        Path(f"{out}{suffix}").write_text(text, encoding="utf-8")


def exit_code(document):
    verdicts = {row["verdict"] for row in document["rows"]}
    if "failed" in verdicts or (document["mode"] == "before_after" and "slower" in verdicts):
        return 1
    return 2 if "inconclusive" in verdicts else 0


def run(args, sources):
    """Measures the models and returns the document."""
    load = os.getloadavg()[0]
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    out = args.out or SCRATCH / "results" / date.replace(":", "")
    subject, others, commits = engines(args)
    if args.realtime:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))  # the workers inherit it
        for limit in machine.realtime_limits():
            print(limit)
    SCRATCH.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=SCRATCH, prefix="run-") as folder:
        session = Session(machine.Probe(args.probe), os.cpu_count(), of_args(Plan, args), of_args(Rules, args), Path(folder))
        for rows in measure(args, sources, session, subject, others):
            document = make_document(args, rows, commits, date, load)
            write(document, out)  # after every model: an interrupted run keeps what it has
    print(f"written: {out}.json, .md and .svg")
    return document


def main():
    args = parse()
    sources = chosen_models(args)
    if not sources:
        print(f"bench models: NOT RUN (no model to measure in {args.models})")
        return 0
    if args.pairs < MINIMUM_PAIRS:
        print(f"fewer than {MINIMUM_PAIRS} pairs: everything will be inconclusive")
    document = run(args, sources)
    wrong = report.problems(document)
    for text in wrong:
        print(f"error: {text}", file=sys.stderr)
    code = 1 if wrong else exit_code(document)
    if args.baseline:
        baseline = json.loads(args.baseline.read_text(encoding="utf-8"))
        code = max(code, check_baseline.check(document, baseline), key=[0, 2, 1].index)
    return code


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, ValueError, RuntimeError) as error:
        sys.exit(f"error: {error}")
