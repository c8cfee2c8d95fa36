//! Reading the state of an optimizer.

use super::values::{missing, read, vec_of};
use crate::error::DimError;
use crate::file::FileError;
use crate::file::load::Fault;
use crate::grad::parameters::{Path, Visitor, is_learned};
use crate::tensors::named::Named;
use crate::training::checkpoint::below;
use crate::training::checkpoint::file::File;
use crate::training::optim::StateTensor;
use crate::training::optim::by_path::{MomentLayout, StateWalk};
use crate::training::optim::state_tensor::{StateAxes, StateElem};
use crate::types::rank::Rank;
use crate::types::set::{Dims, Keys};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::any::TypeId;
use kernels::scalar::Element;
use std::collections::BTreeSet;

#[derive(Clone, Copy, PartialEq)]
pub(super) enum StateKind {
    /// The moment with this number, for each parameter.
    Moment(usize),
    /// The master weights of parameters that have them.
    Master,
}

/// Reads one kind of state, under a name, for each parameter that has taken a step.
pub(super) struct StateReader<'r, B> {
    pub(super) file: &'r File<B>,
    pub(super) name: &'r str,
    pub(super) kind: StateKind,
    pub(super) layout: MomentLayout,
    /// Whether floats may be converted to another float type.
    pub(super) converting: bool,
    /// Old names of dims in the file, with the new ones.
    pub(super) renamed: &'r [(String, &'static str)],
    /// The old and the new name of a dim that is not in `renamed`, but seems to have been renamed: a
    /// suggestion for the error.
    pub(super) remedy: &'r mut Option<[String; 2]>,
    pub(super) along: StateWalk<'r>,
    /// The parameters that have taken fewer steps than the optimizer, and their numbers of steps.
    pub(super) behind: &'r [(String, u64)],
    /// The names of the visited parameters' state. Other tensors in the file are left over.
    pub(super) taken: BTreeSet<String>,
    pub(super) faults: &'r mut Vec<Fault>,
}

impl<B: AsRef<[u8]>> StateReader<'_, B> {
    /// Whether the moment can lack axes of its parameter.
    fn is_factor(&self) -> bool {
        matches!(self.kind, StateKind::Moment(at) if self.layout.can_factor(at))
    }

    /// Reads the state of a parameter with elements of `T`, as elements of `W` with these axes.
    /// Returns `Ok(None)` if the file lacks master weights.
    fn found<T: Element, W: StateElem>(
        &mut self,
        name: &str,
        axes: &StateAxes,
    ) -> Result<Option<StateTensor>, Vec<Fault>> {
        let keys = axes.keys.as_slice();
        let set = keys.iter().fold(Keys::EMPTY, |set, key| set.join(&Keys::one(*key)));
        // Older versions stored the moments of half-precision parameters in half precision.
        let converting = self.converting || TypeId::of::<T>() != TypeId::of::<W>();
        match self.file.get(name).map(|entry| entry.renaming(self.renamed)) {
            // For a parameter with given axes, `min_dim_size_to_factor` alone decides which of them a
            // factored moment lacks.
            Ok(entry) if self.is_factor() && entry.sizes().len() != axes.sizes.len() => {
                vec_of(Fault::Unreadable {
                    name: name.to_string(),
                    why: "it is factored over other dims: it belongs to an optimizer with another \
                          `min_dim_size_to_factor`, or to a parameter with other axes"
                        .to_string(),
                })
            }
            Ok(entry) => {
                let wanted = (&set, &axes.sizes[..]);
                let (elements, order, _) = read::<W>(name, &entry, wanted, converting, self.remedy)?;
                Ok(Some(StateTensor::in_order(axes.clone(), &order, elements)))
            }
            Err(FileError::Missing { .. }) if self.kind == StateKind::Master => Ok(None),
            Err(FileError::Missing { .. }) => vec_of(missing::<W>(name.to_string(), keys, &axes.sizes)),
            Err(error) => vec_of(Fault::Unreadable { why: error.to_string(), name: name.to_string() }),
        }
    }
}

impl<B: AsRef<[u8]>> Visitor<0, 1> for StateReader<'_, B> {
    type Error = DimError;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        _: [&mut Named<T, S, R>; 0],
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<(), DimError> {
        if !is_learned::<T>() {
            return Ok(());
        }
        let parameter = path.to_string();
        let name = below(self.name, &parameter);
        self.taken.insert(name.clone());
        let is_double = TypeId::of::<T>() == TypeId::of::<f64>();
        let is_single = TypeId::of::<T>() == TypeId::of::<f32>();
        // A parameter that has taken no step needs no state from the file.
        let is_new = self.behind.iter().any(|(name, steps)| *name == parameter && *steps == 0);
        let state = self.along.next(path, tensor)?;
        let axes = match self.kind {
            StateKind::Moment(at) => state.moment_axes(at, self.layout),
            StateKind::Master => StateAxes::of(tensor),
        };
        let found = if is_new || self.kind == StateKind::Master && (is_double || is_single) {
            Ok(None)
        } else if is_double {
            self.found::<T, f64>(&name, &axes)
        } else {
            self.found::<T, f32>(&name, &axes)
        };
        let kept = self.along.again();
        match (found, self.kind) {
            (Ok(Some(found)), StateKind::Moment(_)) => kept.add_moment(found),
            (Ok(Some(found)), StateKind::Master) => kept.set_master(found),
            (Ok(None), _) => {}
            (Err(faults), _) => self.faults.extend(faults),
        }
        Ok(())
    }
}
