//! Several recurrent cells: in both directions, and in stacks of layers.

use super::sequence::{Always, Kept, LengthsFor, ReadFrom, SecondOf, WithinLengths};
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
        let count = states.len();
        assert!(count == layers, "the number of initial states is {count}, but that of layers is {layers}");
    }
    let mut states = states.map(Vec::into_iter);
    core::iter::repeat_with(move || states.as_mut().and_then(Iterator::next)).take(layers)
}

macro_rules! networks {
    ($($cell:ident $gate:ident $state:ident $both:ident $stack:ident $both_stack:ident $network:literal;)*) => {$(
        #[doc = concat!("Two [`", stringify!($cell), "`] cells: one reads a sequence from its start, the other from its end. `B` has the features of the first cell, then those of the second.")]
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
        /// In files, the parameters have the names of PyTorch's first layer: `weight_ih_l0`,
        /// `weight_ih_l0_reverse`, and so on.
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
            /// If `N` has a static size other than the size of `hidden`, or if the weights do not
            /// fit into memory.
            #[track_caller]
            pub fn new(inputs: Of<I>, hidden: Of<H>, seed: u64) -> Self
            where
                N: SecondOf<I, H>,
            {
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
            /// If a dim has different sizes in two of `x`, the states and the weights, if `time`
            /// has size 0, or if `B` has a static size other than twice the size of `H`.
            apply() {} Always
        }
        networks! { @both $both $gate $state
            /// Like `apply`, for padded sequences of different lengths: see `apply_padded` of a
            /// single cell. The backward direction starts at the end of each sequence.
            ///
            /// # Panics
            ///
            /// Where `apply` or the `apply_padded` of a single cell panics.
            apply_padded(lengths: &Named<usize, L>,) { L: LengthsFor<S> } WithinLengths(lengths)
        }

        #[doc = concat!("Several [`", stringify!($cell), "`] layers. The first reads the input, and each other one reads the output of the layer below. This is PyTorch's `", $network, "` with `num_layers`.")]
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
            /// The layers above the first one.
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
            /// If `layers` is 0, if `N` has a static size other than the size of `hidden`, or if
            /// the weights do not fit into memory.
            #[track_caller]
            pub fn new(inputs: Of<I>, hidden: Of<H>, layers: usize, seed: u64) -> Self
            where
                N: SecondOf<I, H> + SecondOf<H, H>,
            {
                assert!(layers > 0, "a network of 0 layers");
                let mut network = $stack { first: $cell::new(inputs, hidden, split(seed, 0)), more: Vec::new() };
                for at in 1..layers {
                    network.more.push($cell::new(hidden, hidden, split(seed, at as u64)));
                }
                network
            }
        }

        networks! { @stack $stack $gate $state
            /// The outputs of the last layer at each position along `time`, and the final state of
            /// each layer. The initial states are `states`, or zeros.
            ///
            /// # Panics
            ///
            /// If a dim has different sizes in two of `x`, the states and the weights, if `time`
            /// has size 0, or if the number of states is not the number of layers.
            apply() {} Always
        }
        networks! { @stack $stack $gate $state
            /// Like `apply`, for padded sequences of different lengths: see `apply_padded` of one
            /// layer.
            ///
            /// # Panics
            ///
            /// Where `apply` or the `apply_padded` of one layer panics.
            apply_padded(lengths: &Named<usize, L>,) { L: LengthsFor<S> } WithinLengths(lengths)
        }

        #[doc = concat!("Several [`", stringify!($both), "`] layers. The first reads the input, and each other one reads the output of the layer below. This is PyTorch's `", $network, "` with `num_layers` and `bidirectional=True`.")]
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
            /// The layers above the first one.
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
            /// If `layers` is 0, if `N` has a static size other than the size of `hidden`, if `B`
            /// has a static size other than twice that size, or if the weights do not fit into
            /// memory.
            #[track_caller]
            pub fn new(inputs: Of<I>, hidden: Of<H>, layers: usize, seed: u64) -> Self
            where
                N: SecondOf<I, H> + SecondOf<B, H>,
            {
                assert!(layers > 0, "a network of 0 layers");
                let both = B::default().of(2 * hidden.size());
                let mut network = $both_stack { first: $both::new(inputs, hidden, split(seed, 0)), more: Vec::new() };
                for at in 1..layers {
                    network.more.push($both::new(both, hidden, split(seed, at as u64)));
                }
                network
            }
        }

        networks! { @both_stack $both_stack $gate $state
            /// The outputs of the last layer at each position along `time`, and the final states of
            /// each layer. The initial states are `states`, or zeros.
            ///
            /// # Panics
            ///
            /// If a dim has different sizes in two of `x`, the states and the weights, if `time`
            /// has size 0, if the number of states is not the number of layers, or if `B` has a
            /// static size other than twice the size of `H`.
            apply() {} Always
        }
        networks! { @both_stack $both_stack $gate $state
            /// Like `apply`, for padded sequences of different lengths: see `apply_padded` of one
            /// layer.
            ///
            /// # Panics
            ///
            /// Where `apply` or the `apply_padded` of one layer panics.
            apply_padded(lengths: &Named<usize, L>,) { L: LengthsFor<S> } WithinLengths(lengths)
        }
    )*};
    (
        @both $network:ident $gate:ident $state:ident $(#[$doc:meta])*
        $name:ident($($argument:tt)*) {$($generic:ident: $bound:path)?} $kept:expr
    ) => {
        impl<I: AnyDim, H: AnyDim, N: AnyDim, B: AnyDim, T: Real> $network<I, H, N, B, T>
        where
            (N,): Union<($gate,), Out: Union<(I,)> + Union<(H,)>>,
        {
            $(#[$doc])*
            #[track_caller]
            #[rustfmt::skip] // rustc quotes the next line in errors
            pub fn $name<X: MappedBy<(I,), GatesOf<$gate, N>, Z>, D: AnyDim + DimsOf<X, A>, Y, Z, V, W, S, O, A: Dims, G $(, $generic: $bound)?>(
                &self,
                x: &Named<T, X>,
                time: D,
                $($argument)*
                states: Option<[$state<S, T>; 2]>,
            ) -> (Named<T, O>, [$state<S, T>; 2])
            where
                D: DimsOf<G, Y> + DimRef<Brand = D> + NotIn<S> + NotIn<(I,)>,
                S: MappedBy<(H,), GatesOf<$gate, N>, Y> + Union<S, Out = S> + Union<(D,)>,
                Y: Union<Y, Out = Y> + Union<GatesOf<$gate, N>, Out = Y>,
                Z: Union<GatesOf<$gate, N>, Out = Z> + Union<(D,), Out = G>,
                $gate: DimsOf<Y, V>,
                H: NameFor<N, V, Out = S> + KeepsRole<N, V> + DimsOf<<S as Union<(D,)>>::Out, W> + Resizable,
                B: NameFor<H, <S as Union<(D,)>>::Out, Out = O> + KeepsRole<H, <S as Union<(D,)>>::Out>,
                V: Dims,
                W: Dims,
                O: Dims,
                G: Dims,
            {
                let gates = [self.forward.gates::<X, Z>(x).same_set(), self.backward.gates::<X, Z>(x).same_set()];
                self.read(gates, x, time, states, &$kept)
            }
        }
    };
    (
        @stack $network:ident $gate:ident $state:ident $(#[$doc:meta])*
        $name:ident($($argument:tt)*) {$($generic:ident: $bound:path)?} $kept:expr
    ) => {
        impl<I: AnyDim, H: AnyDim, N: AnyDim, T: Real> $network<I, H, N, T>
        where
            (N,): Union<($gate,), Out: Union<(I,)> + Union<(H,)>>,
        {
            $(#[$doc])*
            #[track_caller]
            #[rustfmt::skip] // rustc quotes the next line in errors
            pub fn $name<X: MappedBy<(I,), GatesOf<$gate, N>, Z>, D: AnyDim + DimsOf<X, A>, Y, Z, V, S, A: Dims, G $(, $generic: $bound)?>(
                &self,
                x: &Named<T, X>,
                time: D,
                $($argument)*
                states: Option<Vec<$state<S, T>>>,
            ) -> (Named<T, <S as Union<(D,)>>::Out>, Vec<$state<S, T>>)
            where
                D: DimsOf<G, Y> + DimRef<Brand = D> + NotIn<S> + NotIn<(I,)>,
                S: MappedBy<(H,), GatesOf<$gate, N>, Y> + Union<S, Out = S>,
                S: Union<(D,), Out: MappedBy<(H,), GatesOf<$gate, N>, G>>,
                Y: Union<Y, Out = Y> + Union<GatesOf<$gate, N>, Out = Y>,
                Z: Union<GatesOf<$gate, N>, Out = Z> + Union<(D,), Out = G>,
                $gate: DimsOf<Y, V>,
                H: NameFor<N, V, Out = S> + KeepsRole<N, V>,
                V: Dims,
                G: Union<GatesOf<$gate, N>, Out = G>,
            {
                let kept = $kept;
                let mut first = first_states(states, 1 + self.more.len());
                let state = first.next().flatten();
                let gates = self.first.gates::<X, Z>(x).same_set();
                let (mut y, last) = self.first.read(gates, x, time, state, ReadFrom::Start, &kept);
                let mut states = Vec::from([last]);
                for (layer, state) in self.more.iter().zip(first) {
                    let gates = layer.gates::<<S as Union<(D,)>>::Out, G>(&y);
                    let (above, last) = layer.read(gates, &y, time, state, ReadFrom::Start, &kept);
                    y = above;
                    states.push(last);
                }
                (y, states)
            }
        }
    };
    (
        @both_stack $network:ident $gate:ident $state:ident $(#[$doc:meta])*
        $name:ident($($argument:tt)*) {$($generic:ident: $bound:path)?} $kept:expr
    ) => {
        impl<I: AnyDim, H: AnyDim, N: AnyDim, B: AnyDim, T: Real> $network<I, H, N, B, T>
        where
            (N,): Union<($gate,), Out: Union<(I,)> + Union<(H,)> + Union<(B,)>>,
        {
            $(#[$doc])*
            #[track_caller]
            #[rustfmt::skip] // rustc quotes the next line in errors
            pub fn $name<X: MappedBy<(I,), GatesOf<$gate, N>, Z>, D: AnyDim + DimsOf<X, A>, Y, Z, V, W, S, O, A: Dims, G $(, $generic: $bound)?>(
                &self,
                x: &Named<T, X>,
                time: D,
                $($argument)*
                states: Option<Vec<[$state<S, T>; 2]>>,
            ) -> (Named<T, O>, Vec<[$state<S, T>; 2]>)
            where
                D: DimsOf<G, Y> + DimRef<Brand = D> + NotIn<S> + NotIn<(I,)>,
                S: MappedBy<(H,), GatesOf<$gate, N>, Y> + Union<S, Out = S> + Union<(D,)>,
                O: MappedBy<(B,), GatesOf<$gate, N>, G>,
                Y: Union<Y, Out = Y> + Union<GatesOf<$gate, N>, Out = Y>,
                Z: Union<GatesOf<$gate, N>, Out = Z> + Union<(D,), Out = G>,
                $gate: DimsOf<Y, V>,
                H: NameFor<N, V, Out = S> + KeepsRole<N, V> + DimsOf<<S as Union<(D,)>>::Out, W> + Resizable,
                B: NameFor<H, <S as Union<(D,)>>::Out, Out = O> + KeepsRole<H, <S as Union<(D,)>>::Out>,
                V: Dims,
                W: Dims,
                G: Union<GatesOf<$gate, N>, Out = G>,
            {
                let kept = $kept;
                let mut first = first_states(states, 1 + self.more.len());
                let state = first.next().flatten();
                let [front, back] = [&self.first.forward, &self.first.backward];
                let gates = [front.gates::<X, Z>(x).same_set(), back.gates::<X, Z>(x).same_set()];
                let (mut y, last) = self.first.read(gates, x, time, state, &kept);
                let mut states = Vec::from([last]);
                for (layer, state) in self.more.iter().zip(first) {
                    let gates = [layer.forward.gates::<O, G>(&y), layer.backward.gates::<O, G>(&y)];
                    let (above, last) = layer.read(gates, &y, time, state, &kept);
                    y = above;
                    states.push(last);
                }
                (y, states)
            }
        }
    };
}

macro_rules! both_directions {
    ($($network:ident $gate:ident $state:ident;)*) => {$(
        impl<I: AnyDim, H: AnyDim, N: AnyDim, B: AnyDim, T: Real> $network<I, H, N, B, T>
        where
            (N,): Union<($gate,), Out: Union<(I,)> + Union<(H,)>>,
        {
            /// The outputs of both directions and their last states, from the contributions of the
            /// input `x` to the gates.
            #[track_caller]
            fn read<X, D, Y, V, W, S, O, G>(
                &self,
                [front, back]: [Named<T, G>; 2],
                x: &Named<T, X>,
                time: D,
                states: Option<[$state<S, T>; 2]>,
                kept: &impl Kept<T, S, $state<S, T>>,
            ) -> (Named<T, O>, [$state<S, T>; 2])
            where
                D: AnyDim + DimsOf<G, Y> + DimRef<Brand = D> + NotIn<S>,
                S: MappedBy<(H,), GatesOf<$gate, N>, Y> + Union<S, Out = S> + Union<(D,)>,
                Y: Union<Y, Out = Y> + Union<GatesOf<$gate, N>, Out = Y>,
                $gate: DimsOf<Y, V>,
                H: NameFor<N, V, Out = S> + KeepsRole<N, V> + DimsOf<<S as Union<(D,)>>::Out, W> + Resizable,
                B: NameFor<H, <S as Union<(D,)>>::Out, Out = O> + KeepsRole<H, <S as Union<(D,)>>::Out>,
                X: Dims,
                V: Dims,
                W: Dims,
                O: Dims,
                G: Dims,
            {
                let [first, second] = states.map_or([None, None], |states| states.map(Some));
                let (front, forward) = self.forward.read(front, x, time, first, ReadFrom::Start, kept);
                let (back, backward) = self.backward.read(back, x, time, second, ReadFrom::End, kept);
                let both = concat(H::default(), [front, back]).rename(H::default(), B::default()).eval();
                (both, [forward, backward])
            }
        }
    )*};
}

networks! {
    Lstm LstmGate LstmState BiLstm LstmStack BiLstmStack "LSTM";
    Gru GruGate GruState BiGru GruStack BiGruStack "GRU";
}

both_directions! {
    BiLstm LstmGate LstmState;
    BiGru GruGate GruState;
}
