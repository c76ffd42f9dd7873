//! What the crate does as a whole: texts and files in, a manifest or problems out.

mod any_text;
mod complete_example;
mod documents;
mod draft;
mod files;
mod function;
mod grpc;
mod http;
mod import;
mod listener;
mod mcp;
mod names;
mod openapi;
mod process;
mod references;
mod registry;
mod schema;
mod secrets;
mod syntax;

use crate::{HandlerKind, Manifest, McpTransport, Problems, Source, parse_with};

/// What the tests' environment holds; no problem may ever show it.
const SECRET: &str = "hunter2";

fn environment(name: &str) -> Option<String> {
    match name {
        "TOKEN" => Some(SECRET.to_owned()),
        "TIMEOUT" => Some("5s".to_owned()),
        "URL" => Some("http://a/mcp/in-path?k=in-query".to_owned()),
        _ => None,
    }
}

fn source(name: &str, text: &str) -> Source {
    Source { name: name.to_owned(), text: text.to_owned() }
}

fn read(text: &str) -> Result<Manifest, Problems> {
    parse_with(&[source("tools.yaml", text)], &environment)
}

/// What a text says that is right, for its schemas too.
#[track_caller]
fn valid(text: &str) -> Manifest {
    schema::accepts(text);
    read(text).unwrap_or_else(|problems| panic!("{problems}"))
}

/// How the first handler of a valid manifest is reached, which is an MCP server.
#[track_caller]
fn transport(text: &str) -> McpTransport {
    let HandlerKind::Mcp(mcp) = valid(text).handlers.remove(0).kind else { panic!("it is no MCP server") };
    mcp.transport
}

/// The problems of a text that has some.
#[track_caller]
fn problems(text: &str) -> String {
    let problems = read(text).expect_err("the text has a mistake").to_string();
    assert!(!problems.contains(SECRET), "{problems}");
    problems
}

/// A registry with these handlers, which begin in line 6.
fn registry(handlers: &str) -> String {
    format!(
        "apiVersion: omnia.altairalabs.ai/v1alpha1\nkind: ToolRegistry\nmetadata: {{name: agent-tools}}\n\
         spec:\n  handlers:\n{handlers}"
    )
}

/// A registry with one stdio handler; `fields` are others of the handler, in line 9.
fn handler(fields: &str) -> String {
    registry(&format!(
        "  - name: files\n    type: mcp\n    mcpConfig: {{transport: stdio, command: x}}\n    {fields}\n"
    ))
}

/// A registry with one MCP handler; `fields` are those of its `mcpConfig`, from line 9 on.
fn mcp(fields: &str) -> String {
    let fields = fields.replace('\n', "\n      ");
    registry(&format!("  - name: files\n    type: mcp\n    mcpConfig:\n      {fields}\n"))
}

/// A `Toolyard` document; `fields` are those of its `spec`, from line 4 on.
fn toolyard(fields: &str) -> String {
    let fields = fields.replace('\n', "\n  ");
    format!("apiVersion: toolyard.dev/v1alpha1\nkind: Toolyard\nspec:\n  {fields}\n")
}
