use toolyard_agent::management::{HttpTransportKind, ServerAddress};
use toolyard_manifest::{AllowedServers, HandlerConfig};
use toolyard_store::{DatabaseLocation, StoreOptions};

use super::*;

fn program(command: &str, args: &[&str], env: &[(&str, &str)]) -> ServerAddress {
    ServerAddress::Program {
        command: command.to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
    }
}

fn url(url: &str) -> ServerAddress {
    ServerAddress::Url { url: url.to_owned(), transport: HttpTransportKind::StreamableHttp }
}

fn record(name: &str, reach: ServerAddress) -> ServerRecord {
    let description = Some("Costs ${MONEY}.".to_owned());
    ServerRecord::from(NewServer { name: name.to_owned(), address: reach, display_name: None, description })
}

fn allowed() -> AllowedServers {
    let strings = |strings: &[&str]| strings.iter().map(|text| (*text).to_owned()).collect();
    AllowedServers {
        commands: strings(&["uvx", "/usr/bin/npx"]),
        hosts: strings(&["docs.example.com", "*.internal:8443", "localhost"]),
        env: strings(&["API_KEY"]),
    }
}

/// Bound addresses of the gateway.
fn listening() -> [SocketAddr; 1] {
    ["127.0.0.1:8080".parse().expect("an address")]
}

/// Outcome of adding a server with the settings of this test.
fn outcome(name: &str, reach: ServerAddress) -> String {
    let handler = record(name, reach).handler().map_err(RegistrationError::Invalid);
    let checked =
        handler.and_then(|handler| allow::check(&handler, &allowed(), &listening()).map(|()| handler));
    match checked {
        Ok(handler) => handler.endpoint(),
        Err(refusal) => format!("refused: {refusal}"),
    }
}

#[test]
fn launchers_have_time_to_install_a_server() {
    let timeouts = ProcessTimeouts::default();
    let check = |address: ServerAddress, expected: u64| {
        let handler = record("clock", address).handler().expect("a server");
        assert_eq!(trial_time(&handler, &timeouts), Duration::from_secs(expected), "{}", handler.endpoint());
    };
    // `installQueue`, `firstStart`, and the lists.
    check(program("uvx", &["mcp-server-time"], &[]), 600 + 300 + 15);
    check(program("/usr/bin/npx", &["-y", "x"], &[]), 600 + 300 + 15);
    // `connect`, and the lists.
    check(program("mcp-server-time", &[], &[]), 30 + 15);
    check(url("http://localhost:1/mcp"), 30 + 15);
}

