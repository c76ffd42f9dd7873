//! Servers that a launcher installs before their first start.

use std::path::Path;

use serde_json::Value;

use crate::causes::until;
use crate::gateway::{entry, gateway_of};

/// Writes a launcher that records its start, prints a line, and fails once the file `NAME.go` exists.
fn launcher(folder: &Path) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join("npx");
    let text = "#!/bin/sh\necho \"$2\" >> \"$1/starts\"\necho \"npm warn $2 is new\" >&2\n\
                while [ ! -e \"$1/$2.go\" ]; do sleep 0.05; done\nexit 1\n";
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

fn state(handler: &Value) -> String {
    let Some(installation) = handler.get("installation") else { return handler["phase"].to_string() };
    let line = installation["line"].as_str().unwrap_or("-");
    format!("{} {} {} {line}", handler["phase"], installation["launcher"], installation["waiting"])
}

fn states(handlers: &[Value]) -> Vec<String> {
    handlers.iter().map(state).collect()
}

#[tokio::test]
async fn installations_of_one_cache_go_one_after_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let command = launcher(folder.path());
    let path = folder.path().to_str().unwrap();
    let server = |name: &str, more: &str| {
        entry(name, "", &format!("transport: stdio, command: '{command}', args: ['{path}', {name}]{more}"))
    };
    // The time limit of connecting is shorter than the installation.
    let both = server("one", "") + &server("two", ", firstStart: 10m");
    let running = gateway_of(&both, "timeouts: {firstList: 0s, connect: 1ms, eraProbe: 1ms}").await;
    let [installing, waiting] = ["false npm warn one is new", "true -"];
    until(&running, "installation", |handlers| {
        states(handlers)
            == [format!("\"Installing\" \"npx\" {installing}"), format!("\"Installing\" \"npx\" {waiting}")]
    })
    .await;
    std::fs::write(folder.path().join("one.go"), "").unwrap();
    let next = "\"Installing\" \"npx\" false npm warn two is new";
    until(&running, "next installation", |handlers| {
        states(handlers)[1] == next && handlers[0]["lastError"]["output"][0] == "npm warn one is new"
    })
    .await;
    let starts = std::fs::read_to_string(folder.path().join("starts")).unwrap();
    assert_eq!(starts.lines().filter(|name| *name == "two").count(), 1, "{starts}");
}
