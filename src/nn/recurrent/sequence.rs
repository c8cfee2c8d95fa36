//! Runs cells along a sequence, in either direction. Sequences in a batch can have different
//! lengths.

use super::{GatesOf, Gru, GruGate, GruState, Lstm, LstmGate, LstmState};
use crate::nn::linear::MappedBy;
use crate::prelude::*;
use crate::types::role::KeepsRole;
use crate::types::set::NameFor;
use crate::types::set::rename::NotIn;
use alloc::vec::Vec;

/// The state of a cell, with elements of `T` and the dims `S`.
pub trait RecurrentState<T, S: Dims>: Sized {
    /// Zeros with the sizes of an output.
    #[doc(hidden)]
    #[track_caller]
    fn zeros_like(output: &Named<T, S>) -> Self;

    /// The output of the cell.
    #[doc(hidden)]
    fn output(&self) -> &Named<T, S>;

    /// This state where `goes_on` is true, and `before` elsewhere.
    #[doc(hidden)]
    #[track_caller]
    fn or_before<L: Union<S, Out: Union<S>>>(&self, goes_on: &Named<bool, L>, before: &Self) -> Self;
}

/// `a` where `goes_on` is true, and `b` elsewhere.
#[track_caller]
fn chosen<T: Real, S: Dims, L>(goes_on: &Named<bool, L>, a: &Named<T, S>, b: &Named<T, S>) -> Named<T, S>
where
    L: Union<S, Out: Union<S>>,
{
    select(goes_on, a, b).eval().same_set()
}

impl<T: Real, S: Dims> RecurrentState<T, S> for GruState<S, T> {
    fn zeros_like(output: &Named<T, S>) -> Self {
        output.zero()
    }

    fn output(&self) -> &Named<T, S> {
        self
    }

    fn or_before<L: Union<S, Out: Union<S>>>(&self, goes_on: &Named<bool, L>, before: &Self) -> Self {
        chosen(goes_on, self, before)
    }
}

impl<T: Real, S: Dims> RecurrentState<T, S> for LstmState<S, T> {
    fn zeros_like(output: &Named<T, S>) -> Self {
        LstmState { hidden: output.zero(), cell: output.zero() }
    }

    fn output(&self) -> &Named<T, S> {
        &self.hidden
    }

    fn or_before<L: Union<S, Out: Union<S>>>(&self, goes_on: &Named<bool, L>, before: &Self) -> Self {
        LstmState {
            hidden: chosen(goes_on, &self.hidden, &before.hidden),
            cell: chosen(goes_on, &self.cell, &before.cell),
        }
    }
}

/// Decides what a step keeps. It takes the position, the state after the step and the state before
/// it, and returns the output and the state for the next step.
pub(super) trait Kept<T, S: Dims, R>: Fn(usize, R, &R) -> (Named<T, S>, R) {}
impl<T, S: Dims, R, F: Fn(usize, R, &R) -> (Named<T, S>, R)> Kept<T, S, R> for F {}

/// Keeps every step.
pub(super) fn always<T: Real, S: Dims, R: RecurrentState<T, S>>() -> impl Kept<T, S, R> {
    |_: usize, state: R, _: &R| (state.output().clone(), state)
}

/// Keeps the steps within the length of each sequence. After the end of a sequence, its state stays
/// the same, and the output is 0.
pub(super) fn within<T: Real, S: Dims, R: RecurrentState<T, S>, L>(
    lengths: &Named<usize, L>,
) -> impl Kept<T, S, R>
where
    L: Union<(), Out = L> + Union<S, Out: Union<S>>,
{
    |at: usize, state: R, before: &R| {
        let goes_on = lengths.gt(at).eval();
        let output = state.output();
        (chosen(&goes_on, output, &output.zero()), state.or_before(&goes_on, before))
    }
}

/// The end of the sequence at which a cell starts.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum ReadFrom {
    /// The first position.
    Start,
    /// The last position.
    End,
}

macro_rules! sequences {
    ($($cell:ident $gate:ident $state:ident;)*) => {$(
        sequences! { @method $cell $gate $state
            /// Like `apply`, for padded sequences of different lengths: `lengths` has the length of
            /// each sequence. After its end the output is 0, and the state stays the same, as for
            /// PyTorch's packed sequences.
            ///
            /// # Panics
            ///
            /// Where `apply` panics.
            pub apply_padded |cell, x, time, (lengths: &Named<usize, L>,) state, ()| {
                L: Union<(), Out = L> + Union<S, Out: Union<S>>,
            }
            cell.read(x, time, state, ReadFrom::Start, &within(lengths))
        }
        sequences! { @method $cell $gate $state
            /// The outputs and the last state.
            pub(super) read |cell, x, time, () state, (reading: ReadFrom, kept: &impl Kept<T, S, $state<S, T>>,)| {}
            {
                let all = cell.gates::<X, Z>(x);
                let gates = |at: usize| all.view().index(time, at);
                let mut state = state.unwrap_or_else(|| {
                    let like = gates(0).index($gate, 0).rename(N::default(), H::default()).eval();
                    RecurrentState::zeros_like(&like)
                });
                let mut outputs = Vec::new();
                let count = all.size(time);
                for step in 0..count {
                    let at = if reading == ReadFrom::Start { step } else { count - 1 - step };
                    let next = cell.next(gates(at).eval(), &state);
                    let (output, next) = kept(at, next, &state);
                    outputs.push(output);
                    state = next;
                }
                if reading == ReadFrom::End {
                    outputs.reverse();
                }
                (stack(time, outputs), state)
            }
        }
    )*};
    (
        @method $cell:ident $gate:ident $state:ident $(#[$doc:meta])* $visible:vis $name:ident
        |$this:ident, $x:ident, $time:ident, ($($before:tt)*) $first:ident, ($($behind:tt)*)|
        {$($generic:ident: $($bound:tt)*)?} $body:expr
    ) => {
        impl<I: AnyDim, H: AnyDim, N: AnyDim, T: Real> $cell<I, H, N, T>
        where
            (N,): Union<($gate,), Out: Union<(I,)> + Union<(H,)>>,
        {
            $(#[$doc])*
            #[track_caller]
            $visible fn $name<X, D, Y, Z, V, S $(, $generic)?>(
                &self,
                $x: &Named<T, X>,
                $time: D,
                $($before)*
                $first: Option<$state<S, T>>,
                $($behind)*
            ) -> (Named<T, <S as Union<(D,)>>::Out>, $state<S, T>)
            where
                X: MappedBy<(I,), GatesOf<$gate, N>, Z>,
                D: AnyDim + DimsOf<Z, Y> + DimRef<Brand = D> + NotIn<S>,
                S: MappedBy<(H,), GatesOf<$gate, N>, Y> + Union<S, Out = S> + Union<(D,)>,
                Y: Union<Y, Out = Y> + Union<GatesOf<$gate, N>, Out = Y>,
                Z: Union<GatesOf<$gate, N>, Out = Z>,
                $gate: DimsOf<Y, V>,
                H: NameFor<N, V, Out = S> + KeepsRole<N, V>,
                V: Dims,
                $($generic: $($bound)*)?
            {
                let $this = self;
                $body
            }
        }
    };
}

sequences! {
    Lstm LstmGate LstmState;
    Gru GruGate GruState;
}
