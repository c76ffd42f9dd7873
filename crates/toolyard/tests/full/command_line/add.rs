//! `toolyard add openapi`: its output and the change of the manifest.

use std::fs;
use std::path::Path;
use std::process::Command;

use insta::assert_snapshot;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::process::{ProgramResult, run};
use toolyard_testing::upstream::{BackgroundUpstream, ReceivedRequest, ScriptedReply};

use super::terminal::at_terminal;
use crate::support::gateway::toolyard;

const SHOP: &str = "
openapi: 3.0.3
info: {title: The Shop, version: '1'}
servers: [{url: https://shop.example/v1}]
paths:
  /orders:
    get: {operationId: listOrders, tags: [orders], summary: Lists orders, responses: {}}
    post: {operationId: addOrder, tags: [orders], summary: Adds an order, security: [{key: []}], responses: {}}
  /health:
    get: {summary: \"Is it\\e[2J well?\", responses: {}}
    put: {$ref: '#/nowhere'}
components:
  securitySchemes: {key: {type: apiKey, in: header, name: X-Key}}
";

/// A directory with a description.
struct ManifestDir(TempDir);

impl ManifestDir {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("shop.yaml"), SHOP).unwrap();
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = toolyard(self.path());
        command.current_dir(self.path()).args(["add", "openapi"]).args(args);
        command
    }

    #[track_caller]
    fn add(&self, args: &[&str]) -> ProgramResult {
        run(&mut self.command(args))
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.path().join(name)).ok()
    }
}

