//! Lua: PUC Lua 5.4 without what reaches out of it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Instant;

use mlua::chunk::ChunkMode;
use mlua::{Function, HookTriggers, IntoLuaMulti, Lua, LuaOptions, StdLib, Table, Value, VmState};
use serde_json::error::Category;

use super::line::Line;
use super::lua_globals::Globals;
use super::lua_json::{self, NoJson};
use super::{Call, no_handler, no_json};
use crate::runtime::wire::{Failure, Load, Told};

/// How many instructions run between two looks at the clock: some 50 us.
const LOOK_EVERY: u32 = 10_000;

/// How long a table may be as JSON that is told of as an error, in bytes.
const LONGEST_THROWN: usize = 4 << 10;

pub(super) struct Engine {
    /// The source, compiled. It is our own: a state that a handler reaches cannot load any.
    code: Vec<u8>,
    handler: String,
    memory_bytes: usize,
    globals: Globals,
}

pub(super) struct State {
    lua: Lua,
    code: Function,
    array: Table,
    /// `xpcall`, as it was before anybody could replace it.
    protected: Function,
    deadline: Rc<Cell<Option<Instant>>>,
}

impl super::Engine for Engine {
    type State = State;

    fn load(load: &Load, source: Vec<u8>, line: &Line) -> Result<Self, String> {
        let compiler = Lua::new_with(StdLib::NONE, LuaOptions::new()).map_err(|error| error.to_string())?;
        let chunk = compiler.load(source).set_name(format!("@{}", load.entry)).set_mode(ChunkMode::Text);
        let code = chunk.into_function().map_err(|error| match error {
            mlua::Error::SyntaxError { message, .. } => message,
            other => other.to_string(),
        })?;
        let engine = Self {
            code: code.dump(false),
            handler: load.handler.clone(),
            memory_bytes: usize::try_from(load.memory_bytes).unwrap_or(usize::MAX) / 4 * 3,
            globals: Globals {
                environment: load.environment.clone(),
                network: load.network,
                output_bytes: load.output_bytes,
                line: line.clone(),
            },
        };
        let none = "it takes more memory than it may have";
        let state = engine.prepare().map_err(|_| none.to_owned())?;
        engine.read(&state).map(drop).map_err(|failure| match failure {
            Failure::Thrown { message, .. } | Failure::NotLoaded { message } => message,
            _ => none.to_owned(),
        })?;
        Ok(engine)
    }

    fn prepare(&self) -> Result<State, Failure> {
        self.state().map_err(|_| Failure::OutOfMemory)
    }

    fn answer(&self, state: &State, call: Call) -> Result<Vec<u8>, Failure> {
        let deadline = call.deadline;
        state.deadline.set(Some(deadline));
        let result = self.run(state, &call);
        // What stops a script that is late is an error as well, and may have been hidden behind another one.
        if result.is_err() && Instant::now() > deadline { Err(Failure::TimedOut) } else { result }
    }
}

impl Engine {
    fn state(&self) -> mlua::Result<State> {
        let parts = StdLib::TABLE | StdLib::STRING | StdLib::MATH | StdLib::UTF8 | StdLib::OS;
        let lua = Lua::new_with(parts, LuaOptions::new())?;
        let array = self.globals.furnish(&lua)?;
        let code = lua.load(&*self.code).set_mode(ChunkMode::Binary).into_function()?;
        let deadline = Rc::new(Cell::new(None));
        watch(&lua, deadline.clone(), LOOK_EVERY)?;
        let protected = lua.globals().raw_get("xpcall")?;
        lua.set_memory_limit(self.memory_bytes)?;
        Ok(State { lua, code, array, protected, deadline })
    }

    /// Runs what stands outside of functions, and finds the handler.
    fn read(&self, state: &State) -> Result<Function, Failure> {
        state.call(&state.code, ())?;
        let handler: Value = state.lua.globals().raw_get(&*self.handler).map_err(failure)?;
        match handler {
            Value::Function(handler) => Ok(handler),
            _ => Err(no_handler(&self.handler)),
        }
    }

