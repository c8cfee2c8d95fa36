//! The engine of an example's training: the CPU, or XLA on one device or a mesh.
//!
//! An example flattens [`EngineArgs`] into its arguments, creates a [`Trainer`] for the [`Engine`],
//! and calls [`Trainer::step`] for each batch. The example's model does not depend on the engine.

use clap::{Args, ValueEnum};
use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use typed_dims::prelude::*;
use typed_dims::program::{RecordInputs, Spec};
use typed_dims_xla::{OnDevice, Pjrt, PjrtOptions, Run, XlaError, mesh};

mesh! {
    /// Devices that work on different examples.
    pub struct Data;
    /// Devices that work on different parts of the model.
    pub struct Model;
}

/// The loss of a step.
pub type Loss = Tensor<f32, ()>;

/// Arguments that choose the engine.
#[derive(Args, Clone, Debug)]
pub struct EngineArgs {
    /// The engine of the training steps
    #[arg(long, value_enum, default_value_t = Kind::Cpu)]
    engine: Kind,
    /// A mesh of devices for XLA, such as `data=4,model=2`: devices along `data` work on different
    /// examples, and devices along `model` work on different parts of the model
    #[arg(long)]
    mesh: Option<Devices>,
    /// The file of a PJRT plugin, instead of an installed one
    #[arg(long)]
    plugin: Option<PathBuf>,
}

/// The name of an engine.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Kind {
    /// This library, on the CPU
    Cpu,
    /// XLA, through a PJRT plugin
    Xla,
}

/// Numbers of devices along the axes of a mesh.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Devices {
    /// Along [`Data`].
    pub data: usize,
    /// Along [`Model`].
    pub model: usize,
}

impl FromStr for Devices {
    type Err = String;

    /// Reads `data=4,model=2`. An axis that is not named has one device.
    fn from_str(text: &str) -> Result<Self, String> {
        let (mut data, mut model) = (None, None);
        for part in text.split(',') {
            let (name, number) = part.split_once('=').ok_or(format!("`{part}` is not `name=number`"))?;
            let axis = match name.trim() {
                "data" => &mut data,
                "model" => &mut model,
                other => return Err(format!("there is no axis `{other}`: the axes are `data` and `model`")),
            };
            let devices = number.trim().parse().ok().filter(|&devices: &usize| devices > 0);
            let devices = devices.ok_or(format!("`{number}` is not a number of devices"))?;
            if axis.replace(devices).is_some() {
                return Err(format!("the axis `{}` is given twice", name.trim()));
            }
        }
        Ok(Devices { data: data.unwrap_or(1), model: model.unwrap_or(1) })
    }
}

/// Runs training steps on an engine.
#[derive(Clone)]
pub enum Engine {
    /// This library, on the CPU.
    Cpu,
    /// XLA, on one device or on a mesh.
    Xla {
        /// The plugin.
        pjrt: Pjrt,
        /// The numbers of devices along the axes of the mesh, or `None` for one device.
        mesh: Option<Devices>,
    },
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Engine::Cpu => f.write_str("the CPU"),
            Engine::Xla { pjrt, mesh } => {
                write!(f, "XLA: {}", pjrt.platform_name())?;
                match mesh {
                    None => f.write_str(", one device"),
                    Some(Devices { data, model }) => {
                        write!(f, ", a mesh with data = {data}, model = {model}")
                    }
                }
            }
        }
    }
}

impl EngineArgs {
    /// Loads the plugin, if the engine needs one.
    ///
    /// # Errors
    ///
    /// Returns an error if the plugin cannot be found or loaded or has too few devices, or if a
    /// mesh or a plugin is given for the CPU.
    pub fn start(&self) -> Result<Engine, Box<dyn Error>> {
        let EngineArgs { engine, mesh, ref plugin } = *self;
        if engine == Kind::Cpu {
            let given = if mesh.is_some() { Some("--mesh") } else { plugin.as_ref().map(|_| "--plugin") };
            return match given {
                Some(given) => Err(format!("`{given}` needs `--engine xla`").into()),
                None => Ok(Engine::Cpu),
            };
        }
        let devices = mesh.map_or(1, |mesh| mesh.data * mesh.model);
        // Only CPU plugins have virtual devices. Others offer the machine's devices.
        let options = PjrtOptions::new().cpu_devices(devices);
        let pjrt = match plugin {
            Some(path) => Pjrt::load_with(path, options)?,
            None => Pjrt::find_with(options)?,
        };
        let found = pjrt.devices().len();
        if found < devices {
            return Err(format!(
                "the mesh needs {devices} devices, but {} has {found}",
                pjrt.platform_name()
            )
            .into());
        }
        Ok(Engine::Xla { pjrt, mesh })
    }
}

