//! Traits of tensors with a typed layout.

use super::{Laid, Memory, Packed};
use crate::batch::mapped::United;
use crate::expr::Operand;
use crate::tensors::named::Named;
use crate::tensors::tensor::{AsTensor, BorrowedExpr, NamedOf};
use crate::types::rank::Rank0;
use crate::types::set::{Dims, SetOf};
use core::fmt;
use core::ops::Deref;
use kernels::scalar::Element;

impl<T: Element, L: SetOf, M: Memory<Elem = T>> Deref for Laid<T, L, M> {
    type Target = Named<T, L::Set, Rank0, M::Tensor<L::Set>>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<T: Element, L: SetOf, M: Memory<Elem = T, Tensor<L::Set>: Clone>> Clone for Laid<T, L, M> {
    fn clone(&self) -> Self {
        Laid(self.0.clone())
    }
}

impl<T: Element, L: SetOf> Copy for Laid<T, L, &[T]> {}

/// Shown like other tensors, followed by the memory order.
impl<T: Element, L: SetOf + Dims, M: Memory<Elem = T>> fmt::Debug for Laid<T, L, M>
where
    Named<T, L::Set, Rank0, M::Tensor<L::Set>>: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)?;
        write_order::<L>(f)
    }
}

/// Shown like other tensors, followed by the memory order.
impl<T: Element, L: SetOf + Dims, M: Memory<Elem = T>> fmt::Display for Laid<T, L, M>
where
    Named<T, L::Set, Rank0, M::Tensor<L::Set>>: fmt::Display,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)?;
        write_order::<L>(f)
    }
}

fn write_order<L: Dims>(f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(", laid out as (")?;
    for (at, key) in L::KEYS.as_slice().iter().enumerate() {
        write!(f, "{}{}", if at > 0 { ", " } else { "" }, key.name)?;
    }
    f.write_str(")")
}

/// Equal if the sizes and all elements are equal.
impl<T: Element, L: SetOf, M: Memory<Elem = T>, O: Memory<Elem = T>> PartialEq<Laid<T, L, O>>
    for Laid<T, L, M>
where
    Named<T, L::Set, Rank0, M::Tensor<L::Set>>: PartialEq<Named<T, L::Set, Rank0, O::Tensor<L::Set>>>,
{
    fn eq(&self, other: &Laid<T, L, O>) -> bool {
        self.0 == other.0
    }
}

impl<T: Element, L: SetOf + Dims, M: Memory<Elem = T>> AsTensor for Laid<T, L, M> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Elem = T;
    type Dims = L::Set;
    type Rank = Rank0;
    type Expr = Packed<M::Tensor<L::Set>, L>;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn into_named(self) -> NamedOf<Self> {
        Named::from_expr(Packed::new(self.0.expr))
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn borrowed(&self) -> BorrowedExpr<'_, Self::Expr> {
        BorrowedExpr::Reference(Packed::reference(&self.0.expr))
    }
}

impl<'a, T: Element, L: SetOf + Dims, M: Memory<Elem = T>> AsTensor for &'a Laid<T, L, M> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Elem = T;
    type Dims = L::Set;
    type Rank = Rank0;
    type Expr = Packed<&'a M::Tensor<L::Set>, L>;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn into_named(self) -> NamedOf<Self> {
        Named::from_expr(Packed::new(&self.0.expr))
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn borrowed(&self) -> BorrowedExpr<'_, Self::Expr> {
        BorrowedExpr::Made(self.into_named().expr)
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element, L: SetOf + Dims, M: Memory<Elem = T>> Operand<T> for Laid<T, L, M> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Dims = L::Set;
    type Rank = Rank0;
    type Expr = Packed<M::Tensor<L::Set>, L>;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn into_expr(self) -> Self::Expr {
        self.into_named().expr
    }
}

#[diagnostic::do_not_recommend]
impl<'a, T: Element, L: SetOf + Dims, M: Memory<Elem = T>> Operand<T> for &'a Laid<T, L, M> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Dims = L::Set;
    type Rank = Rank0;
    type Expr = Packed<&'a M::Tensor<L::Set>, L>;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn into_expr(self) -> Self::Expr {
        self.into_named().expr
    }
}

// `vmap` computes or copies its arguments, so they need not be a `Named`.
#[diagnostic::do_not_recommend]
impl<T: Element, L: SetOf, M: Memory<Elem = T>> United for Laid<T, L, M> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type All = L::Set;
}

#[diagnostic::do_not_recommend]
impl<T: Element, L: SetOf, M: Memory<Elem = T>> United for &Laid<T, L, M> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type All = L::Set;
}
