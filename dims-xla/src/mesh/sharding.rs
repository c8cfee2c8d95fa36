//! Shardings: the dims that are split along the axes of a mesh.

use super::rules::Along;
use super::{Mesh, MeshAxis};
use crate::error::XlaError;
use std::fmt;
use std::marker::PhantomData;
use typed_dims::program::engine::{EngineAxis, EngineTensor};
use typed_dims::types::brand::Brand;

/// One rule of a sharding: a dim is split along a mesh axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Rule {
    /// The id and the name of the dim.
    dim: (u64, &'static str),
    axis: &'static str,
    at_rest: bool,
}

/// The dims that are split along the axes of a mesh.
///
/// ```
/// use typed_dims::prelude::*;
/// use typed_dims_xla::{Mesh, MeshAxis as _, Sharding, mesh};
///
/// mesh! { pub struct Data; pub struct Model; }
/// dims! { pub struct Example; pub struct Hidden; pub struct Pixel; }
///
/// // Each device works on half of the examples and half of the hidden units. Weights are also
/// // stored in halves along the pixels.
/// let sharding = Sharding::new(Mesh::of((Data.of(2), Model.of(2))))
///     .shard(Example, Data)
///     .shard(Hidden, Model)
///     .at_rest(Pixel, Data);
/// # let _ = sharding;
/// ```
///
/// The type lists the rules of [`shard`](Sharding::shard), so `cargo build` rejects a program if an
/// input or a result has a tensor with two dims along one mesh axis:
///
/// ```compile_fail,E0080
/// use typed_dims::prelude::*;
/// use typed_dims::program::{record, spec};
/// use typed_dims_xla::{Mesh, MeshAxis as _, Sharding, mesh};
///
/// mesh! { pub struct Data; }
/// dims! { pub struct Row; pub struct Col; }
///
/// let program = record(|x: &Tensor<f32, (Row, Col)>| x.sum(Col), spec((Row.of(4), Col.of(2)))).unwrap();
/// let plan = Sharding::new(Mesh::of(Data.of(2))).shard(Row, Data).shard(Col, Data).plan(&program);
/// ```
///
/// The message is: "the input has the dims `Row` and `Col`, and both are split along the mesh axis
/// `Data`: split one of them along another axis, or not at all". For intermediate values, and for
/// structs that implement `Parameters` by hand, such a conflict is a run-time error.
pub struct Sharding<R = ()> {
    pub(crate) placement: Placement,
    rules: PhantomData<fn() -> R>,
}

impl<R> Clone for Sharding<R> {
    fn clone(&self) -> Self {
        Sharding { placement: self.placement.clone(), rules: PhantomData }
    }
}

impl<R> fmt::Debug for Sharding<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sharding")
            .field("mesh", &self.placement.mesh)
            .field("rules", &self.placement.rules)
            .finish()
    }
}

impl<R> PartialEq for Sharding<R> {
    fn eq(&self, other: &Self) -> bool {
        self.placement == other.placement
    }
}

impl<R> Eq for Sharding<R> {}

impl Sharding {
    /// A sharding in which each device has whole tensors.
    #[must_use]
    pub fn new(mesh: Mesh) -> Sharding {
        Sharding { placement: Placement { mesh, rules: Vec::new() }, rules: PhantomData }
    }
}

impl<R> Sharding<R> {
    /// The mesh.
    #[must_use]
    pub fn mesh(&self) -> &Mesh {
        &self.placement.mesh
    }

    /// Splits a dim along an axis of the mesh, in all tensors of the program.
    ///
    /// # Panics
    ///
    /// Panics if the mesh does not have the axis, or if an earlier `shard` splits the dim.
    #[must_use]
    pub fn shard<D: Brand, A: MeshAxis>(self, _: D, _: A) -> Sharding<(R, Along<D, A>)> {
        Sharding { placement: self.placement.with::<D, A>(false), rules: PhantomData }
    }

    /// Splits a dim along an axis of the mesh in inputs and results. This is meant for state, such
    /// as the parameters of a network and its optimizer. Steps that only compute new state work on
    /// the parts. Other steps gather the dim first, unless [`shard`](Sharding::shard) splits it.
    ///
    /// If `shard` or an earlier `at_rest` already splits a tensor along the same mesh axis, the
    /// tensor is not split along it again. So the axis that splits the batch can also be used to
    /// store parameters in parts. A dim that `shard` splits is not split along a second axis.
    ///
    /// # Panics
    ///
    /// Panics if the mesh does not have the axis, or if the dim is split at rest already.
    #[must_use]
    pub fn at_rest<D: Brand, A: MeshAxis>(self, _: D, _: A) -> Sharding<R> {
        Sharding { placement: self.placement.with::<D, A>(true), rules: PhantomData }
    }

