//! `#[derive(Load)]`: matching fields with tensors in a file, and the errors.

use super::*;
use typed_dims::file::safetensors::{SafetensorsReader, SafetensorsWriter};
use typed_dims::types::dim::DimList;
use typed_dims::types::set::{DimsOf, Union};

dims! {
    pub struct Batch;
    pub struct Width;
    pub struct Head;
    pub struct HeadDim;
    pub struct Inner;
}

#[derive(Load)]
struct Linear<I: Dims, O: Dims + Union<I>> {
    #[load(axes = (O, I), layout = (I, O))]
    weight: Named<f32, <O as Union<I>>::Out>,
    #[load(axes = (O,))]
    bias: Named<f32, O>,
}

impl<I: Dims + DimList + Default, O: Dims + Union<I>> Linear<I, O> {
    fn of<X, Y, Z>(&self, x: &Named<f32, X>) -> Named<f32, Z>
    where
        X: Dims + Union<<O as Union<I>>::Out, Out = Y>,
        I: DimsOf<Y, Z>,
        Y: Dims,
        Z: Dims + Union<O, Out = Z>,
    {
        ((x * &self.weight).sum(I::default()) + &self.bias).eval()
    }
}

#[derive(Load)]
struct Layer {
    query: Linear<(Width,), (Head, HeadDim)>,
    out: Option<Linear<(Head, HeadDim), (Width,)>>,
}

#[derive(Load)]
struct Network<'w> {
    layers: Vec<Layer>,
    #[load(name = "table.weight")]
    table: TensorView<'w, f32, (Inner, Width)>,
    #[load(default)]
    calls: usize,
}

/// A file without dim names, like those of other programs.
fn anonymous(tensors: &[(&str, &[usize])]) -> Vec<u8> {
    use ::safetensors::{Dtype, serialize, tensor::TensorView};
    let bytes: Vec<Vec<u8>> = tensors
        .iter()
        .map(|(_, sizes)| {
            (0..sizes.iter().product()).flat_map(|at: usize| (at as f32).to_le_bytes()).collect()
        })
        .collect();
    let views = tensors.iter().zip(&bytes).map(|((name, sizes), bytes)| {
        (*name, TensorView::new(Dtype::F32, sizes.to_vec(), bytes).expect("the sizes fit"))
    });
    serialize(views, None).expect("the tensors are well-formed")
}

const WHOLE: [(&str, &[usize]); 7] = [
    ("layers.0.query.weight", &[6, 4]),
    ("layers.0.query.bias", &[6]),
    ("layers.1.query.weight", &[6, 4]),
    ("layers.1.query.bias", &[6]),
    ("layers.1.out.weight", &[4, 6]),
    ("layers.1.out.bias", &[4]),
    ("table.weight", &[5, 4]),
];

fn faults(tensors: &[(&str, &[usize])]) -> String {
    let bytes = anonymous(tensors);
    let file = SafetensorsReader::new(&bytes).unwrap();
    let weights = Weights::of(&file).unwrap().with(Head.of(2)).unwrap();
    let error = Weights::of(&file).unwrap().with((Head.of(2), Head.of(3))).err().unwrap();
    assert_eq!(error.to_string(), "dim `Head` has size 2, but was also given size 3");
    weights.load::<Network<'_>>().err().expect("an error").to_string()
}

/// The derive cannot look through a type alias, so an attribute lists the axes.
#[test]
fn axes_of_an_alias_are_given() {
    type Dims = (Width, Inner);
    #[derive(Load)]
    struct Table {
        #[load(axes = (Inner, Width))]
        table: Tensor<f32, Dims>,
    }
    let bytes = anonymous(&[("table", &[5, 4])]);
    let file = SafetensorsReader::new(&bytes).unwrap();
    let weights = Weights::of(&file).unwrap();
    // The whole struct can be optional.
    let found: Option<Table> = weights.load().unwrap();
    let expected = Array2::from_shape_fn((5, 4), |(row, column)| (4 * row + column) as f32);
    assert_eq!(found.unwrap().table.order((Inner, Width)), expected);
}

