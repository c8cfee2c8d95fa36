//! Two axes over one set: `(Item, Prime<Item>)`.

use crate::panics::message;
use ndarray::{Array2, Array3, Dimension, array};
use typed_dims::batch::map_each;
use typed_dims::fallible::{try_concat, try_from_vec, try_stack, try_zeros};
use typed_dims::grad::{grad, hessian, hessian_primed, jacobian, try_jacobian};
use typed_dims::operators::interpolate::Interpolation;
use typed_dims::prelude::*;
use typed_dims::program::{dynamic, record, spec};

dims! {
    /// Items that are compared with each other.
    pub struct Item;
    /// Features of an item.
    pub struct Feat;
    /// Examples. Declared after `Item`, but sorted before the prime of `Item`.
    pub struct Batch;
    /// A static size.
    pub struct Fixed = 3;
    /// Channels.
    pub struct Channel: DataChannel;
}

mod other {
    typed_dims::prelude::dims! { pub struct Item; }
}

type Rows = Tensor<f64, (Item, Feat)>;
type Square = Tensor<f64, (Item, Prime<Item>)>;

fn square(n: usize, seed: u64) -> Square {
    randn((Item.of(n), prime(Item.of(n))), seed)
}

fn rows(n: usize, seed: u64) -> Tensor<f64, (Item, Feat)> {
    randn((Item.of(n), Feat.of(3)), seed)
}

/// `out[n, n'] = sum over f of x[n, f] * x[n', f]`
fn gram(x: &Tensor<f64, (Item, Feat)>) -> Square {
    (x * x.prime(Item)).sum(Feat)
}

#[track_caller]
fn close<D: Dimension>(found: ndarray::Array<f64, D>, expected: ndarray::Array<f64, D>) {
    assert_eq!(found.shape(), expected.shape());
    for (x, y) in found.iter().zip(&expected) {
        assert!((x - y).abs() < 1e-12 * x.abs().max(y.abs()).max(1.0), "{x} instead of {y}");
    }
}

/// The text of an error, without the locations of sizes.
#[track_caller]
fn error<T>(result: Result<T, DimError>) -> String {
    let Err(error) = result else { panic!("no error") };
    without_locations(error.to_string())
}

#[track_caller]
fn without_locations(mut text: String) -> String {
    while let Some(start) = text.find(" (at ") {
        let end = text[start..].find(')').expect("the location ends") + start;
        text.replace_range(start..=end, "");
    }
    text
}

#[test]
fn a_gram_matrix() {
    let x = rows(4, 1);
    let matrix = x.view().order((Item, Feat));
    let found = gram(&x);
    close(found.view().order((Item, prime(Item))), matrix.dot(&matrix.t()));
    close(found.order((prime(Item), Item)), matrix.dot(&matrix.t()));

    // For a generic dim, with any other dims.
    fn generic<D: AnyDim, B: Dims>(x: &Tensor<f64, (D, Rest<B>)>) -> Tensor<f64, (D, Prime<D>, Rest<B>)> {
        let d = D::default();
        let out = (x * x.prime(d)).eval();
        let back: Tensor<f64, (D, Rest<B>)> = out.sum(d).unprime(d).eval();
        assert_eq!(back.size(d), x.size(d));
        out.transpose(d).eval()
    }
    let all: Tensor<f64, (Item, Prime<Item>, Feat)> =
        generic::<Item, _>(&x.view().eval().seal(Item)).unseal();
    close(all.sum(Feat).order((Item, prime(Item))), matrix.dot(&matrix.t()));
    let all: Tensor<f64, (Prime<Item>, Prime<Prime<Item>>, Feat)> =
        generic::<Prime<Item>, _>(&x.view().prime(Item).eval().seal(prime(Item))).unseal();
    close(all.sum(Feat).order((prime(Item), prime(prime(Item)))), matrix.dot(&matrix.t()));
}

