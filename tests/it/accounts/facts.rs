//! What is known of a batch of jobs.

use std::borrow::Cow;

use lanekeeper::accounts::facts;
use lanekeeper::dispatch::ports::{Facts, Hold, Inquiry};
use lanekeeper::domain::{AccountId, Channel, JobId, recipient_key};
use sqlx::PgPool;

use super::desk::Desk;

/// A job as the tests ask about it.
#[derive(Clone)]
struct Asked {
    account: AccountId,
    id: JobId,
    channel: Channel,
    to: String,
    campaign: Option<&'static str>,
    journey: Option<&'static str>,
    batch: Option<&'static str>,
    maybe_sent: bool,
    enqueued_ms: Option<u64>,
}

/// An SMS of `acme` to a number that nobody else has.
fn sms() -> Asked {
    Asked {
        account: AccountId::parse("acme").unwrap(),
        id: JobId::parse("job-1").unwrap(),
        channel: Channel::Sms,
        to: "+447700900199".to_owned(),
        campaign: None,
        journey: None,
        batch: None,
        maybe_sent: false,
        enqueued_ms: None,
    }
}

impl Asked {
    fn of(mut self, account: &str) -> Self {
        self.account = AccountId::parse(account).unwrap();
        self
    }

    fn to(mut self, channel: Channel, to: &str) -> Self {
        (self.channel, self.to) = (channel, to.to_owned());
        self
    }

    fn within(mut self, [campaign, journey, batch]: [&'static str; 3]) -> Self {
        let named = |name: &'static str| (!name.is_empty()).then_some(name);
        (self.campaign, self.journey, self.batch) = (named(campaign), named(journey), named(batch));
        self
    }

    fn maybe_sent(mut self, id: &str, enqueued_ms: Option<u64>) -> Self {
        self.id = JobId::parse(id).unwrap();
        (self.maybe_sent, self.enqueued_ms) = (true, enqueued_ms);
        self
    }

    fn inquiry(&self) -> Inquiry<'_> {
        Inquiry {
            account: &self.account,
            id: &self.id,
            channel: self.channel,
            recipient: Cow::Owned(recipient_key(self.channel, &self.to).into_owned()),
            campaign: self.campaign,
            journey: self.journey,
            batch: self.batch,
            maybe_sent: self.maybe_sent,
            enqueued_ms: self.enqueued_ms,
        }
    }
}

async fn known(pool: &PgPool, asked: &[Asked]) -> Vec<Facts> {
    let inquiries: Vec<_> = asked.iter().map(Asked::inquiry).collect();
    facts(pool, &inquiries).await.unwrap()
}

#[tokio::test]
async fn who_has_opted_out_is_known_by_scope_account_and_exact_recipient() {
    let desk = Desk::new().await;
    for words in [
        "--account acme +447700900101",
        "--account acme --scope sms +447700900102",
        "--account acme Ann@Example.org",
        "--account acme --scope push Token",
        "--account other +447700900103",
    ] {
        desk.ok(&format!("suppression add {words}")).await;
    }
    let email = "ANN@example.org";
    let cases = [
        (sms(), false),
        (sms().to(Channel::Sms, "+447700900101"), true),
        (sms().to(Channel::Voice, "+447700900101"), true),
        (sms().to(Channel::Sms, "+447700900102"), true),
        (sms().to(Channel::Voice, "+447700900102"), false),
        (sms().to(Channel::Email, email), true),
        (sms().to(Channel::Messenger, "ann@example.org"), false),
        (sms().to(Channel::Push, "Token"), true),
        (sms().to(Channel::Push, "token"), false),
        (sms().to(Channel::Telegram, "Token"), false),
        (sms().to(Channel::Sms, "+447700900103"), false),
        (sms().of("other").to(Channel::Sms, "+447700900103"), true),
        (sms().to(Channel::Sms, "+44770090010"), false),
        (sms().to(Channel::Sms, "+4477009001011"), false),
    ];
    let asked: Vec<_> = cases.iter().map(|(asked, _)| asked.clone()).collect();
    let found: Vec<_> = known(desk.database.pool(), &asked).await;
    let found: Vec<_> = found.iter().map(|facts| facts.opted_out).collect();
    let expected: Vec<_> = cases.iter().map(|(_, expected)| *expected).collect();
    assert_eq!(found, expected);
    // The same one by one: what is known of a job does not depend on its batch.
    for (asked, expected) in cases {
        let found = known(desk.database.pool(), std::slice::from_ref(&asked)).await;
        assert_eq!(found[0].opted_out, expected, "{}", asked.to);
    }
}

