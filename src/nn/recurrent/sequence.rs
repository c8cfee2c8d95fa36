//! Runs recurrent cells along sequences, in either direction. The sequences in a batch can have
//! different lengths.

use super::{GatesOf, Gru, GruGate, GruState, Lstm, LstmGate, LstmState};
use crate::nn::linear::MappedBy;
use crate::prelude::*;
use crate::types::role::KeepsRole;
use crate::types::set::remove::{Found, Removal, Remove, Surplus, Within};
use crate::types::set::rename::NotIn;
use crate::types::set::shared::Covered;
use crate::types::set::{Fails, FirstWith, MaybeDim, NameFor, NamedOnce, NoDim};
use alloc::vec::Vec;
use typed_dims_core::operators::nn::checks::{check_lengths, check_sizes, with_origin_of};

/// The state of a cell, with elements of type `T` and the dims `S`.
pub trait RecurrentState<T, S: Dims>: Sized {
    /// Zeros with the sizes of an output.
    #[doc(hidden)]
    #[track_caller]
    fn zeros_like(output: &Named<T, S>) -> Self;

    /// Checks that the state and the gates have the same sizes along the dims that both have.
    /// (Adding the two would also find a mismatch, but the error would name the cell's caller as
    /// the origin of both sizes.)
    #[doc(hidden)]
    #[track_caller]
    fn check_sizes<G: Dims>(&self, gates: &Named<T, G>);

    /// The output of the cell.
    #[doc(hidden)]
    fn output(&self) -> &Named<T, S>;

    /// This state for the sequences that have the position `at`, and `before` for the others.
    #[doc(hidden)]
    #[track_caller]
    fn or_before<L: LengthsFor<S>>(&self, lengths: &Named<usize, L>, at: usize, before: &Self) -> Self;
}

/// The dims of a tensor of sequence lengths: each of them is one of the dims `S` of the state.
pub trait LengthsFor<S: Dims>: Union<(), Out = Self> + Union<S, Out: Union<S>> {}

impl<S: Dims, L> LengthsFor<S> for L
where
    L: Union<(), Out = L> + Union<S, Out: Union<S>> + Dims<List: FirstWith<Fails<Within<S::List>>>>,
    NoDim<Surplus<L, S>>: Covered<Surplus<L, S>, S>,
{
}

/// A second dim for the features `H` of a cell whose input has the features `I`. It must differ
/// from `I` and `H`.
pub trait SecondOf<I, H>: AnyDim {}

impl<I: AnyDim, H: AnyDim, N: AnyDim> SecondOf<I, H> for N
where
    (I, ()): Remove<N, Out: Removal>,
    (H, ()): Remove<N, Out: Removal>,
    NoDim<Again<I, H, N>>: NamedOnce<Again<I, H, N>, (I, H, N)>,
{
}

/// `N` if it is one of the dims `I` and `H`, otherwise `Nothing`.
type Again<I, H, N> = <Found<N, (I,)> as MaybeDim>::Or<Found<N, (H,)>>;

/// `a` for the sequences that have the position `at`, and `b` for the others.
#[track_caller]
fn chosen<T: Real, S: Dims, L: LengthsFor<S>>(
    lengths: &Named<usize, L>,
    at: usize,
    a: &Named<T, S>,
    b: &Named<T, S>,
) -> Named<T, S> {
    // (The comparison is lazy, so that an error about sizes names the origin of the lengths.)
    select(lengths.gt(at), a, b).eval().same_set()
}

impl<T: Real, S: Dims> RecurrentState<T, S> for GruState<S, T> {
    fn zeros_like(output: &Named<T, S>) -> Self {
        output.zero()
    }

    fn check_sizes<G: Dims>(&self, gates: &Named<T, G>) {
        check_sizes(gates, self);
    }

    fn output(&self) -> &Named<T, S> {
        self
    }

    fn or_before<L: LengthsFor<S>>(&self, lengths: &Named<usize, L>, at: usize, before: &Self) -> Self {
        chosen(lengths, at, self, before)
    }
}

impl<T: Real, S: Dims> RecurrentState<T, S> for LstmState<S, T> {
    fn zeros_like(output: &Named<T, S>) -> Self {
        LstmState { hidden: output.zero(), cell: output.zero() }
    }

    fn check_sizes<G: Dims>(&self, gates: &Named<T, G>) {
        check_sizes(gates, &self.hidden);
        check_sizes(&self.hidden, &self.cell);
    }

