//! Jacobians and Hessians with respect to several tensors: one block for each tensor, or for each
//! pair of tensors.

use crate::error::DimError;
use crate::grad::inputs::Inputs;
use crate::grad::jacobian_dims::{JacobianDims, JacobianOf, OncePerDim, OncePerDimOfHessian};
use crate::grad::parameters::{DerivedParameters, Parameters, Path, Visitor, Walk, is_learned};
use crate::grad::variables::{Detached, Elements, Variables};
use crate::operators::nn::linear::{Linear, Projection};
use crate::plan::shape::volume;
use crate::storage::{Evaluated, View};
use crate::tensors::named::Named;
use crate::types::dim::DimList;
use crate::types::rank::{Rank, Rank0};
use crate::types::set::{Dims, MaybeDim, NoDim, Nothing, Union};
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::any::type_name;
use core::marker::PhantomData;
use kernels::memory::buffer::Buffer;
use kernels::program::code::DType;
use kernels::scalar::{Element, Real};
use kernels::trace::{Field, Part, StridedPlace, evaluate, gradients};
use smallvec::SmallVec;
use twins::panicking_twin;

/// Inputs with respect to which a Jacobian is taken, for an output with elements of `T` and the
/// dims `O`.
///
/// | inputs | Jacobian |
/// |---|---|
/// | `&Tensor<T, S>` | `Tensor<T, (O.., S..)>`, with the [prime](crate::types::prime) of each dim of `S` that is in `O` |
/// | a tuple of up to 12 inputs | a tuple of their Jacobians |
/// | a reference to a struct with `#[derive(Parameters)]`, to a `Linear` or `Projection`, or to a `Vec`, an `Option`, an array or a tuple of parameters | [`JacobianBlocks`] |
#[diagnostic::on_unimplemented(
    message = "no Jacobian with respect to `{Self}`",
    label = "expected a reference to an owned tensor of `{T}`, to a struct with `#[derive(Parameters)]`, or a tuple of up to 12 such references: `&w`, `(&w, &b)`",
    note = "the output and the inputs have the same element type; compute an expression first, `&x.eval()`; pass a number as a tensor without dims, `&full((), x)`"
)]
pub trait JacobianInputs<T: Real, O: Dims>: Inputs {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The Jacobian.
    type Jacobian;
    /// The first dim that a block would have twice, or [`Nothing`].
    #[doc(hidden)]
    type Twice: MaybeDim;
    #[doc(hidden)]
    fn blocks(value: &Self::Value, computed: &mut ComputedBlocks<'_, T>) -> Result<Self::Jacobian, DimError>;
}

/// Inputs with respect to which a Hessian is taken, for a loss with elements of `E`.
///
/// | inputs | Hessian |
/// |---|---|
/// | `&Tensor<T, S>` | `Tensor<T, (S.., Prime<S>..)>` |
/// | a tuple of up to 12 references to tensors | a tuple with a row for each tensor; each row is a tuple of blocks |
/// | a reference to a struct with `#[derive(Parameters)]`, to a `Linear` or `Projection`, or to a `Vec`, an `Option`, an array or a tuple of parameters | [`HessianBlocks`] |
#[diagnostic::on_unimplemented(
    message = "no Hessian with respect to `{Self}`",
    label = "expected a reference to an owned tensor, to a struct with `#[derive(Parameters)]`, or a tuple of up to 12 references to tensors: `&w`, `(&w, &b)`",
    note = "compute an expression first, `&x.eval()`; pass a number as a tensor without dims, `&full((), x)`"
)]
pub trait HessianInputs<E>: Inputs {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The element type of the Hessian.
    #[doc(hidden)]
    type Elem: Real;
    /// The Hessian.
    type Hessian;
    /// The first dim that a block would have twice, or [`Nothing`].
    #[doc(hidden)]
    type Twice: MaybeDim;
    #[doc(hidden)]
    fn blocks(value: &Self::Value, rows: &mut ComputedRows<Self::Elem>) -> Result<Self::Hessian, DimError>;
}

/// The elements of blocks that belong to one output, in the order of the parameters.
pub struct ComputedBlocks<'c, T> {
    /// The sizes of the output.
    output: &'c [usize],
    blocks: alloc::vec::IntoIter<Buffer<T>>,
}

impl<'c, T> ComputedBlocks<'c, T> {
    pub(super) fn new(output: &'c [usize], blocks: Vec<Buffer<T>>) -> Self {
        ComputedBlocks { output, blocks: blocks.into_iter() }
    }

