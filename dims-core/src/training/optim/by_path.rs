//! The state of each parameter, by the parameter's path. The element type of the state may differ
//! from the parameter's.

use super::groups::{GroupSettings, ParameterGroups, learned_paths};
use super::scalars::StepsTaken;
#[cfg(feature = "half")]
use super::state_tensor::lying_otherwise;
use super::state_tensor::{AxisNumbers, StateAxes, StateTensor};
use super::unchanged::Unchanged;
use crate::error::DimError;
use crate::execute::reduce::is_half;
use crate::grad::Parameters;
use crate::grad::parameters::{Path, Visitor, is_learned};
#[cfg(feature = "half")]
use crate::storage::Evaluated;
use crate::tensors::named::Named;
use crate::types::rank::Rank;
use crate::types::set::Dims;
#[cfg(feature = "safetensors")]
use alloc::borrow::Cow;
use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::any::TypeId;
#[cfg(feature = "half")]
use kernels::map::in_place::slice_as;
#[cfg(feature = "half")]
use kernels::memory::allocate::reserve;
#[cfg(feature = "half")]
use kernels::memory::buffer::Buffer;
use kernels::scalar::Element;
#[cfg(all(feature = "std", feature = "half"))]
use kernels::trace::widened_elements;
use smallvec::SmallVec;

/// The number of moments of each parameter, and their axes.
#[derive(Clone, Copy, Debug)]
pub struct MomentLayout {
    count: usize,
    /// The minimum size of an axis that is factored, if the first two moments are factors.
    factored: Option<usize>,
}

impl MomentLayout {
    /// Moments with the axes of the parameter.
    pub(super) fn whole(count: usize) -> Self {
        MomentLayout { count, factored: None }
    }

    /// The first two moments are factors over the [two largest axes](factored_axes) of the
    /// parameter, if both axes have at least the size `least`: the first moment lacks the largest
    /// axis, the second moment the second largest. If a parameter is not factored, its first moment
    /// has all axes, and its second moment is a scalar. Further moments have the axes of the
    /// parameter.
    pub(super) fn factored(count: usize, least: usize) -> Self {
        MomentLayout { count, factored: Some(least) }
    }

    /// Whether this moment is a factor over some axes, if the parameter is large enough.
    #[cfg(feature = "safetensors")]
    pub(crate) fn can_factor(&self, moment: usize) -> bool {
        self.factored.is_some() && moment < 2
    }

    fn axes(&self, moment: usize, parameter: &StateAxes) -> StateAxes {
        let Some(least) = self.factored.filter(|_| moment < 2) else { return parameter.clone() };
        match (factored_axes(&parameter.sizes, least), moment) {
            (Some([largest, _]), 0) => parameter.without(|axis| axis == largest),
            (Some([_, second]), _) => parameter.without(|axis| axis == second),
            (None, 0) => parameter.clone(),
            (None, _) => parameter.without(|_| true),
        }
    }
}

/// The largest axis and the second largest, if both have at least the size `least`. If axes
/// have the same size, later ones count as larger.
pub(super) fn factored_axes(sizes: &[usize], least: usize) -> Option<[usize; 2]> {
    let mut axes: AxisNumbers = (0..sizes.len()).collect();
    axes.sort_by_key(|&axis| (sizes[axis], axis));
    match axes[..] {
        [.., second, largest] if sizes[second] >= least => Some([largest, second]),
        _ => None,
    }
}

/// The state of all parameters.
#[derive(Clone, Debug, Default)]
pub(crate) struct ByPath {
    /// In the order in which a walk visits the parameters.
    parameters: Vec<ParameterState>,
    /// The numbers of missed steps of parameters that are not in `parameters` yet.
    missed: BTreeMap<String, u64>,
    /// Whether parameters in half precision have master weights.
    masters: bool,
    /// Whether the master weights of parameters in half precision are the only state.
    only_masters: bool,
    /// Whether the parameters have been listed before, even if there were none. If so, a parameter
    /// that is not in `parameters` was added later.
    begun: bool,
    groups: ParameterGroups,
}

