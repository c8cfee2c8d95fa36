//! Compiled programs and their calls.

use super::checks::{Dependence, Pending, UNCHECKED};
use super::compare::Comparison;
use super::inputs::{DeviceInputs, Given, input};
use super::value::{DeviceTensor, OnDevice};
use crate::error::XlaError;
use crate::mesh::flow::Flow;
use crate::mesh::rules;
use crate::mesh::shapes::along_axes;
use crate::mesh::{Mesh, Placement, Plan, ShardRules, Sharding, Split};
use crate::pjrt::{Collective, CompileOptions, DeviceBuffer, Executable, Pjrt};
use crate::stablehlo::{self, AttentionKernel, Check, Module, Options, Precision, Sharded};
use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use typed_dims::grad::Parameters;
use typed_dims::program::engine::{
    self, EngineInput, EngineParts, EngineProgram, EngineSetting, EngineTensor, PartFamily, parts_of,
    types_of,
};
use typed_dims::program::{Program, RecordInputs};

/// Options for compiling a program.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    precision: Precision,
    attention: AttentionKernel,
    compile: CompileOptions,
}

impl RunOptions {
    /// The defaults: exact products, attention as products and a softmax, no flags, no cache.
    #[must_use]
    pub fn new() -> Self {
        RunOptions::default()
    }

    /// The precision of products of `f32`: [`Precision::Exact`] by default.
    #[must_use]
    pub fn precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// The implementation of attention: [products and a softmax](AttentionKernel::Operations) by
    /// default.
    #[must_use]
    pub fn attention(mut self, attention: AttentionKernel) -> Self {
        self.attention = attention;
        self
    }

    /// Sets a flag of XLA: see [`CompileOptions::flag`].
    #[must_use]
    pub fn flag(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.compile = self.compile.flag(name, value);
        self
    }

    /// Caches the executable in a file in this folder: see [`CompileOptions::cache`].
    #[must_use]
    pub fn cache(mut self, folder: impl Into<PathBuf>) -> Self {
        self.compile = self.compile.cache(folder);
        self
    }
}

impl Pjrt {
    /// Compiles a program for the first device.
    ///
    /// # Errors
    ///
    /// Returns an error if a step cannot be expressed in StableHLO; the error names the operation
    /// and, if known, its location. Also returns an error if a step calls a user-defined function,
    /// if a captured tensor has elements of a type that programs do not support, if dims are
    /// dynamic, or if XLA reports an error.
    pub fn compile<In, Out>(&self, program: &Program<In, Out>) -> Result<Run<In, Out>, XlaError>
    where
        In: RecordInputs,
        Out: Parameters,
    {
        self.compile_with(program, &RunOptions::new())
    }

    /// [`compile`](Pjrt::compile) with options.
    ///
    /// # Errors
    ///
    /// See [`compile`](Pjrt::compile). Also returns an error if the cache folder cannot be created.
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

    /// Compiles a program for the devices of a mesh. [`put_sharded`](Pjrt::put_sharded) or
    /// [`call`](Run::call) copies inputs to them.
    ///
    /// # Errors
    ///
    /// See [`compile`](Pjrt::compile). Also returns an error if two dims of a value are split along
    /// one axis of the mesh, if the number of devices along an axis does not divide the size of a
    /// dim that is split along that axis, or if the client has fewer devices than the mesh.
    pub fn compile_sharded<In, Out, R>(
        &self,
        program: &Program<In, Out>,
        sharding: Sharding<R>,
    ) -> Result<Run<In, Out>, XlaError>
    where
        In: RecordInputs,
        Out: Parameters,
        R: ShardRules,
    {
        self.compile_sharded_with(program, sharding, &RunOptions::new())
    }

