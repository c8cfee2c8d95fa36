//! Runs the operators on arrays of one matrix, and on batches along one or two dims.

use crate::inputs::Wide;
use ndarray::{Array, ArrayD, ArrayViewD, Axis, Dimension, Ix2, Slice};
use num_complex::Complex;
use typed_dims::operators::linalg::systems::Triangular;
use typed_dims::operators::linalg::{MatrixElement, RealMatrixElement};
use typed_dims::prelude::*;
use typed_dims::types::scalar::{CastTo, Num};

dims! {
    pub struct R;
    pub struct Outer;
    pub struct C;
    pub struct K;
    pub struct Inner;
    pub struct L;
}

/// An element type of the tests.
pub trait TestElement: MatrixElement<Part: CastTo<f64>> {
    /// The difference between 1 and the next number.
    const EPSILON: f64;
    /// The least positive number that is not subnormal, and the greatest finite number.
    const RANGE: [f64; 2];
    const NAME: &'static str;
    fn of(value: Complex<f64>) -> Self;
    fn wide(self) -> Complex<f64>;
}

macro_rules! test_elements {
    ($($t:ident)*) => {$(
        impl TestElement for $t {
            const EPSILON: f64 = $t::EPSILON as f64;
            const RANGE: [f64; 2] = [$t::MIN_POSITIVE as f64, $t::MAX as f64];
            const NAME: &'static str = stringify!($t);
            fn of(value: Complex<f64>) -> Self {
                assert!(value.im == 0.0, "the number is real");
                value.re as $t
            }
            fn wide(self) -> Complex<f64> {
                Complex::from(f64::from(self))
            }
        }
        impl TestElement for Complex<$t> {
            const EPSILON: f64 = $t::EPSILON as f64;
            const RANGE: [f64; 2] = [$t::MIN_POSITIVE as f64, $t::MAX as f64];
            const NAME: &'static str = concat!("Complex<", stringify!($t), ">");
            fn of(value: Complex<f64>) -> Self {
                Complex::new(value.re as $t, value.im as $t)
            }
            fn wide(self) -> Complex<f64> {
                Complex::new(f64::from(self.re), f64::from(self.im))
            }
        }
    )*};
}
test_elements!(f32 f64);

/// The results of an operator. The axes of the batch come first.
pub type Results = Result<Vec<ArrayD<Complex<f64>>>, DimError>;

trait IntoWide {
    fn into_wide(self) -> ArrayD<Complex<f64>>;
}

impl<T: TestElement> IntoWide for T {
    fn into_wide(self) -> ArrayD<Complex<f64>> {
        ndarray::arr0(TestElement::wide(self)).into_dyn()
    }
}

impl<T: TestElement, D: Dimension> IntoWide for Array<T, D> {
    fn into_wide(self) -> ArrayD<Complex<f64>> {
        self.mapv(TestElement::wide).into_dyn()
    }
}

/// An operator, with those of its arguments that are not arrays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operator {
    Cholesky,
    SolveTriangular(Triangular),
    Solve,
    SolveVector,
    Inverse,
    Det,
    SlogDet,
    Lu,
    Qr,
    Eigh,
    Svd,
    SingularValues,
    Pinv,
    Lstsq,
    Rank,
    Cond,
    Power(i64),
    Expm,
}

impl Operator {
    pub const SQUARE: [Operator; 15] = [
        Operator::Cholesky,
        Operator::SolveTriangular(Triangular::Lower),
        Operator::SolveTriangular(Triangular::Upper),
        Operator::SolveTriangular(Triangular::UnitLower),
        Operator::SolveTriangular(Triangular::UnitUpper),
        Operator::Solve,
        Operator::SolveVector,
        Operator::Inverse,
        Operator::Det,
        Operator::SlogDet,
        Operator::Eigh,
        Operator::Power(0),
        Operator::Power(3),
        Operator::Power(-2),
        Operator::Expm,
    ];
    pub const ANY: [Operator; 8] = [
        Operator::Lu,
        Operator::Qr,
        Operator::Svd,
        Operator::SingularValues,
        Operator::Pinv,
        Operator::Lstsq,
        Operator::Rank,
        Operator::Cond,
    ];
}