    fn output(&self) -> &Named<T, S> {
        &self.hidden
    }

    fn or_before<L: LengthsFor<S>>(&self, lengths: &Named<usize, L>, at: usize, before: &Self) -> Self {
        LstmState {
            hidden: chosen(lengths, at, &self.hidden, &before.hidden),
            cell: chosen(lengths, at, &self.cell, &before.cell),
        }
    }
}

/// Decides which results of a step are kept. (This is a trait, because the errors of a closure
/// would name a line of this file.)
pub(super) trait Kept<T, S: Dims, R> {
    /// Checks that the lengths, if any, fit sequences with `count` positions along the dim `time`.
    #[track_caller]
    fn check(&self, time: &'static str, count: usize);

    /// The output at the position `at`, and the state for the next step. `next` is the state that
    /// the cell computed at this position from the state `before`.
    #[track_caller]
    fn keep(&self, at: usize, next: R, before: &R) -> (Named<T, S>, R);
}

pub(super) struct Always;

impl<T: Real, S: Dims, R: RecurrentState<T, S>> Kept<T, S, R> for Always {
    fn check(&self, _: &'static str, _: usize) {}

    fn keep(&self, _: usize, next: R, _: &R) -> (Named<T, S>, R) {
        (next.output().clone(), next)
    }
}

/// Keeps the steps within the length of each sequence. After the end of a sequence, its state does
/// not change, and the output is 0.
pub(super) struct WithinLengths<'a, L: Dims>(pub(super) &'a Named<usize, L>);

impl<T: Real, S: Dims, R: RecurrentState<T, S>, L: LengthsFor<S>> Kept<T, S, R> for WithinLengths<'_, L> {
    fn check(&self, time: &'static str, count: usize) {
        check_lengths(self.0, time, count);
    }

    fn keep(&self, at: usize, next: R, before: &R) -> (Named<T, S>, R) {
        let output = next.output();
        (chosen(self.0, at, output, &output.zero()), next.or_before(self.0, at, before))
    }
}

/// The position at which a cell starts to read.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum ReadFrom {
    /// The first position.
    Start,
    /// The last position.
    End,
}

macro_rules! sequences {
    ($($cell:ident $gate:ident $state:ident;)*) => {$(
        impl<I: AnyDim, H: AnyDim, N: AnyDim, T: Real> $cell<I, H, N, T>
        where
            (N,): Union<($gate,), Out: Union<(I,)> + Union<(H,)>>,
        {
            /// The outputs and the last state, from the contribution of the input `x` to the gates.
            #[track_caller]
            pub(super) fn read<X, D, Y, V, S, G>(
                &self,
                all: Named<T, G>,
                x: &Named<T, X>,
                time: D,
                state: Option<$state<S, T>>,
                reading: ReadFrom,
                kept: &impl Kept<T, S, $state<S, T>>,
            ) -> (Named<T, <S as Union<(D,)>>::Out>, $state<S, T>)
            where
                D: AnyDim + DimsOf<G, Y> + DimRef<Brand = D> + NotIn<S>,
                S: MappedBy<(H,), GatesOf<$gate, N>, Y> + Union<S, Out = S> + Union<(D,)>,
                Y: Union<Y, Out = Y> + Union<GatesOf<$gate, N>, Out = Y>,
                $gate: DimsOf<Y, V>,
                H: NameFor<N, V, Out = S> + KeepsRole<N, V>,
                X: Dims,
                V: Dims,
                G: Dims,
            {
                let count = all.size(time);
                assert!(count > 0, "there are no positions along `{}`", D::NAME);
                kept.check(D::NAME, count);
                let mut state = match state {
                    Some(state) => {
                        state.check_sizes(&with_origin_of(all.clone(), x));
                        state
                    }
                    None => {
                        let first = all.view().index(time, 0_usize).index($gate, 0);
                        RecurrentState::zeros_like(&first.rename(N::default(), H::default()).eval())
                    }
                };
                let mut outputs = Vec::new();
                for step in 0..count {
                    let at = if reading == ReadFrom::Start { step } else { count - 1 - step };
                    let next = self.next(all.view().index(time, at).eval(), &state);
                    let (output, next) = kept.keep(at, next, &state);
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
}

sequences! {
    Lstm LstmGate LstmState;
    Gru GruGate GruState;
}
