//! The plan of a program's communication.

use super::flow::{CollectiveKind, Flow, Transfer};
use super::rules::{ShardRules, check_program};
use super::shapes::along_axes;
use super::{Mesh, Placement, Sharding};
use crate::error::XlaError;
use std::fmt;
use std::panic::Location;
use typed_dims::grad::Parameters;
use typed_dims::program::engine::EngineProgram;
use typed_dims::program::{Program, RecordInputs};

/// The communication between the devices of a mesh in one call of a program: see
/// [`Sharding::plan`].
///
/// `Display` writes it as a table.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Plan {
    /// The mesh.
    pub mesh: Mesh,
    /// The collectives, in the order of the steps.
    pub collectives: Vec<PlannedCollective>,
}

/// One collective of a [`Plan`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PlannedCollective {
    /// The kind.
    pub kind: CollectiveKind,
    /// The axes of the mesh along which the devices communicate.
    pub axes: Vec<&'static str>,
    /// The dims of the tensor that is sent.
    pub dims: Vec<&'static str>,
    /// The bytes of the tensor on each device: before a reduce-scatter, and after any other
    /// collective.
    pub bytes: usize,
    /// The operation of the step, or `result` if a result of the program is transferred.
    pub operation: &'static str,
    /// The location of the operation in the user's program.
    pub origin: Option<&'static Location<'static>>,
}

impl Plan {
    pub(super) fn of(program: &EngineProgram, placement: &Placement) -> Result<Plan, XlaError> {
        let flow = Flow::of(program, placement)?;
        let planned = |own: Transfer| {
            let Transfer { kind, axes, dims, bytes, operation, origin } = own;
            let axes = axes.into_iter().map(|axis| placement.mesh.axes[axis].0).collect();
            PlannedCollective { kind, axes, dims, bytes, operation, origin }
        };
        let collectives = flow.transfers.into_iter().map(planned).collect();
        Ok(Plan { mesh: placement.mesh.clone(), collectives })
    }

    /// The bytes of all collectives on each device.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.collectives.iter().map(|own| own.bytes).sum()
    }
}

impl<R: ShardRules> Sharding<R> {
    /// Plans the communication of a program with this sharding. No plugin is needed.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    /// use typed_dims::program::{record, spec};
    /// use typed_dims_xla::{CollectiveKind, Mesh, MeshAxis as _, Sharding, mesh};
    ///
    /// mesh! { pub struct Data; }
    /// dims! { pub struct Row; pub struct Col; }
    ///
    /// let program = record(|x: &Tensor<f32, (Row, Col)>| x.sum(Row), spec((Row.of(64), Col.of(8))))?;
    /// let plan = Sharding::new(Mesh::of(Data.of(4))).shard(Row, Data).plan(&program)?;
    /// assert_eq!(plan.collectives[0].kind, CollectiveKind::AllReduce);
    /// assert_eq!((&plan.collectives[0].axes[..], plan.bytes()), (&["Data"][..], 8 * 4));
    /// println!("{plan}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// XLA may choose other collectives. `Run::compare` compares the plan with the compiled
    /// program.
    ///
    /// # Errors
    ///
    /// Returns an error if two dims of a value are split along one axis of the mesh, if the number
    /// of devices along an axis does not divide the size of a dim that is split along that axis, if
    /// a step calls a user-defined function, if a captured tensor has elements of a type that
    /// programs do not support, or if dims are dynamic.
    pub fn plan<In, Out>(&self, program: &Program<In, Out>) -> Result<Plan, XlaError>
    where
        In: RecordInputs,
        Out: Parameters,
    {
        const { check_program::<In::Value, Out, R>() }
        Plan::of(&along_axes(program.to_engine()?), &self.placement)
    }
}

impl fmt::Display for CollectiveKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            CollectiveKind::AllReduce => "all-reduce",
            CollectiveKind::ReduceScatter => "reduce-scatter",
            CollectiveKind::AllGather => "all-gather",
            CollectiveKind::AllToAll => "all-to-all",
        })
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows =
            vec![["collective", "mesh axis", "bytes", "dims", "operation", "location"].map(String::from)];
        for own in &self.collectives {
            rows.push([
                own.kind.to_string(),
                own.axes.join(", "),
                own.bytes.to_string(),
                own.dims.join(" "),
                own.operation.to_owned(),
                own.origin.map(ToString::to_string).unwrap_or_default(),
            ]);
        }
        rows.push([
            "sum".into(),
            String::new(),
            self.bytes().to_string(),
            String::new(),
            String::new(),
            String::new(),
        ]);
        write_table(f, &rows, &[2])
    }
}

/// Writes rows of cells as a table. The columns in `right` are aligned to the right.
pub(crate) fn write_table<const N: usize>(
    f: &mut fmt::Formatter<'_>,
    rows: &[[String; N]],
    right: &[usize],
) -> fmt::Result {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    for row in rows {
        let mut line = String::new();
        for (column, text) in row.iter().enumerate() {
            let space = " ".repeat(widths[column] - text.chars().count());
            let (before, after) = if right.contains(&column) { (&space[..], "") } else { ("", &space[..]) };
            line += &format!("{before}{text}{after}  ");
        }
        writeln!(f, "{}", line.trim_end())?;
    }
    Ok(())
}
