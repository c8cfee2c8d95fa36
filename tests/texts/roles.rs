//! Roles of dims: the sections of ONNX's "Dimension Denotation". `ui-tests/fail/roles` has programs
//! that must not compile; `tests/onnx` checks models.
//!
//! | section | the text | test | in models: `onnx/dimension_denotation` | refused: `ui-tests/fail` |
//! |---|---|---|---|---|
//! | Motivation | "Transpose(input, perm=[0, 2, 1, 3]) -> AveragePool" | `motivation::nhcw_is_pooled_along_the_picture` | `motivation::nchw_is_transposed_to_nhcw_and_pooled` | `roles/motivation_nhcw_pooled`, `onnx/model_pools_what_is_no_feature` |
//! | Definition | 1: "fine grain enough" | `definition::no_standard_denotation_passes_for_another` | `denotation_definition::fine_enough_to_tell_channels_from_features` | `roles/definition_channel_is_no_feature` |
//! | | 2: "coarse grain enough" | `definition::features_of_all_kinds` | `denotation_definition::coarse_enough_to_take_width_for_height` | |
//! | | 3: "model agnostic" | `definition::features_of_all_kinds` | `denotation_definition::the_same_for_recurrent_and_convolutional_networks` | |
//! | | "standard denotations" | `definition::the_seven_standard_denotations` | `denotation_definition::the_seven_standard_denotations` | `roles/a_type_behind_the_name` |
//! | | (roles of one's own) | `definition::roles_of_ones_own_refine_others`, `verification::a_role_implies_what_it_refines` | `denotation_verification::denotations_that_are_no_standard_are_refused_where_others_are_expected` | `roles/role_of_ones_own`, `roles_that_refine_each_other`, `role_that_refines_itself`, `refines_what_is_no_role` |
//! | Propagation | "permutes": "out_dim_denotaion[i] = in_dim_denotation[j]" | `propagation::transpose` | `denotation_propagation::transpose` | `roles/propagation_through_a_transpose` |
//! | | "destroys" | `propagation::reduction` | `denotation_propagation::reductions` | |
//! | | "creates" | `propagation::creation_split_and_flatten`, `flattened_and_unflattened_dims`, `windows_and_concatenation` | `denotation_propagation::squeeze_and_unsqueeze`, `reshape_and_flatten` | `roles/propagation_through_flatten`, `propagation_through_a_split` |
//! | | "operation-specific functions" | `propagation::another_name`, `another_meaning_is_said` | the others of `denotation_propagation` | `roles/propagation_through_a_name`, `propagation_to_a_finer_role` |
//! | Verification | "AveragePool .. in the 2D case" | `verification::pooling_wants_features` | `denotation_verification::pooling` | `roles/verification_of_pooling_over_the_batch`, `onnx/model_s_channels_are_pooled` |
//! | | "an operation expects its input to arrive in a particular format" | the others of `verification` | the others of `denotation_verification` | the other `roles/verification_of_..` |
//! | | "if annotated" | `verification::undenoted_dims_are_accepted_everywhere` | `motivation::without_denotations_no_one_can_tell` | |
//! | | "an error should be reported" | | `denotation_verification::a_mistake_is_reported_once` | |
//! | Type Denotation | "how to describe images and other types" | | `type_denotation::of_the_whole_is_read_and_left_alone` | |

use typed_dims::nn::conv::conv;
use typed_dims::nn::norm::Normalization;
use typed_dims::nn::pool::Pooling;
use typed_dims::operators::window::Window;
use typed_dims::prelude::*;
use typed_dims::types::role::{AllPlay, OfRole, Role};
use typed_dims::types::role::{FilterInChannel, FilterOutChannel, FilterSpatial};
use typed_dims::types::set::{Bool, DimsOf, Satisfies};

roles! {
    /// A position in an image.
    pub struct Pixel: DataFeature;
    /// A position in a column of an image.
    pub struct Row: Pixel;
    /// A role that refines no other.
    pub struct Sensor;
}

