//! Start and stop of the fleet and of the tasks beside it.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use toolyard_manifest::HandlerConfig;

use super::handler_records::{HandlerRecordStore, HandlerRecords};
use super::{
    DeclaredHandlers, FleetCommand, FleetOutputs, FleetTimeouts, HandlerFleet, RecalledState, UnstartedFleet,
    follow_acceptances,
};
use crate::build::{BuiltinDeps, HandlerBuilder};
use crate::context::GatewayContext;
use crate::hosting::CodeHosting;
use crate::shutdown::Subsystem;
use crate::start::StartError;

/// The running fleet and the tasks that save and follow its records.
pub(crate) struct RunningFleet {
    /// The only strong sender: the fleet ends when it is dropped.
    commands: mpsc::Sender<FleetCommand>,
    /// The task of the fleet. Dropping it stops the handlers and their processes.
    fleet: JoinSet<()>,
    /// Tasks that save names and definitions in the store. They end after the fleet, once everything is saved.
    record_writers: JoinSet<()>,
    /// The task that follows acceptances by other gateways.
    _acceptances: JoinSet<()>,
}

impl UnstartedFleet {
    /// Starts these handlers with the saved names and definitions of their tools.
    ///
    /// # Errors
    /// If this system lacks something that the handlers need.
    pub(crate) async fn start(
        self,
        context: &GatewayContext,
        handlers: &[HandlerConfig],
        hosting: &CodeHosting,
        builtin_deps: &BuiltinDeps,
    ) -> Result<RunningFleet, StartError> {
        let builder = builder(context, hosting, builtin_deps)?;
        let (names, names_now) = watch::channel(HandlerRecords::new());
        let (definitions, definitions_now) = watch::channel(HandlerRecords::new());
        let (acceptances, acceptances_now) = watch::channel(HandlerRecords::new());
        let Self { commands, received_commands, registry, statuses } = self;
        let audit = context.audit.clone();
        let (lists, lists_now) = watch::channel(HandlerRecords::new());
        let outputs = FleetOutputs { registry, statuses, names, definitions, acceptances, lists, audit };
        let timeouts = &context.process.timeouts;
        let fleet_timeouts = FleetTimeouts { first_list: timeouts.first_list, drain: timeouts.drain };
        let added = builtin_deps.added.recall().await;
        let declared = DeclaredHandlers { manifest: handlers.to_vec(), added };
        let running: Vec<_> = declared.running().map(|(handler, _)| handler.clone()).collect();
        let store = &context.store;
        let ((name_store, names), (definition_store, mut definitions), (list_store, lists)) = tokio::join!(
            HandlerRecordStore::recall(store.clone(), &running),
            HandlerRecordStore::recall_definitions(store.clone(), &running),
            HandlerRecordStore::recall_lists(store.clone(), &running),
        );
        let acceptance_store =
            HandlerRecordStore::recall_acceptances(store.clone(), &running, &mut definitions).await;
        let recalled_state = RecalledState { names, definitions, lists };
        let started = HandlerFleet::start(builder, declared, recalled_state, outputs, fleet_timeouts)
            .map_err(StartError::Tls)?;
        let mut fleet = JoinSet::new();
        fleet.spawn(started.run(received_commands));
        let mut record_writers = JoinSet::new();
        record_writers.spawn(name_store.run(names_now));
        if let Some(store) = definition_store {
            record_writers.spawn(store.run(definitions_now));
        }
        if let Some(store) = list_store {
            record_writers.spawn(store.run(lists_now));
        }
        if let Some(store) = acceptance_store {
            record_writers.spawn(store.run(acceptances_now));
        }
        Ok(RunningFleet { commands, fleet, record_writers, _acceptances: acceptance_follower(context) })
    }
}

/// Creates the builder of handlers.
fn builder(
    context: &GatewayContext,
    hosting: &CodeHosting,
    builtin_deps: &BuiltinDeps,
) -> Result<HandlerBuilder, StartError> {
    let builder = HandlerBuilder::new(context.process.clone(), context.processes.clone());
    Ok(builder
        .map_err(StartError::Tls)?
        .with_hosting(hosting.clone())
        .with_builtin_deps(builtin_deps.clone())
        .with_budget(context.budget.clone())
        .with_long_work(context.long_work.clone()))
}

fn acceptance_follower(context: &GatewayContext) -> JoinSet<()> {
    let (commands, statuses) = (context.fleet.commands.clone(), context.fleet.statuses.clone());
    let mut follower = JoinSet::new();
    let every = context.process.timeouts.key_check;
    follower.spawn(follow_acceptances(context.store.clone(), commands, statuses, every));
    follower
}

impl Subsystem for RunningFleet {
    fn stop(mut self: Box<Self>, drain: Duration) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            drop(self.commands);
            while self.fleet.join_next().await.is_some() {}
            let saved = async { while self.record_writers.join_next().await.is_some() {} };
            if timeout(drain, saved).await.is_err() {
                tracing::error!(
                    "lost the last names and definitions of tools: the store did not accept them in time"
                );
            }
        })
    }
}
