//! How operations run, and what lies where in memory. While there is a gradient on any thread, some
//! plans are others, so no test of this program takes one.

mod laid;
mod lookup;
mod promises;
