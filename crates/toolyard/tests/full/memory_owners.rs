//! Access to entries of working memory, with third-party clients and the built binary: by the seal of a store, by a key,
//! by a session, and by the user at the other end of a Unix socket.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::manifest::stdio_handler;
use toolyard_testing::peers;
use toolyard_testing::postgres::PostgresServer;
use toolyard_testing::process::run;
use toolyard_testing::scripted_server::script;

use crate::support::gateway::TestGateway;

const MODERN: &str = "2026-07-28";

/// The eras of the Python client.
const MODES: [&str; 2] = [MODERN, "legacy"];

/// User that owns no files.
const OTHER_UID: u32 = 65534;

/// A gateway with a server whose descriptions, texts and `_meta` plant ids.
fn settings(mut process: Value) -> (Vec<Value>, Value) {
    let (python, server) = (peers::peer("python/bin/python"), script("archive_server.py"));
    let handler = stdio_handler("archive", python.to_str().unwrap(), &[server.to_str().unwrap()]);
    process["builtins"] = json!({"scripts": {"enabled": false}});
    (vec![handler], process)
}

fn gateway(process: Value) -> TestGateway {
    let (handlers, process) = settings(process);
    TestGateway::with_settings(&handlers, process)
}

/// A result as a client sees it.
#[derive(Debug)]
struct SeenResult(Value);

impl SeenResult {
    fn text(&self) -> &str {
        self.0["text"].as_str().unwrap()
    }

    #[track_caller]
    fn handle(&self) -> &str {
        self.0["handle"].as_str().unwrap_or_else(|| panic!("no handle: {self:?}"))
    }

    /// Returns the common beginning of the keys of a large result.
    #[track_caller]
    fn base(&self) -> &str {
        let base = self.text().split('`').find_map(|word| word.strip_suffix("-index"));
        base.unwrap_or_else(|| panic!("no keys: {self:?}"))
    }
}

/// A client of a gateway.
#[derive(Clone, Copy)]
struct PythonClient<'a> {
    target: &'a str,
    mode: &'a str,
    key: &'a str,
}

impl PythonClient<'_> {
    /// Returns the command of the client with these calls, each a tool, its arguments and a session.
    fn command(&self, home: &Path, calls: &Value) -> Command {
        let mut client = peers::command(peers::peer("python/bin/python"), home);
        client.arg(script("memory_client.py")).args([self.target, self.mode, self.key, &calls.to_string()]);
        client
    }

    #[track_caller]
    fn output(&self, calls: &Value) -> Value {
        let home = TempDir::new().unwrap();
        let ended = run(&mut self.command(home.path(), calls));
        assert_eq!(ended.code, 0, "{ended}");
        serde_json::from_str(&ended.stdout).unwrap()
    }

    /// Returns the results of calls on one connection.
    #[track_caller]
    fn seen(&self, calls: &Value) -> Vec<SeenResult> {
        match self.output(calls) {
            Value::Array(seen) => seen.into_iter().map(SeenResult).collect(),
            refused => panic!("{refused}"),
        }
    }

    #[track_caller]
    fn calls(&self, calls: &[(&str, Value, Option<&str>)]) -> Vec<SeenResult> {
        self.seen(&json!(calls))
    }

    #[track_caller]
    fn call(&self, tool: &str, arguments: Value, session: Option<&str>) -> SeenResult {
        self.calls(&[(tool, arguments, session)]).pop().unwrap()
    }

    #[track_caller]
    fn save(&self, key: &str, session: Option<&str>) -> SeenResult {
        let saved = self.call("save_to_working_memory", json!({"key": key, "data": "a secret"}), session);
        assert!(saved.text().starts_with("Saved to working memory as `"), "{saved:?}");
        saved
    }

    #[track_caller]
    fn list(&self, session: Option<&str>) -> SeenResult {
        self.call("list_working_memory", json!({}), session)
    }

    #[track_caller]
    fn read(&self, key: &str) -> SeenResult {
        self.call("get_from_working_memory", json!({"key": key}), None)
    }

    /// Checks that no tool returns or changes the entries of these keys, each with the session of the requests.
    #[track_caller]
    fn check_closed(&self, keys: &[(&str, Option<&str>)]) {
        let calls = keys.iter().flat_map(|(key, session)| {
            [
                json!(["get_from_working_memory", {"key": key}, session]),
                json!(["get_from_working_memory", {"key": key, "lines": "1-3"}, session]),
                json!(["query_working_memory", {"key": key, "expression": "@"}, session]),
                json!(["search_working_memory", {"query": "request", "namespace": key}, session]),
                json!(["list_working_memory", {"namespace": key}, session]),
                json!(["delete_from_working_memory", {"key": key}, session]),
            ]
        });
        let calls: Vec<_> = calls.collect();
        for (call, seen) in calls.iter().zip(self.seen(&json!(calls))) {
            let text = seen.text();
            let is_open = text.contains("took") || text.contains("a secret") || text.starts_with("Deleted");
            assert!(!is_open, "{} {call}: {text:.300}", self.mode);
        }
    }
}

