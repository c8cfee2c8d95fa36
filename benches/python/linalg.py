#!/usr/bin/env python3
"""NumPy, PyTorch and JAX at the sizes of `benches/linalg.rs`: microseconds per matrix on one thread, the median of several rounds.

    venv/bin/pip install numpy torch jax
    venv/bin/python benches/python/linalg.py
"""

import os

for name in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"]:
    os.environ[name] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import statistics
import time

import numpy as np

SIZES = [(4, 100_000), (16, 10_000), (64, 1_000), (512, 1)]
ROUNDS = 7


def matrices(rows, batch):
    """Positive definite matrices."""
    small = np.random.default_rng(1).standard_normal((batch, rows, rows)) * (0.1 / rows)
    return small + small.transpose(0, 2, 1) + np.eye(rows)


def median(run):
    run()
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def cases_of(module, a, b, wrap):
    linalg = module.linalg
    return {
        "cholesky": wrap(lambda a, b: linalg.cholesky(a), a, b),
        "solve": wrap(lambda a, b: linalg.solve(a, b), a, b),
        "inverse": wrap(lambda a, b: linalg.inv(a), a, b),
        "det": wrap(lambda a, b: linalg.det(a), a, b),
        "eigh": wrap(lambda a, b: linalg.eigh(a), a, b),
        "svd": wrap(lambda a, b: linalg.svd(a, full_matrices=False), a, b),
        "qr": wrap(lambda a, b: linalg.qr(a), a, b),
    }


def libraries():
    yield "numpy", np, lambda x: x, lambda f, a, b: lambda: f(a, b)
    try:
        import torch

        torch.set_num_threads(1)
        yield "torch", torch, torch.from_numpy, lambda f, a, b: lambda: f(a, b)
    except ImportError:
        print("(no torch)")
    try:
        import jax

        jax.config.update("jax_enable_x64", True)

        def wrap(f, a, b):
            compiled = jax.jit(f)
            return lambda: jax.block_until_ready(compiled(a, b))

        yield "jax", jax.numpy, jax.numpy.asarray, wrap
    except ImportError:
        print("(no jax)")


for name, module, convert, wrap in libraries():
    for rows, batch in SIZES:
        a = convert(matrices(rows, batch))
        b = convert(np.random.default_rng(2).standard_normal((batch, rows, 1)))
        for case, run in cases_of(module, a, b, wrap).items():
            print(f"{name}: {case}, {batch} of {rows} x {rows}: {1e6 * median(run) / batch:.3f} us", flush=True)
