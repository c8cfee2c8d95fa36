//! Recurrent networks: LSTM and GRU layers, and stacks of them, in one direction or in both.

#[cfg(feature = "safetensors")]
mod load;
mod sequence;
mod stacked;

pub use sequence::{LengthsFor, RecurrentState, SecondOf};
pub use stacked::{BiGru, BiGruStack, BiLstm, BiLstmStack, GruStack, LstmStack};

use crate::creation::create::Chained;
use crate::creation::random::split;
use crate::nn::linear::{MappedBy, Projection, project};
use crate::prelude::*;
use crate::types::dim::Of;
use crate::types::role::KeepsRole;
use crate::types::set::NameFor;
use crate::types::set::rename::NotIn;
use sequence::{Always, ReadFrom, WithinLengths};
use typed_dims_core::operators::nn::checks::with_origin_of;

dims! {
    /// The gates of an [`Lstm`]: input, forget, cell and output.
    pub struct LstmGate = 4;
    /// The gates of a [`Gru`]: reset, update and new.
    pub struct GruGate = 3;
}

/// The dims of the gates: `G`, and the features `N` of each gate.
type GatesOf<G, N> = <(N,) as Union<(G,)>>::Out;

/// The state of an [`Lstm`].
#[derive(Clone, Parameters)]
pub struct LstmState<S: Dims, T: Clone = f32> {
    /// The output of the last step.
    pub hidden: Named<T, S>,
    /// The cell state.
    pub cell: Named<T, S>,
}

/// The state of a [`Gru`]: the output of the last step.
pub type GruState<S, T = f32> = Named<T, S>;

/// A long short-term memory (LSTM) from the features `I` to the features `H`. `N` is a second dim
/// of the same size as `H`: from the previous output along `H`, a step computes gates along `N`.
///
/// ```text
/// gates[.., g, n] = sum over I of x[.., I] * weight_ih[I, g, n] + bias_ih[g, n] + sum over H of hidden[.., H] * weight_hh[H, g, n] + bias_hh[g, n]
/// cell            = sigmoid(gates[1]) * cell + sigmoid(gates[0]) * tanh(gates[2])
/// hidden          = sigmoid(gates[3]) * tanh(cell)
/// ```
///
/// (S. Hochreiter, J. Schmidhuber, 1997, "Long short-term memory". The gates are in PyTorch's
/// order.)
///
/// ```
/// use typed_dims::nn::Lstm;
/// use typed_dims::prelude::*;
///
/// dims! { struct Batch; struct Time; struct Input; struct Hidden; struct Next; }
/// let network = Lstm::<Input, Hidden, Next>::new(Input.of(3), Hidden.of(4), 1);
/// let x: Tensor<f32, (Batch, Time, Input)> = randn((Batch.of(2), Time.of(5), Input.of(3)), 2);
/// let (shown, state) = network.apply(&x, Time, None);
/// assert_eq!(shown.dims(), [("Batch", 2), ("Time", 5), ("Hidden", 4)]);
/// assert_eq!(shown.index(Time, -1), state.hidden);
/// ```
///
/// In files, the parameters have the names of PyTorch's first layer: `weight_ih_l0`,
/// `weight_hh_l0`, `bias_ih_l0` and `bias_hh_l0`.
#[derive(Clone, Parameters)]
pub struct Lstm<I: AnyDim, H: AnyDim, N: AnyDim, T: Clone = f32>
where
    (N,): Union<(LstmGate,), Out: Union<(I,)> + Union<(H,)>>,
{
    /// The weights from the input to the gates.
    pub weight_ih: Named<T, <GatesOf<LstmGate, N> as Union<(I,)>>::Out>,
    /// The weights from the output of the previous step to the gates.
    pub weight_hh: Named<T, <GatesOf<LstmGate, N> as Union<(H,)>>::Out>,
    /// The offset of the gates.
    pub bias_ih: Named<T, GatesOf<LstmGate, N>>,
    /// A second offset of the gates; PyTorch has both.
    pub bias_hh: Named<T, GatesOf<LstmGate, N>>,
}

