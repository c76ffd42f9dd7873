use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;
use crate::testing::{StaticSite, fetcher, html, response};

/// Forms of URLs that lead to private addresses, or to other services than web servers. `PORT` is that of a server.
const FORBIDDEN: [(&str, &str); 52] = [
    ("loopback", "http://127.0.0.1:PORT/"),
    ("another loopback address", "http://127.8.9.10:PORT/"),
    ("name of loopback", "http://localhost:PORT/"),
    ("name of loopback in upper case", "http://LOCALHOST:PORT/"),
    ("two parts", "http://127.1:PORT/"),
    ("three parts", "http://127.0.1:PORT/"),
    ("decimal", "http://2130706433:PORT/"),
    ("hexadecimal", "http://0x7f000001:PORT/"),
    ("hexadecimal parts", "http://0x7f.0x0.0x0.0x1:PORT/"),
    ("octal", "http://017700000001:PORT/"),
    ("octal parts", "http://0177.0.0.01:PORT/"),
    ("octal and decimal parts", "http://0177.1:PORT/"),
    ("zero", "http://0:PORT/"),
    ("unspecified", "http://0.0.0.0:PORT/"),
    ("unspecified in hexadecimal", "http://0x0:PORT/"),
    ("private, 10", "http://10.0.0.1/"),
    ("private, 172.16", "http://172.16.0.1/"),
    ("private, 192.168", "http://192.168.0.1/"),
    ("private, in decimal", "http://3232235521/"),
    ("shared address space", "http://100.100.100.200/"),
    ("metadata service", "http://169.254.169.254/latest/meta-data/"),
    ("metadata service in decimal", "http://2852039166/"),
    ("multicast", "http://224.0.0.1/"),
    ("broadcast", "http://255.255.255.255/"),
    ("IPv6 loopback", "http://[::1]:PORT/"),
    ("IPv6 unspecified", "http://[::]:PORT/"),
    ("IPv6, long", "http://[0000:0000:0000:0000:0000:0000:0000:0001]:PORT/"),
    ("IPv4-mapped", "http://[::ffff:127.0.0.1]:PORT/"),
    ("IPv4-mapped in hexadecimal", "http://[::ffff:7f00:1]:PORT/"),
    ("IPv4-mapped metadata service", "http://[::ffff:a9fe:a9fe]/"),
    ("IPv4-compatible", "http://[::127.0.0.1]:PORT/"),
    ("IPv4-translated", "http://[::ffff:0:7f00:1]:PORT/"),
    ("IPv6 with a zone", "http://[fe80::1%25lo]:PORT/"),
    ("IPv6 site-local", "http://[fec0::1]/"),
    ("IPv6 multicast", "http://[ff02::1]:PORT/"),
    ("Teredo", "http://[2001:0:7f00:1::]:PORT/"),
    ("local NAT64", "http://[64:ff9b:1::7f00:1]:PORT/"),
    ("NAT64", "http://[64:ff9b::7f00:1]:PORT/"),
    ("6to4", "http://[2002:7f00:1::]:PORT/"),
    ("IPv6 link-local", "http://[fe80::1]:PORT/"),
    ("IPv6 unique local", "http://[fd00:ec2::254]/"),
    ("user name that looks like a host", "http://example.com@127.0.0.1:PORT/"),
    ("user name and password", "http://example.com:80@127.0.0.1:PORT/"),
    ("backslash before a host", "http://127.0.0.1:PORT\\@example.com/"),
    ("fragment that looks like a host", "http://127.0.0.1:PORT#@example.com/"),
    ("percent-encoded host", "http://%31%32%37.0.0.1:PORT/"),
    ("digits in circles", "http://①②⑦.⓪.⓪.①:PORT/"),
    ("port of SSH", "http://example.com:22/"),
    ("port of a mail server", "https://example.com:25/"),
    ("file", "file:///etc/passwd"),
    ("gopher", "gopher://127.0.0.1:PORT/_x"),
    ("data", "data:text/html,x"),
];

/// Returns whether a refusal is one of the address, and not of a server that cannot be reached.
fn is_refusal(error: &FetchError) -> bool {
    matches!(error, FetchError::NotPublic(_) | FetchError::Url(_) | FetchError::Redirect(_))
}

