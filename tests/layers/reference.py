"""Writes `reference.json`: the results of PyTorch's layers, with which `main.rs` compares.

    pip install "torch==2.15.0"
    python tests/layers/reference.py

Weights and inputs follow a formula that `main.rs` repeats: element `at` of the array `k` of a case is `sin(1.3 * at + 0.7 * k)`.
"""

import json
import pathlib

import torch
from torch import nn
from torch.nn import functional

torch.set_default_dtype(torch.float64)


def array(k, *sizes):
    count = torch.Size(sizes).numel()
    return torch.sin(1.3 * torch.arange(count) + 0.7 * k).reshape(sizes)


def filled(layer, *names):
    """The layer whose weights with these names are the arrays 0, 1, .."""
    with torch.no_grad():
        for k, name in enumerate(names):
            weight = layer.get_parameter(name)
            weight.copy_(array(k, *weight.shape))
    return layer


def embedding_with_padding():
    """The sum of the elements of the rows, and the derivatives with respect to the table."""
    layer = filled(nn.Embedding(5, 4, padding_idx=1), "weight")
    out = layer(torch.tensor([[4, 0, 2], [1, 1, 3]]))
    (out * array(20, 2, 3, 4)).sum().backward()
    return [out, layer.weight.grad]


def rms_norm(x, weight):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * weight


def batch_norm():
    layer = filled(nn.BatchNorm2d(3), "weight", "bias")
    layer.running_mean = array(2, 3)
    layer.running_var = array(3, 3).square()
    outputs = [layer(array(10 + step, 2, 3, 4, 2)) for step in range(2)]
    layer.eval()
    return [*outputs, layer.running_mean, layer.running_var, layer(array(12, 2, 3, 4, 2))]


def attention():
    layer = nn.MultiheadAttention(8, 2, batch_first=True)
    with torch.no_grad():
        weights = [array(2 * k, 8, 8) for k in range(4)]
        biases = [array(2 * k + 1, 8) for k in range(4)]
        layer.in_proj_weight.copy_(torch.cat(weights[:3]))
        layer.in_proj_bias.copy_(torch.cat(biases[:3]))
        layer.out_proj.weight.copy_(weights[3])
        layer.out_proj.bias.copy_(biases[3])
    x, memory = array(20, 2, 5, 8), array(21, 2, 3, 8)
    causal = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1)
    return [
        layer(x, x, x)[0],
        layer(x, x, x, attn_mask=causal)[0],
        layer(x, memory, memory)[0],
    ]


def grouped_attention():
    """Two key heads of three features, each shared by two query heads."""
    def linear(x, k, outputs):
        return x @ array(k, outputs, 8).T + array(k + 1, outputs)

    x = array(20, 2, 5, 8)
    query = linear(x, 0, 12).reshape(2, 5, 4, 3).transpose(1, 2)
    key = linear(x, 2, 6).reshape(2, 5, 2, 3).transpose(1, 2).repeat_interleave(2, 1)
    value = linear(x, 4, 6).reshape(2, 5, 2, 3).transpose(1, 2).repeat_interleave(2, 1)
    found = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    found = found.transpose(1, 2).reshape(2, 5, 12)
    return [found @ array(6, 8, 12).T + array(7, 8)]


def attention_without_biases():
    layer = nn.MultiheadAttention(8, 2, batch_first=True, bias=False)
    with torch.no_grad():
        layer.in_proj_weight.copy_(torch.cat([array(k, 8, 8) for k in range(3)]))
        layer.out_proj.weight.copy_(array(3, 8, 8))
    x = array(20, 2, 5, 8)
    return [layer(x, x, x)[0]]


def neighbors(x, start):
    """As in the paper on rotary embeddings: the features 2 p and 2 p + 1 are rotated as complex numbers."""
    planes = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
    speed = 10_000.0 ** (-torch.arange(planes.shape[-1]) / planes.shape[-1])
    angle = torch.outer(start + torch.arange(x.shape[-2]), speed)
    return torch.view_as_real(planes * torch.polar(torch.ones_like(angle), angle)).flatten(-2)


def rope(x, start):
    """As in the Llama model of `transformers`. The last axes are tokens and features."""
    half = x.shape[-1] // 2
    speed = 10_000.0 ** (-torch.arange(half) / half)
    angle = torch.outer(start + torch.arange(x.shape[-2]), speed)
    angle = torch.cat((angle, angle), -1)
    turned = torch.cat((-x[..., half:], x[..., :half]), -1)
    return x * angle.cos() + turned * angle.sin()


def swi_glu(x):
    gate, up, down = array(0, 6, 4), array(1, 6, 4), array(2, 4, 6)
    return (functional.silu(x @ gate.T) * (x @ up.T)) @ down.T


def recurrent(make, states):
    names = ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"]
    layer = filled(make(3, 4, batch_first=True), *names)
    x = array(20, 2, 5, 3)
    given = [array(21 + at, 1, 2, 4) for at in range(states)]
    outputs = []
    for state in [None, given[0] if states == 1 else tuple(given)]:
        shown, last = layer(x, state)
        outputs += [shown, *(last if states == 2 else [last])]
    return outputs


def interpolate(mode, corners):
    """To a larger height and a smaller width, and the derivatives of a weighted sum."""
    x = array(20, 2, 3, 4, 7).requires_grad_()
    y = functional.interpolate(x, size=(9, 5), mode=mode, align_corners=corners)
    (y * array(21, 2, 3, 9, 5)).sum().backward()
    return [y, x.grad]


