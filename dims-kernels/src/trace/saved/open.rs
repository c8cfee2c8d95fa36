//! Recordings for any sizes of some dims, the open dims: a function recorded at several sizes, and
//! a formula for each number that differs.

use super::SavedRecording;
use super::numbers::{HasNumbers, Numeral};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

/// The number of times that a function is recorded.
pub const ROUNDS: usize = 4;

/// A number of a recording, for some sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum RecordedNumber {
    Integer(i128),
    Float(u64),
}

/// The dependence of a number on the open sizes.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
enum SizeFormula {
    /// An integer or a float.
    Whole(WholeFormula),
    /// A float: `factor / over x whole number`, or `factor / (over x whole number)`.
    Share {
        whole: WholeFormula,
        /// The bits of an `f64`.
        factor: u64,
        over: i64,
        divides: bool,
        is_single: bool,
    },
}

/// The dependence of a whole number on the open sizes.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
enum WholeFormula {
    /// `factor x product of powers of sizes + offset`, times other factors.
    Product { powers: Vec<u32>, factor: i64, offset: i64, others: Vec<ScaledSize> },
    /// Two terms `factor x product of powers of sizes`, added to `offset`.
    Sum { terms: [(Vec<u32>, i64); 2], offset: i64 },
}

/// `factor x size + offset`, for the open size at this position.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
struct ScaledSize {
    at: usize,
    factor: i64,
    offset: i64,
}

/// The numbers of a recording that depend on the open sizes.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct OpenNumbers(Vec<OpenNumber>);

/// A number that depends on the open sizes.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
struct OpenNumber {
    /// The position among all visited numbers.
    at: usize,
    formula: SizeFormula,
}

/// The values of a number, one for each round.
type Rounds = [RecordedNumber; ROUNDS];

/// The sizes of the open dims in each round.
pub type OpenSizes = [Vec<usize>; ROUNDS];

/// The sizes of the open dims, and the products of powers of these sizes, each with its exponents.
/// The products are sorted by degree.
struct RecordedSizes<'s> {
    sizes: &'s OpenSizes,
    products: Vec<(Vec<u32>, [i128; ROUNDS])>,
}

impl<'s> RecordedSizes<'s> {
    fn new(sizes: &'s OpenSizes) -> Self {
        let of_powers = |powers: Vec<u32>| {
            let [a, b, c, d] = sizes.each_ref().map(|own| product(own, &powers));
            Some((powers, [a?, b?, c?, d?]))
        };
        let products = all_powers(sizes[0].len()).into_iter().filter_map(of_powers).collect();
        RecordedSizes { sizes, products }
    }
}

/// The rounds differ in something that has no formula: the step at this position or, if `None`, the
/// inputs, constants, tables, outputs or number of steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BakedIn(pub Option<usize>);

/// Why a recording has no numbers for some sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Misfit {
    /// A number is too large.
    TooLarge,
    /// A number is too small, or a formula belongs to no number of the data.
    Other,
}

impl RecordedNumber {
    /// Why the number does not fit.
    fn misfit(self) -> Misfit {
        match self {
            RecordedNumber::Integer(value) if value > 0 => Misfit::TooLarge,
            _ => Misfit::Other,
        }
    }
}

impl WholeFormula {
    /// The formula of a whole number with these values.
    fn of(values: [i128; ROUNDS], sizes: &RecordedSizes<'_>) -> Option<Self> {
        WholeFormula::of_product(values, sizes)
            .or_else(|| WholeFormula::of_sum(values, sizes))
            .or_else(|| WholeFormula::of_factors(values, sizes, MOST_POWERS - 1))
    }

    /// A product of sizes.
    fn of_powers(powers: &[u32]) -> Self {
        WholeFormula::Product { powers: powers.to_vec(), factor: 1, offset: 0, others: Vec::new() }
    }

    /// A product of sizes, times a factor, plus an offset.
    fn of_product(values: [i128; ROUNDS], sizes: &RecordedSizes<'_>) -> Option<Self> {
        for (powers, product) in &sizes.products {
            let (rise, run) = (values[1] - values[0], product[1] - product[0]);
            if run == 0 || rise % run != 0 {
                continue;
            }
            let factor = rise / run;
            let offset = values[0] - factor * product[0];
            if (0..ROUNDS).all(|round| factor * product[round] + offset == values[round]) {
                let (factor, offset) = (i64::try_from(factor).ok()?, i64::try_from(offset).ok()?);
                return Some(WholeFormula::Product {
                    powers: powers.clone(),
                    factor,
                    offset,
                    others: Vec::new(),
                });
            }
        }
        None
    }

