//! Optimizers, sums and averages as [`Parameters`]: the tensors that they keep, which recorded functions take and return.

use super::by_path::{ByPath, ParameterState, StateLine, StateTensor};
use super::scalars::StepsTaken;
use super::{Accumulator, Adam, AdamW, Average, Lion, Sgd, State};
use crate::error::DimError;
use crate::grad::Parameters;
use crate::grad::parameters::{DerivedParameters, Mismatch, Path, Visitor, Walk};
use alloc::vec::Vec;
use core::array::from_fn;

/// What is kept, as tensors.
trait KeptState: Sized {
    fn walk<const N: usize, W: Walk<N>>(
        of: [&Self; N],
        path: &mut Path,
        walk: &mut W,
    ) -> Result<Self, W::Error>;

    fn visit<const M: usize, const N: usize, V: Visitor<M, N>>(
        changed: [&mut Self; M],
        read: [&Self; N],
        path: &mut Path,
        visit: &mut V,
    ) -> Result<(), V::Error>;
}

impl KeptState for StepsTaken {
    fn walk<const N: usize, W: Walk<N>>(
        of: [&Self; N],
        path: &mut Path,
        walk: &mut W,
    ) -> Result<Self, W::Error> {
        walk.tensor(path, of.map(StepsTaken::tensor)).map(StepsTaken::of)
    }

    fn visit<const M: usize, const N: usize, V: Visitor<M, N>>(
        changed: [&mut Self; M],
        read: [&Self; N],
        path: &mut Path,
        visit: &mut V,
    ) -> Result<(), V::Error> {
        visit.tensor(path, changed.map(StepsTaken::tensor_mut), read.map(StepsTaken::tensor))
    }
}

impl KeptState for StateTensor {
    fn walk<const N: usize, W: Walk<N>>(
        of: [&Self; N],
        path: &mut Path,
        walk: &mut W,
    ) -> Result<Self, W::Error> {
        let lines = lines(of)?;
        if let Some(lines) = all_of(&lines, StateLine::single) {
            return Ok(of[0].with_line(StateLine::F32(walk.tensor(path, lines)?))?);
        }
        if let Some(lines) = all_of(&lines, StateLine::double) {
            return Ok(of[0].with_line(StateLine::F64(walk.tensor(path, lines)?))?);
        }
        Err(types_differ(path).into())
    }

    fn visit<const M: usize, const N: usize, V: Visitor<M, N>>(
        changed: [&mut Self; M],
        read: [&Self; N],
        path: &mut Path,
        visit: &mut V,
    ) -> Result<(), V::Error> {
        let read = lines(read)?;
        let mut own = lines(changed.each_ref().map(|state| &**state))?;
        let visited = match (all_of_mut(&mut own, StateLine::single_mut), all_of(&read, StateLine::single)) {
            (Some(changed), Some(read)) => visit.tensor(path, changed, read),
            _ => match (all_of_mut(&mut own, StateLine::double_mut), all_of(&read, StateLine::double)) {
                (Some(changed), Some(read)) => visit.tensor(path, changed, read),
                _ => Err(types_differ(path).into()),
            },
        };
        for (state, line) in changed.into_iter().zip(own) {
            *state = state.with_line(line)?;
        }
        visited
    }
}

fn lines<const N: usize>(of: [&StateTensor; N]) -> Result<[StateLine; N], DimError> {
    let lines: Vec<StateLine> = of.into_iter().map(StateTensor::line).collect::<Result<_, _>>()?;
    let mut lines = lines.into_iter();
    Ok(from_fn(|_| lines.next().expect("there is one for each")))
}

/// Parts of all lines, if all have them.
fn all_of<'l, X, const N: usize>(
    lines: &'l [StateLine; N],
    part: fn(&'l StateLine) -> Option<X>,
) -> Option<[X; N]> {
    let mut parts = lines.iter().map(part).collect::<Option<Vec<X>>>()?.into_iter();
    Some(from_fn(|_| parts.next().expect("there is one for each")))
}

/// The same, to change them.
fn all_of_mut<'l, X, const N: usize>(
    lines: &'l mut [StateLine; N],
    part: fn(&'l mut StateLine) -> Option<X>,
) -> Option<[X; N]> {
    let mut parts = lines.iter_mut().map(part).collect::<Option<Vec<X>>>()?.into_iter();
    Some(from_fn(|_| parts.next().expect("there is one for each")))
}

fn types_differ(path: &Path) -> DimError {
    DimError::Shape { what: format!("the states at `{path}` differ in their element types") }
}

