//! Contractions of a stream with a constant or another stream: sums of products along a dim that
//! both have.

use super::Stream;
use super::axes::IsData;
use super::ledger::{CostClass, LedgerEntry, StreamShape, note};
use crate::error::DimError;
use crate::execute::reduce;
use crate::expr::{Binary, Expr};
use crate::laid::{Laid, Memory};
use crate::plan::shape::Shape;
use crate::storage::View;
use crate::tensors::named::Named;
use crate::tensors::tensor::AsTensor;
use crate::types::brand::Brand;
use crate::types::condition::condition;
use crate::types::dim::DimRef;
use crate::types::rank::Rank0;
use crate::types::set::Bool;
use crate::types::set::list::{List, NestedPairs};
use crate::types::set::ordered::{DividesInto, Is, Minus, Replaced};
use crate::types::set::{Bound, Dims, False, Satisfies, SetOf, True};
use core::marker::PhantomData;
use kernels::ops;
use kernels::scalar::{Element, Num};
use twins::panicking_twin;

impl<T: Element, L: Dims, D: Brand> Stream<T, L, D> {
    /// The sum of products with a constant along the data dimension `axis`, which the constant must
    /// have too. The constant must have exactly one dim that the stream lacks. That dim replaces
    /// `axis`, and is the data dimension of the result. All other shared dims are batched over.
    ///
    /// ```text
    /// [b i j] @ [b j! k] -> [b i! k]
    ///
    /// out[b, i, k] = sum over j of weight[b, i, j] * x[b, j, k]
    /// ```
    ///
    /// There are no left and right versions, because dims have names. A constant is any tensor:
    /// weights, or an expression such as `&w * 0.5`. To contract another dim, or with another
    /// stream, see [`allow_dynamic_weights`](Stream::allow_dynamic_weights).
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { pub struct Time; pub struct Input; pub struct Output; }
    /// let x = from_vec((Time.of(1), Input.of(2)), vec![3.0, 4.0]).stream((Time, Input), Input);
    /// let weight = from_vec((Input.of(2), Output.of(2)), vec![1.0, 0.0, 10.0, 1.0]);
    /// let y: Stream<f64, (Time, Output), Output> = x.contract(&weight, Input);
    /// assert_eq!(y.to_array(), ndarray::array![[43.0, 4.0]]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the operands have different sizes for a dim, a size given with `axis` is not its size, or
    /// the result does not fit into memory.
    #[panicking_twin]
    pub fn try_contract<W: StreamConstant<T>, J: ContractedBy<L, D, W::Given>>(
        &self,
        constant: W,
        axis: J,
    ) -> Result<Stream<T, J::Axes, J::Data>, DimError>
    where
        T: Num,
    {
        self.contracted(constant, axis)
    }

    /// Opts in to contractions that need *dynamic weights*: those of a dim that is not the data
    /// dimension, and those of two streams. They can take longer and need more tensor RAM.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { pub struct Seq; pub struct Key; pub struct Feat; }
    /// let query = from_vec((Seq.of(1), Feat.of(2)), vec![3, 4]).stream((Seq, Feat), Seq);
    /// let keys = from_vec((Key.of(2), Feat.of(2)), vec![1, 0, 1, 1]).stream((Key, Feat), Feat);
    /// let scores: Stream<i32, (Seq, Key), Seq> = query.allow_dynamic_weights().contract(&keys, Feat);
    /// assert_eq!(scores.to_array(), ndarray::array![[3, 7]]);
    /// ```
    pub fn allow_dynamic_weights(&self) -> DynamicWeights<'_, T, L, D> {
        DynamicWeights(self)
    }

    fn contracted<K, W: Multiplier<T>, J: ContractedBy<L, D, K>>(
        &self,
        other: W,
        axis: J,
    ) -> Result<Stream<T, J::Axes, J::Data>, DimError>
    where
        T: Num,
    {
        self.check_given(&axis)?;
        let shape = other.multiplier_shape()?;
        let product = Binary { op: ops::Mul, a: self.in_memory().expr, b: other.into_multiplier() };
        let out = reduce::sum::<Named<T, J::Loops, Rank0, _>, J, J::Axes>(&product)?;
        let out = Stream::evaluate(out)?;
        let dynamic_weights = J::DYNAMIC;
        note(|| LedgerEntry {
            operation: format!("contract({})", axis.info().name),
            operands: vec![self.shape(), shape],
            result: out.shape(),
            cost: if dynamic_weights { CostClass::Slower } else { CostClass::Compute },
            dynamic_weights,
        });
        Ok(out)
    }
}

/// A stream whose contractions may need dynamic weights: see
/// [`allow_dynamic_weights`](Stream::allow_dynamic_weights).
pub struct DynamicWeights<'a, T, L, D>(&'a Stream<T, L, D>);

