//! Programs for any sizes of some dims: [`dynamic`].
//!
//! The code of this module calls dynamic dims *open*.

use super::record::ProgramParts;
use super::result::ResultLayout;
use super::saved::{SavedContent, SavedProgram};
use super::signature::{InputSignature, input as named_input};
use crate::creation::create::ANY_SIZE;
use crate::creation::undrawn::is_for_sizes;
use crate::error::{DimError, IsRecordedSize, fail, list_sizes, set_recorded_sizes};
use crate::types::brand::Declared;
use crate::types::dim::{DimOf, DimRef, Of};
use crate::types::set::DimKey;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use kernels::error::Error;
use kernels::step::moves::REARRANGEMENT;
use kernels::trace::{
    BakedIn, ListedStep, Listing, Misfit, Numeral, OpenFinder, OpenNumbers, OpenSizes, ROUNDS, RangeReason,
    ReadRange, SavedRecording, had_constant_cotangent, with_computed_cotangents, with_ranges,
};
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

std::thread_local! {
    /// All dims that have been dynamic on this thread, with one entry for a dim and its primes. The
    /// position of a dim determines its recorded sizes.
    static OPEN: RefCell<Vec<DimKey>> = const { RefCell::new(Vec::new()) };
    /// The dims passed to [`dynamic`] since the list was last taken.
    static ASKED: RefCell<Vec<DimKey>> = const { RefCell::new(Vec::new()) };
    /// The current round. A function with dynamic dims is recorded once in each round, each time at
    /// different sizes.
    static ROUND: Cell<usize> = const { Cell::new(0) };
}

/// A dim whose size may differ from call to call, for [`spec`](super::spec). Call `dynamic` in the
/// argument of `spec`: in a list of dims, or in a function that makes the value.
///
/// The function is recorded several times, at sizes of about 500 or more. Each number in its steps
/// that depends on dynamic sizes must have one of these forms:
///
/// * a product of at most three of these sizes, times a whole number; or a sum of two such
///   products. In both cases, a whole number can be added.
/// * a product of at most three sums, such as `(2 * h + 1) * (w + 2)`. Each sum is of one size and
///   a whole number. In all sums but one, the size has a factor of at most 8, and the number is at
///   most 256.
/// * a fraction such as `1.0 / x.size(Row) as f32`. Its divisor can be a product of sizes. If the
///   dividend is 1 or 2, the divisor can also have a form above with a sum, such as `n - 1`. (In
///   `f32`, a divisor with a sum is refused if it is above about a million at the recorded sizes.
///   If rounding hides the difference, it is taken for a product of sizes instead.)
///
/// A number that depends on a size in any other way, such as the number of windows with a stride of
/// 2 or the sizes of the pieces of `chunk`, causes an error, which usually names the step. A
/// captured tensor can have a dynamic size only if all its elements are equal, and only `f32` and
/// `f64` elements can depend on sizes. If the result contains the state of an optimizer, the dims
/// of this state cannot be dynamic; other dims can, such as that of the batch. A branch on a size
/// (`if x.size(Row) > 100`, `x.size(Row).max(3)`) is taken as at the recorded sizes.
///
/// The first call for a size prepares the program for it. The programs for the last 16 sizes are
/// kept. A size of 0 is an error, and so is a size for which the recorded steps are wrong: for
/// example, if `qr` gets fewer rows than columns, if a slice reads more rows than there are, or if
/// `shift` or `roll` moves by more rows than there are. Positions that a branch or a mask leaves
/// unused must be within the axis, too.
///
/// Sums may be rounded differently than in the function itself, which may choose another order for
/// small sizes. So may products of several fractions, and fractions with factors other than
/// integers: a number is taken for such a fraction if it equals the fraction at all recorded sizes,
/// up to two units in the last place. In `f32`, rounding can hide a summand at these sizes, as in
/// `n.powi(3) - 1.0`: compute such a number in `f64` or with tensors.
///
/// ```
/// use typed_dims::prelude::*;
/// use typed_dims::program::{dynamic, record, spec};
///
/// dims! { pub struct Row; pub struct Col; }
/// type Matrix = Tensor<f32, (Row, Col)>;
///
/// let program = record(|x: &Matrix| (x - x.view().mean(Row)).eval(), spec((dynamic(Row), Col.of(2))))?;
/// for rows in [1, 5, 300] {
///     let x: Matrix = randn((Row.of(rows), Col.of(2)), 1);
///     assert_eq!(program.call(&x), (&x - x.view().mean(Row)).eval());
/// }
/// # Ok::<(), DimError>(())
/// ```
///
/// # Panics
///
/// Panics if the dim has a static size.
#[track_caller]
pub fn dynamic<D: Declared>(dim: D) -> Of<D> {
    let key = dim.info().key();
    if let Some(fixed) = key.fixed {
        let what = format!("dim `{}` has the static size {fixed}, so it cannot be dynamic", key.name);
        fail(&DimError::Shape { what });
    }
    ASKED.with_borrow_mut(|asked| {
        if !asked.iter().any(|own| own.is_kin(&key)) {
            asked.push(key);
        }
    });
    let mut own = dim.of(recorded_size(&key));
    // In a list of dims, `spec` sets the size for each round.
    if !is_for_sizes() {
        own.size = ANY_SIZE;
    }
    own
}

