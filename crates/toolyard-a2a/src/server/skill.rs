//! The tool and its arguments for a message.

use serde_json::{Map, Value, json};
use toolyard_core::Json;
use toolyard_manifest::A2aSkill;

use crate::wire::message::Message;
use crate::wire::rpc::{RpcError, code};

/// Member of the metadata of a message, or of its data part, that names a skill.
const SKILL: &str = "skill";

/// Member of a data part with the arguments, beside [`SKILL`].
const ARGUMENTS: &str = "arguments";

/// A call of the tool of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillCall {
    /// Published name of the tool.
    pub tool: String,
    /// Arguments of the call.
    pub arguments: Json,
}

impl SkillCall {
    /// Returns the call for a message. The skill is that of the metadata, or else of the data part, or else the only one. Its
    /// arguments are those of the data part, and the text of the message, if the skill has an argument for it.
    ///
    /// # Errors
    /// If the message names no skill, or has no arguments for it.
    pub fn of_message(
        skills: &[A2aSkill],
        message: &Message,
        metadata: &Map<String, Value>,
    ) -> Result<Self, RpcError> {
        let data = message.parts.iter().find_map(|part| part.data.as_ref());
        let data = match data {
            None => None,
            Some(Value::Object(data)) => Some(data),
            Some(_) => return Err(invalid("a data part has an object of arguments".to_owned())),
        };
        let named =
            [&message.metadata, metadata].into_iter().find_map(|metadata| metadata.get(SKILL)?.as_str());
        let in_data = data.and_then(|data| data.get(SKILL)?.as_str()).filter(|_| named.is_none());
        let skill = find(skills, named.or(in_data))?;
        let mut arguments = match data {
            Some(data) if in_data.is_some() => match data.get(ARGUMENTS) {
                Some(Value::Object(arguments)) => arguments.clone(),
                None => Map::new(),
                Some(_) => return Err(invalid(format!("`{ARGUMENTS}` of the data part is not an object"))),
            },
            Some(data) => data.clone(),
            None => Map::new(),
        };
        let texts: Vec<_> = message.parts.iter().filter_map(|part| part.text.as_deref()).collect();
        match &skill.text_argument {
            Some(argument) if !texts.is_empty() => {
                arguments.insert(argument.clone(), json!(texts.join("\n")));
            }
            None if data.is_none() => {
                return Err(invalid(format!(
                    "the skill {:?} needs a data part with the arguments of the tool",
                    skill.id()
                )));
            }
            _ => {}
        }
        Ok(Self { tool: skill.tool.clone(), arguments: Json::from_value(&Value::Object(arguments)) })
    }
}

fn find<'a>(skills: &'a [A2aSkill], named: Option<&str>) -> Result<&'a A2aSkill, RpcError> {
    let ids = || skills.iter().map(|skill| format!("{:?}", skill.id())).collect::<Vec<_>>().join(", ");
    match (named, skills) {
        (None, [only]) => Ok(only),
        (None, _) => {
            Err(invalid(format!("name a skill in `metadata.{SKILL}` of the message: one of {}", ids())))
        }
        (Some(named), _) => {
            skills.iter().find(|skill| skill.id().eq_ignore_ascii_case(named.trim())).ok_or_else(|| {
                invalid(format!("there is no skill {:?}: expected one of {}", named.trim(), ids()))
            })
        }
    }
}

fn invalid(message: String) -> RpcError {
    RpcError::new(code::INVALID_PARAMS, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(tool: &str, text_argument: Option<&str>) -> A2aSkill {
        A2aSkill {
            tool: tool.to_owned(),
            id: None,
            name: None,
            description: "x".to_owned(),
            tags: Vec::new(),
            examples: Vec::new(),
            text_argument: text_argument.map(str::to_owned),
        }
    }

    fn called(skills: &[A2aSkill], message: Value, metadata: Value) -> String {
        let message = serde_json::from_value(message).expect("a message");
        let metadata = metadata.as_object().cloned().unwrap_or_default();
        match SkillCall::of_message(skills, &message, &metadata) {
            Ok(SkillCall { tool, arguments }) => {
                format!("{tool} {arguments}", arguments = arguments.as_text())
            }
            Err(error) => error.message,
        }
    }

    #[test]
    fn messages_become_calls() {
        let both = [skill("ask", Some("prompt")), skill("add", None)];
        let check = |skills: &[A2aSkill], message: Value, metadata: Value, expected: &str| {
            assert_eq!(called(skills, message, metadata), expected);
        };
        let text = json!({"text": "hi"});
        let of = |parts: Value, metadata: Value| json!({"parts": parts, "metadata": metadata});
        let none = || json!({});
        check(&both[..1], of(json!([text]), none()), none(), r#"ask {"prompt":"hi"}"#);
        check(&both[..1], of(json!([text, {"text": "you"}]), none()), none(), r#"ask {"prompt":"hi\nyou"}"#);
        check(&both, of(json!([text]), json!({"skill": "ASK"})), none(), r#"ask {"prompt":"hi"}"#);
        check(&both, of(json!([text]), none()), json!({"skill": "ask"}), r#"ask {"prompt":"hi"}"#);
        check(&both, of(json!([{"data": {"n": 1}}]), json!({"skill": "add"})), none(), r#"add {"n":1}"#);
        check(
            &both,
            of(json!([{"data": {"skill": "add", "arguments": {"n": 2}}}]), none()),
            none(),
            r#"add {"n":2}"#,
        );
        check(&both, of(json!([{"data": {"skill": "add"}}]), none()), none(), "add {}");
    }

    #[test]
    fn other_messages_are_refused() {
        let both = [skill("ask", Some("prompt")), skill("add", None)];
        let check = |message: Value, expected: &str| assert_eq!(called(&both, message, json!({})), expected);
        let text = json!([{"text": "hi"}]);
        check(
            json!({"parts": text}),
            r#"name a skill in `metadata.skill` of the message: one of "ask", "add""#,
        );
        check(
            json!({"parts": text, "metadata": {"skill": "cook"}}),
            r#"there is no skill "cook": expected one of "ask", "add""#,
        );
        check(
            json!({"parts": text, "metadata": {"skill": "add"}}),
            r#"the skill "add" needs a data part with the arguments of the tool"#,
        );
        check(json!({"parts": [{"data": [1]}]}), "a data part has an object of arguments");
        check(
            json!({"parts": [{"data": {"skill": "add", "arguments": 1}}]}),
            "`arguments` of the data part is not an object",
        );
    }
}
