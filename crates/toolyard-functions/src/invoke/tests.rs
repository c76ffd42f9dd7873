use futures_util::future::BoxFuture;
use toolyard_core::SecretRedactor;

use super::*;
use crate::code::{CodeLimits, FunctionCode};
use crate::run::RunOutput;

/// Runner with a scripted result. `None`: the call never ends.
struct Says(Option<Result<&'static str, RunError>>);

impl CodeRunner for Says {
    fn run<'a>(
        &'a self,
        _: &'a Arc<FunctionCode>,
        _: &'a Json,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<RunOutput, RunError>> {
        assert_eq!(
            (&*context.function_id, &*context.version, &*context.request_id),
            ("echo", "1.2.0", "r-1")
        );
        Box::pin(async {
            let Some(said) = self.0.clone() else { return std::future::pending().await };
            said.map(|answer| RunOutput { answer: Json::parse(answer).unwrap(), log: "printed".into() })
        })
    }
}

fn loaded(kind: FunctionKind, language: SourceLanguage) -> LoadedVersion {
    let code = FunctionCode {
        key: "echo@1.2.0".into(),
        language,
        files: Vec::new(),
        packages: None,
        environment: Vec::new(),
        network: false,
        tools: false,
        limits: CodeLimits::default(),
    };
    LoadedVersion {
        id: "echo".into(),
        version: "1.2.0".into(),
        kind,
        price: CallPrice(7),
        code: Arc::new(code),
        tests: Vec::new(),
        secrets: SecretRedactor::default(),
        environment: None,
    }
}

async fn invoked(
    loaded: &LoadedVersion,
    event: &'static str,
    said: Option<Result<&'static str, RunError>>,
) -> Result<InvocationResult, InvokeError> {
    let event = Json::parse(event).unwrap();
    invoke(&Says(said), loaded, &event, &"r-1".into(), None).await
}

fn thrown() -> RunError {
    RunError::Thrown {
        kind: "ValueError".into(),
        message: "no".into(),
        details: "at line 3".into(),
        log: "printed".into(),
    }
}