#[test]
fn names_sizes_and_memory() {
    let x: Tensor<i32, (Item, Prime<Item>, Batch)> =
        from_fn((Batch.of(2), Item.of(3), prime(Item.of(3))), |(b, i, j)| (100 * b + 10 * i + j) as i32);
    assert_eq!(x.dims(), [("Item", 3), ("Batch", 2), ("Item'", 3)]);
    assert_eq!((x.size(prime(Item)), prime(Item).of(4).size(), prime(Item.of(4)).size()), (3, 4, 4));
    assert!(format!("{x:?}").ends_with("dims (Item: 3, Batch: 2, Item': 3)"), "{x:?}");
    assert_eq!((Prime::<Item>::NAME, Prime::<Prime<Item>>::NAME), ("Item'", "Item''"));
    // A prime is the innermost axis.
    let own = (&x + 1).eval();
    #[cfg(feature = "std")]
    {
        let (array, plan) = explain(|| own.order((Item, Batch, prime(Item))));
        assert_eq!((array[[1, 1, 2]], plan.steps.len()), (113, 0));
    }
    #[cfg(not(feature = "std"))]
    assert_eq!(own.order((Item, Batch, prime(Item)))[[1, 1, 2]], 113);
    // A prime has the role of its dim.
    let c = ones::<f32, _>((Channel.of(2), prime(Channel.of(2))));
    assert_eq!(c.sum(prime(Channel)).order(Channel), array![2.0, 2.0]);
    fn of_channels<D: Plays<DataChannel> + DimRef>(_: D) -> &'static str {
        <D::Brand as Brand>::NAME
    }
    assert_eq!(of_channels(prime(Channel)), "Channel'");
}

#[test]
fn what_works_along_a_dim_works_along_a_prime() {
    let x = square(3, 2);
    let (n, m) = (Item, prime(Item));
    let a = x.view().order((n, m));
    close(x.sum(m).order(n), a.sum_axis(Axis(1)));
    assert!((x.sum((n, m)).order(()) - a.sum()).abs() < 1e-12);
    close(x.view().index(m, 1).order(n), a.column(1).to_owned());
    close(x.view().transpose(n).order((n, m)), a.t().to_owned());
    close(x.view().sum(n).unprime(n).order(n), a.sum_axis(Axis(0)));
    close(x.view().diagonal(n, m, 0).order(n), a.diag().to_owned());
    assert!((x.trace(n, m).order(()) - a.diag().sum()).abs() < 1e-12);
    close(
        (&x).triu(n, m, 0).order((n, m)),
        Array2::from_shape_fn((3, 3), |(i, j)| if i <= j { a[[i, j]] } else { 0.0 }),
    );
    close(select(n.le(m), &x, 0.0).order((n, m)), (&x).triu(n, m, 0).order((n, m)));
    let identity: Square = eye(n.of(3), prime(n.of(3)));
    close(x.compose(&identity, n).order((n, m)), a.clone());
    close((&x).softmax(m).sum(m).order(n), ndarray::Array1::ones(3));
    assert_eq!(x.argmax(m).order(n).len(), 3);
    let v: Tensor<f64, (Item,)> = randn(n.of(3), 5);
    close(x.contract((&v).prime(n), m).order(n), a.dot(&v.view().order(n)));
    let there = (10 * n.of(3) - prime(n.of(3))).order((n, m));
    assert_eq!((there[[2, 1]], (m + there.at((n, m))).order((n, m))[[2, 1]]), (19, 20));
}

#[test]
fn matrix_products() {
    for n in [0, 1, 2, 4, 17, 70] {
        let (x, y) = (square(n, 3), square(n, 4));
        let (a, b) = (x.view().order((Item, prime(Item))), y.view().order((Item, prime(Item))));
        let found: Square = x.compose(&y, Item);
        close(found.order((Item, prime(Item))), a.dot(&b));
        close(x.compose(y.view().transpose(Item), Item).order((Item, prime(Item))), a.dot(&b.t()));
    }
    // With a different batch dim in each operand, and with the same one in both.
    let x: Tensor<f64, (Item, Prime<Item>, Batch)> = randn((Batch.of(5), Item.of(3), prime(Item.of(3))), 1);
    let y: Tensor<f64, (Item, Prime<Item>, Feat)> = randn((Feat.of(2), Item.of(3), prime(Item.of(3))), 2);
    let all: Tensor<f64, (Item, Prime<Item>, Batch, Feat)> = x.compose(&y, Item);
    let powers: Tensor<f64, (Item, Prime<Item>, Batch)> = x.compose(&x, Item);
    for b in 0..5 {
        let one = x.view().index(Batch, b).order((Item, prime(Item)));
        close(powers.view().index(Batch, b).order((Item, prime(Item))), one.dot(&one));
        for f in 0..2 {
            let other = y.view().index(Feat, f).order((Item, prime(Item)));
            let product = all.view().index(Batch, b).index(Feat, f);
            close(product.order((Item, prime(Item))), one.dot(&other));
        }
    }
    let text = error(square(3, 1).try_compose(&square(4, 1), Item));
    assert!(text.starts_with("dim `Item") && text.contains("size 3") && text.contains("size 4"), "{text}");
    assert!(error(x.try_compose(&x, Item.of(4))).contains("size 4"));
}

