//! The fleet of running handlers. Publishes one registry of what they offer at each change, and applies edits of the
//! manifest to the affected handlers only.

mod acceptance_sync;
mod command;
mod declared_handlers;
pub(crate) mod definitions;
mod error_output;
mod handle;
mod handler_records;
mod handler_status;
mod last_lists;
mod provisional_names;
mod report;
mod restart;
mod start;
mod trial;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt, join_all, select_all};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{sleep, timeout};
use toolyard_core::names::NameRegistry;
use toolyard_core::registry::HandlerEntry;
use toolyard_core::{BackendPhase, Catalog, Registry, SecretRedactor};
use toolyard_manifest as manifest;

use crate::audit::AuditQueue;
use crate::build::{self, HandlerBuilder};

use acceptance_sync::follow_acceptances;
pub use command::{AcceptCommand, EditCommand, FleetCommand, FleetDifference};
pub use declared_handlers::DeclaredHandlers;
pub use definitions::{AcceptError, DefinitionChange, ServedDefinition};
use definitions::{CatalogReview, ToolDefinitions};
pub(crate) use handle::{FleetHandle, UnstartedFleet};
use handler_status::LiveHandler;
pub use handler_status::{HandlerOrigin, HandlerStatus};
use last_lists::{HeldLists, RecalledLists, with_last_tools};
use provisional_names::ProvisionalNames;
use trial::RunningTrials;
pub use trial::{ServerTrial, TrialError, TriedServer};

/// Delay after a change, so that changes that come together make one registry.
const SETTLE_DELAY: Duration = Duration::from_millis(20);

/// Timeouts of the fleet.
#[derive(Debug, Clone, Copy)]
pub struct FleetTimeouts {
    /// Time to wait for handlers before the first list. Later handlers get the names that are left.
    pub first_list: Duration,
    /// Time for the running calls of a removed or replaced handler to finish.
    pub drain: Duration,
}

/// The running handlers: those of the manifest in order, then those added at run time.
pub struct HandlerFleet {
    builder: HandlerBuilder,
    timeouts: FleetTimeouts,
    declared: DeclaredHandlers,
    outputs: FleetOutputs,
    names: NameRegistry,
    definitions: ToolDefinitions,
    /// Change counters of the names, definitions and acceptances at the last save.
    saved_changes: [u64; 3],
    members: Vec<FleetMember>,
    trials: RunningTrials,
    /// Tasks that let the last calls of replaced or removed handlers finish.
    retiring: JoinSet<()>,
    provisional: ProvisionalNames,
}

/// The outputs of the fleet.
pub struct FleetOutputs {
    /// The registry of what can be called.
    pub registry: watch::Sender<Arc<Registry>>,
    /// Status of each handler, in the order of the manifest.
    pub statuses: watch::Sender<Arc<[HandlerStatus]>>,
    /// Records of the published names, to store.
    pub names: watch::Sender<handler_records::HandlerRecords>,
    /// Records of the accepted definitions, to store.
    pub definitions: watch::Sender<handler_records::HandlerRecords>,
    /// Records of the operators' acceptances, to store.
    pub acceptances: watch::Sender<handler_records::HandlerRecords>,
    /// Records of the lists of servers, to store.
    pub lists: watch::Sender<handler_records::HandlerRecords>,
    /// The audit trail, which records changes of tools.
    pub audit: Arc<AuditQueue>,
}

/// Names and definitions of a previous run.
pub(crate) struct RecalledState {
    pub(crate) names: NameRegistry,
    pub(crate) definitions: ToolDefinitions,
    pub(crate) lists: RecalledLists,
}

/// A handler of the fleet.
struct FleetMember {
    /// Declaration and status of the handler.
    status: HandlerStatus,
    serving: ServingHandler,
    /// The rebuilt handler, which takes over once it has answered or failed.
    successor: Option<ServingHandler>,
    /// The catalog before an edit, used until the new one is known, so that clients that know the tools learn that they
    /// are unavailable. At the start it is that of the last run.
    last_catalog: Arc<Catalog>,
    /// The stored lists.
    stored_lists: HeldLists,
}

