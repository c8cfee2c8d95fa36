"""Values and derivatives that JAX computes in double precision, as JSON: `python reference.py > golden.json`.

Each case is a function of some arrays. Both sides compute its inputs `x`, a direction `v` and a cotangent `c` by the formula of `numbers`:

    value      f(x)
    gradient   d <f(x), c> / dx
    slope      d f(x + t v) / dt at t = 0
    product    d (gradient at x + t v) / dt at t = 0

All arrays are flattened and concatenated.
"""

import json

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import numpy as np
from jax import lax, nn


def numbers(shape, seed):
    """Numbers between -1 and 1, the same in `main.rs`."""
    n = np.arange(int(np.prod(shape, dtype=np.int64)), dtype=np.int64)
    return jnp.asarray((((n + 1) * 7919 + seed * 104729) % 2003).astype(np.float64) / 1001.5 - 1.0).reshape(shape)


cases = {}


def case(*shapes):
    def add(f):
        cases[f.__name__] = (f, shapes)
        return f

    return add


def attend(q, k, v, mask, bias):
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) * 0.7 + bias
    return jnp.einsum("bhqk,bhkd->bhqd", nn.softmax(jnp.where(mask, scores, -jnp.inf), axis=-1), v)


heads = [(2, 2, 5, 3), (2, 2, 5, 3), (2, 2, 5, 3)]
causal = np.arange(5)[:, None] >= np.arange(5)[None, :]


@case(*heads)
def attention_whole(q, k, v):
    return attend(q, k, v, True, 0.0)


@case(*heads)
def attention_causal(q, k, v):
    return attend(q, k, v, causal, 0.0)


@case(*heads, (2, 5, 5))
def attention_with_mask_and_bias(q, k, v, bias):
    mask = (np.arange(5)[:, None] + np.arange(5)[None, :]) % 3 != 1
    return attend(q, k, v, mask | np.eye(5, dtype=bool), bias)


def standardized(x, axes, eps):
    mean = x.mean(axes, keepdims=True)
    return (x - mean) / jnp.sqrt(((x - mean) ** 2).mean(axes, keepdims=True) + eps)


@case((3, 6), (6,), (6,))
def layer_norm(x, gain, bias):
    return standardized(x, 1, 1e-5) * gain + bias


@case((3, 6))
def rms_norm(x):
    return x / jnp.sqrt((x**2).mean(1, keepdims=True) + 1e-5)


@case((2, 4, 5))
def group_norm(x):
    return standardized(x.reshape(2, 2, 2, 5), (2, 3), 1e-5).reshape(2, 4, 5)


@case((2, 2, 5, 6), (3, 2, 2, 3))
def convolution(x, w):
    return lax.conv_general_dilated(x, w, (1, 1), [(0, 0), (0, 0)])


@case((2, 2, 5, 6), (3, 2, 2, 3))
def convolution_in_steps(x, w):
    return lax.conv_general_dilated(x, w, (2, 1), [(1, 1), (2, 2)], rhs_dilation=(1, 2))


@case((2, 2, 5, 6), (3, 2, 2, 3), (3,), (3,))
def convolution_with_batch_norm(x, w, gain, bias):
    y = lax.conv_general_dilated(x, w, (2, 1), [(1, 1), (1, 1)])
    y = standardized(y, (0, 2, 3), 1e-5)
    return nn.gelu(y * gain[:, None, None] + bias[:, None, None], approximate=False)


@case((2, 2, 3, 4), (2, 3, 2, 3))
def transposed_convolution(x, w):
    w = jnp.flip(w, (2, 3)).swapaxes(0, 1)
    return lax.conv_general_dilated(x, w, (1, 1), [(0, 1), (1, 2)], lhs_dilation=(2, 2))


@case((2, 2, 6))
def pooling(x):
    windows = x.reshape(2, 2, 3, 2)
    return windows.max(-1) * windows.mean(-1)


@case((4, 2, 3), (3, 4, 3), (3, 4, 3), (4, 3))
def lstm(x, w, u, b):
    def step(state, x):
        h, c = state
        i, f, g, o = jnp.moveaxis(jnp.einsum("ni,igk->ngk", x, w) + jnp.einsum("nj,jgk->ngk", h, u) + b, 1, 0)
        c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
        h = nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    start = jnp.zeros((2, 3))
    return lax.scan(step, (start, start), x)[1]


@case((6, 5), (5,), (5, 4), (4,))
def mlp_with_cross_entropy(w1, b1, w2, b2):
    x = numbers((3, 6), 90)
    scores = nn.log_softmax(jnp.tanh(x @ w1 + b1) @ w2 + b2, axis=1)
    return -scores[np.arange(3), np.array([2, 0, 3])].mean()


@case((3, 5))
def softmax(x):
    return nn.softmax(x, axis=1)


@case((3, 5))
def log_softmax(x):
    return nn.log_softmax(x, axis=0)


@case((3, 5))
def logsumexp(x):
    return nn.logsumexp(x, axis=1)


@case((3, 5))
def running_products(x):
    return jnp.cumprod(x + 2.0, axis=1) * jnp.cumsum(x, axis=0)


@case((3, 5))
def activations(x):
    return nn.gelu(x, approximate=True) + nn.silu(x) * nn.softplus(x) + lax.erf(x) * nn.sigmoid(x)


@case((4, 3), (2, 3))
def embedding(table, x):
    return (table[np.array([[3, 0, 3], [1, 1, 2]])] * x[:, :, None]).sum(1)


@case((3, 5), (3, 5))
def losses(x, y):
    d = x - y
    huber = jnp.where(jnp.abs(d) < 0.7, 0.5 * d**2, 0.7 * (jnp.abs(d) - 0.35))
    return huber + nn.softplus(x) - x * nn.sigmoid(y)


@case((3, 4), (4, 5), (5, 2))
def chain_of_products(a, b, c):
    return jnp.einsum("ij,jk,kl->il", a, b, c)


@case((3, 5))
def statistics(x):
    return x.var(1) * x.mean(1) + x.std(1, ddof=1)


@case((3, 5))
def sorted_elements(x):
    return jnp.sort(x, axis=1) ** 2 * x.max(1, keepdims=True)


def flat(arrays):
    return [float(element) for array in arrays for element in np.asarray(array).reshape(-1)]


def computed(f, shapes):
    x = tuple(numbers(shape, 1 + at) for at, shape in enumerate(shapes))
    v = tuple(numbers(shape, 11 + at) for at, shape in enumerate(shapes))
    value, slope = jax.jvp(f, x, v)
    c = numbers(value.shape, 99)
    gradient = lambda *x: jax.vjp(f, *x)[1](c)
    return {
        "value": flat([value]),
        "gradient": flat(gradient(*x)),
        "slope": flat([slope]),
        "product": flat(jax.jvp(gradient, x, v)[1]),
    }


if __name__ == "__main__":
    lines = (f" {json.dumps(name)}: {json.dumps(computed(*case))}" for name, case in cases.items())
    print("{\n" + ",\n".join(lines) + "\n}")
