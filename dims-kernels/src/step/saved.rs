//! Converts steps of operators to data and back: the part of [saved
//! recordings](crate::trace::saved) that knows the kinds of steps.

use super::draw::{
    Distribution, DrawElements, DrawOrder, DrawTruths, Gumbel, Normal, SplitSeed, Uniform, rounded,
};
use super::dropout::DropElements;
use super::execute::{HOLLOW, KEPT, StepRule};
use super::lines::{MomentOfLines, StandardizeAffineLines};
use super::moves::{MoveRows, REARRANGEMENT};
use super::places::{AddAtPlaces, OperandPlaces};
use super::pooling::{MaxOfParts, MeanOfParts, PartSizes};
use super::restored::{Restored, of};
use super::sorting::{Extremum, Quantile, SortLines, SortWanted, TopK};
use super::{AnyBuffer, StepResults};
use crate::error::Error;
use crate::memory::axes::is_within;
use crate::memory::buffer::Buffer;
use crate::memory::hollow;
use crate::ops::code::{DType, ReductionKind, each_dtype, match_dtype, with_halves};
use crate::random::DrawNumbers;
use crate::scalar::{Element, Num, Ordered, Real};
use crate::trace::saved::{
    RecordingReader, RecordingWriter, SavedBytes, SavedKind, SavedNumbers, SavedOperandPlaces, SavedRule,
    SavedType, check, check_whole, checked_volume, element_bytes, element_of, refused,
};
use crate::trace::{Recording, Rule, SavedRecording};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::any::Any;
use core::marker::PhantomData;
use smallvec::SmallVec;

/// The names of `MoveRows`, `AddAtPlaces` and `Quantile` steps.
const NAMES: [&str; 6] = [REARRANGEMENT, "masked_select", "unique", "fold", "median", "quantile"];

impl Recording {
    /// The recording as plain data.
    pub fn saved(&self) -> Result<SavedRecording, Error> {
        RecordingWriter::write(self, false, &saved_rule)
    }

    /// The recording as plain data for [`SavedRecording::open`]. Engines cannot run it.
    pub fn saved_to_open(&self) -> Result<SavedRecording, Error> {
        RecordingWriter::write(self, true, &saved_rule)
    }
}

impl SavedRecording {
    /// Restores the recording. Everything that kernels rely on is checked: data that this library
    /// did not save gives either an error or a recording that can run.
    pub fn restore(&self) -> Result<Recording, Error> {
        self.read(&restored_rule)
    }
}

/// Calls a macro with each numeric element type.
macro_rules! numbers {
    ($then:ident!($($args:tt)*)) => {
        with_halves!($then!($($args)*
            F32 f32, F64 f64, I8 i8, I16 i16, I32 i32, I64 i64, Isize isize, U8 u8, U16 u16, U32 u32, U64 u64, Usize usize,
        ))
    };
}
macro_rules! reals {
    ($then:ident!($($args:tt)*)) => {
        with_halves!($then!($($args)* F32 f32, F64 f64,))
    };
}

fn saved_rule(rule: &dyn Any, writer: &mut RecordingWriter) -> Option<SavedRule> {
    macro_rules! moments {
        ($($name:ident $t:ty,)*) => {
            $(if let Some(rule) = rule.downcast_ref::<MomentOfLines<$t>>() {
                return Some(SavedRule::MomentOfLines(writer.reduction(&rule.reduction)));
            })*
        };
    }
    reals!(moments!());
    let StepRule { derivative, operands, number, .. } = rule.downcast_ref()?;
    let kind = saved_kind(derivative.as_kind()?)?;
    let operands = operands.iter().map(|own| writer.field(own)).collect();
    Some(SavedRule::Kind { kind, operands, number: (*number != KEPT).then_some(*number) })
}

