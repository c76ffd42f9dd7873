//! What cannot be registered, and what the author is told.

use serde_json::{Value, json};
use toolyard_sdk::{JsonSchema, RegisterError, Resource, ResourceTemplate, Server, Tool, ToolCall, Uri};

#[derive(serde::Deserialize, JsonSchema)]
struct Args {
    #[schemars(extend("x-mcp-header" = "not a name"))]
    #[expect(dead_code, reason = "only its schema is looked at")]
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
fn names() {
    check(server().tool("", "", raw), "a tool without a name cannot be called: give it one");
    check(
        server().tool("taken", "", raw),
        "the tool \"taken\" is registered already: remove that one first, or choose another name",
    );
    let rule = "has to be 1 to 128 letters, digits, `_`, `-` and `.`: choose another one";
    for name in ["a b", "a/b", "\u{fc}ber", &"a".repeat(129)] {
        check(server().tool(name, "", raw), &format!("the name of the tool {name:?} {rule}"));
    }
    assert!(server().tool("A-1_b.c", "", raw).is_ok());
}

#[test]
fn schemas() {
    let with_input = |schema: Value| server().register_tool(Tool::new("t", "").input_schema(schema), raw);
    let with_output = |schema: Value| server().register_tool(Tool::new("t", "").output_schema(schema), raw);
    check(
        with_input(json!({"type": "array"})),
        "the input schema of the tool \"t\" has to be one of an object, but its root is of type \"array\": use a struct",
    );
    check(
        with_input(json!(true)),
        "the input schema of the tool \"t\" has to be one of an object, but it is true: use a struct",
    );
    check(
        with_output(json!({"properties": {}})),
        "the output schema of the tool \"t\" has to be one of an object, but its root does not say `\"type\": \"object\"`: \
         use a struct",
    );
    check(
        with_output(json!({"type": "array"})),
        "the output schema of the tool \"t\" has to be one of an object, but its root is of type \"array\": use a struct",
    );
    check(
        server().tool("t", "", async |text: String| text),
        "the input schema of the tool \"t\" has to be one of an object, but its root is of type \"string\": use a struct",
    );
    check(
        with_input(json!({"type": "object", "properties": {"a": {"type": "txt"}}})),
        "the input schema of the tool \"t\" is no JSON Schema: \"txt\" is not valid under any of the schemas listed in the \
         'anyOf' keyword, at /properties/a/type",
    );
    check(
        with_input(json!({"type": "object", "$ref": "#/$defs/absent"})),
        "the input schema of the tool \"t\" is no JSON Schema: Pointer '/$defs/absent' does not exist",
    );
    let accepting = |schema: Value| server().register_tool(Tool::new("t", "").accepted_schema(schema), raw);
    check(
        accepting(json!({"type": "object", "required": 1})),
        "the accepted schema of the tool \"t\" is no JSON Schema: 1 is not of type \"array\", at /required",
    );
    check(
        server().tool("t", "", async |_: Args| ""),
        "the input schema of the tool \"t\" is no JSON Schema: `x-mcp-header` is no header name: \"not a name\"",
    );
}

#[test]
fn what_is_no_tool() {
    check(server().prompt("", "", || ""), "a prompt without a name cannot be called: give it one");
    check(
        server().prompt("a", "", || "").and_then(|server| server.prompt("a", "", || "")),
        "the prompt \"a\" is registered already: remove that one first, or choose another name",
    );
    let resource = |uri: &str| server().resource(Resource::new(uri, "r"), || "");
    check(resource(""), "a resource without a URI cannot be called: give it one");
    check(
        resource("no/scheme"),
        "the resource \"no/scheme\" cannot be published: a URI begins with a scheme, such as `file:`",
    );
    let template = |uri: &str| server().resource_template(ResourceTemplate::new(uri, "r"), |uri: Uri| uri.0);
    check(
        template("x://{a"),
        "the resource template \"x://{a\" cannot be published: \"x://{a\" is no URI template: a brace is not closed",
    );
    let none = |_: String| -> [&str; 0] { [] };
    check(
        server().complete_prompt("absent", "a", none),
        "there is no prompt \"absent\" to complete: register it first",
    );
    check(
        template("x://{a}/{b}").unwrap().complete_resource("x://{a}/{b}", "c", none),
        "the resource template \"x://{a}/{b}\" has no \"c\" to complete, only \"a\", \"b\"",
    );
}
