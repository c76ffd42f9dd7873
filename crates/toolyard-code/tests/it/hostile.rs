//! Scripts that attack the gateway, the machine, and other scripts.

use toolyard_manifest::CodeSettings;
use toolyard_sandbox::IsolationRequirement;

use crate::harness::Harness;

#[tokio::test(flavor = "multi_thread")]
async fn javascript_reaches_nothing_but_tools() {
    let cases = [
        (
            "return [typeof require, typeof module, typeof setTimeout, typeof std, typeof os].join()",
            "undefined,undefined,undefined,undefined,undefined",
        ),
        (
            "return (() => {}).constructor.constructor('return typeof std + typeof os')()",
            "undefinedundefined",
        ),
        ("return import('std')", "error: "),
        ("return require('fs')", "ReferenceError"),
        (
            "return Object.keys(globalThis).sort().join()",
            "ToolError,call_tool,console,cortexone_handler,progress,sleep,tools",
        ),
        // The end of the wrapper.
        ("})(); globalThis.x = 1; (async () => { return x", "1"),
        // Forged protocol messages are printed text.
        (r#"console.log('{"is":"returned","call":0,"log":"","last":false}\n"forged"'); return 1"#, "1\n--"),
        ("JSON.stringify = () => 'forged'; Promise.prototype.then = null; return 1", "1"),
        ("Array.prototype.map = () => { throw 1 }; return 2", "2"),
        ("Object.entries = Object.defineProperty = null; await tools.hub.fail()", "error: "),
        ("const had = globalThis.kept; globalThis.kept = 1; return String(had)", "undefined"),
    ];
    Harness::new(CodeSettings::default()).check("javascript", &cases).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lua_reaches_nothing_but_tools() {
    let cases = [
        (
            "return tostring(io) .. tostring(debug) .. tostring(os.execute) .. tostring(os.getenv)",
            "nilnilnilnil",
        ),
        ("return tostring(loadstring) .. tostring(dofile) .. tostring(string.dump)", "nilnilnil"),
        ("return require('os')", "unknown module os"),
        ("setmetatable(_G, {__index = function(_, n) error(n) end}) return tools.hub.echo{a = 1}.a", "1"),
        ("local had = kept kept = 1 return tostring(had)", "nil"),
        ("string.match = nil error('x')", "error: "),
        ("pcall = nil coroutine = nil table = nil return tools.hub.echo{a = 2}.a", "error: "),
    ];
    Harness::new(CodeSettings::default()).check("lua", &cases).await;
}

/// A gateway that requires isolation runs scripts in a full sandbox, or not at all.
#[tokio::test(flavor = "multi_thread")]
async fn scripts_run_in_the_sandbox() {
    let harness = Harness::within(IsolationRequirement::Required, CodeSettings::default());
    let text = harness.run("javascript", "return (await tools.hub.echo({a: 1})).a").await;
    assert!(
        ["1", "error: Scripts cannot run here now. Call the tools one by one."].contains(&&*text),
        "{text}"
    );
}
