//! Scripts over tools of servers on the Python SDK: their results, rights, audit trail, and what they save.

mod five_tasks;

use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::http::send_with_key;
use toolyard_testing::manifest::stdio_handler;
use toolyard_testing::messages::stateless_request;
use toolyard_testing::peers;
use toolyard_testing::process::run;
use toolyard_testing::scripted_server::script;
use toolyard_testing::wait::eventually;

use crate::support::gateway::{TestGateway, toolyard};

/// Returns the handlers of a shop and of its customers.
fn shop() -> [Value; 2] {
    let python = peers::peer("python/bin/python");
    ["shop", "customers"].map(|part| {
        let file = script("shop_server.py");
        stdio_handler(part, python.to_str().unwrap(), &[file.to_str().unwrap(), part])
    })
}

/// Starts a gateway with the shop and scripts.
fn gateway(handlers: &[Value], code: &Value) -> TestGateway {
    let off = json!({"enabled": false});
    let builtins = json!({
        "scripts": off, "skills": off, "mcp": off,
        "search": {"disclosure": "code"},
        "code": code,
    });
    let process = json!({"builtins": builtins, "sandbox": {"isolation": "best-effort"}});
    TestGateway::with_settings(handlers, process)
}

/// Runs a script, and returns the texts that a model reads.
#[track_caller]
fn run_script(gateway: &TestGateway, language: &str, code: &str) -> String {
    let result = gateway.call("run_tool_script", json!({"language": language, "code": code})).result();
    shown(&result)
}

fn shown(result: &Value) -> String {
    let texts = result["content"].as_array().unwrap_or_else(|| panic!("{result}"));
    let texts: Vec<_> = texts.iter().filter_map(|block| block["text"].as_str()).collect();
    let mark = if result["isError"] == true { "error: " } else { "" };
    format!("{mark}{}", texts.join("\n--\n"))
}

