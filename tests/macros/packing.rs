//! `pack!`, `unpack!`, `parse_shape!` and `gather!`.

use crate::reference::input::Random;
use crate::reference::patterns::random;
use ndarray::{Array, Array1, Array2, Array3, Array4, ArrayD, array, s};
use typed_dims::prelude::*;

#[test]
fn arrays_of_different_ranks_are_packed() {
    let mut generator = Random(1);
    let image: Array3<i32> = random(&mut generator, (4, 5, 3));
    let mask: Array2<i32> = random(&mut generator, (4, 5));
    let (packed, shape) = pack!([image, mask], h w *);
    assert_eq!(packed.slice(s![.., .., ..3]), image);
    assert_eq!(packed.slice(s![.., .., 3]), mask);
    assert_eq!(shape.sizes(), [vec![3], vec![]]);
    let [first, second] = unpack!(packed, shape, h w *);
    assert_eq!((first, second), (image.clone().into_dyn(), mask.clone().into_dyn()));
    let parts = unpack!(packed, shape, "h w *");
    assert_eq!((parts.len(), parts[1].ndim()), (2, 2));
}

#[test]
fn the_star_stands_anywhere() {
    let mut generator = Random(2);
    let x: Array4<f64> = random(&mut generator, (2, 3, 4, 5));
    let y: Array4<f64> = random(&mut generator, (2, 6, 1, 5));
    let (packed, shape) = pack!([x, y.view()], a * e);
    assert_eq!(packed.dim(), (2, 18, 5));
    assert_eq!(packed.slice(s![.., ..12, ..]), rearrange!(x, a b c e -> a (b c) e));
    assert_eq!(packed.slice(s![.., 12.., ..]), rearrange!(y, a b c e -> a (b c) e));
    let back: [Array4<f64>; 2] = unpack!(packed, shape, a * e);
    assert_eq!(back, [x.clone(), y.clone()]);
    let (packed, shape) = pack!([x, y], "* e");
    assert_eq!(packed.dim(), (36, 5));
    assert_eq!(unpack!(packed, shape, "* e"), [x.clone(), y.clone()]);
    let (packed, shape) = pack!([x, y, x.slice(s![..1, 0, 0, 0])], *);
    assert_eq!((packed.len(), shape.sizes()[2].clone()), (181, vec![1]));
    let (packed, shape) = pack!([x.slice(s![.., .., ..;-1, 0]), x.slice(s![.., .., 0, 0])], a b *);
    assert_eq!(packed.dim(), (2, 3, 5));
    assert_eq!(unpack!(packed, shape, a b *)[0], x.slice(s![.., .., ..;-1, 0]).into_dyn());
}

#[test]
fn lists_are_packed() {
    let mut generator = Random(3);
    let parts: Vec<Array2<f32>> = (1..4).map(|n| random(&mut generator, (n, 3))).collect();
    let (packed, shape) = pack!(parts, *c);
    assert_eq!(packed.dim(), (6, 3));
    assert_eq!(unpack!(packed, shape, *c), parts);
    let (packed, shape) = pack!(&parts[1..], "* c");
    assert_eq!(unpack!(packed, shape, "* c"), parts[1..]);
    let dynamic: Vec<ArrayD<f32>> = vec![parts[0].clone().into_dyn(), array![1.0, 2.0, 3.0].into_dyn()];
    let (packed, shape) = pack!(dynamic, *c);
    assert_eq!(packed.dim(), (2, 3));
    assert_eq!(unpack!(packed, shape, *c), dynamic);
    let (packed, shape) = pack!([5, 6, 7], *);
    assert_eq!((packed, unpack!(array![5, 6, 7], shape, *)), (array![5, 6, 7], [5, 6, 7]));
}