    fn next(&mut self) -> Buffer<T> {
        self.blocks.next().expect("there is a block for each parameter")
    }
}

/// The rows of a Hessian: for each parameter, its sizes and the elements of the blocks of its row.
pub struct ComputedRows<T>(pub(super) alloc::vec::IntoIter<(Vec<usize>, Vec<Buffer<T>>)>);

impl<T> ComputedRows<T> {
    fn next(&mut self) -> (Vec<usize>, Vec<Buffer<T>>) {
        self.0.next().expect("there is a row for each parameter")
    }
}

/// The Jacobian of an output with the sizes `output` with respect to the tensor `by`.
fn block<T: Real, S: Dims, O: JacobianOf<S>>(
    output: &[usize],
    by: &Named<T, S>,
    data: Buffer<T>,
) -> Result<Named<T, JacobianDims<O, S>>, DimError> {
    let input = by.unified_shape()?;
    // The result is stored with the output's dims first, then the input's, each in the order of its
    // set.
    let columns = S::KEYS.as_slice().iter().map(|key| match O::KEYS.position(key) {
        Some(_) => key.primed(key.name),
        None => *key,
    });
    let all = O::KEYS.as_slice().iter().copied().chain(columns);
    let place = |key| JacobianDims::<O, S>::KEYS.position(&key).expect("the dim is one of the Jacobian's");
    let order: SmallVec<[usize; 8]> = all.map(place).collect();
    let sizes: SmallVec<[usize; 8]> = output.iter().chain(input.sizes()).copied().collect();
    let axis_of = |at| order.iter().position(|&axis| axis == at).expect("each axis is in the order");
    JacobianDims::<O, S>::KEYS.check_primes(|at| (sizes[axis_of(at)], None))?;
    Ok(Named::from_expr(Evaluated::in_order(data, &order, &sizes)))
}

macro_rules! tensors {
    ($(($($life:lifetime)?) $tensor:ty;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<$($life,)? T: Real, S: Dims, O: JacobianOf<S>> JacobianInputs<T, O> for $tensor {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Jacobian = Named<T, JacobianDims<O, S>>;
            type Twice = O::Twice;

            fn blocks(value: &Named<T, S>, computed: &mut ComputedBlocks<'_, T>) -> Result<Self::Jacobian, DimError> {
                let data = computed.next();
                block::<T, S, O>(computed.output, value, data)
            }
        }

        #[diagnostic::do_not_recommend]
        impl<$($life,)? T: Real, S: JacobianOf<S>, E> HessianInputs<E> for $tensor {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Elem = T;
            type Hessian = Named<T, JacobianDims<S, S>>;
            type Twice = S::Twice;

            fn blocks(value: &Named<T, S>, rows: &mut ComputedRows<T>) -> Result<Self::Hessian, DimError> {
                let (output, blocks) = rows.next();
                block::<T, S, S>(&output, value, ComputedBlocks::new(&output, blocks).next())
            }
        }

        #[diagnostic::do_not_recommend]
        impl<$($life,)? T: Real, S: Dims> RowInput<T> for $tensor {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Dims = S;
        }
    )*};
}

tensors! {
    ('a) &'a Named<T, S>;
    ('a) &'a mut Named<T, S>;
    ('a) Named<T, S, Rank0, View<'a, T, S, Rank0>>;
}

/// A tensor in a tuple with respect to which a Hessian is taken.
#[diagnostic::on_unimplemented(
    message = "no Hessian with respect to a tuple with `{Self}`",
    label = "expected a reference to an owned tensor of `{T}` in each place of the tuple",
    note = "for a struct, pass a reference to it alone: `&network`"
)]
pub trait RowInput<T> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The dims of the tensor.
    type Dims: Dims;
}

macro_rules! first_twice {
    ($a:ty) => { $a };
    ($a:ty, $($later:ty),+) => { <$a as MaybeDim>::Or<first_twice!($($later),+)> };
}