    /// [`compile_sharded`](Pjrt::compile_sharded) with options.
    ///
    /// # Errors
    ///
    /// See [`compile_sharded`](Pjrt::compile_sharded). Also returns an error if the cache folder
    /// cannot be created.
    pub fn compile_sharded_with<In, Out, R>(
        &self,
        program: &Program<In, Out>,
        sharding: Sharding<R>,
        options: &RunOptions,
    ) -> Result<Run<In, Out>, XlaError>
    where
        In: RecordInputs,
        Out: Parameters,
        R: ShardRules,
    {
        const { rules::check_program::<In::Value, Out, R>() }
        self.compiled(program, Some(sharding.placement), options)
    }

    fn compiled<In, Out>(
        &self,
        program: &Program<In, Out>,
        sharding: Option<Placement>,
        options: &RunOptions,
    ) -> Result<Run<In, Out>, XlaError>
    where
        In: RecordInputs,
        Out: Parameters,
    {
        let template = program.result_without_elements()?;
        let program = program.to_engine()?;
        let donated = engine::moved_inputs::<In>(&program.inputs);
        let lowering = Options { precision: options.precision, attention: options.attention };
        let (program, flow) = match &sharding {
            Some(placement) => {
                let program = along_axes(program);
                let flow = Flow::of(&program, placement)?;
                (program, Some(flow))
            }
            None => (program, None),
        };
        let sharded = sharding.as_ref().zip(flow.as_ref());
        let sharded = sharded.map(|(placement, flow)| Sharded { placement, flow });
        let module = stablehlo::lower_with(&program, lowering, &donated, sharded.as_ref())?;
        let mesh = sharding.as_ref().map(|own| own.mesh.clone()).unwrap_or_default();
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
        let whole = |tensor: &EngineTensor| vec![None; tensor.axes.len()];
        let (input_splits, result_splits) = match flow {
            Some(flow) => (flow.inputs, flow.results),
            None => (
                inputs.iter().map(|own| whole(&own.tensor)).collect(),
                results.iter().map(|own| whole(&own.tensor)).collect(),
            ),
        };
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
            input_splits,
            result_splits,
            template,
            types: PhantomData,
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
    input_splits: Vec<Split>,
    result_splits: Vec<Split>,
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

    /// The executable that XLA has compiled.
    #[must_use]
    pub fn executable(&self) -> &Executable {
        &self.executable
    }

    /// The collectives in XLA's optimized program.
    ///
    /// # Errors
    ///
    /// Returns an error if the plugin does not expose that program as HLO.
    pub fn collectives(&self) -> Result<Vec<Collective>, XlaError> {
        self.executable.collectives()
    }

    /// Compares a communication plan with XLA's optimized program: the bytes of each kind of
    /// collective along each set of mesh axes. The bytes are summed, because XLA may combine
    /// several collectives into one.
    ///
    /// ```no_run
    /// # use typed_dims::prelude::*;
    /// # use typed_dims::program::Program;
    /// # use typed_dims_xla::{Pjrt, Sharding, XlaError};
    /// # dims! { struct Row; }
    /// # type Rows = Tensor<f32, (Row,)>;
    /// # fn f(engine: Pjrt, program: Program<Rows, Rows>, sharding: Sharding) -> Result<(), XlaError> {
    /// let plan = sharding.plan(&program)?;
    /// let run = engine.compile_sharded(&program, sharding)?;
    /// let comparison = run.compare(&plan)?;
    /// assert!(comparison.is_as_planned(), "{comparison}");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the plugin does not expose the optimized program as HLO.
    pub fn compare(&self, plan: &Plan) -> Result<Comparison, XlaError> {
        Ok(Comparison::of(plan, &self.collectives()?, &self.mesh))
    }
}

impl<In, Out> Run<In, Out>
where
    In: RecordInputs,
    Out: RecordInputs<Value = Out> + Parameters,
{
    /// Runs the program. Inputs that the recorded function takes by reference are borrowed. They
    /// can be on devices or on the host; those on the host are copied to the devices first. Inputs
    /// that the function takes by value must be on devices. They are moved into the call, which may
    /// write results into their memory.
    ///
    /// Returns without waiting for the devices, except on a mesh of virtual CPU devices. Checks,
    /// for example that indices are in range, are read with the results. If a result depends on
    /// more than 64 calls whose checks have not been read, the call waits for the oldest of them.
    ///
    /// A tuple of results is returned as a tuple of [`OnDevice`] values.
    ///
    /// # Errors
    ///
    /// Returns an error if inputs belong to another client, if their types, sizes, settings or
    /// splits differ from those of the program, or if there are too many or too few tensors. Also
    /// returns an error if XLA reports one, for example because a device has too little memory.
    pub fn call(&self, inputs: impl DeviceInputs<In>) -> Result<EngineParts<Out, DeviceParts>, XlaError> {
        let mut given = Given {
            pjrt: &self.pjrt,
            mesh: &self.mesh,
            splits: &self.input_splits,
            expected: &self.inputs,
            settings: self.settings.iter(),
            tensors: Vec::new(),
            pending: VecDeque::new(),
        };
        inputs.give(&mut given)?;
        let Given { tensors, mut pending, .. } = given;
        if let Some(missing) = self.inputs.get(tensors.len()) {
            return Err(XlaError::Arguments {
                message: format!("{} is missing", input(&missing.tensor.path)),
            });
        }
        let devices = self.mesh.devices();
        let arguments: Vec<Vec<&DeviceBuffer>> = (0..devices)
            .map(|device| tensors.iter().chain(&self.captured).map(|own| &*own.shards[device]).collect())
            .collect();
        let outputs = self.executable.execute(&arguments)?;
        let expected = self.results.len() + usize::from(!self.checks.is_empty());
        if let Some(list) = outputs.iter().find(|list| list.len() < expected) {
            return Err(XlaError::unexpected(
                "PJRT_LoadedExecutable_Execute",
                format!("at least {expected}"),
                format!("{} outputs for a device", list.len()),
            ));
        }
        drop(arguments);
        drop(tensors);
        // The virtual devices of a CPU share a pool of threads. Calls that are queued can take the
        // threads that devices of an earlier call need to meet in a collective.
        if devices > 1 && self.pjrt.platform_name() == "cpu" {
            outputs.iter().flatten().try_for_each(DeviceBuffer::ready)?;
        }
        let mut outputs: Vec<std::vec::IntoIter<DeviceBuffer>> =
            outputs.into_iter().map(Vec::into_iter).collect();
        let mut results = Vec::new();
        for (tensor, split) in self.results.iter().zip(&self.result_splits) {
            let shards: Vec<Arc<DeviceBuffer>> =
                outputs.iter_mut().filter_map(Iterator::next).map(Arc::new).collect();
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
        let excess = pending.len().saturating_sub(UNCHECKED);
        for own in pending.iter().take(excess) {
            own.call.outcome()?;
        }
        // Drops the calls whose checks are known to have passed. Of the calls whose checks were
        // just read, keeps only the first that failed.
        let (mut at, mut has_failed) = (0, false);
        pending.retain(|own| {
            at += 1;
            !own.call.is_known_right() && (at > excess || !std::mem::replace(&mut has_failed, true))
        });
        let kept = self.module.kept.clone();
        let mut parts = DeviceParts {
            tensors: results.into_iter().enumerate(),
            pending,
            kept,
            has_checks: !self.checks.is_empty(),
        };
        Ok(parts_of::<Out, _>(engine::without_elements(&self.template)?, &mut parts))
    }
}

/// Assembles the parts of a result.
#[doc(hidden)]
pub struct DeviceParts {
    tensors: std::iter::Enumerate<std::vec::IntoIter<DeviceTensor>>,
    /// The calls that the result depends on, ending with the call itself if it has checks.
    pending: VecDeque<Dependence>,
    /// The numbers of the results that are state: a failed check leaves them unchanged.
    kept: Vec<usize>,
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
