#!/usr/bin/env python3
"""The eight networks of the GPU's numbers at a small width, as text IR: small_models.py FOLDER

BERT b1, b8 and b32, ResNet-50 b1 and b32, MobileNetV2, ViT and GPT-2: their layers, with channels, sequences and images small enough for the interpreter to run them. Weights are random by seed. Writes FOLDER/NAME.ir.
"""

import sys
from pathlib import Path


class Net:
    """Lines of a graph; every method returns a value's name and knows its shape."""

    def __init__(self):
        self.consts, self.lines, self.shapes, self.seed = [], [], {}, 0

    def const(self, shape, reach):
        self.seed += 1
        name = f"%w{self.seed}"
        self.consts.append(f"  {name} = const f32[{','.join(map(str, shape))}] random(seed={self.seed}, lo={-reach:.4f}, hi={reach:.4f})")
        return name

    def op(self, text, shape):
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        self.shapes[name] = list(shape)
        return name

    def linear(self, x, columns):
        shape = self.shapes[x]
        product = self.op(f"matmul({x}, {self.const([shape[-1], columns], shape[-1] ** -0.5)})", shape[:-1] + [columns])
        return self.op(f"add({product}, {self.const([columns], 0.1)})", shape[:-1] + [columns])

    def same(self, text, x):
        return self.op(text, self.shapes[x])

    def norm(self, x):
        width = self.shapes[x][-1]
        return self.same(f"layer_norm({x}, {self.const([width], 1.0)}, {self.const([width], 0.1)})", x)

    def attention(self, x, heads, causal):
        b, s, width = self.shapes[x]

        def split(value):
            apart = self.op(f"reshape({value}) {{shape=[{b}, {s}, {heads}, {width // heads}]}}", [b, s, heads, width // heads])
            return self.op(f"transpose({apart}) {{perm=[0, 2, 1, 3]}}", [b, heads, s, width // heads])

        q, k, v = (split(self.linear(x, width)) for _ in range(3))
        name = f"%a{len(self.lines)}"
        self.lines.append(f"  {name}, {name}k, {name}v, {name}s = attention({q}, {k}, {v}) {{causal={'true' if causal else 'false'}}}")
        turned = self.op(f"transpose({name}) {{perm=[0, 2, 1, 3]}}", [b, s, heads, width // heads])
        return self.linear(self.op(f"reshape({turned}) {{shape=[{b}, {s}, {width}]}}", [b, s, width]), width)

    def mlp(self, x):
        width = self.shapes[x][-1]
        wide = self.linear(x, 4 * width)
        return self.linear(self.same(f"gelu({wide})", wide), width)

    def blocks(self, x, layers, heads, first, causal):
        """Norms in front of what they are for, or behind the sum."""
        for _ in range(layers):
            for part in (lambda v: self.attention(v, heads, causal), self.mlp):
                added = self.same(f"add({x}, {part(self.norm(x) if first else x)})", x)
                x = added if first else self.norm(added)
        return x

    def conv(self, x, filters, kernel, stride=1, group=1, then="relu"):
        b, channels, h, w = self.shapes[x]
        pad, terms = kernel // 2, channels // group * kernel * kernel
        h, w = ((n + 2 * pad - kernel) // stride + 1 for n in (h, w))
        weights = self.const([filters, channels // group, kernel, kernel], (3 / terms) ** 0.5)
        y = self.op(f"conv({x}, {weights}, {self.const([filters], 0.1)}) {{strides=[{stride}, {stride}], pads=[{pad}, {pad}, {pad}, {pad}], group={group}}}",
                    [b, filters, h, w])
        if then == "relu6":
            return self.same(f"clip({y}, %zero, %six)", y)
        return self.same(f"{then}({y})", y) if then else y

    def head(self, x, classes):
        b, channels = self.shapes[x][:2]
        return self.linear(self.op(f"reduce_mean({x}) {{axes=[2, 3], keepdims=false}}", [b, channels]), classes)

    def text(self, given, output, more=""):
        return f"graph @net({given}) -> ({output}) {{\n{more}" + "\n".join(self.consts + self.lines) + "\n}\n"


def tokens(net, b, s, width, words):
    table, places = net.const([words, width], 1.0), net.const([s, width], 0.2)
    return net.op(f"add({net.op(f'gather({table}, %ids) {{axis=0}}', [b, s, width])}, {places})", [b, s, width]), f"%ids: i64[{b},{s}]"


def bert(b, s):
    net = Net()
    x, given = tokens(net, b, s, 48, 32)
    return net.text(given, net.blocks(net.norm(x), 12, 3, False, False))


def gpt2():
    net = Net()
    x, given = tokens(net, 1, 48, 48, 32)
    x = net.norm(net.blocks(x, 12, 3, True, True))
    return net.text(given, net.op(f"matmul({x}, {net.const([48, 70], 0.2)})", [1, 48, 70]))


def vit():
    net = Net()
    net.shapes["%x"] = [1, 3, 48, 48]
    weights = net.const([48, 3, 8, 8], 0.1)
    patches = net.op(f"conv(%x, {weights}) {{strides=[8, 8]}}", [1, 48, 6, 6])
    rows = net.op(f"reshape({patches}) {{shape=[1, 48, 36]}}", [1, 48, 36])
    x = net.op(f"transpose({rows}) {{perm=[0, 2, 1]}}", [1, 36, 48])
    x = net.op(f"concat({net.const([1, 1, 48], 0.5)}, {x}) {{axis=1}}", [1, 37, 48])
    x = net.norm(net.blocks(net.same(f"add({x}, {net.const([37, 48], 0.2)})", x), 12, 3, True, False))
    token = net.op(f"slice({x}) {{starts=[0], ends=[1], axes=[1]}}", [1, 1, 48])
    return net.text("%x: f32[1,3,48,48]", net.linear(token, 20))


def resnet50(b):
    net = Net()
    net.shapes["%x"] = [b, 3, 32, 32]
    x = net.conv("%x", 8, 7, 2)
    x = net.op(f"max_pool({x}) {{kernel=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]}}", [b, 8, 8, 8])
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            width, stride = 8 << stage, 2 if stage > 0 and block == 0 else 1
            y = net.conv(net.conv(net.conv(x, width, 1), width, 3, stride), 4 * width, 1, then="")
            if block == 0:
                x = net.conv(x, 4 * width, 1, stride, then="")
            added = net.same(f"add({y}, {x})", y)
            x = net.same(f"relu({added})", added)
    return net.text(f"%x: f32[{b},3,32,32]", net.head(x, 20))


def mobilenetv2():
    net = Net()
    net.shapes["%x"] = [1, 3, 32, 32]
    x = net.conv("%x", 8, 3, 2, then="relu6")
    for expand, channels, blocks, stride in ((1, 8, 1, 1), (6, 8, 2, 2), (6, 8, 3, 2), (6, 16, 4, 1), (6, 24, 3, 1), (6, 40, 3, 2), (6, 80, 1, 1)):
        for block in range(blocks):
            own = net.shapes[x][1]
            y = net.conv(x, expand * own, 1, then="relu6") if expand > 1 else x
            y = net.conv(y, expand * own, 3, stride if block == 0 else 1, group=expand * own, then="relu6")
            y = net.conv(y, channels, 1, then="")
            x = net.same(f"add({y}, {x})", y) if net.shapes[y] == net.shapes[x] else y
    return net.text("%x: f32[1,3,32,32]", net.head(net.conv(x, 160, 1, then="relu6"), 20),
                    "  %zero = const f32[] splat(0.0)\n  %six = const f32[] splat(6.0)\n")


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    nets = {"bert_b1": bert(1, 32), "bert_b8": bert(8, 32), "bert_b32": bert(32, 24), "gpt2": gpt2(), "vit": vit(), "resnet50_b1": resnet50(1),
            "resnet50_b32": resnet50(32), "mobilenetv2": mobilenetv2()}
    for name, text in nets.items():
        (folder / f"{name}.ir").write_text(text)


if __name__ == "__main__":
    main()
