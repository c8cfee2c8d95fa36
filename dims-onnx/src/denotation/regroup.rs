//! Matches the axes of a reshaped result with the axes of the operand. The elements keep their
//! order, so leading and trailing axes of equal size remain the same. Between them, a run of axes
//! becomes a run of axes with the same product.

use super::node::counted;
use super::value::Size;

/// The origin of an axis of the result.
#[derive(Clone, Debug, PartialEq)]
pub enum From {
    /// The axis is this axis of the operand.
    Same(usize),
    /// The axis is these axes of the operand, merged.
    Merged(Vec<usize>),
    /// The axis is new, contains only a part of an axis, or its origin is unknown.
    New,
}

/// A requested size.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
    /// The size of the axis at the same position.
    Copied,
    /// This size, which may be unknown.
    Size(Size),
}

/// The origin and the size of each axis of the result.
///
/// # Errors
///
/// Returns an error if a copied axis does not exist, or if the numbers of elements differ. The
/// latter is found only if no size is 0, and if, without the leading and trailing axes that the
/// operand and the result have in common, all sizes are known and their products do not overflow.
pub fn regroup(axes: &[Size], wanted: &[Wanted]) -> Result<Vec<(From, Size)>, String> {
    let mut out = Vec::new();
    for (at, wanted) in wanted.iter().enumerate() {
        out.push(match wanted {
            Wanted::Size(size) => (From::New, size.clone()),
            Wanted::Copied => {
                let size = axes.get(at).ok_or_else(|| {
                    format!("axis {at} (counted from 0) is copied from an input with {}", counted(axes.len()))
                })?;
                (From::New, size.clone())
            }
        });
    }
    let empty = axes.iter().chain(out.iter().map(|(_, size)| size)).any(|size| *size == Size::Fixed(0));
    let shorter = axes.len().min(out.len());
    let mut front = 0;
    while front < shorter && (wanted[front] == Wanted::Copied || axes[front].same(&out[front].1)) {
        out[front].0 = From::Same(front);
        front += 1;
    }
    let mut back = 0;
    while back < shorter - front && axes[axes.len() - 1 - back].same(&out[out.len() - 1 - back].1) {
        let (last, end) = (axes.len() - 1 - back, out.len() - 1 - back);
        out[end].0 = From::Same(last);
        back += 1;
    }
    // The axes in the middle, without those of size 1, which may be added or removed anywhere.
    let ins: Vec<usize> = (front..axes.len() - back).filter(|&at| !axes[at].is_one()).collect();
    let mut outs: Vec<usize> = (front..out.len() - back).filter(|&at| !out[at].1.is_one()).collect();
    let numbers: Option<Vec<i64>> =
        ins.iter().map(|&at| if let Size::Fixed(size) = axes[at] { Some(size) } else { None }).collect();
    let unknown: Vec<usize> =
        outs.iter().copied().filter(|&at| !matches!(out[at].1, Size::Fixed(_))).collect();
    if let Some(numbers) = &numbers
        && let [at] = unknown[..]
        && let Some(size) = missing(numbers, outs.iter().filter(|&&out| out != at).map(|&at| &out[at].1))
    {
        out[at].1 = Size::Fixed(size);
        if size == 1 {
            outs.retain(|&other| other != at);
        }
    }
    let sizes: Option<Vec<i64>> =
        outs.iter().map(|&at| if let Size::Fixed(size) = out[at].1 { Some(size) } else { None }).collect();
    match (numbers, sizes) {
        (Some(numbers), Some(sizes)) if !empty => {
            for (from, to) in runs(&numbers, &sizes)? {
                assign(&mut out, axes, &ins[from], &outs[to]);
            }
        }
        // Some sizes are unknown or 0: matching runs are removed from the end, and the rest is one
        // run.
        _ => {
            let known = |size: &Size| if let Size::Fixed(size @ 1..) = size { Some(*size) } else { None };
            let ins_known: Vec<Option<i64>> = ins.iter().map(|&at| known(&axes[at])).collect();
            let outs_known: Vec<Option<i64>> = outs.iter().map(|&at| known(&out[at].1)).collect();
            let (mut i, mut o) = (ins.len(), outs.len());
            while let Some((from, to)) = last_run(&ins_known[..i], &outs_known[..o]) {
                assign(&mut out, axes, &ins[from..i], &outs[to..o]);
                (i, o) = (from, to);
            }
            assign(&mut out, axes, &ins[..i], &outs[..o]);
        }
    }
    Ok(out)
}

