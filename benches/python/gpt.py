#!/usr/bin/env python3
"""The decoder of `cargo bench -p gpt --bench speed` in PyTorch and JAX: training steps of 8 texts, and sampling with a key-value cache.

    taskset -c 0 venv/bin/python benches/python/gpt.py [rounds] [torch|jax] [train|sample]     # needs torch, or jax and optax

6 layers, 256 wide, 8 heads, context 256, RoPE, RMS norm, SwiGLU; `f32`. Times are the least of the rounds. For a sampled token, they are the least time at each
position, averaged over positions. `--compiled` adds training with `torch.compile`, which needs a C++ compiler.
"""

import os
import sys
import time

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402

CHARS, LAYERS, HEADS, WIDTH, INNER, CONTEXT, TEXTS = 63, 6, 8, 256, 688, 256, 8
FEAT = WIDTH // HEADS
EPSILON, BASE, TEMPERATURE = 1e-5, 10_000.0, 0.8
RATE, BETAS, DECAY = 1e-4, (0.9, 0.99), 0.1
rng = np.random.default_rng(0)


def normal(*shape):
    return 0.02 * rng.standard_normal(shape, dtype=np.float32)


def random_weights():
    ones = np.ones(WIDTH, np.float32)
    layer = lambda: {  # noqa: E731
        "attention_norm": ones,
        "query": normal(WIDTH, WIDTH),
        "key": normal(WIDTH, WIDTH),
        "value": normal(WIDTH, WIDTH),
        "out": normal(WIDTH, WIDTH),
        "glu_norm": ones,
        "gate": normal(WIDTH, INNER),
        "up": normal(WIDTH, INNER),
        "down": normal(INNER, WIDTH),
    }
    return {"chars": normal(CHARS, WIDTH), "layers": [layer() for _ in range(LAYERS)], "norm": ones}


def texts(shift):
    b, t = np.ogrid[:TEXTS, :CONTEXT]
    return (31 * (b * CONTEXT + t + shift)) % 61 + b % 2


def angles():
    """Cosines and sines of RoPE, for each position and plane."""
    planes = FEAT // 2
    angle = np.arange(CONTEXT)[:, None] * BASE ** (-np.arange(planes) / planes)
    return np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)


