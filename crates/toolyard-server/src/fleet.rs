//! The handlers that run: what they offer becomes one registry, again at each change, and an edit of the manifest
//! changes those that it is about, and no other.

mod declared;
pub(crate) mod memory;
mod standing;
mod trial;

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, join_all, select_all};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use toolyard_core::names::Names;
use toolyard_core::registry::Handler;
use toolyard_core::{Catalog, Phase, Registry, Secrets};
use toolyard_manifest as manifest;

use crate::build::{self, Builder};

pub use declared::Declared;
pub use standing::{Origin, Standing};
use trial::Trials;
pub use trial::{NotUp, Trial, Tried};

/// Changes that come together, as when a network comes back, make one registry.
const TOGETHER: Duration = Duration::from_millis(20);

/// How long the fleet waits for others.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// For handlers that have not answered yet, before the first list: after that, names go to whoever comes.
    pub first_list: Duration,
    /// For the calls of a handler that an edit has removed or replaced.
    pub drain: Duration,
}

/// What the fleet is told to do.
pub enum Order {
    /// To make the handlers of the manifest others.
    Edit(Edit),
    /// To make those others that were added at run time. They come behind those of the manifest, and one whose name the
    /// manifest has does not run.
    Add(Edit),
    /// To start a server that may be added, and to say what came of it.
    Try(Box<Trial>),
    /// To have this handler look anew what its server offers. Whoever wants to know is told whether there is one.
    Refresh(String, oneshot::Sender<bool>),
}

/// What an edit is to do: these handlers, and no others.
pub struct Edit {
    /// In their order.
    pub handlers: Vec<manifest::Handler>,
    /// Who wants to know what it came to.
    pub done: oneshot::Sender<io::Result<Difference>>,
}

/// What an edit has done, by the names of the handlers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// They have come.
    pub added: Vec<String>,
    /// They publish their tools otherwise, or are built anew; then each goes on as it was until its successor has
    /// answered.
    pub changed: Vec<String>,
    /// They are gone.
    pub removed: Vec<String>,
    /// How many were not touched.
    pub kept: usize,
}

/// The handlers that run, in the order of the manifest, and behind them those that were added at run time.
pub struct Fleet {
    builder: Builder,
    patience: Patience,
    declared: Declared,
    published: Published,
    names: Names,
    /// Which state of the names is kept.
    kept: u64,
    members: Vec<Member>,
    trials: Trials,
    /// Those that are gone for callers, and let their last calls end.
    leaving: JoinSet<()>,
}

/// Where the fleet says what there is.
pub struct Published {
    /// What can be called.
    pub registry: watch::Sender<Arc<Registry>>,
    /// How the handlers are, in the order of the manifest.
    pub standings: watch::Sender<Arc<[Standing]>>,
    /// The names that were given out, as they are kept.
    pub names: watch::Sender<memory::Records>,
}

/// A handler.
struct Member {
    /// What it is to be, and how it is.
    standing: Standing,
    serving: Serving,
    /// What takes its place as soon as it has answered or failed.
    successor: Option<Serving>,
    /// What it offered before it was edited, for as long as nothing is known of what it offers now: who has learnt the
    /// names is told that they are unavailable.
    before: Arc<Catalog>,
}

/// A handler that was built, and what it offers.
struct Serving {
    handler: Handler,
    catalog: watch::Receiver<Arc<Catalog>>,
}

/// What happens next to one of the members.
enum Event {
    /// It offers something else.
    Changed,
    /// The successor of the member with this number has answered or failed.
    Succeeded(usize),
}

impl Fleet {
    /// Starts these handlers, with the names that their tools had before.
    ///
    /// # Errors
    /// When something is missing that they need of this system.
    pub fn start(
        mut builder: Builder,
        declared: Declared,
        names: Names,
        published: Published,
        patience: Patience,
    ) -> io::Result<Self> {
        builder.prepare(declared.running().map(|(handler, _)| handler))?;
        declared.log_hidden();
        let build = |(handler, origin): (&manifest::Handler, Origin)| {
            Member::new(Serving::new(builder.build(handler)), handler.clone(), origin)
        };
        let members: Vec<_> = declared.running().map(build).collect();
        published.standings.send_replace(members.iter().map(|member| member.standing.clone()).collect());
        let (kept, leaving, trials) = (names.changes(), JoinSet::new(), Trials::default());
        Ok(Self { builder, patience, declared, published, names, kept, members, trials, leaving })
    }

