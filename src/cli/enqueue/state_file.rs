//! The file in which a run's state is kept, and the lock that keeps a second run away.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::state::{State, VERSION};

/// A state has less than a thousand bytes; what is longer than this is none.
const LONGEST: u64 = 64 * 1024;

/// Why the state cannot be used.
#[derive(Debug, Error)]
pub(super) enum StateError {
    /// Another run has it.
    #[error("another run is queueing this batch at the moment; its state is {}", .0.display())]
    Busy(PathBuf),
    /// Something else stands there.
    #[error("{} is there already and is no state of `lanekeeper enqueue` that this version reads", .0.display())]
    Foreign(PathBuf),
    /// It cannot be read.
    #[error("cannot read the state {}: {why}", .path.display())]
    Unreadable {
        /// The state.
        path: PathBuf,
        /// What the system said.
        why: io::Error,
    },
    /// It cannot be written.
    #[error("cannot write the state {}: {why}", .path.display())]
    Unwritable {
        /// The state.
        path: PathBuf,
        /// What the system said.
        why: io::Error,
    },
}

impl StateError {
    /// What can be done.
    pub(super) const fn advice(&self) -> &'static str {
        match self {
            Self::Busy(_) => "wait for its end, or stop it",
            Self::Foreign(_) => "name another file by --state, or move that one away",
            Self::Unreadable { .. } | Self::Unwritable { .. } => {
                "name a file in another directory by --state; without a state no run could go on \
                 after an interruption"
            }
        }
    }
}

/// A state that this run alone may change, until it goes out of scope.
pub(super) struct StateFile {
    path: PathBuf,
    lock: Lock,
}

impl StateFile {
    /// Locks a state, and reads what an earlier run has left.
    ///
    /// # Errors
    /// [`StateError`]; nothing is changed then.
    pub(super) fn open(path: &Path) -> Result<(Self, Option<State>), StateError> {
        refuse_what_is_no_state(path)?;
        let file = Self {
            path: path.to_owned(),
            lock: Lock::take(path)?,
        };
        let earlier = file.read()?;
        Ok((file, earlier))
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn read(&self) -> Result<Option<State>, StateError> {
        let text = match std::fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(why) => {
                let path = self.path.clone();
                return Err(StateError::Unreadable { path, why });
            }
        };
        match serde_json::from_slice::<State>(&text) {
            Ok(state) if state.version == VERSION => Ok(Some(state)),
            _ => Err(StateError::Foreign(self.path.clone())),
        }
    }

    /// Replaces the state as a whole. With `durable` it outlives a power cut from then on; without,
    /// the end of this process only.
    ///
    /// # Errors
    /// [`StateError::Unwritable`]; what was there before is still there then.
    pub(super) fn write(&self, state: &State, durable: bool) -> Result<(), StateError> {
        self.replace(state, durable)
            .map_err(|why| StateError::Unwritable {
                path: self.path.clone(),
                why,
            })
    }

    fn replace(&self, state: &State, durable: bool) -> io::Result<()> {
        let new = beside(&self.path, ".new");
        let mut file = File::create(&new)?;
        serde_json::to_writer_pretty(&mut file, state)?;
        file.write_all(b"\n")?;
        if durable {
            file.sync_all()?;
        }
        std::fs::rename(&new, &self.path)?;
        if durable {
            self.lock.directory.sync_all()?;
        }
        Ok(())
    }
}

/// Reading a pipe or a device might never end. What does not exist yet is no matter.
fn refuse_what_is_no_state(path: &Path) -> Result<(), StateError> {
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() || found.len() > LONGEST => {
            Err(StateError::Foreign(path.to_owned()))
        }
        _ => Ok(()),
    }
}

/// A lock on a file of its own: the state itself is another file after each write.
struct Lock {
    path: PathBuf,
    directory: File,
    _file: File,
}

impl Lock {
    fn take(state: &Path) -> Result<Self, StateError> {
        let path = beside(state, ".lock");
        let unwritable = |why| StateError::Unwritable {
            path: state.to_owned(),
            why,
        };
        let parent = state.parent().filter(|parent| *parent != Path::new(""));
        let directory = File::open(parent.unwrap_or(Path::new("."))).map_err(unwritable)?;
        loop {
            let mut options = OpenOptions::new();
            let file = options.create(true).truncate(false).write(true).open(&path);
            let file = file.map_err(unwritable)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(StateError::Busy(state.to_owned())),
                Err(TryLockError::Error(why)) => return Err(unwritable(why)),
            }
            // Whoever had it before may have removed it meanwhile: a lock on what is no longer
            // there keeps nobody away.
            if is_still_at(&file, &path) {
                return Ok(Self {
                    path,
                    directory,
                    _file: file,
                });
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // One that cannot be removed does no harm: it is not locked any more.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn is_still_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(ours), Ok(there)) => (ours.dev(), ours.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::super::state::Identity;
    use super::*;
    use crate::enqueueing::Counts;

    fn state(line: u64) -> State {
        State {
            version: VERSION,
            identity: Identity {
                account: "acme".to_owned(),
                batch: "spring".to_owned(),
                file: "f".to_owned(),
                options: "o".to_owned(),
            },
            enqueued_at: "1970-01-01T00:00:00.123Z".parse().unwrap(),
            confirmed_line: line,
            counts: Counts::default(),
            finished: false,
            updated_at: "1970-01-01T00:00:00Z".to_owned(),
        }
    }

    fn names_in(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }

    #[test]
    fn what_was_written_last_is_read_and_nothing_else_is_left() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.json");
        let (file, earlier) = StateFile::open(&path).unwrap();
        assert_eq!(earlier, None);
        file.write(&state(1), false).unwrap();
        file.write(&state(2), true).unwrap();
        drop(file);
        let (file, earlier) = StateFile::open(&path).unwrap();
        assert_eq!(earlier, Some(state(2)));
        drop(file);
        assert_eq!(names_in(directory.path()), ["a.json"]);
    }

    #[test]
    fn a_second_run_is_kept_away_until_the_first_has_ended() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.json");
        let first = StateFile::open(&path).unwrap();
        assert!(matches!(StateFile::open(&path), Err(StateError::Busy(_))));
        drop(first);
        assert!(StateFile::open(&path).is_ok());
    }

    #[test]
    fn a_lock_that_a_killed_run_left_does_no_harm() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.json");
        std::fs::write(beside(&path, ".lock"), "").unwrap();
        assert!(StateFile::open(&path).is_ok());
    }

    #[test]
    fn what_might_have_no_end_is_not_read() {
        assert!(matches!(
            StateFile::open(Path::new("/dev/zero")),
            Err(StateError::Foreign(_))
        ));
    }

    #[test]
    fn what_is_no_state_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("contacts.csv");
        let newer = State {
            version: VERSION + 1,
            ..state(1)
        };
        for content in ["to,body\n", "", &serde_json::to_string(&newer).unwrap()] {
            std::fs::write(&path, content).unwrap();
            let opened = StateFile::open(&path);
            assert!(matches!(opened, Err(StateError::Foreign(_))), "{content}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
        }
    }

    #[test]
    fn a_place_that_cannot_be_written_is_refused() {
        let opened = StateFile::open(Path::new("/nowhere/a.json"));
        let Err(error) = opened else {
            panic!("there is no such directory")
        };
        assert!(matches!(error, StateError::Unwritable { .. }));
        assert!(error.advice().contains("--state"));
    }
}
