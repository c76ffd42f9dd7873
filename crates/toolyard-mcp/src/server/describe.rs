//! The description of the server.

use bytes::Bytes;
use serde_json::{Map, Value, json};
use toolyard_core::{CacheHint, CacheScope, Caller, Json, Object};

use super::{InstructionSource, McpAnswer, OfferedFeatures, ServerInfo, TaskOffer};
use crate::wire::{ProtocolRevision, RpcError, meta};

/// Serialized parts of results that never change.
pub(super) struct ServerDescription {
    info: Json,
    instructions: Option<Json>,
    offers: OfferedFeatures,
    /// The end of a list result.
    suffix: ListSuffix,
    /// The same, for lists that differ between callers.
    private_suffix: ListSuffix,
    discovery: Bytes,
    cache: CacheHint,
    /// Instructions of each caller, if they differ.
    of_callers: Option<InstructionSource>,
}

/// The members after a list of the modern era, up to the end of the result.
struct ListSuffix {
    /// The cache hint that it contains.
    hint: CacheHint,
    bytes: Bytes,
}

/// Maximum size of a client's capabilities in bytes.
const MAX_CAPABILITIES_BYTES: usize = 64 * 1024;

impl ServerDescription {
    pub(super) fn new(
        info: &ServerInfo,
        offers: OfferedFeatures,
        cache: CacheHint,
        of_callers: Option<InstructionSource>,
    ) -> Self {
        let instructions = info.instructions.as_deref().map(Json::string);
        let info = info_json(info);
        let suffix = ListSuffix::new(&info, cache);
        let private_suffix = ListSuffix::new(&info, CacheHint { scope: CacheScope::Private, ..cache });
        // The gateway generates the result itself; it is the same for all callers, except for their instructions.
        let discovery = discovery(offers, &instructions, cache_members(&info, cache));
        Self { info, instructions, offers, suffix, private_suffix, discovery, cache, of_callers }
    }

    /// Returns the instructions for the model of a caller.
    fn instructions_of(&self, caller: &Caller) -> Option<Json> {
        match &self.of_callers {
            Some(InstructionSource(of)) => of(caller).as_deref().map(Json::string),
            None => self.instructions.clone(),
        }
    }

    /// Returns the end of a list result of the modern era. `said` is the combined cache hint of the parts of the list;
    /// `is_own` is true for a list that differs between callers.
    pub(super) fn list_suffix(&self, hint: Option<CacheHint>, is_own: bool) -> Bytes {
        let suffix = if is_own { &self.private_suffix } else { &self.suffix };
        match hint.map_or(suffix.hint, |hint| suffix.hint.and(hint)) {
            hint if hint == suffix.hint => suffix.bytes.clone(),
            hint => ListSuffix::new(&self.info, hint).bytes,
        }
    }

    /// Returns the result of `server/discover`.
    pub(super) fn discover_result(&self, caller: &Caller) -> Vec<Bytes> {
        if self.of_callers.is_none() {
            return vec![self.discovery.clone()];
        }
        // Keys may differ in the tools that the instructions name.
        let scope = if caller.grant.is_some() { CacheScope::Private } else { self.cache.scope };
        let members = cache_members(&self.info, CacheHint { scope, ..self.cache });
        vec![discovery(self.offers, &self.instructions_of(caller), members)]
    }

    /// Returns the result of `initialize`.
    pub(super) fn initialize_result(&self, params: &Object, caller: &Caller) -> McpAnswer {
        let Some(requested) = params.get_str("protocolVersion") else {
            return Err(RpcError::invalid_params("`params.protocolVersion` is not a string"));
        };
        // The capabilities are stored as long as the session exists.
        if params
            .get("capabilities")
            .is_some_and(|declared| declared.as_bytes().len() > MAX_CAPABILITIES_BYTES)
        {
            return Err(RpcError::invalid_params("`params.capabilities` is larger than 65536 bytes"));
        }
        let result = Object::new()
            .with("protocolVersion", Json::string(ProtocolRevision::negotiate(&requested).as_str()))
            .with("capabilities", legacy_capabilities(self.offers))
            .with("serverInfo", self.info.clone());
        Ok(vec![with_instructions(result, &self.instructions_of(caller)).to_json().bytes()])
    }
}

impl ListSuffix {
    /// The members follow others, so that a comma replaces the opening brace.
    fn new(info: &Json, hint: CacheHint) -> Self {
        let members = cache_members(info, hint).to_json().bytes();
        Self { hint, bytes: [b",", &members[1..]].concat().into() }
    }
}

fn discovery(offers: OfferedFeatures, instructions: &Option<Json>, hint: Object) -> Bytes {
    let versions = ProtocolRevision::ALL.iter().rev().map(|revision| Json::string(revision.as_str()));
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

fn info_json(info: &ServerInfo) -> Json {
    let description = Object::new().with("name", Json::string(&info.name));
    let title = info.title.iter();
    let description = title.fold(description, |object, title| object.with("title", Json::string(title)));
    description.with("version", Json::string(&info.version)).to_json()
}

/// Returns the members of a cacheable result of the modern era.
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

fn legacy_capabilities(offers: OfferedFeatures) -> Json {
    Json::from_value(&Value::Object(common_capabilities(offers)))
}

fn modern_capabilities(offers: OfferedFeatures) -> Json {
    let mut capabilities = common_capabilities(offers);
    if offers.tasks != TaskOffer::Never {
        capabilities.insert("extensions".to_owned(), json!({meta::TASKS: {}}));
    }
    Json::from_value(&Value::Object(capabilities))
}

fn common_capabilities(offers: OfferedFeatures) -> Map<String, Value> {
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