    /// A sum of two products of sizes, each times a factor.
    fn of_sum(values: [i128; ROUNDS], sizes: &RecordedSizes<'_>) -> Option<Self> {
        for (at, (first, a)) in sizes.products.iter().enumerate() {
            for (second, b) in &sizes.products[at + 1..] {
                // Two equations for the factors, from the differences between the first round and
                // two others.
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
                    let [f, g, offset] = [f, g, offset].map(|own| i64::try_from(own).ok());
                    return Some(WholeFormula::Sum {
                        terms: [(first.clone(), f?), (second.clone(), g?)],
                        offset: offset?,
                    });
                }
            }
        }
        None
    }

    /// A product with up to `most` other factors, such as `(h + 2) (w + 2)`.
    fn of_factors(values: [i128; ROUNDS], sizes: &RecordedSizes<'_>, most: u32) -> Option<Self> {
        const MOST_FACTOR: i64 = 8;
        const MOST_OFFSET: i64 = 256;
        if most == 0 {
            return None;
        }
        let first = i64::try_from(values[0]).ok()?;
        for (factor, at) in
            (1..=MOST_FACTOR).flat_map(|factor| (0..sizes.sizes[0].len()).map(move |at| (factor, at)))
        {
            let scaled = i64::try_from(sizes.sizes[0][at]).ok()?.checked_mul(factor)?;
            for offset in (0..=MOST_OFFSET).flat_map(|offset| [offset, -offset]).skip(1) {
                // Only few candidates divide the first value, so this test skips most of them
                // early.
                if first.checked_rem(scaled.saturating_add(offset)) != Some(0) {
                    continue;
                }
                let own = ScaledSize { at, factor, offset };
                let Some(quotients) = own.divide(values, sizes.sizes) else { continue };
                let rest = WholeFormula::of_product(quotients, sizes)
                    .or_else(|| WholeFormula::of_factors(quotients, sizes, most - 1));
                if let Some(WholeFormula::Product { powers, factor, offset, mut others }) = rest {
                    others.push(own);
                    return Some(WholeFormula::Product { powers, factor, offset, others });
                }
            }
        }
        None
    }

    /// The number for some sizes.
    fn value(&self, sizes: &[usize]) -> Option<i128> {
        match self {
            WholeFormula::Product { powers, factor, offset, others } => {
                let first =
                    product(sizes, powers)?.checked_mul((*factor).into())?.checked_add((*offset).into())?;
                others.iter().try_fold(first, |all, own| all.checked_mul(own.value(sizes)?))
            }
            WholeFormula::Sum { terms, offset } => {
                let term = |(powers, factor): &(Vec<u32>, i64)| {
                    product(sizes, powers)?.checked_mul((*factor).into())
                };
                term(&terms[0])?.checked_add(term(&terms[1])?)?.checked_add((*offset).into())
            }
        }
    }
}

impl SizeFormula {
    /// The formula of a number with these values.
    fn of(values: Rounds, sizes: &RecordedSizes<'_>) -> Option<Self> {
        let integers = values.map(|own| match own {
            RecordedNumber::Integer(value) => Some(value),
            RecordedNumber::Float(_) => None,
        });
        match integers {
            [Some(a), Some(b), Some(c), Some(d)] => {
                WholeFormula::of([a, b, c, d], sizes).map(SizeFormula::Whole)
            }
            _ => SizeFormula::of_floats(
                values.map(|own| match own {
                    RecordedNumber::Float(bits) => f64::from_bits(bits),
                    RecordedNumber::Integer(_) => f64::NAN,
                }),
                sizes,
            ),
        }
    }

