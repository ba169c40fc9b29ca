"""Modules of the common kinds, with random weights."""

import math

import torch
from torch import nn
from torch.nn import functional


def mlp():
    return nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 64), nn.ReLU(), nn.LayerNorm(64), nn.Linear(64, 10))


def cnn():
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.SiLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 16, 3, padding=1, groups=16),
        nn.Conv2d(16, 32, 1),
        nn.Hardswish(),
        nn.AvgPool2d(3, 2, 1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 10),
    )


class BasicBlock(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.short = nn.Identity()
        if stride != 1 or inside != outside:
            self.short = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)))
        return functional.relu(self.bn2(self.conv2(y)) + self.short(x))


def resnet18():
    blocks, inside = [], 64
    for outside, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        blocks += [BasicBlock(inside, outside, stride), BasicBlock(outside, outside, 1)]
        inside = outside
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


def encoder(width=64, layers=2):
    layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True, activation="gelu", norm_first=True)
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, past):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv(x).split(width, dim=2))
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        scores = q @ k.transpose(-1, -2) / math.sqrt(k.shape[-1])
        seen = torch.arange(k.shape[2])[None, :] <= torch.arange(length)[:, None] + (k.shape[2] - length)
        y = scores.masked_fill(~seen, -math.inf).softmax(-1) @ v
        return self.out(y.transpose(1, 2).reshape(batch, length, width)), (k, v)


class Decoder(nn.Module):
    """Shaped as GPT-2, with a cache that grows by each token."""

    def __init__(self, width=64, heads=4, layers=2, words=100, longest=64):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(longest, width)
        self.norms1 = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.norms2 = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.attention = nn.ModuleList(Attention(width, heads) for _ in range(layers))
        wide = lambda: nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width)
        )  # noqa: E731
        self.mlps = nn.ModuleList(wide() for _ in range(layers))
        self.last = nn.LayerNorm(width)

    def forward(self, tokens, cache=None):
        at = 0 if cache is None else cache[0][0].shape[2]
        x = self.words(tokens) + self.places(torch.arange(at, at + tokens.shape[1]))
        new = []
        for i, (attention, wide) in enumerate(zip(self.attention, self.mlps)):
            y, kv = attention(self.norms1[i](x), None if cache is None else cache[i])
            new.append(kv)
            x = x + y
            x = x + wide(self.norms2[i](x))
        return self.last(x) @ self.words.weight.T, new


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 16, num_layers=2, batch_first=True)
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        return self.head(y), h, c


class Cells(nn.Module):
    """The same step by step, of cells."""

    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(8, 16)

    def forward(self, x):
        h = c = x.new_zeros(x.shape[0], 16)
        steps = []
        for i in range(x.shape[1]):
            h, c = self.cell(x[:, i], (h, c))
            steps.append(h)
        return torch.stack(steps, 1), c


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        block = lambda a, b: nn.Sequential(
            nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(4, b), nn.LeakyReLU(0.1)
        )  # noqa: E731
        self.down1, self.down2, self.middle = block(1, 8), block(8, 16), block(16, 32)
        self.up2, self.join2 = nn.ConvTranspose2d(32, 16, 2, 2), block(32, 16)
        self.up1, self.join1 = nn.Upsample(scale_factor=2, mode="bilinear"), block(24, 8)
        self.last = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(functional.max_pool2d(a, 2))
        y = self.middle(functional.max_pool2d(b, 2))
        y = self.join2(torch.cat([self.up2(y), b], 1))
        return self.last(self.join1(torch.cat([self.up1(y), a], 1))).softmax(1)


# Name: the module and its inputs.
MODELS = {
    "mlp": (mlp, [(4, 32)]),
    "cnn": (cnn, [(2, 3, 16, 16)]),
    "resnet18": (resnet18, [(1, 3, 64, 64)]),
    "encoder": (encoder, [(2, 10, 64)]),
    "lstm": (Recurrent, [(2, 5, 8)]),
    "lstm_cells": (Cells, [(2, 5, 8)]),
    "unet": (UNet, [(1, 1, 16, 16)]),
}


def make(name):
    torch.manual_seed(0)
    build, shapes = MODELS[name]
    module = build().eval()
    for buffer, value in module.named_buffers():
        if "running" in buffer:
            value.uniform_(0.5, 1.5)
    return module, [torch.randn(shape) for shape in shapes]
