//! Programs written for a single example, without any notion of batches.

use typed_dims::prelude::*;

dims! {
    /// Examples.
    pub struct Batch;
    /// Examples along another axis.
    pub struct Group;
    /// Time steps.
    pub struct Time;
    /// Positions.
    pub struct Seq;
    /// Positions that are attended to.
    pub struct Key;
    /// Input features.
    pub struct Feat;
    /// Hidden features.
    pub struct Hidden;
    /// Hidden features of the next layer or step.
    pub struct Hidden2;
    /// Output features.
    pub struct Out;
    /// Points of a cloud.
    pub struct Point;
    /// Clusters of points.
    pub struct Cluster;
    /// Coordinates of a point.
    pub struct Coord;
    /// Parts of a state.
    pub struct State;
    /// State parts as columns.
    pub struct State2;
    /// State parts as a summed dim.
    pub struct State3;
    /// Observed numbers.
    pub struct Seen = 2;
    /// Observed numbers as columns.
    pub struct Seen2 = 2;
}

/// A matrix product.
#[batched]
pub fn mm(a: Tensor<f32, (), U2>, b: Tensor<f32, (), U2>) -> Tensor<f32, (), U2> {
    dims!(i, j, k);
    (a.at((i, k)) * b.at((k, j))).sum(k).order((i, j))
}

/// Scaled dot-product attention, written as its formula.
#[batched]
pub fn scaled_attention(
    q: &Tensor<f32, (Seq, Feat)>,
    k: &Tensor<f32, (Key, Feat)>,
    v: &Tensor<f32, (Key, Feat)>,
) -> Tensor<f32, (Seq, Feat)> {
    let scores = (q * k).sum(Feat) * (q.size(Feat) as f32).powf(-0.5);
    (scores.softmax(Key) * v).sum(Key)
}

/// The parameters of a network with three layers.
pub struct Mlp {
    pub w1: Tensor<f32, (Feat, Hidden)>,
    pub b1: Tensor<f32, (Hidden,)>,
    pub w2: Tensor<f32, (Hidden, Hidden2)>,
    pub b2: Tensor<f32, (Hidden2,)>,
    pub w3: Tensor<f32, (Hidden2, Out)>,
    pub b3: Tensor<f32, (Out,)>,
}

#[batched]
impl Mlp {
    pub fn forward(&self, x: &Tensor<f32, (Feat,)>) -> Tensor<f32, (Out,)> {
        let h = ((x * &self.w1).sum(Feat) + &self.b1).relu().eval();
        let h = ((h * &self.w2).sum(Hidden) + &self.b2).relu().eval();
        (h * &self.w3).sum(Hidden2) + &self.b3
    }
}

/// A convolution, a bias, `relu`, and a 2 by 2 max pool.
#[batched]
pub fn conv_block(
    x: &Tensor<f32, (), U3>,
    w: &Tensor<f32, (), U4>,
    bias: &Tensor<f32, (), U1>,
) -> Tensor<f32, (), U3> {
    dims!(c, o, h, y, kh, kw, h2 = 2, y2 = 2);
    let w = w.at((o, c, kh, kw));
    let sum = (x.at((c, h + kh, y + kw)) * w).sum((c, kh, kw));
    let active = (sum + bias.at(o)).relu().order((o, h, y));
    dims!(o, h, y);
    active.at((o, (h, h2), (y, y2))).max((h2, y2)).order((o, h, y))
}

/// One step of a recurrent network.
#[batched]
pub fn cell(
    h: &Tensor<f32, (Hidden,)>,
    x: &Tensor<f32, (Feat,)>,
    wx: &Tensor<f32, (Feat, Hidden)>,
    wh: &Tensor<f32, (Hidden, Hidden2)>,
) -> Tensor<f32, (Hidden,)> {
    let recurrent = (h * wh).sum(Hidden).rename(Hidden2, Hidden);
    ((x * wx).sum(Feat) + recurrent).tanh()
}

