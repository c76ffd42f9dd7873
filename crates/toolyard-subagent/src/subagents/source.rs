//! The models of subagents: a configured one, or that of the caller's client.

use std::sync::Arc;

use toolyard_core::{Call, ClientSession};

use super::questions::TaskQuestions;
use crate::error::SubagentError;
use crate::model::ChatModel;
use crate::model::sampling::SamplingModel;

/// The source of the models of subagents.
#[derive(Clone)]
pub enum ModelSource {
    /// One model for all.
    Configured(Arc<dyn ChatModel>),
    /// The models of the clients that start subagents, by sampling.
    OfClients {
        /// Maximum tokens of a reply.
        reply_tokens: u64,
    },
}

/// The model of one subagent.
pub(super) struct SubagentModel {
    pub(super) model: Arc<dyn ChatModel>,
    /// Requests for the model, if they are the input of a task.
    pub(super) questions: Option<Arc<TaskQuestions>>,
}

impl ModelSource {
    /// Returns the model of a subagent that this call starts.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn of(&self, call: &Call) -> Result<SubagentModel, SubagentError> {
        let reply_tokens = match self {
            Self::Configured(model) => return Ok(SubagentModel { model: model.clone(), questions: None }),
            Self::OfClients { .. } if !call.caller.lends_model => return Err(SubagentError::NoModel),
            Self::OfClients { reply_tokens } => *reply_tokens,
        };
        let model = |session: Arc<dyn ClientSession>| Arc::new(SamplingModel::new(session, reply_tokens));
        Ok(match call.client.session() {
            Some(session) => SubagentModel { model: model(session), questions: None },
            None => {
                let questions = Arc::new(TaskQuestions::default());
                SubagentModel { model: model(questions.clone()), questions: Some(questions) }
            }
        })
    }

    /// Returns true if a subagent that this call starts can use its model only as the task of the call.
    pub(super) fn needs_task(&self, call: &Call) -> bool {
        matches!(self, Self::OfClients { .. }) && call.caller.lends_model && call.client.session().is_none()
    }
}
