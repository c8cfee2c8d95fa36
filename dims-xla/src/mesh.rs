//! Meshes of devices, shardings by dims, and plans of communication.
//!
//! [`mesh!`](crate::mesh!) declares the axes of a mesh. A [`Sharding`] splits dims along them:
//! [`shard`](Sharding::shard) splits a dim in all tensors of a program, and
//! [`at_rest`](Sharding::at_rest) in inputs and results. [`Sharding::plan`] lists the communication
//! between devices:
//!
//! | step | collective |
//! |---|---|
//! | reduces along a split dim, for example in a sum, a maximum or a softmax | all-reduce |
//! | sums over a split dim, and stores the sum in parts along the same mesh axis | reduce-scatter |
//! | reads a whole value that is stored in parts | all-gather |
//! | needs a value split along a dim other than the one along which it is stored | all-to-all |
//! | looks up elements by indices that are split | an all-reduce of one byte, which tells all devices whether the indices are in range |
//!
//! Parameters that `at_rest` splits are gathered when they are first used. Their gradients, the
//! moments of the optimizer and the new parameters stay in parts.
//!
//! A step that needs adjacent elements along a split dim, or their order, such as a window, a
//! slice, a sort, a running sum or an arg-max, gathers the dim first. Some of these steps, such as
//! a sort, gather all dims of their operands.
//!
//! ```
//! use typed_dims::grad::loss_and_grad;
//! use typed_dims::prelude::*;
//! use typed_dims::program::{record, spec};
//! use typed_dims_xla::{CollectiveKind, Mesh, MeshAxis as _, Sharding, mesh};
//!
//! mesh! { pub struct Data; }
//! dims! { pub struct Example; pub struct Pixel; }
//! type Weights = Tensor<f32, (Pixel,)>;
//! type Images = Tensor<f32, (Example, Pixel)>;
//!
//! let gradient = |(w, x): (&Weights, &Images)| loss_and_grad(|w: &Weights| (x * w).sum(Pixel).square().mean(Example), w);
//! let program = record(gradient, (spec(Pixel.of(64)), spec((Example.of(32), Pixel.of(64)))))?;
//!
//! // Each device works on an eighth of the images, and stores an eighth of the weights.
//! let sharding = Sharding::new(Mesh::of(Data.of(8))).shard(Example, Data).at_rest(Pixel, Data);
//! let plan = sharding.plan(&program)?;
//! let kinds: Vec<_> = plan.collectives.iter().map(|own| (own.kind, own.bytes)).collect();
//! assert_eq!(
//!     kinds,
//!     [
//!         (CollectiveKind::AllGather, 4 * 64),     // the weights
//!         (CollectiveKind::AllReduce, 4),          // the loss
//!         (CollectiveKind::ReduceScatter, 4 * 64), // the gradient
//!     ]
//! );
//! println!("{plan}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod access;
pub(crate) mod flow;
pub(crate) mod jobs;
pub(crate) mod plan;
pub(crate) mod rules;
pub(crate) mod shapes;
mod sharding;
mod transfers;

pub use flow::CollectiveKind;
pub use plan::{Plan, PlannedCollective};
pub use rules::{Along, ShardRules};
pub use sharding::Sharding;
pub(crate) use sharding::{Placement, Split};

use std::marker::PhantomData;

/// An axis of a mesh of devices: a type that [`mesh!`](crate::mesh!) declares.
pub trait MeshAxis: Copy + 'static {
    /// The name.
    const NAME: &'static str;

    /// The axis with a number of devices.
    fn of(self, devices: usize) -> SizedAxis<Self> {
        SizedAxis { devices, axis: PhantomData }
    }
}

/// A mesh axis with a number of devices: see [`MeshAxis::of`].
#[derive(Clone, Copy, Debug)]
pub struct SizedAxis<A> {
    devices: usize,
    axis: PhantomData<A>,
}

