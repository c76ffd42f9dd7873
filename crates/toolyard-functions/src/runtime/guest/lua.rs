//! Lua: PUC Lua 5.4 without access to files, programs and modules.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Instant;

use mlua::chunk::ChunkMode;
use mlua::{Function, HookTriggers, IntoLuaMulti, Lua, LuaOptions, StdLib, Table, Value, VmState};
use serde_json::error::Category;

use super::host_channel::HostChannel;
use super::lua_globals::LuaGlobals;
use super::lua_json::{self, JsonEncodeError};
use super::lua_tools;
use super::{GuestCall, invalid_json, missing_handler};
use crate::runtime::wire::{CallFailure, HandlerContext, LoadRequest};

/// Number of instructions between two checks of the deadline: about 50 us.
const CHECK_INTERVAL: u32 = 10_000;

/// Maximum length of a thrown table as JSON, in bytes.
const MAX_THROWN_BYTES: usize = 4 << 10;

pub(super) struct LuaEngine {
    /// Compiled source. Handlers cannot load bytecode.
    code: Vec<u8>,
    handler: String,
    memory_bytes: usize,
    tools: bool,
    globals: LuaGlobals,
}

pub(super) struct LuaState {
    lua: Lua,
    code: Function,
    array: Table,
    /// The original `xpcall`, which handlers cannot replace.
    protected: Function,
    deadline: Rc<Cell<Option<Instant>>>,
}

impl super::ScriptEngine for LuaEngine {
    type State = LuaState;

    fn load(load: &LoadRequest, source: Vec<u8>, line: &HostChannel) -> Result<Self, String> {
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
            tools: load.tools,
            globals: LuaGlobals {
                environment: load.environment.clone(),
                network: load.network,
                output_bytes: load.output_bytes,
                line: line.clone(),
            },
        };
        let none = "it exceeds its memory limit";
        let state = engine.prepare().map_err(|_| none.to_owned())?;
        engine.load_handler(&state).map(drop).map_err(|failure| match failure {
            CallFailure::Thrown { message, .. } | CallFailure::NotLoaded { message } => message,
            _ => none.to_owned(),
        })?;
        Ok(engine)
    }

    fn prepare(&self) -> Result<LuaState, CallFailure> {
        self.state().map_err(|_| CallFailure::OutOfMemory)
    }

    fn answer(&self, state: &LuaState, call: GuestCall) -> Result<Vec<u8>, CallFailure> {
        let deadline = call.deadline;
        state.deadline.set(Some(deadline));
        let result = self.run(state, &call);
        // The interruption of a late script is an error, too, and another error may have replaced it.
        if result.is_err() && Instant::now() > deadline { Err(CallFailure::TimedOut) } else { result }
    }
}

impl LuaEngine {
    fn state(&self) -> mlua::Result<LuaState> {
        let mut parts = StdLib::TABLE | StdLib::STRING | StdLib::MATH | StdLib::UTF8 | StdLib::OS;
        if self.tools {
            // Calls of tools at the same time.
            parts |= StdLib::COROUTINE;
        }
        let lua = Lua::new_with(parts, LuaOptions::new())?;
        let array = self.globals.install(&lua)?;
        let code = lua.load(&*self.code).set_mode(ChunkMode::Binary).into_function()?;
        let deadline = Rc::new(Cell::new(None));
        set_interrupt_hook(&lua, deadline.clone(), CHECK_INTERVAL)?;
        let protected = lua.globals().raw_get("xpcall")?;
        lua.set_memory_limit(self.memory_bytes)?;
        Ok(LuaState { lua, code, array, protected, deadline })
    }

    /// Runs the top-level code and returns the handler.
    fn load_handler(&self, state: &LuaState) -> Result<Function, CallFailure> {
        state.call(&state.code, ())?;
        let handler: Value = state.lua.globals().raw_get(&*self.handler).map_err(failure)?;
        match handler {
            Value::Function(handler) => Ok(handler),
            _ => Err(missing_handler(&self.handler)),
        }
    }

