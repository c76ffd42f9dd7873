//! Items of a catalog beside tools: prompts, resources, and templates of resources.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::json::{Json, JsonError, Object};
use crate::uri_template::{InvalidTemplate, UriTemplate};

/// An item as its server publishes it: its key, and the whole definition as it arrived.
#[derive(Debug, PartialEq, Eq)]
pub struct PublishedItem<Kind> {
    /// Key of the item.
    pub key: Arc<str>,
    /// The definition.
    pub definition: Object,
    kind: PhantomData<Kind>,
}

/// A prompt. Its key is its name.
pub type Prompt = PublishedItem<PromptKind>;

/// A resource. Its key is its URI.
pub type Resource = PublishedItem<ResourceKind>;

/// Marks a [`Prompt`].
#[derive(Debug, PartialEq, Eq)]
pub enum PromptKind {}

/// Marks a [`Resource`].
#[derive(Debug, PartialEq, Eq)]
pub enum ResourceKind {}

/// The member of a definition that is its key.
pub trait KeyedItem {
    /// Name of the member.
    const MEMBER: &'static str;
}

impl KeyedItem for PromptKind {
    const MEMBER: &'static str = "name";
}

impl KeyedItem for ResourceKind {
    const MEMBER: &'static str = "uri";
}

/// The reason why a definition is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidItem {
    /// Not an object, or not JSON.
    #[error("the definition is not an object: {0}")]
    NotAnObject(#[from] JsonError),
    /// The key is missing.
    #[error("the definition has no `{0}`")]
    NoKey(&'static str),
    /// The URI template is invalid.
    #[error(transparent)]
    Template(#[from] InvalidTemplate),
}

impl<Kind: KeyedItem> PublishedItem<Kind> {
    /// Parses a definition.
    ///
    /// # Errors
    /// If it is not an object, or its key is missing.
    pub fn from_definition(definition: &Json) -> Result<Self, InvalidItem> {
        let (key, definition) = keyed(definition, Kind::MEMBER)?;
        Ok(Self { key, definition, kind: PhantomData })
    }
}

/// Returns the key and the members of a definition, in a buffer of their own.
pub(crate) fn keyed(definition: &Json, member: &'static str) -> Result<(Arc<str>, Object), InvalidItem> {
    let definition = definition.detach().to_object()?;
    let key = definition.get_str(member).filter(|key| !key.is_empty()).ok_or(InvalidItem::NoKey(member))?;
    Ok((key.into(), definition))
}

/// A template of resources.
#[derive(Debug)]
pub struct PublishedTemplate {
    /// The parsed template of URIs.
    pub uri: UriTemplate,
    /// The whole definition as it arrived.
    pub definition: Object,
}

/// The URI template is part of the definition.
impl PartialEq for PublishedTemplate {
    fn eq(&self, other: &Self) -> bool {
        self.definition == other.definition
    }
}

impl Eq for PublishedTemplate {}

impl PublishedTemplate {
    /// Parses a definition.
    ///
    /// # Errors
    /// If it is not an object with a `uriTemplate`.
    pub fn from_definition(definition: &Json) -> Result<Self, InvalidItem> {
        let (text, definition) = keyed(definition, "uriTemplate")?;
        Ok(Self { uri: UriTemplate::parse(&text)?, definition })
    }
}
