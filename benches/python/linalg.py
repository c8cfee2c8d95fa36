#!/usr/bin/env python3
"""NumPy, SciPy, PyTorch and JAX in the cases of `benches/linalg.rs`, on one thread.

    venv/bin/pip install numpy scipy torch jax
    cargo bench --features linalg,nalgebra --bench linalg --no-run                # prints the path of the program
    taskset -c 0 venv/bin/python benches/python/linalg.py target/release/deps/linalg-... --turns 3

Runs the Rust program and each Python library in turns, compares the results, and prints the least processor time of each in
microseconds per matrix. A ratio is the time of typed-dims divided by the peer's. JAX compiles each case with `jit`. NumPy has
no LU, triangular systems or exponential, so these are SciPy's, and least squares of a batch are a loop.
"""

import argparse
import os
import subprocess
import sys

for name in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"]:
    os.environ[name] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import time

import numpy as np

SIZES = [(4, 100_000), (16, 10_000), (64, 1_000), (512, 1)]
CASES = ["cholesky", "solve", "solve_triangular", "inverse", "det", "lu", "qr", "svd", "eigh", "lstsq", "expm"]
COMPARED = 64
TOLERANCE = {"f32": 1e-3, "f64": 1e-9}


def numbers(stream, count):
    """The same numbers as in Rust: a hash (splitmix64) of the position, from -1 to 1."""
    with np.errstate(over="ignore"):
        z = (np.uint64(stream << 32) + np.arange(1, count + 1, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return z.astype(np.float64) / 2.0**63 - 1.0


def inputs(rows, batch, dtype):
    def random(stream, columns):
        return numbers(stream, batch * rows * columns).reshape(batch, rows, columns) * (3.0 / rows) ** 0.5

    other = random(2, rows)
    symmetric = (other + other.transpose(0, 2, 1)) / 2
    all_inputs = {
        "general": random(1, rows),
        "symmetric": symmetric,
        "definite": symmetric + 3.0 * np.eye(rows),
        "tall": random(3, rows // 2),
        "right": random(4, 1),
    }
    return {name: np.ascontiguousarray(value, dtype=dtype) for name, value in all_inputs.items()}


def numpy_cases(m):
    import scipy.linalg as sp

    g, b = m["general"], m["right"]
    yield "cholesky", lambda: np.linalg.cholesky(m["definite"])
    yield "solve", lambda: np.linalg.solve(g, b)
    yield "solve_triangular", lambda: sp.solve_triangular(m["definite"], b, lower=True, check_finite=False)
    yield "inverse", lambda: np.linalg.inv(g)
    yield "det", lambda: np.linalg.det(g)
    yield "lu", lambda: sp.lu(g, p_indices=True, check_finite=False)[1:]
    yield "qr", lambda: np.linalg.qr(g)
    yield "svd", lambda: np.linalg.svd(g, full_matrices=False)
    yield "eigh", lambda: np.linalg.eigh(m["symmetric"])
    yield "lstsq", lambda: np.stack([np.linalg.lstsq(a, b, rcond=None)[0] for a, b in zip(m["tall"], b)])
    yield "expm", lambda: sp.expm(g)


def torch_cases(m):
    import torch

    torch.set_num_threads(1)
    m = {name: torch.from_numpy(value) for name, value in m.items()}
    g, b = m["general"], m["right"]
    yield "cholesky", lambda: torch.linalg.cholesky(m["definite"])
    yield "solve", lambda: torch.linalg.solve(g, b)
    yield "solve_triangular", lambda: torch.linalg.solve_triangular(m["definite"], b, upper=False)
    yield "inverse", lambda: torch.linalg.inv(g)
    yield "det", lambda: torch.linalg.det(g)
    yield "lu", lambda: torch.linalg.lu(g)[1:]
    yield "qr", lambda: torch.linalg.qr(g)
    yield "svd", lambda: torch.linalg.svd(g, full_matrices=False)
    yield "eigh", lambda: torch.linalg.eigh(m["symmetric"])
    yield "lstsq", lambda: torch.linalg.lstsq(m["tall"], b)[0]
    yield "expm", lambda: torch.matrix_exp(g)


def jax_cases(m):
    import jax
    import jax.numpy as jnp
    import jax.scipy.linalg as jsp

    jax.config.update("jax_enable_x64", True)
    m = {name: jnp.asarray(value) for name, value in m.items()}
    g, b = m["general"], m["right"]

    def compiled(f, *arguments):
        f = jax.jit(f)
        return lambda: jax.block_until_ready(f(*arguments))

    triangular = jax.vmap(lambda a, b: jsp.solve_triangular(a, b, lower=True))
    yield "cholesky", compiled(lambda a: jnp.linalg.cholesky(a), m["definite"])
    yield "solve", compiled(jnp.linalg.solve, g, b)
    yield "solve_triangular", compiled(triangular, m["definite"], b)
    yield "inverse", compiled(jnp.linalg.inv, g)
    yield "det", compiled(jnp.linalg.det, g)
    yield "lu", compiled(jax.vmap(lambda a: jsp.lu(a)[1:]), g)
    yield "qr", compiled(lambda a: jnp.linalg.qr(a), g)
    yield "svd", compiled(lambda a: jnp.linalg.svd(a, full_matrices=False), g)
    yield "eigh", compiled(lambda a: jnp.linalg.eigh(a), m["symmetric"])
    yield "lstsq", compiled(jax.vmap(lambda a, b: jnp.linalg.lstsq(a, b)[0]), m["tall"], b)
    yield "expm", compiled(jax.vmap(jsp.expm), g)


LIBRARIES = {"numpy": numpy_cases, "torch": torch_cases, "jax": jax_cases}


def magnitude(found):
    """The mean magnitude of all results for the first matrices."""
    parts = found if isinstance(found, (tuple, list)) else [found]
    return np.mean(np.concatenate([np.abs(np.asarray(part[:COMPARED], dtype=np.float64)).ravel() for part in parts]))


def rust(program, rounds, filter, least, checks):
    lines = subprocess.run([program, str(rounds), filter], check=True, capture_output=True, text=True).stdout
    for line in lines.splitlines():
        case, check, *sides = [part.strip() for part in line.split("|")]
        checks[case] = float(check)
        for side in sides:
            name, time = side.rsplit(" ", 1)
            keep(least, case, name, float(time))


def keep(least, case, name, time):
    own = least.setdefault(case, {})
    own[name] = min(own.get(name, float("inf")), time)


def python(library, rounds, filter, least, checks):
    for dtype in ["f64", "f32"]:
        for rows, batch in SIZES:
            if not any(filter in f"{dtype} {case} {rows} {batch}" and f"{dtype} {case} {rows} {batch}" in checks for case in CASES):
                continue
            for case, run in LIBRARIES[library](inputs(rows, batch, {"f64": np.float64, "f32": np.float32}[dtype])):
                name = f"{dtype} {case} {rows} {batch}"
                if filter not in name or name not in checks:
                    continue
                found, expected = magnitude(run()), checks[name]
                if not abs(found - expected) < TOLERANCE[dtype] * expected:
                    print(f"{library}, {name}: {found} is not {expected}", file=sys.stderr)
                for _ in range(rounds):
                    start = time.process_time()
                    run()
                    seconds = time.process_time() - start
                    keep(least, name, library, 1e6 * seconds / batch)
                    if seconds > 2.0:
                        break


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("program", help="the compiled benchmark")
    options.add_argument("--turns", type=int, default=3)
    options.add_argument("--rounds", type=int, default=3, help="rounds in each turn")
    options.add_argument("--filter", default="", help="a part of `f64 svd 16 10000`")
    options.add_argument("--libraries", default="numpy,torch,jax")
    options = options.parse_args()
    least, checks = {}, {}
    for _ in range(options.turns):
        rust(options.program, options.rounds, options.filter, least, checks)
        for library in options.libraries.split(","):
            python(library, options.rounds, options.filter, least, checks)
    print("| case | typed-dims, us | fastest peer | ratio | others |\n|---|---|---|---|---|")
    for case, times in least.items():
        own = times.pop("typed-dims")
        order = sorted(times, key=times.get)
        others = ", ".join(f"{name} {times[name]:.4g} ({own / times[name]:.2f})" for name in order)
        first = order[0] if order else "-"
        ratio = f"{own / times[first]:.2f}" if order else "-"
        print(f"| {case} | {own:.4g} | {first} {times.get(first, 0):.4g} | {ratio} | {others} |", flush=True)


main()
