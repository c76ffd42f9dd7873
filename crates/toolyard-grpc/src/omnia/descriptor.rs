//! The file of the protocol as a descriptor, for server reflection.

use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet, MessageOptions,
    MethodDescriptorProto, ServiceDescriptorProto,
};

/// Name of the file, by which other files import it.
const FILE: &str = "omnia/tools/v1/tools.proto";

/// Returns the descriptor of the protocol, without comments.
#[must_use]
pub fn file_descriptor_set() -> FileDescriptorSet {
    let file = FileDescriptorProto {
        name: Some(FILE.to_owned()),
        package: Some("omnia.tools.v1".to_owned()),
        message_type: vec![
            message(
                "ToolRequest",
                vec![
                    field("tool_name", 1, Type::String),
                    field("arguments_json", 2, Type::String),
                    list("metadata", 3, ".omnia.tools.v1.ToolRequest.MetadataEntry"),
                ],
                vec![map_entry("MetadataEntry")],
            ),
            message(
                "ToolResponse",
                vec![
                    field("result_json", 1, Type::String),
                    field("is_error", 2, Type::Bool),
                    field("error_message", 3, Type::String),
                ],
                Vec::new(),
            ),
            message("ListToolsRequest", Vec::new(), Vec::new()),
            message("ListToolsResponse", vec![list("tools", 1, ".omnia.tools.v1.ToolInfo")], Vec::new()),
            message(
                "ToolInfo",
                vec![
                    field("name", 1, Type::String),
                    field("description", 2, Type::String),
                    field("input_schema", 3, Type::String),
                ],
                Vec::new(),
            ),
        ],
        service: vec![ServiceDescriptorProto {
            name: Some("ToolService".to_owned()),
            method: vec![
                method("Execute", ".omnia.tools.v1.ToolRequest", ".omnia.tools.v1.ToolResponse"),
                method("ListTools", ".omnia.tools.v1.ListToolsRequest", ".omnia.tools.v1.ListToolsResponse"),
            ],
            ..ServiceDescriptorProto::default()
        }],
        syntax: Some("proto3".to_owned()),
        ..FileDescriptorProto::default()
    };
    FileDescriptorSet { file: vec![file] }
}

fn message(
    name: &str,
    field: Vec<FieldDescriptorProto>,
    nested_type: Vec<DescriptorProto>,
) -> DescriptorProto {
    DescriptorProto { name: Some(name.to_owned()), field, nested_type, ..DescriptorProto::default() }
}

/// Returns the message of the entries of a map of strings.
fn map_entry(name: &str) -> DescriptorProto {
    let fields = vec![field("key", 1, Type::String), field("value", 2, Type::String)];
    let options = MessageOptions { map_entry: Some(true), ..MessageOptions::default() };
    DescriptorProto { options: Some(options), ..message(name, fields, Vec::new()) }
}

fn field(name: &str, number: i32, kind: Type) -> FieldDescriptorProto {
    FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        label: Some(Label::Optional.into()),
        r#type: Some(kind.into()),
        json_name: Some(json_name(name)),
        ..FieldDescriptorProto::default()
    }
}

fn list(name: &str, number: i32, of: &str) -> FieldDescriptorProto {
    FieldDescriptorProto {
        label: Some(Label::Repeated.into()),
        type_name: Some(of.to_owned()),
        ..field(name, number, Type::Message)
    }
}

/// Returns the name of a field in JSON: in lower camel case.
fn json_name(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        let (initial, rest) = word.split_at(1);
        name + &initial.to_ascii_uppercase() + rest
    })
}

fn method(name: &str, input: &str, output: &str) -> MethodDescriptorProto {
    MethodDescriptorProto {
        name: Some(name.to_owned()),
        input_type: Some(input.to_owned()),
        output_type: Some(output.to_owned()),
        ..MethodDescriptorProto::default()
    }
}
