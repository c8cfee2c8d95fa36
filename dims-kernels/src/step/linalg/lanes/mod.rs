//! Works on several small matrices at once.
//!
//! A [tile](tile::MatrixTile) stores the same element of all its matrices in one
//! [lane](lane::Lane), so arithmetic on a tile is arithmetic on vectors. If a matrix of a tile has
//! no result, or might have an inaccurate one, the caller works on all matrices of the tile one by
//! one.
//!
//! ```text
//! job: the tiles of a batch  ->  systems, factors, spectra: load and store tiles
//!     ->  elimination, reflections, symmetric, singular, exponential  ->  tile  ->  lane
//! ```

// Loops index several operands with the same index.
#![allow(clippy::needless_range_loop)]

mod elimination;
mod exponential;
mod factors;
mod job;
mod lane;
mod reflections;
mod singular;
mod spectra;
mod symmetric;
mod systems;
mod tile;
#[cfg(x86_vectors)]
mod vectors;
mod work;

pub use job::LaneJob;
pub(super) use job::{MOST_LANES, has_lanes, run};
