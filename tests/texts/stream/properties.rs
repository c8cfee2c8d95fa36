//! Random chains of operations have the same results as ndarray's operations.

use super::*;
use proptest::prelude::*;
use typed_dims::ndarray::{Array1, ArrayD, Axis, concatenate};

#[derive(Clone, Debug)]
enum Op {
    Slice(usize, usize, usize),
    Repeat(usize, usize),
    Joined(usize),
    Scaled,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        (0..3usize, 0..3usize, 0..3usize).prop_map(|(axis, start, len)| Op::Slice(axis, start, len)),
        (0..3usize, 0..3usize).prop_map(|(axis, times)| Op::Repeat(axis, times)),
        (0..3usize).prop_map(Op::Joined),
        Just(Op::Scaled),
    ]
}

type Abc = Stream<i64, (A, B, C), B>;

fn stream_does(x: &Abc, op: &Op) -> Abc {
    match *op {
        Op::Slice(axis, start, len) => {
            let size = x.sizes()[axis];
            let (start, end) = (start.min(size), (start + len).min(size));
            match axis {
                0 => x.slice(A, start..end),
                1 => x.slice(B, start..end),
                _ => x.slice(C, start..end),
            }
        }
        Op::Repeat(0, times) => x.repeat(A, times),
        Op::Repeat(1, times) => x.repeat(B, times),
        Op::Repeat(_, times) => x.repeat(C, times),
        Op::Joined(0) => Stream::concat(A, [x, x]),
        Op::Joined(1) => Stream::concat(B, [x, x]),
        Op::Joined(_) => Stream::concat(C, [x, x]),
        Op::Scaled => x * 3 + x,
    }
}

fn array_does(x: &ArrayD<i64>, op: &Op) -> ArrayD<i64> {
    match *op {
        Op::Slice(axis, start, len) => {
            let size = x.len_of(Axis(axis));
            let range = start.min(size)..(start + len).min(size);
            x.slice_axis(Axis(axis), range.into()).to_owned()
        }
        Op::Repeat(axis, 0) => x.slice_axis(Axis(axis), (0..0).into()).to_owned(),
        Op::Repeat(axis, times) => concatenate(Axis(axis), &vec![x.view(); times]).unwrap(),
        Op::Joined(axis) => concatenate(Axis(axis), &[x.view(), x.view()]).unwrap(),
        Op::Scaled => x * 4,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn chains(sizes in [0..4usize, 0..4usize, 0..4usize], ops in proptest::collection::vec(op(), 0..5)) {
        let mut count = 0;
        let mut array = ArrayD::from_shape_simple_fn(sizes.to_vec(), || { count += 7; count % 23 - 11 });
        let typed = array.clone().into_dimensionality::<typed_dims::ndarray::Ix3>().unwrap();
        let mut x = typed.into_tensor((A, B, C)).stream((A, B, C), B);
        for op in &ops {
            x = stream_does(&x, op);
            array = array_does(&array, op);
        }
        prop_assert_eq!(x.to_array().into_dyn(), array.clone());
        prop_assert_eq!(x.as_tensor().order((A, B, C)).into_dyn(), array.clone());

        let [a, b, c] = [0, 1, 2].map(|axis| array.len_of(Axis(axis)));
        prop_assert_eq!(x.sum(C).to_array().into_dyn(), array.sum_axis(Axis(2)));
        prop_assert_eq!(x.sum_keepdim(B, One).to_array().into_dyn(), array.sum_axis(Axis(1)).insert_axis(Axis(1)));
        let merged = array.to_shape((a * b, c)).unwrap().to_owned();
        prop_assert_eq!(x.flatten((A, B), AB).to_array(), merged.clone());
        prop_assert_eq!(x.reshape((AB.of(a * b), C)).to_array(), merged);
        let back = x.flatten((A, B), AB).unflatten(AB, (A.of(a), B.of(b)));
        prop_assert_eq!(back.to_array(), x.to_array());

        // out[a, i, c] = sum over b of weight[b, i] * x[a, b, c]
        let weight = Array1::from_iter(0..b * 2).into_shape_with_order((b, 2)).unwrap().mapv(|w| w as i64 - 2);
        let expected = Array3::from_shape_fn((a, 2, c), |(a, i, c)| (0..b).map(|b| weight[[b, i]] * array[[a, b, c]]).sum::<i64>());
        prop_assert_eq!(x.contract(weight.at((B, I)), B).to_array(), expected.clone());
        // The same contraction, with a weight that is a stream along I.
        let weight = weight.at((B, I)).stream((I, B), I);
        prop_assert_eq!(x.allow_dynamic_weights().contract(&weight, B).to_array(), expected);
    }
}
