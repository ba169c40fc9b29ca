"""What became of the graphs that torch.compile handed over."""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass, field

LOG = logging.getLogger("pyc.torch")


@dataclass(frozen=True)
class Break:
    """A node that stays eager."""

    op: str
    node: str
    reason: str
    source: str

    def __str__(self) -> str:
        place = f" at {self.source}" if self.source else ""
        return f"{self.op} ({self.node}) stays eager: {self.reason}{place}"


@dataclass
class GraphReport:
    """One graph of torch.compile."""

    name: str
    nodes: int  # calls of ops in it
    compiled: int = 0  # of those: the ones PyC runs, for the shapes compiled last
    programs: int = 0  # that one run of it takes; more than one where eager nodes lie between
    breaks: list[Break] = field(default_factory=list)
    eager: str = ""  # why all of it stays eager; "" when not
    shapes: int = 0  # sets of sizes compiled so far
    dropped: int = 0  # of those: the ones given up for others, least recently used first
    generated: int = 0  # kernels made for a graph with open sizes; its plans share them
    recompiled: int = 0  # for weights that were written to
    frozen_bytes: int = 0  # of weights that are constants of the programs
    staged_views: int = 0  # inputs and outputs copied since they were not row-major
    runs: int = 0

    def __str__(self) -> str:
        if self.eager:
            return f"{self.name}: eager: {self.eager}"
        head = (
            f"{self.name}: {self.compiled} of {self.nodes} nodes compiled in {self.programs} programs, {self.shapes} shapes"
        )
        return "\n".join([head, *(f"  {one}" for one in self.breaks)])


REPORTS: deque[GraphReport] = deque(maxlen=256)


def torch_report(*, clear: bool = False) -> list[GraphReport]:
    """One entry per graph that torch.compile(backend="pyc") made, the latest 256: what is compiled, what stays eager
    and why. `clear` forgets them afterwards."""
    found = list(REPORTS)
    if clear:
        REPORTS.clear()
    return found