    /// Publishes registries and takes orders, until nobody can send one any more; then it stops the handlers.
    pub async fn run(mut self, mut orders: mpsc::Receiver<Order>) {
        let firsts = self.members.iter_mut().map(|member| member.serving.answered());
        if timeout(self.patience.first_list, join_all(firsts)).await.is_err() {
            tracing::warn!("some handlers have not answered yet: the first list comes without them");
        }
        loop {
            self.publish();
            tokio::select! {
                event = next(&mut self.members) => match event {
                    Event::Changed => sleep(TOGETHER).await,
                    Event::Succeeded(number) => self.succeed(number),
                },
                // Whoever wanted to know may have left.
                order = orders.recv() => match order {
                    Some(Order::Edit(Edit { handlers, done })) => {
                        let added = self.declared.added.clone();
                        drop(done.send(self.apply(Declared { manifest: handlers, added })));
                    }
                    Some(Order::Add(Edit { handlers, done })) => {
                        let manifest = self.declared.manifest.clone();
                        let difference = self.apply(Declared { manifest, added: handlers });
                        // Who has added a server finds it when he is told.
                        self.publish();
                        drop(done.send(difference));
                    }
                    Some(Order::Try(trial)) => self.try_out(*trial),
                    Some(Order::Refresh(name, done)) => drop(done.send(self.refresh(&name))),
                    None => return self.stop().await,
                },
                Some(_) = self.leaving.join_next() => {}
                Some(()) = self.trials.next() => {}
            }
        }
    }

    fn publish(&mut self) {
        let part = |member: &mut Member| {
            let catalog = member.serving.catalog.borrow_and_update().clone();
            let catalog = discreet(catalog, &member.serving.handler.secrets);
            member.standing.note(&catalog);
            let catalog = inherited(catalog, &member.before);
            (member.serving.handler.clone(), catalog)
        };
        let parts: Vec<_> = self.members.iter_mut().map(part).collect();
        let Published { registry, standings, names } = &self.published;
        // First, so that whoever sees a change in the registry finds the reason here.
        standings.send_replace(self.members.iter().map(|member| member.standing.clone()).collect());
        registry.send_replace(Arc::new(Registry::assemble(&parts, &mut self.names)));
        if self.names.changes() != self.kept {
            self.kept = self.names.changes();
            let declared = self.members.iter().map(|member| &*member.standing.declared);
            names.send_replace(memory::written(&self.names, declared));
        }
    }

    /// Makes the members those that are declared. All or nothing: what may fail comes first.
    fn apply(&mut self, declared: Declared) -> io::Result<Difference> {
        self.builder.prepare(declared.running().map(|(handler, _)| handler))?;
        declared.log_hidden();
        let mut difference = Difference::default();
        let mut before = std::mem::take(&mut self.members);
        for (declared, origin) in declared.running() {
            let known = before.iter().position(|member| member.standing.declared.name == declared.name);
            let member = match known {
                None => self.begun(declared.clone(), origin, &mut difference),
                Some(number) => self.edited(before.remove(number), declared.clone(), origin, &mut difference),
            };
            self.members.push(member);
        }
        self.declared = declared;
        for member in before {
            let name = member.standing.declared.name.as_str();
            self.names.forget(name);
            difference.removed.push(name.to_owned());
            [Some(member.serving), member.successor].into_iter().flatten().for_each(|gone| self.retire(gone));
        }
        Ok(difference)
    }

    /// A handler that was not there. One that was tried goes on as it is.
    fn begun(&mut self, declared: manifest::Handler, origin: Origin, difference: &mut Difference) -> Member {
        difference.added.push(declared.name.as_str().to_owned());
        let tried = self.trials.take(&declared).filter(|_| origin == Origin::RunTime);
        let serving = tried.unwrap_or_else(|| Serving::new(self.builder.build(&declared)));
        Member::new(serving, declared, origin)
    }

    /// A handler that may be another now.
    fn edited(
        &mut self,
        mut member: Member,
        declared: manifest::Handler,
        origin: Origin,
        difference: &mut Difference,
    ) -> Member {
        member.standing.origin = origin;
        if *member.standing.declared == declared {
            difference.kept += 1;
            return member;
        }
        difference.changed.push(declared.name.as_str().to_owned());
        if is_renamed(&member.standing.declared, &declared) {
            return member.renamed(declared);
        }
        let successor = Serving::new(self.builder.build(&declared));
        let superseded = member.successor.replace(successor);
        member.standing.declared = Arc::new(declared);
        superseded.into_iter().for_each(|serving| self.retire(serving));
        member
    }