/// The size of a dynamic dim in a recording. The sizes are prime numbers, so that a product shows
/// its factors. They are large, so that other dims rarely have the same size. In the last round, the
/// size is twice a prime number: some numbers, such as the place of a median, follow another formula
/// for even sizes.
fn size_in(dim: usize, round: usize) -> usize {
    let is_prime = |number: &usize| (2..).take_while(|d| d * d <= *number).all(|d| !number.is_multiple_of(d));
    let mut primes = (499..).filter(is_prime);
    let prime = primes.nth(dim * ROUNDS + round).expect("there are more primes");
    if round + 1 == ROUNDS { 2 * prime } else { prime }
}

/// The position of a dim in the list of this thread's dynamic dims.
fn number_of(key: &DimKey) -> Option<usize> {
    OPEN.with_borrow(|open| open.iter().position(|own| own.is_kin(key)))
}

/// The size of a dynamic dim in the current round.
fn recorded_size(key: &DimKey) -> usize {
    let dim = number_of(key).unwrap_or_else(|| {
        OPEN.with_borrow_mut(|open| {
            open.push(*key);
            open.len() - 1
        })
    });
    size_in(dim, ROUND.get())
}

/// The dims passed to [`dynamic`] since the last call of this function.
pub(super) fn asked() -> Vec<DimKey> {
    ASKED.take()
}

/// The size of a dim in the current round. `size` is its size in the argument of `spec`.
pub(super) fn size_now(key: &DimKey, size: usize) -> usize {
    if is_open(size) { recorded_size(key) } else { size }
}

/// Whether the dim with this size in the argument of `spec` is dynamic.
pub(super) fn is_open(size: usize) -> bool {
    size == ANY_SIZE
}

/// The current round.
pub(super) fn round() -> usize {
    ROUND.get()
}

/// Makes a round the current one until this value is dropped.
pub(super) struct InRound {
    before: usize,
    explained: Option<IsRecordedSize>,
}

impl Drop for InRound {
    fn drop(&mut self) {
        ROUND.set(self.before);
        set_recorded_sizes(self.explained);
    }
}

impl InRound {
    pub(super) fn start(round: usize) -> Self {
        InRound { before: ROUND.replace(round), explained: set_recorded_sizes(Some(is_recorded_size)) }
    }
}

/// Whether a dim with this name is dynamic, and has this size in the current round.
fn is_recorded_size(name: &str, size: usize) -> bool {
    let unprimed = |name: &str| name.trim_end_matches('\'').len();
    let is = |(dim, key): (usize, &DimKey)| {
        key.name[..unprimed(key.name)] == name[..unprimed(name)] && size_in(dim, ROUND.get()) == size
    };
    OPEN.with_borrow(|open| open.iter().enumerate().any(is))
}

/// The maximum number of programs for given sizes that are kept.
const KEPT: usize = 16;

/// A program for any sizes of some dims.
pub(super) struct OpenProgram {
    saved: SavedProgram,
    dims: OpenDims,
    /// The programs for given sizes. The most recently called one is first.
    instances: Mutex<Vec<(Vec<usize>, Arc<ProgramParts>)>>,
}

/// The dynamic dims of a program, and the numbers that depend on their sizes.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct OpenDims {
    dims: Vec<OpenDim>,
    /// The ranges of positions that the function reads or needs along axes, at the recorded sizes.
    /// Ranges that do not depend on the sizes are left out.
    ranges: Vec<ReadRange>,
    numbers: OpenNumbers,
}

