//! Functions that create tensors.

use crate::loops::{self, build};
use crate::table::Family;
use crate::{I, Inner, J, Outer};
use typed_dims::creation::create::{full_like, tri};
use typed_dims::creation::random::{categorical, rand_like, randn_like};
use typed_dims::prelude::*;

pub fn family() -> Family {
    Family {
        title: "Factories",
        about: "Pass a dim with its size, `I.of(3)`, unless it has a static size or is a local dim with a known size. `tri` and `full_like` are in `typed_dims::creation::create`; `rand_like`, `randn_like` and `categorical` are in `typed_dims::creation::random`. A seed is a number, or a tensor of one number (`Tensor<u64, ()>`): with a tensor, each call of a recorded function can draw different numbers.",
        operators: entries(),
    }
}

crate::operators! {
    /// Zeros
    zeros_of [f32 i32] () -> [I J],
        call: zeros::<T, _>((I.of(3), J.of(4))),
        loops: build(&[3, 4], |_| 0 as T),
        along: [], keep: [],
        names: "zeros" "numpy.zeros" "zeros";
    /// Ones
    ones_of [f32 i32] () -> [J I],
        call: ones::<T, _>((I.of(3), J.of(4))),
        loops: build(&[4, 3], |_| 1 as T),
        along: [], keep: [],
        names: "ones" "numpy.ones" "ones";
    /// One value for all elements
    full_of [f32 bool] () -> [I],
        call: full(I.of(3), T::default()),
        loops: build(&[3], |_| T::default()),
        along: [], keep: [],
        names: "full" "numpy.full" "full";
    /// One value for all elements, with the dims and sizes of another tensor
    full_like [f32 i32] (x: T [I J]) -> [J I],
        call: shown!(full_like(x, 7 as T); where { let x = x + x; }),
        loops: build(&[x.shape()[1], x.shape()[0]], |_| 7 as T),
        along: [], keep: [],
        names: "full_like" "numpy.full_like" "full_like";
    /// 1 on the diagonal
    eye_of [f32 i32] () -> [J I],
        call: eye::<T, _, _>(I.of(3), J.of(4)),
        loops: build(&[4, 3], |at| if at[0] == at[1] { 1 as T } else { 0 as T }),
        along: [], keep: [],
        names: "eye" "numpy.eye" "eye";
    /// A lower triangle of ones: 1 where `j <= i - 1`
    tri_of [f32 i32] () -> [J I],
        call: tri::<T, _, _>(I.of(3), J.of(4), -1),
        loops: build(&[4, 3], |at| if at[0] < at[1] { 1 as T } else { 0 as T }),
        along: [], keep: [],
        names: "tril(ones)" "numpy.tri" "tri";
    /// `start + i * step`
    arange_of [f32 i32] () -> [I],
        call: arange(I.of(5), 10 as T, 2 as T),
        loops: build(&[5], |at| (10 + 2 * at[0]) as T),
        along: [], keep: [],
        names: "arange" "numpy.arange" "arange";
    /// Evenly spaced numbers from -1 to 3, both included
    linspace_of [f32 f64] () -> [I],
        call: linspace(I.of(5), -1.0 as T, 3.0),
        loops: build(&[5], |at| at[0] as T - 1.0),
        along: [], keep: [],
        names: "linspace" "numpy.linspace" "linspace";
    /// `f(position)` for each position
    from_fn_of [f32 i32] () -> [J I],
        call: from_fn((I.of(3), J.of(4)), |(i, j)| (10 * i + j) as T),
        loops: build(&[4, 3], |at| (10 * at[1] + at[0]) as T),
        along: [], keep: [],
        names: "" "numpy.fromfunction" "fromfunction";
    /// The elements of a `Vec`
    from_vec_of [f32 i32] () -> [J I],
        call: from_vec((I.of(2), J.of(2)), vec![1 as T, 2 as T, 3 as T, 4 as T]),
        loops: build(&[2, 2], |at| (1 + 2 * at[1] + at[0]) as T),
        along: [], keep: [],
        errors: [typed_dims::creation::create::try_from_vec((I.of(2), J.of(2)), vec![1.0f32])
            => "a tensor with dims `I` = 2, `J` = 2 has 4 elements, but 1 was given"],
        names: "tensor" "numpy.asarray" "array";
    /// Uniform random numbers, at least 0 and less than 1, from a seed
    rand_of [f32 f64] () -> [I J],
        call: rand::<T, _>((I.of(3), J.of(4)), 7),
        loops: build(&[3, 4], |at| loops::unit(7, (4 * at[0] + at[1]) as u64) as T),
        along: [], keep: [],
        names: "rand" "random.uniform" "random.random";
    /// Normally distributed random numbers, from a seed
    randn_of [f32 f64] () -> [I J],
        call: randn::<T, _>((I.of(3), J.of(4)), 7),
        loops: build(&[3, 4], |at| {
            let (n, seed) = (2 * (4 * at[0] + at[1]) as u64, 7 ^ loops::NORMAL);
            let radius = (-2.0 * (1.0 - loops::unit(seed, n)).ln()).sqrt();
            (radius * (2.0 * std::f64::consts::PI * loops::unit(seed, n + 1)).cos()) as T
        }),
        along: [], keep: [],
        names: "randn" "random.normal" "random.standard_normal";
    /// Uniform random numbers, at least 0 and less than 1, with the dims and sizes of a tensor
    rand_like_of [f32 f64] (apart x: T [I J]) -> [I J],
        call: rand_like(x, 7),
        loops: build(x.shape(), |at| loops::unit(7, loops::draws(&[("I", at[0]), ("J", at[1])])) as T),
        along: [], keep: [],
        names: "rand_like" "" "";
    /// Normally distributed random numbers, with the dims and sizes of a tensor
    randn_like_of [f32 f64] (apart x: T [I J]) -> [I J],
        call: randn_like(x, 7),
        loops: build(x.shape(), |at| {
            let n = loops::draws(&[("I", at[0]), ("J", at[1])]).wrapping_mul(2);
            let seed = 7 ^ loops::NORMAL;
            let radius = (-2.0 * (1.0 - loops::unit(seed, n)).ln()).sqrt();
            (radius * (2.0 * std::f64::consts::PI * loops::unit(seed, n + 1)).cos()) as T
        }),
        along: [], keep: [],
        names: "randn_like" "" "";
    /// A random index along a dim, with probabilities proportional to `e^x`, from a seed
    categorical_of [f32 f64] (apart x: T [I J]) -> [I],
        call: categorical(x, J, 7),
        loops: build(&[x.shape()[0]], |at| {
            let score = |j: usize| {
                let place = loops::draws(&[("I", at[0]), ("J", j)]);
                let u = loops::unit(7 ^ loops::CATEGORICAL, place) + 0.5f64.powi(54);
                x[[at[0], j]] + -(-u.ln()).ln() as T
            };
            (0..x.shape()[1]).fold(0, |best, j| if score(j) > score(best) { j } else { best })
        }),
        along: [J], keep: [J],
        names: "multinomial" "random.categorical" "";
}
