//! `lanekeeper account show`.

use indicatif::HumanCount;

use crate::cli::escape;
use crate::cli::tables::output::{print, print_json};
use crate::cli::tables::problem::Problem;
use crate::cli::tables::session::Session;
use crate::domain::AccountId;

use super::view::{AccountLine, View, ViewLine};

pub(super) async fn run(
    session: &mut Session,
    account: &AccountId,
    json: bool,
) -> Result<u8, Problem> {
    let view = View::read(session, account).await?;
    let line = view.line(&session.settings);
    if json {
        print_json([line])?;
    } else {
        print(&text(&line))?;
    }
    Ok(0)
}

fn text(line: &ViewLine<'_>) -> String {
    let mut facts = vec![("account", line.account.account_id.to_owned())];
    facts.extend(budget(&line.account));
    facts.extend(quiet_hours(&line.account));
    facts.extend(line.caps.iter().map(|cap| ("cap", cap.in_words())));
    let ceilings = line.ceilings.iter();
    facts.extend(ceilings.map(|ceiling| ("ceiling", ceiling.in_words())));
    if let Some(hold) = &line.hold {
        facts.push(("hold", hold.in_words()));
    }
    facts.push(("opt-outs", HumanCount(line.opt_outs).to_string()));
    let lines = facts.iter().map(|(name, value)| {
        let value = escape::line(value);
        format!("{name:<13} {value}\n")
    });
    lines.collect()
}

fn budget(account: &AccountLine<'_>) -> [(&'static str, String); 3] {
    let source = |is_own: bool| if is_own { "" } else { ", as in the settings" };
    let AccountLine {
        budget_per_second: budget,
        reserve_percent: reserve,
        transactional_ceiling: transactional,
        marketing_ceiling: marketing,
        ..
    } = account;
    [
        (
            "budget",
            format!("{budget} per second{}", source(account.own_budget)),
        ),
        (
            "reserve",
            format!("{reserve} %{}", source(account.own_reserve)),
        ),
        (
            "lanes",
            format!("transactional up to {transactional}, marketing up to {marketing} per second"),
        ),
    ]
}

fn quiet_hours(account: &AccountLine<'_>) -> Vec<(&'static str, String)> {
    if let Some(fault) = &account.fault {
        let value = format!("cannot be read, so that nothing is sent: {fault}");
        return vec![("quiet hours", value)];
    }
    if !account.quiet_hours {
        return vec![("quiet hours", "off".to_owned())];
    }
    let action = match account.quiet_action {
        "defer" => "on; jobs outside their window wait for it",
        _ => "on; jobs outside their window are refused",
    };
    let windows = account.windows.iter();
    let windows: Vec<_> = windows
        .map(|(channel, window)| format!("{channel} {window}"))
        .collect();
    let zone = account.time_zone.unwrap_or_default();
    vec![
        ("quiet hours", action.to_owned()),
        (
            "time zone",
            format!("{zone}, where the recipient's is not known"),
        ),
        (
            "windows",
            format!("{}; others at any hour", windows.join(", ")),
        ),
    ]
}
