//! Sharded programs on meshes of virtual devices return the same numbers as the library without
//! XLA.

#![allow(missing_docs)]

mod models;

use typed_dims::grad::parameters::{Path, Visitor, Walk};
use typed_dims::grad::{Parameters, loss_and_grad};
use typed_dims::optim::{Adam, Optimizer};
use typed_dims::prelude::*;
use typed_dims::program::record;
use typed_dims_xla::{Mesh, MeshAxis as _, OnDevice, ShardRules, Sharding, mesh};
use xla_tests::{assert_near, plugin};

mesh! { pub struct Data; pub struct Model; }
dims! { pub struct Row; pub struct In; pub struct Hidden; pub struct Class; }

type Batch = Tensor<f32, (Row, In)>;
type Labels = Tensor<i64, (Row,)>;

#[derive(Clone, Parameters)]
struct Network {
    first: Tensor<f32, (In, Hidden)>,
    bias: Tensor<f32, (Hidden,)>,
    second: Tensor<f32, (Hidden, Class)>,
}

type State = (Network, Adam<Network>);

fn network() -> Network {
    Network {
        first: randn((In.of(8), Hidden.of(16)), 1),
        bias: randn(Hidden.of(16), 2),
        second: randn((Hidden.of(16), Class.of(3)), 3),
    }
}

fn state() -> State {
    let (net, mut adam) = (network(), Adam::new(0.1));
    adam.prepare(&net);
    (net, adam)
}

fn step((mut net, mut adam): State, x: &Batch, y: &Labels) -> (State, Tensor<f32, ()>) {
    let (loss, gradient) = loss_and_grad(
        |net: &Network| {
            let hidden = ((x * &net.first).sum(In) + &net.bias).relu();
            (hidden * &net.second).sum(Hidden).cross_entropy(Class, y).mean(Row)
        },
        &net,
    );
    adam.step(&mut net, &gradient);
    ((net, adam), loss)
}

fn data() -> (Batch, Labels) {
    (randn((Row.of(8), In.of(8)), 4), from_vec(Row.of(8), vec![0, 2, 1, 2, 0, 1, 1, 2]))
}

/// Trains five steps on a mesh. Compares the losses and the state with the library's own results,
/// and the collectives with the plan.
fn check<R: ShardRules>(sharding: &Sharding<R>, what: &str) {
    let Some(pjrt) = plugin(8) else { return };
    let (x, y) = data();
    let program =
        record(|(state, x, y): (State, &Batch, &Labels)| step(state, x, y), (state(), &x, &y)).unwrap();
    let run =
        pjrt.compile_sharded(&program, sharding.clone()).unwrap_or_else(|error| panic!("{what}: {error}"));
    let (mut on_mesh, mut own) = (pjrt.put_sharded(&state(), sharding).unwrap(), state());
    for _ in 0..5 {
        let (next, found) = run.call((on_mesh, &x, &y)).unwrap_or_else(|error| panic!("{what}: {error}"));
        let (after, expected) = step(own, &x, &y);
        (on_mesh, own) = (next, after);
        assert_near(&found.to_host().unwrap(), &expected, 1e-5, what);
    }
    assert_near(&on_mesh.to_host().unwrap(), &own, 1e-4, what);
    let plan = sharding.plan(&program).unwrap();
    let comparison = run.compare(&plan).unwrap();
    assert!(comparison.is_as_planned(), "{what}\n{plan}\n{comparison}");
}

#[test]
fn training_over_meshes_is_the_same() {
    let two = || Mesh::of(Data.of(2));
    let square = || Mesh::of((Data.of(2), Model.of(2)));
    check(&Sharding::new(two()), "all whole");
    check(&Sharding::new(two()).shard(Row, Data), "data parallel");
    check(&Sharding::new(Mesh::of(Data.of(8))).shard(Row, Data), "data parallel over 8");
    check(&Sharding::new(Mesh::of(Model.of(4))).shard(Hidden, Model), "tensor parallel over 4");
    check(&Sharding::new(square()).shard(Row, Data).shard(Hidden, Model), "data and tensor parallel");
    check(
        &Sharding::new(square()).shard(Row, Data).shard(Hidden, Model).at_rest(In, Data),
        "parameters at rest in parts",
    );
}

#[test]
fn state_takes_less_memory_on_each_device() {
    let Some(pjrt) = plugin(8) else { return };
    let bytes = |value: OnDevice<State>| value.bytes() / 4;
    let square = Sharding::new(Mesh::of((Data.of(2), Model.of(2))));
    // Each weight has two moments. The step count takes 8 bytes.
    let whole = 3 * (8 * 16 + 16 + 16 * 3) * 4 + 8;
    assert_eq!(bytes(pjrt.put_sharded(&state(), &square).unwrap()), whole);
    let split = square.clone().shard(Hidden, Model);
    assert_eq!(bytes(pjrt.put_sharded(&state(), &split).unwrap()), (whole - 8) / 2 + 8);
    let split = split.at_rest(In, Data);
    assert_eq!(bytes(pjrt.put_sharded(&state(), &split).unwrap()), 3 * (4 * 8 + 8 + 8 * 3) * 4 + 8);
    let split = square.at_rest(Hidden, Data);
    assert_eq!(bytes(pjrt.put_sharded(&state(), &split).unwrap()), (whole - 8) / 2 + 8);
}

