use std::sync::Mutex;

use http::StatusCode;
use toolyard_core::{NoClient, Object, Output};

use super::*;

/// What an attempt comes to.
#[derive(Clone, Copy)]
enum Try {
    Answered,
    Unreachable,
    Broken,
    /// Broken once something was said.
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
    async fn run(self, call: Call) -> Result<Outcome, Failure> {
        let io = || Box::new(std::io::Error::other("io"));
        Err(match self {
            Answered => return Ok(Outcome::Done(Output { body: Object::new(), is_error: false })),
            Unreachable => TransportError::Unreachable(io()).into(),
            Broken => TransportError::Broken(io()).into(),
            Told => {
                call.client.notify(Notice::Progress(Object::new()));
                TransportError::Broken(io()).into()
            }
            Asked => {
                let _nobody =
                    call.client.ask(Ask { kind: toolyard_core::AskKind::Roots, params: Object::new() });
                TransportError::SessionOver.into()
            }
            Interrupted => TransportError::Interrupted(io()).into(),
            SessionOver => TransportError::SessionOver.into(),
            Busy => TransportError::Status(StatusCode::SERVICE_UNAVAILABLE).into(),
            NotConnected => ToolError::new(Code::Unavailable, "down").into(),
            Refused => ToolError::new(Code::ExecutionFailed, "no").into(),
            Never => std::future::pending().await,
        })
    }
}

/// Makes attempts that come to `tries`, the last one for good; gives how many there were, and what came of it.
async fn run(attempts: u32, tries: &[Try]) -> (usize, String) {
    let retry = Retry { attempts, ..Retry::never() };
    let made = Mutex::new(0);
    let attempt = |call: Call| {
        let mut made = made.lock().unwrap();
        *made += 1;
        tries[(*made - 1).min(tries.len() - 1)].run(call)
    };
    let mut call = Call::tool("t", Object::new().to_json());
    call.client = Arc::new(NoClient);
    let time = (attempts > 1).then_some(Duration::from_secs(1));
    let outcome = Attempts { retry, time }.run(call, attempt).await;
    let said = outcome.map_or_else(|error| error.to_string(), |_| "ok".to_owned());
    let made = *made.lock().unwrap();
    (made, said)
}

#[tokio::test(start_paused = true)]
async fn a_session_is_opened_anew_once() {
    const OVER: &str = "The server has ended the session";
    let cases: &[(&[Try], usize, &str)] = &[
        (&[Answered], 1, "ok"),
        (&[SessionOver, Answered], 2, "ok"),
        (&[SessionOver, SessionOver, Answered], 2, OVER),
        (&[Asked, Answered], 1, OVER),
        (&[Unreachable, Answered], 1, "The server cannot be reached"),
        (&[SessionOver, Unreachable, Answered], 2, "The server cannot be reached"),
    ];
    for (tries, made, said) in cases {
        assert_eq!(run(1, tries).await, (*made, (*said).to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn only_the_transport_s_failures_are_tried_again() {
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
    for (tries, made, said) in cases {
        assert_eq!(run(3, tries).await, (*made, (*said).to_owned()));
    }
}
