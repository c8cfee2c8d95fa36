//! Tests programs on a PJRT plugin. Without a plugin, the tests that need one print a
//! message and pass.
#![cfg(all(feature = "pjrt", unix))]

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Instant;
use typed_dims_xla::XlaError;
use typed_dims_xla::pjrt::{
    ArrayType, CompileOptions, DeviceBuffer, ElementType, Executable, Pjrt, PjrtOptions,
};

/// A plugin for the CPU, unless the environment names another one.
fn find(options: PjrtOptions) -> Option<Pjrt> {
    match Pjrt::find_with(options.platform("cpu")) {
        Ok(pjrt) => Some(pjrt),
        Err(error @ XlaError::PluginNotFound { .. }) => {
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Returns from the test if there is no plugin, or if there are too few devices.
macro_rules! pjrt {
    () => {
        pjrt!(1)
    };
    ($devices:literal) => {
        match find(PjrtOptions::new().cpu_devices($devices)) {
            Some(pjrt) if pjrt.devices().len() >= $devices => pjrt,
            Some(pjrt) => {
                println!("skipped: too few devices ({} of {})", pjrt.devices().len(), $devices);
                return;
            }
            None => return,
        }
    };
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

fn floats(buffer: &DeviceBuffer) -> Vec<f32> {
    let bytes = buffer.to_host().unwrap();
    bytes.chunks_exact(4).map(|bytes| f32::from_ne_bytes(bytes.try_into().unwrap())).collect()
}

fn upload(pjrt: &Pjrt, values: &[f32]) -> DeviceBuffer {
    pjrt.upload(&bytes(values), ElementType::F32, &[values.len()], None, 0).unwrap()
}

/// A program in the generic form of MLIR. `arguments` has the form `%a: tensor<3xf32>`.
fn module(arguments: &str, attributes: &str, results: &str, body: &str) -> String {
    let types: Vec<&str> =
        arguments.split(", ").map(|argument| argument.split_once(": ").unwrap().1).collect();
    format!(
        r#""builtin.module"() ({{
  "func.func"() ({{
  ^bb0({arguments}):
    {body}
  }}) {{sym_name = "main", function_type = ({}) -> ({results}){attributes}}} : () -> ()
}}) {{sym_name = "test"}} : () -> ()"#,
        types.join(", ")
    )
}

/// `a + b` of `count` elements. The first argument is donated if `donate` is set.
fn add(count: usize, donate: bool) -> String {
    let t = format!("tensor<{count}xf32>");
    module(
        &format!("%a: {t}, %b: {t}"),
        if donate { ", arg_attrs = [{tf.aliasing_output = 0 : i32}, {}]" } else { "" },
        &t,
        &format!(
            r#"%0 = "stablehlo.add"(%a, %b) : ({t}, {t}) -> {t}
    "func.return"(%0) : ({t}) -> ()"#
        ),
    )
}

/// A folder that is removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = env::temp_dir().join(format!("typed-dims-xla-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn files(&self, extension: &str) -> Vec<PathBuf> {
        let files = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs a test of this file in a child process, and returns its output. Returns `None` in the child
/// process.
fn child(test: &str, prepare: impl FnOnce(&mut Command)) -> Option<String> {
    const VARIABLE: &str = "TYPED_DIMS_XLA_CHILD";
    if env::var_os(VARIABLE).is_some() {
        return None;
    }
    let mut command = Command::new(env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(VARIABLE, "1");
    prepare(&mut command);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{test} ended with {}:\n{text}", output.status);
    println!("{text}");
    Some(text.into_owned())
}

fn message<T>(result: Result<T, XlaError>) -> String {
    match result {
        Ok(_) => panic!("there should be an error"),
        Err(error) => error.to_string(),
    }
}

#[track_caller]
fn assert_contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
}

// -------------------------------------------------------------------------------------------------------------------------
// The basics

#[test]
fn a_program_that_adds() {
    let pjrt = pjrt!();
    assert!(!pjrt.platform_name().is_empty() && !pjrt.platform_version().is_empty());
    assert_eq!(pjrt.api_version().0, 0);
    assert!(pjrt.stablehlo_version().is_some_and(|version| version >= [1, 0, 0]));
    let device = &pjrt.devices()[0];
    assert_eq!((device.index(), device.id()), (0, 0));
    assert!(!device.kind().is_empty() && !device.description().is_empty());
    if pjrt.platform_name() == "cpu" {
        assert_eq!(pjrt.devices().len(), 1);
    }

    let program = pjrt.compile_text(&add(3, false), &CompileOptions::new()).unwrap();
    let (a, b) = (upload(&pjrt, &[1.0, 2.0, 3.0]), upload(&pjrt, &[10.0, 20.0, 30.0]));
    let outputs = program.run(&[&a, &b]).unwrap();
    assert_eq!((outputs[0].sizes(), outputs[0].element_type()), (&[3][..], ElementType::F32));
    assert_eq!((outputs[0].len_bytes(), outputs[0].device()), (12, 0));
    outputs[0].ready().unwrap();
    assert_eq!(floats(&outputs[0]), [11.0, 22.0, 33.0]);
    assert!(!a.is_deleted());

    let array = ArrayType { element_type: ElementType::F32, sizes: vec![3] };
    assert_eq!(program.inputs(), Some(&[array.clone(), array.clone()][..]));
    assert_eq!(program.outputs().unwrap(), [array]);
    assert_eq!((program.output_count(), program.devices()), (1, &[0][..]));
    let memory = program.memory().unwrap();
    assert_eq!((memory.arguments, memory.outputs, memory.donated), (24, 12, 0));
    assert_eq!(program.collectives().unwrap(), []);
    assert_eq!(program.instruction_counts().unwrap().get("add"), Some(&1));
}

#[test]
fn handles_can_be_sent_and_shared() {
    fn check<T: Send + Sync>() {}
    check::<Pjrt>();
    check::<DeviceBuffer>();
    check::<Executable>();
    check::<XlaError>();
}

#[test]
fn memory_is_reported_or_an_error() {
    let pjrt = pjrt!();
    match pjrt.memory_stats(0) {
        Ok(stats) => assert!(stats.bytes_limit.is_none_or(|limit| limit >= stats.bytes_in_use)),
        Err(error) => assert_eq!(error.code_name(), Some("UNIMPLEMENTED")),
    }
    assert_contains(&message(pjrt.memory_stats(99)), &["there is no device 99: the client has "]);
}

#[test]
fn arrays_of_all_types_and_layouts_come_back_in_row_major_order() {
    let pjrt = pjrt!();
    for &element in ElementType::ALL {
        let size = element.size();
        // The first byte is 0 or 1, and the others are 0, so that elements are also valid booleans.
        let one = |index: usize| {
            let mut element = vec![0_u8; size];
            element[0] = (index * index % 3 == 1) as u8;
            element
        };
        let data: Vec<u8> = (0..24).flat_map(one).collect();
        let pick = |order: &[usize]| -> Vec<u8> { order.iter().flat_map(|&index| one(index)).collect() };
        let s = size as isize;
        let cases: [(&[usize], Option<&[isize]>, Vec<usize>); 9] = [
            (&[2, 3, 4], None, (0..24).collect()),
            (&[2, 3, 4], Some(&[12 * s, 4 * s, s]), (0..24).collect()),
            (
                &[4, 3, 2],
                Some(&[s, 4 * s, 12 * s]),
                (0..24).map(|i| i / 6 + i / 2 % 3 * 4 + i % 2 * 12).collect(),
            ),
            (&[3, 2], Some(&[8 * s, 2 * s]), vec![0, 2, 8, 10, 16, 18]),
            (&[4], Some(&[-s]), vec![3, 2, 1, 0]),
            (&[2, 2], Some(&[-4 * s, s]), vec![4, 5, 0, 1]),
            (&[3, 2], Some(&[0, s]), vec![0, 1, 0, 1, 0, 1]),
            (&[], Some(&[]), vec![0]),
            (&[0, 3], Some(&[s, s]), vec![]),
        ];
        for (sizes, strides, order) in cases {
            let buffer = pjrt.upload(&data, element, sizes, strides, 0).unwrap();
            assert_eq!(buffer.to_host().unwrap(), pick(&order), "{element} {sizes:?} {strides:?}");
            let mut target = vec![0xff; buffer.len_bytes()];
            buffer.to_host_into(&mut target).unwrap();
            assert_eq!(target, pick(&order));
        }
        // An unaligned slice.
        let mut moved = vec![0_u8];
        moved.extend(&data);
        let buffer = pjrt.upload(&moved[1..], element, &[4, 6], Some(&[s, 4 * s]), 0).unwrap();
        let transposed: Vec<usize> = (0..24).map(|i| i / 6 + i % 6 * 4).collect();
        assert_eq!(buffer.to_host().unwrap(), pick(&transposed));
    }
}

#[test]
fn the_data_can_be_freed_after_the_upload() {
    let pjrt = pjrt!();
    let program = pjrt.compile_text(&add(100_000, false), &CompileOptions::new()).unwrap();
    for round in 0..20 {
        let mut data = bytes(&vec![round as f32; 100_000]);
        let buffer = pjrt.upload(&data, ElementType::F32, &[100_000], None, 0).unwrap();
        let outputs = program.run(&[&buffer, &buffer]).unwrap();
        data.fill(0xff);
        drop(data);
        drop(buffer);
        assert!(floats(&outputs[0]).iter().all(|&value| value == 2.0 * round as f32));
    }
}

#[test]
fn programs_that_are_wrong_are_errors() {
    let pjrt = pjrt!();
    let options = CompileOptions::new();
    assert_contains(
        &message(pjrt.compile_text("nonsense", &options)),
        &["XLA reported an error", "nonsense", "code 2"],
    );
    let unknown = add(3, false).replace("stablehlo.add", "stablehlo.addition");
    assert!(message(pjrt.compile_text(&unknown, &options)).contains("stablehlo.addition"));
    let unequal = add(3, false).replacen(
        "tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>",
        "tensor<3xf32>, tensor<3xf32>) -> tensor<4xf32>",
        1,
    );
    message(pjrt.compile_text(&unequal, &options));
    message(pjrt.compile_text("", &options));
    message(pjrt.compile_text("\0", &options));
    let flags = options.clone().flag("xla_no_such_flag", "true");
    assert_contains(&message(pjrt.compile_text(&add(3, false), &flags)), &["xla_no_such_flag"]);
    let wrong = options.clone().flag("xla_backend_optimization_level", "high");
    assert_contains(&message(pjrt.compile_text(&add(3, false), &wrong)), &["xla_backend_optimization_level"]);
    let flags = options.flag("xla_cpu_enable_fast_math", "false").flag("xla_backend_optimization_level", "1");
    pjrt.compile_text(&add(3, false), &flags).unwrap();
    pjrt.compile_text(&add(3, false), &flags.flag("xla_cpu_enable_fast_math", "True")).unwrap();
}

#[test]
fn arguments_that_are_wrong_are_errors() {
    let pjrt = pjrt!();
    let other = pjrt!();
    let program = pjrt.compile_text(&add(3, false), &CompileOptions::new()).unwrap();
    let (a, b) = (upload(&pjrt, &[1.0; 3]), upload(&pjrt, &[1.0; 4]));
    assert_contains(&message(program.run(&[&a])), &["expected 2 arguments of the program, found 1"]);
    assert_contains(&message(program.run(&[])), &["expected 2 arguments of the program, found 0"]);
    assert_contains(&message(program.run(&[&a, &a, &a])), &["expected 2 arguments of the program, found 3"]);
    assert_contains(
        &message(program.run(&[&a, &b])),
        &["argument 1 of the program must be f32[3], but is f32[4]"],
    );
    let ints = pjrt.upload(&[0; 12], ElementType::I32, &[3], None, 0).unwrap();
    assert_contains(
        &message(program.run(&[&ints, &a])),
        &["argument 0 of the program must be f32[3], but is i32[3]"],
    );
    let foreign = upload(&other, &[1.0; 3]);
    assert_contains(&message(program.run(&[&a, &foreign])), &["argument 1 belongs to another client"]);
    assert_contains(&message(program.execute(&[])), &["each of its devices: 1, not 0"]);
    assert_contains(
        &message(program.execute(&[vec![&a, &a], vec![&a, &a]])),
        &["each of its devices: 1, not 2"],
    );

    assert_contains(
        &message(pjrt.upload(&[0; 12], ElementType::F32, &[3], None, 99)),
        &["there is no device 99"],
    );
    assert_contains(
        &message(pjrt.upload(&[0; 12], ElementType::F32, &[4], None, 0)),
        &["expected 16 bytes for f32[4], found 12"],
    );
    message(pjrt.upload(&[0; 12], ElementType::F32, &[3], Some(&[8]), 0));
    message(pjrt.upload(&[0; 12], ElementType::F32, &[usize::MAX, usize::MAX], None, 0));
    assert_contains(&message(a.to_host_into(&mut [0; 11])), &["f32[3] has 12 bytes", "has 11"]);
    assert_contains(
        &message(pjrt.compile_text(&add(3, false), &CompileOptions::new().partitions(99))),
        &["needs 99 devices"],
    );
    assert_contains(
        &message(pjrt.compile_text(&add(3, false), &CompileOptions::new().partitions(0))),
        &["needs at least one device"],
    );
    message(pjrt.compile_text(&add(3, false), &CompileOptions::new().devices([99])));
    message(Pjrt::load_with(pjrt.path(), PjrtOptions::new().cpu_devices(0)));
    // The client still works after these errors.
    assert_eq!(floats(&program.run(&[&a, &a]).unwrap()[0]), [2.0; 3]);
}

// -----------------------------------------------------------------------------------------------------------------------
// Donated memory

#[test]
fn steps_are_queued_with_donated_parameters() {
    let pjrt = pjrt!();
    let step = pjrt.compile_text(&add(1000, true), &CompileOptions::new()).unwrap();
    assert_eq!(step.memory().unwrap().donated, 4000);
    let mut parameters = upload(&pjrt, &[0.0; 1000]);
    let gradient = upload(&pjrt, &[1.0; 1000]);
    for _ in 0..500 {
        let next = step.run(&[&parameters, &gradient]).unwrap().remove(0);
        assert!(parameters.is_deleted());
        parameters = next;
    }
    assert!(!gradient.is_deleted());
    assert_eq!(floats(&parameters), [500.0; 1000]);
}

#[test]
fn a_donated_buffer_is_an_error() {
    if child("a_donated_buffer_is_an_error", |_| ()).is_some() {
        return;
    }
    let pjrt = pjrt!();
    let step = pjrt.compile_text(&add(3, true), &CompileOptions::new()).unwrap();
    let (a, b) = (upload(&pjrt, &[1.0; 3]), upload(&pjrt, &[2.0; 3]));
    let outputs = step.run(&[&a, &b]).unwrap();
    assert_contains(&message(step.run(&[&a, &b])), &["argument 0 was donated to an earlier call"]);
    assert_contains(&message(step.run(&[&b, &a])), &["argument 1 was donated to an earlier call"]);
    assert_contains(&message(a.to_host()), &["f32[3] on device 0 was donated"]);
    message(a.to_host_into(&mut [0; 12]));
    message(a.ready());
    assert_eq!((a.sizes(), a.len_bytes()), (&[3][..], 12));
    // The same buffer donated and read by one call.
    let c = upload(&pjrt, &[5.0; 3]);
    println!("donated and read: {:?}", step.run(&[&c, &c]).map(|outputs| floats(&outputs[0])));
    assert_eq!(floats(&outputs[0]), [3.0; 3]);
}

// ----------------------------------------------------------------------------------------------------------------------
// Several devices

/// The sum of the rows of a 4x3 array, and the array doubled. Each of four devices has one row.
const SHARDED: &str = r#"
"builtin.module"() ({
  "sdy.mesh"() {mesh = #sdy.mesh<["data"=4]>, sym_name = "mesh"} : () -> ()
  "func.func"() ({
  ^bb0(%a: tensor<4x3xf32>):
    %0 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %1 = "stablehlo.reduce"(%a, %0) ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %3 = "stablehlo.add"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%3) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<4x3xf32>, tensor<f32>) -> tensor<3xf32>
    %2 = "stablehlo.add"(%a, %a) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    "func.return"(%1, %2) : (tensor<3xf32>, tensor<4x3xf32>) -> ()
  }) {
    sym_name = "main", function_type = (tensor<4x3xf32>) -> (tensor<3xf32>, tensor<4x3xf32>),
    arg_attrs = [{sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}],
    res_attrs = [{sdy.sharding = #sdy.sharding<@mesh, [{}]>}, {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}]
  } : () -> ()
}) {sym_name = "test"} : () -> ()"#;

#[test]
fn a_sharded_program_on_four_devices() {
    let pjrt = pjrt!(4);
    assert_eq!(pjrt.devices().len(), 4);
    let program = pjrt.compile_text(SHARDED, &CompileOptions::new().partitions(4)).unwrap();
    assert_eq!(program.devices(), [0, 1, 2, 3]);
    let row = ArrayType { element_type: ElementType::F32, sizes: vec![1, 3] };
    assert_eq!(program.inputs(), Some(&[row.clone()][..]));
    println!("{:?}", program.outputs());
    let collectives = program.collectives().unwrap();
    let kinds: Vec<&str> = collectives.iter().map(|collective| collective.kind.as_str()).collect();
    assert_eq!(kinds, ["all-reduce"], "{collectives:?}");

    let shard = |device: usize| {
        pjrt.upload(&bytes(&[device as f32; 3]), ElementType::F32, &[1, 3], None, device).unwrap()
    };
    let shards: Vec<DeviceBuffer> = (0..4).map(shard).collect();
    for _ in 0..50 {
        let outputs = program.execute(&shards.iter().map(|shard| vec![shard]).collect::<Vec<_>>()).unwrap();
        for (device, outputs) in outputs.iter().enumerate() {
            assert_eq!(floats(&outputs[0]), [6.0; 3]);
            assert_eq!(floats(&outputs[1]), [2.0 * device as f32; 3]);
            assert_eq!((outputs[0].device(), outputs[1].sizes()), (device, &[1, 3][..]));
        }
    }
    assert_contains(&message(program.run(&[&shards[0]])), &["each of its devices: 4, not 1"]);
    let swapped = [vec![&shards[1]], vec![&shards[0]], vec![&shards[2]], vec![&shards[3]]];
    assert_contains(
        &message(program.execute(&swapped)),
        &["argument 0 is on device 1", "wants it on device 0"],
    );
}

#[test]
fn a_sharded_program_chooses_its_devices() {
    let pjrt = pjrt!(8);
    let program = pjrt.compile_text(SHARDED, &CompileOptions::new().devices([7, 2, 5, 0])).unwrap();
    assert_eq!(program.devices(), [7, 2, 5, 0]);
    let shard = |&device: &usize| {
        pjrt.upload(&bytes(&[device as f32; 3]), ElementType::F32, &[1, 3], None, device).unwrap()
    };
    let shards: Vec<DeviceBuffer> = program.devices().iter().map(shard).collect();
    let outputs = program.execute(&shards.iter().map(|shard| vec![shard]).collect::<Vec<_>>()).unwrap();
    assert_eq!(floats(&outputs[1][0]), [14.0; 3]);
    assert_eq!(floats(&outputs[0][1]), [14.0; 3]);
    let two = CompileOptions::new().devices([0, 1]).partitions(4);
    assert_contains(&message(pjrt.compile_text(SHARDED, &two)), &["4 partitions, and 2 devices"]);
    let twice = CompileOptions::new().devices([0, 1, 1, 2]);
    assert_contains(&message(pjrt.compile_text(SHARDED, &twice)), &["device 1 is chosen twice"]);
}

#[test]
fn a_program_runs_on_the_chosen_device() {
    let pjrt = pjrt!(4);
    let program = pjrt.compile_text(&add(2, false), &CompileOptions::new().devices([2])).unwrap();
    assert_eq!(program.devices(), [2]);
    let here = pjrt.upload(&bytes(&[1.0, 2.0]), ElementType::F32, &[2], None, 2).unwrap();
    let outputs = program.run(&[&here, &here]).unwrap();
    assert_eq!((floats(&outputs[0]), outputs[0].device()), (vec![2.0, 4.0], 2));
    let elsewhere = upload(&pjrt, &[1.0, 2.0]);
    assert_contains(&message(program.run(&[&here, &elsewhere])), &["argument 1 is on device 0"]);
}

// ------------------------------------------------------------------------------------------------------------------
// Serialized programs

#[test]
fn an_executable_is_serialized_and_loaded() {
    if child("an_executable_is_serialized_and_loaded", |_| ()).is_some() {
        return;
    }
    let pjrt = pjrt!();
    let program = pjrt.compile_text(&add(3, true), &CompileOptions::new()).unwrap();
    let serialized = program.serialize().unwrap();
    drop(program);
    drop(pjrt);
    let pjrt = pjrt!();
    let program = pjrt.load_executable(&serialized).unwrap();
    println!("{program:?}");
    let (a, b) = (upload(&pjrt, &[1.0; 3]), upload(&pjrt, &[2.0; 3]));
    assert_eq!(floats(&program.run(&[&a, &b]).unwrap()[0]), [3.0; 3]);
    assert!(a.is_deleted());
    assert_contains(&message(program.run(&[&b])), &["expected 2 arguments"]);
    for position in (0..serialized.len()).step_by(101) {
        let mut damaged = serialized.clone();
        damaged[position] ^= 0x10;
        assert_contains(&message(pjrt.load_executable(&damaged)), &["damaged"]);
        message(pjrt.load_executable(&serialized[..position]));
    }
    let four = pjrt!(4);
    assert_contains(&message(four.load_executable(&serialized)), &["for other devices"]);
}

/// The environment variable that names a file with an executable.
const EXECUTABLE: &str = "TYPED_DIMS_XLA_EXECUTABLE";

#[test]
fn an_executable_of_another_plugin_is_refused() {
    let pjrt = pjrt!();
    if pjrt.platform_name() != "cpu" {
        // A copy of the plugin would not find the libraries that it needs.
        return;
    }
    let folder = Folder::new("other-plugin");
    let program = pjrt.compile_text(&add(3, false), &CompileOptions::new()).unwrap();
    let executable = folder.0.join("executable");
    fs::write(&executable, program.serialize().unwrap()).unwrap();
    // The loader does not read the additional byte.
    let mut plugin = fs::read(pjrt.path()).unwrap();
    plugin.push(0);
    let other = folder.0.join("other_cpu.so");
    fs::write(&other, plugin).unwrap();
    child("an_executable_of_another_plugin_is_refused_by_a_child", |command| {
        command.env("TYPED_DIMS_PJRT_PLUGIN", &other).env(EXECUTABLE, &executable);
    });
}

#[test]
fn an_executable_of_another_plugin_is_refused_by_a_child() {
    let Some(executable) = env::var_os(EXECUTABLE) else { return };
    let pjrt = find(PjrtOptions::new().cpu_devices(1)).unwrap();
    let error = message(pjrt.load_executable(&fs::read(executable).unwrap()));
    assert_contains(&error, &["another plugin"]);
}

#[test]
fn an_executable_is_loaded_by_another_process() {
    let pjrt = pjrt!();
    let folder = Folder::new("same-plugin");
    let (options, text) = (CompileOptions::new().cache(folder.0.join("cache")), add(3, false));
    let program = pjrt.compile_text(&text, &options).unwrap();
    let executable = folder.0.join("executable");
    fs::write(&executable, program.serialize().unwrap()).unwrap();
    let path = pjrt.path().canonicalize().unwrap();
    child("an_executable_is_loaded_by_a_child", |command| {
        command.env("TYPED_DIMS_PJRT_PLUGIN", path).env(EXECUTABLE, &executable);
    });
}

#[test]
fn an_executable_is_loaded_by_a_child() {
    let Some(executable) = env::var_os(EXECUTABLE).map(PathBuf::from) else { return };
    let pjrt = find(PjrtOptions::new().cpu_devices(1)).unwrap();
    pjrt.load_executable(&fs::read(&executable).unwrap()).unwrap();
    // The program is not compiled again: the file in the cache is not replaced.
    let cache = Folder(executable.parent().unwrap().join("cache"));
    let before = cache.files("xla");
    let written = fs::metadata(&before[0]).unwrap().modified().unwrap();
    pjrt.compile_text(&add(3, false), &CompileOptions::new().cache(&cache.0)).unwrap();
    assert_eq!(cache.files("xla"), before);
    assert_eq!(fs::metadata(&before[0]).unwrap().modified().unwrap(), written);
}

#[test]
fn a_sharded_executable_is_serialized_and_loaded() {
    if child("a_sharded_executable_is_serialized_and_loaded", |_| ()).is_some() {
        return;
    }
    let pjrt = pjrt!(4);
    let program = pjrt.compile_text(SHARDED, &CompileOptions::new().partitions(4)).unwrap();
    let program = pjrt.load_executable(&program.serialize().unwrap()).unwrap();
    let shard = |device| pjrt.upload(&bytes(&[1.0; 3]), ElementType::F32, &[1, 3], None, device).unwrap();
    let shards: Vec<DeviceBuffer> = (0..4).map(shard).collect();
    let outputs = program.execute(&shards.iter().map(|shard| vec![shard]).collect::<Vec<_>>()).unwrap();
    assert_eq!(floats(&outputs[3][0]), [4.0; 3]);
}

#[test]
fn executables_are_kept_in_a_folder() {
    let pjrt = pjrt!();
    let folder = Folder::new("cache");
    let options = CompileOptions::new().cache(folder.0.join("executables"));
    let inner = Folder(folder.0.join("executables"));
    let compile = |text: &str, options: &CompileOptions, expected: f32| {
        let start = Instant::now();
        let program = pjrt.compile_text(text, options).unwrap();
        println!("{:?}", start.elapsed());
        let a = upload(&pjrt, &[1.0; 3]);
        assert_eq!(floats(&program.run(&[&a, &a]).unwrap()[0]), [expected; 3]);
    };
    let text = add(3, false);
    compile(&text, &options, 2.0);
    let [file] = &inner.files("xla")[..] else { panic!("{:?} instead of one file", inner.files("xla")) };
    let written = fs::metadata(file).unwrap().modified().unwrap();
    compile(&text, &options, 2.0);
    assert_eq!(fs::metadata(file).unwrap().modified().unwrap(), written, "the program was recompiled");

    // If the file is damaged, the program is compiled again, and the file is replaced.
    let whole = fs::read(file).unwrap();
    let mut changed = whole.clone();
    changed[whole.len() / 2] ^= 1;
    for damaged in [&changed[..], &whole[..whole.len() / 2], b"", b"text"] {
        fs::write(file, damaged).unwrap();
        compile(&text, &options, 2.0);
        assert_ne!(fs::read(file).unwrap(), damaged);
        let written = fs::metadata(file).unwrap().modified().unwrap();
        compile(&text, &options, 2.0);
        assert_eq!(fs::metadata(file).unwrap().modified().unwrap(), written, "the program was recompiled");
    }
    // Other text and other options use other files.
    compile(&text.replace("stablehlo.add", "stablehlo.subtract"), &options, 0.0);
    assert_eq!(inner.files("xla").len(), 2);
    compile(&text, &options.clone().flag("xla_backend_optimization_level", "1"), 2.0);
    assert_eq!((inner.files("xla").len(), inner.files("tmp").len()), (3, 0));
    // A file with the right name but for another program.
    let files = inner.files("xla");
    for (from, to) in [(0, 1), (1, 2)] {
        fs::copy(&files[from], &files[to]).unwrap();
    }
    compile(&text, &options, 2.0);
    compile(&text.replace("stablehlo.add", "stablehlo.subtract"), &options, 0.0);

    let file = folder.0.join("file");
    fs::write(&file, "").unwrap();
    let error = message(pjrt.compile_text(&text, &CompileOptions::new().cache(&file)));
    assert_contains(&error, &["as a cache of executables"]);
}

// ------------------------------------------------------------------------------------------------------------------------------
// Plugins

#[test]
fn files_that_are_no_plugins_are_errors() {
    if child("files_that_are_no_plugins_are_errors", |_| ()).is_some() {
        return;
    }
    let folder = Folder::new("broken");
    let file = |name: &str, contents: &[u8]| {
        let path = folder.0.join(name);
        fs::write(&path, contents).unwrap();
        path
    };
    let mut cases = vec![
        file("empty_cpu.so", b""),
        file("text_cuda.so", b"INPUT(libc.so.6)"),
        file("elf.so", b"\x7fELF\x02\x01\x01"),
        folder.0.clone(),
        folder.0.join("no_such_plugin.so"),
        PathBuf::new(),
        PathBuf::from("\0"),
    ];
    for libc in
        ["/lib/x86_64-linux-gnu/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6", "/usr/lib64/libc.so.6"]
    {
        if Path::new(libc).exists() {
            assert_contains(&message(Pjrt::load(libc)), &[libc, "GetPjrtApi"]);
            cases.push(PathBuf::from(libc));
        }
    }
    if let Some(pjrt) = find(PjrtOptions::new()) {
        let plugin = fs::read(pjrt.path()).unwrap();
        cases.push(file("half_cpu.so", &plugin[..plugin.len() / 2]));
    }
    for path in cases {
        let error = Pjrt::load(&path).expect_err("the file is not a plugin");
        println!("{error}");
        assert!(matches!(error, XlaError::PluginNotLoaded { .. }), "{error:?}");
    }
}

#[test]
fn a_plugin_is_found_in_a_virtual_environment() {
    let plugin = match find(PjrtOptions::new()) {
        Some(pjrt) => pjrt.path().canonicalize().unwrap(),
        None => return,
    };
    let environment = Folder::new("environment");
    let packages = environment.0.join("lib/python3.11/site-packages");
    let link = |path: &str, target: &Path| {
        let path = packages.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
    };
    link("lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so", &plugin);
    // A GPU plugin that cannot be loaded is skipped.
    let broken = environment.0.join("broken.so");
    fs::write(&broken, "").unwrap();
    link("jax_plugins/xla_cuda13/xla_cuda_plugin.so", &broken);
    let test = "a_plugin_is_found_in_a_virtual_environment_by_a_child";
    let output = child(test, |command| {
        command.env_remove("TYPED_DIMS_PJRT_PLUGIN").env("VIRTUAL_ENV", &environment.0);
    });
    assert_contains(&output.unwrap(), &["found", "xla_cuda13/xla_cuda_plugin.so"]);
}

#[test]
fn a_plugin_is_found_in_a_virtual_environment_by_a_child() {
    let Some(environment) =
        env::var_os("VIRTUAL_ENV").filter(|_| env::var_os("TYPED_DIMS_XLA_CHILD").is_some())
    else {
        return;
    };
    let pjrt = Pjrt::find().unwrap();
    assert!(pjrt.path().starts_with(environment) && pjrt.platform_name() == "cpu");
    println!("found {:?}, passed over {:?}", pjrt.path(), pjrt.skipped());
}

#[test]
fn the_error_says_where_it_looked() {
    let test = "the_error_says_where_it_looked";
    let environment = Folder::new("no-plugin");
    fs::create_dir_all(environment.0.join("lib/python3.11/site-packages")).unwrap();
    let prepare = |command: &mut Command| {
        command.env_remove("TYPED_DIMS_PJRT_PLUGIN").env_remove("CONDA_PREFIX").env("PATH", "");
        command.env("VIRTUAL_ENV", &environment.0);
    };
    if child(test, prepare).is_some() {
        return;
    }
    let error = Pjrt::find().unwrap_err();
    assert!(
        matches!(&error, XlaError::PluginNotFound { searched, failed } if failed.is_empty() && searched.len() > 5)
    );
    let parts = [
        "no PJRT plugin was found",
        "site-packages/libtpu/libtpu.so",
        "pip install",
        "TYPED_DIMS_PJRT_PLUGIN",
    ];
    assert_contains(&error.to_string(), &parts);
}

#[test]
fn xla_logs_nothing() {
    let output = child("xla_logs_nothing_in_a_child", |command| {
        command.env_remove("TF_CPP_MIN_LOG_LEVEL");
    });
    let output = output.unwrap();
    if output.contains("skipped") {
        return;
    }
    let logged: Vec<&str> = output.lines().filter(|line| line.contains(".cc:")).collect();
    assert!(logged.is_empty(), "{logged:#?}");
    assert!(output.contains("PATH is still set"));
}

#[test]
fn xla_logs_nothing_in_a_child() {
    if env::var_os("TYPED_DIMS_XLA_CHILD").is_none() {
        return;
    }
    let pjrt = pjrt!();
    assert!(pjrt.compile_text("nonsense", &CompileOptions::new()).is_err());
    let program = pjrt.compile_text(&add(3, true), &CompileOptions::new()).unwrap();
    let a = upload(&pjrt, &[1.0; 3]);
    let _ = program.run(&[&a, &a]);
    assert_eq!(env::var("TF_CPP_MIN_LOG_LEVEL").unwrap(), "3");
    assert!(env::var_os("PATH").is_some());
    println!("PATH is still set");
}

// ------------------------------------------------------------------------------------------------------------------
// Lifetimes and threads

#[test]
fn buffers_and_programs_outlive_the_handle_of_their_client() {
    if child("buffers_and_programs_outlive_the_handle_of_their_client", |_| ()).is_some() {
        return;
    }
    for round in 0..20 {
        let pjrt = pjrt!();
        let program = pjrt.compile_text(&add(1000, round % 2 == 0), &CompileOptions::new()).unwrap();
        let (a, b) = (upload(&pjrt, &[1.0; 1000]), upload(&pjrt, &[2.0; 1000]));
        drop(pjrt);
        let outputs = program.run(&[&a, &b]).unwrap();
        drop((a, b, program));
        if round % 3 > 0 {
            assert_eq!(floats(&outputs[0]), [3.0; 1000]);
        }
        // In the other rounds, the client is destroyed while the program may still be running.
    }
    // Everything is dropped while large programs are queued.
    for _ in 0..5 {
        let pjrt = pjrt!();
        let count = 4 << 20;
        let program = pjrt.compile_text(&add(count, false), &CompileOptions::new()).unwrap();
        let a = upload(&pjrt, &vec![1.0; count]);
        let mut last = program.run(&[&a, &a]).unwrap().remove(0);
        for _ in 0..10 {
            last = program.run(&[&last, &a]).unwrap().remove(0);
        }
    }
}

#[test]
fn many_threads_share_a_client() {
    if child("many_threads_share_a_client", |_| ()).is_some() {
        return;
    }
    let pjrt = pjrt!();
    let program = pjrt.compile_text(&add(64, false), &CompileOptions::new()).unwrap();
    let step = pjrt.compile_text(&add(64, true), &CompileOptions::new()).unwrap();
    let shared = upload(&pjrt, &[1.0; 64]);
    thread::scope(|scope| {
        for number in 0..8 {
            let (pjrt, program, step, shared) = (&pjrt, &program, &step, &shared);
            scope.spawn(move || {
                let own = upload(pjrt, &[number as f32; 64]);
                let mut state = upload(pjrt, &[0.0; 64]);
                for _ in 0..200 {
                    let sum = program.run(&[&own, shared]).unwrap().remove(0);
                    state = step.run(&[&state, &sum]).unwrap().remove(0);
                    assert_eq!(floats(&sum), [number as f32 + 1.0; 64]);
                }
                assert_eq!(floats(&state), [200.0 * (number as f32 + 1.0); 64]);
            });
        }
    });
}

#[test]
fn threads_compete_for_one_donated_buffer() {
    if child("threads_compete_for_one_donated_buffer", |_| ()).is_some() {
        return;
    }
    let pjrt = pjrt!();
    let step = pjrt.compile_text(&add(64, true), &CompileOptions::new()).unwrap();
    let one = upload(&pjrt, &[1.0; 64]);
    for _ in 0..100 {
        let state = upload(&pjrt, &[0.0; 64]);
        let done: usize = thread::scope(|scope| {
            let call = || match step.run(&[&state, &one]) {
                Ok(outputs) => floats(&outputs[0]).iter().all(|&value| value == 1.0) as usize,
                Err(_) => 0,
            };
            let read = || {
                // The state is either all zeros or donated.
                if let Ok(bytes) = state.to_host() {
                    assert!(bytes.iter().all(|&byte| byte == 0), "{bytes:?}");
                }
                0
            };
            let threads = [scope.spawn(call), scope.spawn(call), scope.spawn(call), scope.spawn(read)];
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(done, 1);
    }
}

#[test]
fn clients_are_made_and_dropped_by_many_threads() {
    if child("clients_are_made_and_dropped_by_many_threads", |_| ()).is_some() {
        return;
    }
    let _ = pjrt!();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let pjrt = find(PjrtOptions::new()).unwrap();
                    let program = pjrt.compile_text(&add(3, false), &CompileOptions::new()).unwrap();
                    let a = upload(&pjrt, &[1.0; 3]);
                    assert_eq!(floats(&program.run(&[&a, &a]).unwrap()[0]), [2.0; 3]);
                }
            });
        }
    });
}

