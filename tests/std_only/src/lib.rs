//! Some of the library's tests with its feature `std` alone. `Cargo.toml` lists them.
