use super::*;

fn order(installer: InstallerProgram, build: bool, has_digests: bool) -> InstallRequest {
    InstallRequest {
        installer,
        python: "/usr/bin/python3".into(),
        list: "six".to_owned(),
        has_digests,
        build_from_source: build,
        has_no_index: true,
        env: vec![("INDEX".to_owned(), "x".to_owned())],
        files: Vec::new(),
        socket: "/proxy".into(),
        user: "toolyard:token".to_owned(),
    }
}

fn both() -> [InstallerProgram; 2] {
    [InstallerProgram::Pip { folder: "/pip".to_owned() }, InstallerProgram::Uv { program: "/uv".into() }]
}

fn command(order: &InstallRequest) -> Command {
    let (home, settings, list) = (Path::new("/home"), Path::new("/home/s"), Path::new("/home/s/list"));
    order.command(&InstallPaths { home, settings, list, target: "packages", port: 7 })
}

fn args(order: &InstallRequest) -> String {
    let command = command(order);
    let args: Vec<_> = command.get_args().map(|arg| arg.to_string_lossy()).collect();
    args.join(" ")
}

#[test]
fn only_wheels_are_installed_without_build_from_source() {
    for installer in both() {
        let end = "--target packages --requirement /home/s/list";
        let wheels = args(&order(installer.clone(), false, false));
        assert!(wheels.ends_with(&format!("--only-binary :all: {end}")), "{wheels}");
        let built = args(&order(installer, true, false));
        assert!(built.ends_with(end) && !built.contains("--only-binary"), "{built}");
    }
}

#[test]
fn both_installers_have_the_same_environment() {
    for installer in both() {
        let order = order(installer, false, false);
        let command = command(&order);
        let env: Vec<_> = command.get_envs().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
        let expected = ["HOME", "INDEX", "LANG", "PATH", "TMPDIR", "http_proxy", "https_proxy"];
        assert_eq!(env, expected, "{:?}", order.installer);
    }
}

#[test]
fn uv_ignores_its_configuration_and_requires_listed_digests() {
    let [_, uv] = both();
    let plain = args(&order(uv.clone(), false, false));
    for option in
        ["--no-config", "--no-cache", "--no-python-downloads", "--keyring-provider disabled", "--no-index"]
    {
        assert!(plain.contains(option), "{option}: {plain}");
    }
    assert!(!plain.contains("--require-hashes"), "{plain}");
    let strict = args(&order(uv, false, true));
    assert!(strict.contains("--require-hashes"), "{strict}");
}
