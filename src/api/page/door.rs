//! Who may look at the page's figures without a key.
//!
//! Nobody with `api`. With `dev`, which listens on loopback, whoever sits at the machine; but not a
//! page of some other site in the browser there. Such a page could have a name of its own resolve to
//! this address, so the name that the browser has used must be one of this machine's own; and it
//! could link to this address, so the browser must say that the request comes from this very page.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, HeaderName, header};

use crate::domain::AccountId;

/// The page's door.
#[derive(Debug, Clone)]
pub enum PageDoor {
    /// A key is needed.
    Key,
    /// Whoever sits at this machine may look at this account.
    Open(AccountId),
}

static FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

impl PageDoor {
    /// The door of a server without any other accounts that listens there: open on loopback alone.
    #[must_use]
    pub fn of_dev(listens: SocketAddr, account: AccountId) -> Self {
        if listens.ip().is_loopback() {
            Self::Open(account)
        } else {
            Self::Key
        }
    }

    /// The account that may be looked at without a key. `by_page`: only by the page itself, not by
    /// whoever opens it.
    pub(super) fn opens_to(&self, headers: &HeaderMap, by_page: bool) -> Option<&AccountId> {
        let Self::Open(account) = self else {
            return None;
        };
        let from_itself = || {
            headers
                .get(&FETCH_SITE)
                .is_some_and(|site| site == "same-origin")
        };
        let opens = !self.shuts_out(headers) && (!by_page || from_itself());
        opens.then_some(account)
    }

    /// Whether whoever asks has come by a name that is not this machine's own, although nobody else
    /// should come.
    pub(super) fn shuts_out(&self, headers: &HeaderMap) -> bool {
        let host = headers
            .get(header::HOST)
            .and_then(|host| host.to_str().ok());
        matches!(self, Self::Open(_)) && !host.is_some_and(is_this_machine)
    }
}

/// Whether a name with or without a port stands for this machine, whatever a name server says.
fn is_this_machine(host: &str) -> bool {
    let is_port = |port: &str| port.parse::<u16>().is_ok();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) && (!name.contains(':') || name.ends_with(']')) => name,
        _ => host,
    };
    let unbracketed = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    let address: Option<IpAddr> = unbracketed.unwrap_or(name).parse().ok();
    name.eq_ignore_ascii_case("localhost") || address.is_some_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(host: &str, site: Option<&'static str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if let Some(site) = site {
            headers.insert(&FETCH_SITE, site.parse().unwrap());
        }
        headers
    }

    fn dev(listens: &str) -> PageDoor {
        PageDoor::of_dev(listens.parse().unwrap(), AccountId::parse("dev").unwrap())
    }

    #[test]
    fn only_names_of_this_machine_are() {
        for host in [
            "localhost",
            "LOCALHOST:8080",
            "127.0.0.1",
            "127.0.0.9:1",
            "[::1]",
            "[::1]:80",
        ] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example:8080",
            "127.0.0.1.evil.example",
            "10.0.0.1:8080",
            "[::2]:80",
            "",
            ":80",
            "localhost:x",
        ] {
            assert!(!is_this_machine(host), "{host}");
        }
    }

    #[test]
    fn figures_are_shown_only_to_the_page_itself() {
        let door = dev("127.0.0.1:8080");
        let opens = |host, site| door.opens_to(&headers(host, site), true).is_some();
        assert!(opens("localhost:8080", Some("same-origin")));
        assert!(!opens("localhost:8080", Some("cross-site")));
        assert!(!opens("localhost:8080", Some("same-site")));
        assert!(!opens("localhost:8080", None));
        assert!(
            !opens("evil.example:8080", Some("same-origin")),
            "a name of somebody else's"
        );
    }

    #[test]
    fn a_server_that_others_can_reach_asks_for_the_key() {
        assert!(
            dev("0.0.0.0:8080")
                .opens_to(&headers("localhost", Some("same-origin")), true)
                .is_none()
        );
        assert!(
            PageDoor::Key
                .opens_to(&headers("localhost", None), false)
                .is_none()
        );
        assert!(
            dev("[::1]:8080")
                .opens_to(&headers("localhost", None), false)
                .is_some()
        );
    }
}
