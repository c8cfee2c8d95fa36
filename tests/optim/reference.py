"""Writes `reference.json`: the numbers of PyTorch's and optax's optimizers and schedules, for `main.rs` to compare with.

    pip install torch optax
    python tests/optim/reference.py

The parameters are 12 numbers; the gradient is a formula of them and of the step, which `main.rs` has as well.
"""

import json
import math
import pathlib

import jax
import optax
import torch

jax.config.update("jax_enable_x64", True)

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
    """Two parameters, of which the second has no gradient at first, and for a time later."""
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


def by_optax(transform):
    p = jax.numpy.array(FIRST)
    state = transform.init(p)
    kept = {}
    for step in range(1, max(KEPT) + 1):
        updates, state = transform.update(0.3 * p + jax.numpy.array(noise(step)), state, p)
        p = optax.apply_updates(p, updates)
        if step in KEPT:
            kept[step] = p.tolist()
    return kept


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
}

SCHEDULES = {
    "cosine": (lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 100, eta_min=0.01), 0.5),
    "step": (lambda o: torch.optim.lr_scheduler.StepLR(o, 30, gamma=0.1), 0.5),
    "one_cycle": (lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.5, total_steps=101), 0.5),
}


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
    },
    "f32": {name: by_torch(make, torch.float32) for name, make in OPTIMIZERS.items()},
    "frozen": {name: frozen_by_torch(make, torch.float64) for name, make in OPTIMIZERS.items()},
    "schedules": {name: rates(make, lr) for name, (make, lr) in SCHEDULES.items()},
    "clipped": clipped(),
    "averaged": averaged(),
}
path = pathlib.Path(__file__).with_name("reference.json")
path.write_text(json.dumps(reference, indent=1) + "\n")