    fn run(&self, state: &LuaState, call: &GuestCall) -> Result<Vec<u8>, CallFailure> {
        let handler = self.load_handler(state)?;
        let event = lua_json::decode(&state.lua, &state.array, &call.event);
        let event = event.map_err(|error| match error.classify() {
            Category::Data => CallFailure::OutOfMemory,
            _ => thrown(&format!("the event cannot be read: {error}"), ""),
        })?;
        let context = context_table(&state.lua, &call.context).map_err(failure)?;
        let answer = match self.tools {
            false => state.call(&handler, (event, context))?,
            true => {
                let host = lua_tools::host_table(&state.lua, &state.array, &self.globals, call.deadline);
                state.call(&handler, (event, context, host.map_err(failure)?))?
            }
        };
        if answer.is_nil() {
            return Err(invalid_json("nil"));
        }
        lua_json::encode(&state.array, &answer, self.globals.output_bytes).map_err(|error| match error {
            JsonEncodeError::TooLarge => CallFailure::OutputTooLarge,
            JsonEncodeError::What(what) => invalid_json(&what),
        })
    }
}

impl LuaState {
    /// Calls a function and captures any thrown value.
    fn call(&self, function: &Function, arguments: impl IntoLuaMulti) -> Result<Value, CallFailure> {
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
        // Without memory, the error handler could not run.
        Err(caught.take().unwrap_or(CallFailure::OutOfMemory))
    }
}

fn thrown_value(lua: &Lua, array: &Table, value: Value) -> CallFailure {
    let kind = match &value {
        Value::Error(error) => return failure((**error).clone()),
        Value::String(_) => "error",
        other => other.type_name(),
    };
    let message = match &value {
        Value::Table(table) if table.metatable().is_none() => {
            lua_json::encode(array, &value, MAX_THROWN_BYTES)
                .map_or_else(|_| "table".to_owned(), |text| String::from_utf8_lossy(&text).into_owned())
        }
        other => other.to_string().unwrap_or_else(|_| kind.to_owned()),
    };
    let trace = lua.traceback(None, 1).map(|trace| trace.to_string_lossy());
    CallFailure::Thrown { kind: kind.to_owned(), message, details: trace.unwrap_or_default() }
}

/// Interrupts a late script. If the script catches that (`pcall`), it is interrupted at each instruction.
fn set_interrupt_hook(lua: &Lua, deadline: Rc<Cell<Option<Instant>>>, every: u32) -> mlua::Result<()> {
    let triggers = HookTriggers::new().every_nth_instruction(every);
    lua.set_global_hook(triggers, move |lua, _| {
        if deadline.get().is_none_or(|deadline| Instant::now() <= deadline) {
            return Ok(VmState::Continue);
        }
        if every > 1 {
            set_interrupt_hook(lua, deadline.clone(), 1)?;
        }
        Err(mlua::Error::runtime("interrupted"))
    })
}

fn failure(error: mlua::Error) -> CallFailure {
    match error {
        mlua::Error::MemoryError(_) => CallFailure::OutOfMemory,
        mlua::Error::CallbackError { traceback, cause } => match failure((*cause).clone()) {
            CallFailure::Thrown { kind, message, .. } => {
                CallFailure::Thrown { kind, message, details: traceback }
            }
            other => other,
        },
        mlua::Error::RuntimeError(text) => {
            let (message, details) = text.split_once("\nstack traceback:\n").unwrap_or((&text, ""));
            thrown(message, details)
        }
        other => thrown(&other.to_string(), ""),
    }
}

fn thrown(message: &str, details: &str) -> CallFailure {
    CallFailure::Thrown { kind: "error".to_owned(), message: message.to_owned(), details: details.to_owned() }
}

/// Returns the second argument of a handler.
fn context_table(lua: &Lua, told: &HandlerContext) -> mlua::Result<Table> {
    let context = lua.create_table()?;
    context.raw_set("function_id", &*told.function_id)?;
    context.raw_set("version", &*told.version)?;
    context.raw_set("request_id", &*told.request_id)?;
    context.raw_set("deadline", &*told.deadline)?;
    context.raw_set("remaining_ms", told.remaining_ms)?;
    Ok(context)
}