macro_rules! tuples {
    ($($p:ident $n:tt)*) => {
        #[diagnostic::do_not_recommend]
        impl<T: Real, O: Dims, $($p: JacobianInputs<T, O>),*> JacobianInputs<T, O> for ($($p,)*) {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Jacobian = ($($p::Jacobian,)*);
            type Twice = first_twice!($($p::Twice),*);

            fn blocks(value: &Self::Value, computed: &mut ComputedBlocks<'_, T>) -> Result<Self::Jacobian, DimError> {
                Ok(($($p::blocks(&value.$n, computed)?,)*))
            }
        }

        #[diagnostic::do_not_recommend]
        impl<T: Real, $($p: Inputs + RowInput<T>),*> HessianInputs<T> for ($($p,)*)
        where
            $(Self: JacobianInputs<T, $p::Dims>,)*
        {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Elem = T;
            type Hessian = ($(<Self as JacobianInputs<T, $p::Dims>>::Jacobian,)*);
            type Twice = first_twice!($(<Self as JacobianInputs<T, $p::Dims>>::Twice),*);

            fn blocks(value: &Self::Value, rows: &mut ComputedRows<T>) -> Result<Self::Hessian, DimError> {
                Ok(($({
                    let (output, blocks) = rows.next();
                    let row = &mut ComputedBlocks::new(&output, blocks);
                    <Self as JacobianInputs<T, $p::Dims>>::blocks(value, row)?
                },)*))
            }
        }
    };
}

crate::types::tuples::each_tuple_of_inputs!(tuples);