#[test]
fn sizes_are_written_out() {
    let mut generator = Random(5);
    let x: Array3<f64> = random(&mut generator, (4, 5, 3));
    // There are as many arrays as entries in the list. Their rank is static if all entries have
    // equally many axes.
    let [two, three] = unpack!(x, [[2], [3]], a * c);
    assert_eq!((two, three), (x.slice(s![.., ..2, ..]).to_owned(), x.slice(s![.., 2.., ..]).to_owned()));
    let [r, g, b] = unpack!(x, [[], [], []], "a b *");
    assert_eq!(rearrange!([r, g, b], n a b -> a b n), x);
    let n = 2;
    let [first, flat] = unpack!(rearrange!(x, a b c -> c (a b)), [[n, 2 * n, 1], [12]], c *);
    assert_eq!((first.shape(), flat.shape()), (&[3, 2, 4, 1][..], &[3, 12][..]));
    // `-1` is inferred from the other sizes.
    for (shape, sizes) in [
        (unpack!(x, [[2], [-1], [2]], a * c), [2, 1, 2]),
        (unpack!(x, [[-1], [5], [0]], a * c), [0, 5, 0]),
        (unpack!(x, [[0], [-1], [3]], a * c), [0, 2, 3]),
    ] {
        assert_eq!(shape.each_ref().map(|part| part.shape()[1]), sizes);
        assert_eq!(pack!(shape, a * c).0, x);
    }
    let [a, b] = unpack!(x, [[1, 2], [-1, 3]], a * c);
    assert_eq!((a.dim(), b.dim()), ((4, 1, 2, 3), (4, 1, 3, 3)));
    let text = |result: Result<[Array3<f64>; 2], DimError>| result.unwrap_err().to_string();
    assert_eq!(
        text(try_unpack!(x, [[4], [2]], a * c)),
        "axis `*` has size 5, but the arrays to unpack have [[4], [2]], in the pattern `a * c`"
    );
    assert!(text(try_unpack!(x, [[6], [-1]], a * c)).contains("[[6], [-1]]"));
    assert!(text(try_unpack!(x, [[-1], [usize::MAX]], a * c)).contains("axis `*` has size 5"));
    assert!(try_unpack!(x, [[2, -1], [2]], a * c).unwrap_err().to_string().contains("[[2, -1], [2]]"));
    assert!(try_unpack!(x, [[0, -1], [5]], a * c).is_err());
}

#[test]
fn what_does_not_fit_is_an_error() {
    let (x, y) = (Array2::<i32>::zeros((2, 3)), Array2::<i32>::zeros((4, 5)));
    assert_eq!(
        try_pack!([x, y], a *).unwrap_err().to_string(),
        "axis `a` has size 2 in array 1, but 4 in array 2, in the pattern `a *`"
    );
    let (packed, shape) = pack!([x, x], a *);
    let error = try_unpack!(packed.slice(s![.., ..5]), shape, a *).unwrap_err();
    assert!(error.to_string().contains("axis `*` has size 5"), "{error}");
    let none: Vec<Array1<i32>> = Vec::new();
    assert!(try_pack!(none, *).unwrap_err().to_string().contains("nothing to pack"));
    let error = try_pack!([x.view().into_dyn()], a b c *).unwrap_err();
    assert_eq!(error.to_string(), "the array has 2 axes, but the pattern names at least 3");
}