// -------------------------------------------------------------------------------------------------------------------------------
// Memory

#[test]
fn too_large_a_program_is_an_error() {
    if child("too_large_a_program_is_an_error", |_| ()).is_some() {
        return;
    }
    let pjrt = pjrt!();
    let count = 1_usize << 45;
    let t = format!("tensor<{count}xf32>");
    let text = module(
        "%a: tensor<f32>",
        "",
        &t,
        &format!(
            r#"%0 = "stablehlo.broadcast_in_dim"(%a) {{broadcast_dimensions = array<i64>}} : (tensor<f32>) -> {t}
    "func.return"(%0) : ({t}) -> ()"#
        ),
    );
    let one = pjrt.upload(&1.0_f32.to_ne_bytes(), ElementType::F32, &[], None, 0).unwrap();
    let result = pjrt.compile_text(&text, &CompileOptions::new()).and_then(|program| {
        let outputs = program.run(&[&one])?;
        outputs[0].ready()
    });
    println!("{}", message(result));
    // The client can still be used.
    let program = pjrt.compile_text(&add(3, false), &CompileOptions::new()).unwrap();
    let a = upload(&pjrt, &[1.0; 3]);
    assert_eq!(floats(&program.run(&[&a, &a]).unwrap()[0]), [2.0; 3]);
}

