//! Settings of tools that a server has: where their descriptors are, and which methods become tools.

use std::{path::PathBuf, time::Duration};

use crate::{cursor::ValueCursor, fields::ObjectFields, formats};

/// The fields of `grpcConfig` for tools that are discovered.
pub(super) const FIELDS: &[&str] = &["descriptorSet", "filter", "refresh", "stream"];

/// Default time between two reads of the descriptors. Services change when they are deployed.
const DEFAULT_REFRESH: Duration = Duration::from_secs(5 * 60);

/// The tools that a server has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrpcDiscovery {
    /// `descriptorSet`: a file with a `FileDescriptorSet`. `None`: the server's
    /// reflection, or its list of tools.
    pub descriptor_set: Option<PathBuf>,
    /// `filter`: the methods that become tools.
    pub filter: GrpcFilter,
    /// `refresh`: time between two reads. Default: 5 min; `None`: on request, and after a closed connection.
    pub refresh: Option<Duration>,
    /// `stream`: bounds of the messages of a stream.
    pub stream: GrpcStreamBounds,
}

/// The methods that become tools: those that match every non-empty list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrpcFilter {
    /// `filter.services`: by the full name of their service. `*` matches anything but a dot, `**` matches anything.
    pub services: Vec<String>,
    /// `filter.methods`: by their name, or the full name with their service, likewise.
    pub methods: Vec<String>,
}

/// Bounds of the messages of a stream that a result has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrpcStreamBounds {
    /// `maxMessages`: the number of messages. Default: 1000.
    pub messages: usize,
    /// `maxBytes`: the size of all messages as JSON. Default: 1 MiB.
    pub bytes: usize,
}

impl Default for GrpcStreamBounds {
    fn default() -> Self {
        Self { messages: 1000, bytes: 1 << 20 }
    }
}

impl Default for GrpcDiscovery {
    fn default() -> Self {
        let (filter, stream) = (GrpcFilter::default(), GrpcStreamBounds::default());
        Self { descriptor_set: None, filter, refresh: Some(DEFAULT_REFRESH), stream }
    }
}

impl GrpcDiscovery {
    /// Reads the fields.
    pub(super) fn read(fields: &mut ObjectFields<'_>) -> Self {
        let file = |cursor: ValueCursor<'_>| Some(cursor.resolve_path(&cursor.clone().parse(formats::file)?));
        let refresh = fields.with_default("refresh", ValueCursor::duration, DEFAULT_REFRESH);
        Self {
            descriptor_set: fields.optional("descriptorSet", file),
            filter: fields.with_default("filter", filter, GrpcFilter::default()),
            refresh: (!refresh.is_zero()).then_some(refresh),
            stream: fields.with_default("stream", stream, GrpcStreamBounds::default()),
        }
    }
}

fn filter(cursor: ValueCursor<'_>) -> Option<GrpcFilter> {
    let patterns = |cursor: ValueCursor<'_>| cursor.non_empty_list(|item| item.parse(formats::service_glob));
    let mut fields = cursor.fields()?;
    let filter = GrpcFilter {
        services: fields.with_default("services", patterns, Vec::new()),
        methods: fields.with_default("methods", patterns, Vec::new()),
    };
    fields.finish();
    Some(filter)
}

fn stream(cursor: ValueCursor<'_>) -> Option<GrpcStreamBounds> {
    let default = GrpcStreamBounds::default();
    let mut fields = cursor.fields()?;
    let bounds = GrpcStreamBounds {
        messages: fields.with_default("maxMessages", ValueCursor::count, default.messages),
        bytes: fields.with_default("maxBytes", |cursor| cursor.size(1024), default.bytes),
    };
    fields.finish();
    Some(bounds)
}
