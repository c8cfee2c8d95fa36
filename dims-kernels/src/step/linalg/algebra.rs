//! Matrix arithmetic for the backward pass. Products, sums and so on are steps of programs, so
//! derivatives can be differentiated again.

use super::{MatrixElement, MatrixStep, MatrixWork};
use crate::error::Error;
use crate::memory::buffer::Buffer;
use crate::ops::code::{BinaryOpcode, DType, Number, RegisterKind};
use crate::program::Register;
use crate::program::builder::Builder;
use crate::step::execute::execute_backward;
use crate::step::{AnyBuffer, Pulled};
use crate::trace::{Field, FieldOperand, FieldSource, Held, Node, Part, StridedPlace, Table, evaluate};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::marker::PhantomData;
use smallvec::SmallVec;

/// A strided view of memory with one matrix for each position of the batch.
#[derive(Clone)]
pub(super) struct Matrices {
    held: Arc<dyn Held>,
    pub(super) rows: usize,
    pub(super) columns: usize,
    start: isize,
    /// The strides from matrix to matrix, from row to row, and from column to column.
    strides: [isize; 3],
}

impl Matrices {
    /// Contiguous matrices that begin at the element `start` of `held`.
    pub(super) fn new(held: &Arc<dyn Held>, start: usize, [rows, columns]: [usize; 2]) -> Self {
        let strides = [rows * columns, columns, 1].map(|stride| stride as isize);
        Matrices { held: Arc::clone(held), rows, columns, start: start as isize, strides }
    }

    /// The transposed view.
    pub(super) fn t(&self) -> Self {
        let [batch, row, column] = self.strides;
        let own = self.clone();
        Matrices { rows: self.columns, columns: self.rows, strides: [batch, column, row], ..own }
    }

    /// The rows `from..to`.
    pub(super) fn rows_from(&self, from: usize, to: usize) -> Self {
        let start = self.start + from as isize * self.strides[1];
        Matrices { rows: to - from, start, ..self.clone() }
    }

    /// The columns `from..to`.
    pub(super) fn columns_from(&self, from: usize, to: usize) -> Self {
        self.t().rows_from(from, to).t()
    }

    /// Repeats the first row `rows` times, without a copy.
    pub(super) fn as_equal_rows(&self, rows: usize) -> Self {
        let [batch, _, column] = self.strides;
        Matrices { rows, strides: [batch, 0, column], ..self.clone() }
    }

    fn is_contiguous(&self, batch: usize) -> bool {
        let lying = [self.rows * self.columns, self.columns, 1];
        let sizes = [batch, self.rows, self.columns];
        let is_same = |at: usize| sizes[at] == 1 || self.strides[at] == lying[at] as isize;
        self.start == 0 && self.held.len() == sizes.iter().product::<usize>() && (0..3).all(is_same)
    }
}

/// Computes with matrices in a backward pass.
pub(super) struct Algebra<T> {
    batch: usize,
    recorded: bool,
    element: PhantomData<T>,
}

impl<T: MatrixElement> Algebra<T> {
    pub(super) fn new(batch: usize, recorded: bool) -> Self {
        Algebra { batch, recorded, element: PhantomData }
    }

    fn dtype(&self) -> DType {
        DType::of::<T>().expect("programs know the element type")
    }

    /// The elements along loops of these sizes. The batch is the first loop. `row` and `column` are
    /// the positions of the loops over rows and columns.
    fn field(&self, of: &Matrices, sizes: &[usize], [row, column]: [usize; 2]) -> Field {
        let mut strides = vec![0; sizes.len()];
        strides[0] = of.strides[0];
        strides[row] += of.strides[1];
        strides[column] += of.strides[2];
        Field::held(sizes, &of.held, StridedPlace::strided(of.start, strides))
    }

    /// New matrices: zeros, with each part added at its positions.
    fn summed(&self, parts: &[Part], [rows, columns]: [usize; 2]) -> Result<Matrices, Error> {
        let held = evaluate(parts, self.batch * rows * columns, self.dtype(), self.recorded)?;
        Ok(Matrices::new(&held, 0, [rows, columns]))
    }

    pub(super) fn product(&self, a: &Matrices, b: &Matrices) -> Result<Matrices, Error> {
        let (rows, inner, columns) = (a.rows, a.columns, b.columns);
        let sizes = [self.batch, rows, inner, columns];
        let (a, b) = (self.field(a, &sizes, [1, 2]), self.field(b, &sizes, [2, 3]));
        let field = a.map([&b], |build, a, [b]| build.binary(BinaryOpcode::Mul, a, b));
        let place = StridedPlace::contiguous(&sizes, &[0, 1, 3]);
        self.summed(&[Part { field, place }], [rows, columns])
    }

