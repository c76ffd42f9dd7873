//! Five tasks of a model, by calls one by one and by a script: the tokens that it reads and writes.

mod real_servers;

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use toolyard_core::tokens::estimate;

use self::real_servers::{ProjectFiles, Site};
use super::{gateway, shop, shown};
use crate::corpus::recorded_servers;
use crate::support::gateway::TestGateway;

/// Number of recorded servers beside the shop.
const RECORDED: usize = 60;

/// Stands for the key of the last large result.
const INDEX: &str = "INDEX";

/// Stands for the key of the first part of the last large result.
const FIRST_CHUNK: &str = "FIRST_CHUNK";

/// A task.
struct Task {
    name: &'static str,
    /// The calls that a model makes one by one.
    calls: Vec<(&'static str, Value)>,
    /// The tools that it describes before it writes the script.
    described: &'static [&'static str],
    script: String,
    /// A part of the result of the script.
    expected: &'static str,
}

/// Tokens that a model writes and reads, and the number of its calls.
#[derive(Default)]
struct Usage {
    written: usize,
    read: usize,
    calls: usize,
    /// Key of the last large result.
    index: String,
}

impl Usage {
    /// Calls a tool as a model does, and returns what it reads.
    #[track_caller]
    fn call(&mut self, gateway: &TestGateway, tool: &str, arguments: &Value) -> String {
        let chunk = self.index.replace("-index", "-chunk-0");
        let arguments = arguments.to_string().replace(INDEX, &self.index).replace(FIRST_CHUNK, &chunk);
        let text = shown(&gateway.call(tool, serde_json::from_str(&arguments).unwrap()).result());
        if let Some(key) = text.split('`').find(|part| part.ends_with("-index")) {
            key.clone_into(&mut self.index);
        }
        self.written += estimate(tool.len() + arguments.len());
        self.read += estimate(text.len());
        self.calls += 1;
        text
    }

    const fn total(&self) -> usize {
        self.written + self.read
    }
}

/// Returns tasks on the servers of a shop.
fn shop_tasks() -> Vec<Task> {
    let pages = || (1..=5).map(|page| ("list_orders", json!({"page": page})));
    let customers = (0..12).map(|id| ("get_customer", json!({"id": id})));
    vec![
        Task {
            name: "filter 1,000 items",
            // The list is too large for a window, and is read with a query.
            calls: vec![
                ("list_products", json!({})),
                ("query_working_memory", json!({"key": INDEX, "expression": "[?price > `990`].id"})),
            ],
            described: &["shop.list_products"],
            script: "const all = await tools.shop.list_products({});\n\
                     return all.filter((one) => one.price > 990).map((one) => one.id)".to_owned(),
            expected: "[153,230,383,460,690,920]",
        },
        Task {
            name: "join two services",
            calls: pages().chain(customers).collect(),
            described: &["shop.list_orders", "customers.get_customer"],
            script: "const { rows } = await tools.shop.list_orders({ page: 1 });\n\
                     const ids = [...new Set(rows.map((row) => row.customer))];\n\
                     const all = await Promise.all(ids.map((id) => tools.customers.get_customer({ id })));\n\
                     const countries = {};\n\
                     for (const row of rows) {\n\
                       const { country } = all.find((one) => one.id === row.customer);\n\
                       countries[country] = (countries[country] ?? 0) + row.total;\n\
                     }\n\
                     return countries".to_owned(),
            expected: "Norway",
        },
        Task {
            name: "retry on failure",
            calls: vec![("export_report", json!({"month": "2026-10"})); 3],
            described: &["shop.export_report"],
            script: "for (let attempt = 1; ; attempt++) {\n\
                       try { return await tools.shop.export_report({ month: '2026-10' }) }\n\
                       catch (error) { if (attempt === 5) throw error; await sleep(10) }\n\
                     }".to_owned(),
            expected: "report-2026-10.pdf",
        },
        Task {
            name: "paginate",
            calls: pages().collect(),
            described: &["shop.list_orders"],
            script: "let count = 0;\n\
                     for (let page = 1; ; page++) {\n\
                       const { rows, more } = await tools.shop.list_orders({ page });\n\
                       count += rows.filter((row) => row.total > 450).length;\n\
                       if (!more) return count;\n\
                     }".to_owned(),
            expected: "",
        },
        Task {
            name: "aggregate",
            calls: (1..=30).map(|day| ("daily_total", json!({"day": day}))).collect(),
            described: &["shop.daily_total"],
            script: "const days = await Promise.all([...Array(30).keys()].map((n) => tools.shop.daily_total({ day: n + 1 })));\n\
                     return days.reduce((sum, day) => sum + day.total, 0)".to_owned(),
            expected: "",
        },
    ]
}

