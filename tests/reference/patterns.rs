//! The oracle for the pattern macros: it parses a pattern at run time, and computes each element
//! separately.
//!
//! It shares nothing with the macros: it splits strings, finds sizes by repeated passes, and visits
//! all positions of all axes.

use super::input::{Random, Sample};
use ndarray::{Array, ArrayD, Dimension, IxDyn, ShapeBuilder};
use num_complex::Complex;
use std::collections::BTreeMap;

/// An array of random elements.
pub fn random<T: Sample, Sh: ShapeBuilder>(random: &mut Random, shape: Sh) -> Array<T, Sh::Dim> {
    Array::from_shape_simple_fn(shape, || T::sample(random))
}

/// Converts results of any rank to arrays of dynamic rank.
pub trait IntoDynamic<T> {
    /// The array.
    fn into_dynamic(self) -> ArrayD<T>;
}

impl<T, D: Dimension> IntoDynamic<T> for Array<T, D> {
    fn into_dynamic(self) -> ArrayD<T> {
        self.into_dyn()
    }
}

macro_rules! numbers {
    ($($t:ty),*) => {$(
        impl IntoDynamic<$t> for $t {
            fn into_dynamic(self) -> ArrayD<$t> {
                ndarray::arr0(self).into_dyn()
            }
        }
    )*};
}

numbers!(i32, i64, u8, usize, f32, f64, bool, Complex<f64>);

/// All positions of axes of these sizes, the last axis fastest.
fn positions(sizes: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for &size in sizes {
        all = all.iter().flat_map(|at| (0..size).map(move |i| [&at[..], &[i]].concat())).collect();
    }
    all
}

/// NumPy's einsum by its definition. Axes under `...` are named by their number from the right:
/// `0`, `1`, ..
pub fn einsum<T: Sample>(pattern: &str, operands: &[ArrayD<T>]) -> ArrayD<T> {
    let pattern: String = pattern.chars().filter(|c| !c.is_whitespace()).collect();
    let (left, right) = match pattern.split_once("->") {
        Some((left, right)) => (left, Some(right)),
        None => (&pattern[..], None),
    };
    let mut longest = 0;
    let names = |term: &str, rest: usize| -> Vec<String> {
        let (before, after) = term.split_once("...").map_or((term, None), |(b, a)| (b, Some(a)));
        let mut names: Vec<String> = before.chars().map(String::from).collect();
        if let Some(after) = after {
            names.extend((0..rest).rev().map(|at| at.to_string()));
            names.extend(after.chars().map(String::from));
        }
        names
    };
    let mut terms = Vec::new();
    for (term, operand) in left.split(',').zip(operands) {
        let rest = operand.ndim() + 3 * usize::from(term.contains("...")) - term.chars().count();
        longest = longest.max(rest);
        terms.push(names(term, rest));
    }
    assert_eq!(terms.len(), left.split(',').count(), "each term has an operand");
    let output = match right {
        Some(right) => names(right, longest),
        None => {
            let mut all: Vec<&String> = terms.iter().flatten().collect();
            all.sort();
            let once = |name: &&&String| {
                !name.starts_with(|c: char| c.is_ascii_digit())
                    && all.iter().filter(|own| own == name).count() == 1
            };
            let rest = (0..longest).rev().map(|at| at.to_string());
            rest.chain(all.iter().filter(once).map(|name| (*name).clone())).collect()
        }
    };
    let mut sizes: BTreeMap<&String, usize> = BTreeMap::new();
    for (term, operand) in terms.iter().zip(operands) {
        for (name, &size) in term.iter().zip(operand.shape()) {
            let own = sizes.entry(name).or_insert(size);
            let broadcast = name.starts_with(|c: char| c.is_ascii_digit());
            if broadcast && *own == 1 {
                *own = size;
            }
            assert!(*own == size || broadcast && size == 1, "axis `{name}` has the sizes {own} and {size}");
        }
    }
    let summed: Vec<&String> = sizes.keys().copied().filter(|name| !output.contains(name)).collect();
    let out_sizes: Vec<usize> = output.iter().map(|name| sizes[name]).collect();
    let sum_sizes: Vec<usize> = summed.iter().map(|name| sizes[*name]).collect();
    let inner = positions(&sum_sizes);
    ArrayD::from_shape_fn(IxDyn(&out_sizes), |at| {
        let mut sum = T::ZERO_VALUE;
        for within in &inner {
            let index = |name: &String| match output.iter().position(|own| own == name) {
                Some(axis) => at[axis],
                None => {
                    within[summed.iter().position(|own| *own == name).expect("an axis is kept or summed")]
                }
            };
            let factor = |(term, operand): (&Vec<String>, &ArrayD<T>)| {
                let place: Vec<usize> = term
                    .iter()
                    .zip(operand.shape())
                    .map(|(name, &size)| if size == 1 { 0 } else { index(name) })
                    .collect();
                operand[&place[..]]
            };
            let factors: Vec<T> = terms.iter().zip(operands).map(factor).collect();
            sum = sum.plus(factors[1..].iter().fold(factors[0], |product, &x| product.times(x)));
        }
        sum
    })
}

