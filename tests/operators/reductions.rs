//! Reductions and scans.

use crate::loops::{along, build, fold};
use crate::table::Family;
use crate::value::of;
use crate::{I, Inner, J, K, L, Outer};
use typed_dims::prelude::*;

pub fn family() -> Family {
    Family {
        title: "Reductions and scans",
        about: "These run immediately. Scans (`cumsum` and the like) and `diff` take one dim; the others take one dim or a tuple of dims.",
        operators: entries(),
    }
}

fn none() -> Array2<f32> {
    Array2::zeros((2, 0))
}

fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}

fn var(x: &[f64], ddof: f64) -> f64 {
    let mean = mean(x);
    x.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (x.len() as f64 - ddof)
}

fn wide<T: Copy + Into<f64>>(line: &[T]) -> Vec<f64> {
    line.iter().map(|&x| x.into()).collect()
}

/// The line without element 2, which the entries of NaN-aware reductions set to NaN.
fn numbers<T: Copy + Into<f64>>(line: &[T]) -> Vec<f64> {
    line.iter().enumerate().filter(|&(at, _)| at != 2).map(|(_, &x)| x.into()).collect()
}

/// The position of the best element; of equal ones, the first.
fn best<T: Copy>(line: &[T], better: impl Fn(T, T) -> bool) -> usize {
    (1..line.len()).fold(0, |best, at| if better(line[at], line[best]) { at } else { best })
}

