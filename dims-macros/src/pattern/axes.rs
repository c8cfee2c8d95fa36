//! Numbers the axes of a pattern, and finds the axes of each array.

use super::errors::Errors;
use super::parse::{Array, Axis, AxisKind};
use super::words::{Place, Words};

/// One axis of an array, or `...`, like `Slot` of the core.
#[derive(Clone, Debug, PartialEq)]
pub enum Slot {
    Rest,
    Axis(usize),
    Group(Vec<Term>),
    Sum(Vec<Vec<Term>>),
}

/// A single axis, or `...`, within a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Term {
    Rest,
    Axis(usize),
}

impl Slot {
    pub fn groups(&self) -> Vec<Vec<Term>> {
        match self {
            Slot::Rest => vec![vec![Term::Rest]],
            Slot::Axis(axis) => vec![vec![Term::Axis(*axis)]],
            Slot::Group(terms) => vec![terms.clone()],
            Slot::Sum(groups) => groups.clone(),
        }
    }

    /// All terms of the axis.
    pub fn terms(&self) -> Vec<Term> {
        self.groups().concat()
    }
}

/// An axis of the pattern.
pub struct PatternAxis {
    /// The axis as written: a name, a number, `_` or `*`.
    pub name: String,
    /// The size, if the axis is a number. `usize::MAX` for `_` and `*`.
    pub number: Option<usize>,
}

/// All axes of a pattern.
#[derive(Default)]
pub struct Table {
    pub entries: Vec<PatternAxis>,
}

impl Table {
    /// The index of the axis with this name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.entries.iter().position(|entry| entry.number.is_none() && entry.name == name)
    }

    /// The index of the axis with this name, which is added if it is new.
    fn named(&mut self, name: &str) -> usize {
        self.find(name).unwrap_or_else(|| self.push(name.to_owned(), None))
    }

    pub fn push(&mut self, name: String, number: Option<usize>) -> usize {
        self.entries.push(PatternAxis { name, number });
        self.entries.len() - 1
    }

    /// The names of the axes that have one.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter(|entry| entry.number.is_none()).map(|entry| &entry.name[..])
    }
}

/// What an array may contain: `None` where something is allowed, and otherwise the error message.
#[derive(Clone, Copy)]
pub struct Rules {
    pub numbers: Option<&'static str>,
    pub dots_in_groups: Option<&'static str>,
    pub under: Option<&'static str>,
    pub star: Option<&'static str>,
    pub groups: Option<&'static str>,
    pub sums: Option<&'static str>,
    /// An axis that occurs twice, as a diagonal. The text follows "the axis `a`" in the message.
    pub twice: Option<&'static str>,
}

impl Rules {
    /// The rules of most patterns: everything is allowed except `_` and `*`.
    pub const USUAL: Rules = Rules {
        numbers: None,
        dots_in_groups: None,
        under: Some("`_` matches an axis without naming it, so the axis would be lost here: give it a name"),
        star: Some(
            "`*` is only for `pack!` and `unpack!`: write `...` for any number of axes, or `(h w)` for a group of axes",
        ),
        groups: None,
        sums: None,
        twice: None,
    };
}

/// An array whose axes are numbered.
pub struct Numbered {
    pub slots: Vec<Slot>,
    /// The place of each single axis and each `...`, in a group or not, with the index of the axis,
    /// or `None` for `...`.
    pub places: Vec<(Option<usize>, Place)>,
    pub place: Place,
}

impl Numbered {
    /// Whether `...` is one of the axes.
    pub fn spreads(&self) -> bool {
        self.slots.contains(&Slot::Rest)
    }

    /// The number of axes, not counting `...`.
    pub fn count(&self) -> usize {
        self.slots.iter().filter(|slot| **slot != Slot::Rest).count()
    }

    /// The name of the axis, if the array has a single axis with a name.
    pub fn only_name<'t>(&self, table: &'t Table) -> Option<&'t str> {
        let [Slot::Axis(axis)] = self.slots[..] else { return None };
        let entry = &table.entries[axis];
        entry.number.is_none().then_some(&*entry.name)
    }

    /// Whether the array has the axis.
    pub fn has(&self, axis: usize) -> bool {
        self.places.iter().any(|(own, _)| *own == Some(axis))
    }

    /// Whether the array has `...`, in a group or not.
    pub fn has_rest(&self) -> bool {
        self.places.iter().any(|(own, _)| own.is_none())
    }
}

/// Numbers the axes of an array.
pub fn number(
    array: &Array,
    rules: &Rules,
    table: &mut Table,
    words: &Words,
    errors: &mut Errors,
) -> Numbered {
    let mut numbered = Numbered { slots: Vec::new(), places: Vec::new(), place: array.place.clone() };
    let mut numberer =
        Numberer { rules, table, words, errors, places: &mut numbered.places, alternative: None };
    for axis in &array.axes {
        let slot = numberer.slot(axis);
        numbered.slots.extend(slot);
    }
    numbered
}

struct Numberer<'n> {
    rules: &'n Rules,
    table: &'n mut Table,
    words: &'n Words,
    errors: &'n mut Errors,
    places: &'n mut Vec<(Option<usize>, Place)>,
    /// In a sum, the starts of the sum and of its current group in `places`. An axis may occur once
    /// in each group.
    alternative: Option<(usize, usize)>,
}