dims! {
    /// The `N` of `NCHW`.
    pub struct N: DataBatch;
    /// The `C`.
    pub struct C: DataChannel = 3;
    /// The `H`.
    pub struct H: Row;
    /// The `W`.
    pub struct W: DataFeature;
    /// Output channels of a filter.
    pub struct O: FilterOutChannel = 2;
    /// Rows of a filter.
    pub struct Kh: FilterSpatial = 3;
    /// Columns of a filter.
    pub struct Kw: FilterSpatial = 3;
    /// Time steps.
    pub struct T: DataTime;
    /// A probe.
    pub struct Probe: Sensor;
    /// A dim without a role.
    pub struct Plain;
}

fn image() -> Tensor<f32, (N, C, H, W)> {
    from_fn((N.of(2), C, H.of(4), W.of(6)), |(n, c, h, w)| (n * 100 + c * 10 + h * w) as f32)
}

mod motivation {
    use super::*;

    /// The intended program: `NHCW` is pooled along the dims of the image, wherever their axes are.
    /// The mistake does not compile: `ui-tests/fail/roles/motivation_nhcw_pooled.rs`.
    #[test]
    fn nhcw_is_pooled_along_the_picture() {
        let window = Window::new().stride(2);
        let nhcw = image().order((N, H, C, W)).into_tensor((N, H, C, W));
        assert_eq!(nhcw.avg_pool((H, W), 2, &window), image().avg_pool((H, W), 2, &window).eval());
    }
}

mod definition {
    use super::*;

    /// Principles 2 and 3: the width of an image and the hidden units of a recurrent network are
    /// both features.
    #[test]
    fn features_of_all_kinds() {
        dims! { pub struct Hidden: DataFeature; }
        let pooled = |width| image().max_pool(width, 2, &Window::new().stride(2));
        assert_eq!(pooled(W).size(W), 3);
        let hidden = from_fn((T.of(3), Hidden.of(4)), |(t, h)| (t * 4 + h) as f32);
        assert_eq!(
            hidden.max_pool(Hidden, 2, &Window::new().stride(2)).order((T, Hidden)).row(1),
            ndarray::arr1(&[5.0, 7.0])
        );
    }

    #[test]
    fn the_seven_standard_denotations() {
        dims! {
            pub struct A: DataBatch; pub struct B: DataChannel; pub struct D: DataTime; pub struct E: DataFeature;
            pub struct F: FilterInChannel; pub struct G: FilterOutChannel; pub struct I: FilterSpatial;
        }
        fn name<D: Brand<Role: Role>>() -> &'static [&'static str] {
            D::Role::NAMES
        }
        assert_eq!(
            [name::<A>(), name::<B>(), name::<D>(), name::<E>(), name::<F>(), name::<G>(), name::<I>()]
                .concat(),
            [
                "DATA_BATCH",
                "DATA_CHANNEL",
                "DATA_TIME",
                "DATA_FEATURE",
                "FILTER_IN_CHANNEL",
                "FILTER_OUT_CHANNEL",
                "FILTER_SPATIAL"
            ]
        );
        assert!(name::<Plain>().is_empty());
    }

    /// Principle 1, "fine grain enough": no standard role is accepted for another.
    #[test]
    fn no_standard_denotation_passes_for_another() {
        /// Dims that are named after their roles.
        mod of {
            use typed_dims::prelude::dims;
            use typed_dims::types::role;
            dims! {
                pub struct DataBatch: role::DataBatch;
                pub struct DataChannel: role::DataChannel;
                pub struct DataTime: role::DataTime;
                pub struct DataFeature: role::DataFeature;
                pub struct FilterInChannel: role::FilterInChannel;
                pub struct FilterOutChannel: role::FilterOutChannel;
                pub struct FilterSpatial: role::FilterSpatial;
                pub struct Row: crate::roles::Row;
                pub struct Undenoted;
            }
        }
        fn suits<D: Satisfies<OfRole<E>>, E>() -> bool {
            <D::Holds as Bool>::VALUE
        }
        macro_rules! row {
            ($role:ident: $($expected:ident)*) => { [$(suits::<of::$role, $expected>()),*] };
        }
        macro_rules! table {
            ($($role:ident)*) => { [$(row!($role: DataBatch DataChannel DataTime DataFeature FilterInChannel FilterOutChannel FilterSpatial)),*] };
        }
        let table =
            table!(DataBatch DataChannel DataTime DataFeature FilterInChannel FilterOutChannel FilterSpatial);
        assert_eq!(table, std::array::from_fn(|role| std::array::from_fn(|expected| role == expected)));
        assert_eq!(row!(Undenoted: DataBatch DataTime), [true; 2]);
        assert_eq!(row!(Row: Pixel DataFeature DataChannel Sensor), [true, true, false, false]);
    }

    #[test]
    fn roles_of_ones_own_refine_others() {
        assert_eq!(Pixel::NAMES, ["Pixel", "DATA_FEATURE"]);
        assert_eq!(Row::NAMES, ["Row", "Pixel", "DATA_FEATURE"]);
        assert_eq!(Sensor::NAMES, ["Sensor"]);
    }

    #[test]
    fn roles_of_local_dims() {
        dims!(t: DataTime, h: Pixel = 2);
        let x = ndarray::array![[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]];
        let (last, sums) = scan(x.at((t, h)), t, full((), 0.0f32), |sum, x| {
            let sum = (sum + x.sum(h)).eval();
            (sum.clone(), sum)
        });
        assert_eq!(last.order(()), 21.0);
        assert_eq!(sums.order(t), ndarray::arr1(&[3.0, 10.0, 21.0]));
    }
}