/// Calls `visit` with the numbers of a range.
fn numbers_of(range: &mut ReadRange, visit: &mut dyn FnMut(Numeral<'_>)) {
    let ReadRange { start, len, size, .. } = range;
    [start, len, size].into_iter().for_each(|own| visit(Numeral::Signed(own)));
}

/// The ranges that differ between the rounds, without duplicates. (The others are within their axes
/// at all sizes.) If the rounds do not have the same number of ranges, all ranges are returned.
fn distinct(ranges: [Vec<ReadRange>; ROUNDS]) -> [Vec<ReadRange>; ROUNDS] {
    let count = ranges[0].len();
    if ranges.iter().any(|own| own.len() != count) {
        return ranges;
    }
    let mut known = HashSet::new();
    let is_kept = |at: &usize| {
        let rounds = ranges.each_ref().map(|own| &own[*at]);
        rounds.iter().any(|own| *own != rounds[0]) && known.insert(rounds)
    };
    let kept: Vec<usize> = (0..count).filter(is_kept).collect();
    ranges.each_ref().map(|own| kept.iter().map(|&at| own[at].clone()).collect())
}

/// A dynamic dim, and the axis of an input that gives its size.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct OpenDim {
    name: String,
    input: usize,
    axis: usize,
}

/// Why recordings at several sizes cannot become one program.
struct Refused {
    error: DimError,
    /// Whether the recordings differ outside of their steps, for example in a constant. In a
    /// gradient, such a constant may be the result of a step of the backward pass. `record_open`
    /// can then record again, with this step as a part of the program.
    by_constants: bool,
}

impl From<DimError> for Refused {
    fn from(error: DimError) -> Self {
        Refused { error, by_constants: false }
    }
}

/// Records a function whose inputs have these dynamic dims. `record` records it in a given round.
pub(super) fn record_open(
    open: Vec<DimKey>,
    record: &mut dyn FnMut(usize) -> Result<ProgramParts, DimError>,
) -> Result<(ProgramParts, OpenProgram), DimError> {
    let (first, had_constant) = had_constant_cotangent(|| record_rounds(open.clone(), record));
    let found = match first {
        Err(Refused { by_constants: true, .. }) if had_constant => {
            with_computed_cotangents(|| record_rounds(open, record))
        }
        first => first,
    };
    found.map_err(|refused| refused.error)
}

/// Records a function in each round, and merges the recordings.
fn record_rounds(
    open: Vec<DimKey>,
    record: &mut dyn FnMut(usize) -> Result<ProgramParts, DimError>,
) -> Result<(ProgramParts, OpenProgram), Refused> {
    let mut record = |round: usize| {
        let _round = InRound::start(round);
        let (parts, ranges) = with_ranges(|| record(round));
        Ok::<_, DimError>((parts?, ranges))
    };
    let mut first = record(0)?;
    let [(a, ranges_a), (b, ranges_b), (c, ranges_c)] = [record(1)?, record(2)?, record(3)?];
    if first.1.len() != ranges_a.len() {
        // The first call also noted the ranges of code that runs only once, such as the function of
        // a `LazyLock`.
        first = record(0)?;
    }
    let (mut parts, ranges) = first;
    let (others, ranges) = ([a, b, c], [ranges, ranges_a, ranges_b, ranges_c]);
    let saved = |own: &ProgramParts| -> Result<SavedProgram, DimError> {
        Ok(own.saved_as(own.recording.saved_to_open()?))
    };
    let saved = [saved(&parts)?, saved(&others[0])?, saved(&others[1])?, saved(&others[2])?];
    let signatures = [&parts.signature, &others[0].signature, &others[1].signature, &others[2].signature];
    let (content, dims, listing) = merged(saved, ranges, signatures, open, &parts.listing)?;
    parts.listing = listing.clone();
    Ok((parts, OpenProgram::new(content, dims, listing)))
}

