//! Converts tensors of candle, images of `image`, arrays of mdarray and matrices of nalgebra to and
//! from this library's tensors.

#[cfg(feature = "nalgebra")]
mod matrices {
    use nalgebra::{DMatrix, DVector, Matrix2x3, Matrix3xX, Vector3, dmatrix, dvector, matrix, vector};
    use typed_dims::ndarray::array;
    use typed_dims::prelude::*;

    dims! {
        struct Row;
        struct Col;
        struct Three = 3;
    }

    #[test]
    fn they_are_bound_as_arrays_are() {
        let m = dmatrix![1.0, 2.0, 3.0; 4.0, 5.0, 6.0];
        let fixed = matrix![1.0, 2.0, 3.0; 4.0, 5.0, 6.0];
        dims!(i, j);
        assert_eq!(m.at((i, j)).order((i, j)), array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
        assert_eq!(fixed.at((i, j)).order((j, i)), array![[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]);
        assert_eq!(m.at((1, j)).order(j), array![4.0, 5.0, 6.0]);
        dims!(k, l);
        assert_eq!(
            m.view_with_steps((0, 0), (2, 2), (0, 1)).at((k, l)).order((k, l)),
            array![[1.0, 3.0], [4.0, 6.0]]
        );
        // A row has two axes. A matrix type with one column has one axis.
        dims!(one, a);
        assert_eq!(fixed.row(1).at((one, a)).order((one, a)), array![[4.0, 5.0, 6.0]]);
        dims!(b, c, n, p);
        assert_eq!(fixed.column(1).at(b).order(b), array![2.0, 5.0]);
        assert_eq!(dvector![7, 8].at(c).order(c), array![7, 8]);
        assert_eq!(vector![7, 8, 9].at(n).order(n), array![7, 8, 9]);
        assert_eq!(DMatrix::<f32>::zeros(0, 4).at((p, ..)).sum(p).order(()).shape(), [4]);
    }

    #[test]
    fn they_are_written_to() {
        let (mut m, mut v) = (Matrix2x3::<f32>::zeros(), DVector::<f32>::zeros(2));
        dims!(i, j);
        m.at_mut((i, j)).assign((10 * i + j).cast::<f32>());
        v.at_mut(i).assign(m.at((i, j)).sum(j));
        assert_eq!((m, v), (matrix![0.0, 1.0, 2.0; 10.0, 11.0, 12.0], dvector![3.0, 33.0]));
    }

    #[test]
    fn what_is_taken_and_given_back_stays_where_it_is() {
        let m = DMatrix::from_fn(40, 50, |i, j| (i * 50 + j) as f64);
        let (copy, place) = (m.clone(), m.as_ptr());
        let tensor = m.into_tensor((Row, Col));
        assert_eq!(tensor.dims(), [("Row", 40), ("Col", 50)]);
        let (back, plan) = explain(|| -> DMatrix<f64> { tensor.into_matrix((Row, Col)) });
        assert_eq!((&back, back.as_ptr(), plan.steps.len()), (&copy, place, 0));
        // Converting in the other order moves elements.
        let across: DMatrix<f64> = back.into_tensor((Row, Col)).into_matrix((Col, Row));
        assert_eq!(across, copy.transpose());
        let v = dvector![1, 2, 3];
        let place = v.as_ptr();
        let back: DVector<i32> = v.into_tensor(Row).into_matrix(Row);
        assert_eq!(back.as_ptr(), place);
    }

    #[test]
    fn static_ones_and_expressions() {
        let tensor = matrix![1.0, 2.0, 3.0; 4.0, 5.0, 6.0].into_tensor((Row, Three));
        let twice: Matrix2x3<f64> = (&tensor * 2.0).into_matrix((Row, Three));
        assert_eq!(twice, matrix![2.0, 4.0, 6.0; 8.0, 10.0, 12.0]);
        let sums: Vector3<f64> = tensor.sum(Row).into_matrix(Three);
        assert_eq!(sums, vector![5.0, 7.0, 9.0]);
        let wide = Matrix3xX::from_column_slice(&[1, 2, 3, 4, 5, 6]).into_tensor((Three, Col));
        assert_eq!(wide.order((Three, Col)), array![[1, 4], [2, 5], [3, 6]]);
    }

    #[test]
    fn sizes_that_differ_are_errors() {
        let tensor = zeros::<f32, _>((Row.of(2), Col.of(4)));
        let error =
            (&tensor).try_into_matrix::<Matrix2x3<f32>, _, _>((Row, Col)).expect_err("the sizes differ");
        assert!(matches!(error, DimError::SizeConflict { dim: "Col", first: 4, second: 3, .. }), "{error}");
        let error = DMatrix::<f32>::zeros(2, 4)
            .try_into_tensor((Row, Three))
            .map(|_| ())
            .expect_err("the sizes differ");
        assert!(matches!(error, DimError::StaticSize { dim: "Three", fixed: 3, found: 4, .. }), "{error}");
    }
}

#[cfg(feature = "image")]
mod images {
    use image::{GrayImage, ImageBuffer, Luma, Rgb, RgbImage, RgbaImage};
    use typed_dims::prelude::*;

    dims! {
        struct Y;
        struct X;
        struct Color = 3;
    }

    fn picture() -> RgbImage {
        RgbImage::from_fn(4, 2, |x, y| Rgb([x as u8, y as u8, 7]))
    }

    #[test]
    fn they_are_bound_as_arrays_are() {
        let (picture, gray) = (picture(), GrayImage::from_fn(3, 2, |x, y| Luma([(10 * y + x) as u8])));
        dims!(y, x, c);
        let found = picture.at((y, x, c)).order((c, y, x));
        assert_eq!(found.shape(), [3, 2, 4]);
        assert_eq!((found[[0, 1, 3]], found[[1, 1, 3]], found[[2, 0, 0]]), (3, 1, 7));
        dims!(i, j);
        assert_eq!(gray.at((i, j)).order((i, j)), ndarray::array![[0, 1, 2], [10, 11, 12]]);
        // A buffer can be longer than its image.
        let long = ImageBuffer::<Luma<f32>, _>::from_raw(2, 1, vec![1.0, 2.0, 99.0])
            .expect("the buffer is long enough");
        dims!(k, l);
        assert_eq!(long.at((k, l)).order((k, l)), ndarray::array![[1.0, 2.0]]);
        assert_eq!(long.into_tensor((Y, X)).dims(), [("Y", 1), ("X", 2)]);
        let mut picture = picture;
        picture.at_mut((.., .., 2)).assign(ndarray::array![9u8].at(0));
        assert_eq!(picture.get_pixel(3, 1), &Rgb([3, 1, 9]));
    }

    #[test]
    fn what_is_taken_and_given_back_stays_where_it_is() {
        let whole = picture();
        let place = whole.as_raw().as_ptr();
        let tensor = whole.into_tensor((Y, X, Color));
        let (back, plan) = explain(|| -> RgbImage { tensor.into_image((Y, X, Color)) });
        assert_eq!((&back, back.as_raw().as_ptr(), plan.steps.len()), (&picture(), place, 0));
        let across: RgbImage = back.into_tensor((Y, X, Color)).into_image((X, Y, Color));
        assert_eq!((across.dimensions(), across.get_pixel(1, 3)), ((2, 4), &Rgb([3, 1, 7])));
    }

    #[test]
    fn expressions_and_gray() {
        let tensor = picture().into_tensor((Y, X, Color));
        let gray: GrayImage = tensor.max(Color).into_image((Y, X));
        assert_eq!((gray.dimensions(), gray.get_pixel(3, 1)), ((4, 2), &Luma([7])));
        let error = tensor
            .rename(Color, X2)
            .try_into_image::<RgbaImage, _, _>((Y, X, X2))
            .expect_err("the sizes differ");
        let expected = "dim `X2` has size 3, but RGBA pixels have 4 channels (at ";
        assert!(error.to_string().starts_with(expected), "{error}");
    }

    dims! {
        struct X2;
    }
}

#[cfg(feature = "mdarray")]
mod arrays {
    use typed_dims::mdarray::{Array, Const, DArray, DynRank, array, darray};
    use typed_dims::prelude::*;

    dims! {
        struct Row;
        struct Col;
        struct Three = 3;
    }

    #[test]
    fn they_are_bound_as_arrays_are() {
        let (mut m, fixed) = (darray![[1, 2, 3], [4, 5, 6]], array![[1, 2, 3], [4, 5, 6]]);
        dims!(i, j, k, l);
        assert_eq!(m.at((i, j)).order((j, i)), ndarray::array![[1, 4], [2, 5], [3, 6]]);
        assert_eq!((m.at((i, j)) + fixed.at((i, j))).sum(j).order(i), ndarray::array![12, 30]);
        assert_eq!(m.transpose().at((k, l)).order((k, l)), ndarray::array![[1, 4], [2, 5], [3, 6]]);
        m.at_mut((i, j)).add_assign(i.cast::<i32>() * 10);
        assert_eq!(m, darray![[1, 2, 3], [14, 15, 16]]);
        m.view_mut(.., 1).at_mut(i).assign(0);
        assert_eq!(m, darray![[1, 0, 3], [14, 0, 16]]);
        let any = m.into_dyn();
        assert_eq!(any.at((i, j)).max(j).order(i), ndarray::array![3, 16]);
        assert!(matches!(any.try_at(i).map(|_| ()), Err(DimError::Rank { found: 2, bound: 1 })));
        assert_eq!(DArray::<f32, 2>::zeros([0, 4]).at((.., ..)).order(()).shape(), [0, 4]);
    }

    #[test]
    fn what_is_taken_and_given_back_stays_where_it_is() {
        let m = DArray::<usize, 2>::from_fn([40, 50], |at| at[0] * 50 + at[1]);
        let (copy, place) = (m.clone(), m.as_ptr());
        let tensor = m.into_tensor((Row, Col));
        assert_eq!(tensor.dims(), [("Row", 40), ("Col", 50)]);
        let (back, plan) = explain(|| -> DArray<usize, 2> { tensor.into_mdarray((Row, Col)) });
        assert_eq!((&back, back.as_ptr(), plan.steps.len()), (&copy, place, 0));
        let across: DArray<usize, 2> = back.into_tensor((Row, Col)).into_mdarray((Col, Row));
        assert_eq!(across, copy.transpose().to_array());
    }

    #[test]
    fn sizes_in_types() {
        let x = array![[1, 2, 3], [4, 5, 6]].into_tensor((Row, Three));
        let twice: Array<i32, (Const<2>, usize)> = (&x * 2).into_mdarray((Row, Three));
        assert_eq!(twice, darray![[2, 4, 6], [8, 10, 12]]);
        let any: Array<i32, DynRank> = x.sum(Row).into_mdarray(Three);
        assert_eq!((any.rank(), any.into_vec()), (1, vec![5, 7, 9]));
        let error =
            x.try_into_mdarray::<(Const<2>, Const<4>), _, _>((Row, Three)).expect_err("the sizes differ");
        assert!(matches!(error, DimError::SizeConflict { dim: "Three", first: 3, second: 4, .. }), "{error}");
        let error = darray![[1, 2]].try_into_tensor((Row, Three)).map(|_| ()).expect_err("the sizes differ");
        assert!(matches!(error, DimError::StaticSize { dim: "Three", fixed: 3, found: 2, .. }), "{error}");
    }

    /// `Layout` and `Dim` are safe traits of mdarray, so a layout or a size of another crate may lead
    /// out of the array.
    #[test]
    fn only_arrays_with_layouts_and_sizes_of_mdarray_are_bound() {
        use core::marker::PhantomData;
        use typed_dims::mdarray::{Dense, Dim, Layout, Strided, View};
        use typed_dims::pipeline::bind::Source;

        struct Probe<A>(PhantomData<A>);
        trait IsNone {
            const IS_SOURCE: bool = false;
        }
        impl<A> IsNone for Probe<A> {}
        impl<A: Source> Probe<A> {
            const IS_SOURCE: bool = true;
        }
        fn with_layout<L: Layout>() -> bool {
            <Probe<View<'static, f64, (usize, Const<2>), L>>>::IS_SOURCE
        }
        fn with_size<D: Dim>() -> bool {
            <Probe<Array<f64, (D, usize)>>>::IS_SOURCE
        }
        const {
            assert!(<Probe<View<'static, f64, (usize, Const<2>), Dense>>>::IS_SOURCE);
            assert!(<Probe<View<'static, f64, (usize, Const<2>), Strided>>>::IS_SOURCE);
            assert!(<Probe<Array<f64, (Const<2>, usize)>>>::IS_SOURCE);
        }
        assert!(!with_layout::<Dense>());
        assert!(!with_size::<usize>());
    }
}

#[cfg(feature = "candle")]
mod candle {
    use half::{bf16, f16};
    use typed_dims::candle_core::{DType, Device, Tensor as Candle, WithDType};
    use typed_dims::prelude::*;
    use typed_dims::types::scalar::{Element, Num};

    dims! {
        struct Batch;
        struct Feat;
        struct Three = 3;
    }

    fn both_ways<T: Element + Num + WithDType>() {
        let values: Vec<T> = (0..6).map(|at| T::from_f64(f64::from(at))).collect();
        let theirs = Candle::from_vec(values.clone(), (2, 3), &Device::Cpu).expect("the sizes fit");
        let ours: Tensor<T, (Batch, Three)> = theirs.to_tensor((Batch, Three));
        assert_eq!((&ours).order((Batch, Three)).into_raw_vec_and_offset().0, values);
        // Axes in another order.
        let turned = theirs.t().expect("the tensor has two axes");
        assert_eq!(turned.to_tensor::<T, _>((Three, Batch)), ours);
        let back = (&ours).into_candle((Three, Batch));
        assert_eq!((back.dtype(), back.dims()), (T::DTYPE, &[3, 2][..]));
        let difference = (turned.to_dtype(DType::F64).expect("the elements can be cast")
            - back.to_dtype(DType::F64).expect("the elements can be cast"))
        .and_then(|difference| difference.abs()?.sum_all()?.to_scalar::<f64>());
        assert_eq!(difference.expect("the difference is a scalar"), 0.0);
    }

    #[test]
    fn all_elements_go_both_ways() {
        both_ways::<f32>();
        both_ways::<f64>();
        both_ways::<f16>();
        both_ways::<bf16>();
        both_ways::<u8>();
        both_ways::<u32>();
        both_ways::<i64>();
    }

    #[test]
    fn parts_and_scalars() {
        let theirs = Candle::arange(0f32, 24.0, &Device::Cpu)
            .and_then(|t| t.reshape((2, 3, 4)))
            .expect("the sizes fit");
        let part = theirs.narrow(2, 1, 2).and_then(|t| t.get(1)).expect("the part is in range");
        assert_eq!(
            part.to_tensor::<f32, _>((Three, Feat)).order((Three, Feat)),
            ndarray::array![[13.0, 14.0], [17.0, 18.0], [21.0, 22.0]]
        );
        let wide = Candle::zeros((1, 3), DType::U8, &Device::Cpu)
            .and_then(|t| t.broadcast_as((5, 3)))
            .expect("the sizes fit");
        assert_eq!(wide.to_tensor::<u8, _>((Batch, Three)).dims(), [("Batch", 5), ("Three", 3)]);
        assert_eq!(
            from_vec((), vec![7i64]).into_candle(()).to_scalar::<i64>().expect("the tensor is a scalar"),
            7
        );
        let none = zeros::<f32, _>((Batch.of(0), Three)).into_candle((Batch, Three));
        assert_eq!((none.dims(), none.to_tensor::<f32, _>((Batch, Three)).size(Batch)), (&[0, 3][..], 0));
    }

    #[test]
    fn an_owned_tensor_gives_its_elements() {
        let x = zeros::<f32, _>((Batch.of(20), Feat.of(30)));
        let (theirs, plan) = explain(|| x.into_candle((Batch, Feat)));
        assert_eq!((theirs.dims(), plan.steps.len()), (&[20, 30][..], 0));
        let (_, plan) =
            explain(|| (theirs.to_tensor::<f32, _>((Batch, Feat)) + 1.0).into_candle((Feat, Batch)));
        assert_eq!(plan.steps.len(), 1, "{plan}");
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let theirs = Candle::zeros((2, 4), DType::F32, &Device::Cpu).expect("the tensor can be made");
        let refused = |error: Result<(), DimError>| error.expect_err("an error").to_string();
        assert_eq!(
            refused(theirs.try_to_tensor::<f64, _>((Batch, Feat)).map(|_| ())),
            "a candle tensor of `f32` is not one of `f64`: convert it first with `to_dtype`"
        );
        let error = theirs.try_to_tensor::<f32, _>(Batch).map(|_| ()).expect_err("the ranks differ");
        assert!(matches!(error, DimError::Rank { found: 2, bound: 1 }), "{error}");
        let error = theirs.try_to_tensor::<f32, _>((Batch, Three)).map(|_| ()).expect_err("the sizes differ");
        assert!(matches!(error, DimError::StaticSize { dim: "Three", fixed: 3, found: 4, .. }), "{error}");
    }
}