/// The starts of the shortest runs that have the same product and end where these lists end.
fn last_run(ins: &[Option<i64>], outs: &[Option<i64>]) -> Option<(usize, usize)> {
    let (mut i, mut o) = (ins.len(), outs.len());
    let (mut left, mut right) = (1i64, 1i64);
    loop {
        if left <= right {
            i = i.checked_sub(1)?;
            left = left.checked_mul(ins[i]?)?;
        } else {
            o = o.checked_sub(1)?;
            right = right.checked_mul(outs[o]?)?;
        }
        if left == right {
            return Some((i, o));
        }
    }
}

/// The single unknown size, from the number of elements.
fn missing<'a>(numbers: &[i64], others: impl Iterator<Item = &'a Size>) -> Option<i64> {
    let all = numbers.iter().try_fold(1i64, |product, &size| product.checked_mul(size))?;
    let known = others.into_iter().try_fold(1i64, |product, size| match size {
        Size::Fixed(size) => product.checked_mul(*size),
        _ => None,
    })?;
    (known > 0 && all > 0 && all % known == 0).then(|| all / known)
}

type Run = std::ops::Range<usize>;

/// The shortest runs of axes on both sides that have the same product.
fn runs(ins: &[i64], outs: &[i64]) -> Result<Vec<(Run, Run)>, String> {
    let product =
        |sizes: &[i64]| sizes.iter().map(|&size| i128::from(size)).try_fold(1i128, i128::checked_mul);
    let (Some(all), Some(wanted)) = (product(ins), product(outs)) else {
        return Ok(vec![(0..ins.len(), 0..outs.len())]);
    };
    if all != wanted {
        return Err(format!("axes with {all} positions are reshaped into axes with {wanted}"));
    }
    let mut runs = Vec::new();
    let (mut i, mut o) = (0, 0);
    while i < ins.len() || o < outs.len() {
        let (from, to) = (i, o);
        let (mut left, mut right) = (1i128, 1i128);
        loop {
            if left <= right && i < ins.len() {
                left *= i128::from(ins[i]);
                i += 1;
            } else if o < outs.len() {
                right *= i128::from(outs[o]);
                o += 1;
            } else {
                break;
            }
            if left == right {
                break;
            }
        }
        runs.push((from..i, to..o));
    }
    Ok(runs)
}

