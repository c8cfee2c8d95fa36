//! Parameter groups with separate rates and weight decays.

use super::Schedule;
use super::scalars::by_rate;
use super::settings::{AT_LEAST_0, error, is_at_least_0};
use super::state_tensor::StateAxes;
use crate::error::DimError;
use crate::grad::Parameters;
use crate::grad::parameters::{Path, Visitor, is_learned};
use crate::tensors::named::Named;
use crate::types::dim::DimRef;
use crate::types::rank::Rank;
use crate::types::set::Dims;
use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use kernels::map::formula::Quantity;
use kernels::scalar::Element;

/// Settings of a parameter group, which override the optimizer's.
///
/// ```
/// use typed_dims::optim::{AdamW, Schedule};
/// use typed_dims::prelude::*;
///
/// dims! { struct In; struct Out; }
/// #[derive(Parameters)]
/// struct Layer {
///     weight: Tensor<f32, (In, Out)>,
///     bias: Tensor<f32, (Out,)>,
/// }
/// let mut layer = Layer { weight: ones((In.of(3), Out.of(2))), bias: ones(Out.of(2)) };
/// let gradient = layer.map_elements(|_: f32| 0.0);
/// let mut optimizer = AdamW::new(Schedule::cosine(0.1, 100))
///     .weight_decay(0.5)
///     .group("*.bias", |group| group.weight_decay(0.0).rate_factor(10.0));
/// optimizer.step(&mut layer, &gradient);
/// assert_eq!(layer.weight.view().order((In, Out))[[0, 0]], 1.0 - 0.1 * 0.5);
/// assert_eq!(layer.bias.view().order(Out)[0], 1.0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GroupSettings {
    rate: Option<Schedule>,
    rate_factor: Option<f64>,
    weight_decay: Option<f64>,
}

impl GroupSettings {
    /// Sets the learning rate of the group: a number, or a [`Schedule`], which counts the steps of
    /// the optimizer.
    #[must_use]
    pub fn rate(self, rate: impl Into<Schedule>) -> Self {
        GroupSettings { rate: Some(rate.into()), ..self }
    }

    /// Sets a factor for the learning rate: for the rate that this or another group of the
    /// parameter sets, or else for the optimizer's rate. The factor must be finite, and 0 or more.
    #[must_use]
    pub fn rate_factor(self, factor: f64) -> Self {
        GroupSettings { rate_factor: Some(factor), ..self }
    }

    /// Sets the weight decay of the group, which must be finite, and 0 or more.
    #[must_use]
    pub fn weight_decay(self, weight_decay: f64) -> Self {
        GroupSettings { weight_decay: Some(weight_decay), ..self }
    }

    pub(super) fn own_weight_decay(&self) -> Option<f64> {
        self.weight_decay
    }

    /// The rate of the group after `steps` steps, given the optimizer's rate.
    pub(super) fn rate_at(&self, rate: f64, steps: u64) -> f64 {
        let rate = self.rate.map_or(rate, |own| own.at(steps));
        self.rate_factor.map_or(rate, |factor| rate * factor)
    }

    /// Like [`rate_at`](GroupSettings::rate_at), for tensors.
    pub(super) fn rate_tensor(&self, rate: &Named<f64, ()>, steps: &Named<u64, ()>) -> Named<f64, ()> {
        let rate = self.rate.map_or_else(|| rate.clone(), |own| own.rate(steps));
        match self.rate_factor {
            Some(factor) => by_rate(&rate, |rate| rate * rate.constant(factor)),
            None => rate,
        }
    }

    /// These settings, or the settings of `other` where they are not set.
    fn or(self, other: GroupSettings) -> Self {
        GroupSettings {
            rate: self.rate.or(other.rate),
            rate_factor: self.rate_factor.or(other.rate_factor),
            weight_decay: self.weight_decay.or(other.weight_decay),
        }
    }
}

/// A parameter, as passed to the closure that chooses a group's members.
#[derive(Debug)]
pub struct ParameterInfo<'p> {
    name: String,
    axes: &'p StateAxes,
}

impl<'p> ParameterInfo<'p> {
    pub(super) fn new(path: &Path, axes: &'p StateAxes) -> Self {
        ParameterInfo { name: path.to_string(), axes }
    }

    /// The name, such as `layers.3.norm.weight`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the [pattern](super::Optimizer::group) matches the parameter, or a part that
    /// contains it.
    pub fn is_in(&self, pattern: &str) -> bool {
        is_in(pattern, &self.name)
    }

    /// The number of axes. It is 1 for most biases, and for the weights of norms along one dim.
    pub fn rank(&self) -> usize {
        self.axes.sizes.len()
    }

    /// The sizes of the dims, in the order of the tensor's type, then those of the positional axes.
    pub fn sizes(&self) -> &[usize] {
        &self.axes.sizes
    }

    /// Whether the parameter has the dim.
    pub fn has<D: DimRef>(&self, dim: D) -> bool {
        let key = dim.info().key();
        self.axes.keys.as_slice().iter().any(|own| own.same(&key))
    }
}

/// Whether the pattern matches the name of a parameter, or of a part that contains the parameter.
pub(super) fn is_in(pattern: &str, name: &str) -> bool {
    let anywhere = pattern.strip_prefix("*.");
    let ends = name.match_indices('.').map(|(at, _)| at).chain([name.len()]);
    ends.into_iter().any(|end| {
        is_like(pattern, &name[..end]) || anywhere.is_some_and(|pattern| is_like(pattern, &name[..end]))
    })
}

