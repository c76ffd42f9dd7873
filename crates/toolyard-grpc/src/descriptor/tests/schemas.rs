//! Definitions of tools as snapshots, and schemas with the values that they accept.

use serde_json::{Value, json};

use super::support::{compile, echoed, tools};
use crate::descriptor::wire::{WireType, begin_delimited, end_delimited, put_tag, put_varint};
use crate::descriptor::{MethodFilter, ServiceTools};

/// Returns the definition of the first tool, with some line breaks.
fn definition(proto: &str) -> String {
    tools(proto).methods()[0].tool().definition.to_json().as_text().replace("},\"", "},\n\"")
}

/// Returns the schema of the arguments of the first tool as one line.
fn input(proto: &str) -> String {
    tools(proto).methods()[0].tool().input_schema().unwrap().as_text().to_owned()
}

fn output(proto: &str) -> String {
    tools(proto).methods()[0].tool().output_schema().unwrap().as_text().to_owned()
}

#[test]
fn comments_and_options_become_a_definition() {
    let text = definition(
        r#"
        package shop.v1;
        // Sells things.
        service Shop {
            // Finds [items][shop.v1.Item] of a shelf.
            //
            // (-- internal --)
            rpc Find(FindRequest) returns (Item) { option idempotency_level = NO_SIDE_EFFECTS; }
        }
        message FindRequest {
            // Number of the shelf.
            int32 shelf = 1;
            string old_name = 2 [deprecated = true]; // Name of the shelf.
            Order order = 3;

            // The second order.
            Order then = 4;
            Size size = 5;
        }
        enum Size { SIZE_UNSPECIFIED = 0; SMALL = 1; }
        // The order of results.
        enum Order {
            ORDER_UNSPECIFIED = 0;
            // The cheapest first.
            CHEAP = 1;
            BEST = 2 [deprecated = true];
        }
        message Item { string id = 1; uint64 price = 2; Order order = 3; }
    "#,
    );
    insta::assert_snapshot!(text, @r##"
    {"name":"shop_v1_Shop_Find","description":"Finds items of a shelf.","inputSchema":{"type":"object","properties":{"shelf":{"type":"integer","format":"int32","description":"Number of the shelf."},
    "oldName":{"type":"string","description":"Name of the shelf.","deprecated":true},
    "order":{"$ref":"#/$defs/Order"},
    "then":{"$ref":"#/$defs/Order","description":"The second order."},
    "size":{"type":"string","enum":["SIZE_UNSPECIFIED","SMALL"]}},
    "additionalProperties":false,"$defs":{"Order":{"type":"string","enum":["ORDER_UNSPECIFIED","CHEAP","BEST"],"description":"The order of results.\n- `CHEAP`: The cheapest first.\n- `BEST` (deprecated)"}}},
    "outputSchema":{"type":"object","properties":{"id":{"type":"string"},
    "price":{"type":"string","format":"uint64"},
    "order":{"anyOf":[{"type":"string","enum":["ORDER_UNSPECIFIED","CHEAP","BEST"]},{"type":"integer"}],"description":"The order of results."}}},
    "annotations":{"readOnlyHint":true}}
    "##);
}

#[test]
fn method_without_a_comment_has_that_of_its_service() {
    let description = |proto: &str| {
        let tools = tools(proto);
        tools.methods()[0].tool().definition.get_str("description").unwrap().into_owned()
    };
    let message = "message M {}";
    insta::assert_snapshot!(
        description(&format!("package p; {message} service S {{ rpc A(M) returns (M); }}")), @"p.S/A");
    insta::assert_snapshot!(
        description(&format!("package p; {message}\n// Serves.\nservice S {{ option deprecated = true; rpc A(M) returns (stream M); }}")), @"
    p.S/A

    Serves.

    Deprecated.

    Returns a stream of messages, as `messages`.
    ");
}

#[test]
fn shared_and_recursive_types_are_definitions() {
    insta::assert_snapshot!(input(r"
        message M { Tree tree = 1; Leaf one = 2; repeated Leaf more = 3; Once once = 4; }
        message Tree { Leaf leaf = 1; repeated Tree branches = 2; }
        message Leaf { string name = 1; }
        message Once { bool yes = 1; }
        service S { rpc A(M) returns (M); }
    "), @r##"{"type":"object","properties":{"tree":{"$ref":"#/$defs/Tree"},"one":{"$ref":"#/$defs/Leaf"},"more":{"type":"array","items":{"$ref":"#/$defs/Leaf"}},"once":{"type":"object","properties":{"yes":{"type":"boolean"}},"additionalProperties":false}},"additionalProperties":false,"$defs":{"Tree":{"type":"object","properties":{"leaf":{"$ref":"#/$defs/Leaf"},"branches":{"type":"array","items":{"$ref":"#/$defs/Tree"}}},"additionalProperties":false},"Leaf":{"type":"object","properties":{"name":{"type":"string"}},"additionalProperties":false}}}"##);
    insta::assert_snapshot!(input(r"
        message M { M m = 1; map<string, M> all = 2; }
        service S { rpc A(M) returns (M); }
    "), @r##"{"type":"object","properties":{"m":{"$ref":"#/$defs/M"},"all":{"type":"object","additionalProperties":{"$ref":"#/$defs/M"}}},"additionalProperties":false,"$defs":{"M":{"type":"object","properties":{"m":{"$ref":"#/$defs/M"},"all":{"type":"object","additionalProperties":{"$ref":"#/$defs/M"}}},"additionalProperties":false}}}"##);
}

#[test]
fn types_with_one_name_have_definitions_with_their_packages() {
    let shared =
        |package: &str| format!("syntax = \"proto3\"; package {package}; message T {{ bool a = 1; }}");
    let root = r#"syntax = "proto3"; import "a.proto"; import "b.proto";
        message M { a.T a1 = 1; a.T a2 = 2; b.T b1 = 3; b.T b2 = 4; } service S { rpc A(M) returns (M); }"#;
    let set = compile(&[("a.proto", &shared("a")), ("b.proto", &shared("b")), ("m.proto", root)]);
    let tools = ServiceTools::from_file_descriptor_set(&set, &MethodFilter::default()).unwrap();
    let schema = tools.methods()[0].tool().input_schema().unwrap().to_value();
    let names: Vec<_> = schema["$defs"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["T", "b.T"]);
    assert_eq!(schema["properties"]["b2"], json!({"$ref": "#/$defs/b.T"}));
}

#[test]
fn every_kind_has_a_schema() {
    let proto = r#"
        import "google/protobuf/any.proto"; import "google/protobuf/duration.proto"; import "google/protobuf/empty.proto";
        import "google/protobuf/field_mask.proto"; import "google/protobuf/struct.proto";
        import "google/protobuf/timestamp.proto"; import "google/protobuf/wrappers.proto";
        message M {
            int32 a = 1; uint32 b = 2; sint64 c = 3; fixed64 d = 4; float e = 5; bool f = 6; string g = 7; bytes h = 8;
            E i = 9; repeated E j = 10; map<string, int32> k = 11; map<int64, string> l = 12; map<bool, bytes> m = 13;
            google.protobuf.Any n = 14; google.protobuf.Timestamp o = 15; google.protobuf.Duration p = 16;
            google.protobuf.FieldMask q = 17; google.protobuf.Struct r = 18; google.protobuf.Value s = 19;
            google.protobuf.ListValue t = 20; google.protobuf.Empty u = 21; google.protobuf.NullValue v = 22;
            google.protobuf.UInt64Value w = 23; google.protobuf.StringValue x = 24;
        }
        enum E { A = 0; B = 1; }
        service S { rpc A(M) returns (M); }
    "#;
    insta::assert_snapshot!(input(proto).replace("},\"", "},\n\""), @r#"
    {"type":"object","properties":{"a":{"type":"integer","format":"int32"},
    "b":{"type":"integer","format":"uint32","minimum":0},
    "c":{"type":["integer","string"],"format":"int64"},
    "d":{"type":["integer","string"],"format":"uint64","minimum":0},
    "e":{"type":["number","string"],"format":"float"},
    "f":{"type":"boolean"},
    "g":{"type":"string"},
    "h":{"type":"string","contentEncoding":"base64"},
    "i":{"type":"string","enum":["A","B"]},
    "j":{"type":"array","items":{"type":"string","enum":["A","B"]}},
    "k":{"type":"object","additionalProperties":{"type":"integer","format":"int32"}},
    "l":{"type":"object","propertyNames":{"pattern":"^-?[0-9]+$"},
    "additionalProperties":{"type":"string"}},
    "m":{"type":"object","propertyNames":{"enum":["true","false"]},
    "additionalProperties":{"type":"string","contentEncoding":"base64"}},
    "n":{"type":"object","properties":{"@type":{"type":"string","description":"Type of the value, such as `type.googleapis.com/google.protobuf.Duration`"}},
    "required":["@type"]},
    "o":{"type":"string","format":"date-time"},
    "p":{"type":"string","pattern":"^-?[0-9]+(\\.[0-9]{1,9})?s$","description":"Duration in seconds, such as `1.5s`"},
    "q":{"type":"string","description":"Paths of fields, separated by commas, such as `displayName,address.city`"},
    "r":{"type":"object"},
    "s":{},
    "t":{"type":"array","items":{}},
    "u":{"type":"object","properties":{},
    "additionalProperties":false},
    "v":{"type":"null"},
    "w":{"type":["integer","string"],"format":"uint64","minimum":0},
    "x":{"type":"string"}},
    "additionalProperties":false}
    "#);
    insta::assert_snapshot!(output(proto).replace("},\"", "},\n\""), @r##"
    {"type":"object","properties":{"a":{"type":"integer","format":"int32"},
    "b":{"type":"integer","format":"uint32","minimum":0},
    "c":{"type":"string","format":"int64"},
    "d":{"type":"string","format":"uint64"},
    "e":{"type":["number","string"],"format":"float"},
    "f":{"type":"boolean"},
    "g":{"type":"string"},
    "h":{"type":"string","contentEncoding":"base64"},
    "i":{"$ref":"#/$defs/E"},
    "j":{"type":"array","items":{"$ref":"#/$defs/E"}},
    "k":{"type":"object","additionalProperties":{"type":"integer","format":"int32"}},
    "l":{"type":"object","propertyNames":{"pattern":"^-?[0-9]+$"},
    "additionalProperties":{"type":"string"}},
    "m":{"type":"object","propertyNames":{"enum":["true","false"]},
    "additionalProperties":{"type":"string","contentEncoding":"base64"}},
    "n":{"type":"object"},
    "o":{"type":"string","format":"date-time"},
    "p":{"type":"string","pattern":"^-?[0-9]+(\\.[0-9]{1,9})?s$","description":"Duration in seconds, such as `1.5s`"},
    "q":{"type":"string","description":"Paths of fields, separated by commas, such as `displayName,address.city`"},
    "r":{"type":"object"},
    "s":{},
    "t":{"type":"array","items":{}},
    "u":{"type":"object","properties":{}},
    "v":{"type":"null"},
    "w":{"type":"string","format":"uint64"},
    "x":{"type":"string"}},
    "$defs":{"E":{"anyOf":[{"type":"string","enum":["A","B"]},{"type":"integer"}]}}}
    "##);
}

#[test]
fn oneofs_are_exclusive_and_optional() {
    let proto = |fields: usize| {
        let fields: String = (0..fields).map(|field| format!("int32 f{field} = {};", field + 1)).collect();
        format!(
            "message M {{ oneof o {{ {fields} }} int32 x = 100; }} message N {{ M m = 1; }}
            service S {{ rpc A(M) returns (M); rpc B(N) returns (N); }}"
        )
    };
    insta::assert_snapshot!(input(&proto(2)), @r#"{"type":"object","properties":{"f0":{"type":"integer","format":"int32","description":"At most one of `f0`, `f1`."},"f1":{"type":"integer","format":"int32"},"x":{"type":"integer","format":"int32"}},"additionalProperties":false}"#);
    for fields in [1, 2, 3, 4, 5, 12] {
        let tools = tools(&proto(fields));
        let [method, nested] = tools.methods() else { panic!("two methods") };
        let schema = nested.tool().input_schema().unwrap().to_value();
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        let check = |value: Value, expected: bool| {
            assert_eq!(echoed(method, &value.to_string()).is_ok(), expected, "{fields} {value}");
            let value = json!({"m": value});
            assert_eq!(validator.is_valid(&value), expected, "{fields} {value}");
            assert_eq!(echoed(nested, &value.to_string()).is_ok(), expected, "{fields} {value}");
        };
        check(json!({}), true);
        check(json!({"x": 1}), true);
        for one in 0..fields {
            check(json!({format!("f{one}"): 1, "x": 1}), true);
            for other in one + 1..fields {
                check(json!({format!("f{one}"): 1, format!("f{other}"): 1}), false);
            }
        }
    }
    let two = "message M { oneof a { int32 b = 1; int32 c = 2; } oneof d { M e = 3; M f = 4; } optional int32 g = 5; }
        service S { rpc A(M) returns (M); }";
    insta::assert_snapshot!(input(two), @r##"{"type":"object","properties":{"b":{"type":"integer","format":"int32","description":"At most one of `b`, `c`."},"c":{"type":"integer","format":"int32"},"e":{"$ref":"#/$defs/M","description":"At most one of `e`, `f`."},"f":{"$ref":"#/$defs/M"},"g":{"type":"integer","format":"int32"}},"additionalProperties":false,"$defs":{"M":{"type":"object","properties":{"b":{"type":"integer","format":"int32","description":"At most one of `b`, `c`."},"c":{"type":"integer","format":"int32"},"e":{"$ref":"#/$defs/M","description":"At most one of `e`, `f`."},"f":{"$ref":"#/$defs/M"},"g":{"type":"integer","format":"int32"}},"additionalProperties":false,"not":{"anyOf":[{"required":["b","c"]},{"required":["e","f"]}]}}}}"##);
}

#[test]
fn streams_have_a_list_of_messages() {
    let tree = "message M { repeated M m = 1; } service S { rpc A(M) returns (stream M); }";
    insta::assert_snapshot!(output(tree), @r##"{"type":"object","properties":{"messages":{"type":"array","items":{"type":"object","properties":{"m":{"type":"array","items":{"$ref":"#/$defs/M"}}}}},"truncated":{"type":"boolean","description":"True if further messages are left out"}},"required":["messages"],"$defs":{"M":{"type":"object","properties":{"m":{"type":"array","items":{"$ref":"#/$defs/M"}}}}}}"##);
    let times = r#"import "google/protobuf/timestamp.proto"; message M {}
        service S { rpc A(M) returns (stream google.protobuf.Timestamp); }"#;
    insta::assert_snapshot!(output(times), @r#"{"type":"object","properties":{"messages":{"type":"array","items":{"type":"string","format":"date-time"}},"truncated":{"type":"boolean","description":"True if further messages are left out"}},"required":["messages"]}"#);
}

#[test]
fn arguments_that_are_no_object_have_a_member_value() {
    let proto = |name: &str| {
        format!(
            "import \"google/protobuf/wrappers.proto\"; import \"google/protobuf/struct.proto\"; import \"google/protobuf/empty.proto\";
            service S {{ rpc A(google.protobuf.{name}) returns (google.protobuf.{name}); }}"
        )
    };
    insta::assert_snapshot!(input(&proto("Int64Value")), @r#"{"type":"object","properties":{"value":{"type":["integer","string"],"format":"int64"}},"required":["value"]}"#);
    insta::assert_snapshot!(output(&proto("Int64Value")), @r#"{"type":"string","format":"int64"}"#);
    insta::assert_snapshot!(input(&proto("Struct")), @r#"{"type":"object"}"#);
    insta::assert_snapshot!(input(&proto("Empty")), @r#"{"type":"object","properties":{},"additionalProperties":false}"#);
}

#[test]
fn field_behavior_is_honoured() {
    let behavior = r#"syntax = "proto3"; package google.api; import "google/protobuf/descriptor.proto";
        extend google.protobuf.FieldOptions { repeated FieldBehavior field_behavior = 1052 [packed = false]; }
        enum FieldBehavior { FIELD_BEHAVIOR_UNSPECIFIED = 0; OPTIONAL = 1; REQUIRED = 2; OUTPUT_ONLY = 3; }"#;
    let root = r#"syntax = "proto3"; import "google/api/field_behavior.proto";
        message M {
            string name = 1 [(google.api.field_behavior) = REQUIRED];
            string id = 2 [(google.api.field_behavior) = OUTPUT_ONLY];
            Part part = 3;
        }
        message Part { string name = 1 [(google.api.field_behavior) = REQUIRED]; }
        service S { rpc A(M) returns (M); }"#;
    let set = compile(&[("google/api/field_behavior.proto", behavior), ("m.proto", root)]);
    let tools = ServiceTools::from_file_descriptor_set(&set, &MethodFilter::default()).unwrap();
    let method = &tools.methods()[0];
    insta::assert_snapshot!(method.tool().input_schema().unwrap().as_text(), @r#"{"type":"object","properties":{"name":{"type":"string"},"part":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}},"required":["name"],"additionalProperties":false}"#);
    insta::assert_snapshot!(method.tool().output_schema().unwrap().as_text(), @r#"{"type":"object","properties":{"name":{"type":"string"},"id":{"type":"string"},"part":{"type":"object","properties":{"name":{"type":"string"}}}}}"#);
    let check = |arguments: &str, expected: Result<&str, &str>| {
        assert_eq!(echoed(method, arguments).as_deref().map_err(String::as_str), expected);
    };
    // A result can be sent again, and an update contains parts.
    check(r#"{"name":"a","id":"b","part":{}}"#, Ok(r#"{"name":"a","id":"b","part":{}}"#));
    check(r#"{"name":""}"#, Ok("{}"));
    check("{}", Err("the required field `name` is missing"));
}

#[test]
fn large_schemas_are_cut_at_the_deepest_types() {
    let fields = |kind: &str, count: usize| {
        (0..count)
            .map(|field| format!("\n// {}\n {kind} field_{field} = {};\n", "x".repeat(200), field + 1))
            .collect::<String>()
    };
    let messages: String = (0..40)
        .map(|level| format!("message L{level} {{ {} L{} next = 999; }}\n", fields("string", 100), level + 1))
        .collect();
    let tools = tools(&format!("{messages} message L40 {{}} service S {{ rpc A(L0) returns (L0); }}"));
    let tool = tools.methods()[0].tool();
    let schema = tool.input_schema().unwrap();
    assert!((50_000..=64_000).contains(&schema.as_bytes().len()), "{}", schema.as_bytes().len());
    let schema = schema.to_value();
    assert!(schema["properties"]["field1"]["description"].is_string(), "descriptions of arguments stay");
    assert_eq!(schema["properties"]["next"]["properties"]["field0"], json!({"type": "string"}));
    assert!(schema.to_string().contains(r#""next":{"type":"object"}"#));
    assert!(tool.definition.get_str("description").unwrap().contains("cut for size"));
    let output = tool.output_schema().unwrap();
    assert!(output.as_bytes().len() <= 8_000);
    jsonschema::draft202012::new(&output.to_value()).unwrap();
}

/// A field of a hand-written message.
enum Part {
    Number(u32, u64),
    Text(u32, &'static str),
    Message(u32, Vec<Part>),
}

fn encoded(parts: &[Part]) -> Vec<u8> {
    let mut out = Vec::new();
    for part in parts {
        match part {
            Part::Number(number, value) => {
                put_tag(&mut out, *number, WireType::Varint);
                put_varint(&mut out, *value);
            }
            Part::Text(number, text) => {
                put_tag(&mut out, *number, WireType::Bytes);
                put_varint(&mut out, text.len() as u64);
                out.extend_from_slice(text.as_bytes());
            }
            Part::Message(number, parts) => {
                put_tag(&mut out, *number, WireType::Bytes);
                let start = begin_delimited(&mut out);
                out.extend_from_slice(&encoded(parts));
                end_delimited(&mut out, start);
            }
        }
    }
    out
}

#[test]
fn features_of_editions_are_resolved() {
    use Part::{Message, Number, Text};
    let field = |name: &'static str, number: u64, label: u64, kind: u64, features: Vec<Part>| {
        let options = Message(8, vec![Message(21, features)]);
        Message(2, vec![Text(1, name), Number(3, number), Number(4, label), Number(5, kind), options])
    };
    let nested = |name: &'static str, number: u64, features: Vec<Part>| {
        let options = Message(8, vec![Message(21, features)]);
        Message(
            2,
            vec![Text(1, name), Number(3, number), Number(4, 1), Number(5, 11), Text(6, ".M"), options],
        )
    };
    let file = encoded(&[
        Text(1, "e.proto"),
        Text(12, "editions"),
        Number(14, 1000),
        Message(8, vec![Message(50, vec![Number(5, 2)])]),
        Message(
            4,
            vec![
                Text(1, "M"),
                field("explicit", 1, 1, 5, vec![]),
                field("implicit", 2, 1, 5, vec![Number(1, 2)]),
                field("required", 3, 1, 5, vec![Number(1, 3)]),
                field("packed", 4, 3, 5, vec![]),
                field("expanded", 5, 3, 5, vec![Number(3, 2)]),
                nested("delimited", 6, vec![]),
                nested("prefixed", 7, vec![Number(5, 1)]),
            ],
        ),
        Message(6, vec![Text(1, "S"), Message(2, vec![Text(1, "A"), Text(2, ".M"), Text(3, ".M")])]),
    ]);
    let tools = ServiceTools::from_encoded_files(&[file], &MethodFilter::default()).unwrap();
    let method = &tools.methods()[0];
    let check = |arguments: &str, expected: &[u8]| {
        assert_eq!(method.encode(arguments).unwrap(), expected, "{arguments}");
        let read = method.decode(expected).unwrap();
        assert_eq!(method.encode(&read).unwrap(), expected, "{arguments}");
    };
    check(r#"{"explicit":0,"implicit":0,"required":0}"#, &[8, 0, 24, 0]);
    check(r#"{"required":1,"packed":[1,2],"expanded":[1,2]}"#, &[24, 1, 34, 2, 1, 2, 40, 1, 40, 2]);
    check(
        r#"{"required":1,"delimited":{"required":2},"prefixed":{"required":3}}"#,
        &[24, 1, 51, 24, 2, 52, 58, 2, 24, 3],
    );
    assert!(method.encode("{}").is_err());
}