/// The state of one parameter.
#[derive(Clone, Debug)]
pub struct ParameterState {
    pub(super) path: Path,
    /// The number of steps that the parameter has missed, because it was frozen or added later.
    /// `None` stands for 0.
    pub(super) missed: Option<StepsTaken>,
    pub(super) axes: StateAxes,
    /// The merged settings of the parameter's groups. `None` until they are looked up.
    pub(super) settings: Option<GroupSettings>,
    /// Whether the elements of the state are `f64`.
    pub(super) double: bool,
    pub(super) moments: SmallVec<[StateTensor; 2]>,
    pub(super) master: Option<StateTensor>,
}

impl ParameterState {
    fn new<T: Element, S: Dims, R: Rank>(
        path: &Path,
        tensor: &Named<T, S, R>,
        missed: Option<StepsTaken>,
    ) -> Self {
        ParameterState {
            path: path.clone(),
            missed,
            axes: StateAxes::of(tensor),
            settings: None,
            double: TypeId::of::<T>() == TypeId::of::<f64>(),
            moments: SmallVec::new(),
            master: None,
        }
    }

    fn zeros(&self, axes: &StateAxes, order: AxisNumbers) -> Result<StateTensor, DimError> {
        let zeros = if self.double {
            StateTensor::zeros::<f64>(axes, order)
        } else {
            StateTensor::zeros::<f32>(axes, order)
        };
        zeros.ok_or_else(|| DimError::TooLarge { dims: format!("the state of `{}`", self.path) })
    }

    /// The master weights, or zeros with their axes.
    pub(super) fn master_or_zeros(&self) -> Result<StateTensor, DimError> {
        match &self.master {
            Some(master) => Ok(master.clone()),
            None => self.zeros(&self.axes, (0..self.axes.sizes.len()).collect()),
        }
    }

    /// A moment. It is zero before the first step of the parameter.
    #[cfg(feature = "safetensors")]
    pub(crate) fn moment(&self, at: usize, layout: MomentLayout) -> Result<Cow<'_, StateTensor>, DimError> {
        match self.moments.get(at) {
            Some(moment) => Ok(Cow::Borrowed(moment)),
            None => {
                let axes = self.moment_axes(at, layout);
                self.zeros(&axes, (0..axes.sizes.len()).collect()).map(Cow::Owned)
            }
        }
    }

    pub(crate) fn moment_axes(&self, at: usize, layout: MomentLayout) -> StateAxes {
        layout.axes(at, &self.axes)
    }

    #[cfg(feature = "safetensors")]
    pub(crate) fn add_moment(&mut self, moment: StateTensor) {
        self.moments.push(moment);
    }

    #[cfg(feature = "safetensors")]
    pub(crate) fn set_master(&mut self, master: StateTensor) {
        self.master = Some(master);
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The name of the parameter.
    pub fn name(&self) -> String {
        self.path.to_string()
    }

    pub(super) fn is_named(&self, name: &str) -> bool {
        self.path.to_string() == name
    }

    /// The moments, in the order of [`Optimizer::moments`](super::Optimizer::moments). Empty before
    /// the first step of the parameter, unless the optimizer was prepared or its state loaded.
    pub fn moments(&self) -> &[StateTensor] {
        &self.moments
    }

    /// The parameter before rounding to half precision, if the optimizer keeps it: see
    /// [`Optimizer::master_weights`](super::Optimizer::master_weights).
    pub fn master(&self) -> Option<&StateTensor> {
        self.master.as_ref()
    }

    pub(super) fn missed(&self) -> u64 {
        self.missed.as_ref().map_or(0, StepsTaken::get)
    }

    /// The moments and the master weights.
    pub(super) fn all_tensors(&self) -> impl Iterator<Item = &StateTensor> + Clone {
        self.moments.iter().chain(&self.master)
    }

    /// Like [`all_tensors`](ParameterState::all_tensors), mutably.
    pub(super) fn tensors(&mut self) -> (&mut [StateTensor], Option<&mut StateTensor>) {
        (&mut self.moments, self.master.as_mut())
    }

    /// Prepares the state for a step of a tensor. Makes the missing moments and, for a tensor of
    /// half precision, the master weights, or drops the master weights if `master` is `false`.
    fn prepare<T: Element, S: Dims, R: Rank>(
        &mut self,
        tensor: &Named<T, S, R>,
        moments: MomentLayout,
        master: bool,
    ) -> Result<(), DimError> {
        if moments.factored.is_some() {
            for (at, moment) in self.moments.iter().enumerate() {
                if *moment.axes() != self.moment_axes(at, moments) {
                    let what = format!(
                        "the state of `{}` is factored over other dims: it comes from an optimizer with \
                         another `min_dim_size_to_factor`",
                        self.path
                    );
                    return Err(DimError::Shape { what });
                }
            }
        }
        while self.moments.len() < moments.count {
            let axes = self.moment_axes(self.moments.len(), moments);
            let is_whole = axes.sizes.len() == self.axes.sizes.len();
            let order = if is_whole {
                tensor.expr.order_in_memory()[..].into()
            } else {
                (0..axes.sizes.len()).collect()
            };
            let zeros = self.zeros(&axes, order)?;
            self.moments.push(zeros);
        }
        if !master {
            self.master = None;
        }
        #[cfg(feature = "half")]
        if master && is_half::<T>() && self.master.is_none() {
            self.master = Some(StateTensor::new(widened(tensor)?)?);
        }
        Ok(())
    }
}

