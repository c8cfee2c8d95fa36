"""Prints what NumPy and SciPy compute for the matrices of `inputs.rs`, as JSON: `python reference.py > reference.json`.

    pip install numpy scipy

This script and `inputs.rs` make the matrices by the formulas of `MATRICES`. Unless `types` is `double`, their elements are exact in single
precision, so all element types have the same results. A result with more than 16 elements is stored as its `sketch`.
"""

import json
import warnings

import numpy as np
import scipy.linalg as sl

MASK = (1 << 64) - 1


class Numbers:
    """Splitmix64, as in `tests/support/splitmix.rs`: multiples of 1 / 64 from -2 to 2."""

    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = ((self.state ^ (self.state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return ((z ^ (z >> 31)) % 257 - 128) / 64

    def matrix(self, rows, columns, is_complex):
        element = (lambda: self.next() + 1j * self.next()) if is_complex else self.next
        return np.array([element() for _ in range(rows * columns)]).reshape(rows, columns)


def general(numbers, rows, columns, is_complex):
    return numbers.matrix(rows, columns, is_complex)


def definite(numbers, rows, columns, is_complex):
    a = numbers.matrix(rows, columns, is_complex)
    return a @ a.conj().T + np.eye(rows)


def symmetric(numbers, rows, columns, is_complex):
    a = numbers.matrix(rows, columns, is_complex)
    return a + a.conj().T


def deficient(numbers, rows, columns, is_complex):
    rank = min(rows, columns) // 2
    return numbers.matrix(rows, rank, is_complex) @ numbers.matrix(rank, columns, is_complex)


def zero(numbers, rows, columns, is_complex):
    return np.zeros((rows, columns))


def repeated(numbers, rows, columns, is_complex):
    """All eigenvalues but one are 3, and all singular values but one are equal."""
    return np.ones((rows, columns)) + 3 * np.eye(rows, columns)


def rotations(numbers, rows, columns, is_complex):
    """Rotations of planes by 90 degrees: orthogonal, with the eigenvalues i and -i, and 1 for an odd size."""
    a = np.zeros((rows, rows))
    for at in range(0, rows - 1, 2):
        a[at, at + 1], a[at + 1, at] = -1, 1
    if rows % 2 == 1:
        a[-1, -1] = 1
    return a


def jordan(numbers, rows, columns, is_complex):
    """One eigenvalue, and one eigenvector."""
    return 2 * np.eye(rows) + np.eye(rows, k=1)


def exchange(numbers, rows, columns, is_complex):
    """The pivots are on the antidiagonal."""
    return np.fliplr(np.diag(np.arange(1.0, rows + 1)))


def hilbert(numbers, rows, columns, is_complex):
    return 1 / (1.0 + np.arange(rows)[:, None] + np.arange(columns)[None, :])


def scaled(exponent):
    return lambda numbers, rows, columns, is_complex: numbers.matrix(rows, columns, is_complex) * 2.0**exponent


def graded(numbers, rows, columns, is_complex):
    """Rows of sizes between 2^-12 and 2^12."""
    a = numbers.matrix(rows, columns, is_complex)
    return a * 2.0 ** (4 * (5 * np.arange(rows) % 7) - 12)[:, None]


def skewed(numbers, rows, columns, is_complex):
    """Numbers above the diagonal that are much greater than those on it."""
    return np.diag((-1.0) ** np.arange(rows)) + np.eye(rows, k=1) * 2.0**20


def growing(numbers, rows, columns, is_complex):
    return numbers.matrix(rows, columns, is_complex) * 8


MATRICES = {
    "general": general,
    "definite": definite,
    "symmetric": symmetric,
    "deficient": deficient,
    "zero": zero,
    "repeated": repeated,
    "rotations": rotations,
    "jordan": jordan,
    "exchange": exchange,
    "hilbert": hilbert,
    "tiny": scaled(-500),
    "huge": scaled(500),
    "tiniest": scaled(-600),
    "hugest": scaled(600),
    "tiny_single": scaled(-60),
    "huge_single": scaled(60),
    "graded": graded,
    "skewed": skewed,
    "growing": growing,
}
# All other matrices are made for both types.
DOUBLE = {"hilbert", "tiny", "huge", "tiniest", "hugest", "graded", "skewed", "growing"}
SINGLE = {"tiny_single", "huge_single"}
SCALED = {"tiny", "huge", "tiniest", "hugest", "tiny_single", "huge_single"}


def right_sides(rows, columns, is_complex):
    return Numbers(1000 + rows).matrix(rows, columns, is_complex)


def sketch(a):
    """Multiplies a matrix with more than 16 elements by a vector, and adds rows that are 8 apart."""
    a = np.atleast_2d(np.asarray(a))
    if a.size <= 16:
        return a
    a = a @ Numbers(2000 + a.shape[1]).matrix(a.shape[1], 1, False)
    folded = np.zeros((min(8, len(a)), 1), a.dtype)
    for row in range(len(a)):
        folded[row % 8] += a[row]
    return folded


def number(x):
    x = float(x)
    return float(f"{x:.16g}") if np.isfinite(x) else str(x)


def estimate(x):
    """A number that only tolerances depend on, rounded up."""
    return float(f"{1.01 * x:.2e}") if np.isfinite(x) else str(x)


def stored(a):
    a = sketch(a).flatten()
    if np.iscomplexobj(a):
        a = np.stack([a.real, a.imag], -1).flatten()
    return [number(x) for x in a]


def orthogonal(a):
    """The upper factor with a diagonal that is positive."""
    r = np.linalg.qr(a)[1]
    diagonal = np.diagonal(r)
    return (diagonal.conj() / np.abs(diagonal))[:, None] * r


def solved(t, b, **options):
    return sl.solve_triangular(t, b, **options)


def cond(a):
    s = np.linalg.svd(a, compute_uv=False)
    return s[0] / s[-1] if s[-1] > 0 else np.inf


def computed(kind, rows, columns, seed, is_complex):
    a = MATRICES[kind](Numbers(seed), rows, columns, is_complex)
    b = right_sides(rows, 3, is_complex)
    scale = np.abs(a).max() if kind in SCALED else 1.0
    found = {}

    def add(name, of):
        try:
            found[name] = stored(of())
        except np.linalg.LinAlgError as error:
            found[name] = "not positive definite" if "positive" in str(error) else "singular"

    s = np.linalg.svd(a, compute_uv=False)
    found["singular_values"] = [number(x) for x in s]
    eps = np.finfo(np.float32 if kind in SINGLE else np.float64).eps
    near = max(rows, columns) * np.finfo(np.float64 if kind in DOUBLE else np.float32).eps
    rank = int((s > max(rows, columns) * eps * s[0]).sum())
    found["rank"] = [rank]
    is_full = s[-1] > near * s[0]
    if is_full:
        found["cond"] = [number(s[0] / s[-1])]
    rcond = max(rows, columns) * eps
    # (Otherwise they equal the inverse and the solution.)
    if rows != columns or not is_full:
        add("pinv", lambda: np.linalg.pinv(a, rcond=rcond))
        add("lstsq", lambda: np.linalg.lstsq(a, b, rcond=rcond)[0])
    if is_full and rows >= columns:
        add("upper_factor", lambda: orthogonal(a))
    order, lower, upper = sl.lu(a, p_indices=True)
    if is_full and not is_complex:
        inverse = np.argsort(order)
        found["order"] = [int(at) for at in inverse]
        permuted = a[inverse] / scale
        found["lu_cond"] = [estimate(max(cond(permuted[:k, :k]) for k in range(1, min(rows, columns) + 1)))]
        add("lower", lambda: lower)
        add("upper", lambda: upper)
    if rows != columns:
        return found

    half = a / 2 + a.conj().T / 2
    if kind not in SCALED or not is_complex:
        add("det", lambda: np.linalg.det(a))
    if is_full or kind == "zero":
        add("slogdet", lambda: np.array(np.linalg.slogdet(a)))
        add("solve", lambda: np.linalg.solve(a, b))
        add("inverse", lambda: np.linalg.inv(a))
        if kind not in SCALED:
            add("matrix_power_negative", lambda: np.linalg.matrix_power(a, -2))
    w = np.linalg.eigvalsh(half)
    found["eigh"] = [number(x) for x in w]
    if w[0] > near * s[0] or w[0] < -near * s[0] or kind == "zero":
        add("cholesky", lambda: np.linalg.cholesky(half))
    if not is_complex:
        w, v = np.linalg.eig(a)
        found["eig"] = [number(x) for x in np.stack([w.real, w.imag], -1).flatten()]
        found["eig_cond"] = [estimate(cond(v))]
    if kind not in SCALED:
        add("matrix_power", lambda: np.linalg.matrix_power(a, 3))
    if kind not in SCALED | {"graded"}:
        # (With a norm of at most 1, so that the result is in the range of single precision.)
        e = a if kind in DOUBLE else a / 2.0 ** np.ceil(np.log2(1 + np.abs(a).sum(0).max()))
        add("expm", lambda: sl.expm(e))
        if rows <= 9 and not is_complex:
            found["expm_cond"] = [estimate(sl.expm_cond(e) if rows > 1 else max(1.0, abs(e[0, 0])))]
    if np.abs(np.diagonal(a)).min() > 0 and kind not in SCALED and seed == 0:
        for name, lower in [("solve_lower", True), ("solve_upper", False)]:
            add(name, lambda: solved(a, b, lower=lower))
            add(name + "_unit", lambda: solved(a / (64 * scale), b, lower=lower, unit_diagonal=True))
    return found


SQUARE = [1, 2, 3, 4, 7, 8, 9, 16, 33]
FEW = [2, 3, 8, 9]
RECTANGLES = [(2, 1), (1, 3), (4, 2), (2, 4), (9, 7), (7, 9), (16, 3), (8, 33), (33, 8)]


def cases():
    for size in SQUARE:
        for seed in range(3):
            yield "general", size, size, seed, False
        for seed in range(2):
            yield "general", size, size, seed, True
        yield "definite", size, size, 0, False
        yield "definite", size, size, 0, True
    for rows, columns in RECTANGLES:
        yield "general", rows, columns, 0, False
        yield "general", rows, columns, 0, True
        if min(rows, columns) > 1:
            yield "deficient", rows, columns, 0, False
    for rows, columns in [(1, 1), (4, 4), (3, 2), (2, 5)]:
        yield "zero", rows, columns, 0, False
    for rows, columns in [(9, 4), (4, 9)]:
        yield "repeated", rows, columns, 0, False
    for kind in ["symmetric", "deficient", "repeated", "rotations", "jordan", "exchange", "hilbert", "graded", "skewed", "growing"]:
        for size in FEW[:2] if kind == "skewed" else FEW:
            yield kind, size, size, 0, False
    for kind in ["symmetric", "deficient"]:
        yield kind, 4, 4, 0, True
    yield "repeated", 33, 33, 0, False
    yield "rotations", 16, 16, 0, False
    for kind in SCALED:
        for size in [1, 3, 9]:
            yield kind, size, size, 0, False
        for rows, columns in [(5, 2), (2, 5)]:
            yield kind, rows, columns, 0, False
        yield kind, 3, 3, 0, True


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    lines = []
    for kind, rows, columns, seed, is_complex in cases():
        types = "double" if kind in DOUBLE else "single" if kind in SINGLE else "both"
        case = {"matrix": kind, "rows": rows, "columns": columns, "seed": seed, "complex": is_complex, "types": types}
        lines.append(json.dumps(case | {"results": computed(kind, rows, columns, seed, is_complex)}, separators=(",", ":")))
    print("[\n" + ",\n".join(lines) + "\n]")
