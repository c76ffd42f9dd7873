//! Faulty and malicious code: each case fails with its error, and the next call succeeds.

mod callers;
mod javascript;
mod lua;
mod python;

use std::sync::Arc;
use std::time::Duration;

use toolyard_functions::code::{CodeLimits, SourceLanguage};
use toolyard_functions::run::{RunError, RunOutput};
use toolyard_functions::runtime::FunctionRuntime;

use crate::samples::sample;
use crate::setup::{answer, code, run, runtimes};

/// Short time limit, sufficient for an attack to start.
const SHORT: CodeLimits = CodeLimits {
    time_limit: Duration::from_millis(500),
    memory_bytes: 128 << 20,
    output_bytes: 64 << 10,
    max_concurrent: 4,
};

/// Time limit for code that runs for a while before it fails.
const LONG: CodeLimits = CodeLimits { time_limit: Duration::from_secs(20), ..SHORT };

/// Body of a handler, or a whole source if it names the handler, and the beginning of the expected outcome.
type Case<'a> = (&'a str, &'a str);

/// Calls each case twice, to detect effects of the first call, and the sample afterwards.
async fn check(language: SourceLanguage, limits: CodeLimits, cases: &[Case<'_>]) {
    let runtimes = runtimes().await;
    let mut wrong = Vec::new();
    for (body, expected) in cases {
        let mut code = code(language, &source(language, body));
        code.limits = limits;
        let code = Arc::new(code);
        for _ in 0..2 {
            let outcome = outcome_text(run(&runtimes, &code, r#"{"text":"event"}"#).await);
            if !outcome.starts_with(expected) {
                wrong.push(format!("{body}\n  gives {outcome}\n  and not {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    let good = Arc::new(code(language, sample(language)));
    let pong = run(&runtimes, &good, r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#).await;
    assert!(answer(pong).contains("Method not found: ping"));
}

/// Checks a body that throws a very long text.
async fn check_bounded(runtimes: &FunctionRuntime, language: SourceLanguage, limits: CodeLimits, body: &str) {
    let mut code = code(language, &source(language, body));
    code.limits = limits;
    let code = Arc::new(code);
    match run(runtimes, &code, "{}").await {
        Err(RunError::Thrown { kind, message, details, .. }) => {
            let length = kind.len() + message.len() + details.len();
            assert!((limits.output_bytes / 2..=limits.output_bytes).contains(&length), "{length}");
        }
        other => panic!("{:.200}", format!("{other:?}")),
    }
}

fn source(language: SourceLanguage, body: &str) -> String {
    if body.contains("cortexone_handler") {
        return body.to_owned();
    }
    match language {
        SourceLanguage::Python => {
            let body: Vec<_> = body.lines().map(|line| format!("    {line}\n")).collect();
            format!("def cortexone_handler(event, context):\n{}", body.concat())
        }
        SourceLanguage::JavaScript => format!("function cortexone_handler(event, context) {{\n{body}\n}}"),
        SourceLanguage::Lua => format!("function cortexone_handler(event, context)\n{body}\nend"),
    }
}

/// Formats the outcome of a call on one line.
fn outcome_text(result: Result<RunOutput, RunError>) -> String {
    match result {
        Ok(ran) if ran.log.is_empty() => ran.answer.as_text().to_owned(),
        Ok(ran) => format!("{} after {:?}", ran.answer.as_text(), ran.log),
        Err(RunError::Thrown { kind, message, log, .. }) if log.is_empty() => format!("{kind}: {message}"),
        Err(RunError::Thrown { kind, message, log, .. }) => format!("{kind}: {message} after {log:?}"),
        Err(RunError::NotLoaded { message }) => format!("not loaded: {message}"),
        Err(error) => format!("{error:?}"),
    }
}
