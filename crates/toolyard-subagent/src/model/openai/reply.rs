//! Reads replies, whole or in the parts of a stream.

use serde::Deserialize;

use crate::model::{ChatReply, MAX_REQUESTS, ModelError, RequestedCall, TokenUsage};

/// A chat completion that arrives at once.
#[derive(Deserialize)]
pub(super) struct WholeReply {
    #[serde(default)]
    choices: Vec<WholeChoice>,
    #[serde(default)]
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct WholeChoice {
    message: MessagePart,
}

/// A part of a streamed completion.
#[derive(Deserialize)]
struct ReplyPart {
    #[serde(default)]
    choices: Vec<PartChoice>,
    #[serde(default)]
    usage: Option<Usage>,
    /// Set by endpoints that fail in the middle of a reply.
    #[serde(default)]
    error: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct PartChoice {
    #[serde(default)]
    delta: MessagePart,
}

#[derive(Default, Deserialize)]
struct MessagePart {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<RequestPart>>,
}

#[derive(Deserialize)]
struct RequestPart {
    /// Position of the request. Whole replies have none.
    #[serde(default)]
    index: Option<usize>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: FunctionPart,
}

#[derive(Default, Deserialize)]
struct FunctionPart {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<String>,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
    /// Reported by OpenRouter.
    #[serde(default)]
    cost: Option<f64>,
}

impl From<Usage> for TokenUsage {
    fn from(usage: Usage) -> Self {
        Self { input: usage.prompt_tokens, output: usage.completion_tokens, cost: usage.cost }
    }
}

/// A streamed reply as far as it has arrived.
pub(super) struct ReplyBuilder {
    reply: ChatReply,
    bytes: usize,
    limit: usize,
    has_choice: bool,
}

impl WholeReply {
    /// Parses a chat completion.
    pub(super) fn parse(text: &[u8]) -> Result<ChatReply, ModelError> {
        let whole: Self = serde_json::from_slice(text).map_err(unreadable)?;
        let mut builder = ReplyBuilder::new(usize::MAX);
        for choice in whole.choices.into_iter().take(1) {
            builder.add_message(choice.message)?;
        }
        builder.reply.usage = whole.usage.map(Into::into);
        builder.finish()
    }
}

impl ReplyBuilder {
    /// Creates an empty reply of at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self { reply: ChatReply::default(), bytes: 0, limit, has_choice: false }
    }

    /// Adds the data of an event.
    pub(super) fn add(&mut self, data: &[u8]) -> Result<(), ModelError> {
        let part: ReplyPart = serde_json::from_slice(data).map_err(unreadable)?;
        if part.error.is_some() {
            return Err(ModelError::new("the language model reported an error in the middle of its reply"));
        }
        self.bytes += data.len();
        if self.bytes > self.limit {
            return Err(ModelError::new("the reply of the language model is too long"));
        }
        if let Some(usage) = part.usage {
            self.reply.usage = Some(usage.into());
        }
        part.choices.into_iter().take(1).try_for_each(|choice| self.add_message(choice.delta))
    }

    fn add_message(&mut self, message: MessagePart) -> Result<(), ModelError> {
        self.has_choice = true;
        self.reply.text.push_str(message.content.as_deref().unwrap_or_default());
        for part in message.tool_calls.unwrap_or_default() {
            let requests = &mut self.reply.requests;
            // Without a position, a part with an id begins a new request.
            let last = requests.len().saturating_sub(usize::from(part.id.is_none()));
            let index = part.index.unwrap_or(last);
            if index >= MAX_REQUESTS || index > requests.len() {
                return Err(ModelError::new(format!(
                    "the language model requested more than {MAX_REQUESTS} calls at once, or in no order"
                )));
            }
            if index == requests.len() {
                requests.push(RequestedCall::default());
            }
            let request = &mut requests[index];
            if let Some(id) = part.id.filter(|id| !id.is_empty()) {
                request.id = id;
            }
            request.name.push_str(part.function.name.as_deref().unwrap_or_default());
            request.arguments.push_str(part.function.arguments.as_deref().unwrap_or_default());
        }
        Ok(())
    }

    /// Returns the reply once it is complete.
    pub(super) fn finish(mut self) -> Result<ChatReply, ModelError> {
        if !self.has_choice {
            return Err(ModelError::new("the language model sent no message"));
        }
        for (index, request) in self.reply.requests.iter_mut().enumerate() {
            // Some endpoints leave out the ids, which results have to name.
            if request.id.is_empty() {
                request.id = format!("call_{index}");
            }
        }
        Ok(self.reply)
    }
}

fn unreadable(error: serde_json::Error) -> ModelError {
    ModelError::new("the reply of the language model is not a chat completion").caused_by(error)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    fn check(parts: &[&str]) -> String {
        let mut builder = ReplyBuilder::new(400);
        let added = parts.iter().try_for_each(|part| builder.add(part.as_bytes()));
        match added.and_then(|()| builder.finish()) {
            Ok(ChatReply { text, requests, usage }) => {
                let requests = requests
                    .iter()
                    .map(|RequestedCall { id, name, arguments }| format!(" {id}:{name}({arguments})"));
                let usage =
                    usage.map(|usage| format!(" {}/{}", usage.input, usage.output)).unwrap_or_default();
                format!("{text}{}{usage}", requests.collect::<String>())
            }
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn streamed_replies() {
        let call = |index: &str, id: &str, name: &str, arguments: &str| {
            format!(
                r#"{{"choices":[{{"delta":{{"tool_calls":[{{{index}{id}"function":{{"name":"{name}","arguments":"{arguments}"}}}}]}}}}]}}"#
            )
        };
        let first = call(r#""index":0,"#, r#""id":"a","#, "add", "{");
        let rest = call(r#""index":0,"#, "", "", "}");
        let second = call("", r#""id":"b","#, "sub", "");
        let far = call(r#""index":9,"#, "", "x", "");
        assert_snapshot!([
            check(&[r#"{"choices":[{"delta":{"role":"assistant","content":"Hel"}}]}"#, r#"{"choices":[{"delta":{"content":"lo"}}]}"#]),
            check(&[&first, &rest, &second]),
            check(&[&call("", "", "add", "{}")]),
            check(&[r#"{"choices":[{"delta":{"content":null}}]}"#, r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}"#]),
            check(&[]),
            check(&[&far]),
            check(&["nonsense"]),
            check(&[r#"{"error":{"message":"secret"}}"#]),
            check(&[&format!(r#"{{"choices":[{{"delta":{{"content":"{}"}}}}]}}"#, "x".repeat(400))]),
        ].join("\n"), @"
        Hello
         a:add({}) b:sub()
         call_0:add({})
         3/2
        error: the language model sent no message
        error: the language model requested more than 16 calls at once, or in no order
        error: the reply of the language model is not a chat completion
        error: the language model reported an error in the middle of its reply
        error: the reply of the language model is too long
        ");
    }

    #[test]
    fn whole_replies() {
        let check = |text: &str| match WholeReply::parse(text.as_bytes()) {
            Ok(reply) => format!("{} {:?}", reply.text, reply.usage.map(|usage| usage.cost)),
            Err(error) => format!("error: {error}"),
        };
        assert_snapshot!([
            check(r#"{"choices":[{"message":{"role":"assistant","content":"Hi"}}],"usage":{"cost":0.5}}"#),
            check(r#"{"choices":[]}"#),
            check(r#"{"choices":7}"#),
        ].join("\n"), @"
        Hi Some(Some(0.5))
        error: the language model sent no message
        error: the reply of the language model is not a chat completion
        ");
    }
}
