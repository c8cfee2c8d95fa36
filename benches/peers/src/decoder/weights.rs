//! The weights of the decoder as arrays, for the other libraries.

use gpt::model::{Char, Feat, Gpt, Head, Inner, Layer, Width};
use ndarray::{Array1, Array2, Array3};
use typed_dims::prelude::*;

/// The axes of a linear map are its input and its output.
pub struct Weights {
    pub chars: Array2<f32>,
    pub layers: Vec<LayerWeights>,
    pub norm: Array1<f32>,
}

pub struct LayerWeights {
    pub attention_norm: Array1<f32>,
    pub query: Array2<f32>,
    pub key: Array2<f32>,
    pub value: Array2<f32>,
    pub out: Array2<f32>,
    pub glu_norm: Array1<f32>,
    pub gate: Array2<f32>,
    pub up: Array2<f32>,
    pub down: Array2<f32>,
}

impl From<&Gpt> for Weights {
    fn from(gpt: &Gpt) -> Self {
        Weights {
            chars: (&gpt.chars.weight).order((Char, Width)),
            layers: gpt.layers.iter().map(LayerWeights::from).collect(),
            norm: (&gpt.norm.weight).order(Width),
        }
    }
}

impl From<&Layer> for LayerWeights {
    fn from(layer: &Layer) -> Self {
        let Layer { attention_norm, attention, glu_norm, glu } = layer;
        let joined = |map: Array3<f32>| {
            let (width, heads, feat) = map.dim();
            map.into_shape_with_order((width, heads * feat)).expect("the layout is standard")
        };
        let out: Array3<f32> = (&attention.out.weight).order((Head, Feat, Width));
        let (heads, feat, width) = out.dim();
        LayerWeights {
            attention_norm: (&attention_norm.weight).order(Width),
            query: joined((&attention.query.weight).order((Width, Head, Feat))),
            key: joined((&attention.key.weight).order((Width, Head, Feat))),
            value: joined((&attention.value.weight).order((Width, Head, Feat))),
            out: out.into_shape_with_order((heads * feat, width)).expect("the layout is standard"),
            glu_norm: (&glu_norm.weight).order(Width),
            gate: (&glu.gate.weight).order((Width, Inner)),
            up: (&glu.up.weight).order((Width, Inner)),
            down: (&glu.down.weight).order((Inner, Width)),
        }
    }
}
