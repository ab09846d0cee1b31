//! stand-in
#![allow(missing_docs, clippy::all, clippy::pedantic)]
use super::*;
use crate::dispatch::ports::*;
use crate::domain::*;
use crate::telemetry::Telemetry;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

#[derive(Clone)]
enum Claim {
    Sending(Instant, TryId),
    Sent(SentRecord),
}
#[derive(Default)]
struct St {
    counters: HashMap<AccountId, (Instant, u32)>,
    claims: HashMap<(AccountId, JobId), Claim>,
}
#[derive(Clone, Default)]
pub struct MemoryStore(Arc<Mutex<St>>);
impl MemoryStore {
    pub fn new(_: Duration) -> Self {
        Self::default()
    }
}
impl CounterStore for MemoryStore {
    async fn admit(&self, requests: &[AccountRequest]) -> Vec<Result<StoreAnswer, StoreError>> {
        let mut s = self.0.lock().unwrap();
        let now = Instant::now();
        requests
            .iter()
            .map(|r| {
                let mut out = vec![];
                for j in &r.jobs {
                    let key = (r.account.clone(), j.id.clone());
                    let mut pd = false;
                    match s.claims.get(&key) {
                        Some(Claim::Sent(rec)) => {
                            out.push(Verdict::Duplicate(rec.clone()));
                            continue;
                        }
                        Some(Claim::Sending(d, _)) if *d > now => {
                            out.push(Verdict::Shed(Limit::Claim));
                            continue;
                        }
                        Some(_) => pd = true,
                        None => {}
                    }
                    let c = s.counters.entry(r.account.clone()).or_insert((now, 0));
                    if now.duration_since(c.0) >= Duration::from_secs(1) {
                        *c = (now, 0);
                    }
                    if c.1 >= r.ceilings.of_lane(j.lane) {
                        out.push(Verdict::Shed(Limit::Lane));
                        continue;
                    }
                    if c.1 == 0 {
                        c.0 = now;
                    }
                    c.1 += 1;
                    s.claims
                        .insert(key, Claim::Sending(now + j.claim_for, j.try_id));
                    out.push(Verdict::Admitted {
                        possible_duplicate: pd,
                    });
                }
                let c = s.counters.get(&r.account).copied().unwrap_or((now, 0));
                let left = (c.0 + Duration::from_secs(1)).saturating_duration_since(now);
                Ok(StoreAnswer {
                    verdicts: out,
                    counter: Counter {
                        count: if left.is_zero() { 0 } else { c.1 },
                        window_left: if c.1 == 0 { Duration::ZERO } else { left },
                    },
                })
            })
            .collect()
    }
    async fn conclude(&self, cs: &[Conclusion]) -> Result<(), StoreError> {
        let mut s = self.0.lock().unwrap();
        let now = Instant::now();
        for c in cs {
            let key = (c.account.clone(), c.id.clone());
            let mine = matches!(s.claims.get(&key), Some(Claim::Sending(_, t)) if *t == c.try_id);
            match &c.result {
                TryResult::Sent {
                    carrier,
                    carrier_ref,
                } => {
                    s.claims.insert(
                        key,
                        Claim::Sent(SentRecord {
                            at_ms: 1,
                            carrier: carrier.clone(),
                            carrier_ref: carrier_ref.clone(),
                        }),
                    );
                }
                TryResult::NotSent if mine => {
                    s.claims.remove(&key);
                }
                TryResult::Unknown if mine => {
                    s.claims.insert(key, Claim::Sending(now, c.try_id));
                }
                _ => {}
            }
        }
        Ok(())
    }
    async fn probe(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
#[derive(Default, Clone, Copy)]
pub struct FailoverOptions;
pub struct Failover<S> {
    s: S,
    l: MemoryStore,
    t: Telemetry,
}
impl<S: CounterStore> Failover<S> {
    pub fn new(s: S, _: FailoverOptions, t: Telemetry) -> Self {
        Self {
            s,
            l: MemoryStore::default(),
            t,
        }
    }
}
impl<S: CounterStore> Meter for Failover<S> {
    async fn admit(&self, requests: Vec<AccountRequest>) -> Vec<AccountAnswer> {
        let a = self.s.admit(&requests).await;
        let mut out = vec![];
        for (r, a) in requests.iter().zip(a) {
            match a {
                Ok(a) => out.push(AccountAnswer {
                    verdicts: a.verdicts,
                    counter: a.counter,
                    mode: MeterMode::Shared,
                }),
                Err(e) => {
                    self.t.fell_open(r.jobs[0].lane, e, r.jobs.len() as u64);
                    let a = self
                        .l
                        .admit(std::slice::from_ref(r))
                        .await
                        .pop()
                        .unwrap()
                        .unwrap();
                    out.push(AccountAnswer {
                        verdicts: a.verdicts,
                        counter: a.counter,
                        mode: MeterMode::Local,
                    });
                }
            }
        }
        out
    }
    async fn conclude(&self, c: Vec<Conclusion>) {
        let _ = self.s.conclude(&c).await;
        let _ = self.l.conclude(&c).await;
    }
}
