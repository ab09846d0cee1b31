//! Can a carrier be reached? Nothing is sent to it.

use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls_platform_verifier::ConfigVerifierExt as _;
use tokio_rustls::TlsConnector;
use url::Url;

use super::{Finding, reach};
use crate::carrier::AnyCarrier;
use crate::clock::SystemClock;
use crate::settings::{Carrier, CarrierKind};

const HTTP_PORT: u16 = 80;

pub(super) async fn look(name: &Arc<str>, carrier: &Carrier) -> Finding {
    let what = format!("carrier {name}");
    match &carrier.kind {
        CarrierKind::Sandbox(_) => {
            // As the worker opens it, its record included.
            let (cap, clock) = (carrier.timeout, Arc::new(SystemClock));
            let opened = AnyCarrier::open(name, carrier, cap, clock, fastrand::Rng::new());
            let detail = |_| "sandbox: accepts everything and sends nothing".to_owned();
            Finding::of(what, opened.map(detail).map_err(|error| error.to_string()))
        }
        CarrierKind::Http(http) => {
            let greeting = greet(http.url.expose());
            reach::look(what, http.url.to_string(), http.connect_timeout, greeting).await
        }
    }
}

async fn greet(url: &Url) -> Result<String, String> {
    let stream = reach::connect(url, HTTP_PORT).await?;
    if url.scheme() != "https" {
        return Ok("can be connected to; nothing was sent".to_owned());
    }
    let config = rustls::ClientConfig::with_platform_verifier();
    let config = config.map_err(|_| "no root certificates were found on this machine")?;
    let host = ServerName::try_from(reach::bare_host(url));
    let host = host.map_err(|_| "the host is no name for a certificate")?;
    let handshake = TlsConnector::from(Arc::new(config)).connect(host, stream);
    match handshake.await {
        Ok(_) => Ok("can be connected to, with a valid certificate; nothing was sent".to_owned()),
        Err(error) => Err(format!("no TLS connection: {error}")),
    }
}
