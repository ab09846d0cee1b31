//! An upload on its way into a temporary file.

use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes};
use axum::http::HeaderMap;
use futures_util::StreamExt as _;
use tokio::fs::File;
use tokio::io::{AsyncWriteExt as _, BufWriter};
use tokio::time::{Instant, timeout};

use super::array;
use super::content::Content;
use crate::api::app::App;
use crate::api::auth::Caller;
use crate::api::body::declared_length;
use crate::api::error::{ApiError, ApiResult, Code};
use crate::batch::{BatchFile, FileError, Format};

/// How long nothing may come of an upload.
const SILENCE: Duration = Duration::from_secs(30);

/// How long an upload may take in all.
const ARRIVES_WITHIN: Duration = Duration::from_secs(3_600);

/// How often it is looked whether the upload may still go on.
const LOOK: Duration = Duration::from_millis(250);

/// What is written to the file at a time, in bytes.
const PIECE: usize = 256 * 1024;

/// A request's body, of which nothing has been read yet.
pub(super) struct Incoming {
    body: BodyDataStream,
    declared: Option<u64>,
}

impl Incoming {
    pub(super) fn new(headers: &HeaderMap, body: Body) -> Self {
        Self {
            body: body.into_data_stream(),
            declared: declared_length(headers),
        }
    }

    /// Takes all of it, and reads it through once.
    ///
    /// # Errors
    /// When it does not come to its end, is too large, or can be no batch. Nothing was done then.
    pub(super) async fn file(
        mut self,
        app: &App,
        caller: &Caller,
        content: Content,
        largest: u64,
    ) -> ApiResult<BatchFile> {
        let (format, most) = match content {
            Content::File(format) => (format, largest),
            Content::Array => (Format::JsonLines, largest.min(array::MOST_BYTES as u64)),
        };
        if self.declared.is_some_and(|length| length > most) {
            return Err(larger_than(most, content));
        }
        let file = tempfile::tempfile().map_err(|error| no_room(&error))?;
        let mut spool = Spool::new(file, content);
        let mut watch = Watch::new(app, caller);
        let mut length = 0;
        while let Some(piece) = watch.next(&mut self.body).await? {
            length += piece.len() as u64;
            if length > most {
                return Err(larger_than(most, content));
            }
            spool.take(&piece).await?;
        }
        let file = spool.end().await?;
        let opening = tokio::task::spawn_blocking(move || BatchFile::of(file, Some(format)));
        let opened = opening.await.map_err(|error| {
            tracing::error!(%error, "reading an upload has broken down");
            ApiError::new(Code::InternalError, "something is wrong in here")
        })?;
        opened.map_err(|error| refused(&error))
    }
}

/// Takes what comes, as long as it may.
struct Watch<'a> {
    app: &'a App,
    caller: &'a Caller,
    ends_at: Instant,
    look_at: Instant,
}

impl<'a> Watch<'a> {
    fn new(app: &'a App, caller: &'a Caller) -> Self {
        let now = Instant::now();
        Self {
            app,
            caller,
            ends_at: now + ARRIVES_WITHIN,
            look_at: now + LOOK,
        }
    }

    async fn next(&mut self, body: &mut BodyDataStream) -> ApiResult<Option<Bytes>> {
        let piece = tokio::select! {
            () = self.app.stop.cancelled() => {
                return Err(ApiError::unavailable("the server is stopping; nothing was queued"));
            }
            piece = timeout(SILENCE, body.next()) => piece,
        };
        let piece = piece.map_err(|_| {
            let seconds = SILENCE.as_secs();
            let message = format!("nothing came for {seconds} seconds; nothing was queued");
            ApiError::new(Code::RequestTimeout, message)
        })?;
        let now = Instant::now();
        if now >= self.ends_at {
            let message = "the upload took longer than an hour; nothing was queued";
            return Err(ApiError::new(Code::RequestTimeout, message));
        }
        if now >= self.look_at {
            self.look_at = now + LOOK;
            self.caller.still_valid(self.app)?;
        }
        let broken = |_| {
            let message = "the upload broke off; nothing was queued";
            ApiError::new(Code::MalformedBody, message)
        };
        piece.transpose().map_err(broken)
    }
}

/// Where an upload is kept.
enum Spool {
    File(BufWriter<File>),
    /// An array is looked at as a whole first.
    Array(Vec<u8>, File),
}

impl Spool {
    fn new(file: std::fs::File, content: Content) -> Self {
        let file = File::from_std(file);
        match content {
            Content::File(_) => Self::File(BufWriter::with_capacity(PIECE, file)),
            Content::Array => Self::Array(Vec::new(), file),
        }
    }

    async fn take(&mut self, piece: &[u8]) -> ApiResult<()> {
        match self {
            Self::File(file) => file.write_all(piece).await.map_err(|error| no_room(&error)),
            Self::Array(array, _) => {
                array.extend_from_slice(piece);
                Ok(())
            }
        }
    }

    async fn end(self) -> ApiResult<std::fs::File> {
        let mut file = match self {
            Self::File(file) => file,
            Self::Array(array, file) => {
                let mut file = BufWriter::with_capacity(PIECE, file);
                let written = file.write_all(&array::lines(&array)?).await;
                written.map_err(|error| no_room(&error))?;
                file
            }
        };
        file.flush().await.map_err(|error| no_room(&error))?;
        Ok(file.into_inner().into_std().await)
    }
}

fn larger_than(most: u64, content: Content) -> ApiError {
    let message = match content {
        Content::File(_) => format!("the upload has more than {most} bytes; divide it"),
        Content::Array => {
            format!("the array has more than {most} bytes; send it as application/x-ndjson")
        }
    };
    ApiError::new(Code::PayloadTooLarge, message).detail("limit", most)
}

fn no_room(error: &std::io::Error) -> ApiError {
    tracing::error!(%error, "an upload cannot be kept in a temporary file");
    ApiError::unavailable("the upload cannot be kept; nothing was queued")
}

/// What a file is refused for. The errors of files hold nothing of their rows.
pub(super) fn refused(error: &FileError) -> ApiError {
    match error {
        FileError::Read(_) | FileError::Spool(_) | FileError::Changed => {
            tracing::error!(%error, "an upload cannot be read");
            ApiError::unavailable("the upload cannot be read back; nothing was queued")
        }
        FileError::MissingColumn { .. } => ApiError::validation("to", None, error.to_string()),
        _ => ApiError::validation("body", None, error.to_string()),
    }
}
