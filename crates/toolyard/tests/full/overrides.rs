//! `examples/overrides.yaml` with third-party servers: the tools as callers see them, and the calls that reach the
//! servers.

use insta::assert_snapshot;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::peers;

use crate::support::gateway::{TestGateway, toolyard};

/// Starts a gateway with the example, which waits for all servers.
fn example() -> TestGateway {
    let folder = TempDir::new().unwrap();
    let mut serve = toolyard(folder.path());
    serve.args(["serve", "-f"]).arg(peers::root().join("examples/overrides.yaml"));
    serve.arg("-f").arg(toolyard_testing::manifest::process_document(
        folder.path(),
        json!({"timeouts": {"firstList": "30s"}}),
    ));
    TestGateway::start(folder, &mut serve)
}

#[test]
fn overridden_tools_are_published() {
    let gateway = example();
    let list = gateway.request("tools/list", json!({})).result();
    let tools = list["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names[..3], ["now", "time_elsewhere", "everything_echo"]);
    assert!(names[2..].iter().all(|name| name.starts_with("everything_")), "{names:?}");
    assert!(!names.contains(&"everything_get-env"), "{names:?}");
    // The schemas are those of the server except for the overrides.
    let published = |tool: &Value| {
        let schema = &tool["inputSchema"];
        json!([tool["title"], tool["description"], schema["properties"], schema["required"]])
    };
    assert_snapshot!(format!("{:#}\n{:#}", published(&tools[0]), published(&tools[1])), @r#"
    [
      "The time here",
      "Tells what time it is, in Berlin unless another time zone is given.",
      {
        "timezone": {
          "description": "A time zone of the IANA, such as America/New_York",
          "title": "Timezone",
          "type": "string",
          "default": "Europe/Berlin"
        }
      },
      null
    ]
    [
      null,
      "Tells what time it is elsewhere when it is a given time in Berlin.",
      {
        "time": {
          "description": "Time to convert in 24-hour format (HH:MM)",
          "title": "Time",
          "type": "string"
        },
        "target_timezone": {
          "description": "Target IANA timezone name (e.g., 'Asia/Tokyo', 'America/San_Francisco'). Use 'Etc/UTC' as local timezone if no target timezone provided by the user.",
          "title": "Target Timezone",
          "type": "string"
        }
      },
      [
        "time",
        "target_timezone"
      ]
    ]
    "#);
}

#[test]
fn calls_reach_overridden_tools() {
    let gateway = example();
    let now = |arguments| -> Value { serde_json::from_str(&gateway.text("now", arguments)).unwrap() };
    assert_eq!(now(json!({}))["timezone"], "Europe/Berlin");
    assert_eq!(now(json!({"timezone": "Asia/Tokyo"}))["timezone"], "Asia/Tokyo");
    let noon = json!({"time": "12:00", "target_timezone": "Asia/Tokyo"});
    let elsewhere: Value = serde_json::from_str(&gateway.text("time_elsewhere", noon.clone())).unwrap();
    assert_eq!(elsewhere["source"]["timezone"], "Europe/Berlin");
    let mut pinned = noon;
    pinned["source_timezone"] = "UTC".into();
    let refused = gateway.call("time_elsewhere", pinned).result();
    assert_eq!(refused["isError"], true);
    assert_snapshot!(refused["content"][0]["text"].as_str().unwrap(), @"Invalid arguments: Additional properties are not allowed ('source_timezone' was unexpected)");
    assert_eq!(gateway.text("everything_echo", json!({"message": "hello"})), "Echo: hello");
    for unknown in ["get_current_time", "everything_get-env", "get-env", "echo"] {
        let error = gateway.call(unknown, json!({})).messages()[0]["error"].take();
        let message = error["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("Unknown tool: {unknown}")), "{message}");
    }
}

/// Overrides without effect are in the log.
#[test]
fn overrides_without_effect_are_logged() {
    let demo = |name: &str, overrides: Value| {
        let mut handler =
            toolyard_testing::manifest::stdio_handler(name, env!("CARGO_BIN_EXE_toolyard"), &["demo-server"]);
        handler["overrides"] = overrides;
        handler
    };
    let first = json!({"ehco": {"hide": true}, "add": {"arguments": {"c": {"pin": 1}}}});
    let mut second = demo("second", json!({"add": {"name": "reverse_string"}}));
    second["prefix"] = "never".into();
    let gateway = TestGateway::with_handlers(&[demo("first", first), second]);
    assert_eq!(gateway.tools(), ["echo", "first_reverse_string", "add", "reverse_string"]);
    let log = gateway.process.stderr.wait_for("the remarks", |text| {
        let remarks: Vec<_> = text.lines().filter_map(|line| line.split_once("WARN ")).collect();
        (remarks.len() >= 4).then(|| remarks.iter().map(|(_, remark)| *remark).collect::<Vec<_>>().join("\n"))
    });
    assert_snapshot!(log, @"
    toolyard_core::registry::publish_notice: its argument `c` is overridden, but not among the properties of its schema handler=first kind=Tools name=add
    toolyard_core::registry::publish_notice: overridden, but the handler does not offer it handler=first kind=Tools name=ehco
    toolyard_core::registry::publish_notice: not published: `echo` is taken by the handler `first` handler=second kind=Tools name=echo
    toolyard_core::registry::publish_notice: not published: `reverse_string` is taken by the handler `second` handler=second kind=Tools name=reverse_string
    ");
}