#[test]
fn a_dim_and_its_prime_have_one_size() {
    let both = "dim `Item` has size 3, but `Item'`, which must have the same size, was given size 4";
    let a = Array2::<f64>::zeros((3, 4));
    assert_eq!(error(a.try_at((Item, prime(Item)))), both);
    assert_eq!(error(a.clone().try_into_tensor((Item, prime(Item)))), both);
    assert_eq!(error(a.clone().try_into_laid((Item, prime(Item)))), both);
    assert_eq!(error(try_zeros::<f64, _>((Item.of(3), prime(Item).of(4)))), both);
    assert_eq!(error(try_from_vec((Item.of(3), prime(Item.of(4))), vec![0; 12])), both);
    assert_eq!(error(vec![0; 12].try_into_laid((Item.of(3), prime(Item)))), both);
    assert_eq!(error([0; 12].as_slice().try_into_laid((Item.of(3), prime(Item)))), both);
    assert_eq!(error(a.try_at((Item, prime(prime(Item))))), both.replace("Item'", "Item''"));
    let other = "dim `Item` has size 4, but `Item'`, which must have the same size, was given size 3";
    assert_eq!(error(a.try_at((prime(Item), Item))), other);
    assert_eq!(
        error(a.try_at((prime(Item.of(3)), Item.of(3)))),
        "dim `Item` has size 3, but was also given size 4"
    );

    // In operations on two tensors, including small products of tensors in memory, and in `at_mut`.
    let (x, y) = (ones::<f64, _>((Item.of(3), Feat.of(2))), ones::<f64, _>((prime(Item.of(4)), Feat.of(2))));
    assert_eq!(error((&x * &y).try_sum(Feat)), both);
    assert_eq!(error((&x + &y).try_eval()), both);
    assert_eq!(error((&x + &y).try_order((Item, prime(Item), Feat))), both);
    assert_eq!(error((&x * &y).try_sum((Item, Feat))), both);
    assert_eq!(error(x.try_contract(&y, Feat)), both);
    let mut out = Array3::<f64>::zeros((3, 4, 2));
    assert_eq!(error(out.try_at_mut((Item, prime(Item), Feat)).map(|_| ())), both);
    assert_eq!(error((&x + &y).try_max(Item)), both);

    let mut out = Array2::<f64>::zeros((3, 4));
    assert_eq!(error((&x * &y).try_sum_into(Feat, &mut out, (Item, prime(Item)))), both);
    assert_eq!(error(try_stack(prime(Item), [&x])), both.replace('4', "1"));
    #[cfg(feature = "linalg")]
    assert_eq!(error(x.try_qr(Item, Feat, prime(Item))), both.replace('4', "2"));

    // A part along one of the axes is not square.
    let s = square(3, 1);
    let cut = "dim `Item` has size 2, but `Item'`, which must have the same size, was given size 3";
    assert_eq!(error(s.view().slice(Item, 1..).try_eval()), cut);
    assert_eq!(error(try_concat(Item, (&s, &s))), cut.replace('2', "6"));
    assert_eq!(error((&s).try_repeat(Item, 2)), cut.replace('2', "6"));
    assert_eq!(error((&s).try_pad(Item, 1, 1, Pad::Constant(0.0))), cut.replace('2', "5"));
    assert_eq!(error((&s).try_pad(Item, 1, 1, Pad::Reflect)), cut.replace('2', "5"));
    assert_eq!(error((&s).try_interpolate(Item, 2, Interpolation::linear())), cut);
    assert_eq!(error((&s).try_adaptive_max_pool(Item, 2)), cut);
    assert_eq!(error((&s).try_max_pool(Item, 2, &Window::new())), cut);
    assert_eq!(error((&s).try_max_pool(Item, 2, &Window::new().padding(1))), cut.replace('2', "4"));
    let uneven = error((&s).try_interpolate_nearest((Item, prime(Item)), (2, 4)));
    assert_eq!(uneven, cut.replace('3', "4"));
    let windows: Tensor<f64, (Item, Prime<Item>, Feat)> = zeros((Item.of(3), prime(Item.of(3)), Feat.of(2)));
    assert_eq!(error(windows.view().try_fold(Item, Feat, 4, 1, 1)), cut.replace('2', "4"));
    let halves: Tensor<f64, (Prime<Item>, Batch, Feat)> = zeros((prime(Item.of(3)), Batch.of(2), Feat.of(2)));
    let laid = (&halves).laid((Batch, Feat, prime(Item)));
    assert_eq!(error(laid.try_flatten((Batch, Feat), Item)), cut.replace('2', "4"));
    assert_eq!(error(halves.try_flatten((Batch, Feat), Item)), cut.replace('2', "4"));
    let laid = zeros::<f64, _>((Feat.of(6), prime(Item.of(3)))).laid((Feat, prime(Item)));
    assert_eq!(error(laid.try_unflatten(Feat, (Item.of(2), Batch))), cut);
    let x: Tensor<f64, (Item,)> = zeros(Item.of(4));
    let cut_off = |x: &Tensor<f64, (Item,)>| -> Tensor<f64, (Item,)> { x.view().slice(Item, 1..).eval() };
    let text = "dim `Item` has size 3, but `Item'`, which must have the same size, was given size 4";
    assert_eq!(error(try_jacobian(cut_off, &x)), text);
    let part = s.view().slice_to(Item, 1.., Feat).slice_to(prime(Item), 1.., prime(Feat));
    assert_eq!(part.dims(), [("Feat", 2), ("Feat'", 2)]);
    assert_eq!(part.order((Feat, prime(Feat)))[[0, 1]], s.order((Item, prime(Item)))[[1, 2]]);

    // Static sizes.
    let fixed: Tensor<f32, (Fixed, Prime<Fixed>)> = zeros((Fixed, prime(Fixed)));
    assert_eq!(fixed.dims(), [("Fixed", 3), ("Fixed'", 3)]);
    let text = "dim `Fixed'` has the static size 3, but was given size 4";
    assert_eq!(error(a.try_at((Fixed, prime(Fixed)))), text);
}

