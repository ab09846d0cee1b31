//! The scripts, and calls of them. The scripts themselves say at their heads what their keys,
//! arguments and results are.

use deadpool_redis::redis::{Cmd, cmd};

const ADMIT: &str = concat!(
    include_str!("../claims.lua"),
    include_str!("../limits.lua"),
    include_str!("../admit.lua")
);
const CONCLUDE: &str = concat!(
    include_str!("../claims.lua"),
    include_str!("../conclude.lua")
);

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
    pub(super) keys: Vec<String>,
    pub(super) args: Vec<String>,
}

impl Call {
    /// Appends an argument.
    pub(super) fn arg(&mut self, arg: &impl ToString) {
        self.args.push(arg.to_string());
    }

    /// Appends number of keys, keys and arguments.
    pub(super) fn write(&self, command: &mut Cmd) {
        command.arg(self.keys.len()).arg(&self.keys).arg(&self.args);
    }
}
