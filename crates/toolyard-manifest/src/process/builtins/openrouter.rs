//! The section `builtins.openRouter`.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    cursor::ValueCursor,
    field_type::{CountField, FieldType, SizeField, TextField, TimeoutField},
    formats::{self, EndpointUrl, FormatError},
    handler::{CredentialSource, auth},
    object_schema::{ObjectSchema, SchemaDefinitions},
    section::{Section, section},
};

/// The public API, as the vendor documents it.
const PUBLIC_API: &str = "https://openrouter.ai/api/v1";

/// With less the details of a single generation do not fit.
const MIN_RESPONSE_BYTES: usize = 64 << 10;

section! {
    /// Account information of OpenRouter, for reading only.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct OpenRouterSettings: Default = "openRouter" {
        /// Base URL of the API. Default: `https://openrouter.ai/api/v1`.
        pub base_url: EndpointUrl = "baseURL",
            TextField::new(formats::api_base_url)
                .secret()
                .pattern("^[hH][tT][tT][pP][sS]?://[^/?#@]+(/[^?#]*)?$")
                .examples(&["https://openrouter.example.com/api/v1"]),
            described EndpointUrl::of_literal(PUBLIC_API);
        /// Time limit of a call.
        pub timeout: Duration = "timeout", TimeoutField, default Duration::from_secs(30);
        /// Maximum size of a response, at least 64 KiB.
        ///
        /// The list of all models has about 1 MiB.
        pub response_bytes: usize = "responseBytes", SizeField(MIN_RESPONSE_BYTES), default 8 << 20;
        /// Maximum number of concurrent requests; further calls wait within their time limit.
        pub concurrent: usize = "concurrent", CountField, default 8;
    } + {
        /// `apiKey` or `apiKeySecretRef`: the key of requests. `None` is valid outside of documents only.
        pub api_key: Option<CredentialSource>,
    }
}

impl OpenRouterSettings {
    /// Parses a base URL, which has no query.
    ///
    /// # Errors
    /// If the text is no such URL.
    pub fn parse_base_url(text: &str) -> Result<EndpointUrl, FormatError> {
        formats::api_base_url(text)
    }
}

/// The section with the fields of the key, which are alternatives.
pub(super) struct OpenRouterField;

impl FieldType for OpenRouterField {
    type Value = OpenRouterSettings;

    fn read(&self, cursor: ValueCursor<'_>) -> Option<OpenRouterSettings> {
        let mut fields = cursor.fields()?;
        let settings = OpenRouterSettings::read(&mut fields);
        let api_key = auth::secret(&mut fields, "apiKey", "apiKeySecretRef", formats::token);
        fields.finish();
        Some(OpenRouterSettings { api_key: Some(api_key?), ..settings? })
    }

    fn schema(&self, definitions: &mut SchemaDefinitions) -> Value {
        let reference = definitions.object("secretRef", describe_secret);
        definitions.object(OpenRouterSettings::NAME, |object| {
            let one = ["apiKey", "apiKeySecretRef"].map(|name| json!({"required": [name]}));
            object.constrain("oneOf", json!(one));
            object.property("apiKey", json!({"description": API_KEY, "type": "string", "minLength": 1}));
            let mut secret =
                json!({"description": "A secret in the folder `secretsDir`, instead of `apiKey`."});
            secret["$ref"] = reference["$ref"].clone();
            object.property("apiKeySecretRef", secret);
            OpenRouterSettings::describe(object);
        })
    }
}

const API_KEY: &str = "API key. `get_credits`, `list_api_keys` and `get_api_key` need a management key. `file:PATH` is a \
    file that is read at each call, so that it can be replaced.";

fn describe_secret(object: &mut ObjectSchema<'_>) {
    for (name, description) in [
        ("name", "Name of the secret: a folder."),
        ("key", "Key in the secret: a file, which is read at each call."),
    ] {
        object.require(name);
        let pattern = r"\$\{|^[A-Za-z0-9_-][A-Za-z0-9_.-]*$";
        object.property(name, json!({"description": description, "type": "string", "pattern": pattern}));
    }
}
