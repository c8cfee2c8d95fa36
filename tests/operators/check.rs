//! The test body: checks that apply to every operator.

use crate::table::{Case, Operator};
use crate::value::{Argument, Domain, Elements, Layout, Random};
use typed_dims::prelude::explain;

/// Sizes of dims, by name.
pub struct Sizes(Vec<(&'static str, usize)>);

impl Sizes {
    pub fn usual() -> Self {
        Sizes(crate::SIZES.to_vec())
    }

    pub fn of(&self, name: &str) -> usize {
        self.0.iter().find(|(own, _)| *own == name).unwrap_or_else(|| panic!("no size for {name}")).1
    }

    pub fn with(mut self, name: &str, size: usize) -> Self {
        self.0.iter_mut().filter(|(own, _)| *own == name).for_each(|entry| entry.1 = size);
        self
    }
}

/// The dims of argument `at` in call `run` of a `Case`.
pub fn dims_of(operator: &Operator, run: usize, at: usize) -> Vec<&'static str> {
    let own = operator.parameters[at].dims.iter().copied();
    let outer = (run == 1 && at == 0).then_some("Outer");
    let inner = (run == 1 && !operator.parameters[at].alone).then_some("Inner");
    outer.into_iter().chain(own).chain(inner).collect()
}

fn draw(
    operator: &Operator,
    case: &Case,
    run: usize,
    sizes: &Sizes,
    layout: Layout,
    random: &mut Random,
) -> Vec<Argument> {
    let mut arguments = Vec::new();
    for (at, parameter) in operator.parameters.iter().enumerate() {
        let shape: Vec<usize> = dims_of(operator, run, at).iter().map(|dim| sizes.of(dim)).collect();
        let limit = if let Domain::Below(dim) = parameter.domain { sizes.of(dim) } else { 0 };
        // Neighboring arguments have different layouts.
        let layout = Layout::ALL[(layout as usize + at) % Layout::ALL.len()];
        arguments.push(case.draw[at](&shape, layout, random, parameter.domain, limit));
    }
    arguments
}

/// Compares the result of an operator with the loops. With extra dims, calls the operator once for
/// all positions along them and once for each position, compares the results, and compares that of
/// the first position with the loops.
fn compare(operator: &Operator, case: &Case, run: usize, arguments: &[Argument], what: &str) {
    let (found, plan) = explain(|| case.runs[run](arguments));
    let further = if run == 0 { "no" } else { "two" };
    let context = || format!("{} of {}, {what}, {further} extra dims", operator.name, case.dtype);
    let in_library = plan.places.iter().flatten().find(|place| place.file().contains("dims-"));
    assert!(in_library.is_none(), "{}: a step has a location in the library\n{plan}", context());
    if run == 0 {
        let plain: Vec<Elements> = arguments.iter().map(|argument| argument.elements().widened()).collect();
        let expected = (case.loops)(&plain);
        assert!(
            found.close(&expected),
            "{}:\n{found:?}\ninstead of\n{expected:?}\narguments: {plain:?}",
            context()
        );
        return;
    }
    let shape = arguments[0].elements().shape();
    for outer_at in 0..shape[0] {
        for inner_at in 0..*shape.last().expect("the last axis is `Inner`") {
            let pick = |elements: Elements, outer: bool, inner: bool| {
                let elements = if outer { elements.index(0, outer_at) } else { elements };
                if inner { elements.index(elements.shape().len() - 1, inner_at) } else { elements }
            };
            let single: Vec<Argument> = arguments
                .iter()
                .enumerate()
                .map(|(at, argument)| {
                    Argument::plain(pick(argument.elements(), at == 0, !operator.parameters[at].alone))
                })
                .collect();
            let expected = case.runs[0](&single);
            let found = pick(found.clone(), true, true);
            assert!(
                found.close(&expected),
                "{}, at {outer_at}, {inner_at}:\n{found:?}\ninstead of\n{expected:?}",
                context()
            );
            if outer_at == 0 && inner_at == 0 {
                compare(operator, case, 0, &single, what);
            }
        }
    }
}

/// The dims that may have any size.
pub fn free_dims(operator: &Operator) -> Vec<&'static str> {
    let mut dims: Vec<_> = operator.parameters.iter().flat_map(|parameter| parameter.dims).copied().collect();
    dims.sort();
    dims.dedup();
    dims.retain(|dim| !operator.keep.contains(dim));
    dims
}

/// Whether a dim may be empty: no argument holds positions along it.
pub fn can_be_empty(operator: &Operator, dim: &'static str) -> bool {
    !operator.parameters.iter().any(|own| own.domain == Domain::Below(dim))
}

/// Checks the results of an operator, for each of its element types, and its errors.
pub fn check(operator: &Operator) {
    assert!(!operator.cases.is_empty(), "{} has no element types", operator.name);
    for case in &operator.cases {
        let mut random = Random(1);
        let mut run_all = |sizes: &Sizes, layout: Layout, what: &str| {
            for run in 0..case.runs.len() {
                let arguments = draw(operator, case, run, sizes, layout, &mut random);
                compare(operator, case, run, &arguments, what);
            }
        };
        for layout in Layout::ALL {
            run_all(&Sizes::usual(), layout, &format!("{layout:?}"));
        }
        let free = free_dims(operator);
        for dim in free.iter().copied().chain(["Outer", "Inner"]) {
            if can_be_empty(operator, dim) {
                run_all(
                    &Sizes::usual().with(dim, 0),
                    Layout::Contiguous,
                    &format!("no elements along {dim}"),
                );
            }
            run_all(&Sizes::usual().with(dim, 1), Layout::Contiguous, &format!("one element along {dim}"));
        }
        // Batch normalization refuses a batch with one element per channel.
        if operator.name == "batch_norm" {
            continue;
        }
        let ones = free.into_iter().fold(Sizes::usual(), |sizes, dim| sizes.with(dim, 1));
        run_all(&ones, Layout::Transposed, "one element along each dim");
    }
    for (at, error) in operator.errors.iter().enumerate() {
        let (found, expected) = error();
        // The rest of the text is the location of a line of the entry.
        let found =
            found.as_deref().map(|text| text.split(" (at ").next().expect("a split has a first part"));
        assert_eq!(found, Some(expected), "error {at} of {}", operator.name);
    }
}
