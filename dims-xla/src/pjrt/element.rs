//! The types of elements.

use std::fmt;

macro_rules! elements {
    ($($(#[$doc:meta])* $variant:ident $name:literal $stablehlo:literal $bytes:literal $buffer:literal $primitive:literal)*) => {
        /// The type of an array's elements.
        ///
        /// ```
        /// use typed_dims_xla::pjrt::ElementType;
        ///
        /// assert_eq!(ElementType::Bf16.size(), 2);
        /// assert_eq!(ElementType::U32.stablehlo(), "ui32");
        /// assert_eq!(ElementType::F32.bytes(&[2, 3]), Some(24));
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ElementType {
            $($(#[$doc])* $variant,)*
        }

        impl ElementType {
            /// All types.
            pub const ALL: &[ElementType] = &[$(ElementType::$variant),*];

            /// The number of bytes of an element.
            #[must_use]
            pub const fn size(self) -> usize {
                match self { $(ElementType::$variant => $bytes,)* }
            }

            /// The name in StableHLO's text.
            #[must_use]
            pub const fn stablehlo(self) -> &'static str {
                match self { $(ElementType::$variant => $stablehlo,)* }
            }

            const fn rust(self) -> &'static str {
                match self { $(ElementType::$variant => $name,)* }
            }

            /// The value of `PJRT_Buffer_Type`.
            pub(super) const fn code(self) -> i32 {
                match self { $(ElementType::$variant => $buffer,)* }
            }

            pub(super) fn from_code(code: i32) -> Option<ElementType> {
                Self::ALL.iter().copied().find(|element| element.code() == code)
            }

            /// The type with this value of XLA's `PrimitiveType`, as in HLO programs.
            pub(super) fn from_primitive(code: u64) -> Option<ElementType> {
                match code {
                    $($primitive => Some(ElementType::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

elements! {
    /// A boolean: one byte, which is 0 or 1. With other values, the behavior of programs is
    /// unspecified.
    Bool "bool" "i1" 1 1 1
    /// A signed integer of 8 bits.
    I8 "i8" "i8" 1 2 2
    /// A signed integer of 16 bits.
    I16 "i16" "i16" 2 3 3
    /// A signed integer of 32 bits.
    I32 "i32" "i32" 4 4 4
    /// A signed integer of 64 bits.
    I64 "i64" "i64" 8 5 5
    /// An unsigned integer of 8 bits.
    U8 "u8" "ui8" 1 6 6
    /// An unsigned integer of 16 bits.
    U16 "u16" "ui16" 2 7 7
    /// An unsigned integer of 32 bits.
    U32 "u32" "ui32" 4 8 8
    /// An unsigned integer of 64 bits.
    U64 "u64" "ui64" 8 9 9
    /// A floating-point number of 16 bits, IEEE 754.
    F16 "f16" "f16" 2 10 10
    /// A floating-point number with the upper 16 bits of an `f32`.
    Bf16 "bf16" "bf16" 2 13 16
    /// A floating-point number of 32 bits.
    F32 "f32" "f32" 4 11 11
    /// A floating-point number of 64 bits.
    F64 "f64" "f64" 8 12 12
}

impl ElementType {
    /// The number of bytes of an array of these sizes. `None` if it exceeds `isize::MAX`, which is
    /// the limit of a slice.
    #[must_use]
    pub fn bytes(self, sizes: &[usize]) -> Option<usize> {
        if sizes.contains(&0) {
            return Some(0);
        }
        let bytes = sizes.iter().try_fold(self.size(), |bytes, &size| bytes.checked_mul(size))?;
        isize::try_from(bytes).is_ok().then_some(bytes)
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.rust())
    }
}

/// The type of an array: its element type and its sizes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArrayType {
    /// The type of its elements.
    pub element_type: ElementType,
    /// The size of each axis.
    pub sizes: Vec<usize>,
}

impl fmt::Display for ArrayType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.element_type, self.sizes)
    }
}