    fn of_floats(values: [f64; ROUNDS], sizes: &RecordedSizes<'_>) -> Option<Self> {
        if let Some(share) = SizeFormula::of_floats_within(0, values, sizes) {
            return Some(share);
        }
        // If all floats are whole numbers, they can have a formula of integers, such as `n - 1`.
        let is_whole = |value: f64| num_traits::Float::fract(value) == 0.0 && value.abs() < MOST_EXACT;
        let are_whole = values.iter().all(|&value| is_whole(value));
        if are_whole && let Some(whole) = WholeFormula::of(values.map(|value| value as i128), sizes) {
            return Some(SizeFormula::Whole(whole));
        }
        // A product of several rounded numbers, such as `0.1 * (1.0 / n)`, may differ from its
        // formula by a few units in the last place. Whole numbers are not rounded, so a product of
        // whole numbers, such as `64 n^2`, is no formula for values that differ from it a little,
        // such as `64 n^2 - 1`.
        let is_whole_product = |found: &Self| match *found {
            SizeFormula::Share { factor, over: 1, divides: false, .. } => is_whole(f64::from_bits(factor)),
            _ => false,
        };
        SizeFormula::of_floats_within(2, values, sizes)
            .filter(|found| !(are_whole && is_whole_product(found)))
    }

    /// A formula that yields each value up to `most` units in the last place.
    fn of_floats_within(most: u64, values: [f64; ROUNDS], sizes: &RecordedSizes<'_>) -> Option<Self> {
        let are_single = values.iter().all(|&value| f64::from(value as f32) == value);
        for (powers, products) in &sizes.products {
            for (divides, is_single) in [(true, false), (true, true), (false, false), (false, true)] {
                if is_single && !are_single {
                    continue;
                }
                let factors = values.iter().zip(products).map(|(value, &product)| match divides {
                    true => value * product as f64,
                    false => value / product as f64,
                });
                // Rounding distorts the factor, so the nearest integers, fractions and `f32`s are
                // tried first.
                let factor = factors.sum::<f64>() / ROUNDS as f64;
                let (sign, size, single) = (factor.signum(), factor.abs(), factor as f32);
                let nearest = <f64 as num_traits::Float>::round;
                let candidates = [
                    (nearest(factor), 1),
                    (sign, nearest(1.0 / size) as i64),
                    (2.0 * sign, nearest(2.0 / size) as i64),
                    (f64::from(single), 1),
                    (f64::from(single.next_up()), 1),
                    (f64::from(single.next_down()), 1),
                    (factor, 1),
                    (factor.next_up(), 1),
                    (factor.next_down(), 1),
                ];
                for (factor, over) in candidates {
                    let is_near = |round: usize| {
                        let found = share(products[round], (factor, over), divides, is_single);
                        found.is_some_and(|own| units_between(own, values[round], is_single) <= most)
                    };
                    if factor != 0.0 && factor.is_finite() && (0..ROUNDS).all(is_near) {
                        let (whole, factor) = (WholeFormula::of_powers(powers), factor.to_bits());
                        return Some(SizeFormula::Share { whole, factor, over, divides, is_single });
                    }
                }
            }
        }
        let mut single = [false, true].into_iter().filter(|is_single| are_single || !is_single);
        single.find_map(|is_single| SizeFormula::of_divisor(most, values, sizes, is_single))
    }

    /// A fraction whose divisor is not just a product of sizes, such as `1 / (n - 1)`.
    fn of_divisor(
        most: u64,
        values: [f64; ROUNDS],
        sizes: &RecordedSizes<'_>,
        is_single: bool,
    ) -> Option<Self> {
        const MOST_OVER: i64 = 1024;
        // Below this limit, `rest` is unique: any other whole number yields a value more than
        // `most` units away.
        let digits = if is_single { f32::MANTISSA_DIGITS } else { f64::MANTISSA_DIGITS };
        let limit = ((1u64 << (digits - 1)) / (2 * most + 1)) as f64;
        let sign = values[0].signum();
        let products = sizes.products.iter().map(|(_, own)| *own);
        // Sizes and a factor are split off, so that the rest of the divisor is small.
        for product in core::iter::once([1; ROUNDS]).chain(products) {
            for (over, factor) in (1..=MOST_OVER).flat_map(|over| [(over, sign), (over, 2.0 * sign)]) {
                let mut divisors = [0; ROUNDS];
                let is_near = |round: usize| {
                    let rest = factor / (values[round] * over as f64 * product[round] as f64);
                    let rest = <f64 as num_traits::Float>::round(rest);
                    if !(1.0..limit).contains(&rest) {
                        return false;
                    }
                    divisors[round] = rest as i128 * product[round];
                    let found = share(divisors[round], (factor, over), true, is_single);
                    found.is_some_and(|own| units_between(own, values[round], is_single) <= most)
                };
                if (0..ROUNDS).all(is_near)
                    && let Some(whole) = WholeFormula::of(divisors, sizes)
                {
                    let factor = factor.to_bits();
                    return Some(SizeFormula::Share { whole, factor, over, divides: true, is_single });
                }
            }
        }
        None
    }