impl<T: Element, L: Dims, D: Brand> DynamicWeights<'_, T, L, D> {
    /// The sum of products with a constant or another stream along `axis`, which both operands must
    /// have. All other shared dims are batched over. The result has the axes of this stream, with
    /// `axis` replaced by the dims that only the other operand has.
    ///
    /// With a constant, the data dimension is kept, unless `axis` is the data dimension. In that
    /// case, the result is that of [`Stream::contract`].
    ///
    /// ```text
    /// [b i j] @ [b j k!] -> [b i k!]
    /// ```
    ///
    /// With another stream, `axis` must be the data dimension of exactly one of the two streams.
    /// The result has the data dimension of the other one:
    ///
    /// ```text
    /// [i! j] @ [j! k] -> [i! k]
    /// [b! i j] @ [b j! k] -> [b! i k]
    /// ```
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { pub struct Time; pub struct Input; pub struct Output; }
    /// let x = from_vec((Time.of(1), Input.of(2)), vec![3.0, 4.0]).stream((Time, Input), Time);
    /// let weight = from_vec((Input.of(2), Output.of(2)), vec![1.0, 0.0, 10.0, 1.0]);
    /// let y: Stream<f64, (Time, Output), Time> = x.allow_dynamic_weights().contract(&weight, Input);
    /// assert_eq!(y.to_array(), ndarray::array![[43.0, 4.0]]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the operands have different sizes for a dim, a size given with `axis` is not its size, or
    /// the result does not fit into memory.
    #[panicking_twin]
    pub fn try_contract<W: Multiplier<T>, J: ContractedBy<L, D, W::Kind>>(
        &self,
        other: W,
        axis: J,
    ) -> Result<Stream<T, J::Axes, J::Data>, DimError>
    where
        T: Num,
    {
        self.0.contracted(other, axis)
    }
}

/// A constant for the hardware, such as weights: a tensor. A stream is not a constant.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a constant of `{T}`",
    label = "a tensor of `{T}` is expected here: weights, or another constant",
    note = "contract two streams with dynamic weights: `x.allow_dynamic_weights().contract(&y, dim)`"
)]
pub trait StreamConstant<T>: Multiplier<T> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// [`ConstantOf`] with the dims of the constant. Contractions that need dynamic weights are
    /// rejected.
    type Given;
}

/// A multiplier of a stream with [dynamic weights](Stream::allow_dynamic_weights): a constant, or a
/// reference to another stream.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a constant of `{T}` nor a reference to a stream of it",
    label = "expected `&y` for a stream `y`, or a tensor"
)]
pub trait Multiplier<T> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// [`ConstantOf`] or [`StreamOf`].
    type Kind;
    /// The elements.
    type Expr: Expr<Elem = T>;
    /// The axes with their sizes.
    #[doc(hidden)]
    fn multiplier_shape(&self) -> Result<StreamShape, DimError>;
    /// The elements.
    #[doc(hidden)]
    fn into_multiplier(self) -> Self::Expr;
}

/// A constant with the dims `W`. `A` says whether contractions that need dynamic weights are
/// accepted.
pub struct ConstantOf<W, A = False>(PhantomData<(W, A)>);

/// A stream with the axes `M` and the data dimension `E`.
pub struct StreamOf<M, E>(PhantomData<(M, E)>);

macro_rules! constants {
    ($([$($params:tt)*] $constant:ty, $set:ty;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<$($params)*> StreamConstant<T> for $constant {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Given = ConstantOf<$set, False>;
        }

        #[diagnostic::do_not_recommend]
        impl<$($params)*> Multiplier<T> for $constant {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Kind = ConstantOf<$set, True>;
            type Expr = <Self as AsTensor>::Expr;

            fn multiplier_shape(&self) -> Result<StreamShape, DimError> {
                let mut shape = Shape::new::<$set, Rank0>();
                self.unify(&mut shape)?;
                let names = <$set>::KEYS.as_slice().iter().map(|key| key.name);
                Ok(StreamShape { axes: names.zip(shape.sizes().iter().copied()).collect(), data: None })
            }

            fn into_multiplier(self) -> Self::Expr {
                self.into_named().expr
            }
        }
    )*};
}

constants! {
    [T: Element, S: Dims, E: Expr<Elem = T>] Named<T, S, Rank0, E>, S;
    ['a, T: Element, S: Dims, E: Expr<Elem = T>] &'a Named<T, S, Rank0, E>, S;
    [T: Element, O: SetOf + Dims, M: Memory<Elem = T>] Laid<T, O, M>, O::Set;
    ['a, T: Element, O: SetOf + Dims, M: Memory<Elem = T>] &'a Laid<T, O, M>, O::Set;
}

#[diagnostic::do_not_recommend]
impl<'a, T: Element, L: Dims, D: Brand> Multiplier<T> for &'a Stream<T, L, D> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Kind = StreamOf<L, D>;
    type Expr = View<'a, T, L>;

    fn multiplier_shape(&self) -> Result<StreamShape, DimError> {
        Ok(self.shape())
    }

    fn into_multiplier(self) -> View<'a, T, L> {
        self.in_memory().expr
    }
}

