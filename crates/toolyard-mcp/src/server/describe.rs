//! What the server says of itself.

use bytes::Bytes;
use serde_json::{Map, Value, json};
use toolyard_core::{CacheHint, CacheScope, Json, Object};

use super::{Answer, Offers, ServerInfo, TaskOffer};
use crate::wire::{Revision, RpcError, meta};

/// What is written once.
pub(super) struct Described {
    info: Json,
    instructions: Option<Json>,
    offers: Offers,
    /// What follows a list.
    rest: Rest,
    /// The same, where the list is not the same for everybody.
    own_rest: Rest,
    discovered: Bytes,
}

/// What follows a list of the modern era, up to its end.
struct Rest {
    /// What it says of how long the list may be kept.
    hint: CacheHint,
    written: Bytes,
}

/// Size of a client's capabilities, in bytes.
const MOST_DECLARED: usize = 64 * 1024;

impl Described {
    pub(super) fn new(info: &ServerInfo, offers: Offers, cache: CacheHint) -> Self {
        let instructions = info.instructions.as_deref().map(Json::string);
        let info = describe(info);
        let rest = Rest::new(&info, cache);
        let own_rest = Rest::new(&info, CacheHint { scope: CacheScope::Private, ..cache });
        // It does not come from the servers behind the gateway, and is the same for everybody.
        let discovered = discovered(offers, &instructions, cache_members(&info, cache));
        Self { info, instructions, offers, rest, own_rest, discovered }
    }

    /// What follows a list of the modern era, up to its end. `said` is how long its parts may be kept; one that `is_own`
    /// is not the same for everybody.
    pub(super) fn list_rest(&self, said: Option<CacheHint>, is_own: bool) -> Bytes {
        let rest = if is_own { &self.own_rest } else { &self.rest };
        match said.map_or(rest.hint, |said| rest.hint.and(said)) {
            hint if hint == rest.hint => rest.written.clone(),
            hint => Rest::new(&self.info, hint).written,
        }
    }

    /// The result of `server/discover`.
    pub(super) fn discover(&self) -> Vec<Bytes> {
        vec![self.discovered.clone()]
    }

    /// The result of `initialize`.
    pub(super) fn initialize(&self, params: &Object) -> Answer {
        let Some(requested) = params.get_str("protocolVersion") else {
            return Err(RpcError::invalid_params("`params.protocolVersion` is not a string"));
        };
        // They are remembered as long as the client is.
        if params.get("capabilities").is_some_and(|declared| declared.as_bytes().len() > MOST_DECLARED) {
            return Err(RpcError::invalid_params("`params.capabilities` is larger than 65536 bytes"));
        }
        let result = Object::new()
            .with("protocolVersion", Json::string(Revision::negotiate(&requested).as_str()))
            .with("capabilities", legacy_capabilities(self.offers))
            .with("serverInfo", self.info.clone());
        Ok(vec![with_instructions(result, &self.instructions).to_json().bytes()])
    }
}

impl Rest {
    /// The members stand behind others: a comma takes the place of the opening brace.
    fn new(info: &Json, hint: CacheHint) -> Self {
        let members = cache_members(info, hint).to_json().bytes();
        Self { hint, written: [b",", &members[1..]].concat().into() }
    }
}

fn discovered(offers: Offers, instructions: &Option<Json>, hint: Object) -> Bytes {
    let versions = Revision::ALL.iter().rev().map(|revision| Json::string(revision.as_str()));
    let result = Object::new()
        .with("supportedVersions", Json::array(&versions.collect::<Vec<_>>()))
        .with("capabilities", modern_capabilities(offers));
    let result = with_instructions(result, instructions);
    let hinted = hint.iter().fold(result, |result, (name, value)| result.with(&name, value.clone()));
    hinted.to_json().bytes()
}

fn with_instructions(result: Object, instructions: &Option<Json>) -> Object {
    instructions.iter().fold(result, |result, text| result.with("instructions", text.clone()))
}

fn describe(info: &ServerInfo) -> Json {
    let description = Object::new().with("name", Json::string(&info.name));
    let title = info.title.iter();
    let description = title.fold(description, |object, title| object.with("title", Json::string(title)));
    description.with("version", Json::string(&info.version)).to_json()
}

/// What a result of the modern era says that a client may keep for a while.
fn cache_members(info: &Json, cache: CacheHint) -> Object {
    let scope = match cache.scope {
        CacheScope::Public => "public",
        CacheScope::Private => "private",
    };
    let meta = Object::new().with(meta::SERVER_INFO, info.clone());
    Object::new()
        .with("ttlMs", Json::unsigned(u64::try_from(cache.ttl.as_millis()).unwrap_or(u64::MAX)))
        .with("cacheScope", Json::string(scope))
        .with("resultType", Json::string("complete"))
        .with("_meta", meta.to_json())
}

fn legacy_capabilities(offers: Offers) -> Json {
    Json::from_value(&Value::Object(common_capabilities(offers)))
}

fn modern_capabilities(offers: Offers) -> Json {
    let mut capabilities = common_capabilities(offers);
    if offers.tasks != TaskOffer::Never {
        capabilities.insert("extensions".to_owned(), json!({meta::TASKS: {}}));
    }
    Json::from_value(&Value::Object(capabilities))
}

fn common_capabilities(offers: Offers) -> Map<String, Value> {
    let each = [
        ("tools", offers.tools, json!({"listChanged": true})),
        ("prompts", offers.prompts, json!({"listChanged": true})),
        ("resources", offers.resources, json!({"subscribe": true, "listChanged": true})),
        ("completions", offers.completions, json!({})),
        ("logging", offers.logging, json!({})),
    ];
    let offered = each.into_iter().filter(|(_, offered, _)| *offered);
    offered.map(|(name, _, value)| (name.to_owned(), value)).collect()
}
