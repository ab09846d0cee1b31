//! Opt-outs in memory.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound::{Excluded, Unbounded};

use jiff::Timestamp;

use crate::accounts::tables::suppressions::{OptOut, Suppression};
use crate::domain::{AccountId, Channel, Scope};

/// Where an opt-out came from, and since when.
#[derive(Debug, Clone)]
struct Noted {
    source: Option<String>,
    since: Timestamp,
}

/// A recipient's opt-outs, by their scopes.
type Scopes = BTreeMap<&'static str, Noted>;

/// Who has opted out of what.
#[derive(Debug, Default)]
pub(super) struct OptOuts(HashMap<AccountId, BTreeMap<String, Scopes>>);

impl OptOuts {
    /// Whether somebody has opted out of a channel, or of all.
    pub(super) fn include(&self, account: &AccountId, recipient: &str, channel: Channel) -> bool {
        let scopes = self.0.get(account).and_then(|all| all.get(recipient));
        let opted_out = |scope: Scope| move |scopes: &Scopes| scopes.contains_key(scope.as_str());
        scopes.is_some_and(opted_out(Scope::All))
            || scopes.is_some_and(opted_out(Scope::Channel(channel)))
    }

    /// Writes an opt-out down, and says whether it is new. One that was there stays as it is.
    pub(super) fn add(&mut self, account: &AccountId, opt_out: OptOut, now: Timestamp) -> bool {
        let all = self.0.entry(account.clone()).or_default();
        let scopes = all.entry(opt_out.recipient).or_default();
        match scopes.entry(opt_out.scope.as_str()) {
            Entry::Occupied(_) => false,
            Entry::Vacant(new) => {
                new.insert(Noted {
                    source: opt_out.source,
                    since: now,
                });
                true
            }
        }
    }

    /// Removes a recipient's opt-outs, of one scope or of all, and says how many there were.
    pub(super) fn remove(
        &mut self,
        account: &AccountId,
        recipient: &str,
        scope: Option<Scope>,
    ) -> u64 {
        let Some(all) = self.0.get_mut(account) else {
            return 0;
        };
        let Some(scopes) = all.get_mut(recipient) else {
            return 0;
        };
        let before = scopes.len();
        scopes.retain(|name, _| scope.is_some_and(|scope| scope.as_str() != *name));
        let removed = before - scopes.len();
        if scopes.is_empty() {
            all.remove(recipient);
        }
        removed as u64
    }

    /// A recipient's opt-outs.
    pub(super) fn of_recipient(&self, account: &AccountId, recipient: &str) -> Vec<Suppression> {
        let scopes = self.0.get(account).and_then(|all| all.get(recipient));
        let scopes = scopes.into_iter().flatten();
        scopes
            .map(|(scope, noted)| suppression(recipient, scope, noted))
            .collect()
    }

    /// At most `count` opt-outs, in the order of recipients and scopes, behind a recipient and scope.
    pub(super) fn page(
        &self,
        account: &AccountId,
        scope: Option<Scope>,
        after: Option<(&str, &str)>,
        count: u16,
    ) -> Vec<Suppression> {
        let Some(all) = self.0.get(account) else {
            return Vec::new();
        };
        let rest = after.and_then(|(recipient, scope)| {
            let scopes = all
                .get(recipient)?
                .range::<str, _>((Excluded(scope), Unbounded));
            Some(scopes.map(move |(scope, noted)| (recipient, *scope, noted)))
        });
        let from = after.map_or(Unbounded, |(recipient, _)| Excluded(recipient));
        let others = all.range::<str, _>((from, Unbounded));
        let others = others.flat_map(|(recipient, scopes)| {
            scopes
                .iter()
                .map(|(scope, noted)| (&**recipient, *scope, noted))
        });
        let wanted = |name: &str| scope.is_none_or(|scope| scope.as_str() == name);
        rest.into_iter()
            .flatten()
            .chain(others)
            .filter(|(_, scope, _)| wanted(scope))
            .take(count.into())
            .map(|(recipient, scope, noted)| suppression(recipient, scope, noted))
            .collect()
    }
}

fn suppression(recipient: &str, scope: &str, noted: &Noted) -> Suppression {
    Suppression {
        recipient: recipient.to_owned(),
        scope: scope.to_owned(),
        source: noted.source.clone(),
        since: noted.since,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acme() -> AccountId {
        AccountId::parse("acme").unwrap()
    }

    fn with(entries: &[(&str, Scope)]) -> OptOuts {
        let mut opt_outs = OptOuts::default();
        for (recipient, scope) in entries {
            let opt_out = OptOut {
                recipient: (*recipient).to_owned(),
                scope: *scope,
                source: None,
            };
            assert!(opt_outs.add(&acme(), opt_out.clone(), Timestamp::UNIX_EPOCH));
            assert!(!opt_outs.add(&acme(), opt_out, Timestamp::UNIX_EPOCH));
        }
        opt_outs
    }

    const SMS: Scope = Scope::Channel(Channel::Sms);

    #[test]
    fn an_opt_out_concerns_its_account_its_recipient_and_its_scope() {
        let opt_outs = with(&[("a", Scope::All), ("b", SMS)]);
        let other = AccountId::parse("other").unwrap();
        assert!(opt_outs.include(&acme(), "a", Channel::Email));
        assert!(opt_outs.include(&acme(), "b", Channel::Sms));
        assert!(!opt_outs.include(&acme(), "b", Channel::Email));
        assert!(!opt_outs.include(&acme(), "c", Channel::Sms));
        assert!(!opt_outs.include(&other, "a", Channel::Sms));
    }

    #[test]
    fn what_is_removed_is_removed_by_its_scope() {
        let mut opt_outs = with(&[("a", Scope::All), ("a", SMS)]);
        assert_eq!(opt_outs.remove(&acme(), "b", None), 0);
        assert_eq!(opt_outs.remove(&acme(), "a", Some(SMS)), 1);
        assert!(opt_outs.include(&acme(), "a", Channel::Sms));
        assert_eq!(opt_outs.remove(&acme(), "a", None), 1);
        assert!(opt_outs.of_recipient(&acme(), "a").is_empty());
    }

    #[test]
    fn pages_of_any_size_show_each_opt_out_once() {
        let opt_outs = with(&[("a", Scope::All), ("a", SMS), ("b", SMS), ("c", Scope::All)]);
        for count in 1..=5 {
            let mut seen: Vec<(String, String)> = Vec::new();
            loop {
                let after = seen.last().map(|(one, other)| (&**one, &**other));
                let page = opt_outs.page(&acme(), None, after, count);
                if page.is_empty() {
                    break;
                }
                seen.extend(page.into_iter().map(|one| (one.recipient, one.scope)));
            }
            let shown: Vec<_> = seen
                .iter()
                .map(|(one, other)| format!("{one} {other}"))
                .collect();
            assert_eq!(shown, ["a all", "a sms", "b sms", "c all"]);
        }
        assert_eq!(opt_outs.page(&acme(), Some(SMS), None, 9).len(), 2);
    }
}
