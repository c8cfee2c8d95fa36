"""Writes `reference.json`: the results of PyTorch's and optax's optimizers and schedules, with which the tests compare.

    pip install torch optax
    python tests/optim/reference.py

Most entries train one tensor of 12 elements. The gradient is a formula of the elements and the step, the same as in `main.rs`.
"""

import json
import math
import pathlib

import jax
import optax
import torch

jax.config.update("jax_enable_x64", True)
# Internal numbers of a step, such as NAdam's product of momenta, have this type.
torch.set_default_dtype(torch.float64)

SHAPE = (3, 4)
KEPT = (1, 10, 100)
FIRST = [math.cos(0.6 * at) for at in range(12)]


def noise(step):
    return [math.sin(1.7 * at + 0.9 * step) for at in range(12)]


def by_torch(make, dtype):
    p = torch.nn.Parameter(torch.tensor(FIRST, dtype=torch.float64).to(dtype).reshape(SHAPE))
    optimizer = make([p])
    kept = {}
    for step in range(1, max(KEPT) + 1):
        p.grad = 0.3 * p.detach() + torch.tensor(noise(step), dtype=torch.float64).to(dtype).reshape(SHAPE)
        optimizer.step()
        if step in KEPT:
            kept[step] = p.detach().double().flatten().tolist()
    return kept


def frozen_by_torch(make, dtype):
    """Two parameters. The second has no gradient in the steps for which `is_frozen` is true."""
    first = torch.tensor(FIRST, dtype=torch.float64).to(dtype).reshape(SHAPE)
    both = [torch.nn.Parameter(first.clone()), torch.nn.Parameter(first.clone())]
    optimizer = make(both)
    kept = {}
    for step in range(1, max(KEPT) + 1):
        for p in both:
            p.grad = 0.3 * p.detach() + torch.tensor(noise(step), dtype=torch.float64).to(dtype).reshape(SHAPE)
        if is_frozen(step):
            both[1].grad = None
        optimizer.step()
        if step in KEPT:
            kept[step] = [p.detach().double().flatten().tolist() for p in both]
    return kept


def is_frozen(step):
    return step <= 3 or 20 <= step < 70


def by_optax(transform, shape=SHAPE):
    count = math.prod(shape)
    p = jax.numpy.array([math.cos(0.6 * at) for at in range(count)]).reshape(shape)
    state = transform.init(p)
    kept = {}
    for step in range(1, max(KEPT) + 1):
        noises = [math.sin(1.7 * at + 0.9 * step) for at in range(count)]
        updates, state = transform.update(0.3 * p + jax.numpy.array(noises).reshape(shape), state, p)
        p = optax.apply_updates(p, updates)
        if step in KEPT:
            kept[step] = p.flatten().tolist()
    return kept


def adafactor(
    rate, least=128, exponent=0.8, scale=True, clipping=1.0, momentum=None, weight_decay=None, epsilon=1e-30
):
    """Like `optax.adafactor`, but with the decay rate and the momentum in double precision."""
    transforms = [
        optax.scale_by_factored_rms(
            min_dim_size_to_factor=least,
            decay_rate=exponent,
            epsilon=epsilon,
            decay_rate_fn=lambda count, exponent: 1.0 - jax.numpy.array(count + 1.0) ** -exponent,
        )
    ]
    if clipping is not None:
        transforms.append(optax.clip_by_block_rms(clipping))
    transforms.append(optax.scale_by_learning_rate(rate, flip_sign=False))
    if scale:
        transforms.append(optax.scale_by_param_block_rms())
    if momentum is not None:
        transforms.append(optax.ema(momentum, debias=False, accumulator_dtype=jax.numpy.float64))
    if weight_decay is not None:
        transforms.append(optax.add_decayed_weights(rate * weight_decay))
    return optax.chain(*transforms, optax.scale(-1))


