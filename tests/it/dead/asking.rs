//! `drop` on a terminal: it asks, and drops what it has asked about.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::{LIMIT, Yard};

/// `dead drop --all` on a terminal of its own.
struct Terminal {
    child: Child,
    screen: String,
}

impl Terminal {
    fn open(yard: &Yard) -> Self {
        let command = yard.command(&["drop", "--all"]);
        let command = command.as_std();
        let words = [command.get_program()]
            .into_iter()
            .chain(command.get_args());
        let words: Vec<_> = words.map(|word| word.to_str().unwrap()).collect();
        let settings = command.get_envs();
        let child = Command::new("script")
            .args(["-qec", &words.join(" "), "/dev/null"])
            .envs(settings.filter_map(|(name, value)| Some((name, value?))))
            .env("SHELL", "/bin/sh")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self {
            child,
            screen: String::new(),
        }
    }

    /// Reads until it asks.
    async fn question(&mut self) {
        let stdout = self.child.stdout.as_mut().unwrap();
        let asked = async {
            let mut some = [0; 256];
            while !self.screen.contains("[y/N] ") {
                let length = stdout.read(&mut some).await.unwrap();
                assert!(length > 0, "it asks nothing: {}", self.screen);
                let text = String::from_utf8_lossy(&some[..length]);
                self.screen.push_str(&text);
            }
        };
        timeout(LIMIT, asked).await.expect("it asks");
    }

    async fn type_in(&mut self, text: &str) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(text.as_bytes()).await.unwrap();
        stdin.flush().await.unwrap();
    }

    /// Waits for its end, and gives the exit code and all that was shown.
    async fn end(mut self) -> (i32, String) {
        let mut stdout = self.child.stdout.take().unwrap();
        let ended = async {
            stdout.read_to_string(&mut self.screen).await.unwrap();
            self.child.wait().await.unwrap()
        };
        let status = timeout(LIMIT, ended).await.expect("it ends");
        (status.code().unwrap(), self.screen)
    }
}

#[tokio::test]
async fn what_comes_after_the_question_is_not_dropped() {
    let yard = Yard::new("dead-asked").await;
    for body in ["one", "two"] {
        yard.bury(body, "undecodable", 5).await;
    }
    let mut terminal = Terminal::open(&yard);
    terminal.question().await;
    // One that nobody has counted, and a further copy of one that was.
    for body in ["new", "one"] {
        yard.bury(body, "undecodable", 0).await;
    }
    terminal.type_in("y\n").await;
    let (code, screen) = terminal.end().await;
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("Drop 2 dead messages"), "{screen}");
    assert!(screen.contains("dropped 2 of 2 matched"), "{screen}");
    let left = yard.take_all("dead").await;
    let left: Vec<_> = left.iter().map(|taken| taken.body.as_str()).collect();
    assert_eq!(left, ["new", "one"]);
    yard.end().await;
}

#[tokio::test]
async fn without_a_yes_nothing_is_dropped() {
    let yard = Yard::new("dead-no").await;
    yard.bury("one", "undecodable", 5).await;
    for (typed, code, told) in [
        ("n\n", 1, "1 left; stopped: not confirmed"),
        ("\u{3}", 130, "told to stop; nothing was done"),
    ] {
        let mut terminal = Terminal::open(&yard);
        terminal.question().await;
        terminal.type_in(typed).await;
        let (ended, screen) = terminal.end().await;
        assert_eq!(ended, code, "{screen}");
        assert!(screen.contains(told), "{screen}");
        yard.holds("dead", 1).await;
    }
    yard.end().await;
}

#[tokio::test]
async fn of_nothing_it_does_not_ask() {
    let yard = Yard::new("dead-none").await;
    let (code, screen) = Terminal::open(&yard).end().await;
    assert_eq!(code, 0, "{screen}");
    assert_eq!(screen.trim(), "dropped 0 of 0 matched");
    yard.end().await;
}
