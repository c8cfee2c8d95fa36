//! The matrices of `reference.py`, made by the same formulas.

use crate::splitmix::Random;
use ndarray::{Array2, Axis};
use num_complex::Complex;
use serde_json::Value;

/// A complex matrix in double precision.
pub type Wide = Array2<Complex<f64>>;

/// A matrix, and the results that NumPy and SciPy compute from it.
pub struct Case {
    pub matrix: String,
    pub rows: usize,
    pub columns: usize,
    pub seed: u64,
    pub is_complex: bool,
    pub is_double: bool,
    pub is_single: bool,
    results: Value,
}

impl Case {
    pub fn all(text: &str) -> Vec<Case> {
        let Value::Array(all) = serde_json::from_str(text).expect("the text is JSON") else {
            panic!("the text is not a list")
        };
        let case = |own: Value| {
            let size = |name: &str| own[name].as_u64().expect("the field is a number");
            let types = own["types"].as_str().expect("the field is text").to_owned();
            Case {
                matrix: own["matrix"].as_str().expect("the field is text").to_owned(),
                rows: size("rows") as usize,
                columns: size("columns") as usize,
                seed: size("seed"),
                is_complex: own["complex"].as_bool().expect("the field is a bool"),
                is_double: types != "single",
                is_single: types != "double",
                results: own["results"].clone(),
            }
        };
        all.into_iter().map(case).collect()
    }

    pub fn a(&self) -> Wide {
        let (rows, columns) = (self.rows, self.columns);
        let mut random = Random(self.seed);
        let mut numbers = |rows, columns| numbers(&mut random, rows, columns, self.is_complex);
        let of = |f: &dyn Fn(usize, usize) -> f64| {
            Array2::from_shape_fn((rows, columns), |(row, column)| Complex::from(f(row, column)))
        };
        let on = |is_true: bool, value: f64| if is_true { value } else { 0.0 };
        match &*self.matrix {
            "general" => numbers(rows, columns),
            "definite" => {
                let a = numbers(rows, columns);
                a.dot(&adjoint(&a)) + Array2::<Complex<f64>>::eye(rows)
            }
            "symmetric" => {
                let a = numbers(rows, columns);
                &a + &adjoint(&a)
            }
            "deficient" => {
                let rank = rows.min(columns) / 2;
                let left = numbers(rows, rank);
                left.dot(&numbers(rank, columns))
            }
            "zero" => of(&|_, _| 0.0),
            "repeated" => of(&|row, column| 1.0 + on(row == column, 3.0)),
            "rotations" => of(&|row, column| match row % 2 {
                0 if row + 1 == rows => on(column == row, 1.0),
                0 => on(column == row + 1, -1.0),
                _ => on(column + 1 == row, 1.0),
            }),
            "jordan" => of(&|row, column| on(row == column, 2.0) + on(row + 1 == column, 1.0)),
            "exchange" => of(&|row, column| on(row + column + 1 == rows, row as f64 + 1.0)),
            "hilbert" => of(&|row, column| 1.0 / (1.0 + row as f64 + column as f64)),
            "graded" => {
                let mut a = numbers(rows, columns);
                for (row, mut own) in a.axis_iter_mut(Axis(0)).enumerate() {
                    own *= Complex::from(2f64.powi(4 * (5 * row as i32 % 7) - 12));
                }
                a
            }
            "skewed" => of(&|row, column| {
                on(row == column, if row % 2 == 0 { 1.0 } else { -1.0 })
                    + on(row + 1 == column, 2f64.powi(20))
            }),
            "growing" => numbers(rows, columns) * Complex::from(8.0),
            other => {
                numbers(rows, columns) * Complex::from(2f64.powi(exponent(other).expect("the name is known")))
            }
        }
    }

    /// The greatest magnitude of an element if the matrix is tiny or huge, otherwise 1.
    pub fn scale(&self) -> f64 {
        exponent(&self.matrix).map_or(1.0, |_| self.a().iter().fold(0.0, |most: f64, x| most.max(x.norm())))
    }

