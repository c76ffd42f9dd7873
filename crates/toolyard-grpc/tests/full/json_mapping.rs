//! The JSON mapping compared with that of PyPI's `protobuf`, for random messages of Google's APIs.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use prost::Message;
use prost_types::FileDescriptorSet;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_grpc::descriptor::{MethodFilter, MethodTool, ServiceTools};
use toolyard_testing::corpora::corpus;
use toolyard_testing::peers::{command, peer};
use toolyard_testing::scripted_server::script;

const SEED: u64 = 20_261_124;

/// Half of the cases are results, the others arguments.
const CASES: usize = 2000;

/// Converts the message of a case.
fn answer(method: &MethodTool, case: &Value) -> Value {
    match case["json"].as_str() {
        Some(arguments) => match method.encode(arguments) {
            Ok(bytes) => json!({"bytes": STANDARD.encode(bytes)}),
            Err(error) => json!({"error": error.to_string()}),
        },
        None => match method.decode(STANDARD.decode(case["bytes"].as_str().unwrap()).unwrap()) {
            Ok(json) => json!({"json": json}),
            Err(error) => json!({"error": error.to_string()}),
        },
    }
}

#[test]
fn random_messages_are_mapped_as_protobuf_maps_them() {
    let Some(file) = corpus("grpc/googleapis-sample.fds", "messages of Google's APIs") else { return };
    let set = FileDescriptorSet::decode(&*std::fs::read(&file).unwrap()).unwrap();
    // These have no `google.api.field_behavior`, which is no part of the mapping and makes arguments required.
    let tools = ServiceTools::from_file_descriptors(set.file, &MethodFilter::default()).unwrap();
    let methods: HashMap<&str, _> = tools.methods().iter().map(|it| (it.path().path(), it)).collect();

    let home = TempDir::new().unwrap();
    let mut judge = command(peer("grpc/bin/python"), home.path());
    judge.arg(script("grpc_json_judge.py")).arg(file).args([SEED.to_string(), CASES.to_string()]);
    let mut judge = judge.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut answers = judge.stdin.take().unwrap();
    let mut verdict = Value::Null;
    for line in BufReader::new(judge.stdout.take().unwrap()).lines() {
        let case: Value = serde_json::from_str(&line.unwrap()).unwrap();
        match case["method"].as_str() {
            Some(method) => writeln!(answers, "{}", answer(methods[method], &case)).unwrap(),
            None => verdict = case,
        }
    }
    assert!(judge.wait().unwrap().success());
    println!("seed {SEED}: {CASES} messages");
    assert_eq!(verdict, json!({"cases": CASES, "different": 0, "faults": []}), "seed {SEED}");
}