/// A built handler and its catalog.
struct ServingHandler {
    handler: HandlerEntry,
    catalog: watch::Receiver<Arc<Catalog>>,
}

/// The next event of a member.
enum MemberEvent {
    /// Its catalog has changed.
    Changed,
    /// The successor of the member with this index has answered or failed.
    Succeeded(usize),
}

impl HandlerFleet {
    /// Starts handlers with the names and definitions of a previous run.
    ///
    /// # Errors
    /// If this system lacks something that the handlers need.
    pub(crate) fn start(
        mut builder: HandlerBuilder,
        declared: DeclaredHandlers,
        recalled_state: RecalledState,
        outputs: FleetOutputs,
        timeouts: FleetTimeouts,
    ) -> io::Result<Self> {
        builder.prepare(declared.running().map(|(handler, _)| handler))?;
        declared.warn_shadowed();
        let RecalledState { names, definitions, mut lists } = recalled_state;
        let handlers = declared.running().map(|(handler, _)| handler);
        let handlers = handlers.filter(|handler| lists.contains_key(&handler_records::key(handler)));
        builder.set_installed(handlers.map(|handler| handler.name.as_str().to_owned()).collect());
        let build = |(handler, origin): (&manifest::HandlerConfig, HandlerOrigin)| {
            let member =
                FleetMember::new(ServingHandler::new(builder.build(handler)), handler.clone(), origin);
            match lists.remove(&handler_records::key(handler)) {
                Some(last) => member.with_last_lists(last, definitions.allows_last_lists(handler)),
                None => member,
            }
        };
        let members: Vec<_> = declared.running().map(build).collect();
        outputs.statuses.send_replace(members.iter().map(|member| member.status.clone()).collect());
        let saved_changes = [names.changes(), definitions.changes(), definitions.acceptance_changes()];
        let (retiring, trials) = (JoinSet::new(), RunningTrials::default());
        Ok(Self {
            builder,
            timeouts,
            declared,
            outputs,
            names,
            definitions,
            saved_changes,
            members,
            trials,
            retiring,
            provisional: ProvisionalNames::default(),
        })
    }

    /// Publishes registries and processes commands until all senders are dropped, then stops the handlers.
    pub async fn run(mut self, mut commands: mpsc::Receiver<FleetCommand>) {
        // Members with the lists of the last run can be listed at once.
        let unknown = self.members.iter_mut().filter(|member| member.last_catalog.tools.is_empty());
        let first_answers = unknown.map(|member| member.serving.until_answered());
        if timeout(self.timeouts.first_list, join_all(first_answers)).await.is_err() {
            tracing::warn!("some handlers have not answered yet; the first list is published without them");
        }
        loop {
            self = self.published().await;
            tokio::select! {
                event = next_event(&mut self.members) => match event {
                    MemberEvent::Changed => sleep(SETTLE_DELAY).await,
                    MemberEvent::Succeeded(number) => self.promote_successor(number),
                },
                // The receiver of an outcome may be dropped.
                command = commands.recv() => match command {
                    Some(FleetCommand::Edit(EditCommand { handlers, done })) => {
                        let added = self.declared.added.clone();
                        let difference = self.apply(DeclaredHandlers { manifest: handlers, added });
                        // The status has the handlers before it has the digest of their manifest.
                        self = self.published().await;
                        drop(done.send(difference));
                    }
                    Some(FleetCommand::Add(EditCommand { handlers, done })) => {
                        let manifest = self.declared.manifest.clone();
                        let difference = self.apply(DeclaredHandlers { manifest, added: handlers });
                        // The registry has the added server before the outcome is reported.
                        self = self.published().await;
                        drop(done.send(difference));
                    }
                    Some(FleetCommand::Try(trial)) => self.try_out(*trial),
                    Some(FleetCommand::Refresh(name, done)) => drop(done.send(self.refresh(&name))),
                    Some(FleetCommand::Restart(name, done)) => drop(done.send(self.restart(&name))),
                    Some(FleetCommand::Disable(name, done)) => drop(done.send(self.disable(&name))),
                    Some(FleetCommand::Accept(AcceptCommand { handler, tool, digest, done })) => {
                        let accepted = self.accept(&handler, tool.as_deref(), digest.as_deref());
                        // The registry has the accepted definitions before the outcome is reported.
                        self = self.published().await;
                        drop(done.send(accepted));
                    }
                    Some(FleetCommand::MergeAcceptances(records)) => self.merge_acceptances(&records),
                    None => return self.stop().await,
                },
                Some(_) = self.retiring.join_next() => {}
                Some(()) = self.trials.next() => {}
            }
        }
    }

