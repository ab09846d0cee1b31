//! Recipients as people type them.

use std::collections::HashSet;

use super::ReadingArgs;
use crate::cli::tables::problem::Problem;
use crate::cli::tables::session::Session;
use crate::domain::{RecipientError, Region, Scope, typed_recipient_key};

/// How recipients are read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Typed {
    /// `None`: what suits the recipient.
    pub(super) scope: Option<Scope>,
    region: Option<Region>,
}

impl Typed {
    pub(super) fn of(args: ReadingArgs, session: &Session) -> Self {
        Self {
            scope: args.scope,
            region: args.region.or(session.settings.jobs.default_region),
        }
    }

    /// A recipient in the form in which jobs are compared, and the scope of its opt-out; `scope` is
    /// the one that its row names.
    pub(super) fn key(
        self,
        text: &str,
        scope: Option<Scope>,
    ) -> Result<(String, Scope), RecipientError> {
        let scope = scope.or(self.scope);
        let scope = scope.unwrap_or_else(|| Scope::suggested_for(text));
        Ok((typed_recipient_key(scope, text, self.region)?, scope))
    }

    /// The same for each of a command's recipients. One that cannot be used is told by its place:
    /// what was typed is not repeated.
    pub(super) fn keys(self, texts: &[String]) -> Result<HashSet<(String, Scope)>, Problem> {
        let each = (1..).zip(texts);
        each.map(|(place, text)| {
            self.key(text, None).map_err(|error| {
                let place = if texts.len() == 1 {
                    String::new()
                } else {
                    format!(" {place}")
                };
                Problem::Usage(format!("recipient{place}: {error}"))
            })
        })
        .collect()
    }
}
