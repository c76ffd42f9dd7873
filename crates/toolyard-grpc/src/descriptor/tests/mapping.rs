//! The proto3 JSON mapping as tables: the examples of its documentation, and of the conformance suite of protocol
//! buffers.

use super::support::{compile, echo, echoed, tools};
use crate::descriptor::{MethodFilter, MethodTool, ServiceTools};

/// A message with a field of each kind.
pub(super) const EVERY_KIND: &str = r#"
    import "google/protobuf/any.proto";
    import "google/protobuf/duration.proto";
    import "google/protobuf/empty.proto";
    import "google/protobuf/field_mask.proto";
    import "google/protobuf/struct.proto";
    import "google/protobuf/timestamp.proto";
    import "google/protobuf/wrappers.proto";
    message M {
        int32 i32 = 1; int64 i64 = 2; uint32 u32 = 3; uint64 u64 = 4; sint32 s32 = 5; sint64 s64 = 6;
        fixed32 f32 = 7; fixed64 f64 = 8; sfixed32 sf32 = 9; sfixed64 sf64 = 10;
        float float = 11; double double = 12; bool bool = 13; string string = 14; bytes bytes = 15;
        Color color = 16; M m = 17; optional int32 optional = 18;
        oneof choice { string name = 20; int32 number = 21; M message = 22; google.protobuf.NullValue none = 23; }
        repeated int32 i32s = 30; repeated string strings = 31; repeated Color colors = 32; repeated M ms = 33;
        repeated google.protobuf.Value values = 34;
        map<string, int32> by_string = 40; map<int64, string> by_i64 = 41; map<bool, M> by_bool = 42;
        map<uint32, Color> colors_by_number = 43; map<sint32, bytes> by_s32 = 44; map<fixed64, float> by_f64 = 45;
        google.protobuf.Any any = 50; google.protobuf.Timestamp time = 51; google.protobuf.Duration duration = 52;
        google.protobuf.FieldMask mask = 53; google.protobuf.Struct struct = 54; google.protobuf.Value value = 55;
        google.protobuf.ListValue list = 56; google.protobuf.Empty empty = 57;
        google.protobuf.NullValue null = 58;
        google.protobuf.DoubleValue wrapped_double = 60; google.protobuf.FloatValue wrapped_float = 61;
        google.protobuf.Int64Value wrapped_i64 = 62; google.protobuf.UInt64Value wrapped_u64 = 63;
        google.protobuf.Int32Value wrapped_i32 = 64; google.protobuf.UInt32Value wrapped_u32 = 65;
        google.protobuf.BoolValue wrapped_bool = 66; google.protobuf.StringValue wrapped_string = 67;
        google.protobuf.BytesValue wrapped_bytes = 68;
        string renamed = 70 [json_name = "other name"];
        string foo_bar = 71; string _foo2_3bar = 72;
    }
    enum Color { option allow_alias = true; UNKNOWN = 0; RED = 1; CRIMSON = 1; BLUE = -2; }
"#;

