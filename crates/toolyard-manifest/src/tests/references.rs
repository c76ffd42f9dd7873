//! References to the environment and to files, in all fields with secrets.

use insta::assert_snapshot;
use serde_json::json;

use super::{SECRET_VALUE, http, mcp, problems, source, toolyard, transport, valid};
use crate::{CredentialSource, HandlerKind, HttpHandler, McpTransport, parse_with};

const FILE: &str = "${file:fixtures/secrets/token}";

#[track_caller]
fn http_handler(config: &str) -> HttpHandler {
    let manifest = valid(&http::config(config));
    assert!(!format!("{manifest:?}").contains(SECRET_VALUE), "{manifest:?}");
    let HandlerKind::Http(http) = &manifest.handlers[0].kind else { panic!("another type") };
    (**http).clone()
}

#[test]
fn file_references_work_in_all_secret_fields() {
    let http = http_handler(&format!(
        "headers: {{X-Key: 'Key {FILE}'}}\nstaticQuery: {{key: '{FILE}'}}\nstaticBody: {{key: ['{FILE}']}}\n\
         authType: bearer\nauthToken: {FILE}"
    ));
    assert_eq!(http.headers[0].1.expose(), "Key hunter2");
    assert_eq!(http.static_query[0].1.expose(), SECRET_VALUE);
    assert_eq!(http.static_body.unwrap().iter().collect::<Vec<_>>(), [("key", &json!([SECRET_VALUE]))]);
    assert_eq!(
        http.auth.unwrap().credential,
        CredentialSource::Value(crate::SecretString::new(SECRET_VALUE))
    );

    let text = mcp(&format!(
        "transport: stdio\ncommand: x\nargs: ['--key={FILE}']\nenv: {{KEY: '{FILE}', URL: 'file:./dev.db'}}"
    ));
    let transport = transport(&text);
    assert!(!format!("{transport:?}").contains(SECRET_VALUE), "{transport:?}");
    let McpTransport::Stdio { args, env, .. } = transport else { panic!() };
    assert_eq!(args.iter().collect::<Vec<_>>(), ["--key=hunter2"]);
    // A value that only starts like a reference is literal.
    assert_eq!(env.iter().collect::<Vec<_>>(), [("KEY", SECRET_VALUE), ("URL", "file:./dev.db")]);
}

#[test]
fn relative_paths_start_at_the_folder_of_the_manifest() {
    let text = http::config(
        "authType: bearer\nauthToken: file:secrets/token\nheaders: {X-Key: '${file:secrets/token}'}",
    );
    let sources = [source("fixtures/tools.yaml", &text)];
    let manifest = parse_with(&sources, &|_| None).unwrap_or_else(|problems| panic!("{problems}"));
    let HandlerKind::Http(http) = &manifest.handlers[0].kind else { panic!() };
    assert_eq!(
        http.auth.clone().unwrap().credential,
        CredentialSource::File("fixtures/secrets/token".into())
    );
    assert_eq!(http.headers[0].1.expose(), SECRET_VALUE);
}

#[test]
fn missing_files_are_problems() {
    assert_snapshot!(problems(&http::config("headers: {X-Key: '${file:absent}'}\nstaticQuery: {a: '${file:/a/b} ${MISSING}'}\nauthType: bearer\nauthToken: file:absent")), @"
    tools.yaml:11:24: spec.handlers[0].httpConfig.headers.X-Key: the file `absent` cannot be read: No such file or directory (os error 2)
      hint: relative paths start at the folder of the manifest
    tools.yaml:12:24: spec.handlers[0].httpConfig.staticQuery.a: the file `/a/b` cannot be read: No such file or directory (os error 2)
      hint: relative paths start at the folder of the manifest
    tools.yaml:12:24: spec.handlers[0].httpConfig.staticQuery.a: the environment variable `MISSING` is not set
      hint: `${NAME}` stands for an environment variable, and `$${` for the characters `${`
    tools.yaml:14:18: spec.handlers[0].httpConfig.authToken: this file cannot be read: No such file or directory (os error 2)
      expected `file:` and the path of a file, from the folder of the manifest
    ");
    assert_snapshot!(problems(&http::config("authType: bearer\nauthToken: 'file:'")), @"
    tools.yaml:12:18: spec.handlers[0].httpConfig.authToken: this file cannot be read: No such file or directory (os error 2)
      expected `file:` and the path of a file, from the folder of the manifest
    ");
    assert_snapshot!(problems(&mcp("transport: stdio\ncommand: x\nenv: {A: '${file:fixtures/secrets/binary}', B: '${file:/dev/zero}'}")), @"
    tools.yaml:11:16: spec.handlers[0].mcpConfig.env.A: the file `fixtures/secrets/binary` cannot be read: it is not UTF-8
      hint: relative paths start at the folder of the manifest
    tools.yaml:11:54: spec.handlers[0].mcpConfig.env.B: the file `/dev/zero` cannot be read: it is not a regular file
      hint: relative paths start at the folder of the manifest
    ");
}

#[test]
fn problems_do_not_quote_file_contents() {
    assert_snapshot!(problems(&toolyard("listen: '${file:fixtures/secrets/token}'")), @"
    tools.yaml:4:11: spec.listen: `${file:fixtures/secrets/token}` is not an address to listen on
      expected an IP address and a port, such as 127.0.0.1:8080 or [::]:8080, or a socket such as unix:/run/toolyard.sock
    ");
    assert_snapshot!(problems(&mcp("transport: streamable-http\nendpoint: '${file:fixtures/secrets/token}'")), @"
    tools.yaml:10:17: spec.handlers[0].mcpConfig.endpoint: this is not an endpoint
      expected a URL such as https://mcp.example.com/mcp
      hint: the scheme is missing: put `http://` or `https://` in front
    ");
}

#[test]
fn defaults() {
    let text = mcp("transport: streamable-http\nendpoint: '${MISSING:-http://a.example}/${TOKEN:-mcp}'");
    let McpTransport::Http(http) = transport(&text) else { panic!() };
    assert_eq!(http.endpoint.uri().to_string(), "http://a.example/hunter2");
}