    /// Starts a server for those who may add it.
    fn try_out(&mut self, trial: Trial) {
        match self.builder.prepare([&trial.declared]) {
            Ok(()) => {
                let serving = Serving::new(self.builder.build(&trial.declared));
                self.trials.begin(serving, trial);
            }
            // Whoever wanted to know may have left.
            Err(error) => drop(trial.done.send(Err(NotUp::Failed(error.to_string())))),
        }
    }

    fn refresh(&self, name: &str) -> bool {
        let member = self.members.iter().find(|member| member.standing.declared.name.as_str() == name);
        member.map(|member| member.serving.handler.backend.refresh()).is_some()
    }

    fn succeed(&mut self, number: usize) {
        let member = &mut self.members[number];
        if let Some(successor) = member.successor.take() {
            let superseded = std::mem::replace(&mut member.serving, successor);
            member.before = inherited(superseded.catalog.borrow().clone(), &member.before);
            self.retire(superseded);
        }
    }

    /// Lets go of a handler once its calls have ended. It is in no registry that is published from now on.
    fn retire(&mut self, serving: Serving) {
        let (handler, drain) = (serving.handler, self.patience.drain);
        self.leaving.spawn(async move {
            // Calls that have found it in the last registry are on their way to the gate.
            sleep(TOGETHER).await;
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
        self.leaving.shutdown().await;
        // What is in the registry may hold on to who gives it out.
        self.published.registry.send_replace(Arc::default());
    }
}

impl Member {
    fn new(serving: Serving, declared: manifest::Handler, origin: Origin) -> Self {
        let standing = Standing::new(Arc::new(declared), origin);
        Self { standing, serving, successor: None, before: Arc::default() }
    }

    /// The same servers, with other names for their tools.
    fn renamed(mut self, declared: manifest::Handler) -> Self {
        for serving in [Some(&mut self.serving), self.successor.as_mut()].into_iter().flatten() {
            serving.handler = build::named(&declared, serving.handler.clone());
        }
        self.standing.declared = Arc::new(declared);
        self
    }
}

impl Serving {
    fn new(handler: Handler) -> Self {
        let catalog = handler.backend.catalog();
        Self { handler, catalog }
    }

    /// Waits until it has answered or failed.
    async fn answered(&mut self) {
        // One that will not say anything any more has said what it had to say.
        let _gone = self.catalog.wait_for(|catalog| catalog.phase != Phase::Connecting).await.map(drop);
    }

    /// Waits until it offers something else.
    async fn changed(&mut self) {
        if self.catalog.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// The catalog, where the reason for which a server is not there does not say what nobody is to see, nor pages of it.
fn discreet(catalog: Arc<Catalog>, secrets: &Secrets) -> Arc<Catalog> {
    let Phase::Unavailable { reason } = &catalog.phase else { return catalog };
    match secrets.brief(reason) {
        Cow::Borrowed(_) => catalog,
        Cow::Owned(reason) => {
            Arc::new(Catalog { phase: Phase::Unavailable { reason }, ..(*catalog).clone() })
        }
    }
}

/// What a handler offers, or offered before where it has never said what it does now.
fn inherited(catalog: Arc<Catalog>, before: &Arc<Catalog>) -> Arc<Catalog> {
    if catalog.phase == Phase::Ready || !catalog.tools.is_empty() {
        return catalog;
    }
    let (phase, tools) = (catalog.phase.clone(), before.tools.clone());
    Arc::new(Catalog { phase, tools, ..Catalog::default() })
}

/// Whether an edit changes no more than what tools are called and cost, and what callers see of them.
fn is_renamed(before: &manifest::Handler, declared: &manifest::Handler) -> bool {
    let (prefix, overrides, price) = (before.prefix, before.overrides.clone(), before.price);
    let (display_name, description) = (before.display_name.clone(), before.description.clone());
    let published = manifest::Handler {
        prefix,
        overrides,
        price,
        display_name,
        description,
        chunking: before.chunking,
        ..declared.clone()
    };
    *before == published
}

async fn next(members: &mut [Member]) -> Event {
    let mut waits: Vec<BoxFuture<'_, Event>> = vec![std::future::pending().boxed()];
    for (number, member) in members.iter_mut().enumerate() {
        waits.push(member.serving.changed().map(|()| Event::Changed).boxed());
        if let Some(successor) = &mut member.successor {
            waits.push(successor.answered().map(move |()| Event::Succeeded(number)).boxed());
        }
    }
    select_all(waits).await.0
}
