//! Agent cards: the self-description of an agent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{ProtocolVersion, or_default};

/// Name of the binding that is spoken here.
const JSON_RPC: &str = "JSONRPC";

/// Maximum length of the name of an agent and of the id of a skill, in characters.
const MAX_NAME_LENGTH: usize = 100;

/// Maximum number of skills of an agent.
const MAX_SKILLS: usize = 200;

/// Maximum length of other texts of a card, in characters; the rest is left out.
const MAX_TEXT_LENGTH: usize = 4_000;

/// Maximum number of tags and of examples of a skill; the rest is left out.
const MAX_LABELS: usize = 20;

/// An agent card.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentCard {
    /// Name of the agent.
    pub name: String,
    /// Purpose of the agent.
    #[serde(default, deserialize_with = "or_default")]
    pub description: String,
    /// Version of the agent.
    #[serde(default, deserialize_with = "or_default")]
    pub version: String,
    /// Addresses of the agent, the preferred one first.
    #[serde(default, deserialize_with = "or_default")]
    pub supported_interfaces: Vec<AgentInterface>,
    /// Optional features of the agent.
    #[serde(default, deserialize_with = "or_default")]
    pub capabilities: AgentCapabilities,
    /// Media types of messages.
    #[serde(default, deserialize_with = "or_default")]
    pub default_input_modes: Vec<String>,
    /// Media types of results.
    #[serde(default, deserialize_with = "or_default")]
    pub default_output_modes: Vec<String>,
    /// Abilities of the agent.
    #[serde(default, deserialize_with = "or_default")]
    pub skills: Vec<AgentSkill>,
    /// Ways to authenticate, by their names. They are only shown, never interpreted.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub security_schemes: BTreeMap<String, SchemeObject>,
    /// The ways of which each is sufficient.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub security_requirements: Vec<SchemeObject>,
}

/// An object that describes authentication.
pub type SchemeObject = serde_json::Map<String, Value>;

/// An address of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentInterface {
    /// URL of the address.
    pub url: String,
    /// Binding of the protocol, such as `JSONRPC`.
    pub protocol_binding: String,
    /// Version of the protocol, such as `1.0`.
    pub protocol_version: String,
    /// Name that requests to this address repeat.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub tenant: String,
}

/// Optional features of an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentCapabilities {
    /// True if the agent streams the progress of a task.
    #[serde(default, deserialize_with = "or_default")]
    pub streaming: bool,
    /// True if the agent notifies a URL of changes of a task.
    #[serde(default, deserialize_with = "or_default")]
    pub push_notifications: bool,
}

/// An ability of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentSkill {
    /// Id of the skill.
    pub id: String,
    /// Name of the skill.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// Purpose of the skill.
    #[serde(default, deserialize_with = "or_default")]
    pub description: String,
    /// Keywords.
    #[serde(default, deserialize_with = "or_default")]
    pub tags: Vec<String>,
    /// Example messages.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
}

/// A card that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CardError {
    /// The text is no card.
    #[error("the agent card is not valid JSON of a card: {0}")]
    Malformed(String),
    /// A name is missing or unusable.
    #[error("the {0} of the agent card is not 1 to {MAX_NAME_LENGTH} visible characters")]
    Name(&'static str),
    /// There are too many skills.
    #[error("the agent card has more than {MAX_SKILLS} skills")]
    TooManySkills,
}

impl AgentCard {
    /// Parses the text of a card, of version 1.0 or 0.3.
    ///
    /// # Errors
    /// If it is no card, or lacks a usable name.
    pub fn parse(text: &[u8]) -> Result<Self, CardError> {
        let value = serde_json::from_slice(text).map_err(malformed)?;
        Self::of_value(value)
    }

    /// Returns the card of a JSON value: of version 1.0 or 0.3, or with `agentName` and `url`, as agents on a bus announce
    /// them.
    ///
    /// # Errors
    /// If it is no card, or lacks a usable name.
    pub fn of_value(mut value: Value) -> Result<Self, CardError> {
        if let Value::Object(object) = &mut value {
            if let Some(name) = object.remove("agentName") {
                object.entry("name").or_insert(name);
            }
            let interfaces = interfaces_of_0_3(object);
            if !interfaces.is_empty() {
                object.entry("supportedInterfaces").or_insert(Value::Array(interfaces));
            }
        }
        let card: Self = serde_json::from_value(value).map_err(malformed)?;
        card.checked()
    }

    /// Returns the first address that is spoken here, and its version.
    #[must_use]
    pub fn json_rpc(&self) -> Option<(&AgentInterface, ProtocolVersion)> {
        let spoken = self
            .supported_interfaces
            .iter()
            .filter(|interface| interface.protocol_binding.trim().eq_ignore_ascii_case(JSON_RPC));
        let mut spoken = spoken
            .filter_map(|interface| Some((interface, ProtocolVersion::parse(&interface.protocol_version)?)));
        spoken.next()
    }

    /// Returns the skill of an id, without regard to case.
    #[must_use]
    pub fn skill(&self, id: &str) -> Option<&AgentSkill> {
        self.skills.iter().find(|skill| skill.id.to_lowercase() == id.to_lowercase())
    }

    /// Returns true if the agent names a way to authenticate.
    #[must_use]
    pub fn has_authentication(&self) -> bool {
        !self.security_schemes.is_empty() || !self.security_requirements.is_empty()
    }

