//! A network with two hidden layers that learns, with Adam, whether a point lies within a ring.

use typed_dims::grad::value_and_grad;
use typed_dims::init::he_normal;
use typed_dims::optim::Adam;
use typed_dims::prelude::*;

dims! {
    /// Points in a batch.
    pub struct Batch;
    /// Coordinates of a point.
    pub struct Axis2 = 2;
    /// Features of the first hidden layer.
    pub struct First;
    /// Features of the second hidden layer.
    pub struct Second;
    /// The scores for outside and inside.
    pub struct Class = 2;
}

type Points = Tensor<f32, (Batch, Axis2)>;
type Labels = Tensor<usize, (Batch,)>;

#[derive(Clone, Parameters)]
struct Network {
    first: Tensor<f32, (Axis2, First)>,
    first_bias: Tensor<f32, (First,)>,
    second: Tensor<f32, (First, Second)>,
    second_bias: Tensor<f32, (Second,)>,
    head: Tensor<f32, (Second, Class)>,
    head_bias: Tensor<f32, (Class,)>,
}

impl Network {
    fn random(hidden: usize) -> Self {
        let (first, second) = (First.of(hidden), Second.of(hidden));
        Network {
            first: he_normal((Axis2, first), Axis2, 1),
            first_bias: zeros(first),
            second: he_normal((first, second), First, 2),
            second_bias: zeros(second),
            head: he_normal((second, Class), Second, 3),
            head_bias: zeros(Class),
        }
    }

    fn scores(&self, points: &Points) -> Tensor<f32, (Batch, Class)> {
        let first = (points.contract(&self.first, Axis2) + &self.first_bias).relu();
        let second = (first.contract(&self.second, First) + &self.second_bias).relu();
        (second.contract(&self.head, Second) + &self.head_bias).eval()
    }

    fn loss(&self, points: &Points, labels: &Labels) -> Tensor<f32, ()> {
        self.scores(points).cross_entropy(Class, labels).mean(Batch)
    }
}

/// Points in a square, and whether each lies within the ring.
fn examples(count: usize, seed: u64) -> (Points, Labels) {
    let points = (rand::<f32, _>((Batch.of(count), Axis2), seed) * 2.0 - 1.0).eval();
    let radius = (&points).square().sum(Axis2).sqrt().eval();
    let labels = ((&radius).gt(0.4) & (&radius).lt(0.8)).cast::<usize>().eval();
    (points, labels)
}

fn accuracy(network: &Network, points: &Points, labels: &Labels) -> f32 {
    let right = network.scores(points).argmax(Class).eq(labels);
    right.cast::<f32>().mean(Batch).order(())
}

fn main() {
    let (points, labels) = examples(2000, 1);
    let (test_points, test_labels) = examples(500, 2);
    let mut network = Network::random(32);
    let mut optimizer = Adam::new(0.01);
    for epoch in 0..20 {
        let mut total = 0.0;
        for step in 0..20 {
            let batch = step * 100..(step + 1) * 100;
            let (points, labels) =
                ((&points).slice(Batch, batch.clone()).eval(), (&labels).slice(Batch, batch).eval());
            let (loss, gradient) =
                value_and_grad(|network: &Network| network.loss(&points, &labels), &network);
            optimizer.step(&mut network, &gradient);
            total += loss;
        }
        if epoch % 5 == 4 {
            println!(
                "epoch {:>2}: loss {:.4}, accuracy {:.3}",
                epoch + 1,
                total / 20.0,
                accuracy(&network, &test_points, &test_labels)
            );
        }
    }
    println!("{:.3}", accuracy(&network, &test_points, &test_labels));
}
