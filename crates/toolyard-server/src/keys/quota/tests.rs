use futures_util::future::{join, join_all};
use proptest::prelude::*;
use toolyard_store::{DatabaseLocation, StoreOptions};

use super::*;

/// Gateways on one store.
const GATEWAYS: usize = 3;

/// An event after a round of calls.
#[derive(Debug, Clone, Copy)]
enum RoundEnd {
    Nothing,
    /// A gateway stops cleanly, and another replaces it.
    Stop(usize),
    /// A gateway is killed.
    Kill(usize),
    /// A call of a gateway was not run after all.
    GiveBack(usize),
}

/// Number of concurrent calls at each gateway, and the event after them.
type Round = ([usize; GATEWAYS], RoundEnd);

fn round_end() -> impl Strategy<Value = RoundEnd> {
    let gateway = 0..GATEWAYS;
    prop_oneof![
        Just(RoundEnd::Nothing),
        gateway.clone().prop_map(RoundEnd::Stop),
        gateway.clone().prop_map(RoundEnd::Kill),
        gateway.prop_map(RoundEnd::GiveBack),
    ]
}

/// A quota of `limit` calls, shared by the gateways.
struct QuotaFixture {
    store: Arc<dyn Store>,
    limit: u64,
    gateways: Vec<QuotaGateway>,
    /// Calls that have run.
    spent: u64,
    /// Amount lost with killed gateways.
    lost: u64,
}

struct QuotaGateway {
    quota: KeyQuota,
    /// Calls that have run, and the number of them returned to the quota.
    runs: u64,
    returned: u64,
}

impl QuotaGateway {
    fn new(store: &Arc<dyn Store>, limit: u64) -> Self {
        let limit = QuotaAmount { millionths: limit * QuotaAmount::ONE.0, per: None };
        Self { quota: KeyQuota::new(store.clone(), "key", "calls", limit), runs: 0, returned: 0 }
    }

    /// Makes concurrent calls. Returns the number that ran.
    async fn calls(&mut self, count: usize) -> u64 {
        let outcomes = join_all((0..count).map(|_| self.quota.take(QuotaAmount::ONE))).await;
        let runs = outcomes.iter().filter(|outcomes| outcomes.is_ok()).count() as u64;
        self.runs += runs;
        runs
    }
}

impl QuotaFixture {
    async fn new(limit: u64) -> Self {
        let store = toolyard_store::open(&StoreOptions::at(DatabaseLocation::Memory)).await.unwrap();
        let gateways = (0..GATEWAYS).map(|_| QuotaGateway::new(&store, limit)).collect();
        Self { store, limit, gateways, spent: 0, lost: 0 }
    }

    async fn calls(&mut self, counts: [usize; GATEWAYS]) {
        let calls = self.gateways.iter_mut().zip(counts).map(|(gateway, count)| gateway.calls(count));
        self.spent += join_all(calls).await.iter().sum::<u64>();
        assert!(self.spent + self.lost <= self.limit, "{} and {} of {}", self.spent, self.lost, self.limit);
    }

    async fn end_round(&mut self, round_end: RoundEnd) {
        match round_end {
            RoundEnd::Nothing => {}
            RoundEnd::Stop(index) => self.replace(index).quota.stop().await,
            RoundEnd::Kill(index) => {
                let killed = self.replace(index);
                let left = killed.quota.reservation.lock().unwrap().left / QuotaAmount::ONE.0;
                assert!(left <= self.limit / SHARE_DIVISOR + killed.returned, "{left} of {}", self.limit);
                self.lost += left;
            }
            RoundEnd::GiveBack(index) => {
                let gateway = &mut self.gateways[index];
                if gateway.runs > gateway.returned {
                    gateway.quota.give_back(QuotaAmount::ONE);
                    gateway.returned += 1;
                    self.spent -= 1;
                }
            }
        }
    }

    fn replace(&mut self, index: usize) -> QuotaGateway {
        std::mem::replace(&mut self.gateways[index], QuotaGateway::new(&self.store, self.limit))
    }

    /// Checks that one gateway can use all that remains once the others have stopped.
    async fn drain(&mut self) {
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
    fn quota_is_never_exceeded_nor_lost(
        limit in 1_u64..400,
        rounds in prop::collection::vec((prop::array::uniform3(0..40_usize), round_end()), 1..8),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut fixture = QuotaFixture::new(limit).await;
            let rounds: Vec<Round> = rounds;
            for (counts, round_end) in rounds {
                fixture.calls(counts).await;
                fixture.end_round(round_end).await;
            }
            fixture.drain().await;
        });
    }
}

/// A gateway stops while others make calls.
#[tokio::test]
async fn returned_share_is_available_to_others_at_once() {
    let mut fixture = QuotaFixture::new(300).await;
    fixture.calls([1, 1, 1]).await;
    let (first, others) = fixture.gateways.split_first().unwrap();
    let calls = join_all((0..100).map(|index| others[index % 2].quota.take(QuotaAmount::ONE)));
    let ((), outcomes) = join(first.quota.stop(), calls).await;
    fixture.spent += outcomes.iter().filter(|outcomes| outcomes.is_ok()).count() as u64;
    fixture.drain().await;
}