/// Usages of tasks, in a table.
struct Comparison {
    table: String,
    /// Tokens of all tasks, by calls one by one.
    plain: usize,
    /// Tokens of all tasks, by scripts.
    scripts: usize,
}

/// Runs tasks by calls one by one and by scripts. `before` is called before each of both.
#[track_caller]
fn compare(gateway: &TestGateway, tasks: &[Task], before: impl Fn(&Task)) -> Comparison {
    let mut compared = Comparison {
        table: format!(
            "{:<20} {:>27}   {:>27}\n{:<20} {:>5} {:>10} {:>10}   {:>5} {:>10} {:>10}\n",
            "",
            "one by one",
            "by a script",
            "task",
            "calls",
            "tokens out",
            "tokens in",
            "calls",
            "tokens out",
            "tokens in"
        ),
        plain: 0,
        scripts: 0,
    };
    for task in tasks {
        let (mut plain, mut script) = (Usage::default(), Usage::default());
        before(task);
        for (tool, arguments) in &task.calls {
            let text = plain.call(gateway, tool, arguments);
            assert!(task.name.contains("retry") || !text.starts_with("error"), "{tool}: {text}");
        }
        before(task);
        script.call(gateway, "describe_tools", &json!({"names": task.described}));
        let arguments = json!({"language": "javascript", "code": task.script});
        let result = script.call(gateway, "run_tool_script", &arguments);
        assert!(!result.starts_with("error") && result.contains(task.expected), "{}: {result}", task.name);
        let _ = writeln!(
            compared.table,
            "{:<20} {:>5} {:>10} {:>10}   {:>5} {:>10} {:>10}",
            task.name, plain.calls, plain.written, plain.read, script.calls, script.written, script.read
        );
        // A retry saves turns more than tokens.
        assert!(script.calls <= plain.calls.max(2), "{}", compared.table);
        compared.plain += plain.total();
        compared.scripts += script.total();
    }
    let _ = writeln!(
        compared.table,
        "total tokens: {} one by one, {} by scripts",
        compared.plain, compared.scripts
    );
    compared
}

#[test]
fn five_tasks_with_and_without_scripts() {
    let recorded = recorded_servers(RECORDED);
    let mut handlers = shop().to_vec();
    handlers.extend(recorded.iter().flat_map(|servers| (0..RECORDED).map(|number| servers.handler(number))));
    let gateway = gateway(&handlers, &json!({}));
    let tokens: Value = serde_json::from_str(&gateway.get("/api/v1/tokens").body).unwrap();
    let listed = |name: &str| {
        let lists = tokens["lists"].as_array().unwrap();
        lists.iter().find(|list| list["disclosure"] == name).unwrap()["tokens"].as_u64().unwrap()
    };
    let compared = compare(&gateway, &shop_tasks(), |_| {});
    let table = format!(
        "list of tools of {} servers, in tokens: all {}, search {}, code {}\n{}",
        handlers.len(),
        listed("all"),
        listed("search"),
        listed("code"),
        compared.table
    );
    println!("{table}");
    assert!(compared.scripts * 5 < compared.plain, "{table}");
}

#[test]
fn five_tasks_on_servers_from_npm_and_pypi() {
    let files = ProjectFiles::create();
    let failures = Arc::new(AtomicUsize::new(0));
    let site = Site::start(failures.clone());
    let gateway = gateway(&files.handlers(), &json!({}));
    // A report fails twice.
    let before =
        |task: &Task| failures.store(if task.name.contains("retry") { 2 } else { 0 }, Ordering::SeqCst);
    let compared = compare(&gateway, &files.tasks(&site), before);
    println!("{}", compared.table);
    assert!(compared.scripts * 3 < compared.plain, "{}", compared.table);
}
