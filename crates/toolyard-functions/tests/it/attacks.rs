//! What code does that is broken or means harm: each gets its refusal, and whoever comes next is served.

mod javascript;
mod lua;
mod python;

use std::sync::Arc;
use std::time::Duration;

use toolyard_functions::code::{CodeLimits, Language};
use toolyard_functions::run::{Ran, RunError};
use toolyard_functions::runtime::Runtimes;

use crate::samples::sample;
use crate::setup::{answer, code, run, runtimes};

/// Enough for an attack to be under way, and little enough to wait for.
const SHORT: CodeLimits = CodeLimits {
    wall: Duration::from_millis(500),
    memory_bytes: 128 << 20,
    output_bytes: 64 << 10,
    concurrent: 4,
};

/// With time for code that takes some before it fails.
const LONG: CodeLimits = CodeLimits { wall: Duration::from_secs(20), ..SHORT };

/// A handler's body, or a whole source where it names the handler, and what comes of it: the beginning of what is said.
type Case<'a> = (&'a str, &'a str);

/// Calls each twice, so that it is seen what the first call leaves behind, and the sample afterwards.
async fn check(language: Language, limits: CodeLimits, cases: &[Case<'_>]) {
    let runtimes = runtimes().await;
    let mut wrong = Vec::new();
    for (body, expected) in cases {
        let mut code = code(language, &source(language, body));
        code.limits = limits;
        let code = Arc::new(code);
        for _ in 0..2 {
            let came = said(run(&runtimes, &code, r#"{"text":"event"}"#).await);
            if !came.starts_with(expected) {
                wrong.push(format!("{body}\n  gives {came}\n  and not {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    let good = Arc::new(code(language, sample(language)));
    let pong = run(&runtimes, &good, r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#).await;
    assert!(answer(pong).contains("Method not found: ping"));
}

/// A body that throws a text that is far too long.
async fn check_bounded(runtimes: &Runtimes, language: Language, limits: CodeLimits, body: &str) {
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

fn source(language: Language, body: &str) -> String {
    if body.contains("cortexone_handler") {
        return body.to_owned();
    }
    match language {
        Language::Python => {
            let body: Vec<_> = body.lines().map(|line| format!("    {line}\n")).collect();
            format!("def cortexone_handler(event, context):\n{}", body.concat())
        }
        Language::JavaScript => format!("function cortexone_handler(event, context) {{\n{body}\n}}"),
        Language::Lua => format!("function cortexone_handler(event, context)\n{body}\nend"),
    }
}

/// What came of a call, in a line.
fn said(result: Result<Ran, RunError>) -> String {
    match result {
        Ok(ran) if ran.log.is_empty() => ran.answer.as_text().to_owned(),
        Ok(ran) => format!("{} after {:?}", ran.answer.as_text(), ran.log),
        Err(RunError::Thrown { kind, message, log, .. }) if log.is_empty() => format!("{kind}: {message}"),
        Err(RunError::Thrown { kind, message, log, .. }) => format!("{kind}: {message} after {log:?}"),
        Err(RunError::NotLoaded { message }) => format!("not loaded: {message}"),
        Err(error) => format!("{error:?}"),
    }
}
