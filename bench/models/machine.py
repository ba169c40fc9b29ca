"""The machine a figure belongs to, and what it does besides."""

import ctypes
import os
import platform
import subprocess
from pathlib import Path

READINGS = 3
TICKS = os.sysconf("SC_CLK_TCK")


class Probe:
    """The rates of bench/models/probe.cpp."""

    def __init__(self, library):
        self._library = ctypes.CDLL(str(library))
        for function in (self._library.pyc_probe_fma, self._library.pyc_probe_copy):
            function.restype = ctypes.c_double
            function.argtypes = [ctypes.c_int32]

    def rates(self, threads):
        """Multiply-adds and copied bytes per second of so many threads: the best of three readings of a few milliseconds, since
        one alone varies by more than what is looked for."""
        readings = [(self._library.pyc_probe_fma(threads), self._library.pyc_probe_copy(threads)) for _ in range(READINGS)]
        return max(fma for fma, _ in readings), max(copy for _, copy in readings)


def parse_steal(line):
    """Seconds stolen by the hypervisor, of the first line of /proc/stat."""
    fields = line.split()
    return int(fields[8]) / TICKS if len(fields) > 8 else 0.0


def stolen():
    """Seconds stolen so far on all processors together; 0 where the system does not say."""
    try:
        with open("/proc/stat", encoding="utf-8") as file:
            return parse_steal(file.readline())
    except FileNotFoundError:
        return 0.0


def waited(pid):
    """Seconds in which threads of a process could run and had no processor, so far; 0 where the system does not say."""
    total = 0
    for file in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            total += int(file.read_text(encoding="utf-8").split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue  # the thread has ended
    return total * 1e-9


SCHEDULER = Path("/proc/sys/kernel")


def realtime_limits(settings=SCHEDULER):
    """What stops real-time processes all the same while others want to run, and how to lift it: a sentence each."""
    found = []
    try:
        period, runtime = (int(Path(settings, f"sched_rt_{name}_us").read_text(encoding="utf-8")) for name in ("period", "runtime"))
        release = tuple(map(int, Path(settings, "osrelease").read_text(encoding="utf-8").split(".")[:2]))
    except (OSError, ValueError):
        return found
    if 0 <= runtime < period:
        found.append(f"real-time processes run for {runtime / 1e3:g} of {period / 1e3:g} ms here: long pairs will be dropped for waiting; "
                     "sysctl kernel.sched_rt_runtime_us=-1 lifts that")
    if release >= (6, 12):
        found.append("Linux gives other processes 50 ms after 950 ms without them (/sys/kernel/debug/sched/fair_server): pauses of --settle-ms serve "
                     "them, and a longer burst is dropped for waiting unless runtime of each cpu is 0 there")
    return found


def _cpu_model():
    try:
        listing = subprocess.run(["lscpu"], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}).stdout
    except FileNotFoundError:
        return platform.processor() or "unknown"
    for line in listing.splitlines():
        if line.startswith("Model name:"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def _cpu_features():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return []
    for line in lines:
        if line.split(":")[0].strip() in ("flags", "Features"):
            return sorted(line.split(":", 1)[1].split())
    return []


def describe():
    """What makes two machines different for a timing."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "architecture": platform.machine(),
        "cpu": _cpu_model(),
        "features": _cpu_features(),
        "cores": os.cpu_count(),
        "memory_gib": round(pages / 2**30, 1),
        "kernel": platform.release().split("-")[0],
    }


def signature(machine):
    """What must be equal for two results to be compared."""
    return f"{machine['architecture']}, {machine['cpu']}, {machine['cores']} cores"


def commit(root):
    """The commit of a checkout, with +changes where it is not clean; unknown outside one."""
    try:
        head = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=root, capture_output=True, text=True, check=True)
        changes = subprocess.run(["git", "diff", "--quiet", "HEAD"], cwd=root, capture_output=True)
    except (FileNotFoundError, subprocess.CalledProcessError):
        return "unknown"
    return head.stdout.strip() + ("+changes" if changes.returncode else "")