/// Merges the programs of all rounds into one.
fn merged(
    saved: [SavedProgram; ROUNDS],
    ranges: [Vec<ReadRange>; ROUNDS],
    signatures: [&InputSignature; ROUNDS],
    mut open: Vec<DimKey>,
    listing: &Listing,
) -> Result<(SavedContent, OpenDims, Listing), Refused> {
    let mut known: Vec<DimKey> = Vec::new();
    open.retain(|key| {
        let is_new = !known.iter().any(|own| own.is_kin(key));
        known.push(*key);
        is_new
    });
    let open = &open[..];
    let Some(numbers) = open.iter().map(number_of).collect::<Option<Vec<usize>>>() else {
        let what = "a spec has dynamic dims of another thread: call `spec` on the thread that records".into();
        return Err(DimError::Shape { what }.into());
    };
    let sizes: OpenSizes =
        core::array::from_fn(|round| numbers.iter().map(|&dim| size_in(dim, round)).collect());
    let dims = open
        .iter()
        .enumerate()
        .map(|(dim, key)| axis_of(key, signatures, sizes.each_ref().map(|own| own[dim])));
    let dims: Vec<OpenDim> = dims.collect::<Result<_, _>>()?;
    // (A prime has the size of its dim.)
    fn unprimed(name: &str) -> &str {
        name.trim_end_matches('\'')
    }
    let listing = listing.with_open(&|name, size| {
        open.iter().zip(&sizes[0]).any(|(key, &own)| own == size && unprimed(key.name) == unprimed(name))
    });
    let (content, ranges, numbers) = opened(saved, ranges, &sizes, open, &listing)?;
    Ok((content, OpenDims { dims, ranges, numbers }, listing))
}

/// The content and the ranges at the sizes of the first round, and the numbers that depend on the
/// sizes.
fn opened(
    saved: [SavedProgram; ROUNDS],
    ranges: [Vec<ReadRange>; ROUNDS],
    sizes: &OpenSizes,
    open: &[DimKey],
    listing: &Listing,
) -> Result<(SavedContent, Vec<ReadRange>, OpenNumbers), Refused> {
    let names = || {
        let names: Vec<String> = open.iter().map(|key| format!("`{}`", key.name)).collect();
        match names.split_last() {
            Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
            _ => names.concat(),
        }
    };
    let mut content = saved.map(|own| own.content);
    if !content.iter().all(|own| own.has_states_of(&content[0])) {
        let what = format!(
            "the result contains the state of an optimizer, whose size depends on the size of {}: record for one size",
            names()
        );
        return Err(DimError::Shape { what }.into());
    }
    let mut recordings = content.each_mut().map(|own| core::mem::take(&mut own.recording));
    let counts = recordings.each_ref().map(|own| own.steps.len());
    if let (Some(least), Some(most)) = (counts.iter().min(), counts.iter().max())
        && least < most
    {
        let what = format!(
            "the recorded function has {least} steps for some sizes of {}, and {most} for others, as in a loop or `scan` over a dynamic dim, or a branch on its size: record for one size",
            names()
        );
        return Err(DimError::Shape { what }.into());
    }
    let mut finder = OpenFinder::new(sizes);
    if !finder.add(content.each_mut(), SavedContent::sizes) {
        let what = format!(
            "the sizes of the inputs or results of the recorded function depend on the size of {}, but are neither products of at most three sizes (or of sums such as `h + 2`), nor sums of two products (examples are windows with a stride of 2 and the pieces of `chunk`): record for one size",
            names()
        );
        return Err(DimError::Shape { what }.into());
    }
    let found = SavedRecording::open(recordings.each_mut(), &mut finder);
    found.map_err(|BakedIn(step)| {
        let what = match step.and_then(|step| listing.steps.get(step)) {
            Some(step) if step.operation.starts_with(REARRANGEMENT) => format!(
                "the elements that {} moves depend on the size of {} in a way that programs cannot track: record for one size",
                named(step),
                names()
            ),
            Some(step) => format!(
                "a number of {} depends on the size of {}, but is neither a product of at most three sizes (or of sums such as `h + 2`), nor a sum of two products, nor a fraction of sizes, such as 1 divided by one of these (examples are windows with a stride of 2 and the gradient of `quantile`): compute it with tensors, as `mean` does, or record for one size",
                named(step),
                names()
            ),
            None => format!(
                "the recorded function has other steps or constants for other sizes of {} (examples are tensors made by `from_fn`, `interpolate`, and the gradients of `median` and `adaptive_max_pool`): compute them from the inputs, or record for one size",
                names()
            ),
        };
        Refused { error: DimError::Shape { what }, by_constants: step.is_none() }
    })?;
    let mut ranges = distinct(ranges);
    let counts = ranges.each_ref().map(Vec::len);
    let common = counts.into_iter().min().unwrap_or(0);
    let mut fits = |rounds: [&mut ReadRange; ROUNDS]| {
        let has_one_size = rounds[0].reason == RangeReason::OneSize;
        let differ = rounds.iter().any(|own| own != &rounds[0]);
        !(has_one_size && differ) && finder.add(rounds, numbers_of)
    };
    let differing = (0..common)
        .find(|&at| !fits(ranges.each_mut().map(|own| &mut own[at])))
        .or_else(|| counts.iter().any(|own| *own != common).then_some(common));
    if let Some(range) = differing.and_then(|at| ranges.iter().find_map(|own| own.get(at))) {
        let numbers = match range.reason {
            RangeReason::Read => {
                format!("the positions that the recorded function reads along {}", range.axis)
            }
            RangeReason::Needed => format!("the numbers of elements that {} has and needs", range.axis),
            RangeReason::OneSize => {
                let what = format!("{} is known for one size only: record for one size", range.axis);
                return Err(DimError::Shape { what }.into());
            }
        };
        let what = format!(
            "{numbers} change with the size of {}, but are neither products of at most three sizes (or of sums such as `h + 2`), nor sums of two products: record for one size",
            names()
        );
        return Err(DimError::Shape { what }.into());
    }
    let ([mut content, ..], [recording, ..], [ranges, ..]) = (content, recordings, ranges);
    content.recording = recording;
    Ok((content, ranges, finder.finish()))
}

