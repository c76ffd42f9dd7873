//! The budget of bytes in flight: bodies, responses, replay buffers and queues share one limit, so that many clients
//! and servers together cannot exhaust the memory.
//!
//! A message of up to [`SMALL_MESSAGE`] bytes is not counted if its connection has no other one and thereby limits
//! it: the common call does not touch the budget. A larger message has a [`ByteReservation`] for the lifetime of its
//! bytes; [`ByteReservation::hold`] ties the two together.
//!
//! An owner of messages has a share of one quarter ([`ByteBudget::owned_by`]). Beyond its share it gets bytes only while a
//! quarter of the budget is left for others, so that not even three owners together exhaust the budget.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

/// Maximum size of a message that is not counted, in bytes.
pub const SMALL_MESSAGE: usize = 16 * 1024;

/// Bytes per unit of the budget.
const UNIT: usize = 1024;

/// Divisor of the budget for the share of one owner.
const OWNER_SHARE_DIVISOR: usize = 4;

/// Divisor of the budget for the part that an owner beyond its share has to leave for others.
const RESERVE_DIVISOR: usize = 4;

/// Number of owners from which owners without bytes are removed when another one is added.
const OWNER_SWEEP_SIZE: usize = 1024;

/// Maximum time that a message waits for the budget.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// A holder of bytes that it can release.
pub trait ReclaimBytes: Send + Sync {
    /// Releases some of these bytes.
    fn reclaim(&self);
}

/// A limit of the bytes of all messages in flight. Clones share it. The default is unlimited.
#[derive(Debug, Clone, Default)]
pub struct ByteBudget {
    shared: Option<Arc<BudgetState>>,
    /// The units of the owner's share; `None` without an owner.
    share: Option<Arc<Semaphore>>,
}

struct BudgetState {
    units: Arc<Semaphore>,
    all_units: usize,
    reclaimer: OnceLock<Weak<dyn ReclaimBytes>>,
    is_reclaiming: AtomicBool,
    owners: Mutex<HashMap<Arc<str>, Weak<Semaphore>>>,
}

impl std::fmt::Debug for BudgetState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { units, all_units, .. } = self;
        f.debug_struct("BudgetState")
            .field("units", units)
            .field("all_units", all_units)
            .finish_non_exhaustive()
    }
}

/// The budget is exhausted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many bytes are in flight: try again, or raise `limits.bytesInFlight`")]
pub struct BudgetExhausted;

/// A part of a budget, released on drop. The default is empty.
#[derive(Debug, Default)]
pub struct ByteReservation {
    permit: Option<OwnedSemaphorePermit>,
    /// The part that counts against the share of the owner.
    share: Option<OwnedSemaphorePermit>,
}

