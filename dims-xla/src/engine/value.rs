//! Values on devices.

use super::checks::Dependence;
use super::element_type;
use crate::error::XlaError;
use crate::mesh::{Mesh, ShardRules, Sharding, Split, rules};
use crate::pjrt::{DeviceBuffer, Pjrt};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use typed_dims::grad::Parameters;
use typed_dims::program::engine::{self, EngineTensor};

#[derive(Clone)]
pub(super) struct DeviceTensor {
    pub(super) tensor: EngineTensor,
    /// One array for each device of the mesh; a single array if there is no mesh.
    pub(super) shards: Vec<Arc<DeviceBuffer>>,
    pub(super) mesh: Mesh,
    pub(super) split: Split,
}

/// A value on devices: a tensor, a tuple, a struct with `#[derive(Parameters)]` or an optimizer.
///
/// [`Pjrt::put`] and [calls](crate::Run::call) return such values, and
/// [`to_host`](OnDevice::to_host) reads them. They cannot be cloned: a call into which a value is
/// moved may write results into its memory.
pub struct OnDevice<P> {
    /// The value without its elements.
    pub(super) template: P,
    pub(super) tensors: Vec<DeviceTensor>,
    pub(super) pending: VecDeque<Dependence>,
}

impl<P> fmt::Debug for OnDevice<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnDevice").field("tensors", &self.tensors.len()).finish_non_exhaustive()
    }
}

impl<P> OnDevice<P> {
    /// Waits until the value is computed.
    ///
    /// # Errors
    ///
    /// See [`to_host`](OnDevice::to_host).
    pub fn ready(&self) -> Result<(), XlaError> {
        self.pending.iter().try_for_each(Dependence::check)?;
        self.tensors.iter().flat_map(|own| &own.shards).try_for_each(|own| own.ready())
    }

    /// The bytes of all tensors, summed over devices.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.tensors.iter().flat_map(|own| &own.shards).map(|own| own.len_bytes()).sum()
    }
}

impl<P: Parameters> OnDevice<P> {
    /// Waits for the value, and copies it to the host.
    ///
    /// # Errors
    ///
    /// Returns an error if XLA reports one, or if a check failed in a call that the value depends
    /// on: for example, an index was out of range.
    ///
    /// A call with a failed check leaves the state that was moved into it unchanged. After the
    /// error has been returned once, the state can be read or passed to further calls. A result
    /// counts as state if it has the field, type and sizes of exactly one moved tensor, and no
    /// other result has them. Also, if there are as many results as moved tensors of some type and
    /// sizes, all of these results are state. Reading any other result returns the error again.
    pub fn to_host(&self) -> Result<P, XlaError> {
        self.pending.iter().try_for_each(Dependence::check)?;
        let elements = self.tensors.iter().map(DeviceTensor::to_host).collect::<Result<Vec<_>, _>>()?;
        Ok(engine::with_elements(&self.template, elements)?)
    }
}

impl DeviceTensor {
    fn to_host(&self) -> Result<Vec<u8>, XlaError> {
        if self.split.iter().all(Option::is_none) {
            return self.shards[0].to_host();
        }
        let sizes = self.tensor.sizes();
        let width = self.tensor.dtype.bytes();
        let mut whole = vec![0; sizes.iter().product::<usize>() * width];
        for (device, shard) in self.shards.iter().enumerate() {
            let position = self.mesh.position(device);
            // Along a mesh axis that does not split the tensor, all devices have the same part. It
            // is copied from the first of them.
            let others = (0..position.len()).filter(|axis| !self.split.contains(&Some(*axis)));
            if { others }.any(|axis| position[axis] != 0) {
                continue;
            }
            let part = shard.to_host()?;
            each_row(&sizes, &self.split, &self.mesh, &position, width, |at, from, len| {
                whole[at..at + len].copy_from_slice(&part[from..from + len]);
            });
        }
        Ok(whole)
    }
}