fn assign(out: &mut [(From, Size)], axes: &[Size], ins: &[usize], outs: &[usize]) {
    match (ins, outs) {
        (&[from], &[to]) => {
            out[to].0 = From::Same(from);
            out[to].1 = out[to].1.or(&axes[from]);
        }
        (_, &[to]) if !ins.is_empty() => out[to].0 = From::Merged(ins.to_vec()),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::{From, Wanted, regroup};
    use crate::denotation::value::Size;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn size(text: &str) -> Size {
        match text.parse() {
            Ok(size) => Size::Fixed(size),
            Err(_) if text == "?" => Size::Unknown,
            Err(_) => Size::Param(text.into()),
        }
    }

    /// Where each axis comes from: `"0+1 2"` for `"2 3 4"` reshaped to `"6 4"`.
    fn from(axes: &str, wanted: &str) -> String {
        let axes: Vec<Size> = axes.split_whitespace().map(size).collect();
        let wanted: Vec<Wanted> = wanted
            .split_whitespace()
            .map(|text| if text == "=" { Wanted::Copied } else { Wanted::Size(size(text)) })
            .collect();
        let one = |(from, _): (From, Size)| match from {
            From::Same(at) => at.to_string(),
            From::Merged(all) => all.iter().map(usize::to_string).collect::<Vec<_>>().join("+"),
            From::New => "_".to_owned(),
        };
        match regroup(&axes, &wanted) {
            Ok(axes) => axes.into_iter().map(one).collect::<Vec<_>>().join(" "),
            Err(why) => why,
        }
    }

    #[test]
    fn axes_stay_merge_and_split() {
        for (axes, wanted, expected) in [
            ("2 3 4", "2 3 4", "0 1 2"),
            ("2 3 4", "6 4", "0+1 2"),
            ("2 3 4", "2 12", "0 1+2"),
            ("6 4", "2 3 4", "_ _ 1"),
            ("2 3 4", "2 1 3 4", "0 _ 1 2"),
            ("2 1 3 1", "2 3", "0 2"),
            ("N 3 8 8", "= ?", "0 1+2+3"),
            ("N 512 1 1", "= ?", "0 1"),
            ("N T 768", "N T 12 64", "0 1 _ _"),
            ("N T 12 64", "N T 768", "0 1 2+3"),
            ("N T 12 64", "N ? 768", "0 1 2+3"),
            ("? 3 ? ?", "= 3 ?", "0 1 2+3"),
            ("4 4", "2 2 4", "_ _ 1"),
            ("2 6 4", "4 3 4", "_ _ 2"),
            ("2 3", "7", "axes with 6 positions are reshaped into axes with 7"),
            ("0 3", "0 5", "0 1"),
            ("2", "= =", "axis 1 (counted from 0) is copied from an input with 1 axis"),
            ("", "1 1", "_ _"),
            ("1 1", "", ""),
            ("9223372036854775807 9223372036854775807 9223372036854775807", "2", "0+1+2"),
        ] {
            assert_eq!(from(axes, wanted), expected, "{axes} -> {wanted}");
        }
    }

    fn coordinates(mut element: usize, sizes: &[usize]) -> Vec<usize> {
        let mut all = vec![0; sizes.len()];
        for (coordinate, &size) in all.iter_mut().zip(sizes).rev() {
            *coordinate = element % size;
            element /= size;
        }
        all
    }

    /// The expected origins, found from all elements. An output axis consists of the input axes
    /// whose positions change with a step along it. It is new if one of these also changes with
    /// another output axis.
    fn by_elements(axes: &[usize], wanted: &[usize]) -> Vec<From> {
        let count: usize = axes.iter().product();
        let mut decides = vec![BTreeSet::new(); wanted.len()];
        let mut decided = vec![BTreeSet::new(); axes.len()];
        for element in 0..count {
            let to = coordinates(element, wanted);
            for (out, &at) in to.iter().enumerate() {
                if at + 1 == wanted[out] {
                    continue;
                }
                let step: usize = wanted[out + 1..].iter().product();
                let (here, there) = (coordinates(element, axes), coordinates(element + step, axes));
                for from in (0..axes.len()).filter(|&from| here[from] != there[from]) {
                    decides[out].insert(from);
                    decided[from].insert(out);
                }
            }
        }
        let one = |out: usize| {
            let mine: Vec<usize> = decides[out].iter().copied().collect();
            match mine[..] {
                _ if mine.iter().any(|&from| decided[from].len() > 1) => From::New,
                [] => From::New,
                [from] => From::Same(from),
                _ => From::Merged(mine),
            }
        };
        (0..wanted.len()).map(one).collect()
    }

    proptest! {
        /// Splits the same factors into axes in two ways.
        #[test]
        fn axes_are_where_their_elements_are(
            factors in prop::collection::vec(1usize..5, 1..6),
            cuts in prop::collection::vec(any::<(bool, bool)>(), 6),
            hidden in any::<Option<prop::sample::Index>>(),
        ) {
            let joined = |cut: &dyn Fn(usize) -> bool| {
                let mut sizes = vec![1];
                for (at, &factor) in factors.iter().enumerate() {
                    if cut(at) { sizes.push(factor) } else { *sizes.last_mut().unwrap() *= factor }
                }
                sizes
            };
            let (axes, wanted) = (joined(&|at| cuts[at].0), joined(&|at| cuts[at].1));
            let fixed = |sizes: &[usize]| sizes.iter().map(|&size| Size::Fixed(size as i64)).collect::<Vec<_>>();
            // One size may be left unknown.
            let mut asked = fixed(&wanted);
            if let Some(hidden) = hidden {
                asked[hidden.index(wanted.len())] = Size::Unknown;
            }
            let asked: Vec<Wanted> = asked.into_iter().map(Wanted::Size).collect();
            let found = regroup(&fixed(&axes), &asked).unwrap();
            let expected = by_elements(&axes, &wanted);
            for (out, ((from, size), expected)) in found.into_iter().zip(expected).enumerate() {
                prop_assert_eq!(&size, &Size::Fixed(wanted[out] as i64));
                // An axis with one position may come from any axis.
                if wanted[out] > 1 {
                    prop_assert_eq!(from, expected, "axis {} of {:?} from {:?}", out, &wanted, &axes);
                }
            }
        }
    }
}