    /// The product of several matrices, from left to right.
    pub(super) fn products<const N: usize>(&self, all: [&Matrices; N]) -> Result<Matrices, Error> {
        let (first, rest) = all.split_first().expect("there is a factor");
        rest.iter().try_fold((*first).clone(), |product, own| self.product(&product, own))
    }

    fn elementwise(&self, own: &Matrices) -> ([usize; 3], StridedPlace) {
        let sizes = [self.batch, own.rows, own.columns];
        (sizes, StridedPlace::contiguous(&sizes, &[0, 1, 2]))
    }

    /// Combines matrices element by element.
    pub(super) fn map<const N: usize>(
        &self,
        a: &Matrices,
        others: [&Matrices; N],
        f: impl FnOnce(&mut Builder, Register, [Register; N]) -> Register,
    ) -> Result<Matrices, Error> {
        let (sizes, place) = self.elementwise(a);
        let fields = others.map(|own| self.field(own, &sizes, [1, 2]));
        let mut others = fields.iter();
        let others = [(); N].map(|()| others.next().expect("there are as many fields"));
        let field = self.field(a, &sizes, [1, 2]).map(others, f);
        self.summed(&[Part { field, place }], [a.rows, a.columns])
    }

    /// Multiplies each element by one of three factors, for elements below the diagonal, on it, and
    /// above it.
    pub(super) fn shares(&self, a: &Matrices, [below, on, above]: [f64; 3]) -> Result<Matrices, Error> {
        let (sizes, place) = self.elementwise(a);
        let offset = positions(&sizes, [0, 1, -1]);
        let field = self.field(a, &sizes, [1, 2]).map([&offset], |build, a, [offset]| {
            let zero = build.constant(Number::Int(0), RegisterKind::Int);
            let is_on = build.binary(BinaryOpcode::Eq, offset, zero);
            let is_above = build.binary(BinaryOpcode::Lt, offset, zero);
            let [below, on, above] = [below, on, above].map(|share| scaled(build, a, share));
            let beside = build.select(is_above, above, below);
            build.select(is_on, on, beside)
        });
        self.summed(&[Part { field, place }], [a.rows, a.columns])
    }

    /// `a * share`
    pub(super) fn scaled(&self, a: &Matrices, share: f64) -> Result<Matrices, Error> {
        self.map(a, [], |build, a, []| scaled(build, a, share))
    }

    /// The sum of matrices, each multiplied by its factor.
    pub(super) fn sum(&self, terms: &[(&Matrices, f64)]) -> Result<Matrices, Error> {
        let (first, _) = terms[0];
        let (sizes, place) = self.elementwise(first);
        let part = |(own, share): &(&Matrices, f64)| {
            let field = self.field(own, &sizes, [1, 2]).map([], |build, a, []| scaled(build, a, *share));
            Part { field, place: place.clone() }
        };
        self.summed(&terms.iter().map(part).collect::<Vec<_>>(), [first.rows, first.columns])
    }

    /// `(a + a^T) / 2`
    pub(super) fn symmetric(&self, a: &Matrices) -> Result<Matrices, Error> {
        self.sum(&[(a, 0.5), (&a.t(), 0.5)])
    }

    /// Block matrices of this size: each part begins at its row and column, and all other elements
    /// are zeros.
    pub(super) fn placed(
        &self,
        parts: &[(&Matrices, [usize; 2])],
        [rows, columns]: [usize; 2],
    ) -> Result<Matrices, Error> {
        let part = |(own, [row, column]): &(&Matrices, [usize; 2])| {
            let (sizes, _) = self.elementwise(own);
            let start = (row * columns + column) as isize;
            let strides = [rows * columns, columns, 1].map(|stride| stride as isize);
            Part { field: self.field(own, &sizes, [1, 2]), place: StridedPlace::strided(start, strides) }
        };
        self.summed(&parts.iter().map(part).collect::<Vec<_>>(), [rows, columns])
    }

    /// Square matrices with these vectors on the diagonal.
    pub(super) fn diagonal(&self, vectors: &Matrices) -> Result<Matrices, Error> {
        let size = vectors.columns;
        let sizes = [self.batch, size];
        let strides = [vectors.strides[0], vectors.strides[2]];
        let field = Field::held(&sizes, &vectors.held, StridedPlace::strided(vectors.start, strides));
        let place = StridedPlace::strided(0, [(size * size) as isize, size as isize + 1]);
        self.summed(&[Part { field, place }], [size, size])
    }

    /// The sum of all elements of each matrix, as a 1 x 1 matrix.
    pub(super) fn total(&self, a: &Matrices) -> Result<Matrices, Error> {
        let (sizes, _) = self.elementwise(a);
        let place = StridedPlace::strided(0, [1, 0, 0]);
        self.summed(&[Part { field: self.field(a, &sizes, [1, 2]), place }], [1, 1])
    }

