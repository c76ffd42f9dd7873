use super::*;

fn object(text: &str) -> Object {
    Object::parse(text.to_owned()).unwrap()
}

/// Compares the published definition and the report with the expected ones. `""`: as it is.
#[track_caller]
fn check(kind: EntryKind, definition: &str, expected: &str, report: &str) {
    let got = match repair(kind, &object(definition)) {
        Ok(None) => (String::new(), String::new()),
        Ok(Some(repaired)) => {
            (repaired.definition.to_json().as_text().to_owned(), repaired.report.to_string())
        }
        Err(reason) => ("left out".to_owned(), reason.to_string()),
    };
    assert_eq!(got, (expected.to_owned(), report.to_owned()));
}

#[track_caller]
fn check_input(schema: &str, expected: &str, report: &str) {
    let tool = |schema: &str| format!(r#"{{"name":"t","inputSchema":{schema}}}"#);
    let expected = match expected {
        "" | "left out" => expected.to_owned(),
        schema => tool(schema),
    };
    check(EntryKind::Tools, &tool(schema), &expected, report);
}

#[test]
fn valid_definition_stays_as_it_is() {
    for schema in [
        r#"{"type":"object"}"#,
        r#"{ "properties" : {"a": {"default": null, "enum": [null]}, "b": true}, "type":"object", "required":[] }"#,
        r##"{"type":"object","$ref":"#/$defs/Node","$defs":{"Node":{"properties":null,"required":null}}}"##,
        r#"{"type":"object","default":null,"const":null,"enum":[null],"examples":[null]}"#,
        r#"{"type":"object","properties":{"type":{"type":"string"},"properties":{"type":"object"}}}"#,
    ] {
        check_input(schema, "", "");
    }
    let rest = r#""title":"T","annotations":{"readOnlyHint":true,"x":null},"icons":[{"src":"a:b","x":1}],"_meta":{"a":null},"more":null"#;
    let output = r#""outputSchema":{"anyOf":[{"type":"array"}]}"#;
    check(
        EntryKind::Tools,
        &format!(r#"{{"name":"t",{rest},"inputSchema":{{"type":"object"}},{output}}}"#),
        "",
        "",
    );
    check(EntryKind::Prompts, r#"{"name":"p","arguments":[{"name":"a","required":true}]}"#, "", "");
    check(
        EntryKind::Resources,
        r#"{"uri":"a:b","name":"","size":1,"annotations":{"audience":["user"]}}"#,
        "",
        "",
    );
}

#[test]
fn input_schema_becomes_that_of_an_object() {
    let any = r#"{"type":"object"}"#;
    check(
        EntryKind::Tools,
        r#"{"name":"t"}"#,
        r#"{"name":"t","inputSchema":{"type":"object"}}"#,
        "`inputSchema` is missing: any arguments are allowed",
    );
    check_input("null", any, "`inputSchema` is null: any arguments are allowed");
    check_input("true", any, "`inputSchema` is `true`: any arguments are allowed");
    check_input("{}", any, "`inputSchema.type` is missing: `object` is meant");
    check_input(r#"{"type":null}"#, any, "`inputSchema.type` is null: `object` is meant");
    check_input(r#"{"type":["object","null"]}"#, any, "`inputSchema.type` is a list: `object` is meant");
    let union = r#""anyOf":[{"type":"object","properties":{"a":{"const":1.0}}},{"type":"object"}]"#;
    check_input(
        &format!("{{{union}}}"),
        &format!(r#"{{{union},"type":"object"}}"#),
        "`inputSchema.type` is missing: `object` is meant",
    );
    check_input(
        r#"{"type":"object","type":"object","x":1}"#,
        r#"{"type":"object","x":1}"#,
        "`inputSchema` has a member twice: the last one counts",
    );
}

#[test]
fn tool_without_a_meaning_is_left_out() {
    for schema in ["false", "1", "[]", r#""object""#] {
        check_input(schema, "left out", "`inputSchema` is not an object");
    }
    for schema in [r#"{"type":"string"}"#, r#"{"type":1}"#, r#"{"type":["string","null"]}"#, r#"{"type":{}}"#]
    {
        check_input(schema, "left out", "`inputSchema.type` is not `object`");
    }
}

#[test]
fn properties_have_schemas() {
    let with = |properties: &str| format!(r#"{{"type":"object","properties":{properties}}}"#);
    let any = r#"{"type":"object"}"#;
    check_input(&with("null"), any, "`inputSchema.properties` is not an object: left out");
    check_input(&with(r#"["a"]"#), any, "`inputSchema.properties` is not an object: left out");
    check_input(&with("[]"), &with("{}"), "`inputSchema.properties` is a list: no properties are meant");
    check_input(
        &with(r#"{"a":null,"b":"string","c":false,"d":{"type":"string","default":null}}"#),
        &with(r#"{"a":{},"b":{},"c":false,"d":{"type":"string","default":null}}"#),
        "the schema of the property `a` is not one: any value is allowed; \
         the schema of the property `b` is not one: any value is allowed",
    );
    check_input(
        &with(r#"{"a":{},"a":{"type":"string"}}"#),
        &with(r#"{"a":{"type":"string"}}"#),
        "`inputSchema.properties` has a member twice: the last one counts",
    );
    let many: Vec<_> = (0..11).map(|i| format!(r#""p{i}":1"#)).collect();
    let repaired = repair(
        EntryKind::Tools,
        &object(&format!(r#"{{"name":"t","inputSchema":{}}}"#, with(&format!("{{{}}}", many.join(","))))),
    );
    assert!(repaired.unwrap().unwrap().report.ends_with("; and 3 more"));
}

#[test]
fn schema_in_place_of_the_properties_is_unfolded() {
    check_input(
        r#"{"type":"object","properties":{"type":"object","properties":{"q":{"type":"string"}},"required":["q"],"additionalProperties":false}}"#,
        r#"{"type":"object","properties":{"q":{"type":"string"}},"required":["q"],"additionalProperties":false}"#,
        "`inputSchema.properties` is a schema: unfolded",
    );
}

#[test]
fn required_is_a_list_of_names() {
    let with = |required: &str| format!(r#"{{"type":"object","required":{required}}}"#);
    for required in ["null", "true", r#""a""#, "{}"] {
        check_input(
            &with(required),
            r#"{"type":"object"}"#,
            "`inputSchema.required` is not a list: left out",
        );
    }
    let report = "`inputSchema.required` has items that are not strings: left out";
    check_input(&with(r#"["a",null,true,"b"]"#), &with(r#"["a","b"]"#), report);
    check_input(
        r#"{"type":"object","$schema":1}"#,
        r#"{"type":"object"}"#,
        "`inputSchema.$schema` is not a string: left out",
    );
}

#[test]
fn broken_optional_members_are_left_out() {
    let tool = |rest: &str| format!(r#"{{"name":"t","inputSchema":{{"type":"object"}}{rest}}}"#);
    let check = |rest: &str, expected: &str, report: &str| {
        check(EntryKind::Tools, &tool(rest), &tool(expected), report);
    };
    check(r#","title":null,"_meta":{}"#, r#","_meta":{}"#, "`title` is not a string: left out");
    check(r#","description":["a"]"#, "", "`description` is not a string: left out");
    check(
        r#","annotations":{"title":"T","readOnlyHint":null,"x":null,"openWorldHint":"no"}"#,
        r#","annotations":{"title":"T","x":null}"#,
        "`annotations.readOnlyHint` is not a boolean: left out; `annotations.openWorldHint` is not a boolean: left out",
    );
    check(r#","annotations":[]"#, "", "`annotations` is not an object: left out");
    check(
        r#","execution":{"taskSupport":"maybe"}"#,
        r#","execution":{}"#,
        "`execution.taskSupport` is not one of its values: left out",
    );
    check(r#","_meta":null"#, "", "`_meta` is not an object: left out");
    check(
        r#","icons":[{"src":"a:b","sizes":"48x48"},{"mimeType":"image/png"},null]"#,
        r#","icons":[{"src":"a:b"}]"#,
        "`icons.sizes` is not a list: left out; an item of `icons` is not valid: left out; an item of `icons` is not valid: left out",
    );
    for schema in ["null", "true", r#""x""#, "[]"] {
        let output = format!(r#","outputSchema":{schema}"#);
        check(&output, "", "`outputSchema` is not an object: left out");
    }
    check(
        r#","outputSchema":{"type":null,"properties":null,"required":null,"default":null}"#,
        r#","outputSchema":{"default":null}"#,
        "`outputSchema.properties` is not an object: left out; `outputSchema.required` is not a list: left out; \
         `outputSchema.type` is null: left out",
    );
}

#[test]
fn prompts_and_resources_are_repaired() {
    check(
        EntryKind::Prompts,
        r#"{"name":"p","description":null,"arguments":[{"name":"a","required":null},{"description":"d"}]}"#,
        r#"{"name":"p","arguments":[{"name":"a"}]}"#,
        "`description` is not a string: left out; `arguments.required` is not a boolean: left out; \
         an item of `arguments` is not valid: left out",
    );
    check(
        EntryKind::Resources,
        r#"{"uri":"a:b","mimeType":null,"annotations":{"audience":["user","all"],"priority":"1"}}"#,
        r#"{"uri":"a:b","annotations":{"audience":["user"]},"name":"a:b"}"#,
        "`mimeType` is not a string: left out; an item of `annotations.audience` is not valid: left out; \
         `annotations.priority` is not a number: left out; `name` is missing: added",
    );
    let template = r#"{"uriTemplate":"a:{b}","title":"T"}"#;
    let named = r#"{"uriTemplate":"a:{b}","title":"T","name":"T"}"#;
    check(EntryKind::Templates, template, named, "`name` is missing: added");
}

/// Published definitions are valid: a second look finds nothing to repair.
#[test]
fn repaired_definition_is_valid() {
    for schema in [
        r#"{"properties":{"type":"object","properties":{"a":"x","b":null},"required":[true,"a"]}}"#,
        r#"{"type":null,"properties":[],"required":{},"$schema":[]}"#,
        r#"{"a":1,"a":2,"properties":{"x":1,"x":true}}"#,
    ] {
        let tool = format!(
            r#"{{"name":"t","inputSchema":{schema},"outputSchema":{schema},"icons":[{{"src":1}},{{"src":"a","theme":"x"}}]}}"#
        );
        let repaired = repair(EntryKind::Tools, &object(&tool)).unwrap().unwrap();
        assert!(repair(EntryKind::Tools, &repaired.definition).unwrap().is_none(), "{schema}");
    }
}

#[test]
fn legacy_schemas_have_no_boolean_properties() {
    let legacy = |text: &str| legacy_schema(&Json::parse(text.to_owned()).unwrap());
    let boolean = r#"{"type":"object","properties":{"a":true,"b":false,"c":{"properties":{"d":true}}}}"#;
    let objects = r#"{"type":"object","properties":{"a":{},"b":{"not":{}},"c":{"properties":{"d":true}}}}"#;
    assert_eq!(legacy(boolean).unwrap().as_text(), objects);
    assert_eq!(legacy(objects), None);
    assert_eq!(legacy("{}"), None);
}