    /// Publishes on a blocking thread: servers decide how much there is to compare, and no call waits for it.
    async fn published(mut self) -> Self {
        let publishing = spawn_blocking(move || {
            self.publish();
            self
        });
        match publishing.await {
            Ok(published) => published,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }

    fn publish(&mut self) {
        let Self { outputs, definitions, members, .. } = self;
        let part = |member: &mut FleetMember| {
            let catalog = member.serving.catalog.borrow_and_update().clone();
            let latest = member.successor.as_ref().unwrap_or(&member.serving);
            member.status.live = LiveHandler::of(&latest.handler);
            let values = error_output::given_values(&member.status.declared);
            let catalog = redacted(catalog, &member.serving.handler.secrets, &values);
            member.status.update(&catalog);
            let catalog = with_last_tools(catalog, &member.last_catalog);
            let declared = &member.status.declared;
            let CatalogReview { catalog, reported_changes } = definitions.review(declared, catalog);
            report::report_changes(declared, reported_changes, &outputs.audit);
            member.status.changes = definitions.pending(declared);
            let is_added = member.status.origin == HandlerOrigin::RunTime;
            (HandlerEntry { is_added, ..member.serving.handler.clone() }, catalog)
        };
        let parts: Vec<_> = members.iter_mut().map(part).collect();
        let offers = parts.iter().map(|(handler, catalog)| (&handler.name, catalog));
        self.provisional.settle(offers, &mut self.names);
        let assembled = Arc::new(Registry::assemble(&parts, &mut self.names));
        let FleetOutputs { registry, statuses, .. } = &self.outputs;
        // The status comes first, so that it already explains a change of the registry, and at once before it, so that
        // a handler is hardly ever called ready before its tools are there.
        statuses.send_replace(self.members.iter().map(|member| member.status.clone()).collect());
        registry.send_replace(assembled);
        self.publish_records();
    }

    /// Publishes changed names and definitions for the store.
    fn publish_records(&mut self) {
        self.publish_lists();
        let declared = || self.members.iter().map(|member| &*member.status.declared);
        let definitions = &self.definitions;
        let now = [self.names.changes(), definitions.changes(), definitions.acceptance_changes()];
        if now[0] != self.saved_changes[0] {
            self.outputs.names.send_replace(handler_records::name_records(&self.names, declared()));
        }
        if now[1] != self.saved_changes[1] {
            self.outputs.definitions.send_replace(definitions.records(declared()));
        }
        if now[2] != self.saved_changes[2] {
            self.outputs.acceptances.send_replace(definitions.acceptances(declared()));
        }
        self.saved_changes = now;
    }

    /// Publishes changed lists for the store.
    fn publish_lists(&mut self) {
        let mut has_changed = false;
        for member in &mut self.members {
            has_changed |= member.store_lists();
        }
        if has_changed {
            let record = |member: &FleetMember| {
                (handler_records::key(&member.status.declared), member.stored_lists.record.clone())
            };
            self.outputs.lists.send_replace(self.members.iter().map(record).collect());
        }
    }

    fn accept(
        &mut self,
        handler: &str,
        tool: Option<&str>,
        digest: Option<&str>,
    ) -> Result<Vec<DefinitionChange>, AcceptError> {
        let member = self.members.iter().find(|member| member.status.declared.name.as_str() == handler);
        let member = member.ok_or_else(|| AcceptError::NoHandler(handler.to_owned()))?;
        self.definitions.accept(&member.status.declared, tool, digest)
    }

    /// Merges acceptances of other gateways. The next registry reflects them.
    fn merge_acceptances(&mut self, records: &HashMap<String, Bytes>) {
        for FleetMember { status, .. } in &self.members {
            let declared = &status.declared;
            let Some(record) = records.get(&handler_records::key(declared)) else { continue };
            for DefinitionChange { tool, new, .. } in self.definitions.merge_acceptances(declared, record) {
                let handler = declared.name.as_str();
                tracing::info!(handler, %tool, %new, "another gateway has accepted a changed tool");
            }
        }
    }

    /// Replaces the declared handlers. Fallible steps come first, so that an error changes nothing.
    fn apply(&mut self, declared: DeclaredHandlers) -> io::Result<FleetDifference> {
        self.builder.prepare(declared.running().map(|(handler, _)| handler))?;
        declared.warn_shadowed();
        let mut difference = FleetDifference::default();
        let mut previous = std::mem::take(&mut self.members);
        for (declared, origin) in declared.running() {
            let position = previous.iter().position(|member| member.status.declared.name == declared.name);
            let member = match position {
                None => self.added_member(declared.clone(), origin, &mut difference),
                Some(number) => {
                    self.updated_member(previous.remove(number), declared.clone(), origin, &mut difference)
                }
            };
            self.members.push(member);
        }
        self.declared = declared;
        for member in previous {
            let name = member.status.declared.name.as_str();
            self.names.forget(name);
            difference.removed.push(name.to_owned());
            [Some(member.serving), member.successor]
                .into_iter()
                .flatten()
                .for_each(|retired| self.retire(retired));
        }
        self.definitions.retain(self.members.iter().map(|member| &*member.status.declared));
        Ok(difference)
    }

    /// Creates a new member. A handler on trial is taken over as it runs.
    fn added_member(
        &mut self,
        declared: manifest::HandlerConfig,
        origin: HandlerOrigin,
        difference: &mut FleetDifference,
    ) -> FleetMember {
        difference.added.push(declared.name.as_str().to_owned());
        let trial_handler = self.trials.take(&declared).filter(|_| origin == HandlerOrigin::RunTime);
        let serving = trial_handler.unwrap_or_else(|| ServingHandler::new(self.builder.build(&declared)));
        FleetMember::new(serving, declared, origin)
    }

    /// Updates a member for its new declaration.
    fn updated_member(
        &mut self,
        mut member: FleetMember,
        declared: manifest::HandlerConfig,
        origin: HandlerOrigin,
        difference: &mut FleetDifference,
    ) -> FleetMember {
        member.status.origin = origin;
        if *member.status.declared == declared {
            difference.unchanged += 1;
            return member;
        }
        difference.changed.push(declared.name.as_str().to_owned());
        if declared_handlers::is_renamed(&member.status.declared, &declared) {
            return member.with_declaration(declared);
        }
        let successor = ServingHandler::new(self.builder.build(&declared));
        let superseded = member.successor.replace(successor);
        member.status.declared = Arc::new(declared);
        superseded.into_iter().for_each(|serving| self.retire(serving));
        member
    }

    /// Starts a server on trial.
    fn try_out(&mut self, trial: ServerTrial) {
        match self.builder.prepare([&trial.declared]) {
            Ok(()) => {
                let serving = ServingHandler::new(self.builder.build(&trial.declared));
                self.trials.begin(serving, trial);
            }
            // The receiver of the outcome may be dropped.
            Err(error) => drop(trial.done.send(Err(TrialError::failed(error.to_string())))),
        }
    }

    fn refresh(&self, name: &str) -> bool {
        let member = self.members.iter().find(|member| member.status.declared.name.as_str() == name);
        member.map(|member| member.serving.handler.backend.refresh()).is_some()
    }

    fn promote_successor(&mut self, number: usize) {
        let member = &mut self.members[number];
        if let Some(successor) = member.successor.take() {
            let superseded = std::mem::replace(&mut member.serving, successor);
            member.last_catalog = with_last_tools(superseded.catalog.borrow().clone(), &member.last_catalog);
            self.retire(superseded);
        }
    }

    /// Stops a handler once its calls have ended. It is in no registry published from now on.
    fn retire(&mut self, serving: ServingHandler) {
        let (handler, drain) = (serving.handler, self.timeouts.drain);
        self.retiring.spawn(async move {
            // Calls that found it in the last registry may not have reached its gate yet.
            sleep(SETTLE_DELAY).await;
            let _late = timeout(drain, handler.limits.gate.emptied()).await;
            handler.backend.stop().await;
        });
    }

    async fn stop(mut self) {
        let stops = self.members.iter().flat_map(|member| {
            let all = [Some(&member.serving), member.successor.as_ref()];
            all.into_iter().flatten().map(|serving| serving.handler.backend.stop())
        });
        join_all(stops).await;
        self.trials.stop().await;
        self.retiring.shutdown().await;
        // The registry may hold a reference to its publisher.
        self.outputs.registry.send_replace(Arc::default());
    }
}

impl FleetMember {
    fn new(serving: ServingHandler, declared: manifest::HandlerConfig, origin: HandlerOrigin) -> Self {
        let status = HandlerStatus::new(Arc::new(declared), origin, LiveHandler::of(&serving.handler));
        let (last_catalog, stored_lists) = (Arc::default(), HeldLists::default());
        Self { status, serving, successor: None, last_catalog, stored_lists }
    }