impl Numberer<'_> {
    fn refuse(&mut self, place: &Place, what: Option<&'static str>) {
        if let Some(what) = what {
            self.errors.at(self.words, place, what);
        }
    }

    fn slot(&mut self, axis: &Axis) -> Option<Slot> {
        match &axis.kind {
            AxisKind::Dots => {
                self.dots(&axis.place);
                Some(Slot::Rest)
            }
            AxisKind::Group(groups) => {
                self.refuse(&axis.place, self.rules.groups);
                if groups.len() == 1 {
                    let terms = self.terms(&groups[0]);
                    return Some(match terms[..] {
                        [Term::Axis(axis)] => Slot::Axis(axis),
                        _ => Slot::Group(terms),
                    });
                }
                self.refuse(&axis.place, self.rules.sums);
                let mut sum = Vec::new();
                let start = self.places.len();
                for group in groups {
                    self.alternative = Some((start, self.places.len()));
                    sum.push(self.terms(group));
                }
                self.alternative = None;
                Some(Slot::Sum(sum))
            }
            _ => Some(match self.term(axis) {
                Some(Term::Axis(axis)) => Slot::Axis(axis),
                Some(Term::Rest) => Slot::Rest,
                None => Slot::Group(Vec::new()),
            }),
        }
    }

    fn terms(&mut self, group: &[Axis]) -> Vec<Term> {
        let mut terms = Vec::new();
        for axis in group {
            match &axis.kind {
                AxisKind::Group(inner) if inner.len() == 1 => terms.extend(self.terms(&inner[0])),
                AxisKind::Group(groups) => {
                    let what = "`(w1 + w2)` must be a whole axis: it cannot be part of another group";
                    self.errors.at(self.words, &axis.place, what);
                    for group in groups {
                        terms.extend(self.terms(group));
                    }
                }
                AxisKind::Dots => {
                    self.refuse(&axis.place, self.rules.dots_in_groups);
                    self.dots(&axis.place);
                    terms.push(Term::Rest);
                }
                _ => terms.extend(self.term(axis)),
            }
        }
        terms
    }

    fn dots(&mut self, place: &Place) {
        if self.places.iter().any(|(axis, _)| axis.is_none()) {
            self.errors.at(self.words, place, "an array can have only one `...`");
        }
        self.places.push((None, place.clone()));
    }

    /// A single axis. `None` for `1`, and for `0`, which is an error.
    fn term(&mut self, axis: &Axis) -> Option<Term> {
        let place = &axis.place;
        let number = match &axis.kind {
            AxisKind::Name(name) => {
                let number = self.table.named(name);
                let (sum, group) = self.alternative.unwrap_or((0, 0));
                let mut others = self.places[..sum].iter().chain(&self.places[group..]);
                if others.any(|(own, _)| *own == Some(number))
                    && let Some(what) = self.rules.twice
                {
                    self.errors.at(self.words, place, format!("the axis `{name}` {what}"));
                }
                number
            }
            AxisKind::Number(1) => return None,
            AxisKind::Number(0) => {
                self.errors.at(
                    self.words,
                    place,
                    "an axis of a pattern must have at least one element, not `0`",
                );
                return None;
            }
            AxisKind::Number(number) => {
                self.refuse(place, self.rules.numbers);
                self.table.push(number.to_string(), Some(*number))
            }
            AxisKind::Under => {
                self.refuse(place, self.rules.under);
                self.table.push("_".into(), Some(usize::MAX))
            }
            AxisKind::Star => {
                self.refuse(place, self.rules.star);
                self.table.push("*".into(), Some(usize::MAX))
            }
            AxisKind::Dots | AxisKind::Group(_) => return None,
        };
        self.places.push((Some(number), place.clone()));
        Some(Term::Axis(number))
    }
}

/// Whether the size of each axis is known: if the axis is a number, if it is a whole axis of an
/// operand, if the call gives its size, or if it has the only unknown size in a group of an
/// operand. A group with more unknown sizes is an error.
pub fn solvable(
    inputs: &[Numbered],
    given: &[(usize, syn::Expr)],
    table: &Table,
    words: &Words,
    errors: &mut Errors,
) -> Vec<bool> {
    let mut known: Vec<bool> = table.entries.iter().map(|entry| entry.number.is_some()).collect();
    for (axis, _) in given {
        known[*axis] = true;
    }
    let mut open: Vec<(&Numbered, Vec<Term>)> = Vec::new();
    for input in inputs {
        for slot in &input.slots {
            match slot {
                Slot::Axis(axis) => known[*axis] = true,
                Slot::Rest => {}
                slot => open.push((input, slot.terms())),
            }
        }
    }
    loop {
        let before = open.len();
        open.retain(|(_, terms)| {
            let unknown: Vec<usize> = unknown(terms, &known);
            if let [axis] = unknown[..] {
                known[axis] = true;
            }
            unknown.len() > 1
        });
        if open.len() == before {
            break;
        }
    }
    for (input, terms) in open {
        let unknown = unknown(&terms, &known);
        let Some(&last) = unknown.last() else { continue };
        let names: Vec<String> = unknown.iter().map(|&axis| table.entries[axis].name.clone()).collect();
        let mut distinct: Vec<String> = Vec::new();
        for name in &names {
            if !distinct.contains(name) {
                distinct.push(name.clone());
            }
        }
        let place = input.places.iter().find(|(own, _)| *own == Some(last)).map(|(_, place)| place);
        let what = if distinct.len() == 1 {
            format!(
                "the size of `{0}` cannot be inferred, because `{0}` occurs twice within one axis: give it, `{0} = 2`",
                names[0]
            )
        } else {
            format!(
                "the sizes of {} are unknown, and only one can be inferred: give the rest, `{} = 2`",
                super::near::list(&distinct),
                table.entries[last].name
            )
        };
        errors.at(words, place.unwrap_or(&input.place), what);
        for axis in unknown {
            known[axis] = true;
        }
    }
    known
}

fn unknown(terms: &[Term], known: &[bool]) -> Vec<usize> {
    let axis = |term: &Term| match term {
        Term::Axis(axis) if !known[*axis] => Some(*axis),
        _ => None,
    };
    terms.iter().filter_map(axis).collect()
}