macro_rules! parameters {
    ($([$($generics:tt)*] $of:ty;)*) => {$(
        parameters! { one ['a, $($generics)*] &'a $of, $of; }
        parameters! { one ['a, $($generics)*] &'a mut $of, $of; }
    )*};
    (one [$($generics:tt)*] $reference:ty, $of:ty;) => {
        #[diagnostic::do_not_recommend]
        impl<$($generics)*, T: Real, O: Dims> JacobianInputs<T, O> for $reference {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Jacobian = JacobianBlocks<$of, T, O>;
            type Twice = Nothing;

            fn blocks(value: &$of, computed: &mut ComputedBlocks<'_, T>) -> Result<Self::Jacobian, DimError> {
                let parameters = <$of as Parameters>::walk([value], &mut Path::new(), &mut Detached::all())?;
                let blocks = (0..learned(&parameters)).map(|_| computed.next()).collect();
                let output = computed.output.into();
                Ok(JacobianBlocks { parameters, output, blocks, marker: PhantomData })
            }
        }

        #[diagnostic::do_not_recommend]
        impl<$($generics)*, T: Real> HessianInputs<T> for $reference {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Elem = T;
            type Hessian = HessianBlocks<$of, T>;
            type Twice = Nothing;

            fn blocks(value: &$of, rows: &mut ComputedRows<T>) -> Result<Self::Hessian, DimError> {
                let parameters = <$of as Parameters>::walk([value], &mut Path::new(), &mut Detached::all())?;
                let rows = (0..learned(&parameters)).map(|_| rows.next()).collect();
                Ok(HessianBlocks { parameters, rows })
            }
        }
    };
}

parameters! {
    [P: DerivedParameters] P;
    [P: Parameters] Vec<P>;
    [P: Parameters, const N: usize] [P; N];
    [P: Parameters] Option<P>;
    [I: Dims + DimList, U: Dims + Union<I>, E: Element] Linear<I, U, E>;
    [I: Dims + DimList, U: Dims + Union<I>, E: Element] Projection<I, U, E>;
}

macro_rules! tuples_of_parameters {
    ($($p:ident $n:tt)*) => { parameters! { [$($p: Parameters),*] ($($p,)*); } };
}

crate::types::tuples::each_tuple_of_inputs!(tuples_of_parameters);

/// The Jacobian of an output with the dims `O` with respect to the parameters `P`: one block for
/// each tensor of floats.
///
/// ```
/// use typed_dims::grad::jacobian;
/// use typed_dims::prelude::*;
///
/// dims! { pub struct In; pub struct Out; }
///
/// #[derive(Parameters)]
/// struct Layer {
///     weight: Tensor<f64, (In, Out)>,
///     bias: Tensor<f64, (Out,)>,
/// }
///
/// let x = from_vec(In.of(2), vec![3.0, 5.0]);
/// let layer = Layer { weight: ones((In.of(2), Out.of(2))), bias: zeros(Out.of(2)) };
/// let j = jacobian(|layer: &Layer| ((&x * &layer.weight).sum(In) + &layer.bias).eval(), &layer);
/// let by_weight: Tensor<f64, (Out, Prime<Out>, In)> = j.by(|layer| &layer.weight);
/// assert_eq!(by_weight.order((Out, prime(Out), In))[[1, 1, 0]], 3.0);
/// let by_bias: Tensor<f64, (Out, Prime<Out>)> = j.by(|layer| &layer.bias);
/// assert_eq!(by_bias.order((Out, prime(Out))), ndarray::array![[1.0, 0.0], [0.0, 1.0]]);
/// ```
pub struct JacobianBlocks<P, T, O> {
    parameters: P,
    output: Box<[usize]>,
    blocks: Vec<Buffer<T>>,
    marker: PhantomData<fn() -> O>,
}

impl<P: Parameters, T: Real, O: Dims> JacobianBlocks<P, T, O> {
    /// The derivatives with respect to the tensor that the closure returns. It must be a part of
    /// the closure's argument: `j.by(|network| &network.layers[0].weight)`.
    ///
    /// # Errors
    ///
    /// If the closure returns a tensor that is not a part of its argument, or is a constant in it.
    #[panicking_twin]
    pub fn try_by<S: Dims>(
        &self,
        parameter: impl FnOnce(&P) -> &Named<T, S>,
    ) -> Result<Named<T, JacobianDims<O, S>>, DimError>
    where
        O: JacobianOf<S>,
        NoDim<O::Twice>: OncePerDim<O::Twice>,
    {
        let tensor = parameter(&self.parameters);
        let at = number_of(&self.parameters, tensor)?;
        block::<T, S, O>(&self.output, tensor, self.blocks[at].clone())
    }

    /// The names of the tensors of floats.
    pub fn names(&self) -> Vec<String> {
        names(&self.parameters)
    }
}

/// The Hessian with respect to the parameters `P`: one block for each pair of tensors of floats.
///
/// ```
/// use typed_dims::grad::hessian_primed;
/// use typed_dims::prelude::*;
///
/// dims! { pub struct In; }
///
/// #[derive(Parameters)]
/// struct Line {
///     slope: Tensor<f64, (In,)>,
///     offset: Tensor<f64, ()>,
/// }
///
/// let line = Line { slope: from_vec(In.of(2), vec![1.0, 2.0]), offset: full((), 3.0) };
/// let h = hessian_primed(|line: &Line| ((&line.slope).square() * &line.offset).sum(In), &line);
/// let slopes: Tensor<f64, (In, Prime<In>)> = h.by(|line| &line.slope, |line| &line.slope);
/// assert_eq!(slopes.order((In, prime(In))), ndarray::array![[6.0, 0.0], [0.0, 6.0]]);
/// let mixed: Tensor<f64, (In,)> = h.by(|line| &line.offset, |line| &line.slope);
/// assert_eq!(mixed.order(In), ndarray::array![2.0, 4.0]);
/// ```
pub struct HessianBlocks<P, T> {
    parameters: P,
    /// For each parameter, its sizes and the blocks of its row.
    rows: Vec<(Vec<usize>, Vec<Buffer<T>>)>,
}

impl<P: Parameters, T: Real> HessianBlocks<P, T> {
    /// The second derivatives with respect to the two tensors that the closures return:
    /// `out[r, c] = d^2 f / d row[r] d column[c]`. Each tensor must be a part of its closure's
    /// argument. A dim `N` that both tensors have is `Prime<N>` for the column.
    ///
    /// # Errors
    ///
    /// If a closure returns a tensor that is not a part of its argument, or is a constant in it.
    #[panicking_twin]
    pub fn try_by<R: JacobianOf<C>, C: Dims>(
        &self,
        row: impl FnOnce(&P) -> &Named<T, R>,
        column: impl FnOnce(&P) -> &Named<T, C>,
    ) -> Result<Named<T, JacobianDims<R, C>>, DimError>
    where
        NoDim<R::Twice>: OncePerDimOfHessian<R::Twice>,
    {
        let row = number_of(&self.parameters, row(&self.parameters))?;
        let column = column(&self.parameters);
        let at = number_of(&self.parameters, column)?;
        let (output, blocks) = &self.rows[row];
        block::<T, C, R>(output, column, blocks[at].clone())
    }

    /// The names of the tensors of floats.
    pub fn names(&self) -> Vec<String> {
        names(&self.parameters)
    }
}

/// Looks for a learned tensor of a value by its address, and collects the names of all learned
/// tensors.
struct Learned {
    address: *const (),
    names: Vec<String>,
    found: Option<usize>,
}

impl Visitor<0, 1> for Learned {
    type Error = DimError;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        _: [&mut Named<T, S, R>; 0],
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<(), DimError> {
        if is_learned::<T>() {
            if core::ptr::from_ref(tensor).cast() == self.address {
                self.found = Some(self.names.len());
            }
            self.names.push(path.to_string());
        }
        Ok(())
    }
}

fn search<P: Parameters>(parameters: &P, address: *const ()) -> Learned {
    let mut all = Learned { address, names: Vec::new(), found: None };
    // The visitor returns no error.
    let _ = P::visit([], [parameters], &mut Path::new(), &mut all);
    all
}

/// The number of learned tensors.
fn learned<P: Parameters>(parameters: &P) -> usize {
    search(parameters, core::ptr::null()).names.len()
}

fn names<P: Parameters>(parameters: &P) -> Vec<String> {
    search(parameters, core::ptr::null()).names
}

/// The index of a tensor among the learned ones.
fn number_of<P: Parameters, T, S: Dims>(parameters: &P, tensor: &Named<T, S>) -> Result<usize, DimError> {
    let all = search(parameters, core::ptr::from_ref(tensor).cast());
    all.found.ok_or_else(|| {
        let names: Vec<String> = all.names.iter().map(|name| format!("`{name}`")).collect();
        let what = format!(
            "the derivatives are with respect to {}: the closure must return one of these",
            names.join(", ")
        );
        DimError::Shape { what }
    })
}

/// The name and the number of elements of each parameter.
pub(super) struct ParameterColumns<'o> {
    pub(super) names: Vec<String>,
    lens: Vec<usize>,
    /// The number of elements of the output.
    rows: usize,
    dtype: DType,
    /// The name of the output's element type.
    elements: &'static str,
    /// Describes the sizes of the output in errors.
    output: &'o dyn Fn() -> String,
}

impl<'o> ParameterColumns<'o> {
    pub(super) fn new<T: Real>(rows: usize, output: &'o dyn Fn() -> String) -> Self {
        let dtype = DType::of::<T>().expect("each float type has a `DType`");
        ParameterColumns {
            names: Vec::new(),
            lens: Vec::new(),
            rows,
            dtype,
            elements: type_name::<T>(),
            output,
        }
    }
}

impl Walk<1> for ParameterColumns<'_> {
    type Error = DimError;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<Named<T, S, R>, DimError> {
        if !is_learned::<T>() {
            return Ok(tensor.clone());
        }
        if DType::of::<T>() != Some(self.dtype) {
            let what = format!(
                "`{path}` has elements of the type `{}`, but those of the output are `{}`: cast the output, or \
                 differentiate with respect to parameters of one type",
                type_name::<T>(),
                self.elements
            );
            return Err(DimError::Shape { what });
        }
        let shape = tensor.unified_shape()?;
        let columns = shape.volume(&shape.all_axes(), 1)?;
        if volume([self.rows, columns].into_iter(), size_of::<T>()).is_none() {
            let dims = format!("{} and {}", (self.output)(), shape.describe(&shape.all_axes()));
            return Err(DimError::TooLarge { dims });
        }
        self.names.push(path.to_string());
        self.lens.push(columns);
        Ok(tensor.clone())
    }
}

