//! Convolutions, pooling, normalization, dropout.

use crate::loops::{self, build, tap};
use crate::table::Family;
use crate::value::of;
use crate::{B, C, D, G, H, I, Inner, J, K, O, Outer, P, Q, W};
use ndarray::{ArrayD, Axis};
use typed_dims::fallible::{try_conv, try_conv_transpose};
use typed_dims::prelude::*;

pub fn family() -> Family {
    Family {
        title: "Neural networks",
        about: "`layer_norm` takes the dims to normalize over: with the dims of an image, it is an instance norm. For a gain and a bias, call `layer_norm_affine`. `attention` is in the section on reductions.",
        operators: entries(),
    }
}

/// The mean and the variance of all elements.
fn moments<'a, T: Copy + Into<f64> + 'a>(x: impl Iterator<Item = &'a T> + Clone) -> (f64, f64) {
    let n = x.clone().count() as f64;
    let mean = x.clone().map(|&x| x.into()).sum::<f64>() / n;
    (mean, x.map(|&x| (x.into() - mean) * (x.into() - mean)).sum::<f64>() / n)
}

/// `f` of each window of the two axes after the first. Padding is `None`.
fn pooled<T: Copy>(
    x: &ArrayD<T>,
    size: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
    f: impl Fn(&mut dyn Iterator<Item = Option<T>>) -> T,
) -> ArrayD<T> {
    let n = |at: usize| (x.shape()[at + 1] + 2 * padding[at] - size[at]) / stride[at] + 1;
    build(&[x.shape()[0], n(0), n(1)], |at| {
        let places = (0..size[0]).flat_map(|p| (0..size[1]).map(move |q| (p, q)));
        f(&mut places.map(|(p, q)| {
            let h = tap(at[1], stride[0], p, 1, padding[0], x.shape()[1])?;
            let w = tap(at[2], stride[1], q, 1, padding[1], x.shape()[2])?;
            Some(x[[at[0], h, w]])
        }))
    })
}

/// Like `pooled`, with partial windows at the end. Positions beyond the padding are left out.
fn ragged<T: Copy>(
    x: &ArrayD<T>,
    size: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
    f: impl Fn(Vec<Option<T>>) -> T,
) -> ArrayD<T> {
    let len = |at: usize| x.shape()[at + 1] + 2 * padding[at];
    let starts = |at: usize| {
        let count = (len(at) - size[at]).div_ceil(stride[at]) + 1;
        (0..count).filter(|n| n * stride[at] < x.shape()[at + 1] + padding[at]).count()
    };
    build(&[x.shape()[0], starts(0), starts(1)], |at| {
        let mut window = Vec::new();
        for p in (0..size[0]).filter(|p| at[1] * stride[0] + p < len(0)) {
            for q in (0..size[1]).filter(|q| at[2] * stride[1] + q < len(1)) {
                let h = tap(at[1], stride[0], p, 1, padding[0], x.shape()[1]);
                let w = tap(at[2], stride[1], q, 1, padding[1], x.shape()[2]);
                window.push(h.zip(w).map(|(h, w)| x[[at[0], h, w]]));
            }
        }
        f(window)
    })
}

/// Covers each of the two axes after the first with nearly equal ranges, which may overlap, and
/// applies `f` to each block.
fn adaptive<T: Copy>(x: &ArrayD<T>, sizes: [usize; 2], f: impl Fn(Vec<T>) -> T) -> ArrayD<T> {
    let part = |at: usize, n: usize, size: usize| at * n / size..((at + 1) * n).div_ceil(size);
    build(&[x.shape()[0], sizes[0], sizes[1]], |at| {
        let h = part(at[1], x.shape()[1], sizes[0]);
        f(h.flat_map(|h| part(at[2], x.shape()[2], sizes[1]).map(move |w| x[[at[0], h, w]])).collect())
    })
}

fn image() -> Array2<f32> {
    Array2::zeros((4, 2))
}

