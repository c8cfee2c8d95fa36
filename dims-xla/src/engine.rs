//! Typed programs on devices: values, compiled programs, calls.

use crate::error::XlaError;
use crate::mesh::{Mesh, Sharding, Split};
use crate::pjrt::{Collective, CompileOptions, DeviceBuffer, ElementType, Executable, Pjrt};
use crate::stablehlo::{self, Check, Module, Options, Placed, Precision};
use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use typed_dims::grad::Parameters;
use typed_dims::program::engine::{
    self, EngineInput, EngineParts, EngineProgram, EngineSetting, EngineTensor, PartFamily, parts_of,
    types_of,
};
use typed_dims::program::{Program, RecordInputs, Spec};
use typed_dims_kernels::program::code::DType;

fn element_type(dtype: DType) -> ElementType {
    match dtype {
        DType::F16 => ElementType::F16,
        DType::Bf16 => ElementType::Bf16,
        DType::F32 => ElementType::F32,
        DType::F64 => ElementType::F64,
        DType::Bool => ElementType::Bool,
        DType::I8 => ElementType::I8,
        DType::I16 => ElementType::I16,
        DType::I32 => ElementType::I32,
        DType::I64 | DType::Isize => ElementType::I64,
        DType::U8 => ElementType::U8,
        DType::U16 => ElementType::U16,
        DType::U32 => ElementType::U32,
        DType::U64 | DType::Usize => ElementType::U64,
    }
}

/// How a program is compiled for an engine.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    precision: Precision,
    compile: CompileOptions,
}

impl RunOptions {
    /// Products in the precision of their elements, no flags, no cache.
    #[must_use]
    pub fn new() -> Self {
        RunOptions::default()
    }

    /// How products of `f32` are computed: [`Precision::Exact`] by default.
    #[must_use]
    pub fn precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// Sets a flag of XLA: see [`CompileOptions::flag`].
    #[must_use]
    pub fn flag(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.compile = self.compile.flag(name, value);
        self
    }

    /// Keeps the executable in a file of this folder: see [`CompileOptions::cache`].
    #[must_use]
    pub fn cache(mut self, folder: impl Into<PathBuf>) -> Self {
        self.compile = self.compile.cache(folder);
        self
    }
}

/// A tensor on devices.
#[derive(Clone)]
struct DeviceTensor {
    tensor: EngineTensor,
    /// One array for each device of the mesh; one in all if there is no mesh.
    shards: Vec<Arc<DeviceBuffer>>,
    mesh: Mesh,
    split: Split,
}

/// The checks of a call whose outcome has not been read yet.
struct Pending {
    failed: DeviceBuffer,
    checks: Arc<[Check]>,
    /// The check that failed, if one did, once it is known.
    outcome: OnceLock<Option<Check>>,
    is_reported: AtomicBool,
}

impl Pending {
    /// Waits for the call. Returns the check that failed, if one did.
    fn outcome(&self) -> Result<Option<Check>, XlaError> {
        if let Some(known) = self.outcome.get() {
            return Ok(*known);
        }
        let bytes = self.failed.to_host()?;
        let number = <[u8; 4]>::try_from(&bytes[..]).map_or(-1, i32::from_le_bytes);
        let failed = usize::try_from(number).ok().and_then(|number| self.checks.get(number));
        Ok(*self.outcome.get_or_init(|| failed.copied()))
    }

    fn is_known_right(&self) -> bool {
        matches!(self.outcome.get(), Some(None))
    }
}

/// A call that a value depends on.
#[derive(Clone)]
struct Dependence {
    call: Arc<Pending>,
    /// Whether the value is state that the call leaves unchanged if a check fails. Then the failure is reported once, and the state can be read afterwards.
    is_kept: bool,
}

impl Dependence {
    /// Waits for the call, and returns an error if a check failed.
    fn check(&self) -> Result<(), XlaError> {
        let Some(Check { operation, origin }) = self.call.outcome()? else { return Ok(()) };
        if self.call.is_reported.swap(true, Ordering::Relaxed) && self.is_kept {
            return Ok(());
        }
        Err(XlaError::Check { operation, origin })
    }

