//! A worker in our own binary: it has a handler of JavaScript or Lua answer one call after the other, each in a state of
//! its own. It holds no secrets but those of its function, opens nothing, and ends with its standard input.
//!
//! The limits that the engines keep give good messages. The guarantee is that the host kills the worker.

mod js;
mod line;
mod lua;
mod lua_globals;
mod lua_json;

use std::io;
use std::time::Instant;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use self::line::Line;
use super::wire::{Failure, Load, Reply, Told, beginning, error_bytes};

/// The name under which [`super::ENTRY`] is known.
pub(super) const NAME: &str = "function-worker";

/// What the process of a worker does. Its argument is the end of the names of its language's files.
pub(super) fn work(args: &[String]) -> u8 {
    let done = match args {
        [language] if language == "js" => serve::<js::Engine>(&Line::new()),
        [language] if language == "lua" => serve::<lua::Engine>(&Line::new()),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    };
    u8::from(done.is_err())
}

/// A language, with the code of one function.
trait Engine: Sized {
    /// Everything that a handler can reach. There is a new one for each call.
    type State;

    /// Reads the code once, to know its mistakes.
    fn load(load: &Load, source: Vec<u8>, line: &Line) -> Result<Self, String>;

    /// Makes a state. It is done before the call comes, where there is time.
    fn prepare(&self) -> Result<Self::State, Failure>;

    /// Has a state answer one call.
    fn answer(&self, state: &Self::State, call: Call) -> Result<Vec<u8>, Failure>;
}

/// One call.
struct Call {
    event: Vec<u8>,
    context: Told,
    /// When it has to be over.
    deadline: Instant,
}

fn serve<E: Engine>(line: &Line) -> io::Result<()> {
    let Some(load) = line.read::<Load>()? else { return Ok(()) };
    line.bound(load.log_bytes, error_bytes(load.output_bytes));
    let engine = match source(&load).and_then(|source| E::load(&load, source, line)) {
        Ok(engine) => engine,
        Err(message) => {
            let message = beginning(message, error_bytes(load.output_bytes));
            return line.say(&Reply::NotLoaded { message });
        }
    };
    loop {
        let state = engine.prepare();
        line.ready()?;
        let Some(call) = line.next_call()? else { return Ok(()) };
        let result = state.as_ref().map_err(Failure::clone).and_then(|state| engine.answer(state, call));
        // The caller has its answer before anything is cleared away.
        if line.answer(result)? {
            return Ok(());
        }
    }
}

fn source(load: &Load) -> Result<Vec<u8>, String> {
    let file = load.files.iter().find(|(name, _)| *name == load.entry);
    let (_, content) = file.ok_or_else(|| format!("there is no file {}", load.entry))?;
    BASE64_STANDARD.decode(content).map_err(|error| error.to_string())
}

/// What a handler throws when it may not fetch. Where there were no such function, the message would not say why.
const NO_FETCH: &str = "fetch is not enabled for this version of the function";

/// What it is told where its answer is no JSON.
fn no_json(what: &str) -> Failure {
    Failure::Thrown {
        kind: "TypeError".to_owned(),
        message: format!("the handler's answer is no JSON: {what}"),
        details: String::new(),
    }
}

fn no_handler(load_handler: &str) -> Failure {
    Failure::NotLoaded { message: format!("there is no function {load_handler}") }
}
