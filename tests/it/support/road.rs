//! A road to a service, which can be cut in silence.

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Carries bytes to a local port and back. Connections end with it.
pub struct Road {
    port: u16,
    forgotten: watch::Sender<u64>,
    _carriers: JoinSet<()>,
}

impl Road {
    /// A road to this port.
    pub async fn to(service: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (forgotten, forgetting) = watch::channel(0);
        let mut carriers = JoinSet::new();
        carriers.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(carry(client, service, forgetting.clone()));
            }
        });
        Self {
            port,
            forgotten,
            _carriers: carriers,
        }
    }

    /// Where it begins.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// From now on nothing more goes over the connections that there are, and neither end is told.
    /// New ones work.
    pub fn forget_connections(&self) {
        self.forgotten.send_modify(|times| *times += 1);
    }
}

async fn carry(mut client: TcpStream, service: u16, mut forgetting: watch::Receiver<u64>) {
    forgetting.mark_unchanged();
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", service)).await else {
        return;
    };
    let cut = tokio::select! {
        _ = copy_bidirectional(&mut client, &mut server) => false,
        changed = forgetting.changed() => changed.is_ok(),
    };
    if cut {
        // Both stay open.
        std::future::pending::<()>().await;
    }
}
