//! Products whose rows, columns and sums are given by lists of offsets, on several threads if
//! worthwhile: see [`panels`](crate::gemm::panels).

use crate::gemm::panels::{Offsets, Panels, multiply};
use crate::gemm::plan::panels::{InPanels, Share};
use crate::gemm::plan::products::{Loop, RoleLoops, for_each};
use crate::machine::threads::{self, Carried};
use crate::memory::elements::Elements;
use crate::scalar::Num;
use alloc::vec::Vec;
use core::ops::Range;

/// Runs the products and writes the results to `c`, which need not be initialized.
///
/// # Safety
///
/// The strides of an operand map each position of the loops to one of its elements. The results are
/// valid for writes and nothing else accesses them; distinct positions of batch, rows and columns
/// have distinct results. [`InPanels::of`] made the plan for this type.
pub unsafe fn run<T: Num>(products: &InPanels, a: Elements<'_, T>, b: Elements<'_, T>, c: *mut T) {
    let InPanels { roles, m, n, k, exchanged } = products;
    let (m, n, k) = (*m, *n, *k);
    let (a, b) = if *exchanged { (b, a) } else { (a, b) };
    let all = || [&roles.batch, &roles.m, &roles.n, &roles.k].into_iter().flatten();
    a.assert_loops(0, all().map(|l| (l.size, l.a)));
    b.assert_loops(0, all().map(|l| (l.size, l.b)));
    let (a, b) = (a.as_ptr(), b.as_ptr());
    let rows = offsets(&roles.m, |l| (l.a, l.c));
    let columns = offsets(&roles.n, |l| (l.b, l.c));
    let sums = offsets(&roles.k, |l| (l.a, l.b));
    let mut starts = Vec::new();
    for_each(&roles.batch, |_, start| starts.push(start));
    let (parts, share) = (products.parts(), products.share());
    let part = |count: usize, part: usize| part * count / parts..(part + 1) * count / parts;
    let piece = |at: usize| {
        let (mut batch, mut rows_of, mut columns_of) = (0..starts.len(), 0..m, 0..n);
        match share {
            Share::Batch => batch = part(starts.len(), at),
            Share::Rows => rows_of = part(m, at),
            Share::Columns => columns_of = part(n, at),
        }
        let panels = Panels {
            rows: within(&rows, rows_of),
            sums: within(&sums, 0..k),
            columns: within(&columns, columns_of),
            accumulate: false,
        };
        // SAFETY: the elements of the operands are `Sync`, and each piece has its own results.
        unsafe { Carried::new((panels, &starts[batch], a, b, c)) }
    };
    threads::each((0..parts).map(piece).collect(), |piece| {
        let (panels, starts, a, b, c) = piece.into_inner();
        // SAFETY: `InPanels::of` was called for this type. The plan's strides stay within the
        // operands' axes, and the results are valid, as the caller promises.
        unsafe { multiply(&panels, starts, a, b, c) };
    });
}

/// The offsets of all positions of some loops in two matrices.
fn offsets(loops: &RoleLoops, of: fn(&Loop) -> (isize, isize)) -> [Vec<isize>; 2] {
    let mut offsets = [vec![0], vec![0]];
    for l in loops {
        let (first, second) = of(l);
        for (offsets, step) in offsets.iter_mut().zip([first, second]) {
            *offsets = offsets
                .iter()
                .flat_map(|&place| (0..l.size as isize).map(move |at| place + at * step))
                .collect();
        }
    }
    offsets
}

fn within(offsets: &[Vec<isize>; 2], range: Range<usize>) -> Offsets<'_> {
    Offsets { first: &offsets[0][range.clone()], second: &offsets[1][range] }
}
