//! A worker in our own binary for JavaScript and Lua. It handles one call after the other, each in a new state. It has
//! no secrets except for those of its function, opens no files, and ends with its standard input.
//!
//! The engines enforce limits with good messages. The host enforces them by killing the worker.

mod host_channel;
mod js;
mod js_tools;
mod lua;
mod lua_globals;
mod lua_json;
mod lua_tools;

use std::io;
use std::time::Instant;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use self::host_channel::HostChannel;
use super::wire::{CallFailure, HandlerContext, LoadRequest, WorkerMessage, error_bytes, truncate_text};

/// Name of [`super::ENTRY`].
pub(super) const ENTRY_NAME: &str = "function-worker";

/// Main function of a worker process. The argument is the file extension of its language.
pub(super) fn run_worker(args: &[String]) -> u8 {
    let done = match args {
        [language] if language == "js" => serve::<js::JsEngine>(&HostChannel::new()),
        [language] if language == "lua" => serve::<lua::LuaEngine>(&HostChannel::new()),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    };
    u8::from(done.is_err())
}

/// A script engine with the code of one function.
trait ScriptEngine: Sized {
    /// Everything that a handler can reach. Each call has a new state.
    type State;

    /// Loads the code once, to detect faults.
    fn load(load: &LoadRequest, source: Vec<u8>, line: &HostChannel) -> Result<Self, String>;

    /// Creates a state. This happens before the call arrives, when no caller waits.
    fn prepare(&self) -> Result<Self::State, CallFailure>;

    /// Handles one call in a state.
    fn answer(&self, state: &Self::State, call: GuestCall) -> Result<Vec<u8>, CallFailure>;
}

/// One call.
struct GuestCall {
    event: Vec<u8>,
    context: HandlerContext,
    /// Deadline of the call.
    deadline: Instant,
}

fn serve<E: ScriptEngine>(line: &HostChannel) -> io::Result<()> {
    let Some(load) = line.read::<LoadRequest>()? else { return Ok(()) };
    line.set_limits(load.log_bytes, error_bytes(load.output_bytes));
    let engine = match source(&load).and_then(|source| E::load(&load, source, line)) {
        Ok(engine) => engine,
        Err(message) => {
            let message = truncate_text(message, error_bytes(load.output_bytes));
            return line.send_message(&WorkerMessage::NotLoaded { message });
        }
    };
    loop {
        let state = engine.prepare();
        line.send_ready()?;
        let Some(call) = line.next_call()? else { return Ok(()) };
        let result = state.as_ref().map_err(CallFailure::clone).and_then(|state| engine.answer(state, call));
        // The answer is sent before the state is dropped.
        if line.send_result(result)? {
            return Ok(());
        }
    }
}

fn source(load: &LoadRequest) -> Result<Vec<u8>, String> {
    let file = load.files.iter().find(|(name, _)| *name == load.entry);
    let (_, content) = file.ok_or_else(|| format!("missing file {}", load.entry))?;
    BASE64_STANDARD.decode(content).map_err(|error| error.to_string())
}

/// Error of `fetch` without network access. The function exists, so that the error has a reason.
const FETCH_DISABLED: &str = "fetch is not enabled for this version of the function";

/// Failure of a handler that waits for something other than a request to the host.
const STALLED: &str = "it waits for a promise that nothing settles";

/// Failure of an answer that cannot be written as JSON.
fn invalid_json(what: &str) -> CallFailure {
    CallFailure::Thrown {
        kind: "TypeError".to_owned(),
        message: format!("the returned value is not JSON: {what}"),
        details: String::new(),
    }
}

fn missing_handler(load_handler: &str) -> CallFailure {
    CallFailure::NotLoaded { message: format!("missing function {load_handler}") }
}
