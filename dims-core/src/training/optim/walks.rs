//! Optimizers, accumulators, averages and [`Plateau`] as [`Parameters`], so that recorded functions
//! can take and return their tensors.

use super::by_path::{ByPath, ParameterState};
use super::groups::GroupSettings;
use super::scalars::StepsTaken;
use super::state_tensor::{StateLine, StateTensor};
use super::{
    Accumulator, Adafactor, Adagrad, Adam, AdamW, Average, Lamb, Lion, NAdam, Plateau, RAdam, RmsProp, Sgd,
    State,
};
use crate::error::DimError;
use crate::grad::Parameters;
use crate::grad::parameters::{
    DerivedParameters, Mismatch, Path, TensorSets, Visitor, Walk, each_part, each_part_mut, visit_slices,
    walk_slices,
};
use alloc::vec::Vec;
use core::array::from_fn;

impl DerivedParameters for StepsTaken {
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

impl DerivedParameters for StateTensor {
    fn walk<const N: usize, W: Walk<N>>(
        of: [&Self; N],
        path: &mut Path,
        walk: &mut W,
    ) -> Result<Self, W::Error> {
        let lines = lines(of)?;
        walk.line_along(of[0].keys(), of[0].sizes());
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
        if let Some(first) = changed.iter().map(|state| &**state).chain(read).next() {
            visit.line_along(first.keys(), first.sizes());
        }
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
    Ok(from_fn(|_| lines.next().expect("there is an item for each part")))
}

/// What `part` returns for each line. `None` if it returns `None` for any of them.
fn all_of<'l, X, const N: usize>(
    lines: &'l [StateLine; N],
    part: fn(&'l StateLine) -> Option<X>,
) -> Option<[X; N]> {
    let mut parts = lines.iter().map(part).collect::<Option<Vec<X>>>()?.into_iter();
    Some(from_fn(|_| parts.next().expect("there is an item for each part")))
}

fn all_of_mut<'l, X, const N: usize>(
    lines: &'l mut [StateLine; N],
    part: fn(&'l mut StateLine) -> Option<X>,
) -> Option<[X; N]> {
    let mut parts = lines.iter_mut().map(part).collect::<Option<Vec<X>>>()?.into_iter();
    Some(from_fn(|_| parts.next().expect("there is an item for each part")))
}

fn types_differ(path: &Path) -> DimError {
    DimError::Shape { what: format!("the states at `{path}` differ in their element types") }
}

impl DerivedParameters for ParameterState {
    fn walk<const N: usize, W: Walk<N>>(
        of: [&Self; N],
        path: &mut Path,
        walk: &mut W,
    ) -> Result<Self, W::Error> {
        if of.iter().any(|own| own.settings.is_some_and(|own| own != GroupSettings::default())) {
            walk.setting(path, "group", each_part(of, |own| &own.settings))?;
        }
        let missed =
            path.field("missed", |path| Parameters::walk(each_part(of, |own| &own.missed), path, walk))?;
        let moments =
            path.field("moments", |path| walk_slices(each_part(of, |own| &own.moments[..]), path, walk))?;
        let master = path.field("master", |path| match walk.has(path) {
            Some(true) => {
                let like = of[0].master_or_zeros()?;
                Parameters::walk([&like; N], path, walk).map(Some)
            }
            Some(false) => Ok(None),
            None => Parameters::walk(each_part(of, |own| &own.master), path, walk),
        })?;
        Ok(ParameterState { missed, moments: moments.into(), master, ..of[0].clone() })
    }

