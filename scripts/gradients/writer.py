"""A file of gradient cases and the two ways an expected gradient is found."""

import numpy as np

TOLERANCE = "rel 1e-06 abs 1e-08"


def number(v):
    x = float(v)
    if np.isnan(x) or np.isinf(x):
        return str(x)
    text = repr(x)
    return text if "." in text or "e" in text else text + ".0"


def tensor(a):
    a = np.asarray(a)
    if a.dtype == np.bool_:
        kind, items = "bool", ["true" if v else "false" for v in a.ravel()]
    elif np.issubdtype(a.dtype, np.integer):
        kind, items = ("i32" if a.dtype == np.int32 else "i64"), [str(int(v)) for v in a.ravel()]
    else:
        kind, items = ("f32" if a.dtype == np.float32 else "f64"), [number(v) for v in a.ravel()]
    return f"{kind}[{','.join(map(str, a.shape))}] dense({', '.join(items)})"


def is_real(a):
    return np.issubdtype(np.asarray(a).dtype, np.floating)


def arriving(outputs, seed):
    """What arrives for each float output."""
    rng = np.random.default_rng(seed)
    return [np.round(rng.uniform(-1, 1, np.shape(y)), 3).astype(np.asarray(y).dtype) for y in outputs if is_real(y)]


def listed(y):
    return list(y) if isinstance(y, (tuple, list)) else [y]


class File:
    def __init__(self, comment):
        self.text = f"# Written by scripts/gen_gradients.py. {comment}\n"
        self.count = 0

    def write(self, name, op, inputs, grads, expected, tolerance=TOLERANCE):
        lines = [f"case {name}", f"op {op}"]
        lines += [f"in {tensor(x)}" for x in inputs] + [f"in {tensor(g)}" for g in grads]
        lines += [f"out {tensor(e)}" for e in expected] + [f"tol {tolerance}"]
        self.text += "\n" + "\n".join(lines) + "\n"
        self.count += 1

    def smooth(self, name, op, inputs, forward):
        """Gradients of sum(outputs · g) by differences of `forward`, a numpy function of the inputs."""
        inputs = [np.asarray(x) for x in inputs]
        outputs = [np.asarray(y) for y in listed(forward(*inputs))]
        grads = arriving(outputs, len(self.text))

        def loss(args):
            real = [np.asarray(y, np.float64) for y in listed(forward(*args)) if is_real(y)]
            return sum(float(np.sum(y * g)) for y, g in zip(real, grads))

        def slope(i, at, h):
            values = []
            for step in (h, -h):
                moved = [x.copy() for x in inputs]
                moved[i].ravel()[at] += step
                values.append(loss(moved))
            return (values[0] - values[1]) / (2 * h)

        expected = []
        for i, x in enumerate(inputs):
            if not is_real(x):
                continue
            inputs[i] = x = x.copy()
            e = np.zeros(x.shape)
            for at in range(x.size):
                e.ravel()[at] = (4 * slope(i, at, 5e-4) - slope(i, at, 1e-3)) / 3
            expected.append(np.array([float(f"{v:.9g}") for v in e.ravel()]).reshape(x.shape))
        self.write(name, op, inputs, grads, expected)

    def closed(self, name, op, inputs, grads, expected, tolerance="ulp 4"):
        """`expected` by hand, one per float input."""
        def real(v):
            return v if is_real(v) else np.asarray(v, float)

        self.write(name, op, [np.asarray(x) for x in inputs], [real(g) for g in grads], [real(e) for e in expected], tolerance)
