use insta::assert_snapshot;

use super::*;

fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

fn pin(value: &str) -> ArgumentChange {
    ArgumentChange::Pin(json(value))
}

fn default(value: &str) -> ArgumentChange {
    ArgumentChange::Show { default: Some(json(value)), description: None }
}

fn describe(text: &str) -> ArgumentChange {
    ArgumentChange::Show { default: None, description: Some(text.to_owned()) }
}

fn change(arguments: &[(&str, ArgumentChange)]) -> DefinitionOverride {
    let arguments = arguments.iter().map(|(name, argument)| ((*name).to_owned(), argument.clone()));
    DefinitionOverride { arguments: arguments.collect(), ..DefinitionOverride::default() }
}

fn tool(definition: &str) -> Arc<Tool> {
    Arc::new(Tool::from_definition(&json(definition)).unwrap())
}

/// Returns the published schema of a tool, and the overridden arguments that it does not have.
fn published(schema: &str, arguments: &[(&str, ArgumentChange)]) -> String {
    let tool = tool(&format!(r#"{{"name":"t","inputSchema":{schema}}}"#));
    let published = change(arguments).publish(&tool);
    let schema = published.tool.input_schema().unwrap().as_text().to_owned();
    match published.unknown.is_empty() {
        true => schema,
        false => format!("{schema} without {}", published.unknown.join(", ")),
    }
}

#[test]
fn overrides_change_the_schema() {
    let schema = r#"{"x-a": 1.10, "type":"object","properties":{ "a":{"type" : "string"},"b":true, "c":{"default":1,"x":[ 1 ]}},
        "required":["a","b"],"additionalProperties":false,"$schema":"s"}"#;
    let check = |arguments: &[(&str, ArgumentChange)]| published(schema, arguments);
    assert_snapshot!(check(&[("a", pin("1.10"))]), @r#"{"x-a":1.10,"type":"object","properties":{"b":true,"c":{"default":1,"x":[ 1 ]}},"required":["b"],"additionalProperties":false,"$schema":"s"}"#);
    assert_snapshot!(check(&[("a", pin("1")), ("b", pin("2")), ("c", pin("3"))]), @r#"{"x-a":1.10,"type":"object","properties":{},"additionalProperties":false,"$schema":"s"}"#);
    assert_snapshot!(check(&[("a", default("\"x\"")), ("c", default("2"))]), @r#"{"x-a":1.10,"type":"object","properties":{"a":{"type":"string","default":"x"},"b":true,"c":{"default":2,"x":[ 1 ]}},"required":["b"],"additionalProperties":false,"$schema":"s"}"#);
    assert_snapshot!(check(&[("a", describe("A \"word\".")), ("b", describe("Anything."))]), @r#"{"x-a":1.10,"type":"object","properties":{"a":{"type":"string","description":"A \"word\"."},"b":{"description":"Anything."},"c":{"default":1,"x":[ 1 ]}},"required":["a","b"],"additionalProperties":false,"$schema":"s"}"#);
    assert_snapshot!(check(&[("z", pin("1"))]), @r#"{"x-a":1.10,"type":"object","properties":{"a":{"type" : "string"},"b":true,"c":{"default":1,"x":[ 1 ]}},"required":["a","b"],"additionalProperties":false,"$schema":"s"} without z"#);
}

/// Only keywords for the arguments themselves change, not those for values inside them.
#[test]
fn overrides_change_combined_schemas() {
    let cases = [
        r#"{"allOf":[{"properties":{"a":{},"b":{}},"required":["a","b"]},{"required":["a"]},true],"required":["a"]}"#,
        r##"{"$ref":"#/$defs/args","$defs":{"args":{"properties":{"a":{}},"required":["a"]}}}"##,
        r#"{"anyOf":[{"required":["a"]},{"required":["b"]}],"properties":{"a":{}}}"#,
        r#"{"properties":{"b":{"properties":{"a":{}},"required":["a"]}}}"#,
        r#"{"properties":[],"required":"a","allOf":{}}"#,
        "true",
        "7",
    ];
    let check = |schema: &&str| published(schema, &[("a", pin("1"))]);
    assert_snapshot!(cases.iter().map(check).collect::<Vec<_>>().join("\n"), @r##"
    {"allOf":[{"properties":{"b":{}},"required":["b"]},{},true]}
    {"$ref":"#/$defs/args","$defs":{"args":{"properties":{"a":{}},"required":["a"]}}} without a
    {"anyOf":[{"required":["a"]},{"required":["b"]}],"properties":{}}
    {"properties":{"b":{"properties":{"a":{}},"required":["a"]}}} without a
    {"properties":[],"required":"a","allOf":{}} without a
    true without a
    7 without a
    "##);
}

#[test]
fn texts() {
    let tool = tool(r#"{"x":1.10,"name":"t","description":"old","annotations":{"title":"T"}}"#);
    let text = |text: &str| Some(text.to_owned());
    let change =
        DefinitionOverride { title: text("New"), description: text("new"), ..DefinitionOverride::default() };
    let published = change.publish(&tool);
    assert_snapshot!(published.tool.definition.to_json().as_text(), @r#"{"x":1.10,"name":"t","description":"new","annotations":{"title":"T"},"title":"New"}"#);
    assert!(published.additions.is_none() && published.unknown.is_empty());
    let renamed =
        DefinitionOverride { name: Some("u".into()), ..DefinitionOverride::default() }.publish(&tool);
    assert!(Arc::ptr_eq(&renamed.tool, &tool), "a name alone costs no copy");
}

/// The schema that arguments are checked against changes like the published one.
#[test]
fn overrides_change_the_accepted_schema() {
    let published = r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}"#;
    let tool = Tool::from_definition(&json(&format!(r#"{{"name":"t","inputSchema":{published}}}"#))).unwrap();
    let tool = Arc::new(tool.accepting(json(&published.replace("string", "number"))));
    let changed = change(&[("a", pin("1"))]).publish(&tool).tool;
    assert!(tool.check_arguments(Some(&json("{}"))).is_err());
    assert!(changed.check_arguments(Some(&json("{}"))).is_ok());
}

#[test]
fn arguments_are_added() {
    let change = change(&[("p", pin("{ \"x\" : 1.10 }")), ("d", default("2")), ("s", describe("Shown."))]);
    let additions = AddedArguments::of(&change.arguments).unwrap();
    let check = |arguments: Option<&str>| match additions.add_to(arguments.map(json).as_ref()) {
        Ok(arguments) => arguments.as_text().to_owned(),
        Err(error) => format!("{:?}: {}", error.code(), error.message()),
    };
    let cases = [
        None,
        Some("{}"),
        Some(r#"{ "s" : 1e400, "z":[ 1 ]}"#),
        Some(r#"{"d":null}"#),
        Some(r#"{"p":{ "x" : 1.10 }}"#),
        Some(r#"{"\u0070":1}"#),
        Some(r#"{"a":1,"a":2}"#),
        Some("[]"),
    ];
    assert_snapshot!(cases.map(check).join("\n"), @r#"
    {"p":{ "x" : 1.10 },"d":2}
    {"p":{ "x" : 1.10 },"d":2}
    {"s":1e400,"z":[ 1 ],"p":{ "x" : 1.10 },"d":2}
    {"d":null,"p":{ "x" : 1.10 }}
    InvalidArguments: Invalid arguments: Additional properties are not allowed ('p' was unexpected)
    InvalidArguments: Invalid arguments: Additional properties are not allowed ('p' was unexpected)
    InvalidArguments: Invalid arguments: a member is named twice in the object
    InvalidArguments: Invalid arguments: expected an object
    "#);
    assert_eq!(AddedArguments::of(&BTreeMap::from([("s".to_owned(), describe("Shown."))])), None);
}

#[test]
fn debug_output_omits_pinned_values() {
    let change = change(&[("token", pin("\"hunter2\"")), ("d", default("\"hunter2\""))]);
    let debug = format!("{change:?} {:?}", AddedArguments::of(&change.arguments));
    assert!(debug.contains("token") && !debug.contains("hunter2"), "{debug}");
}