/// Each case has arguments, and the result or the problem; `=` is a result that equals the arguments.
fn check(method: &MethodTool, cases: &[(&str, Result<&str, &str>)]) {
    let mut failed = Vec::new();
    for (arguments, expected) in cases {
        let result = echoed(method, arguments);
        let expected = expected.map(|text| if text == "=" { arguments } else { text });
        if result.as_deref().map_err(String::as_str) != expected {
            failed.push(format!("{arguments}: {result:?}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn examples_of_the_documentation_are_converted() {
    check(
        &echo(EVERY_KIND),
        &[
            (r#"{"m":{"fooBar":"v"}}"#, Ok("=")),
            (r#"{"fooBar":"v","Foo23bar":"w"}"#, Ok("=")),
            (r#"{"foo_bar":"v","_foo2_3bar":"w"}"#, Ok(r#"{"fooBar":"v","Foo23bar":"w"}"#)),
            (r#"{"other name":"v"}"#, Ok("=")),
            (r#"{"renamed":"v"}"#, Ok(r#"{"other name":"v"}"#)),
            (r#"{"color":"RED"}"#, Ok("=")),
            (r#"{"byString":{"k":1}}"#, Ok("=")),
            (r#"{"strings":["v",""]}"#, Ok("=")),
            (r#"{"bool":true}"#, Ok("=")),
            (r#"{"bool":false}"#, Ok("{}")),
            (r#"{"string":"Hello World!"}"#, Ok("=")),
            (r#"{"bytes":"YWJjMTIzIT8kKiYoKSctPUB+"}"#, Ok("=")),
            (r#"{"i32":1}"#, Ok("=")),
            (r#"{"i32":-10}"#, Ok("=")),
            (r#"{"i32":0}"#, Ok("{}")),
            (r#"{"i64":"1"}"#, Ok("=")),
            (r#"{"i64":"-10"}"#, Ok("=")),
            (r#"{"float":1.1,"double":-10}"#, Ok("=")),
            (r#"{"double":"NaN"}"#, Ok("=")),
            (
                r#"{"double":"Infinity","float":"-Infinity"}"#,
                Ok(r#"{"float":"-Infinity","double":"Infinity"}"#),
            ),
            (r#"{"any":{"@type":"example.com/M","i32":1}}"#, Ok("=")),
            (r#"{"any":{"@type":"type.googleapis.com/google.protobuf.Duration","value":"1.212s"}}"#, Ok("=")),
            (r#"{"time":"1972-01-01T10:00:20.021Z"}"#, Ok("=")),
            (r#"{"duration":"1.000340012s"}"#, Ok("=")),
            (r#"{"duration":"1s"}"#, Ok("=")),
            (r#"{"struct":{"a":[1.5,null,"x",{"b":false}]}}"#, Ok("=")),
            (
                r#"{"wrappedI32":2,"wrappedI64":"2","wrappedString":"foo"}"#,
                Ok(r#"{"wrappedI64":"2","wrappedI32":2,"wrappedString":"foo"}"#),
            ),
            (r#"{"wrappedBool":true,"wrappedDouble":0}"#, Ok(r#"{"wrappedDouble":0,"wrappedBool":true}"#)),
            (r#"{"wrappedBool":null}"#, Ok("{}")),
            (r#"{"mask":"f.fooBar,h"}"#, Ok("=")),
            (r#"{"list":["foo","bar"]}"#, Ok("=")),
            (r#"{"value":"x"}"#, Ok("=")),
            (r#"{"value":null}"#, Ok("=")),
            (r#"{"none":null}"#, Ok("=")),
            (r#"{"empty":{}}"#, Ok("=")),
        ],
    );
}

#[test]
fn numbers_are_exact_and_have_their_range() {
    check(
        &echo(EVERY_KIND),
        &[
            (
                r#"{"i32":2147483647,"i64":"9223372036854775807","u32":4294967295,"u64":"18446744073709551615"}"#,
                Ok("="),
            ),
            (
                r#"{"i32":-2147483648,"i64":"-9223372036854775808","s32":-2147483648,"s64":"-9223372036854775808"}"#,
                Ok("="),
            ),
            (
                r#"{"f32":4294967295,"f64":"18446744073709551615","sf32":-2147483648,"sf64":"-9223372036854775808"}"#,
                Ok("="),
            ),
            (
                r#"{"i64":9007199254740993,"u64":18446744073709551615}"#,
                Ok(r#"{"i64":"9007199254740993","u64":"18446744073709551615"}"#),
            ),
            (
                r#"{"i32":"12","u32":1e2,"i64":"1e2","u64":1.0}"#,
                Ok(r#"{"i32":12,"i64":"100","u32":100,"u64":"1"}"#),
            ),
            (r#"{"i32":2147483648}"#, Err("/i32: out of range of an integer of 32 bits")),
            (r#"{"i64":9223372036854775808}"#, Err("/i64: out of range of an integer of 64 bits")),
            (r#"{"u64":18446744073709551616}"#, Err("/u64: out of range of an unsigned integer of 64 bits")),
            (r#"{"u32":-1}"#, Err("/u32: out of range of an unsigned integer of 32 bits")),
            (r#"{"i32":0.5}"#, Err("/i32: expected an integer of 32 bits, found a fraction")),
            (r#"{"i32":""}"#, Err("/i32: expected an integer of 32 bits, found another text")),
            (r#"{"i64":" 1"}"#, Err("/i64: expected an integer of 64 bits, found another text")),
            (r#"{"i64":"+1"}"#, Err("/i64: expected an integer of 64 bits, found another text")),
            (r#"{"i64":"0x1"}"#, Err("/i64: expected an integer of 64 bits, found another text")),
            (r#"{"i32":true}"#, Err("/i32: expected an integer of 32 bits, found a boolean")),
            (r#"{"double":"1.5","float":"1e-3"}"#, Ok(r#"{"float":0.001,"double":1.5}"#)),
            (
                r#"{"double":1.7976931348623157e308,"float":3.4028235e38}"#,
                Ok(r#"{"float":3.4028235e38,"double":1.7976931348623157e308}"#),
            ),
            (r#"{"double":-0.0}"#, Ok(r#"{"double":-0}"#)),
            (r#"{"double":1e400}"#, Err("/double: out of range of a float of 64 bits")),
            (r#"{"float":1e39}"#, Err("/float: out of range of a float of 32 bits")),
            (r#"{"float":"-1e39"}"#, Err("/float: out of range of a float of 32 bits")),
            (
                r#"{"double":"inf"}"#,
                Err("/double: expected a number, `NaN`, `Infinity` or `-Infinity`, found another text"),
            ),
            (
                r#"{"double":"nan"}"#,
                Err("/double: expected a number, `NaN`, `Infinity` or `-Infinity`, found another text"),
            ),
            (r#"{"wrappedDouble":"NaN","wrappedFloat":"Infinity"}"#, Ok("=")),
            (
                r#"{"wrappedU64":18446744073709551615,"wrappedU32":"7"}"#,
                Ok(r#"{"wrappedU64":"18446744073709551615","wrappedU32":7}"#),
            ),
        ],
    );
}

#[test]
fn other_values_are_refused_with_their_location() {
    check(
        &echo(EVERY_KIND),
        &[
            ("[]", Err("expected an object, found an array")),
            (r#"{"m":[]}"#, Err("/m: expected an object, found an array")),
            (r#"{"m":{"m":{"strings":["",1]}}}"#, Err("/m/m/strings/1: expected a string, found a number")),
            (r#"{"strings":"a"}"#, Err("/strings: expected an array, found a string")),
            (r#"{"strings":[null]}"#, Err("/strings/0: expected a string, found null")),
            (r#"{"ms":[null]}"#, Err("/ms/0: expected an object, found null")),
            (r#"{"values":[null,1]}"#, Ok("=")),
            (
                r#"{"byString":{"a/b":null}}"#,
                Err("/byString/a~1b: expected an integer of 32 bits, found null"),
            ),
            (r#"{"byI64":{"1e2":"a","-7":"b"}}"#, Ok(r#"{"byI64":{"-7":"b","100":"a"}}"#)),
            (r#"{"byI64":{"x":"a"}}"#, Err("/byI64/x: expected an integer of 64 bits, found another text")),
            (
                r#"{"byBool":{"true":{},"false":{"i32":1}}}"#,
                Ok(r#"{"byBool":{"false":{"i32":1},"true":{}}}"#),
            ),
            (r#"{"byBool":{"1":{}}}"#, Err("/byBool/1: expected the key `true` or `false`")),
            (
                r#"{"byS32":{"-1":"AA=="},"byF64":{"18446744073709551615":"NaN"},"colorsByNumber":{"1":"BLUE"}}"#,
                Ok(
                    r#"{"colorsByNumber":{"1":"BLUE"},"byS32":{"-1":"AA=="},"byF64":{"18446744073709551615":"NaN"}}"#,
                ),
            ),
            (r#"{"bool":"true"}"#, Err("/bool: expected a boolean, found a string")),
            (r#"{"string":1}"#, Err("/string: expected a string, found a number")),
            (r#"{"string":"\ud800"}"#, Err("/string: expected Unicode text, found half of a surrogate pair")),
            (r#"{"string":"\ud83d\ude00\u0000\n"}"#, Ok("{\"string\":\"\u{1f600}\\u0000\\n\"}")),
            (r#"{"fooBaz":1}"#, Err("unknown field `fooBaz`. Did you mean `fooBar` or `Foo23bar`?")),
            (r#"{"m":{"qqqqqq":1}}"#, Err("/m: unknown field `qqqqqq`")),
            (r#"{"m":{"fooBar":"a","foo_bar":"b"}}"#, Err("/m/foo_bar: the field is present twice")),
            (r#"{"m":{"i32":1,"i32":2}}"#, Err("/m/i32: the field is present twice")),
        ],
    );
}

#[test]
fn bytes_have_either_alphabet_and_optional_padding() {
    check(
        &echo(EVERY_KIND),
        &[
            (r#"{"bytes":"-_8"}"#, Ok(r#"{"bytes":"+/8="}"#)),
            (r#"{"bytes":"+/8"}"#, Ok(r#"{"bytes":"+/8="}"#)),
            (r#"{"bytes":"-_8="}"#, Ok(r#"{"bytes":"+/8="}"#)),
            (r#"{"bytes":""}"#, Ok("{}")),
            (r#"{"wrappedBytes":"","bytes":"AA=="}"#, Ok(r#"{"bytes":"AA==","wrappedBytes":""}"#)),
            (r#"{"bytes":"a"}"#, Err("/bytes: expected base64, found another text")),
            (r#"{"bytes":"+_8="}"#, Err("/bytes: expected base64, found another text")),
            (r#"{"bytes":[1]}"#, Err("/bytes: expected a string with base64, found an array")),
        ],
    );
}

#[test]
fn enums_have_names_or_numbers() {
    check(
        &echo(EVERY_KIND),
        &[
            (r#"{"color":"CRIMSON"}"#, Ok(r#"{"color":"RED"}"#)),
            (r#"{"color":-2}"#, Ok(r#"{"color":"BLUE"}"#)),
            (r#"{"color":1.0}"#, Ok(r#"{"color":"RED"}"#)),
            (r#"{"color":77,"colors":[0,5]}"#, Ok(r#"{"color":77,"colors":["UNKNOWN",5]}"#)),
            (r#"{"color":"UNKNOWN"}"#, Ok("{}")),
            (
                r#"{"color":"CRIMSOM"}"#,
                Err("/color: `CRIMSOM` is no value of the enum `Color`. Did you mean `CRIMSON`?"),
            ),
            (r#"{"color":"red"}"#, Err("/color: `red` is no value of the enum `Color`. Did you mean `RED`?")),
            (r#"{"color":3000000000}"#, Err("/color: expected a number of 32 bits, or the name of a value")),
            (r#"{"color":true}"#, Err("/color: expected the name of an enum value, found a boolean")),
            (r#"{"null":null}"#, Ok("{}")),
            (r#"{"none":"NULL_VALUE"}"#, Ok(r#"{"none":null}"#)),
        ],
    );
}

#[test]
fn null_is_no_value_and_oneofs_have_one() {
    check(
        &echo(EVERY_KIND),
        &[
            (
                r#"{"i32":null,"m":null,"strings":null,"byString":null,"color":null,"time":null,"empty":null}"#,
                Ok("{}"),
            ),
            (r#"{"optional":0}"#, Ok("=")),
            (r#"{"optional":null}"#, Ok("{}")),
            (r#"{"name":""}"#, Ok("=")),
            (r#"{"name":"a","number":null}"#, Ok(r#"{"name":"a"}"#)),
            (r#"{"name":null,"message":{}}"#, Ok(r#"{"message":{}}"#)),
            (r#"{"name":"a","number":1}"#, Err("`name` and `number` exclude each other (oneof `choice`)")),
            (r#"{"name":"a","none":null}"#, Err("`name` and `none` exclude each other (oneof `choice`)")),
        ],
    );
}

#[test]
fn well_known_types_have_their_forms() {
    check(
        &echo(EVERY_KIND),
        &[
            (r#"{"time":"1970-01-01T00:00:00+01:00"}"#, Ok(r#"{"time":"1969-12-31T23:00:00Z"}"#)),
            (r#"{"time":"0001-01-01T00:00:00Z"}"#, Ok("=")),
            (r#"{"time":"9999-12-31T23:59:59.999999999Z"}"#, Ok("=")),
            (
                r#"{"time":"0000-01-01T00:00:00Z"}"#,
                Err(
                    "/time: expected a time of the years 1 to 9999 such as `2026-01-31T12:00:00Z`, found another text",
                ),
            ),
            (
                r#"{"time":0}"#,
                Err(
                    "/time: expected a time of the years 1 to 9999 such as `2026-01-31T12:00:00Z`, found a number",
                ),
            ),
            (r#"{"duration":"-315576000000s"}"#, Ok("=")),
            (
                r#"{"duration":"315576000001s"}"#,
                Err("/duration: expected a duration in seconds such as `1.5s`, found another text"),
            ),
            (r#"{"mask":""}"#, Ok("=")),
            (
                r#"{"mask":"foo_bar"}"#,
                Err(
                    "/mask: expected paths of fields in lowerCamelCase, separated by commas, found another text",
                ),
            ),
            (r#"{"struct":{"b":1,"a":{"c":[]}}}"#, Ok(r#"{"struct":{"a":{"c":[]},"b":1}}"#)),
            (r#"{"struct":[]}"#, Err("/struct: expected an object, found an array")),
            (r#"{"value":[{"a":"NaN"}]}"#, Ok("=")),
            (r#"{"value":{"a":1e999}}"#, Err("/value/a: out of range of a float of 64 bits")),
            (r#"{"list":[[],[null]]}"#, Ok("=")),
            (r#"{"list":{}}"#, Err("/list: expected an array, found an object")),
            (r#"{"empty":{"a":1}}"#, Err("/empty: unknown field `a`")),
        ],
    );
}

#[test]
fn any_has_the_members_of_its_type() {
    let long = "x".repeat(70);
    check(
        &echo(EVERY_KIND),
        &[
            (
                r#"{"any":{"i32":1,"@type":"a.b/M","color":"RED"}}"#,
                Ok(r#"{"any":{"@type":"a.b/M","i32":1,"color":"RED"}}"#),
            ),
            (r#"{"any":{}}"#, Ok("=")),
            (r#"{"any":{"@type":"a/google.protobuf.Any","value":{"@type":"a/M"}}}"#, Ok("=")),
            (
                r#"{"any":{"@type":"a/google.protobuf.Int64Value","value":1}}"#,
                Ok(r#"{"any":{"@type":"a/google.protobuf.Int64Value","value":"1"}}"#),
            ),
            (r#"{"any":{"@type":"a/google.protobuf.Struct","value":{"a":1}}}"#, Ok("=")),
            (r#"{"any":{"@type":"a/google.protobuf.Value","value":null}}"#, Ok("=")),
            (r#"{"any":{"@type":"a/google.protobuf.Empty"}}"#, Ok("=")),
            (
                r#"{"any":{"@type":"a/google.protobuf.Empty","value":{}}}"#,
                Ok(r#"{"any":{"@type":"a/google.protobuf.Empty"}}"#),
            ),
            (r#"{"any":{"@type":"a/of.Another","value":"AAE="}}"#, Ok("=")),
            (
                r#"{"any":{"@type":"a/of.Another","value":{}}}"#,
                Err("/any/value: the type `of.Another` is unknown: expected its bytes in base64"),
            ),
            (r#"{"any":{"@type":"a/of.Another","x":1}}"#, Err("/any: unknown field `x`")),
            (r#"{"any":{"i32":1}}"#, Err("/any: the required field `@type` is missing")),
            (
                r#"{"any":{"@type":"M"}}"#,
                Err("/any/@type: expected a type such as `type.googleapis.com/package.Message`"),
            ),
            (r#"{"any":{"@type":1}}"#, Err("/any/@type: expected a string, found a number")),
            (r#"{"any":{"@type":"a/M","x":1}}"#, Err("/any: unknown field `x`")),
            (
                r#"{"any":{"@type":"a/google.protobuf.Duration","value":1}}"#,
                Err("/any/value: expected a duration in seconds such as `1.5s`, found a number"),
            ),
            (&format!(r#"{{"{long}":1}}"#), Err(&format!("unknown field `{}...`", "x".repeat(64)))),
        ],
    );
}

#[test]
fn nesting_is_limited() {
    let method = echo(EVERY_KIND);
    let check = |start: &str, end: &str, accepted: usize| {
        for (depth, expected) in [(accepted, true), (accepted + 1, false), (500, false)] {
            let arguments = format!(r#"{{"i32":1{}{}}}"#, start.repeat(depth), end.repeat(depth));
            let result = echoed(&method, &arguments);
            assert_eq!(result.is_ok(), expected, "{start} {depth} {result:?}");
            if let Err(problem) = result {
                assert!(problem.ends_with("nested more than 100 levels deep"), "{problem}");
            }
        }
    };
    check(r#","m":{"i32":1"#, "}", 99);
    check(r#","any":{"@type":"a/M""#, "}", 49);
    let value = |depth: usize| format!(r#"{{"value":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
    assert!(echoed(&method, &value(98)).is_ok());
    assert!(echoed(&method, &value(101)).is_err());
}

#[test]
fn arguments_of_a_type_that_is_no_object_are_its_value() {
    let method = |name: &str| {
        let import = r#"import "google/protobuf/struct.proto"; import "google/protobuf/timestamp.proto";
            import "google/protobuf/wrappers.proto"; import "google/protobuf/any.proto"; import "google/protobuf/empty.proto";"#;
        let service =
            format!("service S {{ rpc A(google.protobuf.{name}) returns (google.protobuf.{name}); }}");
        tools(&format!("{import} {service}")).methods()[0].clone()
    };
    check(
        &method("StringValue"),
        &[
            (r#"{"value":"a"}"#, Ok(r#""a""#)),
            ("{}", Ok(r#""""#)),
            (r#"{"values":"a"}"#, Err("unknown field `values`. Did you mean `value`?")),
            (r#"{"value":1}"#, Err("/value: expected a string, found a number")),
        ],
    );
    check(&method("Timestamp"), &[(r#"{"value":"1970-01-01T00:00:00Z"}"#, Ok(r#""1970-01-01T00:00:00Z""#))]);
    check(&method("Value"), &[(r#"{"value":null}"#, Ok("null")), (r#"{"value":[1]}"#, Ok("[1]"))]);
    check(&method("Struct"), &[(r#"{"value":null}"#, Ok("="))]);
    check(&method("Any"), &[(r#"{"@type":"a/google.protobuf.Value","value":1}"#, Ok("="))]);
    check(&method("Empty"), &[("{}", Ok("=")), (r#"{"a":1}"#, Err("unknown field `a`"))]);
}

#[test]
fn proto2_has_required_fields_groups_extensions_and_closed_enums() {
    let text = r#"
        syntax = "proto2";
        package p;
        message M {
            required int32 id = 1;
            optional Kind kind = 2 [default = B];
            repeated Kind kinds = 3;
            optional group Part = 4 { required string name = 1; optional M m = 2; }
            repeated group Parts = 5 { optional int32 n = 1; }
            repeated int32 numbers = 6;
            extensions 100 to 200;
        }
        enum Kind { A = 1; B = 2; }
        extend M { optional string note = 100; repeated M more = 101; }
        message Scope { extend M { optional int32 inner = 102; } }
        service S { rpc Echo(M) returns (M); }
    "#;
    let set = compile(&[("p.proto", text)]);
    let tools = ServiceTools::from_file_descriptor_set(&set, &MethodFilter::default()).unwrap();
    let method = &tools.methods()[0];
    check(
        method,
        &[
            (r#"{"id":0}"#, Ok("=")),
            ("{}", Err("the required field `id` is missing")),
            (r#"{"id":null}"#, Err("the required field `id` is missing")),
            (r#"{"id":1,"kind":"A","kinds":["B",1]}"#, Ok(r#"{"id":1,"kind":"A","kinds":["B","A"]}"#)),
            (r#"{"id":1,"kind":3}"#, Err("/kind: 3 is no value of the enum `p.Kind`")),
            (r#"{"id":1,"part":{"name":"a","m":{"id":2}},"parts":[{"n":1},{}],"numbers":[1,2]}"#, Ok("=")),
            (r#"{"id":1,"part":{}}"#, Err("/part: the required field `name` is missing")),
            (r#"{"id":1,"[p.note]":"a","[p.more]":[{"id":2}],"[p.Scope.inner]":3}"#, Ok("=")),
            (r#"{"id":1,"[p.notes]":"a"}"#, Err("unknown field `[p.notes]`. Did you mean `[p.note]`?")),
        ],
    );
    // Numbers that are no values of a closed enum are unknown fields.
    assert_eq!(method.decode([8, 1, 16, 9, 24, 9, 24, 2]).unwrap(), r#"{"id":1,"kinds":["B"]}"#);
}

#[test]
fn messages_arrive_in_any_order_and_in_parts() {
    let method = echo(EVERY_KIND);
    let check = |bytes: &[u8], expected: Result<&str, &str>| {
        let result = method.decode(bytes).map_err(|error| error.to_string());
        assert_eq!(result.as_deref().map_err(String::as_str), expected, "{bytes:?}");
    };
    check(&[], Ok("{}"));
    check(&[0x6a, 0, 8, 1, 8, 2], Ok(r#"{"i32":2}"#));
    // Parts of a message are merged.
    check(&[0x8a, 1, 2, 8, 1, 8, 7, 0x8a, 1, 2, 16, 2], Ok(r#"{"i32":7,"m":{"i32":1,"i64":"2"}}"#));
    // Packed and single values of a repeated field.
    check(&[0xf2, 1, 2, 1, 2, 0xf0, 1, 3], Ok(r#"{"i32s":[1,2,3]}"#));
    // The last field of a oneof.
    check(&[0xa2, 1, 1, b'a', 0xa8, 1, 5], Ok(r#"{"number":5}"#));
    check(&[0xb2, 1, 2, 8, 1, 0xa8, 1, 5, 0xb2, 1, 2, 16, 1], Ok(r#"{"message":{"i64":"1"}}"#));
    // The last entry of a key, and entries without a key or value.
    check(
        &[0xc2, 2, 5, 10, 1, b'a', 16, 1, 0xc2, 2, 3, 10, 1, b'a', 0xc2, 2, 0],
        Ok(r#"{"byString":{"":0,"a":0}}"#),
    );
    // Unknown fields, and known ones of another wire type.
    check(&[0xf8, 7, 1, 0xfb, 7, 8, 1, 0xfc, 7, 10, 0], Ok("{}"));
    check(&[8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], Ok(r#"{"i32":-1}"#));
    check(&[0x72, 1, 0xff], Err("/string: a string is not UTF-8"));
    check(&[0x8a, 1, 1, 8], Err("/m: invalid protobuf message: it ends within a field"));
    check(&[0x9a, 3, 1, 8], Err("/time: invalid protobuf message: it ends within a field"));
    check(&[0x9a, 3, 2, 16], Err("invalid protobuf message: it ends within a field"));
    check(&[0x9a, 3, 7, 8, 128, 131, 209, 255, 175, 7], Err("/time: a timestamp is out of range"));
    check(&[0xaa, 3, 4, 10, 2, b'a', b'_'], Err("/mask: a path of a field mask is not in snake_case"));
    check(&[0xba, 3, 9, 17, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f], Err("/value: a number of a value is not finite"));
    check(&[0xba, 3, 0], Ok(r#"{"value":null}"#));
}
