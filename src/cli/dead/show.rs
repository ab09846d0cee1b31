//! `lanekeeper dead show`: all about one message.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, stdout};

use jiff::Timestamp;
use lapin::BasicProperties;
use lapin::types::AMQPValue;
use serde::Serialize;

use crate::domain::Region;
use crate::intake::dead::{DeadQueue, Fate, Letter};

use super::CARRIED_OUT;
use super::line::{BodyLine, Line, age};
use super::pretty::pretty;
use super::problem::Problem;
use super::reading::Reading;
use super::report::{interrupted, print, print_bytes};
use super::select::Resolving;
use crate::cli::age as ages;
use crate::cli::escape;

/// What to show.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A reference as `dead list` shows it, or its first 6 digits or more, or a job id
    #[arg(value_name = "REF")]
    pub reference: String,
    /// Show the body too: it holds the recipient and the text
    #[arg(long, conflicts_with = "raw")]
    pub body: bool,
    /// Write the body to standard output and nothing else, byte for byte
    #[arg(long)]
    pub raw: bool,
    /// Print one JSON object
    #[arg(long, conflicts_with = "raw")]
    pub json: bool,
}

/// Shows the message.
pub(super) async fn run(
    args: Args,
    queue: &DeadQueue,
    region: Option<Region>,
    now: Timestamp,
) -> Result<u8, Problem> {
    if args.raw && stdout().is_terminal() {
        return Err(Problem::Usage(
            "--raw writes bytes that a terminal may take for commands; send them to a file: > FILE"
                .to_owned(),
        ));
    }
    let names = [args.reference.clone()];
    let mut resolving = Resolving::of(&names);
    let mut found: Option<Found> = None;
    let passed = queue.pass(|letter| {
        if resolving.see(&letter.facts) {
            match &mut found {
                Some(found) => found.copies += 1,
                None => found = Some(Found::of(letter)),
            }
        }
        Fate::Stay
    });
    let end = passed.await.end;
    resolving.resolve()?;
    let Some(found) = found else {
        if let Some(why) = interrupted(&end?) {
            return Err(Problem::Interrupted(why));
        }
        return Err(Problem::NotFound(
            escape::line(&args.reference).into_owned(),
        ));
    };
    let reading = Reading::of(&found.letter.payload, region);
    if args.raw {
        print_bytes(found.letter.payload.as_bytes())?;
    } else if args.json {
        print(&found.json(&reading, args.body, now))?;
    } else {
        print(&found.text(&reading, args.body, now))?;
    }
    Ok(CARRIED_OUT)
}

struct Found {
    letter: Letter,
    copies: u64,
}

#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    line: Line<'a>,
    copies: u64,
    now: String,
    #[serde(flatten)]
    body: Option<BodyLine<'a>>,
}

impl Found {
    fn of(letter: &Letter) -> Self {
        Self {
            letter: letter.clone(),
            copies: 1,
        }
    }

    fn json(&self, reading: &Reading, body: bool, now: Timestamp) -> String {
        let shown = Shown {
            line: Line::of(&self.letter.facts, now),
            copies: self.copies,
            now: reading.to_string(),
            body: body.then(|| BodyLine::of(self.letter.payload.as_bytes())),
        };
        let line = escape::json(&shown).expect("texts and numbers can be written as JSON");
        line + "\n"
    }

    fn text(&self, reading: &Reading, body: bool, now: Timestamp) -> String {
        let facts = &self.letter.facts;
        let mut text = String::new();
        let mut row = |name: &str, value: &str| {
            let _ = writeln!(text, "{name:<13} {}", escape::line(value));
        };
        row("reference", &facts.digest.to_string());
        row("sha256", &facts.digest.in_full());
        if self.copies > 1 {
            row("copies", &self.copies.to_string());
        }
        row("age", &ages::show(age(facts, now)));
        if let Some(since) = facts.since {
            row("since", &since.to_string());
        }
        row("bytes", &facts.size.to_string());
        row("returned", &format!("{} times", facts.returns));
        let known = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
        row("reason", &known(&facts.reason));
        row("detail", &known(&facts.detail));
        row("account", &known(&facts.account));
        row("job id", &known(&facts.id));
        for (name, value) in properties(&self.letter.properties) {
            row(&name, &value);
        }
        row("now", &reading.to_string());
        if body {
            let body = String::from_utf8_lossy(self.letter.payload.as_bytes());
            let _ = writeln!(text, "\n{}", escape::block(&pretty(&body)));
        }
        text
    }
}

/// The properties and headers that say more than the facts do.
fn properties(properties: &BasicProperties) -> Vec<(String, String)> {
    let named = [
        ("content type", properties.content_type()),
        ("encoding", properties.content_encoding()),
        ("message id", properties.message_id()),
        ("correlation", properties.correlation_id()),
        ("type", properties.kind()),
        ("app", properties.app_id()),
        ("user", properties.user_id()),
        ("expiration", properties.expiration()),
    ];
    let named = named.into_iter().filter_map(|(name, value)| {
        let value = value.as_ref()?;
        Some((name.to_owned(), value.to_string()))
    });
    let shown = ["x-reason", "x-detail", "x-delivery-count"];
    let headers = properties.headers().iter().flatten();
    let headers = headers.filter(|(name, _)| !shown.contains(&name.as_str()));
    let headers = headers.map(|(name, value)| {
        (
            format!("header {}", escape::line(name.as_str())),
            header(value),
        )
    });
    named.chain(headers).collect()
}

fn header(value: &AMQPValue) -> String {
    let text = match value {
        AMQPValue::LongString(text) => String::from_utf8_lossy(text.as_bytes()).into_owned(),
        AMQPValue::ShortString(text) => text.to_string(),
        other => format!("{other:?}"),
    };
    escape::cut(&text, LONGEST_HEADER).into_owned()
}

const LONGEST_HEADER: usize = 500;
