//! How operations run, and where elements are in memory. A gradient on any thread changes some
//! plans, so no test of this binary computes one.

mod laid;
mod lookup;
mod promises;
