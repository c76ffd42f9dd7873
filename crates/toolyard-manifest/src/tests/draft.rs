//! Manifests to which a handler is added.

use insta::assert_snapshot;
use serde_json::json;

use super::source;
use crate::{AddHandlerError, ManifestEditor};

fn added(text: &str) -> Result<String, AddHandlerError> {
    let handler =
        json!({"name": "pets", "type": "openapi", "openAPIConfig": {"specURL": "https://a.example/${b}"}});
    ManifestEditor::new(source("dir/my tools.yaml", text)).unwrap().with_handler(&handler)
}

/// A registry with handlers in a given notation.
fn registry(handlers: &str) -> String {
    format!(
        "apiVersion: omnia.altairalabs.ai/v1alpha1\nkind: ToolRegistry\nmetadata: {{name: a}}\nspec:\n{handlers}"
    )
}

const STDIO: &str = "type: mcp, mcpConfig: {transport: stdio, command: x}";

#[test]
fn new_handler_follows_the_last_one() {
    let text = format!(
        "# Ours.\n{}---\n{}",
        registry(&format!(
            "  handlers:\n    # The first.\n    - {{name: a, {STDIO}}}\n    -   name: b  # this one\n        type: mcp\n        \
             mcpConfig:\n          transport: stdio\n          command: |-\n            # no comment\n\n            x\n        \
             # of b\n\n    # of nothing\n  probe: {{enabled: false}}\n# The end.\n"
        )),
        super::toolyard("listen: 127.0.0.1:1"),
    );
    assert_snapshot!(added(&text).unwrap(), @r#"
    # Ours.
    apiVersion: omnia.altairalabs.ai/v1alpha1
    kind: ToolRegistry
    metadata: {name: a}
    spec:
      handlers:
        # The first.
        - {name: a, type: mcp, mcpConfig: {transport: stdio, command: x}}
        -   name: b  # this one
            type: mcp
            mcpConfig:
              transport: stdio
              command: |-
                # no comment

                x
            # of b
        - name: pets
          type: openapi
          openAPIConfig:
            specURL: "https://a.example/${b}"

        # of nothing
      probe: {enabled: false}
    # The end.
    ---
    apiVersion: toolyard.dev/v1alpha1
    kind: Toolyard
    spec:
      listen: 127.0.0.1:1
    "#);
}

#[test]
fn new_handler_joins_the_existing_list() {
    let zero = registry(&format!("  handlers:\n  - {{name: a, {STDIO}}}"));
    assert_snapshot!(added(&zero).unwrap(), @r#"
    apiVersion: omnia.altairalabs.ai/v1alpha1
    kind: ToolRegistry
    metadata: {name: a}
    spec:
      handlers:
      - {name: a, type: mcp, mcpConfig: {transport: stdio, command: x}}
      - name: pets
        type: openapi
        openAPIConfig:
          specURL: "https://a.example/${b}"
    "#);
    let windows = registry(&format!("  handlers:\n   - {{name: a, {STDIO}}}\n")).replace('\n', "\r\n");
    assert_snapshot!(added(&windows).unwrap().replace('\r', "~"), @r#"
    apiVersion: omnia.altairalabs.ai/v1alpha1~
    kind: ToolRegistry~
    metadata: {name: a}~
    spec:~
      handlers:~
       - {name: a, type: mcp, mcpConfig: {transport: stdio, command: x}}~
       - name: pets~
         type: openapi~
         openAPIConfig:~
           specURL: "https://a.example/${b}"~
    "#);
}

#[test]
fn text_without_a_list_gets_a_new_registry() {
    assert_snapshot!(added("").unwrap(), @r#"
    apiVersion: omnia.altairalabs.ai/v1alpha1
    kind: ToolRegistry
    metadata:
      name: my-tools
    spec:
      handlers:
        - name: pets
          type: openapi
          openAPIConfig:
            specURL: "https://a.example/${b}"
    "#);
    assert_snapshot!(added(&(super::toolyard("listen: 127.0.0.1:1") + "# The end.")).unwrap(), @r#"
    apiVersion: toolyard.dev/v1alpha1
    kind: Toolyard
    spec:
      listen: 127.0.0.1:1
    # The end.
    ---
    apiVersion: omnia.altairalabs.ai/v1alpha1
    kind: ToolRegistry
    metadata:
      name: my-tools
    spec:
      handlers:
        - name: pets
          type: openapi
          openAPIConfig:
            specURL: "https://a.example/${b}"
    "#);
    let flow =
        registry(&format!("  handlers: [{{name: a, {STDIO}}}]\n")).replace("name: a}", "name: my-tools}");
    assert_snapshot!(added(&flow).unwrap(), @r#"
    apiVersion: omnia.altairalabs.ai/v1alpha1
    kind: ToolRegistry
    metadata: {name: my-tools}
    spec:
      handlers: [{name: a, type: mcp, mcpConfig: {transport: stdio, command: x}}]
    ---
    apiVersion: omnia.altairalabs.ai/v1alpha1
    kind: ToolRegistry
    metadata:
      name: my-tools-2
    spec:
      handlers:
        - name: pets
          type: openapi
          openAPIConfig:
            specURL: "https://a.example/${b}"
    "#);
}

#[test]
fn unsupported_layout_is_refused() {
    let json = r#"{"apiVersion": "omnia.altairalabs.ai/v1alpha1", "kind": "ToolRegistry", "metadata": {"name": "a"},
        "spec": {"handlers": [{"name": "a", "type": "mcp", "mcpConfig": {"transport": "stdio", "command": "x"}}]}}"#;
    assert!(matches!(added(json), Err(AddHandlerError::UnsupportedLayout)));
    // The blank lines would belong to another handler.
    let unsupported = registry(
        "  handlers:\n    - name: a\n      type: mcp\n      mcpConfig:\n        transport: stdio\n        command: |+\n          x\n\n",
    );
    assert!(
        matches!(added(&unsupported), Err(AddHandlerError::UnsupportedLayout)),
        "{:?}",
        added(&unsupported)
    );
    let invalid = registry(
        "  handlers:\n    - {name: pets, type: mcp, mcpConfig: {transport: stdio, command: '${UNSET}'}}\n",
    );
    assert_snapshot!(added(&invalid).unwrap_err(), @"
    dir/my tools.yaml:7:13: spec.handlers[1].name: duplicate handler name
      hint: first defined at dir/my tools.yaml:6:14: spec.handlers[0].name
    ");
    let wrong = ManifestEditor::new(source("a.yaml", &registry("  handlers: {}\n"))).err().unwrap();
    assert_snapshot!(wrong, @"
    a.yaml:5:13: spec.handlers: found an object
      expected a list
    ");
}

#[test]
fn free_names() {
    #[track_caller]
    fn check(preferred: &str, expect: &str) {
        let text = registry(&format!(
            "  handlers:\n    - {{name: pets, {STDIO}}}\n    - {{name: pets-2, {STDIO}}}\n"
        ));
        assert_eq!(ManifestEditor::new(source("a.yaml", &text)).unwrap().free_name(preferred), expect);
    }
    check("shop", "shop");
    check("Pets", "pets-3");
    check("Swagger Petstore - OpenAPI 3.0", "swagger-petstore-openapi-3-0");
    check("天気", "server");
}