/// A key of an entry of a large result, and a handle, that a gateway has given to a client without a key.
struct GivenIds {
    chunk: String,
    handle: String,
}

impl GivenIds {
    #[track_caller]
    fn of(client: PythonClient<'_>) -> Self {
        let notes = json!({"key": "notes", "data": "a secret"});
        let calls = [("log", json!({}), None), ("save_to_working_memory", notes, Some("handle"))];
        let [cut, saved] = &client.calls(&calls)[..] else { unreachable!() };
        let chunk = format!("{}-chunk0", cut.base());
        assert!(chunk.starts_with("session/tyid_"), "{chunk}");
        assert!(saved.text().starts_with("Saved to working memory as `session/"), "{saved:?}");
        Self { chunk, handle: saved.handle().to_owned() }
    }

    /// Reads the chunk and lists the namespace.
    #[track_caller]
    fn use_at(&self, client: PythonClient<'_>) -> [String; 2] {
        let calls = [
            ("get_from_working_memory", json!({"key": self.chunk}), None),
            ("list_working_memory", json!({}), Some(&*self.handle)),
        ];
        let [read, list] = &client.calls(&calls)[..] else { unreachable!() };
        [read, list].map(|seen| seen.text().to_owned())
    }

    #[track_caller]
    fn check_open(&self, client: PythonClient<'_>) {
        let [read, list] = self.use_at(client);
        assert!(read.contains("INFO request 1 took 1 ms"), "{read:.300}");
        assert!(list.contains("/notes` ("), "{list}");
    }

    #[track_caller]
    fn check_closed(&self, client: PythonClient<'_>) {
        let [read, list] = self.use_at(client);
        assert!(read.ends_with("not found or has expired."), "{read:.300}");
        assert!(list.contains("is no valid handle"), "{list}");
    }
}

fn without_key(url: &str) -> PythonClient<'_> {
    PythonClient { target: url, mode: MODERN, key: "" }
}

/// Replicas seal with the key in their store.
#[test]
fn replicas_on_one_postgresql_open_the_ids_of_each_other() {
    let server = PostgresServer::start();
    let store = || json!({"store": {"url": server.url()}});
    let [one, other] = [gateway(store()), gateway(store())].map(|gateway| (gateway.url(), gateway));
    let ids = GivenIds::of(without_key(&one.0));
    ids.check_open(without_key(&other.0));
    // What one saves with the handle, the other lists.
    without_key(&other.0).save("later", Some(&ids.handle));
    let list = without_key(&one.0).list(Some(&ids.handle));
    assert!(list.text().contains("/notes` (") && list.text().contains("/later` ("), "{list:?}");
}

/// A gateway with the same entries and another seal refuses the ids, and so does one with another store.
#[test]
fn gateway_with_another_seal_refuses_ids() {
    let server = PostgresServer::start();
    let store = || json!({"store": {"url": server.url()}});
    let first = gateway(store());
    let ids = GivenIds::of(without_key(&first.url()));
    drop(first);
    ids.check_open(without_key(&gateway(store()).url()));
    ids.check_closed(without_key(&gateway(json!({})).url()));
    server.execute("DELETE FROM toolyard.kv WHERE space = 'working-memory-seal'");
    ids.check_closed(without_key(&gateway(store()).url()));
}