/// The memory of this process, in bytes.
fn resident() -> usize {
    let text = fs::read_to_string("/proc/self/statm").unwrap();
    text.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[test]
#[cfg(target_os = "linux")]
fn nothing_leaks() {
    if child("nothing_leaks", |_| ()).is_some() {
        return;
    }
    let pjrt = pjrt!();
    let count = 64 * 1024;
    let program = pjrt.compile_text(&add(count, false), &CompileOptions::new()).unwrap();
    let step = pjrt.compile_text(&add(count, true), &CompileOptions::new()).unwrap();
    let data = bytes(&vec![1.0; count]);
    let small = upload(&pjrt, &[1.0; 3]);
    let round = || {
        let a = pjrt.upload(&data, ElementType::F32, &[count], None, 0).unwrap();
        let sum = program.run(&[&a, &a]).unwrap();
        let next = step.run(&[&sum[0], &a]).unwrap();
        assert!(step.run(&[&sum[0], &a]).is_err() && program.run(&[&small, &a]).is_err());
        assert!(pjrt.memory_stats(99).is_err() && sum[0].to_host().is_err());
        assert_eq!(next[0].to_host().unwrap().len(), data.len());
    };
    (0..100).for_each(|_| round());
    let before = resident();
    (0..1000).for_each(|_| round());
    let grown = resident().saturating_sub(before);
    // A leak of one array in each round would be 250 MiB.
    assert!(grown < 32 << 20, "the memory grew by {grown} bytes");

    let round = || {
        assert!(pjrt.compile_text("nonsense", &CompileOptions::new()).is_err());
        let program = pjrt.compile_text(&add(3, false), &CompileOptions::new()).unwrap();
        program.serialize().unwrap();
    };
    (0..10).for_each(|_| round());
    let before = resident();
    (0..50).for_each(|_| round());
    let grown = resident().saturating_sub(before);
    assert!(grown < 64 << 20, "the memory grew by {grown} bytes");
}