/// The code of the derive has names that no default can see.
#[test]
fn defaults_may_have_any_names() {
    fn from(value: f32) -> f32 {
        value + 1.0
    }
    macro_rules! table {
        ($name:ident, $bias:expr) => {
            #[derive(Load)]
            struct $name {
                table: Tensor<f32, (Inner, Width)>,
                #[load(default = from(2.0))]
                scale: f32,
                #[load(default = $bias)]
                bias: f32,
            }
        };
    }
    table!(Table, from(from(3.0)));
    let bytes = anonymous(&[("table", &[1, 2])]);
    let file = SafetensorsReader::new(&bytes).unwrap();
    let found: Table = Weights::of(&file).unwrap().load().unwrap();
    assert_eq!(found.table.order((Inner, Width)), ndarray::array![[0.0, 1.0]]);
    assert_eq!((found.scale, found.bias), (3.0, 5.0));
}

/// What a `macro_rules!` macro puts into a struct stays in one piece, and has other spans.
#[test]
fn types_and_defaults_may_come_from_macros() {
    macro_rules! table {
        ($name:ident, $ty:ty, $dims:ty, $axes:ty, $bias:expr, $($tokens:tt)*) => {
            #[derive(Load)]
            struct $name {
                table: $ty,
                listed: Tensor<f32, $dims>,
                #[load(axes = $axes)]
                turned: Tensor<f32, $dims>,
                #[load(default = $bias * 2.0)]
                bias: f32,
                tokens: $($tokens)*,
            }
        };
    }
    table!(
        Table,
        Tensor<f32, (Inner, Width)>,
        (Inner, Width),
        (Width, Inner),
        1.0 + 2.0,
        Tensor<f32, (Inner, Width)>
    );
    let bytes =
        anonymous(&[("table", &[1, 2]), ("listed", &[1, 2]), ("turned", &[2, 1]), ("tokens", &[1, 2])]);
    let file = SafetensorsReader::new(&bytes).unwrap();
    let found: Table = Weights::of(&file).unwrap().load().unwrap();
    for tensor in [found.table, found.listed, found.turned, found.tokens] {
        assert_eq!(tensor.order((Inner, Width)), ndarray::array![[0.0, 1.0]]);
    }
    assert_eq!(found.bias, 6.0);
}

#[test]
fn fields_are_tensors_of_the_file() {
    let bytes = anonymous(&WHOLE);
    let file = SafetensorsReader::new(&bytes).unwrap();
    let network: Network<'_> = Weights::of(&file).unwrap().with(Head.of(2)).unwrap().load().unwrap();
    assert_eq!((network.layers.len(), network.calls), (2, 0));
    assert!(network.layers[0].out.is_none() && network.layers[1].out.is_some());
    let whole = Array2::from_shape_fn((6, 4), |(row, column)| (4 * row + column) as f32);
    dims!(h = 2, f, w);
    let weight = whole.at(((h, f), w)).order((h, f, w));
    assert_eq!((&network.layers[0].query.weight).order((Head, HeadDim, Width)), weight);
    assert_eq!(network.table.dims(), [("Width", 4), ("Inner", 5)]);
    let start = (&network.table).index(Width, 0).index(Inner, 0).order(());
    assert_eq!(start, 0.0);
}

#[test]
fn a_layer_is_written_once_for_any_dims() {
    let bytes = anonymous(&WHOLE);
    let file = SafetensorsReader::new(&bytes).unwrap();
    let network: Network<'_> = Weights::of(&file).unwrap().with(Head.of(2)).unwrap().load().unwrap();
    let layer = &network.layers[1];
    let x = from_fn((Batch.of(3), Width.of(4)), |(batch, width)| (batch * 2 + width) as f32);
    let query: Tensor<f32, (Batch, Head, HeadDim)> = layer.query.of(&x);
    let back: Tensor<f32, (Batch, Width)> = layer.out.as_ref().unwrap().of(&query);
    for (batch, row) in back.order((Batch, Width)).rows().into_iter().enumerate() {
        for (width, &found) in row.iter().enumerate() {
            let at = |i: usize| (batch * 2 + i) as f32;
            let query = |o: usize| o as f32 + (0..4).map(|i| at(i) * (4 * o + i) as f32).sum::<f32>();
            let expected = width as f32 + (0..6).map(|o| query(o) * (6 * width + o) as f32).sum::<f32>();
            assert_eq!(found, expected);
        }
    }
}