#[test]
fn a_dim_and_its_prime_have_one_size_in_a_stream() {
    let x = square(3, 1).stream((Item, prime(Item)), Item);
    let cut = "dim `Item` has size 2, but `Item'`, which must have the same size, was given size 3";
    assert_eq!(error(x.try_slice(Item, ..2)), cut);
    assert_eq!(error(Stream::try_concat(Item, [&x, &x])), cut.replace('2', "6"));
    assert_eq!(error(x.try_repeat(Item, 2)), cut.replace('2', "6"));
    assert_eq!(x.rename(Item, Feat).slice(Feat, ..2).sizes(), [2, 3]);

    let x = rows(4, 1).stream((Item, Feat), Item);
    let both = "dim `Item` has size 4, but `Item'`, which must have the same size, was given size 1";
    assert_eq!(error(x.try_sum_keepdim(Feat, prime(Item))), both);
    assert_eq!(error(x.try_new_axis_after(Item, prime(Item))), both);
    assert_eq!(error(Stream::try_stack_after(Item, prime(Item), [&x, &x])), both.replace('1', "2"));
    assert_eq!(error(x.try_rename(Feat, prime(Item))), both.replace('1', "3"));
    let one = x.sum_keepdim(Feat, Batch);
    assert_eq!(error(one.try_broadcast(Batch, prime(Item.of(2)))), both.replace('1', "2"));
    assert_eq!(one.broadcast(Batch, prime(Item.of(4))).sizes(), [4, 4]);

    let halves: Tensor<f64, (Prime<Item>, Batch, Feat)> = zeros((prime(Item.of(3)), Batch.of(2), Feat.of(2)));
    let x = halves.stream((prime(Item), Batch, Feat), prime(Item));
    let text = "dim `Item'` has size 3, but `Item`, which must have the same size, was given size 4";
    assert_eq!(error(x.try_flatten((Batch, Feat), Item)), text);
}