fn saved_kind(kind: &dyn Any) -> Option<SavedKind> {
    macro_rules! elements {
        ($($name:ident $t:ty,)*) => {
            $(if let Some(kind) = saved_move::<$t>(kind, DType::$name) {
                return Some(kind);
            })*
        };
    }
    macro_rules! numbers_of {
        ($($name:ident $t:ty,)*) => {
            $(if let Some(kind) = saved_of_numbers::<$t>(kind, DType::$name) {
                return Some(kind);
            })*
        };
    }
    macro_rules! reals_of {
        ($($name:ident $t:ty,)*) => {
            $(if let Some(kind) = saved_of_reals::<$t>(kind, DType::$name) {
                return Some(kind);
            })*
        };
    }
    if let Some(&DrawOrder { size }) = kind.downcast_ref() {
        return Some(SavedKind::DrawOrder { size });
    }
    if let Some(&SplitSeed { at }) = kind.downcast_ref() {
        return Some(SavedKind::SplitSeed { at });
    }
    #[cfg(feature = "linalg")]
    if let Some(saved) = super::linalg::saved(kind) {
        return Some(saved);
    }
    each_dtype!(elements!());
    numbers!(numbers_of!());
    reals!(reals_of!());
    None
}

/// A name, if it can be restored.
fn known(name: &str) -> Option<String> {
    NAMES.contains(&name).then(|| name.into())
}

fn saved_move<T: Element>(kind: &dyn Any, dtype: DType) -> Option<SavedKind> {
    let &MoveRows { name, outer, size, inner, ref sources, fill } = kind.downcast_ref::<MoveRows<T>>()?;
    Some(SavedKind::MoveRows {
        name: known(name)?,
        dtype,
        outer,
        size,
        inner,
        sources: sources.to_vec(),
        fill: SavedBytes(element_bytes(&fill)?),
    })
}

fn saved_of_numbers<T: Ordered>(kind: &dyn Any, dtype: DType) -> Option<SavedKind> {
    if let Some(&AddAtPlaces { name, len, ref operands, .. }) = kind.downcast_ref::<AddAtPlaces<T>>() {
        let operands = operands.iter().map(|OperandPlaces { start, sizes, strides }| SavedOperandPlaces {
            start: *start,
            sizes: sizes.to_vec(),
            strides: strides.to_vec(),
        });
        return Some(SavedKind::AddAtPlaces { name: known(name)?, dtype, len, operands: operands.collect() });
    }
    if let Some(&MaxOfParts { parts, .. }) = kind.downcast_ref::<MaxOfParts<T>>() {
        return Some(SavedKind::MaxOfParts { dtype, parts: sizes_of(parts) });
    }
    if let Some(&SortLines { lines, len, descending, wanted, .. }) = kind.downcast_ref::<SortLines<T>>() {
        let (values, positions) = (wanted != SortWanted::Positions, wanted != SortWanted::Values);
        return Some(SavedKind::Sort { dtype, lines, len, descending, values, positions });
    }
    if let Some(&Extremum { lines, len, greatest, .. }) = kind.downcast_ref::<Extremum<T>>() {
        return Some(SavedKind::Extremum { dtype, lines, len, greatest });
    }
    let &TopK { lines, len, k, .. } = kind.downcast_ref::<TopK<T>>()?;
    Some(SavedKind::TopK { dtype, lines, len, k })
}

