//! Errors of registrations.

use serde_json::{Value, json};
use toolyard_sdk::{
    JsonSchema, RegisterError, Resource, ResourceTemplate, ResourceUri, Server, Tool, ToolCall,
};

#[derive(serde::Deserialize, JsonSchema)]
struct Args {
    #[schemars(extend("x-mcp-header" = "not a name"))]
    #[expect(dead_code, reason = "only its schema is used")]
    region: String,
}

fn server() -> Server {
    Server::new("test", "1.0.0").tool("taken", "", || "").unwrap()
}

#[track_caller]
fn check(registered: Result<Server, RegisterError>, expect: &str) {
    assert_eq!(registered.unwrap_err().to_string(), expect);
}

fn raw(_: ToolCall) {}

#[test]
fn invalid_tool_name_is_refused() {
    check(server().tool("", "", raw), "the name of a tool must not be empty");
    check(
        server().tool("taken", "", raw),
        "the tool \"taken\" is already registered: remove it first, or choose another name",
    );
    let rule = "use 1 to 128 letters, digits, `_`, `-` and `.`";
    for name in ["a b", "a/b", "\u{fc}ber", &"a".repeat(129)] {
        check(server().tool(name, "", raw), &format!("invalid tool name {name:?}: {rule}"));
    }
    assert!(server().tool("A-1_b.c", "", raw).is_ok());
}

#[test]
fn invalid_schema_is_refused() {
    let with_input = |schema: Value| server().register_tool(Tool::new("t", "").input_schema(schema), raw);
    let with_output = |schema: Value| server().register_tool(Tool::new("t", "").output_schema(schema), raw);
    check(
        with_input(json!({"type": "array"})),
        "the input schema of the tool \"t\" must describe an object, but its root has the type \"array\": use a struct",
    );
    check(
        with_input(json!(true)),
        "the input schema of the tool \"t\" must describe an object, but it is true: use a struct",
    );
    check(
        with_output(json!({"properties": {}})),
        "the output schema of the tool \"t\" must describe an object, but its root lacks `\"type\": \"object\"`: \
         use a struct",
    );
    check(
        with_output(json!({"type": "array"})),
        "the output schema of the tool \"t\" must describe an object, but its root has the type \"array\": use a struct",
    );
    check(
        server().tool("t", "", async |text: String| text),
        "the input schema of the tool \"t\" must describe an object, but its root has the type \"string\": use a struct",
    );
    check(
        with_input(json!({"type": "object", "properties": {"a": {"type": "txt"}}})),
        "the input schema of the tool \"t\" is not a valid JSON Schema: \"txt\" is not valid under any of the schemas listed in the \
         'anyOf' keyword, at /properties/a/type",
    );
    check(
        with_input(json!({"type": "object", "$ref": "#/$defs/absent"})),
        "the input schema of the tool \"t\" is not a valid JSON Schema: Pointer '/$defs/absent' does not exist",
    );
    let accepting = |schema: Value| server().register_tool(Tool::new("t", "").accepted_schema(schema), raw);
    check(
        accepting(json!({"type": "object", "required": 1})),
        "the accepted schema of the tool \"t\" is not a valid JSON Schema: 1 is not of type \"array\", at /required",
    );
    check(
        server().tool("t", "", async |_: Args| ""),
        "the input schema of the tool \"t\" is not a valid JSON Schema: `x-mcp-header` is not a valid header name: \"not a name\"",
    );
}

#[test]
fn invalid_prompt_or_resource_is_refused() {
    check(server().prompt("", "", || ""), "the name of a prompt must not be empty");
    check(
        server().prompt("a", "", || "").and_then(|server| server.prompt("a", "", || "")),
        "the prompt \"a\" is already registered: remove it first, or choose another name",
    );
    let resource = |uri: &str| server().resource(Resource::new(uri, "r"), || "");
    check(resource(""), "the URI of a resource must not be empty");
    check(
        resource("no/scheme"),
        "invalid definition of the resource \"no/scheme\": a URI begins with a scheme, such as `file:`",
    );
    let template =
        |uri: &str| server().resource_template(ResourceTemplate::new(uri, "r"), |uri: ResourceUri| uri.0);
    check(
        template("x://{a"),
        "invalid definition of the resource template \"x://{a\": \"x://{a\" is not a valid URI template: a brace is not closed",
    );
    let none = |_: String| -> [&str; 0] { [] };
    check(
        server().complete_prompt("absent", "a", none),
        "no prompt \"absent\" to complete: register it first",
    );
    check(
        template("x://{a}/{b}").unwrap().complete_resource("x://{a}/{b}", "c", none),
        "the resource template \"x://{a}/{b}\" has no \"c\" to complete, only \"a\", \"b\"",
    );
}
