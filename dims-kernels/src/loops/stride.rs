//! Kinds of strides along the innermost loop of a nest.

/// Whether the types determine the stride along the innermost loop of a nest.
pub trait StrideKind {
    /// Whether the stride is 1 for every operand. Then it is not checked at run time, and no code
    /// is compiled for other strides.
    const UNIT: bool;
    /// Whether reductions of [pairs of rows](crate::reduce::pairs) are possible. If not, no code is
    /// compiled for them.
    const PAIRS: bool;
    /// What is known about the stride of an operand whose own type does not determine it.
    type OfAny: StrideKind;
}

/// Any stride, given by the plan.
pub struct AnyStride;

impl StrideKind for AnyStride {
    const UNIT: bool = false;
    const PAIRS: bool = true;
    type OfAny = AnyStride;
}

/// Any stride, in a reduction whose result has at most one axis.
pub struct LineStride;

impl StrideKind for LineStride {
    const UNIT: bool = false;
    const PAIRS: bool = false;
    type OfAny = LineStride;
}

/// The stride is 1, which follows from the types of the operands.
pub struct UnitStride;

impl StrideKind for UnitStride {
    const UNIT: bool = true;
    const PAIRS: bool = false;
    type OfAny = AnyStride;
}
