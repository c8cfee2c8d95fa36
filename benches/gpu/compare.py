#!/usr/bin/env python3
"""The decoder of examples/gpt, attention and a product in JAX and PyTorch, with the sizes of the bench `gpu`.

Prints the median time of single calls and the mean time of queued ones, in microseconds, and the compile time (0 if it was not measured).

    python3 compare.py jax torch
"""

import sys
import time

BATCH, CONTEXT, LAYERS, WIDTH, HEADS, CHARS = 8, 256, 6, 256, 8, 65
INNER = -(-(-(-8 * WIDTH // 3)) // 8) * 8
FEAT = WIDTH // HEADS
CALLS = 50


def report(name, call, wait, compiled):
    for _ in range(3):
        wait(call())
    single = []
    for _ in range(CALLS):
        start = time.perf_counter()
        wait(call())
        single.append(1e6 * (time.perf_counter() - start))
    start = time.perf_counter()
    for _ in range(CALLS):
        last = call()
    wait(last)
    queued = 1e6 * (time.perf_counter() - start) / CALLS
    print(f"{name:44} single {sorted(single)[CALLS // 2]:10.0f}  queued {queued:10.0f}  compiled in {compiled:6.1f} s", flush=True)


def shapes():
    yield "chars", (CHARS, WIDTH)
    for at in range(LAYERS):
        for name in ("query", "key", "value"):
            yield f"{at}.{name}", (WIDTH, HEADS, FEAT)
        yield f"{at}.out", (HEADS, FEAT, WIDTH)
        yield f"{at}.gate", (WIDTH, INNER)
        yield f"{at}.up", (WIDTH, INNER)
        yield f"{at}.down", (INNER, WIDTH)
        yield f"{at}.norm1", (WIDTH,)
        yield f"{at}.norm2", (WIDTH,)
    yield "norm", (WIDTH,)


def with_jax():
    import jax
    import jax.numpy as jnp

    def norm(x, gain):
        return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * gain

    def turn(x, cos, sin):
        a, b = jnp.split(x, 2, -1)
        return jnp.concatenate((a * cos - b * sin, b * cos + a * sin), -1)

    def loss(w, texts, following):
        token = jnp.arange(CONTEXT, dtype=jnp.float32)
        planes = FEAT // 2
        angle = token[:, None] * 10000.0 ** (-jnp.arange(planes, dtype=jnp.float32) / planes)
        cos, sin = jnp.cos(angle)[:, None, :], jnp.sin(angle)[:, None, :]
        x = w["chars"][texts]
        mask = jnp.tril(jnp.ones((CONTEXT, CONTEXT), bool))
        for at in range(LAYERS):
            y = norm(x, w[f"{at}.norm1"])
            q = turn(jnp.einsum("btw,whf->bthf", y, w[f"{at}.query"]), cos, sin)
            k = turn(jnp.einsum("btw,whf->bthf", y, w[f"{at}.key"]), cos, sin)
            v = jnp.einsum("btw,whf->bthf", y, w[f"{at}.value"])
            scores = jnp.einsum("bqhf,bkhf->bhqk", q, k) * FEAT**-0.5
            shares = jax.nn.softmax(jnp.where(mask, scores, -jnp.inf), -1)
            found = jnp.einsum("bhqk,bkhf->bqhf", shares, v)
            x = x + jnp.einsum("bthf,hfw->btw", found, w[f"{at}.out"])
            y = norm(x, w[f"{at}.norm2"])
            x = x + (jax.nn.silu(y @ w[f"{at}.gate"]) * (y @ w[f"{at}.up"])) @ w[f"{at}.down"]
        scores = jax.nn.log_softmax(norm(x, w["norm"]) @ w["chars"].T)
        return -jnp.take_along_axis(scores, following[..., None], -1).mean()

    key = jax.random.key(0)
    weights = {name: 0.02 * jax.random.normal(key, shape) for name, shape in shapes()}
    texts = jax.random.randint(key, (BATCH, CONTEXT), 0, CHARS)
    for name, precision in (("exact", "highest"), ("tf32", "tensorfloat32")):
        with jax.default_matmul_precision(precision):
            start = time.perf_counter()
            step = jax.jit(jax.value_and_grad(loss)).lower(weights, texts, texts).compile()
            compiled = time.perf_counter() - start
        report(f"jax: gpt gradient {name}", lambda: step(weights, texts, texts), jax.block_until_ready, compiled)

    def attend(q, k, v):
        scores = jnp.einsum("bqhf,bkhf->bhqk", q, k, preferred_element_type=jnp.float32) * 0.125
        mask = jnp.tril(jnp.ones((1024, 1024), bool))
        shares = jax.nn.softmax(jnp.where(mask, scores, -jnp.inf), -1).astype(jnp.bfloat16)
        return jnp.einsum("bhqk,bkhf->bqhf", shares, v)

    q = jax.random.normal(key, (16, 1024, 16, 64), jnp.bfloat16)
    forward = jax.jit(attend)
    report("jax: attention bf16", lambda: forward(q, q, q), jax.block_until_ready, 0)
    backward = jax.jit(jax.grad(lambda q, k, v: attend(q, k, v).astype(jnp.float32).sum(), (0, 1, 2)))
    report("jax: attention bf16, gradient", lambda: backward(q, q, q), jax.block_until_ready, 0)
    a = jax.random.uniform(key, (8192, 8192), jnp.bfloat16)
    product = jax.jit(lambda a, b: a @ b)
    report("jax: product of bf16", lambda: product(a, a), jax.block_until_ready, 0)


def with_torch():
    import torch
    import torch.nn.functional as F

    device = "cuda"

    def norm(x, gain):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * gain

    def turn(x, cos, sin):
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    def loss(w, texts, following):
        token = torch.arange(CONTEXT, dtype=torch.float32, device=device)
        planes = FEAT // 2
        angle = token[:, None] * 10000.0 ** (-torch.arange(planes, dtype=torch.float32, device=device) / planes)
        cos, sin = angle.cos()[:, None, :], angle.sin()[:, None, :]
        x = w["chars"][texts]
        for at in range(LAYERS):
            y = norm(x, w[f"{at}.norm1"])
            q = turn(torch.einsum("btw,whf->bthf", y, w[f"{at}.query"]), cos, sin)
            k = turn(torch.einsum("btw,whf->bthf", y, w[f"{at}.key"]), cos, sin)
            v = torch.einsum("btw,whf->bthf", y, w[f"{at}.value"])
            found = F.scaled_dot_product_attention(*(own.transpose(1, 2) for own in (q, k, v)), is_causal=True)
            x = x + torch.einsum("bhtf,hfw->btw", found, w[f"{at}.out"])
            y = norm(x, w[f"{at}.norm2"])
            x = x + (F.silu(y @ w[f"{at}.gate"]) * (y @ w[f"{at}.up"])) @ w[f"{at}.down"]
        scores = norm(x, w["norm"]) @ w["chars"].T
        return F.cross_entropy(scores.flatten(0, 1), following.flatten())

    weights = {name: (0.02 * torch.randn(shape, device=device)).requires_grad_() for name, shape in shapes()}
    texts = torch.randint(0, CHARS, (BATCH, CONTEXT), device=device)

    def wait(_):
        torch.cuda.synchronize()

    for name, allow in (("exact", False), ("tf32", True)):
        torch.backends.cuda.matmul.allow_tf32 = allow
        for how in ("eager", "reduce-overhead"):
            start = time.perf_counter()
            own = loss if how == "eager" else torch.compile(loss, mode=how)

            def step():
                for weight in weights.values():
                    weight.grad = None
                own(weights, texts, texts).backward()

            step()
            wait(0)
            compiled = time.perf_counter() - start
            report(f"torch {how}: gpt gradient {name}", step, wait, compiled)
            torch._dynamo.reset()
    q = torch.randn(16, 16, 1024, 64, device=device, dtype=torch.bfloat16, requires_grad=True)
    with torch.no_grad():
        report("torch: attention bf16", lambda: F.scaled_dot_product_attention(q, q, q, is_causal=True), wait, 0)
    report(
        "torch: attention bf16, gradient",
        lambda: torch.autograd.grad(F.scaled_dot_product_attention(q, q, q, is_causal=True).float().sum(), q),
        wait,
        0,
    )
    a = torch.rand(8192, 8192, device=device, dtype=torch.bfloat16)
    report("torch: product of bf16", lambda: a @ a, wait, 0)


if __name__ == "__main__":
    for name in sys.argv[1:] or ["jax", "torch"]:
        {"jax": with_jax, "torch": with_torch}[name]()
