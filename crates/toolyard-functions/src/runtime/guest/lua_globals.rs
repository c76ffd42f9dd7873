//! Globals of Lua handlers: no files, no programs, no dynamic code.

use std::rc::Rc;

use mlua::{Lua, MultiValue, Result, Table, Value, Variadic};

use super::FETCH_DISABLED;
use super::host_channel::HostChannel;
use super::lua_json::{self, JsonEncodeError};
use crate::runtime::wire::{FetchRequest, FetchResponse};

/// Removed globals: they reach out of the sandbox, or compile text, which may be crafted bytecode.
const REMOVED_GLOBALS: [&str; 7] =
    ["collectgarbage", "dofile", "load", "loadfile", "loadstring", "package", "warn"];

/// Kept functions of `os`.
const KEPT_OS_FUNCTIONS: [&str; 3] = ["clock", "date", "time"];

/// Configuration that all states of a function share.
pub(super) struct LuaGlobals {
    pub(super) environment: Vec<(String, String)>,
    pub(super) network: bool,
    pub(super) output_bytes: usize,
    pub(super) line: HostChannel,
}

impl LuaGlobals {
    /// Sets up a state and returns the metatable of arrays.
    pub(super) fn install(&self, lua: &Lua) -> Result<Table> {
        let globals = lua.globals();
        for name in REMOVED_GLOBALS {
            globals.raw_set(name, Value::Nil)?;
        }
        globals.raw_get::<Table>("string")?.raw_set("dump", Value::Nil)?;
        let (all, os): (Table, _) = (globals.raw_get("os")?, lua.create_table()?);
        for name in KEPT_OS_FUNCTIONS {
            os.raw_set(name, all.raw_get::<Value>(name)?)?;
        }
        globals.raw_set("os", os)?;
        let line = self.line.clone();
        let print = lua.create_function(move |_, values: Variadic<Value>| {
            let words: Result<Vec<String>> = values.iter().map(Value::to_string).collect();
            line.print_line(&words?.join("\t"));
            Ok(())
        })?;
        globals.raw_set("print", print)?;
        globals.raw_set("setmetatable", setmetatable(lua, globals.raw_get("setmetatable")?)?)?;
        let array = array(lua)?;
        let json = self.json(lua, &array)?;
        let only = json.clone();
        let require = lua.create_function(move |_, name: String| match &*name {
            "json" => Ok(only.clone()),
            name => Err(mlua::Error::runtime(format!("unknown module {name}: only json can be required"))),
        })?;
        globals.raw_set("require", require)?;
        globals.raw_set("json", json)?;
        let process = lua.create_table()?;
        process.raw_set(
            "env",
            lua.create_table_from(self.environment.iter().map(|(name, value)| (&**name, &**value)))?,
        )?;
        globals.raw_set("process", process)?;
        globals.raw_set("fetch", self.fetch(lua, &array)?)?;
        Ok(array)
    }

    fn json(&self, lua: &Lua, array: &Table) -> Result<Table> {
        let json = lua.create_table()?;
        let limit = self.output_bytes;
        let marked = array.clone();
        let encode =
            lua.create_function(move |lua, value: Value| match lua_json::encode(&marked, &value, limit) {
                Ok(text) => lua.create_string(text),
                Err(JsonEncodeError::TooLarge) => {
                    Err(mlua::Error::runtime(format!("json.encode: longer than {limit} bytes")))
                }
                Err(JsonEncodeError::What(what)) => Err(mlua::Error::runtime(format!("json.encode: {what}"))),
            })?;
        json.raw_set("encode", encode)?;
        let marked = array.clone();
        let decode = lua.create_function(move |lua, text: mlua::LuaString| {
            let decoded = lua_json::decode(lua, &marked, &text.as_bytes());
            decoded.map_err(|error| mlua::Error::runtime(format!("json.decode: {error}")))
        })?;
        json.raw_set("decode", decode)?;
        json.raw_set("null", Value::NULL)?;
        json.raw_set("array", array)?;
        Ok(json)
    }

    fn fetch(&self, lua: &Lua, array: &Table) -> Result<mlua::Function> {
        let (line, network, array) = (self.line.clone(), self.network, array.clone());
        lua.create_function(move |lua, (url, options): (String, Option<Table>)| {
            if !network {
                return Err(mlua::Error::runtime(FETCH_DISABLED));
            }
            let request = request(url, options)?;
            let response = line.fetch(request);
            let response = response.map_err(|message| mlua::Error::runtime(format!("fetch: {message}")))?;
            response_table(lua, &array, response)
        })
    }
}

/// Returns a `setmetatable` that removes `__gc`: nothing could interrupt code that runs when a state is closed.
fn setmetatable(lua: &Lua, plain: mlua::Function) -> Result<mlua::Function> {
    lua.create_function(move |_, arguments: MultiValue| {
        if let Some(Value::Table(of)) = arguments.get(1) {
            lua_json::remove_finalizer(of)?;
        }
        plain.call::<Value>(arguments)
    })
}

/// Returns `json.array`: the metatable of arrays, including empty ones. It is callable, as in `json.array{}`.
fn array(lua: &Lua) -> Result<Table> {
    let array = lua.create_table()?;
    let of = lua.create_table()?;
    let mark = lua.create_function(|_, (array, table): (Table, Option<Table>)| {
        let Some(table) = table else { return Err(mlua::Error::runtime("json.array needs a table")) };
        lua_json::remove_finalizer(&array)?;
        table.set_metatable(Some(array))?;
        Ok(table)
    })?;
    of.raw_set("__call", mark)?;
    array.set_metatable(Some(of))?;
    Ok(array)
}

fn request(url: String, options: Option<Table>) -> Result<FetchRequest> {
    let mut request = FetchRequest { url, method: "GET".to_owned(), headers: Vec::new(), body: None };
    if let Some(options) = options {
        if let Some(method) = options.raw_get("method")? {
            request.method = method;
        }
        request.body = options.raw_get("body")?;
        if let Some(headers) = options.raw_get::<Option<Table>>("headers")? {
            request.headers = headers.pairs::<String, String>().collect::<Result<_>>()?;
        }
    }
    Ok(request)
}

fn response_table(lua: &Lua, array: &Table, response: FetchResponse) -> Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("status", response.status)?;
    table.raw_set("statusText", response.status_text)?;
    table.raw_set("ok", (200..300).contains(&response.status))?;
    table.raw_set("headers", lua.create_table_from(response.headers)?)?;
    let body = Rc::<str>::from(response.body);
    table.raw_set("body", &*body)?;
    // Callable as a function and as a method.
    let text = body.clone();
    table.raw_set("text", lua.create_function(move |lua, _: MultiValue| lua.create_string(&*text))?)?;
    let array = array.clone();
    let json = lua.create_function(move |lua, _: MultiValue| {
        lua_json::decode(lua, &array, body.as_bytes()).map_err(mlua::Error::runtime)
    })?;
    table.raw_set("json", json)?;
    Ok(table)
}