def rates(make, lr):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=lr)
    schedule = make(optimizer)
    found = []
    for _ in range(100):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return found


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.02),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.02),
    "adam": lambda p: torch.optim.Adam(p, lr=0.03),
    "adam_decay": lambda p: torch.optim.Adam(p, lr=0.03, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.03),
    "adamw_decay": lambda p: torch.optim.AdamW(p, lr=0.03, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1),
    "maximize": lambda p: torch.optim.SGD(p, lr=0.002, momentum=0.9, weight_decay=0.02, maximize=True),
    "dampening": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, dampening=0.4, weight_decay=0.02),
    "adam_maximize": lambda p: torch.optim.Adam(p, lr=0.03, weight_decay=0.1, maximize=True),
    "amsgrad": lambda p: torch.optim.Adam(p, lr=0.03, betas=(0.8, 0.95), amsgrad=True),
    "amsgradw": lambda p: torch.optim.AdamW(p, lr=0.03, betas=(0.8, 0.95), amsgrad=True, maximize=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01),
    "rmsprop_momentum": lambda p: torch.optim.RMSprop(p, lr=0.01, alpha=0.9, momentum=0.8, weight_decay=0.1),
    "rmsprop_centered": lambda p: torch.optim.RMSprop(p, lr=0.01, eps=1e-3, centered=True, maximize=True),
    "rmsprop_both": lambda p: torch.optim.RMSprop(p, lr=0.01, alpha=0.9, momentum=0.8, eps=1e-3, centered=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1),
    "adagrad_decay": lambda p: torch.optim.Adagrad(
        p, lr=0.1, lr_decay=0.02, weight_decay=0.1, initial_accumulator_value=0.3, eps=1e-4, maximize=True
    ),
    "nadam": lambda p: torch.optim.NAdam(p, lr=0.03),
    "nadam_decay": lambda p: torch.optim.NAdam(
        p, lr=0.03, betas=(0.8, 0.95), momentum_decay=0.1, weight_decay=0.1, decoupled_weight_decay=True, maximize=True
    ),
    "nadam_constant": lambda p: torch.optim.NAdam(p, lr=0.03, momentum_decay=0, weight_decay=0.1),
    "radam": lambda p: torch.optim.RAdam(p, lr=0.03),
    "radam_decay": lambda p: torch.optim.RAdam(
        p, lr=0.03, betas=(0.8, 0.95), weight_decay=0.1, decoupled_weight_decay=True, maximize=True
    ),
    "adafactor": lambda p: torch.optim.Adafactor(p, lr=0.05),
    "adafactor_decay": lambda p: torch.optim.Adafactor(
        p, lr=0.02, beta2_decay=-0.6, eps=(None, 0.8), d=1.3, weight_decay=0.1, maximize=True
    ),
    "radam_l2": lambda p: torch.optim.RAdam(p, lr=0.03, betas=(0.8, 0.95), weight_decay=0.1),
}

SCHEDULES = {
    "cosine": (lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 100, eta_min=0.01), 0.5),
    "step": (lambda o: torch.optim.lr_scheduler.StepLR(o, 30, gamma=0.1), 0.5),
    "one_cycle": (lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.5, total_steps=101), 0.5),
    "linear": (lambda o: torch.optim.lr_scheduler.LinearLR(o, 1.0, 0.1, total_iters=60), 0.5),
    "polynomial": (lambda o: torch.optim.lr_scheduler.PolynomialLR(o, 80, power=1.7), 0.5),
    "multi_step": (lambda o: torch.optim.lr_scheduler.MultiStepLR(o, [5, 30, 31, 80], gamma=0.3), 0.5),
    "exponential": (lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.97), 0.5),
    "restarts": (lambda o: torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(o, 7, 1, eta_min=0.01), 0.5),
    "longer_restarts": (lambda o: torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(o, 4, 3), 0.5),
}

OPTAX_SCHEDULES = {
    "optax_linear": optax.linear_schedule(0.5, 0.05, 60),
    "optax_polynomial": optax.polynomial_schedule(0.5, 0.05, 1.7, 80),
}


def losses():
    """Losses of epochs, some of them better than all earlier ones."""
    return [1.0 / (1 + epoch // 6) + 0.01 * math.sin(3.0 * epoch) for epoch in range(60)]


def plateau(**settings):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.5)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **settings)
    found = []
    for loss in losses():
        schedule.step(-loss if settings.get("mode") == "max" else loss)
        found.append(optimizer.param_groups[0]["lr"])
    return found


