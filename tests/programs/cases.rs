//! The programs with inputs: one call for all examples, and one call for each example.

use super::suite::*;
use typed_dims::ndarray::Array5;
use typed_dims::ndarray::{Array, ArrayD, Dimension, ShapeBuilder};
use typed_dims::prelude::*;

/// A program with inputs for many examples. An input that lacks one or both of the two extra dims
/// is shared along the dims that it lacks.
pub trait Case: Sync {
    fn name(&self) -> &'static str;

    /// One call with the two extra dims, which are the first axes of its results.
    fn batched(&self) -> Vec<ArrayD<f32>>;

    /// A call for the example at these positions.
    fn single(&self, n: usize, m: usize) -> Vec<ArrayD<f32>>;
}

/// All programs, with `n` by `m` examples.
pub fn all(n: usize, m: usize) -> Vec<Box<dyn Case>> {
    vec![
        Box::new(Product::new(n, m)),
        Box::new(Attention::new(n, m)),
        Box::new(Network::new(n, m)),
        Box::new(Convolution::new(n, m)),
        Box::new(Scan::new(n, m)),
        Box::new(Clusters::new(n, m)),
        Box::new(Filter::new(n, m)),
    ]
}

/// Pseudorandom numbers, the same in each run.
fn numbers<D: Dimension>(sizes: impl ShapeBuilder<Dim = D>, seed: u64) -> Array<f32, D> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    Array::from_shape_simple_fn(sizes, || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 40) as f32 / (1u64 << 24) as f32) * 2.0 - 1.0
    })
}

struct Product(Array4<f32>, Array4<f32>);

impl Product {
    fn new(n: usize, m: usize) -> Self {
        Product(numbers((n, m, 12, 20), 1), numbers((n, m, 20, 16), 2))
    }
}

impl Case for Product {
    fn name(&self) -> &'static str {
        "mm"
    }

    fn batched(&self) -> Vec<ArrayD<f32>> {
        dims!(n, m);
        vec![mm(self.0.at((n, m, .., ..)), self.1.at((n, m, .., ..))).order((n, m)).into_dyn()]
    }

    fn single(&self, n: usize, m: usize) -> Vec<ArrayD<f32>> {
        vec![mm(self.0.at((n, m, .., ..)), self.1.at((n, m, .., ..))).order(()).into_dyn()]
    }
}

struct Attention {
    q: Tensor<f32, (Batch, Group, Seq, Feat)>,
    k: Tensor<f32, (Batch, Group, Key, Feat)>,
    v: Tensor<f32, (Batch, Group, Key, Feat)>,
}

impl Attention {
    fn new(n: usize, m: usize) -> Self {
        Attention {
            q: numbers((n, m, 12, 8), 1).into_tensor((Batch, Group, Seq, Feat)),
            k: numbers((n, m, 10, 8), 2).into_tensor((Batch, Group, Key, Feat)),
            v: numbers((n, m, 10, 8), 3).into_tensor((Batch, Group, Key, Feat)),
        }
    }
}

impl Case for Attention {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn batched(&self) -> Vec<ArrayD<f32>> {
        vec![scaled_attention(&self.q, &self.k, &self.v).order((Batch, Group, Seq, Feat)).into_dyn()]
    }

    fn single(&self, n: usize, m: usize) -> Vec<ArrayD<f32>> {
        let (q, k) = ((&self.q).index(Batch, n).index(Group, m), (&self.k).index(Batch, n).index(Group, m));
        let v = (&self.v).index(Batch, n).index(Group, m);
        vec![scaled_attention(q, k, v).order((Seq, Feat)).into_dyn()]
    }
}

struct Network(Mlp, Tensor<f32, (Batch, Group, Feat)>);

impl Network {
    fn new(n: usize, m: usize) -> Self {
        let model = Mlp {
            w1: numbers((16, 32), 2).into_tensor((Feat, Hidden)),
            b1: numbers(32, 3).into_tensor(Hidden),
            w2: numbers((32, 24), 4).into_tensor((Hidden, Hidden2)),
            b2: numbers(24, 5).into_tensor(Hidden2),
            w3: numbers((24, 10), 6).into_tensor((Hidden2, Out)),
            b3: numbers(10, 7).into_tensor(Out),
        };
        Network(model, numbers((n, m, 16), 1).into_tensor((Batch, Group, Feat)))
    }
}

impl Case for Network {
    fn name(&self) -> &'static str {
        "mlp"
    }

    fn batched(&self) -> Vec<ArrayD<f32>> {
        vec![self.0.forward(&self.1).order((Batch, Group, Out)).into_dyn()]
    }

    fn single(&self, n: usize, m: usize) -> Vec<ArrayD<f32>> {
        vec![self.0.forward((&self.1).index(Batch, n).index(Group, m)).order(Out).into_dyn()]
    }
}

struct Convolution {
    x: Array5<f32>,
    w: Array4<f32>,
    bias: Array1<f32>,
}

impl Convolution {
    fn new(n: usize, m: usize) -> Self {
        Convolution { x: numbers((n, m, 3, 12, 12), 1), w: numbers((8, 3, 3, 3), 2), bias: numbers(8, 3) }
    }
}