crate::operators! {
    /// `out[o, h] = sum over c, p of x[c, h + p] * w[o, c, p]`
    conv1d [f32 f64 i32] (x: T [B C H], w: T [O C P]) -> [B O H],
        call: conv(x, w, C, H, P, &Window::new()),
        loops: build(&[x.shape()[0], w.shape()[0], x.shape()[2] + 1 - w.shape()[2]], |at| {
            let mut sum = 0 as T;
            for c in 0..x.shape()[1] {
                for p in 0..w.shape()[2] {
                    sum += x[[at[0], c, at[2] + p]] * w[[at[1], c, p]];
                }
            }
            sum
        }),
        along: [C H P], keep: [H P],
        errors: [
            try_conv(image().at((C, H)), Array2::<f32>::zeros((4, 3)).at((C, P)), C, H, P, &Window::new())
                => "windows along dim `H`: they span 3 elements, but there are 2",
            try_conv(image().at((C, H)), Array2::<f32>::zeros((4, 2)).at((C, P)), C, H, P, &Window::new().stride(0))
                => "windows along dim `H`: size 2, stride 0 and dilation 1 must each be at least 1",
            try_conv(image().at((C, H)), Array2::<f32>::zeros((3, 2)).at((C, P)), C, H, P, &Window::new())
                => "dim `C` has size 4",
        ],
        names: "nn.functional.conv1d" "lax.conv_general_dilated" "correlate";
    /// A convolution with different padding at the two ends
    conv_padding_sides [f32 i32] (x: T [C H], w: T [O C P]) -> [O H],
        call: conv(x, w, C, H, P, &Window::new().padding_sides(2, 1).stride(2)),
        loops: build(&[w.shape()[0], (x.shape()[1] + 3 - w.shape()[2]) / 2 + 1], |at| {
            let mut sum = 0 as T;
            for c in 0..x.shape()[0] {
                for p in 0..w.shape()[2] {
                    if let Some(h) = tap(at[1], 2, p, 1, 2, x.shape()[1]) {
                        sum += x[[c, h]] * w[[at[0], c, p]];
                    }
                }
            }
            sum
        }),
        along: [C H P], keep: [H P],
        names: "" "lax.conv_general_dilated(padding)" "";
    /// A convolution with enough padding for `ceil(size / stride)` windows
    conv_padding_same [f32 i32] (x: T [C H W], w: T [O C P Q]) -> [O H W],
        call: conv(x, w, C, (H, W), (P, Q), &Window::new().padding_same().stride((1, 2)).dilation((2, 1))),
        loops: build(&[w.shape()[0], x.shape()[1], x.shape()[2].div_ceil(2)], |at| {
            let mut sum = 0 as T;
            for c in 0..x.shape()[0] {
                for p in 0..3 {
                    for q in 0..2 {
                        // The padding of `H` is 4, 2 on each side. The padding of `W`, which has
                        // five elements, is 1, at the end.
                        let (h, w_) = (tap(at[1], 1, p, 2, 2, x.shape()[1]), tap(at[2], 2, q, 1, 0, x.shape()[2]));
                        if let (Some(h), Some(w_)) = (h, w_) {
                            sum += x[[c, h, w_]] * w[[at[0], c, p, q]];
                        }
                    }
                }
            }
            sum
        }),
        along: [C H W P Q], keep: [H W P Q],
        errors: [try_conv_transpose(image().at((C, H)), Array2::<f32>::zeros((4, 2)).at((C, P)), C, H, P, &Window::new().padding_same())
            => "a transposed convolution along dim `H`: `padding_same` does not determine the size of the result"],
        names: "nn.functional.conv2d(padding='same')" "lax.conv_general_dilated(padding='SAME')" "";
    /// A convolution along two dims, with stride, padding and dilation
    conv2d [f32 i32] (x: T [C H W], w: T [O C P Q]) -> [O H W],
        call: conv(x, w, C, (H, W), (P, Q), &Window::new().stride((2, 1)).padding(1).dilation((1, 2))),
        loops: build(&[w.shape()[0], (x.shape()[1] + 2 - 3) / 2 + 1, x.shape()[2] + 2 - 3 + 1], |at| {
            let mut sum = 0 as T;
            for c in 0..x.shape()[0] {
                for p in 0..3 {
                    for q in 0..2 {
                        let (h, w_) = (tap(at[1], 2, p, 1, 1, x.shape()[1]), tap(at[2], 1, q, 2, 1, x.shape()[2]));
                        if let (Some(h), Some(w_)) = (h, w_) {
                            sum += x[[c, h, w_]] * w[[at[0], c, p, q]];
                        }
                    }
                }
            }
            sum
        }),
        along: [C H W P Q], keep: [H W P Q],
        errors: [
            try_conv(image().at((C, H)), Array2::<f32>::zeros((4, 2)).at((C, P)), C, H, P, &Window::new().stride((1, 2)))
                => "the stride has 2 numbers, but there is 1 dim",
        ],
        names: "nn.functional.conv2d" "lax.conv_general_dilated" "scipy.signal.correlate2d";
    /// A convolution along three dims
    conv3d [f32] (x: T [C D H W], w: T [C O K P Q]) -> [O D H W],
        call: conv(x, w, C, (D, H, W), (K, P, Q), &Window::new()),
        loops: build(&[w.shape()[1], x.shape()[1] - 1, x.shape()[2] - 2, x.shape()[3] - 1], |at| {
            let mut sum = 0 as T;
            for c in 0..x.shape()[0] {
                for k in 0..2 {
                    for p in 0..3 {
                        for q in 0..2 {
                            sum += x[[c, at[1] + k, at[2] + p, at[3] + q]] * w[[c, at[0], k, p, q]];
                        }
                    }
                }
            }
            sum
        }),
        along: [C D H W K P Q], keep: [D H W K P Q],
        names: "nn.functional.conv3d" "lax.conv_general_dilated" "scipy.signal.correlate";
    /// Groups: both operands have the group dim, which is not summed over
    conv_grouped [f32 i32] (x: T [G C H], w: T [G O C P]) -> [G O H],
        call: conv(x, w, C, H, P, &Window::new().padding(1)),
        loops: build(&[x.shape()[0], w.shape()[1], x.shape()[2]], |at| {
            let mut sum = 0 as T;
            for c in 0..x.shape()[1] {
                for p in 0..3 {
                    if let Some(h) = tap(at[2], 1, p, 1, 1, x.shape()[2]) {
                        sum += x[[at[0], c, h]] * w[[at[0], at[1], c, p]];
                    }
                }
            }
            sum
        }),
        along: [C H P], keep: [H P],
        names: "nn.functional.conv1d(groups)" "lax.conv_general_dilated(feature_group_count)" "";
    /// Depthwise: only the window is summed over, for each channel
    conv_depthwise [f32 i32] (x: T [C H], w: T [C P]) -> [H C],
        call: conv(x, w, (), H, P, &Window::new().stride(2)),
        loops: build(&[(x.shape()[1] - 3) / 2 + 1, x.shape()[0]], |at| {
            (0..3).fold(0 as T, |sum, p| sum + x[[at[1], at[0] * 2 + p]] * w[[at[1], p]])
        }),
        along: [H P], keep: [H P],
        names: "nn.functional.conv1d(groups=C)" "lax.conv_general_dilated(feature_group_count)" "";
    /// `out[o, 2 h + p - 1] += x[c, h] * w[c, o, p]`
    conv_transpose1d [f32 i32] (x: T [C H], w: T [C O P]) -> [O H],
        call: conv_transpose(x, w, C, H, P, &Window::new().stride(2).padding(1).output_padding(1)),
        loops: {
            let mut out = build(&[w.shape()[1], 2 * x.shape()[1]], |_| 0 as T);
            for o in 0..w.shape()[1] {
                for (c, h, p) in (0..x.shape()[0]).flat_map(|c| (0..x.shape()[1]).flat_map(move |h| (0..3).map(move |p| (c, h, p)))) {
                    if let Some(at) = tap(h, 2, p, 1, 1, 2 * x.shape()[1]) {
                        out[[o, at]] += x[[c, h]] * w[[c, o, p]];
                    }
                }
            }
            out
        },
        along: [C H P], keep: [H P],
        errors: [try_conv_transpose(image().at((C, H)), Array2::<f32>::zeros((4, 2)).at((C, P)), C, H, P, &Window::new().padding(2))
            => "a transposed convolution along dim `H`: the padding leaves no elements"],
        names: "nn.functional.conv_transpose1d" "lax.conv_transpose" "convolve";
    /// A transposed convolution along two dims
    conv_transpose2d [f32] (x: T [C H W], w: T [C O P Q]) -> [O H W],
        call: conv_transpose(x, w, C, (H, W), (P, Q), &Window::new().stride((1, 3)).dilation((2, 1))),
        loops: {
            let (h_out, w_out) = (x.shape()[1] - 1 + 4 + 1, (x.shape()[2] - 1) * 3 + 1 + 1);
            let mut out = build(&[w.shape()[1], h_out, w_out], |_| 0 as T);
            for o in 0..w.shape()[1] {
                for c in 0..x.shape()[0] {
                    for h in 0..x.shape()[1] {
                        for i in 0..x.shape()[2] {
                            for (p, q) in (0..3).flat_map(|p| (0..2).map(move |q| (p, q))) {
                                out[[o, h + 2 * p, 3 * i + q]] += x[[c, h, i]] * w[[c, o, p, q]];
                            }
                        }
                    }
                }
            }
            out
        },
        along: [C H W P Q], keep: [H W P Q],
        names: "nn.functional.conv_transpose2d" "lax.conv_transpose" "";
    /// The greatest element of each window
    max_pool [f32 i32 f16] (x: T [C H W]) -> [C H W],
        call: x.max_pool((H, W), (3, 2), &Window::new().stride(2).padding((1, 0))),
        loops: pooled(x, [3, 2], [2, 2], [1, 0], |window| {
            window.flatten().reduce(|a, b| if b > a { b } else { a }).expect("an element")
        }),
        along: [H W], keep: [H W],
        errors: [image().at((C, H)).try_max_pool(H, 2, &Window::new().padding(2))
            => "windows along dim `H`: the padding 2 is more than half of the window's span of 2"],
        names: "nn.functional.max_pool2d" "lax.reduce_window" "";
    /// The greatest element of each window, with partial windows at the end
    max_pool_ceil [f32 i32] (x: T [C H W]) -> [C H W],
        call: x.max_pool((H, W), (3, 2), &Window::new().stride(2).padding((1, 0)).ceil()),
        loops: ragged(x, [3, 2], [2, 2], [1, 0], |window| {
            window.iter().flatten().copied().reduce(|a, b| if b > a { b } else { a }).expect("an element")
        }),
        along: [H W], keep: [H W],
        names: "nn.functional.max_pool2d(ceil_mode=True)" "" "";
    /// The mean of each window, with partial windows at the end; padding counts as zeros
    avg_pool_ceil [f32 f64] (x: T [C H W]) -> [C H W],
        call: x.avg_pool((H, W), (3, 2), &Window::new().stride(2).padding((1, 0)).ceil()),
        loops: ragged(x, [3, 2], [2, 2], [1, 0], |window| {
            window.iter().map(|x| x.unwrap_or(0.0)).sum::<T>() / window.len() as T
        }),
        along: [H W], keep: [H W],
        names: "nn.functional.avg_pool2d(ceil_mode=True)" "" "";
    /// The mean of each window; padding counts as zeros
    avg_pool [f32 f64 f16] (x: T [C H W]) -> [H W C],
        call: x.avg_pool((H, W), (3, 2), &Window::new().stride((1, 2)).padding((1, 0))),
        loops: pooled(x, [3, 2], [1, 2], [1, 0], |window| window.map(|x| x.unwrap_or(0.0)).sum::<T>() / 6.0)
            .permuted_axes(ndarray::IxDyn(&[1, 2, 0])),
        along: [H W], keep: [H W],
        names: "nn.functional.avg_pool2d" "flax.linen.avg_pool" "";
    /// The mean of the elements in each window, without the padding
    avg_pool_without_padding [f32 f64] (x: T [C H W]) -> [H W C],
        call: x.avg_pool_without_padding((H, W), (3, 2), &Window::new().stride((1, 2)).padding(1)),
        loops: pooled(x, [3, 2], [1, 2], [1, 1], |window| {
            let (mut sum, mut count) = (0.0, 0.0);
            window.flatten().for_each(|x| { sum += x; count += 1.0; });
            sum / count
        }).permuted_axes(ndarray::IxDyn(&[1, 2, 0])),
        along: [H W], keep: [H W],
        names: "nn.functional.avg_pool2d(count_include_pad=False)" "flax.linen.avg_pool(count_include_pad=False)" "";
    /// The Euclidean norm of each window
    norm_pool [f32 f64 f16] (x: T [C H W]) -> [C H W],
        call: shown!(x.norm_pool((H, W), 2, &Window::new()); where { let x = x + x; }),
        loops: pooled(x, [2, 2], [1, 1], [0, 0], |window| 2.0 * window.flatten().map(|x| x * x).sum::<T>().sqrt()),
        along: [H W], keep: [H W],
        names: "nn.functional.lp_pool2d" "" "";
    /// The means of a given number of nearly equal parts
    adaptive_avg_pool [f32 f64] (x: T [C H W]) -> [C H W],
        call: x.adaptive_avg_pool((H, W), (4, 2)),
        loops: adaptive(x, [4, 2], |part| part.iter().sum::<T>() / part.len() as T),
        along: [H W], keep: [H W],
        names: "nn.functional.adaptive_avg_pool2d" "" "";
    /// The maxima of a given number of nearly equal parts
    adaptive_max_pool [f32 i32] (x: T [C H W]) -> [C H W],
        call: x.adaptive_max_pool((H, W), (4, 7)),
        loops: adaptive(x, [4, 7], |part| part.into_iter().reduce(|a, b| if b > a { b } else { a }).expect("an element")),
        along: [H W], keep: [H W],
        names: "nn.functional.adaptive_max_pool2d" "" "";
    /// `(x - mean) / sqrt(var + eps)` over dims
    layer_norm [f32 f64 half] (x: T [B C H]) -> [B C H],
        call: x.layer_norm((C, H), of(1e-3)),
        loops: build(x.shape(), |at| {
            let (mean, var) = moments(x.index_axis(Axis(0), at[0]).iter());
            ((f64::from(x[[at[0], at[1], at[2]]]) - mean) / (var + 1e-3).sqrt()) as T
        }),
        along: [C H], keep: [],
        errors: [image().at((C, H)).try_layer_norm(C, -1e-3) => "`layer_norm` with the epsilon -0.001: it must be 0 or more"],
        names: "nn.functional.layer_norm" "nn.standardize" "";
    /// `layer_norm` over the dims of an image
    instance_norm [f32 f64 f16] (x: T [H C W]) -> [C H W],
        call: x.layer_norm((H, W), of(1e-3)),
        loops: build(&[x.shape()[1], x.shape()[0], x.shape()[2]], |at| {
            let (mean, var) = moments(x.index_axis(Axis(1), at[0]).iter());
            ((f64::from(x[[at[1], at[0], at[2]]]) - mean) / (var + 1e-3).sqrt()) as T
        }),
        along: [H W], keep: [],
        names: "nn.functional.instance_norm" "nn.standardize" "";
    /// `layer_norm` times a gain, plus a bias; both can have only dims of `x`
    layer_norm_affine [f32 f64] (x: T [B C H], gain: T [C], bias: T [H]) -> [B C H],
        call: x.layer_norm_affine((C, H), of(1e-3), gain, bias),
        loops: build(x.shape(), |at| {
            let (mean, var) = moments(x.index_axis(Axis(0), at[0]).iter());
            let normal = (f64::from(x[[at[0], at[1], at[2]]]) - mean) / (var + 1e-3).sqrt();
            (normal * f64::from(gain[[at[1]]]) + f64::from(bias[[at[2]]])) as T
        }),
        along: [C H], keep: [],
        errors: [image().at((C, H)).try_layer_norm_affine(C, f32::NAN, 1.0, 0.0) => "`layer_norm_affine` with the epsilon NaN: it must be 0 or more"],
        names: "nn.functional.layer_norm(weight, bias)" "" "";
    /// `x / sqrt(mean of x^2 + eps)` over dims
    rms_norm [f32 f64 f16] (x: T [B C]) -> [C B],
        call: x.rms_norm(C, of(1e-3)),
        loops: loops::along(x, 1, |x| {
            let mean = x.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>() / x.len() as f64;
            x.iter().map(|&x| (f64::from(x) / (mean + 1e-3).sqrt()) as T).collect()
        }).reversed_axes(),
        along: [C], keep: [],
        errors: [image().at((C, H)).try_rms_norm(C, -1.0) => "`rms_norm` with the epsilon -1.0: it must be 0 or more"],
        names: "nn.functional.rms_norm" "" "";
    /// `layer_norm` over each group of channels and over dims
    group_norm [f32 f64 f16] (x: T [B C H]) -> [B C H],
        call: x.group_norm(C, 2, H, of(1e-3)),
        loops: build(x.shape(), |at| {
            let example = x.index_axis(Axis(0), at[0]);
            let start = at[1] / 2 * 2;
            let group = (start..start + 2).flat_map(|c| example.index_axis(Axis(0), c).iter().copied().collect::<Vec<T>>());
            let group: Vec<T> = group.collect();
            let (mean, var) = moments(group.iter());
            ((f64::from(x[[at[0], at[1], at[2]]]) - mean) / (var + 1e-3).sqrt()) as T
        }),
        along: [C H], keep: [C],
        errors: [
            image().at((C, H)).try_group_norm(C, 3, H, 1e-3) => "dim `C` of size 4 cannot be split into 3 equal groups",
            image().at((C, H)).try_group_norm(C, 2, H, -1.0) => "`group_norm` with the epsilon -1.0: it must be 0 or more",
        ],
        names: "nn.functional.group_norm" "" "";
    /// `layer_norm` over the batch; also returns the mean and the variance
    batch_norm [f32 f64 f16] (x: T [B C H]) -> [B C H],
        call: x.batch_norm((B, H), of(1e-3)).output,
        loops: build(x.shape(), |at| {
            let (mean, var) = moments(x.index_axis(Axis(1), at[1]).iter());
            ((f64::from(x[[at[0], at[1], at[2]]]) - mean) / (var + 1e-3).sqrt()) as T
        }),
        along: [B H], keep: [],
        errors: [
            Array3::<f64>::zeros((1, 4, 1)).at((B, C, H)).try_batch_norm((B, H), 1e-3)
                => "`batch_norm` over `B`, `H` has only one value for each channel: two or more are needed for a variance",
            Array3::<f64>::zeros((2, 4, 1)).at((B, C, H)).try_batch_norm((B, H), -1.0)
                => "`batch_norm` with the epsilon -1.0: it must be 0 or more",
        ],
        names: "nn.functional.batch_norm(training=True)" "nn.standardize" "";
    /// The mean and the variance of the batch
    batch_norm_moments [f32 f64] (x: T [B C H]) -> [C],
        call: shown!(x.batch_norm((B, H), of(1e-3)); then |norm| norm.mean + norm.var),
        loops: build(&[x.shape()[1]], |at| {
            let (mean, var) = moments(x.index_axis(Axis(1), at[0]).iter());
            (mean + var) as T
        }),
        along: [B H], keep: [B H],
        names: "var_mean" "" "";
    /// `(x - mean) / sqrt(var + eps)` with a given mean and variance
    batch_norm_with [f32 f64] (x: T [B C H], mean: T [C], var: T [C] in Positive) -> [C B H],
        call: x.batch_norm_with(mean, var, of(1e-3)),
        loops: build(&[x.shape()[1], x.shape()[0], x.shape()[2]], |at| {
            (x[[at[1], at[0], at[2]]] - mean[[at[0]]]) / (var[[at[0]]] + 1e-3).sqrt()
        }),
        along: [], keep: [],
        names: "nn.functional.batch_norm" "" "";
    /// Sets elements to 0 with probability `p`, and multiplies the others by `1 / (1 - p)`; `7` is
    /// the seed
    dropout [f32 f64 f16] (apart x: T [I J]) -> [I J],
        call: x.dropout(0.25, 7),
        loops: build(x.shape(), |at| {
            let place = loops::draws(&[("I", at[0]), ("J", at[1])]);
            if loops::unit(7 ^ loops::DROPOUT, place) < 0.25 { 0.0 } else { x[[at[0], at[1]]] / 0.75 }
        }),
        along: [], keep: [],
        errors: [image().at((C, H)).try_dropout(1.5, 1) => "`dropout` with the probability 1.5: it must be between 0 and 1"],
        names: "nn.functional.dropout" "" "";
}
