//! Losses.

use crate::loops::build;
use crate::table::Family;
use crate::value::of;
use crate::{B, C, I, Inner, J, Outer, V};
use ndarray::Axis;
use typed_dims::prelude::*;

/// Losses of predictions and targets.
pub fn family() -> Family {
    let mut operators = elements::entries();
    operators.extend(classes::entries());
    Family {
        title: "Losses",
        about: "There is one loss for each prediction: reduce the losses with `.mean(B)` or `.sum(B)`. Elementwise losses are lazy, and have the dims of the predictions. The losses of `cross_entropy`, `cross_entropy_with` and `nll_loss` lack the dim of the classes. Targets must not have dims that the losses lack; they can have fewer.",
        operators,
    }
}

/// Entries for losses of single elements.
macro_rules! elementwise {
    ($($(#[doc = $doc:literal])* $name:ident [$($t:ident)*] ($x:ident $(in $domain:expr)?, $y:ident $(in $ydomain:expr)?), $call:expr, $value:expr, $torch:literal $jax:literal;)*) => {
        $crate::operators! {$(
            $(#[doc = $doc])*
            $name [$($t)*] ($x: T [B C] $(in $domain)?, $y: T [C B] $(in $ydomain)?) -> [C B],
                call: $call,
                loops: build(&[$x.shape()[1], $x.shape()[0]], |at| {
                    let ($x, $y): (T, T) = ($x[[at[1], at[0]]], $y[[at[0], at[1]]]);
                    $value
                }),
                along: [], keep: [],
                names: $torch $jax "";
        )*}
    };
}

mod elements {
    use super::{B, C, Inner, Outer, build, of};
    use typed_dims::prelude::*;

    elementwise! {
        /// `(x - y)^2`: the squared error
        mse_loss [f32 i32 f16] (x, y), x.mse_loss(y), (x - y) * (x - y), "nn.functional.mse_loss(reduction='none')" "optax.squared_error";
        /// `|x - y|`: the absolute error
        l1_loss [f32 f64 f16] (x, y), x.l1_loss(y), (x - y).abs(), "nn.functional.l1_loss(reduction='none')" "";
        /// Half the squared error where `|x - y| <= delta`, linear elsewhere
        huber_loss [f32 f64 f16] (x, y), x.huber_loss(y, of(1.5)), { let d = (x - y).abs(); if d <= 1.5 { d * d / 2.0 } else { 1.5 * (d - 0.75) } },
            "nn.functional.huber_loss(reduction='none')" "optax.huber_loss";
        /// `huber_loss` with `delta = beta`, divided by `beta`; `l1_loss` if `beta` is 0
        smooth_l1_loss [f32 f64 f16] (x, y), x.smooth_l1_loss(y, of(0.5)), { let d = (x - y).abs(); if d < 0.5 { d * d } else { d - 0.25 } },
            "nn.functional.smooth_l1_loss(reduction='none')" "";
        /// `-(y * ln(x) + (1 - y) * ln(1 - x))`, with each logarithm clamped to at least -100
        bce_loss [f32 f64 f16] (x in Share, y in Share), x.bce_loss(y), -(y * x.ln() + (1.0 - y) * (1.0 - x).ln()),
            "nn.functional.binary_cross_entropy(reduction='none')" "";
        /// `ln(1 + e^x) - x * y`: `bce_loss` of `sigmoid(x)`, without the limit on the logarithms
        bce_with_logits_loss [f32 f64 f16] (x, y in Share), x.bce_with_logits_loss(y),
            { let p = 1.0 / (1.0 + (-x).exp()); -(y * p.ln() + (1.0 - y) * (1.0 - p).ln()) },
            "nn.functional.binary_cross_entropy_with_logits(reduction='none')" "optax.sigmoid_binary_cross_entropy";
        /// `y * (ln(y) - x)`, and 0 where `y` is 0 and `x` is not NaN
        kl_div_loss [f32 f64 f16] (x, y in Share), x.kl_div_loss(y), y * (y.ln() - x), "nn.functional.kl_div(reduction='none')" "";
    }
}

mod classes {
    use super::{Axis, B, I, Inner, J, Outer, V, build};
    use ndarray::Array2;
    use typed_dims::nn::CrossEntropy;
    use typed_dims::prelude::*;

    crate::operators! {
        /// `ln(sum over v of e^x[v]) - x[target]`
        cross_entropy [f32 f64] (x: T [B V], target: usize [B] in Below("V")) -> [B],
            call: x.cross_entropy(V, target),
            loops: build(&[x.shape()[0]], |at| {
                let line = x.index_axis(Axis(0), at[0]);
                (line.iter().map(|&x| f64::from(x).exp()).sum::<f64>().ln() - f64::from(line[target[[at[0]]]])) as T
            }),
            along: [V], keep: [],
            errors: [Array2::<f32>::zeros((4, 2)).at((B, V)).cross_entropy(V, ndarray::array![0usize, 1, 2, 0].at(B)).try_eval()
                => "index 2 of dim `V`, given as a label, is out of range for an axis of size 2"],
            names: "nn.functional.cross_entropy(reduction='none')" "optax.softmax_cross_entropy_with_integer_labels" "";
        /// `-x[target]`
        nll_loss [f32 f64 f16] (x: T [V I J], target: usize [I J] in Below("V")) -> [J I],
            call: x.nll_loss(V, target),
            loops: build(&[x.shape()[2], x.shape()[1]], |at| -x[[target[[at[1], at[0]]], at[1], at[0]]]),
            along: [V], keep: [],
            names: "nn.functional.nll_loss(reduction='none')" "" "";
        /// The mean loss of all predictions
        cross_entropy_mean [f32 f64] (x: T [I V], target: usize [I] in Below("V")) -> [],
            call: x.cross_entropy(V, target).mean(I),
            loops: {
                let each = x.outer_iter().zip(target).map(|(line, &target)| {
                    line.iter().map(|&x| f64::from(x).exp()).sum::<f64>().ln() - f64::from(line[target])
                });
                (each.sum::<f64>() / x.shape()[0] as f64) as T
            },
            along: [V I], keep: [],
            names: "nn.functional.cross_entropy" "" "";
        /// The mean loss with smoothed labels. `CrossEntropy` also has `ignore_index`
        /// and class `weights`
        cross_entropy_with [f32 f64] (x: T [I V], target: usize [I] in Below("V")) -> [],
            call: x.cross_entropy_with(V, target, CrossEntropy::new().label_smoothing(0.1)).mean(I),
            loops: {
                let each = x.outer_iter().zip(target).map(|(line, &target)| {
                    let sum = line.iter().map(|&x| f64::from(x).exp()).sum::<f64>().ln();
                    let all = line.iter().map(|&x| sum - f64::from(x)).sum::<f64>();
                    0.9 * (sum - f64::from(line[target])) + 0.1 / line.len() as f64 * all
                });
                (each.sum::<f64>() / x.shape()[0] as f64) as T
            },
            along: [V I], keep: [],
            names: "nn.functional.cross_entropy(label_smoothing=0.1)" "" "";
        /// The cross entropy of predictions and probabilities
        cross_entropy_of_shares [f32 f64] (x: T [B V], shares: T [B V] in Share) -> [B],
            call: -(x.log_softmax(V) * shares).sum(V),
            loops: build(&[x.shape()[0]], |at| {
                let line = x.index_axis(Axis(0), at[0]);
                let sum = line.iter().map(|&x| f64::from(x).exp()).sum::<f64>().ln();
                line.iter().enumerate().map(|(v, &x)| (sum - f64::from(x)) * f64::from(shares[[at[0], v]])).sum::<f64>() as T
            }),
            along: [V], keep: [],
            names: "nn.functional.cross_entropy" "optax.softmax_cross_entropy" "";
        /// The Kullback-Leibler divergence of distributions
        kl_divergence [f32 f64] (x: T [B V], y: T [B V] in Share) -> [B],
            call: x.log_softmax(V).kl_div_loss(y).sum(V),
            loops: build(&[x.shape()[0]], |at| {
                let line = x.index_axis(Axis(0), at[0]);
                let sum = line.iter().map(|&x| f64::from(x).exp()).sum::<f64>().ln();
                let shares = y.index_axis(Axis(0), at[0]);
                line.iter().zip(shares).map(|(&x, &y)| f64::from(y) * (f64::from(y).ln() - (f64::from(x) - sum))).sum::<f64>() as T
            }),
            along: [V], keep: [],
            names: "nn.functional.kl_div" "optax.kl_divergence" "";
    }
}