fn saved_of_reals<T: Real>(kind: &dyn Any, dtype: DType) -> Option<SavedKind> {
    fn drawn<T: Real, Q: Distribution>(kind: &dyn Any, dtype: DType) -> Option<SavedKind> {
        let DrawElements { count, numbers, .. } = kind.downcast_ref::<DrawElements<T, Q>>()?;
        let (distribution, numbers) = (Q::NAME.into(), saved_numbers(numbers));
        Some(SavedKind::DrawElements { dtype, distribution, count: *count, numbers })
    }
    let bits = |value: T| num_traits::ToPrimitive::to_f64(&value).unwrap_or(f64::NAN).to_bits();
    if let Some(&MeanOfParts { parts, .. }) = kind.downcast_ref::<MeanOfParts<T>>() {
        return Some(SavedKind::MeanOfParts { dtype, parts: sizes_of(parts) });
    }
    if let Some(&DropElements { count, p, seed, ref numbers, .. }) = kind.downcast_ref::<DropElements<T>>() {
        let numbers = saved_numbers(numbers);
        return Some(SavedKind::DropElements { dtype, count, p: p.to_bits(), seed, numbers });
    }
    if let Some(&StandardizeAffineLines { lines, len, eps }) =
        kind.downcast_ref::<StandardizeAffineLines<T>>()
    {
        return Some(SavedKind::StandardizeAffine { dtype, lines, len, eps: bits(eps) });
    }
    if let Some(DrawTruths { count, numbers, .. }) = kind.downcast_ref::<DrawTruths<T>>() {
        return Some(SavedKind::DrawTruths { dtype, count: *count, numbers: saved_numbers(numbers) });
    }
    if let Some(&Quantile { name, lines, len, q }) = kind.downcast_ref::<Quantile<T>>() {
        return Some(SavedKind::Quantile { name: known(name)?, dtype, lines, len, q: bits(q) });
    }
    drawn::<T, Uniform>(kind, dtype)
        .or_else(|| drawn::<T, Normal>(kind, dtype))
        .or_else(|| drawn::<T, Gumbel>(kind, dtype))
}

fn saved_numbers(numbers: &DrawNumbers) -> SavedNumbers {
    let (start, axes) = numbers.parts();
    SavedNumbers { start, axes: axes.to_vec() }
}

fn sizes_of(PartSizes { outer, size, len, inner }: PartSizes) -> [usize; 4] {
    [outer, size, len, inner]
}

fn restored_rule(
    rule: &SavedRule,
    reader: &RecordingReader<'_>,
    of: SavedType,
) -> Result<Box<dyn Rule>, Error> {
    match rule {
        SavedRule::MomentOfLines(saved) => {
            let reduction = reader.restored_reduction(saved, of)?;
            let is_moment = matches!(
                reduction.reduction,
                ReductionKind::Mean | ReductionKind::Variance { ddof: 0.0, root: false }
            );
            let field = &reduction.field;
            check(
                is_moment
                    && field.sizes.len() == 2
                    && (&reduction.kept[..], &reduction.reduced[..]) == (&[0], &[1])
                    && field.sizes[1] > 0,
                "a reduction is no mean or variance of lines, or the lines are empty",
            )?;
            macro_rules! by_type {
                ($($name:ident $t:ty,)*) => {
                    match reduction.dtype {
                        $(DType::$name => moment::<$t>(reduction),)*
                        _ => Err(refused("moments are floats")),
                    }
                };
            }
            reals!(by_type!())
        }
        SavedRule::Kind { kind, operands, number } => {
            let operands = operands.iter().map(|own| reader.field(own)).collect::<Result<Vec<_>, _>>()?;
            let Restored { kind, takes, yields, keeps } = restored_kind(kind)?;
            check(takes.len() == operands.len(), "a step has more or fewer operands than it needs")?;
            takes
                .iter()
                .zip(&operands)
                .try_for_each(|(own, field)| check_whole(field, own.dtype, own.len))?;
            let result = match number {
                Some(number) => yields.get(*number).copied(),
                None => keeps,
            };
            check(result == Some(of), "a result has another type or length than its step computes")?;
            Ok(Box::new(StepRule { derivative: kind, operands, number: number.unwrap_or(KEPT), kept: None }))
        }
        _ => unreachable!("a lower layer restores the other rules"),
    }
}

fn moment<T: Real>(reduction: crate::trace::rules::ReductionRule) -> Result<Box<dyn Rule>, Error> {
    // If there are no lines, nothing has checked where they would start.
    let lying = reduction.field.lying_in::<T>(&[0, 1]);
    check(lying.is_some_and(|(held, start)| start <= held.len()), "lines are not contiguous")?;
    Ok(Box::new(MomentOfLines { reduction, element: PhantomData::<T> }))
}