impl KeptState for ParameterState {
    fn walk<const N: usize, W: Walk<N>>(
        of: [&Self; N],
        path: &mut Path,
        walk: &mut W,
    ) -> Result<Self, W::Error> {
        let missed = path.field("missed", |path| each_of(of.map(|own| own.missed.as_slice()), path, walk))?;
        let moments = path.field("moments", |path| each_of(of.map(|own| &own.moments[..]), path, walk))?;
        let master = path.field("master", |path| each_of(of.map(|own| own.master.as_slice()), path, walk))?;
        Ok(ParameterState {
            missed: missed.into_iter().next(),
            moments: moments.into_iter().collect(),
            master: master.into_iter().next(),
            ..of[0].clone()
        })
    }

    fn visit<const M: usize, const N: usize, V: Visitor<M, N>>(
        mut changed: [&mut Self; M],
        read: [&Self; N],
        path: &mut Path,
        visit: &mut V,
    ) -> Result<(), V::Error> {
        path.field("missed", |path| {
            let changed = changed.each_mut().map(|own| own.missed.as_mut_slice());
            visit_each(changed, read.map(|own| own.missed.as_slice()), path, visit)
        })?;
        path.field("moments", |path| {
            let changed = changed.each_mut().map(|own| &mut own.moments[..]);
            visit_each(changed, read.map(|own| &own.moments[..]), path, visit)
        })?;
        path.field("master", |path| {
            let changed = changed.each_mut().map(|own| own.master.as_mut_slice());
            visit_each(changed, read.map(|own| own.master.as_slice()), path, visit)
        })
    }
}

/// A walk along lists of one length.
fn each_of<S: KeptState, const N: usize, W: Walk<N>>(
    of: [&[S]; N],
    path: &mut Path,
    walk: &mut W,
) -> Result<Vec<S>, W::Error> {
    let first = of[0].len();
    if let Some(other) = of.iter().map(|of| of.len()).find(|&len| len != first) {
        return Err(walk.mismatch(path, Mismatch::Length { first, other }));
    }
    (0..first).map(|at| path.index(at, |path| S::walk(of.map(|of| &of[at]), path, walk))).collect()
}

fn visit_each<S: KeptState, const M: usize, const N: usize, V: Visitor<M, N>>(
    mut changed: [&mut [S]; M],
    read: [&[S]; N],
    path: &mut Path,
    visit: &mut V,
) -> Result<(), V::Error> {
    let mut lens = changed.iter().map(|of| of.len()).chain(read.iter().map(|of| of.len()));
    let first = lens.next().unwrap_or(0);
    if let Some(other) = lens.find(|&len| len != first) {
        return Err(visit.mismatch(path, Mismatch::Length { first, other }));
    }
    for at in 0..first {
        path.index(at, |path| {
            let changed = changed.each_mut().map(|of| &mut of[at]);
            S::visit(changed, read.map(|of| &of[at]), path, visit)
        })?;
    }
    Ok(())
}

impl KeptState for ByPath {
    fn walk<const N: usize, W: Walk<N>>(
        of: [&Self; N],
        path: &mut Path,
        walk: &mut W,
    ) -> Result<Self, W::Error> {
        let first = of[0].parameters();
        let mut parameters = Vec::with_capacity(first.len());
        if let Some(other) = of.iter().map(|own| own.parameters().len()).find(|&len| len != first.len()) {
            return Err(walk.mismatch(path, Mismatch::Length { first: first.len(), other }));
        }
        for (at, own) in first.iter().enumerate() {
            let all = of.map(|other| &other.parameters()[at]);
            let walked = path.part(own.path(), |path| ParameterState::walk(all, path, walk))?;
            parameters.push(walked);
        }
        walk.setting(path, "master_weights", of.map(ByPath::has_masters).each_ref())?;
        walk.setting(path, "missed", of.map(ByPath::all_missed))?;
        Ok(of[0].with_parameters(parameters))
    }

    fn visit<const M: usize, const N: usize, V: Visitor<M, N>>(
        mut changed: [&mut Self; M],
        read: [&Self; N],
        path: &mut Path,
        visit: &mut V,
    ) -> Result<(), V::Error> {
        let changed = changed.each_mut().map(|own| own.parameters_mut());
        visit_each(changed, read.map(ByPath::parameters), path, visit)
    }
}

impl<P> KeptState for State<P> {
    fn walk<const N: usize, W: Walk<N>>(
        of: [&Self; N],
        path: &mut Path,
        walk: &mut W,
    ) -> Result<Self, W::Error> {
        let steps = path.field("steps", |path| StepsTaken::walk(of.map(|own| &own.steps), path, walk))?;
        let by_path = path.field("state", |path| ByPath::walk(of.map(|own| &own.by_path), path, walk))?;
        walk.setting(path, "rate", of.map(|own| &own.schedule))?;
        walk.setting(path, "frozen", of.map(|own| &own.frozen))?;
        let State { schedule, ref frozen, marker, .. } = *of[0];
        Ok(State { steps, by_path, schedule, frozen: frozen.clone(), marker })
    }

