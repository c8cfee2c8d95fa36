//! Programs on a PJRT plugin. Where there is none, the tests say so and pass.
#![cfg(feature = "pjrt")]

use typed_dims_xla::XlaError;
use typed_dims_xla::pjrt::{CompileOptions, DeviceBuffer, ElementType, Pjrt, PjrtOptions};

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

/// Returns from the test if there is no plugin.
macro_rules! pjrt {
    () => {
        pjrt!(PjrtOptions::new())
    };
    ($options:expr) => {
        match find($options) {
            Some(pjrt) => pjrt,
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

/// A program in generic form. `arguments` is as in `%a: tensor<3xf32>`.
fn module(arguments: &str, attributes: &str, results: &str, body: &str) -> String {
    let types: Vec<&str> = arguments.split(", ").map(|argument| argument.split_once(": ").unwrap().1).collect();
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

#[test]
fn a_program_that_adds() {
    let pjrt = pjrt!();
    println!("{pjrt:?} {} {:?}", pjrt.platform_version(), pjrt.api_version());
    println!("StableHLO {:?}", pjrt.stablehlo_version());
    println!("{:?}", pjrt.memory_stats(0));
    let program = pjrt.compile(&add(3, false), &CompileOptions::new()).unwrap();
    println!("{program:?} {:?} {:?}", program.outputs(), program.memory());
    println!("{:?}", program.instruction_counts());
    let (a, b) = (upload(&pjrt, &[1.0, 2.0, 3.0]), upload(&pjrt, &[10.0, 20.0, 30.0]));
    let outputs = program.run(&[&a, &b]).unwrap();
    assert_eq!(floats(&outputs[0]), [11.0, 22.0, 33.0]);
}
