//! The parts of the page.

use std::borrow::Cow;

/// A part of the page.
#[derive(Debug)]
pub(super) struct Asset {
    pub name: &'static str,
    pub kind: &'static str,
    pub content: Cow<'static, str>,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

macro_rules! asset {
    ($name:literal, $kind:expr) => {
        Asset {
            name: $name,
            kind: $kind,
            content: Cow::Borrowed(include_str!(concat!("assets/", $name))),
        }
    };
}

pub(super) static ALL: [Asset; 11] = [
    asset!("main.js", SCRIPT),
    asset!("stream.js", SCRIPT),
    asset!("door.js", SCRIPT),
    asset!("history.js", SCRIPT),
    asset!("charts.js", SCRIPT),
    asset!("figures.js", SCRIPT),
    asset!("page.css", STYLE),
    asset!("uPlot.iife.min.js", SCRIPT),
    asset!("uPlot.min.css", STYLE),
    asset!("uPlot.LICENSE.txt", "text/plain; charset=utf-8"),
    asset!("icon.svg", "image/svg+xml"),
];

/// The page itself; `is_open`: it needs no key.
pub(super) fn page(is_open: bool) -> Asset {
    let text = include_str!("assets/index.html");
    Asset {
        name: "index.html",
        kind: "text/html; charset=utf-8",
        content: if is_open {
            Cow::Owned(text.replace("data-door=\"key\"", "data-door=\"open\""))
        } else {
            Cow::Borrowed(text)
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_only_parts_that_are_there() {
        let page = page(false).content;
        let named = page.split("\"/page/").skip(1);
        let mut count = 0;
        for name in named.filter_map(|rest| rest.split('"').next()) {
            assert!(ALL.iter().any(|asset| asset.name == name), "{name}");
            count += 1;
        }
        assert!(count >= 5);
    }

    #[test]
    fn nothing_of_it_is_inline_or_from_elsewhere() {
        let own = ALL.iter().filter(|asset| !asset.name.starts_with("uPlot"));
        for asset in own {
            let content = &asset.content;
            assert!(!content.contains("https://"), "{}", asset.name);
            assert!(!content.contains("innerHTML"), "{}", asset.name);
        }
        let page = page(false).content;
        for inline in ["<script>", " style=", "<style", " onclick="] {
            assert!(!page.contains(inline), "{inline}");
        }
    }

    #[test]
    fn a_page_that_needs_no_key_says_so() {
        assert!(page(false).content.contains("data-door=\"key\""));
        assert!(page(true).content.contains("data-door=\"open\""));
    }
}