    fn visit<const M: usize, const N: usize, V: Visitor<M, N>>(
        mut changed: [&mut Self; M],
        read: [&Self; N],
        path: &mut Path,
        visit: &mut V,
    ) -> Result<(), V::Error> {
        path.field("steps", |path| {
            let changed = changed.each_mut().map(|own| &mut own.steps);
            StepsTaken::visit(changed, read.map(|own| &own.steps), path, visit)
        })?;
        path.field("state", |path| {
            let changed = changed.each_mut().map(|own| &mut own.by_path);
            ByPath::visit(changed, read.map(|own| &own.by_path), path, visit)
        })
    }
}

/// Optimizers have a state, and settings, which stay.
macro_rules! optimizers {
    ($($name:ident: $($setting:ident)*;)*) => {$(
        impl<P: Parameters> DerivedParameters for $name<P> {
            fn walk<const N: usize, W: Walk<N>>(
                of: [&Self; N],
                path: &mut Path,
                walk: &mut W,
            ) -> Result<Self, W::Error> {
                let state = State::walk(of.map(|own| &own.state), path, walk)?;
                $(walk.setting(path, stringify!($setting), of.map(|own| &own.$setting))?;)*
                Ok($name { state, $($setting: of[0].$setting,)* })
            }

            fn visit<const M: usize, const N: usize, V: Visitor<M, N>>(
                changed: [&mut Self; M],
                read: [&Self; N],
                path: &mut Path,
                visit: &mut V,
            ) -> Result<(), V::Error> {
                State::visit(changed.map(|own| &mut own.state), read.map(|own| &own.state), path, visit)
            }
        }
    )*};
}

optimizers! {
    Sgd: momentum nesterov weight_decay;
    Adam: moments;
    AdamW: moments;
    Lion: betas weight_decay;
}

impl<P: Parameters> DerivedParameters for Accumulator<P> {
    fn walk<const N: usize, W: Walk<N>>(
        of: [&Self; N],
        path: &mut Path,
        walk: &mut W,
    ) -> Result<Self, W::Error> {
        let sum = path.field("sum", |path| Parameters::walk(of.map(|own| &own.sum), path, walk))?;
        let exact = path.field("exact", |path| ByPath::walk(of.map(|own| &own.exact), path, walk))?;
        let count = path.field("count", |path| StepsTaken::walk(of.map(|own| &own.count), path, walk))?;
        Ok(Accumulator { sum, exact, count })
    }

    fn visit<const M: usize, const N: usize, V: Visitor<M, N>>(
        mut changed: [&mut Self; M],
        read: [&Self; N],
        path: &mut Path,
        visit: &mut V,
    ) -> Result<(), V::Error> {
        path.field("sum", |path| {
            let changed = changed.each_mut().map(|own| &mut own.sum);
            Parameters::visit(changed, read.map(|own| &own.sum), path, visit)
        })?;
        path.field("exact", |path| {
            let changed = changed.each_mut().map(|own| &mut own.exact);
            ByPath::visit(changed, read.map(|own| &own.exact), path, visit)
        })?;
        path.field("count", |path| {
            let changed = changed.each_mut().map(|own| &mut own.count);
            StepsTaken::visit(changed, read.map(|own| &own.count), path, visit)
        })
    }
}

impl<P: Parameters> DerivedParameters for Average<P> {
    fn walk<const N: usize, W: Walk<N>>(
        of: [&Self; N],
        path: &mut Path,
        walk: &mut W,
    ) -> Result<Self, W::Error> {
        let value = path.field("value", |path| Parameters::walk(of.map(|own| &own.value), path, walk))?;
        let exact = path.field("exact", |path| ByPath::walk(of.map(|own| &own.exact), path, walk))?;
        walk.setting(path, "decay", of.map(|own| &own.decay))?;
        Ok(Average { decay: of[0].decay, value, exact })
    }

    fn visit<const M: usize, const N: usize, V: Visitor<M, N>>(
        mut changed: [&mut Self; M],
        read: [&Self; N],
        path: &mut Path,
        visit: &mut V,
    ) -> Result<(), V::Error> {
        path.field("value", |path| {
            let changed = changed.each_mut().map(|own| &mut own.value);
            Parameters::visit(changed, read.map(|own| &own.value), path, visit)
        })?;
        path.field("exact", |path| {
            let changed = changed.each_mut().map(|own| &mut own.exact);
            ByPath::visit(changed, read.map(|own| &own.exact), path, visit)
        })
    }
}
