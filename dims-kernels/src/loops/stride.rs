//! Stride kinds: whether the compiler knows the stride along the innermost loop.

/// Whether rustc knows the stride along the innermost loop of a nest.
pub trait StrideKind {
    /// It is 1 for every operand: nothing looks at it, and there is no code for other strides.
    const UNIT: bool;
}

/// It is whatever the plan says.
pub struct AnyStride;

impl StrideKind for AnyStride {
    const UNIT: bool = false;
}

/// It is 1, which follows from the types of the operands.
pub struct UnitStride;

impl StrideKind for UnitStride {
    const UNIT: bool = true;
}