    /// Applies new names and overrides to the same servers.
    fn with_declaration(mut self, declared: manifest::HandlerConfig) -> Self {
        for serving in [Some(&mut self.serving), self.successor.as_mut()].into_iter().flatten() {
            serving.handler = build::with_declaration(&declared, serving.handler.clone());
        }
        self.status.declared = Arc::new(declared);
        self
    }
}

impl ServingHandler {
    fn new(handler: HandlerEntry) -> Self {
        let catalog = handler.backend.catalog();
        Self { handler, catalog }
    }

    /// Waits until the handler has answered or failed.
    async fn until_answered(&mut self) {
        // A closed catalog is final.
        let _gone =
            self.catalog.wait_for(|catalog| catalog.phase != BackendPhase::Connecting).await.map(drop);
    }

    /// Waits until the catalog changes.
    async fn until_changed(&mut self) {
        if self.catalog.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Redacts secrets in the reason of an unavailable handler, and shortens it.
fn redacted(catalog: Arc<Catalog>, secrets: &SecretRedactor, given: &[String]) -> Arc<Catalog> {
    let BackendPhase::Unavailable { reason } = &catalog.phase else { return catalog };
    let hidden = error_output::redacted_cause(reason.clone(), secrets, given);
    match hidden == *reason {
        true => catalog,
        false => {
            Arc::new(Catalog { phase: BackendPhase::Unavailable { reason: hidden }, ..(*catalog).clone() })
        }
    }
}

async fn next_event(members: &mut [FleetMember]) -> MemberEvent {
    let mut waits: Vec<BoxFuture<'_, MemberEvent>> = vec![std::future::pending().boxed()];
    for (number, member) in members.iter_mut().enumerate() {
        waits.push(member.serving.until_changed().map(|()| MemberEvent::Changed).boxed());
        if let Some(successor) = &mut member.successor {
            waits.push(successor.until_answered().map(move |()| MemberEvent::Succeeded(number)).boxed());
        }
    }
    select_all(waits).await.0
}
