#!/usr/bin/env python3
"""Training steps (value and gradient, no optimizer) in PyTorch and JAX: the cases of `cargo bench --bench training_steps`.

    venv/bin/python benches/python/training_steps.py [part of a name]     # one thread; least wall time of each in microseconds

`--compiled` adds a column for `torch.compile`, which needs a C++ compiler. The column `MiB` is the peak memory that a step of eager PyTorch allocates.
"""

import os
import sys
import time

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402

rng = np.random.default_rng(0)


def normal(*shape):
    return rng.standard_normal(shape, dtype=np.float32)


def least(step, rounds=20):
    def seconds(calls):
        start = time.perf_counter()
        for _ in range(calls):
            step()
        return (time.perf_counter() - start) / calls

    step()
    calls = int(min(max(0.005 / min(seconds(1) for _ in range(5)), 1), 10_000))
    return min(seconds(calls) for _ in range(rounds)) * 1e6


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
    block = [0.05 * jnp.asarray(normal(*shape)) for shape in BLOCK]
    x, target = jnp.asarray(normal(4, 128, 256)), jnp.asarray(normal(4, 128, 256))

    def block_loss(g1, b1, wq, wk, wv, wo, g2, b2, w1, c1, w2, c2):
        def norm(x, g, b):
            mean = x.mean(-1, keepdims=True)
            var = ((x - mean) ** 2).mean(-1, keepdims=True)
            return (x - mean) * jax.lax.rsqrt(var + 1e-5) * g + b

        n = norm(x, g1, b1)
        q, k, v = (jnp.einsum("btm,mhf->bhtf", n, w.reshape(256, 8, 32)) for w in (wq, wk, wv))
        shares = jax.nn.softmax(jnp.einsum("bhqf,bhkf->bhqk", q, k) * 32**-0.5)
        y = x + jnp.einsum("bhqk,bhkf->bqhf", shares, v).reshape(4, 128, 256) @ wo
        z = y + jax.nn.gelu(norm(y, g2, b2) @ w1 + c1, approximate=True) @ w2 + c2
        return ((z - target) ** 2).mean()

    steps["transformer block 4x128x256"] = compiled(block_loss, *block)
    image, weight3, image_weight = (jnp.asarray(normal(*shape)) for shape in CONV)

    def conv_loss(w, g, b, x):
        y = jax.lax.conv_general_dilated(x, w, (1, 1), "SAME")
        mean = y.mean((0, 2, 3), keepdims=True)
        var = ((y - mean) ** 2).mean((0, 2, 3), keepdims=True)
        y = (y - mean) * jax.lax.rsqrt(var + 1e-5) * g[:, None, None] + b[:, None, None]
        return (jax.nn.relu(y) * image_weight).sum()

    steps["conv block 8x32x28x28"] = compiled(conv_loss, weight3, jnp.ones(32), jnp.zeros(32), image)
    sequence = jnp.asarray(normal(32, 32, 128))

    def lstm_loss(w, u, b):
        def cell(state, x):
            h, c = state
            i, f, g, o = jnp.split(x + h @ u, 4, axis=1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

        (h, _), _ = jax.lax.scan(cell, (jnp.zeros((32, 128)), jnp.zeros((32, 128))), sequence @ w + b)
        return (h * h).sum()

    w, u = (0.05 * jnp.asarray(normal(128, 512)) for _ in range(2))
    steps["lstm 32 steps of 32x128"] = compiled(lstm_loss, w, u, jnp.zeros(512))
    return steps


# The parameters of a transformer block: gains, biases and weights, in order of use.
BLOCK = [(256,), (256,), (256, 256), (256, 256), (256, 256), (256, 256), (256,), (256,), (256, 1024), (1024,), (1024, 256), (256,)]
# A batch of images, a weight, and a factor for the result.
CONV = [(8, 32, 28, 28), (32, 32, 3, 3), (8, 32, 28, 28)]


def torch_steps(compiled=False):
    import torch
    from torch.nn import functional

    torch.set_num_threads(1)

    def tensor(array):
        # Old wheels of PyTorch cannot read arrays of new NumPy versions.
        return torch.frombuffer(bytearray(array.tobytes()), dtype=torch.float32).reshape(array.shape)

    def step_of(loss, *by):
        loss = torch.compile(loss) if compiled else loss
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
    block = [0.05 * tensor(normal(*shape)) for shape in BLOCK]
    tokens, target = tensor(normal(4, 128, 256)), tensor(normal(4, 128, 256))

    def block_loss(g1, b1, wq, wk, wv, wo, g2, b2, w1, c1, w2, c2):
        n = functional.layer_norm(tokens, (256,), g1, b1)
        q, k, v = ((n @ w).reshape(4, 128, 8, 32).transpose(1, 2) for w in (wq, wk, wv))
        heads = functional.scaled_dot_product_attention(q, k, v)
        y = tokens + heads.transpose(1, 2).reshape(4, 128, 256) @ wo
        wide = functional.gelu(functional.layer_norm(y, (256,), g2, b2) @ w1 + c1, approximate="tanh")
        return functional.mse_loss(y + wide @ w2 + c2, target)

    steps["transformer block 4x128x256"] = step_of(block_loss, *block)
    image, weight3, image_weight = (tensor(normal(*shape)) for shape in CONV)

    def conv_loss(w, g, b, x):
        y = functional.batch_norm(functional.conv2d(x, w, padding=1), None, None, g, b, training=True)
        return (torch.relu(y) * image_weight).sum()

    steps["conv block 8x32x28x28"] = step_of(conv_loss, weight3, torch.ones(32), torch.zeros(32), image)
    sequence = tensor(normal(32, 32, 128))

    def lstm_loss(w, u, b):
        inputs = sequence @ w + b
        h, c = torch.zeros(32, 128), torch.zeros(32, 128)
        for step in range(32):
            i, f, g, o = (inputs[step] + h @ u).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return (h * h).sum()

    w, u = (0.05 * tensor(normal(128, 512)) for _ in range(2))
    steps["lstm 32 steps of 32x128"] = step_of(lstm_loss, w, u, torch.zeros(512))
    return steps


def torch_peak(step):
    """The peak of allocated memory, in MiB."""
    import torch

    step()
    with torch.profiler.profile(profile_memory=True, record_shapes=False) as profile:
        step()
    live = peak = 0
    for event in profile.profiler.kineto_results.events():
        if event.name() == "[memory]":
            live += event.nbytes()
            peak = max(peak, live)
    return peak / 2**20


def main():
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    part = words[0] if words else ""
    makers = {"jax": jax_steps, "torch": torch_steps}
    if "--compiled" in sys.argv:
        makers["compiled"] = lambda: torch_steps(compiled=True)
    columns = {}
    for name, maker in makers.items():
        try:
            steps = {case: step for case, step in maker().items() if part in case}
        except ImportError as error:
            print(f"{name} is not installed: {error}")
            continue
        columns[name] = {}
        for case, step in steps.items():
            try:
                columns[name][case] = f"{least(step):.1f}"
            except Exception as error:  # (A compiler may be missing, or may not know an operation.)
                print(f"{name}, {case}: {type(error).__name__}")
        if name == "torch":
            columns["MiB"] = {case: f"{torch_peak(step):.2f}" for case, step in steps.items()}
    cases = dict.fromkeys(case for column in columns.values() for case in column)
    print(f"{'step, microseconds':<28}" + "".join(f"{name:>12}" for name in columns))
    for case in cases:
        print(f"{case:<28}" + "".join(f"{column.get(case, '-'):>12}" for column in columns.values()))


if __name__ == "__main__":
    main()
