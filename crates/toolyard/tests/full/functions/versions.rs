//! Publishing and deleting versions during calls.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use serde_json::json;
use toolyard_testing::wait::eventually;

use super::{FunctionWorkspace, json_of};

/// Returns the source of a server whose only tool, `which`, returns its version.
fn source(version: &str) -> String {
    source_with("which", version)
}

fn source_with(tool: &str, version: &str) -> String {
    format!(
        r#"
function cortexone_handler(event)
  local result = {{content = {{{{type = "text", text = "{version}"}}}}}}
  if event.method == "initialize" then
    result = {{protocolVersion = "2024-11-05", capabilities = {{tools = {{}}}}, serverInfo = {{name = "v", version = "1"}}}}
  elseif event.method == "tools/list" then
    result = {{tools = {{{{name = "{tool}", inputSchema = {{type = "object"}}}}}}}}
  end
  return {{jsonrpc = "2.0", id = event.id, result = result}}
end
"#
    )
}

#[test]
fn tools_of_a_version_are_listed_once_it_is_published() {
    let handler = json!({"name": "which", "type": "function", "functionConfig": {"id": "which"}});
    let workspace = FunctionWorkspace::start(&[handler], json!({}));
    for tool in ["first", "second", "third"] {
        workspace.write("which", "cortexone_function.lua", &source_with(tool, "1"), json!({}));
        let published = workspace.succeed(&["publish", "which", "--patch"]);
        assert!(published.ends_with(", served by which\n"), "{published}");
        assert_eq!(workspace.gateway.tools(), [tool]);
    }
}

#[test]
fn no_call_is_lost_while_versions_change() {
    let handler = json!({"name": "which", "type": "function", "functionConfig": {"id": "which"}});
    let workspace = FunctionWorkspace::start(&[handler], json!({}));
    let publish = |version: &str, bump: &str| {
        workspace.write("which", "cortexone_function.lua", &source(version), json!({}));
        workspace.succeed(&["publish", "which", bump]);
    };
    publish("1.0.0", "--patch");
    let by_mcp = || workspace.gateway.call("which", json!({}));
    let event = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "which"}});
    let by_rest = || {
        let answer = json_of(&workspace.invoke("", "which/latest", &event), 200);
        answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    };
    let text = || {
        let result = by_mcp().result();
        result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned()
    };
    let (over, calls) = (AtomicBool::new(false), AtomicUsize::new(0));
    let versions = ["1.0.0", "1.1.0", "2.0.0"];
    thread::scope(|scope| {
        // Stops the callers on success and on panic.
        let _end = EndOnDrop(&over);
        for caller in 0..8 {
            let (over, calls) = (&over, &calls);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let answer = if caller % 2 == 0 { by_rest() } else { text() };
                    assert!(versions.contains(&&*answer), "{answer}");
                    calls.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let follow = |version: &str| {
            eventually("both doors have this version", || {
                (by_rest() == version && text() == version).then_some(())
            });
        };
        follow("1.0.0");
        publish("1.1.0", "--minor");
        follow("1.1.0");
        publish("2.0.0", "--major");
        follow("2.0.0");
        workspace.succeed(&["delete", "which", "2.0.0"]);
        follow("1.1.0");
        workspace.succeed(&["delete", "which", "1.1.0"]);
        follow("1.0.0");
    });
    assert!(calls.load(Ordering::Relaxed) > 50, "{calls:?}");
    // Version numbers are not reused.
    publish("2.0.0", "--patch");
    let details = workspace.succeed(&["show", "which"]);
    assert!(details.contains("2.0.1, latest of 2 versions"), "{details}");
}

struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
