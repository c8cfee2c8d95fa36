//! Meshes of devices, and shardings by dims.

use crate::error::XlaError;
use std::marker::PhantomData;
use typed_dims::brand::Brand;
use typed_dims::program::engine::{EngineAxis, EngineTensor};
use typed_dims::set::DimKey;

/// An axis of a mesh of devices: a type that [`mesh!`](crate::mesh!) declares.
pub trait MeshAxis: Copy + 'static {
    /// Its name.
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
///     /// Devices that work on other examples.
///     pub struct Data;
///     /// Devices that hold other parts of the model.
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

/// Devices along axes. The last axis is the innermost: neighbours along it are neighbours in the list of devices.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Mesh {
    axes: Vec<(&'static str, usize)>,
}

/// Axes with numbers of devices: one, or a tuple of up to four.
pub trait MeshAxes {
    /// Names and numbers.
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
    /// Panics if an axis has no devices, or if two axes have one name.
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
    pub(crate) fn position(&self, mut device: usize) -> Vec<usize> {
        let mut position = vec![0; self.axes.len()];
        for (at, &(_, size)) in self.axes.iter().enumerate().rev() {
            position[at] = device % size;
            device /= size;
        }
        position
    }

    /// `sdy.mesh`
    pub(crate) fn text(&self) -> String {
        let axes: Vec<String> = self.axes.iter().map(|(name, size)| format!("\"{name}\"={size}")).collect();
        format!(
            "  \"sdy.mesh\"() {{sym_name = \"mesh\", mesh = #sdy.mesh<[{}]>}} : () -> ()\n",
            axes.join(", ")
        )
    }
}

/// One rule of a sharding: a dim lies along a mesh axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Rule {
    /// The id and the name of the dim.
    dim: (u64, &'static str),
    axis: &'static str,
    at_rest: bool,
}

/// Which dims lie along which axes of a mesh.
///
/// ```
/// use typed_dims::prelude::*;
/// use typed_dims_xla::{Mesh, MeshAxis as _, Sharding, mesh};
///
/// mesh! { pub struct Data; pub struct Model; }
/// dims! { pub struct Example; pub struct Hidden; pub struct Pixel; }
///
/// // Each device works on half of the examples and half of the hidden units. Weights are stored in halves of the pixels, too.
/// let sharding = Sharding::new(Mesh::of((Data.of(2), Model.of(2))))
///     .shard(Example, Data)
///     .shard(Hidden, Model)
///     .at_rest(Pixel, Data);
/// # let _ = sharding;
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sharding {
    mesh: Mesh,
    rules: Vec<Rule>,
}

/// The mesh axis along which each axis of a tensor lies, if it is split.
pub(crate) type Split = Vec<Option<usize>>;

impl Sharding {
    /// All tensors are whole on each device of the mesh.
    #[must_use]
    pub fn new(mesh: Mesh) -> Sharding {
        Sharding { mesh, rules: Vec::new() }
    }

    /// The mesh.
    #[must_use]
    pub fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    /// Splits tensors with a dim along an axis of the mesh, everywhere in the program.
    ///
    /// # Panics
    ///
    /// Panics if the mesh has no such axis, or if the dim is split already.
    #[must_use]
    pub fn shard<D: Brand, A: MeshAxis>(self, _: D, _: A) -> Sharding {
        self.with::<D, A>(false)
    }

    /// Splits inputs and results that are state, such as the parameters of a network and its optimizer, along an axis of the mesh. Within the program they are whole along this dim, unless
    /// [`shard`](Sharding::shard) splits it.
    ///
    /// Tensors with a dim that `shard` splits along the same axis are not split further: a batch of examples may lie along the axis that parameters are stored along.
    ///
    /// # Panics
    ///
    /// Panics if the mesh has no such axis, or if the dim is split at rest already.
    #[must_use]
    pub fn at_rest<D: Brand, A: MeshAxis>(self, _: D, _: A) -> Sharding {
        self.with::<D, A>(true)
    }

