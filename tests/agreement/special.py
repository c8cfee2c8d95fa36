"""Values and derivatives up to the third order at special points, computed by JAX in double precision: `python special.py > special.json`.

Functions of one number, at the numbers of `POINTS`: the value and three derivatives.

Functions of two numbers a and b, at all pairs of numbers from `PAIRS`: the value, and the derivatives with respect to a, b, aa, ab, bb, aaa,
aab, abb, bbb.

Functions of a line of numbers, at the lines of `LINES`: the value; the gradient of `<c, f(x)>`, where `c` is `WEIGHTS`; its derivative in the direction
`DIRECTION`; and the derivative of that in the same direction.

Numbers that JSON cannot represent are strings.
"""

import json
import math

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import jax.scipy.special as special
import numpy as np
from jax import lax, nn

INF, NAN = math.inf, math.nan
POINTS = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 3.0, -3.0, 6.0, 1e-5, -1e-5, 20.0, -20.0, 800.0, -800.0, 1e-310, -1e-310, 1e300, -1e300, INF, -INF, NAN]
PAIRS = [0.0, -0.0, 1.0, -2.0, 0.5, 1e-200, 1e200, INF, -INF, NAN]
LINES = [
    [0.3, -1.2, 2.0, 0.7],
    [0.0, 0.0, 0.0, 0.0],
    [0.0, -0.0, 1.0, -1.0],
    [2.0, 2.0, -1.0, 2.0],
    [1e-310, 1.0, -1e-310, 0.5],
    [1e3, -1e3, 0.5, 1e3],
    [INF, 1.0, 2.0, 0.5],
    [-INF, 1.0, 2.0, 0.5],
    [-INF, -INF, -INF, -INF],
    [INF, -INF, 1.0, INF],
    [0.5, NAN, 2.0, 1.0],
]
WEIGHTS = [0.7, -0.4, 1.1, 0.6]
DIRECTION = [0.2, 0.9, -0.5, 0.3]

where = jnp.where
below = lambda x: special.erfc(-x / math.sqrt(2)) / 2
selu_scale, selu_alpha = 1.0507009873554805, 1.6732632423543772

one = {
    "neg": lambda x: -x,
    "abs": jnp.abs,
    "exp": jnp.exp,
    "exp_m1": jnp.expm1,
    "exp2": jnp.exp2,
    "ln": jnp.log,
    "ln_1p": jnp.log1p,
    "log2": jnp.log2,
    "log10": jnp.log10,
    "sqrt": jnp.sqrt,
    "cbrt": jnp.cbrt,
    "rsqrt": lax.rsqrt,
    "recip": lambda x: 1 / x,
    "square": jnp.square,
    "powi": lambda x: lax.integer_pow(x, 3),
    "sin": jnp.sin,
    "cos": jnp.cos,
    "tan": jnp.tan,
    "asin": jnp.arcsin,
    "acos": jnp.arccos,
    "atan": jnp.arctan,
    "sinh": jnp.sinh,
    "cosh": jnp.cosh,
    "tanh": jnp.tanh,
    "asinh": jnp.arcsinh,
    "acosh": jnp.arccosh,
    "atanh": jnp.arctanh,
    "erf": special.erf,
    "erfc": special.erfc,
    "sigmoid": nn.sigmoid,
    "relu": nn.relu,
    "relu6": nn.relu6,
    "gelu": lambda x: nn.gelu(x, approximate=False),
    "gelu_tanh": lambda x: nn.gelu(x, approximate=True),
    "silu": nn.silu,
    "softplus": nn.softplus,
    "ln_sigmoid": nn.log_sigmoid,
    "ln_gamma": special.gammaln,
    "logit": special.logit,
    "selu": nn.selu,
    "mish": nn.mish,
    "hard_sigmoid": nn.hard_sigmoid,
    "hard_swish": nn.hard_swish,
    "softsign": nn.soft_sign,
    "tanh_shrink": lambda x: x - jnp.tanh(x),
    "sinc": jnp.sinc,
    "to_degrees": jnp.degrees,
    "to_radians": jnp.radians,
    "floor": jnp.floor,
    "round": lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO),
    "round_ties_even": jnp.round,
    "fract": lambda x: x - jnp.trunc(x),
    "signum": jnp.sign,
    "clamp": lambda x: lax.clamp(-1.0, x, 2.5),
    "leaky_relu": lambda x: nn.leaky_relu(x, 0.25),
    "elu": lambda x: nn.elu(x, 0.5),
    "celu": lambda x: nn.celu(x, 0.5),
    "hard_shrink": lambda x: where(jnp.abs(x) <= 0.5, 0.0, x),
    "soft_shrink": lambda x: where(x > 0.5, x - 0.5, where(x < -0.5, x + 0.5, 0.0 * x)),
    "nan_to": lambda x: where(jnp.isnan(x), 7.0, x),
}

two = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "rem": lax.rem,
    "maximum": jnp.maximum,
    "minimum": jnp.minimum,
    "fmax": jnp.fmax,
    "fmin": jnp.fmin,
    "powf": jnp.power,
    "atan2": jnp.arctan2,
    "hypot": jnp.hypot,
    "copysign": jnp.copysign,
    "logaddexp": jnp.logaddexp,
    "xlogy": special.xlogy,
    "mse_loss": lambda a, b: (a - b) ** 2,
    "l1_loss": lambda a, b: jnp.abs(a - b),
    "bce_with_logits_loss": lambda a, b: nn.softplus(a) - a * b,
    "huber_loss": lambda a, b: where(jnp.abs(a - b) <= 1.5, 0.5 * (a - b) ** 2, 1.5 * (jnp.abs(a - b) - 0.75)),
    "lerp": lambda a, b: a + (b - a) * 0.25,
}


