//! Topics: addresses of messages, and patterns of them.

use std::fmt;
use std::str::FromStr;

/// Calls of tools.
pub const TOOL_INVOKE: &str = "tool.invoke";
/// Results of calls whose message names no topic for them.
pub const TOOL_RESULT: &str = "tool.result";
/// Cancellations of calls. This topic is not RockBot's.
pub const TOOL_CANCEL: &str = "tool.cancel";
/// Announcements of workers. Neither this topic nor the next two are RockBot's.
pub const WORKER_ANNOUNCE: &str = "worker.announce";
/// Requests to workers to announce themselves.
pub const WORKER_QUERY: &str = "worker.query";
/// Calls of tools that workers of one group have announced: this topic and the name of the group.
const TOOL_INVOKE_GROUP: &str = "tool.invoke.group";
/// Calls of tools of MCP servers, through a bridge.
pub const TOOL_INVOKE_MCP: &str = "tool.invoke.mcp";
/// Requests to connect to MCP servers again and to list their tools.
pub const TOOL_META_MCP_REFRESH: &str = "tool.meta.mcp.refresh";
/// Management of the MCP servers of a bridge.
pub const MCP_MANAGE: &str = "mcp.manage";
/// Scripts to run.
pub const SCRIPT_INVOKE: &str = "script.invoke";
/// Results of scripts whose message names no topic for them.
pub const SCRIPT_RESULT: &str = "script.result";
/// Announcements of agents.
pub const DISCOVERY_ANNOUNCE: &str = "discovery.announce";
/// Tasks for an agent: this topic and the name of the agent.
const AGENT_TASK: &str = "agent.task";
/// Cancellations of tasks: this topic and the name of the agent.
const AGENT_TASK_CANCEL: &str = "agent.task.cancel";
/// States of running tasks.
pub const AGENT_TASK_STATUS: &str = "agent.task.status";
/// Results of tasks whose message names no topic for them.
pub const AGENT_RESPONSE: &str = "agent.response";

/// Maximum length of a topic in bytes, that of a routing key in AMQP.
const MAX_BYTES: usize = 255;

/// A topic: segments with dots between them.
///
/// A segment has printable ASCII characters other than blanks and the wildcards of both brokers, and does not begin with
/// `$`: subjects of NATS that begin with it administer the server, and a message names topics for its replies.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Topic(String);

/// A pattern of topics. `*` stands for one segment, `#` for any number of segments.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPattern(String);

/// The text is not a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a topic has at most 255 bytes: segments of printable ASCII characters, without blanks, `*`, `#`, `>` and an \
     initial `$`, and dots between them"
)]
pub struct InvalidTopic;

// === impl Topic ===

impl Topic {
    /// Returns the topic of results for an agent: `tool.result.{agent}`.
    ///
    /// # Errors
    /// If the name cannot be a segment.
    pub fn tool_result_of(agent: &str) -> Result<Self, InvalidTopic> {
        Self::of_agent(TOOL_RESULT, agent)
    }

    /// Returns the topic on which an agent learns about MCP servers: `tool.meta.mcp.{agent}`.
    ///
    /// # Errors
    /// If the name cannot be a segment.
    pub fn mcp_metadata_of(agent: &str) -> Result<Self, InvalidTopic> {
        Self::of_agent("tool.meta.mcp", agent)
    }

    /// Returns the topic of answers to management requests of an agent: `mcp.manage.response.{agent}`.
    ///
    /// # Errors
    /// If the name cannot be a segment.
    pub fn mcp_manage_response_of(agent: &str) -> Result<Self, InvalidTopic> {
        Self::of_agent("mcp.manage.response", agent)
    }

    /// Returns the topic of results of an agent's scripts: `script.result.{agent}`.
    ///
    /// # Errors
    /// If the name cannot be a segment.
    pub fn script_result_of(agent: &str) -> Result<Self, InvalidTopic> {
        Self::of_agent(SCRIPT_RESULT, agent)
    }