#[tokio::test]
async fn of_several_holds_the_gravest_counts() {
    let desk = Desk::new().await;
    for words in [
        "pause account broke",
        "cancel campaign broke gone",
        "pause campaign acme spring",
        "cancel journey acme welcome",
        "pause batch acme b-1",
        "cancel batch other b-2",
    ] {
        desk.ok(words).await;
    }
    let (paused, cancelled) = (Some(Hold::Paused), Some(Hold::Cancelled));
    let cases = [
        (sms(), None),
        (sms().within(["summer", "", "b-2"]), None),
        (sms().within(["spring", "", ""]), paused),
        (sms().within(["", "spring", ""]), None),
        (sms().within(["", "welcome", ""]), cancelled),
        (sms().within(["spring", "welcome", "b-1"]), cancelled),
        (sms().within(["", "", "b-1"]), paused),
        (sms().of("broke"), paused),
        (sms().of("broke").within(["gone", "", ""]), cancelled),
        (sms().of("other").within(["spring", "welcome", "b-1"]), None),
        (sms().of("other").within(["", "", "b-2"]), cancelled),
    ];
    let asked: Vec<_> = cases.iter().map(|(asked, _)| asked.clone()).collect();
    let found = known(desk.database.pool(), &asked).await;
    let found: Vec<_> = found.iter().map(|facts| facts.hold).collect();
    let expected: Vec<_> = cases.iter().map(|(_, expected)| *expected).collect();
    assert_eq!(found, expected);
}

/// What a newer version may have stored is no leave to send.
#[tokio::test]
async fn a_hold_that_this_version_does_not_know_pauses() {
    let desk = Desk::new().await;
    desk.database
        .execute(
            "ALTER TABLE holds DROP CONSTRAINT holds_state_check;
             INSERT INTO holds (account_id, kind, target, state)
             VALUES ('acme', 'account', 'acme', 'frozen')",
        )
        .await;
    let found = known(desk.database.pool(), &[sms()]).await;
    assert_eq!(found[0].hold, Some(Hold::Paused));
}

const HOUR_MS: u64 = 3_600_000;
/// 2024-05-01T12:00:00.250Z.
const SENT_MS: u64 = 1_714_564_800_250;

async fn with_ledger() -> Desk {
    let desk = Desk::new().await;
    let row = |account: &str, id: &str, outcome: &str, day: &str| {
        format!(
            "('{account}', '{id}', '{day}', 'marketing', 'origin', 'sms', '{outcome}', 'sandbox',
              'ref-{id}', 1, 0, '{day} 12:00:00.25Z')"
        )
    };
    let rows = [
        row("acme", "sent", "dispatched", "2024-05-01"),
        row("acme", "twice", "dispatched", "2024-05-02"),
        row("acme", "twice", "dispatched", "2024-05-01"),
        row("acme", "failed", "failed", "2024-05-01"),
        row("other", "theirs", "dispatched", "2024-05-01"),
    ];
    desk.database
        .execute(&format!(
            "CREATE TABLE ledger_may_1 PARTITION OF ledger
                FOR VALUES FROM ('2024-05-01') TO ('2024-05-02');
             INSERT INTO ledger (account_id, id, day, lane, lane_rule, channel, outcome, carrier,
                carrier_ref, attempts, sheds, settled_at) VALUES {}",
            rows.join(", ")
        ))
        .await;
    desk
}