mod propagation {
    use super::*;

    fn channels<S: AllPlay<DataChannel>>(_: &Named<f32, S>) {}
    fn features<S: AllPlay<DataFeature>>(_: &Named<f32, S>) {}

    /// `out_dim_denotation[i] = in_dim_denotation[perm[i]]`: a dim keeps its role wherever its axis
    /// is.
    #[test]
    fn transpose() {
        let nhcw = image().order((N, H, C, W)).into_tensor((N, H, C, W));
        let right = nhcw.avg_pool((H, W), 2, &Window::new().stride(2));
        assert_eq!(right.dims(), [("N", 2), ("C", 3), ("H", 2), ("W", 3)]);
    }

    #[test]
    fn reduction() {
        channels(&image().sum((N, H, W)));
        features(&image().sum((N, C)));
    }

    #[test]
    fn creation_split_and_flatten() {
        dims! { pub struct H2: DataFeature; pub struct H1: DataFeature = 2; pub struct Pixels: DataFeature; }
        let parts = image().sum((N, C)).unflatten(H, (H2, H1)).eval();
        features(&parts);
        features(&parts.flatten((H2, H1, W), Pixels));
        let stacked = stack(Pixels, [full(C, 1.0f32), full(C, 2.0)]);
        channels(&stacked.sum(Pixels));
    }

    /// A rename keeps the meaning of a dim. Channels are channels on either side of a filter.
    #[test]
    fn another_name() {
        dims! { pub struct Y: DataFeature; pub struct C2: DataChannel; pub struct Cin: FilterInChannel; pub struct Z; }
        roles! { pub struct Dot: Pixel; }
        dims! { pub struct Fine: Dot; pub struct Coarse: Pixel; }
        features(&image().rename(H, Y).sum((N, C)));
        channels(&image().rename(C, C2).sum((N, H, W)));
        assert_eq!(image().rename(C, Cin).rename(Cin, C2).size(C2), 3);
        // A dim can also be renamed to a dim whose role its own role refines.
        let fine = from_fn(Fine.of(2), |x| x as f32);
        features(&(&fine).rename(Fine, Coarse).rename(Coarse, Y).eval());
        // Either dim of a rename may lack a role.
        features(&image().rename(H, Z).rename(Z, Y).sum((N, C)));
    }

    #[test]
    fn another_meaning_is_said() {
        dims! { pub struct Step: DataTime; }
        let steps = image().redefine(W, Step);
        assert_eq!(steps.size(Step), 6);
        assert_eq!(steps.redefine(Step, W).order((N, C, H, W)), image().order((N, C, H, W)));
    }