    /// Multiplies each matrix by its number, a 1 x 1 matrix.
    pub(super) fn times(&self, a: &Matrices, number: &Matrices) -> Result<Matrices, Error> {
        let number = Matrices {
            rows: a.rows,
            columns: a.columns,
            strides: [number.strides[0], 0, 0],
            ..number.clone()
        };
        self.map(a, [&number], |build, a, [number]| build.binary(BinaryOpcode::Mul, a, number))
    }

    /// Permutes the rows of each matrix: row `i` moves to row `positions[i]`.
    pub(super) fn rows_to(&self, a: &Matrices, positions: &Arc<dyn Held>) -> Result<Matrices, Error> {
        let (sizes, _) = self.elementwise(a);
        let index = Field::held(&sizes, positions, StridedPlace::strided(0, [a.rows as isize, 1, 0]));
        let row = a.columns as isize;
        let table = Table::of_rows(index, a.rows, row, &[0, 1])?;
        let strides = [(a.rows * a.columns) as isize, 0, 1].into_iter().collect();
        let place = StridedPlace { offset: 0, strides, table: Some(Box::new(table)) };
        self.summed(&[Part { field: self.field(a, &sizes, [1, 2]), place }], [a.rows, a.columns])
    }

    /// The matrices in contiguous memory. They are copied unless they are contiguous already and
    /// fill their memory.
    fn contiguous(&self, a: &Matrices) -> Result<Matrices, Error> {
        if a.is_contiguous(self.batch) { Ok(a.clone()) } else { self.sum(&[(a, 1.0)]) }
    }

    /// Runs another step and returns the memory of each result.
    pub(super) fn run(
        &self,
        step: &MatrixStep<T>,
        operands: &[&Matrices],
    ) -> Result<Vec<Arc<dyn Held>>, Error> {
        let mut buffers: SmallVec<[Buffer<T>; 2]> = SmallVec::new();
        for own in operands {
            let own = self.contiguous(own)?;
            buffers.push(Buffer::of_held(&own.held).expect("matrices are of the step's type"));
        }
        let mut borrowed: Vec<&mut dyn AnyBuffer> = buffers.iter_mut().map(|own| own as _).collect();
        let mut results = execute_backward(step, &mut borrowed, self.recorded)?;
        let held = |own: &super::MatrixResult| match own {
            super::MatrixResult::Positions(_) => results.next::<usize>().held(),
            _ => results.next::<T>().held(),
        };
        Ok(step.work.yields(step.sizes).iter().map(held).collect())
    }

    /// Runs a step that has one result, of this shape.
    pub(super) fn only(
        &self,
        work: MatrixWork,
        a: &Matrices,
        others: &[&Matrices],
        shape: [usize; 2],
    ) -> Result<Matrices, Error> {
        let right = others.first().map_or(0, |own| own.columns);
        let sizes = super::MatrixSizes { batch: self.batch, rows: a.rows, columns: a.columns, right };
        let operands: SmallVec<[&Matrices; 2]> = core::iter::once(a).chain(others.iter().copied()).collect();
        let held = self.run(&MatrixStep::new(work, sizes), &operands)?;
        Ok(Matrices::new(&held[0], 0, shape))
    }

    /// `x` in `t x = b`, where `t` is a triangle of `a` or its transpose.
    pub(super) fn solve_triangular(
        &self,
        triangle: super::ReadTriangle,
        a: &Matrices,
        b: &Matrices,
    ) -> Result<Matrices, Error> {
        self.only(MatrixWork::SolveTriangular(triangle), a, &[b], [b.rows, b.columns])
    }

    /// The contribution of a matrix to the gradient of an operand, if that gradient is needed.
    pub(super) fn part_of(
        &self,
        step: &Pulled<'_>,
        number: usize,
        given: &Matrices,
    ) -> Option<(Arc<Node>, Part)> {
        let node = step.asked_operand(number)?;
        let (sizes, place) = self.elementwise(given);
        Some((Arc::clone(node), Part { field: self.field(given, &sizes, [1, 2]), place }))
    }
}

/// A field in which each element is the sum of its positions along the loops, each times the loop's
/// factor.
fn positions(sizes: &[usize; 3], factors: [isize; 3]) -> Field {
    let mut build = Builder::new();
    let position = build.position(0);
    let operand = FieldOperand { source: FieldSource::Position, place: StridedPlace::strided(0, factors) };
    Field {
        sizes: sizes.iter().copied().collect(),
        program: Arc::new(build.finish(position)),
        operands: vec![operand],
        names: None,
    }
}

fn scaled(build: &mut Builder, a: Register, share: f64) -> Register {
    if share == 1.0 {
        return a;
    }
    let kind = build.kind(a);
    let share_of = build.float(share, kind);
    // A factor of zero gives zero, even for NaN.
    if share == 0.0 { share_of } else { build.binary(BinaryOpcode::Mul, a, share_of) }
}
