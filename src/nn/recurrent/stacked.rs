//! Several recurrent cells: in both directions, and in stacks of layers.

use super::sequence::{ReadFrom, always, within};
use super::{GatesOf, Gru, GruGate, GruState, Lstm, LstmGate, LstmState};
use crate::creation::random::split;
use crate::nn::linear::MappedBy;
use crate::prelude::*;
use crate::types::dim::Of;
use crate::types::role::KeepsRole;
use crate::types::set::NameFor;
use crate::types::set::rename::NotIn;
use crate::types::size::Resizable;
use alloc::vec::Vec;
use core::marker::PhantomData;

/// The initial state of each layer: the given one, or `None`.
#[track_caller]
fn first_states<R>(states: Option<Vec<R>>, layers: usize) -> impl Iterator<Item = Option<R>> {
    if let Some(states) = &states {
        assert!(states.len() == layers, "{} states for {layers} layers", states.len());
    }
    let mut states = states.map(Vec::into_iter);
    core::iter::repeat_with(move || states.as_mut().and_then(Iterator::next)).take(layers)
}

macro_rules! networks {
    ($($cell:ident $gate:ident $state:ident $both:ident $stack:ident $both_stack:ident $network:literal;)*) => {$(
        #[doc = concat!("Two of [`", stringify!($cell), "`] cells: one reads a sequence from its start, the other from its end. `B` has the features of the first cell, then those of the second.")]
        ///
        /// ```
        #[doc = concat!("use typed_dims::nn::recurrent::", stringify!($both), ";")]
        /// use typed_dims::prelude::*;
        ///
        /// dims! { struct Batch; struct Time; struct Input; struct Hidden; struct Next; struct Both; }
        #[doc = concat!("let network = ", stringify!($both), "::<Input, Hidden, Next, Both>::new(Input.of(3), Hidden.of(4), 1);")]
        /// let x: Tensor<f32, (Batch, Time, Input)> = randn((Batch.of(2), Time.of(5), Input.of(3)), 2);
        /// let (y, _) = network.apply(&x, Time, None);
        /// assert_eq!(y.dims(), [("Batch", 2), ("Time", 5), ("Both", 8)]);
        /// // Texts of 5 and of 3 positions; the positions after them are ignored.
        /// let (y, _) = network.apply_padded(&x, Time, &from_vec(Batch.of(2), vec![5, 3]), None);
        /// assert_eq!(y.slice(Time, 3..).index(Batch, 1).abs().max((Time, Both)).order(()), 0.0);
        /// ```
        ///
        /// In files, the parameters have the names of PyTorch's first layer: `weight_ih_l0`, `weight_ih_l0_reverse`, and so on.
        #[derive(Clone, Parameters)]
        pub struct $both<I: AnyDim, H: AnyDim, N: AnyDim, B: AnyDim, T: Clone = f32>
        where
            (N,): Union<($gate,), Out: Union<(I,)> + Union<(H,)>>,
        {
            /// Reads from the start.
            pub forward: $cell<I, H, N, T>,
            /// Reads from the end.
            pub backward: $cell<I, H, N, T>,
            #[parameters(constant)]
            pub(super) both: PhantomData<fn() -> B>,
        }

        impl<I: AnyDim, H: AnyDim, N: AnyDim, B: AnyDim, T: Real> $both<I, H, N, B, T>
        where
            (N,): Union<($gate,), Out: Union<(I,)> + Union<(H,)>>,
        {
            /// Random weights, initialized like those of a single cell.
            ///
            /// # Panics
            ///
            /// If the weights do not fit into memory.
            #[track_caller]
            pub fn new(inputs: Of<I>, hidden: Of<H>, seed: u64) -> Self {
                $both {
                    forward: $cell::new(inputs, hidden, split(seed, 0)),
                    backward: $cell::new(inputs, hidden, split(seed, 1)),
                    both: PhantomData,
                }
            }
        }

        networks! { @both $both $gate $state
            /// The outputs of both directions at each position along `time`, and the final state of
            /// each direction. The initial states are `states`, or zeros.
            ///
            /// # Panics
            ///
            /// If the size of a dim in `x` or in a state differs from its size in the weights, or
            /// if `time` has size 0.
            apply() {} always()
        }
        networks! { @both $both $gate $state
            /// Like `apply`, for padded sequences of different lengths: see `apply_padded` of one
            /// direction. The backward direction starts at the end of each sequence.
            ///
            /// # Panics
            ///
            /// Where `apply` panics.
            apply_padded(lengths: &Named<usize, L>,) { L: Union<(), Out = L> + Union<S, Out: Union<S>>, } within(lengths)
        }

        #[doc = concat!("Several of [`", stringify!($cell), "`] layers; the input of each is the output of the layer below. The same as PyTorch's `", $network, "(num_layers)`.")]
        ///
        /// ```
        #[doc = concat!("use typed_dims::nn::recurrent::", stringify!($stack), ";")]
        /// use typed_dims::prelude::*;
        ///
        /// dims! { struct Batch; struct Time; struct Input; struct Hidden; struct Next; }
        #[doc = concat!("let network = ", stringify!($stack), "::<Input, Hidden, Next>::new(Input.of(3), Hidden.of(4), 2, 1);")]
        /// let x: Tensor<f32, (Batch, Time, Input)> = randn((Batch.of(2), Time.of(5), Input.of(3)), 2);
        /// let (y, states) = network.apply(&x, Time, None);
        /// assert_eq!(y.dims(), [("Batch", 2), ("Time", 5), ("Hidden", 4)]);
        /// assert_eq!(states.len(), 2);
        /// ```
        ///
        /// In files, the parameters have PyTorch's names: `weight_ih_l0`, `weight_ih_l1`, and so on.
        #[derive(Clone, Parameters)]
        pub struct $stack<I: AnyDim, H: AnyDim, N: AnyDim, T: Clone = f32>
        where
            (N,): Union<($gate,), Out: Union<(I,)> + Union<(H,)>>,
        {
            /// The layer that reads the input.
            pub first: $cell<I, H, N, T>,
            /// The layers above it.
            pub more: Vec<$cell<H, H, N, T>>,
        }

        impl<I: AnyDim, H: AnyDim, N: AnyDim, T: Real> $stack<I, H, N, T>
        where
            (N,): Union<($gate,), Out: Union<(I,)> + Union<(H,)>>,
        {
            /// Random weights of all layers, initialized like those of a single cell.
            ///
            /// # Panics
            ///
            /// If there is no layer, or the weights do not fit into memory.
            #[track_caller]
            pub fn new(inputs: Of<I>, hidden: Of<H>, layers: usize, seed: u64) -> Self {
                assert!(layers > 0, "a network of 0 layers");
                let above = |at: usize| $cell::new(hidden, hidden, split(seed, at as u64));
                $stack {
                    first: $cell::new(inputs, hidden, split(seed, 0)),
                    more: (1..layers).map(above).collect(),
                }
            }
        }

        networks! { @stack $stack $gate $state
            /// The outputs of the last layer at each position along `time`, and the final state of
            /// each layer. The initial states are `states`, or zeros.
            ///
            /// # Panics
            ///
            /// If the size of a dim in `x` or in a state differs from its size in the weights, if
            /// `time` has size 0, or if the number of states is not the number of layers.
            apply() {} always()
        }
        networks! { @stack $stack $gate $state
            /// Like `apply`, for padded sequences of different lengths: see `apply_padded` of one
            /// layer.
            ///
            /// # Panics
            ///
            /// Where `apply` panics.
            apply_padded(lengths: &Named<usize, L>,) { L: Union<(), Out = L> + Union<S, Out: Union<S>>, } within(lengths)
        }

        #[doc = concat!("Several of [`", stringify!($both), "`] layers; the input of each is the output of the layer below. The same as PyTorch's `", $network, "(num_layers, bidirectional=True)`.")]
        ///
        /// ```
        #[doc = concat!("use typed_dims::nn::recurrent::", stringify!($both_stack), ";")]
        /// use typed_dims::prelude::*;
        ///
        /// dims! { struct Batch; struct Time; struct Input; struct Hidden; struct Next; struct Both; }
        #[doc = concat!("let network = ", stringify!($both_stack), "::<Input, Hidden, Next, Both>::new(Input.of(3), Hidden.of(4), 2, 1);")]
        /// let x: Tensor<f32, (Batch, Time, Input)> = randn((Batch.of(2), Time.of(5), Input.of(3)), 2);
        /// let (y, states) = network.apply(&x, Time, None);
        /// assert_eq!(y.dims(), [("Batch", 2), ("Time", 5), ("Both", 8)]);
        /// assert_eq!(states.len(), 2);
        /// ```
        #[derive(Clone, Parameters)]
        pub struct $both_stack<I: AnyDim, H: AnyDim, N: AnyDim, B: AnyDim, T: Clone = f32>
        where
            (N,): Union<($gate,), Out: Union<(I,)> + Union<(H,)> + Union<(B,)>>,
        {
            /// The layer that reads the input.
            pub first: $both<I, H, N, B, T>,
            /// The layers above it.
            pub more: Vec<$both<B, H, N, B, T>>,
        }

        impl<I: AnyDim, H: AnyDim, N: AnyDim, B: AnyDim, T: Real> $both_stack<I, H, N, B, T>
        where
            (N,): Union<($gate,), Out: Union<(I,)> + Union<(H,)> + Union<(B,)>>,
        {
            /// Random weights of all layers, initialized like those of a single cell.
            ///
            /// # Panics
            ///
            /// If there is no layer, or the weights do not fit into memory.
            #[track_caller]
            pub fn new(inputs: Of<I>, hidden: Of<H>, layers: usize, seed: u64) -> Self {
                assert!(layers > 0, "a network of 0 layers");
                let both = B::default().of(2 * hidden.size());
                $both_stack {
                    first: $both::new(inputs, hidden, split(seed, 0)),
                    more: (1..layers).map(|at| $both::new(both, hidden, split(seed, at as u64))).collect(),
                }
            }
        }

        networks! { @both_stack $both_stack $gate $state
            /// The outputs of the last layer at each position along `time`, and the final states of
            /// each layer. The initial states are `states`, or zeros.
            ///
            /// # Panics
            ///
            /// If the size of a dim in `x` or in a state differs from its size in the weights, if
            /// `time` has size 0, or if the number of states is not the number of layers.
            apply() {}
        }
        networks! { @both_stack $both_stack $gate $state
            /// Like `apply`, for padded sequences of different lengths: see `apply_padded` of one
            /// layer.
            ///
            /// # Panics
            ///
            /// Where `apply` panics.
            apply_padded(lengths: &Named<usize, L>,) { L: Union<(), Out = L> + Union<S, Out: Union<S>>, }
        }
    )*};
    (
        @both $network:ident $gate:ident $state:ident $(#[$doc:meta])*
        $name:ident($($argument:tt)*) {$($generic:ident: $($bound:tt)*)?} $kept:expr
    ) => {
        impl<I: AnyDim, H: AnyDim, N: AnyDim, B: AnyDim, T: Real> $network<I, H, N, B, T>
        where
            (N,): Union<($gate,), Out: Union<(I,)> + Union<(H,)>>,
        {
            $(#[$doc])*
            #[track_caller]
            pub fn $name<X, D, Y, Z, V, W, S, O $(, $generic)?>(
                &self,
                x: &Named<T, X>,
                time: D,
                $($argument)*
                states: Option<[$state<S, T>; 2]>,
            ) -> (Named<T, O>, [$state<S, T>; 2])
            where
                X: MappedBy<(I,), GatesOf<$gate, N>, Z>,
                D: AnyDim + DimsOf<Z, Y> + DimRef<Brand = D> + NotIn<S>,
                S: MappedBy<(H,), GatesOf<$gate, N>, Y> + Union<S, Out = S> + Union<(D,)>,
                Y: Union<Y, Out = Y> + Union<GatesOf<$gate, N>, Out = Y>,
                Z: Union<GatesOf<$gate, N>, Out = Z>,
                $gate: DimsOf<Y, V>,
                H: NameFor<N, V, Out = S> + KeepsRole<N, V> + DimsOf<<S as Union<(D,)>>::Out, W> + Resizable,
                B: NameFor<H, <S as Union<(D,)>>::Out, Out = O> + KeepsRole<H, <S as Union<(D,)>>::Out>,
                V: Dims,
                W: Dims,
                O: Dims,
                $($generic: $($bound)*)?
            {
                let kept = $kept;
                let [first, second] = states.map_or([None, None], |states| states.map(Some));
                let (front, forward) = self.forward.read(x, time, first, ReadFrom::Start, &kept);
                let (back, backward) = self.backward.read(x, time, second, ReadFrom::End, &kept);
                let both = concat(H::default(), [front, back]).rename(H::default(), B::default()).eval();
                (both, [forward, backward])
            }
        }
    };
    (
        @stack $network:ident $gate:ident $state:ident $(#[$doc:meta])*
        $name:ident($($argument:tt)*) {$($generic:ident: $($bound:tt)*)?} $kept:expr
    ) => {
        impl<I: AnyDim, H: AnyDim, N: AnyDim, T: Real> $network<I, H, N, T>
        where
            (N,): Union<($gate,), Out: Union<(I,)> + Union<(H,)>>,
        {
            $(#[$doc])*
            #[track_caller]
            pub fn $name<X, D, Y, Z, V, S $(, $generic)?>(
                &self,
                x: &Named<T, X>,
                time: D,
                $($argument)*
                states: Option<Vec<$state<S, T>>>,
            ) -> (Named<T, <S as Union<(D,)>>::Out>, Vec<$state<S, T>>)
            where
                X: MappedBy<(I,), GatesOf<$gate, N>, Z>,
                D: AnyDim + DimsOf<Z, Y> + DimRef<Brand = D> + NotIn<S>,
                S: MappedBy<(H,), GatesOf<$gate, N>, Y> + Union<S, Out = S>,
                S: Union<(D,), Out: MappedBy<(H,), GatesOf<$gate, N>, Z>>,
                Y: Union<Y, Out = Y> + Union<GatesOf<$gate, N>, Out = Y>,
                Z: Union<GatesOf<$gate, N>, Out = Z>,
                $gate: DimsOf<Y, V>,
                H: NameFor<N, V, Out = S> + KeepsRole<N, V>,
                V: Dims,
                $($generic: $($bound)*)?
            {
                let kept = $kept;
                let mut first = first_states(states, 1 + self.more.len());
                let state = first.next().flatten();
                let (mut y, last) = self.first.read(x, time, state, ReadFrom::Start, &kept);
                let mut states = Vec::from([last]);
                for (layer, state) in self.more.iter().zip(first) {
                    let (above, last) = layer.read(&y, time, state, ReadFrom::Start, &kept);
                    y = above;
                    states.push(last);
                }
                (y, states)
            }
        }
    };
    (
        @both_stack $network:ident $gate:ident $state:ident $(#[$doc:meta])*
        $name:ident($($argument:ident: $type:ty,)?) {$($generic:ident: $($bound:tt)*)?}
    ) => {
        impl<I: AnyDim, H: AnyDim, N: AnyDim, B: AnyDim, T: Real> $network<I, H, N, B, T>
        where
            (N,): Union<($gate,), Out: Union<(I,)> + Union<(H,)> + Union<(B,)>>,
        {
            $(#[$doc])*
            #[track_caller]
            pub fn $name<X, D, Y, Z, V, W, S, O $(, $generic)?>(
                &self,
                x: &Named<T, X>,
                time: D,
                $($argument: $type,)?
                states: Option<Vec<[$state<S, T>; 2]>>,
            ) -> (Named<T, O>, Vec<[$state<S, T>; 2]>)
            where
                X: MappedBy<(I,), GatesOf<$gate, N>, Z>,
                D: AnyDim + DimsOf<Z, Y> + DimRef<Brand = D> + NotIn<S>,
                S: MappedBy<(H,), GatesOf<$gate, N>, Y> + Union<S, Out = S> + Union<(D,)>,
                O: MappedBy<(B,), GatesOf<$gate, N>, Z>,
                Y: Union<Y, Out = Y> + Union<GatesOf<$gate, N>, Out = Y>,
                Z: Union<GatesOf<$gate, N>, Out = Z>,
                $gate: DimsOf<Y, V>,
                H: NameFor<N, V, Out = S> + KeepsRole<N, V> + DimsOf<<S as Union<(D,)>>::Out, W> + Resizable,
                B: NameFor<H, <S as Union<(D,)>>::Out, Out = O> + KeepsRole<H, <S as Union<(D,)>>::Out>,
                V: Dims,
                W: Dims,
                $($generic: $($bound)*)?
            {
                let mut first = first_states(states, 1 + self.more.len());
                let state = first.next().flatten();
                let (mut y, last) = self.first.$name(x, time, $($argument,)? state);
                let mut states = Vec::from([last]);
                for (layer, state) in self.more.iter().zip(first) {
                    let (above, last) = layer.$name(&y, time, $($argument,)? state);
                    y = above;
                    states.push(last);
                }
                (y, states)
            }
        }
    };
}

networks! {
    Lstm LstmGate LstmState BiLstm LstmStack BiLstmStack "LSTM";
    Gru GruGate GruState BiGru GruStack BiGruStack "GRU";
}
