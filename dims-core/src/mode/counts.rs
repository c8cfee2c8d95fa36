//! Counts steps, their operations and their bytes.

use super::{Mode, Ran, with};
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use core::fmt;
use kernels::loops::steps::PlanStep;

/// Totals over several steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StepCount {
    /// The number of steps.
    pub steps: usize,
    /// The number of operations: see [`PlanStep::operations`].
    pub operations: usize,
    /// The size of the results of the steps in bytes.
    pub bytes: usize,
}

impl StepCount {
    fn add(&mut self, other: StepCount) {
        self.steps += other.steps;
        self.operations = self.operations.saturating_add(other.operations);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// Steps, operations and bytes by [kind of step](PlanStep::kind): the mode of [`count`]. It prints
/// as a table.
///
/// For products and attention, each multiplication and addition is an operation; for other steps,
/// each element that they process counts as one, however many functions are applied to it:
/// `(x * 2 + 1).exp()` over 10 elements is one step of 10 operations. Copies and calls count no
/// operations. Bytes are those of all results, including copies made within an operation. In a loop
/// of calls, the steps of each call are counted too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts(BTreeMap<(bool, &'static str), StepCount>);

impl Counts {
    /// Totals over the steps of this kind, including steps that compute gradients.
    pub fn of(&self, kind: &str) -> StepCount {
        self.sum(|(_, own)| *own == kind)
    }

    /// Totals over the steps that compute gradients.
    pub fn backward(&self) -> StepCount {
        self.sum(|(is_backward, _)| *is_backward)
    }

    /// Totals over all steps.
    pub fn total(&self) -> StepCount {
        self.sum(|_| true)
    }

    /// The number of steps.
    pub fn steps(&self) -> usize {
        self.total().steps
    }

    /// The number of operations.
    pub fn operations(&self) -> usize {
        self.total().operations
    }

    /// The size of the results in bytes.
    pub fn bytes(&self) -> usize {
        self.total().bytes
    }

    fn sum(&self, of: impl Fn(&(bool, &'static str)) -> bool) -> StepCount {
        let mut sum = StepCount::default();
        self.0.iter().filter(|(kind, _)| of(kind)).for_each(|(_, own)| sum.add(*own));
        sum
    }
}

impl Mode for Counts {
    fn ran(&mut self, ran: &Ran<'_>) {
        let bytes = match ran.step {
            PlanStep::Calls { bytes, .. } => *bytes,
            step => step.bytes(),
        };
        let own = StepCount { steps: 1, operations: ran.step.operations(), bytes };
        self.0.entry((ran.is_backward, ran.step.kind())).or_default().add(own);
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |f: &mut fmt::Formatter<'_>, name: &str, own: StepCount| {
            let [steps, operations, bytes] = [own.steps, own.operations, own.bytes].map(grouped);
            write!(f, "{name:<24}{steps:>8}{operations:>20}{bytes:>18}")
        };
        writeln!(f, "{:<24}{:>8}{:>20}{:>18}", "kind", "steps", "operations", "bytes")?;
        for (&(is_backward, kind), &own) in &self.0 {
            let name = if is_backward { format!("{kind} (gradient)") } else { kind.to_string() };
            line(f, &name, own)?;
            writeln!(f)?;
        }
        line(f, "all", self.total())
    }
}

/// The number with commas between groups of three digits.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Runs `f` and returns its result with counts of the steps that it ran on this thread, of their
/// operations and of their bytes.
///
/// ```
/// use typed_dims::mode;
/// use typed_dims::prelude::*;
///
/// let (a, b) = (Array2::<f32>::ones((8, 16)), Array2::<f32>::ones((16, 32)));
/// dims!(i, j, k);
/// let (c, counts) = mode::count(|| ((a.at((i, k)) * b.at((k, j))).sum(k) + 1.0).relu().eval());
/// assert_eq!((counts.of("product").operations, counts.of("elementwise").operations), (2 * 8 * 16 * 32, 8 * 32));
/// println!("{counts}");
/// # drop(c);
/// ```
pub fn count<T>(f: impl FnOnce() -> T) -> (T, Counts) {
    let mut counts = Counts::default();
    let result = with(&mut counts, f);
    (result, counts)
}