    /// The number for some sizes.
    fn value(&self, sizes: &[usize], is_float: bool) -> Result<RecordedNumber, Misfit> {
        // Two negative factors would yield a positive count, so no factor of an integer may be
        // negative.
        let misfits = |own: &ScaledSize| match own.value(sizes) {
            Some(value) => value < 0 && !is_float,
            None => own.at >= sizes.len(),
        };
        let (SizeFormula::Whole(whole) | SizeFormula::Share { whole, .. }) = self;
        if let WholeFormula::Product { others, .. } = whole
            && others.iter().any(misfits)
        {
            return Err(Misfit::Other);
        }
        self.checked_value(sizes).ok_or(Misfit::TooLarge)
    }

    fn checked_value(&self, sizes: &[usize]) -> Option<RecordedNumber> {
        match self {
            SizeFormula::Whole(whole) => Some(RecordedNumber::Integer(whole.value(sizes)?)),
            SizeFormula::Share { whole, factor, over, divides, is_single } => {
                let factor = (f64::from_bits(*factor), *over);
                let value = share(whole.value(sizes)?, factor, *divides, *is_single)?;
                Some(RecordedNumber::Float(value.to_bits()))
            }
        }
    }
}

impl ScaledSize {
    /// The values divided by those of this factor; `None` if a division has a remainder.
    fn divide(&self, mut values: [i128; ROUNDS], sizes: &OpenSizes) -> Option<[i128; ROUNDS]> {
        for (value, sizes) in values.iter_mut().zip(sizes) {
            let by = self.value(sizes)?;
            if by == 0 || *value % by != 0 {
                return None;
            }
            *value /= by;
        }
        Some(values)
    }

    /// The value for some sizes; `None` if it is too large, or there is no such size.
    fn value(&self, sizes: &[usize]) -> Option<i128> {
        let size = *sizes.get(self.at)? as i128;
        size.checked_mul(self.factor.into())?.checked_add(self.offset.into())
    }
}

/// All integers below this are `f64`s.
const MOST_EXACT: f64 = (1u64 << f64::MANTISSA_DIGITS) as f64;

/// The value of [`SizeFormula::Share`] for a whole number.
fn share(whole: i128, (factor, over): (f64, i64), divides: bool, is_single: bool) -> Option<f64> {
    let over = i128::from(over);
    let value = match divides {
        true => factor / whole.checked_mul(over)? as f64,
        false => factor * whole as f64 / over as f64,
    };
    Some(if is_single { f64::from(value as f32) } else { value })
}

/// The distance between two floats of the same sign in units in the last place.
fn units_between(a: f64, b: f64, is_single: bool) -> u64 {
    match is_single {
        true => (a as f32).to_bits().abs_diff((b as f32).to_bits()).into(),
        false => a.to_bits().abs_diff(b.to_bits()),
    }
}

/// The greatest number of sizes in a product, with repetitions.
const MOST_POWERS: u32 = 3;