    fn visit<const M: usize, const N: usize, V: Visitor<M, N>>(
        mut changed: [&mut Self; M],
        read: [&Self; N],
        path: &mut Path,
        visit: &mut V,
    ) -> Result<(), V::Error> {
        path.field("missed", |path| {
            let changed = each_part_mut(&mut changed, |own| &mut own.missed);
            Parameters::visit(changed, each_part(read, |own| &own.missed), path, visit)
        })?;
        path.field("moments", |path| {
            let changed = each_part_mut(&mut changed, |own| &mut own.moments[..]);
            visit_slices(changed, each_part(read, |own| &own.moments[..]), path, visit)
        })?;
        path.field("master", |path| {
            let changed = each_part_mut(&mut changed, |own| &mut own.master);
            Parameters::visit(changed, each_part(read, |own| &own.master), path, visit)
        })
    }
}

impl DerivedParameters for ByPath {
    fn walk<const N: usize, W: Walk<N>>(
        of: [&Self; N],
        path: &mut Path,
        walk: &mut W,
    ) -> Result<Self, W::Error> {
        let first = of[0].parameters();
        if let Some(other) = other_length(of.iter().copied()) {
            return Err(walk.mismatch(path, Mismatch::Length { first: first.len(), other }));
        }
        let states = first.iter().enumerate().map(|(at, own)| {
            let all = of.map(|other| &other.parameters()[at]);
            path.part(own.path(), |path| Parameters::walk(all, path, walk))
        });
        let parameters = states.collect::<Result<_, _>>()?;
        walk.setting(path, "master_weights", of.map(ByPath::has_masters).each_ref())?;
        walk.setting(path, "missed", of.map(ByPath::all_missed))?;
        walk.setting(path, "groups", of.map(ByPath::groups))?;
        Ok(of[0].with_parameters(parameters))
    }