/// A step, for messages.
fn named(step: &ListedStep) -> String {
    const LONGEST: usize = 120;
    let at = step.value.origin.as_ref().map_or(String::new(), |place| format!(" (at {place})"));
    // A step can have hundreds of operands.
    let shown = match step.operation.char_indices().nth(LONGEST) {
        Some((end, _)) => {
            step.operation[..end].rsplit_once(' ').map_or(&step.operation[..end], |(shown, _)| shown)
        }
        None => return format!("the step `{}`{at}", step.operation),
    };
    format!("the step `{shown} ..`{at}")
}

/// The axis of an input that has the size of a dynamic dim in each round.
fn axis_of(
    key: &DimKey,
    signatures: [&InputSignature; ROUNDS],
    sizes: [usize; ROUNDS],
) -> Result<OpenDim, DimError> {
    for (input, own) in signatures[0].tensors.iter().enumerate() {
        for axis in 0..own.sizes.len() {
            let size_of = |round: &InputSignature| round.tensors.get(input)?.sizes.get(axis).copied();
            if signatures.map(size_of) == sizes.map(Some) {
                return Ok(OpenDim { name: key.name.into(), input, axis });
            }
        }
    }
    let what = format!("no input has the dim `{}`, which is dynamic", key.name);
    Err(DimError::Shape { what })
}

impl OpenProgram {
    /// A program with this content at the recorded sizes.
    pub(super) fn new(content: SavedContent, dims: OpenDims, listing: Listing) -> Self {
        let saved = SavedProgram { content, open: None, listing };
        OpenProgram { saved, dims, instances: Mutex::default() }
    }

    /// The program as data.
    pub(super) fn to_saved(&self) -> SavedProgram {
        SavedProgram { open: Some(self.dims.clone()), ..self.saved.clone() }
    }

    /// The program for some sizes of the dynamic dims.
    fn at(&self, sizes: &[usize]) -> Result<SavedProgram, DimError> {
        let (mut saved, mut ranges) = (self.saved.clone(), self.dims.ranges.clone());
        let mut all = (&mut saved.content, &mut ranges[..]);
        let set = self.dims.numbers.set(&mut all, sizes, |(content, ranges), visit| {
            content.numbers(visit);
            ranges.iter_mut().for_each(|own| numbers_of(own, visit));
        });
        match (set, ranges.iter().find(|own| !own.is_within())) {
            (Err(Misfit::TooLarge), _) => Err(DimError::TooLarge { dims: self.list(sizes) }),
            (_, Some(range)) => Err(self.beyond(range, sizes)),
            (Err(Misfit::Other), None) => Err(self.unfit("the function", "", sizes)),
            (Ok(()), None) => Ok(saved),
        }
    }

    /// The error for sizes at which the function reads or needs positions beyond the end of an axis.
    #[cold]
    fn beyond(&self, range: &ReadRange, sizes: &[usize]) -> DimError {
        let (ReadRange { axis, start, size, .. }, end) = (range, range.end());
        let list = self.list(sizes);
        let what = match range.reason {
            RangeReason::Read => format!(
                "the recorded function reads positions {start}..{end} of {axis}, which has size {size} if {list}"
            ),
            RangeReason::Needed | RangeReason::OneSize => {
                format!("{axis} needs at least {end} elements, but has {size} if {list}")
            }
        };
        DimError::Shape { what }
    }

