//! Operators that move and repeat elements along dims.

use crate::loops::{build, lines};
use crate::table::Family;
use crate::value::of;
use crate::{C, H, I, Inner, J, K, O, Outer, P, Q, W};
use ndarray::ArrayD;
use typed_dims::operators::interpolate::Interpolation;
use typed_dims::prelude::*;

pub fn family() -> Family {
    Family {
        title: "Moving and repeating",
        about: "`flip`, `unfold`, `chunk`, `unbind` and `expand` return views, even of expressions; the others run \
                immediately. A dim whose size changes must not have a static size.",
        operators: entries(),
    }
}

fn two_by_four() -> Array2<f32> {
    Array2::zeros((2, 4))
}

/// Interpolates element `at` of `len` from a line of `n` elements. The first argument is a function
/// that clamps an index and returns that element of the line; `at`, `n` and `len` follow.
type CurveThrough = dyn Fn(&dyn Fn(isize) -> f64, usize, usize, usize) -> f64;

/// Resizes an axis to `len` elements.
fn interpolated(x: &ArrayD<f64>, axis: usize, len: usize, curve: &CurveThrough) -> ArrayD<f64> {
    lines(x, axis, len, |line| {
        let n = line.len();
        let element = |at: isize| line[at.clamp(0, n as isize - 1) as usize];
        (0..len).map(|at| curve(&element, at, n, len)).collect()
    })
}

fn linear(line: &dyn Fn(isize) -> f64, at: usize, n: usize, len: usize) -> f64 {
    let place = ((2 * at + 1) as f64 * n as f64 / (2 * len) as f64 - 0.5).max(0.0);
    between(line, place)
}

fn aligned(line: &dyn Fn(isize) -> f64, at: usize, n: usize, len: usize) -> f64 {
    between(line, at as f64 * (n - 1) as f64 / (len - 1) as f64)
}

/// Interpolates linearly between two neighbors.
fn between(line: &dyn Fn(isize) -> f64, place: f64) -> f64 {
    let at = place.floor();
    line(at as isize) + (line(at as isize + 1) - line(at as isize)) * (place - at)
}

/// The cubic Hermite spline between two elements. The slope at an element is 0.75 times the
/// difference of its neighbors.
fn cubic(line: &dyn Fn(isize) -> f64, at: usize, n: usize, len: usize) -> f64 {
    let place = (2 * at + 1) as f64 * n as f64 / (2 * len) as f64 - 0.5;
    let (at, t) = (place.floor() as isize, place - place.floor());
    let slope = |at: isize| 0.75 * (line(at + 1) - line(at - 1));
    let (rise, cube, square) = (3.0 * t * t - 2.0 * t * t * t, t * t * t, t * t);
    line(at) * (1.0 - rise)
        + line(at + 1) * rise
        + slope(at) * (cube - 2.0 * square + t)
        + slope(at + 1) * (cube - square)
}

