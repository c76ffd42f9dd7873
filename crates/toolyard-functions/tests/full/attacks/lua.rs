//! Attacks in Lua.

use std::sync::Arc;

use toolyard_functions::code::CodeLimits;
use toolyard_functions::code::SourceLanguage::Lua;

use super::{LONG, SHORT, check, outcome_text};
use crate::setup::{code, run, runtimes};

#[tokio::test]
async fn endless_code_is_killed() {
    let cases = [
        ("while true do end", "TimedOut"),
        ("while true do pcall(function() while true do end end) end", "TimedOut"),
        ("for i = 1, 20 do pcall(function() while true do end end) end return 'survived'", "TimedOut"),
        ("xpcall(function() while true do end end, function() while true do end end)", "TimedOut"),
        // The deadline is not checked in there: the process is killed.
        ("return string.find(('a'):rep(200), ('a?'):rep(24) .. ('a'):rep(200) .. 'b')", "TimedOut"),
        ("return string.gsub(('a'):rep(30000), '.-.-.-b', '')", "TimedOut"),
        (
            "local t = {} for i = 1, 3e6 do t[i] = -i end for i = 1, 100 do table.sort(t) table.sort(t, function(a, b) return a > b end) end",
            "TimedOut",
        ),
        ("setmetatable(_G, { __index = function() while true do end end }) return missing", "TimedOut"),
        ("while true do end function cortexone_handler() end", "TimedOut"),
        ("while true do print('endless') end", "TimedOut"),
    ];
    check(Lua, SHORT, &cases).await;
}

#[tokio::test]
async fn memory_limit_is_reported() {
    let cases = [
        ("local t = {} while true do t[#t + 1] = {} end", "OutOfMemory"),
        ("local s = 'x' while true do s = s .. s end", "OutOfMemory"),
        ("return #string.rep('x', 1 << 30)", "OutOfMemory"),
        (
            "while true do pcall(string.rep, 'x', 1 << 30) local t = {} for i = 1, 1e8 do t[i] = i end end",
            "OutOfMemory",
        ),
        (
            "local function f() return f() + 1 end return f()",
            "error: cortexone_function.lua:2: stack overflow",
        ),
        (
            "local t = {} for i = 1, 200 do t = { t } end return t",
            "TypeError: the returned value is not JSON: nested too deeply",
        ),
        ("local t = {} t.t = t return t", "TypeError: the returned value is not JSON: nested too deeply"),
        ("return json.decode(('['):rep(100000))", "error: "),
        ("return ('x'):rep(65534)", "\"xxx"),
        ("return ('x'):rep(65535)", "OutputTooLarge { limit: 65536 }"),
    ];
    check(Lua, LONG, &cases).await;
}

#[tokio::test]
async fn escapes_are_impossible() {
    let cases = [
        (
            "local all = {} for name in pairs(_G) do all[#all + 1] = name end table.sort(all) return table.concat(all, ' ')",
            "\"_G _VERSION assert cortexone_handler error fetch getmetatable ipairs json math next os pairs pcall print process rawequal rawget rawlen rawset require select setmetatable string table tonumber tostring type utf8 xpcall\"",
        ),
        (
            "local all = {} for name in pairs(os) do all[#all + 1] = name end table.sort(all) return table.concat(all, ' ')",
            "\"clock date time\"",
        ),
        ("return tostring(string.dump) .. tostring(('').dump)", "\"nilnil\""),
        (
            "return io.open('/etc/passwd')",
            "error: cortexone_function.lua:2: attempt to index a nil value (global 'io')",
        ),
        (
            "return os.execute('id')",
            "error: cortexone_function.lua:2: attempt to call a nil value (field 'execute')",
        ),
        (
            "return os.getenv('PATH')",
            "error: cortexone_function.lua:2: attempt to call a nil value (field 'getenv')",
        ),
        (
            "return load('return 1')()",
            "error: cortexone_function.lua:2: attempt to call a nil value (global 'load')",
        ),
        (
            "return package.loadlib('libc.so.6', 'system')",
            "error: cortexone_function.lua:2: attempt to index a nil value (global 'package')",
        ),
        ("return require('io')", "error: unknown module io: only json can be required"),
        ("return require('json').encode({ 1 })", "\"[1]\""),
        (
            "return debug.getregistry()",
            "error: cortexone_function.lua:2: attempt to index a nil value (global 'debug')",
        ),
        ("return fetch('http://127.0.0.1/')", "error: fetch is not enabled"),
    ];
    check(Lua, LONG, &cases).await;
}