#[test]
fn scripts_call_servers_from_pypi() {
    let gateway = gateway(&shop(), &json!({}));
    assert_eq!(gateway.tools(), ["search_tools", "describe_tools", "run_tool_script"]);
    let (headers, discover) = stateless_request("server/discover", json!({}));
    let instructions = gateway.post(&headers, &discover).result()["instructions"].to_string();
    assert!(
        instructions.contains("run_tool_script") && !instructions.contains("call_tool"),
        "{instructions}"
    );
    let javascript = [
        ("return (await tools.shop.list_products()).length", "1000"),
        ("return (await tools.shop.list_orders({page: 5})).rows.length", "40"),
        ("return (await tools.customers.get_customer({id: 3})).name", "Customer 3"),
        (
            "try { await tools.customers.get_customer({id: 99}) } catch (e) { return [e.code, e.reason.includes('get_customer')] }",
            r#"["tool_error",true]"#,
        ),
        (
            "try { await tools.customers.get_customer({id: 'x'}) } catch (e) { return e.code }",
            "invalid_arguments",
        ),
        (
            "const all = await Promise.all([...Array(12).keys()].map(id => tools.customers.get_customer({id}))); \
             return all.map(one => one.id)",
            "[0,1,2,3,4,5,6,7,8,9,10,11]",
        ),
        ("try { progress('50%') } catch (e) { return e.message }", "progress: expected a number"),
        (
            "try { tools.shop.list_orders({page: 1}, 2) } catch (e) { return e.message }",
            "shop.list_orders: expected one object with the arguments, found 2 values",
        ),
        (
            "\nawait tools.customers.get_customer({id: 99})",
            "error: The script failed in line 2: ToolError: get_customer: ",
        ),
        (
            "return await tools.shop.list_prodcts()",
            "Unknown tool: shop.list_prodcts. Did you mean `shop.list_products`",
        ),
        (
            "return await call_tool('call_tool', {name: 'run_tool_script', arguments: {language: 'lua', code: 'return 1'}})",
            "no tool `run_tool_script`",
        ),
    ];
    for (code, expected) in javascript {
        let text = run_script(&gateway, "javascript", code);
        assert!(text.contains(expected), "{code}\n{text}");
    }
    let lua = "local ids = {} for _, f in ipairs(parallel{function() return tools.customers.get_customer{id = 1} end, \
               function() return tools.customers.get_customer{id = 2} end}) do ids[#ids + 1] = f.id end return ids";
    assert_eq!(run_script(&gateway, "lua", lua), "[1,2]");
    let names = json!({"names": ["shop.list_orders", "list_products", "get_custmer"]});
    insta::assert_snapshot!(gateway.text("describe_tools", names), @"
    /** Lists orders, 50 on a page. */
    tools.shop.list_orders(args?: {
      /** Default: 1 */
      page?: number;
    }): Promise<{
      rows: { id: number; customer: number; day: number; total: number; note: string }[];
      more: boolean;
    }>

    /** Lists all products as JSON. */
    tools.shop.list_products(args?: { [key: string]: unknown }): Promise<{ description: string; id: number; name: string; price: number }[]>  // observed in earlier results, not declared: members may be missing

    // There is no tool `get_custmer`. Did you mean `customers.get_customer`?
    ");
    let guide = gateway.text("get_tool_guide", json!({"name": "code-mode"}));
    assert!(guide.starts_with("# Code mode"), "{guide}");
    // The value of a script is cut like any result.
    let result = gateway.call(
        "run_tool_script",
        json!({"language": "javascript", "code": "return await tools.shop.list_products()"}),
    );
    let text = shown(&result.result());
    assert!(text.starts_with("Tool result for 'run_tool_script' is large"), "{text:.300}");
}

#[test]
fn calls_of_scripts_are_audited_and_limited_to_the_scopes_of_the_key() {
    let gateway = gateway(&shop(), &json!({}));
    let admin = gateway.new_key("", json!({"name": "admin", "scopes": ["admin", "rest"]}));
    let scopes = ["rest", "tools:builtins/*", "tools:get_customer"];
    let key = gateway.new_key(&admin, json!({"name": "agent", "scopes": scopes}));
    let code = "let denied; try { await tools.shop.list_products() } catch (e) { denied = e.code } \
                return [denied, (await tools.customers.get_customer({id: 1})).id]";
    let body = json!({"arguments": {"language": "javascript", "code": code}}).to_string();
    let response = send_with_key(gateway.address, &key, "POST /api/v1/tools/run_tool_script/call", &body);
    assert_eq!(response.status, 200, "{}", response.body);
    assert!(response.body.contains(r#"[\"tool_not_found\",1]"#), "{}", response.body);
    let records = eventually("the records", || {
        let page = send_with_key(gateway.address, &admin, "GET /api/v1/audit?limit=100", "").body;
        let page: Value = serde_json::from_str(&page).unwrap();
        let calls: Vec<_> =
            page["records"].as_array()?.iter().filter(|record| record["action"] == "call").cloned().collect();
        (calls.len() == 3).then_some(calls)
    });
    let find = |name: &str| records.iter().find(|record| record["name"] == name).unwrap();
    let (outer, inner) = (find("run_tool_script"), find("get_customer"));
    assert!(outer["parent"].is_null() && inner["parent"].as_str().unwrap().starts_with("script-"), "{inner}");
    assert_eq!((&inner["principal"], &inner["keyName"]), (&outer["principal"], &outer["keyName"]));
    assert_eq!(inner["outcome"], "ok");
    let refused = find("shop.list_products");
    assert_eq!((&refused["outcome"], &refused["parent"]), (&json!("tool_not_found"), &inner["parent"]));
}

#[test]
fn limits_of_scripts_come_from_the_manifest() {
    let gateway =
        gateway(&shop(), &json!({"calls": 2, "timeout": "5s", "logBytes": "1KiB", "memory": "64MiB"}));
    let cases = [
        (
            "for (let id = 0; ; id++) await tools.customers.get_customer({id})",
            "has made 2 calls, its maximum",
        ),
        ("for (;;) {}", "The script took longer than 5000 ms"),
        ("const all = []; for (;;) all.push('x'.repeat(1e5) + all.length)", "exceeded its memory limit"),
        ("for (let n = 0; n < 1e4; n++) console.log('flood', n)", "bytes left out"),
        ("return typeof require + typeof fetch + typeof process", "undefinedundefinedundefined"),
    ];
    for (code, expected) in cases {
        let text = run_script(&gateway, "javascript", code);
        assert!(text.contains(expected) && text.len() < 2_000, "{code}\n{text}");
    }
}

/// Two servers as their users have them: one from npm, and one from PyPI.
#[test]
fn example_joins_servers_from_npm_and_pypi() {
    let home = TempDir::new().unwrap();
    let everything = peers::everything(home.path());
    let handlers = [
        toolyard_testing::manifest::http_handler("everything", &everything.url),
        stdio_handler("time", "mcp-server-time", &["--local-timezone", "UTC"]),
    ];
    let example = std::fs::read_to_string(peers::root().join("examples/code-mode.yaml")).unwrap();
    let (_, process) = example.split_once("---\n").unwrap();
    let own = TempDir::new().unwrap();
    let mut serve = toolyard(own.path());
    let process = format!(
        "{process}  sandbox: {{isolation: best-effort}}\n  timeouts: {{firstList: 30s, eraProbe: 30s}}\n"
    );
    std::fs::write(own.path().join("process.yaml"), process).unwrap();
    serve.args(["serve", "-f"]).arg(toolyard_testing::manifest::registry_document(own.path(), &handlers));
    serve.arg("-f").arg(own.path().join("process.yaml"));
    let gateway = TestGateway::start(own, &mut serve);
    assert_eq!(gateway.tools(), ["search_tools", "describe_tools", "run_tool_script"]);
    let code = "const [sum, time] = await Promise.all([\
                  tools.everything.get_sum({a: 2, b: 3}),\
                  tools.time.convert_time({source_timezone: 'UTC', time: '12:00', target_timezone: 'Asia/Tokyo'})]);\
                return {sum, difference: time.time_difference}";
    let text = run_script(&gateway, "javascript", code);
    assert!(text.contains("2") && text.contains("\"difference\":\"+9.0h\""), "{text}");
    let mut doctor = toolyard(gateway.folder.path());
    let listed = run(doctor.args(["doctor", "--tokens", "--url", &gateway.url()]));
    assert!(listed.stdout.contains("* code"), "{listed}");
}
