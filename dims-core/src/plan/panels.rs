//! Which products run in [panels](crate::kernel::gemm::panels), and the lists of places for them.

use super::explain::Step;
use super::products::{Loop, Loops, Roles, for_each};
use crate::kernel::gemm::panels::{NARROW, Panels, Places, SHORT, are_known, multiply};
use crate::kernel::gemm::{has_blas, is_small_product};
use crate::kernel::threads::{self, Carried};
use crate::scalar::Num;
use alloc::vec::Vec;
use core::ops::Range;

/// The most places that are listed.
const MOST: usize = 1 << 20;

/// The products of a pair whose rows, columns and sums are lists of places.
pub struct InPanels {
    roles: Roles<Loops>,
    m: usize,
    n: usize,
    k: usize,
    /// Whether the operands were exchanged, so that neighbours in the result are columns.
    exchanged: bool,
}

impl InPanels {
    /// The products, if they are worth being worked on so: not what a library can do at least as well, which is a product whose rows,
    /// columns and sums are one loop each, unless columns of the right matrix have neighbours only along the sum.
    pub fn of<T: Num>(roles: &Roles<Loops>) -> Option<Self> {
        let several = [&roles.m, &roles.n, &roles.k].iter().any(|loops| loops.len() > 1);
        let steps = |loops: &Loops| loops.last().map_or((0, 0, 0), |l| (l.a, l.b, l.c));
        let (m_steps, n_steps, k_steps) = (steps(&roles.m), steps(&roles.n), steps(&roles.k));
        // Whether columns, or rows if those will be the columns, have neighbours only along the sum.
        let columns_sideways = k_steps.1 == 1 && n_steps.1 != 1;
        let rows_sideways = k_steps.0 == 1 && m_steps.0 != 1;
        // A BLAS takes matrices either way.
        let alone = !has_blas::<T>();
        if !(several || alone && (columns_sideways || rows_sideways)) || !are_known::<T>() {
            return None;
        }
        let count = |loops: &Loops| loops.iter().try_fold(1, |count: usize, l| count.checked_mul(l.size));
        let (m, n, k) = (count(&roles.m)?, count(&roles.n)?, count(&roles.k)?);
        if m > MOST || n > MOST || k > MOST || is_small_product(m, n, k) {
            return None;
        }
        let exchanged = n_steps.2 != 1 && (m_steps.2 == 1 || m > n);
        let (m, n, sideways) = if exchanged { (n, m, rows_sideways) } else { (m, n, columns_sideways) };
        if m < SHORT || n < NARROW || !(several || alone && sideways) {
            return None;
        }
        let roles = if exchanged {
            let turned = |loops: &Loops| loops.iter().map(|&l| Loop { a: l.b, b: l.a, ..l }).collect();
            Roles {
                batch: turned(&roles.batch),
                m: turned(&roles.n),
                n: turned(&roles.m),
                k: turned(&roles.k),
            }
        } else {
            roles.clone()
        };
        Some(InPanels { roles, m, n, k, exchanged })
    }

    /// How many threads are worthwhile.
    fn parts(&self) -> usize {
        let batch: usize = self.roles.batch.iter().map(|l| l.size).product();
        threads::parts(batch.saturating_mul(self.m * self.n).saturating_mul(self.k) / 32)
    }

    /// The products as a step of a plan.
    pub fn step<T>(&self) -> Step {
        let batch = self.roles.batch.iter().map(|l| l.size).product();
        let last = |loops: &Loops| loops.last().copied().unwrap_or(Loop { size: 1, a: 0, b: 0, c: 0 });
        let (m, n, k) = (last(&self.roles.m), last(&self.roles.n), last(&self.roles.k));
        let (mut rows, mut columns, mut a, mut b) = (self.m, self.n, (m.a, k.a), (k.b, n.b));
        let mut c = (m.c, n.c);
        if self.exchanged {
            (rows, columns) = (columns, rows);
            (a, b, c) = ((b.1, b.0), (a.1, a.0), (c.1, c.0));
        }
        Step::Product {
            batch,
            m: rows,
            k: self.k,
            n: columns,
            a,
            b,
            c,
            summed: 1,
            bytes: batch * self.m * self.n * size_of::<T>(),
            threads: self.parts(),
            typed: false,
        }
    }

    /// Runs the products, on as many threads as are worthwhile: each takes a part of the batch, or of the longer side of each product.
    ///
    /// # Safety
    ///
    /// [`InPanels::of`] was asked for this type. Positions of the loops are elements of both operands that are valid for reads, and places
    /// of the result that are valid for writes, distinct for distinct rows, columns and batches, and accessed by nothing else.
    pub unsafe fn run<T: Num>(&self, a: *const T, b: *const T, c: *mut T) {
        let (a, b) = if self.exchanged { (b, a) } else { (a, b) };
        let rows = places(&self.roles.m, |l| (l.a, l.c));
        let columns = places(&self.roles.n, |l| (l.b, l.c));
        let sums = places(&self.roles.k, |l| (l.a, l.b));
        let mut starts = Vec::new();
        for_each(&self.roles.batch, |_, start| starts.push(start));
        let parts = self.parts();
        let part = |count: usize, part: usize| part * count / parts..(part + 1) * count / parts;
        let piece = |at: usize| {
            let (mut batch, mut m, mut n) = (0..starts.len(), 0..self.m, 0..self.n);
            if starts.len() >= 2 * parts {
                batch = part(starts.len(), at);
            } else if self.m >= self.n {
                m = part(self.m, at);
            } else {
                n = part(self.n, at);
            }
            let panels = Panels {
                rows: within(&rows, m),
                sums: within(&sums, 0..self.k),
                columns: within(&columns, n),
                accumulate: false,
            };
            // SAFETY: the elements of the operands are `Sync`, and each piece has places of the result of its own.
            unsafe { Carried::new((panels, &starts[batch], a, b, c)) }
        };
        threads::each((0..parts).map(piece).collect(), |piece| {
            let (panels, starts, a, b, c) = piece.into_inner();
            // SAFETY: the caller's promise.
            unsafe { multiply(&panels, starts, a, b, c) };
        });
    }
}

/// The positions of some loops as distances in two matrices.
fn places(loops: &Loops, of: fn(&Loop) -> (isize, isize)) -> [Vec<isize>; 2] {
    let mut places = [vec![0], vec![0]];
    for l in loops {
        let (first, second) = of(l);
        for (places, step) in places.iter_mut().zip([first, second]) {
            *places = places
                .iter()
                .flat_map(|&place| (0..l.size as isize).map(move |at| place + at * step))
                .collect();
        }
    }
    places
}

fn within(places: &[Vec<isize>; 2], range: Range<usize>) -> Places<'_> {
    Places { first: &places[0][range.clone()], second: &places[1][range] }
}