#[tokio::test]
async fn the_ledger_is_asked_about_jobs_that_may_have_been_sent() {
    let desk = with_ledger().await;
    let cases = [
        (sms().maybe_sent("sent", None), Some(SENT_MS)),
        (sms().maybe_sent("twice", None), Some(SENT_MS)),
        (sms().maybe_sent("failed", None), None),
        (sms().maybe_sent("never", None), None),
        (sms().maybe_sent("theirs", None), None),
        (sms().of("other").maybe_sent("theirs", None), Some(SENT_MS)),
        // Queued just before it was sent, long before, or, by a clock that is ahead, after.
        (
            sms().maybe_sent("sent", Some(SENT_MS - 1_000)),
            Some(SENT_MS),
        ),
        (
            sms().maybe_sent("sent", Some(SENT_MS - 720 * HOUR_MS)),
            Some(SENT_MS),
        ),
        (
            sms().maybe_sent("sent", Some(SENT_MS + HOUR_MS)),
            Some(SENT_MS),
        ),
        // An id that was used again days after: another job.
        (sms().maybe_sent("sent", Some(SENT_MS + 72 * HOUR_MS)), None),
    ];
    let asked: Vec<_> = cases.iter().map(|(asked, _)| asked.clone()).collect();
    let found = known(desk.database.pool(), &asked).await;
    let found: Vec<_> = found.iter().map(|facts| facts.sent.clone()).collect();
    let times: Vec<_> = found
        .iter()
        .map(|sent| Some(sent.as_ref()?.at_ms))
        .collect();
    let expected: Vec<_> = cases.iter().map(|(_, expected)| *expected).collect();
    assert_eq!(times, expected);
    let first = found[0].as_ref().unwrap();
    assert_eq!(&*first.carrier, "sandbox");
    assert_eq!(first.carrier_ref.as_deref(), Some("ref-sent"));

    let mut claimed = sms().maybe_sent("sent", None);
    claimed.maybe_sent = false;
    assert_eq!(known(desk.database.pool(), &[claimed]).await[0].sent, None);
}

/// Opt-outs and holds are looked at also where the ledger is.
#[tokio::test]
async fn one_question_answers_all_of_it_for_256_jobs() {
    let desk = with_ledger().await;
    desk.ok("suppression add --account acme +447700900101")
        .await;
    desk.ok("pause campaign acme spring").await;
    for maybe_sent in [false, true] {
        let asked: Vec<_> = (0..256)
            .map(|number| {
                let mut asked = match number % 4 {
                    0 => sms().to(Channel::Sms, "+447700900101"),
                    1 => sms().within(["spring", "", ""]),
                    2 => sms().maybe_sent("sent", None),
                    _ => sms(),
                };
                asked.maybe_sent &= maybe_sent;
                asked
            })
            .collect();
        let found = known(desk.database.pool(), &asked).await;
        assert_eq!(found.len(), 256);
        for (number, facts) in found.iter().enumerate() {
            assert_eq!(facts.opted_out, number % 4 == 0, "{number}");
            assert_eq!(facts.hold.is_some(), number % 4 == 1, "{number}");
            assert_eq!(
                facts.sent.is_some(),
                maybe_sent && number % 4 == 2,
                "{number}"
            );
        }
    }
    assert_eq!(known(desk.database.pool(), &[]).await, []);
}

/// An opt-out that is committed is known to the next look-up, whatever else is going on.
#[tokio::test]
async fn nothing_is_remembered_between_two_look_ups() {
    let desk = Desk::new().await;
    let pool = desk.database.pool();
    for round in 0..10 {
        let number = format!("+44770090010{round}");
        let asked = [sms().to(Channel::Sms, &number)];
        assert!(!known(pool, &asked).await[0].opted_out);
        desk.database
            .execute(&format!(
                "INSERT INTO suppressions (account_id, recipient, scope)
                 VALUES ('acme', '{number}', 'all')"
            ))
            .await;
        assert!(known(pool, &asked).await[0].opted_out);
    }
}
