//! The costs of operations on streams, as printable data.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
#[cfg(feature = "std")]
use core::cell::RefCell;
use core::fmt;

/// The cost of an operation on hardware that streams the data dimension.
///
/// The classes are from Vollo's documentation. They are costs on the hardware, not in this library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CostClass {
    /// No compute: the elements are not moved.
    Free,
    /// Almost no compute: a broadcast of the data dimension.
    CloseToFree,
    /// The elements are computed or moved.
    Compute,
    /// Compute, and generally slower: a reduction, a softmax or a running sum along a dim other
    /// than the data dimension, or a contraction with dynamic weights.
    Slower,
}

impl CostClass {
    /// All classes, the cheapest first.
    pub const ALL: [CostClass; 4] =
        [CostClass::Free, CostClass::CloseToFree, CostClass::Compute, CostClass::Slower];
}

impl fmt::Display for CostClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            CostClass::Free => "free",
            CostClass::CloseToFree => "close to free",
            CostClass::Compute => "compute",
            CostClass::Slower => "slower",
        })
    }
}

/// The axes of a stream or a constant with their sizes: `[Time=4 Feat!=8]`, where `!` marks the
/// data dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamShape {
    /// The names and sizes of the axes, in order.
    pub axes: Vec<(&'static str, usize)>,
    /// The position of the data dimension, or `None` for a constant.
    pub data: Option<usize>,
}

impl fmt::Display for StreamShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (at, (name, size)) in self.axes.iter().enumerate() {
            let (space, mark) = (if at > 0 { " " } else { "" }, if self.data == Some(at) { "!" } else { "" });
            write!(f, "{space}{name}{mark}={size}")?;
        }
        f.write_str("]")
    }
}

/// One operation of a program on streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerEntry {
    /// The name of the operation, with its main arguments: `sum(Time)`.
    pub operation: String,
    /// The operands, including constants but not scalars. For a concatenation or a stack, only the
    /// first part.
    pub operands: Vec<StreamShape>,
    /// The result.
    pub result: StreamShape,
    /// The cost.
    pub cost: CostClass,
    /// Whether the operation needs dynamic weights.
    pub dynamic_weights: bool,
}

impl fmt::Display for LedgerEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operands: Vec<String> = self.operands.iter().map(StreamShape::to_string).collect();
        let weights = if self.dynamic_weights { " (dynamic weights)" } else { "" };
        write!(f, "{:<13}  {}: {} -> {}{weights}", self.cost, self.operation, operands.join(" "), self.result)
    }
}

/// The operations of a program on streams, in order. See [`ledger`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// The operations.
    pub entries: Vec<LedgerEntry>,
}

impl Ledger {
    /// The number of operations of a class.
    pub fn count(&self, class: CostClass) -> usize {
        self.entries.iter().filter(|entry| entry.cost == class).count()
    }

    /// The number of operations that need dynamic weights.
    pub fn dynamic_weights(&self) -> usize {
        self.entries.iter().filter(|entry| entry.dynamic_weights).count()
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for entry in &self.entries {
            writeln!(f, "{entry}")?;
        }
        let counts = CostClass::ALL.map(|class| format!("{} {class}", self.count(class)));
        write!(f, "{}; {} with dynamic weights", counts.join(", "), self.dynamic_weights())
    }
}

#[cfg(feature = "std")]
std::thread_local! {
    /// One list of entries for each call of [`ledger`] that is running.
    static OPEN: RefCell<Vec<Vec<LedgerEntry>>> = const { RefCell::new(Vec::new()) };
}

/// Runs `f`. Returns its result and the operations on streams that it ran on this thread, with the
/// cost of each.
///
/// Calls can be nested. This function needs the feature `std`, because operations are recorded per
/// thread.
///
/// ```
/// use typed_dims::prelude::*;
/// use typed_dims::tensors::stream::{CostClass, ledger};
///
/// dims! { pub struct Time; pub struct Feat; }
///
/// let x = ones::<f32, _>((Time.of(4), Feat.of(8))).stream((Time, Feat), Feat);
/// let (_, ledger) = ledger(|| x.slice(Time, 1..).relu());
/// assert_eq!(ledger.count(CostClass::Free), 1);
/// assert_eq!(ledger.entries[0].to_string(), "free           slice(Time): [Time=4 Feat!=8] -> [Time=3 Feat!=8]");
/// println!("{ledger}");
/// ```
#[cfg(feature = "std")]
pub fn ledger<T>(f: impl FnOnce() -> T) -> (T, Ledger) {
    OPEN.with_borrow_mut(|open| open.push(Vec::new()));
    let guard = OpenList;
    let result = f();
    let entries = OPEN.with_borrow(|open| open.last().cloned().unwrap_or_default());
    drop(guard);
    (result, Ledger { entries })
}

/// A guard for an open list. When it is dropped, even during a panic, the list is closed, and its
/// entries are added to the surrounding list, if any.
#[cfg(feature = "std")]
struct OpenList;

#[cfg(feature = "std")]
impl Drop for OpenList {
    fn drop(&mut self) {
        OPEN.with_borrow_mut(|open| {
            let inner = open.pop().unwrap_or_default();
            if let Some(outer) = open.last_mut() {
                outer.extend(inner);
            }
        });
    }
}

/// Records an operation, if [`ledger`] runs on this thread.
pub(super) fn note(entry: impl FnOnce() -> LedgerEntry) {
    #[cfg(not(feature = "std"))]
    let _ = entry;
    #[cfg(feature = "std")]
    if OPEN.with_borrow(|open| !open.is_empty()) {
        let entry = entry();
        OPEN.with_borrow_mut(|open| open.last_mut().map(|list| list.push(entry)));
    }
}