#[test]
fn sums_are_exchanged_in_the_type_of_their_registers() {
    let Some(pjrt) = plugin(2) else { return };
    let split = || Sharding::new(Mesh::of(Data.of(2))).shard(Row, Data);
    let of = (Row.of(4), In.of(3));
    let integers = from_fn(of, |(row, at)| (10 * row + at) as i32);
    let small = from_fn(of, |(row, at)| (10 * row + at) as u8);
    let program = record(
        |(x, y): (&Tensor<i32, (Row, In)>, &Tensor<u8, (Row, In)>)| {
            let most: Tensor<u8, (In,)> = y.max(Row).eval();
            let sum: Tensor<i32, (In,)> = x.sum(Row).eval();
            (sum, most)
        },
        (&integers, &small),
    )
    .unwrap();
    let plan = split().plan(&program).unwrap();
    let run = pjrt.compile_sharded(&program, split()).unwrap();
    let (sum, most) = run.call((&integers, &small)).unwrap();
    assert_eq!(sum.to_host().unwrap().order(In), typed_dims::ndarray::array![60, 64, 68]);
    assert_eq!(most.to_host().unwrap().order(In), typed_dims::ndarray::array![30, 31, 32]);
    let comparison = run.compare(&plan).unwrap();
    assert!(comparison.is_as_planned(), "{plan}\n{comparison}");
}

/// The sum over a split dim comes last, so that only the result is exchanged.
#[test]
fn products_of_several_matrices_are_as_planned() {
    let Some(pjrt) = plugin(2) else { return };
    let split = || Sharding::new(Mesh::of(Data.of(2))).shard(Hidden, Data);
    type Middle = Tensor<f32, (In, Hidden)>;
    type Right = Tensor<f32, (Hidden, Class)>;
    // The sums are integers, and exact. Without devices, the last two matrices would come first.
    let a: Batch = from_fn((Row.of(8), In.of(4)), |(row, at)| (row + 2 * at) as f32 - 3.0);
    let b: Middle = from_fn((In.of(4), Hidden.of(6)), |(row, at)| (3 * row + at) as f32 - 6.0);
    let c: Right = from_fn((Hidden.of(6), Class.of(2)), |(row, at)| (row * at) as f32 - 4.0);
    let f = |(a, b, c): (&Batch, &Middle, &Right)| -> Tensor<f32, (Row, Class)> {
        (a * b * c).sum((In, Hidden)).eval()
    };
    let program = record(f, (&a, &b, &c)).unwrap();
    let run = pjrt.compile_sharded(&program, split()).unwrap();
    assert_eq!(run.stablehlo().matches("stablehlo.dot_general").count(), 2);
    let found = run.call((&a, &b, &c)).unwrap().to_host().unwrap();
    assert_near(&found, &f((&a, &b, &c)), 0.0, "the product");
    let plan = split().plan(&program).unwrap();
    let comparison = run.compare(&plan).unwrap();
    assert!(comparison.is_as_planned(), "{plan}\n{comparison}");
}

#[test]
fn moments_along_a_split_dim_are_the_same() {
    let Some(pjrt) = plugin(2) else { return };
    let split = || Sharding::new(Mesh::of(Data.of(2))).shard(In, Data);
    let x: Batch = randn((Row.of(3), In.of(4)), 1);
    let variance = |x: &Batch| -> Tensor<f32, (Row,)> { x.var(In) };
    let program = record(variance, &x).unwrap();
    let run = pjrt.compile_sharded(&program, split()).unwrap();
    assert_near(&run.call(&x).unwrap().to_host().unwrap(), &variance(&x), 1e-6, "the variances");
    let plan = split().plan(&program).unwrap();
    let comparison = run.compare(&plan).unwrap();
    assert!(comparison.is_as_planned(), "{plan}\n{comparison}");
    let norm = |x: &Batch| -> Batch { x.layer_norm(In, 1e-5) };
    let program = record(norm, &x).unwrap();
    let run = pjrt.compile_sharded(&program, split()).unwrap();
    assert_near(&run.call(&x).unwrap().to_host().unwrap(), &norm(&x), 1e-6, "the normalized rows");
    let plan = split().plan(&program).unwrap();
    let comparison = run.compare(&plan).unwrap();
    assert!(comparison.is_as_planned(), "{plan}\n{comparison}");
}