/// A tensor of half precision converted to `f32`, with the same memory order of axes.
#[cfg(feature = "half")]
fn widened<T: Element, S: Dims, R: Rank>(tensor: &Named<T, S, R>) -> Result<Named<f32, S, R>, DimError> {
    let order = tensor.expr.order_in_memory();
    let copy = lying_otherwise(tensor, &order)?;
    let own = &copy.as_ref().unwrap_or(tensor).expr;
    let data = widened_buffer(own.buffer())?;
    Ok(Named::from_expr(Evaluated::in_order(data, &order, &own.sizes_in(&order)).with_origin(None)))
}

#[cfg(feature = "half")]
fn widened_buffer<T: Element>(elements: &Buffer<T>) -> Result<Buffer<f32>, DimError> {
    #[cfg(feature = "std")]
    if elements.is_traced() {
        let wide = widened_elements(&elements.held())?;
        return Ok(Buffer::of_held(&wide).expect("the step yields `f32`"));
    }
    Ok(widened_elements_of(elements)?.into())
}

/// Elements of half precision, converted to `f32`.
#[cfg(feature = "half")]
pub(super) fn widened_elements_of<T: Element>(elements: &[T]) -> Result<Vec<f32>, DimError> {
    // (Functions without type parameters, so that the loops are compiled in this crate.)
    fn of_f16(own: &[half::f16], wide: &mut Vec<f32>) {
        wide.extend(own.iter().map(|a| a.to_f32()));
    }
    fn of_bf16(own: &[half::bf16], wide: &mut Vec<f32>) {
        wide.extend(own.iter().map(|a| a.to_f32()));
    }
    let mut wide = reserve::<f32>(elements.len())?;
    match slice_as::<T, half::f16>(elements) {
        Some(own) => of_f16(own, &mut wide),
        None => {
            let own = slice_as::<T, half::bf16>(elements).expect("a float of two bytes is `f16` or `bf16`");
            of_bf16(own, &mut wide);
        }
    }
    Ok(wide)
}

/// A count of missed steps. `None` for 0.
fn missed_steps(missed: u64) -> Option<StepsTaken> {
    (missed > 0).then(|| StepsTaken::new(missed))
}

