//! Descriptors that are wrong on purpose, or too large.

use std::sync::LazyLock;

use proptest::prelude::*;
use prost::Message;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto, FieldDescriptorProto,
    FileDescriptorProto, FileDescriptorSet, MessageOptions, MethodDescriptorProto, OneofDescriptorProto,
    ServiceDescriptorProto,
};
use toolyard_net::budget::{BudgetExhausted, ByteBudget};

use super::mapping::EVERY_KIND;
use super::support::compile;
use crate::descriptor::{DescriptorError, JsonText, MethodFilter, ServiceTools, TextLimit};

fn field(name: &str, number: i32, kind: i32, type_name: &str) -> FieldDescriptorProto {
    FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        label: Some(1),
        r#type: Some(kind),
        type_name: Some(type_name.to_owned()).filter(|name| !name.is_empty()),
        ..FieldDescriptorProto::default()
    }
}

fn message(name: &str, fields: Vec<FieldDescriptorProto>) -> DescriptorProto {
    DescriptorProto { name: Some(name.to_owned()), field: fields, ..DescriptorProto::default() }
}

fn file(name: &str, messages: Vec<DescriptorProto>) -> FileDescriptorProto {
    FileDescriptorProto {
        name: Some(name.to_owned()),
        message_type: messages,
        ..FileDescriptorProto::default()
    }
}

fn service(name: &str, methods: &[(&str, &str)]) -> ServiceDescriptorProto {
    let method = |(name, input): &(&str, &str)| MethodDescriptorProto {
        name: Some((*name).to_owned()),
        input_type: Some((*input).to_owned()),
        output_type: Some((*input).to_owned()),
        ..MethodDescriptorProto::default()
    };
    ServiceDescriptorProto {
        name: Some(name.to_owned()),
        method: methods.iter().map(method).collect(),
        ..ServiceDescriptorProto::default()
    }
}

fn read(files: Vec<FileDescriptorProto>) -> Result<ServiceTools, DescriptorError> {
    ServiceTools::from_file_descriptors(files, &MethodFilter::default())
}