/// Moves along one dim exchange nothing if another one is split.
#[test]
fn moves_along_a_whole_dim_are_the_same() {
    let Some(pjrt) = plugin(2) else { return };
    let split = Sharding::new(Mesh::of(Data.of(2))).shard(Row, Data);
    let x: Batch = randn((Row.of(4), In.of(5)), 1);
    let f = |x: &Batch| -> Batch {
        let rolled = x.view().roll(In, 2).shift(In, -1, 0.0);
        rolled.pad(In, 2, 0, Pad::Reflect)
    };
    let program = record(f, &x).unwrap();
    let plan = split.plan(&program).unwrap();
    assert_eq!(plan.bytes(), 0, "{plan}");
    let run = pjrt.compile_sharded(&program, split).unwrap();
    assert_near(&run.call(&x).unwrap().to_host().unwrap(), &f(&x), 0.0, "the moved elements");
    let comparison = run.compare(&plan).unwrap();
    assert!(comparison.is_as_planned(), "{plan}\n{comparison}");
}

/// Another dim named `Row`.
mod other {
    typed_dims::prelude::dims! { pub struct Row; }
}

#[test]
fn dims_of_one_name_are_not_confused() {
    let Some(pjrt) = plugin(2) else { return };
    type Both = Tensor<f32, (Row, other::Row)>;
    let f = |x: &Both| -> Both { ((x * 2.0).eval().softmax(other::Row) + 1.0).eval() };
    let x: Both = randn((Row.of(4), other::Row.of(3)), 1);
    let program = record(f, &x).unwrap();
    let split = Sharding::new(Mesh::of(Data.of(2))).shard(Row, Data);
    // If dims were matched by name, both axes would be split, and the size 3 is odd.
    let plan = split.plan(&program).unwrap();
    assert_eq!(plan.bytes(), 0, "{plan}");
    let run = pjrt.compile_sharded(&program, split).unwrap();
    assert_near(&run.call(&x).unwrap().to_host().unwrap(), &f(&x), 1e-6, "two rows");
}

#[test]
fn intermediate_values_that_do_not_fit_are_errors() {
    type Pair<'t> = (&'t Tensor<f32, (Row,)>, &'t Tensor<f32, (In,)>);
    let f = |(x, y): Pair<'_>| (x * y).eval().cumsum(Row).sum((Row, In));
    let program = record(f, (&ones(Row.of(4)), &ones(In.of(4)))).unwrap();
    let split = Sharding::new(Mesh::of(Data.of(2))).shard(Row, Data).shard(In, Data);
    let message = split.plan(&program).unwrap_err().to_string();
    let (before, after) = message.split_once(" has the dims ").unwrap();
    assert!(before.starts_with("the result of `") && before.contains("meshes/main.rs:"), "{message}");
    assert_eq!(
        after,
        "`Row` and `In`, and both are split along the mesh axis `Data`: split one of them along another axis, or not at all"
    );
}

struct ByHand(Batch);

impl Parameters for ByHand {
    fn walk<const N: usize, W: Walk<N>>(
        of: [&Self; N],
        path: &mut Path,
        walk: &mut W,
    ) -> Result<Self, W::Error> {
        Batch::walk(of.map(|own| &own.0), path, walk).map(ByHand)
    }

    fn visit<const M: usize, const N: usize, V: Visitor<M, N>>(
        changed: [&mut Self; M],
        read: [&Self; N],
        path: &mut Path,
        visit: &mut V,
    ) -> Result<(), V::Error> {
        Batch::visit(changed.map(|own| &mut own.0), read.map(|own| &own.0), path, visit)
    }
}

#[test]
fn structs_by_hand_are_checked_at_run_time() {
    let program = record(|x: &ByHand| x.0.sum((Row, In)), &ByHand(data().0)).unwrap();
    let split = Sharding::new(Mesh::of(Data.of(2))).shard(Row, Data).shard(In, Data);
    assert_eq!(
        split.plan(&program).unwrap_err().to_string(),
        "the input has the dims `Row` and `In`, and both are split along the mesh axis `Data`: split one of them along another axis, or not at all"
    );
}

#[test]
fn shardings_that_do_not_fit_are_errors() {
    let Some(pjrt) = plugin(8) else { return };
    let (x, y) = data();
    let program =
        record(|(state, x, y): (State, &Batch, &Labels)| step(state, x, y), (state(), &x, &y)).unwrap();
    let message = |sharding: Sharding| pjrt.compile_sharded(&program, sharding).unwrap_err().to_string();
    let twice = Sharding::new(Mesh::of(Data.of(2))).shard(Row, Data).shard(In, Data).checked_at_run_time();
    assert_eq!(
        message(twice),
        "the input `1` has the dims `Row` and `In`, and both are split along the mesh axis `Data`: split one of them along another axis, or not at all"
    );
    let uneven = Sharding::new(Mesh::of(Data.of(3))).shard(Row, Data);
    assert_eq!(
        message(uneven.checked_at_run_time()),
        "the input `1`: the dim `Row` has size 8, which the 3 devices of the mesh axis `Data` do not divide"
    );
}