impl ByPath {
    /// An empty state in which parameters in half precision get master weights.
    pub(crate) fn with_masters() -> Self {
        ByPath { masters: true, ..ByPath::default() }
    }

    /// An empty state that will have only master weights.
    pub(super) fn of_masters() -> Self {
        ByPath { only_masters: true, ..ByPath::with_masters() }
    }

    pub(super) fn has_masters(&self) -> bool {
        self.masters
    }

    pub(super) fn set_masters(&mut self, masters: bool) {
        self.masters = masters;
    }

    pub(super) fn parameters(&self) -> &[ParameterState] {
        &self.parameters
    }

    pub(super) fn parameters_mut(&mut self) -> &mut [ParameterState] {
        &mut self.parameters
    }

    /// A copy with other parameters.
    pub(super) fn with_parameters(&self, parameters: Vec<ParameterState>) -> Self {
        ByPath { parameters, missed: self.missed.clone(), groups: self.groups.clone(), ..*self }
    }

    /// A copy that has a state for each tensor of half precision in `value`.
    pub(super) fn with_states_of<P: Parameters>(&self, value: &P) -> Result<Self, DimError> {
        let mut own = self.clone();
        P::visit([], [value], &mut Path::new(), &mut HalvesOf(StateWalk::new(&mut own, None)))?;
        Ok(own)
    }

    /// Replaces the state of the parameters, but keeps the groups and the choice of master weights.
    pub(super) fn restore(&mut self, other: ByPath) {
        let (masters, groups) = (self.masters, core::mem::take(&mut self.groups));
        *self = ByPath { masters, groups, ..other };
    }

    /// Notes that the parameters have been listed: from now on, a parameter without a state counts
    /// as added later.
    pub(crate) fn begin(&mut self) {
        self.begun = true;
    }

    pub(super) fn groups(&self) -> &ParameterGroups {
        &self.groups
    }

    /// The groups, mutably. Resets the merged settings of all parameters.
    pub(super) fn groups_mut(&mut self) -> &mut ParameterGroups {
        self.parameters.iter_mut().for_each(|parameter| parameter.settings = None);
        &mut self.groups
    }

    pub(super) fn has_groups_of_all(&self) -> bool {
        !self.parameters.is_empty() && self.parameters.iter().all(|parameter| parameter.settings.is_some())
    }

    pub(super) fn all_missed(&self) -> &BTreeMap<String, u64> {
        &self.missed
    }

    pub(super) fn missed(&self, name: &str) -> u64 {
        match self.parameters.iter().find(|parameter| parameter.is_named(name)) {
            Some(parameter) => parameter.missed(),
            None => self.missed.get(name).copied().unwrap_or(0),
        }
    }

    pub(super) fn set_missed(&mut self, name: &str, missed: u64) {
        match self.parameters.iter_mut().find(|parameter| parameter.is_named(name)) {
            Some(parameter) => parameter.missed = missed_steps(missed),
            None => drop(self.missed.insert(name.to_owned(), missed)),
        }
    }

    /// Counts a missed step for each frozen parameter.
    pub(super) fn miss(&mut self, unchanged: &Unchanged) {
        if unchanged.frozen.is_empty() {
            return;
        }
        for parameter in &mut self.parameters {
            if unchanged.has(&parameter.path) {
                parameter.missed.get_or_insert_default().add_one();
            }
        }
    }

    /// Drops the state of all parameters but these.
    #[cold]
    pub(super) fn keep<P: Parameters>(&mut self, parameters: &P) -> Result<(), DimError> {
        let paths = learned_paths(parameters)?;
        self.parameters.retain(|parameter| paths.contains(&parameter.path));
        Ok(())
    }

    /// The position of a parameter in `parameters`, which is usually `next`.
    pub(super) fn place(&self, next: usize, path: &Path) -> Option<usize> {
        let is_of = |parameter: &ParameterState| parameter.path == *path;
        if self.parameters.get(next).is_some_and(is_of) {
            return Some(next);
        }
        self.parameters.iter().position(is_of)
    }
}

