//! The languages of scripts: names of tools, results, errors, parallel calls.

use serde_json::json;
use toolyard_code::tools::{DESCRIBE, RUN};
use toolyard_manifest::CodeSettings;

use crate::harness::Harness;

#[tokio::test(flavor = "multi_thread")]
async fn javascript_calls_tools() {
    let cases = [
        ("return 1 + 1", "2"),
        ("return 'a text'", "a text"),
        ("return {a: [1, null]}", r#"{"a":[1,null]}"#),
        ("return null", "null"),
        ("1 + 1", "The script returned nothing. End it with `return`"),
        ("return (await tools.hub.echo({a: {b: 1}})).a.b", "1"),
        ("return (await tools['echo']({a: 2})).a", "2"),
        ("return (await tools.echo({a: 3})).a", "3"),
        ("return (await call_tool('echo', {a: 4})).a", "4"),
        ("return await call_tool('hub.echo')", "{}"),
        ("const all = await tools.hub.items(); return all.filter(item => item.price > 5).length", "142"),
        ("const { hub } = tools; return (await hub.items({count: 2})).length", "2"),
        ("console.log('seen', {a: 1}); return 1", "1\n--\nPrinted:\nseen {\"a\":1}"),
        // Comments and lines at the end.
        ("return 5 // five", "5"),
        ("return typeof fetch + typeof process + typeof cortexone_handler", "undefinedundefinedundefined"),
        ("let n = 0; for (const x of await tools.hub.items({count: 3})) n += x.id; return n", "3"),
    ];
    Harness::new(CodeSettings::default()).check("javascript", &cases).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lua_calls_tools() {
    let cases = [
        ("return 1 + 1", "2"),
        ("return 'a text'", "a text"),
        ("return {a = {1, json.null}}", r#"{"a":[1,null]}"#),
        ("local x = 1", "The script returned nothing. End it with `return`"),
        ("return tools.hub.echo({a = {b = 1}}).a.b", "1"),
        ("return tools['echo']({a = 2}).a", "2"),
        ("return tools.echo{a = 3}.a", "3"),
        ("return call_tool('echo', {a = 4}).a", "4"),
        ("return call_tool('hub.echo')", "{}"),
        (
            "local n = 0 for _, item in ipairs(tools.hub.items()) do if item.price > 5 then n = n + 1 end end return n",
            "142",
        ),
        ("print('seen', 1) return 1", "1\n--\nPrinted:\nseen\t1"),
        ("return 5 -- five", "5"),
        ("return tostring(fetch) .. tostring(process) .. tostring(load)", "nilnilnil"),
        ("return tostring(tools.hub.echo)", "tools.hub.echo"),
    ];
    Harness::new(CodeSettings::default()).check("lua", &cases).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_are_exceptions() {
    let javascript = [
        (
            "try { await tools.hub.fail() } catch (e) { return [e instanceof ToolError, e.code, e.reason, e.message] }",
            r#"[true,"tool_error","the disk is full","fail: the disk is full"]"#,
        ),
        (
            "// one\nawait tools.hub.fail()",
            "error: The script failed in line 2: ToolError: fail: the disk is full\nCalls that had ended by then: fail 1 (1 failed).",
        ),
        (
            "try { await tools.hub.ecoh() } catch (e) { return e.message }",
            "Unknown tool: hub.ecoh. Did you mean `hub.echo`",
        ),
        ("return await tools.hub.echo([1])", "line 1: TypeError: hub.echo: the arguments must be one object"),
        ("return await tools.hub.echo('a')", "TypeError: hub.echo: the arguments must be one object"),
        ("\n\nconst x = null;\nreturn x.y", "in line 4: TypeError: "),
        ("return 1 +;", "in line 1: SyntaxError: "),
        ("\n\nthrow new RangeError('far')", "in line 3: RangeError: far"),
        ("throw 'a text'", "The script failed: a text"),
        ("console.log('before'); null.x", "error: The script failed in line 1: TypeError: "),
        ("console.log('before'); null.x", "--\nPrinted:\nbefore"),
        ("await new Promise(() => {})", "it waits for a promise that nothing settles"),
        (
            "tools.hub.fail(); return 1",
            "1\n--\nPrinted:\na call that the script did not wait for failed: fail: the disk is full",
        ),
        ("for (;;) { try { return await tools.hub.flaky() } catch (e) { await sleep(1) } }", "done after 2"),
        ("return 10n", "TypeError: "),
    ];
    let lua = [
        (
            "local ok, e = pcall(tools.hub.fail) return {ok, e.code, e.reason, e.message, tostring(e)}",
            r#"[false,"tool_error","the disk is full","fail: the disk is full","script:1: ToolError: fail: the disk is full"]"#,
        ),
        (
            "-- one\ntools.hub.fail()",
            "error: The script failed in line 2: ToolError: fail: the disk is full\nCalls that had ended by then: fail 1 (1 failed).",
        ),
        (
            "local ok, e = pcall(function() tools.hub.ecoh() end) return e.message",
            "Unknown tool: hub.ecoh. Did you mean `hub.echo`",
        ),
        ("\nlocal x = tools.hub.echo('a')", "in line 2: hub.echo: the arguments must be one table"),
        ("return tools.hub.echo('a')", "failed: hub.echo: the arguments must be one table"),
        ("\n\nlocal x\nreturn x.y", "in line 4: attempt to index a nil value"),
        ("return 1 +", "in line 1: "),
        ("\nerror('far')", "in line 2: far"),
        ("\nerror({a = 1})", "in line 2: {\"a\":1}"),
        ("print('before') error('x')", "--\nPrinted:\nbefore"),
        (
            "while true do local ok, v = pcall(tools.hub.flaky) if ok then return v end sleep(1) end",
            "done after 2",
        ),
        ("tools.x = 1", "tools cannot be changed"),
    ];
    let harness = Harness::new(CodeSettings::default());
    harness.check("javascript", &javascript).await;
    harness.with(CodeSettings::default()).check("lua", &lua).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_run_in_parallel() {
    use std::sync::atomic::Ordering;
    let scripts = [
        (
            "javascript",
            "const all = await Promise.all([...Array(12).keys()].map(n => tools.hub.busy({n}))); return all",
        ),
        (
            "lua",
            "local f = {} for n = 0, 11 do f[#f + 1] = function() return tools.hub.busy{n = n} end end return parallel(f)",
        ),
    ];
    let settings = CodeSettings { concurrent_calls: 5, ..CodeSettings::default() };
    let first = Harness::new(settings.clone());
    for (language, code) in scripts {
        let harness = first.with(settings.clone());
        assert_eq!(harness.run(language, code).await, "[0,1,2,3,4,5,6,7,8,9,10,11]", "{language}");
        assert_eq!(harness.running.most.load(Ordering::SeqCst), 5, "{language}");
    }
    let cases = [
        ("return parallel{}", "[]"),
        ("return parallel{function() end, function() return {} end}", "[null,{}]"),
        (
            "return parallel{function() return parallel{function() return tools.hub.echo{a = 1}.a end}[1] end}",
            "[1]",
        ),
        (
            "parallel{function() tools.hub.busy{n = 1} end, function() tools.hub.fail() end}",
            "in line 1: ToolError: fail: the disk is full",
        ),
        ("local co = coroutine.wrap(function() return tools.hub.echo{a = 7}.a end) return co()", "7"),
    ];
    first.check("lua", &cases).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn results_of_scripts_are_described_as_observed() {
    let harness = Harness::new(CodeSettings::default());
    let describe = async || harness.call(&["*"], DESCRIBE, json!({"names": ["items", "hub.itms"]})).await;
    assert!(describe().await.contains("Promise<unknown>  // not declared"));
    harness.run("lua", "return #tools.hub.items()").await;
    let text = describe().await;
    assert!(text.contains("Promise<{ id: number; price: number }[]>  // observed"), "{text}");
    assert!(
        text.ends_with("// There is no tool `hub.itms`. Did you mean `hub.items`, `hub.fail` or `hub.busy`?"),
        "{text}"
    );
    assert!(harness.call(&["*"], DESCRIBE, json!({"names": []})).await.starts_with("error: names: is empty"));
    let arguments = [
        (json!({"language": "python", "code": "1"}), "refused: Invalid arguments"),
        (json!({"language": "lua", "code": " "}), "error: code: is empty"),
        (
            json!({"language": "lua", "code": "return 1", "timeout": 0}),
            "error: timeout: is 0.0; expected seconds",
        ),
        (json!({"language": "lua", "code": "return 1", "timeout": 1e9}), "at most 300"),
        (json!({"language": "lua", "code": "x".repeat(100_000)}), "error: code: has 100000 bytes"),
    ];
    for (arguments, expected) in arguments {
        let text = harness.call(&["*"], RUN, arguments).await;
        assert!(text.contains(expected), "{text}");
    }
}
