//! `lanekeeper account list`.

use crate::accounts::tables::accounts::{self, AccountRecord};
use crate::cli::tables::grid::{Grid, or_dash};
use crate::cli::tables::output::{print, print_json};
use crate::cli::tables::problem::Problem;
use crate::cli::tables::session::Session;

use super::view::AccountLine;

/// So many are read and shown at a time.
const PAGE: u16 = 1_000;

pub(super) async fn run(session: &mut Session, json: bool) -> Result<u8, Problem> {
    let head = ["ACCOUNT", "BUDGET", "RESERVE", "QUIET HOURS", "TIME ZONE"];
    let mut grid = Grid::new(head).right(1).right(2);
    let mut last: Option<AccountRecord> = None;
    loop {
        let after = last.as_ref().map(|record| &record.account);
        let page = accounts::page(&mut session.connection, after, PAGE).await?;
        let is_first = last.is_none();
        let Some(end) = page.last().cloned() else {
            if is_first && !json {
                print("No accounts: `lanekeeper account set ID` adds one.\n")?;
            }
            return Ok(0);
        };
        last = Some(end);
        let lines = page
            .iter()
            .map(|record| AccountLine::of(record, &session.settings));
        let is_heard = if json {
            print_json(lines)?
        } else {
            lines.for_each(|line| grid.add(row(&line)));
            print(&grid.take())?
        };
        if !is_heard {
            return Ok(0);
        }
    }
}

fn row(line: &AccountLine<'_>) -> [String; 5] {
    let own = |value: String, is_own: bool| if is_own { value } else { format!("({value})") };
    [
        line.account_id.to_owned(),
        own(line.budget_per_second.to_string(), line.own_budget),
        own(format!("{} %", line.reserve_percent), line.own_reserve),
        line.quiet_hours_in_short(),
        or_dash(line.time_zone),
    ]
}