const SEED: SavedType = of(DType::U64, 1);

fn restored_kind(saved: &SavedKind) -> Result<Restored, Error> {
    macro_rules! match_type {
        ($dtype:expr, $f:ident; $($name:ident $t:ty,)*) => {
            match $dtype {
                $(DType::$name => $f::<$t>(saved, $dtype),)*
                #[allow(unreachable_patterns)]
                _ => Err(refused("a step does not support elements of this type")),
            }
        };
    }
    match *saved {
        SavedKind::MoveRows { dtype, .. } => each_dtype!(match_type!(dtype, restored_move;)),
        SavedKind::AddAtPlaces { dtype, .. }
        | SavedKind::MaxOfParts { dtype, .. }
        | SavedKind::Sort { dtype, .. }
        | SavedKind::Extremum { dtype, .. }
        | SavedKind::TopK { dtype, .. } => numbers!(match_type!(dtype, restored_of_numbers;)),
        SavedKind::MeanOfParts { dtype, .. }
        | SavedKind::DropElements { dtype, .. }
        | SavedKind::StandardizeAffine { dtype, .. }
        | SavedKind::DrawElements { dtype, .. }
        | SavedKind::DrawTruths { dtype, .. }
        | SavedKind::Quantile { dtype, .. } => reals!(match_type!(dtype, restored_of_reals;)),
        SavedKind::DrawOrder { size } => {
            Ok(Restored::new(DrawOrder { size }, &[SEED], &[of(DType::Usize, size)], None))
        }
        #[cfg(feature = "linalg")]
        SavedKind::Matrices { dtype, work, sizes } => super::linalg::restored(dtype, work, sizes),
        #[cfg(not(feature = "linalg"))]
        SavedKind::Matrices { work, .. } => {
            Err(refused(format!("`{}` needs the feature `linalg`", work.name())))
        }
        SavedKind::SplitSeed { at } => Ok(Restored::new(SplitSeed { at }, &[SEED], &[SEED], None)),
    }
}

/// Prepares recording from sizes: from now on, steps that can be saved compute nothing if only the
/// size of an operand is known.
pub fn record_from_sizes() {
    HOLLOW.get_or_init(|| hollow_results);
}

/// Hollow results for a kind, if it can be saved.
fn hollow_results(kind: &dyn Any) -> Option<Result<StepResults, Error>> {
    fn all(of: &Restored) -> Result<StepResults, Error> {
        let mut results = StepResults::default();
        for own in &of.yields {
            results.values.push(hollow_buffer(own)?);
        }
        if let Some(own) = &of.keeps {
            results.kept = Some(hollow_buffer(own)?.memory());
        }
        Ok(results)
    }
    let saved = saved_kind(kind)?;
    Some(restored_kind(&saved).and_then(|restored| all(&restored)))
}

fn hollow_buffer(of: &SavedType) -> Result<Box<dyn AnyBuffer>, Error> {
    match_dtype!(of.dtype, T => Ok(Box::new(Buffer::from(hollow::zeros::<T>(of.len)?))))
}

fn name_of(name: &str) -> Result<&'static str, Error> {
    let known = NAMES.into_iter().find(|own| *own == name);
    known.ok_or_else(|| refused(format!("there is no operator `{name}`")))
}

fn restored_move<T: Element>(saved: &SavedKind, dtype: DType) -> Result<Restored, Error> {
    let SavedKind::MoveRows { name, outer, size, inner, sources, fill, .. } = saved else {
        unreachable!("the kind was looked up")
    };
    let (outer, size, inner) = (*outer, *size, *inner);
    check(sources.iter().all(|run| run.is_within(size)), "a row comes from outside the operand")?;
    let rows = sources.iter().try_fold(0usize, |sum, run| sum.checked_add(run.count));
    let rows = rows.ok_or_else(|| refused("there are too many rows"))?;
    let (takes, yields) = (checked_volume([outer, size, inner])?, checked_volume([outer, rows, inner])?);
    let fill = element_of::<T>(fill)?;
    let kind =
        MoveRows { name: name_of(name)?, outer, size, inner, sources: sources.as_slice().into(), fill };
    Ok(Restored::new(kind, &[of(dtype, takes)], &[of(dtype, yields)], None))
}

