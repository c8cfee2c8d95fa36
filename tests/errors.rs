//! For a wrong size or index, the `try_` method returns a `DimError`, and the short method panics
//! with the same text. Unusual input gives an error or the right result.

use ndarray::{Array1, Array2, ArrayD, Axis, array};
use std::panic::{AssertUnwindSafe, catch_unwind};
use typed_dims::fallible::{try_concat, try_from_vec, try_stack};
use typed_dims::init::{try_he_normal, try_lecun_uniform, try_orthogonal, try_xavier_normal};
use typed_dims::prelude::*;

dims! {
    struct Row;
    struct Col;
    struct Key;
    struct Two = 2;
    struct Three = 3;
    struct Six = 6;
}

#[track_caller]
fn panic_of<T>(f: impl FnOnce() -> T) -> String {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(_) => panic!("there was no panic"),
        Err(payload) => payload
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| payload.downcast_ref::<&str>().map(ToString::to_string))
            .expect("the payload is a string"),
    }
}

/// Removes source locations, which differ between two calls.
fn without_places(text: &str) -> String {
    let mut parts = text.split(" (at ");
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |text, part| text + part.split_once(')').map_or(part, |(_, rest)| rest))
}

/// Checks that `$try` and `$short` fail with the same text, which is `$text` up to locations, and
/// that the error of `$try` matches `$pattern`.
macro_rules! assert_fails {
    ($try:expr, $short:expr, $pattern:pat, $text:expr) => {{
        let error = $try.map(|_| ()).expect_err("an error");
        assert!(matches!(error, $pattern), "{error:?}");
        assert_eq!(without_places(&error.to_string()), $text);
        assert_eq!(without_places(&panic_of(|| $short)), $text);
    }};
}

mod variants {
    use super::*;

    #[test]
    fn size_conflict() {
        let a = Array2::<f32>::zeros((2, 3));
        dims!(i = 2, j = 4);
        assert_fails!(
            a.try_at((i, j)),
            a.at((i, j)),
            DimError::SizeConflict { dim: "j", first: 4, second: 3, .. },
            "dim `j` has size 4, but was also given size 3"
        );
        // Sizes of two operands are compared when the expression runs. The error shows where each
        // size comes from.
        let x = array![1, 2, 3];
        let y = array![1, 2];
        assert_fails!(
            (x.at(Row) + y.at(Row)).try_order(Row),
            (x.at(Row) + y.at(Row)).order(Row),
            DimError::SizeConflict { dim: "Row", first: 3, second: 2, .. },
            "dim `Row` has size 3, but was also given size 2"
        );
        let error = (x.at(Row) + y.at(Row)).try_eval().unwrap_err().to_string();
        assert_eq!(error.matches(file!()).count(), 2, "{error}");
        // The diagonal of an array that is not square.
        assert!(matches!(a.try_at((Row, Row)), Err(DimError::SizeConflict { dim: "Row", .. })));
        dims!(d);
        assert!(matches!(a.try_at((d, d)), Err(DimError::SizeConflict { dim: "d", .. })));
    }