    /// Whether nothing is left to report.
    fn is_settled(&self) -> bool {
        self.call.is_known_right() || self.is_kept && self.call.is_reported.load(Ordering::Relaxed)
    }
}

/// A value may depend on this many unchecked calls. A further call first waits for the oldest of them.
const UNCHECKED: usize = 64;

/// A value on devices: the tensors of a tensor, a tuple, a struct with `#[derive(Parameters)]` or an optimizer.
///
/// It is made by [`Pjrt::put`] or by a [call](Run::call), and read by [`to_host`](OnDevice::to_host). It cannot be cloned: a call to which it is moved may write results into its memory.
pub struct OnDevice<P> {
    /// The value without elements.
    template: P,
    tensors: Vec<DeviceTensor>,
    pending: VecDeque<Dependence>,
}

impl<P> fmt::Debug for OnDevice<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnDevice").field("tensors", &self.tensors.len()).finish_non_exhaustive()
    }
}

impl<P> OnDevice<P> {
    /// Waits until the value is computed.
    ///
    /// # Errors
    ///
    /// As [`to_host`](OnDevice::to_host).
    pub fn ready(&self) -> Result<(), XlaError> {
        self.pending.iter().try_for_each(Dependence::check)?;
        self.tensors.iter().flat_map(|own| &own.shards).try_for_each(|own| own.ready())
    }

    /// The bytes of all tensors, on all devices together.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.tensors.iter().flat_map(|own| &own.shards).map(|own| own.len_bytes()).sum()
    }
}

impl<P: Parameters> OnDevice<P> {
    /// Waits for the value, and copies it to the host.
    ///
    /// # Errors
    ///
    /// Returns an error if an index was out of range in a call that the value comes from, or if XLA reports an error.
    ///
    /// Such a call leaves the state that was moved into it unchanged. Once the error has been returned, the state can be read or passed to further calls.
    pub fn to_host(&self) -> Result<P, XlaError> {
        self.pending.iter().try_for_each(Dependence::check)?;
        let elements = self.tensors.iter().map(DeviceTensor::to_host).collect::<Result<Vec<_>, _>>()?;
        Ok(engine::with_elements(&self.template, elements)?)
    }
}

impl DeviceTensor {
    fn to_host(&self) -> Result<Vec<u8>, XlaError> {
        if self.split.iter().all(Option::is_none) {
            return self.shards[0].to_host();
        }
        let sizes = self.tensor.sizes();
        let width = self.tensor.dtype.bytes();
        let mut whole = vec![0; sizes.iter().product::<usize>() * width];
        for (device, shard) in self.shards.iter().enumerate() {
            let position = self.mesh.position(device);
            // (Of equal parts, the first one.)
            let others = (0..position.len()).filter(|axis| !self.split.contains(&Some(*axis)));
            if { others }.any(|axis| position[axis] != 0) {
                continue;
            }
            let part = shard.to_host()?;
            each_row(&sizes, &self.split, &self.mesh, &position, width, |at, from, len| {
                whole[at..at + len].copy_from_slice(&part[from..from + len]);
            });
        }
        Ok(whole)
    }
}

/// Calls `f` with each row of a part: where it is in the whole, where in the part, and its bytes.
fn each_row(
    sizes: &[usize],
    split: &Split,
    mesh: &Mesh,
    position: &[usize],
    width: usize,
    mut f: impl FnMut(usize, usize, usize),
) {
    let part: Vec<usize> = part_sizes(sizes, split, mesh);
    let start: Vec<usize> =
        (0..sizes.len()).map(|axis| split[axis].map_or(0, |own| position[own] * part[axis])).collect();
    if part.contains(&0) {
        return;
    }
    let Some((&last, outer)) = part.split_last() else {
        f(0, 0, width);
        return;
    };
    let rows: usize = outer.iter().product();
    for row in 0..rows {
        let (mut rest, mut at, mut step) = (row, start[sizes.len() - 1], sizes[sizes.len() - 1]);
        for axis in (0..outer.len()).rev() {
            at += (start[axis] + rest % part[axis]) * step;
            rest /= part[axis];
            step *= sizes[axis];
        }
        f(at * width, row * last * width, last * width);
    }
}