fn restored_of_numbers<T: Ordered + Num>(saved: &SavedKind, dtype: DType) -> Result<Restored, Error> {
    let element = PhantomData::<T>;
    let positions = |len: usize| of(DType::Usize, len);
    let of_lines = |lines: usize, len: usize| {
        check(len > 0 || lines == 0, "lines have no elements")?;
        checked_volume([lines, len])
    };
    match *saved {
        SavedKind::AddAtPlaces { ref name, len, ref operands, .. } => {
            let mut takes = Vec::new();
            let mut places: SmallVec<[OperandPlaces; 1]> = SmallVec::new();
            for SavedOperandPlaces { start, sizes, strides } in operands {
                check(
                    sizes.len() == strides.len() && sizes.len() <= 64,
                    "sizes and strides have different numbers of loops, or more than 64",
                )?;
                takes.push(of(dtype, checked_volume(sizes.iter().copied())?));
                let axes = sizes.iter().copied().zip(strides.iter().copied());
                check(is_within(len, *start as i128, axes), "elements are added outside the result")?;
                check(
                    strides.iter().all(|stride| stride.unsigned_abs() <= isize::MAX as usize / 4),
                    "a stride is too large",
                )?;
                places.push(OperandPlaces {
                    start: *start,
                    sizes: sizes.iter().copied().collect(),
                    strides: strides.iter().copied().collect(),
                });
            }
            let kind = AddAtPlaces { name: name_of(name)?, len, operands: places, element };
            Ok(Restored::new(kind, &takes, &[of(dtype, len)], None))
        }
        SavedKind::MaxOfParts { parts, .. } => {
            let (parts, takes, yields) = restored_parts(parts)?;
            let mut kept = 0;
            if parts.outer * parts.inner > 0 {
                let rows = parts.rows_of_all().ok_or_else(|| refused("there are too many rows"))?;
                kept = checked_volume([parts.outer, rows, parts.inner])?;
            }
            let keeps = Some(of(DType::F64, kept));
            Ok(Restored::new(MaxOfParts { parts, element }, &[of(dtype, takes)], &[of(dtype, yields)], keeps))
        }
        SavedKind::Sort { lines, len, descending, values, positions: is_argsort, .. } => {
            let count = checked_volume([lines, len])?;
            let (wanted, yields) = match (values, is_argsort) {
                (true, false) => (SortWanted::Values, vec![of(dtype, count)]),
                (false, true) => (SortWanted::Positions, vec![positions(count)]),
                (true, true) => (SortWanted::Both, vec![of(dtype, count), positions(count)]),
                (false, false) => return Err(refused("a sort yields nothing")),
            };
            let keeps = values.then(|| positions(count));
            let kind = SortLines { lines, len, descending, wanted, element };
            Ok(Restored::new(kind, &[of(dtype, count)], &yields, keeps))
        }
        SavedKind::Extremum { lines, len, greatest, .. } => {
            let takes = [of(dtype, of_lines(lines, len)?)];
            let yields = [of(dtype, lines), positions(lines)];
            let kind = Extremum { lines, len, greatest, element };
            Ok(Restored::new(kind, &takes, &yields, Some(positions(lines))))
        }
        SavedKind::TopK { lines, len, k, .. } => {
            check(k <= len, "more elements are chosen than a line has")?;
            let (takes, count) = ([of(dtype, checked_volume([lines, len])?)], checked_volume([lines, k])?);
            let yields = [of(dtype, count), positions(count)];
            Ok(Restored::new(TopK { lines, len, k, element }, &takes, &yields, Some(positions(count))))
        }
        _ => unreachable!("the kind was looked up"),
    }
}

