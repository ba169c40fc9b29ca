"""Tensors and the .cases files they are written to (format: tests/ops/README.md)."""

from pathlib import Path

import ml_dtypes
import numpy as np

from cases.numerics import NUMPY, is_float, rounded, wide

FOLDER = Path(__file__).resolve().parent.parent.parent / "tests" / "ops"


def philox(seed, count):
    """Words 0 … count-1 of stream 0: Philox4x32-10, four words per counter."""
    blocks = np.arange((count + 3) // 4, dtype=np.uint64)
    c = [blocks & 0xFFFFFFFF, blocks >> 32, np.zeros_like(blocks), np.zeros_like(blocks)]
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        p0, p1 = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(p1 >> 32) ^ c[1] ^ np.uint64(key[0]), p1 & 0xFFFFFFFF,
             (p0 >> 32) ^ c[3] ^ np.uint64(key[1]), p0 & 0xFFFFFFFF]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(c, axis=1).ravel()[:count]


class Tensor:
    """An array, its dtype's name, and how the file writes it."""

    def __init__(self, dt, array, text=None):
        self.dt, self.a = dt, array
        self.text = text or f"dense({', '.join(element(v, dt) for v in array.ravel())})"

    @property
    def type(self):
        return f"{self.dt}[{','.join(map(str, self.a.shape))}]"

    @property
    def w(self):
        """As arithmetic sees it."""
        return self.a.astype(wide(self.dt))


def element(v, dt):
    if dt == "bool":
        return "true" if v else "false"
    if not is_float(dt):
        return str(int(v))
    x = float(v)
    if np.isnan(x) or np.isinf(x):
        return str(x)
    digits = next(d for d in range(1, 18) if rounded(np.float64(f"{x:.{d}g}"), dt) == v)
    text = f"{x:.{digits}g}"
    return text if "." in text or "e" in text else text + ".0"


def lit(dt, values, shape=None):
    a = np.array(values, np.float64 if is_float(dt) else NUMPY[dt])
    return Tensor(dt, rounded(a if shape is None else a.reshape(shape), dt))


def rnd(dt, shape, seed, lo=-2.0, hi=2.0):
    u = philox(seed, int(np.prod(shape))).astype(np.float64) / 2.0 ** 32
    x = lo + (hi - lo) * u
    if dt == "bool":
        a = u < 0.5
    else:
        limits = ml_dtypes.iinfo(NUMPY[dt]) if not is_float(dt) else None
        a = rounded(x, dt) if is_float(dt) else np.clip(np.floor(x), limits.min, limits.max).astype(NUMPY[dt])
    return Tensor(dt, a.reshape(shape), f"random(seed={seed}, lo={lo!r}, hi={hi!r})")


def seq(dt, *shape):
    """0, 1, 2 …: for ops that only move elements."""
    return lit(dt, np.arange(int(np.prod(shape))), shape)


class Cases:
    def __init__(self, op, note=""):
        self.op, self.names = op, set()
        self.lines = ["# Written by scripts/gen_cases.py; format: README.md."]
        self.lines += [f"# {line}" for line in note.splitlines()]

    def begin(self, name, inputs, attrs):
        assert name not in self.names, (self.op, name)
        self.names.add(name)
        self.lines += ["", f"case {name}", f"op {self.op} {{{attrs}}}" if attrs else f"op {self.op}"]
        for x in inputs:
            text = x if isinstance(x, str) else f"{x.type} {x.text}"
            self.lines += wrapped("in " + text)

    def run(self, name, inputs, out, attrs="", tol=""):
        self.begin(name, inputs, attrs)
        for y in out if isinstance(out, list) else [out]:
            y = y if isinstance(y, Tensor) else Tensor(inputs[0].dt, y)
            assert y.a.dtype == NUMPY[y.dt], (self.op, name, y.a.dtype)
            self.lines += wrapped(f"out {y.type} {y.text}")
        if tol:
            self.lines.append("tol " + tol)

    def refuse(self, name, inputs, code, message, attrs=""):
        self.begin(name, inputs, attrs)
        self.lines.append(f'expect-error {code} "{message}"')

    def refuse_to(self, operands, attrs=""):
        """The refusals of a product's attribute `to`; operands are shapes."""
        attrs = attrs + ", " if attrs else ""
        self.refuse("to_f64", [f"f16{s}" for s in operands], "dtype_mismatch", "to must be f32, found f64",
                    attrs + "to=f64")
        self.refuse("to_of_f32", [f"f32{s}" for s in operands], "dtype_mismatch",
                    f"only products of f16 or bf16 have to, found f32{operands[0]}", attrs + "to=f32")

    def fail(self, name, inputs, message, attrs=""):
        self.begin(name, inputs, attrs)
        self.lines.append(f'expect-run-error runtime_failed "{message}"')

    def write(self):
        (FOLDER / f"{self.op}.cases").write_text("\n".join(self.lines) + "\n", encoding="utf-8")


def wrapped(line, width=120):
    """Breaks after commas; continuation lines are indented."""
    out = []
    while len(line) > width:
        at = line.rfind(", ", 0, width) + 1
        if at <= 4:
            break
        out.append(line[:at])
        line = "    " + line[at + 1:]
    return out + [line]


GENERATORS = {}


def generator(*ops):
    def register(function):
        for op in ops:
            GENERATORS[op] = function
        return function
    return register
