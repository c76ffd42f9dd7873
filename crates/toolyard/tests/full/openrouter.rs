//! The OpenRouter MCP server and the built-in tools, called by the Python SDK, with a stand-in of the API that answers
//! with the examples of the vendor's OpenAPI document.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use insta::assert_snapshot;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::peers;
use toolyard_testing::process::{RunningProgram, run};
use toolyard_testing::scripted_server::script;
use toolyard_testing::upstream::{BackgroundUpstream, ReceivedRequest, ScriptedReply};

use crate::support::gateway::{TestGateway, toolyard};

const EXAMPLES: &str = include_str!("../../../../fixtures/openrouter/responses.json");

/// A key that no output may contain.
const KEY: &str = "sk-or-v1-hunter2hunter2";

const HASH: &str = "f01d52606dc8f0a8303a7b5cc3fa07109c2e346cec7c0a16b40de462992ce943";

/// Starts a stand-in of the API that refuses other keys, and other ids than those of the examples.
fn api() -> BackgroundUpstream {
    let examples: Value = serde_json::from_str(EXAMPLES).unwrap();
    BackgroundUpstream::start(move |request: &ReceivedRequest| {
        let target = request.head.start.split(' ').nth(1).unwrap_or_default();
        let path = target.strip_prefix("/api/v1").unwrap_or_default();
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let (path, is_known) = match path.strip_prefix("/keys/") {
            Some(hash) => ("/keys/{hash}", hash == HASH),
            None => (path, query.is_empty() || query == "id=gen-3bhGkxlo4XFrqiabUM7NDtwDzWwG"),
        };
        let has_key = request.head.header("authorization") == Some(&*format!("Bearer {KEY}"));
        let status = match (has_key, is_known, query) {
            (false, ..) => 401,
            (true, true, _) => 200,
            (true, false, "id=gen-expensive") => 402,
            (true, false, "id=gen-limited") => 429,
            (true, false, "id=gen-overloaded") => 529,
            (true, false, _) => 404,
        };
        let body = examples[path][status.to_string()].to_string();
        ScriptedReply::http(status, "content-type: application/json\r\n", &body)
    })
}

/// Calls of each tool, with valid and invalid input.
fn steps() -> Value {
    let mut steps = vec![json!(["tools"])];
    steps.extend(
        [
            ("get_credits", json!({})),
            ("get_api_key_info", json!({})),
            ("list_models", json!({})),
            ("list_api_keys", json!({})),
            ("get_api_key", json!({"keyHash": HASH})),
            ("get_api_key", json!({"keyHash": "../credits"})),
            ("get_api_key", json!({"keyHash": " "})),
            ("get_api_key", json!({})),
            ("get_generation", json!({"generationId": "gen-3bhGkxlo4XFrqiabUM7NDtwDzWwG"})),
            ("get_generation", json!({"generationId": "gen-1"})),
            ("get_generation", json!({"generationId": "gen-expensive"})),
            ("get_generation", json!({"generationId": "gen-limited"})),
            ("get_generation", json!({"generationId": "gen-overloaded"})),
            ("get_generation", json!({"generationId": 5})),
        ]
        .map(|(tool, arguments)| json!(["call", tool, arguments])),
    );
    steps.into()
}

/// Returns the transcript of the Python SDK at a URL, or with a program that it starts.
#[track_caller]
fn walk(home: &Path, target: &str, mode: &str, steps: &Value) -> String {
    let mut client = peers::command(peers::peer("python/bin/python"), home);
    let ended = run(client.arg(script("walk.py")).args([target, mode, &steps.to_string()]));
    assert_eq!(ended.code, 0, "{ended}");
    assert!(!ended.stdout.contains(KEY) && !ended.stderr.contains(KEY), "{ended}");
    ended.stdout
}

/// Asserts that the API has had requests, and that none of them can change anything.
#[track_caller]
fn assert_only_read(api: &BackgroundUpstream) {
    let methods = api.server.now(|log| log.requests.iter().map(ReceivedRequest::method).collect::<Vec<_>>());
    assert!(!methods.is_empty() && methods.iter().all(|method| method == "GET"), "{methods:?}");
}

/// Returns a command of the server with a key in its environment.
#[track_caller]
fn server(home: &Path, base_url: &str) -> Command {
    let mut command = toolyard(home);
    command.args(["openrouter-mcp", "--base-url", base_url]).env("OPENROUTER_API_KEY", KEY);
    command
}

