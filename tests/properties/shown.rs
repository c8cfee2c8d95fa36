//! `Display` and `Debug`.

use crate::reference::input::{Case, cases};
use crate::{A, B, C, bound, inputs, properties};
use typed_dims::prelude::*;

/// Elements are shown as in ndarray, in the sorted order of the dims, with the dims and their sizes
/// below.
fn shown(case: &Case) {
    let mut random = case.random();
    inputs!(case, random, i32; x[C A B] => refs);
    let elements = refs[0].order(&[&["A"], &["B"], &["C"]]);
    let dims = format!("with dims (A: {}, B: {}, C: {})", case.size("A"), case.size("B"), case.size("C"));
    assert_eq!(bound!(x[C A B]).to_string(), format!("{elements}\n{dims}"));
    assert_eq!(format!("{:?}", bound!(x[C A B])), format!("{elements}\n{dims}"));
    assert_eq!(format!("{:>4}", bound!(x[C A B]).eval()), format!("{elements:>4}\n{dims}"));
    let positional = x.view::<ndarray::Ix3>().at((C, .., B)).to_string();
    let dims = format!("with dims (B: {}, C: {}, ..: {})", case.size("B"), case.size("C"), case.size("A"));
    assert_eq!(positional, format!("{}\n{dims}", refs[0].order(&[&["B"], &["C"], &["A"]])));
}

properties! {
    tensors_as_text 40: |case in cases(3), _which| shown(&case);
}

#[test]
fn debug_shows_elements_as_debug() {
    dims!(i);
    assert_eq!(format!("{:?}", [1.0, f32::NAN].at(i)), "[1.0, NaN]\nwith dims (i: 2)");
    assert_eq!(format!("{:?}", ['a'].at(A)), "['a']\nwith dims (A: 1)");
    assert_eq!(format!("{:?}", [1].at(B).sum(B)), "1\nwith dims ()");
    assert_eq!(format!("{i:?} {C:?}"), "i = 2 C");
}

#[test]
fn what_cannot_be_evaluated_says_why() {
    dims!(i = 3);
    let text = [1, 2].at(i + 1).to_string();
    assert!(text.contains("index 2") && text.contains("`i`"), "{text}");
}
