//! Tests of the whole crate: texts and files in, a manifest or problems out.

mod any_text;
mod bus;
mod cluster_services;
mod complete_example;
mod documents;
mod draft;
mod elsewhere;
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
mod process_settings;
mod references;
mod registry;
mod schema;
mod secrets;
mod selector;
mod shown_documents;
mod syntax;

use crate::{HandlerKind, Manifest, ManifestProblems, ManifestSource, McpTransport, parse_with};

/// A value of the tests' environment that no problem may quote.
const SECRET_VALUE: &str = "hunter2";

fn environment(name: &str) -> Option<String> {
    match name {
        "TOKEN" => Some(SECRET_VALUE.to_owned()),
        "TIMEOUT" => Some("5s".to_owned()),
        "URL" => Some("http://a/mcp/in-path?k=in-query".to_owned()),
        _ => None,
    }
}

fn source(name: &str, text: &str) -> ManifestSource {
    ManifestSource { name: name.to_owned(), text: text.to_owned() }
}

fn read(text: &str) -> Result<Manifest, ManifestProblems> {
    parse_with(&[source("tools.yaml", text)], &environment)
}

/// Parses a valid text, and checks it against its schemas. The texts are left out: they differ between manifests of
/// equal content.
#[track_caller]
fn valid(text: &str) -> Manifest {
    schema::accepts(text);
    let manifest = read(text).unwrap_or_else(|problems| panic!("{problems}"));
    Manifest { digest: String::new(), documents: Vec::new(), ..manifest }
}

/// The transport of the first handler of a valid manifest, which is an MCP server.
#[track_caller]
fn transport(text: &str) -> McpTransport {
    let HandlerKind::Mcp(mcp) = valid(text).handlers.remove(0).kind else { panic!("it is no MCP server") };
    mcp.transport
}

/// The problems of an invalid text.
#[track_caller]
fn problems(text: &str) -> String {
    let problems = read(text).expect_err("the text has a mistake").to_string();
    assert!(!problems.contains(SECRET_VALUE), "{problems}");
    problems
}

/// A registry with these handlers, which start in line 6.
fn registry(handlers: &str) -> String {
    format!(
        "apiVersion: omnia.altairalabs.ai/v1alpha1\nkind: ToolRegistry\nmetadata: {{name: agent-tools}}\n\
         spec:\n  handlers:\n{handlers}"
    )
}

/// A registry with one stdio handler; `fields` are additional fields of the handler, in line 9.
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
