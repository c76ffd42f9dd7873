//! `WebTools` of the files of RockBot.

use super::*;

/// Settings of an agent with the tools for the web.
const WEB_TOOLS: &str = r#"{"WebTools": {"ApiKey": "", "ApiKeyEnvVar": "TOOLYARD_TEST_UNSET_KEY", "MaxSearchResults": 7,
    "ChunkingThreshold": 9000, "ChunkMaxLength": 3000, "ChunkTtlMinutes": 45, "Proxy": "x"}}"#;

#[test]
fn web_tools_become_a_section() {
    let import = import(WEB_TOOLS).unwrap_or_else(|problems| panic!("{problems}"));
    assert_snapshot!(process_document(&import), @r#"
    apiVersion: toolyard.dev/v1alpha1
    kind: Toolyard
    spec:
      builtins:
        web:
          apiKeyEnvVar: TOOLYARD_TEST_UNSET_KEY
          maxSearchResults: 7
          chunkingThreshold: 9000
          chunkMaxLength: 3000
          chunkTtl: "45m"
        scripts:
          enabled: false
        guides:
          enabled: false
        skills:
          enabled: false
        search:
          enabled: false
        mcp:
          enabled: false
    "#);
    assert_snapshot!(notes(&import), @"dir/mcp.json:1:14: WebTools: not imported: `Proxy`");
}

#[test]
fn invalid_web_tools_are_problems_and_keys_are_noted() {
    assert_snapshot!(problems(r#"{"WebTools": {"MaxSearchResults": 50, "ChunkTtlMinutes": -1}}"#), @"
    dir/mcp.json:1:35: maxSearchResults: this number is out of range
      expected a whole number from 1 to 20
    dir/mcp.json:1:58: chunkTtl: `-1m` is not a duration
      expected a duration such as 500ms, 30s, 1m30s or 2h
      hint: the units are h, m, s, ms, us and ns, without spaces
    ");
    assert_snapshot!(problems(r#"{"WebTools": 5}"#), @"
    dir/mcp.json:1:14: WebTools: found a number
      expected an object
    ");
    let import = import(r#"{"WebTools": {"ApiKey": "k"}}"#).unwrap_or_else(|problems| panic!("{problems}"));
    assert_snapshot!(notes(&import), @"dir/mcp.json:1:25: WebTools.ApiKey: this value is copied into the manifest; use `${NAME}` to keep it out");
}

#[test]
fn web_tools_of_an_imported_file_take_effect() {
    let process = |builtins: &str| {
        format!("apiVersion: toolyard.dev/v1alpha1\nkind: Toolyard\nspec: {{builtins: {builtins}}}\n")
    };
    let check = |builtins: Option<&str>, expected: Option<(usize, u64)>| {
        let text = builtins.map(process).unwrap_or_default();
        let files = ClientFiles::new(&[("settings.json", WEB_TOOLS), ("gateway.yaml", &text)]);
        let manifests = [files.path("gateway.yaml")];
        let (manifest, _) = load_and_import(&manifests, &[files.path("settings.json")]).unwrap();
        let web = manifest.process.builtins.unwrap().web;
        let web = web.map(|web| (web.max_search_results, web.chunk_ttl.as_secs()));
        assert_eq!(web, expected, "{builtins:?}");
    };
    check(None, Some((7, 45 * 60)));
    check(Some("{}"), Some((7, 45 * 60)));
    check(Some("{web: {maxSearchResults: 2}}"), Some((2, 30 * 60)));
    check(Some("{web: {enabled: false}}"), None);
}
