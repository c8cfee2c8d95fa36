//! Binding a dim of a tensor again with `lookup`, and memory layouts.

use typed_dims::ndarray::{Array1, Array2, array};
use typed_dims::prelude::*;

dims! {
    /// Rows of a table.
    pub struct Word;
    /// Columns of a table.
    pub struct Width;
    /// Positions that are looked up.
    pub struct Token;
    /// The start of a window.
    pub struct Start;
    /// The start of a window along another dim.
    pub struct Left;
    /// Positions in a window.
    pub struct Lag;
}

fn table() -> Tensor<usize, (Word, Width)> {
    from_fn((Word.of(3), Width.of(2)), |(word, width)| 10 * word + width)
}

#[test]
fn words_are_looked_up_in_a_table() {
    let ids = from_vec(Token.of(4), vec![2, 0, 0, 1]);
    let found = table().lookup(Word, &ids).order((Token, Width));
    assert_eq!(found, array![[20, 21], [0, 1], [0, 1], [10, 11]]);

    let wrong = from_vec(Token.of(1), vec![3]);
    let table = table();
    let error = table.lookup(Word, &wrong).try_eval().unwrap_err().to_string();
    assert!(error.contains("index 3 of"), "{error}");
}

#[test]
fn all_integers_are_positions() {
    let table = table();
    macro_rules! check {
        ($($t:ty)*) => {$({
            let at: $t = 2;
            assert_eq!((&table).index(Word, at).order(Width), array![20, 21]);
            assert_eq!((&table).slice(Word, 1..at).order((Word, Width)), array![[10, 11]]);
            let a = array![[1, 2, 3], [4, 5, 6]];
            dims!(i);
            assert_eq!(a.at((i, at)).order(i), array![3, 6]);
        })*};
    }
    check!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize);
    assert_eq!((&table).index(Word, -3_i8).order(Width), array![0, 1]);
    let error = (&table).try_index(Word, u8::MAX).map(drop).unwrap_err().to_string();
    assert!(error.contains("index 255 of dim `Word`"), "{error}");
}

#[test]
fn a_dim_is_bound_again_like_an_axis() {
    let table = table();
    dims!(at, shift = 2);
    let pairs = table.lookup(Word, at + shift).order((at, shift, Width));
    assert_eq!(pairs, array![[[0, 1], [10, 11]], [[10, 11], [20, 21]]]);
    assert_eq!(table.lookup(Word, -1).order(Width), array![20usize, 21]);
    assert!(table.try_lookup(Word, 3).is_err());
}

#[test]
fn a_declared_dim_in_an_index_gets_the_greatest_size_that_fits() {
    let signal = from_vec(Token.of(6), vec![1, 2, 3, 4, 5, 6]);
    let sums = |lag: usize| signal.lookup(Token, Start + Lag.of(lag)).sum(Lag).order(Start);
    assert_eq!(sums(4), array![10, 14, 18]);
    assert_eq!(sums(6), array![21]);
    assert_eq!(sums(0).len(), 0);
    assert_eq!(sums(7).len(), 0);
    assert_eq!(signal.lookup(Token, 2 * Start + 1).order(Start), array![2, 4, 6]);
    assert_eq!(signal.lookup(Token, 5 - Start).order(Start), array![6, 5, 4, 3, 2, 1]);
    assert_eq!(signal.lookup(Token, Start + 2).rename(Start, Width).order(Width), array![3, 4, 5, 6]);
    // The other operand determines the size.
    let two = from_vec(Start.of(2), vec![1, 10]);
    assert_eq!((signal.lookup(Token, Start + 3) * &two).order(Start), array![4, 50]);
    assert_eq!((&two * signal.lookup(Token, Start + 3)).order(Start), array![4, 50]);
    let all = signal.lookup(Token, Start + Lag.of(2)) * from_vec(Start.of(6), vec![1; 6]);
    assert!(all.try_sum(Lag).unwrap_err().to_string().contains("index 6 of"));
    // A dim that two indices use gets the smaller of the two sizes.
    let shifted = signal.lookup(Token, Start + 2) - signal.lookup(Token, Start + 1);
    assert_eq!(shifted.order(Start), array![1, 1, 1, 1]);
    // It is an error if two dims have no size, if the index does not depend on the dim, or if a
    // window is more than one element longer than the signal.
    assert!(matches!(signal.lookup(Token, Start + Lag).try_eval(), Err(DimError::Unsized { .. })));
    assert!(matches!(signal.lookup(Token, 0 * Start).try_eval(), Err(DimError::Unsized { .. })));
    assert!(signal.lookup(Token, Start + Lag.of(9)).try_eval().is_err());
}

