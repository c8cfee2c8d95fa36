//! Selects the products that run in [panels](crate::gemm::panels), and the loops that give their
//! lists of offsets.

use crate::gemm::dispatch::{
    fills_panels, has_blas, has_vector_kernels, is_skinny, is_small_product, library_rows,
};
use crate::gemm::plan::products::{Loop, PerRole, RoleLoops, count, shares_rows};
use crate::loops::steps::{PlanStep, ProductDims};
use crate::machine::params::panels::MAX_OFFSETS;
use crate::machine::threads;
use crate::scalar::Num;

/// Products whose rows, columns and sums are given by lists of offsets.
pub struct InPanels {
    pub roles: PerRole<RoleLoops>,
    pub m: usize,
    pub n: usize,
    pub k: usize,
    /// Whether the operands were exchanged. This makes the columns contiguous in the result or, if
    /// neither rows nor columns are, ensures that there are at least as many columns as rows.
    pub exchanged: bool,
}

/// The role that is divided among the threads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Share {
    Batch,
    Rows,
    Columns,
}

impl Share {
    /// Chooses the batch if it is long enough for `parts` threads, otherwise the rows or columns of
    /// each product.
    fn of(batch: usize, m: usize, n: usize, parts: usize) -> Self {
        if batch >= 2 * parts {
            Share::Batch
        } else if shares_rows(m, n) {
            Share::Rows
        } else {
            Share::Columns
        }
    }
}

impl InPanels {
    /// The products, if they can run in panels and panels are faster than a library. If rows,
    /// columns and sums are one loop each, panels are faster only if the right matrix is contiguous
    /// along the sum alone, no BLAS is installed for the type, and there are neither
    /// [many](library_rows) nor [few](is_skinny) rows.
    pub fn of<T: Num>(roles: &PerRole<RoleLoops>) -> Option<Self> {
        let several = [&roles.m, &roles.n, &roles.k].iter().any(|loops| loops.len() > 1);
        let steps = |loops: &RoleLoops| loops.last().map_or((0, 0, 0), |l| (l.a, l.b, l.c));
        let (m_steps, n_steps, k_steps) = (steps(&roles.m), steps(&roles.n), steps(&roles.k));
        // Whether the right matrix is column-major, and whether the left one is row-major. An
        // exchange makes the latter a column-major right matrix.
        let b_column_major = k_steps.1 == 1 && n_steps.1 != 1;
        let a_row_major = k_steps.0 == 1 && m_steps.0 != 1;
        // An installed BLAS multiplies row-major and column-major matrices itself.
        let alone = !has_blas::<T>();
        if !(several || alone && (b_column_major || a_row_major)) || !has_vector_kernels::<T>() {
            return None;
        }
        let count = |loops: &RoleLoops| loops.iter().try_fold(1, |count: usize, l| count.checked_mul(l.size));
        let (m, n, k) = (count(&roles.m)?, count(&roles.n)?, count(&roles.k)?);
        if m > MAX_OFFSETS || n > MAX_OFFSETS || k > MAX_OFFSETS || is_small_product(m, n, k) {
            return None;
        }
        let exchanged = n_steps.2 != 1 && (m_steps.2 == 1 || m > n);
        let (m, n, column_major) = if exchanged { (n, m, a_row_major) } else { (m, n, b_column_major) };
        if !fills_panels(m, n) || !(several || alone && column_major) {
            return None;
        }
        let batch = count(&roles.batch)?;
        let parts = parts(batch, m, n, k);
        let rows = if Share::of(batch, m, n, parts) == Share::Rows { m / parts } else { m };
        if !several && (rows >= library_rows() || is_skinny::<T>(m, n / parts, k)) {
            return None;
        }
        let roles = if exchanged {
            let exchanged_loops =
                |loops: &RoleLoops| loops.iter().map(|&l| Loop { a: l.b, b: l.a, ..l }).collect();
            PerRole {
                batch: exchanged_loops(&roles.batch),
                m: exchanged_loops(&roles.n),
                n: exchanged_loops(&roles.m),
                k: exchanged_loops(&roles.k),
            }
        } else {
            roles.clone()
        };
        Some(InPanels { roles, m, n, k, exchanged })
    }

    pub fn share(&self) -> Share {
        Share::of(self.batch(), self.m, self.n, self.parts())
    }

    /// The number of threads to use.
    pub fn parts(&self) -> usize {
        parts(self.batch(), self.m, self.n, self.k)
    }

    /// The loops over all elements of the results.
    pub fn over_results(&self) -> impl Iterator<Item = &Loop> {
        let PerRole { batch, m, n, .. } = &self.roles;
        [batch, m, n].into_iter().flatten()
    }

    /// The number of products.
    pub fn batch(&self) -> usize {
        count(&self.roles.batch)
    }

    /// The products as a step of a plan.
    pub fn step<T>(&self, dims: ProductDims) -> PlanStep {
        let batch = self.batch();
        let last = |loops: &RoleLoops| loops.last().copied().unwrap_or(Loop { size: 1, a: 0, b: 0, c: 0 });
        let (m, n, k) = (last(&self.roles.m), last(&self.roles.n), last(&self.roles.k));
        let (mut rows, mut columns, mut a, mut b) = (self.m, self.n, (m.a, k.a), (k.b, n.b));
        let mut c = (m.c, n.c);
        if self.exchanged {
            (rows, columns) = (columns, rows);
            (a, b, c) = ((b.1, b.0), (a.1, a.0), (c.1, c.0));
        }
        PlanStep::Product {
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
            dims: Some(dims),
        }
    }
}

fn parts(batch: usize, m: usize, n: usize, k: usize) -> usize {
    threads::parts(batch.saturating_mul(m * n).saturating_mul(k) / 32)
}