#[test]
fn everything_that_is_wrong_is_told() {
    let mut tensors = WHOLE.to_vec();
    tensors[0].1 = &[7, 4];
    tensors[2].1 = &[24];
    tensors[3].0 = "layers.1.query.offset";
    tensors[6].1 = &[5, 3];
    assert_eq!(
        faults(&tensors),
        "the weights do not fit:
  `layers.0.query.weight` has an axis of size 7, which cannot be split into (Head = 2, HeadDim)
  `layers.1.query.weight` has the axes (24), but its field has the axes (Head x HeadDim, Width)
  `layers.1.query.bias` is missing: expected f32 (Head x HeadDim)
  dim `Width` has size 3 in `table.weight` and size 4 in `layers.0.query.weight`
  `layers.1.query.offset` of sizes [6] is not used by any field"
    );
    assert_eq!(
        faults(&WHOLE[6..]),
        "the weights do not fit:
  `layers.0.query.weight` is missing: expected f32 (Head x HeadDim, Width)
  `layers.0.query.bias` is missing: expected f32 (Head x HeadDim)"
    );
}

#[test]
fn names_of_axes_are_compared() {
    #[derive(Load)]
    #[allow(dead_code)]
    struct Table {
        table: Tensor<f32, (Batch, Width)>,
    }

    let mut file = SafetensorsWriter::new();
    file.put("table", zeros::<f32, _>((Batch.of(2), Inner.of(3)))).unwrap();
    let bytes = file.to_bytes().unwrap();
    let file = SafetensorsReader::new(&bytes).unwrap();
    let error = Weights::of(&file).unwrap().load::<Table>().err().unwrap();
    assert_eq!(
        error.to_string(),
        "the weights do not fit:\n  `table` has the axes (Batch = 2, Inner = 3), but its field has the axes (Batch, Width)"
    );
}

#[test]
fn elements_and_static_sizes_are_compared() {
    #[derive(Load)]
    #[allow(dead_code)]
    struct Both2 {
        a: Tensor<f64, (Batch,)>,
        b: Tensor<f32, (Batch, In)>,
    }

    let bytes = anonymous(&[("a", &[2]), ("b", &[2, 4])]);
    let file = SafetensorsReader::new(&bytes).unwrap();
    let error = Weights::of(&file).unwrap().load::<Both2>().err().unwrap();
    assert_eq!(
        error.to_string(),
        "the weights do not fit:
  `a` has elements of type f32, not f64
  dim `In` has size 4 in `b`, expected 3"
    );
}

#[test]
fn linear_maps_of_the_library_are_fields() {
    use typed_dims::nn::Linear;

    #[derive(Load)]
    struct Heads {
        query: Linear<(Width,), (Head, HeadDim)>,
        out: Linear<(Head, HeadDim), (Width,)>,
    }

    let whole =
        [("query.weight", &[6, 4][..]), ("query.bias", &[6]), ("out.weight", &[4, 6]), ("out.bias", &[4])];
    let load = |arrays: &[(&str, &[usize])]| {
        let bytes = anonymous(arrays);
        let file = SafetensorsReader::new(&bytes).unwrap();
        Weights::of(&file).unwrap().with(Head.of(2)).unwrap().load::<Heads>()
    };
    let heads = load(&whole).unwrap();
    let x = from_fn((Batch.of(3), Width.of(4)), |(batch, width)| (batch * 2 + width) as f32);
    let query: Tensor<f32, (Batch, Head, HeadDim)> = heads.query.apply(&x);
    let back: Tensor<f32, (Batch, Width)> = heads.out.apply(&query);
    for (batch, row) in back.order((Batch, Width)).rows().into_iter().enumerate() {
        for (width, &found) in row.iter().enumerate() {
            let query = |o: usize| (0..4).map(|i| (batch * 2 + i) * (4 * o + i)).sum::<usize>() + o;
            assert_eq!(found, (width + (0..6).map(|o| query(o) * (6 * width + o)).sum::<usize>()) as f32);
        }
    }
    let error = load(&[whole[0], whole[2], ("out.bias", &[5])]).err().unwrap();
    assert_eq!(
        error.to_string(),
        "the weights do not fit:
  `query.bias` is missing: expected f32 (Head x HeadDim)
  dim `Width` has size 5 in `out.bias` and size 4 in `query.weight`"
    );
}