/// Whether a text matches the pattern, in which `*` stands for any characters.
fn is_like(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(start) else { return false };
    let mut ends = (0..=text.len()).filter(|&at| text.is_char_boundary(at));
    ends.any(|at| is_like(rest, &text[at..]))
}

/// The parameters of a group.
#[derive(Clone)]
pub(super) enum Members {
    /// Parameters that a pattern matches.
    Named(String),
    /// Parameters for which a function returns `true`.
    Where(Arc<dyn Fn(&ParameterInfo<'_>) -> bool + Send + Sync>),
}

impl Members {
    pub(super) fn named(pattern: &str) -> Self {
        Members::Named(pattern.to_owned())
    }

    fn include(&self, parameter: &ParameterInfo<'_>) -> bool {
        match self {
            Members::Named(pattern) => parameter.is_in(pattern),
            Members::Where(rule) => rule(parameter),
        }
    }
}

impl fmt::Display for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Members::Named(pattern) => write!(f, "the group `{pattern}`"),
            Members::Where(_) => f.write_str("a `group_where`"),
        }
    }
}

impl fmt::Debug for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Members::Named(pattern) => pattern.fmt(f),
            Members::Where(_) => f.write_str("a function"),
        }
    }
}

impl PartialEq for Members {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Members::Named(one), Members::Named(other)) => one == other,
            (Members::Where(one), Members::Where(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

/// The groups of an optimizer, in the order in which they were added.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ParameterGroups(Vec<(Members, GroupSettings)>);

impl ParameterGroups {
    pub(super) fn add(&mut self, members: Members, settings: GroupSettings) {
        self.0.push((members, settings));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The settings of a parameter. Each comes from the last group of the parameter that sets it.
    pub(super) fn of(&self, path: &Path, axes: &StateAxes) -> GroupSettings {
        if self.is_empty() {
            return GroupSettings::default();
        }
        let parameter = ParameterInfo::new(path, axes);
        let own = self.0.iter().filter(|(members, _)| members.include(&parameter));
        own.fold(GroupSettings::default(), |settings, (_, later)| later.or(settings))
    }

    /// Checks the settings for the next step, or the learning rates of all steps if `steps`, the
    /// number of steps taken, is not known.
    pub(super) fn check(&self, optimizer: &str, steps: Option<u64>) -> Result<(), DimError> {
        for (members, settings) in &self.0 {
            let rate = settings.rate.map(|rate| steps.map_or_else(|| rate.worst(), |steps| rate.at(steps)));
            let is = match settings.rate {
                Some(rate) if steps.is_none() && rate.begins_in_range() => "reaches",
                _ => "is",
            };
            let all = [
                ("learning rate", is, rate),
                ("rate factor", "is", settings.rate_factor),
                ("weight decay", "is", settings.weight_decay),
            ];
            for (setting, is, value) in all {
                if let Some(value) = value.filter(|&value| !is_at_least_0(value)) {
                    let what =
                        format!("the {setting} of {members} of `{optimizer}` {is} {value}: {AT_LEAST_0}");
                    return Err(error(what));
                }
            }
        }
        Ok(())
    }

    /// Checks that the pattern of each group matches a parameter.
    pub(super) fn check_members<P: Parameters>(&self, parameters: &P) -> Result<(), DimError> {
        if self.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = learned_paths(parameters)?.iter().map(Path::to_string).collect();
        for (members, _) in &self.0 {
            let Members::Named(pattern) = members else { continue };
            if !names.iter().any(|name| is_in(pattern, name)) {
                return Err(no_member(pattern, &names));
            }
        }
        Ok(())
    }
}

#[cold]
fn no_member(pattern: &str, names: &[String]) -> DimError {
    error(format!("the group `{pattern}` matches no parameter: the names are {}", listed(names)))
}

/// The first names of a list, for messages.
pub(super) fn listed(names: &[String]) -> String {
    const MOST: usize = 6;
    let mut listed: Vec<String> = names.iter().take(MOST).map(|name| format!("`{name}`")).collect();
    if names.len() > MOST {
        listed.push("..".into());
    }
    listed.join(", ")
}

pub(super) fn learned_paths<P: Parameters>(parameters: &P) -> Result<Vec<Path>, DimError> {
    let mut paths = LearnedPaths(Vec::new());
    P::visit([], [parameters], &mut Path::new(), &mut paths)?;
    Ok(paths.0)
}

struct LearnedPaths(Vec<Path>);

impl Visitor<0, 1> for LearnedPaths {
    type Error = DimError;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        _: [&mut Named<T, S, R>; 0],
        _: [&Named<T, S, R>; 1],
    ) -> Result<(), DimError> {
        if is_learned::<T>() {
            self.0.push(path.clone());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::is_in;

    #[test]
    fn patterns_are_those_of_names_and_parts() {
        for (pattern, name, expected) in [
            ("bias", "bias", true),
            ("bias", "layers.0.bias", false),
            ("*.bias", "layers.0.bias", true),
            ("*.bias", "bias", true),
            ("*.bias", "layers.0.unbias", false),
            ("*bias", "layers.0.unbias", true),
            ("layers.1", "layers.1.weight", true),
            ("layers.1", "layers.10.weight", false),
            ("layers.*.norm", "layers.3.norm.weight", true),
            ("*norm*", "layers.3.norm2.weight", true),
            ("*norm*", "layers.3.weight", false),
            ("*", "", true),
            ("", "weight", false),
        ] {
            assert_eq!(is_in(pattern, name), expected, "{pattern} and {name}");
        }
    }
}
