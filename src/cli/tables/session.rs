//! A connection for the length of one command.

use std::process::ExitCode;

use sqlx::PgConnection;

use super::problem::Problem;
use crate::postgres::connect;
use crate::settings::Settings;

/// What a command works with.
pub(in crate::cli) struct Session {
    pub(in crate::cli) connection: PgConnection,
    pub(in crate::cli) settings: Settings,
}

impl Session {
    async fn open(settings: Settings) -> Result<Self, Problem> {
        let database = settings.database.as_ref().ok_or(Problem::NoDatabase)?;
        Ok(Self {
            connection: connect(database).await?,
            settings,
        })
    }
}

/// Carries out a command; `work` gives its exit code.
pub(in crate::cli) async fn run(
    settings: Settings,
    work: impl AsyncFnOnce(&mut Session) -> Result<u8, Problem>,
) -> ExitCode {
    let result = match Session::open(settings).await {
        Ok(mut session) => work(&mut session).await,
        Err(problem) => Err(problem),
    };
    let code = result.unwrap_or_else(|problem| {
        crate::cli::complain(&problem);
        problem.exit_code()
    });
    code.into()
}