#[test]
fn allowed_and_refused_servers() {
    let cases = [
        ("clock", program("uvx", &["mcp-server-time"], &[])),
        ("clock", program("/usr/bin/npx", &["-y", "x"], &[("API_KEY", "hunter2")])),
        ("clock", program("npx", &[], &[])),
        ("clock", program("./uvx", &[], &[])),
        ("clock", program("uvx mcp-server-time", &[], &[])),
        ("clock", program("sh", &["-c", "uvx"], &[])),
        ("clock", program("", &[], &[])),
        ("clock", program("uvx", &[], &[("LD_PRELOAD", "/tmp/x.so")])),
        ("clock", program("uvx", &[], &[("API_KEY", "a"), ("", "b")])),
        ("docs", url("https://docs.example.com/mcp?key=hunter2")),
        ("docs", url("https://docs.example.com.evil.net/mcp")),
        ("docs", url("https://a.internal:8443/mcp")),
        ("docs", url("https://a.internal/mcp")),
        ("docs", url("http://169.254.169.254/latest")),
        ("docs", url("http://me:hunter2@docs.example.com/mcp")),
        ("docs", url("file:///etc/passwd")),
        ("docs", url("${file:/etc/passwd}")),
        ("docs", url("not a url")),
        ("itself", url("http://localhost:8080/mcp")),
        ("next", url("http://localhost:8081/mcp")),
        ("My Docs", url("https://docs.example.com/mcp")),
        ("a/b", url("https://docs.example.com/mcp")),
        ("builtins${X}", url("https://docs.example.com/mcp")),
        (&"x".repeat(64), url("https://docs.example.com/mcp")),
    ];
    let lines = cases.map(|(name, reach)| {
        let description = match &reach {
            ServerAddress::Program { command, args, env } => format!("{command} {args:?} {env:?}"),
            ServerAddress::Url { url, .. } => url.clone(),
        };
        format!("{name}: {description}\n  {}", outcome(name, reach))
    });
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn references_in_texts_are_not_resolved() {
    for text in ["${HOME}", "$${HOME}", "${file:/etc/hostname}", "$$${", "${", "a}b$", "${HOME:-x}"] {
        let reach = program("uvx", &[text], &[("API_KEY", text)]);
        let handler = record("clock", reach).handler().expect("a handler");
        let HandlerConfig { kind: manifest::HandlerKind::Mcp(mcp), reference_values: from_outside, .. } =
            &handler
        else {
            panic!("{handler:?}")
        };
        let manifest::McpTransport::Stdio { args, env, .. } = &mcp.transport else { panic!("{mcp:?}") };
        assert_eq!(args.iter().collect::<Vec<_>>(), [text]);
        assert_eq!(env.iter().collect::<Vec<_>>(), [("API_KEY", text)]);
        assert!(from_outside.is_empty());
        assert_eq!(handler.description.as_deref(), Some("Costs ${MONEY}."));
        assert_eq!(handler.prefix, manifest::PrefixMode::Always);
    }
}

#[test]
fn record_round_trips() {
    let sse = ServerAddress::Url { url: "https://a/sse".to_owned(), transport: HttpTransportKind::Sse };
    let records = [
        record("clock", program("uvx", &["a \"b\"", "é\n"], &[("API_KEY", "hunter2")])),
        record("docs", url("https://a/mcp")),
        ServerRecord { display_name: Some("Docs".to_owned()), ..record("events", sse) },
    ];
    let encoded = records.each_ref().map(|record| String::from_utf8_lossy(&record.encode()).into_owned());
    insta::assert_snapshot!(encoded.join("\n"));
    for (record, encoded) in records.iter().zip(&encoded) {
        assert_eq!(&serde_json::from_str::<ServerRecord>(encoded).expect("a record"), record);
    }
    assert!(!format!("{records:?}").contains("hunter2"));
}

#[tokio::test]
async fn server_limit_holds_across_gateways() {
    let store = toolyard_store::open(&StoreOptions::at(DatabaseLocation::Memory)).await.expect("a store");
    let gateway = || {
        let (commands, statuses) = (mpsc::channel(1).0.downgrade(), watch::channel(Arc::default()).1);
        let deps = AddedServersDeps { store: store.clone(), commands, statuses, listening: Vec::new() };
        AddedServers::new(deps, None, &ProcessTimeouts::default())
    };
    let (one, other) = (gateway(), gateway());
    let check = async |servers: &AddedServers, name: &str, expected: &str, names: &[&str]| {
        let outcome = servers.save(&record(name, program("uvx", &[], &[])), 2).await;
        assert_eq!(outcome.map_or_else(|why| why.to_string(), |()| "kept".to_owned()), expected, "{name}");
        let records = record::list(&*store).await.expect("records");
        assert_eq!(records.iter().map(|record| &*record.name).collect::<Vec<_>>(), names, "{name}");
    };
    let too_many = RegistrationError::TooMany { limit: 2 }.to_string();
    check(&one, "a", "kept", &["a"]).await;
    check(&other, "b", "kept", &["a", "b"]).await;
    check(&one, "c", &too_many, &["a", "b"]).await;
    check(&one, "b", &RegistrationError::Taken.to_string(), &["a", "b"]).await;
    assert!(store.delete(SERVERS, "a").await.expect("it is deleted"));
    check(&one, "c", "kept", &["b", "c"]).await;
}

#[test]
fn problem_of_a_text_names_its_field() {
    let nul = || Some("a\0b".to_owned());
    let described = ServerRecord { description: nul(), ..record("x", url("https://a/mcp")) };
    let displayed = ServerRecord { display_name: nul(), ..record("x", url("https://a/mcp")) };
    let problems = [described, displayed].map(|record| record.handler().expect_err("a problem"));
    insta::assert_snapshot!(problems.join("\n"));
}
