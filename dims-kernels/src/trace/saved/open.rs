//! Recordings for any sizes of some dims: a function that was recorded at several sizes, and a formula for each number that differs.

use super::numbers::{HasNumbers, Numeral};
use super::{SavedRecording, refused};
use crate::error::Error;
use alloc::vec::Vec;

/// How many times a function is recorded.
pub const ROUNDS: usize = 4;

/// A number of a recording, for some sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum RecordedNumber {
    Integer(i128),
    Float(u64),
}

/// How a number depends on the open sizes.
#[derive(Clone, Debug, PartialEq)]
enum SizeFormula {
    Constant(RecordedNumber),
    /// `factor x product of powers of sizes + offset`
    Product {
        powers: Vec<u32>,
        factor: i128,
        offset: i128,
    },
    /// `sum of factor x product of powers of sizes + offset`
    Sum {
        terms: [(Vec<u32>, i128); 2],
        offset: i128,
    },
    /// A float: `factor x product of powers of sizes`, or that divided into `factor`.
    Share {
        powers: Vec<u32>,
        factor: f64,
        divides: bool,
        is_single: bool,
    },
}

/// HasNumbers that follow the open sizes.
#[derive(Clone, Debug)]
pub struct OpenNumbers {
    formulas: Vec<SizeFormula>,
    /// The next number to be read.
    next: usize,
}

/// The values of a number, one for each round.
type Rounds = [RecordedNumber; ROUNDS];

/// The sizes of the open dims in each round.
pub type OpenSizes = [Vec<usize>; ROUNDS];

/// A recording for any sizes of the open dims.
#[derive(Clone, Debug)]
pub struct OpenRecording {
    /// The recording with other numbers.
    skeleton: SavedRecording,
    numbers: OpenNumbers,
}

/// Reports a number that differs between rounds and has no formula. Contains the position of the step, or `None` for an input, a constant, a table or a result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BakedIn(pub Option<usize>);

impl SizeFormula {
    /// The formula of a number with these values.
    fn of(values: Rounds, sizes: &OpenSizes) -> Option<Self> {
        if values.iter().all(|own| *own == values[0]) {
            return Some(SizeFormula::Constant(values[0]));
        }
        let integers = values.map(|own| match own {
            RecordedNumber::Integer(value) => Some(value),
            RecordedNumber::Float(_) => None,
        });
        match integers {
            [Some(a), Some(b), Some(c), Some(d)] => SizeFormula::of_integers([a, b, c, d], sizes),
            _ => SizeFormula::of_floats(
                values.map(|own| match own {
                    RecordedNumber::Float(bits) => f64::from_bits(bits),
                    RecordedNumber::Integer(_) => f64::NAN,
                }),
                sizes,
            ),
        }
    }

    fn of_integers(values: [i128; ROUNDS], sizes: &OpenSizes) -> Option<Self> {
        for powers in all_powers(sizes[0].len()) {
            let product = sizes.each_ref().map(|own| product(own, &powers));
            let [Some(first), Some(second), ..] = product else { continue };
            let (rise, run) = (values[1] - values[0], second - first);
            if run == 0 || rise % run != 0 {
                continue;
            }
            let factor = rise / run;
            let offset = values[0] - factor * first;
            if (0..ROUNDS)
                .all(|round| product[round].is_some_and(|own| factor * own + offset == values[round]))
            {
                return Some(SizeFormula::Product { powers, factor, offset });
            }
        }
        SizeFormula::of_sum(values, sizes)
    }