def seconds(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def report(library, part, tokens, time, note=""):
    print(f"{library:<10}{part:<28}{1e3 * time:>10.3f} ms{tokens / time:>10.0f} tokens/s{note}", flush=True)


def train(library, parts, rounds):
    """Times `parts`, functions by name, which take turns."""
    least = dict.fromkeys(parts, float("inf"))
    for run in parts.values():
        run()
    for _ in range(rounds):
        for part, run in parts.items():
            least[part] = min(least[part], seconds(run))
    for part, time in least.items():
        report(library, part, TEXTS * CONTEXT, time)


def sample(library, batch, start, step, rounds):
    """`start(batch)` makes an empty cache and the first token of each text. `step(cache, ids, at)` reads the tokens at position `at`, draws the next ones, and waits for them."""
    least = [float("inf")] * (CONTEXT - 1)
    for _ in range(rounds):
        cache, ids = start(batch)
        for at in range(CONTEXT - 1):
            begin = time.perf_counter()
            cache, ids = step(cache, ids, at)
            least[at] = min(least[at], time.perf_counter() - begin)
    part = lambda times: 1e3 * sum(times) / len(times)  # noqa: E731
    note = f"; the first 16 {part(least[:16]):.3f} ms, the last 16 {part(least[-16:]):.3f}"
    report(library, f"a token of {batch} text(s)", batch, sum(least) / len(least), note)


def torch_runs(rounds, wanted, compiled=False):
    import torch
    from torch.nn import functional as F

    torch.set_num_threads(1)
    library = "compiled" if compiled else "torch"

    def tensor(array):
        # Old wheels of PyTorch cannot read arrays of new NumPy versions.
        return torch.frombuffer(bytearray(array.tobytes()), dtype=torch.float32).reshape(array.shape)

    plain = random_weights()
    weights = {
        "chars": tensor(plain["chars"]),
        "layers": [{name: tensor(w) for name, w in layer.items()} for layer in plain["layers"]],
        "norm": tensor(plain["norm"]),
    }
    parameters = [weights["chars"], weights["norm"], *(w for layer in weights["layers"] for w in layer.values())]
    for parameter in parameters:
        parameter.requires_grad_()
    cos, sin = (tensor(part) for part in angles())

    def norm(x, gain):
        return F.rms_norm(x, (WIDTH,), gain, EPSILON)

    def turn(x, cos, sin):
        """The axes of `x` are text, head, token, feature."""
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    def forward(ids, cos, sin, attend):
        x = F.embedding(ids, weights["chars"])
        batch, count, _ = x.shape
        for at, w in enumerate(weights["layers"]):
            y = norm(x, w["attention_norm"])
            query, key, value = (
                (y @ w[name]).view(batch, count, HEADS, FEAT).transpose(1, 2) for name in ("query", "key", "value")
            )
            found = attend(at, turn(query, cos, sin), turn(key, cos, sin), value)
            x = x + found.transpose(1, 2).reshape(batch, count, WIDTH) @ w["out"]
            y = norm(x, w["glu_norm"])
            x = x + (F.silu(y @ w["gate"]) * (y @ w["up"])) @ w["down"]
        return norm(x, weights["norm"]) @ weights["chars"].T

    def whole(_, query, key, value):
        return F.scaled_dot_product_attention(query, key, value, is_causal=True)

    def loss(ids, following):
        return F.cross_entropy(forward(ids, cos, sin, whole).flatten(0, 1), following.flatten())

    if compiled:
        loss = torch.compile(loss)
    ids, following = (torch.tensor(texts(shift).tolist()) for shift in (0, 1))
    optimizer = torch.optim.AdamW(parameters, lr=RATE, betas=BETAS, weight_decay=DECAY, fused=True)

    def loss_alone():
        with torch.no_grad():
            return loss(ids, following).item()

    def gradient():
        return torch.autograd.grad(loss(ids, following), parameters)

    def step():
        optimizer.zero_grad()
        loss(ids, following).backward()
        optimizer.step()

    # Sampling is not compiled: the sizes grow, so each step would be compiled again.
    if "sample" in wanted and not compiled:
        with torch.inference_mode():

            def start(batch):
                room = lambda: torch.zeros(batch, HEADS, CONTEXT, FEAT)  # noqa: E731
                cache = [(room(), room()) for _ in range(LAYERS)]
                return cache, torch.ones(batch, 1, dtype=torch.long)

            def draw(cache, ids, at):
                def cached(layer, query, key, value):
                    keys, values = cache[layer]
                    keys[:, :, at : at + 1] = key
                    values[:, :, at : at + 1] = value
                    return F.scaled_dot_product_attention(query, keys[:, :, : at + 1], values[:, :, : at + 1])

                scores = forward(ids, cos[at : at + 1], sin[at : at + 1], cached)[:, -1]
                drawn = torch.multinomial(torch.softmax(scores / TEMPERATURE, -1), 1)
                drawn.tolist()
                return cache, drawn

            for batch in (1, 4):
                sample(library, batch, start, draw, rounds)
    if "train" in wanted:
        train(library, {"loss": loss_alone, "loss and gradient": gradient, "loss, gradient and AdamW": step}, rounds)


def jax_runs(rounds, wanted):
    import jax
    import jax.numpy as jnp
    import optax

    weights = jax.tree.map(jnp.asarray, random_weights())
    cos, sin = map(jnp.asarray, angles())

    def norm(x, gain):
        return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + EPSILON) * gain

    def turn(x, cos, sin):
        """The axes of `x` are text, token, head, feature."""
        a, b = jnp.split(x, 2, -1)
        cos, sin = cos[:, None], sin[:, None]
        return jnp.concatenate((a * cos - b * sin, b * cos + a * sin), -1)

    def forward(weights, ids, cos, sin, attend):
        x = weights["chars"][ids]
        batch, count, _ = x.shape
        for at, w in enumerate(weights["layers"]):
            y = norm(x, w["attention_norm"])
            query, key, value = ((y @ w[name]).reshape(batch, count, HEADS, FEAT) for name in ("query", "key", "value"))
            found = attend(at, turn(query, cos, sin), turn(key, cos, sin), value)
            x = x + found.reshape(batch, count, WIDTH) @ w["out"]
            y = norm(x, w["glu_norm"])
            x = x + (jax.nn.silu(y @ w["gate"]) * (y @ w["up"])) @ w["down"]
        return norm(x, weights["norm"]) @ weights["chars"].T

    def attention(query, key, value, mask):
        scores = jnp.einsum("bqhf,bkhf->bhqk", query, key) * FEAT**-0.5
        return jnp.einsum("bhqk,bkhf->bqhf", jax.nn.softmax(jnp.where(mask, scores, -jnp.inf)), value)

    def whole(_, query, key, value):
        return attention(query, key, value, jnp.tril(jnp.ones((CONTEXT, CONTEXT), bool)))

    def loss(weights, ids, following):
        scores = forward(weights, ids, cos, sin, whole)
        return -jnp.take_along_axis(jax.nn.log_softmax(scores), following[..., None], -1).mean()

    ids, following = (jnp.asarray(texts(shift), jnp.int32) for shift in (0, 1))
    optimizer = optax.adamw(RATE, *BETAS, weight_decay=DECAY)
    loss_alone = jax.jit(loss)
    gradient = jax.jit(jax.value_and_grad(loss))

    def updated(weights, state, ids, following):
        value, found = jax.value_and_grad(loss)(weights, ids, following)
        updates, state = optimizer.update(found, state, weights)
        return optax.apply_updates(weights, updates), state, value

    updated = jax.jit(updated, donate_argnums=(0, 1))
    training = [jax.tree.map(jnp.copy, weights), None]
    training[1] = optimizer.init(training[0])

    def step():
        *training[:], value = updated(*training, ids, following)
        jax.block_until_ready(value)

    if "sample" in wanted:

        def drawn(weights, cache, ids, key, at):
            """The sizes do not depend on the position, so this is compiled once per batch size."""
            filled = [None] * LAYERS
            here = lambda table: jax.lax.dynamic_slice_in_dim(table, at, 1)  # noqa: E731

            def cached(layer, query, key, value):
                rooms = zip(cache[layer], (key, value))
                filled[layer] = [jax.lax.dynamic_update_slice_in_dim(room, part, at, 1) for room, part in rooms]
                return attention(query, *filled[layer], jnp.arange(CONTEXT) <= at)

            scores = forward(weights, ids, here(cos), here(sin), cached)[:, -1]
            return filled, jax.random.categorical(jax.random.fold_in(key, at), scores / TEMPERATURE)[:, None]

        drawn = jax.jit(drawn, donate_argnums=1)
        key = jax.random.key(0)

        def start(batch):
            room = lambda: jnp.zeros((batch, CONTEXT, HEADS, FEAT))  # noqa: E731
            return [[room(), room()] for _ in range(LAYERS)], jnp.ones((batch, 1), jnp.int32)

        def draw(cache, ids, at):
            cache, ids = drawn(weights, cache, ids, key, at)
            return cache, jax.block_until_ready(ids)

        for batch in (1, 4):
            sample("jax", batch, start, draw, rounds)
    if "train" in wanted:
        parts = {
            "loss": lambda: loss_alone(weights, ids, following).block_until_ready(),
            "loss and gradient": lambda: jax.block_until_ready(gradient(weights, ids, following)),
            "loss, gradient and AdamW": step,
        }
        train("jax", parts, rounds)


def main():
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    rounds = next((int(word) for word in words if word.isdigit()), 10)
    chosen = lambda names: [name for name in names if name in words] or names  # noqa: E731
    wanted = chosen(["train", "sample"])
    runs = {"torch": torch_runs, "jax": jax_runs}
    libraries = chosen(list(runs))
    for library in libraries:
        try:
            runs[library](rounds, wanted)
        except ImportError as error:
            print(f"{library} is not installed: {error}")
    if "--compiled" in sys.argv:
        torch_runs(rounds, wanted, compiled=True)


if __name__ == "__main__":
    main()
