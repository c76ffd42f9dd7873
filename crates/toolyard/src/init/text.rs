//! The text of a first manifest.

use std::fmt::Write;
use std::path::Path;

use serde_json::{Value, json};
use toolyard_manifest::{ClientServers, ManifestEditor};

const HEAD: &str = "\
# The tools of this gateway.
#
#   toolyard serve     serves them on http://127.0.0.1:8080/mcp; edits apply while it runs
#   toolyard check     checks this file
#   toolyard add       adds an MCP server, an HTTP request, an OpenAPI service or a function
#   toolyard connect   adds the gateway to the configuration of an MCP client
#
# docs/manifest.md describes all fields. `${NAME}` is an environment variable, and `${file:PATH}` a file.
apiVersion: omnia.altairalabs.ai/v1alpha1
kind: ToolRegistry
metadata:
  name: tools
spec:
  handlers:
";

const DEMO: &str = "    # A small server in the toolyard program. Remove it when you have your own.\n";

const EXAMPLES: &str = "
    # A server that the gateway starts:
    # - name: files
    #   type: mcp
    #   mcpConfig:
    #     transport: stdio
    #     command: npx
    #     args: [\"-y\", \"@modelcontextprotocol/server-filesystem\", /home/me/notes]

    # A server at a URL, with a token:
    # - name: search
    #   type: mcp
    #   mcpConfig:
    #     transport: streamable-http
    #     endpoint: https://mcp.example.com/mcp
    #     headers: {Authorization: \"Bearer ${SEARCH_TOKEN}\"}

    # The operations of a service as tools:
    # - name: shop
    #   type: openapi
    #   openAPIConfig: {specURL: https://shop.example.com/openapi.json}
";

const PROCESS: &str = "\
---
# The gateway itself.
apiVersion: toolyard.dev/v1alpha1
kind: Toolyard
spec:
  # With an address other than that of this machine the gateway requires keys: `toolyard key create`.
  listen: 127.0.0.1:8080
  # Tools of the gateway for models: search for tools, working memory, guides, skills, scripts.
";

const BUILTINS: &str = "  # builtins: {}\n";

/// Returns a manifest with these servers, or else with the demo server in `program`. Servers whose variables are not set
/// are comments.
pub(super) fn manifest(found: &ClientServers, program: &Path) -> String {
    let mut text = HEAD.to_owned();
    let is_live = |server: &&toolyard_manifest::ClientServer| server.unresolved.is_none();
    if !found.servers.iter().any(|server| is_live(&server)) {
        text.push_str(DEMO);
        push_handler(&mut text, &demo(program), "    ");
    }
    for server in &found.servers {
        match &server.unresolved {
            None => push_handler(&mut text, &server.handler, "    "),
            Some(unresolved) => {
                let _ = writeln!(text, "    # {}: {}", server.name, unresolved.replace(['\n', '\r'], " "));
                push_handler(&mut text, &server.handler, "    # ");
            }
        }
    }
    text.push_str(EXAMPLES);
    text.push_str(PROCESS);
    match found.models.as_slice() {
        [] => text.push_str(BUILTINS),
        models => push_models(&mut text, models),
    }
    text
}

fn demo(program: &Path) -> Value {
    let program = program.display().to_string().replace("${", "$${");
    let config = json!({"transport": "stdio", "command": program, "args": ["demo-server"]});
    json!({"name": "demo", "type": "mcp", "mcpConfig": config})
}

fn push_handler(text: &mut String, handler: &Value, indent: &str) {
    for line in ManifestEditor::handler_yaml(handler).lines() {
        let _ = writeln!(text, "{}", format!("{indent}{line}").trim_end());
    }
}

/// Adds the lengths above which results are large.
fn push_models(text: &mut String, models: &[(String, usize)]) {
    text.push_str("  builtins:\n    results:\n      models:\n");
    for (model, threshold) in models {
        let _ = writeln!(text, "        {}: {{threshold: {threshold}}}", Value::from(model.as_str()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifest_without_servers_is_valid() {
        let found = ClientServers { models: vec![("a/b: c".to_owned(), 5)], ..ClientServers::default() };
        let text = manifest(&found, Path::new("/opt/${x}/toolyard"));
        let source = toolyard_manifest::ManifestSource { name: "toolyard.yaml".to_owned(), text };
        let read = toolyard_manifest::parse_with(&[source], &|_| None);
        let read = read.unwrap_or_else(|problems| panic!("{problems}"));
        assert_eq!(
            read.handlers.last().map(|handler| handler.endpoint()).as_deref(),
            Some("stdio:///opt/${x}/toolyard")
        );
    }
}