#[test]
fn a_dim_that_an_index_names_twice_has_one_size() {
    let signal = from_vec(Token.of(8), vec![0, 1, 2, 3, 4, 5, 6, 7]);
    let sum = signal.try_lookup(Token, Start.of(3) + Start.of(2)).map(|_| ()).unwrap_err();
    assert!(matches!(sum, DimError::SizeConflict { dim: "Start", first: 3, second: 2, .. }), "{sum}");
    let difference = signal.try_lookup(Token, 2 * Start.of(2) - Start.of(3)).map(|_| ()).unwrap_err();
    assert!(matches!(difference, DimError::SizeConflict { first: 2, second: 3, .. }), "{difference}");
    // If either has a size, the result is a view, so the dim can be bound again.
    assert_eq!(signal.lookup(Token, Start + Start.of(3)).lookup(Start, -1).order(()), 4);
    assert_eq!(signal.lookup(Token, Start.of(3) + Start).lookup(Start, -1).order(()), 4);
}

/// Where there are no elements, the steps between them may overflow.
#[test]
fn positions_in_empty_tensors() {
    const FAR: usize = 1 << (usize::BITS - 2);
    let none = Array1::<u8>::zeros(0);
    dims!(zero = 0, i = 3, j = FAR, k = 1);
    let x = none.at(((zero, i, j),));
    let one: Array1<u8> = x.lookup(i, -1).lookup(j, 5).order(zero);
    assert_eq!(one.len(), 0);
    let computed: Array2<u8> = x.lookup(i, k + 2).lookup(j, 5).order((zero, k));
    assert_eq!(computed.shape(), [0, 1]);
}

#[test]
fn windows_along_two_dims_one_after_the_other_are_views() {
    let x = from_fn((Word.of(4), Token.of(5)), |(word, token)| 10 * word + token);
    let tall = x.lookup(Word, Start.of(3) + Lag.of(2));
    let windows = tall.lookup(Token, Left.of(4) + Width.of(2));
    let (sums, plan) = explain(|| windows.sum((Lag, Width)).order((Start, Left)));
    assert_eq!(sums, Array2::from_shape_fn((3, 4), |(i, j)| 4 * (10 * i + j) + 22));
    assert_eq!(plan.steps.len(), 1, "{plan}");
    assert!(plan.to_string().contains("sum over 4 of view"), "{plan}");
    // A dim that replaced another can be bound again.
    let row = windows.lookup(Start, 1);
    assert_eq!(row.lookup(Left, -1).order((Lag, Width)), array![[13usize, 14], [23, 24]]);

    // If the sizes are unknown, each index is computed, with the same results.
    let tall = x.lookup(Word, Start + Lag.of(2));
    let windows = tall.lookup(Token, Left + Width.of(2));
    assert_eq!(windows.sum((Lag, Width)).order((Start, Left)), sums);
    let error = windows.try_lookup(Start, 1).map(|_| ()).unwrap_err().to_string();
    assert_eq!(error, "dim `Start` is in a computed index: `eval` the tensor before you bind it again");

    // A dim next to a computed index can be bound again.
    let ids = from_vec(Lag.of(2), vec![3, 0]);
    let picked = x.lookup(Word, &ids);
    assert_eq!(picked.lookup(Token, 2).order(Lag), array![32usize, 2]);
    let both = picked.lookup(Token, Left.of(2) + Width.of(2));
    assert_eq!(both.order((Lag, Left, Width)), array![[[30, 31], [31, 32]], [[0, 1], [1, 2]]]);
    let twice = picked.lookup(Token, &ids);
    assert_eq!(twice.order(Lag), array![33, 0]);
}

#[test]
fn a_tensor_is_the_same_however_it_lies() {
    let table = table();
    let turned = (&table).eval_in((Width, Word));
    assert_eq!(turned, table);
    // In the order of its layout, the array is returned without moving elements.
    let array = turned.order((Width, Word));
    assert_eq!(array.as_slice(), Some(&[0, 10, 20, 1, 11, 21][..]));
    assert_eq!((&table + 1).eval_in((Word, Width)).order((Word, Width)), array![[1, 2], [11, 12], [21, 22]]);
}
