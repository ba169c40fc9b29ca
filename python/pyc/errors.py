"""One exception per status code. Each carries code, name, message, node and cure."""

from __future__ import annotations

from ._native import printable, statuses


class Error(Exception):
    """Why PyC refused something. str() has the message, the node it is about and what to do."""

    code: int = 0
    name: str = ""
    default_cure: str = ""

    def __init__(self, message: str, node: str = "") -> None:
        super().__init__(message)
        self.message = _shown(message)
        self.node = node
        self.cure = self.default_cure

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.message}"]
        if self.node:
            lines.append(f"  node: {_shown(self.node)}")
        if self.cure:
            lines.append(f"  cure: {self.cure}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[type[Error], tuple[str, str]]:
        return type(self), (self.message, self.node)


def _shown(text: str) -> str:
    """As it may be printed: names come as a model's file or a caller has them."""
    return printable(text.encode("utf-8", "backslashreplace"))


class InvalidArgumentError(Error, ValueError):
    """An option or argument is out of its range, or the number of tensors is wrong."""


class ParseError(Error, ValueError):
    """A text or file is malformed."""


class VerifyFailedError(Error):
    """A graph breaks a rule of Graph IR."""


class ShapeMismatchError(InvalidArgumentError):
    """Shapes do not fit one another or the model."""


class DtypeMismatchError(InvalidArgumentError, TypeError):
    """The op or the model does not take an element type."""


class RankMismatchError(InvalidArgumentError):
    """A tensor has another number of dims than needed."""


class SizeMismatchError(InvalidArgumentError):
    """A buffer's byte count does not fit its element type, shape and strides."""


class MisalignedError(InvalidArgumentError):
    """A tensor's address is no multiple of its element size."""


class NullPointerError(InvalidArgumentError):
    """A tensor has no memory."""


class UnknownOptionError(InvalidArgumentError, KeyError):
    """An option, device, stage or name does not exist."""

    __str__ = Error.__str__


class UnknownOpError(Error):
    """An op does not exist."""


class UnsupportedError(Error, NotImplementedError):
    """The request is valid, but this build, device or target cannot serve it."""


class BudgetExceededError(Error):
    """A limit would be passed: the memory contract, a file's size, a depth."""


class OutOfMemoryError(Error, MemoryError):
    """The system refused memory or a thread."""


class CompileFailedError(Error, RuntimeError):
    """Code generation failed, or the system refuses to execute generated code."""


class RuntimeFailedError(Error, RuntimeError):
    """A check inside a kernel failed; the outputs of this run are void."""


class IoError(Error, OSError):
    """A file could not be read or written."""

    __str__ = Error.__str__


class NotFoundError(Error, FileNotFoundError):
    """A file or name does not exist."""

    __str__ = Error.__str__


class InternalError(Error, RuntimeError):
    """An invariant of PyC is broken."""


def _class_name(status: str) -> str:
    """shape_mismatch: ShapeMismatchError; io_error: IoError."""
    words = "".join(word.capitalize() for word in status.split("_"))
    return words if words.endswith("Error") else words + "Error"


def _classes_by_code() -> dict[int, type[Error]]:
    by_code: dict[int, type[Error]] = {}
    for code, name, _, cure in statuses():
        # A code that is younger than this file is an Error.
        found = globals().get(_class_name(name))
        made: type[Error] = found or type(_class_name(name), (Error,), {"__module__": __name__})
        made.code, made.name, made.default_cure = code, name, cure
        by_code[code] = made
    return by_code


by_code = _classes_by_code()


def error_of_code(code: int, message: str, node: str) -> Error:
    return by_code.get(code, Error)(message, node)
