//! Steps of recorded programs.

use crate::error::DimError;
use crate::expr::Expr;
use crate::expr::step::{ExprStep, OwnProgram};
use crate::plan::shape::Shape;
use crate::rank::{Rank, Rank0};
use crate::set::Dims;
use alloc::vec::Vec;
use kernels::memory::buffer::Buffer;
use kernels::scalar::Element;

pub(crate) use crate::expr::step::{Part, is_heard as is_active};
#[cfg(feature = "std")]
pub(crate) use own::*;

/// The program of an expression, if an operand is traced.
pub(crate) type Traced = Option<OwnProgram>;

/// The program of an expression that yields elements of the type `T`, if an operand is traced.
#[inline(always)]
#[track_caller]
pub(crate) fn traced<T: Element, U: Dims, R: Rank, E: Expr + ?Sized>(
    expr: &E,
    shape: &Shape,
) -> Result<Traced, DimError> {
    Ok(ExprStep::of::<T, U, R, E>(expr, shape)?.0)
}

/// Whether an operand of an expression that yields floats is traced.
#[inline]
#[track_caller]
pub(crate) fn is_traced<T: Element, U: Dims, E: Expr + ?Sized>(
    expr: &E,
    shape: &Shape,
) -> Result<bool, DimError> {
    Ok(traced::<T, U, Rank0, E>(expr, shape)?.is_some())
}

/// The traced values that were written to places of a result. Untraced values have no gradient and are not listed.
pub(crate) type PlacedParts = Vec<Part>;

/// Elements to whose places parts were written.
#[inline]
#[track_caller]
pub(crate) fn placed<T: Element>(data: Vec<T>, parts: PlacedParts) -> Buffer<T> {
    #[cfg(feature = "std")]
    if !parts.is_empty() {
        return node(data, kernels::trace::NodeStep::Parts(parts));
    }
    let _ = parts;
    data.into()
}

/// Steps with rules of their own.
#[cfg(feature = "std")]
mod own {
    use super::*;
    use crate::error::no_derivative;
    use crate::expr::step::finished;
    use alloc::boxed::Box;
    use alloc::string::String;
    use alloc::sync::Arc;
    use core::panic::Location;
    use kernels::loops::nest::Nest;
    use kernels::loops::rows::Rows;
    use kernels::memory::destination::Destination;
    use kernels::program::Register;
    use kernels::program::code::DType;
    use kernels::trace::record::Writer;
    use kernels::trace::{Field, Held, Node, NodeStep, Rule, StridedPlace};

    /// The field of an expression, which need not be traced, over the loops of a shape. What programs do not know is computed, along the loops `axes` as the expression
    /// varies along no others; it is an error if it is traced.
    #[track_caller]
    pub(crate) fn field<T: Element, U: Dims, E: Expr<Elem = T> + ?Sized>(
        expr: &E,
        shape: &Shape,
        axes: &[usize],
    ) -> Result<Field, DimError> {
        let mut rows = Rows::new(shape.sizes().len());
        expr.rows::<U, Rank0>(shape, &mut rows);
        // (Programs know constants and elements in memory: no kernel is instantiated to compute these.)
        let known = const { E::FACTS.factors == 0 || E::FACTS.memory.is_some() };
        if let Some(field) =
            field_of(DType::of::<T>(), shape.sizes(), &rows, known, &mut |writer| expr.write(writer))?
        {
            return Ok(field);
        }
        if const { E::FACTS.factors == 0 || E::FACTS.memory.is_some() } {
            unreachable!("programs know it");
        }
        let sizes = shape.sizes();
        let len = shape.volume(axes, size_of::<T>())?;
        let data = expr.collect(&Nest::map(sizes, axes, &rows), Destination::New(len))?;
        Ok(Field::held(sizes, &Buffer::from(data).held(), StridedPlace::contiguous(sizes, axes)))
    }

    /// The same for elements of any type; nothing where programs do not know the expression, and no gradient is lost if it is computed.
    #[track_caller]
    fn field_of<'w>(
        dtype: Option<DType>,
        sizes: &[usize],
        rows: &Rows,
        known: bool,
        write: &mut dyn FnMut(&mut Writer<'w>) -> Register,
    ) -> Result<Option<Field>, DimError> {
        let mut writer = Writer::new();
        let value = write(&mut writer);
        if let Some(operation) = writer.opaque_operation() {
            let is_lost = known || writer.is_traced() && dtype.is_some_and(DType::is_float);
            let names = || writer.names_of_variables();
            return if is_lost { Err(no_derivative(operation, &names())) } else { Ok(None) };
        }
        finished(writer.finish_any(value, sizes, rows)).map(Some)
    }

    /// A step whose pull-back is a function: of the value, its cotangent, whether the gradient is recorded, and which nodes are asked for.
    pub(crate) struct FunctionRule<F> {
        pub(crate) name: &'static str,
        pub(crate) operands: Vec<Field>,
        pub(crate) pull: F,
    }

    type PulledParts = Result<Vec<(Arc<Node>, Part)>, kernels::error::Error>;

    impl<F> Rule for FunctionRule<F>
    where
        F: Fn(&Arc<dyn Held>, &Arc<dyn Held>, bool, &dyn Fn(u64) -> bool) -> PulledParts + Send + Sync,
    {
        fn name(&self) -> &'static str {
            self.name
        }

        fn operands(&self) -> Vec<&Field> {
            self.operands.iter().collect()
        }

        fn take_operands(&mut self) -> Vec<Field> {
            core::mem::take(&mut self.operands)
        }

        fn pull(&self, value: &Arc<dyn Held>, cotangent: Arc<dyn Held>, recorded: bool) -> PulledParts {
            self.pull_by(value, cotangent, recorded, &|_| true)
        }

        fn pull_by(
            &self,
            value: &Arc<dyn Held>,
            cotangent: Arc<dyn Held>,
            recorded: bool,
            asked: &dyn Fn(u64) -> bool,
        ) -> PulledParts {
            (self.pull)(value, &cotangent, recorded, asked)
        }
    }

    /// The error of a user's function without a derivative, which depends on the variables of these names.
    #[cold]
    #[track_caller]
    pub(crate) fn underivable(operation: &'static str, remedy: &'static str, names: Vec<String>) -> DimError {
        crate::expr::step::underivable(operation, remedy, &names)
    }

    /// Elements that a step with a rule of its own computed.
    #[cold]
    #[track_caller]
    pub(crate) fn ruled<T: Element>(data: Vec<T>, rule: impl Rule + 'static) -> Buffer<T> {
        node(data, NodeStep::Rule(Box::new(rule)))
    }

    /// The same for what the backward pass computes, which has no place in the user's program.
    pub(crate) fn node_of<T: Element>(data: Vec<T>, rule: impl Rule + 'static) -> Buffer<T> {
        let dtype = DType::of::<T>().expect("only floats are recorded");
        let node = Node::new(dtype, data.len(), NodeStep::Rule(Box::new(rule)), None);
        Buffer::traced(data, node)
    }

    #[track_caller]
    pub(crate) fn node<T: Element>(data: Vec<T>, step: NodeStep) -> Buffer<T> {
        let dtype = DType::of::<T>().expect("only floats are recorded");
        let node = Node::new(dtype, data.len(), step, Some(Location::caller()));
        Buffer::traced(data, node)
    }
}
