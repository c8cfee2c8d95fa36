//! A dim of a tensor bound anew, and how a tensor lies in memory.

use typed_dims::ndarray::array;
use typed_dims::prelude::*;

dims! {
    /// Rows of a table.
    pub struct Word;
    /// Its columns.
    pub struct Width;
    /// What is looked up.
    pub struct Token;
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
fn a_dim_is_bound_anew_as_an_axis_would_be() {
    let table = table();
    dims!(at, shift = 2);
    let pairs = table.lookup(Word, at + shift).order((at, shift, Width));
    assert_eq!(pairs, array![[[0, 1], [10, 11]], [[10, 11], [20, 21]]]);
    assert_eq!(table.lookup(Word, -1).order(Width), array![20usize, 21]);
    assert!(table.try_lookup(Word, 3).is_err());
}

#[test]
fn a_tensor_is_the_same_however_it_lies() {
    let table = table();
    let turned = (&table).eval_in((Width, Word));
    assert_eq!(turned, table);
    // Taken out along its own layout, nothing is moved.
    let array = turned.order((Width, Word));
    assert_eq!(array.as_slice(), Some(&[0, 10, 20, 1, 11, 21][..]));
    assert_eq!((&table + 1).eval_in((Word, Width)).order((Word, Width)), array![[1, 2], [11, 12], [21, 22]]);
}