    fn with<D: Brand, A: MeshAxis>(mut self, at_rest: bool) -> Sharding {
        assert!(
            self.mesh.axes.iter().any(|own| own.0 == A::NAME),
            "the mesh has no axis `{}`: its axes are {:?}",
            A::NAME,
            self.mesh.axes
        );
        let rule = Rule { dim: (D::ID, D::NAME), axis: A::NAME, at_rest };
        assert!(
            !self.rules.iter().any(|own| (own.dim.0, own.at_rest) == (rule.dim.0, at_rest)),
            "the dim `{}` is split already",
            D::NAME
        );
        self.rules.push(rule);
        self
    }

    fn axis(&self, name: &str) -> usize {
        self.mesh.axes.iter().position(|own| own.0 == name).expect("rules name axes of the mesh")
    }

    /// How a value is split whose axes have these names and sizes: of inputs and results with the ids of dims.
    pub(crate) fn split(
        &self,
        axes: &[(Option<u64>, &str, usize)],
        at_rest: bool,
        what: &dyn Fn() -> String,
    ) -> Result<Split, XlaError> {
        let find = |axis: &(Option<u64>, &str, usize), rest: bool| {
            let same = |rule: &&Rule| {
                rule.at_rest == rest
                    && match axis.0 {
                        Some(id) => rule.dim.0 == id,
                        None => rule.dim.1 == axis.1,
                    }
            };
            self.rules.iter().find(same)
        };
        let mut split: Split = vec![None; axes.len()];
        for rest in [false, true] {
            if rest && !at_rest {
                continue;
            }
            for (at, axis) in axes.iter().enumerate() {
                let Some(rule) = find(axis, rest) else { continue };
                let number = self.axis(rule.axis);
                if let Some(other) = split.iter().position(|own| *own == Some(number)) {
                    // The tensor is already split along this mesh axis.
                    if rest {
                        continue;
                    }
                    return Err(XlaError::Sharding {
                        message: format!(
                            "{} has the dims `{}` and `{}`, and both are split along the mesh axis `{}`: split one of them along another axis, or not at all",
                            what(),
                            axes[other].1,
                            axis.1,
                            rule.axis
                        ),
                    });
                }
                if split[at].is_some() {
                    continue;
                }
                let devices = self.mesh.axes[number].1;
                if !axis.2.is_multiple_of(devices) {
                    return Err(XlaError::Sharding {
                        message: format!(
                            "{}: the dim `{}` has size {}, which the {devices} devices of the mesh axis `{}` do not divide",
                            what(),
                            axis.1,
                            axis.2,
                            rule.axis
                        ),
                    });
                }
                split[at] = Some(number);
            }
        }
        Ok(split)
    }

    /// How a tensor of the inputs or results is split.
    pub(crate) fn split_tensor(
        &self,
        tensor: &EngineTensor,
        at_rest: bool,
        role: &str,
    ) -> Result<Split, XlaError> {
        let axes: Vec<(Option<u64>, &str, usize)> = tensor.axes.iter().map(named).collect();
        let what = || match tensor.path.is_empty() {
            true => format!("the {role}"),
            false => format!("the {role} `{}`", tensor.path),
        };
        self.split(&axes, at_rest, &what)
    }

    /// `#sdy.sharding`, closed along all axes.
    pub(crate) fn text(&self, split: &Split) -> String {
        let axes: Vec<String> = split
            .iter()
            .map(|own| own.map_or("{}".into(), |axis| format!("{{\"{}\"}}", self.mesh.axes[axis].0)))
            .collect();
        format!("#sdy.sharding<@mesh, [{}]>", axes.join(", "))
    }
}

fn named(axis: &EngineAxis) -> (Option<u64>, &'static str, usize) {
    match axis.dim {
        Some(DimKey { id, name, .. }) => (Some(id), name, axis.size),
        None => (Some(u64::MAX), "..", axis.size),
    }
}