/// Only the results of these operators must be square.
#[test]
fn both_axes_change_their_sizes_and_one_axis_keeps_its_size() {
    let (n, m) = (Item, prime(Item));
    let x = square(3, 6);
    let a = x.view().order((n, m));
    let picked = |at: &[usize]| Array2::from_shape_fn((at.len(), at.len()), |(i, j)| a[[at[i], at[j]]]);
    assert_eq!((&x).pad((n, m), 1, 1, Pad::Reflect).order((n, m)), picked(&[1, 0, 1, 2, 1]));
    assert_eq!((&x).interpolate_nearest((n, m), 6).order((n, m)), picked(&[0, 0, 1, 1, 2, 2]));
    let corners = (&x).interpolate((n, m), 5, Interpolation::linear().align_corners()).order((n, m));
    assert_eq!(corners.slice(ndarray::s![..;2, ..;2]), a);
    close(corners.slice(ndarray::s![1..2, 2..3]).to_owned(), array![[(a[[0, 1]] + a[[1, 1]]) / 2.0]]);

    let y = square(4, 7);
    let b = y.view().order((n, m));
    let quarter = |i: usize, j: usize| b.slice(ndarray::s![2 * i..2 * i + 2, 2 * j..2 * j + 2]);
    let of_quarters = |f: fn(f64, f64) -> f64| {
        Array2::from_shape_fn((2, 2), |(i, j)| quarter(i, j).iter().copied().reduce(f).unwrap())
    };
    assert_eq!((&y).adaptive_max_pool((n, m), 2).order((n, m)), of_quarters(f64::max));
    close((&y).adaptive_avg_pool((n, m), 2).order((n, m)), of_quarters(|sum, x| sum + x) / 4.0);

    // Windows along one of the axes.
    let near = |i: usize| i.saturating_sub(1)..(i + 2).min(4);
    let of_near = |f: fn(f64, f64) -> f64| {
        Array2::from_shape_fn((4, 4), |(i, j)| near(i).map(|at| b[[at, j]]).reduce(f).unwrap())
    };
    let steps = Window::new().padding(1);
    assert_eq!((&y).max_pool(n, 3, &steps).order((n, m)), of_near(f64::max));
    let sums = of_near(|sum, x| sum + x);
    close((&y).avg_pool(n, 3, &steps).order((n, m)), &sums / 3.0);
    let counts = Array2::from_shape_fn((4, 4), |(i, _)| near(i).len() as f64);
    close((&y).avg_pool_without_padding(n, 3, &steps).order((n, m)), &sums / &counts);
    let ones = ones::<f64, _>(Feat.of(3));
    close(conv(&y, &ones, (), n, Feat, &Window::new().padding_same()).order((n, m)), sums.clone());
    close(conv_transpose(&y, &ones, (), n, Feat, &steps).order((n, m)), sums);
}

/// A dim and its prime get one size also if only an index determines it, or the size of the other.
#[test]
fn a_dim_and_its_prime_get_one_size() {
    let (n, m) = (Item, prime(Item));
    let a = Array2::from_shape_fn((3, 5), |(i, j)| 10 * i + j);
    assert_eq!(a.at((n + 1, m + 1)).order((n, m)), a.slice(ndarray::s![1..3, 1..3]));
    assert_eq!(a.at((m + 1, n + 1)).order((m, n)), a.slice(ndarray::s![1..3, 1..3]));

    let v = from_vec(Feat.of(4), vec![1.0, 2.0, 3.0, 4.0]);
    let above = || v.lookup(Feat, n + 1) * select(n.lt(m), 1.0, 0.0);
    let expected = array![[0.0, 2.0, 2.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]];
    assert_eq!(above().order((n, m)), expected);
    // A dim with a new name keeps its size.
    assert_eq!(above().rename(n, Batch).order((Batch, m)), expected);
    assert_eq!(above().rename(m, Batch).order((n, Batch)), expected);
    let w = from_vec(n.of(3), vec![2.0, 3.0, 4.0]);
    assert_eq!((&w * select(n.lt(m), 1.0, 0.0)).rename(n, Batch).order((Batch, m)), expected);
    assert_eq!((&w * select(n.lt(m), 1.0, 0.0)).rename(m, Batch).order((n, Batch)), expected);
    let (x, y) = (ones::<f64, _>(n.of(3)), ones::<f64, _>(m.of(4)));
    let both = "dim `Item` has size 3, but `Item'`, which must have the same size, was given size 4";
    assert_eq!(error((&x + &y).rename(m, Batch).try_eval()), both);
}

#[test]
fn primes_of_local_dims() {
    let a = array![[1.0, 2.0], [3.0, 4.0]];
    dims!(i);
    let ip = prime(i);
    assert_eq!(format!("{i:?} {ip:?}"), "i i'");
    assert_eq!(format!("{Item:?} {:?} {:?}", prime(Item), prime(prime(Item))), "Item Item' Item''");
    let x = a.at((i, ip));
    assert_eq!((i.size(), ip.size(), format!("{ip:?}")), (2, 2, "i' = 2".into()));
    close(x.sum(ip).order(i), array![3.0, 7.0]);
    close(x.compose(x, i).order((i, ip)), a.dot(&a));
    close(x.transpose(i).order((i, ip)), a.t().to_owned());
    close(select(i.lt(ip), x, -1.0).order((i, ip)), array![[-1.0, 2.0], [-1.0, -1.0]]);
    assert_eq!((ip + 10 * i).order((i, ip)), array![[0, 1], [10, 11]]);
    let three = a.at((prime(ip), i)) * x;
    assert_eq!(three.dims(), [("i", 2), ("i'", 2), ("i''", 2)]);
    let identity = eye::<f64, _, _>(i, ip);
    close(identity.order((i, ip)), Array2::eye(2));

    // Either the dim or its prime determines the size.
    dims!(j, k = 5);
    let wide = Array2::<f64>::zeros((3, 4));
    let both = "dim `j` has size 3, but `j'`, which must have the same size, was given size 4";
    assert_eq!(error(wide.try_at((j, prime(j)))), both);
    dims!(j);
    let both = "dim `j'` has size 3, but `j`, which must have the same size, was given size 4";
    assert_eq!(error(wide.try_at((prime(j), j))), both);
    assert_eq!(j.size(), 3);
    assert_eq!(zeros::<f64, _>((k, prime(k))).dims(), [("k", 5), ("k'", 5)]);
    let both = "dim `k` has size 5, but `k'`, which must have the same size, was given size 3";
    assert_eq!(error(wide.try_at((prime(k), j))), both);
}