impl<I: AnyDim, H: AnyDim, N: AnyDim, T: Real> Lstm<I, H, N, T>
where
    (N,): Union<(LstmGate,), Out: Union<(I,)> + Union<(H,)>>,
{
    /// Random weights, from a normal distribution with variance `1 / fan_in`, and zero biases.
    ///
    /// # Panics
    ///
    /// If `N` has a static size other than the size of `hidden`, or if the weights do not fit into
    /// memory.
    #[track_caller]
    #[rustfmt::skip] // rustc quotes the next line in errors
    pub fn new(inputs: Of<I>, hidden: Of<H>, seed: u64) -> Self where N: SecondOf<I, H> {
        let gates = Chained(LstmGate, N::default().of(hidden.size()));
        Lstm {
            weight_ih: Projection::<(I,), GatesOf<LstmGate, N>, T>::new(inputs, gates, split(seed, 0)).weight,
            weight_hh: Projection::<(H,), GatesOf<LstmGate, N>, T>::new(hidden, gates, split(seed, 1)).weight,
            bias_ih: zeros(gates),
            bias_hh: zeros(gates),
        }
    }

    /// The next state, after the input `x` at one position.
    ///
    /// # Panics
    ///
    /// If a dim has different sizes in two of `x`, the state and the weights.
    #[track_caller]
    #[rustfmt::skip] // rustc quotes the next line in errors
    pub fn step<X: MappedBy<(I,), GatesOf<LstmGate, N>, Y>, Y, V: Dims, S>(&self, x: &Named<T, X>, state: &LstmState<S, T>) -> LstmState<S, T>
    where
        S: MappedBy<(H,), GatesOf<LstmGate, N>, Y> + Union<S, Out = S>,
        Y: Union<Y, Out = Y> + Union<GatesOf<LstmGate, N>, Out = Y>,
        LstmGate: DimsOf<Y, V>,
        H: NameFor<N, V, Out = S> + KeepsRole<N, V>,
    {
        let made = self.gates::<X, Y>(x);
        state.check_sizes(&with_origin_of(made.clone(), x));
        self.next(made, state)
    }

    /// The input's contribution to the gates.
    #[track_caller]
    fn gates<X: MappedBy<(I,), GatesOf<LstmGate, N>, Y>, Y: Dims>(&self, x: &Named<T, X>) -> Named<T, Y> {
        project::<(I,), GatesOf<LstmGate, N>, T, X, Y>(x, &self.weight_ih)
    }

    /// The next state, from the input's contribution to the gates.
    #[track_caller]
    fn next<Y, V, S>(&self, made: Named<T, Y>, state: &LstmState<S, T>) -> LstmState<S, T>
    where
        S: MappedBy<(H,), GatesOf<LstmGate, N>, Y> + Union<S, Out = S>,
        Y: Union<Y, Out = Y> + Union<GatesOf<LstmGate, N>, Out = Y>,
        LstmGate: DimsOf<Y, V>,
        H: NameFor<N, V, Out = S> + KeepsRole<N, V>,
        V: Dims,
    {
        let before = project::<(H,), GatesOf<LstmGate, N>, T, S, Y>(&state.hidden, &self.weight_hh);
        let gates = (made + before + &self.bias_ih + &self.bias_hh).eval();
        let gate = |at: usize| gates.view().index(LstmGate, at).rename(N::default(), H::default());
        let cell = (gate(1).sigmoid() * &state.cell + gate(0).sigmoid() * gate(2).tanh()).eval();
        LstmState { hidden: (gate(3).sigmoid() * cell.view().tanh()).eval(), cell }
    }

    /// The output after each position along `time`, and the state after the last one. The initial
    /// state is `state`, or zeros.
    ///
    /// # Panics
    ///
    /// If a dim has different sizes in two of `x`, the state and the weights, or if `time` has
    /// size 0.
    #[track_caller]
    #[rustfmt::skip] // rustc quotes the next line in errors
    pub fn apply<X: MappedBy<(I,), GatesOf<LstmGate, N>, Z>, D: AnyDim + DimsOf<X, A> + NotIn<(I,)>, Y, Z, V: Dims, S, A: Dims, G: Dims>(
        &self,
        x: &Named<T, X>,
        time: D,
        state: Option<LstmState<S, T>>,
    ) -> (Named<T, <S as Union<(D,)>>::Out>, LstmState<S, T>)
    where
        D: DimsOf<G, Y> + DimRef<Brand = D> + NotIn<S>,
        S: MappedBy<(H,), GatesOf<LstmGate, N>, Y> + Union<S, Out = S> + Union<(D,)>,
        Y: Union<Y, Out = Y> + Union<GatesOf<LstmGate, N>, Out = Y>,
        Z: Union<GatesOf<LstmGate, N>, Out = Z> + Union<(D,), Out = G>,
        LstmGate: DimsOf<Y, V>,
        H: NameFor<N, V, Out = S> + KeepsRole<N, V>,
    {
        // `G` has the dims of `Z`, and `time`. If `x` has `time`, `G` equals `Z`. If not, the
        // bounds on `G` still hold, and rustc reports only the bound on the dims of `x`.
        self.read(self.gates::<X, Z>(x).same_set(), x, time, state, ReadFrom::Start, &Always)
    }

    /// Like [`apply`](Self::apply), for padded sequences of different lengths: `lengths` has the
    /// length of each sequence. After the end of a sequence, its outputs are 0, and its state does
    /// not change, as with PyTorch's packed sequences.
    ///
    /// # Panics
    ///
    /// Where `apply` panics, if a dim of `lengths` has a different size in the state, or if a
    /// length is greater than the number of positions. (Lengths that are an input of a recorded
    /// program, or computed in it, are not checked. A greater length then means all positions.)
    #[track_caller]
    #[rustfmt::skip] // rustc quotes the next line in errors
    pub fn apply_padded<X: MappedBy<(I,), GatesOf<LstmGate, N>, Z>, D: AnyDim + DimsOf<X, A> + NotIn<(I,)>, Y, Z, V: Dims, S, A: Dims, G: Dims, L: LengthsFor<S>>(
        &self,
        x: &Named<T, X>,
        time: D,
        lengths: &Named<usize, L>,
        state: Option<LstmState<S, T>>,
    ) -> (Named<T, <S as Union<(D,)>>::Out>, LstmState<S, T>)
    where
        D: DimsOf<G, Y> + DimRef<Brand = D> + NotIn<S>,
        S: MappedBy<(H,), GatesOf<LstmGate, N>, Y> + Union<S, Out = S> + Union<(D,)>,
        Y: Union<Y, Out = Y> + Union<GatesOf<LstmGate, N>, Out = Y>,
        Z: Union<GatesOf<LstmGate, N>, Out = Z> + Union<(D,), Out = G>,
        LstmGate: DimsOf<Y, V>,
        H: NameFor<N, V, Out = S> + KeepsRole<N, V>,
    {
        let gates = self.gates::<X, Z>(x).same_set();
        self.read(gates, x, time, state, ReadFrom::Start, &WithinLengths(lengths))
    }
}

