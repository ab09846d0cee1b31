//! A real browser: Chromium, driven by tests/browser/driver.cjs.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// It must have answered within this: above its own limits.
const LIMIT: Duration = Duration::from_secs(45);

/// A browser with one page. It ends with what drives it.
pub struct Browser {
    _child: Child,
    commands: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

/// How the window looks.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    pub width: u32,
    pub height: u32,
    pub dark: bool,
}

impl Look {
    pub const DESK: Self = Self {
        width: 1200,
        height: 900,
        dark: false,
    };
    pub const PHONE: Self = Self {
        width: 360,
        height: 740,
        dark: true,
    };
}

impl Browser {
    /// Starts one.
    pub fn start() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let modules = modules(root);
        let shown = modules.display();
        let installed = modules.join("playwright-core").exists();
        assert!(installed, "nothing at {shown}: run scripts/clients.sh");
        let mut child = Command::new("node")
            .arg(root.join("tests/browser/driver.cjs"))
            .env("NODE_PATH", modules)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("node is installed");
        Self {
            commands: child.stdin.take().unwrap(),
            answers: BufReader::new(child.stdout.take().unwrap()).lines(),
            _child: child,
        }
    }

    /// Opens a page in a window of its own; gives the status of the answer.
    pub async fn open(&mut self, url: &str, look: Look) -> Value {
        let Look {
            width,
            height,
            dark,
        } = look;
        let look = json!({"width": width, "height": height, "dark": dark});
        let open = json!({"command": "open", "url": url, "look": look});
        self.tell(open).await
    }

    /// Waits until an expression is true in the page.
    pub async fn wait(&mut self, until: &str) {
        self.tell(json!({"command": "wait", "until": until})).await;
    }

    /// Waits until an element has a text that contains this.
    pub async fn wait_for_text(&mut self, selector: &str, text: &str) {
        let (selector, text) = (json!(selector), json!(text));
        let until = format!("document.querySelector({selector})?.innerText.includes({text})");
        self.wait(&until).await;
    }

    /// The value of an expression in the page.
    pub async fn value(&mut self, of: &str) -> Value {
        self.tell(json!({"command": "value", "of": of})).await
    }

    pub async fn fill(&mut self, selector: &str, text: &str) {
        let fill = json!({"command": "fill", "selector": selector, "text": text});
        self.tell(fill).await;
    }

    pub async fn press(&mut self, key: &str) {
        self.tell(json!({"command": "press", "key": key})).await;
    }

    pub async fn reload(&mut self) {
        self.tell(json!({"command": "reload"})).await;
    }

    /// Nothing on the page keeps people out, by axe; and it has complained of nothing.
    pub async fn assert_good(&mut self) {
        let found = self.tell(json!({"command": "axe"})).await;
        assert_eq!(found, json!([]), "not accessible");
        let complaints = self.complaints().await;
        assert_eq!(complaints, Vec::<String>::new());
    }

    /// What the page has complained of.
    pub async fn complaints(&mut self) -> Vec<String> {
        let complaints = self.tell(json!({"command": "complaints"})).await;
        serde_json::from_value(complaints).unwrap()
    }

    async fn tell(&mut self, command: Value) -> Value {
        let line = format!("{command}\n");
        self.commands.write_all(line.as_bytes()).await.unwrap();
        let answer = timeout(LIMIT, self.answers.next_line()).await;
        let answer = answer.unwrap_or_else(|_| panic!("no answer to {command}"));
        let answer = answer.unwrap().expect("the browser goes on");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let failed = answer.get("error");
        assert!(failed.is_none(), "{command}: {failed:?}");
        answer["ok"].clone()
    }
}

/// Where scripts/clients.sh has put what the driver needs.
fn modules(root: &Path) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR");
    let target = target.map_or_else(|| root.join("target"), |target| root.join(target));
    target.join("clients/browser/node_modules")
}