/// The axes of one side of an einops pattern, each as a list of names. `...` stands for `rest`
/// axes.
fn side(text: &str, rest: usize, numbers: &mut usize) -> Vec<Vec<String>> {
    let spaced = text.replace('(', " ( ").replace(')', " ) ").replace("...", " ... ");
    let mut axes: Vec<Vec<String>> = Vec::new();
    let mut depth = 0;
    for word in spaced.split_whitespace() {
        let names: Vec<String> = match word {
            "(" => {
                depth += 1;
                if depth == 1 {
                    axes.push(Vec::new());
                }
                continue;
            }
            ")" => {
                depth -= 1;
                continue;
            }
            "..." => (0..rest).map(|at| format!("~{at}")).collect(),
            "1" => vec![],
            number if number.starts_with(|c: char| c.is_ascii_digit()) => {
                *numbers += 1;
                vec![format!("{number}#{numbers}")]
            }
            name => vec![name.to_owned()],
        };
        if depth > 0 {
            axes.last_mut().expect("a group is open").extend(names);
        } else if word == "..." {
            axes.extend(names.into_iter().map(|name| vec![name]));
        } else {
            axes.push(names);
        }
    }
    axes
}

/// A rearrangement, repetition or reduction as einops defines it. `combine` gets the elements that
/// map to one position of the result, in the order of the operand.
pub fn einops<T: Copy, U: Clone>(
    pattern: &str,
    operand: &ArrayD<T>,
    given: &[(&str, usize)],
    combine: impl Fn(&[T]) -> U,
) -> ArrayD<U> {
    let (left, right) = pattern.split_once("->").expect("a pattern has two sides");
    let mut numbers = 0;
    let plain = side(left, 0, &mut numbers).len();
    let rest = operand.ndim() - plain;
    numbers = 0;
    let (left, right) = (side(left, rest, &mut numbers), side(right, rest, &mut numbers));
    let mut sizes: BTreeMap<String, usize> =
        given.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect();
    for name in left.iter().chain(&right).flatten() {
        if let Some((number, _)) = name.split_once('#') {
            sizes.insert(name.clone(), number.parse().expect("the size is a number"));
        }
    }
    // Each pass finds at least one size, if any can still be found.
    for _ in 0..20 {
        for (names, &size) in left.iter().zip(operand.shape()) {
            let open: Vec<&String> = names.iter().filter(|name| !sizes.contains_key(*name)).collect();
            let known: usize = names.iter().filter_map(|name| sizes.get(name)).product();
            if let [name] = open[..] {
                sizes.insert(name.clone(), size / known);
            }
        }
    }
    for (names, &size) in left.iter().zip(operand.shape()) {
        assert_eq!(names.iter().map(|name| sizes[name]).product::<usize>(), size, "the size of {names:?}");
    }
    let shape: Vec<usize> =
        right.iter().map(|names| names.iter().map(|name| sizes[name]).product()).collect();
    let all: Vec<String> = {
        // Axes in the order of the operand, then the new ones.
        let mut all: Vec<String> = Vec::new();
        for name in left.iter().chain(&right).flatten() {
            if !all.contains(name) {
                all.push(name.clone());
            }
        }
        all
    };
    let index = |at: &[usize], names: &[String]| {
        names.iter().fold(0, |index, name| {
            let axis = all.iter().position(|own| own == name).expect("the axis is known");
            index * sizes[name] + at[axis]
        })
    };
    let mut parts: BTreeMap<Vec<usize>, Vec<T>> = BTreeMap::new();
    for at in positions(&all.iter().map(|name| sizes[name]).collect::<Vec<_>>()) {
        let from: Vec<usize> = left.iter().map(|names| index(&at, names)).collect();
        let to: Vec<usize> = right.iter().map(|names| index(&at, names)).collect();
        parts.entry(to).or_default().push(operand[&from[..]]);
    }
    ArrayD::from_shape_fn(IxDyn(&shape), |at| {
        combine(parts.get(at.slice()).map_or(&[][..], |elements| &elements[..]))
    })
}

/// Arrays of equal shape, stacked along a new first axis.
pub fn stacked<T: Clone>(parts: &[ArrayD<T>]) -> ArrayD<T> {
    let views: Vec<_> = parts.iter().map(|part| part.view()).collect();
    ndarray::stack(ndarray::Axis(0), &views).expect("the shapes agree")
}