/// A gated recurrent unit (GRU) from the features `I` to the features `H`. `N` is a second dim of
/// the same size as `H`: from the previous output along `H`, a step computes gates along `N`.
///
/// ```text
/// made[.., g, n]   = sum over I of x[.., I] * weight_ih[I, g, n] + bias_ih[g, n]
/// before[.., g, n] = sum over H of hidden[.., H] * weight_hh[H, g, n] + bias_hh[g, n]
/// new              = tanh(made[2] + sigmoid(made[0] + before[0]) * before[2])
/// kept             = sigmoid(made[1] + before[1])
/// hidden           = (1 - kept) * new + kept * hidden
/// ```
///
/// (K. Cho and others, 2014, "Learning phrase representations using RNN encoder-decoder". The gates
/// are in PyTorch's order.)
///
/// ```
/// use typed_dims::nn::Gru;
/// use typed_dims::prelude::*;
///
/// dims! { struct Batch; struct Time; struct Input; struct Hidden; struct Next; }
/// let network = Gru::<Input, Hidden, Next>::new(Input.of(3), Hidden.of(4), 1);
/// let x: Tensor<f32, (Batch, Time, Input)> = randn((Batch.of(2), Time.of(5), Input.of(3)), 2);
/// let (shown, hidden) = network.apply(&x, Time, None);
/// assert_eq!(shown.dims(), [("Batch", 2), ("Time", 5), ("Hidden", 4)]);
/// assert_eq!(shown.index(Time, -1), hidden);
/// ```
///
/// In files, the parameters have the names of PyTorch's first layer: `weight_ih_l0`,
/// `weight_hh_l0`, `bias_ih_l0` and `bias_hh_l0`.
#[derive(Clone, Parameters)]
pub struct Gru<I: AnyDim, H: AnyDim, N: AnyDim, T: Clone = f32>
where
    (N,): Union<(GruGate,), Out: Union<(I,)> + Union<(H,)>>,
{
    /// The weights from the input to the gates.
    pub weight_ih: Named<T, <GatesOf<GruGate, N> as Union<(I,)>>::Out>,
    /// The weights from the state to the gates.
    pub weight_hh: Named<T, <GatesOf<GruGate, N> as Union<(H,)>>::Out>,
    /// The offset of the input's contribution to the gates.
    pub bias_ih: Named<T, GatesOf<GruGate, N>>,
    /// The offset of the state's contribution to the gates.
    pub bias_hh: Named<T, GatesOf<GruGate, N>>,
}

