//! Attacks in JavaScript.

use std::sync::Arc;

use toolyard_functions::code::CodeLimits;
use toolyard_functions::code::SourceLanguage::JavaScript;

use super::{LONG, SHORT, check, outcome_text};
use crate::setup::{code, run, runtimes};

#[tokio::test]
async fn endless_code_is_killed() {
    let cases = [
        ("while (true) {}", "TimedOut"),
        ("while (true) { try { while (true) {} } catch (e) {} }", "TimedOut"),
        ("try { while (true) {} } finally { while (true) {} }", "TimedOut"),
        ("return /^(a+)+$/.test('a'.repeat(60) + 'b')", "TimedOut"),
        // The engine does not check the deadline in there: the process is killed.
        ("return 'a'.repeat(400000).indexOf('a'.repeat(200000) + 'b')", "TimedOut"),
        ("return { toJSON() { while (true) {} } }", "TimedOut"),
        ("while (true) {} function cortexone_handler() {}", "TimedOut"),
        (
            "const e = new Error('x'); Object.defineProperty(e, 'name', { get() { while (true) {} } }); throw e",
            "TimedOut",
        ),
        ("while (true) console.log('endless')", "TimedOut"),
    ];
    check(JavaScript, SHORT, &cases).await;
}

#[tokio::test]
async fn memory_limit_is_reported() {
    let cases = [
        ("const all = []; while (true) all.push(new Array(1000).fill(all.length))", "OutOfMemory"),
        ("let s = 'x'; while (true) s += s + '!'; return s", "InternalError: string too long"),
        ("return new Uint8Array(1e9).length", "OutOfMemory"),
        ("return new Array(1e8).fill(0).length", "OutOfMemory"),
        ("const all = []; for (let i = 0; ; i++) all[i] = 'x'.repeat(100000) + i", "OutOfMemory"),
        ("const f = () => f() + 1; return f()", "RangeError: Maximum call stack size exceeded"),
        (
            "let v = []; for (let i = 0; i < 1e5; i++) v = [v]; return v",
            "RangeError: Maximum call stack size",
        ),
        ("let v = []; for (let i = 0; i < 200; i++) v = [v]; return v", "[[[["),
        ("return JSON.parse('['.repeat(1e6))", "RangeError: Maximum call stack size exceeded"),
        ("return 'x'.repeat(65534)", "\"xxx"),
        ("return 'x'.repeat(65535)", "OutputTooLarge { limit: 65536 }"),
        ("return 'x'.repeat(10e6)", "OutputTooLarge { limit: 65536 }"),
    ];
    check(JavaScript, LONG, &cases).await;
}

#[tokio::test]
async fn escapes_are_impossible() {
    let cases = [
        (
            "return typeof require + typeof module + typeof setTimeout + typeof XMLHttpRequest",
            "\"undefinedundefined",
        ),
        (
            "return Object.keys(Function('return this')()).sort().join()",
            "\"console,cortexone_handler,fetch,process\"",
        ),
        (
            "return (() => {}).constructor.constructor('return typeof std + typeof os')()",
            "\"undefinedundefined\"",
        ),
        ("return Object.getOwnPropertyNames(process).join() + JSON.stringify(process.env)", "\"env{}\""),
        ("return import('std')", "not loaded: the handler must be synchronous"),
        ("import x from 'std'; function cortexone_handler() {}", "not loaded: SyntaxError"),
        ("return require('fs')", "ReferenceError: require is not defined"),
        ("return console.log.constructor('return typeof load')()", "\"undefined\""),
        ("return fetch('http://127.0.0.1/')", "TypeError: fetch is not enabled"),
    ];
    check(JavaScript, LONG, &cases).await;
}

#[tokio::test]
async fn calls_share_no_state() {
    let cases = [
        ("const had = {}.polluted; Object.prototype.polluted = 1; return had === undefined", "true"),
        ("const had = [].map.hacked; Array.prototype.map.hacked = 1; return had === undefined", "true"),
        ("const had = globalThis.kept; globalThis.kept = 1; return had === undefined", "true"),
        ("var n = 0; function cortexone_handler() { n += 1; return n }", "1"),
        ("JSON.stringify = () => 'hacked'; JSON.parse = null; console.log = null; return [1]", "[1]"),
        ("process.env.X = 'x'; return Object.keys(process.env).length", "1"),
    ];
    check(JavaScript, LONG, &cases).await;
}

#[tokio::test]
async fn faults_are_reported() {
    let cases = [
        ("function other() {} // no cortexone_handler", "not loaded: missing function cortexone_handler"),
        ("var cortexone_handler = 1", "not loaded: missing function cortexone_handler"),
        ("const cortexone_handler = (event) => event.text", "\"event\""),
        ("function cortexone_handler() {\n  return 1 +;\n}", "not loaded: SyntaxError: "),
        ("throw new Error('top'); function cortexone_handler() {}", "not loaded: Error: top"),
        ("async function cortexone_handler() {}", "not loaded: the handler must be synchronous"),
        ("return Promise.resolve(1)", "not loaded: the handler must be synchronous"),
        ("return (async () => 1)()", "not loaded: the handler must be synchronous"),
        ("console.log('a'); throw 'b'", "string: b after \"a\\n\""),
        ("throw 'a text'", "string: a text"),
        ("throw { code: 7 }", "object: {\"code\":7}"),
        ("throw null", "null: null"),
        ("throw new RangeError('too far')", "RangeError: too far"),
        ("return event.missing.member", "TypeError: "),
        ("return undefined", "TypeError: the returned value is not JSON: undefined"),
        ("return () => 1", "TypeError: the returned value is not JSON: function"),
        ("return Symbol('x')", "TypeError: the returned value is not JSON: symbol"),
        ("return 10n", "TypeError: "),
        ("const a = {}; a.a = a; return a", "TypeError: circular"),
        // The result of `JSON.stringify`.
        (
            "return { nan: NaN, f() {}, u: undefined, d: new Date(0) }",
            r#"{"nan":null,"d":"1970-01-01T00:00:00.000Z"}"#,
        ),
        ("console.log('a', 1, { b: [2] }, null); return 1", "1 after \"a 1 {\\\"b\\\":[2]} null\\n\""),
        ("return '\\ud800'", "\"\\ud800\""),
    ];
    check(JavaScript, LONG, &cases).await;
}

#[tokio::test]
async fn error_text_is_truncated() {
    let (runtimes, limits) = (runtimes().await, CodeLimits { output_bytes: 1000, ..LONG });
    for body in ["throw new Error('x'.repeat(20e6))", "throw '\u{e9}'.repeat(5e6)"] {
        super::check_bounded(&runtimes, JavaScript, limits, body).await;
    }
    let mut code = code(JavaScript, "throw new Error('x'.repeat(20e6))");
    code.limits = limits;
    let outcome = outcome_text(run(&runtimes, &Arc::new(code), "{}").await);
    assert!(outcome.starts_with("not loaded: Error: xxx") && outcome.len() < 1100, "{}", outcome.len());
}