/// The sizes of each part.
fn part_sizes(sizes: &[usize], split: &Split, mesh: &Mesh) -> Vec<usize> {
    let part = |(&size, own): (&usize, &Option<usize>)| own.map_or(size, |axis| size / mesh.axes()[axis].1);
    sizes.iter().zip(split).map(part).collect()
}

impl Pjrt {
    /// Copies a value to the first device.
    ///
    /// # Errors
    ///
    /// Returns an error if the device has too little memory.
    pub fn put<P: Parameters>(&self, value: &P) -> Result<OnDevice<P>, XlaError> {
        self.put_parts(value, &Mesh::default(), &mut |tensor| Ok(vec![None; tensor.axes.len()]))
    }

    /// Copies a value to the devices of a mesh, in parts as the sharding says of values at rest.
    ///
    /// # Errors
    ///
    /// Returns an error if two dims of a tensor are split along one axis of the mesh, if sizes are not divided by its devices, or if a device has too little memory.
    pub fn put_sharded<P: Parameters>(
        &self,
        value: &P,
        sharding: &Sharding,
    ) -> Result<OnDevice<P>, XlaError> {
        self.put_parts(value, sharding.mesh(), &mut |tensor| sharding.split_tensor(tensor, true, "value"))
    }

    fn put_parts<P: Parameters>(
        &self,
        value: &P,
        mesh: &Mesh,
        split: &mut dyn FnMut(&EngineTensor) -> Result<Split, XlaError>,
    ) -> Result<OnDevice<P>, XlaError> {
        let (found, template) = engine::tensors_of(value)?;
        let mut tensors = Vec::new();
        for own in found {
            let split = split(&own.tensor)?;
            tensors.push(self.put_tensor(own.tensor.clone(), &own.bytes(), mesh, split)?);
        }
        Ok(OnDevice { template, tensors, pending: VecDeque::new() })
    }

    fn put_tensor(
        &self,
        tensor: EngineTensor,
        bytes: &[u8],
        mesh: &Mesh,
        split: Split,
    ) -> Result<DeviceTensor, XlaError> {
        let (sizes, width, dtype) = (tensor.sizes(), tensor.dtype.bytes(), element_type(tensor.dtype));
        let part = part_sizes(&sizes, &split, mesh);
        let mut shards = Vec::new();
        for device in 0..mesh.devices() {
            if split.iter().all(Option::is_none) {
                shards.push(Arc::new(self.upload(bytes, dtype, &sizes, None, device)?));
                continue;
            }
            let mut own = vec![0; part.iter().product::<usize>() * width];
            each_row(&sizes, &split, mesh, &mesh.position(device), width, |at, from, len| {
                own[from..from + len].copy_from_slice(&bytes[at..at + len]);
            });
            shards.push(Arc::new(self.upload(&own, dtype, &part, None, device)?));
        }
        Ok(DeviceTensor { tensor, shards, mesh: mesh.clone(), split })
    }

    /// Compiles a program for the first device.
    ///
    /// # Errors
    ///
    /// Returns an error if a step has no operation of XLA, with its location, or if XLA reports one.
    pub fn compile<In, Out>(&self, program: &Program<In, Out>) -> Result<Run<In, Out>, XlaError>
    where
        In: RecordInputs,
        Out: Parameters,
    {
        self.compile_with(program, &RunOptions::new())
    }

    /// As [`compile`](Pjrt::compile), with options.
    ///
    /// # Errors
    ///
    /// As [`compile`](Pjrt::compile).
    pub fn compile_with<In, Out>(
        &self,
        program: &Program<In, Out>,
        options: &RunOptions,
    ) -> Result<Run<In, Out>, XlaError>
    where
        In: RecordInputs,
        Out: Parameters,
    {
        self.compiled(program, None, options)
    }

