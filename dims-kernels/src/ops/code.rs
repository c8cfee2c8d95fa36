//! Element types, numbers, scalar operations, reductions and line-wise operations as data. The
//! opcodes of scalar operations are in [`opcode`](super::opcode).

pub use crate::ops::opcode::{BinaryOpcode, UnaryOpcode};
use crate::scalar::{CastTo, Ordered};
use core::any::{Any, TypeId};

/// The element types that programs read and write. `F16` and `Bf16` also exist without the feature
/// `half`, for other engines that run programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum DType {
    F16,
    Bf16,
    F32,
    F64,
    Bool,
    I8,
    I16,
    I32,
    I64,
    Isize,
    U8,
    U16,
    U32,
    U64,
    Usize,
}

/// Calls a macro with some arguments, and with `F16` and `Bf16` if the library has these types.
#[cfg(feature = "half")]
macro_rules! with_halves {
    ($then:ident!($($args:tt)*)) => {
        $then! { $($args)* F16 half::f16, Bf16 half::bf16, }
    };
}
#[cfg(not(feature = "half"))]
macro_rules! with_halves {
    ($then:ident!($($args:tt)*)) => {
        $then! { $($args)* }
    };
}
pub(crate) use with_halves;

/// Calls a macro with each element type and its [`DType`].
macro_rules! each_dtype {
    ($then:ident!($($args:tt)*)) => {
        $crate::ops::code::with_halves!($then!($($args)*
            F32 f32, F64 f64, Bool bool, I8 i8, I16 i16, I32 i32, I64 i64, Isize isize, U8 u8, U16 u16, U32 u32, U64 u64, Usize usize,
        ))
    };
}
pub(crate) use each_dtype;

/// An expression in which `T` is the element type of a [`DType`]: `match_dtype!(dtype, T =>
/// size_of::<T>())`.
///
/// # Panics
///
/// If the library does not [have](DType::is_known) the type.
macro_rules! match_dtype {
    ($dtype:expr, $T:ident => $then:expr) => {
        $crate::ops::code::each_dtype!(match_dtype!(@each $dtype, $T => $then;))
    };
    (@each $dtype:expr, $T:ident => $then:expr; $($name:ident $t:ty,)*) => {
        match $dtype {
            $($crate::ops::code::DType::$name => {
                type $T = $t;
                $then
            })*
            #[cfg(not(feature = "half"))]
            $crate::ops::code::DType::F16 | $crate::ops::code::DType::Bf16 => {
                unreachable!("elements of half precision need the feature `half`")
            }
        }
    };
}
pub(crate) use match_dtype;

