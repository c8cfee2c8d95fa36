//! Compares macro calls with the same computation written by hand, with dims or with ndarray. The
//! two forms take turns, so that noise on the machine affects them equally. Prints the median time
//! of each form, and the median of their ratios. Some handwritten forms are duplicated and compared
//! with themselves: the difference is noise, from the machine and from code placement.
//!
//! `cargo bench --bench macros -- NAME` runs the cases whose names contain `NAME`.

use rayon::ThreadPoolBuilder;
use std::hint::black_box;
use std::time::{Duration, Instant};
use typed_dims::ndarray::{Axis, concatenate};
use typed_dims::prelude::*;

/// Pairs of measurements for each case.
const ROUNDS: usize = 401;
/// The duration of one measurement. It is short, so that most measurements end before another
/// program gets the processor.
const SLICE: Duration = Duration::from_micros(250);

/// Nanoseconds per call. Neither form is inlined into the loop, because inlining only one of them
/// would change the difference. The result is not moved: a move would read larger pieces than were
/// just written, so the processor would stall.
#[inline(never)]
fn time<T>(calls: u32, run: &dyn Fn() -> T) -> f64 {
    let start = Instant::now();
    for _ in 0..calls {
        black_box(&run());
    }
    start.elapsed().as_nanos() as f64 / f64::from(calls)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn compare<T: PartialEq>(name: &str, by_macro: impl Fn() -> T, by_hand: impl Fn() -> T) {
    let mut asked = std::env::args().skip(1).filter(|argument| argument != "--bench");
    if !asked.all(|part| name.contains(&part)) {
        return;
    }
    assert!(by_macro() == by_hand(), "{name}: the two results differ");
    let once = time(3, &by_macro).max(1.0);
    let calls = (SLICE.as_nanos() as f64 / once).clamp(1.0, 1e6) as u32;
    let (mut macros, mut hands, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let (a, b) = if round % 2 == 0 {
            let a = time(calls, &by_macro);
            (a, time(calls, &by_hand))
        } else {
            let b = time(calls, &by_hand);
            (time(calls, &by_macro), b)
        };
        macros.push(a);
        hands.push(b);
        ratios.push(a / b);
    }
    println!(
        "{name:48} {:>12.0} ns {:>12.0} ns {:>6.2}",
        median(&mut macros),
        median(&mut hands),
        median(&mut ratios)
    );
}

fn array<D: ndarray::Dimension>(shape: impl ndarray::ShapeBuilder<Dim = D>) -> Array<f32, D> {
    let mut at = 0_u32;
    Array::from_shape_simple_fn(shape, || {
        at = at.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        (at >> 8) as f32 / 16_777_216.0 - 0.5
    })
}

fn products(n: usize) {
    let (a, b) = (array((n, n)), array((n, n)));
    let by_hand = || {
        dims!(i, j, k);
        (a.at((i, k)) * b.at((k, j))).sum(k).order((i, j))
    };
    let again = || {
        dims!(i, j, k);
        (a.at((i, k)) * b.at((k, j))).sum(k).order((i, j))
    };
    compare(&format!("the product by hand, written twice, {n}"), again, by_hand);
    compare(&format!("einsum!(\"ik,kj->ij\"), {n}"), || einsum!("ik,kj->ij", a, b), by_hand);
    compare(
        &format!("einsum!(a[i, k] * b[k, j] => [i, j]), {n}"),
        || einsum!(a[i, k] * b[k, j] => [i, j]),
        by_hand,
    );
    compare(
        &format!("tensor!([i, j] => sum[k](..)), {n}"),
        || tensor!([i, j] => sum[k](a[i, k] * b[k, j])),
        by_hand,
    );
    let by_hand = || {
        dims!(i, j);
        (a.at((i, j)) * b.at((j, i))).sum((i, j)).order(())
    };
    let again = || {
        dims!(i, j);
        (a.at((i, j)) * b.at((j, i))).sum((i, j)).order(())
    };
    compare(&format!("the sum of products by hand, written twice, {n}"), again, by_hand);
    compare(&format!("einsum!(\"ij,ji->\"), {n}"), || einsum!("ij,ji->", a, b), by_hand);
    let by_hand = || {
        dims!(i, j, k);
        (a.at((i, k)) - b.at((j, k))).abs().sum(k).order((i, j))
    };
    compare(
        &format!("einsum!((a[i, k] - b[j, k]).abs() ..), {n}"),
        || einsum!((a[i, k] - b[j, k]).abs() => [i, j]),
        by_hand,
    );
    let (q, k) = (array((2, 3, n, n)), array((2, 3, n, n)));
    let by_hand = || {
        dims!(b, h, s, t, d);
        (q.at((b, h, s, d)) * k.at((b, h, t, d))).sum(d).order((b, h, s, t))
    };
    compare(&format!("einsum!(\"bhsd,bhtd->bhst\"), {n}"), || einsum!("bhsd,bhtd->bhst", q, k), by_hand);
}

fn patterns(n: usize) {
    let x = array((2, n, n, 12));
    let by_hand = || {
        dims!(b, h, w, c);
        x.at((b, h, w, c)).order((b, c, h, w))
    };
    let again = || {
        dims!(b, h, w, c);
        x.at((b, h, w, c)).order((b, c, h, w))
    };
    compare(&format!("the transposition by hand, written twice, {n}"), again, by_hand);
    compare(&format!("rearrange!(b h w c -> b c h w), {n}"), || rearrange!(x, b h w c -> b c h w), by_hand);
    let by_hand = || {
        dims!(b, h, w, c, h2 = 2, w2 = 2);
        x.at((b, h, w, (c, h2, w2))).order((b, (h, h2), (w, w2), c))
    };
    let by_macro = || rearrange!(x, b h w (c h2 w2) -> b (h h2) (w w2) c, h2 = 2, w2 = 2);
    compare(&format!("rearrange!, depth to space, {n}"), by_macro, by_hand);
    let by_hand = || {
        dims!(b, h, w, c, h2 = 2, w2 = 2);
        x.at((b, (h, h2), (w, w2), c)).max((h2, w2)).order((b, h, w, c))
    };
    compare(&format!("reduce!, max pooling, {n}"), || reduce!(x, b (h 2) (w 2) c -> b h w c, max), by_hand);
    let by_hand = || {
        dims!(b, h, w, c);
        x.at((b, h, w, c)).mean((h, w)).order((b, c))
    };
    compare(&format!("reduce!(b h w c -> b c, mean), {n}"), || reduce!(x, b h w c -> b c, mean), by_hand);
    let y = array((n, n));
    let by_hand = || {
        dims!(h, w, r = 3);
        y.at((h, w)).expand(r).order((h, (w, r)))
    };
    compare(&format!("repeat!(h w -> h (w 3)), {n}"), || repeat!(y, h w -> h (w 3)), by_hand);
    let by_hand = || {
        let repeated = y.view().insert_axis(Axis(2));
        let repeated = repeated.broadcast((n, n, 3)).expect("an axis of one element is repeated").to_owned();
        repeated.into_shape_with_order((n, 3 * n)).expect("the array is contiguous")
    };
    compare(&format!("repeat!(h w -> h (w 3)), {n}, by ndarray"), || repeat!(y, h w -> h (w 3)), by_hand);
    let by_hand = || {
        dims!(n, h, w);
        stack(n, [&y, &y, &y].map(|y| y.at((h, w)))).order((h, (n, w)))
    };
    let by_macro = || rearrange!([y, y, y], n h w -> h (n w));
    compare(&format!("rearrange!([..], n h w -> h (n w)), {n}"), by_macro, by_hand);
    let by_ndarray = || concatenate![Axis(1), y, y, y];
    compare(&format!("rearrange!([..], ..), {n}, by ndarray"), by_macro, by_ndarray);
    let by_hand = || {
        dims!(h, w);
        concat(w, [&y, &y, &y].map(|y| y.at((h, w)))).order((h, w))
    };
    let by_macro = || pack!([y, y, y], h *).0;
    compare(&format!("pack!([..], h *), {n}"), by_macro, by_hand);
    compare(&format!("pack!([..], h *), {n}, by ndarray"), by_macro, by_ndarray);
    let ids = Array2::from_shape_fn((n, 4), |(i, j)| (i * 7 + j * 3) % n);
    let by_hand = || {
        dims!(b, s, f);
        y.at((ids.at((b, s)), f)).order((b, s, f))
    };
    compare(
        &format!("gather!(w[_ f], ids[b s] => b s f), {n}"),
        || gather!(y[_ f], ids[b s] => b s f),
        by_hand,
    );
}

fn comprehensions(n: usize) {
    let (a, v) = (array((n, n)), array(n));
    let by_hand = || {
        dims!(i, j);
        select(i.le(j), a.at((i, j)), 0.0).order((i, j))
    };
    compare(
        &format!("tensor!, upper triangle, {n}"),
        || tensor!([i, j] => if i <= j { a[i, j] } else { 0.0 }),
        by_hand,
    );
    let by_hand = || {
        dims!(i, j);
        ((a.at((i, j)) * v.at(j)).exp() + 1.0).order((i, j))
    };
    compare(
        &format!("tensor!, elementwise, {n}"),
        || tensor!([i, j] => (a[i, j] * v[j]).exp() + 1.0),
        by_hand,
    );
    let w = array((3, 3));
    let by_hand = || {
        dims!(h, y, p, q);
        let w = w.at((p, q));
        (a.at((h + p, y + q)) * w).sum((p, q)).order((h, y))
    };
    let by_macro = || tensor!([h, y] => sum[p, q](a[h + p, y + q] * w[p, q]));
    compare(&format!("tensor!, convolution, {n}"), by_macro, by_hand);
    let ids = Array2::from_shape_fn((n, 4), |(i, j)| (i * 7 + j * 3) % n);
    let by_hand = || {
        dims!(b, s, f);
        a.at((ids.at((b, s)), f)).sum(s).order((b, f))
    };
    compare(&format!("tensor!, bags of rows, {n}"), || tensor!([b, f] => sum[s](a[ids[b, s], f])), by_hand);
    let by_hand = || {
        dims!(i = n);
        v.at((i + 1) % n as isize).order(i)
    };
    compare(&format!("tensor!, rolled, {n}"), || tensor!([i in 0..n] => v[(i + 1) % n]), by_hand);
}

fn main() {
    let pool = ThreadPoolBuilder::new().num_threads(1).build().expect("the pool can be built");
    pool.install(|| {
        println!("{:44} {:>15} {:>15} {:>6}", "", "macro", "by hand", "ratio");
        for n in [4, 64] {
            products(n);
            patterns(n);
            comprehensions(n);
        }
    });
}