    /// Compiles a program for the devices of a mesh. Inputs are put onto it by [`put_sharded`](Pjrt::put_sharded), or by the call.
    ///
    /// # Errors
    ///
    /// As [`compile`](Pjrt::compile); also if two dims of a value are split along one axis of the mesh, or if its devices do not divide a size.
    pub fn compile_sharded<In, Out>(
        &self,
        program: &Program<In, Out>,
        sharding: Sharding,
    ) -> Result<Run<In, Out>, XlaError>
    where
        In: RecordInputs,
        Out: Parameters,
    {
        self.compiled(program, Some(sharding), &RunOptions::new())
    }

    /// As [`compile_sharded`](Pjrt::compile_sharded), with options.
    ///
    /// # Errors
    ///
    /// As [`compile_sharded`](Pjrt::compile_sharded).
    pub fn compile_sharded_with<In, Out>(
        &self,
        program: &Program<In, Out>,
        sharding: Sharding,
        options: &RunOptions,
    ) -> Result<Run<In, Out>, XlaError>
    where
        In: RecordInputs,
        Out: Parameters,
    {
        self.compiled(program, Some(sharding), options)
    }

    fn compiled<In, Out>(
        &self,
        program: &Program<In, Out>,
        sharding: Option<Sharding>,
        options: &RunOptions,
    ) -> Result<Run<In, Out>, XlaError>
    where
        In: RecordInputs,
        Out: Parameters,
    {
        let template = program.result_without_elements()?;
        let program = program.to_engine()?;
        let donated = engine::moved_inputs::<In>(&program.inputs);
        let lowering = Options { precision: options.precision };
        let splits = Splits::of(&program, sharding.as_ref())?;
        let module = stablehlo::lower_with(&program, lowering, &donated, &mut |placed, shape| {
            splits.text(sharding.as_ref()?, placed, shape)
        })?;
        let mesh = sharding.as_ref().map(|own| own.mesh().clone()).unwrap_or_default();
        let mut compile = options.compile.clone();
        if sharding.is_some() {
            compile = compile.partitions(mesh.devices());
        }
        let executable = self.compile_text(&module.text, &compile)?;
        let mut captured = Vec::new();
        for &number in &module.captured {
            let constant = &program.recording.constants[number];
            let len = constant.elements.0.len() / constant.dtype.bytes();
            let axes = vec![engine::EngineAxis { dim: None, size: len }];
            let tensor = EngineTensor { path: String::new(), dtype: constant.dtype, axes, origin: None };
            captured.push(self.put_tensor(tensor, &constant.elements.0, &mesh, vec![None])?);
        }
        let EngineProgram { inputs, results, settings, .. } = program;
        Ok(Run {
            pjrt: self.clone(),
            executable,
            results: results.into_iter().map(|own| own.tensor).collect(),
            checks: module.checks.clone().into(),
            module,
            inputs,
            settings,
            captured,
            mesh,
            splits,
            template,
            types: PhantomData,
        })
    }
}

/// How the values of a program are split.
#[derive(Default)]
struct Splits {
    inputs: Vec<Split>,
    steps: Vec<Option<Split>>,
    results: Vec<Split>,
}

impl Splits {
    fn of(program: &EngineProgram, sharding: Option<&Sharding>) -> Result<Self, XlaError> {
        let whole = |tensor: &EngineTensor| vec![None; tensor.axes.len()];
        let Some(sharding) = sharding else {
            return Ok(Splits {
                inputs: program.inputs.iter().map(|own| whole(&own.tensor)).collect(),
                steps: vec![None; program.recording.steps.len()],
                results: program.results.iter().map(|own| whole(&own.tensor)).collect(),
            });
        };
        let inputs = program.inputs.iter().map(|own| sharding.split_tensor(&own.tensor, true, "input"));
        let results = program.results.iter().map(|own| sharding.split_tensor(&own.tensor, true, "result"));
        let steps = program.values[program.inputs.len()..].iter().map(|value| {
            let Some(axes) = &value.axes else { return Ok(None) };
            let axes: Vec<(Option<u64>, &str, usize)> =
                axes.iter().map(|axis| (None, axis.name, axis.size)).collect();
            let what = || match value.origin {
                Some(origin) => format!("the result of `{}` at {origin}", value.operation),
                None => format!("the result of `{}`", value.operation),
            };
            sharding.split(&axes, false, &what).map(Some)
        });
        Ok(Splits {
            inputs: inputs.collect::<Result<_, _>>()?,
            steps: steps.collect::<Result<_, _>>()?,
            results: results.collect::<Result<_, _>>()?,
        })
    }

