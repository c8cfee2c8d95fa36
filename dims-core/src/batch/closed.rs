//! The rest that a function sees, and dims that clash.

use crate::types::brand::{Brand, Rest};
use crate::types::condition::condition;
use crate::types::set::list::NestedPairs;
use crate::types::set::{Bool, Dims, False, True};

/// A sorted list whose last element may be a rest.
pub trait EndsInRest {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The elements without the rest.
    type Visible;
    /// The dims that the rest stands for, or `()` without a rest.
    type Behind: Dims;
    /// The set with the rest as its only element, or `()` without a rest.
    type Rest: Dims;
    /// Whether there is a rest.
    type HasRest: Bool;
}

impl EndsInRest for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Visible = ();
    type Behind = ();
    type Rest = ();
    type HasRest = False;
}

#[diagnostic::do_not_recommend]
impl<B: Dims> EndsInRest for (Rest<B>, ()) {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Visible = ();
    type Behind = B;
    type Rest = (Rest<B>,);
    type HasRest = True;
}

#[diagnostic::do_not_recommend]
impl<H: Brand, T: EndsInRest> EndsInRest for (H, T) {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Visible = (H, T::Visible);
    type Behind = T::Behind;
    type Rest = T::Rest;
    type HasRest = T::HasRest;
}

/// `Rest<B>` stands for the dims of this set.
///
/// If the set is only a rest, `B` is what that rest stands for, not another rest. So a recursive
/// function is instantiated once, not endlessly.
#[diagnostic::on_unimplemented(message = "`{Self}` is not the set of dims that `Rest<{B}>` stands for")]
pub trait Closes<B: Dims>: Dims {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

impl<U, V, B: Dims> Closes<B> for U
where
    U: Dims<List: EndsInRest<Visible = V>>,
    V: NestedPairs<IsEmpty: Bool<If<<U::List as EndsInRest>::Behind, U> = B>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

condition! {
    /// No dim of the result of a batched function is an extra dim of its arguments.
    #[diagnostic::on_unimplemented(
        message = "dimension `{D}` of the result is also an extra dim of an argument",
        label = "the result would have `{D}` twice: rename one of the two dims, `.rename({D}, ..)`, or, if a captured tensor has `{D}`, pass this tensor as an argument, `batched(.., (a, b), |(a, b)| ..)`"
    )]
    pub trait Apart<D> for True;
}