    /// Returns the topic of calls for a group of workers: `tool.invoke.group.{group}`.
    ///
    /// # Errors
    /// If the name cannot be a segment.
    pub fn tool_invoke_of_group(group: &str) -> Result<Self, InvalidTopic> {
        Self::of_agent(TOOL_INVOKE_GROUP, group)
    }

    /// Returns the topic of tasks for an agent: `agent.task.{agent}`.
    ///
    /// # Errors
    /// If the name cannot be a segment, or would be another topic of tasks.
    pub fn agent_task_of(agent: &str) -> Result<Self, InvalidTopic> {
        let topic = Self::of_agent(AGENT_TASK, agent)?;
        let is_other = [AGENT_TASK_STATUS, AGENT_TASK_CANCEL].contains(&topic.as_str());
        if is_other { Err(InvalidTopic) } else { Ok(topic) }
    }

    /// Returns the topic of cancellations of tasks of an agent: `agent.task.cancel.{agent}`.
    ///
    /// # Errors
    /// If the name cannot be a segment.
    pub fn agent_cancel_of(agent: &str) -> Result<Self, InvalidTopic> {
        Self::of_agent(AGENT_TASK_CANCEL, agent)
    }

    /// Returns the topic of results of the tasks of an agent: `agent.response.{agent}`.
    ///
    /// # Errors
    /// If the name cannot be a segment.
    pub fn agent_response_of(agent: &str) -> Result<Self, InvalidTopic> {
        Self::of_agent(AGENT_RESPONSE, agent)
    }

    /// Returns `true` for a topic on which processes take requests.
    #[must_use]
    pub fn is_of_requests(&self) -> bool {
        const OTHERS: [&str; 7] = [
            TOOL_CANCEL,
            WORKER_ANNOUNCE,
            WORKER_QUERY,
            TOOL_META_MCP_REFRESH,
            MCP_MANAGE,
            SCRIPT_INVOKE,
            DISCOVERY_ANNOUNCE,
        ];
        // Those of groups and of agents, too.
        [TOOL_INVOKE, AGENT_TASK].iter().any(|topic| self.0.starts_with(topic))
            || OTHERS.contains(&self.as_str())
    }

    fn of_agent(topic: &str, agent: &str) -> Result<Self, InvalidTopic> {
        if agent.contains('.') { Err(InvalidTopic) } else { format!("{topic}.{agent}").parse() }
    }

    /// Returns a topic of this crate.
    #[must_use]
    pub fn of(constant: &'static str) -> Self {
        debug_assert!(constant.parse::<Self>().is_ok(), "{constant}");
        Self(constant.to_owned())
    }

    /// Returns the topic as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Topic {
    type Err = InvalidTopic;