#[test]
fn macros_take_primes_of_dims_around_them() {
    let a = array![[1.0, 2.0], [3.0, 4.0]];
    dims!(i);
    let ip = prime(i);
    let x = a.at((i, ip));
    close(tensor!([$ip, $i] => if $i < $ip { a[$i, $ip] } else { 0.0 }), array![[0.0, 0.0], [2.0, 0.0]]);
    // Macros with indices of their own, compared with primes.
    let rows = ndarray::array![10.0, 20.0];
    close(tensor!([n] => rows[n]).at(i).prime(i).order(ip), rows);
    close(einsum!(a[n, k] * a[m, k] => [n, m]), (x * x.rename(i, prime(ip))).sum(ip).order((i, prime(ip))));
}

/// The square of the matrix `exp(x[n, n']) / sum over n' of exp(x[n, n'])`.
#[batched]
fn walk(x: &Tensor<f64, (Item, Prime<Item>)>) -> Tensor<f64, (Item, Prime<Item>)> {
    let step = x.softmax(prime(Item));
    step.compose(&step, Item)
}

#[test]
fn under_batches() {
    let x: Tensor<f64, (Item, Prime<Item>, Batch)> = randn((Batch.of(3), Item.of(4), prime(Item.of(4))), 1);
    let all: Tensor<f64, (Item, Prime<Item>, Batch)> = walk(&x);
    let mapped = vmap(|x: Tensor<f64, (Item, Prime<Item>)>| walk(&x), Batch)(&x);
    assert_eq!(mapped, all);
    for b in 0..3 {
        let one: Square = x.view().index(Batch, b).eval();
        let expected = walk(&one).order((Item, prime(Item)));
        close(all.view().index(Batch, b).order((Item, prime(Item))), expected);
    }
    // A batch of vectors, whose dim gets a prime inside the function.
    let x: Tensor<f64, (Item, Batch)> = randn((Item.of(4), Batch.of(3)), 2);
    let outer = vmap(|x: Tensor<f64, (Item,)>| (&x * (&x).prime(Item)).eval(), Batch)(&x);
    close(outer.order((Batch, Item, prime(Item))), (&x * (&x).prime(Item)).order((Batch, Item, prime(Item))));
}

/// Without examples, the size of a prime in the result is that of its dim.
#[test]
fn in_a_loop_without_examples() {
    let x: Tensor<f64, (Item, Batch)> = zeros((Item.of(3), Batch.of(0)));
    let sizes = [("Item", 3), ("Batch", 0), ("Item'", 3)];
    let outer = vmap(|x: Tensor<f64, (Item,)>| (&x * (&x).prime(Item)).eval(), Batch)(&x);
    assert_eq!(outer.dims(), sizes);
    let cubes = |x: &Tensor<f64, (Item,)>| x.powi(3).sum(Item);
    let second = vmap(|x: &Tensor<f64, (Item,)>| hessian_primed(cubes, x), Batch)(&x);
    assert_eq!(second.dims(), sizes);
    let sealed = x.clone().seal(Item);
    let outer: Tensor<f64, (Item, Prime<Item>, Batch)> =
        map_each(&sealed, |x| (x * x.prime(Item)).eval()).unseal();
    assert_eq!(outer.dims(), sizes);

    // The result has only the prime, or only the dim.
    let primed = vmap(|x: Tensor<f64, (Item,)>| x.prime(Item).eval(), Batch)(&x);
    assert_eq!(primed.dims(), [("Batch", 0), ("Item'", 3)]);
    let back = vmap(|x: Tensor<f64, (Prime<Item>,)>| x.unprime(Item).eval(), Batch)(&primed);
    assert_eq!(back.dims(), [("Item", 3), ("Batch", 0)]);

    // The result has the prime of the mapped dim.
    let x: Rows = zeros((Item.of(0), Feat.of(3)));
    let others = (&x).prime(Item).eval();
    let pairs = vmap(|x: Tensor<f64, (Feat,)>| (&x * &others).sum(Feat), Item)(&x);
    assert_eq!(pairs.dims(), [("Item", 0), ("Item'", 0)]);

    // A dim of an argument has its own size, whatever the size of its prime in another argument.
    let x: Tensor<f64, (Item, Batch)> = zeros((Item.of(3), Batch.of(0)));
    let y: Tensor<f64, (Prime<Item>, Batch)> = zeros((prime(Item.of(4)), Batch.of(0)));
    let second = vmap(|_: Tensor<f64, (Item,)>, y: Tensor<f64, (Prime<Item>,)>| y, Batch)((&x, &y));
    assert_eq!(second.dims(), [("Batch", 0), ("Item'", 4)]);
}

