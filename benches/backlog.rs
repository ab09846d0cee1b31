//! What a backlog costs, and whom it delays: each figure with what was asked of it, as a table.
//!
//! Real worker processes, with a broker and a Redis started for each part alone, and a database of its
//! own. A part takes from 20 seconds to three minutes.
//! Options: `--quick` (smaller numbers and shorter times), `--only NAME` for one part.
#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a benchmark reports by panicking, as a test does"
)]

#[path = "../tests/it/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "tests need more of it than this")]
mod support;

#[path = "backlog/broker.rs"]
mod broker;
#[path = "backlog/ceiling.rs"]
mod ceiling;
#[path = "backlog/deliveries.rs"]
mod deliveries;
#[path = "backlog/figure.rs"]
mod figure;
#[path = "backlog/many.rs"]
mod many;
#[path = "backlog/passwords.rs"]
mod passwords;
#[path = "backlog/stage.rs"]
mod stage;
#[path = "backlog/stranger.rs"]
mod stranger;

use figure::Figure;

/// The parts, in the order in which they are run.
const PARTS: [&str; 7] = [
    "deliveries",
    "stranger",
    "strangers-passwords",
    "own-passwords",
    "ceiling",
    "broker",
    "many",
];

/// How much is done.
#[derive(Debug, Clone, Copy)]
struct Options {
    quick: bool,
}

impl Options {
    /// One of two numbers: the whole one, or that of a short run.
    fn or_quick<T>(self, whole: T, quick: T) -> T {
        if self.quick { quick } else { whole }
    }

    /// Jobs in the backlog of one account.
    fn backlog(self) -> usize {
        self.or_quick(100_000, 20_000)
    }
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let options = Options {
        quick: arguments.iter().any(|argument| argument == "--quick"),
    };
    let only = arguments
        .iter()
        .position(|argument| argument == "--only")
        .map(|place| arguments.get(place + 1).map_or("", |name| name));
    if let Some(name) = only {
        assert!(PARTS.contains(&name), "--only takes one of {PARTS:?}");
    }
    let mut figures: Vec<Figure> = Vec::new();
    for part in PARTS {
        if only.is_none_or(|only| only == part) {
            figures.extend(run(part, options).await);
        }
    }
    figure::report(&figures, options.quick);
}

async fn run(part: &str, options: Options) -> Vec<Figure> {
    println!("{part} ...");
    match part {
        "deliveries" => deliveries::measure(options).await,
        "stranger" => stranger::measure(options).await,
        "strangers-passwords" => passwords::measure_strangers(options).await,
        "own-passwords" => passwords::measure_own(options).await,
        "ceiling" => ceiling::measure(options).await,
        "broker" => broker::measure(options).await,
        "many" => many::measure(options).await,
        other => unreachable!("{other} is no part"),
    }
}
