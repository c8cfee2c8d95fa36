//! Sums, and gradients of normalizations and softmax, that are fused with the maps whose results
//! they read. Compares programs bit for bit with their recorded steps run one by one, on one thread
//! and on several.

use crate::splitmix::Random;
use typed_dims::grad::loss_and_grad;
use typed_dims::prelude::*;
use typed_dims::program::record;
use typed_dims_kernels::trace::run_plainly;

dims! {
    struct Row;
    struct Column;
}

type Matrix = Tensor<f32, (Row, Column)>;
type Line = Tensor<f32, (Column,)>;
type Edge = Tensor<f32, (Row,)>;
type Scalar = Tensor<f32, ()>;
/// The inputs of a program, and its results except the last one.
type All = (Matrix, Matrix, Line, Edge);
type Given<'a> = (&'a Matrix, &'a Matrix, &'a Line, &'a Edge);

fn drawn((rows, columns): (usize, usize), seed: u64) -> All {
    let (row, column) = (Row.of(rows), Column.of(columns));
    let matrix = |seed: u64| randn::<f32, _>((row, column), seed);
    (matrix(seed), matrix(seed + 1), randn(column, seed + 2), randn(row, seed + 3))
}

/// A random program of maps, sums and normalizations. The sums share operations with maps before
/// and after them.
fn values(steps: &[[usize; 3]], (x, y, g, c): Given<'_>) -> (All, Scalar) {
    let mut known = vec![x.clone(), y.clone()];
    let (mut line, mut edge, mut total) = ((g * 1.5).eval(), (c * 0.5).eval(), full::<f32, _>((), 0.25));
    for &[operation, first, second] in steps {
        let (a, b) = (known[first % known.len()].clone(), known[second % known.len()].clone());
        match operation % 12 {
            0 => known.push((a * g + c).eval()),
            1 => known.push((a.tanh() * b).eval()),
            2 => known.push(((a * g).sigmoid() - b * 0.5).relu().eval()),
            3 => known.push(a.layer_norm(Column, 1e-5).eval()),
            4 => known.push((a.rms_norm(Column, 1e-5) * c + b).eval()),
            5 => known.push((a * 0.1).softmax(Column).eval()),
            6 => total = (total + ((a * g + c) * b).sum((Row, Column))).eval(),
            7 => line = (line + ((a * g + c).tanh() * b).sum(Row)).eval(),
            9 => known.push((a * g + c).relu().eval()),
            10 => known.push(((a * g).gelu_tanh() * c).eval()),
            8 => edge = (edge + (a.tanh() * b).sum(Column)).eval(),
            _ => total = (total + ((a * b).tanh() * y.sigmoid()).sum((Row, Column))).eval(),
        }
    }
    let last = known.pop().expect("there are values");
    ((last, known.pop().expect("there are values"), line, edge), total)
}

fn loss(steps: &[[usize; 3]], given: Given<'_>) -> Scalar {
    let ((last, other, line, edge), total) = values(steps, given);
    let matrices = (last.sin() * given.1).sum((Row, Column)) + (other.cos() * given.2).sum((Row, Column));
    let linear = given.0.sum((Row, Column)) + given.2.sum(Column) + given.3.sum(Row);
    (matrices + line.sin().sum(Column) + edge.sin().sum(Row) + total * 1e-3 + linear).eval()
}

fn bits((a, b, c, d): &All, total: &Scalar) -> Vec<u32> {
    let all = [a.memory(), b.memory(), c.memory(), d.memory(), total.memory()];
    all.into_iter().flatten().map(|x| x.to_bits()).collect()
}

fn check(sizes: (usize, usize), seed: u64) {
    let mut random = Random(seed);
    let count = 2 + random.below(6);
    let steps: Vec<[usize; 3]> =
        (0..count).map(|_| [random.below(12), random.below(9), random.below(9)]).collect();
    let (first, other) = (drawn(sizes, seed), drawn(sizes, seed + 10));
    fn given((a, b, c, d): &All) -> Given<'_> {
        (a, b, c, d)
    }
    let forward = record(|given: Given<'_>| values(&steps, given), given(&first))
        .expect("the function can be recorded");
    let gradient = record(
        |given: Given<'_>| {
            let (loss, gradient) = loss_and_grad(|by: Given<'_>| loss(&steps, by), given);
            (gradient, loss)
        },
        given(&first),
    )
    .expect("the function can be recorded");
    for (name, program) in [("values", &forward), ("gradient", &gradient)] {
        for inputs in [&first, &other] {
            run_plainly(true);
            let expected = program.call(given(inputs));
            run_plainly(false);
            for _ in 0..2 {
                let found = program.call(given(inputs));
                assert_eq!(
                    bits(&found.0, &found.1),
                    bits(&expected.0, &expected.1),
                    "{name} of {sizes:?}, seed {seed}: {steps:?}"
                );
            }
            let mut out = program.call(given(inputs));
            program.call_into(given(inputs), &mut out);
            assert_eq!(bits(&out.0, &out.1), bits(&expected.0, &expected.1), "{name}, into earlier results");
        }
    }
}