#[batched]
fn scaled(x: &Tensor<f64, (Item,)>, by: &Tensor<f64, ()>) -> Tensor<f64, (Item,)> {
    (x * by).eval()
}

/// A function does not know that an extra dim is the prime of one of its dims, so the sizes are
/// compared when the result is opened.
#[test]
fn the_sizes_of_primes_in_a_rest() {
    fn scaled_by_rest<B: Dims>(
        x: &Tensor<f64, (Item,)>,
        by: &Tensor<f64, (Rest<B>,)>,
    ) -> Tensor<f64, (Item, Rest<B>)> {
        (x * by).eval()
    }
    let ways = |x: &Tensor<f64, (Item,)>, y: &Tensor<f64, (Prime<Item>,)>, way: usize| -> Square {
        match way {
            0 => batched(Item, (x, y), |(x, y)| (x * y).eval()),
            1 => vmap(|x: Tensor<f64, ()>| (&x * y).eval(), Item)(x),
            2 => scaled(x, y),
            _ => scaled_by_rest(x, &y.clone().seal(())).unseal(),
        }
    };
    let x = ones(Item.of(3));
    let both = "dim `Item` has size 3, but `Item'`, which must have the same size, was given size 2";
    for way in 0..4 {
        assert_eq!(ways(&x, &ones(prime(Item.of(3))), way).dims(), [("Item", 3), ("Item'", 3)]);
        let text = without_locations(message(|| ways(&x, &ones(prime(Item.of(2))), way)));
        assert!(text.starts_with(both), "way {way}: {text}");
    }
}

#[test]
fn gradients() {
    let x = rows(4, 3);
    let matrix = x.view().order((Item, Feat));
    let slopes = grad(|x: &Tensor<f64, (Item, Feat)>| gram(x).square().sum((Item, prime(Item))), &x);
    close(slopes.order((Item, Feat)), 4.0 * matrix.dot(&matrix.t()).dot(&matrix));
    let s = square(3, 1);
    let slopes = grad(|s: &Square| s.compose(s, Item).trace(Item, prime(Item)), &s);
    close(slopes.order((prime(Item), Item)), 2.0 * s.order((Item, prime(Item))));
}

#[test]
fn jacobians_and_hessians() {
    let x: Tensor<f64, (Item,)> = randn(Item.of(4), 3);
    let p = x.view().softmax(Item).order(Item);
    let expected = Array2::from_diag(&p) - Array2::from_shape_fn((4, 4), |(i, j)| p[i] * p[j]);
    let j: Square = jacobian(|x: &Tensor<f64, (Item,)>| x.softmax(Item).eval(), &x);
    close(j.order((Item, prime(Item))), expected.clone());
    let h: Square = hessian_primed(|x| x.logsumexp(Item), &x);
    close(h.order((Item, prime(Item))), expected.clone());
    let h: Tensor<f64, (Item, Feat)> = hessian(|x| x.logsumexp(Item), &x, (Item,), (Feat,));
    close(h.order((Item, Feat)), expected);

    // The axis of the output has the dim itself, and the axis of the input has the dim's prime,
    // even if the input has other dims.
    let x: Tensor<f64, (Feat, Item)> = randn((Item.of(3), Feat.of(2)), 1);
    let weights: Tensor<f64, (Item, Feat)> = randn((Item.of(3), Feat.of(2)), 2);
    let f = |x: &Tensor<f64, (Item, Feat)>| (x * &weights).sum(Feat).cumsum(Item);
    let j: Tensor<f64, (Item, Prime<Item>, Feat)> = jacobian(f, &x);
    let w = weights.view().order((Item, Feat));
    let expected = Array3::from_shape_fn((3, 3, 2), |(i, j, f)| if j <= i { w[[j, f]] } else { 0.0 });
    close(j.order((Item, prime(Item), Feat)), expected);
    let h: Tensor<f64, (Item, Prime<Item>, Feat, Prime<Feat>)> =
        hessian_primed(|x| (x * &weights).sum((Item, Feat)).square(), &x);
    let expected = ndarray::Array4::from_shape_fn((3, 2, 3, 2), |(i, f, j, g)| 2.0 * w[[i, f]] * w[[j, g]]);
    close(h.order((Item, Feat, prime(Item), prime(Feat))), expected);
}

