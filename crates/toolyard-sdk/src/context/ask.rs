//! Asking the client something while its call runs.

use std::time::Duration;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use toolyard_core::AskError;

use super::Context;
use crate::elicit::{Elicit, Elicited, form};
use crate::roots::{Root, RootsRequest};
use crate::rounds::{BadAnswer, BadQuestion, Need, Question};
use crate::sample::{Sample, SampleRequest};

impl Context {
    /// Whether the user can be asked with [`Context::elicit`]. Asking for an address to be opened is another
    /// matter: see [`Context::can_elicit_url`].
    ///
    /// ```
    /// # use toolyard_sdk::{Context, Elicited};
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct Consent { delete: bool }
    /// async fn may_delete(ctx: &Context) -> bool {
    ///     ctx.can_elicit()
    ///         && matches!(ctx.elicit("Really?").await, Ok(Elicited::Accepted(Consent { delete: true })))
    /// }
    /// ```
    #[must_use]
    pub fn can_elicit(&self) -> bool {
        self.can(Need::Form)
    }

    /// Whether the user can be asked with [`Context::elicit_url`].
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
        self.can(Need::Url)
    }

    /// Whether the client's model can be asked with [`Context::sample`].
    ///
    /// ```
    /// # use toolyard_sdk::Context;
    /// # fn work(ctx: &Context) {
    /// let summary = if ctx.can_sample() { "long" } else { "short" };
    /// # }
    /// ```
    #[must_use]
    pub fn can_sample(&self) -> bool {
        self.can(Need::Sample)
    }

    /// Whether the client can be asked with [`Context::roots`].
    ///
    /// ```
    /// # use toolyard_sdk::Context;
    /// # fn work(ctx: &Context) {
    /// let everywhere = !ctx.can_list_roots();
    /// # }
    /// ```
    #[must_use]
    pub fn can_list_roots(&self) -> bool {
        self.can(Need::Roots)
    }

    pub(crate) fn can(&self, need: Need) -> bool {
        need.met_by(self.call().client.capabilities())
    }

    /// Asks the user to fill in a form: the fields of `T`, which must be texts, numbers, booleans or choices
    /// ([`Elicit::form`] says how they look). Never ask for passwords or keys this way, but with
    /// [`Context::elicit_url`].
    ///
    /// # Errors
    /// When the client cannot be asked this, or gives no answer that fits `T`. A form that MCP does not allow
    /// is refused before anything is sent.
    ///
    /// ```
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    /// use toolyard_sdk::{Context, Elicited, ToolFailure};
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Guest {
    ///     /// How shall we call you?
    ///     name: String,
    ///     age: Option<u8>,
    /// }
    ///
    /// async fn greet(ctx: Context) -> Result<String, ToolFailure> {
    ///     match ctx.elicit::<Guest>("Who are you?").await? {
    ///         Elicited::Accepted(guest) => Ok(format!("Hello, {}!", guest.name)),
    ///         Elicited::Declined | Elicited::Cancelled => Ok("Hello, whoever you are.".to_owned()),
    ///     }
    /// }
    /// ```
    pub async fn elicit<T>(&self, message: impl Into<String>) -> Result<Elicited<T>, AskError>
    where
        T: DeserializeOwned + JsonSchema,
    {
        let answer = self.ask(Elicit::form::<T>(message)).await?;
        answer.parse().map_err(bad_answer)
    }

    /// Asks the user to open an address, for what must not pass through the client: signing in somewhere,
    /// paying, entering a key. That it is accepted means that the user agreed to open it, not that the work
    /// there is done. The address must not carry secrets, and the page has to make sure that who opens it is
    /// who was asked (MCP, client/elicitation, safe URL handling and phishing).
    ///
    /// # Errors
    /// When the client cannot be asked this, or gives no answer.
    ///
    /// ```
    /// # use toolyard_sdk::{Context, Elicited, ToolFailure};
    /// async fn connect(ctx: Context) -> Result<String, ToolFailure> {
    ///     let answer = ctx.elicit_url("Sign in to the calendar.", "https://example.com/connect").await?;
    ///     Ok(match answer {
    ///         Elicited::Accepted(()) => "Call me again when you are done.".to_owned(),
    ///         _ => "Then not.".to_owned(),
    ///     })
    /// }
    /// ```
    pub async fn elicit_url(
        &self,
        message: impl Into<String>,
        url: impl Into<String>,
    ) -> Result<Elicited<()>, AskError> {
        // A sealed nothing is never the same twice, which is what the id has to be.
        let id = self.shared().sealer.seal(b"elicitation", b"", Duration::ZERO);
        Ok(self.ask(Elicit::url(message, url, id)).await?.map(|_| ()))
    }

    /// Asks the client's model.
    ///
    /// # Errors
    /// When the client cannot be asked this, or its user refuses.
    ///
    /// ```
    /// # use toolyard_sdk::{Context, SampleRequest, ToolFailure};
    /// async fn summarize(ctx: Context) -> Result<String, ToolFailure> {
    ///     let question = SampleRequest::new().user("Say it in one sentence: ...").max_tokens(100);
    ///     Ok(ctx.sample(question).await?.text())
    /// }
    /// ```
    pub async fn sample(&self, request: SampleRequest) -> Result<Sample, AskError> {
        self.ask(request).await
    }

    /// Asks the client which folders it lets servers work on.
    ///
    /// # Errors
    /// When the client cannot be asked this, or gives no answer.
    ///
    /// ```
    /// # use toolyard_sdk::{Context, ToolFailure};
    /// async fn folders(ctx: Context) -> Result<String, ToolFailure> {
    ///     let roots = ctx.roots().await?;
    ///     Ok(roots.into_iter().map(|root| root.uri).collect::<Vec<_>>().join("\n"))
    /// }
    /// ```
    pub async fn roots(&self) -> Result<Vec<Root>, AskError> {
        self.ask(RootsRequest).await
    }

    /// Asks the client any question, and waits for the answer. While it is open the call's own time stands
    /// still. A client of revision 2026-07-28 is asked too, though its requests are not open meanwhile; who
    /// serves those from several processes should ask in rounds instead, with [`crate::InputRequired`].
    ///
    /// # Errors
    /// As with [`Context::elicit`].
    ///
    /// ```
    /// # use toolyard_sdk::{Context, Elicit, ToolFailure};
    /// # use serde_json::json;
    /// async fn ask(ctx: Context) -> Result<String, ToolFailure> {
    ///     let schema = json!({"type": "object", "properties": {"size": {"type": "string", "enum": ["S", "M"]}}});
    ///     let answer = ctx.ask(Elicit::form_with_schema("Which size?", schema)).await?;
    ///     Ok(format!("{}: {}", answer.action(), answer.accepted().unwrap_or_default()))
    /// }
    /// ```
    pub async fn ask<Q: Question>(&self, question: Q) -> Result<Q::Answer, AskError> {
        let prepared = question.prepare().map_err(|BadQuestion(problem)| AskError::BadQuestion(problem))?;
        if !self.can(prepared.need) {
            return Err(AskError::Unsupported(prepared.ask.required()));
        }
        let form = prepared.ask.params.get("requestedSchema").cloned();
        let answer = self.call().client.ask(prepared.ask).await?;
        if let Some(form) = form {
            form::check(&form.to_value(), &answer).map_err(bad_answer)?;
        }
        Q::read(&answer).map_err(bad_answer)
    }
}

fn bad_answer(BadAnswer(problem): BadAnswer) -> AskError {
    AskError::BadAnswer(problem)
}