    /// A sum of two products of sizes, each times a factor.
    fn of_sum(values: [i128; ROUNDS], sizes: &OpenSizes) -> Option<Self> {
        let of_powers = |powers: Vec<u32>| {
            let [a, b, c, d] = sizes.each_ref().map(|own| product(own, &powers));
            Some((powers, [a?, b?, c?, d?]))
        };
        let products: Vec<_> = all_powers(sizes[0].len()).into_iter().filter_map(of_powers).collect();
        for (at, (first, a)) in products.iter().enumerate() {
            for (second, b) in &products[at + 1..] {
                // Two equations for the factors: the differences to the first round.
                let [(x1, y1, r1), (x2, y2, r2)] =
                    [1, 2].map(|round| (a[round] - a[0], b[round] - b[0], values[round] - values[0]));
                let determinant = x1 * y2 - x2 * y1;
                let (f, g) = (r1 * y2 - r2 * y1, x1 * r2 - x2 * r1);
                if determinant == 0 || f % determinant != 0 || g % determinant != 0 {
                    continue;
                }
                let (f, g) = (f / determinant, g / determinant);
                let offset = values[0] - f * a[0] - g * b[0];
                if (0..ROUNDS).all(|round| f * a[round] + g * b[round] + offset == values[round]) {
                    return Some(SizeFormula::Sum {
                        terms: [(first.clone(), f), (second.clone(), g)],
                        offset,
                    });
                }
            }
        }
        None
    }

    fn of_floats(values: [f64; ROUNDS], sizes: &OpenSizes) -> Option<Self> {
        for powers in all_powers(sizes[0].len()) {
            for (divides, is_single) in [(true, false), (true, true), (false, false), (false, true)] {
                let Some(first) = product(&sizes[0], &powers) else { continue };
                // The factor is a whole number, from which rounding has led away, or another one.
                let exact = if divides { values[0] * first as f64 } else { values[0] / first as f64 };
                for factor in [num_traits::Float::round(exact), exact] {
                    let formula = SizeFormula::Share { powers: powers.clone(), factor, divides, is_single };
                    let is_same = |round: usize| {
                        let found = formula.value(&sizes[round]);
                        found == Some(RecordedNumber::Float(values[round].to_bits()))
                    };
                    if factor != 0.0 && factor.is_finite() && (0..ROUNDS).all(is_same) {
                        return Some(formula);
                    }
                }
            }
        }
        None
    }

    /// The number for some sizes; `None` if it is too large.
    fn value(&self, sizes: &[usize]) -> Option<RecordedNumber> {
        match self {
            SizeFormula::Constant(value) => Some(*value),
            SizeFormula::Product { powers, factor, offset } => Some(RecordedNumber::Integer(
                product(sizes, powers)?.checked_mul(*factor)?.checked_add(*offset)?,
            )),
            SizeFormula::Sum { terms, offset } => {
                let term = |(powers, factor): &(Vec<u32>, i128)| product(sizes, powers)?.checked_mul(*factor);
                let sum = term(&terms[0])?.checked_add(term(&terms[1])?)?;
                Some(RecordedNumber::Integer(sum.checked_add(*offset)?))
            }
            SizeFormula::Share { powers, factor, divides, is_single } => {
                let product = product(sizes, powers)? as f64;
                let value = if *divides { factor / product } else { factor * product };
                let value = if *is_single { f64::from(value as f32) } else { value };
                Some(RecordedNumber::Float(value.to_bits()))
            }
        }
    }
}

/// Exponents for products of sizes, sorted by degree.
fn all_powers(count: usize) -> Vec<Vec<u32>> {
    /// The greatest sum of exponents.
    const MOST: u32 = 3;
    let mut all: Vec<Vec<u32>> = alloc::vec![Vec::new()];
    for _ in 0..count {
        all = all
            .into_iter()
            .flat_map(|powers| {
                let used: u32 = powers.iter().sum();
                (0..=MOST - used).map(move |power| powers.iter().copied().chain([power]).collect())
            })
            .collect();
    }
    all.retain(|powers| powers.iter().any(|&power| power > 0));
    all.sort_by_key(|powers| powers.iter().sum::<u32>());
    all
}

fn product(sizes: &[usize], powers: &[u32]) -> Option<i128> {
    sizes
        .iter()
        .zip(powers)
        .try_fold(1i128, |product, (&size, &power)| product.checked_mul((size as i128).checked_pow(power)?))
}

