//! The matrix products of a pair of operands, as strided loops around products of two matrices;
//! [`run`](crate::gemm::products::run) runs them.

use crate::gemm::dispatch::{is_skinny, is_small_product};
use crate::loops::axes::{AxisSet, each, sorted};
use crate::loops::nest::Odometer;
use crate::loops::steps::{PlanStep, ProductDims};
use crate::machine::threads;
use smallvec::SmallVec;

/// One loop over merged axes, with the strides of both operands and of the result.
#[derive(Clone, Copy)]
pub struct Loop {
    pub size: usize,
    pub a: isize,
    pub b: isize,
    pub c: isize,
}

/// The loops of one [role](PerRole), usually a single one.
pub type RoleLoops = SmallVec<[Loop; 2]>;

/// A value for each role in the products of a pair: batch (axes of both operands and the result),
/// rows, columns, and sums.
#[derive(Clone, Copy)]
pub struct PerRole<W> {
    pub batch: W,
    pub m: W,
    pub n: W,
    pub k: W,
}

impl<W> PerRole<W> {
    pub fn map<V>(self, f: impl Fn(W) -> V) -> PerRole<V> {
        PerRole { batch: f(self.batch), m: f(self.m), n: f(self.n), k: f(self.k) }
    }
}

impl PerRole<RoleLoops> {
    /// The products. Each consists of one loop over rows, one over columns and one over sums,
    /// usually the longest of its role. There is a product for each position of the other loops.
    pub fn products(self) -> Products {
        let (mut m, mut m_rest) = widest(self.m);
        let (mut n, mut n_rest) = widest(self.n);
        let (k, k_rest) = widest(self.k);
        if is_small_product(m.size, n.size, k.size) && m.a != 1 && n.b != 1 {
            // Small products gain more from contiguous loops than from many rows: contiguous
            // elements are loaded into registers together.
            (m, m_rest) = neighbors(m, m_rest, |l| l.a);
            if m.a != 1 {
                (n, n_rest) = neighbors(n, n_rest, |l| l.b);
            }
        }
        let mut loops = self.batch;
        loops.extend(m_rest);
        loops.extend(n_rest);
        let results = loops.len();
        loops.extend(k_rest);
        Products { loops, results, m, n, k }
    }
}

/// A product for each position of some loops.
pub struct Products {
    pub loops: RoleLoops,
    /// The number of loops over results, which come first; the others add to the same result.
    pub results: usize,
    /// The rows of each product: of the left operand, and of the result.
    pub m: Loop,
    /// The columns: of the right operand, and of the result.
    pub n: Loop,
    /// The sum: of both operands.
    pub k: Loop,
}

impl Products {
    /// The number of threads to use.
    pub fn parts<T: 'static>(&self) -> usize {
        let Products { m, n, k, .. } = self;
        let loops: usize = self.loops.iter().map(|l| l.size).product();
        let work = loops.saturating_mul(m.size * n.size).saturating_mul(k.size) / 32;
        // A product of few rows takes as long as reading the large matrix, like a reduction.
        if is_skinny::<T>(m.size.min(n.size), m.size.max(n.size), k.size) {
            return threads::parts(work.max(loops.saturating_mul(m.size.max(n.size)).saturating_mul(k.size)));
        }
        threads::parts(work)
    }

    /// The loops over all elements of the results.
    pub fn over_results(&self) -> impl Iterator<Item = &Loop> {
        self.loops[..self.results].iter().chain([&self.m, &self.n])
    }

    /// The products as a step of a plan.
    pub fn step<T: 'static>(&self, dims: ProductDims) -> PlanStep {
        let Products { m, n, k, .. } = *self;
        let (results, sums) = self.loops.split_at(self.results);
        PlanStep::Product {
            batch: count(results),
            m: m.size,
            k: k.size,
            n: n.size,
            a: (m.a, k.a),
            b: (k.b, n.b),
            c: (m.c, n.c),
            summed: count(sums),
            bytes: count(results) * m.size * n.size * size_of::<T>(),
            threads: self.parts::<T>(),
            typed: false,
            dims: Some(dims),
        }
    }
}

/// The number of positions of the loops.
pub fn count(loops: &[Loop]) -> usize {
    loops.iter().map(|l| l.size).product()
}

/// Whether threads divide the rows, rather than the columns, of a product whose right matrix is
/// packed. If they divide the columns, each part of the right matrix is packed by one thread only.
/// If they divide the rows, each thread reads fewer rows of the left matrix, which saves less time
/// unless there are many more rows than columns.
pub fn shares_rows(m: usize, n: usize) -> bool {
    m / 2 > n
}

/// Calls `f` with each position of the loops and its offsets in the three matrices.
pub fn for_each(loops: &[Loop], mut f: impl FnMut(&[usize], [isize; 3])) {
    let counts: SmallVec<[usize; 8]> = loops.iter().map(|l| l.size).collect();
    let mut at: SmallVec<[usize; 8]> = SmallVec::from_elem(0, counts.len());
    let mut odometer = Odometer::new(&counts);
    while !odometer.is_done() {
        let mut offsets = [0; 3];
        for (l, &at) in loops.iter().zip(&at) {
            for (offset, stride) in offsets.iter_mut().zip([l.a, l.b, l.c]) {
                *offset += at as isize * stride;
            }
        }
        f(&at, offsets);
        odometer.advance(&mut at);
    }
}

/// Merges adjacent axes into loops where all three strides allow it.
pub fn merge(axes: AxisSet, sizes: &[usize], a: &[isize], b: &[isize], c: &[isize]) -> RoleLoops {
    let of = |axis: usize| Loop { size: sizes[axis], a: a[axis], b: b[axis], c: c[axis] };
    let mut loops: RoleLoops = SmallVec::new();
    // Most roles have one axis, or none.
    if axes & axes.wrapping_sub(1) == 0 {
        each(axes).for_each(|axis| loops.push(of(axis)));
        return loops;
    }
    // Where axes merge, both operands and the result order them alike, so the strides of any matrix
    // with these axes can give the order.
    let order = sorted(axes, if each(axes).all(|axis| c[axis] != 0) { c } else { a });
    for axis in order {
        let next = of(axis);
        if let Some(last) = loops.last_mut() {
            let reach = next.size as isize;
            if last.a == next.a * reach && last.b == next.b * reach && last.c == next.c * reach {
                *last = Loop { size: last.size * next.size, ..next };
                continue;
            }
        }
        loops.push(next);
    }
    loops
}

/// Returns a contiguous loop of four or more positions in place of `chosen`, if there is one, and
/// the remaining loops.
fn neighbors(chosen: Loop, mut others: RoleLoops, stride: fn(&Loop) -> isize) -> (Loop, RoleLoops) {
    match others.iter_mut().find(|l| stride(l) == 1 && l.size >= 4) {
        Some(found) => (core::mem::replace(found, chosen), others),
        None => (chosen, others),
    }
}

/// The longest loop, and the others.
fn widest(mut loops: RoleLoops) -> (Loop, RoleLoops) {
    let at = (0..loops.len()).max_by_key(|&at| loops[at].size).expect("the role has an axis");
    let widest = loops.remove(at);
    (widest, loops)
}
