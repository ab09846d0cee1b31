//! What would become of a message now. Nothing is changed, and nothing is counted.

use serde::Serialize;
use utoipa::ToSchema;

use super::app::App;
use super::error::{ApiResult, Code};
use crate::dispatch::ports::{Door, Facts, Records as _};
use crate::domain::Job;
use crate::judgement::{Judgement, Known, Step, inquiry_of, judge_job, request_of};

/// What would become of a message.
#[derive(Debug, Serialize, ToSchema)]
pub struct JudgementView {
    /// Always true: nothing was sent.
    pub dry_run: bool,
    /// `send`, `shed` (a ceiling is reached), `wait`, `repeat` (it is on its way already), `refused`,
    /// `cancelled`, `expired`, or `unknown`: the counters do not answer.
    pub would: &'static str,
    /// The same for a person.
    pub explanation: String,
    /// The status that sending it would be answered with.
    pub would_answer: u16,
    /// The lane that it would go by.
    pub traffic_lane: Option<&'static str>,
    /// What chose the lane: `traffic_lane`, `priority`, `origin` or `default`.
    pub lane_rule: Option<&'static str>,
    /// Each gate's answer, in the order in which they are asked.
    pub gates: Vec<GateView>,
}

/// One gate's answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct GateView {
    /// Its name.
    #[schema(example = "quiet_hours")]
    pub gate: &'static str,
    /// `passed`, `stopped`, `waits`, `shed`, `not_asked` or `unknown`.
    pub answer: &'static str,
    /// What there is to say about it; often nothing.
    pub why: String,
}

/// What would become of a job that was sent now.
///
/// # Errors
/// When the database gives no answer, or has given none yet: then nothing would be sent either.
pub async fn dry_run(app: &App, job: &Job) -> ApiResult<JudgementView> {
    let policy = app.policy(&job.head.account)?;
    let facts = app.records.facts(&[inquiry_of(job)]).await?;
    let facts = facts.into_iter().next().unwrap_or_default();
    let request = policy
        .as_ref()
        .map(|policy| request_of(job, policy, Door::Api));
    let standing = match &request {
        Some(request) => app.meter.look(&job.head.account, request).await,
        None => Err(crate::meter::StoreError::Failed),
    };
    let known = Known {
        policy: policy.as_deref(),
        facts: Some(&facts),
        request: request.as_ref(),
        standing: standing.as_ref().map_err(|error| error.as_str().to_owned()),
        now: app.clock.now(),
    };
    Ok(JudgementView::of(judge_job(job, &known), &facts))
}

impl JudgementView {
    fn of(judgement: Judgement, facts: &Facts) -> Self {
        Self {
            dry_run: true,
            would: judgement.verdict_kind,
            would_answer: would_answer(&judgement, facts),
            explanation: judgement.verdict,
            traffic_lane: judgement.lane,
            lane_rule: judgement.lane_rule,
            gates: judgement.gates.into_iter().map(GateView::of).collect(),
        }
    }
}

impl GateView {
    fn of(step: Step) -> Self {
        let Step { gate, answer, why } = step;
        Self { gate, answer, why }
    }
}

fn would_answer(judgement: &Judgement, facts: &Facts) -> u16 {
    let decisive = judgement.gates.iter().find(|step| step.answer != "passed");
    let at = decisive.map_or("", |step| step.gate);
    let code = match (judgement.verdict_kind, at) {
        ("shed", _) => Code::RateLimitExceeded,
        ("wait", "holds") if facts.account_paused => Code::AccountPaused,
        ("refused", "suppression") => Code::RecipientOptedOut,
        ("refused", "quiet_hours") => Code::QuietHours,
        ("refused", "frequency_caps") => Code::FrequencyCapExceeded,
        ("refused", "account") => Code::UnknownAccount,
        ("refused" | "expired", _) => Code::ValidationError,
        ("cancelled", _) => Code::SendingCancelled,
        // Sent, queued before, waiting; and without the counters each server counts by itself.
        _ => return 202,
    };
    code.status().as_u16()
}
