#!/usr/bin/env python3
"""Trains the decoder of this example in PyTorch, from the same weights and on the same passages as in Rust, and compares the losses.

    cargo run --release -p gpt -- train --steps 500 --out target/gpt-500
    cargo run --release -p gpt -- export --steps 500 --out target/gpt-export
    venv/bin/python examples/gpt/python/train.py target/gpt-export target/gpt-500/loss.csv     # needs torch

With a number `e` at the end, such as 1e-7, PyTorch also trains a second model, whose initial weights are multiplied by 1 + e. The script then prints how far the two
diverge, to show the effect of rounding alone.
"""

import csv
import json
import math
import struct
import sys
from pathlib import Path

import torch
import torch.nn.functional as F

EPSILON, BASE = 1e-5, 10_000.0


def read(path):
    """The tensors and the metadata of a safetensors file."""
    data = Path(path).read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    notes = header.pop("__metadata__")
    kinds = {"F32": torch.float32, "U32": torch.int32}
    arrays = {}
    for name, entry in header.items():
        start, end = (8 + size + at for at in entry["data_offsets"])
        array = torch.frombuffer(bytearray(data[start:end]), dtype=kinds[entry["dtype"]])
        arrays[name] = array.reshape(entry["shape"])
    return arrays, notes


def norm(x, gain):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPSILON) * gain


def turn(x, cos, sin):
    """RoPE: x has the axes batch, token, head, feature; the two halves of the features are paired."""
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def loss(weights, texts, following, layers):
    token = torch.arange(texts.shape[1], dtype=torch.float32)
    planes = weights["layers.0.attention.query.weight"].shape[-1] // 2
    angle = token[:, None] * BASE ** (-torch.arange(planes, dtype=torch.float32) / planes)
    cos, sin = angle.cos()[:, None, :], angle.sin()[:, None, :]
    x = weights["chars.weight"][texts]
    for at in range(layers):
        w = {name: weights[f"layers.{at}.{name}"] for name in LAYER}
        y = norm(x, w["attention_norm.weight"])
        query = turn(torch.einsum("btw,whf->bthf", y, w["attention.query.weight"]), cos, sin)
        key = turn(torch.einsum("btw,whf->bthf", y, w["attention.key.weight"]), cos, sin)
        value = torch.einsum("btw,whf->bthf", y, w["attention.value.weight"])
        heads = (part.transpose(1, 2) for part in (query, key, value))
        found = F.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + torch.einsum("bhtf,whf->btw", found, w["attention.out.weight"])
        y = norm(x, w["glu_norm.weight"])
        x = x + (F.silu(y @ w["glu.gate.weight"]) * (y @ w["glu.up.weight"])) @ w["glu.down.weight"].T
    scores = norm(x, weights["norm.weight"]) @ weights["chars.weight"].T
    return F.cross_entropy(scores.flatten(0, 1), following.flatten())


LAYER = ["attention_norm", "attention.query", "attention.key", "attention.value", "attention.out"]
LAYER = [f"{name}.weight" for name in [*LAYER, "glu_norm", "glu.gate", "glu.up", "glu.down"]]


def rate(options, at):
    if at < options["warm_up"]:
        return options["rate"] * (at + 1) / options["warm_up"]
    done = (at - options["warm_up"]) / max(options["steps"] - options["warm_up"], 1)
    return options["rate"] * (0.1 + 0.45 * (1 + math.cos(math.pi * min(done, 1))))


class Training:
    """A training run in PyTorch, from the weights of the checkpoint times a factor."""

    def __init__(self, arrays, options, factor=1.0):
        self.options = options
        self.weights = {
            name.removeprefix("gpt."): (array * factor).requires_grad_()
            for name, array in arrays.items()
            if name.startswith("gpt.")
        }
        self.optimizer = torch.optim.AdamW(self.weights.values(), betas=(0.9, 0.99), eps=1e-8, weight_decay=0.1)

    def step(self, at, texts, following):
        """Makes a training step. Returns the loss before it."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate(self.options, at)
        self.optimizer.zero_grad()
        value = loss(self.weights, texts, following, self.options["layers"])
        value.backward()
        self.optimizer.step()
        return value.item()


def main(folder, losses, share=None):
    arrays, notes = read(Path(folder) / "checkpoint.safetensors")
    passages, _ = read(Path(folder) / "passages.safetensors")
    options = json.loads(notes["options"])
    expected = [float(line["loss"]) for line in csv.DictReader(open(losses))]
    first = Training(arrays, options)
    second = share and Training(arrays, options, 1 + float(share))
    greatest, drift = 0.0, 0.0
    steps = min(len(expected), len(passages) // 2)
    for at in range(steps):
        batch = [passages[f"{name}.{at}"].long() for name in ("texts", "next")]
        value = first.step(at, *batch)
        difference = abs(value - expected[at])
        greatest = max(greatest, difference)
        text = f"step {at + 1}: {value:.5f} here, {expected[at]:.5f} there, difference {difference:.1e}"
        if second:
            beside = abs(second.step(at, *batch) - value)
            drift = max(drift, beside)
            text += f"; the second run differs by {beside:.1e}"
        if at in (0, 1, 9) or (at + 1) % 50 == 0:
            print(text, flush=True)
    print(f"greatest difference of {steps} steps: {greatest:.1e}")
    if second:
        print(f"greatest difference of two runs in PyTorch: {drift:.1e}")


if __name__ == "__main__":
    main(*sys.argv[1:])