impl ByteBudget {
    /// A budget of `bytes` bytes.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        let all_units = (bytes / UNIT).clamp(1, Semaphore::MAX_PERMITS);
        let units = Arc::new(Semaphore::new(all_units));
        let (reclaimer, is_reclaiming) = (OnceLock::new(), AtomicBool::new(false));
        let owners = Mutex::default();
        let shared = BudgetState { units, all_units, reclaimer, is_reclaiming, owners };
        Self { shared: Some(Arc::new(shared)), share: None }
    }

    /// The same budget for the messages of this owner, which have a common share of it.
    #[must_use]
    pub fn owned_by(&self, owner: &Arc<str>) -> Self {
        let share = self.shared.as_ref().map(|shared| shared.share_of(owner));
        Self { shared: self.shared.clone(), share }
    }

    /// Sets the `reclaimer` that releases bytes when the budget is short. Only the first one is used.
    pub fn reclaim_from(&self, reclaimer: Weak<dyn ReclaimBytes>) {
        if let Some(shared) = &self.shared {
            let _is_first = shared.reclaimer.set(reclaimer);
        }
    }

    /// Reserves bytes without waiting.
    ///
    /// # Errors
    /// Errors if not enough is left.
    pub fn try_reserve(&self, bytes: usize) -> Result<ByteReservation, BudgetExhausted> {
        let Some(shared) = &self.shared else { return Ok(ByteReservation::default()) };
        self.try_units(shared, units(bytes)?)
    }

    fn try_units(&self, shared: &BudgetState, units: u32) -> Result<ByteReservation, BudgetExhausted> {
        let share = match &self.share {
            None => None,
            Some(share) => shared.take_share(share, units, units)?,
        };
        Ok(ByteReservation { permit: Some(shared.try_take(units)?), share })
    }

    /// Reserves bytes, and waits for a limited time if not enough is left. Callers are served in order.
    ///
    /// # Errors
    /// Errors after the time limit, or at once if the budget is too small.
    pub async fn reserve(&self, bytes: usize) -> Result<ByteReservation, BudgetExhausted> {
        self.reserve_by(bytes, &mut None).await
    }

    /// Reserves a further part for a growing message. The first wait sets `deadline`, which limits all waits of the
    /// message together.
    ///
    /// # Errors
    /// As [`ByteBudget::reserve`].
    pub async fn reserve_by(
        &self,
        bytes: usize,
        deadline: &mut Option<Instant>,
    ) -> Result<ByteReservation, BudgetExhausted> {
        let Some(shared) = &self.shared else { return Ok(ByteReservation::default()) };
        let units = units(bytes)?;
        if let Ok(reserved) = self.try_units(shared, units) {
            return Ok(reserved);
        }
        let limit =
            if self.share.is_some() { shared.all_units / OWNER_SHARE_DIVISOR } else { shared.all_units };
        if units as usize > limit {
            return Err(BudgetExhausted);
        }
        let deadline = *deadline.get_or_insert_with(|| Instant::now() + MAX_WAIT);
        let acquisition = async {
            // The share first: an owner that waits for its own messages keeps no bytes from others.
            let share = match &self.share {
                Some(share) => Some(share.clone().acquire_many_owned(units).await?),
                None => None,
            };
            let permit = Some(shared.units.clone().acquire_many_owned(units).await?);
            Ok::<_, AcquireError>(ByteReservation { permit, share })
        };
        timeout_at(deadline, acquisition).await.map_err(|_| BudgetExhausted)?.map_err(|_| BudgetExhausted)
    }

    /// Charges bytes that are already reserved to the share of this owner, which was unknown when they arrived. The
    /// rules are those of [`ByteBudget::try_reserve`].
    ///
    /// # Errors
    /// Errors if not enough is left of the share.
    pub fn try_charge(&self, bytes: usize) -> Result<ByteReservation, BudgetExhausted> {
        let (Some(shared), Some(share)) = (&self.shared, &self.share) else {
            return Ok(ByteReservation::default());
        };
        Ok(ByteReservation { permit: None, share: shared.take_share(share, units(bytes)?, 0)? })
    }

    /// Ties a reservation to existing bytes.
    ///
    /// # Errors
    /// Errors if not enough is left. The bytes are dropped.
    pub fn try_hold(&self, bytes: Bytes) -> Result<Bytes, BudgetExhausted> {
        Ok(self.try_reserve(bytes.len())?.hold(bytes))
    }

    /// Ties a reservation to existing bytes unless they are small.
    ///
    /// # Errors
    /// As [`ByteBudget::reserve`]. The bytes are dropped.
    pub async fn hold(&self, bytes: Bytes) -> Result<Bytes, BudgetExhausted> {
        match bytes.len() {
            ..=SMALL_MESSAGE => Ok(bytes),
            length => Ok(self.reserve(length).await?.hold(bytes)),
        }
    }

    /// `true` if less than an eighth is left.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.shared.as_ref().is_some_and(|shared| shared.units.available_permits() < shared.all_units / 8)
    }

    /// Number of reserved bytes.
    #[must_use]
    pub fn used(&self) -> usize {
        self.shared.as_ref().map_or(0, |shared| (shared.all_units - shared.units.available_permits()) * UNIT)
    }
}

