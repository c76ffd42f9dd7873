//! The agent card of the gateway.

use serde_json::{Value, json};
use toolyard_manifest::{A2aSettings, A2aSkill};

use crate::wire::card::{AgentCapabilities, AgentCard, AgentInterface, AgentSkill};

/// Returns the text of the card. `url` is that of the endpoint, unless the settings have one.
pub(super) fn text(settings: &A2aSettings, url: &str, version: &str, requires_key: bool) -> String {
    let url = settings.url.as_ref().map_or_else(|| url.to_owned(), |url| url.uri().to_string());
    let interface = AgentInterface {
        url,
        protocol_binding: "JSONRPC".to_owned(),
        protocol_version: "1.0".to_owned(),
        tenant: String::new(),
    };
    let mut card = AgentCard {
        name: settings.name.clone(),
        description: settings.description.clone(),
        version: version.to_owned(),
        supported_interfaces: vec![interface],
        capabilities: AgentCapabilities { streaming: true, push_notifications: settings.push.is_some() },
        default_input_modes: vec!["text/plain".to_owned(), "application/json".to_owned()],
        default_output_modes: vec!["text/plain".to_owned(), "application/json".to_owned()],
        skills: settings.skills.iter().map(skill).collect(),
        ..AgentCard::default()
    };
    if requires_key {
        let scheme = object(json!({"httpAuthSecurityScheme": {"scheme": "Bearer"}}));
        card.security_schemes.insert("key".to_owned(), scheme);
        card.security_requirements.push(object(json!({"schemes": {"key": {"list": []}}})));
    }
    json!(card).to_string()
}

fn skill(skill: &A2aSkill) -> AgentSkill {
    AgentSkill {
        id: skill.id().to_owned(),
        name: skill.name.clone().unwrap_or_else(|| skill.id().to_owned()),
        description: skill.description.clone(),
        tags: skill.tags.clone(),
        examples: skill.examples.clone(),
    }
}

fn object(value: Value) -> serde_json::Map<String, Value> {
    if let Value::Object(object) = value { object } else { serde_json::Map::new() }
}
