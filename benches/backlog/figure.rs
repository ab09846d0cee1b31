//! One figure, what was asked of it, and the table of them.

use serde_json::{Value, json};

/// What a figure is to be.
#[derive(Debug, Clone, Copy)]
enum Asked {
    AtMost(f64),
    AtLeast(f64),
    /// It is only stated.
    Nothing,
}

/// One figure.
#[derive(Debug)]
pub struct Figure {
    what: String,
    unit: &'static str,
    value: f64,
    asked: Asked,
    /// What else is to be known of it.
    note: String,
}

impl Figure {
    /// A figure that is only stated.
    pub fn new(what: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self {
            what: what.into(),
            unit,
            value,
            asked: Asked::Nothing,
            note: String::new(),
        }
    }

    pub fn at_most(self, most: f64) -> Self {
        let asked = Asked::AtMost(most);
        Self { asked, ..self }
    }

    pub fn at_least(self, least: f64) -> Self {
        let asked = Asked::AtLeast(least);
        Self { asked, ..self }
    }

    pub fn note(self, note: impl Into<String>) -> Self {
        let note = note.into();
        Self { note, ..self }
    }

    fn asked(&self) -> String {
        match self.asked {
            Asked::AtMost(most) => format!("<= {most}"),
            Asked::AtLeast(least) => format!(">= {least}"),
            Asked::Nothing => String::new(),
        }
    }

    fn is_reached(&self) -> Option<bool> {
        match self.asked {
            Asked::AtMost(most) => Some(self.value <= most),
            Asked::AtLeast(least) => Some(self.value >= least),
            Asked::Nothing => None,
        }
    }

    fn as_json(&self) -> Value {
        json!({
            "what": self.what,
            "value": (self.value * 10_000.0).round() / 10_000.0,
            "unit": self.unit,
            "asked": self.asked(),
            "reached": self.is_reached(),
            "note": self.note,
        })
    }
}

/// Prints them as a table, and writes them down.
pub fn report(figures: &[Figure], quick: bool) {
    println!(
        "\n{:<74} {:>9} {:<3} {:>8} reached",
        "figure", "measured", "", "asked"
    );
    for figure in figures {
        let reached = match figure.is_reached() {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "",
        };
        println!(
            "{:<74} {:>9.3} {:<3} {:>8} {reached:<7} {}",
            figure.what,
            figure.value,
            figure.unit,
            figure.asked(),
            figure.note
        );
    }
    let body = json!({
        "quick": quick,
        "processors": std::thread::available_parallelism().map_or(0, usize::from),
        "figures": figures.iter().map(Figure::as_json).collect::<Vec<_>>(),
    });
    let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".to_owned());
    let folder = std::path::Path::new(&target).join("bench");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("backlog.json");
    std::fs::write(&file, format!("{body:#}\n")).unwrap();
    println!("written to {}", file.display());
}