fn on(threads: usize, f: impl FnOnce() + Send) {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("the threads start").install(f);
}

/// There are more maps than fit into one group.
#[test]
fn of_thousands_of_maps() {
    let added = |x: &Matrix| {
        let mut sum: Line = ones(Column.of(3));
        for row in 0..x.size(Row) {
            sum = (sum + x.view().index(Row, row)).eval();
        }
        sum
    };
    let x: Matrix = randn((Row.of(5000), Column.of(3)), 1);
    let program = record(added, &x).expect("the function can be recorded");
    assert_eq!(program.call(&x), added(&x));
}

#[test]
fn of_small_matrices() {
    for seed in 0..60 {
        let mut random = Random(seed + 1000);
        check((1 + random.below(40), 1 + random.below(40)), seed);
    }
}

/// Rows that are longer than a tile, much shorter, or about as long.
#[test]
fn of_long_and_short_lines() {
    for (at, sizes) in
        [(3, 1300), (700, 3), (1, 2000), (2000, 1), (37, 513), (513, 37), (64, 512)].into_iter().enumerate()
    {
        for seed in 0..4 {
            check(sizes, 100 * at as u64 + seed);
        }
    }
}

/// Sums that are split into parts, and loops that several threads share.
#[test]
fn on_several_threads() {
    for (threads, seeds) in [(1, 7000..7001), (3, 7001..7003)] {
        on(threads, || seeds.for_each(|seed| check((390, 700), seed)));
    }
}

/// The slopes of the activation are a factor of several sums and of a map.
#[test]
fn factors_of_several_sums() {
    dims! {
        struct Batch;
        struct Filter;
        struct Place;
    }
    type Images = Tensor<f32, (Batch, Filter, Place)>;
    type Filters = Tensor<f32, (Filter,)>;
    type Given<'a> = (&'a Images, &'a Filters, &'a Filters);
    fn loss((x, gain, bias): Given<'_>, weight: &Images) -> Scalar {
        let normal = x.batch_norm((Batch, Place), 1e-5).output;
        let y = (&normal * gain + bias).relu().eval();
        let z = ((y.gelu() * gain).tanh() * weight).eval();
        (z * normal).sum((Batch, Filter, Place))
    }
    for (batch, filter, place) in [(2, 3, 5), (1, 1, 7), (4, 8, 144), (8, 16, 600), (3, 33, 1)] {
        let (batch, filter, place) = (Batch.of(batch), Filter.of(filter), Place.of(place));
        let images = |seed: u64| randn::<f32, _>((batch, filter, place), seed);
        let filters = |seed: u64| randn::<f32, _>(filter, seed);
        let (weight, first) = (images(9), (images(1), filters(2), filters(3)));
        let program = record(
            |(x, gain, bias, weight): (&Images, &Filters, &Filters, &Images)| {
                loss_and_grad(|given: Given<'_>| loss(given, weight), (x, gain, bias))
            },
            (&first.0, &first.1, &first.2, &weight),
        )
        .expect("the function can be recorded");
        for (x, gain, bias) in [first, (images(4), filters(5), filters(6))] {
            let call = || {
                let (loss, (x, gain, bias)) = program.call((&x, &gain, &bias, &weight));
                let all = [loss.memory(), x.memory(), gain.memory(), bias.memory()];
                all.into_iter().flatten().map(|x| x.to_bits()).collect::<Vec<_>>()
            };
            run_plainly(true);
            let expected = call();
            run_plainly(false);
            assert_eq!([call(), call()], [expected.clone(), expected]);
        }
    }
}

/// A sum of several factors that other sums compute, too.
#[test]
fn several_factors_of_one_sum() {
    type Given<'a> = (&'a Matrix, &'a Matrix, &'a Matrix, &'a Line);
    fn sums((x, y, z, w): Given<'_>) -> (Line, Line, Line) {
        let all = x.sin().exp().sqrt() * y.cos().exp().sqrt() * z.exp() * w;
        (all.sum(Row), (x.sin().exp().sqrt() * w).sum(Row), (y.cos().exp().sqrt() * w).sum(Row))
    }
    for sizes in [(2, 2), (5, 7), (40, 33)] {
        let inputs = |seed: u64| {
            let (x, y, w, _) = drawn(sizes, seed);
            (x, y, drawn(sizes, seed + 5).0, w)
        };
        let (x, y, z, w) = inputs(1);
        let program = record(|given: Given<'_>| sums(given), (&x, &y, &z, &w));
        let program = program.expect("the function can be recorded");
        for (x, y, z, w) in [(x, y, z, w), inputs(11)] {
            let call = || {
                let (a, b, c) = program.call((&x, &y, &z, &w));
                let all = [a.memory(), b.memory(), c.memory()];
                all.into_iter().flatten().map(|x| x.to_bits()).collect::<Vec<_>>()
            };
            run_plainly(true);
            let expected = call();
            run_plainly(false);
            assert_eq!([call(), call()], [expected.clone(), expected]);
        }
    }
}