#[tokio::test]
async fn forbidden_urls_are_refused_in_every_form() {
    let site = StaticSite::start(vec![("/", html("secret"))]).await;
    let port = site.address.rsplit(':').next().expect("a port");
    for robots in [false, true] {
        let fetcher = fetcher(WebSettings { robots, ..WebSettings::default() });
        for (form, url) in FORBIDDEN {
            let url = url.replace("PORT", port);
            let refused = match WebUrl::parse(&url).map_err(FetchError::Url) {
                Ok(url) => fetcher.fetch(&url).await.map(drop),
                Err(error) => Err(error),
            };
            assert!(refused.as_ref().is_err_and(is_refusal), "{form}: {refused:?}");
        }
    }
    assert_eq!(site.visited(), [""; 0]);
}

#[tokio::test]
async fn redirects_to_forbidden_urls_are_refused_in_every_form() {
    let secret = StaticSite::start(vec![("/", html("secret"))]).await;
    let port = secret.address.rsplit(':').next().expect("a port");
    for (form, url) in FORBIDDEN {
        let headers = format!("location: {}\r\n", url.replace("PORT", port));
        let redirecting = StaticSite::start(vec![("/", response("302 Found", &headers, b""))]).await;
        let url = WebUrl::parse(&redirecting.url("/")).expect("a URL");
        let refused = fetcher(redirecting.settings()).fetch(&url).await.map(drop);
        assert!(refused.as_ref().is_err_and(is_refusal), "{form}: {refused:?}");
    }
    assert_eq!(secret.visited(), [""; 0]);
}

#[tokio::test]
async fn error_names_no_address() {
    let fetcher = fetcher(WebSettings { robots: false, ..WebSettings::default() });
    let url = WebUrl::parse("http://localhost:8080/x").expect("a URL");
    let error = fetcher.fetch(&url).await.expect_err("a private address");
    assert_eq!(error.to_string(), "The host localhost cannot be visited: it has no public address.");
}

/// Returns the body of a page, or the error.
async fn fetch(settings: WebSettings, url: &str) -> Result<String, String> {
    let url = WebUrl::parse(url).expect("a URL");
    let page = fetcher(settings).fetch(&url).await.map_err(|error| error.to_string())?;
    Ok(format!("{} {}", page.url.uri().path(), String::from_utf8_lossy(&page.body)))
}

#[tokio::test]
async fn redirects_are_followed() {
    let to = |status: &str, location: &str| response(status, &format!("location: {location}\r\n"), b"");
    let site = StaticSite::start(vec![
        ("/a", to("301 Moved Permanently", "b?x=1")),
        ("/b?x=1", to("307 Temporary Redirect", "/c#part")),
        ("/c", html("end")),
        ("/loop", to("302 Found", "/loop")),
        ("/without", response("302 Found", "", b"")),
        ("/ftp", to("302 Found", "ftp://example.com/")),
    ])
    .await;
    let check = async |path: &str, expected: Result<&str, &str>| {
        let fetched = fetch(site.settings(), &site.url(path)).await;
        assert_eq!(fetched.as_deref().map_err(String::as_str), expected, "{path}");
    };
    check("/a", Ok("/c end")).await;
    check("/loop", Err("The page redirects more than 10 times.")).await;
    check("/without", Err("127.0.0.1 answered with status 302 Found.")).await;
    let scheme = "The page redirects to a URL that cannot be visited: its scheme is `ftp`: only http and https can be visited.";
    check("/ftp", Err(scheme)).await;
    check("/missing", Err("127.0.0.1 answered with status 404 Not Found.")).await;
}

#[tokio::test]
async fn only_allowed_hosts_are_visited() {
    let other = StaticSite::start(vec![("/", html("other"))]).await;
    let location = format!("location: {}\r\n", other.url("/"));
    let site =
        StaticSite::start(vec![("/", html("x")), ("/other", response("302 Found", &location, b""))]).await;
    let private_hosts = vec!["127.0.0.1".to_owned()];
    let hosts = Some(vec![site.address.clone()]);
    let settings = WebSettings { private_hosts, hosts, robots: false, ..WebSettings::default() };
    assert_eq!(fetch(settings.clone(), &site.url("/")).await, Ok("/ x".to_owned()));
    let refused =
        "The host 127.0.0.1 cannot be visited: the operator of this gateway allows other hosts only.";
    for url in [site.url("/other"), other.url("/")] {
        assert_eq!(fetch(settings.clone(), &url).await, Err(refused.to_owned()));
    }
    assert_eq!(other.visited(), [""; 0]);
}

