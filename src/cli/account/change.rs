//! What is to be changed of an account, as options say it.

use crate::accounts::QuietAction;
use crate::accounts::tables::accounts::{AccountChange, Setting, WindowChange};
use crate::cli::tables::values::{budget, quiet_action, reserve, switch, window, zone};
use crate::domain::{Budget, Channel, Reserve};

/// What is to be changed; the rest stays as it is.
#[derive(Debug, clap::Args)]
pub(super) struct ChangeArgs {
    /// Messages per second, all lanes and replicas together; default: as in the settings
    #[arg(long, value_name = "N|default", value_parser = budget)]
    budget: Option<Setting<Budget>>,
    /// Percent of the budget for the transactional lane alone; default: as in the settings
    #[arg(long, value_name = "PERCENT|default", value_parser = reserve)]
    reserve: Option<Setting<Reserve>>,
    /// Whether there are hours in which nothing is sent: on or off
    #[arg(long, value_name = "on|off", value_parser = switch)]
    quiet_hours: Option<bool>,
    /// What becomes of jobs in quiet hours: refuse ends them, defer lets them wait
    #[arg(long, value_name = "refuse|defer", value_parser = quiet_action)]
    quiet_action: Option<QuietAction>,
    /// For recipients whose own zone is not known: an IANA name, such as Europe/London
    #[arg(long, value_name = "ZONE", value_parser = zone)]
    time_zone: Option<String>,
    /// When a channel may be used: sms=08:00-21:00, sms=off (any hour), sms=standard
    #[arg(long, value_name = "CHANNEL=HOURS", num_args = 1.., value_parser = window)]
    window: Vec<(Channel, WindowChange)>,
}

impl From<ChangeArgs> for AccountChange {
    fn from(args: ChangeArgs) -> Self {
        Self {
            budget: args.budget,
            reserve: args.reserve,
            quiet_hours: args.quiet_hours,
            quiet_action: args.quiet_action,
            time_zone: args.time_zone,
            windows: args.window,
        }
    }
}
