//! The quota of a key: each call of a script counts against it, and a refusal is an exception.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use serde_json::json;
use toolyard_code::tools::RUN;
use toolyard_core::access::{CallAllowance, CallPrice};
use toolyard_core::{ErrorCode, NoClient, ToolError};
use toolyard_manifest::CodeSettings;

use crate::harness::Harness;

/// A number of calls; further ones are refused with a code.
#[derive(Debug)]
struct CallCredit {
    left: AtomicUsize,
    code: ErrorCode,
}

impl CallAllowance for CallCredit {
    fn take(&self, _: CallPrice) -> BoxFuture<'_, Result<(), ToolError>> {
        let spent = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        let refused = |_| ToolError::new(self.code, "no calls are left").because("the quota is used up");
        Box::pin(std::future::ready(spent.map(drop).map_err(refused)))
    }

    fn check(&self) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn give_back(&self, _: CallPrice) {
        self.left.fetch_add(1, Ordering::SeqCst);
    }
}

/// Runs a script with a number of calls, and returns what a model reads, and the calls that are left.
async fn run(harness: &Harness, calls: usize, code: ErrorCode, script: (&str, &str)) -> (String, usize) {
    let credit = Arc::new(CallCredit { left: calls.into(), code });
    let arguments = json!({"language": script.0, "code": script.1});
    let text = harness.call_with(&["*"], Some(credit.clone()), Arc::new(NoClient), RUN, arguments).await;
    (text, credit.left.load(Ordering::SeqCst))
}

const THREE_CALLS: [(&str, &str); 2] = [
    (
        "javascript",
        "const ended = []; for (let i = 0; i < 3; i++) { \
         try { await tools.hub.echo({i}); ended.push('ran') } catch (e) { ended.push([e.code, e.reason, e.retryable]) } \
         } return ended",
    ),
    (
        "lua",
        "local ended = {} for i = 1, 3 do local ok, e = pcall(tools.hub.echo, {i = i}) \
         ended[i] = ok and 'ran' or {e.code, e.reason, e.retryable} end return ended",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_a_script_count_against_the_quota() {
    let harness = Harness::new(CodeSettings::default());
    for script in THREE_CALLS {
        // The script is a call as well.
        let check = async |calls: usize, expected: (&str, usize)| {
            let (text, left) = run(&harness, calls, ErrorCode::QuotaExhausted, script).await;
            assert_eq!((&*text, left), expected, "{} {calls}", script.0);
        };
        check(5, (r#"["ran","ran","ran"]"#, 1)).await;
        check(3, (r#"["ran","ran",["quota_exhausted","the quota is used up",false]]"#, 0)).await;
        check(0, ("refused: no calls are left", 0)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn exceeded_rate_is_an_exception_that_can_be_retried() {
    let harness = Harness::new(CodeSettings::default());
    for script in THREE_CALLS {
        let (text, _) = run(&harness, 3, ErrorCode::RateLimited, script).await;
        assert_eq!(text, r#"["ran","ran",["rate_limited","the quota is used up",true]]"#, "{}", script.0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_do_not_run_cost_nothing() {
    let harness = Harness::new(CodeSettings::default());
    let script = "try { await tools.hub.none() } catch {} try { await tools.hub.fail() } catch {} return 1";
    // The unknown tool is not charged, and the failed one is.
    let ended = run(&harness, 5, ErrorCode::QuotaExhausted, ("javascript", script)).await;
    assert_eq!(ended, ("1".to_owned(), 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn script_that_does_not_catch_the_refusal_ends() {
    let harness = Harness::new(CodeSettings::default());
    let script = "await tools.hub.echo();\nawait tools.hub.echo()";
    let (text, _) = run(&harness, 2, ErrorCode::QuotaExhausted, ("javascript", script)).await;
    assert_eq!(
        text,
        "error: The script failed in line 2: ToolError: echo: no calls are left: the quota is used up (quota_exhausted)\n\
         Calls that had ended by then: echo 2 (1 failed)."
    );
}