    /// Removes the rules from the type, so that shardings with different rules have the same type.
    /// The rules are then only checked at run time.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    /// use typed_dims_xla::{Mesh, MeshAxis as _, Sharding, mesh};
    ///
    /// mesh! { pub struct Data; }
    /// dims! { pub struct Row; }
    ///
    /// let mut sharding = Sharding::new(Mesh::of(Data.of(2)));
    /// if std::env::args().count() > 1 {
    ///     sharding = sharding.shard(Row, Data).checked_at_run_time();
    /// }
    /// # let _ = sharding;
    /// ```
    #[must_use]
    pub fn checked_at_run_time(self) -> Sharding {
        Sharding { placement: self.placement, rules: PhantomData }
    }
}

/// The mesh and the rules of a sharding.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Placement {
    pub(crate) mesh: Mesh,
    rules: Vec<Rule>,
}

/// For each axis of a tensor, the mesh axis along which it is split, if any.
pub(crate) type Split = Vec<Option<usize>>;

/// An axis of a tensor: the id of its dim, its name and its size.
pub(crate) type DimAxis = (Option<u64>, &'static str, usize);

impl Placement {
    fn with<D: Brand, A: MeshAxis>(mut self, at_rest: bool) -> Self {
        assert!(
            self.mesh.axes.iter().any(|own| own.0 == A::NAME),
            "the mesh has no axis `{}`: its axes are {:?}",
            A::NAME,
            self.mesh.axes
        );
        let rule = Rule { dim: (D::ID, D::NAME), axis: A::NAME, at_rest };
        assert!(
            !self.rules.iter().any(|own| (own.dim.0, own.at_rest) == (rule.dim.0, at_rest)),
            "the dim `{}` is split{} already",
            D::NAME,
            if at_rest { " at rest" } else { "" }
        );
        self.rules.push(rule);
        self
    }

    fn axis(&self, name: &str) -> usize {
        self.mesh.axes.iter().position(|own| own.0 == name).expect("rules name axes of the mesh")
    }

    /// The split of a value with these axes.
    pub(crate) fn split(
        &self,
        axes: &[DimAxis],
        at_rest: bool,
        what: &dyn Fn() -> String,
    ) -> Result<Split, XlaError> {
        let mut split: Split = vec![None; axes.len()];
        for rest in [false, true] {
            if rest && !at_rest {
                continue;
            }
            // Rules apply in the order of the calls that added them, whatever the order of the axes
            // in memory.
            for rule in self.rules.iter().filter(|rule| rule.at_rest == rest) {
                let Some(at) = axes.iter().position(|axis| axis.0 == Some(rule.dim.0)) else { continue };
                let (axis, number) = (&axes[at], self.axis(rule.axis));
                if let Some(other) = split.iter().position(|own| *own == Some(number)) {
                    // The tensor is already split along this mesh axis.
                    if rest {
                        continue;
                    }
                    return Err(XlaError::Sharding {
                        message: format!(
                            "{} has the dims `{}` and `{}`, and both are split along the mesh axis `{}`: split one of them along another axis, or not at all",
                            what(),
                            axes[other.min(at)].1,
                            axes[other.max(at)].1,
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

    /// The split of a tensor. `role` names its value in errors, such as `input`.
    pub(crate) fn split_tensor(
        &self,
        tensor: &EngineTensor,
        at_rest: bool,
        role: &str,
    ) -> Result<Split, XlaError> {
        let axes: Vec<DimAxis> = tensor.axes.iter().map(dim_axis).collect();
        let what = || match tensor.path.is_empty() {
            true => format!("the {role}"),
            false => format!("the {role} `{}`", tensor.path),
        };
        self.split(&axes, at_rest, &what)
    }

    /// The split as a `#sdy.sharding` attribute, closed along all axes.
    pub(crate) fn text(&self, split: &Split) -> String {
        let axes: Vec<String> = split
            .iter()
            .map(|own| own.map_or("{}".into(), |axis| format!("{{\"{}\"}}", self.mesh.axes[axis].0)))
            .collect();
        format!("#sdy.sharding<@mesh, [{}]>", axes.join(", "))
    }
}

/// The dim and the size of an axis.
pub(super) fn dim_axis(axis: &EngineAxis) -> DimAxis {
    match axis.dim {
        Some(dim) => (Some(dim.id), dim.name, axis.size),
        None => (None, "..", axis.size),
    }
}