crate::operators! {
    /// The elements in reverse order
    flip [f32 i32 f16] (x: T [I J]) -> [I J],
        call: shown!(x.flip((I, J)); where { let x = x + x; }),
        loops: build(x.shape(), |at| {
            let x = x[[x.shape()[0] - 1 - at[0], x.shape()[1] - 1 - at[1]]];
            x + x
        }),
        along: [I J], keep: [],
        names: "flip" "numpy.flip" "flip";
    /// `out[j] = x[(j - by) mod n]`
    roll [f32 i32 f16] (x: T [I J K]) -> [J K I],
        call: x.roll(J, -3),
        loops: build(&[x.shape()[1], x.shape()[2], x.shape()[0]], |at| x[[at[2], (at[0] + 3) % x.shape()[1], at[1]]]),
        along: [J], keep: [],
        names: "roll" "numpy.roll" "roll";
    /// `out[j] = x[j - by]`, and a constant outside of `x`
    shift [f32 i32 f16] (x: T [I J]) -> [I J],
        call: x.shift(J, 2, of(7.0)),
        loops: lines(x, 1, x.shape()[1], |x| (0..x.len()).map(|j| if j < 2 { 7 as T } else { x[j - 2] }).collect()),
        along: [J], keep: [],
        names: "" "" "";
    /// Padding with a constant
    pad_constant [f32 i32 f16] (x: T [I J]) -> [J I],
        call: x.pad((I, J), 1, 2, Pad::Constant(of(7.0))),
        loops: build(&[x.shape()[1] + 3, x.shape()[0] + 3], |at| {
            let inside = |at: usize, size: usize| at.checked_sub(1).filter(|&at| at < size);
            match (inside(at[1], x.shape()[0]), inside(at[0], x.shape()[1])) {
                (Some(i), Some(j)) => x[[i, j]],
                _ => 7 as T,
            }
        }),
        along: [I J], keep: [],
        names: "nn.functional.pad" "numpy.pad" "pad";
    /// Padding with the elements mirrored about the first and the last one, which are not repeated
    pad_reflect [f32 i32 f16] (x: T [I J]) -> [I J],
        call: x.pad(J, 2, 3, Pad::Reflect),
        loops: lines(x, 1, x.shape()[1] + 5, |x| {
            let (n, period) = (x.len() as isize, (2 * x.len() as isize - 2).max(1));
            (-2..n + 3).map(|j| { let j = j.rem_euclid(period); x[j.min(period - j) as usize % x.len()] }).collect()
        }),
        along: [J], keep: [J],
        errors: [Array2::<f32>::zeros((2, 0)).at((I, J)).try_pad(J, 1, 1, Pad::Reflect)
            => "no elements to pad dim `J` of size 0 with"],
        names: "nn.functional.pad(mode='reflect')" "numpy.pad(mode='reflect')" "pad(mode='reflect')";
    /// Padding with the first and the last element
    pad_replicate [f32 i32] (x: T [J I]) -> [I J],
        call: x.pad(J, 2, 1, Pad::Replicate),
        loops: lines(x, 0, x.shape()[0] + 3, |x| {
            (0..x.len() + 3).map(|j| x[j.saturating_sub(2).min(x.len() - 1)]).collect()
        }).reversed_axes(),
        along: [J], keep: [J],
        names: "nn.functional.pad(mode='replicate')" "numpy.pad(mode='edge')" "pad(mode='edge')";
    /// Padding with the elements from the other end
    pad_circular [f32 i32] (x: T [I J]) -> [I J],
        call: x.pad((I, J), 1, 2, Pad::Circular),
        loops: build(&[x.shape()[0] + 3, x.shape()[1] + 3], |at| {
            let wrap = |at: usize, size: usize| (at + size - 1) % size;
            x[[wrap(at[0], x.shape()[0]), wrap(at[1], x.shape()[1])]]
        }),
        along: [I J], keep: [I J],
        names: "nn.functional.pad(mode='circular')" "numpy.pad(mode='wrap')" "pad(mode='wrap')";
    /// Repeats the whole tensor along a dim: `out[j] = x[j mod n]`
    repeat [f32 i32] (x: T [I J K]) -> [J I K],
        call: x.repeat(J, 3),
        loops: build(&[3 * x.shape()[1], x.shape()[0], x.shape()[2]], |at| x[[at[1], at[0] % x.shape()[1], at[2]]]),
        along: [J], keep: [],
        names: "repeat, tile" "numpy.tile" "tile";
    /// Repeats each element: `out[j] = x[floor(j / times)]`
    repeat_interleave [f32 i32] (x: T [I J]) -> [I J],
        call: x.repeat_interleave(J, 3),
        loops: build(&[x.shape()[0], 3 * x.shape()[1]], |at| x[[at[0], at[1] / 3]]),
        along: [J], keep: [],
        names: "repeat_interleave" "numpy.repeat" "repeat";
    /// Resizes by taking the element at or before each position: `out[h] = x[floor(h * n / size)]`
    interpolate_nearest [f32 i32] (x: T [C H W]) -> [C H W],
        call: x.interpolate_nearest((H, W), (9, 3)),
        loops: build(&[x.shape()[0], 9, 3], |at| x[[at[0], at[1] * x.shape()[1] / 9, at[2] * x.shape()[2] / 3]]),
        along: [H W], keep: [H W],
        names: "nn.functional.interpolate" "" "";
    /// Resizes with linear interpolation
    interpolate_linear [f32 f64] (x: T [C H W]) -> [C H W],
        call: x.interpolate((H, W), (9, 3), Interpolation::linear()),
        loops: interpolated(&interpolated(&x.mapv(f64::from), 1, 9, &linear), 2, 3, &linear).mapv(|x| x as T),
        along: [H W], keep: [H W],
        errors: [Array2::<f32>::zeros((2, 0)).at((I, H)).try_interpolate(H, 3, Interpolation::linear())
            => "no elements to interpolate along dim `H` of size 0"],
        names: "nn.functional.interpolate(mode='bilinear')" "image.resize(antialias=False)" "";
    /// Resizes with linear interpolation; the first and the last element keep their values
    interpolate_aligned [f32 f64] (x: T [C H W]) -> [C H W],
        call: x.interpolate((H, W), (9, 3), Interpolation::linear().align_corners()),
        loops: interpolated(&interpolated(&x.mapv(f64::from), 1, 9, &aligned), 2, 3, &aligned).mapv(|x| x as T),
        along: [H W], keep: [H W],
        names: "nn.functional.interpolate(align_corners=True)" "" "";
    /// Resizes with cubic interpolation
    interpolate_cubic [f32 f64] (x: T [C H W]) -> [C H W],
        call: x.interpolate((H, W), (9, 3), Interpolation::cubic()),
        loops: interpolated(&interpolated(&x.mapv(f64::from), 1, 9, &cubic), 2, 3, &cubic).mapv(|x| x as T),
        along: [H W], keep: [H W],
        names: "nn.functional.interpolate(mode='bicubic')" "" "";
    /// Windows: `out[h, p] = x[h * stride + p * dilation]`
    unfold [f32 i32] (x: T [I H]) -> [P I H],
        call: shown!(x.unfold(H, P.of(2), 2, 3); where { let x = x + x; }),
        loops: build(&[2, x.shape()[0], 2], |at| { let x = x[[at[1], at[2] * 2 + at[0] * 3]]; x + x }),
        along: [H], keep: [H],
        errors: [two_by_four().at((I, H)).try_unfold(H, P.of(3), 1, 2)
            => "windows along dim `H`: they span 5 elements, but there are 4"],
        names: "unfold" "lax.conv_general_dilated_patches" "lib.stride_tricks.sliding_window_view";
    /// Windows added up: `out[h * stride + p * dilation] += x[h, p]`
    fold [f32 i32 half] (x: T [I H P]) -> [H I],
        call: x.fold(H, P, 18, 2, 3),
        loops: build(&[18, x.shape()[0]], |at| {
            let mut sum = 0 as T;
            for (h, p) in (0..x.shape()[1]).flat_map(|h| (0..x.shape()[2]).map(move |p| (h, p))) {
                if h * 2 + p * 3 == at[0] {
                    sum += x[[at[1], h, p]];
                }
            }
            sum
        }),
        along: [H P], keep: [H P],
        errors: [
            two_by_four().at((P, H)).try_fold(H, P, 12, 2, 1)
                => "windows along dim `H`: there are 4, but 6 fit into 12 elements",
            two_by_four().at((P, H)).try_fold(H, P, 1, 2, 1)
                => "windows along dim `H`: they span 2 elements, but there is 1",
        ],
        names: "nn.functional.fold" "" "";
    /// Splits a dim into at most the given number of pieces of equal size; the last one may be smaller
    chunk [f32 i32] (x: T [I J]) -> [J I],
        call: shown!(x.chunk(J, 3); then |parts| concat(J, parts.into_iter().rev())),
        loops: build(&[x.shape()[1], x.shape()[0]], |at| x[[at[1], (at[0] + 2) % 4]]),
        along: [J], keep: [J],
        errors: [two_by_four().at((I, J)).try_chunk(J, 0).map(|_| ()) => "dim `J` cannot be cut into 0 pieces"],
        names: "chunk" "" "";
    /// The tensors at all positions along a dim
    unbind [f32 i32] (x: T [I J]) -> [I K],
        call: shown!(x.unbind(J); then |parts| stack(K, parts.into_iter().rev())),
        loops: build(x.shape(), |at| x[[at[0], x.shape()[1] - 1 - at[1]]]),
        along: [J], keep: [J],
        names: "unbind" "numpy.unstack" "unstack";
    /// Repeats the tensor along a new dim, without a copy
    expand [f32 i32] (x: T [I J]) -> [K I J],
        call: x.expand(K.of(2)),
        loops: build(&[2, x.shape()[0], x.shape()[1]], |at| x[[at[1], at[2]]]),
        along: [K], keep: [],
        names: "unsqueeze, expand" "numpy.broadcast_to" "broadcast_to";
    /// Moves channels into blocks of pixels
    pixel_shuffle [f32 i32] (x: T [C H W]) -> [O I J],
        call: x.unflatten(C, (O, P.of(2), Q.of(2))).flatten((H, P), I).flatten((W, Q), J),
        loops: build(&[x.shape()[0] / 4, 2 * x.shape()[1], 2 * x.shape()[2]], |at| {
            x[[4 * at[0] + at[1] % 2 * 2 + at[2] % 2, at[1] / 2, at[2] / 2]]
        }),
        along: [C H W], keep: [C],
        names: "pixel_shuffle" "" "";
    /// Moves blocks of pixels into channels
    pixel_unshuffle [f32 i32] (x: T [C H I]) -> [O K J],
        call: x.unflatten(H, (K, P.of(2))).unflatten(I, (J, Q.of(3))).flatten((C, P, Q), O),
        loops: build(&[6 * x.shape()[0], x.shape()[1] / 2, x.shape()[2] / 3], |at| {
            x[[at[0] / 6, 2 * at[1] + at[0] / 3 % 2, 3 * at[2] + at[0] % 3]]
        }),
        along: [C H I], keep: [H I],
        names: "pixel_unshuffle" "" "";
}