impl Case for Convolution {
    fn name(&self) -> &'static str {
        "conv block"
    }

    fn batched(&self) -> Vec<ArrayD<f32>> {
        dims!(n, m);
        let (w, bias) = (self.w.at((.., .., .., ..)), self.bias.at(..));
        vec![conv_block(self.x.at((n, m, .., .., ..)), w, bias).order((n, m)).into_dyn()]
    }

    fn single(&self, n: usize, m: usize) -> Vec<ArrayD<f32>> {
        let (w, bias) = (self.w.at((.., .., .., ..)), self.bias.at(..));
        vec![conv_block(self.x.at((n, m, .., .., ..)), w, bias).order(()).into_dyn()]
    }
}

struct Scan {
    h: Tensor<f32, (Group, Hidden)>,
    x: Tensor<f32, (Batch, Group, Time, Feat)>,
    wx: Tensor<f32, (Feat, Hidden)>,
    wh: Tensor<f32, (Hidden, Hidden2)>,
}

impl Scan {
    pub const STEPS: usize = 6;

    fn new(n: usize, m: usize) -> Self {
        Scan {
            h: numbers((m, 24), 4).into_tensor((Group, Hidden)),
            x: numbers((n, m, Self::STEPS, 16), 1).into_tensor((Batch, Group, Time, Feat)),
            wx: numbers((16, 24), 2).into_tensor((Feat, Hidden)),
            wh: numbers((24, 24), 3).into_tensor((Hidden, Hidden2)),
        }
    }
}

impl Case for Scan {
    fn name(&self) -> &'static str {
        "rnn"
    }

    fn batched(&self) -> Vec<ArrayD<f32>> {
        let (last, states) = rnn(&self.h, &self.x, &self.wx, &self.wh);
        let states = states.order((Batch, Group, Time, Hidden));
        vec![last.order((Batch, Group, Hidden)).into_dyn(), states.into_dyn()]
    }

    fn single(&self, n: usize, m: usize) -> Vec<ArrayD<f32>> {
        let x = (&self.x).index(Batch, n).index(Group, m);
        let (last, states) = rnn((&self.h).index(Group, m), x, &self.wx, &self.wh);
        vec![last.order(Hidden).into_dyn(), states.order((Time, Hidden)).into_dyn()]
    }
}

struct Clusters {
    points: Tensor<f32, (Batch, Group, Point, Coord)>,
    centers: Tensor<f32, (Batch, Cluster, Coord)>,
}

impl Clusters {
    fn new(n: usize, m: usize) -> Self {
        Clusters {
            points: numbers((n, m, 40, 3), 1).into_tensor((Batch, Group, Point, Coord)),
            centers: numbers((n, 4, 3), 2).into_tensor((Batch, Cluster, Coord)),
        }
    }
}

impl Case for Clusters {
    fn name(&self) -> &'static str {
        "k-means"
    }

    fn batched(&self) -> Vec<ArrayD<f32>> {
        let (centers, nearest) = kmeans(&self.points, &self.centers, 4);
        let nearest = nearest.cast::<f32>().order((Batch, Group, Point));
        vec![centers.order((Batch, Group, Cluster, Coord)).into_dyn(), nearest.into_dyn()]
    }

    fn single(&self, n: usize, m: usize) -> Vec<ArrayD<f32>> {
        let points = (&self.points).index(Batch, n).index(Group, m);
        let (centers, nearest) = kmeans(points, (&self.centers).index(Batch, n), 4);
        vec![centers.order((Cluster, Coord)).into_dyn(), nearest.cast::<f32>().order(Point).into_dyn()]
    }
}

struct Filter {
    model: Model,
    mean: Tensor<f32, (Batch, Group, State)>,
    covariance: Tensor<f32, (Batch, State, State2)>,
    seen: Tensor<f32, (Batch, Group, Seen)>,
}

impl Filter {
    fn new(n: usize, m: usize) -> Self {
        dims!(b, i, j, k);
        let root = numbers((n, 4, 4), 2);
        let square = (root.at((b, i, k)) * root.at((b, j, k))).sum(k).order((b, i, j));
        Filter {
            model: Model {
                transition: numbers((4, 4), 4).into_tensor((State, State2)),
                observation: numbers((2, 4), 5).into_tensor((Seen, State)),
                drift: 0.1,
                noise: 0.2,
            },
            mean: numbers((n, m, 4), 1).into_tensor((Batch, Group, State)),
            covariance: square.into_tensor((Batch, State, State2)),
            seen: numbers((n, m, 2), 3).into_tensor((Batch, Group, Seen)),
        }
    }
}

impl Case for Filter {
    fn name(&self) -> &'static str {
        "kalman"
    }

    fn batched(&self) -> Vec<ArrayD<f32>> {
        let (mean, covariance) = self.model.kalman(&self.mean, &self.covariance, &self.seen);
        let covariance = covariance.order((Batch, Group, State, State2));
        vec![mean.order((Batch, Group, State)).into_dyn(), covariance.into_dyn()]
    }

    fn single(&self, n: usize, m: usize) -> Vec<ArrayD<f32>> {
        let (mean, covariance) = self.model.kalman(
            (&self.mean).index(Batch, n).index(Group, m),
            (&self.covariance).index(Batch, n),
            (&self.seen).index(Batch, n).index(Group, m),
        );
        vec![mean.order(State).into_dyn(), covariance.order((State, State2)).into_dyn()]
    }
}
