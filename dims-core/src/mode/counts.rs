//! Steps, operations and bytes.

use super::{Mode, Ran, with};
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use core::fmt;
use kernels::loops::steps::PlanStep;

/// What steps of one kind did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StepCount {
    /// How many there were.
    pub steps: usize,
    /// How much they computed: see [`PlanStep::operations`].
    pub operations: usize,
    /// The bytes of their results.
    pub bytes: usize,
}

impl StepCount {
    fn add(&mut self, other: StepCount) {
        self.steps += other.steps;
        self.operations = self.operations.saturating_add(other.operations);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// Steps, operations and bytes by [kind of step](PlanStep::kind): a mode, and what [`count`] returns. It prints as a table.
///
/// An operation is a multiplication or an addition of a product or of attention, or one element that another step works on, whatever it does with it: `(x * 2 + 1).exp()` over 10
/// elements is one step of 10 operations. Copies compute nothing. Bytes are those of results, also of copies within an operation. Of a loop of calls, the steps of the calls count
/// by themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts(BTreeMap<(bool, &'static str), StepCount>);

impl Counts {
    /// What the steps of a kind did, those of gradients among them.
    pub fn of(&self, kind: &str) -> StepCount {
        self.sum(|(_, own)| *own == kind)
    }

    /// What the steps did that compute gradients.
    pub fn backward(&self) -> StepCount {
        self.sum(|(is_backward, _)| *is_backward)
    }

    /// What all steps did.
    pub fn total(&self) -> StepCount {
        self.sum(|_| true)
    }

    /// How many steps there were.
    pub fn steps(&self) -> usize {
        self.total().steps
    }

    /// How much they computed.
    pub fn operations(&self) -> usize {
        self.total().operations
    }

    /// The bytes of their results.
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

/// A number with a comma before each three digits.
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

/// Runs `f`, and returns what it returns with the steps, operations and bytes of what it ran on this thread.
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