/// Number of units for these bytes.
fn units(bytes: usize) -> Result<u32, BudgetExhausted> {
    u32::try_from(bytes.div_ceil(UNIT)).map_err(|_| BudgetExhausted)
}

impl BudgetState {
    fn share_of(&self, owner: &Arc<str>) -> Arc<Semaphore> {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = owners.get(owner).and_then(Weak::upgrade) {
            return share;
        }
        if owners.len() >= OWNER_SWEEP_SIZE {
            owners.retain(|_, share| share.strong_count() > 0);
        }
        let share = Arc::new(Semaphore::new((self.all_units / OWNER_SHARE_DIVISOR).max(1)));
        owners.insert(owner.clone(), Arc::downgrade(&share));
        share
    }

    /// Takes the units from an owner's share. If the share is too small, takes its rest, provided that enough is left for
    /// others once `reserved` units are reserved.
    fn take_share(
        &self,
        share: &Arc<Semaphore>,
        units: u32,
        reserved: u32,
    ) -> Result<Option<OwnedSemaphorePermit>, BudgetExhausted> {
        match share.clone().try_acquire_many_owned(units) {
            Ok(taken) => Ok(Some(taken)),
            Err(_) if self.leaves_room(reserved) => {
                let rest = u32::try_from(share.available_permits()).unwrap_or(units).min(units);
                Ok(share.clone().try_acquire_many_owned(rest).ok())
            }
            Err(_) => Err(BudgetExhausted),
        }
    }

    /// `true` if enough is left for others after this reservation.
    fn leaves_room(&self, units: u32) -> bool {
        self.units.available_permits() >= (units as usize).saturating_add(self.all_units / RESERVE_DIVISOR)
    }

    fn try_take(&self, units: u32) -> Result<OwnedSemaphorePermit, BudgetExhausted> {
        let take = || self.units.clone().try_acquire_many_owned(units);
        let permit = take().or_else(|_| {
            self.reclaim();
            take()
        });
        permit.map_err(|_| BudgetExhausted)
    }

    /// Releases bytes of the reclaimer. One caller at a time does this.
    fn reclaim(&self) {
        let Some(reclaimer) = self.reclaimer.get().and_then(Weak::upgrade) else { return };
        if !self.is_reclaiming.swap(true, Ordering::Acquire) {
            reclaimer.reclaim();
            self.is_reclaiming.store(false, Ordering::Release);
        }
    }
}

impl ByteReservation {
    /// Adds another reservation of the same budget and owner.
    pub fn add(&mut self, other: Self) {
        merge(&mut self.permit, other.permit);
        merge(&mut self.share, other.share);
    }

    /// Splits off a part for these bytes, as far as the reservation suffices.
    #[must_use]
    pub fn split(&mut self, bytes: usize) -> Self {
        let units = bytes.div_ceil(UNIT);
        let part = |permit: &mut Option<OwnedSemaphorePermit>| {
            let permit = permit.as_mut()?;
            permit.split(units.min(permit.num_permits()))
        };
        Self { permit: part(&mut self.permit), share: part(&mut self.share) }
    }

    /// Number of reserved bytes; 0 without a limit.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.permit.as_ref().map_or(0, |permit| permit.num_permits() * UNIT)
    }

    /// Shrinks the reservation to what these bytes need.
    pub fn shrink(&mut self, bytes: usize) {
        let remaining = self.split(bytes);
        *self = remaining;
    }

    /// Releases the share of the owner and keeps the bytes, which belong to another one now.
    #[must_use]
    pub fn disowned(self) -> Self {
        Self { share: None, ..self }
    }

    /// Ties the reservation to bytes: it is released with their last slice.
    #[must_use]
    pub fn hold(self, bytes: Bytes) -> Bytes {
        match self.permit.is_some() || self.share.is_some() {
            true if !bytes.is_empty() => Bytes::from_owner(ReservedBytes { bytes, _reserved: self }),
            _ => bytes,
        }
    }
}