    /// A flattened dim can have the role of one of its parts, or none. A part of a dim can have the
    /// role of the whole.
    #[test]
    fn flattened_and_unflattened_dims() {
        dims! {
            pub struct All: DataFeature;
            pub struct Group = 3;
            pub struct Each: DataChannel;
            pub struct Free;
        }
        features(&image().sum(N).flatten((C, H, W), All));
        channels(&image().sum((N, H, W)).unflatten(C, (Group, Each)).sum(Group));
        assert_eq!(image().sum((N, C)).flatten((H, W), Free).size(Free), 24);
        let laid = image().sum((N, C)).laid((H, W));
        let all: Laid<f32, (All,)> = laid.flatten((H, W), All);
        assert_eq!(all.unflatten(All, (H.of(4), W)).sizes(), [4, 6]);
    }

    #[test]
    fn windows_and_concatenation() {
        let twice = concat(H, [image(), image()]);
        features(&twice.sum((N, C)));
        let (x, filter) = (image(), ones::<f32, _>((O, C, Kh, Kw)));
        let y = conv(&x, &filter, C, (H, W), (Kh, Kw), &Window::new());
        features(&y.clone().sum((N, O)));
        // The output channels of a filter are the channels of the next layer's data.
        dims! { pub struct C2: DataChannel = 2; }
        channels(&y.rename(O, C2).sum((N, H, W)));
    }
}

mod verification {
    use super::*;

    /// `[DATA_BATCH, DATA_CHANNEL, DATA_FEATURE, DATA_FEATURE]`
    #[test]
    fn pooling_wants_features() {
        let y = image().avg_pool((H, W), 2, &Window::new().stride(2));
        assert_eq!(y.dims(), [("N", 2), ("C", 3), ("H", 2), ("W", 3)]);
        let y = image().max_pool(W, 2, &Window::new().stride(2));
        assert_eq!(y.size(W), 3);
        assert_eq!(image().adaptive_avg_pool((H, W), 1).size(H), 1);
    }

    #[test]
    fn convolution_contracts_channels() {
        let y = conv(image(), ones::<f32, _>((O, C, Kh, Kw)), C, (H, W), (Kh, Kw), &Window::new());
        assert_eq!(y.dims(), [("N", 2), ("H", 2), ("W", 4), ("O", 2)]);
    }

    #[test]
    fn batch_norm_leaves_channels() {
        let normal = image().batch_norm((N, H, W), 1e-5);
        assert_eq!(normal.mean.dims(), [("C", 3)]);
    }

    #[test]
    fn a_scan_goes_over_time() {
        let x = from_fn((T.of(4), Probe.of(2)), |(t, p)| (t * 10 + p) as f32);
        let (last, all) = scan(&x, T, zeros::<f32, _>(Probe.of(2)), |state, x| {
            let state = (state * 0.5 + x).eval();
            (state.clone(), state)
        });
        assert_eq!(all.index(T, 3).order(Probe), last.order(Probe));
    }

    /// A user's function expects a role, and accepts roles that refine it.
    fn blur<D: Plays<Pixel> + DimsOf<(N, C, H, W), X>, X: Dims>(
        x: &Tensor<f32, (N, C, H, W)>,
        pixels: D,
    ) -> Named<f32, X> {
        x.mean(pixels)
    }

    #[test]
    fn a_role_implies_what_it_refines() {
        assert_eq!(blur(&image(), H).dims(), [("N", 2), ("C", 3), ("W", 6)]);
    }

    #[test]
    fn undenoted_dims_are_accepted_everywhere() {
        dims! { pub struct A; pub struct B; pub struct D; pub struct E; pub struct F; }
        let x = ones::<f32, _>((A.of(2), B.of(3), D.of(4)));
        assert_eq!((&x).avg_pool((A, B, D), 2, &Window::new()).dims(), [("A", 1), ("B", 2), ("D", 3)]);
        assert_eq!((&x).batch_norm((A, B), 1e-5).mean.dims(), [("D", 4)]);
        let y = conv(&x, ones::<f32, _>((B.of(3), E.of(5), F.of(2))), B, A, F, &Window::new());
        assert_eq!(y.dims(), [("A", 1), ("D", 4), ("E", 5)]);
        let (_, all) = scan(&x, B, 0, |n, x| (n + 1, x.sum(A)));
        assert_eq!(all.dims(), [("B", 3), ("D", 4)]);
    }
}
