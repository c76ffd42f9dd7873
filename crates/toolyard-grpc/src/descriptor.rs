//! Descriptors of services as tools; pure functions.
//!
//! [`ServiceTools`] makes a tool of each unary and each server-streaming method of a set of descriptors, and each
//! [`MethodTool`] converts arguments to messages and messages to results, by the proto3 JSON mapping. Descriptors are a
//! peer's text: their number, size and nesting are limited, and a fault in one affects the methods that need it.
//!
//! In suggested reading order: `raw` reads descriptors, `link` resolves their references to `types`, `schema` writes
//! schemas, `encode` and `decode` convert values.

mod any;
mod comments;
mod decode;
mod encode;
mod filter;
mod json_cursor;
mod link;
mod naming;
mod number;
mod raw;
mod reach;
mod schema;
#[cfg(test)]
mod tests;
mod time;
mod tools;
mod types;
pub(crate) mod wire;

use std::sync::Arc;

use bytes::Bytes;
use http::uri::PathAndQuery;
use prost::Message;
use prost_types::FileDescriptorProto;
use toolyard_core::Tool;

pub use self::decode::DecodeError;
pub(crate) use self::decode::{JsonText, MAX_JSON_BYTES, TextLimit};
pub use self::encode::ArgumentError;
pub use self::filter::MethodFilter;
use self::raw::RawReader;
pub(crate) use self::tools::REFLECTION;
use self::types::TypePool;

/// Maximum size of all descriptors, in bytes.
const MAX_DESCRIPTOR_BYTES: usize = 64 * 1024 * 1024;

/// The methods of services as tools.
#[derive(Debug, Default)]
pub struct ServiceTools {
    methods: Vec<MethodTool>,
    skipped: Vec<SkippedMethod>,
}

/// A method as a tool.
#[derive(Debug, Clone)]
pub struct MethodTool {
    tool: Arc<Tool>,
    path: PathAndQuery,
    types: Arc<TypePool>,
    input: u32,
    output: u32,
    is_server_streaming: bool,
}

/// A method that is no tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedMethod {
    name: String,
    reason: String,
}

impl SkippedMethod {
    /// Returns its full name, such as `package.Service/Method`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the reason.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// The reason why descriptors cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DescriptorError {
    /// The bytes are not descriptors.
    #[error("invalid descriptors: {0}")]
    Malformed(&'static str),
    /// There are more bytes than the limit.
    #[error("the descriptors are larger than 64 MiB")]
    TooLarge,
    /// There are more types, fields and methods than the limit.
    #[error("the descriptors have more than 500000 types, fields, values, methods and comments")]
    TooManyElements,
    /// Two files define the same name.
    #[error("the descriptors define `{0}` twice")]
    Duplicate(String),
}

impl ServiceTools {
    /// Reads a serialized `FileDescriptorSet`, as `protoc --include_imports --descriptor_set_out` and `buf build` write
    /// it. With `--include_source_info` its comments become descriptions.
    ///
    /// # Errors
    /// If the bytes are no descriptors, exceed a limit or define a name twice. Methods that cannot be used are
    /// [skipped](Self::skipped) instead.
    pub fn from_file_descriptor_set(bytes: &[u8], filter: &MethodFilter) -> Result<Self, DescriptorError> {
        if bytes.len() > MAX_DESCRIPTOR_BYTES {
            return Err(DescriptorError::TooLarge);
        }
        let mut reader = RawReader::new();
        let files = reader.file_set(bytes)?;
        tools::read(&mut reader, &files, filter)
    }

    /// Reads serialized `FileDescriptorProto`s, as server reflection delivers them: in any order, and some of them
    /// several times.
    ///
    /// # Errors
    /// As [`Self::from_file_descriptor_set`].
    pub fn from_encoded_files<B: AsRef<[u8]>>(
        files: &[B],
        filter: &MethodFilter,
    ) -> Result<Self, DescriptorError> {
        let files: Vec<&[u8]> = files.iter().map(AsRef::as_ref).collect();
        if files.iter().map(|file| file.len()).sum::<usize>() > MAX_DESCRIPTOR_BYTES {
            return Err(DescriptorError::TooLarge);
        }
        tools::read(&mut RawReader::new(), &files, filter)
    }

    /// Reads decoded descriptors, as [`Self::from_encoded_files`] reads serialized ones. The generated type has neither
    /// editions nor `google.api.field_behavior`, so their features and annotations are lost.
    ///
    /// # Errors
    /// As [`Self::from_file_descriptor_set`].
    pub fn from_file_descriptors(
        files: Vec<FileDescriptorProto>,
        filter: &MethodFilter,
    ) -> Result<Self, DescriptorError> {
        let files: Vec<_> = files.into_iter().map(|file| file.encode_to_vec()).collect();
        Self::from_encoded_files(&files, filter)
    }

    /// Returns the methods that are tools, in the order of the files.
    #[must_use]
    pub fn methods(&self) -> &[MethodTool] {
        &self.methods
    }

    /// Returns the methods that pass the filter but are no tools.
    #[must_use]
    pub fn skipped(&self) -> &[SkippedMethod] {
        &self.skipped
    }
}

impl MethodTool {
    /// Returns its tool. The tool accepts any object: [`Self::encode`] checks arguments, in each form that the mapping
    /// allows, while the published schema describes the usual form.
    #[must_use]
    pub const fn tool(&self) -> &Arc<Tool> {
        &self.tool
    }

    /// Returns the path of its requests, such as `/package.Service/Method`.
    #[must_use]
    pub const fn path(&self) -> &PathAndQuery {
        &self.path
    }

    /// Returns true if the response is a stream of messages.
    #[must_use]
    pub const fn is_server_streaming(&self) -> bool {
        self.is_server_streaming
    }

    /// Encodes arguments, an object as JSON text, as the message of a request. The text is one that
    /// [`toolyard_core::Json`] has parsed: its syntax is not checked again.
    ///
    /// # Errors
    /// If the arguments do not match the message type, with the location and the fault.
    pub fn encode(&self, arguments: &str) -> Result<Bytes, ArgumentError> {
        encode::encode(&self.types, self.input, arguments)
    }

    /// Decodes a message of a response as JSON, without fields that the descriptors do not have. An `Any` of an unknown
    /// type has the member `value` with its bytes in base64.
    ///
    /// # Errors
    /// If the bytes are not a message of this type, or have no representation in JSON.
    pub fn decode(&self, message: impl AsRef<[u8]>) -> Result<String, DecodeError> {
        decode::decode(&self.types, self.output, message.as_ref())
    }

    /// Decodes a message as [`Self::decode`] does, and appends the JSON to a text within its limits.
    ///
    /// # Errors
    /// As [`Self::decode`], or if the text exceeds a limit. Then it ends with a part of the message.
    pub(crate) fn decode_into(&self, message: &[u8], text: &mut JsonText) -> Result<(), DecodeError> {
        decode::decode_into(&self.types, self.output, message, text)
    }
}
