//! Tools of the host in Lua: the third argument of a handler.
//!
//! | member | |
//! | --- | --- |
//! | `call(id, tool, arguments)` | requests the call of a tool |
//! | `sleep(id, millis)` | requests a pause |
//! | `receive()` | waits for the result of any request, and returns its id, `true` if it failed, and the result |
//! | `progress(done, total, message)` | reports progress |
//! | `compile(code, name)` | returns a text as a function, or `nil` and the fault |

use std::time::Instant;

use mlua::chunk::ChunkMode;
use mlua::{Error, Lua, LuaString, Result, Table, Value};

use super::lua_globals::LuaGlobals;
use super::lua_json::{self, JsonEncodeError};
use crate::runtime::wire::{ProgressReport, ToolRequest};

/// Returns the third argument of a handler that runs until this deadline.
pub(super) fn host_table(lua: &Lua, array: &Table, globals: &LuaGlobals, deadline: Instant) -> Result<Table> {
    let host = lua.create_table()?;
    let (line, marked, limit) = (globals.line.clone(), array.clone(), globals.output_bytes);
    let call = lua.create_function(move |_, (id, tool, arguments): (u64, String, Value)| {
        let text = lua_json::encode(&marked, &arguments, limit).map_err(|error| match error {
            JsonEncodeError::TooLarge => {
                Error::runtime(format!("{tool}: the arguments exceed {limit} bytes"))
            }
            JsonEncodeError::What(what) => {
                Error::runtime(format!("{tool}: the arguments are not JSON: {what}"))
            }
        })?;
        let arguments = String::from_utf8_lossy(&text).into_owned();
        check_time(deadline)?;
        line.request_tool(id, ToolRequest::Call { tool, arguments }).map_err(Error::runtime)
    })?;
    host.raw_set("call", call)?;
    let line = globals.line.clone();
    let sleep = lua.create_function(move |_, (id, millis): (u64, f64)| {
        check_time(deadline)?;
        line.request_tool(id, ToolRequest::Sleep { millis: millis as u64 }).map_err(Error::runtime)
    })?;
    host.raw_set("sleep", sleep)?;
    let (line, array) = (globals.line.clone(), array.clone());
    let receive = lua.create_function(move |lua, ()| {
        let (header, body) = line.tool_result().map_err(Error::runtime)?;
        check_time(deadline)?;
        let result = lua_json::decode(lua, &array, &body).map_err(Error::runtime)?;
        Ok((header.id, header.is_error, result))
    })?;
    host.raw_set("receive", receive)?;
    let line = globals.line.clone();
    let progress =
        lua.create_function(move |_, (done, total, message): (f64, Option<f64>, Option<String>)| {
            line.report_progress(ProgressReport { done, total, message }).map_err(Error::runtime)
        })?;
    host.raw_set("progress", progress)?;
    let compile = lua.create_function(|lua, (code, name): (LuaString, String)| {
        let chunk = lua.load(code.as_bytes().to_vec()).set_name(format!("={name}")).set_mode(ChunkMode::Text);
        match chunk.into_function() {
            Ok(function) => Ok((Value::Function(function), None)),
            Err(Error::SyntaxError { message, .. }) => Ok((Value::Nil, Some(message))),
            Err(error) => Err(error),
        }
    })?;
    host.raw_set("compile", compile)?;
    Ok(host)
}

/// Refuses to wait for the host after the deadline. A handler that catches this is interrupted soon.
fn check_time(deadline: Instant) -> Result<()> {
    if Instant::now() > deadline { Err(Error::runtime("interrupted")) } else { Ok(()) }
}