impl<I: AnyDim, H: AnyDim, N: AnyDim, T: Real> Gru<I, H, N, T>
where
    (N,): Union<(GruGate,), Out: Union<(I,)> + Union<(H,)>>,
{
    /// Random weights, from a normal distribution with variance `1 / fan_in`, and zero biases.
    ///
    /// # Panics
    ///
    /// If `N` has a static size other than the size of `hidden`, or if the weights do not fit into
    /// memory.
    #[track_caller]
    #[rustfmt::skip] // rustc quotes the next line in errors
    pub fn new(inputs: Of<I>, hidden: Of<H>, seed: u64) -> Self where N: SecondOf<I, H> {
        let gates = Chained(GruGate, N::default().of(hidden.size()));
        Gru {
            weight_ih: Projection::<(I,), GatesOf<GruGate, N>, T>::new(inputs, gates, split(seed, 0)).weight,
            weight_hh: Projection::<(H,), GatesOf<GruGate, N>, T>::new(hidden, gates, split(seed, 1)).weight,
            bias_ih: zeros(gates),
            bias_hh: zeros(gates),
        }
    }

    /// The next state, after the input `x` at one position.
    ///
    /// # Panics
    ///
    /// If a dim has different sizes in two of `x`, the state and the weights.
    #[track_caller]
    #[rustfmt::skip] // rustc quotes the next line in errors
    pub fn step<X: MappedBy<(I,), GatesOf<GruGate, N>, Y>, Y, V: Dims, S>(&self, x: &Named<T, X>, hidden: &Named<T, S>) -> Named<T, S>
    where
        S: MappedBy<(H,), GatesOf<GruGate, N>, Y> + Union<S, Out = S>,
        Y: Union<GatesOf<GruGate, N>, Out = Y>,
        GruGate: DimsOf<Y, V>,
        H: NameFor<N, V, Out = S> + KeepsRole<N, V>,
    {
        let made = self.gates::<X, Y>(x);
        hidden.check_sizes(&with_origin_of(made.clone(), x));
        self.next(made, hidden)
    }

    /// The input's contribution to the gates.
    #[track_caller]
    fn gates<X: MappedBy<(I,), GatesOf<GruGate, N>, Y>, Y>(&self, x: &Named<T, X>) -> Named<T, Y>
    where
        Y: Union<GatesOf<GruGate, N>, Out = Y>,
    {
        (project::<(I,), GatesOf<GruGate, N>, T, X, Y>(x, &self.weight_ih) + &self.bias_ih).eval()
    }

    /// The next state, from the input's contribution to the gates.
    #[track_caller]
    fn next<Y, V, S>(&self, made: Named<T, Y>, hidden: &Named<T, S>) -> Named<T, S>
    where
        S: MappedBy<(H,), GatesOf<GruGate, N>, Y> + Union<S, Out = S>,
        Y: Union<GatesOf<GruGate, N>, Out = Y>,
        GruGate: DimsOf<Y, V>,
        H: NameFor<N, V, Out = S> + KeepsRole<N, V>,
        V: Dims,
    {
        let before = project::<(H,), GatesOf<GruGate, N>, T, S, Y>(hidden, &self.weight_hh);
        let before = (before + &self.bias_hh).eval();
        let made = |at: usize| made.view().index(GruGate, at).rename(N::default(), H::default());
        let before = |at: usize| before.view().index(GruGate, at).rename(N::default(), H::default());
        let new = (made(2) + (made(0) + before(0)).sigmoid() * before(2)).tanh().eval();
        // (1 - kept) * new + kept * hidden
        (&new + (made(1) + before(1)).sigmoid() * (hidden - &new)).eval()
    }

    /// The output after each position along `time`, and the state after the last one. The initial
    /// state is `state`, or zeros.
    ///
    /// # Panics
    ///
    /// If a dim has different sizes in two of `x`, the state and the weights, or if `time` has
    /// size 0.
    #[track_caller]
    #[rustfmt::skip] // rustc quotes the next line in errors
    pub fn apply<X: MappedBy<(I,), GatesOf<GruGate, N>, Z>, D: AnyDim + DimsOf<X, A> + NotIn<(I,)>, Y, Z, V: Dims, S, A: Dims, G: Dims>(
        &self,
        x: &Named<T, X>,
        time: D,
        state: Option<GruState<S, T>>,
    ) -> (Named<T, <S as Union<(D,)>>::Out>, GruState<S, T>)
    where
        D: DimsOf<G, Y> + DimRef<Brand = D> + NotIn<S>,
        S: MappedBy<(H,), GatesOf<GruGate, N>, Y> + Union<S, Out = S> + Union<(D,)>,
        Y: Union<Y, Out = Y> + Union<GatesOf<GruGate, N>, Out = Y>,
        Z: Union<GatesOf<GruGate, N>, Out = Z> + Union<(D,), Out = G>,
        GruGate: DimsOf<Y, V>,
        H: NameFor<N, V, Out = S> + KeepsRole<N, V>,
    {
        // `G` has the dims of `Z`, and `time`. If `x` has `time`, `G` equals `Z`. If not, the
        // bounds on `G` still hold, and rustc reports only the bound on the dims of `x`.
        self.read(self.gates::<X, Z>(x).same_set(), x, time, state, ReadFrom::Start, &Always)
    }

    /// Like [`apply`](Self::apply), for padded sequences of different lengths: `lengths` has the
    /// length of each sequence. After the end of a sequence, its outputs are 0, and its state does
    /// not change, as with PyTorch's packed sequences.
    ///
    /// # Panics
    ///
    /// Where `apply` panics, if a dim of `lengths` has a different size in the state, or if a
    /// length is greater than the number of positions. (Lengths that are an input of a recorded
    /// program, or computed in it, are not checked. A greater length then means all positions.)
    #[track_caller]
    #[rustfmt::skip] // rustc quotes the next line in errors
    pub fn apply_padded<X: MappedBy<(I,), GatesOf<GruGate, N>, Z>, D: AnyDim + DimsOf<X, A> + NotIn<(I,)>, Y, Z, V: Dims, S, A: Dims, G: Dims, L: LengthsFor<S>>(
        &self,
        x: &Named<T, X>,
        time: D,
        lengths: &Named<usize, L>,
        state: Option<GruState<S, T>>,
    ) -> (Named<T, <S as Union<(D,)>>::Out>, GruState<S, T>)
    where
        D: DimsOf<G, Y> + DimRef<Brand = D> + NotIn<S>,
        S: MappedBy<(H,), GatesOf<GruGate, N>, Y> + Union<S, Out = S> + Union<(D,)>,
        Y: Union<Y, Out = Y> + Union<GatesOf<GruGate, N>, Out = Y>,
        Z: Union<GatesOf<GruGate, N>, Out = Z> + Union<(D,), Out = G>,
        GruGate: DimsOf<Y, V>,
        H: NameFor<N, V, Out = S> + KeepsRole<N, V>,
    {
        let gates = self.gates::<X, Z>(x).same_set();
        self.read(gates, x, time, state, ReadFrom::Start, &WithinLengths(lengths))
    }
}
