//! Sorting, and order statistics.

use crate::loops::{along, fold, lines};
use crate::table::Family;
use crate::{I, Inner, J, Outer};
use typed_dims::prelude::*;

pub fn family() -> Family {
    Family {
        title: "Sorting",
        about: "These run immediately. NaN sorts as the greatest element; equal elements keep their order. `min_with_index`, `median` and `quantile` return NaN if any element is NaN.",
        operators: entries(),
    }
}

fn two_by_four() -> Array2<f32> {
    Array2::zeros((2, 4))
}

/// A line in order, with the original positions of its elements.
fn sorted<T: Copy + PartialOrd>(line: &[T], descending: bool) -> Vec<(T, usize)> {
    let mut line: Vec<_> = line.iter().copied().zip(0..).collect();
    line.sort_by(|a, b| {
        let order = a.0.partial_cmp(&b.0).expect("no element is NaN");
        if descending { order.reverse() } else { order }
    });
    line
}

fn quantile<T: Copy + PartialOrd + Into<f64>>(line: &[T], q: f64) -> f64 {
    let line: Vec<f64> = sorted(line, false).into_iter().map(|(x, _)| x.into()).collect();
    let place = q * (line.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(line.len() - 1);
    line[below] + (line[above] - line[below]) * (place - below as f64)
}

/// Combines each value and its position into one number.
macro_rules! both {
    ($found:expr) => {{
        let (values, at) = $found;
        values.cast::<f64>() * 100.0 + at.cast::<f64>()
    }};
}

crate::operators! {
    /// The elements in ascending order
    sort [f32 i32 u8 f16] (x: T [I J] in Ties) -> [J I],
        call: x.sort(J),
        loops: along(x, 1, |x| sorted(x, false).into_iter().map(|(x, _)| x).collect()).reversed_axes(),
        along: [J], keep: [],
        names: "sort" "numpy.sort" "sort";
    /// The elements in descending order
    sort_descending [f32 i32 f16] (x: T [J I] in Ties) -> [J I],
        call: x.sort_descending(J),
        loops: along(x, 0, |x| sorted(x, true).into_iter().map(|(x, _)| x).collect()),
        along: [J], keep: [],
        names: "sort(descending=True)" "numpy.sort(descending=True)" "";
    /// The positions that sort the elements in ascending order
    argsort [f32 i32 f16] (x: T [I J] in Ties) -> [J I],
        call: x.argsort(J),
        loops: along(x, 1, |x| sorted(x, false).into_iter().map(|(_, at)| at).collect()).reversed_axes(),
        along: [J], keep: [],
        names: "argsort(stable=True)" "numpy.argsort" "argsort";
    /// The positions that sort the elements in descending order
    argsort_descending [f32 i32 f16] (x: T [J I] in Ties) -> [I J],
        call: x.argsort_descending(J),
        loops: along(x, 0, |x| sorted(x, true).into_iter().map(|(_, at)| at).collect()).reversed_axes(),
        along: [J], keep: [],
        names: "argsort(descending=True, stable=True)" "numpy.argsort(descending=True)" "";
    /// The elements in ascending order, and their positions
    sort_with_indices [f32 i32] (x: T [I J] in Ties) -> [J I],
        call: both!(x.sort_with_indices(J)),
        loops: along(x, 1, |x| sorted(x, false).into_iter().map(|(x, at)| x as f64 * 100.0 + at as f64).collect()).reversed_axes(),
        along: [J], keep: [],
        names: "sort(stable=True)" "lax.sort_key_val" "";
    /// The elements in descending order, and their positions
    sort_descending_with_indices [f32] (x: T [J I] in Ties) -> [J I],
        call: both!(x.sort_descending_with_indices(J)),
        loops: along(x, 0, |x| sorted(x, true).into_iter().map(|(x, at)| x as f64 * 100.0 + at as f64).collect()),
        along: [J], keep: [],
        names: "sort(descending=True, stable=True)" "" "";
    /// The greatest element and its position; of equal ones, the first
    max_with_index [f32 i32] (x: T [I J] in Ties) -> [I],
        call: both!(x.max_with_index(J)),
        loops: fold(x, 1, |x| { let (x, at) = sorted(x, true)[0]; x as f64 * 100.0 + at as f64 }),
        along: [J], keep: [J],
        errors: [Array2::<f32>::zeros((2, 0)).at((I, J)).try_max_with_index(J).map(|_| ())
            => "`max_with_index` over dim `J` = 0 has no elements to choose from"],
        names: "max(dim)" "" "";
    /// The least element and its position; of equal ones, the first
    min_with_index [f32] (x: T [J I] in Ties) -> [I],
        call: both!(x.min_with_index(J)),
        loops: fold(x, 0, |x| { let (x, at) = sorted(x, false)[0]; x as f64 * 100.0 + at as f64 }),
        along: [J], keep: [J],
        names: "min(dim)" "" "";
    /// The greatest elements in descending order
    topk [f32 i32 f16] (x: T [I J] in Ties) -> [I J],
        call: x.topk(J, 2).0,
        loops: lines(x, 1, 2, |x| sorted(x, true).into_iter().take(2).map(|(x, _)| x).collect()),
        along: [J], keep: [J],
        errors: [two_by_four().at((I, J)).try_topk(J, 5).map(|(values, _)| values)
            => "there are fewer than 5 elements along dim `J` = 4"],
        names: "topk" "lax.top_k" "partition";
    /// The least elements in ascending order, and their positions
    topk_smallest [f32 i32] (x: T [J I] in Ties) -> [J I],
        call: both!(x.topk_smallest(J, 3)),
        loops: lines(x, 0, 3, |x| sorted(x, false).into_iter().take(3).map(|(x, at)| x as f64 * 100.0 + at as f64).collect()),
        along: [J], keep: [J],
        errors: [two_by_four().at((I, J)).try_topk_smallest(J, 5).map(|(values, _)| values)
            => "there are fewer than 5 elements along dim `J` = 4"],
        names: "topk(largest=False)" "" "partition";
    /// The positions of the greatest elements; of equal ones, the first
    topk_positions [f32 i32 f16] (x: T [J I] in Ties) -> [J I],
        call: x.topk(J, 3).1,
        loops: lines(x, 0, 3, |x| sorted(x, true).into_iter().take(3).map(|(_, at)| at).collect()),
        along: [J], keep: [J],
        names: "topk" "lax.top_k" "argpartition";
    /// The middle element, or the mean of the two in the middle
    median [f32 f64 f16] (x: T [I J]) -> [I],
        call: x.median(J),
        loops: fold(x, 1, |x| quantile(x, 0.5) as T),
        along: [J], keep: [J],
        errors: [Array2::<f32>::zeros((2, 0)).at((I, J)).try_median(J)
            => "`median` over dim `J` = 0 has no elements to choose from"],
        names: "quantile(0.5)" "numpy.median" "median";
    /// The quantile, with linear interpolation
    quantile_of [f32 f64] (x: T [J I]) -> [I],
        call: x.quantile(J, 0.3),
        loops: fold(x, 0, |x| quantile(x, 0.3) as T),
        along: [J], keep: [J],
        errors: [two_by_four().at((I, J)).try_quantile(J, 1.5) => "`quantile` with the probability 1.5: it must be between 0 and 1"],
        names: "quantile" "numpy.quantile" "quantile";
}