#[tokio::test]
async fn mcp_handler_results_become_replies() {
    let check = async |event: &'static str, said: Result<&'static str, RunError>, expected: &str| {
        let invoked =
            invoked(&loaded(FunctionKind::Mcp, SourceLanguage::Python), event, Some(said)).await.unwrap();
        assert_eq!(invoked.reply.to_json().as_text(), expected, "{event}");
    };
    const PING: &str = r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#;
    let pong = r#"{"jsonrpc":"2.0","id":"a","result":{}}"#;
    check(PING, Ok(pong), pong).await;
    let seven = r#"{"jsonrpc":"2.0","id":7.0,"result":{}}"#;
    check(r#""{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}""#, Ok(seven), seven).await;
    // An unreadable request has no id.
    let unread = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#;
    check(PING, Ok(unread), unread).await;
    // The handler refuses invalid requests itself.
    let refused = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}"#;
    check("{}", Ok(refused), refused).await;
    check("[]", Ok(refused), refused).await;
    let failed = |id: &str, message: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32603,"message":"Internal error: {message}"}}}}"#
        )
    };
    check(PING, Err(thrown()), &failed(r#""a""#, "ValueError: no")).await;
    check(r#""{\"id\":7,\"method\":\"x\"}""#, Err(thrown()), &failed("7", "ValueError: no")).await;
    check("17", Err(thrown()), &failed("null", "ValueError: no")).await;
    check(r#""17""#, Err(thrown()), &failed("null", "ValueError: no")).await;
    let memory = failed(r#""a""#, "the function exceeded its memory limit");
    check(PING, Err(RunError::OutOfMemory), &memory).await;
    let wrong = failed(
        r#""a""#,
        "InvalidReturn: the handler must return a JSON-RPC response: an object with `jsonrpc`",
    );
    for answer in ["null", "[]", "1", "{}", r#"{"statusCode":200,"body":{"jsonrpc":"2.0"}}"#] {
        check(PING, Ok(answer), &wrong).await;
    }
    let other =
        failed(r#""a""#, "InvalidReturn: the handler must return a response with the `id` of the request");
    for answer in [
        r#"{"jsonrpc":"2.0","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"b","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"no"}}"#,
        r#"{"jsonrpc":"2.0","error":{"code":-1,"message":"no"}}"#,
        r#"[{"jsonrpc":"2.0","id":"a","result":{}}]"#,
    ] {
        check(PING, Ok(answer), &other).await;
    }
}

#[tokio::test]
async fn notification_does_not_call_the_handler() {
    let loaded = loaded(FunctionKind::Mcp, SourceLanguage::Lua);
    let message = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    // The handler would never end.
    let invoked = invoked(&loaded, message, None).await.unwrap();
    assert_eq!((invoked.reply, invoked.cost), (FunctionReply::None, CallPrice::default()));
}

#[tokio::test]
async fn invalid_json_string_is_an_mcp_parse_error() {
    for event in [r#""""#, r#""text""#, r#""{\"id\":1""#, r#""{} {}""#, r#""'{}'""#] {
        // The handler would never end.
        let mcp = invoked(&loaded(FunctionKind::Mcp, SourceLanguage::Python), event, None).await.unwrap();
        let reply = mcp.reply.to_json();
        let begins = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: "#;
        assert!(reply.as_text().starts_with(begins), "{event}: {}", reply.as_text());
        assert_eq!((mcp.cost, mcp.failure), (CallPrice::default(), None), "{event}");
        assert!(!calls_handler(FunctionKind::Mcp, &Json::parse(event).unwrap()), "{event}");
        // Functions of the other kind accept any string.
        let response = Some(Ok(r#"{"statusCode":200,"body":""}"#));
        let plain =
            invoked(&loaded(FunctionKind::Function, SourceLanguage::Python), event, response).await.unwrap();
        assert_eq!((plain.reply.is_failure(), plain.cost), (false, CallPrice(7)), "{event}");
    }
}

#[tokio::test]
async fn function_handler_results_become_replies() {
    let check = async |language, said: Result<&'static str, RunError>, expected: &str| {
        let invoked = invoked(&loaded(FunctionKind::Function, language), r#"{"method":"x"}"#, Some(said))
            .await
            .unwrap();
        assert_eq!(invoked.reply.to_json().as_text(), expected);
        assert_eq!(invoked.cost, CallPrice(if expected.contains("cannot be loaded") { 0 } else { 7 }));
    };
    use SourceLanguage::{JavaScript, Lua, Python};
    for (answer, expected) in [
        (r#"{"statusCode":200,"body":{"a":1.10}}"#, r#"{"statusCode":200,"body":{"a":1.10}}"#),
        (r#"{"statusCode":404.0,"body":"no","more":1}"#, r#"{"statusCode":404,"body":"no"}"#),
    ] {
        check(Lua, Ok(answer), expected).await;
    }
    let wrong =
        "the handler must return {statusCode, body}: a status from 100 to 599, and an object or a string";
    for answer in [
        "null",
        "{}",
        r#"{"statusCode":200}"#,
        r#"{"statusCode":200,"body":[]}"#,
        r#"{"statusCode":200,"body":null}"#,
        r#"{"statusCode":"200","body":""}"#,
        r#"{"statusCode":99,"body":""}"#,
        r#"{"statusCode":600,"body":""}"#,
        r#"{"statusCode":200.5,"body":""}"#,
        r#"{"statusCode":1e400,"body":""}"#,
    ] {
        check(
            Python,
            Ok(answer),
            &format!(r#"{{"statusCode":500,"body":{{"error":"Runtime error: {wrong}"}}}}"#),
        )
        .await;
    }
    check(Python, Err(thrown()), r#"{"statusCode":500,"body":{"error":"Runtime error: no"}}"#).await;
    check(
        JavaScript,
        Err(thrown()),
        r#"{"statusCode":500,"body":{"error":"Script execution failed","type":"ValueError","details":"no\nat line 3"}}"#,
    )
    .await;
    check(
        Python,
        Err(RunError::NotLoaded { message: "line 1: what?".into() }),
        r#"{"statusCode":500,"body":{"error":"Runtime error: the function cannot be loaded: line 1: what?"}}"#,
    )
    .await;
    check(
        Lua,
        Err(RunError::OutputTooLarge { limit: 9 }),
        r#"{"statusCode":500,"body":{"error":"Script execution failed","type":"OutputTooLarge","details":"the answer of the function exceeds 9 bytes"}}"#,
    )
    .await;
    check(
        Lua,
        Err(RunError::Died("signal 9".into())),
        r#"{"statusCode":500,"body":{"error":"Script execution failed","type":"Error","details":"the process of the function ended: signal 9"}}"#,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn calls_without_a_reply_are_errors() {
    let loaded = loaded(FunctionKind::Function, SourceLanguage::Python);
    let check = async |said, expected: &str, status: u16, may_have_run: bool| {
        let error = invoked(&loaded, "{}", said).await.unwrap_err();
        assert_eq!(
            (&*error.to_string(), error.status(), error.may_have_run()),
            (expected, status, may_have_run)
        );
    };
    check(None, "no answer within 300000 ms", 408, true).await;
    check(Some(Err(RunError::TimedOut)), "no answer within 300000 ms", 408, true).await;
    check(
        Some(Err(RunError::Busy)),
        "the maximum number of calls of this version is running; try again later",
        429,
        false,
    )
    .await;
    let unavailable = Some(Err(RunError::Unavailable("/secret/path".into())));
    check(unavailable, "functions cannot run now: `toolyard doctor --sandbox` says why", 503, false).await;
    let deadline = Some(Instant::now() + Duration::from_secs(2));
    let error = invoke(&Says(None), &loaded, &Json::null(), &"r-1".into(), deadline).await.unwrap_err();
    assert_eq!(error, InvokeError::TimedOut(Duration::from_secs(2)));
}