/// The ids that a description, a text or `_meta` of a server plants, and forged ones, for clients of both eras.
#[test]
fn planted_and_forged_ids_open_nothing_in_either_era() {
    let gateway = gateway(json!({}));
    let url = gateway.url();
    let ids = GivenIds::of(without_key(&url));
    let digit = |text: &str, at: usize| {
        let other = if &text[at..=at] == "B" { "C" } else { "B" };
        format!("{}{other}{}", &text[..at], &text[at + 1..])
    };
    let (start, end) = ("session/tyid_".len(), ids.chunk.rfind('/').unwrap() - 1);
    let forged = [start, (start + end) / 2, end - 2].map(|at| digit(&ids.chunk, at));
    let id = ids.chunk.split('/').nth(1).unwrap();
    let [handle_in_key, id_of_notes] = [&ids.handle, id].map(|id| format!("session/{id}/notes"));
    let forged_handle = digit(&ids.handle, ids.handle.len() / 2);
    let keys = [
        (&*forged[0], None),
        (&*forged[1], None),
        (&*forged[2], None),
        // Planted by the description of the tools of `archive_server.py`, and by the `_meta` of its results.
        ("session/tyid_AAAAAAAAAAAAAAAAAAAAAAAA/tool-log-a1b2c3-index", None),
        ("session/tyid_planted/tool-log-a1b2c3-index", Some("tyid_planted")),
        // A handle is no part of a key, an id of a result is no handle, and the id is that of its result alone.
        (&*handle_in_key, None),
        (&*id_of_notes, None),
        ("notes", Some(id)),
        ("notes", Some(&*forged_handle)),
    ];
    for mode in MODES {
        PythonClient { mode, ..without_key(&url) }.check_closed(&keys);
    }
    ids.check_open(without_key(&url));
}

/// The id expires with the result.
#[test]
fn expired_id_opens_nothing() {
    let (handlers, mut process) = settings(json!({}));
    process["builtins"]["results"] = json!({"ttl": "1s"});
    let gateway = TestGateway::with_settings(&handlers, process);
    let url = gateway.url();
    let cut = without_key(&url).call("log", json!({}), None);
    let key = format!("{}-chunk0", cut.base());
    toolyard_testing::wait::eventually("the expiry", || {
        without_key(&url).read(&key).text().ends_with("not found or has expired.").then_some(())
    });
    without_key(&url).check_closed(&[(&key, None)]);
}

/// Saves entries with one key, and checks that another key, and a client without one, reach nothing.
#[track_caller]
fn check_keys(mode: &str) {
    let gateway = gateway(json!({}));
    let url = gateway.url();
    // Before there are keys, a client without one has ids of its own.
    let keyless = GivenIds::of(without_key(&url));
    let admin = gateway.new_key("", json!({"name": "a", "scopes": ["tools:*", "admin"]}));
    let other = gateway.new_key(&admin, json!({"name": "b", "scopes": ["tools:*"]}));
    let [a, b] = [&admin, &other].map(|key| PythonClient { target: &url, mode, key });
    let seen = a.calls(&[
        ("log", json!({}), None),
        ("save_to_working_memory", json!({"key": "notes", "data": "a secret"}), None),
        ("list_working_memory", json!({}), None),
    ]);
    let chunk = format!("{}-chunk0", seen[0].base());
    let notes = seen[1].text().split('`').nth(1).unwrap();
    assert!(seen[2].text().contains("/notes` (") && seen[2].text().contains("-chunk0` ("), "{seen:?}");
    let namespace = notes.rsplit_once('/').unwrap().0;
    // An id that was made without a key is closed to keys.
    let of_keyless = (&*keyless.chunk, Some(&*keyless.handle));
    let mut keys = vec![(&*chunk, None), (notes, None), ("notes", None), (namespace, None), of_keyless];
    // Sessions of the older era belong to their connection, and have no handle.
    let handle = seen[2].0["handle"].as_str();
    assert_eq!(handle.is_some(), mode == MODERN, "{seen:?}");
    if handle.is_some() {
        keys.extend([(&*chunk, handle), (notes, handle), ("notes", handle)]);
    }
    b.check_closed(&keys);
    let own = b.list(None);
    assert!(own.text().starts_with("There is nothing in working memory"), "{own:?}");
    assert_eq!(gateway.call("get_from_working_memory", json!({"key": notes})).status, 401);
    if handle.is_some() {
        let list = a.list(handle);
        assert!(list.text().contains("/notes` (") && list.text().contains("-chunk0` ("), "{list:?}");
    }
}

