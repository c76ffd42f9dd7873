use toolyard_agent::management::{Reach, Transport};
use toolyard_manifest::{AllowedServers, Handler};
use toolyard_store::{Location, StoreOptions};

use super::*;

fn program(command: &str, args: &[&str], env: &[(&str, &str)]) -> Reach {
    Reach::Program {
        command: command.to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
    }
}

fn url(url: &str) -> Reach {
    Reach::Url { url: url.to_owned(), transport: Transport::StreamableHttp }
}

fn record(name: &str, reach: Reach) -> Record {
    let description = Some("Costs ${MONEY}.".to_owned());
    Record::from(NewServer { name: name.to_owned(), reach, display_name: None, description })
}

fn allowed() -> AllowedServers {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    AllowedServers {
        commands: texts(&["uvx", "/usr/bin/npx"]),
        hosts: texts(&["docs.example.com", "*.internal:8443", "localhost"]),
        env: texts(&["API_KEY"]),
    }
}

/// Where the gateway listens.
fn listening() -> [SocketAddr; 1] {
    ["127.0.0.1:8080".parse().expect("an address")]
}

/// What becomes of a server that somebody wants, with what is allowed here.
fn outcome(name: &str, reach: Reach) -> String {
    let handler = record(name, reach).handler().map_err(Refusal::Invalid);
    let checked =
        handler.and_then(|handler| allow::check(&handler, &allowed(), &listening()).map(|()| handler));
    match checked {
        Ok(handler) => handler.endpoint(),
        Err(refusal) => format!("refused: {refusal}"),
    }
}

#[test]
fn which_servers_may_be_added() {
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
        let shown = match &reach {
            Reach::Program { command, args, env } => format!("{command} {args:?} {env:?}"),
            Reach::Url { url, .. } => url.clone(),
        };
        format!("{name}: {shown}\n  {}", outcome(name, reach))
    });
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn what_stands_for_something_else_in_a_manifest_stands_for_itself() {
    for text in ["${HOME}", "$${HOME}", "${file:/etc/hostname}", "$$${", "${", "a}b$", "${HOME:-x}"] {
        let reach = program("uvx", &[text], &[("API_KEY", text)]);
        let handler = record("clock", reach).handler().expect("a handler");
        let Handler { kind: manifest::HandlerKind::Mcp(mcp), from_outside, .. } = &handler else {
            panic!("{handler:?}")
        };
        let manifest::McpTransport::Stdio { args, env, .. } = &mcp.transport else { panic!("{mcp:?}") };
        assert_eq!(args.iter().collect::<Vec<_>>(), [text]);
        assert_eq!(env.iter().collect::<Vec<_>>(), [("API_KEY", text)]);
        assert!(from_outside.is_empty());
        assert_eq!(handler.description.as_deref(), Some("Costs ${MONEY}."));
        assert_eq!(handler.prefix, manifest::Prefix::Always);
    }
}

#[test]
fn a_record_is_read_as_it_was_written() {
    let sse = Reach::Url { url: "https://a/sse".to_owned(), transport: Transport::Sse };
    let records = [
        record("clock", program("uvx", &["a \"b\"", "é\n"], &[("API_KEY", "hunter2")])),
        record("docs", url("https://a/mcp")),
        Record { display_name: Some("Docs".to_owned()), ..record("events", sse) },
    ];
    let written = records.each_ref().map(|record| String::from_utf8_lossy(&record.written()).into_owned());
    insta::assert_snapshot!(written.join("\n"));
    for (record, written) in records.iter().zip(&written) {
        assert_eq!(&serde_json::from_str::<Record>(written).expect("a record"), record);
    }
    assert!(!format!("{records:?}").contains("hunter2"));
}

#[tokio::test]
async fn no_more_are_kept_than_may_be_whoever_adds_them() {
    let store = toolyard_store::open(&StoreOptions::at(Location::Memory)).await.expect("a store");
    let gateway = || {
        let (orders, standings) = (mpsc::channel(1).0.downgrade(), watch::channel(Arc::default()).1);
        let places = Places { store: store.clone(), orders, standings, listening: Vec::new() };
        AddedServers::new(places, None, Duration::from_secs(1))
    };
    let (one, other) = (gateway(), gateway());
    let check = async |servers: &AddedServers, name: &str, expected: &str, there: &[&str]| {
        let kept = servers.keep(&record(name, program("uvx", &[], &[])), 2).await;
        assert_eq!(kept.map_or_else(|why| why.to_string(), |()| "kept".to_owned()), expected, "{name}");
        let records = record::list(&*store).await.expect("records");
        assert_eq!(records.iter().map(|record| &*record.name).collect::<Vec<_>>(), there, "{name}");
    };
    let too_many = Refusal::TooMany { limit: 2 }.to_string();
    check(&one, "a", "kept", &["a"]).await;
    check(&other, "b", "kept", &["a", "b"]).await;
    check(&one, "c", &too_many, &["a", "b"]).await;
    check(&one, "b", &Refusal::Taken.to_string(), &["a", "b"]).await;
    assert!(store.delete(SERVERS, "a").await.expect("it is deleted"));
    check(&one, "c", "kept", &["b", "c"]).await;
}

#[test]
fn what_is_wrong_with_a_text_is_said_of_its_field() {
    let nul = || Some("a\0b".to_owned());
    let described = Record { description: nul(), ..record("x", url("https://a/mcp")) };
    let displayed = Record { display_name: nul(), ..record("x", url("https://a/mcp")) };
    let said = [described, displayed].map(|record| record.handler().expect_err("a problem"));
    insta::assert_snapshot!(said.join("\n"));
}