/// A training run on an engine: a step, and the state that it changes.
pub struct Trainer<S, X, Y>(Steps<S, X, Y>);

/// A step compiled by XLA.
pub type Compiled<S, X, Y> = Run<(S, Spec<X>, Spec<Y>), (S, Loss)>;

/// A step on the CPU.
type OnCpu<S, X, Y> = Box<dyn Fn(S, &X, &Y) -> (S, Loss)>;

/// The state is `None` during a call, and after a call that returned an error.
enum Steps<S, X, Y> {
    Cpu { state: Option<S>, step: OnCpu<S, X, Y> },
    Xla { state: Option<OnDevice<S>>, run: Box<Compiled<S, X, Y>> },
}

/// A loss that may not have been computed yet.
pub enum StepLoss {
    /// On the CPU.
    Cpu(Loss),
    /// On a device.
    Xla(OnDevice<Loss>),
}

impl StepLoss {
    /// Waits for the loss.
    ///
    /// # Errors
    ///
    /// Returns an error if XLA reports one, or if a check of a step failed: for example, an index
    /// was out of range.
    pub fn read(self) -> Result<f32, XlaError> {
        Ok(match self {
            StepLoss::Cpu(loss) => loss.order(()),
            StepLoss::Xla(loss) => loss.to_host()?.order(()),
        })
    }
}

const LOST: &str = "an earlier step returned an error";

impl<S, X, Y> Trainer<S, X, Y>
where
    S: Parameters + RecordInputs<Value = S>,
    X: Parameters,
    Y: Parameters,
{
    /// A training run on the CPU.
    pub fn cpu(state: S, step: impl Fn(S, &X, &Y) -> (S, Loss) + 'static) -> Self {
        Trainer(Steps::Cpu { state: Some(state), step: Box::new(step) })
    }

    /// A training run on XLA.
    pub fn xla(state: OnDevice<S>, run: Compiled<S, X, Y>) -> Self {
        Trainer(Steps::Xla { state: Some(state), run: Box::new(run) })
    }

    /// Learns from a batch. Returns the loss before the step, which XLA may still be computing.
    ///
    /// # Errors
    ///
    /// On XLA, returns an error if the call of the step does: see [`Run::call`].
    ///
    /// # Panics
    ///
    /// Panics if an earlier step returned an error.
    pub fn step(&mut self, x: &X, y: &Y) -> Result<StepLoss, XlaError> {
        match &mut self.0 {
            Steps::Cpu { state, step } => {
                let (next, loss) = step(state.take().expect(LOST), x, y);
                *state = Some(next);
                Ok(StepLoss::Cpu(loss))
            }
            Steps::Xla { state, run } => {
                let (next, loss) = run.call((state.take().expect(LOST), x, y))?;
                *state = Some(next);
                Ok(StepLoss::Xla(loss))
            }
        }
    }

    /// Calls a function with the state. State on devices is copied to the host first.
    ///
    /// # Errors
    ///
    /// Returns an error if XLA reports one, or if a check of a step failed.
    ///
    /// # Panics
    ///
    /// Panics if a step returned an error.
    pub fn with_state<R>(&self, f: impl FnOnce(&S) -> R) -> Result<R, XlaError> {
        Ok(match &self.0 {
            Steps::Cpu { state, .. } => f(state.as_ref().expect(LOST)),
            Steps::Xla { state, .. } => f(&state.as_ref().expect(LOST).to_host()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meshes_are_read() {
        let read = |text: &str| text.parse::<Devices>();
        assert_eq!(read("data=4,model=2"), Ok(Devices { data: 4, model: 2 }));
        assert_eq!(read("model=2"), Ok(Devices { data: 1, model: 2 }));
        assert_eq!(read("date=4").unwrap_err(), "there is no axis `date`: the axes are `data` and `model`");
        assert_eq!(read("data").unwrap_err(), "`data` is not `name=number`");
        assert_eq!(read("data=0").unwrap_err(), "`0` is not a number of devices");
        assert_eq!(read("data=2,data=2").unwrap_err(), "the axis `data` is given twice");
    }
}
