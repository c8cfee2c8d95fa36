//! A case: inputs that all peers share, and the peers, which compute the same result in different
//! ways.

use ndarray::{Array, Dimension, IntoDimension};
use ndarray_npy::{WritableElement, write_npy};
use rand::distr::{Distribution, StandardUniform};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::cell::RefCell;
use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A result of any of the libraries.
pub trait Outcome {
    /// The elements in row-major order.
    fn elements(&self) -> Vec<f64>;
}

impl<T: Copy + Into<f64>, D: Dimension> Outcome for Array<T, D> {
    fn elements(&self) -> Vec<f64> {
        self.iter().map(|&element| element.into()).collect()
    }
}

impl Outcome for candle_core::Tensor {
    fn elements(&self) -> Vec<f64> {
        let flat = self.flatten_all().and_then(|flat| flat.to_dtype(candle_core::DType::F64));
        flat.and_then(|flat| flat.to_vec1()).expect("a tensor of numbers can be read")
    }
}

#[cfg(feature = "burn")]
impl<const D: usize> Outcome for burn::tensor::Tensor<D> {
    fn elements(&self) -> Vec<f64> {
        self.to_data().iter::<f64>().collect()
    }
}

/// One implementation of a case.
pub struct Peer {
    pub name: &'static str,
    /// The time of this many calls, including dropping their results.
    pub time: Box<dyn FnMut(usize) -> Duration>,
    /// The result in row-major order.
    pub result: Box<dyn FnMut() -> Vec<f64>>,
}

type Export = Box<dyn Fn(&Path) -> Result<(), Box<dyn Error>>>;

/// Collects the inputs and peers of a case.
pub struct Bench {
    /// The number of threads for each peer.
    pub threads: usize,
    /// Whether a result is kept until the next call of its peer, so that its memory is not reused
    /// at once.
    pub keep: bool,
    pub peers: Vec<Peer>,
    inputs: Vec<(&'static str, Export)>,
    rng: StdRng,
}

impl Bench {
    /// A case without inputs or peers. `seed` determines the elements of its inputs.
    pub fn new(threads: usize, seed: u64) -> Bench {
        Bench {
            threads,
            keep: false,
            peers: Vec::new(),
            inputs: Vec::new(),
            rng: StdRng::seed_from_u64(seed),
        }
    }

    /// Adds an input with random elements from -1 to 1.
    pub fn input<T, S>(&mut self, name: &'static str, shape: S) -> Arc<Array<T, S::Dim>>
    where
        T: WritableElement + Copy + num_traits::Float + 'static,
        S: IntoDimension<Dim: 'static>,
        StandardUniform: Distribution<T>,
    {
        let (one, two) = (T::one(), T::one() + T::one());
        let rng = &mut self.rng;
        let array =
            Arc::new(Array::from_shape_simple_fn(shape.into_dimension(), || rng.random::<T>() * two - one));
        let stored = array.clone();
        self.inputs.push((name, Box::new(move |path| Ok(write_npy(path, &*stored)?))));
        array
    }

    /// Adds an input of random row indices below `rows`.
    pub fn ids<S>(&mut self, name: &'static str, shape: S, rows: usize) -> Arc<Array<usize, S::Dim>>
    where
        S: IntoDimension<Dim: 'static>,
    {
        let rng = &mut self.rng;
        let array =
            Arc::new(Array::from_shape_simple_fn(shape.into_dimension(), || rng.random_range(0..rows)));
        let stored = array.clone();
        self.inputs.push((name, Box::new(move |path| Ok(write_npy(path, &stored.mapv(|id| id as i64))?))));
        array
    }

    pub fn peer<O: Outcome + 'static>(&mut self, name: &'static str, call: impl Fn() -> O + 'static) {
        let call = Rc::new(call);
        let timed = call.clone();
        let (keep, mut kept) = (self.keep, None);
        self.peers.push(Peer {
            name,
            time: Box::new(move |calls| {
                let start = Instant::now();
                for _ in 0..calls {
                    let result = black_box(timed());
                    if keep {
                        drop(kept.replace(result));
                    }
                }
                start.elapsed()
            }),
            result: Box::new(move || call().elements()),
        });
    }

    /// Adds a peer that writes into an existing `out`.
    pub fn peer_into<O: Outcome + 'static>(
        &mut self,
        name: &'static str,
        out: O,
        call: impl Fn(&mut O) + 'static,
    ) {
        let shared = Rc::new((RefCell::new(out), call));
        let timed = shared.clone();
        self.peers.push(Peer {
            name,
            time: Box::new(move |calls| {
                let (out, call) = &*timed;
                let mut out = out.borrow_mut();
                let start = Instant::now();
                for _ in 0..calls {
                    call(black_box(&mut out));
                }
                start.elapsed()
            }),
            result: Box::new(move || {
                let (out, call) = &*shared;
                let mut out = out.borrow_mut();
                call(&mut out);
                out.elements()
            }),
        });
    }

    /// Writes each input to `folder` as `name.npy`.
    pub fn export(&self, folder: &Path) -> Result<(), Box<dyn Error>> {
        self.inputs.iter().try_for_each(|(name, write)| write(&folder.join(format!("{name}.npy"))))
    }
}

pub fn candle<T: candle_core::WithDType, D: Dimension>(array: &Array<T, D>) -> candle_core::Tensor {
    let elements = array.as_slice().expect("inputs are in standard layout");
    candle_core::Tensor::from_slice(elements, array.shape(), &candle_core::Device::Cpu)
        .expect("the shape fits")
}

pub fn candle_ids<D: Dimension>(array: &Array<usize, D>) -> candle_core::Tensor {
    candle(&array.mapv(|id| id as u32))
}

/// The array as a tensor on burn's CPU backend Flex.
#[cfg(feature = "burn")]
pub fn burn<const N: usize, T: burn::tensor::Element, D: Dimension>(
    array: &Array<T, D>,
) -> burn::tensor::Tensor<N> {
    let data = burn::tensor::TensorData::new(array.iter().copied().collect::<Vec<_>>(), array.shape());
    burn::tensor::Tensor::from_data(data, (&burn::tensor::Device::flex(), T::dtype()))
}