/// Declares the axes of a mesh of devices as types.
///
/// ```
/// use typed_dims_xla::{Mesh, MeshAxis as _, mesh};
///
/// mesh! {
///     /// Devices that work on different examples.
///     pub struct Data;
///     /// Devices that hold different parts of the model.
///     pub struct Model;
/// }
/// let mesh = Mesh::of((Data.of(4), Model.of(2)));
/// assert_eq!(mesh.devices(), 8);
/// ```
#[macro_export]
macro_rules! mesh {
    ($($(#[$attribute:meta])* $visibility:vis struct $name:ident;)*) => {$(
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        $visibility struct $name;

        impl $crate::MeshAxis for $name {
            const NAME: &'static str = stringify!($name);
        }
    )*};
}

/// Devices arranged along axes. The last axis is the innermost: devices that are adjacent along it
/// are adjacent in the list of devices.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Mesh {
    axes: Vec<(&'static str, usize)>,
}

/// Axes with numbers of devices: one axis, or a tuple of up to four axes.
pub trait MeshAxes {
    /// The name and the number of devices of each axis.
    #[doc(hidden)]
    fn list(&self) -> Vec<(&'static str, usize)>;
}

impl<A: MeshAxis> MeshAxes for SizedAxis<A> {
    fn list(&self) -> Vec<(&'static str, usize)> {
        vec![(A::NAME, self.devices)]
    }
}

macro_rules! mesh_axes {
    ($($a:ident $n:tt)*) => {
        impl<$($a: MeshAxis),*> MeshAxes for ($(SizedAxis<$a>,)*) {
            fn list(&self) -> Vec<(&'static str, usize)> {
                vec![$(($a::NAME, self.$n.devices)),*]
            }
        }
    };
}
mesh_axes!(A 0);
mesh_axes!(A 0 B 1);
mesh_axes!(A 0 B 1 C 2);
mesh_axes!(A 0 B 1 C 2 D 3);

impl Mesh {
    /// A mesh with these axes.
    ///
    /// # Panics
    ///
    /// Panics if an axis has no devices, or if two axes have the same name.
    pub fn of(axes: impl MeshAxes) -> Mesh {
        let axes = axes.list();
        for (at, (name, devices)) in axes.iter().enumerate() {
            assert!(*devices > 0, "the mesh axis `{name}` has no devices");
            assert!(!axes[..at].iter().any(|own| own.0 == *name), "the mesh has two axes `{name}`");
        }
        Mesh { axes }
    }

    /// The number of devices.
    #[must_use]
    pub fn devices(&self) -> usize {
        self.axes.iter().map(|own| own.1).product()
    }

    /// The names of the axes, each with its number of devices.
    #[must_use]
    pub fn axes(&self) -> &[(&'static str, usize)] {
        &self.axes
    }

    /// The position of a device along each axis.
    #[cfg(feature = "pjrt")]
    pub(crate) fn position(&self, mut device: usize) -> Vec<usize> {
        let mut position = vec![0; self.axes.len()];
        for (at, &(_, size)) in self.axes.iter().enumerate().rev() {
            position[at] = device % size;
            device /= size;
        }
        position
    }

    /// The axes along which the groups of devices run; `None` if they do not run along axes, or if
    /// a group is empty. Without groups, all devices are one group.
    #[cfg(feature = "pjrt")]
    pub(crate) fn axes_of(&self, groups: &[Vec<usize>]) -> Option<Vec<&'static str>> {
        let all = [(0..self.devices()).collect()];
        let groups: &[Vec<usize>] = if groups.is_empty() { &all } else { groups };
        let mut varied = vec![false; self.axes.len()];
        for group in groups {
            let first = self.position(*group.first()?);
            for &device in group {
                let position = self.position(device);
                for axis in 0..varied.len() {
                    varied[axis] |= position[axis] != first[axis];
                }
            }
        }
        let axes = (0..varied.len()).filter(|&axis| varied[axis]);
        let size: usize = axes.clone().map(|axis| self.axes[axis].1).product();
        let fits = groups.iter().all(|group| group.len() == size) && groups.len() * size == self.devices();
        fits.then(|| axes.map(|axis| self.axes[axis].0).collect())
    }

    /// The mesh as an `sdy.mesh` operation.
    pub(crate) fn text(&self) -> String {
        let axes: Vec<String> = self.axes.iter().map(|(name, size)| format!("\"{name}\"={size}")).collect();
        format!(
            "  \"sdy.mesh\"() {{sym_name = \"mesh\", mesh = #sdy.mesh<[{}]>}} : () -> ()\n",
            axes.join(", ")
        )
    }
}
