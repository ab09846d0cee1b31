//! Holds in memory.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound::{Excluded, Unbounded};

use jiff::Timestamp;

use crate::accounts::keys::KeyId;
use crate::accounts::tables::holds::{HoldRecord, HoldTarget, Lifted};
use crate::accounts::{HoldKind, hold_name};
use crate::dispatch::ports::Hold;
use crate::domain::AccountId;
use crate::overview::HoldNow;

#[derive(Debug, Clone)]
struct Held {
    hold: Hold,
    reason: Option<String>,
    since: Timestamp,
    by_key: Option<KeyId>,
}

/// The kind and the id of what a hold is on.
type Target = (&'static str, String);

/// What is paused or cancelled.
#[derive(Debug, Default)]
pub(super) struct Holds(HashMap<AccountId, BTreeMap<Target, Held>>);

impl Holds {
    /// The gravest hold on an account and on what else a job belongs to.
    pub(super) fn gravest(
        &self,
        account: &AccountId,
        [campaign, journey, batch]: [Option<&str>; 3],
    ) -> Option<Hold> {
        let held = self.0.get(account)?;
        let on = [
            (HoldKind::Account, Some(account.as_str())),
            (HoldKind::Campaign, campaign),
            (HoldKind::Journey, journey),
            (HoldKind::Batch, batch),
        ];
        let holds = on.into_iter().filter_map(|(kind, target)| {
            let target = (kind.as_str(), target?.to_owned());
            held.get(&target).map(|held| held.hold)
        });
        holds.max()
    }

    /// Pauses or cancels something, and says which hold it had before; by the rules of
    /// [`put`](crate::accounts::tables::holds::put).
    pub(super) fn put(
        &mut self,
        on: &HoldTarget,
        hold: Hold,
        reason: Option<&str>,
        by: Option<KeyId>,
        now: Timestamp,
    ) -> Option<Hold> {
        let all = self.0.entry(on.account.clone()).or_default();
        let before = all.get(&key(on)).cloned();
        let stays = |before: &Held| {
            let is_operators = before.by_key.is_none();
            before.hold > hold || (is_operators && by.is_some())
        };
        if let Some(before) = before.as_ref().filter(|before| stays(before)) {
            return Some(before.hold);
        }
        let since = before.as_ref().filter(|before| before.hold == hold);
        let new = Held {
            hold,
            reason: reason
                .map(str::to_owned)
                .or_else(|| before.as_ref().and_then(|before| before.reason.clone())),
            since: since.map_or(now, |before| before.since),
            by_key: by,
        };
        all.insert(key(on), new);
        before.map(|before| before.hold)
    }

    /// Lifts a hold, by the rules of [`lift`](crate::accounts::tables::holds::lift).
    pub(super) fn lift(&mut self, on: &HoldTarget, gravest: Hold, by: Option<KeyId>) -> Lifted {
        let held = self.0.get_mut(&on.account);
        let before = held.as_ref().and_then(|held| held.get(&key(on)));
        let before = before.map(|before| (before.hold, before.by_key.is_none()));
        let lifted = Lifted::of(before, gravest, by);
        if let (Lifted::Lifted(_), Some(held)) = (lifted, held) {
            held.remove(&key(on));
        }
        lifted
    }

    /// A hold.
    pub(super) fn find(&self, on: &HoldTarget) -> Option<HoldRecord> {
        let held = self.0.get(&on.account)?.get(&key(on))?;
        Some(record(on.clone(), held))
    }

    /// At most `most` holds of an account, the newest first.
    pub(super) fn newest(&self, account: &AccountId, most: usize) -> Vec<HoldNow> {
        let all = self.0.get(account).into_iter().flatten();
        let mut holds: Vec<_> = all
            .map(|((kind, id), held)| HoldNow {
                kind,
                id: id.clone(),
                state: hold_name(held.hold),
                reason: held.reason.clone(),
                since: Some(held.since),
            })
            .collect();
        holds.sort_by(|a, b| (b.since, a.kind, &a.id).cmp(&(a.since, b.kind, &b.id)));
        holds.truncate(most);
        holds
    }

    /// At most `count` holds of an account, in the order of kinds and targets.
    pub(super) fn page(
        &self,
        account: &AccountId,
        after: Option<(HoldKind, &str)>,
        count: u16,
    ) -> Vec<HoldRecord> {
        let Some(held) = self.0.get(account) else {
            return Vec::new();
        };
        let from = after.map_or(Unbounded, |(kind, target)| {
            Excluded((kind.as_str(), target.to_owned()))
        });
        let rows = held.range((from, Unbounded)).take(count.into());
        let rows = rows.filter_map(|((kind, target), held)| {
            let on = HoldTarget {
                account: account.clone(),
                kind: HoldKind::parse(kind)?,
                target: target.clone(),
            };
            Some(record(on, held))
        });
        rows.collect()
    }
}

fn key(on: &HoldTarget) -> Target {
    (on.kind.as_str(), on.target.clone())
}

fn record(on: HoldTarget, held: &Held) -> HoldRecord {
    HoldRecord {
        on,
        hold: held.hold,
        reason: held.reason.clone(),
        since: held.since,
        by_key: held.by_key.map(|key| key.to_string()),
    }
}