def pools():
    """With windows that begin before the end and reach past it."""
    x = array(20, 2, 3, 6, 7)
    windows = dict(kernel_size=(3, 2), stride=(2, 3), padding=(1, 0), ceil_mode=True)
    return [
        functional.max_pool2d(x, **windows),
        functional.avg_pool2d(x, **windows),
        functional.avg_pool2d(x, count_include_pad=False, **windows),
    ]


def without_nan():
    x = array(20, 4, 6)
    x[0, 1] = x[2, 3] = x[2, 5] = torch.nan
    return [x.nansum(1), x.nanmean(1)]


def cross_entropy(ignored=False, **options):
    """Losses of six predictions with options, their mean, and its gradient."""
    logits = (3 * array(0, 6, 4)).requires_grad_()
    labels = torch.tensor([3, 0, 1, 2, 1, 0])
    if ignored:
        labels[[2, 5]] = options["ignore_index"] = -1
    mean = functional.cross_entropy(logits, labels, **options)
    each = functional.cross_entropy(logits, labels, reduction="none", **options)
    return [each, mean, *torch.autograd.grad(mean, logits)]


CLASS_WEIGHTS = torch.tensor([0.5, 2.0, 1.0, 0.0])


def several(make, layers, directions, states):
    """Several layers in one or two directions, and texts of the lengths 5 and 3."""
    layer = make(3, 4, num_layers=layers, bidirectional=directions == 2, batch_first=True)
    names = [
        f"{name}_l{at}{direction}"
        for at in range(layers)
        for direction in ["", "_reverse"][:directions]
        for name in ["weight_ih", "weight_hh", "bias_ih", "bias_hh"]
    ]
    filled(layer, *names)
    x = array(20, 2, 5, 3)
    packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([5, 3]), batch_first=True)
    outputs = []
    for text in [x, packed]:
        shown, last = layer(text)
        if text is packed:
            shown, _ = nn.utils.rnn.pad_packed_sequence(shown, batch_first=True)
        outputs += [shown, *(last if states == 2 else [last])]
    return outputs

CASES = {
    "layer_norm": [
        filled(nn.LayerNorm(4), "weight", "bias")(array(20, 2, 3, 4)),
        filled(nn.LayerNorm((3, 4)), "weight", "bias")(array(20, 2, 3, 4)),
    ],
    "layer_norm_without_bias": [filled(nn.LayerNorm(4, bias=False), "weight")(array(20, 2, 3, 4))],
    "group_norm": [filled(nn.GroupNorm(2, 4), "weight", "bias")(array(20, 2, 4, 3, 2))],
    "rms_norm": [rms_norm(array(20, 2, 3, 4), array(0, 4))],
    "embedding": [filled(nn.Embedding(5, 4), "weight")(torch.tensor([[4, 0, 2], [1, 1, 3]]))],
    "embedding_with_padding": embedding_with_padding(),
    "conv1d": [filled(nn.Conv1d(3, 4, 2, dilation=2), "weight", "bias")(array(20, 2, 3, 6))],
    "conv2d": [filled(nn.Conv2d(3, 4, (3, 2), stride=(2, 1), padding=1), "weight", "bias")(array(20, 2, 3, 6, 5))],
    "conv2d_without_bias": [
        filled(nn.Conv2d(3, 4, (3, 2), padding="same", bias=False), "weight")(array(20, 2, 3, 6, 5))
    ],
    "conv_transpose2d": [
        filled(
            nn.ConvTranspose2d(3, 4, (3, 2), stride=(2, 1), padding=1, output_padding=(1, 0)), "weight", "bias"
        )(array(20, 2, 3, 4, 5))
    ],
    "batch_norm": batch_norm(),
    "attention": attention(),
    "attention_without_biases": attention_without_biases(),
    "grouped_attention": grouped_attention(),
    "rope": [rope(array(20, 2, 5, 6), 0), rope(array(20, 2, 5, 6), 7)],
    "neighbors": [neighbors(array(20, 2, 5, 6), 7)],
    "swi_glu": [swi_glu(array(20, 2, 3, 4))],
    "lstm": recurrent(nn.LSTM, 2),
    "gru": recurrent(nn.GRU, 1),
    "cross_entropy": cross_entropy(),
    "ignored_cross_entropy": cross_entropy(ignored=True),
    "weighted_cross_entropy": cross_entropy(weight=CLASS_WEIGHTS),
    "smooth_cross_entropy": cross_entropy(label_smoothing=0.2),
    "full_cross_entropy": cross_entropy(ignored=True, weight=CLASS_WEIGHTS, label_smoothing=0.3),
    "bilinear": interpolate("bilinear", False),
    "bilinear_corners": interpolate("bilinear", True),
    "bicubic": interpolate("bicubic", False),
    "bicubic_corners": interpolate("bicubic", True),
    "pools": pools(),
    "without_nan": without_nan(),
    "least": list(array(20, 3, 7).topk(3, largest=False)),
    "several_lstm": several(nn.LSTM, 2, 1, 2),
    "several_bi_lstm": several(nn.LSTM, 2, 2, 2),
    "several_gru": several(nn.GRU, 3, 1, 1),
    "several_bi_gru": several(nn.GRU, 2, 2, 1),
}

path = pathlib.Path(__file__).with_name("reference.json")
lines = [
    f'  "{name}": [\n' + ",\n".join("    " + json.dumps(y.detach().flatten().tolist()) for y in outputs) + "\n  ]"
    for name, outputs in CASES.items()
]
path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
