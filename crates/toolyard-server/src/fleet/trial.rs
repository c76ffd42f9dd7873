//! Servers that are tried before anybody can call them: started, and asked what they offer.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use toolyard_core::{Catalog, Phase};
use toolyard_manifest as manifest;

use super::{Serving, discreet};

/// A server that is to be tried.
pub struct Trial {
    /// What it is.
    pub declared: manifest::Handler,
    /// How long it may take.
    pub time: Duration,
    /// Who wants to know what came of it. It ends when nobody does.
    pub done: oneshot::Sender<Result<Tried, NotUp>>,
}

/// A server that has come up, and may become one of the fleet. Dropping this ends it, unless it has become one.
#[derive(Debug)]
pub struct Tried {
    /// How many tools it has.
    pub tools: usize,
    _wanted: oneshot::Sender<()>,
}

/// Why a server is none. It has ended by then.
#[derive(Debug, PartialEq, Eq)]
pub enum NotUp {
    /// It did not answer in time.
    TooSlow,
    /// It failed, for this reason, in which there are no secrets.
    Failed(String),
}

/// The servers that are being tried, or have come up and are in nobody's fleet yet.
#[derive(Default)]
pub(super) struct Trials {
    places: Vec<(manifest::Handler, Place)>,
    running: JoinSet<()>,
}

/// Where a server waits. It is empty once somebody has taken it.
#[derive(Clone)]
struct Place(Arc<Mutex<Option<Serving>>>);

impl Place {
    fn take(&self) -> Option<Serving> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    async fn stop(&self) {
        if let Some(serving) = self.take() {
            serving.handler.backend.stop().await;
        }
    }
}

impl Trials {
    /// Tries a server that has just been started.
    pub(super) fn begin(&mut self, serving: Serving, trial: Trial) {
        let Trial { declared, time, mut done } = trial;
        let (catalog, secrets) = (serving.catalog.clone(), serving.handler.secrets.clone());
        let place = Place(Arc::new(Mutex::new(Some(serving))));
        self.places.retain(|(_, place)| !place.is_empty());
        self.places.push((declared, place.clone()));
        self.running.spawn(async move {
            let outcome = tokio::select! {
                outcome = outcome(catalog, time, |catalog| discreet(catalog, &secrets)) => outcome,
                () = done.closed() => return place.stop().await,
            };
            let told = match outcome {
                Ok(tools) => {
                    let (wanted, unwanted) = oneshot::channel();
                    let told = done.send(Ok(Tried { tools, _wanted: wanted })).is_ok();
                    // It is never sent anything: this ends when nobody holds it any more.
                    let _dropped = if told { unwanted.await } else { Ok(()) };
                    None
                }
                Err(why) => Some((done, why)),
            };
            place.stop().await;
            if let Some((done, why)) = told {
                // Whoever wanted to know may have left.
                let _left = done.send(Err(why));
            }
        });
    }

    /// The server of this description that has come up, for whom it is to be one of the fleet.
    pub(super) fn take(&mut self, declared: &manifest::Handler) -> Option<Serving> {
        let number = self.places.iter().position(|(tried, _)| tried == declared)?;
        self.places.remove(number).1.take()
    }

    /// Waits until one is no more to be looked after; `None` where there is none.
    pub(super) async fn next(&mut self) -> Option<()> {
        self.running.join_next().await.map(drop)
    }

    /// Ends all of them.
    pub(super) async fn stop(&mut self) {
        self.running.shutdown().await;
        for (_, place) in &self.places {
            place.stop().await;
        }
    }
}

/// How many tools a server has, as soon as it has said so.
async fn outcome(
    mut catalog: watch::Receiver<Arc<Catalog>>,
    time: Duration,
    discreet: impl Fn(Arc<Catalog>) -> Arc<Catalog>,
) -> Result<usize, NotUp> {
    let answered = catalog.wait_for(|catalog| catalog.phase != Phase::Connecting);
    let answered = timeout(time, answered).await.map_err(|_| NotUp::TooSlow)?;
    let catalog = answered.map_err(|_| NotUp::Failed("it has ended".to_owned()))?.clone();
    let catalog = discreet(catalog);
    match &catalog.phase {
        Phase::Unavailable { reason } => Err(NotUp::Failed(reason.clone())),
        Phase::Connecting | Phase::Ready => Ok(catalog.tools.len()),
    }
}