    fn text(&self, sharding: &Sharding, placed: Placed, shape: &[usize]) -> Option<String> {
        let whole = vec![None; shape.len()];
        Some(match placed {
            Placed::Mesh => sharding.mesh().text(),
            Placed::Input(number) => sharding.text(self.inputs.get(number).unwrap_or(&whole)),
            Placed::Step(number) => match &self.steps[number] {
                Some(split) => sharding.text(split),
                None => sharding.text(&whole),
            },
            Placed::Result(number) => sharding.text(self.results.get(number).unwrap_or(&whole)),
        })
    }
}

/// A compiled program: see [`Pjrt::compile`].
pub struct Run<In, Out> {
    pjrt: Pjrt,
    executable: Executable,
    module: Module,
    inputs: Vec<EngineInput>,
    settings: Vec<EngineSetting>,
    results: Vec<EngineTensor>,
    checks: Arc<[Check]>,
    captured: Vec<DeviceTensor>,
    mesh: Mesh,
    splits: Splits,
    template: Out,
    types: PhantomData<fn(In) -> Out>,
}

impl<In, Out> fmt::Debug for Run<In, Out> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("mesh", &self.mesh).finish_non_exhaustive()
    }
}

impl<In, Out> Run<In, Out> {
    /// The program as StableHLO.
    #[must_use]
    pub fn stablehlo(&self) -> &str {
        &self.module.text
    }

    /// The compiled program.
    #[must_use]
    pub fn executable(&self) -> &Executable {
        &self.executable
    }

    /// The collectives in XLA's optimized program.
    ///
    /// # Errors
    ///
    /// Returns an error if the plugin does not show it.
    pub fn collectives(&self) -> Result<Vec<Collective>, XlaError> {
        self.executable.collectives()
    }
}

impl<In, Out> Run<In, Out>
where
    In: RecordInputs,
    Out: RecordInputs<Value = Out> + Parameters,
{
    /// Runs the program on inputs: values on devices, or on the host, which are copied first. Inputs that the recorded function takes by value are moved into the call, which may write results
    /// into their memory; others are borrowed.
    ///
    /// It returns at once, while the devices work. A tuple of results is returned as a tuple of values.
    ///
    /// # Errors
    ///
    /// Returns an error if inputs have other types or sizes than the program, or if a device has too little memory.
    pub fn call(&self, inputs: impl DeviceInputs<In>) -> Result<EngineParts<Out, DeviceParts>, XlaError> {
        let mut given = Given {
            pjrt: &self.pjrt,
            mesh: &self.mesh,
            splits: &self.splits.inputs,
            expected: &self.inputs,
            settings: self.settings.iter(),
            tensors: Vec::new(),
            pending: VecDeque::new(),
        };
        inputs.give(&mut given)?;
        let Given { tensors, mut pending, .. } = given;
        if let Some(missing) = self.inputs.get(tensors.len()) {
            return Err(XlaError::Arguments {
                message: format!("there is no input `{}`", missing.tensor.path),
            });
        }
        let devices = self.mesh.devices();
        let arguments: Vec<Vec<&DeviceBuffer>> = (0..devices)
            .map(|device| tensors.iter().chain(&self.captured).map(|own| &*own.shards[device]).collect())
            .collect();
        let outputs = self.executable.execute(&arguments)?;
        drop(arguments);
        drop(tensors);
        let mut outputs: Vec<std::vec::IntoIter<DeviceBuffer>> =
            outputs.into_iter().map(Vec::into_iter).collect();
        let mut results = Vec::new();
        for (tensor, split) in self.results.iter().zip(&self.splits.results) {
            let shards: Vec<Arc<DeviceBuffer>> =
                outputs.iter_mut().filter_map(Iterator::next).map(Arc::new).collect();
            if shards.len() != devices {
                return Err(XlaError::Arguments { message: "the plugin returned too few results".into() });
            }
            results.push(DeviceTensor {
                tensor: tensor.clone(),
                shards,
                mesh: self.mesh.clone(),
                split: split.clone(),
            });
        }
        if !self.checks.is_empty()
            && let Some(failed) = outputs[0].next()
        {
            let outcome = OnceLock::new();
            let call = Pending {
                failed,
                checks: Arc::clone(&self.checks),
                outcome,
                is_reported: AtomicBool::new(false),
            };
            pending.push_back(Dependence { call: Arc::new(call), is_kept: false });
        }
        while pending.len() > UNCHECKED && pending[0].call.outcome()?.is_none() {
            pending.pop_front();
        }
        let kept = self.module.donated.iter().map(|own| own.1).collect();
        let mut parts = DeviceParts {
            tensors: results.into_iter().enumerate(),
            pending,
            kept,
            has_checks: !self.checks.is_empty(),
        };
        Ok(parts_of::<Out, _>(engine::without_elements(&self.template)?, &mut parts))
    }
}

