//! `[ops]`: the operators' server.

use std::net::SocketAddr;

use super::SettingsError;
use super::reader::Section;

/// Where metrics and health are served.
#[derive(Debug, Clone, Copy)]
pub struct Ops {
    /// Address and port.
    pub listen: SocketAddr,
}

impl Ops {
    pub(super) fn read(section: &Section<'_>) -> Result<Self, SettingsError> {
        let expected = "an IP address and a port, such as 127.0.0.1:9464 or [::]:9464";
        Ok(Self {
            listen: section.parsed("listen", |text| text.parse().map_err(|_| expected))?,
        })
    }
}
