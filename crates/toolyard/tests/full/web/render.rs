//! Pages that are empty without their scripts, rendered by Chromium in the sandbox.

use std::path::Path;

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolyard_testing::process::run;
use toolyard_testing::process_tree::kill;
use toolyard_testing::upstream::{BackgroundUpstream, ReceivedRequest, ScriptedReply};
use toolyard_testing::wait::eventually;

use super::without_address;
use crate::agent_tools::{gateway, printer};
use crate::support::gateway::{TestGateway, toolyard};

/// A page whose text is made by a script, with data of its own host.
const APP: &str = r#"<!doctype html><title>Shop</title><div id="app">Loading…</div>
<noscript>You need to enable JavaScript.</noscript><script src="/app.js"></script>"#;

const APP_SCRIPT: &str = include_str!("app.js");

/// A page with this script.
fn scripted(script: &str) -> ScriptedReply {
    let html = "content-type: text/html; charset=utf-8\r\n";
    ScriptedReply::http(
        200,
        html,
        &format!("<!doctype html><title>App</title><body><script>{script}</script>"),
    )
}

/// Writes the result of an attempt to the page.
fn attempt(action: &str) -> ScriptedReply {
    scripted(&format!(
        "const show = (text) => {{ document.body.innerHTML = `<p>${{text}}</p>`; }};\
         Promise.resolve().then(() => {{ {action} }}).then((found) => show(`found ${{found}}`), () => show('refused'));"
    ))
}

/// Starts a site of pages that need scripts. `secret` is the URL of another site.
fn site(secret: String) -> BackgroundUpstream {
    BackgroundUpstream::start(move |request: &ReceivedRequest| {
        let plain =
            |kind: &str, text: &str| ScriptedReply::http(200, &format!("content-type: {kind}\r\n"), text);
        match request.head.start.split(' ').nth(1).unwrap_or_default() {
            "/app" => plain("text/html", APP),
            "/app.js" => plain("text/javascript", APP_SCRIPT),
            "/pumps.json" => plain("application/json", r#"{"pumps": [{"name": "P1", "bar": 2}]}"#),
            "/route" => scripted("document.body.textContent = `Route ${location.hash}`"),
            "/moved" => scripted("location = '/elsewhere'"),
            "/data" => scripted("location = '/pumps.json'"),
            "/elsewhere" => ScriptedReply::http(302, "location: /end\r\n", ""),
            "/end" => plain("text/html", "<title>End</title><p>The end of the way"),
            "/metadata" => scripted("location = 'http://169.254.169.254/latest/'"),
            "/secret" => scripted(&format!("location = '{secret}'")),
            "/robots" => scripted("location = '/private'"),
            "/robots.txt" => ScriptedReply::http(200, "", "User-agent: *\nDisallow: /private"),
            "/file" => scripted("location = 'file:///etc/passwd'; document.body.textContent = 'Still here'"),
            "/form" => scripted(
                "document.body.innerHTML = '<p>Still here</p><form method=post action=/end></form>'; \
                 document.forms[0].submit();",
            ),
            "/fetch" => {
                attempt(&format!("return fetch('{secret}', {{mode: 'no-cors'}}).then(() => 'a response')"))
            }
            "/post" => {
                attempt("return fetch('/pumps.json', {method: 'POST', body: 'x'}).then((r) => r.text())")
            }
            "/socket" => {
                let socket = secret.replace("http", "ws");
                attempt(&format!(
                    "return new Promise((open, close) => {{ const s = new WebSocket('{socket}'); \
                     s.onopen = () => open('a socket'); s.onerror = close; }})"
                ))
            }
            "/dialog" => scripted("alert('x'); document.body.textContent = 'After the dialog'"),
            "/endless" => scripted(
                "let n = 0; setInterval(() => { document.body.textContent = `Tick`; fetch('/never'); }, 10)",
            ),
            "/never" => ScriptedReply::never(),
            "/busy" => scripted("for (;;) {}"),
            "/placeholder" => {
                plain("text/html", "<title>App</title><p>Please wait<script>for (;;) {}</script>")
            }
            "/huge" => scripted("document.body.innerHTML = '<p>word word</p>'.repeat(50_000)"),
            "/eater" => scripted("const all = []; for (;;) all.push(new Array(1e6).fill(all.length + 0.5))"),
            "/crowd" => {
                scripted("setInterval(() => new Worker(URL.createObjectURL(new Blob(['for(;;);']))), 1)")
            }
            _ => ScriptedReply::http(404, "", ""),
        }
    })
}

fn secret() -> BackgroundUpstream {
    BackgroundUpstream::start(|_: &ReceivedRequest| {
        ScriptedReply::http(200, "content-type: text/html\r\naccess-control-allow-origin: *\r\n", "<p>secret")
    })
}

/// Starts a gateway that renders the pages of a site.
fn rendering(site: &BackgroundUpstream, chromium: Value) -> TestGateway {
    let private = [site.server.address.to_string()];
    let web = json!({"privateHosts": private, "render": "chromium", "chromium": chromium, "timeout": "120s"});
    gateway(&[printer()], json!({"web": web, "memory": {"enabled": false}}))
}

/// Returns what a model reads of a page.
#[track_caller]
fn read(gateway: &TestGateway, site: &BackgroundUpstream, path: &str) -> String {
    without_address(&gateway.text("web_browse", json!({"url": site.url(path)})), site)
}

/// Returns the descendants of a process whose name begins with `name`.
fn descendants(root: u32, name: &str) -> Vec<u32> {
    let parent = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse::<u32>().ok()
    };
    let is_below = |pid: u32| std::iter::successors(Some(pid), |pid| parent(*pid)).any(|above| above == root);
    let is_named = |pid: &u32| {
        let found = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        found.starts_with(name) && *pid != root
    };
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| is_below(*pid)).filter(is_named).collect()
}

