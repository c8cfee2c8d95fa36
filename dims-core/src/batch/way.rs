//! How `vmap` calls a function: once for all examples, or once for each.

/// All examples in one call.
pub struct Together;
/// One call for each example.
pub struct OneByOne;
/// The argument is the same for all examples.
pub struct Alike;
/// One parameter takes all examples, another one a single example: such a call does not compile.
pub struct Mixed;

/// How the function must be called for a parameter.
pub trait Way {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The argument is the same for all examples.
    #[doc(hidden)]
    const ALIKE: bool = false;
    /// Each call gets one example.
    #[doc(hidden)]
    const ONE_BY_ONE: bool = false;
    /// The way for this parameter and another one.
    type Or<O: Way>: Way;
    #[doc(hidden)]
    type OrTogether: Way;
    #[doc(hidden)]
    type OrOneByOne: Way;
}

impl Way for Together {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Or<O: Way> = O::OrTogether;
    type OrTogether = Together;
    type OrOneByOne = Mixed;
}
impl Way for OneByOne {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    const ONE_BY_ONE: bool = true;
    type Or<O: Way> = O::OrOneByOne;
    type OrTogether = Mixed;
    type OrOneByOne = OneByOne;
}
impl Way for Alike {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    const ALIKE: bool = true;
    type Or<O: Way> = O;
    type OrTogether = Together;
    type OrOneByOne = OneByOne;
}
impl Way for Mixed {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Or<O: Way> = Mixed;
    type OrTogether = Mixed;
    type OrOneByOne = Mixed;
}

/// The ways of all parameters, as nested pairs.
pub trait Ways {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The way for all parameters.
    type All: Way;
}

impl Ways for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type All = Alike;
}

impl<H: Way, T: Ways> Ways for (H, T) {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type All = H::Or<T::All>;
}