macro_rules! over {
    ($(#[doc = $doc:literal])* $name:ident [$($axis:ident)*]) => {
        $(#[doc = $doc])*
        pub mod $name {
            use super::*;

            /// The results of an operator on `a`, and `b` where it takes right-hand sides.
            pub fn run<T: TestElement>(
                operator: Operator,
                a: &ArrayViewD<'_, T>,
                b: &ArrayViewD<'_, T>,
            ) -> Results {
                let x = a.at(($($axis,)* R, C));
                let b = || b.at(($($axis,)* R, K));
                Ok(match operator {
                    Operator::Cholesky => vec![x.try_cholesky(R, C)?.order(($($axis,)* R, C)).into_wide()],
                    Operator::SolveTriangular(side) => {
                        vec![x.try_solve_triangular(b(), R, C, side)?.order(($($axis,)* C, K)).into_wide()]
                    }
                    Operator::Solve => vec![x.try_solve(b(), R, C)?.order(($($axis,)* C, K)).into_wide()],
                    Operator::SolveVector => {
                        vec![x.try_solve(b().index(K, 0), R, C)?.order(($($axis,)* C,)).into_wide()]
                    }
                    Operator::Inverse => vec![x.try_inverse(R, C)?.order(($($axis,)* C, R)).into_wide()],
                    Operator::Det => vec![x.try_det(R, C)?.order(($($axis,)*)).into_wide()],
                    Operator::SlogDet => {
                        let (sign, log) = x.try_slogdet(R, C)?;
                        vec![sign.order(($($axis,)*)).into_wide(), log.cast::<f64>().order(($($axis,)*)).into_wide()]
                    }
                    Operator::Lu => {
                        let (order, l, u) = x.try_lu(R, C, L)?;
                        vec![
                            order.cast::<f64>().order(($($axis,)* R,)).into_wide(),
                            l.order(($($axis,)* R, L)).into_wide(),
                            u.order(($($axis,)* L, C)).into_wide(),
                        ]
                    }
                    Operator::Qr => {
                        let (q, r) = x.try_qr(R, C, L)?;
                        vec![q.order(($($axis,)* R, L)).into_wide(), r.order(($($axis,)* L, C)).into_wide()]
                    }
                    Operator::Eigh => {
                        let (w, v) = x.try_eigh(R, C)?;
                        vec![w.cast::<f64>().order(($($axis,)* C,)).into_wide(), v.order(($($axis,)* R, C)).into_wide()]
                    }
                    Operator::Svd => {
                        let (u, s, v) = x.try_svd(R, C, L)?;
                        vec![
                            u.order(($($axis,)* R, L)).into_wide(),
                            s.cast::<f64>().order(($($axis,)* L,)).into_wide(),
                            v.order(($($axis,)* C, L)).into_wide(),
                        ]
                    }
                    Operator::SingularValues => {
                        vec![x.try_singular_values(R, C, L)?.cast::<f64>().order(($($axis,)* L,)).into_wide()]
                    }
                    Operator::Pinv => vec![x.try_pinv(R, C)?.order(($($axis,)* C, R)).into_wide()],
                    Operator::Lstsq => vec![x.try_lstsq(b(), R, C)?.order(($($axis,)* C, K)).into_wide()],
                    Operator::Rank => {
                        vec![x.try_matrix_rank(R, C)?.cast::<f64>().order(($($axis,)*)).into_wide()]
                    }
                    Operator::Cond => vec![x.try_cond(R, C)?.cast::<f64>().order(($($axis,)*)).into_wide()],
                    Operator::Power(exponent) => {
                        vec![x.try_matrix_power(R, C, exponent)?.order(($($axis,)* R, C)).into_wide()]
                    }
                    Operator::Expm => vec![x.try_expm(R, C)?.order(($($axis,)* R, C)).into_wide()],
                })
            }

            pub fn eig<T: TestElement + RealMatrixElement>(a: &ArrayViewD<'_, T>) -> Results
            where
                Complex<T>: Num + TestElement,
            {
                let (w, v) = a.at(($($axis,)* R, C)).try_eig(R, C)?;
                Ok(vec![w.order(($($axis,)* C,)).into_wide(), v.order(($($axis,)* R, C)).into_wide()])
            }
        }
    };
}

over! {
    /// One matrix.
    alone []
}
over! {
    /// A batch along one dim.
    batch [Outer]
}
over! {
    /// A batch along two dims. The dim of the columns is declared between these.
    batches [Outer Inner]
}

/// The order of the elements in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Layout {
    /// The last axis fastest.
    Contiguous,
    /// The first axis fastest.
    Transposed,
    /// Every other element of a larger array, which has NaN elsewhere.
    Sliced,
    /// All axes backwards.
    Reversed,
}

impl Layout {
    pub const ALL: [Layout; 4] = [Layout::Contiguous, Layout::Transposed, Layout::Sliced, Layout::Reversed];

    /// The same array in this layout.
    pub fn apply<T: TestElement>(self, array: &ArrayD<T>) -> ArrayD<T> {
        match self {
            Layout::Contiguous => array.clone(),
            Layout::Transposed => array.t().as_standard_layout().into_owned().reversed_axes(),
            Layout::Sliced => {
                let sizes: Vec<usize> = array.shape().iter().map(|size| 2 * size + 1).collect();
                let mut larger = ArrayD::from_elem(sizes, T::of(Complex::from(f64::NAN)));
                let part = Slice::new(1, None, 2);
                larger.slice_each_axis_mut(|_| part).assign(array);
                (0..array.ndim()).for_each(|axis| larger.slice_axis_inplace(Axis(axis), part));
                larger
            }
            Layout::Reversed => {
                let mut backwards = array.clone();
                (0..array.ndim()).for_each(|axis| backwards.invert_axis(Axis(axis)));
                let mut backwards = backwards.as_standard_layout().into_owned();
                (0..array.ndim()).for_each(|axis| backwards.invert_axis(Axis(axis)));
                backwards
            }
        }
    }
}

/// A matrix with elements of the type `T`.
pub fn narrow<T: TestElement>(a: &Wide) -> ArrayD<T> {
    a.mapv(T::of).into_dyn()
}

/// A result of one matrix, as a matrix: a vector is a column.
pub fn matrix(array: ArrayD<Complex<f64>>) -> Wide {
    match array.ndim() {
        2 => array.into_dimensionality::<Ix2>().expect("the array has two axes"),
        _ => {
            let len = array.len();
            Wide::from_shape_vec((len, 1), array.into_iter().collect()).expect("the sizes fit")
        }
    }
}
