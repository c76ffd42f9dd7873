//! How much somebody may use, in all or in a period, over all gateways on one store.
//!
//! What was used stands in the store. A gateway takes a part of what is left there for itself, a small one, and spends
//! that without asking again: never more is spent than the quota, by however many gateways. What one of them has taken and
//! does not spend is not there for the others until it stops; a part is at most a sixty-fourth of what is left, so that the
//! last ones are taken one by one. What a gateway that was killed had taken is lost.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::Semaphore;
use toolyard_core::access::Price;
use toolyard_core::store::{Condition, Put, Space, Store, StoreError};
use toolyard_core::{Code, ToolError};

use super::key::{Amount, Period, millis};

/// Where it stands what was used.
pub const USED: Space = Space("quota");

/// A gateway takes this part of what is left.
const PART: u64 = 64;

/// What was used in a period is forgotten this long after that.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// A quota of one key.
pub struct Quota {
    store: Arc<dyn Store>,
    /// Under which name it stands in the store what was used.
    name: String,
    limit: Amount,
    taken: Mutex<Taken>,
    /// One at a time asks the store.
    asking: Semaphore,
}

/// What this gateway has taken for itself and not spent.
#[derive(Debug, Clone, Copy, Default)]
struct Taken {
    /// Of which period: its beginning, in milliseconds.
    period: u64,
    left: u64,
}

impl std::fmt::Debug for Quota {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Quota").field("name", &self.name).field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl Quota {
    /// The quota `name` of the key with this id.
    pub fn new(store: Arc<dyn Store>, id: &str, name: &str, limit: Amount) -> Self {
        let (name, taken) = (format!("{id}/{name}"), Mutex::default());
        Self { store, name, limit, taken, asking: Semaphore::new(1) }
    }

    /// Spends some of it.
    ///
    /// # Errors
    /// When there is not as much left, or the store does not say.
    pub async fn take(&self, price: Price) -> Result<(), ToolError> {
        if price.0 == 0 || self.spend(price.0) {
            return Ok(());
        }
        // It is never closed.
        let _turn = self.asking.acquire().await;
        if self.spend(price.0) {
            return Ok(());
        }
        match self.ask(price.0).await {
            Ok(true) => Ok(()),
            Ok(false) => {
                Err(ToolError::new(Code::QuotaExhausted, format!("The quota of {} is used up", self.limit)))
            }
            Err(error) => {
                let message = "Nobody can say what is left of the quota now";
                Err(ToolError::new(Code::Unavailable, message).caused_by(error))
            }
        }
    }

    /// Takes back what was not used after all.
    pub fn give_back(&self, price: Price) {
        let period = self.period();
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.period == period {
            taken.left += price.0;
        }
    }

    /// Gives the store back what was taken and not spent.
    pub async fn stop(&self) {
        let taken = std::mem::take(&mut *self.taken.lock().unwrap_or_else(PoisonError::into_inner));
        if taken.left == 0 {
            return;
        }
        loop {
            match self.change(taken.period, |used| Some(used.saturating_sub(taken.left))).await {
                Ok(Changed::Conflict) => {}
                Ok(Changed::Done | Changed::Refused) => return,
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(quota = self.name, error, "what was not used is lost");
                    return;
                }
            }
        }
    }

    fn spend(&self, price: u64) -> bool {
        let period = self.period();
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.period != period || taken.left < price {
            return false;
        }
        taken.left -= price;
        true
    }

    /// Takes the price, and a part of what is left behind it.
    async fn ask(&self, price: u64) -> Result<bool, StoreError> {
        loop {
            let (period, limit) = (self.period(), self.limit.millionths);
            let mut more = 0;
            let changed = self.change(period, |used| {
                let left = limit.saturating_sub(used);
                // Whole calls, or whatever costs are given in.
                more = left.checked_sub(price)? / PART / Amount::ONE.0 * Amount::ONE.0;
                Some(used + price + more)
            });
            match changed.await? {
                Changed::Conflict => {}
                Changed::Refused => return Ok(false),
                Changed::Done => {
                    let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
                    if taken.period != period {
                        *taken = Taken { period, left: 0 };
                    }
                    taken.left += more;
                    return Ok(true);
                }
            }
        }
    }

    /// Changes what the store says was used in a period, unless somebody else did meanwhile.
    async fn change(
        &self,
        period: u64,
        change: impl FnOnce(u64) -> Option<u64>,
    ) -> Result<Changed, StoreError> {
        let key = format!("{}/{period}", self.name);
        let before = self.store.get(USED, &key).await?;
        let text = before.as_ref().and_then(|value| std::str::from_utf8(&value.bytes).ok());
        let Some(used) = change(text.and_then(|text| text.parse().ok()).unwrap_or_default()) else {
            return Ok(Changed::Refused);
        };
        let condition = before.map_or(Condition::Absent, |value| Condition::Version(value.version));
        let end = self.limit.per.map(|length| Duration::from_millis(period) + length.length() + KEPT);
        let expires = end.map(|end| SystemTime::UNIX_EPOCH + end);
        let put = Put { bytes: used.to_string().into(), condition, expires };
        Ok(self.store.put(USED, &key, put).await?.map_or(Changed::Conflict, |_| Changed::Done))
    }

    /// The beginning of the period that is now, in milliseconds since 1970; 0 where there is only one.
    fn period(&self) -> u64 {
        let now = millis(SystemTime::now());
        let length = self
            .limit
            .per
            .map(Period::length)
            .map(|length| u64::try_from(length.as_millis()).unwrap_or(u64::MAX));
        length.map_or(0, |length| now - now % length)
    }
}

/// What came of a change.
enum Changed {
    Done,
    /// Somebody else was quicker.
    Conflict,
    /// There is not as much.
    Refused,
}

#[cfg(test)]
mod tests;