#[test]
fn entries_and_handles_of_a_key_are_closed_to_others() {
    check_keys(MODERN);
}

#[test]
fn sessions_of_a_key_are_closed_to_others() {
    check_keys("legacy");
}

/// The kernel names the user of a Unix socket. All connections of the user have one namespace, without key and handle.
#[test]
fn unix_socket_has_the_namespace_of_its_user() {
    let (handlers, process) = settings(json!({}));
    let (folder, mut serve) = TestGateway::command(&handlers, process);
    let path = folder.path().join("toolyard.sock");
    let socket = format!("unix:{}", path.display());
    let gateway = TestGateway::start(folder, serve.args(["--listen", &socket]));
    gateway.process.stdout.wait_for("the socket", |text| text.contains(".sock").then_some(()));
    let uid = rustix::process::getuid().as_raw();
    let [modern, legacy] = MODES.map(|mode| PythonClient { target: &socket, mode, key: "" });
    let saved = modern.save("notes", None);
    assert!(saved.text().contains(&format!("`user/{uid}/notes`")), "{saved:?}");
    assert!(saved.0["handle"].is_null(), "{saved:?}");
    let cut = legacy.call("log", json!({}), None);
    assert!(cut.base().starts_with(&format!("user/{uid}/tool-log-")), "{}", cut.base());
    for client in [modern, legacy] {
        assert_eq!(client.read("notes").text(), "a secret");
        let chunk = client.read(&format!("{}-chunk0", cut.base()));
        assert!(chunk.text().contains("INFO request 1 took"), "{:.300}", chunk.text());
    }
    // TCP is another way in, and has no user.
    without_key(&gateway.url()).check_closed(&[(&format!("user/{uid}/notes"), None)]);

    // Only root can become another user.
    if uid == 0 {
        fs::set_permissions(gateway.folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        let as_other = |tool: &str, arguments: Value| other_user_calls(&path, tool, &arguments);
        let own = as_other("list_working_memory", json!({}));
        assert!(own.contains(&format!("user/{OTHER_UID}")) && !own.contains("/notes`"), "{own}");
        for key in ["notes", "user/0/notes", &format!("{}-chunk0", cut.base())] {
            let read = as_other("get_from_working_memory", json!({"key": key}));
            assert!(read.contains("not found or has expired."), "{read}");
        }
        let saved = as_other("save_to_working_memory", json!({"key": "notes", "data": "of the other"}));
        assert!(saved.contains(&format!("`user/{OTHER_UID}/notes`")), "{saved}");
        assert_eq!(modern.read("notes").text(), "a secret");
    }
}

/// Calls a tool with curl as another user, and returns the text of the result.
#[track_caller]
fn other_user_calls(socket: &Path, tool: &str, arguments: &Value) -> String {
    let params = json!({"name": tool, "arguments": arguments});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let mut curl = peers::command("setpriv", Path::new("/"));
    curl.args([&format!("--reuid={OTHER_UID}"), "--clear-groups", "--", "curl", "--silent", "--unix-socket"]);
    curl.arg(socket).args(["--header", "Content-Type: application/json", "--data", &call.to_string()]);
    let ended = run(curl.arg("http://localhost/mcp"));
    assert_eq!(ended.code, 0, "{ended}");
    let answer: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended}"));
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}
