"""Models to train, as text for PyC; training writes their weights, which begin at random."""

import math


class Text:
    """A graph's text, node by node."""

    def __init__(self, inputs):
        self.inputs, self.lines, self.count = inputs, [], 0

    def weight(self, *shape, fan_in=None):
        """Uniform like torch's linear layers: within 1 / sqrt(fan in)."""
        self.count += 1
        bound = 1 / math.sqrt(fan_in or shape[0])
        dims = ",".join(map(str, shape))
        self.lines.append(f"  %w{self.count} = const f32[{dims}] random(seed={self.count}, lo={-bound:.6f}, hi={bound:.6f})")
        return f"w{self.count}"

    def constant(self, kind, text):
        self.count += 1
        self.lines.append(f"  %c{self.count} = const {kind} {text}")
        return f"c{self.count}"

    def op(self, op, *inputs, **attrs):
        self.count += 1
        shown = ", ".join(f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in attrs.items())
        arguments = ", ".join("%" + name for name in inputs)
        self.lines.append(f"  %v{self.count} = {op}({arguments}){' {' + shown + '}' if shown else ''}")
        return f"v{self.count}"

    def linear(self, x, inside, outside):
        return self.op("add", self.op("matmul", x, self.weight(inside, outside)), self.weight(outside, fan_in=inside))

    def finish(self, output):
        return f"graph @model({self.inputs}) -> (%{output}) {{\n" + "\n".join(self.lines) + "\n}\n"


def mlp(batch, *widths):
    t = Text(f"%x: f32[{batch},{widths[0]}]")
    x = "x"
    for i in range(len(widths) - 1):
        x = t.linear(x, widths[i], widths[i + 1])
        if i + 2 < len(widths):
            x = t.op("relu", x)
    return t.finish(x)


def cnn(batch, side, channels, classes):
    """Layers of 3×3, each followed by relu and a max pool of 2×2."""
    t = Text(f"%x: f32[{batch},{channels[0]},{side},{side}]")
    x = "x"
    for inside, outside in zip(channels, channels[1:]):
        fan_in = inside * 9
        w, b = t.weight(outside, inside, 3, 3, fan_in=fan_in), t.weight(outside, fan_in=fan_in)
        x = t.op("relu", t.op("conv", x, w, b, pads=[1, 1, 1, 1]))
        x = t.op("max_pool", x, kernel=[2, 2], strides=[2, 2])
        side //= 2
    flat = channels[-1] * side * side
    return t.finish(t.linear(t.op("reshape", x, shape=[batch, flat]), flat, classes))


def attend(t, x, batch, length, width, heads, future):
    """Causal attention of the rows of x, and its projection."""
    size = width // heads
    joined = t.linear(x, width, 3 * width)

    def part(i, perm):
        rows = t.op("slice", joined, starts=[i * width], ends=[(i + 1) * width], axes=[2])
        return t.op("transpose", t.op("reshape", rows, shape=[batch, length, heads, size]), perm=perm)

    scale = t.constant("f32[]", f"splat({1 / math.sqrt(size):.8f})")
    masked = t.constant("f32[]", "splat(-inf)")
    scores = t.op("mul", t.op("matmul", part(0, [0, 2, 1, 3]), part(1, [0, 2, 3, 1])), scale)
    shares = t.op("softmax", t.op("where", future, masked, scores), axis=-1)
    context = t.op("transpose", t.op("matmul", shares, part(2, [0, 2, 1, 3])), perm=[0, 2, 1, 3])
    return t.linear(t.op("reshape", context, shape=[batch, length, width]), width, width)


def norm(t, x, width):
    t.count += 1
    t.lines.append(f"  %g{t.count} = const f32[{width}] splat(1.0)\n  %b{t.count} = const f32[{width}] splat(0.0)")
    return t.op("layer_norm", x, f"g{t.count}", f"b{t.count}", epsilon=1e-05)


def transformer(batch, length, width, heads, layers, symbols):
    """A decoder with norms in front; its output is [batch, symbols, length], as cross entropy takes it."""
    t = Text(f"%x: i64[{batch},{length}]")
    x = t.op("gather", t.weight(symbols, width, fan_in=width), "x", axis=0)
    x = t.op("add", x, t.weight(length, width, fan_in=width * 4))
    steps = t.constant(f"i64[{length}]", "dense(" + ", ".join(map(str, range(length))) + ")")
    future = t.op("less", t.op("reshape", steps, shape=[length, 1]), steps)
    for _ in range(layers):
        x = t.op("add", x, attend(t, norm(t, x, width), batch, length, width, heads, future))
        hidden = t.op("gelu", t.linear(norm(t, x, width), width, 4 * width), approximate='"none"')
        x = t.op("add", x, t.linear(hidden, 4 * width, width))
    logits = t.linear(norm(t, x, width), width, symbols)
    return t.finish(t.op("transpose", logits, perm=[0, 2, 1]))


def lstm(batch, length, inside, hidden, classes):
    """A layer over the sequence, and classes from its last step."""
    t = Text(f"%x: f32[{length},{batch},{inside}]")
    w = t.weight(1, 4 * hidden, inside, fan_in=hidden)
    r = t.weight(1, 4 * hidden, hidden, fan_in=hidden)
    b = t.weight(1, 8 * hidden, fan_in=hidden)
    t.lines.append(f'  %y, %h, %c = lstm(%x, %{w}, %{r}, %{b}) {{with="b"}}')
    last = t.op("slice", "y", starts=[length - 1], ends=[length], axes=[0])
    return t.finish(t.linear(t.op("reshape", last, shape=[batch, hidden]), hidden, classes))
