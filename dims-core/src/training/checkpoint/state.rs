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
use crate::training::optim::by_path::StateWalk;
use crate::training::optim::state_tensor::StateElem;
use crate::types::rank::Rank;
use crate::types::set::Dims;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::any::TypeId;
use kernels::scalar::Element;
use std::collections::BTreeSet;

/// The kind of state that is read.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum StateKind {
    /// A moment of each parameter.
    Moment,
    /// The master weights of parameters that have them.
    Master,
}

/// Reads the tensors below a name, one for each parameter that has taken a step.
pub(super) struct StateReader<'r, B> {
    pub(super) file: &'r File<B>,
    pub(super) name: &'r str,
    pub(super) kind: StateKind,
    pub(super) along: StateWalk<'r>,
    /// The parameters that have taken fewer steps than the optimizer, and their numbers of steps.
    pub(super) behind: &'r [(String, u64)],
    /// The tensors of the file that were read.
    pub(super) taken: BTreeSet<String>,
    /// The mismatches.
    pub(super) faults: &'r mut Vec<Fault>,
}

impl<B: AsRef<[u8]>> StateReader<'_, B> {
    /// The tensor of a parameter of `T`, as one of `W`. `None` if the file lacks it and it is
    /// optional.
    fn found<T: Element, W: StateElem, S: Dims, R: Rank>(
        &self,
        name: &str,
        sizes: &[usize],
    ) -> Result<Option<StateTensor>, Vec<Fault>> {
        // (Older versions wrote the moments of half precision in half precision.)
        let converting = TypeId::of::<T>() != TypeId::of::<W>();
        let unreadable =
            |why: &dyn ToString| vec![Fault::Unreadable { why: why.to_string(), name: name.to_string() }];
        match self.file.get(name) {
            Ok(entry) => {
                let tensor = read::<W, S, R>(name, &entry, sizes, converting)?;
                StateTensor::new(tensor).map(Some).map_err(|error| unreadable(&error))
            }
            Err(FileError::Missing { .. }) if self.kind == StateKind::Master => Ok(None),
            Err(FileError::Missing { .. }) => vec_of(missing::<W, S>(name.to_string(), sizes)),
            Err(error) => Err(unreadable(&error)),
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
        let (parameter, shape) = (path.to_string(), tensor.unified_shape()?);
        let name = below(self.name, &parameter);
        self.taken.insert(name.clone());
        let is_double = TypeId::of::<T>() == TypeId::of::<f64>();
        let is_single = TypeId::of::<T>() == TypeId::of::<f32>();
        // (State exists only after the first step.)
        let is_new = self.behind.iter().any(|(name, steps)| *name == parameter && *steps == 0);
        let found = if is_new || self.kind == StateKind::Master && (is_double || is_single) {
            Ok(None)
        } else if is_double {
            self.found::<T, f64, S, R>(&name, shape.sizes())
        } else {
            self.found::<T, f32, S, R>(&name, shape.sizes())
        };
        let kept = self.along.next(path, tensor)?;
        match (found, self.kind) {
            (Ok(Some(found)), StateKind::Moment) => kept.add_moment(found),
            (Ok(Some(found)), StateKind::Master) => kept.set_master(found),
            (Ok(None), _) => {}
            (Err(faults), _) => self.faults.extend(faults),
        }
        Ok(())
    }
}