/// The dims of `W` that are not in `L`.
type OwnDims<W, L> = <<W as Dims>::List as Minus<<L as Dims>::List>>::Out;

/// Whether exactly one dim of `W` is not in `L`.
type OneOwn<W, L> = <OwnDims<W, L> as NestedPairs>::IsOne;

/// A dim along which a stream with the axes `L` and the data dimension `D` can be contracted with
/// an operand of the kind `K`, which is [`ConstantOf`] or [`StreamOf`].
pub trait ContractedBy<L, D, K>: DimRef {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The axes afterwards.
    type Axes: Dims;
    /// The data dimension afterwards.
    type Data: Brand;
    /// The axes of both operands.
    #[doc(hidden)]
    type Loops: Dims;
    /// Whether the contraction needs dynamic weights.
    #[doc(hidden)]
    const DYNAMIC: bool;
}

impl<J, L, D, W, A> ContractedBy<L, D, ConstantOf<W, A>> for J
where
    J: DimRef<Brand: Satisfies<Is<D>>>,
    D: Brand,
    W: Dims<List: Minus<L::List> + DividesInto<J::Brand, (), Holds: Bound<J::Brand, W>>>,
    L: Dims<
        List: DividesInto<J::Brand, (), Holds: Bound<J::Brand, L>> + DividesInto<J::Brand, OwnDims<W, L>>,
    >,
    <OwnDims<W, L> as NestedPairs>::OnlyOr<D>: Brand,
    A: Bool,
    A::Or<<InBoth<L, W, J> as Bool>::Implies<IsData<J, D>>>: AlongTheData<J::Brand, D, L>,
    <<InBoth<L, W, J> as Bool>::And<IsData<J, D>> as Bool>::Implies<OneOwn<W, L>>: ReplacesData<W, L>,
    (J::Brand, Replaced<L, J, OwnDims<W, L>>): List,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Axes = <Replaced<L, J, OwnDims<W, L>> as List>::Tuple;
    type Data = <IsData<J, D> as Bool>::Pick<<OwnDims<W, L> as NestedPairs>::OnlyOr<D>, D>;
    type Loops = <(J::Brand, Replaced<L, J, OwnDims<W, L>>) as List>::Tuple;
    const DYNAMIC: bool = !<IsData<J, D> as Bool>::VALUE;
}

impl<J, L, D, M, E> ContractedBy<L, D, StreamOf<M, E>> for J
where
    J: DimRef<Brand: Satisfies<Is<D>> + Satisfies<Is<E>>>,
    D: Brand,
    E: Brand,
    M: Dims<List: Minus<L::List> + DividesInto<J::Brand, (), Holds: Bound<J::Brand, M>>>,
    L: Dims<
        List: DividesInto<J::Brand, (), Holds: Bound<J::Brand, L>> + DividesInto<J::Brand, OwnDims<M, L>>,
    >,
    <InBoth<L, M, J> as Bool>::Implies<<IsData<J, D> as Bool>::Differs<IsData<J, E>>>:
        DataOfOneSide<J::Brand, D, E>,
    (J::Brand, Replaced<L, J, OwnDims<M, L>>): List,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Axes = <Replaced<L, J, OwnDims<M, L>> as List>::Tuple;
    type Data = <IsData<J, D> as Bool>::Pick<E, D>;
    type Loops = <(J::Brand, Replaced<L, J, OwnDims<M, L>>) as List>::Tuple;
    const DYNAMIC: bool = true;
}

/// Whether both operands have the dim `J`. If not, no other mistake is reported.
type InBoth<L, W, J> = <<<L as Dims>::List as DividesInto<<J as DimRef>::Brand, ()>>::Holds as Bool>::And<
    <<W as Dims>::List as DividesInto<<J as DimRef>::Brand, ()>>::Holds,
>;

condition! {
    /// The condition that the dim `J` is the data dimension `D` of a stream of `L`.
    #[diagnostic::on_unimplemented(
        message = "`{J}` is not the data dimension of this stream of `{L}`; the data dimension is `{D}`",
        label = "contracting another dim needs dynamic weights",
        note = "dynamic weights can take more time and memory; to use them: `x.allow_dynamic_weights().contract(..)`"
    )]
    pub trait AlongTheData<J, D, L> for True;
}

condition! {
    /// The condition that the data dimension is not contracted, or that a constant of `W` has
    /// exactly one new dim to replace it in `L`.
    #[diagnostic::on_unimplemented(
        message = "exactly one dim of the constant, `{W}`, must be new to the stream, `{L}`",
        label = "one dim of the constant replaces the data dimension"
    )]
    pub trait ReplacesData<W, L> for True;
}

condition! {
    /// The condition that `J` is the data dimension of exactly one of two streams, whose data
    /// dimensions are `D` and `E`.
    #[diagnostic::on_unimplemented(
        message = "`{J}` must be the data dimension of exactly one of the two streams, whose data dimensions are `{D}` and `{E}`",
        label = "contract two streams along the data dimension of one of them"
    )]
    pub trait DataOfOneSide<J, D, E> for True;
}
