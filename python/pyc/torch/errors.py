"""What is raised when something of torch's has no meaning here."""

from __future__ import annotations

import os

from ..errors import UnsupportedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class UnsupportedTorchError(UnsupportedError):
    """A node of a torch graph that PyC cannot read: `op` is ATen's name, `node` that of the graph, `source` the line
    of the user's code."""

    def __init__(self, reason: str, op: str = "", node: str = "", source: str = "") -> None:
        place = f" at {source}" if source else ""
        super().__init__(f"{op or 'the program'}: {reason}{place}", node)
        self.reason = reason
        self.op = op
        self.source = source

    def __reduce__(self) -> Any:
        return type(self), (self.reason, self.op, self.node, self.source)


def source_of(stack_trace: str | None) -> str:
    """The innermost line of a trace that is not torch's own: 'model.py:12: y = torch.foo(x)'."""
    lines = [line.strip() for line in (stack_trace or "").splitlines()]
    found = ""
    for line, after in zip(lines, [*lines[1:], ""]):
        if not line.startswith("File "):
            continue
        path, number = line.split(",")[:2]
        path = path[5:].strip('"')
        if not found or f"{os.sep}torch{os.sep}" not in path:
            found = f"{path}:{number.split()[-1]}: {after}".removesuffix(": ")
    return found