/// Adds a state for each tensor of half precision.
struct HalvesOf<'s>(StateWalk<'s>);

impl Visitor<0, 1> for HalvesOf<'_> {
    type Error = DimError;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        _: [&mut Named<T, S, R>; 0],
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<(), DimError> {
        if is_half::<T>() && is_learned::<T>() {
            self.0.next(path, tensor)?;
        }
        Ok(())
    }
}

/// A walk over the state of the parameters.
pub(crate) struct StateWalk<'s> {
    by_path: &'s mut ByPath,
    next: usize,
    /// The number of parameters that [`next`](StateWalk::next) has met.
    found: usize,
    /// The number of missed steps for a parameter that is added later than the others.
    late: Option<&'s StepsTaken>,
}

impl<'s> StateWalk<'s> {
    /// Starts at the first parameter. `steps` is the number of steps of the optimizer. A parameter
    /// that is added later has missed all of them.
    pub(crate) fn new(by_path: &'s mut ByPath, steps: Option<&'s StepsTaken>) -> Self {
        let late = if by_path.begun || !by_path.parameters.is_empty() { steps } else { None };
        StateWalk { by_path, next: 0, found: 0, late }
    }

    /// Whether there is state of parameters that the walk has not met.
    pub(super) fn has_others(&self) -> bool {
        self.found < self.by_path.parameters.len()
    }

    /// The state of the next parameter. Adds a state without moments if there is no state yet.
    ///
    /// # Errors
    ///
    /// If the dims or sizes of the state are not those of `tensor`.
    pub(crate) fn next<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        tensor: &Named<T, S, R>,
    ) -> Result<&mut ParameterState, DimError> {
        let place = self.by_path.place(self.next, path);
        let ByPath { parameters, missed, .. } = &mut *self.by_path;
        let place = match place {
            Some(place) => {
                parameters[place].axes.check(path, tensor)?;
                place
            }
            None => {
                let missed = match missed.remove(&path.to_string()) {
                    Some(missed) => missed_steps(missed),
                    None => self.late.cloned(),
                };
                let place = self.next.min(parameters.len());
                parameters.insert(place, ParameterState::new(path, tensor, missed));
                place
            }
        };
        self.next = place + 1;
        self.found += 1;
        Ok(&mut parameters[place])
    }

    /// The last state that [`next`](StateWalk::next) returned.
    #[cfg(feature = "safetensors")]
    pub(crate) fn again(&mut self) -> &mut ParameterState {
        &mut self.by_path.parameters[self.next - 1]
    }

    /// The [prepared](StateWalk::prepare) state of the next parameter. `None` if it was not
    /// prepared, or if parameters with elements of `T` have no state.
    pub(super) fn ready<T: Element>(&mut self, path: &Path) -> Option<&mut ParameterState> {
        if self.skips::<T>() {
            return None;
        }
        let place = self.by_path.place(self.next, path)?;
        self.next = place + 1;
        self.by_path.parameters.get_mut(place)
    }

    /// Whether parameters with elements of `T` have no state.
    fn skips<T: Element>(&self) -> bool {
        self.by_path.only_masters && !is_half::<T>()
    }

    /// Prepares the state of the next parameter for a step with these moments. A parameter that
    /// `stays` unchanged gets no new moments and no new master weights.
    pub(super) fn prepare<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        tensor: &Named<T, S, R>,
        moments: MomentLayout,
        stays: bool,
    ) -> Result<(), DimError> {
        if self.skips::<T>() {
            return Ok(());
        }
        self.next(path, tensor)?;
        let ByPath { parameters, masters, groups, .. } = &mut *self.by_path;
        let parameter = &mut parameters[self.next - 1];
        if parameter.settings.is_none() {
            parameter.settings = Some(groups.of(path, &parameter.axes));
        }
        if stays { Ok(()) } else { parameter.prepare(tensor, moments, *masters) }
    }
}
