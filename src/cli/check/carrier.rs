//! Can a carrier be reached? Nothing is sent to it.

use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls_platform_verifier::ConfigVerifierExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use url::Url;

use super::Finding;
use crate::settings::{Carrier, CarrierKind, Http};

pub(super) async fn look(name: &str, carrier: &Carrier) -> Finding {
    let result = match &carrier.kind {
        CarrierKind::Sandbox(_) => Ok("sandbox: accepts everything and sends nothing".to_owned()),
        CarrierKind::Http(http) => reach(http).await,
    };
    Finding::of(format!("carrier {name}"), result)
}

async fn reach(http: &Http) -> Result<String, String> {
    let limit = http.connect_timeout;
    let result = match tokio::time::timeout(limit, connect(http.url.expose())).await {
        Ok(result) => result,
        Err(_) => Err(format!("no answer within {} ms", limit.as_millis())),
    };
    let at = |text: String| format!("{}: {text}", http.url);
    result.map(at).map_err(at)
}

async fn connect(url: &Url) -> Result<String, String> {
    let addresses = match (url.host(), url.port_or_known_default()) {
        (Some(host), Some(port)) => (host.to_string(), port),
        _ => return Err("the URL names no host".to_owned()),
    };
    let host = addresses.0.trim_matches(['[', ']']).to_owned();
    let stream = TcpStream::connect((host.as_str(), addresses.1)).await;
    let stream = stream.map_err(|error| error.kind().to_string())?;
    if url.scheme() != "https" {
        return Ok("can be connected to; nothing was sent".to_owned());
    }
    let config = rustls::ClientConfig::with_platform_verifier();
    let config = config.map_err(|_| "no root certificates were found on this machine")?;
    let server = ServerName::try_from(host).map_err(|_| "the host is no name for a certificate")?;
    let handshake = TlsConnector::from(Arc::new(config)).connect(server, stream);
    let handshake = handshake
        .await
        .map_err(|error| format!("no TLS connection: {error}"));
    handshake.map(|_| "can be connected to, with a valid certificate; nothing was sent".to_owned())
}
