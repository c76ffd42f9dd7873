use super::*;

fn format_hosts(hosts: BTreeSet<HostPort>) -> Vec<String> {
    hosts.into_iter().map(|(host, port)| format!("{host}:{port}")).collect()
}

#[test]
fn output_of_pip_config_is_parsed() {
    let config = PipConfig::parse(concat!(
        "global.cert='/etc/ssl/it\\'s.pem'\n",
        "global.index-url='https://global.example/simple'\n",
        ":env:.index-url='https://user:pass@env.example:8443/simple'\n",
        "install.index-url='https://install.example/simple'\n",
        "install.extra_index_url='\\nhttps://one.example/a\\nhttps://two.example/b'\n",
        "global.no-binary=':all:'\n",
        "download.index-url='https://other.example'\n",
        "no line of a setting\n",
        "global.timeout=\"60\"\n",
    ));
    let env = config.env(&InstallerProgram::Pip { folder: String::new() });
    let expected = [
        ("PIP_CONFIG_FILE", "/dev/null"),
        ("PIP_EXTRA_INDEX_URL", "https://one.example/a https://two.example/b"),
        ("PIP_INDEX_URL", "https://user:pass@env.example:8443/simple"),
        ("PIP_TIMEOUT", "60"),
    ];
    assert_eq!(env, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(format_hosts(config.hosts(&[])), ["env.example:8443", "one.example:443", "two.example:443"]);
    assert_eq!(config.get("cert"), "/etc/ssl/it's.pem");
}

#[test]
fn uv_gets_the_settings_of_pip() {
    let uv = InstallerProgram::Uv { program: PathBuf::new() };
    let config = PipConfig::parse(concat!(
        ":env:.index-url='https://user:pass@env.example/simple'\n",
        "global.extra-index-url='https://one.example https://two.example'\n",
        "global.find-links='/wheels https://links.example'\n",
        "global.trusted-host='one.example'\n",
        "global.no-binary=':all:'\n",
        "global.timeout='60'\n",
        "global.retries='0'\n",
        "global.pre='true'\n",
    ));
    let expected = [
        ("UV_NATIVE_TLS", "1"),
        ("UV_SYSTEM_CERTS", "1"),
        ("UV_EXTRA_INDEX_URL", "https://one.example https://two.example"),
        ("UV_FIND_LINKS", "/wheels,https://links.example"),
        ("UV_INDEX_URL", "https://user:pass@env.example/simple"),
        ("UV_HTTP_RETRIES", "0"),
        ("UV_HTTP_TIMEOUT", "60"),
        ("UV_INSECURE_HOST", "one.example"),
        ("UV_PRERELEASE", "allow"),
    ];
    assert_eq!(config.env(&uv), expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    std::fs::write(&file, "ca").unwrap();
    let files = PipConfig::parse(&format!("global.cert='{}'", file.display())).files(&uv).unwrap();
    let files: Vec<_> = files.into_iter().map(|file| (file.variable, file.name, file.content)).collect();
    assert_eq!(files, [("SSL_CERT_FILE".to_owned(), "cert.pem".to_owned(), "ca".to_owned())]);
}

#[test]
fn hosts_are_those_of_the_index_and_the_extra_ones() {
    let check = |output: &str, more: &[&str], expected: &[&str]| {
        let more: Vec<_> = more.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(format_hosts(PipConfig::parse(output).hosts(&more)), expected, "{output:?} {more:?}");
    };
    let public = PYPI_HOSTS.map(|host| format!("{host}:443"));
    let mut public: Vec<_> = public.iter().map(String::as_str).collect();
    public.sort_unstable();
    check("", &[], &public);
    check(":env:.no-index='1'", &[], &[]);
    check(
        ":env:.no-index='1'\n:env:.find-links='/wheels http://links.example/x'",
        &[],
        &["links.example:80"],
    );
    check(":env:.no-index='0'", &[], &public);
    check("global.index-url='http://[::1]:8080/simple'", &[], &["::1:8080"]);
    check(
        "global.index-url='https://A.example'",
        &["Files.example"],
        &["a.example:443", "files.example:80", "files.example:443"],
    );
    check("global.index-url='https://a.example'", &["f.example:8443"], &["a.example:443", "f.example:8443"]);
    check("global.index-url='file:///simple'", &["", "a b"], &[]);
    check("global.index-url='https://u@b.example@c.example/'", &[], &["c.example:443"]);
}

#[test]
fn proxy_setting_may_have_credentials() {
    let check = |value: &str, expected: Option<(&str, u16, Option<&str>)>| {
        let upstream = PipConfig::parse(&format!("global.proxy='{value}'")).upstream();
        let actual = upstream.as_ref().map(|upstream| {
            let (host, port) = &upstream.target;
            (host.as_str(), *port, upstream.authorization.as_deref())
        });
        assert_eq!(actual, expected, "{value}");
    };
    check("http://proxy.example:3128", Some(("proxy.example", 3128, None)));
    check("proxy.example:3128", Some(("proxy.example", 3128, None)));
    check(
        "http://us%65r:p%40ss@proxy.example:3128/",
        Some(("proxy.example", 3128, Some("Basic dXNlcjpwQHNz"))),
    );
    check("http://proxy.example", Some(("proxy.example", 80, None)));
    check("", None);
}

#[test]
fn only_existing_folders_are_returned() {
    let config =
        PipConfig::parse("global.find-links='/usr file:///usr/lib https://x.example /no/such/folder usr'");
    assert_eq!(config.folders(), [Path::new("/usr"), Path::new("/usr/lib")]);
}