#[tokio::test]
async fn requests_have_the_configured_user_agent() {
    let site = StaticSite::start(vec![("/", html("x"))]).await;
    let user_agent = Some("Example/2.0 (+https://example.com/bot)".to_owned());
    fetch(site.settings(), &site.url("/")).await.expect("a page");
    fetch(WebSettings { user_agent, ..site.settings() }, &site.url("/")).await.expect("a page");
    let agents: Vec<_> = site
        .requests()
        .iter()
        .map(|head| {
            let line = head.lines().find_map(|line| line.strip_prefix("user-agent: "));
            line.unwrap_or_default().to_owned()
        })
        .collect();
    assert_eq!(agents, [DEFAULT_USER_AGENT, "Example/2.0 (+https://example.com/bot)"]);
}

#[tokio::test]
async fn robots_are_obeyed_and_read_once() {
    let rules = "User-agent: *\nDisallow: /private\n";
    let plain = "content-type: text/plain\r\n";
    let site = StaticSite::start(vec![
        ("/robots.txt", response("200 OK", plain, rules.as_bytes())),
        ("/", html("open")),
        ("/private/x", html("closed")),
        ("/to-private", response("302 Found", "location: /private/x\r\n", b"")),
    ])
    .await;
    let fetcher = fetcher(WebSettings { robots: true, ..site.settings() });
    let check = async |path: &str, expected: Option<&str>| {
        let url = WebUrl::parse(&site.url(path)).expect("a URL");
        let error = fetcher.fetch(&url).await.err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), expected, "{path}");
    };
    let refused =
        "The site 127.0.0.1 does not permit automatic visits of this page (robots.txt). Use another source.";
    check("/", None).await;
    check("/private/x", Some(refused)).await;
    check("/to-private", Some(refused)).await;
    assert_eq!(site.visited(), ["GET /robots.txt", "GET /", "GET /to-private"]);
    assert!(fetch(site.settings(), &site.url("/private/x")).await.is_ok());
}

#[tokio::test]
async fn site_without_readable_robots_is_refused_only_if_it_fails() {
    let check = async |status: &'static str, expected: Option<&str>| {
        let site =
            StaticSite::start(vec![("/robots.txt", response(status, "", b"")), ("/", html("x"))]).await;
        let settings = WebSettings { robots: true, ..site.settings() };
        let error = fetch(settings, &site.url("/")).await.err();
        assert_eq!(error.as_deref(), expected, "{status}");
    };
    check("404 Not Found", None).await;
    check("403 Forbidden", None).await;
    let broken = "The robots.txt of 127.0.0.1 answered with status 503, so that no page of it may be visited. Try again later.";
    check("503 Service Unavailable", Some(broken)).await;
}

#[tokio::test]
async fn size_is_bounded_before_and_after_decompression() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&vec![b' '; 100_000]).expect("memory");
    let bomb = encoder.finish().expect("memory");
    let site = StaticSite::start(vec![
        ("/long", html(&"x".repeat(20_000))),
        ("/bomb", response("200 OK", "content-encoding: gzip\r\n", &bomb)),
        ("/short", html("x")),
    ])
    .await;
    let settings = WebSettings { page_bytes: 16 << 10, ..site.settings() };
    let check = async |path: &str, expected: Result<&str, &str>| {
        let fetched = fetch(settings.clone(), &site.url(path)).await;
        assert_eq!(fetched.as_deref().map_err(String::as_str), expected, "{path}");
    };
    check("/long", Err("The page cannot be read: the body is larger than 16384 bytes.")).await;
    check("/bomb", Err("The page cannot be decompressed: it is larger than 16384 bytes.")).await;
    check("/short", Ok("/short x")).await;
}

#[tokio::test]
async fn requests_to_a_host_are_limited() {
    let site = StaticSite::start(vec![("/", html("x"))]).await;
    let fetcher = fetcher(WebSettings { host_requests: 2, ..site.settings() });
    let url = WebUrl::parse(&site.url("/")).expect("a URL");
    for _ in 0..2 {
        assert!(fetcher.fetch(&url).await.is_ok());
    }
    assert!(matches!(fetcher.fetch(&url).await, Err(FetchError::TooManyRequests { .. })));
    assert_eq!(site.visited().len(), 2);
}