/// The cell, scanned over time: its last state, and its state at each time.
#[batched]
pub fn rnn(
    mut h: Tensor<f32, (Hidden,)>,
    x: &Tensor<f32, (Time, Feat)>,
    wx: &Tensor<f32, (Feat, Hidden)>,
    wh: &Tensor<f32, (Hidden, Hidden2)>,
) -> (Tensor<f32, (Hidden,)>, Tensor<f32, (Time, Hidden)>) {
    let mut states = Vec::new();
    for t in 0..x.size(Time) {
        h = cell(&h, x.index(Time, t), wx, wh);
        states.push(h.clone());
    }
    (h, stack(Time, states))
}

/// Several steps of k-means: the centers, and the nearest center to each point.
#[batched]
pub fn kmeans(
    points: &Tensor<f32, (Point, Coord)>,
    mut centers: Tensor<f32, (Cluster, Coord)>,
    steps: usize,
) -> (Tensor<f32, (Cluster, Coord)>, Tensor<usize, (Point,)>) {
    let clusters = Cluster.of(centers.size(Cluster));
    for _ in 0..steps {
        let nearest = (points - &centers).square().sum(Coord).argmin(Cluster);
        let member = nearest.cast::<isize>().eq(clusters).cast::<f32>().eval();
        let count = member.sum(Point).maximum(1.0);
        centers = ((&member * points).sum(Point) / count).eval();
    }
    let nearest = (points - &centers).square().sum(Coord).argmin(Cluster);
    (centers, nearest)
}

/// The assumptions of a Kalman filter: the dynamics, the observation, and the noise of both.
pub struct Model {
    /// Maps a state (columns) to the next (rows).
    pub transition: Tensor<f32, (State, State2)>,
    /// Maps a state to an observation.
    pub observation: Tensor<f32, (Seen, State)>,
    /// The variance that each step adds to each part of the state.
    pub drift: f32,
    /// The variance of each observed number.
    pub noise: f32,
}

#[batched]
impl Model {
    /// One step of a Kalman filter: predict, then correct with the observation.
    ///
    /// ```text
    /// m <- F m            P <- F P F' + Q
    /// S = H P H' + R      K = P H' / S
    /// m <- m + K (z - H m)            P <- P - K H P
    /// ```
    pub fn kalman(
        &self,
        mean: &Tensor<f32, (State,)>,
        covariance: &Tensor<f32, (State, State2)>,
        seen: &Tensor<f32, (Seen,)>,
    ) -> (Tensor<f32, (State,)>, Tensor<f32, (State, State2)>) {
        let (f, h) = (&self.transition, &self.observation);
        let mean = (f * mean.rename(State, State2)).sum(State2);
        let rows = (f.rename(State2, State3) * covariance.rename(State, State3)).sum(State3);
        let columns = f.rename(State2, State3).rename(State, State2);
        let moved = (rows.rename(State2, State3) * columns).sum(State3);
        let states = mean.size(State);
        let drift = select(State.of(states).eq(State2.of(states)), self.drift, 0.0);
        let covariance = (moved + drift).eval();

        let ph = (&covariance * h.rename(State, State2)).sum(State2);
        let hph = (&ph * h.rename(Seen, Seen2)).sum(State);
        let spread = (hph + select(Seen.eq(Seen2), self.noise, 0.0)).eval();
        let gain = (&ph * inverse(&spread)).sum(Seen).rename(Seen2, Seen).eval();
        let surprise = (seen - (h * &mean).sum(State)).eval();
        let mean = mean + (&gain * surprise).sum(Seen);
        let covariance = covariance - (gain * ph.rename(State, State2)).sum(Seen);
        (mean.eval(), covariance.eval())
    }
}

/// The inverse of a 2 by 2 matrix, `(trace(a) I - a) / det(a)`.
#[batched]
fn inverse(a: &Tensor<f32, (Seen, Seen2)>) -> Tensor<f32, (Seen, Seen2)> {
    let at = |row, column| a.index(Seen, row).index(Seen2, column);
    let determinant = (at(0, 0) * at(1, 1) - at(0, 1) * at(1, 0)).eval();
    let trace = at(0, 0) + at(1, 1);
    (select(Seen.eq(Seen2), trace, 0.0) - a) / determinant
}
