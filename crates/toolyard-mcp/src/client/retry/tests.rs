use std::sync::Mutex;

use http::StatusCode;
use toolyard_core::{CallOutput, NoClient, Object};

use super::*;

/// The result of an attempt.
#[derive(Clone, Copy)]
enum Try {
    Answered,
    Unreachable,
    Broken,
    /// Broken after a notification.
    Told,
    Asked,
    Interrupted,
    SessionOver,
    Busy,
    NotConnected,
    Refused,
    Never,
}

use Try::*;

impl Try {
    async fn run(self, call: Arc<Call>) -> Result<Outcome, AttemptError> {
        let io = || Box::new(std::io::Error::other("io"));
        Err(match self {
            Answered => return Ok(Outcome::Done(CallOutput { body: Object::new(), is_error: false })),
            Unreachable => TransportError::Unreachable(io()).into(),
            Broken => TransportError::Broken(io()).into(),
            Told => {
                call.client.notify(ClientNotification::Progress(Object::new().into()));
                TransportError::Broken(io()).into()
            }
            Asked => {
                let _nobody = call.client.ask(InputRequest {
                    kind: toolyard_core::InputRequestKind::Roots,
                    params: Object::new(),
                });
                TransportError::SessionExpired.into()
            }
            Interrupted => TransportError::Interrupted(io()).into(),
            SessionOver => TransportError::SessionExpired.into(),
            Busy => TransportError::Status(StatusCode::SERVICE_UNAVAILABLE).into(),
            NotConnected => ToolError::new(ErrorCode::Unavailable, "down").into(),
            Refused => ToolError::new(ErrorCode::ExecutionFailed, "no").into(),
            Never => std::future::pending().await,
        })
    }
}

/// Makes attempts with these results, the last one again and again; returns their number and the outcome.
async fn run(attempts: u32, tries: &[Try]) -> (usize, String) {
    let retry = RetrySchedule { attempts, ..RetrySchedule::never() };
    let made = Mutex::new(0);
    let attempt = |call: Arc<Call>| {
        let mut made = made.lock().unwrap();
        *made += 1;
        tries[(*made - 1).min(tries.len() - 1)].run(call)
    };
    let mut call = Call::tool("t", Object::new().to_json());
    call.client = Arc::new(NoClient);
    let time = (attempts > 1).then_some(Duration::from_secs(1));
    let outcome = UpstreamRetry { retry, attempt_timeout: time }.run_attempts(call, attempt).await;
    let text = outcome.map_or_else(|error| error.to_string(), |_| "ok".to_owned());
    let made = *made.lock().unwrap();
    (made, text)
}

#[tokio::test(start_paused = true)]
async fn lost_session_is_reopened_once() {
    const OVER: &str = "The server has ended the session";
    let cases: &[(&[Try], usize, &str)] = &[
        (&[Answered], 1, "ok"),
        (&[SessionOver, Answered], 2, "ok"),
        (&[SessionOver, SessionOver, Answered], 2, OVER),
        (&[Asked, Answered], 1, OVER),
        (&[Unreachable, Answered], 1, "The server cannot be reached"),
        (&[SessionOver, Unreachable, Answered], 2, "The server cannot be reached"),
    ];
    for (tries, made, text) in cases {
        assert_eq!(run(1, tries).await, (*made, (*text).to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn only_transport_failures_are_retried() {
    const BROKE: &str = "The connection to the server broke";
    let cases: &[(&[Try], usize, &str)] = &[
        (&[Unreachable, Broken, Answered], 3, "ok"),
        (&[NotConnected, SessionOver, Answered], 3, "ok"),
        (&[Broken], 3, "3 attempts exhausted: The connection to the server broke"),
        (&[NotConnected], 3, "3 attempts exhausted: down"),
        (&[Told, Answered], 1, BROKE),
        (&[Interrupted, Answered], 1, BROKE),
        (&[Busy, Answered], 1, "The server failed to answer"),
        (&[Refused, Answered], 1, "no"),
        (&[Broken, Never, Answered], 2, "The tool did not answer in time"),
        (&[Unreachable, SessionOver, Unreachable, Answered], 4, "ok"),
    ];
    for (tries, made, text) in cases {
        assert_eq!(run(3, tries).await, (*made, (*text).to_owned()));
    }
}
