//! The services of a set of descriptors of Google's APIs.

use std::collections::HashSet;

use serde_json::Value;
use toolyard_testing::corpora::corpus;

use crate::descriptor::{MethodFilter, ServiceTools};

/// Returns the set, in the folder of test data; `None` without one.
pub(super) fn sample() -> Option<Vec<u8>> {
    corpus("grpc/googleapis-sample.fds", "the services of the sample")
        .map(|file| std::fs::read(file).unwrap())
}

#[test]
fn each_method_of_the_sample_is_a_tool_or_skipped_with_a_reason() {
    let Some(sample) = sample() else { return };
    let start = std::time::Instant::now();
    let tools = ServiceTools::from_file_descriptor_set(&sample, &MethodFilter::default()).unwrap();
    let time = start.elapsed();
    let (mut inputs, mut outputs, mut pruned, mut without) = (0, 0, 0, 0);
    let (mut names, mut schemas) = (HashSet::new(), HashSet::new());
    for method in tools.methods() {
        let tool = method.tool();
        assert!(toolyard_core::names::is_legal(&tool.name), "{}", tool.name);
        assert!(names.insert(tool.name.clone()), "{}", tool.name);
        assert!(!tool.definition.get_str("description").unwrap().is_empty(), "{}", tool.name);
        let input = tool.input_schema().unwrap();
        let root = input.to_object().unwrap();
        assert_eq!(root.get_str("type").as_deref(), Some("object"));
        // The interface of OpenAI refuses all tools of a request if one schema has these at its root.
        let refused = ["not", "oneOf", "anyOf", "allOf", "enum"].map(|keyword| root.get(keyword).is_some());
        assert_eq!(refused, [false; 5], "{}", tool.name);
        inputs += input.as_bytes().len();
        pruned += usize::from(tool.definition.get_str("description").unwrap().contains("cut for size"));
        assert!(input.as_bytes().len() <= 64_000, "{}", tool.name);
        if schemas.insert(input) {
            check_schema(&tool.name, &input.to_value());
        }
        match tool.output_schema() {
            Some(output) => {
                outputs += output.as_bytes().len();
                assert!(output.as_bytes().len() <= 8_200, "{}", tool.name);
                if schemas.insert(output) {
                    check_schema(&tool.name, &output.to_value());
                }
            }
            None => without += 1,
        }
    }
    println!(
        "{} tools in {time:?}; {inputs} bytes of argument schemas ({pruned} cut), {outputs} of result schemas ({without} without)",
        tools.methods().len()
    );
    let reasons: HashSet<_> = tools.skipped().iter().map(|skipped| skipped.reason().to_owned()).collect();
    assert_eq!(reasons, HashSet::from(["client streaming: a call has one message of arguments".to_owned()]));
    assert_eq!(tools.methods().len() + tools.skipped().len(), 1_277);
}

/// Checks that a schema is valid, and that its references lead to definitions.
fn check_schema(name: &str, schema: &Value) {
    assert!(jsonschema::draft202012::meta::is_valid(schema), "{name}: {schema}");
    let mut pending = vec![schema];
    while let Some(value) = pending.pop() {
        match value {
            Value::Object(members) => {
                if let Some(Value::String(reference)) = members.get("$ref") {
                    let pointer = reference.strip_prefix('#').unwrap();
                    assert!(schema.pointer(pointer).is_some(), "{name}: {reference}");
                }
                pending.extend(members.values());
            }
            Value::Array(items) => pending.extend(items),
            _ => {}
        }
    }
}

#[test]
fn names_do_not_depend_on_other_services() {
    let Some(sample) = sample() else { return };
    let all = ServiceTools::from_file_descriptor_set(&sample, &MethodFilter::default()).unwrap();
    let filter = MethodFilter { services: vec!["google.pubsub.**".to_owned()], methods: Vec::new() };
    let some = ServiceTools::from_file_descriptor_set(&sample, &filter).unwrap();
    let of = |tools: &ServiceTools| {
        let methods =
            tools.methods().iter().filter(|method| method.path().path().starts_with("/google.pubsub."));
        methods.map(|method| method.tool().definition.to_json().as_text().to_owned()).collect::<Vec<_>>()
    };
    assert!(!some.methods().is_empty() && some.methods().len() < all.methods().len());
    assert_eq!(of(&some), of(&all));
}
