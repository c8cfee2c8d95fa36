#!/usr/bin/env python3
"""Compares typed-dims and its Rust peers with PyTorch, JAX and NumPy: the same cases on the same data, merged into one table.

Installation, in a virtual environment:

    python3 -m venv venv
    venv/bin/pip install torch jax numpy

(The CPU-only build of torch is smaller: `--index-url https://download.pytorch.org/whl/cpu`.)

Then, for one and for two threads:

    venv/bin/python benches/python/compare.py --json results.json --threads 1
    venv/bin/python benches/python/compare.py --json results.json --threads 2

Each case is measured first in Rust (benches/peers, which is built if necessary) and then here, on the inputs that the Rust program exports.
Results are compared with those of the Rust program; a difference is an error. `--no-rust` only measures the Python libraries, and adds them
to the results in the file. `--compile` adds torch.compile to elementwise functions, softmax, layer norm and distances; it needs a C++ compiler.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PEERS = Path(__file__).resolve().parent.parent / "peers"

TURN = 0.002  # seconds that a turn of short calls lasts
ALONE = 50e-6  # if no peer takes less, calls are timed one by one, the same number for each peer, and the fastest of a turn counts
MOST_ALONE = 8
SLOW = 0.030  # calls that take longer, and ten times as long as the fastest, have few turns
ROUNDS_OF_SLOW = 3
QUIET = 0.1  # a round is quiet if other processes used less than this share of one CPU
TOLERANCE = 2e-5  # of the largest element, as in benches/peers


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", help="cases, by name or prefix; all if none are given")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, required=True, help="a file of results to write, or to add to")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=8.0, help="seconds after which a case ends even if it was not quiet")
    parser.add_argument("--no-rust", action="store_true", help="measure the Python libraries alone")
    parser.add_argument("--compile", action="store_true", help="torch.compile as well")
    return parser.parse_args()


ARGS = arguments()

# NumPy requests huge pages for its arrays, and PyTorch reads these arrays. For a fair comparison, the C library requests huge pages
# here and in the Rust program. It also keeps freed memory. Otherwise results of 32 MiB and more would be returned to the system, and
# each call would be dominated by clearing new pages.
MALLOC = ":".join(
    f"glibc.malloc.{name}" for name in ("hugetlb=1", f"mmap_threshold={1 << 30}", f"trim_threshold={1 << 32}")
)
if MALLOC not in os.environ.get("GLIBC_TUNABLES", ""):
    os.environ["GLIBC_TUNABLES"] = MALLOC
    os.execv(sys.executable, [sys.executable, *sys.argv])

# Libraries read these on load.
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NPROC"):
    os.environ[variable] = str(ARGS.threads)
os.environ["JAX_PLATFORMS"] = "cpu"
if ARGS.threads == 1:
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

jax.config.update("jax_enable_x64", True)
torch.set_num_threads(ARGS.threads)
torch.set_grad_enabled(False)

CASES = {}


def case(*names):
    """Registers a function that maps inputs to a dict of peers, for the named cases."""

    def register(function):
        for name in names:
            CASES[name] = function
        return function

    return register


def from_numpy(inputs):
    return {name: torch.from_numpy(array) for name, array in inputs.items()}


def jitted(function, *arrays):
    """A call of a jax function that waits for the result."""
    compiled = jax.jit(function)
    arrays = [jnp.asarray(array) for array in arrays]
    return lambda: compiled(*arrays).block_until_ready()


def compiled(peers, function, *tensors):
    """Adds torch.compile to the peers, if requested."""
    if ARGS.compile:
        fast = torch.compile(function)
        peers["torch compile"] = lambda: fast(*tensors)
    return peers


def einsum(pattern, *names):
    """The einsum of each library over the inputs with these names."""

    def peers(inputs):
        tensors = from_numpy(inputs)
        arrays = [inputs[name] for name in names]
        return {
            "torch einsum": lambda: torch.einsum(pattern, *(tensors[name] for name in names)),
            "jax": jitted(lambda *operands: jnp.einsum(pattern, *operands), *arrays),
            "numpy einsum": lambda: np.einsum(pattern, *arrays, optimize=True),
        }

    return peers


@case("mm1024", "mm_f64_512", "bmm64x128")
def matmul(inputs):
    tensors = from_numpy(inputs)
    a, b = inputs["a"], inputs["b"]
    return {
        "torch": lambda: tensors["a"] @ tensors["b"],
        "jax": jitted(lambda a, b: a @ b, a, b),
        "numpy": lambda: a @ b,
    }


@case("mm1024_ta")
def matmul_ta(inputs):
    tensors = from_numpy(inputs)
    a, b = inputs["a"], inputs["b"]
    return {
        "torch": lambda: tensors["a"].T @ tensors["b"],
        "jax": jitted(lambda a, b: a.T @ b, a, b),
        "numpy": lambda: a.T @ b,
    }


@case("mm1024_tb")
def matmul_tb(inputs):
    tensors = from_numpy(inputs)
    a, b = inputs["a"], inputs["b"]
    return {
        "torch": lambda: tensors["a"] @ tensors["b"].T,
        "jax": jitted(lambda a, b: a @ b.T, a, b),
        "numpy": lambda: a @ b.T,
    }


@case("qk")
def scores(inputs):
    q, k = inputs["q"], inputs["k"]
    tq, tk = torch.from_numpy(q), torch.from_numpy(k)
    return einsum("bqhd,bkhd->bhqk", "q", "k")(inputs) | {
        "torch": lambda: tq.transpose(1, 2) @ tk.permute(0, 2, 3, 1),
        "numpy": lambda: q.swapaxes(1, 2) @ k.transpose(0, 2, 3, 1),
    }


def softmax_numpy(x):
    y = np.exp(x - x.max(-1, keepdims=True))
    y /= y.sum(-1, keepdims=True)
    return y


def attention(inputs, heads):
    def torch_composed(q, k, v):
        q, k, v = (x.transpose(1, 2) if heads == 2 else x for x in (q, k, v))
        out = torch.softmax(q @ k.transpose(2, 3) * 0.125, -1) @ v
        return out.transpose(1, 2).contiguous() if heads == 2 else out

    def torch_sdpa(q, k, v):
        q, k, v = (x.transpose(1, 2) if heads == 2 else x for x in (q, k, v))
        out = F.scaled_dot_product_attention(q, k, v, scale=0.125)
        return out.transpose(1, 2) if heads == 2 else out

    def jax_composed(q, k, v):
        q, k, v = (x.swapaxes(1, 2) if heads == 2 else x for x in (q, k, v))
        out = jax.nn.softmax(q @ k.swapaxes(2, 3) * jnp.float32(0.125), -1) @ v
        return out.swapaxes(1, 2) if heads == 2 else out

    def numpy_composed(q, k, v):
        q, k, v = (x.swapaxes(1, 2) if heads == 2 else x for x in (q, k, v))
        out = softmax_numpy(q @ k.swapaxes(2, 3) * np.float32(0.125)) @ v
        return np.ascontiguousarray(out.swapaxes(1, 2)) if heads == 2 else out

    arrays = [inputs[name] for name in "qkv"]
    tensors = [torch.from_numpy(array) for array in arrays]
    return {
        "torch": lambda: torch_composed(*tensors),
        "torch sdpa": lambda: torch_sdpa(*tensors),
        "jax": jitted(jax_composed, *arrays),
        "numpy": lambda: numpy_composed(*arrays),
    }


@case("attention")
def attention_short(inputs):
    return attention(inputs, 2)


@case("attention_long")
def attention_long(inputs):
    return attention(inputs, 1)


@case("gram")
def gram(inputs):
    flat = inputs["x"].reshape(8, 64, 4096)
    x = torch.from_numpy(flat)
    return {
        "torch": lambda: x @ x.transpose(1, 2),
        "jax": jitted(lambda x: x @ x.swapaxes(1, 2), flat),
        "numpy": lambda: flat @ flat.swapaxes(1, 2),
    }


@case("matvec")
def matvec(inputs):
    a, x = inputs["a"], inputs["x"]
    ta, tx = torch.from_numpy(a), torch.from_numpy(x)
    return {"torch": lambda: ta @ tx, "jax": jitted(lambda a, x: a @ x, a, x), "numpy": lambda: a @ x}


@case("chain4_thin", "chain4_fat")
def chain(inputs):
    arrays = [inputs[name] for name in "abcd"]
    tensors = [torch.from_numpy(array) for array in arrays]
    thin = arrays[0].shape[0] == 10

    def in_order(a, b, c, d):
        return (a @ b) @ (c @ d) if thin else (a @ (b @ c)) @ d

    return einsum("ab,bc,cd,de->ae", *"abcd")(inputs) | {
        "torch": lambda: in_order(*tensors),
        "torch multi_dot": lambda: torch.linalg.multi_dot(tensors),
        "jax in order": jitted(in_order, *arrays),
        "numpy": lambda: in_order(*arrays),
    }


@case("affine_relu")
def affine_relu(inputs):
    x = inputs["x"]
    scale, bias = (inputs[name].reshape(64, 1, 1) for name in ("scale", "bias"))
    tensors = [torch.from_numpy(array) for array in (x, scale, bias)]

    def with_torch(x, scale, bias):
        return torch.relu(x * scale + bias)

    def with_numpy():
        y = x * scale
        y += bias
        return np.maximum(y, 0, out=y)

    peers = {
        "torch": lambda: with_torch(*tensors),
        "jax": jitted(lambda x, scale, bias: jax.nn.relu(x * scale + bias), x, scale, bias),
        "numpy": with_numpy,
    }
    return compiled(peers, with_torch, *tensors)


@case("softmax_rows")
def softmax(inputs):
    x = inputs["x"]
    tensor = torch.from_numpy(x)
    peers = {
        "torch": lambda: torch.softmax(tensor, 1),
        "jax": jitted(lambda x: jax.nn.softmax(x, 1), x),
        "numpy": lambda: softmax_numpy(x),
    }
    return compiled(peers, lambda x: torch.softmax(x, 1), tensor)


@case("layernorm")
def layer_norm(inputs):
    x, gain, bias = (inputs[name] for name in ("x", "gain", "bias"))
    tensors = [torch.from_numpy(array) for array in (x, gain, bias)]

    def composed(x, gain, bias):
        centered = x - x.mean(1, keepdims=True)
        variance = (centered * centered).mean(1, keepdims=True)
        return centered * (variance + np.float32(1e-5)) ** np.float32(-0.5) * gain + bias

    def with_torch(x, gain, bias):
        return F.layer_norm(x, (768,), gain, bias, 1e-5)

    peers = {
        "torch": lambda: with_torch(*tensors),
        "jax": jitted(composed, x, gain, bias),
        "numpy": lambda: composed(x, gain, bias),
    }
    return compiled(peers, with_torch, *tensors)


@case("gelu_bias")
def gelu(inputs):
    x, bias = inputs["x"], inputs["bias"]
    tensors = [torch.from_numpy(x), torch.from_numpy(bias)]

    def with_torch(x, bias):
        return F.gelu(x + bias)

    # NumPy has no erf.
    peers = {
        "torch": lambda: with_torch(*tensors),
        "jax": jitted(lambda x, bias: jax.nn.gelu(x + bias, approximate=False), x, bias),
    }
    return compiled(peers, with_torch, *tensors)


@case("embbag")
def embedding_bag(inputs):
    table, ids = inputs["table"], inputs["ids"]
    weights, rows = torch.from_numpy(table), torch.from_numpy(ids)

    def one_by_one():
        out = np.zeros((1024, 128), np.float32)
        for s in range(64):
            out += table[ids[:, s]]
        return out

    return {
        "torch gather": lambda: weights[rows].sum(1),
        "torch embedding_bag": lambda: F.embedding_bag(rows, weights, mode="sum"),
        "jax": jitted(lambda table, ids: table[ids].sum(1), table, ids),
        "numpy": one_by_one,
    }


@case("nhwc_nchw3", "nhwc_nchw64")
def nhwc(inputs):
    x = inputs["x"]
    tensor = torch.from_numpy(x)
    return {
        "torch": lambda: tensor.permute(0, 3, 1, 2).contiguous(),
        "jax": jitted(lambda x: x.transpose(0, 3, 1, 2), x),
        "numpy": lambda: np.ascontiguousarray(x.transpose(0, 3, 1, 2)),
    }


@case("pixel_shuffle")
def pixel_shuffle(inputs):
    x = inputs["x"]
    tensor = torch.from_numpy(x)

    def moved(x):
        return x.reshape(8, 64, 2, 2, 64, 64).transpose(0, 1, 4, 2, 5, 3).reshape(8, 64, 128, 128)

    return {
        "torch": lambda: F.pixel_shuffle(tensor, 2),
        "torch permute": lambda: tensor.view(8, 64, 2, 2, 64, 64).permute(0, 1, 4, 2, 5, 3).reshape(8, 64, 128, 128),
        "jax": jitted(moved, x),
        "numpy": lambda: moved(x),
    }


@case("transpose2d")
def transpose(inputs):
    a = inputs["a"]
    tensor = torch.from_numpy(a)
    return {
        "torch": lambda: tensor.T.contiguous(),
        "jax": jitted(lambda a: a.T, a),
        "numpy": lambda: np.ascontiguousarray(a.T),
    }


@case("l1cdist")
def l1_distances(inputs):
    a, b = inputs["a"], inputs["b"]
    ta, tb = torch.from_numpy(a), torch.from_numpy(b)

    def with_torch(a, b):
        return (a[:, None] - b[None]).abs().sum(2)

    peers = {
        "torch": lambda: with_torch(ta, tb),
        "torch cdist": lambda: torch.cdist(ta, tb, p=1),
        "jax": jitted(lambda a, b: jnp.abs(a[:, None] - b[None]).sum(2), a, b),
        "numpy": lambda: np.abs(a[:, None] - b[None]).sum(2),
    }
    return compiled(peers, with_torch, ta, tb)


@case("triu")
def triu(inputs):
    a = inputs["a"]
    tensor = torch.from_numpy(a)
    return {
        "torch": lambda: torch.triu(tensor),
        "jax": jitted(jnp.triu, a),
        "numpy": lambda: np.triu(a),
    }


@case("relpos")
def relative_positions(inputs):
    q, table = inputs["q"], inputs["table"]
    tq, tt = torch.from_numpy(q), torch.from_numpy(table)
    distances = np.arange(256)[:, None] - np.arange(256)[None] + 255
    rows = torch.from_numpy(distances)
    pattern = "bqhd,qkd->bhqk"
    return {
        "torch": lambda: torch.einsum(pattern, tq, tt[rows]),
        "jax": jitted(lambda q, table: jnp.einsum(pattern, q, table[distances]), q, table),
        "numpy": lambda: np.einsum(pattern, q, table[distances], optimize=True),
    }


@case("conv2d")
def conv2d(inputs):
    x, kernel = inputs["x"], inputs["kernel"]
    tx, tk = torch.from_numpy(x), torch.from_numpy(kernel)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
    return {
        "torch": lambda: F.conv2d(tx, tk),
        "jax": jitted(lambda x, kernel: jax.lax.conv(x, kernel, (1, 1), "VALID"), x, kernel),
        "numpy": lambda: np.einsum("bchwij,ocij->bohw", windows, kernel, optimize=True),
    }


def sums(axis):
    def peers(inputs):
        a = inputs["a"]
        tensor = torch.from_numpy(a)
        return {
            "torch": lambda: tensor.sum(axis),
            "jax": jitted(lambda a: a.sum(axis), a),
            "numpy": lambda: a.sum(axis),
        }

    return peers


CASES["sum_axis0"] = sums(0)
CASES["sum_axis1"] = sums(1)


@case("tiny_mm4", "tiny_mm16")
def tiny_mm(inputs):
    return matmul(inputs)


@case("tiny_mm4_into", "tiny_mm16_into")
def tiny_mm_into(inputs):
    a, b = inputs["a"], inputs["b"]
    ta, tb = torch.from_numpy(a), torch.from_numpy(b)
    out, tensor = np.empty_like(a), torch.empty_like(ta)
    return {"torch out": lambda: torch.matmul(ta, tb, out=tensor), "numpy out": lambda: np.matmul(a, b, out=out)}


@case("tiny_add")
def tiny_add(inputs):
    a, b = inputs["a"], inputs["b"]
    ta, tb = torch.from_numpy(a), torch.from_numpy(b)
    return {"torch": lambda: ta + tb, "jax": jitted(lambda a, b: a + b, a, b), "numpy": lambda: a + b}


@case("tiny_add_into")
def tiny_add_into(inputs):
    a, b = inputs["a"], inputs["b"]
    ta, tb = torch.from_numpy(a), torch.from_numpy(b)
    out, tensor = np.empty_like(a), torch.empty_like(ta)
    return {"torch out": lambda: torch.add(ta, tb, out=tensor), "numpy out": lambda: np.add(a, b, out=out)}


@case("tiny_order")
def tiny_order(inputs):
    x = inputs["x"]
    tensor = torch.from_numpy(x)
    return {
        "torch": lambda: tensor.permute(2, 0, 1).contiguous(),
        "jax": jitted(lambda x: x.transpose(2, 0, 1), x),
        "numpy": lambda: np.ascontiguousarray(x.transpose(2, 0, 1)),
    }


@case("tiny_order_into")
def tiny_order_into(inputs):
    x = inputs["x"]
    source, moved = torch.from_numpy(x).permute(2, 0, 1), x.transpose(2, 0, 1)
    out, tensor = np.empty((4, 2, 3), np.float32), torch.empty(4, 2, 3)
    return {"torch out": lambda: tensor.copy_(source), "numpy out": lambda: (np.copyto(out, moved), out)[1]}


def cpu_seconds():
    """CPU seconds used by all processes, and by this one; None if unknown."""
    try:
        fields = [float(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    except OSError:
        return None
    used = os.times()
    return (sum(fields[:3]) + sum(fields[5:8])) / os.sysconf("SC_CLK_TCK"), used.user + used.system


def others(run):
    """The load from other processes while something runs, as a share of one CPU; 0 if it is unknown."""
    start, before = time.perf_counter(), cpu_seconds()
    run()
    after = cpu_seconds()
    if before is None or after is None:
        return 0.0
    return max((after[0] - before[0]) - (after[1] - before[1]), 0.0) / (time.perf_counter() - start)


def seconds_of(call, calls):
    repeat = range(calls)
    start = time.perf_counter()
    for _ in repeat:
        call()
    return (time.perf_counter() - start) / calls


def measure(peers):
    """Runs the peers in turns, as in benches/peers. Returns the entries, and the number of quiet rounds."""
    first = {name: min(seconds_of(call, 1) for _ in range(3)) for name, call in peers.items()}
    fastest = min(first.values())
    long = fastest >= ALONE
    calls = {name: max(1, min(round(TURN / seconds), 100_000)) for name, seconds in first.items()}
    if long:
        calls = dict.fromkeys(first, max(1, min(round(TURN / fastest), MOST_ALONE)))
    loads, turns = [], {name: [] for name in peers}
    end = time.monotonic() + ARGS.seconds
    quiet, rounds, order = 0, 0, list(peers)
    while quiet < ARGS.rounds and (time.monotonic() < end or rounds < ROUNDS_OF_SLOW):
        wait = min(end, time.monotonic() + 0.5)
        while time.monotonic() < wait and others(lambda: time.sleep(0.06)) > QUIET:
            pass
        random.shuffle(order)
        turn = {}

        def one_round():
            for name in order:
                slow = first[name] > SLOW and first[name] > 10 * fastest
                if slow and rounds >= ROUNDS_OF_SLOW:
                    continue
                if not slow:
                    peers[name]()  # the caches hold another peer's data
                if not long:
                    turn[name] = seconds_of(peers[name], calls[name])
                else:
                    turn[name] = min(seconds_of(peers[name], 1) for _ in range(calls[name]))

        loads.append(others(one_round))
        for name in peers:
            turns[name].append(turn.get(name))
        quiet += loads[-1] < QUIET
        rounds += 1
    entries = []
    for name, own in turns.items():
        measured = [seconds for seconds in own if seconds is not None]
        calm = [seconds for load, seconds in zip(loads, own) if seconds is not None and load < QUIET]
        entries.append({
            "peer": name,
            "language": "python",
            "min": min(measured),
            "median": statistics.median(calm or measured),
            "rounds": len(measured),
            "turns": own,
        })
    return entries, quiet


def check(name, peers, expected):
    """Raises if the result of a peer differs from that of typed-dims."""
    scale = np.abs(expected).max()
    for peer, call in peers.items():
        found = np.asarray(call(), np.float64).ravel()
        if found.size != expected.size:
            raise SystemExit(f"{name}: {peer} has {found.size} elements, typed-dims has {expected.size}")
        error = np.abs(found - expected).max()
        if not error <= TOLERANCE * scale:
            raise SystemExit(f"{name}: {peer} is off by {error}; the largest element is {scale}")


def rust(*arguments):
    command = ["cargo", "run", "--release", "--quiet", "--manifest-path", PEERS / "Cargo.toml", "--", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def store(name, entries, quiet):
    """Replaces the results of the Python libraries for a case in the file."""
    report = {"machine": "", "limits": [], "records": []}
    if ARGS.json.exists():
        report = json.loads(ARGS.json.read_text())
    for record in report["records"]:
        if record["case"] == name and record["threads"] == ARGS.threads:
            break
    else:
        record = {"case": name, "threads": ARGS.threads, "quiet_rounds": quiet, "entries": []}
        report["records"].append(record)
    record["entries"] = [entry for entry in record["entries"] if entry["language"] != "python"] + entries
    ARGS.json.write_text(json.dumps(report, indent=2))


def main():
    # Training steps have their own script, `training_steps.py`.
    names = [line.split()[0] for line in rust("list").splitlines()]
    known = [name for name in names if not name.startswith("step_")]
    missing = set(known) ^ set(CASES)
    if missing:
        raise SystemExit(f"cases on one side only: {sorted(missing)}")
    chosen = [name for name in known if not ARGS.cases or name in ARGS.cases]
    if not chosen:
        chosen = [name for name in known if name.startswith(tuple(ARGS.cases))]
    if not chosen:
        raise SystemExit(f"no case begins with {' or '.join(ARGS.cases)}")
    for name in chosen:
        if not ARGS.no_rust:
            options = [f"--rounds={ARGS.rounds}", f"--seconds={ARGS.seconds}", f"--threads={ARGS.threads}"]
            rust("run", name, f"--json={ARGS.json.resolve()}", *options)
        with tempfile.TemporaryDirectory() as folder:
            rust("export", name, folder)
            inputs = {path.stem: np.load(path) for path in Path(folder).glob("*.npy")}
        expected = inputs.pop("out")
        peers = CASES[name](inputs)
        check(name, peers, expected)
        entries, quiet = measure(peers)
        store(name, entries, quiet)
        times = "  ".join(f"{entry['peer']} {1e3 * entry['min']:.4f}" for entry in entries)
        print(f"{name} ({quiet} quiet rounds), ms:  {times}", file=sys.stderr)
    print(rust("table", str(ARGS.json)))


if __name__ == "__main__":
    main()