/// Bytes with their reservation.
struct ReservedBytes {
    bytes: Bytes,
    _reserved: ByteReservation,
}

fn merge(permit: &mut Option<OwnedSemaphorePermit>, other: Option<OwnedSemaphorePermit>) {
    match (permit, other) {
        (Some(permit), Some(other)) => permit.merge(other),
        (permit @ None, other) => *permit = other,
        (Some(_), None) => {}
    }
}

impl AsRef<[u8]> for ReservedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    const KIB: usize = 1024;

    #[tokio::test(start_paused = true)]
    async fn reservation_is_released_with_the_last_slice() {
        let budget = ByteBudget::new(10 * KIB);
        let bytes = budget.try_hold(vec![b'x'; 3 * KIB + 1].into()).unwrap();
        assert_eq!(budget.used(), 4 * KIB);
        let slice = bytes.slice(1..2);
        drop(bytes);
        assert_eq!((budget.used(), budget.try_reserve(7 * KIB).unwrap_err()), (4 * KIB, BudgetExhausted));
        assert_eq!(budget.reserve(7 * KIB).await.unwrap_err(), BudgetExhausted, "the time is over");
        assert_eq!(budget.reserve(11 * KIB).await.unwrap_err(), BudgetExhausted, "more than all");
        assert_eq!((&*slice, budget.is_short()), (&b"x"[..], false));
        drop(slice);
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test]
    async fn waiting_reservations_are_served_in_order() {
        let budget = ByteBudget::new(10 * KIB);
        let all = budget.try_reserve(10 * KIB).unwrap();
        assert!(budget.is_short());
        let order = Arc::new(Mutex::new(Vec::new()));
        let waiting = [8, 2, 1].map(|size| {
            let (budget, order) = (budget.clone(), order.clone());
            tokio::spawn(async move {
                let _reserved = budget.reserve(size * KIB).await.unwrap();
                order.lock().unwrap().push(size);
            })
        });
        tokio::task::yield_now().await;
        drop(all);
        for waiting in waiting {
            waiting.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), [8, 2, 1]);
    }

    #[test]
    fn reservations_are_split_and_merged() {
        let budget = ByteBudget::new(10 * KIB);
        let mut first = budget.try_reserve(2 * KIB).unwrap();
        first.add(budget.try_reserve(4 * KIB).unwrap());
        let second = first.split(5 * KIB);
        drop(first);
        assert_eq!(budget.used(), 5 * KIB);
        let mut all = second;
        assert_eq!(all.split(100 * KIB).hold(Bytes::from_static(b"x")).len(), 1);
        drop(all);
        assert_eq!(budget.used(), 0);
        let unbounded = ByteBudget::default();
        assert_eq!(unbounded.try_hold(Bytes::from(vec![0; 1 << 20])).unwrap().len(), 1 << 20);
        assert_eq!((unbounded.used(), unbounded.is_short()), (0, false));
    }

    #[tokio::test(start_paused = true)]
    async fn owner_leaves_a_part_of_the_budget_for_others() {
        let budget = ByteBudget::new(100 * KIB);
        let [greedy, other] = ["a", "b"].map(|owner| budget.owned_by(&owner.into()));
        let mut reservation = greedy.try_reserve(50 * KIB).unwrap();
        // Beyond its share, while a quarter is left.
        reservation.add(greedy.try_reserve(20 * KIB).unwrap());
        assert_eq!(greedy.try_reserve(10 * KIB).unwrap_err(), BudgetExhausted);
        assert_eq!(greedy.reserve(10 * KIB).await.unwrap_err(), BudgetExhausted, "the time is over");
        // Another handle of the same owner is not another owner.
        assert_eq!(budget.owned_by(&"a".into()).try_reserve(10 * KIB).unwrap_err(), BudgetExhausted);
        let others = other.try_reserve(25 * KIB).unwrap();
        drop(others);
        // An owner that waits for its own share keeps no bytes from others.
        let waiting = greedy.clone();
        let waiting = tokio::spawn(async move { waiting.reserve(20 * KIB).await.map(|got| got.bytes()) });
        tokio::task::yield_now().await;
        let others = other.reserve(25 * KIB).await.unwrap();
        drop((others, reservation.hold(Bytes::from_static(b"x"))));
        assert_eq!(waiting.await.unwrap(), Ok(20 * KIB));
        assert_eq!(budget.used(), 0);
        assert_eq!(greedy.reserve(60 * KIB).await.unwrap().bytes(), 60 * KIB, "while nothing else is held");
    }

    #[test]
    fn charge_beyond_the_share_is_refused() {
        let budget = ByteBudget::new(100 * KIB);
        let owner = budget.owned_by(&"a".into());
        let charge = |bytes| {
            let reserved = budget.try_reserve(bytes).unwrap().hold(vec![0; bytes].into());
            owner.try_charge(bytes).map(|charged| charged.hold(reserved))
        };
        let mut reservations: Vec<_> = (0..7).map(|_| charge(10 * KIB).unwrap()).collect();
        // A quarter is left for others before this reservation, but not with it.
        assert_eq!((charge(10 * KIB).unwrap_err(), budget.used()), (BudgetExhausted, 70 * KIB));
        reservations.clear();
        drop(charge(40 * KIB).unwrap());
        assert_eq!(budget.used(), 0);
        assert_eq!(budget.try_charge(200 * KIB).unwrap().bytes(), 0, "it is nobody's");
    }

    #[test]
    fn three_owners_leave_a_quarter_of_the_budget() {
        let budget = ByteBudget::new(100 * KIB);
        let greedy = ["a", "b", "c"].map(|owner| budget.owned_by(&owner.into()));
        let taken = (0..90).filter_map(|turn| greedy[turn % 3].try_reserve(KIB).ok());
        let taken: Vec<_> = taken.collect();
        assert_eq!(taken.len(), 75);
        assert_eq!(budget.owned_by(&"d".into()).try_reserve(25 * KIB).unwrap().bytes(), 25 * KIB);
    }

    #[test]
    fn disowned_bytes_free_the_share() {
        let budget = ByteBudget::new(100 * KIB);
        let _others = budget.try_reserve(60 * KIB).unwrap();
        let owner = budget.owned_by(&"a".into());
        let first = owner.try_reserve(20 * KIB).unwrap();
        assert_eq!(owner.try_reserve(15 * KIB).unwrap_err(), BudgetExhausted);
        let _first = first.disowned();
        assert_eq!((owner.try_reserve(15 * KIB).unwrap().bytes(), budget.used()), (15 * KIB, 95 * KIB));
    }

    #[test]
    fn owners_without_bytes_are_removed() {
        let budget = ByteBudget::new(100 * KIB);
        for owner in 0..3 * OWNER_SWEEP_SIZE {
            drop(budget.owned_by(&owner.to_string().into()));
        }
        assert!(budget.shared.unwrap().owners.lock().unwrap().len() <= OWNER_SWEEP_SIZE);
    }

    /// Holds some bytes, and releases them on request.
    struct ByteCache(Mutex<Vec<Bytes>>);

    impl ReclaimBytes for ByteCache {
        fn reclaim(&self) {
            self.0.lock().unwrap().pop();
        }
    }

    #[test]
    fn cached_bytes_are_reclaimed_first() {
        let budget = ByteBudget::new(10 * KIB);
        let cached = (0..3).map(|_| budget.try_hold(vec![0; 3 * KIB].into()).unwrap()).collect();
        let keeper: Arc<dyn ReclaimBytes> = Arc::new(ByteCache(Mutex::new(cached)));
        budget.reclaim_from(Arc::downgrade(&keeper));
        let first = budget.try_reserve(4 * KIB).unwrap();
        assert_eq!(budget.used(), 10 * KIB);
        drop(first);
        drop(keeper);
        assert_eq!(budget.used(), 0);
    }
}
