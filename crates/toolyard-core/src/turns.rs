//! Permits that are granted to waiting owners in turn, whatever the number of calls of each.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// A number of permits. An owner that holds one gets another only while no owner without one waits. Clones share them.
#[derive(Clone)]
pub(crate) struct FairTurns {
    state: Arc<Mutex<TurnState>>,
}

struct TurnState {
    free: usize,
    held: HashMap<Arc<str>, usize>,
    /// Waiting owners in the order of their turns.
    waiting: VecDeque<WaitingOwner>,
}

/// The waiting calls of one owner, in order.
struct WaitingOwner {
    owner: Arc<str>,
    calls: VecDeque<oneshot::Sender<TurnPermit>>,
}

/// A permit, released on drop.
pub(crate) struct TurnPermit {
    turns: FairTurns,
    owner: Arc<str>,
}

impl FairTurns {
    pub(crate) fn new(places: usize) -> Self {
        let state = TurnState { free: places, held: HashMap::new(), waiting: VecDeque::new() };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Waits for a permit. Dropping the future gives up the wait.
    pub(crate) async fn take(&self, owner: &Arc<str>) -> Option<TurnPermit> {
        let turn = self.state().wait(owner);
        self.serve();
        turn.await.ok()
    }

    fn state(&self) -> MutexGuard<'_, TurnState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Grants the free permits.
    fn serve(&self) {
        loop {
            let Some((call, owner)) = self.state().next() else { return };
            // A call that was dropped meanwhile drops its permit, which then goes to the next one.
            drop(call.send(TurnPermit { turns: self.clone(), owner }));
        }
    }
}

impl TurnState {
    fn wait(&mut self, owner: &Arc<str>) -> oneshot::Receiver<TurnPermit> {
        let (call, turn) = oneshot::channel();
        match self.waiting.iter_mut().find(|waiting| waiting.owner == *owner) {
            Some(waiting) => {
                waiting.calls.retain(|call| !call.is_closed());
                waiting.calls.push_back(call);
            }
            None => self.waiting.push_back(WaitingOwner { owner: owner.clone(), calls: [call].into() }),
        }
        turn
    }

    /// Grants a free permit to the first of the owners with the fewest permits.
    fn next(&mut self) -> Option<(oneshot::Sender<TurnPermit>, Arc<str>)> {
        if self.free == 0 {
            return None;
        }
        self.waiting.retain_mut(|waiting| {
            waiting.calls.retain(|call| !call.is_closed());
            !waiting.calls.is_empty()
        });
        let permits = |waiting: &WaitingOwner| self.held.get(&waiting.owner).copied().unwrap_or_default();
        let (at, _) = self.waiting.iter().enumerate().min_by_key(|(_, waiting)| permits(waiting))?;
        let mut waiting = self.waiting.remove(at)?;
        let call = waiting.calls.pop_front()?;
        let owner = waiting.owner.clone();
        if !waiting.calls.is_empty() {
            self.waiting.push_back(waiting);
        }
        self.free -= 1;
        *self.held.entry(owner.clone()).or_default() += 1;
        Some((call, owner))
    }

    fn give_back(&mut self, owner: &Arc<str>) {
        self.free += 1;
        if let Some(held) = self.held.get_mut(owner) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(owner);
            }
        }
    }
}

impl Drop for TurnPermit {
    fn drop(&mut self) {
        self.turns.state().give_back(&self.owner);
        self.turns.serve();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use futures_util::future::BoxFuture;

    use super::*;

    type Wait<'a> = BoxFuture<'a, Option<TurnPermit>>;

    /// Starts to wait.
    fn wait<'a>(turns: &FairTurns, owner: &str) -> Wait<'a> {
        let (turns, owner) = (turns.clone(), Arc::from(owner));
        let mut wait = async move { turns.take(&owner).await }.boxed();
        match (&mut wait).now_or_never() {
            Some(turn) => std::future::ready(turn).boxed(),
            None => wait,
        }
    }

    /// Returns the permits that were granted.
    fn come(waits: &mut Vec<Wait<'_>>) -> Vec<TurnPermit> {
        let mut come = Vec::new();
        waits.retain_mut(|wait| match wait.now_or_never() {
            Some(turn) => {
                come.extend(turn);
                false
            }
            None => true,
        });
        come
    }

    fn owners(turns: &[TurnPermit]) -> Vec<&str> {
        turns.iter().map(|turn| &*turn.owner).collect()
    }

    #[test]
    fn single_owner_uses_all_permits() {
        let turns = FairTurns::new(2);
        let mut waits: Vec<_> = (0..3).map(|_| wait(&turns, "a")).collect();
        let first = come(&mut waits);
        assert_eq!(owners(&first), ["a", "a"]);
        drop(first);
        assert_eq!(owners(&come(&mut waits)), ["a"]);
        assert!(turns.state().held.is_empty(), "nothing is left of an owner");
    }

    #[test]
    fn an_owner_with_many_calls_holds_one_place_while_others_wait() {
        let turns = FairTurns::new(2);
        let mut waits: Vec<_> = (0..100).map(|_| wait(&turns, "a")).collect();
        let mut turns_held = come(&mut waits);
        waits.extend(["b", "b", "c"].map(|owner| wait(&turns, owner)));
        let mut order = Vec::new();
        for _ in 0..6 {
            turns_held.remove(0);
            turns_held.extend(come(&mut waits));
            order.extend(turns_held.last().map(|turn| turn.owner.to_string()));
        }
        assert_eq!(order, ["b", "a", "c", "b", "a", "a"]);
    }

    #[test]
    fn cancelled_wait_takes_no_permit() {
        let turns = FairTurns::new(1);
        let first = come(&mut vec![wait(&turns, "a")]);
        let mut waits: Vec<_> = ["b", "b", "c"].map(|owner| wait(&turns, owner)).into();
        waits.drain(..2);
        drop(first);
        assert_eq!(owners(&come(&mut waits)), ["c"]);
        // A call dropped after its permit was granted returns the permit.
        let (held, late) = (come(&mut vec![wait(&turns, "a")]), wait(&turns, "b"));
        let mut next = vec![wait(&turns, "c")];
        drop(held);
        drop(late);
        assert_eq!(owners(&come(&mut next)), ["c"]);
    }
}