/// Makes the parts of a result.
#[doc(hidden)]
pub struct DeviceParts {
    tensors: std::iter::Enumerate<std::vec::IntoIter<DeviceTensor>>,
    /// The calls that the result depends on. The last one is the call itself.
    pending: VecDeque<Dependence>,
    /// The numbers of results that are state.
    kept: Vec<usize>,
    /// Whether the call itself has checks.
    has_checks: bool,
}

impl PartFamily for DeviceParts {
    type Of<P: Parameters> = OnDevice<P>;

    fn part<P: Parameters>(&mut self, template: P) -> OnDevice<P> {
        let count = types_of(&template).map_or(0, |own| own.len());
        let (numbers, tensors): (Vec<usize>, Vec<DeviceTensor>) = self.tensors.by_ref().take(count).unzip();
        let mut pending = self.pending.clone();
        if let Some(own) = pending.back_mut().filter(|_| self.has_checks) {
            own.is_kept = numbers.iter().all(|number| self.kept.contains(number));
        }
        OnDevice { template, tensors, pending }
    }
}

/// Collects the arguments of a call.
#[doc(hidden)]
pub struct Given<'r> {
    pjrt: &'r Pjrt,
    mesh: &'r Mesh,
    splits: &'r [Split],
    expected: &'r [EngineInput],
    settings: std::slice::Iter<'r, EngineSetting>,
    tensors: Vec<DeviceTensor>,
    pending: VecDeque<Dependence>,
}

impl Given<'_> {
    fn add(&mut self, own: DeviceTensor) -> Result<(), XlaError> {
        let number = self.tensors.len();
        let message = match self.expected.get(number) {
            None => format!("`{}` was not recorded as an input", own.tensor.path),
            Some(EngineInput { tensor, .. }) => {
                let named = |of: &EngineTensor| {
                    let axes = of.axes.iter().map(|axis| (axis.dim.map_or("..", |dim| dim.name), axis.size));
                    let axes: Vec<String> = axes.map(|(name, size)| format!("{name} = {size}")).collect();
                    format!("{} [{}]", of.dtype.name(), axes.join(", "))
                };
                if (tensor.dtype, tensor.sizes()) != (own.tensor.dtype, own.tensor.sizes()) {
                    format!(
                        "the input `{}` is {}, but the program was recorded for {}",
                        tensor.path,
                        named(&own.tensor),
                        named(tensor)
                    )
                } else if own.mesh != *self.mesh || own.split != self.splits[number] {
                    format!(
                        "the input `{}` is split otherwise than the program: put it by `put_sharded` with the program's sharding",
                        tensor.path
                    )
                } else {
                    self.tensors.push(own);
                    return Ok(());
                }
            }
        };
        Err(XlaError::Arguments { message })
    }

    /// Settings of an input must have their recorded values, because the program computes with these.
    fn check_settings<P: Parameters>(&mut self, value: &P) -> Result<(), XlaError> {
        for own in engine::settings_of(value)? {
            let message = match self.settings.next() {
                Some(recorded) if (&recorded.name, &recorded.value) == (&own.name, &own.value) => continue,
                Some(recorded) if recorded.name == own.name => format!(
                    "`{}` of input `{}` is {}, but the program was recorded for {}: record it again",
                    own.name, recorded.path, own.value, recorded.value
                ),
                _ => format!("the setting `{}` of `{}` was not recorded", own.name, own.path),
            };
            return Err(XlaError::Arguments { message });
        }
        Ok(())
    }

    fn add_all<P: Parameters>(&mut self, value: &OnDevice<P>) -> Result<(), XlaError> {
        self.check_settings(&value.template)?;
        for own in value.pending.iter().filter(|own| !own.is_settled()) {
            match self.pending.iter_mut().find(|known| Arc::ptr_eq(&known.call, &own.call)) {
                Some(known) => known.is_kept &= own.is_kept,
                None => self.pending.push_back(own.clone()),
            }
        }
        value.tensors.iter().try_for_each(|own| self.add(own.clone()))
    }

    fn add_host<P: Parameters>(&mut self, value: &P) -> Result<(), XlaError> {
        let first = self.tensors.len();
        let (mut number, splits) = (first, self.splits);
        let own = self.pjrt.put_parts(value, self.mesh, &mut |tensor| {
            number += 1;
            Ok(splits.get(number - 1).cloned().unwrap_or_else(|| vec![None; tensor.axes.len()]))
        })?;
        self.add_all(&own)
    }
}

