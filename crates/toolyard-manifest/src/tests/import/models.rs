//! `ModelBehaviors` of the files of RockBot.

use super::*;

#[test]
fn model_behaviors_become_thresholds_of_models() {
    let text = r#"{
  "Mcp": {"Servers": [{"Name": "weather", "Command": "uvx"}]},
  "Logging": {},
  "ModelBehaviors": {
    "Default": {},
    "Models": {
      "openrouter/deepseek": {"ToolResultChunkingThreshold": 32000, "MaxTokens": 5},
      "small": {"MaxTokens": 5}
    }
  }
}"#;
    let import = import(text).unwrap_or_else(|problems| panic!("{problems}"));
    let manifest = parse_with(&[source("tools.yaml", &import.to_yaml())], &|_| None).unwrap();
    let results = manifest.process.builtins.unwrap().results.unwrap();
    assert_eq!(results.models, [("openrouter/deepseek".to_owned(), 32_000)]);
    let json = import.to_json();
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()[1]["kind"], "Toolyard");
    let from_json = parse_with(&[source("tools.json", &json)], &|_| None).unwrap();
    assert_eq!(from_json.process.builtins.unwrap().results.unwrap(), results);
    assert_snapshot!(process_document(&import), @"
    apiVersion: toolyard.dev/v1alpha1
    kind: Toolyard
    spec:
      builtins:
        results:
          models:
            openrouter/deepseek:
              threshold: 32000
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
    ");
    assert_snapshot!(notes(&import), @r#"
    dir/mcp.json:1:1: not imported: `Logging`
    dir/mcp.json:4:21: ModelBehaviors: not imported: `Default`
    dir/mcp.json:7:30: ModelBehaviors.Models["openrouter/deepseek"]: not imported: `MaxTokens`
    dir/mcp.json:8:16: ModelBehaviors.Models.small: not imported: `MaxTokens`
    "#);
    assert_snapshot!(
        problems(r#"{"Mcp": {"Servers": [{"Name": "a", "Command": "x"}]}, "ModelBehaviors": {"Models": {"m": {"ToolResultChunkingThreshold": 0}, "n": 5}}}"#),
        @"
    dir/mcp.json:1:122: ModelBehaviors.Models.m.ToolResultChunkingThreshold: this number is out of range
      expected a whole number from 1 to 1000000000
    dir/mcp.json:1:131: ModelBehaviors.Models.n: found a number
      expected an object
    "
    );
}

#[test]
fn models_of_an_imported_file_take_effect() {
    let settings = r#"{"Mcp": {"Servers": [{"Name": "a", "Command": "x"}]}, "ModelBehaviors": {"Models":
        {"m": {"ToolResultChunkingThreshold": 5}, "n": {"ToolResultChunkingThreshold": 6}}}}"#;
    let process = |builtins: &str| {
        format!("apiVersion: toolyard.dev/v1alpha1\nkind: Toolyard\nspec: {{builtins: {builtins}}}\n")
    };
    let check = |builtins: Option<&str>, expected: Option<&[(&str, usize)]>| {
        let text = builtins.map(process).unwrap_or_default();
        let files = ClientFiles::new(&[("settings.json", settings), ("gateway.yaml", &text)]);
        let manifests = [files.path("gateway.yaml")];
        let (manifest, _) = load_and_import(&manifests, &[files.path("settings.json")]).unwrap();
        let builtins = manifest.process.builtins.unwrap();
        let models = builtins.results.map(|results| results.models);
        let expected = expected.map(|models| models.iter().map(|(id, n)| ((*id).to_owned(), *n)).collect());
        assert_eq!(models, expected);
        assert_eq!(manifest.handlers[0].name.as_str(), "builtins");
    };
    check(None, Some(&[("m", 5), ("n", 6)]));
    check(Some("{results: {models: {m: {threshold: 9}}}}"), Some(&[("m", 9), ("n", 6)]));
    check(Some("{results: {enabled: false}}"), None);
}

/// The settings of an agent may have its models only.
#[test]
fn models_without_servers_are_imported() {
    let settings =
        r#"{"ModelBehaviors": {"Models": {"m": {"ToolResultChunkingThreshold": 5}}}, "Logging": {}}"#;
    let import = import(settings).unwrap_or_else(|problems| panic!("{problems}"));
    let manifest = parse_with(&[source("tools.yaml", &import.to_yaml())], &|_| None).unwrap();
    let models = manifest.process.builtins.unwrap().results.unwrap().models;
    assert_eq!(models, [("m".to_owned(), 5)]);
    assert_snapshot!(notes(&import), @"dir/mcp.json:1:1: not imported: `Logging`");
    assert_snapshot!(problems(r#"{"ModelBehaviors": {"Models": {}}}"#), @"
    dir/mcp.json:1:1: this file has no enabled server with a supported transport
      expected `mcpServers`, or `servers` (VS Code), with at least one server
    ");
}
