//! Valid documents.

use std::time::Duration;

use insta::assert_debug_snapshot;

use super::{environment, handler, mcp, read, source, toolyard, transport, valid};
use crate::{HandlerKind, Manifest, McpTransport, parse_with};

const REGISTRY: &str = "
apiVersion: omnia.altairalabs.ai/v1alpha1
kind: ToolRegistry
metadata:
  name: agent-tools
  namespace: agents
  uid: 0c0ffee0
  labels: {tier: \"1\"}
  annotations: {example.com/note: \"${NOT_A_REFERENCE}\"}
spec:
  handlers:
    - name: filesystem-tools
      type: mcp
      mcpConfig:
        transport: stdio
        command: /usr/local/bin/mcp-filesystem
        args:
          - \"--root=/data\"
        workDir: /app
        env:
          LOG_LEVEL: info
    - name: code-tools
      type: mcp
      timeout: 1m30s
      mcpConfig:
        transport: streamable-http
        endpoint: http://mcp-code.tools.svc.cluster.local:8080/mcp
status:
  phase: Ready
  anything: [goes, here]
";

#[test]
fn registry_in_yaml() {
    let handlers = valid(REGISTRY).handlers;
    assert_debug_snapshot!(handlers[0], @r#"
    HandlerConfig {
        name: HandlerName(
            "filesystem-tools",
        ),
        registry: "agent-tools",
        timeout: 30s,
        prefix: OnClash,
        pin: Warn,
        overrides: [],
        price: None,
        display_name: None,
        description: None,
        chunking: ChunkingPolicy {
            structured: None,
            threshold: None,
        },
        rename_arguments: None,
        probe: Some(
            ProbeSettings {
                interval: 60s,
                timeout: 5s,
            },
        ),
        kind: Mcp(
            McpHandler {
                transport: Stdio {
                    command: "/usr/local/bin/mcp-filesystem",
                    args: CommandArgs(1 hidden),
                    work_dir: Some(
                        "/app",
                    ),
                    env: CommandEnv[
                        "LOG_LEVEL",
                    ],
                    first_start: None,
                },
                lane: None,
                era: None,
                filter: McpToolFilter {
                    allow: [],
                    block: [],
                },
                retry: RetryPolicy {
                    max_attempts: 1,
                    initial_backoff: 100ms,
                    backoff_multiplier: 2.0,
                    max_backoff: 30s,
                },
            },
        ),
        reference_values: [],
    }
    "#);
    assert_eq!((handlers.len(), handlers[1].name.as_str()), (2, "code-tools"));
    assert_eq!(handlers[1].timeout, Duration::from_secs(90));
    let HandlerKind::Mcp(mcp) = &handlers[1].kind else { panic!() };
    assert_debug_snapshot!(mcp.transport, @"
    Http(
        McpHttp {
            style: Streamable,
            endpoint: EndpointUrl(http://mcp-code.tools.svc.cluster.local:8080/…),
            headers: [],
            auth: None,
            outbound: OutboundSettings {
                proxy: None,
                authority: None,
                skips_verification: false,
            },
        },
    )
    ");
}

#[test]
fn registry_in_json_with_tabs() {
    let text = "{\n\t\"apiVersion\": \"omnia.altairalabs.ai/v1alpha1\",\n\t\"kind\": \"ToolRegistry\",\n\
        \t\"metadata\": {\"name\":\"a\"},\n\t\"spec\": {\n\t\t\"handlers\": [\n\t\t\t{\"name\":\"files\",\"type\":\"mcp\",\
        \"timeout\":null,\"mcpConfig\":{\"transport\":\"stdio\",\"command\":\"x\\/y\",\"args\":[\"\\u00e9\"]}}\n\t\t]\n\t}\n}\n";
    let manifest = valid(text);
    assert_eq!(manifest.handlers[0].name.as_str(), "files");
    assert_eq!(manifest.handlers[0].timeout, Duration::from_secs(30));
}

#[test]
fn json_escapes() {
    #[track_caller]
    fn check(escaped: &str, expected: &str) {
        let text = registry_in_json(escaped);
        let McpTransport::Stdio { command, .. } = transport(&text) else { panic!() };
        assert_eq!(command, expected);
    }
    // The output of programs that write only ASCII.
    check(r"a\ud83d\ude00\u00e9\/\\", "a\u{1f600}\u{e9}/\\");
    check(r"\\ud83d\\ude00", r"\ud83d\ude00");
    for half in [r"\ud83d", r"\ude00\ud83d", r"\ud83d\u0061"] {
        assert!(read(&registry_in_json(half)).is_err(), "{half}");
    }
}

fn registry_in_json(command: &str) -> String {
    format!(
        r#"{{"apiVersion": "omnia.altairalabs.ai/v1alpha1", "kind": "ToolRegistry", "metadata": {{"name": "a"}},
        "spec": {{"handlers": [{{"name": "a", "type": "mcp", "mcpConfig": {{"transport": "stdio", "command": "{command}"}}}}]}}}}"#
    )
}

#[test]
fn handlers_keep_the_order_of_sources_and_documents() {
    let named = |name: &str| handler("").replace("agent-tools", name).replace("files", name);
    let sources = [
        source(
            "b.yaml",
            &format!("{}---\n---\n{}...\n# the end\n", named("one"), toolyard("listen: 127.0.0.1:1")),
        ),
        source("a.yaml", &format!("\u{feff}{}---\n{}", named("three"), named("two"))),
    ];
    let manifest = parse_with(&sources, &environment).unwrap();
    let names: Vec<_> = manifest.handlers.iter().map(|handler| handler.name.as_str()).collect();
    assert_eq!(names, ["one", "three", "two"]);
    assert_eq!(manifest.handlers[1].registry, "three");
    assert_eq!(manifest.process.listen[0].tcp().unwrap().port(), 1);
}

#[test]
fn environment_is_expanded_and_does_not_leak() {
    let text = mcp(
        "transport: stdio\ncommand: x\nargs: [--token, '${TOKEN}', '$${TOKEN}']\nenv: {KEY: 'Bearer ${TOKEN}'}",
    ) + "    timeout: ${TIMEOUT}\n";
    let manifest = valid(&text);
    assert_eq!(manifest.handlers[0].timeout, Duration::from_secs(5));
    let HandlerKind::Mcp(mcp) = &manifest.handlers[0].kind else { panic!() };
    let McpTransport::Stdio { args, env, .. } = &mcp.transport else { panic!() };
    assert_eq!(args.iter().collect::<Vec<_>>(), ["--token", "hunter2", "${TOKEN}"]);
    assert_eq!(env.iter().collect::<Vec<_>>(), [("KEY", "Bearer hunter2")]);
    assert!(!format!("{manifest:?}").contains("hunter2"));
}

#[test]
fn problems_are_ordered_by_file_and_position() {
    let sources = [source("b.yaml", "kind: x\n---\nkind: y\n"), source("a.yaml", "kind: z\n")];
    let problems = parse_with(&sources, &environment).unwrap_err();
    let places: Vec<_> = problems.iter().map(|problem| problem.location.to_string()).collect();
    assert_eq!(places, ["a.yaml:1:7: kind", "b.yaml:1:7: kind", "b.yaml:3:7: kind"]);
    assert!(read("kind: x").is_err());
}

#[test]
fn texts_without_a_document_are_empty() {
    for text in ["", "\n", "# a comment\n", "---\n---\n", "\u{feff}", "null", "~\n---\n"] {
        assert_eq!(valid(text), Manifest::default(), "{text:?}");
    }
}

#[test]
fn duplicates_across_files_are_all_reported() {
    let sources = [
        source("a.yaml", &handler("timeout: 5")),
        source(
            "b.json",
            &format!("{}---\n{}", toolyard("listen: x"), handler("").replace("agent-tools", "b")),
        ),
        source("c.yaml", "kind: Toolyard\napiVersion: toolyard.dev/v1alpha1\nspec: [\n"),
        source("d.yaml", &(toolyard("{}") + "metadata: {}\n")),
    ];
    insta::assert_snapshot!(parse_with(&sources, &environment).unwrap_err(), @"
    a.yaml:9:14: spec.handlers[0].timeout: found a number
      expected a duration such as 500ms, 30s, 1m30s or 2h
      hint: add a unit, as in `30s`
    b.json:4:11: spec.listen: `x` is not an address to listen on
      expected an IP address and a port, such as 127.0.0.1:8080 or [::]:8080, or a socket such as unix:/run/toolyard.sock
    b.json:11:11: spec.handlers[0].name: duplicate handler name
      hint: first defined at a.yaml:6:11: spec.handlers[0].name
    c.yaml:4:1: spec[0]: invalid YAML or JSON: while parsing a node, did not find expected node content
    d.yaml:1:1: duplicate `Toolyard` document
      hint: first defined at b.json:1:1
    d.yaml:5:11: metadata.name: this field is required
    ");
}