/// Exponents for products of sizes, sorted by degree.
fn all_powers(count: usize) -> Vec<Vec<u32>> {
    let mut all: Vec<Vec<u32>> = alloc::vec![Vec::new()];
    for _ in 0..count {
        all = all
            .into_iter()
            .flat_map(|powers| {
                let used: u32 = powers.iter().sum();
                (0..=MOST_POWERS - used).map(move |power| powers.iter().copied().chain([power]).collect())
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
    fn value(&self) -> RecordedNumber {
        match self {
            Numeral::Unsigned(own) | Numeral::Count(own) => RecordedNumber::Integer(**own as i128),
            Numeral::Signed(own) => RecordedNumber::Integer(**own as i128),
            Numeral::Word(own) => RecordedNumber::Integer(i128::from(**own)),
            Numeral::Float(own) => RecordedNumber::Float(**own),
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
            (Numeral::Float(own), RecordedNumber::Integer(value)) => *own = (value as f64).to_bits(),
            _ => return None,
        }
        Some(())
    }
}

/// Finds the formulas of the numbers in data of several rounds, part by part.
pub struct OpenFinder<'s> {
    sizes: RecordedSizes<'s>,
    /// The formulas found so far.
    known: BTreeMap<Rounds, SizeFormula>,
    /// The number of numbers in the previous parts.
    count: usize,
    found: OpenNumbers,
}

impl<'s> OpenFinder<'s> {
    /// A finder for recordings at these sizes.
    pub fn new(sizes: &'s OpenSizes) -> Self {
        let (sizes, known) = (RecordedSizes::new(sizes), BTreeMap::new());
        OpenFinder { sizes, known, count: 0, found: OpenNumbers::default() }
    }

    /// Adds the numbers that `visit_all` visits in the next part. Returns whether they all follow
    /// formulas and the rounds otherwise have the same data.
    ///
    /// If this returns true, it has replaced the numbers of all rounds by those of the first.
    pub fn add<X: PartialEq>(
        &mut self,
        rounds: [&mut X; ROUNDS],
        visit_all: impl Fn(&mut X, &mut dyn FnMut(Numeral<'_>)),
    ) -> bool {
        let mut numbers = [const { Vec::new() }; ROUNDS];
        let [first, others @ ..] = rounds;
        visit_all(first, &mut |number| numbers[0].push(number.value()));
        for (round, own) in others.into_iter().enumerate() {
            let (known, numbers) = numbers.split_at_mut(round + 1);
            visit_all(own, &mut |number| {
                numbers[0].push(number.value());
                // A number that does not fit makes the data differ.
                let _ = known[0].get(numbers[0].len() - 1).and_then(|own| number.set(*own));
            });
            if *own != *first {
                return false;
            }
        }
        for at in 0..numbers[0].len() {
            let values = numbers.each_ref().map(|own| own[at]);
            if values.iter().all(|own| *own == values[0]) {
                continue;
            }
            let formula = match self.known.get(&values) {
                Some(known) => known.clone(),
                None => {
                    let Some(new) = SizeFormula::of(values, &self.sizes) else { return false };
                    self.known.insert(values, new.clone());
                    new
                }
            };
            self.found.0.push(OpenNumber { at: self.count + at, formula });
        }
        self.count += numbers[0].len();
        true
    }

    /// The formulas.
    pub fn finish(self) -> OpenNumbers {
        self.found
    }
}

impl OpenNumbers {
    /// Sets the numbers of data to their values for some sizes. After an error, some numbers are
    /// unchanged.
    pub fn set<X>(
        &self,
        data: &mut X,
        sizes: &[usize],
        visit_all: impl Fn(&mut X, &mut dyn FnMut(Numeral<'_>)),
    ) -> Result<(), Misfit> {
        let (mut open, mut at, mut found) = (self.0.iter().peekable(), 0, Ok(()));
        visit_all(data, &mut |number| {
            if let Some(own) = open.next_if(|own| own.at == at) {
                let value = own.formula.value(sizes, matches!(number, Numeral::Float(_)));
                let set = |value: RecordedNumber| number.set(value).ok_or(value.misfit());
                found = found.and(value.and_then(set));
            }
            at += 1;
        });
        if open.next().is_some() { found.and(Err(Misfit::Other)) } else { found }
    }
}

impl SavedRecording {
    /// Finds the formulas of the numbers in recordings of the same function at [`ROUNDS`] sizes. On
    /// an error, the recordings have lost their steps.
    pub fn open(rounds: [&mut SavedRecording; ROUNDS], finder: &mut OpenFinder<'_>) -> Result<(), BakedIn> {
        let mut steps = rounds.map(|own| (core::mem::take(&mut own.steps), own));
        let around = steps.each_mut().map(|(_, own)| &mut **own);
        if !finder.add(around, SavedRecording::numbers_around) {
            return Err(BakedIn(None));
        }
        let counts = steps.each_ref().map(|own| own.0.len());
        for step in 0..*counts.iter().min().unwrap_or(&0) {
            if !finder.add(steps.each_mut().map(|own| &mut own.0[step]), HasNumbers::numbers) {
                return Err(BakedIn(Some(step)));
            }
        }
        if counts.iter().any(|own| *own != counts[0]) {
            return Err(BakedIn(None));
        }
        steps.into_iter().for_each(|(steps, own)| own.steps = steps);
        Ok(())
    }

    /// Calls `visit` with each number.
    pub fn numbers(&mut self, visit: &mut dyn FnMut(Numeral<'_>)) {
        self.numbers_around(visit);
        self.steps.numbers(visit);
    }
}
