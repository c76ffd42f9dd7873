//! The five tasks on servers of others: files from npm, and Git and web pages from PyPI.

use std::fmt::Write as _;
use std::fs::File;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::manifest::stdio_handler;
use toolyard_testing::peers;
use toolyard_testing::process::run_with;
use toolyard_testing::upstream::{BackgroundUpstream, ReceivedRequest, ScriptedReply};

use super::{FIRST_CHUNK, Task};

/// Number of log files.
const LOGS: usize = 1_000;

/// Number of commits, each by another author than the one before.
const COMMITS: usize = 40;

const AUTHORS: [&str; 5] = ["Ada", "Ben", "Cleo", "Dan", "Eva"];

/// Name of the file with the commits for Git.
const HISTORY: &str = "history.txt";

/// Number of days with sales.
const DAYS: usize = 30;

/// Characters of the page of the site, and of one part of it.
const PAGE: usize = 20_000;
const PART: usize = 5_000;

/// A Git repository with logs and other files.
pub(super) struct ProjectFiles(TempDir);

impl ProjectFiles {
    pub(super) fn create() -> Self {
        let folder = TempDir::new().unwrap();
        let write = |name: &str, content: String| std::fs::write(folder.path().join(name), content).unwrap();
        for part in ["logs", "sales"] {
            std::fs::create_dir(folder.path().join(part)).unwrap();
        }
        for number in 0..LOGS {
            let length = if number % 250 == 7 { 5_000 + number } else { number % 90 };
            write(&format!("logs/{number:04}.log"), "x".repeat(length));
        }
        for day in 1..=DAYS {
            let sales: Vec<_> = (0..20).map(|sale| json!({"item": sale, "sum": day * 10 + sale})).collect();
            write(&format!("sales/{day:02}.json"), json!({"day": day, "sales": sales}).to_string());
        }
        let team = AUTHORS.iter().enumerate().map(|(at, name)| {
            let about = "Works on the parts that her or his team has chosen for this year. ".repeat(4);
            let country = ["Norway", "Peru"][at % 2];
            json!({"name": name, "country": country, "about": about})
        });
        write("team.json", Value::from_iter(team).to_string());
        let mut history = String::new();
        for number in 0..COMMITS {
            let author = AUTHORS[number % AUTHORS.len()];
            let message = format!("Change {number}: {}", "mend what was found in the review; ".repeat(4));
            let time = 1_700_000_000 + number * 3_600;
            let _ = write!(
                history,
                "commit refs/heads/main\nauthor {author} <{author}@example.com> {time} +0000\n\
                 committer {author} <{author}@example.com> {time} +0000\ndata {}\n{message}\n",
                message.len()
            );
        }
        write(HISTORY, history);
        let history = File::open(folder.path().join(HISTORY)).unwrap();
        for (args, input) in [
            (&["init", "--quiet", "--initial-branch=main"][..], Stdio::null()),
            (&["fast-import", "--quiet"], history.into()),
        ] {
            let mut git = peers::command("git", folder.path());
            let ended = run_with(git.args(args).current_dir(folder.path()), input);
            assert_eq!(ended.code, 0, "{ended}");
        }
        Self(folder)
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    pub(super) fn handlers(&self) -> [Value; 3] {
        let python = |name: &str| peers::peer(&format!("python/bin/{name}")).to_str().unwrap().to_owned();
        let files = peers::peer("node_modules/.bin/mcp-server-filesystem");
        let open = ["--ignore-robots-txt", "--allow-private-ips"];
        [
            stdio_handler("files", files.to_str().unwrap(), &[&self.path("")]),
            stdio_handler("git", &python("mcp-server-git"), &[]),
            stdio_handler("web", &python("mcp-server-fetch"), &open),
        ]
    }

    pub(super) fn tasks(&self, site: &Site) -> Vec<Task> {
        let (repository, logs, team) = (self.path(""), self.path("logs"), self.path("team.json"));
        let (report, page) = (site.0.url("/report"), site.0.url("/page"));
        let days: Vec<_> = (1..=DAYS).map(|day| self.path(&format!("sales/{day:02}.json"))).collect();
        let parts = (0..PAGE / PART)
            .map(|part| ("fetch", json!({"url": page, "start_index": part * PART, "max_length": PART})));
        vec![
            Task {
                name: "filter 1,000 items",
                // The largest files are in the first part of the list.
                calls: vec![
                    ("list_directory_with_sizes", json!({"path": logs, "sortBy": "size"})),
                    ("get_from_working_memory", json!({"key": FIRST_CHUNK})),
                ],
                described: &["files.list_directory_with_sizes"],
                script: format!(
                    "const {{ content }} = await tools.files.list_directory_with_sizes({{ path: '{logs}' }});\n\
                     return content.split('\\n').filter((line) => /^.FILE. .* KB$/.test(line)).map((line) => line.split(/ +/)[1])"
                ),
                expected: r#"["0007.log","0257.log","0507.log","0757.log"]"#,
            },
            Task {
                name: "join two services",
                calls: vec![
                    ("git_log", json!({"repo_path": repository, "max_count": COMMITS})),
                    ("read_text_file", json!({"path": team})),
                ],
                described: &["git.git_log", "files.read_text_file"],
                script: format!(
                    "const log = await tools.git.git_log({{ repo_path: '{repository}', max_count: {COMMITS} }});\n\
                     const team = JSON.parse((await tools.files.read_text_file({{ path: '{team}' }})).content);\n\
                     const commits = {{}};\n\
                     for (const [, author] of String(log).matchAll(/Author: (\\w+)/g)) {{\n\
                       const {{ country }} = team.find((one) => one.name === author);\n\
                       commits[country] = (commits[country] ?? 0) + 1;\n\
                     }}\n\
                     return commits"
                ),
                expected: r#"{"Norway":24,"Peru":16}"#,
            },
            Task {
                name: "retry on failure",
                calls: vec![("fetch", json!({"url": report})); 3],
                described: &["web.fetch"],
                script: format!(
                    "for (let attempt = 1; ; attempt++) {{\n\
                       try {{ return await tools.web.fetch({{ url: '{report}' }}) }}\n\
                       catch (error) {{ if (attempt === 5) throw error; await sleep(10) }}\n\
                     }}"
                ),
                expected: "The report is ready.",
            },
            Task {
                name: "paginate",
                calls: parts.collect(),
                described: &["web.fetch"],
                script: format!(
                    "let count = 0;\n\
                     for (let start = 0; ; start += {PART}) {{\n\
                       const text = await tools.web.fetch({{ url: '{page}', start_index: start, max_length: {PART} }});\n\
                       count += text.split('needle').length - 1;\n\
                       if (!text.includes('<error>Content truncated')) return count;\n\
                     }}"
                ),
                expected: "20",
            },
            Task {
                name: "aggregate",
                calls: days.chunks(5).map(|days| ("read_multiple_files", json!({"paths": days}))).collect(),
                described: &["files.read_text_file"],
                script: format!(
                    "const days = [...Array({DAYS}).keys()].map((day) => `{}/${{String(day + 1).padStart(2, '0')}}.json`);\n\
                     const files = await Promise.all(days.map((path) => tools.files.read_text_file({{ path }})));\n\
                     return files.flatMap((file) => JSON.parse(file.content).sales).reduce((sum, sale) => sum + sale.sum, 0)",
                    self.path("sales")
                ),
                expected: "98700",
            },
        ]
    }
}

/// A site with a long page, and with a report that fails as often as a counter says.
pub(super) struct Site(BackgroundUpstream);

impl Site {
    pub(super) fn start(failures: Arc<AtomicUsize>) -> Self {
        let page: String = (0..PAGE / 1_000).map(|_| format!("needle {:993}", "straw")).collect();
        Self(BackgroundUpstream::start(move |request: &ReceivedRequest| {
            let text = "content-type: text/plain\r\n";
            let fails = |failures: &AtomicUsize| {
                failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
            };
            match request.head.start.contains("/page") {
                true => ScriptedReply::http(200, text, &page),
                false if fails(&failures) => ScriptedReply::http(503, text, "busy"),
                false => ScriptedReply::http(200, text, "The report is ready."),
            }
        }))
    }
}
