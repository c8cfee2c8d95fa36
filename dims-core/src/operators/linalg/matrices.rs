//! Matrices along two dims of a tensor: the operands and results of linear-algebra steps.

use crate::creation::positions::each_looped_dim;
use crate::error::DimError;
use crate::execute::lines::arranged;
use crate::execute::step::execute;
use crate::expr::Expr;
use crate::expr::evaluate::evaluate_to_read;
use crate::plan::axes::AxisList;
use crate::plan::shape::Shape;
use crate::tensors::named::{Named, position};
use crate::tensors::tensor::{AsTensor, Computable};
use crate::types::brand::DimInfo;
use crate::types::rank::Rank;
use crate::types::set::{DimKey, Dims, Keys};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::panic::Location;
use kernels::loops::axes::{Order, Sizes};
use kernels::memory::buffer::Buffer;
use kernels::scalar::Element;
use kernels::step::linalg::{MatrixElement, MatrixSizes, MatrixStep, MatrixWork};
use kernels::step::{AnyBuffer, Executed, Step};

/// The real type for the elements of a tensor: the element type itself or, for complex elements,
/// the type of their parts.
pub(crate) type RealElem<A> = <<A as AsTensor>::Elem as MatrixElement>::Part;

/// The matrices of a tensor, stored contiguously: one for each position of the other dims.
pub(crate) struct MatrixBatch<T> {
    pub(crate) data: Buffer<T>,
    /// The axes of the batch in the memory order of results, with their sizes.
    pub(crate) batch: Vec<(BatchAxis, usize)>,
    pub(crate) rows: (DimKey, usize),
    pub(crate) columns: (DimKey, usize),
}

/// An axis of the batch.
#[derive(Clone, Copy)]
pub(crate) enum BatchAxis {
    Dim(DimKey),
    Positional(usize),
}

/// The axes in their order, with these two last.
fn with_last(all: &[usize], last: [usize; 2]) -> Order {
    all.iter().copied().filter(|axis| !last.contains(axis)).chain(last).collect()
}

/// The axes of the batch, and the two axes of the matrices, which are last in `order`. Each axis
/// comes with its size.
fn batch_of(
    order: &[usize],
    keys: &[DimKey],
    shape: &Shape,
) -> (Vec<(BatchAxis, usize)>, [(DimKey, usize); 2]) {
    let (batch, matrix) = order.split_at(order.len() - 2);
    let axis = |&at: &usize| match keys.get(at) {
        Some(&key) => (BatchAxis::Dim(key), shape.size(at)),
        None => (BatchAxis::Positional(at - keys.len()), shape.size(at)),
    };
    let matrix = [0, 1].map(|at| (keys[matrix[at]], shape.size(matrix[at])));
    (batch.iter().map(axis).collect(), matrix)
}

/// The axes of a result with the dims `keys`, in memory order, and their sizes. The axes are those
/// of the batch, then the `further` ones.
fn axes_of_result(batch: &[(BatchAxis, usize)], keys: &Keys, further: &[(DimKey, usize)]) -> (Order, Sizes) {
    let position = |key: &DimKey| keys.position(key).expect("the dim is one of the result's");
    let of_batch = batch.iter().map(|(axis, size)| match axis {
        BatchAxis::Dim(key) => (position(key), *size),
        BatchAxis::Positional(number) => (keys.as_slice().len() + number, *size),
    });
    of_batch.chain(further.iter().map(|(key, size)| (position(key), *size))).unzip()
}

impl<T: Element> MatrixBatch<T> {
    /// The matrices along two dims of a tensor.
    #[track_caller]
    pub(crate) fn of<A: Computable<Elem = T>>(
        tensor: A,
        rows: DimInfo<'_>,
        columns: DimInfo<'_>,
    ) -> Result<Self, DimError> {
        let tensor = tensor.into_named();
        let shape = tensor.unified_shape()?;
        shape.check_given(&rows)?;
        shape.check_given(&columns)?;
        let along = [rows, columns].map(|dim| position(&shape, dim));
        let all = AxisList::in_memory_of::<A::Dims, A::Rank>().as_slice();
        let order = with_last(all, along);
        let data = evaluate_to_read::<A::Dims, A::Rank, _>(tensor.expr, &shape, &order)?;
        let (batch, [rows, columns]) = batch_of(&order, A::Dims::KEYS.as_slice(), &shape);
        Ok(MatrixBatch { data, batch, rows, columns })
    }

    /// Like [`of`](Self::of), but the matrices must be square.
    #[track_caller]
    pub(crate) fn square<A: Computable<Elem = T>>(
        tensor: A,
        operation: &str,
        rows: DimInfo<'_>,
        columns: DimInfo<'_>,
    ) -> Result<Self, DimError> {
        let found = MatrixBatch::of(tensor, rows, columns)?;
        if found.rows.1 != found.columns.1 {
            let ((rows, height), (columns, width)) = (found.rows, found.columns);
            let what = format!(
                "`{operation}` of matrices that are not square: `{}` = {height}, `{}` = {width}",
                rows.name, columns.name
            );
            return Err(DimError::Shape { what });
        }
        Ok(found)
    }

    /// The number of matrices, and their size.
    pub(crate) fn sizes(&self) -> MatrixSizes {
        let batch = self.batch.iter().map(|own| own.1).product();
        MatrixSizes::of(batch, self.rows.1, self.columns.1)
    }

