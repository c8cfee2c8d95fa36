//! Loads recurrent networks from files in which the weights have PyTorch's names.

use super::{BiGru, BiGruStack, BiLstm, BiLstmStack, Gru, GruGate, GruStack, Lstm, LstmGate, LstmStack};
use crate::file::Stored;
use crate::file::load::{DerivedLoad, FileAxes, Loader};
use crate::prelude::*;
use alloc::format;
use alloc::vec::Vec;
use core::marker::PhantomData;

fn has_layer(from: &mut Loader<'_, '_>, layer: usize) -> bool {
    from.field(&format!("weight_ih_l{layer}"), |from| from.is_there())
}

/// Loads the layers above the first one. Each is tried even if another one fails, so that all
/// errors are reported.
fn above<'a, M>(
    from: &mut Loader<'_, 'a>,
    load: impl Fn(&mut Loader<'_, 'a>, usize) -> Option<M>,
) -> Option<Vec<M>> {
    let count = (1..).find(|&layer| !has_layer(from, layer))?;
    let layers: Vec<Option<M>> = (1..count).map(|layer| load(from, layer)).collect();
    layers.into_iter().collect()
}

macro_rules! networks {
    ($($cell:ident $gate:ident $both:ident $stack:ident $both_stack:ident;)*) => {$(
        impl<I: AnyDim, H: AnyDim, N: AnyDim, T: Stored> $cell<I, H, N, T>
        where
            (N,): Union<($gate,), Out: Union<(I,)> + Union<(H,)>>,
            (($gate, N), I): FileAxes,
            (($gate, N), H): FileAxes,
            (($gate, N),): FileAxes,
        {
            fn loaded(from: &mut Loader<'_, '_>, layer: usize, direction: &str) -> Option<Self> {
                let name = |of: &str| format!("{of}_l{layer}{direction}");
                // Load all four arrays before the first `?`, so that all errors are reported.
                let weight_ih = from.field(&name("weight_ih"), |from| from.tensor::<_, (($gate, N), I)>());
                let weight_hh = from.field(&name("weight_hh"), |from| from.tensor::<_, (($gate, N), H)>());
                let bias_ih = from.field(&name("bias_ih"), |from| from.tensor::<_, (($gate, N),)>());
                let bias_hh = from.field(&name("bias_hh"), |from| from.tensor::<_, (($gate, N),)>());
                Some($cell { weight_ih: weight_ih?, weight_hh: weight_hh?, bias_ih: bias_ih?, bias_hh: bias_hh? })
            }
        }

        impl<'a, I: AnyDim, H: AnyDim, N: AnyDim, T: Stored> DerivedLoad<'a> for $cell<I, H, N, T>
        where
            (N,): Union<($gate,), Out: Union<(I,)> + Union<(H,)>>,
            (($gate, N), I): FileAxes,
            (($gate, N), H): FileAxes,
            (($gate, N),): FileAxes,
        {
            fn load(from: &mut Loader<'_, 'a>) -> Option<Self> {
                Self::loaded(from, 0, "")
            }
        }

        impl<I: AnyDim, H: AnyDim, N: AnyDim, B: AnyDim, T: Stored> $both<I, H, N, B, T>
        where
            (N,): Union<($gate,), Out: Union<(I,)> + Union<(H,)>>,
            (($gate, N), I): FileAxes,
            (($gate, N), H): FileAxes,
            (($gate, N),): FileAxes,
        {
            fn loaded(from: &mut Loader<'_, '_>, layer: usize) -> Option<Self> {
                let (forward, backward) = ($cell::loaded(from, layer, ""), $cell::loaded(from, layer, "_reverse"));
                Some($both { forward: forward?, backward: backward?, both: PhantomData })
            }
        }

        impl<'a, I: AnyDim, H: AnyDim, N: AnyDim, B: AnyDim, T: Stored> DerivedLoad<'a> for $both<I, H, N, B, T>
        where
            (N,): Union<($gate,), Out: Union<(I,)> + Union<(H,)>>,
            (($gate, N), I): FileAxes,
            (($gate, N), H): FileAxes,
            (($gate, N),): FileAxes,
        {
            fn load(from: &mut Loader<'_, 'a>) -> Option<Self> {
                Self::loaded(from, 0)
            }
        }

        impl<'a, I: AnyDim, H: AnyDim, N: AnyDim, T: Stored> DerivedLoad<'a> for $stack<I, H, N, T>
        where
            (N,): Union<($gate,), Out: Union<(I,)> + Union<(H,)>>,
            (($gate, N), I): FileAxes,
            (($gate, N), H): FileAxes,
            (($gate, N),): FileAxes,
        {
            fn load(from: &mut Loader<'_, 'a>) -> Option<Self> {
                let first = $cell::loaded(from, 0, "");
                let more = above(from, |from, layer| $cell::loaded(from, layer, ""));
                Some($stack { first: first?, more: more? })
            }
        }

        impl<'a, I: AnyDim, H: AnyDim, N: AnyDim, B: AnyDim, T: Stored> DerivedLoad<'a> for $both_stack<I, H, N, B, T>
        where
            (N,): Union<($gate,), Out: Union<(I,)> + Union<(H,)> + Union<(B,)>>,
            (($gate, N), I): FileAxes,
            (($gate, N), H): FileAxes,
            (($gate, N), B): FileAxes,
            (($gate, N),): FileAxes,
        {
            fn load(from: &mut Loader<'_, 'a>) -> Option<Self> {
                let (first, more) = ($both::loaded(from, 0), above(from, $both::loaded));
                Some($both_stack { first: first?, more: more? })
            }
        }
    )*};
}

networks! {
    Lstm LstmGate BiLstm LstmStack BiLstmStack;
    Gru GruGate BiGru GruStack BiGruStack;
}