/// Waits until no process of a browser is left.
#[track_caller]
fn assert_no_browser(gateway: &TestGateway) {
    eventually("the browsers have ended", || {
        descendants(gateway.process.id(), "chrom").is_empty().then_some(())
    });
}

#[test]
fn text_that_a_script_makes_is_read() {
    let secret = secret();
    let site = site(secret.url("/"));
    let gateway = rendering(&site, json!({}));
    assert_snapshot!(read(&gateway, &site, "/app"), @"
    # Shop

    ## Pumps

    All pumps of [the maker](http://SITE/maker).

    | Pump | Pressure |
    | ---- | -------- |
    | P1 | 2 bar |

    Prices without tax.
    ");
    assert_eq!(read(&gateway, &site, "/route#/pumps/1"), "# App\n\nRoute #/pumps/1");
    assert_eq!(read(&gateway, &site, "/moved"), "# End\n\nThe end of the way");
    assert_eq!(read(&gateway, &site, "/data"), r#"{"pumps": [{"name": "P1", "bar": 2}]}"#);
    assert_eq!(read(&gateway, &site, "/dialog"), "# App\n\nAfter the dialog");
    assert_no_browser(&gateway);
    let requests = site.requests();
    let data = requests.iter().find(|request| request.starts_with("GET /pumps.json")).unwrap();
    assert!(data.contains("x-part: list") && data.contains("user-agent: Toolyard/"), "{data}");
}

#[test]
fn page_reaches_only_what_may_be_visited() {
    let secret = secret();
    let site = site(secret.url("/"));
    let gateway = rendering(&site, json!({}));
    let mut seen = String::new();
    for path in ["/metadata", "/secret", "/robots", "/file", "/form", "/fetch", "/post"] {
        seen += &format!("{path}: {}\n", read(&gateway, &site, path).replace('\n', " "));
    }
    assert_snapshot!(seen, @"
    /metadata: The host 169.254.169.254 cannot be visited: it has no public address.
    /secret: The host 127.0.0.1 cannot be visited: it has no public address.
    /robots: The site 127.0.0.1 does not permit automatic visits of this page (robots.txt). Use another source.
    /file: # App  Still here
    /form: # App  Still here
    /fetch: # App  refused
    /post: # App  refused
    ");
    // The page may not learn of the refusal within its time.
    let socket = read(&gateway, &site, "/socket");
    assert!(!socket.contains("found"), "{socket}");
    assert_eq!(secret.requests(), [""; 0]);
    assert!(site.requests().iter().all(|request| request.starts_with("GET ")));
    assert_no_browser(&gateway);
}

#[test]
fn endless_and_huge_pages_are_bounded() {
    let secret = secret();
    let site = site(secret.url("/"));
    let gateway = rendering(&site, json!({"timeout": "8s", "domBytes": "64KiB", "memory": "512MiB"}));
    let check = |path: &str, expected: &str| assert_eq!(read(&gateway, &site, path), expected, "{path}");
    check("/endless", "# App\n\nTick");
    let busy = "The scripts of the page still run after 11 s, and it cannot be read. Use another source.";
    check("/busy", busy);
    check("/placeholder", "# App\n\nPlease wait");
    let ended = "The browser ended while it ran the scripts of the page: they need more than it has. Use another source.";
    check("/eater", ended);
    let crowd = read(&gateway, &site, "/crowd");
    assert!(crowd.starts_with("The "), "{crowd}");
    let huge = read(&gateway, &site, "/huge");
    let omitted = huge.split_once("[result truncated — ").and_then(|(_, rest)| rest.split_once(" chars"));
    let omitted: usize = omitted.expect("a notice").0.parse().unwrap();
    assert!(huge.contains("word word") && omitted < 64 << 10, "{omitted} characters");
    assert_no_browser(&gateway);
}

#[test]
fn killed_browser_fails_its_call_only() {
    let secret = secret();
    let site = site(secret.url("/"));
    let gateway = rendering(&site, json!({"timeout": "60s"}));
    let seen = std::thread::scope(|scope| {
        let call = scope.spawn(|| gateway.text("web_browse", json!({"url": site.url("/busy")})));
        let browser = eventually("a browser runs", || {
            let running = descendants(gateway.process.id(), "chrom");
            running.into_iter().min()
        });
        kill(browser);
        call.join().unwrap()
    });
    let ended = "The browser ended while it ran the scripts of the page: they need more than it has. Use another source.";
    assert_eq!(seen, ended);
    assert_no_browser(&gateway);
    assert_eq!(read(&gateway, &site, "/route#x"), "# App\n\nRoute #x");
}

#[test]
fn browser_ends_with_its_gateway() {
    let secret = secret();
    let site = site(secret.url("/"));
    let gateway = rendering(&site, json!({"timeout": "60s"}));
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "web_browse", "arguments": {"url": site.url("/busy")}}});
    let _open = gateway.open_request(&[], &message);
    let running = eventually("a browser runs", || {
        Some(descendants(gateway.process.id(), "chrom")).filter(|running| !running.is_empty())
    });
    kill(gateway.process.id());
    eventually("the browser has ended", || {
        let is_running = |pid: &u32| toolyard_testing::process::is_running(*pid);
        (!running.iter().any(is_running)).then_some(())
    });
}

#[test]
fn missing_chromium_is_reported_by_the_log_and_by_doctor() {
    let web = json!({"render": "chromium", "chromium": {"command": "/nonexistent/chromium"}});
    let gateway = gateway(&[printer()], json!({"web": web}));
    gateway
        .process
        .stderr
        .wait_for("a warning", |text| text.contains("apt-get install chromium").then_some(()));
    let report = run(toolyard(Path::new("/")).args(["doctor", "--url", &gateway.url()])).to_string();
    assert!(report.contains("there is no /nonexistent/chromium. Install it"), "{report}");
}