/// Calls `f` for each row of a part, with its offset in the whole, its offset in the part, and its
/// length, in bytes.
pub(super) fn each_row(
    sizes: &[usize],
    split: &Split,
    mesh: &Mesh,
    position: &[usize],
    width: usize,
    mut f: impl FnMut(usize, usize, usize),
) {
    let part: Vec<usize> = part_sizes(sizes, split, mesh);
    let start: Vec<usize> =
        (0..sizes.len()).map(|axis| split[axis].map_or(0, |own| position[own] * part[axis])).collect();
    if part.contains(&0) {
        return;
    }
    let Some((&last, outer)) = part.split_last() else {
        f(0, 0, width);
        return;
    };
    let rows: usize = outer.iter().product();
    for row in 0..rows {
        let (mut rest, mut at, mut step) = (row, start[sizes.len() - 1], sizes[sizes.len() - 1]);
        for axis in (0..outer.len()).rev() {
            at += (start[axis] + rest % part[axis]) * step;
            rest /= part[axis];
            step *= sizes[axis];
        }
        f(at * width, row * last * width, last * width);
    }
}

/// The sizes of each part.
pub(super) fn part_sizes(sizes: &[usize], split: &Split, mesh: &Mesh) -> Vec<usize> {
    let part = |(&size, own): (&usize, &Option<usize>)| own.map_or(size, |axis| size / mesh.axes()[axis].1);
    sizes.iter().zip(split).map(part).collect()
}

impl Pjrt {
    /// Copies a value to the first device.
    ///
    /// # Errors
    ///
    /// Returns an error if elements have a type that programs do not support, if a tensor belongs
    /// to a gradient or to a function that is being recorded, or if memory runs out.
    pub fn put<P: Parameters>(&self, value: &P) -> Result<OnDevice<P>, XlaError> {
        self.put_parts(value, &Mesh::default(), &mut |tensor| Ok(vec![None; tensor.axes.len()]))
    }

    /// Copies a value to the devices of a mesh, split as the sharding stores inputs and results.
    ///
    /// # Errors
    ///
    /// See [`put`](Pjrt::put). Also returns an error if two dims of a tensor are split along one
    /// axis of the mesh, if the number of devices along an axis does not divide the size of a dim
    /// that is split along that axis, or if the client has fewer devices than the mesh.
    pub fn put_sharded<P: Parameters, R: ShardRules>(
        &self,
        value: &P,
        sharding: &Sharding<R>,
    ) -> Result<OnDevice<P>, XlaError> {
        const { rules::check::<P, R>("the value") }
        let placement = &sharding.placement;
        self.put_parts(value, &placement.mesh, &mut |tensor| placement.split_tensor(tensor, true, "value"))
    }

    pub(super) fn put_parts<P: Parameters>(
        &self,
        value: &P,
        mesh: &Mesh,
        split: &mut dyn FnMut(&EngineTensor) -> Result<Split, XlaError>,
    ) -> Result<OnDevice<P>, XlaError> {
        let (found, template) = engine::tensors_of(value)?;
        let mut tensors = Vec::new();
        for own in found {
            let split = split(&own.tensor)?;
            tensors.push(self.put_tensor(own.tensor.clone(), &own.bytes(), mesh, split)?);
        }
        Ok(OnDevice { template, tensors, pending: VecDeque::new() })
    }

    pub(super) fn put_tensor(
        &self,
        tensor: EngineTensor,
        bytes: &[u8],
        mesh: &Mesh,
        split: Split,
    ) -> Result<DeviceTensor, XlaError> {
        let (sizes, width, dtype) = (tensor.sizes(), tensor.dtype.bytes(), element_type(tensor.dtype));
        let part = part_sizes(&sizes, &split, mesh);
        let mut shards = Vec::new();
        for device in 0..mesh.devices() {
            if split.iter().all(Option::is_none) {
                shards.push(Arc::new(self.upload(bytes, dtype, &sizes, None, device)?));
                continue;
            }
            let mut own = vec![0; part.iter().product::<usize>() * width];
            each_row(&sizes, &split, mesh, &mesh.position(device), width, |at, from, len| {
                own[from..from + len].copy_from_slice(&bytes[at..at + len]);
            });
            shards.push(Arc::new(self.upload(&own, dtype, &part, None, device)?));
        }
        Ok(DeviceTensor { tensor, shards, mesh: mesh.clone(), split })
    }
}
