//! Compares the interpreter with the table of operations (`ops::table`), for several line lengths.

use super::{Random, held, run, written};
use crate::machine::isa::{Isa, Task, dispatch};
use crate::ops::code::{BinaryOpcode, Code, DType, Number, UnaryOpcode};
use crate::ops::{self, BinaryOp, UnaryOp};
use crate::program::interpreter::ProgramOutput;
use crate::scalar::{CastTo, Element, Real};
use alloc::vec::Vec;
use core::fmt::Debug;

/// Lengths around the lengths of tiles.
const LENGTHS: [usize; 8] = [1, 7, 64, 511, 512, 513, 1025, 1536];

/// An operation of the table along a line, computed with the CPU instructions that the interpreter
/// uses.
struct Each<'a, O, A>(&'a O, &'a [A]);

impl<O: UnaryOp<A>, A: Copy> Task for Each<'_, O, A> {
    type Out = Vec<O::Out>;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<I: Isa>(self) -> Vec<O::Out> {
        self.1.iter().map(|&a| self.0.apply::<I>(a)).collect()
    }
}

struct Both<'a, O, A>(&'a O, &'a [A], &'a [A]);

impl<O: BinaryOp<A, A>, A: Copy> Task for Both<'_, O, A> {
    type Out = Vec<O::Out>;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<I: Isa>(self) -> Vec<O::Out> {
        self.1.iter().zip(self.2).map(|(&a, &b)| self.0.apply::<I>(a, b)).collect()
    }
}

/// Elements to compare: floats up to rounding, all others exactly.
trait Compared: Element + PartialEq {
    fn is_near(self, other: Self) -> bool {
        self == other
    }
}

macro_rules! compared {
    ($($float:ty, $epsilon:expr;)*) => {$(
        impl Compared for $float {
            fn is_near(self, other: Self) -> bool {
                let (a, b) = (f64::from(self), f64::from(other));
                a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() < $epsilon * b.abs().max(1e-3)
            }
        }
    )*};
    ($($other:ty)*) => { $(impl Compared for $other {})* };
}

compared! { f32, 4.0 * f64::from(f32::EPSILON); f64, 4.0 * f64::EPSILON; }
compared! { bool isize }
// Programs and the table both compute half precisions in single precision, and round the result.
#[cfg(feature = "half")]
compared! { half::f16, 1.0 / 1024.0; half::bf16, 1.0 / 128.0; }

#[track_caller]
fn assert_same<T: Compared>(found: &[T], expected: &[T], what: &dyn Debug) {
    assert_eq!(found.len(), expected.len(), "{what:?}");
    for (at, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        assert!(found.is_near(expected), "{what:?} at {at}: {found:?} instead of {expected:?}");
    }
}

fn dtype<T: 'static>() -> DType {
    DType::of::<T>().expect("programs support the type")
}

fn floats<T: Element>(random: &mut Random, len: usize) -> Vec<T>
where
    f64: CastTo<T>,
{
    let special = [0.0, -0.0, 1.0, -1.0, 0.5, f64::NAN, f64::INFINITY, -2.5, 3.0, 6.0];
    let mut value = |at: usize| {
        if at % 11 == 10 { special[at / 11 % special.len()] } else { random.float(-4.0, 4.0) }
    };
    (0..len).map(|at| value(at).cast_to()).collect()
}

/// An operation on floats that yields floats.
fn unary_floats<T: Compared + ProgramOutput + Real, O: UnaryOp<T, Out = T> + Debug>(op: O)
where
    f64: CastTo<T>,
{
    let code = op.code();
    let program = written(|build| {
        let a = build.load(0, dtype::<T>());
        build.operation(code, &[a]).expect("programs support the operation")
    });
    for len in LENGTHS {
        let a = floats::<T>(&mut Random(len as u64), len);
        assert_same(
            &run::<T>(&program, &[held(&a)], len),
            &dispatch(Each(&op, &a)),
            &(&op, dtype::<T>(), len),
        );
    }
}

/// An operation that yields `bool`s, as the numbers 0 and 1.
fn unary_tests<T: Real, O: UnaryOp<T, Out = bool> + Debug>(op: O)
where
    f64: CastTo<T>,
{
    let code = op.code();
    let program = written(|build| {
        let a = build.load(0, dtype::<T>());
        let test = build.operation(code, &[a]).expect("programs support the operation");
        build.cast(DType::Isize, test)
    });
    for len in LENGTHS {
        let a = floats::<T>(&mut Random(len as u64), len);
        let expected: Vec<isize> = dispatch(Each(&op, &a)).into_iter().map(isize::from).collect();
        assert_same(&run::<isize>(&program, &[held(&a)], len), &expected, &(&op, dtype::<T>(), len));
    }
}