#[test]
fn floats_are_converted_where_that_is_asked_for() {
    #[derive(Load)]
    struct Doubles<'w> {
        a: Tensor<f64, (Batch,)>,
        #[load(axes = (Head, Batch), layout = (Batch, Head))]
        b: Tensor<f64, (Batch, Head)>,
        same: TensorView<'w, f32, (Batch,)>,
    }

    let bytes = anonymous(&[("a", &[2]), ("b", &[3, 2]), ("same", &[2])]);
    let file = SafetensorsReader::new(&bytes).unwrap();
    let doubles: Doubles<'_> = Weights::of(&file).unwrap().converting_floats().load().unwrap();
    assert_eq!(doubles.a.order(Batch), ndarray::array![0.0, 1.0]);
    assert_eq!(doubles.b.order((Batch, Head)), ndarray::array![[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]]);
    assert_eq!(doubles.same.order(Batch), ndarray::array![0.0, 1.0]);
    assert!(Weights::of(&file).unwrap().load::<Doubles<'_>>().is_err());

    // A view needs the element type of the file, and floats are not converted to integers.
    #[derive(Load)]
    #[allow(dead_code)]
    struct Others<'w> {
        a: TensorView<'w, f64, (Batch,)>,
        same: Tensor<i32, (Batch,)>,
        b: Tensor<f32, (Batch, Width)>,
    }
    let error = Weights::of(&file).unwrap().converting_floats().load::<Others<'_>>().err().unwrap();
    assert_eq!(
        error.to_string(),
        "the weights do not fit:
  `a` has elements of type f32, not f64
  `same` has elements of type f32, not i32"
    );
}

#[test]
#[cfg(feature = "half")]
fn half_precisions_are_converted() {
    use half::{bf16, f16};

    #[derive(Load)]
    struct Singles {
        a: Tensor<f32, (Batch,)>,
        b: Tensor<f32, (Batch,)>,
        c: Tensor<f16, (Batch,)>,
    }

    let values = [1.5f32, -0.25, 3.0e-5];
    let of = |value: fn(f32) -> f16| from_vec(Batch.of(3), values.map(value).to_vec());
    let mut file = SafetensorsWriter::new();
    file.put("a", of(f16::from_f32)).unwrap();
    file.put("b", from_vec(Batch.of(3), values.map(bf16::from_f32).to_vec())).unwrap();
    file.put("c", from_vec(Batch.of(3), values.to_vec())).unwrap();
    let bytes = file.to_bytes().unwrap();
    let file = SafetensorsReader::new(&bytes).unwrap();
    let singles: Singles = Weights::of(&file).unwrap().converting_floats().load().unwrap();
    let all = (singles.a.order(Batch), singles.b.order(Batch), singles.c.order(Batch));
    assert_eq!(all.0.to_vec(), values.map(|value| f16::from_f32(value).to_f32()));
    assert_eq!(all.1.to_vec(), values.map(|value| bf16::from_f32(value).to_f32()));
    assert_eq!(all.2.to_vec(), values.map(f16::from_f32));
}

