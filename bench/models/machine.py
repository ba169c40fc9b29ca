"""The machine a figure belongs to, and what it does besides."""

import ctypes
import os
import platform
import subprocess
import time
from dataclasses import dataclass

TICKS = os.sysconf("SC_CLK_TCK")


class Probe:
    """The rates of bench/models/probe.cpp."""

    def __init__(self, library):
        self._library = ctypes.CDLL(str(library))
        for function in (self._library.pyc_probe_fma, self._library.pyc_probe_copy):
            function.restype = ctypes.c_double
            function.argtypes = [ctypes.c_int32]

    def rates(self, threads):
        """Multiply-adds and copied bytes per second of so many threads."""
        return self._library.pyc_probe_fma(threads), self._library.pyc_probe_copy(threads)


@dataclass(frozen=True)
class Usage:
    """Seconds since some start: of the clock, and of all processors."""

    clock: float
    steal: float
    busy: float
    own: float


def parse_cpu_line(line):
    """Seconds stolen and busy, of the first line of /proc/stat."""
    fields = [int(text) / TICKS for text in line.split()[1:]]
    user, nice, system, _, _, irq, softirq, steal = (fields + [0.0] * 8)[:8]
    return steal, user + nice + system + irq + softirq


def _own_seconds(pid):
    """Processor time of a process, all its threads together."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except FileNotFoundError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


def usage(pids):
    """What /proc says now; `pids` are the processes that belong to the measurement."""
    try:
        with open("/proc/stat", encoding="utf-8") as file:
            steal, busy = parse_cpu_line(file.readline())
    except FileNotFoundError:
        steal, busy = 0.0, 0.0
    return Usage(time.perf_counter(), steal, busy, sum(map(_own_seconds, pids)))


def shares(before, after, cores):
    """Shares of the machine's time between two usages that the hypervisor and other processes took."""
    whole = max(1e-9, after.clock - before.clock) * cores
    other = (after.busy - before.busy) - (after.own - before.own)
    # The counters move in ticks of 10 ms on every core: less than that is not seen.
    other = max(0.0, other - cores / TICKS)
    return max(0.0, after.steal - before.steal) / whole, other / whole


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
        "kernel": platform.release(),
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