#[tokio::test]
async fn calls_share_no_state() {
    let cases = [
        ("local had = kept kept = 1 return had == nil", "true"),
        ("local had = string.hacked string.hacked = 1 return had == nil", "true"),
        ("local had = getmetatable('').hacked getmetatable('').hacked = 1 return had == nil", "true"),
        ("local n = 0 function cortexone_handler() n = n + 1 return n end", "1"),
        ("json.encode = nil table.concat = nil pairs = nil next = nil return { 1 }", "[1]"),
        ("keep = setmetatable({}, { __gc = function() while true do end end }) return 1", "1"),
        ("local of = { __gc = 1, __len = function() return 7 end } return #setmetatable({}, of)", "7"),
        ("setmetatable(json.array, nil) json.array.hacked = 1 return json.decode('[]')", "[]"),
    ];
    check(Lua, LONG, &cases).await;
}

#[tokio::test]
async fn faults_are_reported() {
    let cases = [
        ("function other() end -- no cortexone_handler", "not loaded: missing function cortexone_handler"),
        ("local function cortexone_handler() end", "not loaded: missing function cortexone_handler"),
        (
            "function cortexone_handler()\n  return 1 +\nend",
            "not loaded: cortexone_function.lua:3: unexpected symbol near 'end'",
        ),
        ("\u{1b}Lua cortexone_handler", "not loaded: "),
        ("error('top') function cortexone_handler() end", "not loaded: cortexone_function.lua:1: top"),
        ("print('a') error('b', 0)", "error: b after \"a\\n\""),
        ("error('a text')", "error: cortexone_function.lua:2: a text"),
        ("error('bare', 0)", "error: bare"),
        ("error({ code = 7 })", "table: {\"code\":7}"),
        ("error()", "nil: nil"),
        ("error(setmetatable({}, { __tostring = function() return 'described' end }))", "table: described"),
        (
            "return event.missing.member",
            "error: cortexone_function.lua:2: attempt to index a nil value (field 'missing')",
        ),
        ("return", "TypeError: the returned value is not JSON: nil"),
        ("return print", "TypeError: the returned value is not JSON: a function"),
        ("return { a = print }", "TypeError: the returned value is not JSON: a function"),
        ("return 0 / 0", "TypeError: the returned value is not JSON: NaN"),
        ("return { x = 1 / 0 }", "TypeError: the returned value is not JSON: inf"),
        ("return '\\xff'", "TypeError: the returned value is not JSON: a string is not UTF-8"),
        (
            "return { [{}] = 1 }",
            "TypeError: the returned value is not JSON: a table is not a JSON member name",
        ),
        (
            "return { [1] = 'a', ['1'] = 'b', z = 1 }",
            "TypeError: the returned value is not JSON: duplicate member 1",
        ),
        (
            "return { [true] = 1 }",
            "TypeError: the returned value is not JSON: a boolean is not a JSON member name",
        ),
        ("print('a', 1, nil, true) return 1", "1 after \"a\\t1\\tnil\\ttrue\\n\""),
        ("return { 1, 2, x = 3 }", r#"{"1":1,"2":2,"x":3}"#),
        ("return { {}, json.array({}), setmetatable({}, json.array), json.null }", "[{},[],[],null]"),
        ("return { b = 1, a = 2, c = 1.5, d = 1e3 }", r#"{"a":2,"b":1,"c":1.5,"d":1000.0}"#),
        ("return os.time() > 1e9 and os.date('!%Y', 0)", "\"1970\""),
        ("return os.date('%Ez', 0)", "error: "),
    ];
    check(Lua, LONG, &cases).await;
}

#[tokio::test]
async fn error_text_is_truncated() {
    let (runtimes, limits) = (runtimes().await, CodeLimits { output_bytes: 1000, ..LONG });
    for body in ["error(('x'):rep(5e6))", "error(('\u{e9}'):rep(5e6), 0)"] {
        super::check_bounded(&runtimes, Lua, limits, body).await;
    }
}

#[tokio::test]
async fn event_too_large_for_lua_is_reported() {
    let code = Arc::new(code(Lua, "function cortexone_handler(event) n = (n or 0) + 1 return n end"));
    let runtimes = runtimes().await;
    for (event, why) in [
        (r#"{"a":1e400}"#, "number out of range"),
        (r#""\ud800""#, "unexpected end of hex escape"),
        (r#""\udc00x""#, "lone leading surrogate"),
    ] {
        let outcome = outcome_text(run(&runtimes, &code, event).await);
        assert!(
            outcome.starts_with("error: the event cannot be read: ") && outcome.contains(why),
            "{outcome}"
        );
        assert_eq!(runtimes.info()[0].idle, 1);
    }
}
