use std::collections::HashMap;
use std::path::Path;

use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, Kind, MapKey, Value};

use super::*;

/// Compiles the file of the protocol.
fn protocol() -> DescriptorPool {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto");
    let files = protox::compile(["omnia/tools/v1/tools.proto"], [folder]).unwrap();
    DescriptorPool::from_file_descriptor_set(files).unwrap()
}

/// Returns the fields that are not the defaults of a message, as the protocol reads its bytes: name, number, and value.
///
/// A field that the protocol lacks, or has with another type, is an unknown field there.
fn fields_of(pool: &DescriptorPool, name: &str, message: &impl Message) -> Vec<(String, u32, Value)> {
    let descriptor = pool.get_message_by_name(&format!("omnia.tools.v1.{name}")).unwrap();
    let read = DynamicMessage::decode(descriptor.clone(), &*message.encode_to_vec()).unwrap();
    assert_eq!(read.unknown_fields().count(), 0, "{name} has fields that the protocol lacks");
    let fields: Vec<_> = read
        .fields()
        .map(|(field, value)| (field.name().to_owned(), field.number(), value.clone()))
        .collect();
    assert_eq!(fields.len(), descriptor.fields().len(), "{name} lacks fields of the protocol");
    fields
}

/// Checks the fields of a message that has a value in each.
fn check(pool: &DescriptorPool, name: &str, message: &impl Message, expected: &[(&str, u32, Value)]) {
    let expected: Vec<_> =
        expected.iter().map(|(name, number, value)| ((*name).to_owned(), *number, value.clone())).collect();
    assert_eq!(fields_of(pool, name, message), expected, "{name}");
}

fn text(value: &str) -> Value {
    Value::String(value.to_owned())
}

#[test]
fn messages_have_the_fields_of_the_protocol() {
    let pool = protocol();
    let request = ToolRequest {
        tool_name: "a".to_owned(),
        arguments_json: "b".to_owned(),
        metadata: HashMap::from([("c".to_owned(), "d".to_owned())]),
    };
    let metadata = Value::Map(HashMap::from([(MapKey::String("c".to_owned()), text("d"))]));
    let expected = [("tool_name", 1, text("a")), ("arguments_json", 2, text("b")), ("metadata", 3, metadata)];
    check(&pool, "ToolRequest", &request, &expected);

    let response =
        ToolResponse { result_json: "a".to_owned(), is_error: true, error_message: "b".to_owned() };
    let expected =
        [("result_json", 1, text("a")), ("is_error", 2, Value::Bool(true)), ("error_message", 3, text("b"))];
    check(&pool, "ToolResponse", &response, &expected);

    check(&pool, "ListToolsRequest", &ListToolsRequest {}, &[]);

    let info = ToolInfo { name: "a".to_owned(), description: "b".to_owned(), input_schema: "c".to_owned() };
    let expected = [("name", 1, text("a")), ("description", 2, text("b")), ("input_schema", 3, text("c"))];
    check(&pool, "ToolInfo", &info, &expected);

    let fields = fields_of(&pool, "ListToolsResponse", &ListToolsResponse { tools: vec![info.clone()] });
    let [(name, 1, Value::List(tools))] = &fields[..] else { panic!("{fields:?}") };
    let [Value::Message(tool)] = &tools[..] else { panic!("{tools:?}") };
    assert_eq!((name.as_str(), tool.transcode_to::<ToolInfo>().unwrap()), ("tools", info));
}

#[test]
fn protocol_declares_the_published_types() {
    let pool = protocol();
    let mut lines = String::new();
    for message in pool.all_messages().filter(|message| !message.is_map_entry()) {
        for field in message.fields() {
            let kind = match field.kind() {
                Kind::Message(inner) => inner.full_name().to_owned(),
                kind => format!("{kind:?}"),
            };
            let number = field.number();
            lines.push_str(&format!("{} {number} {} {kind}\n", message.name(), field.name()));
        }
    }
    insta::assert_snapshot!(lines, @r"
    ToolRequest 1 tool_name string
    ToolRequest 2 arguments_json string
    ToolRequest 3 metadata omnia.tools.v1.ToolRequest.MetadataEntry
    ToolResponse 1 result_json string
    ToolResponse 2 is_error bool
    ToolResponse 3 error_message string
    ListToolsResponse 1 tools omnia.tools.v1.ToolInfo
    ToolInfo 1 name string
    ToolInfo 2 description string
    ToolInfo 3 input_schema string
    ");
}

#[test]
fn paths_name_the_methods_of_the_protocol() {
    let pool = protocol();
    let service = pool.get_service_by_name(SERVICE).unwrap();
    let methods: Vec<_> = service
        .methods()
        .map(|method| {
            let is_unary = !method.is_client_streaming() && !method.is_server_streaming();
            (format!("/{SERVICE}/{}", method.name()), is_unary)
        })
        .collect();
    let expected = [EXECUTE_PATH, LIST_TOOLS_PATH].map(|path| (path.to_owned(), true));
    assert_eq!(methods, expected);
}

#[test]
fn descriptor_is_that_of_the_file() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto");
    let mut compiled = protox::compile(["omnia/tools/v1/tools.proto"], [folder]).unwrap();
    compiled.file.iter_mut().for_each(|file| file.source_code_info = None);
    assert_eq!(file_descriptor_set(), compiled);
}