/// Returns the paths of the tools, and the skipped methods with their reasons.
fn outline(tools: &ServiceTools) -> String {
    let methods = tools.methods().iter().map(|method| method.path().to_string());
    let skipped = tools.skipped().iter().map(|skipped| format!("{}: {}", skipped.name(), skipped.reason()));
    methods.chain(skipped).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_fault_concerns_the_methods_that_need_its_type() {
    let mut one = file(
        "a.proto",
        vec![
            message("Good", vec![field("next", 1, 11, ".Good")]),
            message("Missing", vec![field("a", 1, 11, ".not.There")]),
            message("Cycle", vec![field("back", 1, 11, ".Far")]),
            message("Far", vec![field("missing", 1, 11, ".Missing"), field("cycle", 2, 11, ".Cycle")]),
            message("Kind", vec![field("a", 1, 99, "")]),
            message("Enum", vec![field("a", 1, 14, ".Good")]),
            message("Zero", vec![field("a", 0, 5, "")]),
            message("Negative", vec![field("a", -1, 5, "")]),
            message("Relative", vec![field("a", 1, 0, "Good")]),
        ],
    );
    let types = ["Good", "Missing", "Cycle", "Far", "Kind", "Enum", "Zero", "Negative", "Relative", "None"];
    let names: Vec<_> = types.iter().map(|name| (*name, format!(".{name}"))).collect();
    let names: Vec<_> = names.iter().map(|(name, full)| (*name, full.as_str())).collect();
    one.service = vec![service("S", &names)];
    insta::assert_snapshot!(outline(&read(vec![one]).unwrap()), @"
    /S/Good
    /S/Relative
    S/Missing: the type `not.There` of `Missing.a` is not in the descriptors
    S/Cycle: the type `not.There` of `Missing.a` is not in the descriptors
    S/Far: the type `not.There` of `Missing.a` is not in the descriptors
    S/Kind: `Kind.a` has the unknown type 99
    S/Enum: `.Good` of `Enum.a` is of another kind
    S/Zero: `Zero.a` has an invalid field number
    S/Negative: `Negative.a` has an invalid field number
    S/None: the type `None` is not in the descriptors
    ");
}

#[test]
fn methods_with_other_faults_are_skipped() {
    let mut one = file("a.proto", vec![message("M", vec![])]);
    one.enum_type =
        vec![EnumDescriptorProto { name: Some("E".to_owned()), ..EnumDescriptorProto::default() }];
    one.service = vec![service(
        "S",
        &[("A", ".M"), ("A", ".M"), ("a b?c", ".M"), ("", ".M"), ("E", ".E"), ("\u{e4}", ".M"), ("R", "M")],
    )];
    for (client, server) in [(true, false), (true, true), (false, true)] {
        let mut method = one.service[0].method[0].clone();
        method.name = Some(format!("Stream{client}{server}"));
        (method.client_streaming, method.server_streaming) = (Some(client), Some(server));
        one.service[0].method.push(method);
    }
    one.service.push(service("grpc.reflection.v1.ServerReflection", &[("A", ".M")]));
    insta::assert_snapshot!(outline(&read(vec![one]).unwrap()), @"
    /S/A
    /S/R
    /S/Streamfalsetrue
    S/A: another method has the same name
    S/a b?c: its name is not a name of protocol buffers
    S/: its name is not a name of protocol buffers
    S/E: the type `E` is an enum
    S/ä: its name is not a name of protocol buffers
    S/Streamtruefalse: client streaming: a call has one message of arguments
    S/Streamtruetrue: client streaming: a call has one message of arguments
    ");
}

#[test]
fn files_may_be_in_any_order_and_present_twice() {
    let mut one = file("a.proto", vec![message("A", vec![field("b", 1, 11, ".B")])]);
    one.service = vec![service("S", &[("A", ".A")])];
    let two = file("b.proto", vec![message("B", vec![])]);
    let tools = read(vec![one.clone(), two.clone(), one.clone(), two.clone()]).unwrap();
    assert_eq!(outline(&tools), "/S/A");
    assert_eq!(outline(&read(vec![two, one]).unwrap()), "/S/A");
}

#[test]
fn name_clash_is_an_error() {
    let check = |files: Vec<FileDescriptorProto>, name: &str| {
        assert_eq!(read(files).unwrap_err(), DescriptorError::Duplicate(name.to_owned()));
    };
    let one = file("a.proto", vec![message("M", vec![])]);
    check(vec![one.clone(), file("b.proto", vec![message("M", vec![])])], "M");
    let mut services = one;
    services.service = vec![service("S", &[]), service("S", &[])];
    check(vec![services], "S");
}

#[test]
fn other_bytes_are_an_error() {
    let check = |bytes: &[u8], expected: &str| {
        let error = ServiceTools::from_file_descriptor_set(bytes, &MethodFilter::default()).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    check(b"{}", "invalid descriptors: it ends within a field");
    check(&[10, 2, 8, 1], "invalid descriptors: a field has an unexpected wire type");
    check(&[10, 3, 10, 1, 0xff], "invalid descriptors: a text is not UTF-8");
    check(&vec![0; 64 * 1024 * 1024 + 1], "the descriptors are larger than 64 MiB");
    // Empty files, fields and so on, of which many fit into few bytes.
    let fields = [0x12, 0].repeat(600_000);
    let mut many = FileDescriptorSet { file: vec![file("a", vec![])] }.encode_to_vec();
    let message = [prefixed(4, &fields)].concat();
    many.extend(prefixed(1, &message));
    check(&many, "the descriptors have more than 500000 types, fields, values, methods and comments");
    let nested = (0..100).fold(Vec::new(), |inner, _| prefixed(3, &inner));
    check(&prefixed(1, &prefixed(4, &nested)), "invalid descriptors: types are nested too deeply");
    let empty = ServiceTools::from_file_descriptor_set(&[], &MethodFilter::default()).unwrap();
    assert!(empty.methods().is_empty());
}

/// Returns a length-delimited field.
fn prefixed(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    prost::encoding::bytes::encode(number, &bytes.to_vec(), &mut out);
    out
}

#[test]
fn strange_types_are_used_as_far_as_possible() {
    let is_entry = Some(MessageOptions { map_entry: Some(true), ..MessageOptions::default() });
    let repeated = |field: FieldDescriptorProto| FieldDescriptorProto { label: Some(3), ..field };
    let in_oneof =
        |field: FieldDescriptorProto, index| FieldDescriptorProto { oneof_index: Some(index), ..field };
    let entry = |name: &str, key: FieldDescriptorProto, value: FieldDescriptorProto| DescriptorProto {
        options: is_entry.clone(),
        ..message(name, vec![key, value])
    };
    let mut own = message(
        "M",
        vec![
            // Twice the same number, and the same name.
            field("a", 1, 5, ""),
            field("b", 1, 9, ""),
            field("a", 2, 8, ""),
            // Entries whose keys are messages, and that contain themselves.
            repeated(field("by_message", 3, 11, ".ByMessage")),
            repeated(field("by_itself", 4, 11, ".ByItself")),
            field("not_repeated", 5, 11, ".ByItself"),
            in_oneof(field("no_oneof", 6, 5, ""), 7),
            in_oneof(field("negative", 7, 5, ""), -1),
            field("time", 8, 11, ".google.protobuf.Timestamp"),
            field("", 9, 5, ""),
            field("quote\"\\\n", 10, 11, ".we/ird~\"%"),
            field("weird2", 11, 11, ".we/ird~\"%"),
            field("empty", 12, 14, ".E"),
        ],
    );
    own.oneof_decl = vec![OneofDescriptorProto::default()];
    let mut one = file(
        "a.proto",
        vec![
            own,
            entry("ByMessage", field("key", 1, 11, ".M"), field("value", 2, 5, "")),
            entry("ByItself", field("key", 1, 5, ""), field("value", 2, 11, ".ByItself")),
            message("we/ird~\"%", vec![field("a", 1, 5, "")]),
        ],
    );
    let value =
        |number| EnumValueDescriptorProto { number: Some(number), ..EnumValueDescriptorProto::default() };
    one.enum_type = vec![EnumDescriptorProto {
        name: Some("E".to_owned()),
        value: vec![value(1), value(1), value(-1)],
        ..EnumDescriptorProto::default()
    }];
    // A well-known name with other fields.
    let mut known = file("time.proto", vec![message("Timestamp", vec![field("seconds", 1, 9, "")])]);
    known.package = Some("google.protobuf".to_owned());
    one.service = vec![service("S", &[("A", ".M")])];
    let tools = read(vec![one, known]).unwrap();
    let method = &tools.methods()[0];
    let schema = method.tool().input_schema().unwrap().to_value();
    assert!(jsonschema::draft202012::new(&schema).is_ok(), "{schema}");
    for arguments in [
        r#"{"a":1,"b":"x"}"#,
        r#"{"byMessage":[{"key":{}}],"byItself":{"1":{"2":{}}}}"#,
        r#"{"byMessage":[{"key":{}}],"byItself":{"1":{"key":1,"value":{}}},"notRepeated":{}}"#,
        r#"{"noOneof":1,"negative":1,"time":"1970-01-01T00:00:01Z","":1,"weird2":{"a":1},"empty":""}"#,
    ] {
        if let Ok(message) = method.encode(arguments) {
            method.decode(message).unwrap();
        }
    }
}

#[test]
fn deep_chains_and_many_methods_are_limited() {
    let link = |number: usize| {
        message(&format!("L{number}"), vec![field("next", 1, 11, &format!(".L{}", number + 1))])
    };
    let mut links: Vec<_> = (0..3_000).map(link).collect();
    links.push(message("L3000", vec![]));
    let mut one = file("a.proto", links);
    let names: Vec<_> = (0..10_050).map(|number| format!("A{number}")).collect();
    let methods: Vec<_> = names.iter().map(|name| (name.as_str(), ".L3000")).collect();
    one.service = vec![service("Chain", &[("A", ".L0"), ("B", ".L1")]), service("Many", &methods)];
    let tools = read(vec![one]).unwrap();
    assert_eq!(tools.methods().len(), 10_000);
    assert_eq!(tools.skipped().len(), 52);
    assert_eq!(tools.skipped()[0].reason(), "the services have more than 10000 methods");
    let tool = tools.methods()[0].tool();
    let schema = tool.input_schema().unwrap();
    assert!(schema.as_bytes().len() <= 64_000 && !schema.is_deeper_than(64));
    assert!(tool.definition.get_str("description").unwrap().contains("cut for size"));
}

#[test]
fn large_type_of_many_methods_does_not_multiply() {
    let value = |number: i32| EnumValueDescriptorProto {
        name: Some(format!("V{number}")),
        number: Some(number),
        options: None,
    };
    let mut one = file("a.proto", vec![message("M", vec![field("e", 1, 14, ".E")])]);
    one.enum_type = vec![EnumDescriptorProto {
        name: Some("E".to_owned()),
        value: (0..3_000).map(value).collect(),
        ..EnumDescriptorProto::default()
    }];
    let names: Vec<_> = (0..500).map(|number| format!("A{number}")).collect();
    let methods: Vec<_> = names.iter().map(|name| (name.as_str(), ".M")).collect();
    one.service = vec![service("S", &methods)];
    let tools = read(vec![one]).unwrap();
    let schemas: Vec<_> = tools
        .methods()
        .iter()
        .map(|method| method.tool().input_schema().unwrap().as_text().to_owned())
        .collect();
    assert_eq!(schemas.len(), 500);
    assert!(schemas.iter().map(String::len).sum::<usize>() < 6_000_000);
    assert!(schemas[0].contains("V2999"));
    assert_eq!(schemas[499], r#"{"type":"object","properties":{"e":{}},"additionalProperties":false}"#);
    assert!(tools.methods()[499].encode(r#"{"e":"V2999"}"#).is_ok());
}

#[test]
fn message_with_too_many_fields_is_skipped() {
    let fields = (1..5_000).map(|number| field(&format!("field_{number}"), number, 9, "")).collect();
    let mut one = file("a.proto", vec![message("M", fields), message("N", vec![field("m", 1, 11, ".M")])]);
    one.service = vec![service("S", &[("A", ".M"), ("B", ".N")])];
    let tools = read(vec![one]).unwrap();
    assert_eq!(outline(&tools), "/S/B\nS/A: the schema of its arguments is too large");
    let tool = tools.methods()[0].tool();
    assert!(tool.input_schema().unwrap().as_text().contains(r#"{"m":{"type":"object"}}"#));
}

#[test]
fn short_message_with_a_long_text_is_refused() {
    let value = EnumValueDescriptorProto { name: Some("N".repeat(60_000)), number: Some(1), options: None };
    let mut one = file(
        "a.proto",
        vec![message("M", vec![FieldDescriptorProto { label: Some(3), ..field("e", 1, 14, ".E") }])],
    );
    one.enum_type = vec![EnumDescriptorProto {
        name: Some("E".to_owned()),
        value: vec![value],
        ..EnumDescriptorProto::default()
    }];
    one.service = vec![service("S", &[("A", ".M")])];
    let tools = read(vec![one]).unwrap();
    let method = &tools.methods()[0];
    let budget = ByteBudget::new(500_000);
    let decode = |count: usize, max_bytes: usize| {
        let mut text = JsonText::new(max_bytes, budget.clone());
        text.push("[");
        let decoded = method.decode_into(&prefixed(1, &vec![1; count]), &mut text);
        assert!(text.len() < max_bytes.min(500_000) + 70_000);
        decoded.map(|()| text.into_bytes()).map_err(|error| (error.limit(), error.to_string()))
    };
    for (count, max_bytes) in [(6, 400_000), (7, 1_000_000)] {
        let text = decode(count, max_bytes).unwrap();
        assert_eq!(budget.used(), text.len().next_multiple_of(1024));
    }
    assert_eq!(budget.used(), 0);
    let too_large = (Some(TextLimit::Size(400_000)), "/e: the JSON is too large".to_owned());
    assert_eq!(decode(20_000, 400_000), Err(too_large));
    let exhausted = (Some(TextLimit::Budget(BudgetExhausted)), format!("/e: {BudgetExhausted}"));
    assert_eq!(decode(20_000, 1_000_000), Err(exhausted));
    assert_eq!(budget.used(), 0);
}

static SMALL_SET: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let text = format!("syntax = \"proto3\"; {EVERY_KIND} service S {{ rpc A(M) returns (stream M); }}");
    compile(&[("m.proto", &text)])
});

/// Arguments with a value of each kind.
const ARGUMENTS: &str = r#"{"i32":1,"i64":"2","u32":3,"s64":-4,"f32":5,"sf64":"6","float":1.5,"double":"NaN","bool":true,
    "string":"x","bytes":"AAE=","color":"RED","m":{"i32":1},"name":"n","i32s":[1,2],"strings":["a"],"ms":[{}],
    "byString":{"a":1},"byBool":{"true":{}},"any":{"@type":"a/M","i32":1},"time":"1970-01-01T00:00:01Z",
    "duration":"1s","mask":"a,b","struct":{"a":[1]},"value":{"a":null},"list":[1],"empty":{},"wrappedI64":"1"}"#;

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_descriptors_and_messages_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        message_changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        copied in any::<(prop::sample::Index, prop::sample::Index, u8)>(),
    ) {
        let mut set = SMALL_SET.clone();
        for (at, byte) in &changes {
            let at = at.index(set.len());
            set[at] = *byte;
        }
        if changes.len() % 4 == 3 {
            let (from, to) = (copied.0.index(set.len()), copied.1.index(set.len()));
            let length = usize::from(copied.2).min(set.len() - from.max(to));
            set.copy_within(from..from + length, to);
        }
        let Ok(tools) = ServiceTools::from_file_descriptor_set(&set, &MethodFilter::default()) else { return Ok(()) };
        for method in tools.methods() {
            let mut message = match method.encode(ARGUMENTS) {
                Ok(message) => message.to_vec(),
                Err(_) => vec![8; 64],
            };
            let _ = method.decode(&message);
            for (at, byte) in &message_changes {
                let at = at.index(message.len());
                message[at] = *byte;
            }
            if let Ok(result) = method.decode(&message) {
                prop_assert!(toolyard_core::Json::parse(result.clone()).is_ok(), "{}", result);
            }
        }
    }
}