PLATEAUS = {
    "default": {"patience": 2},
    "cooldown": {"patience": 1, "cooldown": 4, "factor": 0.5, "min_lr": 0.01, "threshold": 0.05},
    "absolute": {"patience": 1, "factor": 0.7, "threshold": 0.1, "threshold_mode": "abs"},
    "maximize": {"patience": 1, "factor": 0.7, "mode": "max", "threshold": 0.01},
}


def groups():
    """Three parameters: the second and third have no weight decay, and the third has another rate."""
    first = torch.tensor(FIRST, dtype=torch.float64).reshape(SHAPE)
    all = [torch.nn.Parameter(first.clone()) for _ in range(3)]
    optimizer = torch.optim.AdamW(
        [
            {"params": all[:1]},
            {"params": all[1:2], "weight_decay": 0.0},
            {"params": all[2:], "weight_decay": 0.0, "lr": 0.3},
        ],
        lr=0.03,
        weight_decay=0.2,
    )
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)
    kept = {}
    for step in range(1, max(KEPT) + 1):
        for p in all:
            p.grad = 0.3 * p.detach() + torch.tensor(noise(step), dtype=torch.float64).reshape(SHAPE)
        optimizer.step()
        schedule.step()
        if step in KEPT:
            kept[step] = [p.detach().flatten().tolist() for p in all]
    return kept


def clipped():
    p = torch.nn.Parameter(torch.zeros(12, dtype=torch.float64))
    p.grad = torch.tensor(noise(1), dtype=torch.float64)
    norm = torch.nn.utils.clip_grad_norm_([p], 0.7).item()
    return {"norm": norm, "gradient": p.grad.tolist()}


def averaged():
    model = torch.nn.Linear(12, 1, bias=False).double()
    average = torch.optim.swa_utils.AveragedModel(
        model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)
    )
    for step in range(1, 21):
        with torch.no_grad():
            model.weight.copy_(torch.tensor([noise(step)], dtype=torch.float64))
        average.update_parameters(model)
    return average.module.weight.detach().flatten().tolist()


reference = {
    "versions": {"torch": torch.__version__, "optax": optax.__version__},
    "f64": {name: by_torch(make, torch.float64) for name, make in OPTIMIZERS.items()}
    | {
        "lion": by_optax(optax.lion(0.01)),
        "lion_decay": by_optax(optax.lion(0.01, b1=0.8, b2=0.95, weight_decay=0.1)),
        "lamb": by_optax(optax.lamb(0.01)),
        "adafactor_whole": by_optax(adafactor(0.03)),
        "adafactor_factored": by_optax(adafactor(0.03, least=3)),
        "adafactor_momentum": by_optax(
            adafactor(
                0.03, least=2, exponent=0.6, scale=False, clipping=None, momentum=0.9, weight_decay=0.1, epsilon=1e-3
            )
        ),
        # The first is factored over the axes of sizes 5 and 4, the second over the last two.
        "adafactor_cube": by_optax(adafactor(0.03, least=3), (5, 2, 4)),
        "adafactor_equal": by_optax(adafactor(0.03, least=3), (3, 3, 3)),
        "lamb_decay": by_optax(optax.lamb(0.01, b1=0.8, b2=0.95, eps=1e-4, weight_decay=0.1)),
    },
    "f32": {name: by_torch(make, torch.float32) for name, make in OPTIMIZERS.items()},
    "frozen": {name: frozen_by_torch(make, torch.float64) for name, make in OPTIMIZERS.items()},
    "schedules": {name: rates(make, lr) for name, (make, lr) in SCHEDULES.items()}
    | {name: [float(of(step)) for step in range(100)] for name, of in OPTAX_SCHEDULES.items()},
    "plateaus": {name: plateau(**settings) for name, settings in PLATEAUS.items()},
    "groups": groups(),
    "clipped": clipped(),
    "averaged": averaged(),
}
path = pathlib.Path(__file__).with_name("reference.json")
path.write_text(json.dumps(reference, indent=1) + "\n")