    /// Tensors that own their elements know where their sizes come from: constructors and
    /// operations record the user's line, with or without `try_`.
    #[test]
    fn size_conflicts_name_the_lines_of_both_tensors() {
        /// The locations in an error that are in this file.
        fn places(text: &str) -> Vec<&str> {
            let places = text.split(" (at ").skip(1).filter_map(|part| part.split_once(')'));
            places.map(|(place, _)| place).filter(|place| place.starts_with(file!())).collect()
        }
        let x = || ones::<f32, _>((Row.of(3), Col.of(2)));
        let second = zeros::<f32, _>(Row.of(7));
        let mut wrong = Vec::new();
        macro_rules! check {
            ($($make:expr;)*) => {$({
                let first = $make;
                let text = (&first + &second).try_order(Row).unwrap_err().to_string();
                if !matches!(places(&text)[..], [one, other] if one != other) {
                    wrong.push(format!("{}: {text}", stringify!($make)));
                }
                assert_eq!(panic_of(|| (&first + &second).order(Row)), text);
            })*};
        }
        check! {
            zeros::<f32, _>(Row.of(3));
            try_from_vec(Row.of(3), vec![1.0_f32; 3]).unwrap();
            from_fn(Row.of(3), |i| i as f32);
            randn::<f32, _>(Row.of(3), 1);
            array![1.0_f32, 2.0, 3.0].into_tensor(Row);
            array![1.0_f32, 2.0, 3.0].at(Row).eval();
            x().sum(Col);
            x().try_sum(Col).unwrap();
            x().max(Col);
            (x() * 2.0).eval().index(Col, 0).eval();
            (x() * x()).sum(Col);
            x().contract(&ones::<f32, _>(Col.of(2)), Col);
            x().softmax(Col).sum(Col);
            x().sort(Row).mean(Col);
            x().sort(Row).index(Col, 0);
            concat(Row, [zeros::<f32, _>(Row.of(1)), zeros(Row.of(2))]);
            try_concat(Row, [zeros::<f32, _>(Row.of(1)), zeros(Row.of(2))]).unwrap();
            stack(Row, [zeros::<f32, _>(()), zeros(())]);
            zeros::<f32, _>(Row.of(2)).pad(Row, 1, 0, Pad::Constant(0.0));
            zeros::<f32, _>(Row.of(3)).cumsum(Row);
            zeros::<f32, _>(Row.of(3)).flip(Row).eval();
            zeros::<f32, _>(Row.of(3)).roll(Row, 1);
            zeros::<f32, _>(Row.of(3)).dropout(0.5, 1);
            x().layer_norm(Col, 1e-5).sum(Col);
            x().median(Col);
            x().norm(Col);
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn every_operation_lets_its_operands_meet() {
        let (x, y) = (array![1.0, 2.0, 3.0], array![1.0, 2.0]);
        let sum = x.at(Row) + y.at(Row);
        assert!(sum.try_eval().is_err() && sum.try_order(Row).is_err() && sum.try_sum(Row).is_err());
        assert!((x.at(Row) * y.at(Row)).try_sum(Row).is_err());
        assert!((x.at(Row) * y.at(Row)).try_sum_into(Row, &mut ndarray::arr0(0.0), ()).is_err());
        assert!(sum.try_max(Row).is_err() && sum.try_softmax(Row).is_err() && sum.try_index(Row, 0).is_err());
        assert!(sum.try_slice(Row, ..1).is_err() && try_concat(Row, [sum]).is_err());
        assert!(try_stack(Col, [sum]).is_err());
        let mut out = Array1::zeros(3);
        assert!(sum.try_order_into(&mut out, Row).is_err());
        assert!(out.at_mut(Row).try_assign(sum).is_err());
        assert!(out.at_mut(Row).try_add_assign(y.at(Row)).is_err());
        assert_eq!(out, array![0.0, 0.0, 0.0]);
        assert!(sum.to_string().contains("`Row`"));
        assert!(sum != sum);
    }

    #[test]
    fn static_size() {
        let a = array![1, 2, 3, 4];
        assert_fails!(
            a.try_at(Three),
            a.at(Three),
            DimError::StaticSize { dim: "Three", fixed: 3, found: 4, .. },
            "dim `Three` has the static size 3, but was given size 4"
        );
        assert_fails!(
            vec![1].try_into_tensor(Two),
            vec![1].into_tensor(Two),
            DimError::StaticSize { dim: "Two", .. },
            "dim `Two` has the static size 2, but was given size 1"
        );
        assert!(panic_of(|| Two.of(3)).contains("`Two`"));
    }

    #[test]
    fn unsized_dims() {
        dims!(i, j);
        let a = array![1, 2, 3];
        assert_fails!(
            (i + 1).try_order(i),
            (i + 1).order(i),
            DimError::Unsized { dim: "i" },
            "the size of dim `i` is not known here: bind it to an axis first, or give it a size, `i.of(n)` if it is declared, \
             `dims!(i = n)` if it is local"
        );
        // rustc refuses a declared dim without a size where it is the only operand. After a rename,
        // rustc cannot tell, so the error comes at run time.
        assert!(panic_of(|| Row.rename(Row, Col).eval()).contains("give it a size, `Col.of(n)`"));
        assert!(matches!(Row.rename(Row, Col).try_order(Col), Err(DimError::Unsized { .. })));
        assert!(matches!(a.try_at(i + j), Err(DimError::Unsized { .. })));
        assert!(panic_of(|| i.size()).contains("`i`"));
        assert!(matches!(try_from_vec(j, vec![1]), Err(DimError::Unsized { dim: "j" })));
        assert!(panic_of(|| zeros::<f32, _>(j)).contains("`j`"));
    }

    #[test]
    fn out_of_bounds() {
        let a = array![1, 2, 3];
        let ids = array![0usize, 7];
        assert_fails!(
            a.at(ids.at(Row)).try_order(Row),
            a.at(ids.at(Row)).order(Row),
            DimError::OutOfBounds { index: 7, size: 3, .. },
            "index 7 of axis 0, computed from dim `Row`, is out of range for an axis of size 3"
        );
        assert_fails!(
            a.try_at(3),
            a.at(3),
            DimError::OutOfBounds { index: 3, size: 3, .. },
            "index 3 of axis 0 is out of range for an axis of size 3"
        );
        assert_fails!(
            a.at(Row).try_index(Row, -4),
            a.at(Row).index(Row, -4),
            DimError::OutOfBounds { index: -4, .. },
            "index -4 of dim `Row` is out of range for an axis of size 3"
        );
        let mut out = [0; 3];
        assert_fails!(
            out.at_mut(ids.at(Row)).try_assign(1),
            [0; 3].at_mut(ids.at(Row)).assign(1),
            DimError::OutOfBounds { index: 7, .. },
            "index 7 of axis 0, computed from dim `Row`, is out of range for an axis of size 3"
        );
    }

    #[test]
    fn lookups_name_the_dim() {
        let table = from_fn((Row.of(3), Col.of(2)), |(row, col)| 10 * row + col);
        let ids = array![0usize, 7];
        dims!(t, k = 4, i = 2, j);
        assert_fails!(
            table.try_lookup(Col, 5),
            table.lookup(Col, 5),
            DimError::OutOfBounds { index: 5, size: 2, .. },
            "index 5 of dim `Col` is out of range for an axis of size 2"
        );
        assert_fails!(
            table.lookup(Col, ids.at(Key)).try_order((Row, Key)),
            table.lookup(Col, ids.at(Key)).order((Row, Key)),
            DimError::OutOfBounds { index: 7, size: 2, .. },
            "index 7 of dim `Col`, computed from dim `Key`, is out of range for an axis of size 2"
        );
        assert_fails!(
            table.try_lookup(Col, t + k),
            table.lookup(Col, t + k),
            DimError::OutOfBounds { index: 3, size: 2, .. },
            "index 3 of dim `Col`, computed from dims `t`, `k`, is out of range for an axis of size 2"
        );
        assert_fails!(
            table.try_lookup(Row, UnitAxis),
            table.lookup(Row, UnitAxis),
            DimError::Shape { .. },
            "dim `Row` has size 3, but `UnitAxis` takes an axis of size 1"
        );
        assert_fails!(
            table.try_lookup(Row, ((i, j),)),
            table.lookup(Row, ((i, j),)),
            DimError::Split { dim: Some("Row"), size: 3, .. },
            "dim `Row` of size 3 cannot be split into `(i = 2, j)`: the product of the known sizes does not divide it"
        );
    }

    fn backwards(start: i32, end: i32) -> std::ops::Range<i32> {
        start..end
    }

    #[test]
    fn range_out_of_bounds() {
        let a = array![1, 2, 3];
        assert_fails!(
            a.try_at(1..4),
            a.at(1..4),
            DimError::RangeOutOfBounds { start: 1, end: 4, size: 3, .. },
            "the range 1..4 of axis 0 is out of range for an axis of size 3"
        );
        assert_fails!(
            a.at(Row).try_slice(Row, backwards(2, 1)),
            a.at(Row).slice(Row, backwards(2, 1)),
            DimError::RangeOutOfBounds { start: 2, end: 1, .. },
            "the range 2..1 of dim `Row` ends before it starts"
        );
        assert_fails!(
            a.at(Row).try_slice(Row, backwards(-1, -2)),
            a.at(Row).slice(Row, backwards(-1, -2)),
            DimError::RangeOutOfBounds { start: -1, end: -2, .. },
            "the range -1..-2 of dim `Row` ends before it starts"
        );
        assert_fails!(
            a.at(Row).try_slice(Row, backwards(2, -2)),
            a.at(Row).slice(Row, backwards(2, -2)),
            DimError::RangeOutOfBounds { start: 2, end: -2, .. },
            "the range 2..-2 of dim `Row` ends before it starts"
        );
        assert_fails!(
            a.at(Row).try_slice(Row, 5..),
            a.at(Row).slice(Row, 5..),
            DimError::RangeOutOfBounds { start: 5, end: 3, .. },
            "the range 5..3 of dim `Row` is out of range for an axis of size 3"
        );
        assert!(a.try_at(-4..).is_err());
        assert!(a.try_at(u64::MAX..).is_err());
        assert!(a.at(Row).try_slice(Row, ..=i64::MAX).is_err());
        assert!(a.at(Row).try_slice(Row, i64::MIN..).is_err());
    }

    #[test]
    fn split() {
        let a = Array1::<f32>::zeros(6);
        dims!(i = 4, j, k, zero = 0);
        assert_fails!(
            a.try_at(((i, j),)),
            a.at(((i, j),)),
            DimError::Split { size: 6, .. },
            "an axis of size 6 cannot be split into `(i = 4, j)`: the product of the known sizes does not divide it"
        );
        assert!(a.try_at(((j, k),)).unwrap_err().to_string().contains("more are unknown"));
        assert!(a.try_at(((i, i),)).unwrap_err().to_string().contains("the product of the sizes differs"));
        assert!(a.try_at(((zero, k),)).unwrap_err().to_string().contains("multiply to 0"));
        assert_fails!(
            a.at(Row).try_unflatten(Row, (i, k)),
            a.at(Row).unflatten(Row, (i, k)),
            DimError::Split { dim: Some("Row"), .. },
            "dim `Row` of size 6 cannot be split into `(i = 4, k)`: the product of the known sizes does not divide it"
        );
        dims!(big = usize::MAX / 2, bigger = usize::MAX / 2);
        assert!(matches!(a.try_at(((big, bigger),)), Err(DimError::Split { .. })));
    }

    #[test]
    fn rank() {
        let a = ArrayD::<f32>::zeros(vec![2, 3]);
        assert_fails!(
            a.try_at((Row, Col, Key)),
            a.at((Row, Col, Key)),
            DimError::Rank { found: 2, bound: 3 },
            "the array has 2 axes, but 3 were bound"
        );
        assert!(matches!(a.clone().try_into_tensor(Row), Err(DimError::Rank { found: 2, bound: 1 })));
        let line = ArrayD::<f32>::zeros(vec![2]);
        let error = line.try_at((Row, Col)).map(|_| ()).unwrap_err().to_string();
        assert_eq!(error, "the array has 1 axis, but 2 were bound");
        let mut out = ArrayD::<f32>::zeros(vec![2, 3]);
        assert!(matches!(array![1.0f32].at(Row).try_order_into(&mut out, Row), Err(DimError::Rank { .. })));
    }

    #[test]
    fn broadcast() {
        let (a, b) = (Array2::<i32>::zeros((2, 3)), Array2::<i32>::zeros((2, 4)));
        assert_fails!(
            (a.at((Row, ..)) + b.at((Row, ..))).try_order(Row),
            (a.at((Row, ..)) + b.at((Row, ..))).order(Row),
            DimError::Broadcast { axis: 0, first: 3, second: 4 },
            "positional axis 0 from the right has size 3 in one operand and 4 in another"
        );
        let mut out = Array2::<i32>::zeros((2, 1));
        assert!(matches!(out.at_mut((Row, ..)).try_assign(a.at((Row, ..))), Err(DimError::Broadcast { .. })));
    }

    #[test]
    fn length() {
        assert_fails!(
            try_from_vec((Row.of(2), Three), vec![1; 5]),
            from_vec((Row.of(2), Three), vec![1; 5]),
            DimError::Length { expected: 6, found: 5, .. },
            "a tensor with dims `Row` = 2, `Three` = 3 has 6 elements, but 5 were given"
        );
        let error = try_from_vec(Row.of(1), vec![1, 2]).map(|_| ()).unwrap_err().to_string();
        assert_eq!(error, "a tensor with dim `Row` = 1 has 1 element, but 2 were given");
    }

    #[test]
    fn empty_reduction() {
        let a = Array2::<f32>::zeros((2, 0));
        assert_fails!(
            a.at((Row, Col)).try_max(Col),
            a.at((Row, Col)).max(Col),
            DimError::EmptyReduction { op: "max", .. },
            "`max` over dim `Col` = 0 has no elements to choose from"
        );
        assert!(a.at((Row, Col)).try_argmin((Col, Row)).is_err());
        // An empty result needs no maximum.
        assert_eq!(a.at((Row, Col)).max(Row).order(Col), Array1::<f32>::zeros(0));
    }

    #[test]
    fn shape() {
        let x = array![1, 2, 3];
        let mut out = Array1::zeros(2);
        assert_fails!(
            x.at(Row).try_order_into(&mut out, Row),
            x.at(Row).order_into(&mut out, Row),
            DimError::Shape { .. },
            "dim `Row` = 3 does not fit into an array of shape [2]"
        );
        let y = array![[1, 2], [3, 4], [5, 6]];
        assert_fails!(
            (x.at(Row) * y.at((Row, Col))).try_sum_into(Col, &mut out, Row),
            (x.at(Row) * y.at((Row, Col))).sum_into(Col, &mut out, Row),
            DimError::Shape { .. },
            "dim `Row` = 3 does not fit into an array of shape [2]"
        );
        // Matrix products have their own check.
        let mut out = Array2::<i32>::zeros((2, 3));
        assert_fails!(
            (y.at((Row, Col)) * y.at((Key, Col))).try_sum_into(Col, &mut out, (Row, Key)),
            (y.at((Row, Col)) * y.at((Key, Col))).sum_into(Col, &mut out, (Row, Key)),
            DimError::Shape { .. },
            "dims `Row` = 3, `Key` = 3 do not fit into an array of shape [2, 3]"
        );
        let (a, b) = (Array2::<i32>::zeros((2, 3)), Array2::<i32>::zeros((2, 4)));
        let parts = || [a.at((Row, Col)), b.at((Row, Col))];
        assert_fails!(
            try_concat(Row, parts()),
            concat(Row, parts()),
            DimError::Shape { .. },
            "parts of a concatenation along `Row` differ: dims `Row` = 2, `Col` = 3 and dims `Row` = 2, `Col` = 4"
        );
        assert_fails!(
            try_stack(Key, parts()),
            stack(Key, parts()),
            DimError::Shape { .. },
            "parts of a stack along `Key` differ: dims `Row` = 2, `Col` = 3 and dims `Row` = 2, `Col` = 4"
        );
        let text = try_concat(Row, [a.at((Row, Col)), a.at((Row, Col)), b.at((Row, Col))])
            .err()
            .unwrap()
            .to_string();
        assert!(text.contains("differ: dims `Row` = 2, `Col` = 3 and dims"), "{text}");
        let none: [Tensor<i32, (Row,)>; 0] = [];
        assert!(matches!(try_concat(Row, &none), Err(DimError::Shape { .. })));
        assert!(matches!(try_stack(Col, &none), Err(DimError::Shape { .. })));
        assert!(panic_of(|| x.at(Row).split(Row, &[1, 1])).contains("`Row` of size 3"));
        assert!(panic_of(|| x.at(Row).split(Row, &[usize::MAX, 4])).contains("`Row` of size 3"));
    }
}

/// Sizes that overflow, or exceed any memory.
mod too_large {
    use super::*;

    /// A size whose square overflows: 2^40, or 2^20 on 32-bit machines.
    const BIG: usize = 1 << (usize::BITS * 5 / 8);

    #[test]
    fn results() {
        dims!(i = BIG, j = BIG);
        assert_fails!(
            (i + j).try_order((i, j)),
            (i + j).order((i, j)),
            DimError::TooLarge { .. },
            format!("a result with dims `i` = {BIG}, `j` = {BIG} does not fit into memory")
        );
        assert!(panic_of(|| zeros::<f32, _>((i, j))).contains("`i`"));
        assert!(panic_of(|| typed_dims::init::orthogonal::<f32, _, _, _>((i, j), i, 1)).contains("`i`"));
        assert!(panic_of(|| (i + j).len()).contains("`i`"));
        assert!(matches!((i + j).try_sum((i, j)), Err(DimError::TooLarge { .. })));
        assert!(matches!((i + j).try_flatten((i, j), Key), Err(DimError::TooLarge { .. })));
        assert!(matches!((i + j).try_order(((i, j),)), Err(DimError::TooLarge { .. })));
    }

    /// A size that does not overflow but cannot be allocated: the error still names the dims.
    #[cfg(target_pointer_width = "64")]
    #[test]
    fn memory() {
        dims!(i = 1 << 57, j = 2);
        let text = format!("a result with dims `i` = {}, `j` = 2 does not fit into memory", 1usize << 57);
        assert_eq!((i + j).try_order((i, j)).unwrap_err().to_string(), text);
        assert_eq!((i + j).try_eval().unwrap_err().to_string(), text);
        assert_eq!(panic_of(|| zeros::<f64, _>((i, j))), text);
        let reduced = format!("a result with dim `i` = {} does not fit into memory", 1usize << 57);
        assert_eq!((i + j).try_sum(j).unwrap_err().to_string(), reduced);
    }

    /// No elements, but sizes whose product overflows. ndarray refuses such shapes, and so do we.
    #[test]
    fn without_elements() {
        dims!(none = 0, i = BIG, j = BIG);
        let text =
            format!("a result with dims `none` = 0, `i` = {BIG}, `j` = {BIG} does not fit into memory");
        assert_eq!((none + i + j).try_order((none, i, j)).unwrap_err().to_string(), text);
        assert_eq!(panic_of(|| zeros::<f32, _>((none, i, j))), text);
        assert_eq!(panic_of(|| from_fn((none, i, j), |_| 0)), text);
        assert_eq!(try_from_vec((none, i, j), vec![0; 0]).unwrap_err().to_string(), text);
        let t = none + i + j;
        assert!(t.try_eval().is_err() && t.try_sum((i, j)).is_err());
        let t = (none + i + j).cast::<f64>();
        assert!(
            (&t).try_softmax(none).is_err() && (&t).try_log_softmax(i).is_err() && t.try_cumsum(j).is_err()
        );
    }

    /// Empty loops take no time, however long the loops around them are.
    #[test]
    fn loops_without_elements() {
        dims!(none = 0, i = BIG);
        assert_eq!((none + i).sum(i).order(none).len(), 0);
        assert_eq!((none + i).sum((i, none)).order(()), 0);
        assert_eq!((none + i).sum((none, i)).order(()), 0);
        assert_eq!((none + i).order((i, none)).shape(), [BIG, 0]);
        assert_eq!((none + i).order(((i, none),)).shape(), [0]);
        assert!(matches!((none + i).try_max(none), Err(DimError::EmptyReduction { op: "max", .. })));
    }

    #[test]
    fn scans_without_elements() {
        dims!(none = 0, i = BIG);
        let t = zeros::<f32, _>((none, i));
        assert_eq!((&t).softmax(none).size(i), BIG);
        assert!((&t).log_softmax(none).is_empty());
        assert!((&t).cumsum(i).is_empty());
    }

    #[test]
    fn joined() {
        dims!(none = 0, i = isize::MAX as usize);
        let t = zeros::<u8, _>((none, i));
        assert!(matches!(try_concat(i, [&t, &t, &t]), Err(DimError::TooLarge { .. })));
    }

    /// The greatest `usize` is a size like any other.
    #[test]
    fn along_a_dim_of_the_greatest_size() {
        let expected = format!("a result with dim `Col` = {} does not fit into memory", usize::MAX);
        let error = ones::<f32, _>(Row.of(2)).expand(Col.of(usize::MAX)).try_eval().unwrap_err();
        assert_eq!(error.to_string(), expected);
        let error = Col.of(usize::MAX).cast::<f32>().try_eval().unwrap_err();
        assert_eq!(error.to_string(), expected);
        dims!(i = usize::MAX);
        let error = ones::<f32, _>(Row.of(2)).expand(i).try_eval().unwrap_err();
        assert!(matches!(error, DimError::TooLarge { .. }), "{error}");
        let error = array![1.0].try_at(i).unwrap_err();
        assert!(
            matches!(error, DimError::SizeConflict { dim: "i", first: usize::MAX, second: 1, .. }),
            "{error}"
        );
    }

    #[test]
    fn indices() {
        let a = array![1, 2, 3];
        dims!(i = usize::MAX - 1, j = usize::MAX - 1);
        let error = a.at(i * isize::MIN + j * isize::MIN).try_order((i, j)).unwrap_err();
        assert!(matches!(error, DimError::TooLarge { .. }), "{error}");
        let error = a.at(i * isize::MAX).index(i, 1).try_order(()).unwrap_err();
        assert!(matches!(error, DimError::OutOfBounds { size: 3, .. }), "{error}");
        let picked = a.at(i * isize::MIN + j * isize::MIN).index(i, 1).index(j, 1).try_order(());
        assert!(picked.is_ok_and(|value| value == 1), "the index wraps around to 0");
    }
}

/// An error ends an operation before anything else can fail.
mod order_of_events {
    use super::*;

    #[test]
    fn an_index_out_of_range_is_reported_before_a_division_by_zero() {
        let (w, ids) = (array![2, 5], array![7u8, 8, 9]);
        let gathered = w.at(ids.at(Row));
        assert!(matches!((10i32 / &gathered).try_order(Row), Err(DimError::OutOfBounds { index: 7, .. })));
        assert!(matches!((10i32 / &gathered).try_sum(Row), Err(DimError::OutOfBounds { index: 7, .. })));
        let wide = Array2::<i32>::zeros((3, 9));
        let across = (10i32 / &gathered) + wide.at((Row, Col));
        assert!(matches!(across.try_max(Row), Err(DimError::OutOfBounds { index: 7, .. })));
    }

    #[test]
    fn a_scatter_ends_at_an_index_out_of_range() {
        let mut out = [0; 3];
        assert!(out.at_mut([1usize, 5, 2].at(Row)).try_add_assign(1).is_err());
        assert!(out[0] == 0 && out[2] == 0, "{out:?}");
    }

    #[test]
    fn a_scatter_says_where_it_was_called() {
        let (x, ids) = (from_vec(Row.of(2), vec![1.0, 2.0]), array![0usize, 5]);
        let (added, line) = (x.view().try_scatter_add(Row, Col.of(3), ids.at(Row)).map(drop), line!());
        let place =
            format!("index 5 of dim `Col` is out of range for an axis of size 3 (at {}:{line}", file!());
        let error = added.expect_err("an error").to_string();
        assert!(error.starts_with(&place), "{error}");
        let (written, line) = (x.try_scatter(Row, Col.of(3), ids.at(Row), 0.0).map(drop), line!());
        let error = written.expect_err("an error").to_string();
        assert!(error.contains(&format!("(at {}:{line}", file!())), "{error}");
    }
}

/// Restructuring is refused if the sizes of the result do not match its dims.
mod restructured {
    use super::*;

    #[test]
    fn other_sizes() {
        let t = zeros::<f32, _>((Row.of(2), Col.of(3)));
        dims!(k = 7);
        assert!(matches!((&t).try_flatten((Row, Col), k), Err(DimError::SizeConflict { dim: "k", .. })));
        assert!(matches!((&t).try_rename(Row, k), Err(DimError::SizeConflict { dim: "k", .. })));
        assert!(matches!((&t).try_rename(Row, Three), Err(DimError::StaticSize { dim: "Three", .. })));
        assert!(matches!((&t).try_flatten((Col, Row), Three), Err(DimError::StaticSize { .. })));
        assert!((&t).try_flatten((Col, Row), Six).is_ok());
    }
}

mod degenerate {
    use super::*;

    #[test]
    fn rank_0() {
        let a = ndarray::arr0(3.0);
        let t = a.at(());
        assert_eq!((t * t).sum(()).order(()), 9.0);
        assert_eq!((t.max(()).order(()), t.argmax(()).order(()), t.mean(()).order(())), (3.0, 0, 3.0));
        assert_eq!((t.len(), t.dims().len()), (1, 0));
        assert_eq!((t + 1.0).eval().to_string(), "4\nwith dims ()");
        let mut out = ndarray::arr0(0.0);
        t.order_into(&mut out, ());
        out.at_mut(()).add_assign(t);
        assert_eq!(out, ndarray::arr0(6.0));
    }

    #[test]
    fn no_elements() {
        let a = Array2::<f32>::zeros((0, 3));
        let t = || a.at((Row, Col));
        assert_eq!(t().sum(Row).order(Col), array![0., 0., 0.]);
        assert_eq!(t().prod(Row).order(Col), array![1., 1., 1.]);
        assert!(t().mean(Row).order(Col).iter().all(|x| x.is_nan()));
        assert!(t().var(Row).order(Col).iter().all(|x| x.is_nan()));
        assert_eq!(
            t().logsumexp(Row).order(Col),
            array![f32::NEG_INFINITY, f32::NEG_INFINITY, f32::NEG_INFINITY]
        );
        assert_eq!(t().softmax(Row).order((Col, Row)).shape(), [3, 0]);
        assert_eq!(t().order(((Row, Col),)).shape(), [0]);
        assert_eq!((t() * t().rename(Col, Key)).sum(Row).order((Key, Col)), Array2::<f32>::zeros((3, 3)));
        assert_eq!(t().to_string(), "[[]]\nwith dims (Row: 0, Col: 3)");
        let ids = Array1::<usize>::zeros(0);
        assert_eq!(array![1, 2].at(ids.at(Row)).order(Row).len(), 0);
        let empty = Array1::<i32>::zeros(0);
        dims!(i);
        assert_eq!(empty.at(2 * i).order(i).len(), 0);
        dims!(j = 0);
        assert_eq!(empty.at(empty.len() as isize - 1 - j).order(j).len(), 0);
    }

    #[test]
    fn broadcast_views_of_any_size() {
        const WIDE: usize = 1 << (usize::BITS / 2 - 2);
        let one = ndarray::arr0(1u64);
        let x = one.broadcast((WIDE, WIDE)).expect("the element repeats");
        dims!(i, j);
        let t = x.at((i, j));
        assert_eq!(t.index(i, -1).index(j, 5).order(()), 1);
        assert!(t.try_order((i, j)).is_err());
        let y = x.slice_axis(Axis(0), (0..0).into());
        dims!(k);
        assert_eq!(y.at((k, j)).sum(j).order(k).len(), 0);
    }

    #[test]
    fn a_window_that_does_not_fit_is_an_error_and_one_that_just_does_not_is_empty() {
        let x = array![1, 2, 3];
        dims!(t, k = 5);
        let error = x.try_at(t + k).map(|_| ()).unwrap_err().to_string();
        assert!(
            error.starts_with(
                "index 4 of axis 0, computed from dims `t`, `k`, is out of range for an axis of size 3"
            ),
            "{error}"
        );
        dims!(t, k = 4);
        assert_eq!(x.at(t + k).order((t, k)).shape(), [0, 4]);
        dims!(t);
        assert_eq!(x.at(t + 3).order(t).len(), 0);
        dims!(t);
        let error = x.try_at(t - 1).map(|_| ()).unwrap_err().to_string();
        assert!(
            error.starts_with(
                "index -1 of axis 0, computed from dim `t`, is out of range for an axis of size 3"
            ),
            "{error}"
        );
        dims!(t);
        assert!(x.try_at(t + 4).is_err());
        dims!(t);
        assert!(x.try_at(3 - t).is_err());
    }
}

/// A size that comes with a dim, `Col.of(7)`, is compared with the size of that dim in each
/// operand, or with its new size if the operation changes it.
#[test]
fn sizes_that_are_said() {
    let dims = (Row.of(2), Col.of(3));
    let x = from_fn(dims, |(row, col)| (3 * row + col) as f32);
    assert_eq!(x.sum(Col.of(3)).order(Row.of(2)), array![3.0, 12.0]);
    let y = ones::<f32, _>((Col.of(3), Key.of(4)));
    let mut out = Array2::zeros((2, 3));
    let seven = Col.of(7);
    let errors = [
        ("sum", x.try_sum(seven).err()),
        ("sum of several", x.try_sum((Row, seven)).err()),
        ("max", x.try_max(seven).err()),
        ("var_with", x.try_var_with(seven, 1.0).err()),
        ("softmax", (&x).try_softmax(seven).err()),
        ("cumsum", (&x).try_cumsum(seven).err()),
        ("cumprod", (&x).try_cumprod(seven).err()),
        ("contraction", (&x * &y).try_sum(seven).err()),
        ("sum_into", (&x).try_sum_into(seven, &mut array![0.0, 0.0], Row).err()),
        ("order of sum_into", (&x).try_sum_into(Row, &mut array![0.0, 0.0, 0.0], seven).err()),
        ("dot", x.try_dot(&y, seven).err()),
        ("norm_p", x.try_norm_p(seven, 2.0).err()),
        ("layer_norm", (&x).try_layer_norm(seven, 1e-5).err()),
        ("layer_norm_affine", (&x).try_layer_norm_affine(seven, 1e-5, 1.0, 0.0).err()),
        ("order", (&x).try_order((Row, seven)).err()),
        ("order of a group", (&x).try_order(((Row, seven),)).err()),
        ("order_into", (&x).try_order_into(&mut out, (Row, seven)).err()),
        ("eval_in", (&x).try_eval_in((seven, Row)).err()),
        ("laid", (&x).try_laid((Row, seven)).err()),
        ("stream", (&x).try_stream((Row, Col), seven).err()),
        ("rename", (&x).try_rename(seven, Key).err()),
        ("diagonal", (&x).try_diagonal(Row, seven, 0).err()),
        ("trace", x.try_trace(Row, seven).err()),
        ("index", (&x).try_index(seven, 0).err()),
        ("split", (&x).try_split(seven, &[3, 4]).err()),
        ("chunk", (&x).try_chunk(seven, 7).err()),
        ("flip", (&x).try_flip(seven).err()),
        ("sort", (&x).try_sort(seven).err()),
        ("median", x.try_median(seven).err()),
        ("flatten", (&x).try_flatten((Row, seven), Key).err()),
        ("unflatten", (&x).try_unflatten(seven, (Key.of(7), Two)).err()),
        ("he_normal", try_he_normal::<f32, _, _, _>(dims, seven, 1).err()),
        ("lecun_uniform", try_lecun_uniform::<f32, _, _, _>(dims, (Row, seven), 1).err()),
        ("fan-in of xavier_normal", try_xavier_normal::<f32, _, _, _, _, _>(dims, seven, Row, 1).err()),
        ("fan-out of xavier_normal", try_xavier_normal::<f32, _, _, _, _, _>(dims, Row, seven, 1).err()),
        ("orthogonal", try_orthogonal::<f32, _, _, _>(dims, seven, 1).err()),
    ];
    for (operation, error) in errors {
        let text = error.unwrap_or_else(|| panic!("{operation}: no error")).to_string();
        assert_eq!(text.matches(" (at tests/errors.rs:").count(), 2, "{operation}: {text}");
        let text = without_places(&text);
        assert_eq!(text, "dim `Col` has size 3, but was also given size 7", "{operation}");
    }
    // Where an operation changes the size, the new size is given.
    let windows = array![[1, 2, 3], [10, 20, 30]];
    let windows = windows.at((Row, Key));
    assert_eq!(windows.fold(Row.of(5), Key.of(3), 5, 2, 1).order(Row), array![1, 2, 13, 20, 30]);
    let text = without_places(&windows.try_fold(Row.of(2), Key, 5, 2, 1).err().unwrap().to_string());
    assert_eq!(text, "dim `Row` has size 2, but was also given size 5");
    let (least, positions) = (&x).topk_smallest(Col.of(2), 2);
    assert_eq!(
        (least.order((Row, Col)), positions.order((Row, Col))),
        (array![[0.0, 1.0], [3.0, 4.0]], array![[0, 1], [0, 1]])
    );
    // A diagonal may be shorter than the dim of its rows.
    assert_eq!(x.trace(Col.of(3), Row.of(2)).order(()), 4.0);
    // Methods without a `try_` form panic with the same text.
    assert_eq!(
        without_places(&panic_of(|| x.size(seven))),
        "dim `Col` has size 3, but was also given size 7"
    );
    // A new name, and a dim whose size changes: the given size is the new one.
    for error in [
        (&x).try_rename(Col, Key.of(7)).err(),
        (&x).try_slice(Col.of(7), 1..).err(),
        (&x).try_repeat(Col.of(7), 2).err(),
        try_concat(Col.of(7), [&x, &x]).err(),
    ] {
        let text = without_places(&error.unwrap().to_string());
        assert!(text.contains("has size 7, but was also given size"), "{text}");
    }
    assert_eq!(concat(Col.of(6), [&x, &x]).size(Col), 6);
    // An axis of an array.
    let error = array![1.0, 2.0].try_at(Row.of(7)).map(|_| ()).unwrap_err().to_string();
    assert_eq!(without_places(&error), "dim `Row` has size 7, but was also given size 2");
}

/// The stride of an axis with one element can be any number.
#[test]
fn strides_that_cannot_be_added() {
    let data = [7.0, 8.0];
    let far = isize::MAX as usize;
    let one = ndarray::ArrayView2::from_shape(ndarray::ShapeBuilder::strides((1, 1), (far, far)), &data[..]);
    let one = one.expect("the element is in the data");
    dims!(i, j);
    let diagonal = one.try_at((i, i)).expect("an array of one element has a diagonal");
    assert_eq!(diagonal.order(i), array![7.0]);
    assert_eq!((one.at((i, j)) + 1.0).order((i, j)), array![[8.0]]);
}

/// Tensors can be captured by `catch_unwind`, like the arrays of ndarray.
#[test]
fn a_panic_does_not_change_what_clones_share() {
    let x = ones::<f32, _>((Row.of(2), Col.of(3)));
    let clone = x.clone();
    let panic = catch_unwind(move || {
        let mut clone = clone;
        clone += 6.0;
        clone.index(Row, 2).eval()
    });
    assert!(panic.is_err());
    let view = x.view();
    assert_eq!(catch_unwind(|| (view * 2.0).sum((Row, Col)).order(())).expect("no panic"), 12.0);
    assert_eq!(catch_unwind(move || x.sum((Row, Col)).order(())).expect("no panic"), 6.0);
}