/// Parts of an axis, the number of elements of the operand, and the number of results.
fn restored_parts([outer, size, len, inner]: [usize; 4]) -> Result<(PartSizes, usize, usize), Error> {
    let (takes, yields) = (checked_volume([outer, size, inner])?, checked_volume([outer, len, inner])?);
    check(size > 0 || yields == 0, "parts have no elements")?;
    // The derivative lists the rows of all parts even if there are no results.
    check(yields > 0 || len.max(size) <= 1 << 20, "there are no results, but too many rows or parts")?;
    Ok((PartSizes { outer, size, len, inner }, takes, yields))
}

fn restored_numbers(saved: &SavedNumbers, count: usize) -> Result<DrawNumbers, Error> {
    check(
        count == 0 || saved.axes.iter().all(|&(size, _)| size > 0),
        "an axis of random numbers has size 0",
    )?;
    Ok(DrawNumbers::new(saved.start, saved.axes.iter().copied()))
}

fn restored_of_reals<T: Real>(saved: &SavedKind, dtype: DType) -> Result<Restored, Error> {
    let float = |bits: u64| rounded::<T>(f64::from_bits(bits));
    match *saved {
        SavedKind::MeanOfParts { parts, .. } => {
            let (parts, takes, yields) = restored_parts(parts)?;
            let kind = MeanOfParts { parts, element: PhantomData::<T> };
            Ok(Restored::new(kind, &[of(dtype, takes)], &[of(dtype, yields)], None))
        }
        SavedKind::DropElements { count, p, seed, ref numbers, .. } => {
            let (p, numbers) = (f64::from_bits(p), restored_numbers(numbers, count)?);
            check((0.0..=1.0).contains(&p), "a probability is not between 0 and 1")?;
            let kind = DropElements { count, p, seed, numbers, element: PhantomData::<T> };
            let own = of(dtype, count);
            let takes = [own, SEED];
            Ok(Restored::new(kind, if seed.is_some() { &takes[..1] } else { &takes }, &[own], None))
        }
        SavedKind::StandardizeAffine { lines, len, eps, .. } => {
            let kind = StandardizeAffineLines { lines, len, eps: float(eps) };
            let (own, line) = (of(dtype, checked_volume([lines, len])?), of(dtype, len));
            Ok(Restored::new(kind, &[own, line, line], &[own], None))
        }
        SavedKind::DrawElements { ref distribution, count, ref numbers, .. } => {
            fn drawn<T: Real, Q: Distribution>(
                numbers: DrawNumbers,
                dtype: DType,
                count: usize,
            ) -> Result<Restored, Error> {
                let kind = DrawElements { count, numbers, from: PhantomData::<(T, Q)> };
                Ok(Restored::new(kind, &[SEED], &[of(dtype, count)], None))
            }
            let numbers = restored_numbers(numbers, count)?;
            match distribution.as_str() {
                Uniform::NAME => drawn::<T, Uniform>(numbers, dtype, count),
                Normal::NAME => drawn::<T, Normal>(numbers, dtype, count),
                Gumbel::NAME => drawn::<T, Gumbel>(numbers, dtype, count),
                name => Err(refused(format!("there is no distribution `{name}`"))),
            }
        }
        SavedKind::DrawTruths { count, ref numbers, .. } => {
            let numbers = restored_numbers(numbers, count)?;
            let kind = DrawTruths { count, numbers, element: PhantomData::<T> };
            Ok(Restored::new(kind, &[of(dtype, count), SEED], &[of(DType::Bool, count)], None))
        }
        SavedKind::Quantile { ref name, lines, len, q, .. } => {
            check(len > 0 || lines == 0, "lines have no elements")?;
            let kind = Quantile { name: name_of(name)?, lines, len, q: float(q) };
            let takes = [of(dtype, checked_volume([lines, len])?)];
            let kept = of(DType::Usize, checked_volume([2, lines])?);
            Ok(Restored::new(kind, &takes, &[of(dtype, lines)], Some(kept)))
        }
        _ => unreachable!("the kind was looked up"),
    }
}