/// The inputs of a call: values on devices or on the host, moved where the recorded function takes them by value, borrowed where it takes references.
#[diagnostic::on_unimplemented(
    message = "a compiled program cannot take `{Self}` where its function takes `{In}`",
    label = "expected a value on devices or on the host: moved where the function takes a value, a reference where it takes one"
)]
pub trait DeviceInputs<In> {
    /// Adds the arguments.
    #[doc(hidden)]
    fn give(self, given: &mut Given<'_>) -> Result<(), XlaError>;
}

#[diagnostic::do_not_recommend]
impl<P: Parameters> DeviceInputs<P> for OnDevice<P> {
    fn give(self, given: &mut Given<'_>) -> Result<(), XlaError> {
        given.add_all(&self)
    }
}

#[diagnostic::do_not_recommend]
impl<P: Parameters> DeviceInputs<&P> for &OnDevice<P> {
    fn give(self, given: &mut Given<'_>) -> Result<(), XlaError> {
        given.add_all(self)
    }
}

#[diagnostic::do_not_recommend]
impl<P: Parameters> DeviceInputs<&P> for &P {
    fn give(self, given: &mut Given<'_>) -> Result<(), XlaError> {
        given.add_host(self)
    }
}

/// A program that was recorded from sizes takes references.
#[diagnostic::do_not_recommend]
impl<P: Parameters> DeviceInputs<Spec<P>> for &OnDevice<P> {
    fn give(self, given: &mut Given<'_>) -> Result<(), XlaError> {
        given.add_all(self)
    }
}

#[diagnostic::do_not_recommend]
impl<P: Parameters> DeviceInputs<Spec<P>> for &P {
    fn give(self, given: &mut Given<'_>) -> Result<(), XlaError> {
        given.add_host(self)
    }
}

macro_rules! tuples {
    ($($x:ident $y:ident $n:tt)*) => {
        #[diagnostic::do_not_recommend]
        impl<$($x, $y: DeviceInputs<$x>),*> DeviceInputs<($($x,)*)> for ($($y,)*) {
            fn give(self, given: &mut Given<'_>) -> Result<(), XlaError> {
                $(self.$n.give(given)?;)*
                Ok(())
            }
        }
    };
}

tuples!(A X 0);
tuples!(A X 0 B Y 1);
tuples!(A X 0 B Y 1 C Z 2);
tuples!(A X 0 B Y 1 C Z 2 D W 3);
tuples!(A X 0 B Y 1 C Z 2 D W 3 E V 4);
tuples!(A X 0 B Y 1 C Z 2 D W 3 E V 4 F U 5);