    /// Runs a step whose first operand is this batch.
    #[track_caller]
    pub(crate) fn execute(
        &mut self,
        step: &dyn Step,
        other: Option<&mut dyn AnyBuffer>,
    ) -> Result<Executed, DimError> {
        let mut operands: Vec<&mut dyn AnyBuffer> = vec![&mut self.data];
        operands.extend(other);
        match execute(step, &mut operands) {
            Err(DimError::Matrix { operation, derivative, failure, at, .. }) => {
                let place = self.place(at);
                Err(DimError::Matrix { operation, derivative, failure, at, place })
            }
            result => result,
        }
    }

    /// The position of a matrix in the batch, such as `b = 3, t = 7`. If a batched function is
    /// called once for each example, the position of the example comes first.
    #[cold]
    fn place(&self, mut at: usize) -> String {
        let mut parts: Vec<String> = Vec::new();
        for &(axis, size) in self.batch.iter().rev() {
            let name = match axis {
                BatchAxis::Dim(key) => key.name.to_string(),
                BatchAxis::Positional(number) => format!("positional axis {number}"),
            };
            parts.push(format!("{name} = {}", at % size.max(1)));
            at /= size.max(1);
        }
        each_looped_dim(|name, at| parts.push(format!("{name} = {at}")));
        parts.reverse();
        parts.join(", ")
    }

    /// A result with the dims `S`. The axes of `data` are those of the batch, then `further`, the
    /// axes of the result for one matrix.
    #[track_caller]
    pub(crate) fn result<U: Element, S: Dims, R: Rank>(
        &self,
        data: Buffer<U>,
        further: &[(DimKey, usize)],
    ) -> Result<Named<U, S, R>, DimError> {
        let (order, sizes) = axes_of_result(&self.batch, S::KEYS, further);
        arranged::<U, S, R>(data, &order, &sizes)
    }

    /// Runs a step whose result has the same dims as the matrices.
    #[track_caller]
    pub(crate) fn alike<S: Dims, R: Rank>(mut self, work: MatrixWork) -> Result<Named<T, S, R>, DimError>
    where
        T: MatrixElement,
    {
        let step = MatrixStep::<T>::new(work, self.sizes());
        let data = self.execute(&step, None)?.next::<T>();
        self.result(data, &[self.rows, self.columns])
    }

    /// Runs a step. Take its results one by one with [`next`](Executed::next).
    #[track_caller]
    pub(crate) fn run(&mut self, work: MatrixWork) -> Result<Executed, DimError>
    where
        T: MatrixElement,
    {
        let step = MatrixStep::<T>::new(work, self.sizes());
        self.execute(&step, None)
    }

    /// A new dim of a result. Its size is the number of rows or of columns, whichever is smaller.
    #[track_caller]
    pub(crate) fn least(&self, dim: DimInfo<'_>) -> Result<(DimKey, usize), DimError> {
        let size = self.rows.1.min(self.columns.1);
        dim.unify(size, Some(Location::caller()))?;
        Ok((dim.key(), size))
    }
}

/// The right-hand sides for a batch of matrices. Their dims are those of the batch, the dim of the
/// rows, and extra dims. Each position along the extra dims is one right-hand side.
pub(crate) struct RightSides<T> {
    pub(crate) data: Buffer<T>,
    /// The extra dims.
    pub(crate) further: Vec<(DimKey, usize)>,
}

impl<T: Element> RightSides<T> {
    /// Reads the right-hand sides from a tensor. `V` is the union of its dims and the batch's, and
    /// `R` the rank of the batch.
    #[track_caller]
    pub(crate) fn of<V: Dims, R: Rank, B: Computable<Elem = T>>(
        tensor: B,
        matrices: &MatrixBatch<T>,
    ) -> Result<Self, DimError> {
        let tensor = tensor.into_named();
        let mut shape = Shape::new::<V, R>();
        tensor.expr.unify::<V, R>(&mut shape)?;
        let (rows, height) = matrices.rows;
        let place = Some(Location::caller());
        let mut order: Order = Order::new();
        for (axis, size) in matrices.batch.iter().copied().chain([(BatchAxis::Dim(rows), height)]) {
            order.push(match axis {
                BatchAxis::Dim(key) => {
                    let at = shape.position(&key).expect("the set has all dims of the batch");
                    shape.unify(at, size, place)?;
                    at
                }
                BatchAxis::Positional(number) => {
                    shape.unify_positional(R::N - 1 - number, size)?;
                    shape.named_len() + number
                }
            });
        }
        shape.finish()?;
        let all = AxisList::in_memory_of::<V, R>().as_slice();
        let rest: Vec<usize> = all.iter().copied().filter(|axis| !order.contains(axis)).collect();
        order.extend(rest.iter().copied());
        let data = evaluate_to_read::<V, R, _>(&tensor.expr, &shape, &order)?;
        let keys = V::KEYS.as_slice();
        Ok(RightSides { data, further: rest.into_iter().map(|at| (keys[at], shape.size(at))).collect() })
    }

    /// The number of right-hand sides for each matrix.
    pub(crate) fn columns(&self) -> usize {
        self.further.iter().map(|own| own.1).product()
    }
}