fn binary_floats<T: Compared + ProgramOutput + Real, O: BinaryOp<T, T, Out = T> + Debug>(op: O)
where
    f64: CastTo<T>,
{
    let code = op.code();
    let program = written(|build| {
        let (a, b) = (build.load(0, dtype::<T>()), build.load(1, dtype::<T>()));
        build.operation(code, &[a, b]).expect("programs support the operation")
    });
    for len in LENGTHS {
        let mut random = Random(len as u64);
        let (a, b) = (floats::<T>(&mut random, len), floats::<T>(&mut random, len));
        let found = run::<T>(&program, &[held(&a), held(&b)], len);
        assert_same(&found, &dispatch(Both(&op, &a, &b)), &(&op, dtype::<T>(), len));
    }
}

/// A comparison, or an operation on `bool`s.
fn binary_tests<T: Element, O: BinaryOp<T, T, Out = bool> + Debug>(
    op: O,
    draw: fn(&mut Random, usize) -> Vec<T>,
) {
    let code = op.code();
    let program = written(|build| {
        let (a, b) = (build.load(0, dtype::<T>()), build.load(1, dtype::<T>()));
        let test = build.operation(code, &[a, b]).expect("programs support the operation");
        build.cast(DType::Isize, test)
    });
    for len in LENGTHS {
        let mut random = Random(len as u64);
        let (a, b) = (draw(&mut random, len), draw(&mut random, len));
        let expected: Vec<isize> = dispatch(Both(&op, &a, &b)).into_iter().map(isize::from).collect();
        let found = run::<isize>(&program, &[held(&a), held(&b)], len);
        assert_same(&found, &expected, &(&op, dtype::<T>(), len));
    }
}

