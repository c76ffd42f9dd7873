//! The section `builtins.results`.

use std::time::Duration;

use serde_json::{Value, json};
use toolyard_core::output_schema::OutputSchemaMode;

use crate::{
    cursor::{KeywordChoice, ValueCursor},
    field_type::{CountField, CustomField, FieldType, KeywordField, TimeoutField},
    formats,
    object_schema::SchemaDefinitions,
    section::{nested, section},
};

section! {
    /// Treatment of results that are too large for a model.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ResultSettings: Default = "results" {
        /// Length above which a result is large, in characters, unless its tool, its caller or its model has its own
        /// threshold.
        pub threshold: usize = "threshold", CountField, default 64_000;
        /// Minimum length of a chunk if the threshold is lower, in characters.
        ///
        /// Few long chunks take fewer calls to read.
        pub least_chunk: usize = "leastChunk", CountField, default 20_000;
        /// Maximum number of chunks with one section each; beyond it several sections share a chunk.
        pub most_chunks: usize = "mostChunks", CountField, default 100;
        /// Output schemas of tools whose results may be large: `extend` also allows a reference to the stored result,
        /// `withdraw` lists the tools without their schemas, and `keep` lists them unchanged, so that structured
        /// content passes at any length; long texts beside it are stored. `chunk` of a tool or a handler takes precedence: `true` withdraws, `false` keeps.
        pub output_schemas: OutputSchemaMode = "outputSchemas", KeywordField(&OUTPUT_SCHEMAS),
            default OutputSchemaMode::Extend;
        /// Lifetime of chunks.
        pub ttl: Duration = "ttl", TimeoutField, default Duration::from_secs(20 * 60);
        /// Time limit for saving chunks; after it the result is truncated.
        pub store_time: Duration = "storeTime", TimeoutField, default Duration::from_secs(10);
        /// Thresholds of models, by the id that requests send in `_meta` as `toolyard/model`, or a prefix of it.
        pub models: Vec<(String, usize)> = "models", CustomField { read: models, schema: models_schema },
            described Vec::new();
    }
}

const OUTPUT_SCHEMAS: KeywordChoice<OutputSchemaMode> = KeywordChoice {
    noun: "treatment of output schemas",
    words: &[
        ("extend", OutputSchemaMode::Extend),
        ("withdraw", OutputSchemaMode::Withdraw),
        ("keep", OutputSchemaMode::Keep),
    ],
    unsupported: &[],
};

section! {
    /// Settings of one model.
    struct ModelResults = "modelResults" {
        /// Length above which a result is large, in characters.
        threshold: usize = "threshold", CountField, required;
    }
}

fn models(cursor: ValueCursor<'_>) -> Option<Vec<(String, usize)>> {
    cursor.entries(formats::non_empty_name, |model| {
        nested::<ModelResults>().read(model).map(|results| results.threshold)
    })
}

fn models_schema(definitions: &mut SchemaDefinitions) -> Value {
    json!({
        "type": "object",
        "propertyNames": {"minLength": 1},
        "additionalProperties": nested::<ModelResults>().schema(definitions),
    })
}