impl DType {
    /// The `DType` of an element type, if programs support it.
    pub fn of<T: 'static>() -> Option<Self> {
        DType::of_id(TypeId::of::<T>())
    }

    /// The `DType` of an element type given by its `TypeId`.
    pub fn of_id(id: TypeId) -> Option<Self> {
        macro_rules! find {
            ($($name:ident $t:ty,)*) => {{
                $(if id == TypeId::of::<$t>() {
                    return Some(DType::$name);
                })*
            }};
        }
        each_dtype!(find!());
        None
    }

    /// Whether tensors can have elements of this type: `F16` and `Bf16` need the feature `half`.
    #[cfg(feature = "std")]
    pub(crate) fn is_known(self) -> bool {
        cfg!(feature = "half") || !matches!(self, DType::F16 | DType::Bf16)
    }

    /// The `TypeId` of the Rust type.
    #[cfg(feature = "std")]
    pub(crate) fn element(self) -> TypeId {
        match_dtype!(self, T => TypeId::of::<T>())
    }

    /// The kind of the registers that hold the elements.
    pub fn kind(self) -> RegisterKind {
        match self {
            DType::F16 | DType::Bf16 | DType::F32 => RegisterKind::F32,
            DType::F64 => RegisterKind::F64,
            DType::Bool => RegisterKind::Bool,
            DType::I8
            | DType::I16
            | DType::I32
            | DType::I64
            | DType::Isize
            | DType::U8
            | DType::U16
            | DType::U32
            | DType::U64
            | DType::Usize => RegisterKind::Int,
        }
    }

    /// The name of the type, such as `f32`.
    pub fn name(self) -> &'static str {
        match self {
            DType::F16 => "f16",
            DType::Bf16 => "bf16",
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::Bool => "bool",
            DType::I8 => "i8",
            DType::I16 => "i16",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::Isize => "isize",
            DType::U8 => "u8",
            DType::U16 => "u16",
            DType::U32 => "u32",
            DType::U64 => "u64",
            DType::Usize => "usize",
        }
    }

    /// The type with this [name](DType::name).
    #[cfg(all(feature = "serde", feature = "std"))]
    pub(crate) fn named(name: &str) -> Option<Self> {
        macro_rules! find {
            ($($name:ident $t:ty,)*) => {
                [$(DType::$name),*].into_iter().find(|own| own.name() == name)
            };
        }
        each_dtype!(find!())
    }

    /// The size of an element in bytes.
    pub fn bytes(self) -> usize {
        match self {
            DType::Bool | DType::I8 | DType::U8 => 1,
            DType::F16 | DType::Bf16 | DType::I16 | DType::U16 => 2,
            DType::F32 | DType::I32 | DType::U32 => 4,
            DType::F64 | DType::I64 | DType::U64 => 8,
            DType::Isize | DType::Usize => size_of::<usize>(),
        }
    }

    /// The type in which programs compute with these elements: `f32` for half precisions, and `i64`
    /// for integers.
    pub fn in_registers(self) -> DType {
        match self.kind() {
            RegisterKind::F32 => DType::F32,
            RegisterKind::F64 => DType::F64,
            RegisterKind::Bool => DType::Bool,
            RegisterKind::Int => DType::I64,
        }
    }

    /// Whether elements have fewer bits than the registers that hold them. Results must then be
    /// wrapped around or rounded to the type.
    pub(crate) fn is_narrow(self) -> bool {
        match self.kind() {
            RegisterKind::Int => self.bytes() < size_of::<isize>(),
            RegisterKind::F32 => self.bytes() < size_of::<f32>(),
            RegisterKind::F64 | RegisterKind::Bool => false,
        }
    }

    /// Whether elements are unsigned integers at least as wide as registers. A register holds the
    /// same bits (of wider elements, the lower bits) as a signed integer.
    pub(crate) fn is_unsigned_word(self) -> bool {
        matches!(self, DType::U32 | DType::U64 | DType::Usize) && self.bytes() >= size_of::<isize>()
    }

    /// Whether programs can compute the same bits as operations on this type. This excludes half
    /// precisions, whose results are rounded, and integers that do not fit into `isize`.
    #[cfg(feature = "std")]
    pub(crate) fn is_exact(self) -> bool {
        match self {
            DType::F32 | DType::F64 | DType::Bool | DType::I8 | DType::I16 | DType::Isize | DType::U8 => true,
            DType::I32 | DType::I64 => self.bytes() <= size_of::<isize>(),
            DType::U16 | DType::U32 => self.bytes() < size_of::<isize>(),
            _ => false,
        }
    }

    /// Whether registers hold exactly this type.
    pub(crate) fn is_register(self) -> bool {
        matches!(self, DType::F32 | DType::F64 | DType::Bool | DType::Isize)
            || self == DType::I64 && size_of::<isize>() == size_of::<i64>()
    }

    /// Whether elements are floats. Only floats have derivatives.
    pub fn is_float(self) -> bool {
        matches!(self.kind(), RegisterKind::F32 | RegisterKind::F64)
    }
}

/// The type of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum RegisterKind {
    /// `f32`, also for the half precisions.
    F32,
    /// `f64`
    F64,
    /// `bool`
    Bool,
    /// Integers of all types, as `isize`.
    Int,
}

/// A constant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A float.
    Float(f64),
    /// An integer.
    Int(isize),
    /// A `bool`.
    Bool(bool),
}

impl Number {
    /// A value as a constant, with the kind of the register for it; `None` for types that programs
    /// do not support.
    pub fn of<T: 'static>(value: T) -> Option<(Number, RegisterKind)> {
        Number::of_any(&value)
    }

    /// [`of`](Number::of) for a value whose type is not statically known.
    pub fn of_any(any: &dyn Any) -> Option<(Number, RegisterKind)> {
        if let Some(&value) = any.downcast_ref::<bool>() {
            return Some((Number::Bool(value), RegisterKind::Bool));
        }
        macro_rules! find {
            ($($t:ty)*) => {{
                $(if let Some(&value) = any.downcast_ref::<$t>() {
                    return Some((Number::Int(CastTo::<isize>::cast_to(value)), RegisterKind::Int));
                })*
            }};
        }
        find!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize);
        #[cfg(feature = "half")]
        if let Some(&value) = any.downcast_ref::<half::f16>() {
            return Some((Number::Float(value.to_f64()), RegisterKind::F32));
        } else if let Some(&value) = any.downcast_ref::<half::bf16>() {
            return Some((Number::Float(value.to_f64()), RegisterKind::F32));
        }
        if let Some(&value) = any.downcast_ref::<f32>() {
            return Some((Number::Float(value.into()), RegisterKind::F32));
        }
        any.downcast_ref::<f64>().map(|&value| (Number::Float(value), RegisterKind::F64))
    }

    /// A constant of an operation as a float; NaN for `bool`, for types that programs do not
    /// support, and for integers that `f64` does not hold. (The greatest `isize` becomes the next
    /// float, which converts back to it.)
    pub fn float<T: 'static>(value: T) -> f64 {
        match Number::of(value) {
            Some((Number::Float(value), _)) => value,
            Some((Number::Int(value), _)) if value as f64 as isize == value => value as f64,
            _ => f64::NAN,
        }
    }
}

