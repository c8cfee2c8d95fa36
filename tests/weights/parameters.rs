//! `#[derive(Parameters)]`: visits the tensors of a value by name. `ui-tests/fail/parameters` has
//! programs that must not compile.

use core::marker::PhantomData;
use typed_dims::grad::parameters::{Mismatch, Path, Segment, Walk, is_learned};
use typed_dims::nn::Linear;
use typed_dims::prelude::*;
use typed_dims::types::rank::Rank;
use typed_dims::types::scalar::Element;

dims! {
    struct Token;
    struct In;
    struct Hidden;
    struct Out;
    struct Pair = 2;
}

#[derive(Parameters)]
struct Layer<I: AnyDim + Before<O>, O: AnyDim + After<I>> {
    weight: Tensor<f32, (I, O)>,
    bias: Option<Tensor<f32, (O,)>>,
}

#[derive(Parameters)]
struct Scale(Tensor<f32, (Hidden,)>, #[parameters(constant)] f32);

#[derive(Parameters)]
struct Nothing;

#[derive(Clone, Debug, PartialEq)]
struct Label(&'static str);

#[derive(Parameters)]
struct Network {
    up: Layer<In, Hidden>,
    scales: Vec<Scale>,
    gates: [Tensor<f32, (Hidden,)>; 2],
    down: Box<Layer<Hidden, Out>>,
    both: (Tensor<f32, (Out,)>, Tensor<f32, (), U2>),
    r#type: Tensor<f32, ()>,
    #[parameters(constant)]
    label: Label,
    #[parameters(constant)]
    table: Tensor<f32, (Token,)>,
    nothing: Nothing,
    marker: PhantomData<fn(Token)>,
}

/// A network with `layers` scales. The elements of `up` are `from`, `from + 1`, .., and those of
/// other tensors are `from` or `-from`.
fn network(from: f32, layers: usize) -> Network {
    let count = |start: f32, n: usize| (0..n).map(|at| start + at as f32).collect::<Vec<_>>();
    Network {
        up: Layer {
            weight: from_vec((In.of(3), Hidden.of(4)), count(from, 12)),
            bias: Some(from_vec(Hidden.of(4), count(from + 12.0, 4))),
        },
        scales: (0..layers).map(|at| Scale(full(Hidden.of(4), from), 0.5 + at as f32)).collect(),
        gates: [full(Hidden.of(4), from), full(Hidden.of(4), -from)],
        down: Box::new(Layer { weight: full((Hidden.of(4), Out.of(2)), from), bias: None }),
        both: (full(Out.of(2), from), Array2::from_elem((1, 5), from).at((.., ..)).eval()),
        r#type: full((), from),
        label: Label("first"),
        table: full(Token.of(100), from),
        nothing: Nothing,
        marker: PhantomData,
    }
}

const NAMES: [&str; 10] = [
    "up.weight",
    "up.bias",
    "scales.0.0",
    "scales.1.0",
    "gates.0",
    "gates.1",
    "down.weight",
    "both.0",
    "both.1",
    "type",
];

#[test]
fn tensors_have_the_names_of_the_fields_that_lead_to_them() {
    assert_eq!(network(1.0, 2).names(), NAMES);
    assert_eq!(network(1.0, 0).names(), [&NAMES[..2], &NAMES[4..]].concat());
    assert_eq!(ones::<f32, _>(In.of(2)).names(), [""]);
    assert!(Nothing.names().is_empty() && ().names().is_empty());
}

#[test]
fn elements_are_counted_without_constants() {
    let network = network(1.0, 2);
    let expected = 12 + 4 + 2 * 4 + 2 * 4 + 8 + 2 + 5 + 1;
    assert_eq!(network.count_elements(), expected);
    assert_eq!(network.bytes(), 4 * expected);
    let mixed = (ones::<f64, _>(In.of(3)), ones::<u8, _>(In.of(5)), zeros::<f32, _>((In.of(0), Out.of(7))));
    assert_eq!((mixed.count_elements(), mixed.bytes()), (8, 3 * 8 + 5));
}

#[test]
fn counting_leaves_tensors_unshared() {
    let array = Array1::from_elem(1000, 1.0_f32);
    let place = array.as_ptr();
    let mut x = array.into_tensor(In);
    assert_eq!((x.count_elements(), x.names().len()), (1000, 1));
    x += 1.0; // in place, because the memory has no other owner
    let array = x.order(In);
    assert_eq!((array.as_ptr(), array[999]), (place, 2.0));
}

#[test]
fn zeros_have_the_same_parts() {
    let network = network(3.0, 2);
    let zero = network.zero();
    assert_eq!(zero.names(), network.names());
    assert_eq!(zero.up.weight.dims(), [("In", 3), ("Hidden", 4)]);
    assert_eq!(zero.both.1.positional_sizes(), [1, 5]);
    let largest = zero.zip_elements(&zero, |a: f32, b| a.abs() + b.abs());
    assert_eq!(largest.up.weight.order((In, Hidden)), Array2::<f32>::zeros((3, 4)));
    assert_eq!(largest.gates[1].view().order(Hidden), Array1::<f32>::zeros(4));
    assert_eq!((&zero.r#type).order(()), 0.0);
    // Constants are cloned from the value.
    assert_eq!((zero.label, zero.scales[1].1), (Label("first"), 1.5));
    assert_eq!(zero.table.sum(Token).order(()), 300.0);
    // Tensors that are not learned become zero too.
    let (ids, mask) = (from_vec(In.of(2), vec![3usize, 4]), full(In.of(2), true)).zero();
    assert_eq!(ids.order(In), ndarray::array![0, 0]);
    assert_eq!(mask.order(In), ndarray::array![false, false]);
}

#[test]
fn zeros_and_results_lie_as_the_tensor_does() {
    /// Whether elements have to move to lie in the order `(Out, In, Hidden)`, and to lie in the
    /// order `(In, Hidden, Out)`.
    fn moves(x: Tensor<f32, (In, Hidden, Out)>) -> (bool, bool) {
        let own = explain(|| x.clone().laid((Out, In, Hidden))).1;
        let other = explain(|| x.laid((In, Hidden, Out))).1;
        (!own.steps.is_empty(), !other.steps.is_empty())
    }
    let array = Array3::from_shape_fn((4, 2, 3), |(i, j, k)| (12 * i + 4 * j + k) as f32);
    let x = array.clone().into_tensor((Out, In, Hidden));
    assert_eq!(moves(x.clone()), (false, true));
    assert_eq!(moves(x.zero()), (false, true));
    assert_eq!(moves(x.map_elements(|a: f32| a + 1.0)), (false, true));
    let lying_otherwise = array.clone().into_tensor((Out, In, Hidden)).order((In, Hidden, Out));
    let y = lying_otherwise.as_standard_layout().into_owned().into_tensor((In, Hidden, Out));
    assert_eq!(moves(x.zip_elements(&y, |a: f32, b| a + b)), (false, true));

    // A part of an array, reversed along one axis.
    let part = array.slice_move(ndarray::s![..;-1, .., 1..]);
    let x = part.clone().into_tensor((Out, In, Hidden));
    assert_eq!(moves(x.zero()), (false, true));
    let next = x.map_elements(|a: f32| 2.0 * a);
    assert_eq!(next.clone().order((Out, In, Hidden)), 2.0 * &part);
    assert_eq!(moves(next), (false, true));
}

#[test]
fn elements_are_mapped_and_zipped() {
    let (a, b) = (network(1.0, 2), network(10.0, 2));
    let sum = a.zip_elements(&b, |a: f32, b| 100.0 * a + b);
    let expected = Array2::from_shape_fn((3, 4), |(i, j)| {
        let at = (4 * i + j) as f32;
        100.0 * (1.0 + at) + 10.0 + at
    });
    assert_eq!(sum.up.weight.order((In, Hidden)), expected);
    assert_eq!(sum.up.bias.unwrap().order(Hidden), ndarray::array![1322.0, 1423.0, 1524.0, 1625.0]);
    assert_eq!((&sum.gates[1]).order(Hidden), Array1::from_elem(4, -110.0));
    assert_eq!(sum.both.1.order(()), Array2::from_elem((1, 5), 110.0));
    assert_eq!(sum.scales[1].0.sum(Hidden).order(()), 440.0);
    assert_eq!((sum.scales[1].1, sum.label), (1.5, a.label));

    let mapped = b.map_elements(|b: f32| b + 0.5);
    assert_eq!((mapped.r#type.order(()), mapped.table.index(Token, 7).order(())), (10.5, 10.0));
}

#[test]
fn axes_in_another_order_are_zipped_by_name() {
    let a = from_fn((In.of(2), Hidden.of(3)), |(i, h)| (10 * i + h) as f32);
    let b = from_fn((Hidden.of(3), In.of(2)), |(h, i)| (1000 * i + 100 * h) as f32);
    let sum = a.zip_elements(&b, |a: f32, b| a + b).order((In, Hidden));
    assert_eq!(sum, ndarray::array![[0.0, 101.0, 202.0], [1010.0, 1111.0, 1212.0]]);
}

#[test]
fn what_is_not_learned_stays() {
    let (a, b) = (from_vec(In.of(2), vec![3, 4]), from_vec(In.of(2), vec![5, 6]));
    let (x, y) = (full(Out.of(2), 1.0), full(Out.of(2), 2.0));
    let (a, x) = (a, x).zip_elements(&(b, y), |a: f64, b| a - b);
    assert_eq!((a.order(In), x.order(Out)), (ndarray::array![3, 4], ndarray::array![-1.0, -1.0]));
    assert!(is_learned::<f32>() && is_learned::<f64>());
    assert!(!is_learned::<i32>() && !is_learned::<bool>() && !is_learned::<[f32; 2]>());
    #[cfg(feature = "half")]
    assert!(is_learned::<half::f16>() && is_learned::<half::bf16>());
}

#[test]
fn floats_of_another_type_are_an_error() {
    let mixed = vec![(ones::<f32, _>(In.of(2)), ones::<f64, _>(In.of(2)))];
    let error = mixed.try_map_elements(|x: f32| x).err().unwrap();
    assert_eq!(error.to_string(), "`0.1` has elements of type f64, not f32");
    let error = mixed.try_zip_elements(&mixed, |x: f64, _| x).err().unwrap();
    assert_eq!(error.to_string(), "`0.0` has elements of type f32, not f64");
    let error = ones::<f32, _>(In.of(2)).try_map_elements(|x: f64| x).err().unwrap();
    assert_eq!(error.to_string(), "the tensor has elements of type f32, not f64");
}

fn zip_error(a: &Network, b: &Network) -> String {
    a.try_zip_elements(b, |a: f32, b| a + b).err().expect("the sizes differ").to_string()
}

#[test]
fn values_with_other_parts_are_an_error() {
    let a = network(1.0, 2);
    assert_eq!(
        zip_error(&a, &network(1.0, 3)),
        "the values of `scales` differ: one has the length 2, another 3"
    );
    let mut b = network(1.0, 2);
    b.up.bias = None;
    assert_eq!(zip_error(&a, &b), "the values of `up.bias` differ: the first is not `None`, another is");
    assert_eq!(zip_error(&b, &a), "the values of `up.bias` differ: the first is `None`, another is not");
    let mut b = network(1.0, 2);
    b.down.weight = ones((Hidden.of(5), Out.of(2)));
    assert_eq!(
        zip_error(&a, &b),
        "the values of `down.weight` differ: dim `Hidden` has size 4 in one, 5 in another"
    );
    // A positional axis of size 1 does not broadcast.
    let mut b = network(1.0, 2);
    b.both.1 = Array2::from_elem((3, 5), 1.0).at((.., ..)).eval();
    assert_eq!(
        zip_error(&a, &b),
        "the values of `both.1` differ: positional axis 0 has size 1 in one, 3 in another"
    );
    let error = vec![(); 2].try_zip_elements(&vec![], |a: f32, _| a).unwrap_err();
    assert_eq!(error.to_string(), "the values differ: one has the length 2, another 0");
}

#[test]
#[should_panic(expected = "the values of `scales` differ: one has the length 1, another 0")]
fn the_short_form_panics_with_the_text() {
    network(1.0, 1).zip_elements(&network(1.0, 0), |a: f32, _| a);
}

/// Returns the last of three values if no tensor is larger than `most`, and records the paths.
struct Last {
    most: usize,
    paths: Vec<(String, Vec<Segment>)>,
}

/// The error of a [`Last`] walk.
#[derive(Debug, PartialEq)]
struct Ended(String);

impl From<DimError> for Ended {
    fn from(error: DimError) -> Self {
        Ended(error.to_string())
    }
}

impl Walk<3> for Last {
    type Error = Ended;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        of: [&Named<T, S, R>; 3],
    ) -> Result<Named<T, S, R>, Ended> {
        self.paths.push((path.to_string(), path.segments().to_vec()));
        let largest = of.map(|tensor| tensor.len()).into_iter().max().unwrap();
        if largest > self.most { Err(Ended(format!("{path} is too large"))) } else { Ok(of[2].clone()) }
    }

    fn mismatch(&mut self, path: &Path, what: Mismatch) -> Ended {
        Ended(format!("{path}: {what:?}"))
    }
}

#[test]
fn a_walk_goes_through_several_values() {
    let values = [1.0, 2.0, 3.0].map(|from| network(from, 1));
    let walk = |most, of: [&Network; 3]| {
        let mut walker = Last { most, paths: Vec::new() };
        (Parameters::walk(of, &mut Path::new(), &mut walker), walker.paths)
    };
    let [a, b, c] = &values;
    let (last, paths) = walk(100, [a, b, c]);
    let last = last.unwrap();
    assert_eq!(last.r#type.order(()), 3.0);
    assert_eq!(last.table.index(Token, 0).order(()), 1.0);
    assert_eq!(
        paths[2],
        ("scales.0.0".to_owned(), vec![Segment::Field("scales"), Segment::Index(0), Segment::Field("0")])
    );

    // An error ends the walk, wherever it occurs.
    let (result, paths) = walk(11, [a, b, c]);
    assert_eq!((result.err(), paths.len()), (Some(Ended("up.weight is too large".to_owned())), 1));
    let other = network(1.0, 2);
    let (result, paths) = walk(100, [a, b, &other]);
    assert_eq!(result.err().unwrap().0, "scales: Length { first: 1, other: 2 }");
    assert_eq!(paths.len(), 2);
}

#[test]
fn an_error_in_an_array_ends_the_walk() {
    let x = [2, 9, 1, 9].map(|n| ones::<f32, _>(In.of(n)));
    let mut walker = Last { most: 8, paths: Vec::new() };
    let result = Parameters::walk([&x, &x, &x], &mut Path::new(), &mut walker);
    assert_eq!(result.err().unwrap().0, "1 is too large");
    assert_eq!(walker.paths.len(), 2);
}

#[derive(Parameters)]
struct Tree<D: AnyDim, X = ()> {
    weight: Tensor<f32, (D,)>,
    #[parameters(constant)]
    extra: X,
    children: Vec<Tree<D, X>>,
}

#[test]
fn a_struct_can_have_itself_in_it() {
    let leaf = |n| Tree { weight: ones(In.of(n)), extra: Label("leaf"), children: vec![] };
    let tree = Tree { weight: ones(In.of(1)), extra: Label("root"), children: vec![leaf(2), leaf(3)] };
    assert_eq!(tree.names(), ["weight", "children.0.weight", "children.1.weight"]);
    let next = tree.map_elements(|x: f32| 2.0 * x);
    assert_eq!((&next.children[1].weight).order(In), ndarray::array![2.0, 2.0, 2.0]);
    assert_eq!((next.extra, &next.children[0].extra), (Label("root"), &Label("leaf")));
}

#[derive(Parameters)]
struct Several<'a, P, T: Element, const LAYERS: usize>
where
    P: Clone,
{
    parts: [P; LAYERS],
    tensor: Tensor<T, (Pair,)>,
    #[parameters(constant)]
    name: &'a str,
}

#[test]
fn structs_are_generic_over_anything() {
    let name = "several".to_owned();
    let several =
        Several { parts: [ones::<f64, _>(In.of(2)), ones(In.of(3))], tensor: ones(Pair), name: &name };
    assert_eq!(several.names(), ["parts.0", "parts.1", "tensor"]);
    let next: Several<'_, _, f64, 2> = several.zip_elements(&several.zero(), |a: f64, b| 3.0 * a + b);
    assert_eq!(
        (next.parts[1].sum(In).order(()), next.tensor.order(Pair)[1], next.name),
        (9.0, 3.0, "several")
    );
}

#[test]
fn linear_maps_of_the_library_are_parameters() {
    #[derive(Parameters)]
    struct Mlp {
        up: Linear<(In,), (Hidden,)>,
        down: Linear<(Hidden,), (Out,)>,
    }
    let linear = Linear { weight: ones((In.of(3), Hidden.of(4))), bias: ones(Hidden.of(4)) };
    let down = Linear { weight: ones((Hidden.of(4), Out.of(2))), bias: ones(Out.of(2)) };
    let mlp = Mlp { up: linear, down };
    assert_eq!(mlp.names(), ["up.weight", "up.bias", "down.weight", "down.bias"]);
    assert_eq!(mlp.count_elements(), 12 + 4 + 8 + 2);
    let twice = mlp.map_elements(|x: f32| 2.0 * x);
    let y = twice.down.apply(&twice.up.apply(&ones::<f32, _>(In.of(3))));
    assert_eq!(y.order(Out), ndarray::array![66.0, 66.0]);
}

#[test]
fn local_dims_are_no_obstacle() {
    dims!(i, j);
    let x = ndarray::array![[1.0, 2.0], [3.0, 4.0]].at((i, j)).eval();
    let y = x.zip_elements(&x.zero(), |a: f64, b| 2.0 * a + b);
    assert_eq!(y.order((j, i)), ndarray::array![[2.0, 6.0], [4.0, 8.0]]);
}

#[test]
fn reductions_keep_their_names() {
    // For a tensor, `count` is a reduction, and `map` is lazy.
    let x = from_vec(In.of(3), vec![true, false, true]);
    assert_eq!((x.count(In).order(()), x.map(|x| !x).order(In)[1]), (2, true));
}
