//! Sums of products: contracted axes must agree, and so must batch axes.

use super::super::node::{Call, Results, counted};
use super::super::value::{Axis, Value};
use super::joint::meet_all;
use std::collections::BTreeMap;

/// `out[.., i, j] = sum over k of a[.., i, k] * b[.., k, j]`
pub fn matmul(call: &mut Call<'_>, a: usize, b: usize) -> Results {
    let (Some(left), Some(right)) = (call.axes(a), call.axes(b)) else { return Ok(Vec::new()) };
    let (m, n) = (left.len(), right.len());
    if m == 0 || n == 0 {
        return Err("a scalar has no axis to sum over".to_owned());
    }
    let summed = if n == 1 { 0 } else { n - 2 };
    call.meet((a, m - 1), (b, summed), true);
    let (batches_left, batches_right) = (m.saturating_sub(2), n.saturating_sub(2));
    let mut out = Vec::new();
    for back in (1..=batches_left.max(batches_right)).rev() {
        let places = [(a, batches_left.checked_sub(back)), (b, batches_right.checked_sub(back))];
        let places: Vec<_> = places.into_iter().filter_map(|(input, at)| Some((input, at?))).collect();
        out.push(meet_all(call, &places));
    }
    // Axes that did not agree have lost their meaning.
    let (Some(left), Some(right)) = (call.axes(a), call.axes(b)) else { return Ok(Vec::new()) };
    if m > 1 {
        out.push(left[m - 2].clone());
    }
    if n > 1 {
        out.push(right[n - 1].clone());
    }
    Ok(vec![Value::with_axes(out)])
}

/// `out[i, j] = c[i, j] + sum over k of a[i, k] * b[k, j]`, where `a` and `b` may be transposed.
pub fn gemm(call: &mut Call<'_>) -> Results {
    for input in 0..2 {
        if call.axes(input).is_some_and(|axes| axes.len() != 2) {
            return Err("the operands of a matrix product have two axes".to_owned());
        }
    }
    let (swapped_a, swapped_b) = (call.int("transA").unwrap_or(0) != 0, call.int("transB").unwrap_or(0) != 0);
    let (rows, columns) = (usize::from(swapped_a), 1 - usize::from(swapped_b));
    call.meet((0, 1 - rows), (1, 1 - columns), true);
    let (a, b) = (call.axes(0), call.axes(1));
    if let Some(bias) = call.axes(2) {
        if bias.len() > 2 {
            return Err("the summand of a matrix product has at most two axes".to_owned());
        }
        if a.is_some() && bias.len() == 2 {
            call.meet((0, rows), (2, 0), false);
        }
        if b.is_some() && !bias.is_empty() {
            call.meet((1, columns), (2, bias.len() - 1), false);
        }
    }
    let bias = call.axes(2).unwrap_or_default();
    let from_bias = |back: usize| bias.len().checked_sub(back).map(|at| bias[at].meaning.clone());
    let axis = |axes: Option<&Axis>, back: usize| {
        let axis = axes.cloned().unwrap_or(Axis::UNKNOWN);
        Axis { meaning: axis.meaning.or_else(|| from_bias(back).flatten()), size: axis.size }
    };
    let out = vec![axis(a.as_ref().map(|a| &a[rows]), 2), axis(b.as_ref().map(|b| &b[columns]), 1)];
    Ok(vec![Value::with_axes(out)])
}

/// Products by letters: axes with the same letter must agree.
pub fn einsum(call: &mut Call<'_>) -> Results {
    let equation = call.text("equation").ok_or("there is no `equation`")?;
    let equation: String = equation.chars().filter(|letter| !letter.is_whitespace()).collect();
    let (terms, output) = match equation.split_once("->") {
        Some((terms, output)) => (terms, Some(output)),
        None => (equation.as_str(), None),
    };
    let terms: Vec<&str> = terms.split(',').collect();
    if terms.len() != call.inputs.len() {
        return Err(format!(
            "the number of terms in the equation is {}, but that of inputs is {}",
            terms.len(),
            call.inputs.len()
        ));
    }
    let mut places: BTreeMap<Index, Vec<(usize, usize)>> = BTreeMap::new();
    let mut count: BTreeMap<char, usize> = BTreeMap::new();
    let mut spread = 0;
    let mut complete = true;
    for (input, term) in terms.iter().enumerate() {
        for letter in term.chars().filter(char::is_ascii_alphabetic) {
            *count.entry(letter).or_default() += 1;
        }
        let Some(axes) = call.axes(input) else {
            complete &= !term.contains("...");
            continue;
        };
        for (at, index) in indices(term, axes.len())?.into_iter().enumerate() {
            if let Index::Spread(back) = index {
                spread = spread.max(back);
            }
            places.entry(index).or_default().push((input, at));
        }
    }
    let joint: BTreeMap<Index, Axis> =
        places.into_iter().map(|(index, places)| (index, meet_all(call, &places))).collect();
    let implicit: String;
    let output = match output {
        Some(output) => output,
        None => {
            let dots = if equation.contains("...") { "..." } else { "" };
            let once = count.iter().filter(|(_, count)| **count == 1).map(|(letter, _)| *letter);
            implicit = dots.chars().chain(once).collect();
            &implicit
        }
    };
    if !complete && output.contains("...") {
        return Ok(Vec::new());
    }
    let letters = output.chars().filter(char::is_ascii_alphabetic).count();
    let rank = letters + if output.contains("...") { spread } else { 0 };
    let out = indices(output, rank)?.into_iter().map(|index| match (index, joint.get(&index)) {
        (_, Some(axis)) => Ok(axis.clone()),
        (Index::Letter(letter), None) if !count.contains_key(&letter) => {
            Err(format!("`{letter}` of the result is not in any term"))
        }
        _ => Ok(Axis::UNKNOWN),
    });
    Ok(vec![Value::with_axes(out.collect::<Result<_, String>>()?)])
}

/// The index of an axis: a letter, or a position among the axes of `...`, counted from the right,
/// starting at 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Index {
    Letter(char),
    Spread(usize),
}

/// The indices of a term for this number of axes.
fn indices(term: &str, axes: usize) -> Result<Vec<Index>, String> {
    let (before, after, dots) = match term.split_once("...") {
        Some((before, after)) => (before, after, true),
        None => (term, "", false),
    };
    let letters = before.len() + after.len();
    if !before.chars().chain(after.chars()).all(|letter| letter.is_ascii_alphabetic()) {
        return Err("the equation may only have letters, commas, dots and an arrow".to_owned());
    }
    if letters > axes || (!dots && letters < axes) {
        let many = if letters == 1 { "letter" } else { "letters" };
        return Err(format!("a term of the equation has {letters} {many} for {}", counted(axes)));
    }
    let spread = (1..=if dots { axes - letters } else { 0 }).rev().map(Index::Spread);
    Ok(before.chars().map(Index::Letter).chain(spread).chain(after.chars().map(Index::Letter)).collect())
}