/// The operations of the table on one float.
macro_rules! unary_of_floats {
    ($t:ident operations { $(
        $(#[$doc:meta])* $name:ident $method:ident($x:ident: $bound:ident) -> $out:tt $(, $property:ident)* { $($body:tt)* }
    )* } constants { $(
        $(#[$with_doc:meta])* $with:ident $with_method:ident($with_x:ident: $with_bound:ident, $c:ident = $sample:literal)
            -> T $(, $with_property:ident)* { $($with_body:tt)* }
    )* }) => {
        $(unary_of_floats! { @one $bound $out $t $name })*
        $(unary_floats::<$t, _>(ops::$with(CastTo::<$t>::cast_to($sample)));)*
    };
    (@one Logic $out:tt $t:ident $name:ident) => {};
    (@one $bound:ident bool $t:ident $name:ident) => { unary_tests::<$t, _>(ops::$name); };
    (@one $bound:ident $out:tt $t:ident $name:ident) => { unary_floats::<$t, _>(ops::$name); };
}

fn all_unary<T: Compared + ProgramOutput + Real>()
where
    f64: CastTo<T>,
{
    crate::unary_operations! { unary_of_floats T }
    unary_floats::<T, _>(ops::Clamp(CastTo::<T>::cast_to(-1.0), CastTo::<T>::cast_to(2.0)));
    for n in [-3, -1, 0, 1, 2, 3, 7] {
        unary_floats::<T, _>(ops::Powi(n));
    }
}

/// The operations of the table on two floats.
macro_rules! binary_of_floats {
    ($t:ident operations { $(
        $(#[$doc:meta])* $name:ident $method:ident($x:ident, $y:ident: $bound:ident) -> $out:tt $(, $property:ident)* { $($body:tt)* }
    )* } constants { $(
        $(#[$with_doc:meta])* $with:ident $with_method:ident($with_x:ident, $with_y:ident: Real, $c:ident = $sample:literal)
            -> T $(, $with_property:ident)* { $($with_body:tt)* }
    )* }) => {
        $(binary_of_floats! { @one $bound $out $t $name })*
        $(binary_floats::<$t, _>(ops::$with(CastTo::<$t>::cast_to($sample)));)*
    };
    (@one Logic $out:tt $t:ident $name:ident) => {};
    (@one Integer $out:tt $t:ident $name:ident) => {};
    (@one $bound:ident bool $t:ident $name:ident) => { binary_tests::<$t, _>(ops::$name, floats::<$t>); };
    (@one $bound:ident $out:tt $t:ident $name:ident) => { binary_floats::<$t, _>(ops::$name); };
}

fn all_binary<T: Compared + ProgramOutput + Real>()
where
    f64: CastTo<T>,
{
    crate::binary_operations! { binary_of_floats T }
}

#[test]
fn operations_on_floats() {
    all_unary::<f32>();
    all_unary::<f64>();
    all_binary::<f32>();
    all_binary::<f64>();
}

#[cfg(feature = "half")]
#[test]
fn operations_on_half_precisions() {
    all_unary::<half::f16>();
    all_unary::<half::bf16>();
    all_binary::<half::f16>();
    all_binary::<half::bf16>();
}

fn booleans(random: &mut Random, len: usize) -> Vec<bool> {
    (0..len).map(|_| random.next().is_multiple_of(2)).collect()
}

macro_rules! binary_of_booleans {
    (operations { $(
        $(#[$doc:meta])* $name:ident $method:ident($x:ident, $y:ident: $bound:ident) -> $out:tt $(, $property:ident)* { $($body:tt)* }
    )* } $($constants:tt)*) => {
        $(binary_of_booleans! { @one $bound $name })*
    };
    (@one Logic $name:ident) => { binary_tests(ops::$name, booleans); };
    (@one PartialOrder $name:ident) => { binary_tests(ops::$name, booleans); };
    (@one Equality $name:ident) => { binary_tests(ops::$name, booleans); };
    (@one $bound:ident $name:ident) => {};
}

#[test]
fn operations_on_truth_values() {
    crate::binary_operations! { binary_of_booleans }
    let program = written(|build| {
        let a = build.load(0, DType::Bool);
        let not = build.unary(UnaryOpcode::Not, a);
        build.cast(DType::Isize, not)
    });
    let a = booleans(&mut Random(1), 600);
    let expected: Vec<isize> = a.iter().map(|&a| isize::from(!a)).collect();
    assert_eq!(run::<isize>(&program, &[held(&a)], 600), expected);
}

/// The operations of the table on one integer.
macro_rules! unary_of_integers {
    ($signs:ident operations { $(
        $(#[$doc:meta])* $name:ident $method:ident($x:ident: $bound:ident) -> $out:tt $(, $property:ident)* { $($body:tt)* }
    )* } constants { $(
        $(#[$with_doc:meta])* $with:ident $with_method:ident($with_x:ident: $with_bound:ident, $c:ident = $sample:literal)
            -> T $(, $with_property:ident)* { $($with_body:tt)* }
    )* }) => {
        $(unary_of_integers! { @one $signs $bound $out (ops::$name) })*
        $(unary_of_integers! { @one $signs $with_bound T (ops::$with(3 as T)) })*
    };
    (@one $signs:ident Real $out:tt $op:tt) => {};
    (@one $signs:ident Analytic $out:tt $op:tt) => {};
    (@one unsigned Signed $out:tt $op:tt) => {};
    (@one unsigned Magnitude $out:tt $op:tt) => {};
    (@one $signs:ident $bound:ident bool $op:tt) => {};
    (@one $signs:ident $bound:ident $out:tt $op:tt) => { unary($op); };
}

/// The operations of the table on two integers.
macro_rules! binary_of_integers {
    (operations { $(
        $(#[$doc:meta])* $name:ident $method:ident($x:ident, $y:ident: $bound:ident) -> $out:tt $(, $property:ident)* { $($body:tt)* }
    )* } $($constants:tt)*) => {
        $(binary_of_integers! { @one [$($property)*] $bound $out $name })*
    };
    // The operands of a steady operation are not near the limits of their type.
    (@one [elsewhere steady] $bound:ident $out:tt $name:ident) => {};
    (@one $properties:tt Real $out:tt $name:ident) => {};
    (@one $properties:tt $bound:ident bool $name:ident) => { binary_tests(ops::$name, draw); };
    (@one $properties:tt $bound:ident $out:tt $name:ident) => { binary(ops::$name); };
}

/// Integers of the whole range of their type: results wrap around in the type, even if registers
/// are wider.
macro_rules! integers {
    ($($t:ident $signs:ident;)*) => {$(
        #[test]
        fn $t() {
            type T = $t;
            fn draw(random: &mut Random, len: usize) -> Vec<T> {
                (0..len).map(|at| if at % 3 == 0 { (random.next() % 7) as T } else { random.next() as T }).collect()
            }
            fn unary(op: impl UnaryOp<T, Out = T> + Debug) {
                let code = op.code();
                let program = written(|build| {
                    let a = build.load(0, dtype::<T>());
                    build.operation(code, &[a]).expect("programs support the operation")
                });
                for len in LENGTHS {
                    let a = draw(&mut Random(len as u64), len);
                    let expected: Vec<isize> = dispatch(Each(&op, &a)).into_iter().map(|a| a as isize).collect();
                    assert_same(&run::<isize>(&program, &[held(&a)], len), &expected, &(&op, len));
                }
            }
            fn binary(op: impl BinaryOp<T, T, Out = T> + Debug) {
                let code = op.code();
                let program = written(|build| {
                    let (a, b) = (build.load(0, dtype::<T>()), build.load(1, dtype::<T>()));
                    build.operation(code, &[a, b]).expect("programs support the operation")
                });
                for len in LENGTHS {
                    let mut random = Random(len as u64);
                    let (a, mut b) = (draw(&mut random, len), draw(&mut random, len));
                    if matches!(code, Code::Binary(BinaryOpcode::Div | BinaryOpcode::Rem | BinaryOpcode::Remainder | BinaryOpcode::FloorDiv)) {
                        b.iter_mut().for_each(|b| *b = (*b).max(1));
                    }
                    let expected: Vec<isize> = dispatch(Both(&op, &a, &b)).into_iter().map(|a| a as isize).collect();
                    let found = run::<isize>(&program, &[held(&a), held(&b)], len);
                    assert_same(&found, &expected, &(&op, len));
                }
            }
            crate::unary_operations! { unary_of_integers $signs }
            crate::binary_operations! { binary_of_integers }
            unary(ops::Clamp(2 as T, 5 as T));
        }
    )*};
}

mod integers {
    use super::*;
    integers! {
        i8 signed; i16 signed; i32 signed; i64 signed; isize signed; u8 unsigned; u16 unsigned; u32 unsigned; u64 unsigned; usize unsigned;
    }
}

#[test]
fn indices_from_the_end() {
    let program = written(|build| {
        let a = build.load(0, DType::I32);
        build.unary(UnaryOpcode::FromEnd(5), a)
    });
    let a: Vec<i32> = (-8..8).collect();
    let expected: Vec<isize> = (-8..8).map(|a| if (-5..0).contains(&a) { a + 5 } else { a }).collect();
    assert_eq!(run::<isize>(&program, &[held(&a)], a.len()), expected);
}

/// `as` between all types except half precisions.
macro_rules! casts {
    ($($from:ident)*; $to:tt) => { $(casts!(@from $from $to);)* };
    (@from $from:ident [$($to:ident)*]) => {
        let a: Vec<$from> = (0..700).map(|at| {
            let special = [0.0, -1.0, 0.75, -0.75, 300.5, -70_000.25, 5e9, -5e9, 1e12, 127.0, 128.0, 255.0, 256.0, 1.5e19, 9.3e18, f64::NAN];
            CastTo::<$from>::cast_to(special[at % special.len()])
        }).collect();
        $({
            let program = written(|build| {
                let a = build.load(0, dtype::<$from>());
                let to = build.operation(Code::Cast(dtype::<$to>()), &[a]).expect("programs support the operation");
                if dtype::<$to>().is_float() { build.cast(DType::F64, to) } else { build.cast(DType::Isize, to) }
            });
            if dtype::<$to>().is_float() {
                let expected: Vec<f64> = a.iter().map(|&a| CastTo::<f64>::cast_to(CastTo::<$to>::cast_to(a))).collect();
                assert_same(&run::<f64>(&program, &[held(&a)], a.len()), &expected, &(dtype::<$from>(), dtype::<$to>()));
            } else {
                let expected: Vec<isize> = a.iter().map(|&a| CastTo::<isize>::cast_to(CastTo::<$to>::cast_to(a))).collect();
                assert_same(&run::<isize>(&program, &[held(&a)], a.len()), &expected, &(dtype::<$from>(), dtype::<$to>()));
            }
        })*
    };
}

#[test]
fn casts() {
    casts!(f32 f64 bool i8 i16 i32 i64 isize u8 u16 u32 u64 usize; [f32 f64 bool i8 i16 i32 i64 isize u8 u16 u32 u64 usize]);
}

#[test]
fn select_positions_and_constants() {
    let program = written(|build| {
        let (c, a, at) = (build.load(0, DType::Bool), build.load(1, DType::F64), build.position(2));
        let (at, third) =
            (build.cast(DType::F64, at), build.constant(Number::Float(1.0 / 3.0), DType::F64.kind()));
        let sum = build.binary(BinaryOpcode::Add, at, third);
        build.select(c, a, sum)
    });
    use crate::trace::{Field, FieldOperand, FieldSource, StridedPlace, compute::mapped};
    use alloc::sync::Arc;
    for len in LENGTHS {
        let mut random = Random(len as u64);
        let (c, a) = (booleans(&mut random, len), floats::<f64>(&mut random, len));
        let memory = |memory| FieldOperand {
            source: FieldSource::Memory(memory),
            place: StridedPlace::strided(0, [1]),
        };
        let position = FieldOperand { source: FieldSource::Position, place: StridedPlace::strided(5, [2]) };
        let field = Field {
            sizes: [len].into_iter().collect(),
            program: Arc::new(program.clone()),
            operands: vec![memory(held(&c)), memory(held(&a)), position],
            names: None,
        };
        let expected: Vec<f64> =
            (0..len).map(|at| if c[at] { a[at] } else { (5 + 2 * at) as f64 + 1.0 / 3.0 }).collect();
        assert_same(&mapped::<f64>(&field, &[0]).unwrap(), &expected, &len);
    }
}