    fn run(&self, state: &State, call: &Call) -> Result<Vec<u8>, Failure> {
        let handler = self.read(state)?;
        let event = lua_json::decode(&state.lua, &state.array, &call.event);
        let event = event.map_err(|error| match error.classify() {
            Category::Data => Failure::OutOfMemory,
            _ => thrown(&format!("the event cannot be read: {error}"), ""),
        })?;
        let context = told(&state.lua, &call.context).map_err(failure)?;
        let answer = state.call(&handler, (event, context))?;
        if answer.is_nil() {
            return Err(no_json("nil"));
        }
        lua_json::encode(&state.array, &answer, self.globals.output_bytes).map_err(|error| match error {
            NoJson::TooLarge => Failure::OutputTooLarge,
            NoJson::What(what) => no_json(&what),
        })
    }
}

impl State {
    /// Calls a function, and takes note of whatever it throws: anything can be thrown.
    fn call(&self, function: &Function, arguments: impl IntoLuaMulti) -> Result<Value, Failure> {
        let caught = Rc::new(RefCell::new(None));
        let (noted, array) = (caught.clone(), self.array.clone());
        let note = self.lua.create_function(move |lua, value: Value| {
            *noted.borrow_mut() = Some(thrown_value(lua, &array, value));
            Ok(())
        });
        let note = note.map_err(failure)?;
        let mut all = arguments.into_lua_multi(&self.lua).map_err(failure)?;
        all.push_front(Value::Function(note));
        all.push_front(Value::Function(function.clone()));
        let (is_done, value): (bool, Value) = self.protected.call(all).map_err(failure)?;
        if is_done {
            return Ok(value);
        }
        // Where there was no memory, nobody could be told of it.
        Err(caught.take().unwrap_or(Failure::OutOfMemory))
    }
}

fn thrown_value(lua: &Lua, array: &Table, value: Value) -> Failure {
    let kind = match &value {
        Value::Error(error) => return failure((**error).clone()),
        Value::String(_) => "error",
        other => other.type_name(),
    };
    let message = match &value {
        Value::Table(table) if table.metatable().is_none() => lua_json::encode(array, &value, LONGEST_THROWN)
            .map_or_else(|_| "table".to_owned(), |text| String::from_utf8_lossy(&text).into_owned()),
        other => other.to_string().unwrap_or_else(|_| kind.to_owned()),
    };
    let trace = lua.traceback(None, 1).map(|trace| trace.to_string_lossy());
    Failure::Thrown { kind: kind.to_owned(), message, details: trace.unwrap_or_default() }
}

/// Stops what is late. A script may catch that (`pcall`) and go on: then it is stopped at every instruction.
fn watch(lua: &Lua, deadline: Rc<Cell<Option<Instant>>>, every: u32) -> mlua::Result<()> {
    let triggers = HookTriggers::new().every_nth_instruction(every);
    lua.set_global_hook(triggers, move |lua, _| {
        if deadline.get().is_none_or(|deadline| Instant::now() <= deadline) {
            return Ok(VmState::Continue);
        }
        if every > 1 {
            watch(lua, deadline.clone(), 1)?;
        }
        Err(mlua::Error::runtime("interrupted"))
    })
}

fn failure(error: mlua::Error) -> Failure {
    match error {
        mlua::Error::MemoryError(_) => Failure::OutOfMemory,
        mlua::Error::CallbackError { traceback, cause } => match failure((*cause).clone()) {
            Failure::Thrown { kind, message, .. } => Failure::Thrown { kind, message, details: traceback },
            other => other,
        },
        mlua::Error::RuntimeError(text) => {
            let (message, details) = text.split_once("\nstack traceback:\n").unwrap_or((&text, ""));
            thrown(message, details)
        }
        other => thrown(&other.to_string(), ""),
    }
}

fn thrown(message: &str, details: &str) -> Failure {
    Failure::Thrown { kind: "error".to_owned(), message: message.to_owned(), details: details.to_owned() }
}

/// The second argument of a handler.
fn told(lua: &Lua, told: &Told) -> mlua::Result<Table> {
    let context = lua.create_table()?;
    context.raw_set("function_id", &*told.function_id)?;
    context.raw_set("version", &*told.version)?;
    context.raw_set("request_id", &*told.request_id)?;
    context.raw_set("deadline", &*told.deadline)?;
    context.raw_set("remaining_ms", told.remaining_ms)?;
    Ok(context)
}
