//! Macros for tuples: two call another macro for each length, and the others nest or fold types.

/// Like `each_tuple!`, but only up to a length of 12, for the inputs of functions.
macro_rules! each_tuple_of_inputs {
    ($each:ident) => {
        $each! { D0 0 }
        $each! { D0 0 D1 1 }
        $each! { D0 0 D1 1 D2 2 }
        $each! { D0 0 D1 1 D2 2 D3 3 }
        $each! { D0 0 D1 1 D2 2 D3 3 D4 4 }
        $each! { D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 }
        $each! { D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 }
        $each! { D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 }
        $each! { D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 }
        $each! { D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9 }
        $each! { D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9 D10 10 }
        $each! { D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9 D10 10 D11 11 }
    };
}

/// Calls a macro with the type parameters and positions of each tuple length from 1 to 26. For 2,
/// this is `each! { D0 0 D1 1 }`.
macro_rules! each_tuple {
    ($each:ident) => {
        $crate::types::tuples::each_tuple_of_inputs!($each);
        $each! { D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9 D10 10 D11 11 D12 12 }
        $each! { D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9 D10 10 D11 11 D12 12 D13 13 }
        $each! { D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9 D10 10 D11 11 D12 12 D13 13 D14 14 }
        $each! { D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9 D10 10 D11 11 D12 12 D13 13 D14 14 D15 15 }
        $each! { D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9 D10 10 D11 11 D12 12 D13 13 D14 14 D15 15 D16 16 }
        $each! { D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9 D10 10 D11 11 D12 12 D13 13 D14 14 D15 15 D16 16 D17 17 }
        $each! { D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9 D10 10 D11 11 D12 12 D13 13 D14 14 D15 15 D16 16 D17 17 D18 18 }
        $each! { D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9 D10 10 D11 11 D12 12 D13 13 D14 14 D15 15 D16 16 D17 17 D18 18 D19 19 }
        $each! { D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9 D10 10 D11 11 D12 12 D13 13 D14 14 D15 15 D16 16 D17 17 D18 18 D19 19 D20 20 }
        $each! { D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9 D10 10 D11 11 D12 12 D13 13 D14 14 D15 15 D16 16 D17 17 D18 18 D19 19 D20 20 D21 21 }
        $each! { D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9 D10 10 D11 11 D12 12 D13 13 D14 14 D15 15 D16 16 D17 17 D18 18 D19 19 D20 20 D21 21 D22 22 }
        $each! { D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9 D10 10 D11 11 D12 12 D13 13 D14 14 D15 15 D16 16 D17 17 D18 18 D19 19 D20 20 D21 21 D22 22 D23 23 }
        $each! { D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9 D10 10 D11 11 D12 12 D13 13 D14 14 D15 15 D16 16 D17 17 D18 18 D19 19 D20 20 D21 21 D22 22 D23 23 D24 24 }
        $each! { D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9 D10 10 D11 11 D12 12 D13 13 D14 14 D15 15 D16 16 D17 17 D18 18 D19 19 D20 20 D21 21 D22 22 D23 23 D24 24 D25 25 }
    };
}

/// Types as nested pairs: `nested![A, B]` is `(A, (B, ()))`; with `; Z` at the end, `Z` takes the
/// place of `()`.
macro_rules! nested {
    ($($t:ty),*) => { nested![$($t),*; ()] };
    (; $end:ty) => { $end };
    ($head:ty $(, $tail:ty)*; $end:ty) => { ($head, nested![$($tail),*; $end]) };
}

/// Applies an associated type of each parameter in turn: `fold![Succ; Zero; A B]` is
/// `B::Succ<A::Succ<Zero>>`.
macro_rules! fold {
    ($step:ident; $so_far:ty;) => { $so_far };
    ($step:ident; $so_far:ty; $head:ident $($tail:ident)*) => { fold![$step; $head::$step<$so_far>; $($tail)*] };
}

/// Like `fold!`, but from the last parameter to the first: `A::Before<B::Before<End>>`.
macro_rules! fold_back {
    ($step:ident; $end:ty;) => { $end };
    ($step:ident; $end:ty; $head:ident $($tail:ident)*) => { $head::$step<fold_back![$step; $end; $($tail)*]> };
}

pub(crate) use {each_tuple, each_tuple_of_inputs, fold, fold_back, nested};
