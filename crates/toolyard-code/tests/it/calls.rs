//! The limits of scripts, and the rights of their calls.

use serde_json::json;
use toolyard_code::tools::RUN;
use toolyard_manifest::CodeSettings;

use crate::harness::Harness;

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_those_of_the_caller() {
    let harness = Harness::new(CodeSettings::default());
    let run = async |code: &str| {
        let arguments = json!({"language": "javascript", "code": code});
        harness.call(&["builtins/*", "echo", "items"], RUN, arguments).await
    };
    assert_eq!(run("return (await tools.hub.echo({a: 1})).a").await, "1");
    for name in ["tools.hub.hidden()", "tools.hidden()", "call_tool('hidden')", "tools['hub.hidden']({})"] {
        let text = run(&format!("try {{ return await {name} }} catch (e) {{ return e.code }}")).await;
        assert_eq!(text, "tool_not_found", "{name}");
    }
    let script = "try { await tools.builtins.run_tool_script({language: 'lua', code: 'return 1'}) } \
                  catch (e) { return e.code }";
    assert_eq!(run(script).await, "tool_not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_of_calls_are_exceptions() {
    let settings = CodeSettings { calls: 3, result_bytes: 2000, ..CodeSettings::default() };
    let cases = [
        (
            "let n = 0; try { for (;;) { await tools.hub.echo({}); n++ } } catch (e) { return [n, e.code, e.message] }",
            r#"[3,"limit_reached","hub.echo: the script has made 3 calls, its maximum (limit_reached)"]"#,
        ),
        (
            "return await tools.hub.items()",
            "the results of the script exceed 2000 bytes, its maximum (limit_reached)",
        ),
        (
            "return (await Promise.allSettled([1, 2, 3, 4].map(() => tools.hub.echo()))).map(r => r.status[0]).join('')",
            "fffr",
        ),
    ];
    Harness::new(settings).check("javascript", &cases).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_end_in_time() {
    let harness = Harness::new(CodeSettings { calls: 1_000_000, ..CodeSettings::default() });
    let cases = [
        ("javascript", "console.log('begun'); await tools.hub.endless()"),
        ("javascript", "console.log('begun'); for (;;) { await tools.hub.echo() }"),
        ("javascript", "console.log('begun'); for (;;) {}"),
        ("javascript", "console.log('begun'); for (;;) await null"),
        ("javascript", "console.log('begun'); await sleep(1e9)"),
        ("lua", "print('begun') tools.hub.endless()"),
        ("lua", "print('begun') while true do pcall(tools.hub.echo) end"),
        ("lua", "print('begun') while true do end"),
        ("lua", "print('begun') parallel{function() tools.hub.endless() end}"),
    ];
    for (language, code) in cases {
        let text = harness.call(&["*"], RUN, json!({"language": language, "code": code, "timeout": 1})).await;
        assert!(
            text.starts_with("error: The script took longer than 1000 ms and was stopped."),
            "{code}: {text}"
        );
        let is_killed = code.contains("sleep");
        assert_eq!(text.ends_with("Printed:\nbegun"), !is_killed, "{code}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sizes_are_limited() {
    let settings = CodeSettings {
        output_bytes: 1024,
        log_bytes: 1024,
        memory_bytes: 64 << 20,
        ..CodeSettings::default()
    };
    let harness = Harness::new(settings);
    let javascript = [
        ("return 'x'.repeat(1022)", "xxx"),
        ("return 'x'.repeat(2000)", "error: The script returned more than"),
        (
            "const all = []; for (;;) all.push('x'.repeat(100000) + all.length)",
            "error: The script exceeded its memory limit",
        ),
    ];
    harness.check("javascript", &javascript).await;
    let long = ("await tools.hub.echo({a: 'x'.repeat(20e6)})", "the request is too long");
    harness.with(CodeSettings::default()).check("javascript", &[long]).await;
    let flood =
        harness.run("javascript", "for (let i = 0; i < 1e5; i++) console.log('line', i); return 1").await;
    assert!(
        flood.len() < 1200
            && flood.starts_with("1\n--\nPrinted:\nline 0\n")
            && flood.contains("bytes left out"),
        "{flood}"
    );
    let lua = [
        (
            "local all = {} while true do all[#all + 1] = ('x'):rep(100000) .. #all end",
            "error: The script exceeded its memory limit",
        ),
        ("return ('x'):rep(2000)", "error: The script returned more than"),
    ];
    harness.check("lua", &lua).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_scripts_are_limited() {
    let settings = CodeSettings { concurrent: 1, queued: 1, ..CodeSettings::default() };
    let harness = Harness::new(settings);
    let slow = "await tools.hub.busy({n: 1}); return 1";
    let (one, two, three) = tokio::join!(
        harness.run("javascript", slow),
        harness.run("javascript", slow),
        harness.run("javascript", slow)
    );
    let mut all = [one, two, three];
    all.sort();
    assert_eq!(all, ["1", "1", "error: Too many scripts are running. Try again later."]);
}
