//! What else a backend offers beside tools: prompts, resources, and templates of resources; and what makes a
//! definition one.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::json::{Json, JsonError, Object};
use crate::uri_template::{BadTemplate, UriTemplate};

/// Something as its owner publishes it: what it is called by, and the whole definition as it came.
#[derive(Debug, PartialEq, Eq)]
pub struct Item<Kind> {
    /// What it is called by.
    pub key: Arc<str>,
    /// The definition.
    pub definition: Object,
    kind: PhantomData<Kind>,
}

/// A prompt. Its key is its name.
pub type Prompt = Item<PromptKind>;

/// A resource. Its key is its URI.
pub type Resource = Item<ResourceKind>;

/// Marks a [`Prompt`].
#[derive(Debug, PartialEq, Eq)]
pub enum PromptKind {}

/// Marks a [`Resource`].
#[derive(Debug, PartialEq, Eq)]
pub enum ResourceKind {}

/// What its definition calls it by.
pub trait Keyed {
    /// The member that is the key.
    const MEMBER: &'static str;
}

impl Keyed for PromptKind {
    const MEMBER: &'static str = "name";
}

impl Keyed for ResourceKind {
    const MEMBER: &'static str = "uri";
}

/// Why a definition is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadItem {
    /// Not an object, or not JSON.
    #[error("the definition is not an object: {0}")]
    NotAnObject(#[from] JsonError),
    /// Nothing to call it by.
    #[error("the definition has no `{0}`")]
    NoKey(&'static str),
    /// Its template is none.
    #[error(transparent)]
    Template(#[from] BadTemplate),
}

impl<Kind: Keyed> Item<Kind> {
    /// Reads a definition.
    ///
    /// # Errors
    /// When it is not an object, or says nothing to call it by.
    pub fn from_definition(definition: &Json) -> Result<Self, BadItem> {
        let (key, definition) = keyed(definition, Kind::MEMBER)?;
        Ok(Self { key, definition, kind: PhantomData })
    }
}

/// What a definition says it is called by, and its members, in a buffer of their own.
pub(crate) fn keyed(definition: &Json, member: &'static str) -> Result<(Arc<str>, Object), BadItem> {
    let definition = definition.detach().to_object()?;
    let key = definition.get_str(member).filter(|key| !key.is_empty()).ok_or(BadItem::NoKey(member))?;
    Ok((key.into(), definition))
}

/// A template of resources.
#[derive(Debug)]
pub struct Template {
    /// Which URIs it stands for.
    pub uri: UriTemplate,
    /// The whole definition, as it came.
    pub definition: Object,
}

/// What it stands for is part of the definition.
impl PartialEq for Template {
    fn eq(&self, other: &Self) -> bool {
        self.definition == other.definition
    }
}

impl Eq for Template {}

impl Template {
    /// Reads a definition.
    ///
    /// # Errors
    /// When it is not an object with a `uriTemplate`.
    pub fn from_definition(definition: &Json) -> Result<Self, BadItem> {
        let (text, definition) = keyed(definition, "uriTemplate")?;
        Ok(Self { uri: UriTemplate::parse(&text)?, definition })
    }
}
