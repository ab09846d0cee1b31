//! How requests become script calls, and what the scripts answer. The scripts themselves say at
//! their heads what their keys, arguments and results are.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use deadpool_redis::redis::{Cmd, Value, cmd};

use super::options::RedisOptions;
use crate::dispatch::ports::{AccountRequest, Conclusion, JobRequest, TryResult};
use crate::domain::{AccountId, Counter, JobId, Limit, SentRecord, Verdict};
use crate::meter::{StoreAnswer, StoreError};

const ADMIT: &str = concat!(include_str!("../claims.lua"), include_str!("../admit.lua"));
const CONCLUDE: &str = concat!(
    include_str!("../claims.lua"),
    include_str!("../conclude.lua")
);

/// An account that cannot exist, because ids have no full stop: for probing.
const PROBE_ACCOUNT: &str = ".probe";

/// The scripts.
#[derive(Debug, Clone, Copy)]
pub(super) enum Script {
    Admit,
    Conclude,
}

impl Script {
    pub(super) const ALL: [Self; 2] = [Self::Admit, Self::Conclude];

    /// The command that makes the server know the script.
    pub(super) fn load(self) -> Cmd {
        let text = match self {
            Self::Admit => ADMIT,
            Self::Conclude => CONCLUDE,
        };
        let mut command = cmd("SCRIPT");
        command.arg("LOAD").arg(text);
        command
    }
}

/// One call of a script.
#[derive(Debug, Default)]
pub(super) struct Call {
    keys: Vec<String>,
    args: Vec<String>,
}

impl Call {
    /// Admission of one account's jobs.
    pub(super) fn admit(options: &RedisOptions, request: &AccountRequest) -> Self {
        let keys = Keys::of(options, request.account.as_str());
        let claims = !options.claim_life.is_zero();
        let mut call = Self::default();
        call.keys.push(keys.counter());
        call.args.push(millis(options.claim_life));
        let terms = |job: &JobRequest| (request.ceilings.of_lane(job.lane), job.claim_for);
        for run in request.jobs.chunk_by(|a, b| terms(a) == terms(b)) {
            let (ceiling, claim_for) = terms(&run[0]);
            call.args.push(run.len().to_string());
            call.args.push(ceiling.to_string());
            call.args.push(millis(claim_for));
            if claims {
                call.keys.extend(run.iter().map(|job| keys.claim(&job.id)));
                call.args
                    .extend(run.iter().map(|job| format!("{:x}", job.try_id.0)));
            }
        }
        call
    }

    /// An admission that does all that admissions do, and stands in nobody's way.
    pub(super) fn probe(options: &RedisOptions) -> Self {
        let keys = Keys::of(options, PROBE_ACCOUNT);
        let args = ["1000", "1", "1000000000", "0", "0"];
        Self {
            keys: vec![keys.counter(), format!("{}probe", keys.claims)],
            args: args.map(str::to_owned).to_vec(),
        }
    }

    /// The ends of tries, one call per account; a job that comes twice makes a further call.
    pub(super) fn conclude(options: &RedisOptions, conclusions: &[Conclusion]) -> Vec<Self> {
        let mut calls: Vec<Self> = Vec::new();
        let mut open: HashMap<&AccountId, (usize, Keys, HashSet<&JobId>)> = HashMap::new();
        let start = |calls: &mut Vec<Self>| {
            calls.push(Self {
                keys: Vec::new(),
                args: vec![millis(options.claim_life)],
            });
            calls.len() - 1
        };
        for conclusion in conclusions {
            let (place, keys, jobs) = open.entry(&conclusion.account).or_insert_with(|| {
                let keys = Keys::of(options, conclusion.account.as_str());
                (start(&mut calls), keys, HashSet::new())
            });
            if !jobs.insert(&conclusion.id) {
                *place = start(&mut calls);
                jobs.clear();
                jobs.insert(&conclusion.id);
            }
            let call = &mut calls[*place];
            call.keys.push(keys.claim(&conclusion.id));
            call.args.push(ending(conclusion));
        }
        calls
    }

    /// Appends number of keys, keys and arguments.
    pub(super) fn write(&self, command: &mut Cmd) {
        command.arg(self.keys.len()).arg(&self.keys).arg(&self.args);
    }
}

/// The names of one account's keys. The braces make a Redis Cluster keep them together.
struct Keys {
    account: String,
    claims: String,
}

impl Keys {
    fn of(options: &RedisOptions, account: &str) -> Self {
        let account = format!("{}{{{account}}}:", options.prefix);
        let claims = format!("{account}claim:");
        Self { account, claims }
    }

    fn counter(&self) -> String {
        format!("{}count", self.account)
    }

    fn claim(&self, id: &JobId) -> String {
        [&self.claims, id.as_str()].concat()
    }
}

fn millis(duration: Duration) -> String {
    duration.as_millis().to_string()
}

fn ending(conclusion: &Conclusion) -> String {
    match &conclusion.result {
        TryResult::Sent {
            carrier,
            carrier_ref: Some(carrier_ref),
        } => format!("S{carrier}:{carrier_ref}"),
        TryResult::Sent {
            carrier,
            carrier_ref: None,
        } => format!("S{carrier}"),
        TryResult::NotSent => format!("N{:x}", conclusion.try_id.0),
        TryResult::Unknown => format!("U{:x}", conclusion.try_id.0),
    }
}

/// Reads the answer to an admission of so many jobs.
pub(super) fn read_answer(reply: Value, jobs: usize) -> Result<StoreAnswer, StoreError> {
    read(reply, jobs).ok_or(StoreError::Failed)
}

fn read(reply: Value, jobs: usize) -> Option<StoreAnswer> {
    let Value::Array(parts) = reply else {
        return None;
    };
    let mut parts = parts.into_iter();
    let (Value::Int(count), Value::Int(left)) = (parts.next()?, parts.next()?) else {
        return None;
    };
    let Value::BulkString(letters) = parts.next()? else {
        return None;
    };
    let verdict = |letter: &u8| match letter {
        b'a' | b'p' => Some(Verdict::Admitted {
            possible_duplicate: *letter == b'p',
        }),
        b'l' => Some(Verdict::Shed(Limit::Lane)),
        b'c' => Some(Verdict::Shed(Limit::Claim)),
        b'd' => match parts.next()? {
            Value::BulkString(claim) => Some(Verdict::Duplicate(read_sent(&claim))),
            _ => None,
        },
        _ => None,
    };
    let verdicts: Vec<Verdict> = letters.iter().map(verdict).collect::<Option<_>>()?;
    (verdicts.len() == jobs).then_some(StoreAnswer {
        verdicts,
        counter: Counter {
            count: u32::try_from(count).unwrap_or(u32::MAX),
            window_left: Duration::from_millis(u64::try_from(left).ok()?),
        },
    })
}

/// Reads a claim of the form `S<at>:<carrier>[:<carrier_ref>]`. Parts that cannot be read are left
/// empty: even then the job was sent, and must not be sent again.
fn read_sent(claim: &[u8]) -> SentRecord {
    let text = String::from_utf8_lossy(claim);
    let mut parts = text.trim_start_matches('S').splitn(3, ':');
    SentRecord {
        at_ms: parts.next().and_then(|at| at.parse().ok()).unwrap_or(0),
        carrier: Arc::from(parts.next().unwrap_or_default()),
        carrier_ref: parts.next().map(Arc::from),
    }
}