#[test]
fn recorded() {
    let program = record(|x: &Rows| gram(x), &rows(4, 1)).expect("the function can be recorded");
    assert!(program.to_string().contains("Item'"), "{program}");
    assert_eq!(program.call(&rows(4, 2)), gram(&rows(4, 2)));
    // With any size, which the dim and its prime share.
    let open =
        record(|x: &Rows| gram(x), spec((dynamic(Item), Feat.of(3)))).expect("the function can be recorded");
    let squares = record(|x: &Square| x.compose(x, Item), spec((dynamic(Item), dynamic(prime(Item)))));
    let squares = squares.expect("the function can be recorded");
    for n in [1, 4, 30] {
        let (x, s) = (rows(n, 3), square(n, 4));
        close(open.call(&x).order((Item, prime(Item))), gram(&x).order((Item, prime(Item))));
        close(squares.call(&s).order((Item, prime(Item))), s.compose(&s, Item).order((Item, prime(Item))));
    }
    #[cfg(feature = "serde")]
    {
        use typed_dims::program::Program;
        let text = serde_json::to_string(&program).expect("the program can be written");
        let loaded: Program<&Tensor<f64, (Item, Feat)>, Square> =
            serde_json::from_str(&text).expect("the program can be read");
        assert!(loaded == program);
        assert_eq!(loaded.call(&rows(4, 2)), gram(&rows(4, 2)));
    }
}

#[cfg(feature = "serde")]
#[test]
fn serialized() {
    let x = square(2, 1);
    let text = serde_json::to_string(&x).expect("the tensor can be written");
    assert!(text.contains(r#"["Item","Item'"]"#), "{text}");
    assert_eq!(serde_json::from_str::<Square>(&text).expect("the tensor can be read"), x);
    let wrong = r#"{"dims": ["Item", "Item'"], "sizes": [1, 2], "elements": [1.0, 2.0]}"#;
    let text = serde_json::from_str::<Square>(wrong).expect_err("the sizes differ").to_string();
    let both = "dim `Item` has size 1, but `Item'`, which must have the same size, was given size 2";
    assert!(text.starts_with(both), "{text}");
}

#[cfg(all(feature = "safetensors", feature = "npy"))]
#[test]
fn in_files() {
    use typed_dims::file::{AlignedBytes, npy, npz, safetensors};
    let x = square(2, 1);
    let both = "dim `Item` has size 1, but `Item'`, which must have the same size, was given size 2";

    let mut file = safetensors::SafetensorsWriter::new();
    file.put("x", &x).unwrap();
    let file = safetensors::SafetensorsReader::new(AlignedBytes::copied(&file.to_bytes().unwrap()).unwrap())
        .unwrap();
    assert_eq!(file.get("x").unwrap().load::<f64, (Item, Prime<Item>)>().unwrap(), x);
    assert_eq!(file.get("x").unwrap().load_as::<f64, _>((Item, prime(Item))).unwrap(), x);

    let bytes = npy::to_bytes(&x).unwrap();
    let file = npy::NpyReader::new(AlignedBytes::copied(&bytes).unwrap()).unwrap();
    assert_eq!(file.get().unwrap().names(), Some(vec!["Item", "Item'"]));
    assert_eq!(file.get().unwrap().load::<f64, (Item, Prime<Item>)>().unwrap(), x);

    // In a file, `Item'` can be the prime of another `Item`, with another size.
    let bytes = npy::to_bytes(ones::<f64, _>((Item.of(1), prime(other::Item.of(2))))).unwrap();
    let file = npy::NpyReader::new(bytes).unwrap();
    let text = file.get().unwrap().load::<f64, (Item, Prime<Item>)>().unwrap_err().to_string();
    assert!(text.contains(both), "{text}");
    let text = file.get().unwrap().load_as::<f64, _>((Item, prime(Item))).unwrap_err().to_string();
    assert!(text.contains(both), "{text}");

    let mut file = npz::NpzWriter::new();
    file.put("x", &x).unwrap();
    let mut file = npz::NpzReader::new(file.into_bytes().unwrap()).unwrap();
    let back: Square = file.load("x").unwrap();
    assert_eq!(back, x);
}