impl Numeral<'_> {
    /// The value. A skeleton value takes its place.
    fn take(self) -> RecordedNumber {
        match self {
            Numeral::Unsigned(own) => RecordedNumber::Integer(core::mem::take(own) as i128),
            Numeral::Signed(own) => RecordedNumber::Integer(core::mem::take(own) as i128),
            Numeral::Word(own) => RecordedNumber::Integer(i128::from(core::mem::take(own))),
            Numeral::Float(own) => RecordedNumber::Float(core::mem::take(own)),
            Numeral::Count(own) => RecordedNumber::Integer(core::mem::replace(own, 1) as i128),
        }
    }

    /// Sets the value; `None` if it does not fit.
    fn set(self, value: RecordedNumber) -> Option<()> {
        match (self, value) {
            (Numeral::Unsigned(own), RecordedNumber::Integer(value)) => *own = usize::try_from(value).ok()?,
            (Numeral::Count(own), RecordedNumber::Integer(value)) => {
                *own = usize::try_from(value)
                    .ok()
                    .filter(|count| (1..=isize::MAX as usize / 16).contains(count))?;
            }
            (Numeral::Signed(own), RecordedNumber::Integer(value)) => *own = isize::try_from(value).ok()?,
            (Numeral::Word(own), RecordedNumber::Integer(value)) => *own = u64::try_from(value).ok()?,
            (Numeral::Float(own), RecordedNumber::Float(bits)) => *own = bits,
            _ => return None,
        }
        Some(())
    }
}

impl OpenNumbers {
    /// The numbers that `visit_all` visits in the data of each round; `None` if one follows no formula. The data become skeletons.
    pub fn of<X>(
        rounds: &mut [X; ROUNDS],
        sizes: &OpenSizes,
        visit_all: impl Fn(&mut X, &mut dyn FnMut(Numeral<'_>)),
    ) -> Option<Self> {
        let values = rounds.each_mut().map(|own| {
            let mut values = Vec::new();
            visit_all(own, &mut |number| values.push(number.take()));
            values
        });
        let [first, others @ ..] = &values;
        if others.iter().any(|own| own.len() != first.len()) {
            return None;
        }
        let formulas =
            (0..first.len()).map(|at| SizeFormula::of(values.each_ref().map(|own| own[at]), sizes));
        Some(OpenNumbers { formulas: formulas.collect::<Option<_>>()?, next: 0 })
    }

    /// Sets the next number to its value for some sizes. `None` if it does not fit.
    pub fn set_next(&mut self, number: Numeral<'_>, sizes: &[usize]) -> Option<()> {
        let formula = self.formulas.get(self.next)?;
        self.next += 1;
        number.set(formula.value(sizes)?)
    }
}

impl SavedRecording {
    /// A recording for any sizes, from recordings of the same function at [`ROUNDS`] sizes.
    pub fn open(mut rounds: [SavedRecording; ROUNDS], sizes: &OpenSizes) -> Result<OpenRecording, BakedIn> {
        let around = OpenNumbers::of(&mut rounds, sizes, |own, visit| own.numbers_around(visit));
        let Some(mut numbers) = around else { return Err(BakedIn(None)) };
        let steps = rounds.each_ref().map(|own| own.steps.len());
        for step in 0..*steps.iter().min().unwrap_or(&0) {
            let found = OpenNumbers::of(&mut rounds, sizes, |own, visit| own.steps[step].numbers(visit));
            let is_same = rounds.iter().all(|own| own.steps[step] == rounds[0].steps[step]);
            match found {
                Some(own) if is_same => numbers.formulas.extend(own.formulas),
                _ => return Err(BakedIn(Some(step))),
            }
        }
        if rounds.iter().any(|own| *own != rounds[0]) {
            return Err(BakedIn(None));
        }
        let [skeleton, ..] = rounds;
        Ok(OpenRecording { skeleton, numbers })
    }
}

impl OpenRecording {
    /// The recording for some sizes.
    pub fn at(&self, sizes: &[usize]) -> Result<SavedRecording, Error> {
        let (mut recording, mut numbers) = (self.skeleton.clone(), self.numbers.clone());
        let mut fits = true;
        let mut set = |number: Numeral<'_>| fits &= numbers.set_next(number, sizes).is_some();
        recording.numbers_around(&mut set);
        recording.steps.iter_mut().for_each(|step| step.numbers(&mut set));
        if fits { Ok(recording) } else { Err(refused("a number does not fit for these sizes")) }
    }
}