def attend(x):
    q, k, v = x * 0.5, x + 1.0, x * x
    return nn.softmax(q[:, None] * k[None, :], axis=1) @ v


def standardized(x):
    d = x - x.mean()
    return d / jnp.sqrt((d * d).mean() + 1e-5)


labels = np.array([2])
shift = jnp.asarray(WEIGHTS)
line = {
    "sum": jnp.sum,
    "mean": jnp.mean,
    "prod": jnp.prod,
    "max": jnp.max,
    "min": jnp.min,
    "var": jnp.var,
    "std": jnp.std,
    "logsumexp": nn.logsumexp,
    "norm": lambda x: jnp.sqrt(jnp.sum(x * x)),
    "norm_1": lambda x: jnp.sum(jnp.abs(x)),
    "norm_inf": lambda x: jnp.max(jnp.abs(x)),
    "softmax": nn.softmax,
    "log_softmax": nn.log_softmax,
    "cumsum": jnp.cumsum,
    "cumprod": jnp.cumprod,
    "cummax": lambda x: lax.cummax(x, axis=0),
    "logcumsumexp": lambda x: lax.cumlogsumexp(x, axis=0),
    "sort": jnp.sort,
    "reversed": lambda x: x[::-1],
    "layer_norm": standardized,
    "rms_norm": lambda x: x / jnp.sqrt((x * x).mean() + 1e-5),
    "cross_entropy": lambda x: -nn.log_softmax(x)[2],
    "attention": attend,
    "causal_attention": lambda x: nn.softmax(where(np.tril(np.ones((4, 4), bool)), x[:, None] * x[None, :], -jnp.inf), axis=1) @ x,
    "cosine": lambda x: jnp.vdot(x, shift) / (jnp.sqrt(jnp.vdot(x, x)) * jnp.sqrt(jnp.vdot(shift, shift))),
    "distances": lambda x: jnp.sqrt(jnp.sum((x[:, None] - x[None, :]) ** 2 + 1.0, axis=1)),
    "guarded_sqrt": lambda x: where(x > 0, jnp.sqrt(where(x > 0, x, 1.0)), 0.0),
    "guarded_ln": lambda x: where(x > 0, jnp.log(where(x > 0, x, 1.0)), x),
    "guarded_div": lambda x: where(x == 0, 1.0, jnp.sin(x) / where(x == 0, 1.0, x)),
    "softplus_chain": lambda x: jnp.log(1 + nn.softplus(x)),
    "tanh_of_exp": lambda x: jnp.tanh(jnp.exp(x)),
    "gaussian": lambda x: jnp.exp(-x * x / 2),
    "mse": lambda x: jnp.mean((x - shift) ** 2),
    "huber": lambda x: where(jnp.abs(x - shift) <= 1.0, 0.5 * (x - shift) ** 2, jnp.abs(x - shift) - 0.5),
    "max_pool": lambda x: jnp.max(x.reshape(2, 2), axis=1),
    "avg_pool": lambda x: jnp.mean(x.reshape(2, 2), axis=1),
    "product_of_sums": lambda x: jnp.sum(x) * jnp.sum(x * shift),
    "clamped_sum": lambda x: lax.clamp(-1.0, x, 1.0) * jnp.sum(x),
}


def text(x):
    x = float(x)
    if math.isnan(x):
        return "nan"
    return float(f"{x:.12g}") if math.isfinite(x) else ("inf" if x > 0 else "-inf")


def of_one(f):
    orders = [f]
    for _ in range(3):
        orders.append(jax.grad(orders[-1]))
    return [[text(x) for x in jax.vmap(g)(jnp.asarray(POINTS))] for g in orders]


def of_two(f):
    pairs = jnp.asarray([(a, b) for a in PAIRS for b in PAIRS])
    d = jax.grad
    a, b = d(f, 0), d(f, 1)
    aa, ab, bb = d(a, 0), d(a, 1), d(b, 1)
    orders = [f, a, b, aa, ab, bb, d(aa, 0), d(aa, 1), d(ab, 1), d(bb, 1)]
    return [[text(x) for x in jax.vmap(g)(pairs[:, 0], pairs[:, 1])] for g in orders]


def of_line(f):
    v = jnp.asarray(DIRECTION)

    def loss(x):
        y = f(x)
        return jnp.sum(y * shift) if y.shape == (4,) else jnp.sum(y * shift[: y.size].reshape(y.shape))

    first = jax.grad(loss)
    second = jax.grad(lambda x: jnp.vdot(first(x), v))
    third = jax.grad(lambda x: jnp.vdot(second(x), v))
    found = [[np.asarray(g(jnp.asarray(x))).reshape(-1) for x in LINES] for g in (f, first, second, third)]
    return [[[text(x) for x in at] for at in order] for order in found]


if __name__ == "__main__":
    groups = {"one": (of_one, one), "two": (of_two, two), "line": (of_line, line)}
    lines = []
    for group, (compute, functions) in groups.items():
        lines += [f' "{group}:{name}": {json.dumps(compute(f))}' for name, f in functions.items()]
    print("{\n" + ",\n".join(lines) + "\n}")