    /// The error for sizes at which a step or the function cannot run as it was recorded.
    #[cold]
    fn unfit(&self, name: &str, cause: &str, sizes: &[usize]) -> DimError {
        let what = format!(
            "{name} was recorded for large sizes, and cannot run in the same way with {}{cause}: record the function for these sizes",
            self.list(sizes)
        );
        DimError::Shape { what }
    }

    /// The error for sizes whose program cannot be restored. It says that the steps do not fit the
    /// sizes. If they do fit, it is `error`, the error of the attempt to restore the program.
    #[cold]
    fn unrestored(&self, saved: &SavedProgram, error: DimError, sizes: &[usize]) -> DimError {
        let SavedProgram { content, listing, .. } = saved;
        match content.recording.restore() {
            Err(Error::Damaged { what, step }) => match step.and_then(|step| listing.steps.get(step)) {
                Some(step) => self.unfit(&named(step), "", sizes),
                None => self.unfit("the function", &format!(" ({what})"), sizes),
            },
            Ok(_) if content.layouts().is_err() || content.signature().is_err() => {
                self.unfit("the function", "", sizes)
            }
            _ => error,
        }
    }

    /// The dynamic dims with these sizes, for messages.
    fn list(&self, sizes: &[usize]) -> String {
        let names = self.dims.dims.iter().map(|own| own.name.as_str());
        list_sizes(names.zip(sizes.iter().copied()))
    }

    /// The program for the sizes of these inputs. `like` has the layouts of a result for other
    /// sizes.
    pub(super) fn instance(
        &self,
        signature: &InputSignature,
        like: &[ResultLayout],
    ) -> Result<Arc<ProgramParts>, DimError> {
        let mut sizes = Vec::with_capacity(self.dims.dims.len());
        for OpenDim { name, input, axis } in &self.dims.dims {
            match signature.tensors.get(*input).and_then(|own| own.sizes.get(*axis)) {
                Some(0) => {
                    return Err(DimError::Shape {
                        what: format!("the dynamic dim `{name}` has no elements"),
                    });
                }
                Some(size) => sizes.push(*size),
                None => return Err(DimError::Shape { what: format!("no input has the dim `{name}`") }),
            }
        }
        if let Some(known) = self.known(&sizes) {
            self.check_others(signature, &known.signature, &sizes)?;
            return Ok(known);
        }
        let saved = self.at(&sizes)?;
        let program = match saved.parts_like(like) {
            Ok(program) => Arc::new(program),
            Err(error) => return Err(self.unrestored(&saved, error, &sizes)),
        };
        self.check_others(signature, &program.signature, &sizes)?;
        let mut instances = self.instances.lock().unwrap_or_else(PoisonError::into_inner);
        instances.insert(0, (sizes, Arc::clone(&program)));
        instances.truncate(KEPT);
        Ok(program)
    }

    /// Returns an error if an input has another size for a dynamic dim than the input that gives
    /// the dim its size.
    fn check_others(
        &self,
        signature: &InputSignature,
        expected: &InputSignature,
        sizes: &[usize],
    ) -> Result<(), DimError> {
        for (found, expected) in signature.tensors.iter().zip(&expected.tensors) {
            if found.sizes == expected.sizes || found.sizes.len() != expected.sizes.len() {
                continue;
            }
            let sizes_of_keys = found.dims.keys().iter().zip(&found.sizes).zip(&expected.sizes);
            for ((key, &own), &recorded) in sizes_of_keys {
                let is_first = |(dim, size): &(&OpenDim, &usize)| dim.name == key.name && **size == recorded;
                if own != recorded
                    && let Some((OpenDim { name, input, .. }, size)) =
                        self.dims.dims.iter().zip(sizes).find(is_first)
                {
                    let (first, second) =
                        (named_input(&signature.tensors[*input].path), named_input(&found.path));
                    let what =
                        format!("{first} has dim `{name}` = {size}, but {second} has dim `{name}` = {own}");
                    return Err(DimError::Shape { what });
                }
            }
        }
        Ok(())
    }

    fn known(&self, sizes: &[usize]) -> Option<Arc<ProgramParts>> {
        let mut instances = self.instances.lock().unwrap_or_else(PoisonError::into_inner);
        let at = instances.iter().position(|(own, _)| own == sizes)?;
        let found = instances.remove(at);
        let program = Arc::clone(&found.1);
        instances.insert(0, found);
        Some(program)
    }
}
