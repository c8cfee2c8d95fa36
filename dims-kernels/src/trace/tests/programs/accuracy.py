"""Scalar operations and their first derivatives at many points, with mpmath: `python accuracy.py > accuracy.txt`.

A line has the operation, its operands, the value, and the derivative with respect to each operand. Operands are 32-bit or 64-bit floats. An optional argument scales
the number of points in each range (default 4); the file in the repository was written with the default.

The formulas are independent of the library. A test fails if a float operation of the library has no formula here.
"""

import random
import struct
import sys

from mpmath import erf, erfc, exp, expm1, inf, log, log1p, loggamma, mp, mpf, pi, psi, sqrt, tanh
import mpmath as m

mp.dps = 400
COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 4


def single(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def near(*centers, low=-40, high=-2):
    """Points close to each center, on both sides."""
    for center in centers:
        for at in range(2 * COUNT):
            step = 2.0 ** random.uniform(low, high) * (1 if at % 2 else -1)
            yield center + (step if at % 4 < 2 else step * random.random())


def around_0(low=-60, high=0):
    """Points of both signs, with exponents between the bounds."""
    for at in range(3 * COUNT):
        yield 2.0 ** random.uniform(low, high) * (1 if at % 2 else -1)


def between(low, high):
    for _ in range(3 * COUNT):
        yield random.uniform(low, high)


def positive(low=-100, high=100):
    for _ in range(4 * COUNT):
        yield 2.0 ** random.uniform(low, high)


everywhere = lambda low=-8.0, high=8.0: [*around_0(), *between(low, high), *around_0(0, 100)]
moderate = lambda low=-8.0, high=8.0: [*around_0(), *between(low, high)]
sigmoid = lambda x: 1 / (1 + exp(-x))
density = lambda x: sigmoid(x) * sigmoid(-x)
softplus = lambda x: log1p(exp(x)) if x < 0 else x + log1p(exp(-x))
normal = lambda x: exp(-x * x / 2) / sqrt(2 * pi)
below = lambda x: erfc(-x / sqrt(2)) / 2
sign = lambda x: mpf(0) if x == 0 else mpf(1) if x > 0 else mpf(-1)
C, K = mpf(0.797_884_560_802_865_4), mpf(0.044_715)
inner = lambda x: C * (x + K * x**3)
nothing = lambda x: mpf(0)
SCALE, ALPHA = mpf(1.050_700_987_355_480_5), mpf(1.673_263_242_354_377_2)


def mish_slope(x):
    t = tanh(softplus(x))
    return t + x * (1 - t * t) * sigmoid(x)


def sinc(x):
    return m.sinc(pi * x)


def sinc_slope(x):
    return mpf(0) if x == 0 else (m.cos(pi * x) - sinc(x)) / x


def rem(a, b):
    q = m.floor(abs(a) / abs(b)) * sign(a) * sign(b)
    return a - b * q, -q


def remainder(a, b):
    q = m.floor(a / b)
    return a - b * q, -q


one = {
    "Neg": (lambda x: -x, lambda x: mpf(-1), lambda: everywhere()),
    "Abs": (abs, sign, lambda: everywhere()),
    "Exp": (exp, exp, lambda: moderate(-80, 80)),
    "ExpM1": (expm1, exp, lambda: moderate(-80, 80)),
    "Ln": (log, lambda x: 1 / x, lambda: [*positive(), *near(1.0)]),
    "Ln1p": (log1p, lambda x: 1 / (1 + x), lambda: [*around_0(-60, -1), *positive(), *near(-0.999999, low=-30, high=-22)]),
    "Log2": (lambda x: log(x, 2), lambda x: 1 / (x * log(2)), lambda: [*positive(), *near(1.0)]),
    "Log10": (lambda x: log(x, 10), lambda x: 1 / (x * log(10)), lambda: [*positive(), *near(1.0)]),
    "Exp2": (lambda x: mpf(2) ** x, lambda x: mpf(2) ** x * log(2), lambda: moderate(-100, 100)),
    "Sqrt": (sqrt, lambda x: 1 / (2 * sqrt(x)), lambda: positive()),
    "Cbrt": (lambda x: sign(x) * m.cbrt(abs(x)), lambda x: 1 / (3 * m.cbrt(abs(x)) ** 2), lambda: everywhere()),
    "Rsqrt": (lambda x: 1 / sqrt(x), lambda x: -1 / (2 * x * sqrt(x)), lambda: positive(-60, 60)),
    "Recip": (lambda x: 1 / x, lambda x: -1 / x**2, lambda: [*around_0(-50, 50)]),
    "Square": (lambda x: x * x, lambda x: 2 * x, lambda: everywhere()),
    "Sin": (m.sin, m.cos, lambda: moderate(-100, 100)),
    "Cos": (m.cos, lambda x: -m.sin(x), lambda: moderate(-100, 100)),
    "Tan": (m.tan, lambda x: 1 + m.tan(x) ** 2, lambda: moderate(-100, 100)),
    "Asin": (m.asin, lambda x: 1 / sqrt((1 - x) * (1 + x)), lambda: [*around_0(-60, -0.01), *(x for x in near(1.0, -1.0) if abs(x) < 1)]),
    "Acos": (m.acos, lambda x: -1 / sqrt((1 - x) * (1 + x)), lambda: [*around_0(-60, -0.01), *(x for x in near(1.0, -1.0) if abs(x) < 1)]),
    "Atan": (m.atan, lambda x: 1 / (1 + x * x), lambda: everywhere()),
    "Sinh": (m.sinh, m.cosh, lambda: moderate(-80, 80)),
    "Cosh": (m.cosh, m.sinh, lambda: moderate(-80, 80)),
    "Tanh": (tanh, lambda x: m.sech(x) ** 2, lambda: [*moderate(), *between(-40, 40)]),
    "Asinh": (m.asinh, lambda x: 1 / sqrt(x * x + 1), lambda: everywhere()),
    "Acosh": (m.acosh, lambda x: 1 / sqrt((x - 1) * (x + 1)), lambda: [*(x for x in near(1.0) if x > 1), *between(1.0001, 3), *positive(1)]),
    "Atanh": (m.atanh, lambda x: 1 / ((1 - x) * (1 + x)), lambda: [*around_0(-60, -0.01), *(x for x in near(1.0, -1.0) if abs(x) < 1)]),
    "Erf": (erf, lambda x: 2 / sqrt(pi) * exp(-x * x), lambda: moderate(-6, 6)),
    "Erfc": (erfc, lambda x: -2 / sqrt(pi) * exp(-x * x), lambda: moderate(-6, 9)),
    "Sigmoid": (sigmoid, density, lambda: [*moderate(-100, 100), *between(-20, 20)]),
    "Silu": (lambda x: x * sigmoid(x), lambda x: sigmoid(x) + x * density(x), lambda: [*moderate(-100, 100), *between(-20, 20)]),
    "Gelu": (lambda x: x * below(x), lambda x: below(x) + x * normal(x), lambda: [*moderate(-12, 12), *between(-3, 3)]),
    "GeluTanh": (lambda x: x * sigmoid(2 * inner(x)), lambda x: sigmoid(2 * inner(x)) + x * density(2 * inner(x)) * 2 * C * (1 + 3 * K * x * x), lambda: moderate(-6, 6)),
    "Softplus": (softplus, sigmoid, lambda: moderate(-80, 80)),
    "LnSigmoid": (lambda x: -softplus(-x), lambda x: sigmoid(-x), lambda: moderate(-80, 80)),
    "LnGamma": (lambda x: m.re(loggamma(x)), lambda x: psi(0, x), lambda: [*positive(-60, 60), *between(0.1, 8)]),
    "Logit": (lambda x: log(x / (1 - x)), lambda x: 1 / (x * (1 - x)), lambda: [*positive(-60, -0.01), *near(0.5), *(x for x in near(1.0) if x < 1)]),
    "Relu": (lambda x: max(x, mpf(0)), lambda x: mpf(x > 0), lambda: everywhere()),
    "Relu6": (lambda x: min(max(x, mpf(0)), mpf(6)), lambda x: mpf(0 < x < 6), lambda: everywhere()),
    "Selu": (lambda x: SCALE * x if x > 0 else SCALE * ALPHA * expm1(x), lambda x: SCALE if x > 0 else SCALE * ALPHA * exp(x), lambda: moderate(-80, 80)),
    "Mish": (lambda x: x * tanh(softplus(x)), mish_slope, lambda: moderate(-60, 60)),
    "HardSigmoid": (lambda x: min(max(x + 3, mpf(0)), mpf(6)) / 6, lambda x: mpf(-3 < x < 3) / 6, lambda: [*moderate(), *near(-3.0)]),
    "HardSwish": (lambda x: x * min(max(x + 3, mpf(0)), mpf(6)) / 6, lambda x: mpf(0) if x <= -3 else mpf(1) if x >= 3 else (2 * x + 3) / 6, lambda: [*moderate(), *near(-3.0)]),
    "Softsign": (lambda x: x / (1 + abs(x)), lambda x: 1 / (1 + abs(x)) ** 2, lambda: everywhere()),
    "TanhShrink": (lambda x: x - tanh(x), lambda x: tanh(x) ** 2, lambda: [*around_0(-30, 1), *between(-8, 8)]),
    "Sinc": (sinc, sinc_slope, lambda: [*around_0(-30, 0), *between(-8, 8), *near(1.0, 2.0, 7.0, low=-20)]),
    "ToDegrees": (lambda x: x * 180 / pi, lambda x: 180 / pi, lambda: everywhere()),
    "ToRadians": (lambda x: x * pi / 180, lambda x: pi / 180, lambda: everywhere()),
    "Fract": (lambda x: x - sign(x) * m.floor(abs(x)), lambda x: mpf(1), lambda: moderate()),
    "Powi(3)": (lambda x: x**3, lambda x: 3 * x**2, lambda: [*around_0(-30, 30)]),
    "Powi(5)": (lambda x: x**5, lambda x: 5 * x**4, lambda: [*around_0(-20, 20)]),
    "Powi(-2)": (lambda x: x**-2, lambda x: -2 * x**-3, lambda: [*around_0(-30, 30)]),
    "LeakyRelu(0.25)": (lambda x: x if x > 0 else x / 4, lambda x: mpf(1) if x > 0 else mpf(0.25), lambda: everywhere()),
    "Elu(0.5)": (lambda x: x if x > 0 else expm1(x) / 2, lambda x: mpf(1) if x > 0 else exp(x) / 2, lambda: moderate(-80, 80)),
    "Celu(0.5)": (lambda x: x if x > 0 else expm1(2 * x) / 2, lambda x: mpf(1) if x > 0 else exp(2 * x), lambda: moderate(-40, 40)),
    "Floor": (m.floor, nothing, lambda: moderate()),
    "Ceil": (m.ceil, nothing, lambda: moderate()),
    "Round": (lambda x: sign(x) * m.floor(abs(x) + mpf(0.5)), nothing, lambda: moderate()),
    "RoundTiesEven": (m.nint, nothing, lambda: moderate()),
    "Trunc": (lambda x: sign(x) * m.floor(abs(x)), nothing, lambda: moderate()),
    "Signum": (sign, nothing, lambda: everywhere()),
    "HardShrink(1.0)": (lambda x: x if abs(x) > 1 else mpf(0), lambda x: mpf(abs(x) > 1), lambda: [*moderate(), *near(1.0, -1.0, low=-20)]),
    "NanTo(7.0)": (lambda x: x, lambda x: mpf(1), lambda: everywhere()),
    "SoftShrink(1.0)": (lambda x: sign(x) * max(abs(x) - 1, mpf(0)), lambda x: mpf(abs(x) > 1), lambda: [*moderate(), *near(1.0, -1.0, low=-20)]),
}

mixed = lambda low=-8.0, high=8.0, small=-60, large=0: list(zip([*around_0(small, large), *between(low, high)], [*between(low, high), *around_0(small, large)]))
grid = lambda first, second: [(a, b) for a, b in zip(sorted(first, key=lambda _: random.random()), sorted(second, key=lambda _: random.random()))]
unit = lambda: [*positive(-40, -1), *between(0, 1), *(1 - x for x in positive(-20, -2)), *([0.0, 1.0] * COUNT)]


def power_slopes(a, b):
    return b * a ** (b - 1), a**b * log(a)


def huber(d, delta):
    return d * d / 2 if abs(d) <= delta else delta * (abs(d) - delta / 2)


clamp = lambda d, c: min(max(d, -c), c)
greater = (lambda a, b: max(a, b), lambda a, b: (mpf(a > b), mpf(b > a)), lambda: mixed())
lesser = (lambda a, b: min(a, b), lambda a, b: (mpf(a < b), mpf(b < a)), lambda: mixed())
plus = (lambda a, b: a + b, lambda a, b: (mpf(1), mpf(1)), lambda: mixed())
two = {
    "Add": plus,
    "Offset": plus,
    "Sub": (lambda a, b: a - b, lambda a, b: (mpf(1), mpf(-1)), lambda: mixed()),
    "Mul": (lambda a, b: a * b, lambda a, b: (b, a), lambda: mixed()),
    "Maximum": greater,
    "Fmax": greater,
    "Minimum": lesser,
    "Fmin": lesser,
    "Copysign": (lambda a, b: abs(a) * sign(b), lambda a, b: (sign(a) * sign(b), mpf(0)), lambda: mixed()),
    "Heaviside": (lambda a, b: mpf(a > 0), lambda a, b: (mpf(0), mpf(0)), lambda: mixed()),
    "AbsoluteError": (lambda a, b: abs(a - b), lambda a, b: (sign(a - b), sign(b - a)), lambda: mixed()),
    "SmoothL1(0.5)": (lambda a, b: 2 * huber(a - b, mpf(0.5)), lambda a, b: (2 * clamp(a - b, mpf(0.5)), -2 * clamp(a - b, mpf(0.5))), lambda: grid(between(-3, 3), between(-3, 3))),
    "Div": (lambda a, b: a / b, lambda a, b: (1 / b, -a / b**2), lambda: mixed(small=-30)),
    "Rem": (lambda a, b: rem(a, b)[0], lambda a, b: (mpf(1), rem(a, b)[1]), lambda: [*grid(between(-50, 50), between(0.1, 9)), *((n * b, b) for n, b in zip([3, 7, 10, 49] * COUNT, between(0.1, 1)))]),
    "Remainder": (lambda a, b: remainder(a, b)[0], lambda a, b: (mpf(1), remainder(a, b)[1]), lambda: [*grid(between(-50, 50), between(0.1, 9)), *((n * b, b) for n, b in zip([3, 7, 10, 49] * COUNT, between(0.1, 1)))]),
    "Powf": (lambda a, b: a**b, power_slopes, lambda: [*grid(positive(-10, 10), between(-8, 8)), *grid(near(1.0, low=-20), between(-100, 100))]),
    "Atan2": (lambda a, b: m.atan2(a, b), lambda a, b: (b / (a * a + b * b), -a / (a * a + b * b)), lambda: [*mixed(), *grid(around_0(-100, -90), around_0(-100, -90)), *grid(around_0(80, 100), around_0(80, 100))]),
    "Hypot": (lambda a, b: m.hypot(a, b), lambda a, b: (a / m.hypot(a, b), b / m.hypot(a, b)), lambda: [*mixed(), *grid(around_0(-100, -90), around_0(-100, -90)), *grid(around_0(80, 100), around_0(80, 100))]),
    "LogAddExp": (lambda a, b: log(exp(a) + exp(b)), lambda a, b: (sigmoid(a - b), sigmoid(b - a)), lambda: [*grid(between(1, 40), between(1, 40)), *mixed(0.5, 9.0)]),
    "Xlogy": (lambda a, b: a * log(b), lambda a, b: (log(b), a / b), lambda: [*grid(between(-8, 8), positive(-40, 40)), *grid(between(-8, 8), near(1.0))]),
    "Bce": (lambda a, b: -(b * max(log(a), mpf(-100)) + (1 - b) * max(log1p(-a), mpf(-100))), lambda a, b: ((a - b) / max(a * (1 - a), mpf(1e-12)), max(log1p(-a), mpf(-100)) - max(log(a), mpf(-100))), lambda: grid([x for x in unit() if 1e-9 < x < 1], unit())),
    "BceWithLogits": (lambda a, b: (1 - b) * softplus(a) + b * softplus(-a), lambda a, b: (sigmoid(a) * (1 - b) - b * sigmoid(-a), -a), lambda: [*grid(between(-80, 80), unit()), *grid(between(-20, 20), [0.0, 1.0] * 2 * COUNT)]),
    "KlDiv": (lambda a, b: b * (log(b) - a), lambda a, b: (-b, log(b) + 1 - a), lambda: grid(between(-40, -3), [x for x in unit() if x > 0.1])),
    "SquaredError": (lambda a, b: (a - b) ** 2, lambda a, b: (2 * (a - b), 2 * (b - a)), lambda: mixed()),
    "Huber(1.5)": (lambda a, b: huber(a - b, mpf(1.5)), lambda a, b: (clamp(a - b, mpf(1.5)), -clamp(a - b, mpf(1.5))), lambda: grid(between(-3, 3), between(-3, 3))),
    "Lerp(0.25)": (lambda a, b: a + (b - a) / 4, lambda a, b: (mpf(0.75), mpf(0.25)), lambda: grid(between(1, 9), between(1, 9))),
    "Lerp(0.75)": (lambda a, b: a + 3 * (b - a) / 4, lambda a, b: (mpf(0.25), mpf(0.75)), lambda: grid(between(1, 9), between(1, 9))),
    "Lerp(1.0)": (lambda a, b: b, lambda a, b: (mpf(0), mpf(1)), lambda: grid(between(-9, 9), between(-9, 9))),
}


def text(x):
    return repr(float(x)) if not isinstance(x, mpf) else m.nstr(x, 19, min_fixed=-3, max_fixed=3)


def line(name, operands, value, slopes):
    mp.dps = 40
    print(name, *(repr(x) for x in operands), *(text(+x) for x in (value, *slopes)))
    mp.dps = 400


def rounded(at, *operands):
    """The operands as 32-bit floats, every third time as 64-bit floats."""
    return operands if at % 3 == 2 else tuple(single(x) for x in operands)


def lines(name, f, slopes, points):
    """The points depend only on the operation, so a new operation changes no other lines."""
    random.seed(name)
    for at, operands in enumerate(points()):
        operands = rounded(at, *operands)
        try:
            exact = [mpf(x) for x in operands]
            line(name, operands, mpf(f(*exact)), [mpf(x) for x in slopes(*exact)])
        except (ZeroDivisionError, ValueError, TypeError) as error:
            print(name, *operands, error, file=sys.stderr)


for name, (f, slope, points) in one.items():
    lines(name, f, lambda x: [slope(x)], lambda: ((x,) for x in points()))
for name, (f, slopes, points) in two.items():
    lines(name, f, slopes, points)
