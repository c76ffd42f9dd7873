use futures_util::future::{join, join_all};
use proptest::prelude::*;
use toolyard_store::{Location, StoreOptions};

use super::*;

/// Gateways on one store.
const GATEWAYS: usize = 3;

/// What happens after a round of calls.
#[derive(Debug, Clone, Copy)]
enum Then {
    Nothing,
    /// A gateway stops as it should, and another takes its place.
    Stop(usize),
    /// A gateway is killed.
    Kill(usize),
    /// A call of a gateway was not run after all.
    GiveBack(usize),
}

/// How many calls come to each gateway at once, and what happens then.
type Round = ([usize; GATEWAYS], Then);

fn then() -> impl Strategy<Value = Then> {
    let gateway = 0..GATEWAYS;
    prop_oneof![
        Just(Then::Nothing),
        gateway.clone().prop_map(Then::Stop),
        gateway.clone().prop_map(Then::Kill),
        gateway.prop_map(Then::GiveBack),
    ]
}

/// A quota of so many calls, by as many gateways as there are.
struct Yard {
    store: Arc<dyn Store>,
    limit: u64,
    gateways: Vec<Gateway>,
    /// Calls that were run.
    spent: u64,
    /// What was lost with gateways that were killed.
    lost: u64,
}

struct Gateway {
    quota: Quota,
    /// Calls that it has run, and those of them that it has given back.
    ran: u64,
    given_back: u64,
}

impl Gateway {
    fn new(store: &Arc<dyn Store>, limit: u64) -> Self {
        let limit = Amount { millionths: limit * Amount::ONE.0, per: None };
        Self { quota: Quota::new(store.clone(), "key", "calls", limit), ran: 0, given_back: 0 }
    }

    /// Calls that come at once; gives how many were run.
    async fn calls(&mut self, count: usize) -> u64 {
        let taken = join_all((0..count).map(|_| self.quota.take(Amount::ONE))).await;
        let ran = taken.iter().filter(|taken| taken.is_ok()).count() as u64;
        self.ran += ran;
        ran
    }
}

impl Yard {
    async fn new(limit: u64) -> Self {
        let store = toolyard_store::open(&StoreOptions::at(Location::Memory)).await.unwrap();
        let gateways = (0..GATEWAYS).map(|_| Gateway::new(&store, limit)).collect();
        Self { store, limit, gateways, spent: 0, lost: 0 }
    }

    async fn calls(&mut self, counts: [usize; GATEWAYS]) {
        let calls = self.gateways.iter_mut().zip(counts).map(|(gateway, count)| gateway.calls(count));
        self.spent += join_all(calls).await.iter().sum::<u64>();
        assert!(self.spent + self.lost <= self.limit, "{} and {} of {}", self.spent, self.lost, self.limit);
    }

    async fn happens(&mut self, then: Then) {
        match then {
            Then::Nothing => {}
            Then::Stop(number) => self.replace(number).quota.stop().await,
            Then::Kill(number) => {
                let killed = self.replace(number);
                let left = killed.quota.taken.lock().unwrap().left / Amount::ONE.0;
                assert!(left <= self.limit / PART + killed.given_back, "{left} of {}", self.limit);
                self.lost += left;
            }
            Then::GiveBack(number) => {
                let gateway = &mut self.gateways[number];
                if gateway.ran > gateway.given_back {
                    gateway.quota.give_back(Amount::ONE);
                    gateway.given_back += 1;
                    self.spent -= 1;
                }
            }
        }
    }

    fn replace(&mut self, number: usize) -> Gateway {
        std::mem::replace(&mut self.gateways[number], Gateway::new(&self.store, self.limit))
    }

    /// All that is left can be had by one of them, once the others have stopped.
    async fn rest(&mut self) {
        let (last, others) = self.gateways.split_last_mut().unwrap();
        join_all(others.iter().map(|other| other.quota.stop())).await;
        while last.calls(1).await == 1 {
            self.spent += 1;
        }
        assert_eq!(self.spent + self.lost, self.limit);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn never_more_is_used_than_there_is_and_nothing_is_forgotten(
        limit in 1_u64..400,
        rounds in prop::collection::vec((prop::array::uniform3(0..40_usize), then()), 1..8),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut yard = Yard::new(limit).await;
            let rounds: Vec<Round> = rounds;
            for (counts, then) in rounds {
                yard.calls(counts).await;
                yard.happens(then).await;
            }
            yard.rest().await;
        });
    }
}

/// Whoever stops gives back in the middle of others' calls.
#[tokio::test]
async fn what_is_given_back_is_there_for_others_at_once() {
    let mut yard = Yard::new(300).await;
    yard.calls([1, 1, 1]).await;
    let (first, others) = yard.gateways.split_first().unwrap();
    let calls = join_all((0..100).map(|number| others[number % 2].quota.take(Amount::ONE)));
    let ((), taken) = join(first.quota.stop(), calls).await;
    yard.spent += taken.iter().filter(|taken| taken.is_ok()).count() as u64;
    yard.rest().await;
}