#[test]
fn tools_are_shown_and_handler_is_written() {
    let folder = ManifestDir::new();
    assert_snapshot!(folder.add(&["shop.yaml", "--dry-run"]), @r"
    The Shop: 3 tools
      listOrders  GET /orders   Lists orders
      addOrder    POST /orders  Adds an order
      get_health  GET /health   Is it\u{1b}[2J well?
    1 fault in the description
      shop.yaml#/paths/~1health/put: unresolved reference `#/nowhere`: the operation is skipped
    toolyard.yaml
    + apiVersion: omnia.altairalabs.ai/v1alpha1
    + kind: ToolRegistry
    + metadata:
    +   name: toolyard
    + spec:
    +   handlers:
    +     - name: the-shop
    +       type: openapi
    +       openAPIConfig:
    +         specURL: file:shop.yaml

    would update toolyard.yaml (dry run)
    --- stderr
    note: the service requires `key`; set `credentials` in the handler
    --- exit status 0
    ");
    assert_eq!(folder.read("toolyard.yaml"), None);
    assert_snapshot!(folder.add(&["shop.yaml", "--yes"]), @r"
    The Shop: 3 tools
      listOrders  GET /orders   Lists orders
      addOrder    POST /orders  Adds an order
      get_health  GET /health   Is it\u{1b}[2J well?
    1 fault in the description
      shop.yaml#/paths/~1health/put: unresolved reference `#/nowhere`: the operation is skipped
    toolyard.yaml
    + apiVersion: omnia.altairalabs.ai/v1alpha1
    + kind: ToolRegistry
    + metadata:
    +   name: toolyard
    + spec:
    +   handlers:
    +     - name: the-shop
    +       type: openapi
    +       openAPIConfig:
    +         specURL: file:shop.yaml

    created toolyard.yaml
    --- stderr
    note: the service requires `key`; set `credentials` in the handler
    --- exit status 0
    ");
    assert_snapshot!(folder.read("toolyard.yaml").unwrap(), @"
    apiVersion: omnia.altairalabs.ai/v1alpha1
    kind: ToolRegistry
    metadata:
      name: toolyard
    spec:
      handlers:
        - name: the-shop
          type: openapi
          openAPIConfig:
            specURL: file:shop.yaml
    ");
    let check = run(toolyard(folder.path()).current_dir(folder.path()).args(["check", "toolyard.yaml"]));
    assert_snapshot!(check, @"
    no problems in 1 file: 1 handler (1 openapi)
    --- exit status 0
    ");
}

#[test]
fn rest_of_manifest_is_preserved() {
    let folder = ManifestDir::new();
    let before = "# Ours.
apiVersion: omnia.altairalabs.ai/v1alpha1
kind: ToolRegistry
metadata: {name: ours}
spec:
  handlers:
    - name: the-shop  # by hand
      type: mcp
      mcpConfig: {transport: stdio, command: shop, args: ['${NOT_SET_HERE}']}
  # Last.
  probe: {enabled: false}
";
    fs::write(folder.path().join("ours.yaml"), before).unwrap();
    let args = ["shop.yaml", "-f", "ours.yaml", "--tag", "orders", "--operation", "addOrder", "--yes"];
    assert_snapshot!(folder.add(&args), @"
    The Shop: 1 tool
      addOrder  POST /orders  Adds an order
    1 fault in the description
      shop.yaml#/paths/~1health/put: unresolved reference `#/nowhere`: the operation is skipped
    ours.yaml
          - name: the-shop  # by hand
            type: mcp
            mcpConfig: {transport: stdio, command: shop, args: ['${NOT_SET_HERE}']}
    +     - name: the-shop-2
    +       type: openapi
    +       openAPIConfig:
    +         specURL: file:shop.yaml
    +         operationFilter: [addOrder]
    +         filter:
    +           tags: [orders]
        # Last.
        probe: {enabled: false}

    updated ours.yaml
    --- stderr
    note: the service requires `key`; set `credentials` in the handler
    --- exit status 0
    ");
    let after = folder.read("ours.yaml").unwrap();
    let added = "    - name: the-shop-2
      type: openapi
      openAPIConfig:
        specURL: file:shop.yaml
        operationFilter: [addOrder]
        filter:
          tags: [orders]
";
    assert_eq!(after.replacen(added, "", 1), before);
}

#[test]
fn change_needs_confirmation() {
    let folder = ManifestDir::new();
    let at =
        |typed: &str| run(at_terminal(typed, &folder.command(&["shop.yaml"])).current_dir(folder.path()));
    let seen = at("n\n").stdout;
    assert!(
        seen.contains("Write the change? [y/N]") && seen.contains("toolyard.yaml is unchanged"),
        "{seen}"
    );
    assert_eq!(folder.read("toolyard.yaml"), None);
    let seen = at("y\n").stdout;
    assert!(seen.contains("created toolyard.yaml"), "{seen}");
    assert!(folder.read("toolyard.yaml").is_some());
}

/// Serves one response at any path.
fn serve(status: u16, text: &'static str) -> BackgroundUpstream {
    BackgroundUpstream::start(move |_: &ReceivedRequest| ScriptedReply::http(status, "", text))
}

#[test]
fn description_from_url_as_json() {
    let folder = ManifestDir::new();
    let server = serve(200, SHOP);
    let url = server.url("/shop.yaml");
    let ended =
        folder.add(&[&url, "--yes", "--name", "shop", "--operation", "listOrders", "--output", "json"]);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let config = json!({"specURL": url, "operationFilter": ["listOrders"]});
    let place = format!("{url}#/paths/~1health/put");
    assert_eq!(
        report,
        json!({
            "file": "toolyard.yaml",
            "handler": {"name": "shop", "type": "openapi", "openAPIConfig": config},
            "title": "The Shop",
            "tools": [{"name": "listOrders", "method": "GET", "path": "/orders", "description": "Lists orders"}],
            "faults": [{"place": place, "problem": "unresolved reference `#/nowhere`: the operation is skipped"}],
            "uncallable": [],
            "written": true,
        })
    );
    assert_eq!(ended.code, 0);
}

#[test]
fn refusals() {
    let folder = ManifestDir::new();
    let check = |args: &[&str], code: i32, message: &str| {
        let ended = folder.add(args);
        assert_eq!(ended.code, code, "{ended}");
        assert!(ended.stderr.contains(message), "{ended}");
    };
    check(&["shop.yaml"], 2, "confirmation needed, but there is no terminal");
    check(&["absent.yaml"], 2, "cannot read the description: absent.yaml: No such file");
    check(&["ftp://shop.example"], 2, "this is not an endpoint");
    check(&["shop.yaml", "--name", "The Shop"], 2, "this is not a handler name");
    check(&["shop.yaml", "--tag", "nothing", "--yes"], 2, "no operation can become a tool");
    check(&["shop.yaml", "-f", "-"], 2, "cannot add a handler to `-`");
    check(&["shop.yaml", "-f", "."], 2, "cannot add a handler to `.`");
    check(&["http://127.0.0.1:1/shop.yaml"], 1, "http://127.0.0.1:1/shop.yaml: cannot connect");
    check(&[&serve(404, "").url("/shop.yaml")], 1, "/shop.yaml: HTTP status 404 Not Found");
    check(&[&serve(200, "<html>").url("/shop.yaml")], 2, "an HTML page instead of a service description");
    check(&[&serve(200, "{}").url("/shop.yaml")], 2, "not a service description");
    assert_eq!(folder.read("toolyard.yaml"), None);

    fs::write(folder.path().join("toolyard.yaml"), "kind: ToolRegistr\n").unwrap();
    check(&["shop.yaml", "--yes"], 2, "invalid manifest");
    fs::write(folder.path().join("tools.json"), JSON).unwrap();
    check(&["shop.yaml", "-f", "tools.json", "--yes"], 2, "cannot edit tools.json");
    check(&["shop.yaml", "-f", "tools.json", "--yes"], 2, "specURL: file:shop.yaml");
    check(&["shop.yaml", "-f", "tools.json", "--name", "a"], 2, "handler `a` already exists in tools.json");
    assert_eq!(folder.read("tools.json").unwrap(), JSON);
}

const JSON: &str = r#"{"apiVersion": "omnia.altairalabs.ai/v1alpha1", "kind": "ToolRegistry", "metadata": {"name": "a"},
"spec": {"handlers": [{"name": "a", "type": "mcp", "mcpConfig": {"transport": "stdio", "command": "x"}}]}}"#;

/// Runs `toolyard add` in a directory.
#[track_caller]
fn add_in(folder: &Path, args: &[&str]) -> ProgramResult {
    run(toolyard(folder).current_dir(folder).arg("add").args(args))
}

#[test]
fn mcp_servers_are_added() {
    let folder = TempDir::new().unwrap();
    assert_snapshot!(add_in(folder.path(), &["mcp", "--yes", "--env", "TOKEN", "--env", "LEVEL=info", "--", "npx", "-y", "@a/server-files@1.0", "~/x"]), @r#"
    toolyard.yaml
    + apiVersion: omnia.altairalabs.ai/v1alpha1
    + kind: ToolRegistry
    + metadata:
    +   name: toolyard
    + spec:
    +   handlers:
    +     - name: server-files
    +       type: mcp
    +       mcpConfig:
    +         transport: stdio
    +         command: npx
    +         args: ["-y", "@a/server-files@1.0", "~/x"]
    +         env:
    +           TOKEN: "${TOKEN}"
    +           LEVEL: info

    created toolyard.yaml
    --- exit status 0
    "#);
    assert_snapshot!(add_in(folder.path(), &["mcp", "--yes", "https://mcp.example.com/mcp", "--header", "Authorization: Bearer hunter2"]), @r#"
    toolyard.yaml
              env:
                TOKEN: "${TOKEN}"
                LEVEL: info
    +     - name: example
    +       type: mcp
    +       mcpConfig:
    +         transport: streamable-http
    +         endpoint: https://mcp.example.com/mcp
    +         headers:
    +           Authorization: "Bearer hunter2"

    updated toolyard.yaml
    --- stderr
    note: the value of Authorization is written into the manifest; write `${NAME}` to refer to a variable
    --- exit status 0
    "#);
    assert_snapshot!(add_in(folder.path(), &["mcp", "--dry-run", "--output", "json", "--name", "old", "http://127.0.0.1:1/sse"]), @r#"
    {"file":"toolyard.yaml","handler":{"name":"old","type":"mcp","mcpConfig":{"transport":"sse","endpoint":"http://127.0.0.1:1/sse"}},"written":false}
    --- exit status 0
    "#);
    assert_snapshot!(add_in(folder.path(), &["mcp", "--yes", "localhost:8080"]), @"
    --- stderr
    error: the manifest would be invalid with the new handler

    toolyard.yaml:27:19: spec.handlers[2].mcpConfig.endpoint: this is not an endpoint
      expected a URL such as https://mcp.example.com/mcp
      hint: the scheme is missing: put `http://` or `https://` in front
    --- exit status 2
    ");
    assert_snapshot!(add_in(folder.path(), &["mcp", "--yes"]), @"
    --- stderr
    error: name the URL of the server, or its command after `--`
    --- exit status 2
    ");
    assert_snapshot!(fs::read_to_string(folder.path().join("toolyard.yaml")).unwrap(), @r#"
    apiVersion: omnia.altairalabs.ai/v1alpha1
    kind: ToolRegistry
    metadata:
      name: toolyard
    spec:
      handlers:
        - name: server-files
          type: mcp
          mcpConfig:
            transport: stdio
            command: npx
            args: ["-y", "@a/server-files@1.0", "~/x"]
            env:
              TOKEN: "${TOKEN}"
              LEVEL: info
        - name: example
          type: mcp
          mcpConfig:
            transport: streamable-http
            endpoint: https://mcp.example.com/mcp
            headers:
              Authorization: "Bearer hunter2"
    "#);
}

#[test]
fn http_tools_are_added() {
    let folder = TempDir::new().unwrap();
    let url = "https://api.example.com/orders/{id}";
    assert_snapshot!(add_in(folder.path(), &["http", url, "--yes", "--method", "GET", "--description", "Returns an order", "--optional-arg", "full:boolean"]), @r#"
    toolyard.yaml
    + apiVersion: omnia.altairalabs.ai/v1alpha1
    + kind: ToolRegistry
    + metadata:
    +   name: toolyard
    + spec:
    +   handlers:
    +     - name: orders
    +       type: http
    +       tool:
    +         name: orders
    +         description: "Returns an order"
    +         inputSchema:
    +           type: object
    +           properties:
    +             id:
    +               type: string
    +             full:
    +               type: boolean
    +           required: [id]
    +       httpConfig:
    +         urlTemplate: "https://api.example.com/orders/{id}"
    +         method: GET

    created toolyard.yaml
    --- exit status 0
    "#);
    assert_snapshot!(add_in(folder.path(), &["http", "https://api.example.com/orders", "--yes", "--description", "Creates an order", "--arg", "product", "--arg", "count:integer", "--header", "X-Key: ${KEY}"]), @r#"
    toolyard.yaml
            httpConfig:
              urlTemplate: "https://api.example.com/orders/{id}"
              method: GET
    +     - name: orders-2
    +       type: http
    +       tool:
    +         name: orders_2
    +         description: "Creates an order"
    +         inputSchema:
    +           type: object
    +           properties:
    +             product:
    +               type: string
    +             count:
    +               type: integer
    +           required: [product, count]
    +       httpConfig:
    +         endpoint: https://api.example.com/orders
    +         method: POST
    +         headers:
    +           X-Key: "${KEY}"

    updated toolyard.yaml
    --- exit status 0
    "#);
    assert_snapshot!(add_in(folder.path(), &["http", "https://a.example", "--yes", "--description", "d", "--arg", "a:date"]), @r#"
    --- stderr
    error: invalid value 'a:date' for '--arg <NAME[:TYPE]>': unknown type "date": expected one of string, integer, number, boolean, object, array

    For more information, try '--help'.
    --- exit status 2
    "#);
    assert_snapshot!(add_in(folder.path(), &["http", "https://a.example", "--dry-run", "--description", "d", "--schema", "{"]), @"
    --- stderr
    error: --schema: EOF while parsing an object at line 1 column 1
    --- exit status 2
    ");
}

#[test]
fn functions_are_added() {
    let folder = TempDir::new().unwrap();
    let made = run(toolyard(folder.path())
        .current_dir(folder.path())
        .args(["function", "new", "--lang", "lua", "--kind", "function", "rain"]));
    assert_eq!(made.code, 0, "{made}");
    assert_snapshot!(add_in(folder.path(), &["function", "rain", "--path", "rain", "--yes"]), @r#"
    toolyard.yaml
    + apiVersion: omnia.altairalabs.ai/v1alpha1
    + kind: ToolRegistry
    + metadata:
    +   name: toolyard
    + spec:
    +   handlers:
    +     - name: rain
    +       type: function
    +       functionConfig:
    +         path: rain
    +       tool:
    +         name: rain
    +         description: "Calls the function rain with these arguments as its event."
    +         inputSchema:
    +           type: object

    created toolyard.yaml
    --- exit status 0
    "#);
    assert_snapshot!(add_in(folder.path(), &["function", "weather", "--version", "1.2", "--kind", "mcp", "--dry-run"]), @r#"
    toolyard.yaml
              description: "Calls the function rain with these arguments as its event."
              inputSchema:
                type: object
    +     - name: weather
    +       type: function
    +       functionConfig:
    +         id: weather
    +         version: "1.2"

    would update toolyard.yaml (dry run)
    --- exit status 0
    "#);
    assert_snapshot!(add_in(folder.path(), &["function", "weather", "--url", "http://127.0.0.1:1/mcp", "--dry-run"]), @r#"
    toolyard.yaml
              description: "Calls the function rain with these arguments as its event."
              inputSchema:
                type: object
    +     - name: weather
    +       type: function
    +       functionConfig:
    +         id: weather

    would update toolyard.yaml (dry run)
    --- stderr
    note: the kind of the function is not checked: request to http://127.0.0.1:1/mcp failed: cannot connect: tcp connect error: Connection refused (os error 111)
    --- exit status 0
    "#);
}

#[test]
fn manifest_is_chosen() {
    let check = |existing: &[&str], expected: &str| {
        let folder = TempDir::new().unwrap();
        for name in existing {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let added = add_in(folder.path(), &["mcp", "--dry-run", "--output", "json", "--", "x"]);
        let report: Value = serde_json::from_str(&added.stdout).unwrap();
        assert_eq!(
            report["file"].as_str().unwrap().trim_start_matches(folder.path().to_str().unwrap()),
            expected
        );
    };
    check(&[], "toolyard.yaml");
    check(&["tools.yaml"], "tools.yaml");
    check(&["tools.yaml", "toolyard.yaml"], "toolyard.yaml");
    check(&[".config/toolyard/toolyard.yaml"], "/.config/toolyard/toolyard.yaml");
}

#[test]
fn grpc_server_is_added() {
    let folder = ManifestDir::new();
    let add = |args: &[&str]| {
        let mut command = toolyard(folder.path());
        run(command.current_dir(folder.path()).args(["add", "grpc"]).args(args))
    };
    assert_snapshot!(add(&[
        "orders.example.com:443",
        "--tls",
        "--service",
        "shop.v1.*",
        "--method",
        "Get*",
        "--metadata",
        "x-tenant: acme",
        "--dry-run",
    ]), @r#"
    toolyard.yaml
    + apiVersion: omnia.altairalabs.ai/v1alpha1
    + kind: ToolRegistry
    + metadata:
    +   name: toolyard
    + spec:
    +   handlers:
    +     - name: orders-example
    +       type: grpc
    +       grpcConfig:
    +         endpoint: orders.example.com:443
    +         tls: true
    +         filter:
    +           services: ["shop.v1.*"]
    +           methods: ["Get*"]
    +         metadata:
    +           x-tenant: acme

    would update toolyard.yaml (dry run)
    --- exit status 0
    "#);
    assert_snapshot!(add(&["localhost:50051", "--descriptor-set", "shop.binpb", "--yes"]), @r"
    toolyard.yaml
    + apiVersion: omnia.altairalabs.ai/v1alpha1
    + kind: ToolRegistry
    + metadata:
    +   name: toolyard
    + spec:
    +   handlers:
    +     - name: localhost
    +       type: grpc
    +       grpcConfig:
    +         endpoint: localhost:50051
    +         descriptorSet: shop.binpb

    created toolyard.yaml
    --- exit status 0
    ");
    assert_eq!(add(&["https://orders.example.com", "--dry-run"]).code, 2);
}