/// The block of each parameter, with a row of derivatives for each element of the output.
pub(super) fn rows_of<T: Real>(
    output: &Elements,
    variables: &Variables,
    columns: &ParameterColumns<'_>,
) -> Result<Vec<Buffer<T>>, DimError> {
    let mut parts: Vec<Vec<Part>> =
        variables.nodes.iter().map(|_| Vec::with_capacity(columns.rows)).collect();
    for row in 0..columns.rows {
        let mut cotangent = alloc::vec![T::ZERO; output.held.len()];
        cotangent[output.at(row)] = T::ONE;
        let outputs = vec![(output.held.clone(), Buffer::from(cotangent).held())];
        let mut found = gradients(outputs, &variables.nodes, &[&variables.call], false)?;
        for (at, (node, from)) in variables.nodes.iter().zip(&variables.elements).enumerate() {
            let Some(gradient) = found.take(node) else { continue };
            let field = Field::held(from.sizes(), &gradient, from.place().clone());
            let all: SmallVec<[usize; 8]> = (0..from.sizes().len()).collect();
            let mut place = StridedPlace::contiguous(from.sizes(), &all);
            place.offset = (row * columns.lens[at]) as isize;
            parts[at].push(Part { field, place });
        }
    }
    let computed = parts.iter().zip(&columns.lens).map(|(parts, len)| {
        let data = evaluate(parts, columns.rows * len, columns.dtype, true)?;
        Ok(Buffer::of_held(&data).expect("the derivatives are of the type of the tensor"))
    });
    computed.collect()
}