#[test]
fn sizes_by_name() {
    let x = Array4::<f32>::zeros((2, 3, 5, 7));
    let s = parse_shape!(x, b _ h w);
    assert_eq!((s.b, s.h, s.w), (2, 5, 7));
    assert_eq!(format!("{s:?}"), "Shape { b: 2, h: 5, w: 7 }");
    let s = parse_shape!(x, "batch ... width");
    assert_eq!((s.batch, s.width), (2, 7));
    let s = parse_shape!(x.view().into_dyn(), type 3 h (v w), v = 7);
    assert_eq!((s.r#type, s.h, s.v, s.w), (2, 5, 7, 1));
    let flat = Array::<i32, _>::zeros(70);
    let s = parse_shape!(x, b _ h w);
    assert_eq!(rearrange!(flat, (b h w) -> w h b, b = s.b, h = s.h).dim(), (7, 5, 2));
    assert!(try_parse_shape!(x, b 4 h w).is_err());
    assert!(try_parse_shape!(x.view().into_dyn(), b h w).unwrap_err().to_string().contains("4 axes"));
}

#[test]
fn elements_are_gathered() {
    let mut generator = Random(4);
    let table: Array2<f64> = random(&mut generator, (6, 3));
    let words = array![[5, 0, 1], [2, 2, 4]];
    let found = gather!(table[_ f], words[b s] => b s f);
    assert_eq!(found, Array3::from_shape_fn((2, 3, 3), |(b, s, f)| table[(words[(b, s)] as usize, f)]));
    assert_eq!(gather!(table[_ f], words[b s] => f (b s)), rearrange!(found, b s f -> f (b s)));
    assert_eq!(gather!(table["_ f"], words["b s"] => "b s f"), found);
    // The comma of generic arguments separates no operands.
    assert_eq!(gather!(Result::<_, ()>::unwrap(Ok(table.clone()))[_ f], words[b s] => b s f), found);
    assert_eq!(gather!(&<Result<_, ()>>::unwrap(Ok(table.clone()))[_ f], words[b s] => b s f), found);
    assert_eq!(gather!(table[_ (f 1)], words[b (s)] => (b 1) s (() f)), found);
    let along: Array2<usize> = array![[0, 2], [1, 1], [2, 0], [0, 0], [1, 2], [2, 2]];
    assert_eq!(
        gather!(table[b _], along[b k] => b k),
        Array2::from_shape_fn((6, 2), |(b, k)| table[(b, along[(b, k)])])
    );
    let image: Array3<f64> = random(&mut generator, (4, 5, 2));
    let (ys, xs) = (array![0_u8, 3, 2], array![4, 0, 1]);
    assert_eq!(
        gather!(image[_ _ c], ys[p], xs[p] => p c),
        Array2::from_shape_fn((3, 2), |(p, c)| image[(ys[p] as usize, xs[p] as usize, c)])
    );
    assert_eq!(gather!(image[(y y2) _ c], xs[p] => p y2 y c, y2 = 2).dim(), (3, 2, 2, 2));
    let error = try_gather!(table[_ f], array![6][p] => p f).unwrap_err().to_string();
    assert!(error.contains("index 6") && error.contains("size 6"), "{error}");
}

#[test]
fn positions_have_several_coordinates() {
    let image = Array::from_iter(0..2 * 3 * 4 * 5).into_shape_with_order((2, 3, 4, 5)).unwrap();
    let yx = Array::from_shape_fn((2, 6, 2), |(b, p, k)| (b + 2 * p + k * p) % (3 + k));
    let expected = Array::from_shape_fn((2, 6, 5), |(b, p, c)| image[(b, yx[(b, p, 0)], yx[(b, p, 1)], c)]);
    assert_eq!(gather!(image[b _ _ c], yx[b p [2]] => b p c), expected);
    assert_eq!(gather!(image["b _ _ c"], yx["b p [2]"] => "b p c"), expected);
    assert_eq!(gather!(image[b _ _ c], yx[b p [2]] => c (b p)), rearrange!(expected, b p c -> c (b p)));

    // One coordinate is in one array, and two are along the first axis of another.
    let b = ndarray::array![1_usize, 0, 1, 1, 0, 0];
    let yx = rearrange!(yx, b p k -> b k p);
    let expected = Array::from_shape_fn((6, 5), |(p, c)| image[(b[p], yx[(0, 0, p)], yx[(0, 1, p)], c)]);
    let first = yx.index_axis(ndarray::Axis(0), 0);
    assert_eq!(gather!(image[_ _ _ c], b[p], first[[2] p] => p c), expected);

    let error = try_gather!(image[_ _ _ c], first[[3] p] => p c).unwrap_err().to_string();
    assert!(error.contains("[3]") && error.contains("size 3") && error.contains("size 2"), "{error}");
    let wrong = &yx + 3;
    let error = try_gather!(image[b _ _ c], wrong[b [2] p] => b p c).unwrap_err().to_string();
    assert!(error.contains("out of range"), "{error}");
}

#[test]
fn gathers_keep_the_axes_that_dots_stand_for() {
    let x = Array::from_iter(0..3 * 4 * 5).into_shape_with_order((3, 4, 5)).unwrap();
    let ids = ndarray::array![[2_usize, 0], [1, 1]];
    let expected = Array::from_shape_fn((2, 2, 4, 5), |(b, k, i, j)| x[(ids[(b, k)], i, j)]);
    assert_eq!(gather!(x[_ ...], ids[b k] => b k ...), expected);
    assert_eq!(gather!(x[_ ...], ids["b k"] => "(b k) ...").shape(), [4, 4, 5]);
    let expected = Array::from_shape_fn((5, 2, 2, 4), |(j, b, k, i)| x[(ids[(b, k)], i, j)]);
    assert_eq!(gather!(x[_ ... j], ids[b k] => j b k ...), expected);
    assert_eq!(gather!(x[_ i j ...], ids[b k] => b k i j ...).shape(), [2, 2, 4, 5]);
}