    fn from_str(text: &str) -> Result<Self, InvalidTopic> {
        let is_inner = |byte: u8| byte.is_ascii_graphic() && !b"*#>.".contains(&byte);
        let is_segment =
            |segment: &str| !segment.is_empty() && !segment.starts_with('$') && segment.bytes().all(is_inner);
        match text.len() <= MAX_BYTES && text.split('.').all(is_segment) {
            true => Ok(Self(text.to_owned())),
            false => Err(InvalidTopic),
        }
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// === impl TopicPattern ===

impl TopicPattern {
    /// Returns the pattern as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name of an agent's subscription to the pattern: `{agent}.` and the pattern with `.` as `-`, `*` as
    /// `_` and `#` as `__`. The name of the queue consists of it.
    #[must_use]
    pub fn subscription_of(&self, agent: &str) -> String {
        let mut name = format!("{agent}.");
        for letter in self.0.chars() {
            match letter {
                '.' => name.push('-'),
                '*' => name.push('_'),
                '#' => name.push_str("__"),
                letter => name.push(letter),
            }
        }
        name
    }

    /// Returns `true` if the pattern matches the topic. The time is bounded by the product of both lengths: each `#`
    /// takes as little as possible, and more only if the rest does not match otherwise.
    #[must_use]
    pub fn matches(&self, topic: &Topic) -> bool {
        let pattern: Vec<_> = self.0.split('.').collect();
        let segments: Vec<_> = topic.0.split('.').collect();
        let (mut at, mut position) = (0, 0);
        // Position behind the last `#`, and the end of its match so far.
        let mut last_any = None;
        while position < segments.len() {
            match pattern.get(at) {
                Some(&"#") => {
                    at += 1;
                    last_any = Some((at, position));
                }
                Some(&segment) if segment == "*" || segment == segments[position] => {
                    at += 1;
                    position += 1;
                }
                _ => {
                    let Some((behind, end)) = last_any else { return false };
                    (at, position) = (behind, end + 1);
                    last_any = Some((behind, position));
                }
            }
        }
        pattern[at..].iter().all(|segment| *segment == "#")
    }
}

impl From<Topic> for TopicPattern {
    fn from(topic: Topic) -> Self {
        Self(topic.0)
    }
}

impl FromStr for TopicPattern {
    type Err = InvalidTopic;

    fn from_str(text: &str) -> Result<Self, InvalidTopic> {
        let plain: Vec<_> = text
            .split('.')
            .map(|segment| if ["*", "#"].contains(&segment) { "x" } else { segment })
            .collect();
        plain.join(".").parse::<Topic>()?;
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for TopicPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pattern_matches_topics_by_segment() {
        let check = |pattern: &str, topic: &str, expected: bool| {
            let pattern: TopicPattern = pattern.parse().expect("a pattern");
            assert_eq!(pattern.matches(&topic.parse().expect("a topic")), expected, "{pattern} on {topic}");
        };
        check("tool.invoke", "tool.invoke", true);
        check("tool.invoke", "tool.invoke.mcp", false);
        check("tool.*", "tool.invoke", true);
        check("tool.*", "tool.invoke.mcp", false);
        check("*.invoke", "tool.invoke", true);
        check("tool.#", "tool", true);
        check("tool.#", "tool.invoke.mcp", true);
        check("#", "tool.invoke", true);
        check("#.mcp", "tool.invoke.mcp", true);
        check("#.mcp.#", "mcp", true);
        check("#.a.#.b", "x.a.y.a.z.b", true);
        check("#.a.#.b", "x.a.y.b.z", false);
        check("a.*.#", "a", false);
    }

    #[test]
    fn many_wildcards_match_quickly() {
        let pattern: TopicPattern = format!("{}b", "#.".repeat(100)).parse().expect("a pattern");
        assert!(!pattern.matches(&"a.".repeat(126).trim_end_matches('.').parse().expect("a topic")));
    }

    #[test]
    fn invalid_topics_are_refused() {
        let long = "a".repeat(256);
        for text in
            ["", ".", "a.", ".a", "a..b", "a b", "a.*", "a.#", "a.>", "$SYS.REQ", "a.$JS", "ä", "a\n", &long]
        {
            assert_eq!(text.parse::<Topic>(), Err(InvalidTopic), "{text:?}");
        }
        for text in ["a", "_INBOX.abc", "a.b$c", "tool.result.agent-7"] {
            assert!(text.parse::<Topic>().is_ok(), "{text}");
        }
        for text in ["a.x*", "", "a.##", "$JS.#"] {
            assert_eq!(text.parse::<TopicPattern>(), Err(InvalidTopic), "{text:?}");
        }
        assert!(Topic::tool_result_of("a.b").is_err());
    }

    #[test]
    fn subscriptions_are_named_after_their_pattern() {
        let name =
            |pattern: &str| pattern.parse::<TopicPattern>().expect("a pattern").subscription_of("agent");
        assert_eq!(name("tool.invoke"), "agent.tool-invoke");
        assert_eq!(name("agent.task.*"), "agent.agent-task-_");
        assert_eq!(name("tool.#"), "agent.tool-__");
    }
}
