//! Secrets of a gateway reach only the functions that may use them.

use serde_json::{Value, json};
use toolyard_testing::wait::eventually;

use super::{FunctionWorkspace, json_of};

const CANARY: &str = "canary-a8f1-lent";
const OWN: &str = "canary-77c2-own";

#[test]
fn secrets_reach_only_their_function() {
    let workspace = FunctionWorkspace::start(
        &[],
        json!({"functions": {"lend": {"TOKEN": {"value": CANARY, "functions": ["le*"]}}}}),
    );
    let source = r#"
function cortexone_handler(event)
  if event.throw then error("without it") end
  return {statusCode = 200, body = {length = #process.env.TOKEN, own = #process.env.OWN, path = process.env.PATH}}
end
"#;
    let environment = json!({"TOKEN": "Bearer ${TOKEN}", "OWN": OWN});
    workspace.publish("lent", source, json!({"kind": "function", "environment": environment}));
    let event = json!({"throw": false});
    let body = json_of(&workspace.invoke("", "lent/1", &event), 200)["body"].take();
    assert_eq!(body, json!({"length": CANARY.len() + "Bearer ".len(), "own": OWN.len()}));
    workspace.invoke("", "lent/1", &json!({"throw": true}));
    let source = "function cortexone_handler() end";
    workspace.write(
        "greedy",
        "cortexone_function.lua",
        source,
        json!({"environment": {"A": "${HOME}", "B": OWN}}),
    );
    let refused = workspace.function(&["publish", "greedy"]);
    assert!(refused.code == 1 && refused.stderr.contains("which this host does not provide"), "{refused}");
    // A function does not receive the secrets of another.
    workspace.write("other", "cortexone_function.lua", source, json!({"environment": {"A": "${TOKEN}"}}));
    let other = workspace.function(&["publish", "other"]);
    assert!(
        other.code == 1 && other.stderr.contains("does not provide to the function \"other\""),
        "{other}"
    );
    let logs = eventually("both calls are written", || {
        let page: Value =
            serde_json::from_str(&workspace.succeed(&["logs", "lent", "--output", "json"])).unwrap();
        (page["entries"].as_array().unwrap().len() == 2).then(|| page.to_string())
    });
    let details = workspace.succeed(&["show", "lent", "1.0.0"]);
    assert!(details.contains(r#"environment  ["OWN","TOKEN"]"#), "{details}");
    let outputs = [
        logs,
        details,
        workspace.succeed(&["show", "lent", "draft", "--output", "json"]),
        workspace.succeed(&["show", "lent", "--output", "json"]),
        workspace.succeed(&["list", "--output", "json"]),
        workspace.succeed(&["test", "lent", "latest", "--output", "json"]),
        refused.to_string(),
        other.to_string(),
        workspace.gateway.get("/api/v1/status").body,
        workspace.gateway.get("/api/v1/audit").body,
        workspace.gateway.get("/metrics").body,
        workspace.gateway.process.stdout.text(),
        workspace.gateway.process.stderr.text(),
    ];
    for text in outputs {
        assert!(!text.contains(CANARY) && !text.contains(OWN), "{text}");
    }
}
