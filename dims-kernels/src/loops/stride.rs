//! Stride kinds: whether the types determine the stride along the innermost loop.

/// Whether the types determine the stride along the innermost loop of a nest.
pub trait StrideKind {
    /// Whether the stride is 1 for every operand. Then it is not checked at run time, and no code
    /// is compiled for other strides.
    const UNIT: bool;
}

/// Any stride, given by the plan.
pub struct AnyStride;

impl StrideKind for AnyStride {
    const UNIT: bool = false;
}

/// The stride is 1, which follows from the types of the operands.
pub struct UnitStride;

impl StrideKind for UnitStride {
    const UNIT: bool = true;
}