    /// Right-hand sides for the matrix: 3 columns.
    pub fn b(&self) -> Wide {
        numbers(&mut Random(1000 + self.rows as u64), self.rows, 3, self.is_complex)
    }

    /// The matrix whose exponential is compared.
    pub fn exponent(&self) -> Wide {
        let a = self.a();
        if !self.is_single {
            return a;
        }
        let most = a.axis_iter(Axis(1)).map(|own| own.iter().map(|x| x.norm()).sum()).fold(0.0, f64::max);
        a / Complex::from(2f64.powf((1.0 + most).log2().ceil()))
    }

    /// The numbers of a result; real and imaginary parts in turn if it is complex.
    pub fn reals(&self, name: &str) -> Option<Vec<f64>> {
        let number = |own: &Value| match own {
            Value::String(text) => text.parse().expect("the result is a number"),
            own => own.as_f64().expect("the result is a number"),
        };
        Some(self.results.get(name)?.as_array()?.iter().map(number).collect())
    }

    /// The numbers of a result that is complex if the matrix is. `eig` is always complex.
    pub fn numbers(&self, name: &str) -> Option<Vec<Complex<f64>>> {
        let reals = self.reals(name)?;
        Some(match self.is_complex || name == "eig" {
            true => reals.chunks(2).map(|own| Complex::new(own[0], own[1])).collect(),
            false => reals.into_iter().map(Complex::from).collect(),
        })
    }

    /// The reason why the reference has no result. `None` if it has a result, or does not list one.
    pub fn refused(&self, name: &str) -> Option<&str> {
        self.results.get(name)?.as_str()
    }

    pub fn real(&self, name: &str) -> Option<f64> {
        Some(self.reals(name)?[0])
    }

    pub fn is_square(&self) -> bool {
        self.rows == self.columns
    }
}

fn exponent(matrix: &str) -> Option<i32> {
    Some(match matrix {
        "tiny" => -500,
        "huge" => 500,
        "tiniest" => -600,
        "hugest" => 600,
        "tiny_single" => -60,
        "huge_single" => 60,
        _ => return None,
    })
}

fn numbers(random: &mut Random, rows: usize, columns: usize, is_complex: bool) -> Wide {
    let mut next = || ((random.next() % 257) as f64 - 128.0) / 64.0;
    let element = |_| Complex::new(next(), if is_complex { next() } else { 0.0 });
    Array2::from_shape_vec((rows, columns), (0..rows * columns).map(element).collect())
        .expect("the sizes fit")
}

/// The conjugate transpose.
pub fn adjoint(a: &Wide) -> Wide {
    a.t().mapv(|x| x.conj())
}

/// The Frobenius norm, computed without overflow of the squares.
pub fn norm(a: &Wide) -> f64 {
    let most = a.iter().fold(0.0, |most: f64, x| most.max(x.re.abs()).max(x.im.abs()));
    if most == 0.0 || !most.is_finite() {
        return most;
    }
    most * a.iter().map(|x| (x / most).norm_sqr()).sum::<f64>().sqrt()
}

/// Shortens a matrix with more than 16 elements: multiplies it by a vector, and sums the elements
/// of the product that are 8 apart. Also returns an upper bound of the factor by which this
/// multiplies an error.
pub fn sketch(a: &Wide) -> (Vec<Complex<f64>>, f64) {
    if a.len() <= 16 {
        return (a.iter().copied().collect(), 1.0);
    }
    let columns = a.ncols();
    let vector = numbers(&mut Random(2000 + columns as u64), columns, 1, false);
    let product = a.dot(&vector);
    let mut folded = vec![Complex::from(0.0); a.nrows().min(8)];
    for (row, own) in product.iter().enumerate() {
        folded[row % 8] += own;
    }
    (folded, norm(&vector) * (a.nrows().div_ceil(8) as f64).sqrt())
}