crate::operators! {
    /// The sum; 0 if there are no elements
    sum [f32 f64 i32 u8 half] (x: T [I J]) -> [I],
        call: x.sum(J),
        loops: fold(x, 1, |x| x.iter().fold(0 as T, |a, b| a + b)),
        along: [J], keep: [],
        names: "sum" "numpy.sum" "sum";
    /// `sum over J of x * y`: a matrix product
    contraction [f32 f64 i32] (x: T [I J L], y: T [J K L]) -> [K L I],
        call: (x * y).sum(J),
        loops: build(&[y.shape()[1], x.shape()[2], x.shape()[0]], |at| {
            (0..x.shape()[1]).fold(0 as T, |sum, j| sum + x[[at[2], j, at[1]]] * y[[j, at[0], at[1]]])
        }),
        along: [J], keep: [],
        names: "einsum, matmul, bmm" "numpy.einsum" "einsum";
    /// The sum of the elements that are not NaN
    nansum [f32 f64] (x: T [I J]) -> [I],
        call: shown!(x.nansum(J); where { let x = x.masked_fill(J.eq(2), of(f64::NAN)); }),
        loops: fold(x, 1, |x| { let x = numbers(x); (x.iter().sum::<f64>()) as T }),
        along: [J], keep: [],
        names: "nansum" "numpy.nansum" "nansum";
    /// The mean of the elements that are not NaN; NaN if there are none
    nanmean [f32 f64] (x: T [I J]) -> [I],
        call: shown!(x.nanmean(J); where { let x = x.masked_fill(J.eq(2), of(f64::NAN)); }),
        loops: fold(x, 1, |x| { let x = numbers(x); (mean(&x)) as T }),
        along: [J], keep: [],
        names: "nanmean" "numpy.nanmean" "nanmean";
    /// The greatest element that is not NaN; NaN if all are NaN
    nanmax [f32 f64] (x: T [I J]) -> [I],
        call: shown!(x.nanmax(J); where { let x = x.masked_fill(J.eq(2), of(f64::NAN)); }),
        loops: fold(x, 1, |x| { let x = numbers(x); (x.iter().copied().fold(f64::NEG_INFINITY, f64::max)) as T }),
        along: [J], keep: [J],
        errors: [none().at((I, J)).try_nanmax(J) => "`nanmax` over dim `J` = 0 has no elements to choose from"],
        names: "" "numpy.nanmax" "nanmax";
    /// The least element that is not NaN; NaN if all are NaN
    nanmin [f32 f64] (x: T [I J]) -> [I],
        call: shown!(x.nanmin(J); where { let x = x.masked_fill(J.eq(2), of(f64::NAN)); }),
        loops: fold(x, 1, |x| { let x = numbers(x); (x.iter().copied().fold(f64::INFINITY, f64::min)) as T }),
        along: [J], keep: [J],
        names: "" "numpy.nanmin" "nanmin";
    /// The variance of the elements that are not NaN
    nanvar [f32 f64] (x: T [I J]) -> [I],
        call: shown!(x.nanvar(J); where { let x = x.masked_fill(J.eq(2), of(f64::NAN)); }),
        loops: fold(x, 1, |x| { let x = numbers(x); (var(&x, 0.0)) as T }),
        along: [J], keep: [],
        names: "" "numpy.nanvar" "nanvar";
    /// The standard deviation of the elements that are not NaN
    nanstd [f32 f64] (x: T [I J]) -> [I],
        call: shown!(x.nanstd(J); where { let x = x.masked_fill(J.eq(2), of(f64::NAN)); }),
        loops: fold(x, 1, |x| { let x = numbers(x); (var(&x, 0.0).sqrt()) as T }),
        along: [J], keep: [J],
        names: "" "numpy.nanstd" "nanstd";
    /// The product; 1 if there are no elements
    prod [f32 i64 f16] (x: T [I J]) -> [I],
        call: x.prod(J),
        loops: fold(x, 1, |x| x.iter().fold(1 as T, |a, b| a * b)),
        along: [J], keep: [],
        names: "prod" "numpy.prod" "prod";
    /// The mean; NaN if there are no elements
    mean [f32 f64 half] (x: T [I J]) -> [I],
        call: x.mean(J),
        loops: fold(x, 1, |x| mean(&wide(x)) as T),
        along: [J], keep: [],
        names: "mean" "numpy.mean" "mean";
    /// The greatest element; NaN if any element is NaN
    max [f32 i32 u8 f16] (x: T [I J]) -> [I],
        call: x.max(J),
        loops: fold(x, 1, |x| x[best(x, |a, b| a > b)]),
        along: [J], keep: [J],
        errors: [none().at((I, J)).try_max(J) => "`max` over dim `J` = 0 has no elements to choose from"],
        names: "amax" "numpy.max" "max";
    /// The least element; NaN if any element is NaN
    min [f32 i32 u8 f16] (x: T [I J]) -> [I],
        call: x.min(J),
        loops: fold(x, 1, |x| x[best(x, |a, b| a < b)]),
        along: [J], keep: [J],
        errors: [none().at((I, J)).try_min(J) => "`min` over dim `J` = 0 has no elements to choose from"],
        names: "amin" "numpy.min" "min";
    /// The index of the greatest element; of equal ones, the first
    argmax [f32 i32 f16] (x: T [I J] in Ties) -> [I],
        call: x.argmax(J),
        loops: fold(x, 1, |x| best(x, |a, b| a > b)),
        along: [J], keep: [J],
        errors: [none().at((I, J)).try_argmax(J) => "`argmax` over dim `J` = 0 has no elements to choose from"],
        names: "argmax" "numpy.argmax" "argmax";
    /// The index of the least element; of equal ones, the first
    argmin [f32 i32 f16] (x: T [I J] in Ties) -> [I],
        call: x.argmin(J),
        loops: fold(x, 1, |x| best(x, |a, b| a < b)),
        along: [J], keep: [J],
        errors: [none().at((I, J)).try_argmin(J) => "`argmin` over dim `J` = 0 has no elements to choose from"],
        names: "argmin" "numpy.argmin" "argmin";
    /// `mean of (x - mean)^2`
    var [f32 f64 half] (x: T [I J]) -> [I],
        call: x.var(J),
        loops: fold(x, 1, |x| var(&wide(x), 0.0) as T),
        along: [J], keep: [],
        names: "var(correction=0)" "numpy.var" "var";
    /// `sum of (x - mean)^2 / max(count - ddof, 0)`
    var_with [f32 f64 f16] (x: T [I J]) -> [I],
        call: x.var_with(J, of(1.0)),
        loops: fold(x, 1, |x| var(&wide(x), 1.0) as T),
        along: [J], keep: [J],
        names: "var(correction=ddof)" "numpy.var(ddof)" "var(ddof)";
    /// `sqrt(mean of (x - mean)^2)`
    std_of [f32 f64 f16] (x: T [I J]) -> [I],
        call: x.std(J),
        loops: fold(x, 1, |x| var(&wide(x), 0.0).sqrt() as T),
        along: [J], keep: [],
        names: "std(correction=0)" "numpy.std" "std";
    /// `sqrt(sum of |x|^2)`
    norm [f32 f64 f16] (x: T [I J]) -> [I],
        call: x.norm(J),
        loops: fold(x, 1, |x| wide(x).iter().map(|x| x * x).sum::<f64>().sqrt() as T),
        along: [J], keep: [],
        names: "linalg.vector_norm" "numpy.linalg.norm" "linalg.norm";
    /// `ln(sum of e^x)`
    logsumexp [f32 f64 f16] (x: T [I J]) -> [I],
        call: x.logsumexp(J),
        loops: fold(x, 1, |x| wide(x).iter().map(|x| x.exp()).sum::<f64>().ln() as T),
        along: [J], keep: [],
        names: "logsumexp" "nn.logsumexp" "logaddexp.reduce";
    /// Whether any element is true
    any [bool] (x: T [I J]) -> [I],
        call: x.any(J),
        loops: fold(x, 1, |x| x.iter().any(|&x| x)),
        along: [J], keep: [],
        names: "any" "numpy.any" "any";
    /// Whether all elements are true
    all [bool] (x: T [I J]) -> [I],
        call: x.all(J),
        loops: fold(x, 1, |x| x.iter().all(|&x| x)),
        along: [J], keep: [],
        names: "all" "numpy.all" "all";
    /// The number of elements that are true
    count [bool] (x: T [I J]) -> [I],
        call: x.count(J),
        loops: fold(x, 1, |x| x.iter().filter(|&&x| x).count()),
        along: [J], keep: [],
        names: "count_nonzero" "numpy.count_nonzero" "count_nonzero";
    /// `e^x / sum of e^x`
    softmax [f32 f64] (x: T [I J]) -> [J I],
        call: x.softmax(J),
        loops: along(x, 1, |x| {
            let sum: f64 = wide(x).iter().map(|x| x.exp()).sum();
            wide(x).iter().map(|x| (x.exp() / sum) as T).collect()
        }).reversed_axes(),
        along: [J], keep: [],
        names: "softmax" "nn.softmax" "scipy.special.softmax";
    /// `softmax` over two dims at once
    softmax_over_two [f32 f64] (x: T [I J K]) -> [J I K],
        call: x.softmax((K, I)),
        loops: {
            let total = |j: usize| x.index_axis(ndarray::Axis(1), j).iter().map(|&x| f64::from(x).exp()).sum::<f64>();
            crate::loops::build(&[x.shape()[1], x.shape()[0], x.shape()[2]], |at| {
                (f64::from(x[[at[1], at[0], at[2]]]).exp() / total(at[0])) as T
            })
        },
        along: [I K], keep: [],
        names: "" "nn.softmax(axis=(0, 2))" "scipy.special.softmax(axis=(0, 2))";
    /// `x - ln(sum of e^x)`
    log_softmax [f32 f64] (x: T [I J]) -> [I J],
        call: x.log_softmax(J),
        loops: along(x, 1, |x| {
            let sum: f64 = wide(x).iter().map(|x| x.exp()).sum();
            wide(x).iter().map(|x| (x - sum.ln()) as T).collect()
        }),
        along: [J], keep: [],
        names: "log_softmax" "nn.log_softmax" "scipy.special.log_softmax";
    /// `out[j] = x[0] + .. + x[j]`
    cumsum [f32 i32 u8 half] (x: T [J I]) -> [I J],
        call: x.cumsum(J),
        loops: along(x, 0, |x| {
            x.iter().scan(0 as T, |sum, &x| { *sum += x; Some(*sum) }).collect()
        }).reversed_axes(),
        along: [J], keep: [],
        names: "cumsum" "numpy.cumsum" "cumsum";
    /// `out[j] = x[0] * .. * x[j]`
    cumprod [f32 i64 f16] (x: T [J I]) -> [I J],
        call: x.cumprod(J),
        loops: along(x, 0, |x| {
            x.iter().scan(1 as T, |product, &x| { *product *= x; Some(*product) }).collect()
        }).reversed_axes(),
        along: [J], keep: [],
        names: "cumprod" "numpy.cumprod" "cumprod";
    /// `out[j] = max(x[0], .., x[j])`
    cummax [f32 i32 f16] (x: T [I J]) -> [I J],
        call: x.cummax(J),
        loops: along(x, 1, |x| (0..x.len()).map(|end| x[best(&x[..=end], |a, b| a > b)]).collect()),
        along: [J], keep: [],
        names: "cummax" "lax.cummax" "maximum.accumulate";
    /// `out[j] = min(x[0], .., x[j])`
    cummin [f32 i32 f16] (x: T [I J]) -> [I J],
        call: x.cummin(J),
        loops: along(x, 1, |x| (0..x.len()).map(|end| x[best(&x[..=end], |a, b| a < b)]).collect()),
        along: [J], keep: [],
        names: "cummin" "lax.cummin" "minimum.accumulate";
    /// `out[j] = ln(e^x[0] + .. + e^x[j])`
    logcumsumexp [f32 f64 f16] (x: T [I J]) -> [I J],
        call: x.logcumsumexp(J),
        loops: along(x, 1, |x| {
            wide(x).iter().scan(0.0, |sum, x| { *sum += x.exp(); Some(sum.ln() as T) }).collect()
        }),
        along: [J], keep: [],
        names: "logcumsumexp" "lax.cumlogsumexp" "logaddexp.accumulate";
    /// `out[j] = x[j + 1] - x[j]`
    diff [f32 i32 f16] (x: T [I J]) -> [J I],
        call: shown!(x.diff(J); where { let x = x + x; }),
        loops: crate::loops::lines(x, 1, x.shape()[1].saturating_sub(1), |x| {
            x.windows(2).map(|x| x[1] + x[1] - x[0] - x[0]).collect()
        }).reversed_axes(),
        along: [J], keep: [],
        names: "diff" "numpy.diff" "diff";
    /// `sum over J of v * softmax over J of (scale * sum over K of q * k)`; the last argument is a
    /// mask, a bias, or both
    attention [f32 f64 f16] (q: T [I K], k: T [J K], v: T [J L]) -> [I L],
        call: attention(q, k, v, K, J, of(0.5), true),
        loops: build(&[q.shape()[0], v.shape()[1]], |at| {
            let score = |j: usize| 0.5 * (0..q.shape()[1]).map(|d| f64::from(q[[at[0], d]] * k[[j, d]])).sum::<f64>();
            let keys = 0..k.shape()[0];
            let sum: f64 = keys.clone().map(|j| score(j).exp()).sum();
            keys.map(|j| score(j).exp() / sum * f64::from(v[[j, at[1]]])).sum::<f64>() as T
        }),
        along: [K J], keep: [J],
        names: "scaled_dot_product_attention" "nn.dot_product_attention" "";
}