#[test]
fn what_is_loaded_can_be_learned() {
    use typed_dims::nn::Linear as Map;

    /// A layer that contains layers of the same type.
    #[derive(Load, Parameters)]
    struct Block<D: AnyDim> {
        #[load(axes = (D,))]
        gain: Tensor<f32, (D,)>,
        #[load(name = "inner")]
        blocks: Option<Vec<Block<D>>>,
    }

    #[derive(Load, Parameters)]
    struct Learned<'w> {
        map: Map<(Width,), (Head, HeadDim)>,
        block: Block<Width>,
        #[parameters(constant)]
        table: TensorView<'w, f32, (Inner, Width)>,
        #[load(default)]
        #[parameters(constant)]
        calls: usize,
    }

    let bytes = anonymous(&[
        ("map.weight", &[6, 4]),
        ("map.bias", &[6]),
        ("block.gain", &[4]),
        ("block.inner.0.gain", &[4]),
        ("block.inner.1.gain", &[4]),
        ("table", &[5, 4]),
    ]);
    let file = SafetensorsReader::new(&bytes).unwrap();
    let learned: Learned<'_> = Weights::of(&file).unwrap().with(Head.of(2)).unwrap().load().unwrap();
    assert_eq!(
        learned.names(),
        ["map.weight", "map.bias", "block.gain", "block.blocks.0.gain", "block.blocks.1.gain"]
    );
    let next = learned.map_elements(|x: f32| x + 1.0);
    assert_eq!((&next.block.blocks.unwrap()[1].gain).order(Width), ndarray::array![1.0, 2.0, 3.0, 4.0]);
    // Constants are cloned: a view has the same elements.
    assert_eq!(next.table.order((Inner, Width))[(4, 3)], 19.0);
    assert_eq!((next.calls, next.map.bias.sum((Head, HeadDim)).order(())), (0, 21.0));
}

/// Files saved by this library store the names of dims, so fields may list the dims in any order.
#[test]
fn axes_with_names_can_be_in_any_order() {
    use typed_dims::nn::Linear as Map;

    #[derive(Load)]
    struct Arrays<'w> {
        owned: Tensor<f32, (Head, Width)>,
        #[load(axes = ((Head, HeadDim), Width))]
        grouped: Tensor<f32, (Head, HeadDim, Width)>,
        #[load(axes = ((Head, HeadDim), Width), layout = (Width, Head, HeadDim))]
        laid: Tensor<f32, (Head, HeadDim, Width)>,
        viewed: TensorView<'w, f32, (Head, Width)>,
        map: Map<(Width,), (Head, HeadDim)>,
    }

    let (width, head, dim) = (Width.of(4), Head.of(2), HeadDim.of(3));
    let two = from_fn((width, head), |(w, h)| (10 * w + h) as f32);
    let three = from_fn((width, head, dim), |(w, h, d)| (100 * w + 10 * h + d) as f32);
    let mut file = SafetensorsWriter::new();
    file.put("owned", &two).unwrap().put("viewed", &two).unwrap();
    file.put("grouped", &three).unwrap().put("laid", &three).unwrap().put("map.weight", &three).unwrap();
    file.put("map.bias", from_fn((head, dim), |(h, d)| (10 * h + d) as f32)).unwrap();
    let bytes = file.to_bytes().unwrap();
    let file = SafetensorsReader::new(&bytes).unwrap();
    let loaded: Arrays<'_> = Weights::of(&file).unwrap().load().unwrap();
    assert_eq!(loaded.owned, two);
    assert_eq!(loaded.viewed.eval(), two);
    assert_eq!((&loaded.grouped, &loaded.laid, &loaded.map.weight), (&three, &three, &three));
    assert_eq!(loaded.map.bias.order((Head, HeadDim))[(1, 2)], 12.0);

    #[derive(Load)]
    #[allow(dead_code)]
    struct Other {
        owned: Tensor<f32, (Inner, Width)>,
        #[load(axes = ((Head, HeadDim), Width))]
        viewed: Tensor<f32, (Head, HeadDim, Width)>,
    }
    let weights = Weights::of(&file).unwrap().ignoring("grouped").ignoring("laid").ignoring("map");
    assert_eq!(
        weights.load::<Other>().err().unwrap().to_string(),
        "the weights do not fit:
  `owned` has the axes (Width = 4, Head = 2), but its field has the axes (Inner, Width)
  `viewed` has the axes (Width = 4, Head = 2), but its field has the axes (Head x HeadDim, Width)"
    );
}
