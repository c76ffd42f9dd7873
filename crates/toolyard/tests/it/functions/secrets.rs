//! What a gateway lends to functions is theirs, and nobody else reads it.

use serde_json::{Value, json};

use super::{Yard, json_of};
use crate::support::eventually;

const CANARY: &str = "canary-a8f1-lent";
const OWN: &str = "canary-77c2-own";

#[test]
fn what_is_lent_reaches_the_function_and_nobody_else() {
    let yard = Yard::start(&[], json!({"functions": {"lend": {"TOKEN": CANARY}}}));
    let source = r#"
function cortexone_handler(event)
  if event.throw then error("without it") end
  return {statusCode = 200, body = {length = #process.env.TOKEN, own = #process.env.OWN, path = process.env.PATH}}
end
"#;
    let environment = json!({"TOKEN": "Bearer ${TOKEN}", "OWN": OWN});
    yard.publish("lent", source, json!({"kind": "function", "environment": environment}));
    let event = json!({"throw": false});
    let body = json_of(&yard.invoke("", "lent/1", &event), 200)["body"].take();
    assert_eq!(body, json!({"length": CANARY.len() + "Bearer ".len(), "own": OWN.len()}));
    yard.invoke("", "lent/1", &json!({"throw": true}));
    let source = "function cortexone_handler() end";
    yard.write(
        "greedy",
        "cortexone_function.lua",
        source,
        json!({"environment": {"A": "${HOME}", "B": OWN}}),
    );
    let refused = yard.function(&["publish", "greedy"]);
    assert!(refused.code == 1 && refused.stderr.contains("which this host does not lend"), "{refused}");
    let logs = eventually("both calls are written", || {
        let page: Value = serde_json::from_str(&yard.done(&["logs", "lent", "--output", "json"])).unwrap();
        (page["entries"].as_array().unwrap().len() == 2).then(|| page.to_string())
    });
    let shown = yard.done(&["show", "lent", "1.0.0"]);
    assert!(shown.contains(r#"environment  ["OWN","TOKEN"]"#), "{shown}");
    let told = [
        logs,
        shown,
        yard.done(&["show", "lent", "draft", "--output", "json"]),
        yard.done(&["show", "lent", "--output", "json"]),
        yard.done(&["list", "--output", "json"]),
        yard.done(&["test", "lent", "latest", "--output", "json"]),
        refused.to_string(),
        yard.gateway.get("/api/v1/status").body,
        yard.gateway.get("/api/v1/audit").body,
        yard.gateway.get("/metrics").body,
        yard.gateway.process.stdout.text(),
        yard.gateway.process.stderr.text(),
    ];
    for text in told {
        assert!(!text.contains(CANARY) && !text.contains(OWN), "{text}");
    }
}
