//! Compares a plan of communication with XLA's compiled program.

use crate::mesh::plan::write_table;
use crate::mesh::{CollectiveKind, Mesh, Plan};
use crate::pjrt::{ArrayType, Collective};
use std::collections::BTreeMap;
use std::fmt;

/// A [`Plan`] next to the collectives of a compiled program: see
/// [`Run::compare`](crate::Run::compare).
///
/// `Display` writes it as a table.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Comparison {
    /// A row for each kind of collective along each set of mesh axes. Rows without bytes are left
    /// out.
    pub rows: Vec<ComparedCollectives>,
}

/// The collectives of one kind along the same axes of a mesh.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ComparedCollectives {
    /// The kind as HLO names it, such as `all-reduce`.
    pub kind: String,
    /// The axes of the mesh. `None` if the groups of devices do not run along axes, or are not
    /// known.
    pub axes: Option<Vec<&'static str>>,
    /// The bytes on each device, as planned.
    pub planned: usize,
    /// The bytes on each device, in XLA's optimized program. The bytes of an all-reduce that
    /// replaces a reduce-scatter are not counted here, but in `as_all_reduce` of the
    /// reduce-scatter's row.
    pub found: usize,
    /// The planned bytes of reduce-scatters that XLA replaced by all-reduces. 0 for other kinds.
    pub as_all_reduce: usize,
}

impl ComparedCollectives {
    /// Whether XLA sends the planned bytes. An all-reduce in place of a reduce-scatter counts as
    /// planned, because XLA makes this replacement on CPUs.
    #[must_use]
    pub fn is_as_planned(&self) -> bool {
        self.planned == self.found + self.as_all_reduce
    }
}

impl Comparison {
    pub(super) fn of(plan: &Plan, found: &[Collective], mesh: &Mesh) -> Comparison {
        let mut rows: BTreeMap<(String, Option<Vec<&'static str>>), [usize; 2]> = BTreeMap::new();
        for own in &plan.collectives {
            rows.entry((own.kind.to_string(), Some(own.axes.clone()))).or_default()[0] += own.bytes;
        }
        for own in found {
            let axes = mesh.axes_of(&own.groups);
            // A group of one device sends nothing.
            if axes.as_ref().is_some_and(Vec::is_empty) {
                continue;
            }
            let bytes: usize = own.outputs.iter().map(bytes_of).sum();
            let parts = match own.kind.as_str() {
                // Without groups, all devices are one group.
                "reduce-scatter" => own.groups.first().map_or(mesh.devices(), |group| group.len().max(1)),
                _ => 1,
            };
            rows.entry((own.kind.clone(), axes)).or_default()[1] += bytes * parts;
        }
        let (reduce, scatter) =
            (CollectiveKind::AllReduce.to_string(), CollectiveKind::ReduceScatter.to_string());
        let mut all: Vec<ComparedCollectives> = rows
            .into_iter()
            .map(|((kind, axes), [planned, found])| ComparedCollectives {
                kind,
                axes,
                planned,
                found,
                as_all_reduce: 0,
            })
            .collect();
        for at in 0..all.len() {
            let left = all[at].planned.saturating_sub(all[at].found);
            if all[at].kind != scatter || left == 0 {
                continue;
            }
            let axes = all[at].axes.clone();
            let other = all.iter_mut().find(|own| own.kind == reduce && own.axes == axes);
            let Some(other) = other.filter(|own| own.found >= own.planned + left) else { continue };
            other.found -= left;
            all[at].as_all_reduce = left;
        }
        Comparison {
            rows: all
                .into_iter()
                .filter(|own| own.planned + own.found > 0 || own.as_all_reduce > 0)
                .collect(),
        }
    }

    /// Whether all rows are as planned.
    #[must_use]
    pub fn is_as_planned(&self) -> bool {
        self.rows.iter().all(ComparedCollectives::is_as_planned)
    }

    /// The rows that differ from the plan.
    pub fn differences(&self) -> impl Iterator<Item = &ComparedCollectives> {
        self.rows.iter().filter(|own| !own.is_as_planned())
    }
}

fn bytes_of(array: &ArrayType) -> usize {
    array.element_type.bytes(&array.sizes).unwrap_or(0)
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows = vec![["collective", "mesh axis", "planned", "XLA", ""].map(String::from)];
        for own in &self.rows {
            let note = match (own.is_as_planned(), own.as_all_reduce) {
                (false, _) => "differs",
                (true, 0) => "",
                (true, _) => "as an all-reduce",
            };
            rows.push([
                own.kind.clone(),
                own.axes.as_ref().map_or_else(|| "other groups".into(), |axes| axes.join(", ")),
                own.planned.to_string(),
                (own.found + own.as_all_reduce).to_string(),
                note.into(),
            ]);
        }
        write_table(f, &rows, &[2, 3])
    }
}