/// Starts the server on a free port. Returns its URL.
#[track_caller]
fn listen(command: &mut Command) -> (RunningProgram, String) {
    let process = RunningProgram::start(command.args(["--listen", "127.0.0.1:0"]));
    let url = process.stderr.wait_for("the URL", |log| {
        let at = log.find("http://127.0.0.1:")?;
        let end = log[at..].find("/mcp")?;
        Some(format!("{}/mcp", &log[at..at + end]))
    });
    (process, url)
}

#[test]
fn each_tool_answers_a_foreign_client_on_http() {
    let (home, api) = (TempDir::new().unwrap(), api());
    let (process, url) = listen(&mut server(home.path(), &api.url("/api/v1/")));
    let legacy = walk(home.path(), &url, "legacy", &steps());
    let modern = walk(home.path(), &url, "2026-07-28", &steps());
    assert_eq!(legacy, modern);
    assert_snapshot!(legacy, @r#"
    tools
      - get_credits
      - get_api_key_info
      - list_models
      - list_api_keys
      - get_api_key
      - get_generation
    call get_credits {}
      => {"data":{"total_credits":100.5,"total_usage":25.75}}
    call get_api_key_info {}
      => {"data":{"byok_usage":17.38,"byok_usage_daily":17.38,"byok_usage_monthly":17.38,"byok_usage_weekly":17.38,"creator_user_id":"user_2dHFtVWx2n56w6HkM0000000000","expires_at":"2027-12-31T23:59:59Z","include_byok_in_limit":false,"is_free_tier":false,"is_management_key":false,"is_provisioning_key":false,"label":"sk-or-v1-au7...890","limit":100,"limit_remaining":74.5,"limit_reset":"monthly","rate_limit":{"interval":"1h","note":"This field is deprecated and safe to ignore.","requests":1000},"usage":25.5,"usage_daily":25.5,"usage_monthly":25.5,"usage_weekly":25.5}}
    call list_models {}
      => {"data":[{"architecture":{"input_modalities":["text"],"instruct_type":"chatml","modality":"text->text","output_modalities":["text"],"tokenizer":"GPT"},"canonical_slug":"openai/gpt-4","context_length":8192,"created":1692901234,"default_parameters":null,"description":"GPT-4 is a large multimodal model that can solve difficult problems with greater accuracy.","expiration_date":null,"id":"openai/gpt-4","knowledge_cutoff":null,"links":{"details":"/api/v1/models/openai/gpt-4/endpoints"},"name":"GPT-4","per_request_limits":null,"pricing":{"completion":"0.00006","image":"0","prompt":"0.00003","request":"0"},"supported_parameters":["temperature","top_p","max_tokens"],"supported_voices":null,"top_provider":{"context_length":8192,"is_moderated":true,"max_completion_tokens":4096}}]}
    call list_api_keys {}
      => {"data":[{"byok_usage":17.38,"byok_usage_daily":17.38,"byok_usage_monthly":17.38,"byok_usage_weekly":17.38,"created_at":"2025-08-24T10:30:00Z","creator_user_id":"user_2dHFtVWx2n56w6HkM0000000000","disabled":false,"expires_at":"2027-12-31T23:59:59Z","hash":"f01d52606dc8f0a8303a7b5cc3fa07109c2e346cec7c0a16b40de462992ce943","include_byok_in_limit":false,"label":"Production API Key","limit":100,"limit_remaining":74.5,"limit_reset":"monthly","name":"My Production Key","updated_at":"2025-08-24T15:45:00Z","usage":25.5,"usage_daily":25.5,"usage_monthly":25.5,"usage_weekly":25.5,"workspace_id":"0df9e665-d932-5740-b2c7-b52af166bc11"}]}
    call get_api_key {"keyHash": "f01d52606dc8f0a8303a7b5cc3fa07109c2e346cec7c0a16b40de462992ce943"}
      => {"data":{"byok_usage":17.38,"byok_usage_daily":17.38,"byok_usage_monthly":17.38,"byok_usage_weekly":17.38,"created_at":"2025-08-24T10:30:00Z","creator_user_id":"user_2dHFtVWx2n56w6HkM0000000000","disabled":false,"expires_at":"2027-12-31T23:59:59Z","hash":"f01d52606dc8f0a8303a7b5cc3fa07109c2e346cec7c0a16b40de462992ce943","include_byok_in_limit":false,"label":"Production API Key","limit":100,"limit_remaining":74.5,"limit_reset":"monthly","name":"My Production Key","updated_at":"2025-08-24T15:45:00Z","usage":25.5,"usage_daily":25.5,"usage_monthly":25.5,"usage_weekly":25.5,"workspace_id":"0df9e665-d932-5740-b2c7-b52af166bc11"}}
    call get_api_key {"keyHash": "../credits"}
      => failed OpenRouter answered GET /keys/{hash} with status 404: Resource not found. No key has this hash: list_api_keys returns the hashes.
    call get_api_key {"keyHash": " "}
      => failed keyHash: is empty; expected a `hash` from list_api_keys
    call get_api_key {}
      => failed Invalid arguments: "keyHash" is a required property
    call get_generation {"generationId": "gen-3bhGkxlo4XFrqiabUM7NDtwDzWwG"}
      => {"data":{"api_type":"completions","app_id":12345,"cache_discount":null,"cancelled":false,"created_at":"2024-07-15T23:33:19.433273+00:00","data_region":"global","external_user":"user-123","finish_reason":"stop","generation_time":1200,"http_referer":"https://openrouter.ai/","id":"gen-3bhGkxlo4XFrqiabUM7NDtwDzWwG","is_byok":false,"latency":1250,"model":"sao10k/l3-stheno-8b","moderation_latency":50,"native_finish_reason":"stop","native_tokens_cached":3,"native_tokens_completion":25,"native_tokens_completion_images":0,"native_tokens_prompt":10,"native_tokens_reasoning":5,"num_fetches":0,"num_input_audio_prompt":0,"num_media_completion":0,"num_media_prompt":1,"num_search_results":5,"origin":"https://openrouter.ai/","preset_id":"a9e8d400-592a-494f-908c-375efa66cafd","provider_name":"Infermatic","provider_responses":null,"request_id":"req-1727282430-aBcDeFgHiJkLmNoPqRsT","router":"openrouter/auto","service_tier":"priority","session_id":null,"streamed":true,"tokens_completion":25,"tokens_prompt":10,"total_cost":0.0015,"upstream_id":"chatcmpl-791bcf62-080e-4568-87d0-94c72e3b4946","upstream_inference_cost":0.0012,"usage":0.0015,"user_agent":"Mozilla/5.0","web_search_engine":"exa"}}
    call get_generation {"generationId": "gen-1"}
      => failed OpenRouter answered GET /generation with status 404: Resource not found. No completion has this id (`id` of its response, such as gen-1234567890); a new one may take some seconds.
    call get_generation {"generationId": "gen-expensive"}
      => failed OpenRouter answered GET /generation with status 402: Insufficient credits. Add more using https://openrouter.ai/credits. The account or the key has no credits left: get_credits and get_api_key_info show them.
    call get_generation {"generationId": "gen-limited"}
      => failed OpenRouter answered GET /generation with status 429: Rate limit exceeded. Call again later.
    call get_generation {"generationId": "gen-overloaded"}
      => failed OpenRouter answered GET /generation with status 529: Provider returned error. Call again later.
    call get_generation {"generationId": 5}
      => failed Invalid arguments: /generationId: value is not of type "string"
    "#);
    assert_only_read(&api);
    let log = process.stderr.text();
    assert!(!log.contains(KEY), "{log}");
    let health = toolyard_testing::http::send(
        url.trim_start_matches("http://").trim_end_matches("/mcp").parse().unwrap(),
        "GET /health",
        &[],
        "",
    );
    assert_eq!((health.status, &*health.body), (200, r#"{"status":"ok"}"#));
}

#[test]
fn each_tool_answers_a_foreign_client_on_stdio() {
    let (home, api) = (TempDir::new().unwrap(), api());
    let key = home.path().join("key");
    std::fs::write(&key, format!("{KEY}\n")).unwrap();
    // The client starts a program without arguments.
    let program = home.path().join("server");
    let text = format!(
        "#!/bin/sh\nexec {} openrouter-mcp --key-file {} --base-url {}\n",
        env!("CARGO_BIN_EXE_toolyard"),
        key.display(),
        api.url("/api/v1")
    );
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (process, url) = listen(&mut server(home.path(), &api.url("/api/v1")));
    let stdio = walk(home.path(), program.to_str().unwrap(), "legacy", &steps());
    assert_eq!(stdio, walk(home.path(), &url, "legacy", &steps()));
    assert_only_read(&api);
    drop(process);
}

#[test]
fn built_in_tools_are_those_of_the_server() {
    let (home, api) = (TempDir::new().unwrap(), api());
    let (_process, url) = listen(&mut server(home.path(), &api.url("/api/v1")));
    let others = ["scripts", "memory", "results", "guides", "skills", "search", "mcp"];
    let mut builtins: Value =
        others.map(|group| (group.to_owned(), json!({"enabled": false}))).into_iter().collect();
    builtins["openRouter"] =
        json!({"baseURL": api.url("/api/v1"), "apiKeySecretRef": {"name": "openrouter", "key": "api-key"}});
    let secrets = home.path().join("secrets/openrouter");
    std::fs::create_dir_all(&secrets).unwrap();
    std::fs::write(secrets.join("api-key"), KEY).unwrap();
    let folder = home.path().join("secrets");
    let gateway = TestGateway::with_settings(&[], json!({"builtins": builtins, "secretsDir": folder}));
    let steps = steps();
    let of_gateway = walk(home.path(), &gateway.url(), "2026-07-28", &steps);
    assert_eq!(of_gateway, walk(home.path(), &url, "2026-07-28", &steps));
    assert_only_read(&api);
    let status = gateway.get("/api/v1/status").body;
    for text in [gateway.process.stderr.text(), gateway.process.stdout.text(), status] {
        assert!(!text.contains(KEY), "{text}");
    }
}

#[test]
fn wrong_key_is_explained_without_quoting_it() {
    let (home, api) = (TempDir::new().unwrap(), api());
    let mut command = server(home.path(), &api.url("/api/v1"));
    let (process, url) = listen(command.env("OPENROUTER_API_KEY", "sk-or-v1-not-this-one"));
    let text = walk(home.path(), &url, "2026-07-28", &json!([["call", "list_api_keys", {}]]));
    assert_snapshot!(text, @"
    call list_api_keys {}
      => failed OpenRouter answered GET /keys with status 401: Missing Authentication header. Ask the operator to check the API key, which may be wrong, disabled or expired.
    ");
    assert!(!process.stderr.text().contains("not-this-one"));
}

#[test]
fn names_of_variables_of_rockbot_are_read() {
    let (home, api) = (TempDir::new().unwrap(), api());
    let mut command = toolyard(home.path());
    command.arg("openrouter-mcp");
    command.env("OpenRouter__ApiKey", KEY).env("OpenRouter__BaseUrl", api.url("/api/v1"));
    let (_process, url) = listen(&mut command);
    let text = walk(home.path(), &url, "legacy", &json!([["call", "get_credits", {}]]));
    assert_snapshot!(text, @r#"
    call get_credits {}
      => {"data":{"total_credits":100.5,"total_usage":25.75}}
    "#);
}

#[test]
fn invalid_usage_is_explained() {
    let home = TempDir::new().unwrap();
    let mut texts = String::new();
    for args in [
        &[][..],
        &["--key-file", "absent"],
        &["--base-url", "openrouter.ai"],
        &["--base-url", "https://openrouter.ai/api/v1?key=hunter2"],
        &["--listen", "0.0.0.0:8090"],
        &["--allow-unauthenticated"],
        &["--listen", "here"],
    ] {
        let mut command = toolyard(home.path());
        if !args.is_empty() {
            command.env("OPENROUTER_API_KEY", KEY);
        }
        let ended = run(command.current_dir(&home).arg("openrouter-mcp").args(args));
        assert!(!ended.stderr.contains("hunter2"), "{ended}");
        let first = ended.stderr.lines().next().unwrap_or_default();
        texts += &format!("{} {}: {first}\n", ended.code, args.join(" ").replace("hunter2", "KEY"));
    }
    assert_snapshot!(texts, @"
    2 : error: no API key of OpenRouter: set OPENROUTER_API_KEY, or name its file by --key-file
    1 --key-file absent: error: cannot read the API key in absent: No such file or directory (os error 2)
    2 --base-url openrouter.ai: error: invalid base URL of OpenRouter: this is not the base URL of an API: expected a URL without a query, such as https://openrouter.ai/api/v1
    2 --base-url https://openrouter.ai/api/v1?key=KEY: error: invalid base URL of OpenRouter: this is not the base URL of an API: expected a URL without a query, such as https://openrouter.ai/api/v1
    2 --listen 0.0.0.0:8090: error: other machines can reach 0.0.0.0:8090, and callers need no key: listen on a loopback address, or permit it by --allow-unauthenticated
    2 --allow-unauthenticated: error: the following required arguments were not provided:
    2 --listen here: error: invalid value 'here' for '--listen <ADDRESS>': invalid socket address syntax
    ");
}