    fn checked(mut self) -> Result<Self, CardError> {
        self.name = visible(&self.name).ok_or(CardError::Name("name"))?;
        if self.skills.len() > MAX_SKILLS {
            return Err(CardError::TooManySkills);
        }
        cut(&mut self.description);
        cut(&mut self.version);
        for skill in &mut self.skills {
            skill.id = visible(&skill.id).ok_or(CardError::Name("id of a skill"))?;
            cut(&mut skill.name);
            cut(&mut skill.description);
            for labels in [&mut skill.tags, &mut skill.examples] {
                labels.truncate(MAX_LABELS);
                labels.iter_mut().for_each(cut);
            }
        }
        Ok(self)
    }
}

/// Returns the addresses of a card of version 0.3, which are fields of the card itself.
fn interfaces_of_0_3(card: &serde_json::Map<String, Value>) -> Vec<Value> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let version = text(card.get("protocolVersion")).unwrap_or_else(|| "0.3.0".to_owned());
    let interface = |url: String, binding: Option<String>| {
        let binding = binding.unwrap_or_else(|| JSON_RPC.to_owned());
        json!({"url": url, "protocolBinding": binding, "protocolVersion": version})
    };
    let main = text(card.get("url")).map(|url| interface(url, text(card.get("preferredTransport"))));
    let more = card.get("additionalInterfaces").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let more =
        more.iter().filter_map(|more| Some(interface(text(more.get("url"))?, text(more.get("transport")))));
    main.into_iter().chain(more).collect()
}

fn malformed(error: impl std::fmt::Display) -> CardError {
    CardError::Malformed(error.to_string())
}

/// Returns a name without surrounding spaces, if it is one line of visible characters.
fn visible(name: &str) -> Option<String> {
    let name = name.trim();
    let is_valid = !name.is_empty()
        && name.chars().count() <= MAX_NAME_LENGTH
        && !name.contains(|letter: char| letter.is_control());
    is_valid.then(|| name.to_owned())
}

fn cut(text: &mut String) {
    if let Some((end, _)) = text.char_indices().nth(MAX_TEXT_LENGTH) {
        text.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the name, the address and the skills of a card, or its problem.
    fn read(card: Value) -> String {
        let card = match AgentCard::of_value(card) {
            Ok(card) => card,
            Err(error) => return error.to_string(),
        };
        let address = card.json_rpc().map(|(interface, version)| format!("{} {version:?}", interface.url));
        let skills: Vec<_> = card.skills.iter().map(|skill| skill.id.as_str()).collect();
        format!("{} at {} with {}", card.name, address.unwrap_or_default(), skills.join(", "))
    }

    #[test]
    fn cards_of_all_versions_are_read() {
        let check = |card: Value, expected: &str| assert_eq!(read(card), expected);
        let interface = |binding: &str, version: &str| json!({"url": format!("http://a/{version}"), "protocolBinding": binding, "protocolVersion": version});
        let skill = json!({"id": "echo", "name": "Echo", "tags": null});
        check(
            json!({"name": "A", "supportedInterfaces": [interface("GRPC", "1.0"), interface("JSONRPC", "2.0"),
                interface("jsonrpc", "1.2")], "skills": [skill]}),
            "A at http://a/1.2 V1 with echo",
        );
        check(
            json!({"name": "A", "url": "http://b", "protocolVersion": "0.3.0", "skills": [skill]}),
            "A at http://b V03 with echo",
        );
        check(
            json!({"name": "A", "url": "http://b", "preferredTransport": "GRPC",
                "additionalInterfaces": [{"url": "http://c", "transport": "JSONRPC"}]}),
            "A at http://c V03 with ",
        );
        check(json!({"agentName": " Bus ", "skills": [skill]}), "Bus at  with echo");
        check(json!({"name": "A", "skills": null, "capabilities": null}), "A at  with ");
    }

    #[test]
    fn broken_cards_are_refused() {
        let check = |card: Value, expected: &str| {
            let problem = read(card);
            assert!(problem.contains(expected), "{problem}");
        };
        check(json!([]), "not valid JSON of a card");
        check(json!({}), "missing field `name`");
        check(json!({"name": "  "}), "the name of the agent card is not 1 to 100 visible characters");
        check(json!({"name": "a\nb"}), "the name of the agent card");
        check(json!({"name": "x".repeat(101)}), "the name of the agent card");
        check(json!({"name": "A", "skills": [{"id": ""}]}), "the id of a skill of the agent card");
        check(json!({"name": "A", "skills": [{"name": "a"}]}), "missing field `id`");
        check(json!({"name": "A", "skills": vec![json!({"id": "a"}); 201]}), "more than 200 skills");
        check(json!({"name": "A", "supportedInterfaces": "http://a"}), "not valid JSON of a card");
        assert!(matches!(AgentCard::parse(b"<html>"), Err(CardError::Malformed(_))));
    }

    #[test]
    fn long_texts_are_cut() {
        let card = json!({"name": "A", "description": "é".repeat(5_000),
            "skills": [{"id": "a", "tags": vec!["t"; 30]}]});
        let card = AgentCard::of_value(card).expect("a card");
        assert_eq!((card.description.chars().count(), card.skills[0].tags.len()), (4_000, 20));
    }
}
