//! Questions to the client while its call runs.

use std::time::Duration;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use toolyard_core::InputRequestError;

use super::Context;
use crate::elicit::{ElicitRequest, ElicitResult, form};
use crate::input_required::{BadAnswer, BadQuestion, ClientQuestion, RequiredCapability};
use crate::roots::{Root, RootsRequest};
use crate::sample::{SampleRequest, SampleResult};

impl Context {
    /// True if the user can be asked with [`Context::elicit`]. URL elicitation is a separate capability: see
    /// [`Context::can_elicit_url`].
    ///
    /// ```
    /// # use toolyard_sdk::{Context, ElicitResult};
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct Consent { delete: bool }
    /// async fn may_delete(ctx: &Context) -> bool {
    ///     ctx.can_elicit()
    ///         && matches!(ctx.elicit("Really?").await, Ok(ElicitResult::Accepted(Consent { delete: true })))
    /// }
    /// ```
    #[must_use]
    pub fn can_elicit(&self) -> bool {
        self.can(RequiredCapability::Form)
    }

    /// True if the user can be asked with [`Context::elicit_url`].
    ///
    /// ```
    /// # use toolyard_sdk::Context;
    /// # fn work(ctx: &Context) {
    /// if !ctx.can_elicit_url() {
    ///     ctx.warning("sign in by yourself, please");
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn can_elicit_url(&self) -> bool {
        self.can(RequiredCapability::Url)
    }

    /// True if the client's model can be asked with [`Context::sample`].
    ///
    /// ```
    /// # use toolyard_sdk::Context;
    /// # fn work(ctx: &Context) {
    /// let summary = if ctx.can_sample() { "long" } else { "short" };
    /// # }
    /// ```
    #[must_use]
    pub fn can_sample(&self) -> bool {
        self.can(RequiredCapability::Sample)
    }

    /// True if the client can be asked with [`Context::roots`].
    ///
    /// ```
    /// # use toolyard_sdk::Context;
    /// # fn work(ctx: &Context) {
    /// let everywhere = !ctx.can_list_roots();
    /// # }
    /// ```
    #[must_use]
    pub fn can_list_roots(&self) -> bool {
        self.can(RequiredCapability::Roots)
    }

    pub(crate) fn can(&self, need: RequiredCapability) -> bool {
        need.met_by(self.call().client.capabilities())
    }

