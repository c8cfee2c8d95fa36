#!/usr/bin/env python3
"""Training steps (value and gradient, no optimizer) in PyTorch and JAX: the cases of `cargo bench --bench training_steps`.

    venv/bin/python benches/python/training_steps.py            # one thread; least time of each in microseconds
"""

import os
import time

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402

rng = np.random.default_rng(0)


def normal(*shape):
    return rng.standard_normal(shape, dtype=np.float32)


def least(step, rounds=20):
    step()
    start = time.perf_counter()
    step()
    calls = int(min(max(0.005 / (time.perf_counter() - start), 1), 10_000))
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            step()
        best = min(best, (time.perf_counter() - start) / calls)
    return best * 1e6


def jax_steps():
    import jax
    import jax.numpy as jnp

    def compiled(loss, *by):
        step = jax.jit(jax.value_and_grad(loss, argnums=tuple(range(len(by)))))
        return lambda: jax.block_until_ready(step(*by))

    steps = {}
    for examples, inputs, hidden in [(32, 64, 32), (64, 64, 128), (256, 784, 512)]:
        x, y = jnp.asarray(normal(examples, inputs)), jnp.arange(examples) % 10
        parameters = [0.05 * normal(inputs, hidden), np.zeros(hidden, "f"), 0.05 * normal(hidden, 10), np.zeros(10, "f")]

        def loss(w1, b1, w2, b2, x=x, y=y):
            log_p = jax.nn.log_softmax(jax.nn.relu(x @ w1 + b1) @ w2 + b2)
            return -jnp.take_along_axis(log_p, y[:, None], 1).mean()

        steps[f"mlp {examples}x{inputs}-{hidden}-10"] = compiled(loss, *map(jnp.asarray, parameters))
    a, b, c = (jnp.asarray(normal(1_000_000)) for _ in range(3))
    steps["chain of 10^6"] = compiled(lambda a, b, c: (jnp.tanh(a * b + c) * jax.nn.sigmoid(a)).sum(), a, b, c)
    scores, labels = jnp.asarray(normal(4096, 1024)), jnp.arange(4096) % 1024
    steps["cross entropy 4096x1024"] = compiled(
        lambda s: -jnp.take_along_axis(jax.nn.log_softmax(s), labels[:, None], 1).mean(), scores
    )
    x, weight = jnp.asarray(normal(4096, 768)), jnp.asarray(normal(4096, 768))

    def layer_norm(x, g, b):
        mean = x.mean(1, keepdims=True)
        var = ((x - mean) ** 2).mean(1, keepdims=True)
        return (((x - mean) * jax.lax.rsqrt(var + 1e-5) * g + b) * weight).sum()

    steps["layer norm 4096x768"] = compiled(layer_norm, x, jnp.ones(768), jnp.zeros(768))
    q, k, v = (jnp.asarray(normal(4, 8, 256, 64)) for _ in range(3))

    def attended(q, k, v):
        scores = jnp.einsum("bhqf,bhkf->bhqk", q, k) * 0.125
        scores = jnp.where(jnp.tril(jnp.ones((256, 256), bool)), scores, -jnp.inf)
        return jnp.einsum("bhqk,bhkf->bhqf", jax.nn.softmax(scores), v).sum()

    steps["attention 4x8x256x64 causal"] = compiled(attended, q, k, v)
    table, ids, weight2 = jnp.asarray(normal(50_000, 128)), jnp.arange(4096) * 7919 % 50_000, jnp.asarray(normal(4096, 128))
    steps["embedding 50000x128, 4096"] = compiled(lambda t: (t[ids] * weight2).sum(), table)

    def oscillators(k):
        def step(state, _):
            x, v = state
            v = v - (k * x + 0.1 * v) * 0.01
            return (x + 0.01 * v, v), None

        (x, _), _ = jax.lax.scan(step, (start, jnp.zeros(64)), None, length=100)
        return (x * x).sum()

    start, stiffness = jnp.asarray(normal(64)), jnp.asarray(normal(64) ** 2)
    steps["100 steps of 64 oscillators"] = compiled(oscillators, stiffness)
    return steps


def torch_steps():
    import torch
    from torch.nn import functional

    torch.set_num_threads(1)
    tensor = torch.from_numpy

    def step_of(loss, *by):
        by = [own.requires_grad_() for own in by]

        def step():
            value = loss(*by)
            return value, torch.autograd.grad(value, by)

        return step

    steps = {}
    for examples, inputs, hidden in [(32, 64, 32), (64, 64, 128), (256, 784, 512)]:
        x, y = tensor(normal(examples, inputs)), torch.arange(examples) % 10
        parameters = [0.05 * tensor(normal(inputs, hidden)), torch.zeros(hidden), 0.05 * tensor(normal(hidden, 10)), torch.zeros(10)]

        def loss(w1, b1, w2, b2, x=x, y=y):
            return functional.cross_entropy(torch.addmm(b2, torch.relu(torch.addmm(b1, x, w1)), w2), y)

        steps[f"mlp {examples}x{inputs}-{hidden}-10"] = step_of(loss, *(p.detach() for p in parameters))
    a, b, c = (tensor(normal(1_000_000)) for _ in range(3))
    steps["chain of 10^6"] = step_of(lambda a, b, c: (torch.tanh(a * b + c) * torch.sigmoid(a)).sum(), a, b, c)
    scores, labels = tensor(normal(4096, 1024)), torch.arange(4096) % 1024
    steps["cross entropy 4096x1024"] = step_of(lambda s: functional.cross_entropy(s, labels), scores)
    x, weight = tensor(normal(4096, 768)), tensor(normal(4096, 768))
    steps["layer norm 4096x768"] = step_of(
        lambda x, g, b: (functional.layer_norm(x, (768,), g, b) * weight).sum(), x, torch.ones(768), torch.zeros(768)
    )
    q, k, v = (tensor(normal(4, 8, 256, 64)) for _ in range(3))
    steps["attention 4x8x256x64 causal"] = step_of(
        lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True).sum(), q, k, v
    )
    table, ids, weight2 = tensor(normal(50_000, 128)), torch.arange(4096) * 7919 % 50_000, tensor(normal(4096, 128))
    steps["embedding 50000x128, 4096"] = step_of(lambda t: (functional.embedding(ids, t) * weight2).sum(), table)
    start, stiffness = tensor(normal(64)), tensor(normal(64) ** 2)

    def oscillators(k):
        x, v = start, torch.zeros(64)
        for _ in range(100):
            v = v - (k * x + 0.1 * v) * 0.01
            x = x + 0.01 * v
        return (x * x).sum()

    steps["100 steps of 64 oscillators"] = step_of(oscillators, stiffness)
    return steps


def main():
    columns = {}
    for name, steps in [("jax", jax_steps), ("torch", torch_steps)]:
        try:
            columns[name] = {case: least(step) for case, step in steps().items()}
        except ImportError as error:
            print(f"{name} is not installed: {error}")
    cases = dict.fromkeys(case for column in columns.values() for case in column)
    print(f"{'step, microseconds':<28}" + "".join(f"{name:>12}" for name in columns))
    for case in cases:
        print(f"{case:<28}" + "".join(f"{column[case]:>12.1f}" for column in columns.values()))


if __name__ == "__main__":
    main()
