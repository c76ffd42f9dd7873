//! Mistakes in `ToolRegistry` documents.

use insta::assert_snapshot;

use super::{handler, mcp, problems, registry, toolyard, valid};
use crate::{HandlerKind, ToolGuide};

#[test]
fn head_of_a_document() {
    assert_snapshot!(problems("{}\n"), @"tools.yaml:1:1: kind: this field is required");
    assert_snapshot!(problems("kind: ToolRegistri\n"), @"
    tools.yaml:1:7: kind: `ToolRegistri` is not a known kind of document
      expected one of ToolRegistry, Toolyard
      hint: did you mean `ToolRegistry`?
    ");
    assert_snapshot!(problems("apiVersion: v1\nkind: Service\nspec: {ports: []}\n"), @"
    tools.yaml:2:7: kind: `Service` is not a known kind of document
      expected one of ToolRegistry, Toolyard
    ");
    assert_snapshot!(problems("apiVersion: langop.io/v1alpha1\nkind: LanguageTool\n"), @"
    tools.yaml:2:7: kind: kind of document `LanguageTool` is not yet supported
      expected one of ToolRegistry, Toolyard
    ");
    assert_snapshot!(problems("kind: ToolRegistry\n"), @"
    tools.yaml:1:1: apiVersion: this field is required
    tools.yaml:1:1: metadata: this field is required
    tools.yaml:1:1: spec: this field is required
    ");
    assert_snapshot!(problems(&handler("").replace("v1alpha1", "v1alpha2")), @"
    tools.yaml:1:13: apiVersion: `omnia.altairalabs.ai/v1alpha2` is not a known version of ToolRegistry
      expected omnia.altairalabs.ai/v1alpha1
      hint: did you mean `omnia.altairalabs.ai/v1alpha1`?
    ");
    assert_snapshot!(problems(&format!("{}specs: 1\n", handler(""))), @"
    tools.yaml:10:1: specs: unknown field
      expected one of kind, apiVersion, metadata, spec
      hint: did you mean `spec`?
    ");
}

#[test]
fn metadata() {
    assert_snapshot!(problems(&handler("").replace("{name: agent-tools}", "{}")), @"tools.yaml:3:11: metadata.name: this field is required");
    assert_snapshot!(problems(&handler("").replace("{name: agent-tools}", "agent-tools")), @"
    tools.yaml:3:11: metadata: found a string
      expected an object
    ");
    assert_snapshot!(problems(&handler("").replace("agent-tools", "Agent_Tools, namespace: a.b, label: {}")), @"
    tools.yaml:3:18: metadata.name: `Agent_Tools` is not the name of a resource
      expected at most 253 lower-case letters, digits, `-` and `.`, such as agent-tools
    tools.yaml:3:42: metadata.namespace: `a.b` is not a namespace
      expected at most 63 lower-case letters, digits and `-`, such as code-tools
    tools.yaml:3:47: metadata.label: unknown field
      expected one of name, namespace, labels, annotations
      hint: did you mean `labels`?
    ");
    assert_snapshot!(
        problems(&handler("").replace("agent-tools", "a, labels: {tier: 1}, annotations: {example.com/on: true}")),
        @r#"
    tools.yaml:3:36: metadata.labels.tier: found a number
      expected a string
      hint: put it in quotes
    tools.yaml:3:70: metadata.annotations["example.com/on"]: found a boolean
      expected a string
      hint: put it in quotes
    "#
    );
}

#[test]
fn handlers_are_a_list() {
    assert_eq!(valid(&registry("    []\n")).handlers, []);
    assert_snapshot!(problems(&registry("")), @"
    tools.yaml:5:11: spec.handlers: found nothing (null)
      expected a list
    ");
    assert_snapshot!(problems(&registry("    name: files\n")), @"
    tools.yaml:6:5: spec.handlers: found an object
      expected a list
    ");
    assert_snapshot!(problems(&registry("  - files\n  - {}\n")), @"
    tools.yaml:6:5: spec.handlers[0]: found a string
      expected an object
    tools.yaml:7:5: spec.handlers[1].name: this field is required
    tools.yaml:7:5: spec.handlers[1].type: this field is required
    ");
    assert_snapshot!(problems(&registry("").replace("handlers:", "{}")), @"tools.yaml:5:3: spec.handlers: this field is required");
}

#[test]
fn handler_names() {
    assert_snapshot!(problems(&handler("").replace("files", "Files_2")), @"
    tools.yaml:6:11: spec.handlers[0].name: `Files_2` is not a handler name
      expected at most 63 lower-case letters, digits and `-`, such as code-tools
    ");
    assert_snapshot!(problems(&handler("").replace("files", "42")), @"
    tools.yaml:6:11: spec.handlers[0].name: found a number
      expected a string
      hint: put it in quotes
    ");
    assert_snapshot!(problems(&handler("").replace("files", "[a]")), @"
    tools.yaml:6:11: spec.handlers[0].name: found a list
      expected a string
    ");
    assert_snapshot!(problems(&handler("").replace("files", "\"\"")), @"
    tools.yaml:6:11: spec.handlers[0].name: `` is not a handler name
      expected at most 63 lower-case letters, digits and `-`, such as code-tools
    ");
    assert_snapshot!(problems(&handler("").replace("files", &"a".repeat(64))), @"
    tools.yaml:6:11: spec.handlers[0].name: `aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…` is not a handler name
      expected at most 63 lower-case letters, digits and `-`, such as code-tools
    ");
    assert_snapshot!(problems(&handler("").replace("name: files", "name:")), @"
    tools.yaml:6:9: spec.handlers[0].name: found nothing (null)
      expected a string
    ");
}

#[test]
fn handler_names_are_unique_across_registries() {
    let second = handler("").replace("agent-tools", "other");
    assert_snapshot!(problems(&format!("{}---\n{second}", handler(""))), @"
    tools.yaml:16:11: spec.handlers[0].name: duplicate handler name
      hint: first defined at tools.yaml:6:11: spec.handlers[0].name
    ");
    // An invalid handler still occupies its name.
    let broken = "  - {name: a, type: client}\n  - {name: a, type: ftp}\n";
    assert_snapshot!(problems(&registry(broken)), @"
    tools.yaml:6:21: spec.handlers[0].type: handler type `client` is not yet supported
      expected one of mcp, http, grpc, openapi, function, cortexone, bus
    tools.yaml:7:12: spec.handlers[1].name: duplicate handler name
      hint: first defined at tools.yaml:6:12: spec.handlers[0].name
    tools.yaml:7:21: spec.handlers[1].type: `ftp` is not a known handler type
      expected one of mcp, http, grpc, openapi, function, cortexone, bus
    ");
}

#[test]
fn registry_names_are_unique() {
    let second = handler("").replace("files", "others");
    assert_snapshot!(problems(&format!("{}---\n{second}", handler(""))), @"
    tools.yaml:13:11: metadata: duplicate ToolRegistry name
      hint: first defined at tools.yaml:3:11: metadata
    ");
}

#[test]
fn handler_types() {
    assert_snapshot!(problems(&handler("").replace("mcp\n", "mpc\n")), @"
    tools.yaml:7:11: spec.handlers[0].type: `mpc` is not a known handler type
      expected one of mcp, http, grpc, openapi, function, cortexone, bus
      hint: did you mean `mcp`?
    ");
    assert_snapshot!(problems(&handler("").replace("mcp\n", "ftp\n")), @"
    tools.yaml:7:11: spec.handlers[0].type: `ftp` is not a known handler type
      expected one of mcp, http, grpc, openapi, function, cortexone, bus
    ");
    assert_snapshot!(problems(&handler("").replace("mcp\n", "client\n")), @"
    tools.yaml:7:11: spec.handlers[0].type: handler type `client` is not yet supported
      expected one of mcp, http, grpc, openapi, function, cortexone, bus
    ");
    assert_snapshot!(problems(&registry("  - name: a\n    type: mcp\n")), @"tools.yaml:6:5: spec.handlers[0].mcpConfig: this field is required");
}

#[test]
fn timeouts() {
    assert_snapshot!(problems(&handler("timeout: 30")), @"
    tools.yaml:9:14: spec.handlers[0].timeout: found a number
      expected a duration such as 500ms, 30s, 1m30s or 2h
      hint: add a unit, as in `30s`
    ");
    assert_snapshot!(problems(&handler("timeout: '30'")), @"
    tools.yaml:9:14: spec.handlers[0].timeout: `30` is not a duration
      expected a duration such as 500ms, 30s, 1m30s or 2h
      hint: add a unit, as in `30s`
    ");
    assert_snapshot!(problems(&handler("timeout: 3 seconds")), @"
    tools.yaml:9:14: spec.handlers[0].timeout: `3 seconds` is not a duration
      expected a duration such as 500ms, 30s, 1m30s or 2h
      hint: the units are h, m, s, ms, us and ns, without spaces
    ");
    assert_snapshot!(problems(&handler("timeout: 0s")), @"
    tools.yaml:9:14: spec.handlers[0].timeout: this is zero
      expected a duration above zero
    ");
    assert_snapshot!(problems(&handler("timeout: -5s")), @"
    tools.yaml:9:14: spec.handlers[0].timeout: `-5s` is not a duration
      expected a duration such as 500ms, 30s, 1m30s or 2h
      hint: the units are h, m, s, ms, us and ns, without spaces
    ");
    assert_snapshot!(problems(&handler("timeout: {seconds: 3}")), @"
    tools.yaml:9:14: spec.handlers[0].timeout: found an object
      expected a string
    ");
}

#[test]
fn unsupported_fields_of_the_contract_are_refused() {
    assert_snapshot!(problems(&handler("clientConfig: {}")), @"tools.yaml:9:5: spec.handlers[0].clientConfig: `clientConfig` is not yet supported");
}

#[test]
fn unknown_fields() {
    assert_snapshot!(problems(&handler("time_out: 3s")), @"
    tools.yaml:9:5: spec.handlers[0].time_out: unknown field
      expected one of name, selector, type, mcpConfig, retryPolicy, retries, timeout, prefix, overrides, pin, price, displayName, description, chunk, chunkThreshold, renameArguments
      hint: did you mean `timeout`?
    ");
    assert_snapshot!(problems(&handler("colour: green")), @"
    tools.yaml:9:5: spec.handlers[0].colour: unknown field
      expected one of name, selector, type, mcpConfig, retryPolicy, retries, timeout, prefix, overrides, pin, price, displayName, description, chunk, chunkThreshold, renameArguments
    ");
    assert_snapshot!(problems(&mcp("transport: stdio\ncomand: x\nworkdir: /app")), @"
    tools.yaml:10:7: spec.handlers[0].mcpConfig.comand: unknown field
      expected one of transport, command, args, workDir, env, firstStart, lane, era, toolFilter, retryPolicy
      hint: did you mean `command`?
    tools.yaml:11:7: spec.handlers[0].mcpConfig.workdir: unknown field
      expected one of transport, command, args, workDir, env, firstStart, lane, era, toolFilter, retryPolicy
      hint: did you mean `workDir`?
    ");
    assert_snapshot!(problems(&mcp("transport: stdio\ncommand: x\n\"odd key\": 1")), @r#"
    tools.yaml:11:7: spec.handlers[0].mcpConfig["odd key"]: unknown field
      expected one of transport, command, args, workDir, env, firstStart, lane, era, toolFilter, retryPolicy
    "#);
}

#[test]
fn guides_need_unique_names_and_content() {
    let guides = "guides:
  - {name: web-tools, summary: Find pages, text: Ask `web_search`.}
  - {name: Web_Tools, summary: \"Find\\npages\", text: ' '}
  - {name: a b, summary: '', file: nowhere.md, text: a}
  - {name: c, summary: d}
  - {name: e, summary: f, file: src}
";
    let handlers = "  - name: docs\n    type: mcp\n    mcpConfig: {transport: stdio, command: docs}\n";
    let indented: String = guides.lines().map(|line| format!("  {line}\n")).collect();
    assert_snapshot!(problems(&format!("{}{indented}", registry(handlers))), @r"
    tools.yaml:11:14: spec.guides[1].name: duplicate guide name
      hint: first defined at tools.yaml:10:14: spec.guides[0].name
    tools.yaml:11:34: spec.guides[1].summary: `Find\npages` is not a summary
      expected one line of at most 300 characters
    tools.yaml:11:55: spec.guides[1].text: this guide is empty
      expected Markdown of at most 256 KiB
    tools.yaml:12:14: spec.guides[2].name: `a b` is not the name of a guide
      expected letters, digits, `-` and `_`, 64 at most, such as web-tools
    tools.yaml:12:28: spec.guides[2].summary: `` is not a summary
      expected one line of at most 300 characters
    tools.yaml:12:38: spec.guides[2].file: this file cannot be read: No such file or directory (os error 2)
      expected the path of a file in Markdown, from the folder of the manifest
    tools.yaml:12:50: spec.guides[2].text: `text` does not belong here
      hint: `file` already contains the guide
    tools.yaml:13:7: spec.guides[3].text: this field is required
    tools.yaml:14:35: spec.guides[4].file: this file cannot be read: is a directory
      expected the path of a file in Markdown, from the folder of the manifest
    ");
}

#[test]
fn guides_of_all_registries_are_collected() {
    let guide = "  guides:\n  - {name: a, summary: b, text: 'c ${D}'}\n";
    let handlers = "  - name: docs\n    type: mcp\n    mcpConfig: {transport: stdio, command: docs}\n";
    let text = format!("{}{guide}---\n{}", registry(handlers), toolyard("builtins: {}"));
    let manifest = valid(&text);
    let expected = [ToolGuide { name: "a".into(), summary: "b".into(), document: "c ${D}".into() }];
    assert_eq!(manifest.guides, expected);
    let HandlerKind::Builtins(builtins) = &manifest.handlers[0].kind else { panic!("no builtins") };
    assert_eq!(builtins.registry_guides, expected);
}