    /// Asks the user to fill in a form with the fields of `T`, which must be strings, numbers, booleans or choices
    /// ([`ElicitRequest::form`] describes them). Never ask for passwords or keys in this way; use
    /// [`Context::elicit_url`].
    ///
    /// # Errors
    /// If the client does not support it, or its answer does not fit `T`. A form that MCP does not allow is refused
    /// before anything is sent.
    ///
    /// ```
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    /// use toolyard_sdk::{Context, ElicitResult, ToolFailure};
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Guest {
    ///     /// How shall we call you?
    ///     name: String,
    ///     age: Option<u8>,
    /// }
    ///
    /// async fn greet(ctx: Context) -> Result<String, ToolFailure> {
    ///     match ctx.elicit::<Guest>("What is your name?").await? {
    ///         ElicitResult::Accepted(guest) => Ok(format!("Hello, {}!", guest.name)),
    ///         ElicitResult::Declined | ElicitResult::Cancelled => Ok("Hello, stranger.".to_owned()),
    ///     }
    /// }
    /// ```
    pub async fn elicit<T>(&self, message: impl Into<String>) -> Result<ElicitResult<T>, InputRequestError>
    where
        T: DeserializeOwned + JsonSchema,
    {
        let answer = self.ask(ElicitRequest::form::<T>(message)).await?;
        answer.parse().map_err(bad_answer)
    }

    /// Asks the user to open a URL, for data that must not pass through the client: signing in, paying, entering a key.
    /// An accepted request means that the user agreed to open the URL, not that the work there is done. The URL must
    /// not contain secrets, and the page must verify that its visitor is the same user (MCP,
    /// client/elicitation, safe URL handling and phishing).
    ///
    /// # Errors
    /// If the client does not support it, or does not answer.
    ///
    /// ```
    /// # use toolyard_sdk::{Context, ElicitResult, ToolFailure};
    /// async fn connect(ctx: Context) -> Result<String, ToolFailure> {
    ///     let answer = ctx.elicit_url("Sign in to the calendar.", "https://example.com/connect").await?;
    ///     Ok(match answer {
    ///         ElicitResult::Accepted(()) => "Call me again when you are done.".to_owned(),
    ///         _ => "Then not.".to_owned(),
    ///     })
    /// }
    /// ```
    pub async fn elicit_url(
        &self,
        message: impl Into<String>,
        url: impl Into<String>,
    ) -> Result<ElicitResult<()>, InputRequestError> {
        // Sealing an empty state never gives the same text twice, and the id has to be unique.
        let id = self.shared().sealer.seal(b"elicitation", b"", Duration::ZERO);
        Ok(self.ask(ElicitRequest::url(message, url, id)).await?.map(|_| ()))
    }

    /// Asks the client's model.
    ///
    /// # Errors
    /// If the client does not support it, or its user refuses.
    ///
    /// ```
    /// # use toolyard_sdk::{Context, SampleRequest, ToolFailure};
    /// async fn summarize(ctx: Context) -> Result<String, ToolFailure> {
    ///     let question = SampleRequest::new().user("Say it in one sentence: ...").max_tokens(100);
    ///     Ok(ctx.sample(question).await?.text())
    /// }
    /// ```
    pub async fn sample(&self, request: SampleRequest) -> Result<SampleResult, InputRequestError> {
        self.ask(request).await
    }

    /// Asks the client for the folders that servers may work on.
    ///
    /// # Errors
    /// If the client does not support it, or does not answer.
    ///
    /// ```
    /// # use toolyard_sdk::{Context, ToolFailure};
    /// async fn folders(ctx: Context) -> Result<String, ToolFailure> {
    ///     let roots = ctx.roots().await?;
    ///     Ok(roots.into_iter().map(|root| root.uri).collect::<Vec<_>>().join("\n"))
    /// }
    /// ```
    pub async fn roots(&self) -> Result<Vec<Root>, InputRequestError> {
        self.ask(RootsRequest).await
    }

    /// Asks the client any question and waits for the answer. The deadline of the call is suspended meanwhile. Clients
    /// of revision 2026-07-28 are asked too, although their requests are not open meanwhile; servers that serve those
    /// from several processes should return [`crate::InputRequired`] instead.
    ///
    /// # Errors
    /// As for [`Context::elicit`].
    ///
    /// ```
    /// # use toolyard_sdk::{Context, ElicitRequest, ToolFailure};
    /// # use serde_json::json;
    /// async fn ask(ctx: Context) -> Result<String, ToolFailure> {
    ///     let schema = json!({"type": "object", "properties": {"size": {"type": "string", "enum": ["S", "M"]}}});
    ///     let answer = ctx.ask(ElicitRequest::form_with_schema("Which size?", schema)).await?;
    ///     Ok(format!("{}: {}", answer.action(), answer.accepted().unwrap_or_default()))
    /// }
    /// ```
    pub async fn ask<Q: ClientQuestion>(&self, question: Q) -> Result<Q::Answer, InputRequestError> {
        let prepared =
            question.prepare().map_err(|BadQuestion(problem)| InputRequestError::BadQuestion(problem))?;
        if !self.can(prepared.need) {
            return Err(InputRequestError::Unsupported(prepared.ask.required()));
        }
        let form = prepared.ask.params.get("requestedSchema").cloned();
        let answer = self.call().client.ask(prepared.ask).await?;
        if let Some(form) = form {
            form::check(&form.to_value(), &answer).map_err(bad_answer)?;
        }
        Q::read(&answer).map_err(bad_answer)
    }
}

fn bad_answer(BadAnswer(problem): BadAnswer) -> InputRequestError {
    InputRequestError::BadAnswer(problem)
}
