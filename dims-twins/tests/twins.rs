//! Tests `#[panicking_twin]` with functions of several kinds.

use std::fmt;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use typed_dims_twins::panicking_twin;

/// Stands in for the module `error` of `typed-dims-core`.
mod error {
    #[track_caller]
    pub fn unwrap<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
        result.unwrap_or_else(|error| panic!("{error}"))
    }
}

#[derive(Debug, PartialEq)]
struct TooSmall(i32);

impl fmt::Display for TooSmall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is too small", self.0)
    }
}

/// The value.
///
/// # Errors
///
/// If it is negative.
#[panicking_twin]
fn try_positive(value: i32) -> Result<i32, TooSmall> {
    if value < 0 { Err(TooSmall(value)) } else { Ok(value) }
}

/// With generics that have arrows, a tuple with a comma, and a mutable parameter.
#[panicking_twin("so is a negative one")]
fn try_mapped<F: FnMut(i32) -> Result<(i32, T), TooSmall>, T>(
    values: &[i32],
    mut f: F,
) -> Result<Vec<(i32, T)>, TooSmall>
where
    T: Clone,
{
    values.iter().map(|&value| f(value)).collect()
}

/// The location of the call.
#[panicking_twin]
fn try_caller() -> Result<&'static Location<'static>, TooSmall> {
    Ok(Location::caller())
}

trait Counter: Sized {
    /// Adds to the count.
    #[panicking_twin(but = "less than nothing is an error")]
    fn try_count(&mut self, by: i32) -> Result<(), TooSmall>;

    /// Adds to the count, and returns `self`.
    #[panicking_twin]
    fn try_counted(mut self, by: i32) -> Result<Self, TooSmall> {
        self.try_count(by)?;
        Ok(self)
    }
}

struct Count(i32);

impl Counter for Count {
    fn try_count(&mut self, by: i32) -> Result<(), TooSmall> {
        self.0 += try_positive(by)?;
        Ok(())
    }
}

impl Count {
    /// Creates a count from a number.
    #[panicking_twin]
    fn try_new(start: i32) -> Result<Self, TooSmall> {
        try_positive(start).map(Count)
    }
}

macro_rules! plus {
    ($($(#[$doc:meta])* $try_name:ident($this:ident) [$($bound:tt)*] $out:ty, $plus:expr;)*) => {$(
        $(#[$doc])*
        #[panicking_twin]
        fn $try_name<T: $($bound)*>($this, more: T) -> Result<$out, TooSmall> {
            $this.try_counted(more.into() + $plus)
        }
    )*};
}

impl Count {
    plus! {
        /// Adds a number and 1 to the count.
        try_plus_one(self) [Into<i32>] Count, 1;
    }
}

/// The text of a panic.
fn panic_of<T>(f: impl FnOnce() -> T) -> String {
    let Err(panic) = catch_unwind(AssertUnwindSafe(f)) else { panic!("there was no panic") };
    *panic.downcast::<String>().expect("the message is text")
}

#[test]
fn the_twin_returns_the_value() {
    assert_eq!(positive(3), 3);
    assert_eq!(mapped(&[1, 2], |value| Ok((value, "x"))), [(1, "x"), (2, "x")]);
    let mut count = Count::new(1).plus_one(2).counted(10);
    count.count(100);
    assert_eq!(count.0, 114);
}

#[test]
fn the_twin_panics_with_the_text_of_the_error() {
    assert_eq!(try_positive(-1), Err(TooSmall(-1)));
    assert_eq!(panic_of(|| positive(-1)), "-1 is too small");
    assert_eq!(panic_of(|| mapped(&[-2], |value| Ok((positive(value), ())))), "-2 is too small");
    assert_eq!(panic_of(|| Count::new(-3)), "-3 is too small");
    assert_eq!(panic_of(|| Count(0).count(-4)), "-4 is too small");
    assert_eq!(panic_of(|| Count(0).counted(-5)), "-5 is too small");
    assert_eq!(panic_of(|| Count(0).plus_one(-6)), "-5 is too small");
}

#[test]
fn both_know_their_caller() {
    let here = |place: &Location<'_>| (place.file().to_owned(), place.line());
    assert_eq!(here(caller()), (file!().to_owned(), line!()));
    assert_eq!(here(try_caller().unwrap()), (file!().to_owned(), line!()));
}