    fn visit<const M: usize, const N: usize, V: Visitor<M, N>>(
        mut changed: [&mut Self; M],
        read: [&Self; N],
        path: &mut Path,
        visit: &mut V,
    ) -> Result<(), V::Error> {
        let all = || changed.iter().map(|own| &**own).chain(read);
        let paths = all().next().map(|own| own.parameters().iter().map(|own| own.path().clone()));
        let paths: Vec<Path> = paths.into_iter().flatten().collect();
        if let Some(other) = other_length(all()) {
            return Err(visit.mismatch(path, Mismatch::Length { first: paths.len(), other }));
        }
        for (at, own) in paths.iter().enumerate() {
            let changed = changed.each_mut().map(|own| &mut own.parameters_mut()[at]);
            let read = read.map(|own| &own.parameters()[at]);
            path.part(own, |path| Parameters::visit(changed, read, path, visit))?;
        }
        Ok(())
    }
}

/// Compares the numbers of parameters of several states. Returns the first number that differs from
/// the number of the first state.
fn other_length<'s>(of: impl Iterator<Item = &'s ByPath>) -> Option<usize> {
    let mut lens = of.map(|own| own.parameters().len());
    let first = lens.next()?;
    lens.find(|&len| len != first)
}

/// Walks `exact`, which has the `f32` versions of the half-precision sums or averages in `kept`. A
/// walk that reads a file visits a copy of `exact` instead. The copy has a state for each
/// half-precision tensor of `kept`, so that the walk can read values for all of them.
fn walk_exact<P: Parameters, const N: usize, W: Walk<N>>(
    exact: [&ByPath; N],
    kept: [&Option<P>; N],
    path: &mut Path,
    walk: &mut W,
) -> Result<ByPath, W::Error> {
    if walk.has(path).is_none() {
        return Parameters::walk(exact, path, walk);
    }
    let states = kept.into_iter().zip(exact).map(|(kept, exact)| exact.with_states_of(kept));
    let states = states.collect::<Result<Vec<_>, DimError>>()?;
    Parameters::walk(from_fn(|at| &states[at]), path, walk)
}

macro_rules! walk_part {
    ($of:ident $path:ident $walk:ident $field:ident) => {
        Parameters::walk(each_part($of, |own| &own.$field), $path, $walk)
    };
    ($of:ident $path:ident $walk:ident $field:ident $kept:ident) => {
        walk_exact(each_part($of, |own| &own.$field), each_part($of, |own| &own.$kept), $path, $walk)
    };
}

/// Implements the walks of structs: fields are walked and settings are passed to the walk, both
/// under the given names. The rest is copied. `exact: "exact" of sum by "add"` says that the field
/// `exact` has the values of the field `sum` in `f32`, and that the method `add` fills `sum`.
macro_rules! structs {
    ($($name:ident $(<$p:ident $(: $bound:ident)?>)? { $($field:ident: $label:literal $(of $kept:ident by $filled_by:literal)?),* } settings { $($setting:ident: $told:literal),* } rest { $($rest:ident)? })*) => {$(
        impl $(<$p $(: $bound)?>)? DerivedParameters for $name $(<$p>)? {
            $($(const TENSORS: TensorSets = <$p as $bound>::TENSORS;)?)?

            fn walk<const N: usize, W: Walk<N>>(
                of: [&Self; N],
                path: &mut Path,
                walk: &mut W,
            ) -> Result<Self, W::Error> {
                $($(
                    let filled_by = of[0].$kept.is_none().then_some($filled_by);
                    walk.keeps_exact(path, [stringify!($kept), $label], filled_by);
                )?)*
                $(let $field = path.field($label, |path| walk_part!(of path walk $field $($kept)?))?;)*
                $(walk.setting(path, $told, each_part(of, |own| &own.$setting))?;)*
                Ok($name { $($field,)* $($setting: of[0].$setting.clone(),)* $($rest: of[0].$rest)? })
            }

            fn visit<const M: usize, const N: usize, V: Visitor<M, N>>(
                mut changed: [&mut Self; M],
                read: [&Self; N],
                path: &mut Path,
                visit: &mut V,
            ) -> Result<(), V::Error> {
                $(path.field($label, |path| {
                    let changed = each_part_mut(&mut changed, |own| &mut own.$field);
                    Parameters::visit(changed, each_part(read, |own| &own.$field), path, visit)
                })?;)*
                Ok(())
            }
        }
    )*};
}

structs! {
    State<P> { steps: "steps", by_path: "state" } settings { schedule: "rate", frozen: "frozen" } rest { marker }
    Accumulator<P: Parameters> { sum: "sum", exact: "exact" of sum by "add", count: "count" } settings {} rest {}
    Average<P: Parameters> { value: "value", exact: "exact" of value by "update" } settings { decay: "decay" } rest {}
    Plateau { rate: "rate", best: "best", worse: "worse", pause: "pause" } settings { settings: "settings" } rest {}
}

macro_rules! optimizers {
    ($($name:ident: $($setting:ident)*;)*) => {$(
        impl<P: Parameters> DerivedParameters for $name<P> {
            const TENSORS: TensorSets = P::TENSORS;

            fn walk<const N: usize, W: Walk<N>>(
                of: [&Self; N],
                path: &mut Path,
                walk: &mut W,
            ) -> Result<Self, W::Error> {
                let state = Parameters::walk(each_part(of, |own| &own.state), path, walk)?;
                $(walk.setting(path, stringify!($setting), each_part(of, |own| &own.settings.$setting))?;)*
                Ok($name { state, settings: of[0].settings })
            }

            fn visit<const M: usize, const N: usize, V: Visitor<M, N>>(
                mut changed: [&mut Self; M],
                read: [&Self; N],
                path: &mut Path,
                visit: &mut V,
            ) -> Result<(), V::Error> {
                visit.optimizer(path)?;
                let changed = each_part_mut(&mut changed, |own| &mut own.state);
                Parameters::visit(changed, each_part(read, |own| &own.state), path, visit)
            }
        }
    )*};
}

optimizers! {
    Sgd: momentum dampening nesterov maximize weight_decay;
    Adam: betas epsilon weight_decay amsgrad maximize;
    AdamW: betas epsilon weight_decay amsgrad maximize;
    Lion: betas weight_decay;
    RmsProp: alpha epsilon momentum weight_decay centered maximize;
    Adagrad: rate_decay first_sum epsilon weight_decay maximize;
    NAdam: betas epsilon momentum_decay weight_decay decoupled maximize;
    Lamb: betas epsilon weight_decay;
    RAdam: betas epsilon weight_decay decoupled maximize;
    Adafactor: min_dim_size_to_factor decay_exponent clipping_threshold multiply_by_parameter_scale least_scale
        relative_step momentum weight_decay epsilon maximize;
}