/// A scalar operation as data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Code {
    /// One operand.
    Unary(UnaryOpcode),
    /// Two operands.
    Binary(BinaryOpcode),
    /// A conversion to another type.
    Cast(DType),
    /// Returns the operand.
    Same,
    /// Returns the left operand.
    Left,
    /// Returns the right operand.
    Right,
    /// Any other operation, such as a closure. Programs can call users' operations as
    /// [functions](super::function::Function).
    Opaque,
}

/// The bounds of an integer type, as far as `isize` holds them, for conversions from floats.
pub(crate) fn integer_bounds(dtype: DType) -> (isize, isize) {
    macro_rules! bounds {
        ($($name:ident $t:ty,)*) => {
            match dtype {
                $(DType::$name => (isize::try_from(<$t>::LOWEST).unwrap_or(isize::MIN), isize::try_from(<$t>::HIGHEST).unwrap_or(isize::MAX)),)*
                _ => (isize::MIN, isize::MAX),
            }
        };
    }
    bounds!(I8 i8, I16 i16, I32 i32, I64 i64, Isize isize, U8 u8, U16 u16, U32 u32, U64 u64, Usize usize,)
}

/// A reduction as data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReductionKind {
    /// The sum.
    Sum,
    /// The mean.
    Mean,
    /// The product.
    Prod,
    /// The greatest element; equal ones share the gradient.
    Max,
    /// The least element; equal ones share the gradient.
    Min,
    /// `sum of (x - mean)^2 / max(count - ddof, 0)`, or its square root.
    Variance {
        /// The number subtracted from the count.
        ddof: f64,
        /// Whether to take the square root, which gives the standard deviation.
        root: bool,
    },
    /// `ln(sum of e^x)`
    LogSumExp,
    /// The square root of the sum of squares.
    Norm,
    /// `(sum of |x|^p)^(1/p)`
    NormP(f64),
    /// The position of the greatest element.
    ArgMax,
    /// The position of the least element.
    ArgMin,
    /// Whether any element is true.
    Any,
    /// Whether all elements are true.
    All,
    /// The number of true elements.
    Count,
    /// A reduction that programs do not support.
    Opaque,
}

impl ReductionKind {
    /// The name in listings.
    #[cfg(feature = "std")]
    pub(crate) fn name(self) -> &'static str {
        match self {
            ReductionKind::Sum => "sum",
            ReductionKind::Mean => "mean",
            ReductionKind::Prod => "prod",
            ReductionKind::Max => "max",
            ReductionKind::Min => "min",
            ReductionKind::Variance { root: false, .. } => "var",
            ReductionKind::Variance { root: true, .. } => "std",
            ReductionKind::LogSumExp => "logsumexp",
            ReductionKind::Norm => "norm",
            ReductionKind::NormP(_) => "norm_p",
            ReductionKind::ArgMax => "argmax",
            ReductionKind::ArgMin => "argmin",
            ReductionKind::Any => "any",
            ReductionKind::All => "all",
            ReductionKind::Count => "count",
            ReductionKind::Opaque => "reduction",
        }
    }
}

/// A line-wise operation as data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LineWork {
    /// `e^x / sum of e^x`, or its logarithm.
    Softmax {
        /// Whether it is the logarithm.
        log: bool,
    },
    /// Running sums.
    Cumulate,
    /// Running products.
    CumulateProduct,
    /// The greatest or least element so far; of equal elements the last one gets the gradient.
    CumulateBest {
        /// Whether it is the greatest.
        greatest: bool,
    },
    /// The logarithm of the running sum of exponentials.
    CumulateLogSumExp,
    /// `(x - mean) / sqrt(var + eps)`
    Standardize {
        /// The number added to the variance.
        eps: f64,
    },
    /// `x / sqrt(mean of x^2 + eps)`
    RootMeanSquare {
        /// The number added to the mean.
        eps: f64,
    },
    /// `x / max(sqrt(sum of x^2), eps)`
    UnitLength {
        /// The least length.
        eps: f64,
    },
    /// An operation without a derivative.
    Opaque,
}

impl LineWork {
    /// The name in listings.
    #[cfg(feature = "std")]
    pub(crate) fn name(self) -> &'static str {
        match self {
            LineWork::Softmax { log: false } => "softmax",
            LineWork::Softmax { log: true } => "log_softmax",
            LineWork::Cumulate => "cumsum",
            LineWork::CumulateProduct => "cumprod",
            LineWork::CumulateBest { greatest: true } => "cummax",
            LineWork::CumulateBest { greatest: false } => "cummin",
            LineWork::CumulateLogSumExp => "logcumsumexp",
            LineWork::Standardize { .. } => "standardize",
            LineWork::RootMeanSquare { .. } => "rms_norm",
            LineWork::UnitLength { .. } => "normalize",
            LineWork::Opaque => "lines",
        }
    }
}
