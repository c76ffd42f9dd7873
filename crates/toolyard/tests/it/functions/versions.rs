//! Versions come and go while functions are called.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use serde_json::json;

use super::{Yard, json_of};
use crate::support::eventually;

/// A server whose only tool says which version it is.
fn source(version: &str) -> String {
    format!(
        r#"
function cortexone_handler(event)
  local result = {{content = {{{{type = "text", text = "{version}"}}}}}}
  if event.method == "initialize" then
    result = {{protocolVersion = "2024-11-05", capabilities = {{tools = {{}}}}, serverInfo = {{name = "v", version = "1"}}}}
  elseif event.method == "tools/list" then
    result = {{tools = {{{{name = "which", inputSchema = {{type = "object"}}}}}}}}
  end
  return {{jsonrpc = "2.0", id = event.id, result = result}}
end
"#
    )
}

#[test]
fn no_call_is_lost_when_a_version_is_published_or_taken_back() {
    let handler = json!({"name": "which", "type": "function", "functionConfig": {"id": "which"}});
    let yard = Yard::start(&[handler], json!({}));
    let publish = |version: &str, bump: &str| {
        yard.write("which", "cortexone_function.lua", &source(version), json!({}));
        yard.done(&["publish", "which", bump]);
    };
    publish("1.0.0", "--patch");
    let by_mcp = || yard.gateway.call("which", json!({}));
    eventually("the handler is there", || yard.gateway.tools().contains(&"which".to_owned()).then_some(()));
    let event = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "which"}});
    let by_rest = || {
        let answer = json_of(&yard.invoke("", "which/latest", &event), 200);
        answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    };
    let text = || {
        let result = by_mcp().result();
        result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned()
    };
    let (over, calls) = (AtomicBool::new(false), AtomicUsize::new(0));
    let known = ["1.0.0", "1.1.0", "2.0.0"];
    thread::scope(|scope| {
        // However this ends, the callers end as well.
        let _end = Ends(&over);
        for caller in 0..8 {
            let (over, calls) = (&over, &calls);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let said = if caller % 2 == 0 { by_rest() } else { text() };
                    assert!(known.contains(&&*said), "{said}");
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
        yard.done(&["delete", "which", "2.0.0"]);
        follow("1.1.0");
        yard.done(&["delete", "which", "1.1.0"]);
        follow("1.0.0");
    });
    assert!(calls.load(Ordering::Relaxed) > 50, "{calls:?}");
    // A number is not given again.
    publish("2.0.0", "--patch");
    let shown = yard.done(&["show", "which"]);
    assert!(shown.contains("2.0.1 is the latest of 2 versions"), "{shown}");
}

struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
