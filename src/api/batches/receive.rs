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

/// What must have come of an upload after [`SILENCE`], on the average of the time since: so many bytes
/// in so long. One that drips would keep its place from others for an hour.
const LEAST: u64 = 64 * 1024;
const LEAST_IN: Duration = Duration::from_secs(10);

/// The most rows of an upload. While they are queued each recipient is remembered, in some 16 bytes: four
/// uploads of so many take 300 MiB, and a gigabyte of short rows would take twice that by itself.
const MOST_ROWS: u64 = 5_000_000;

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
            if length < least(watch.began.elapsed()) {
                return Err(too_slow());
            }
            spool.take(&piece).await?;
        }
        let file = spool.end().await?;
        let opening = tokio::task::spawn_blocking(move || BatchFile::of(file, Some(format)));
        let opened = opening.await.map_err(|error| {
            tracing::error!(%error, "reading an upload has broken down");
            ApiError::new(Code::InternalError, "something is wrong in here")
        })?;
        let file = opened.map_err(|error| refused(&error))?;
        few_enough(file.most_rows(), MOST_ROWS)?;
        Ok(file)
    }
}

/// What must have come of an upload after some time, in bytes.
fn least(after: Duration) -> u64 {
    let counted = after.saturating_sub(SILENCE).as_secs();
    counted * LEAST / LEAST_IN.as_secs()
}

fn too_slow() -> ApiError {
    let (bytes, seconds) = (LEAST, LEAST_IN.as_secs());
    let message = format!(
        "the upload came more slowly than {bytes} bytes in {seconds} seconds; nothing was queued"
    );
    ApiError::new(Code::RequestTimeout, message)
}

fn few_enough(rows: u64, most: u64) -> ApiResult<()> {
    if rows <= most {
        return Ok(());
    }
    let message = format!("the upload has more than {most} rows; divide it; nothing was queued");
    Err(ApiError::new(Code::PayloadTooLarge, message)
        .detail("limit", most)
        .detail("limit_type", "rows"))
}

/// Takes what comes, as long as it may.
struct Watch<'a> {
    app: &'a App,
    caller: &'a Caller,
    began: Instant,
    look_at: Instant,
}

impl<'a> Watch<'a> {
    fn new(app: &'a App, caller: &'a Caller) -> Self {
        let now = Instant::now();
        Self {
            app,
            caller,
            began: now,
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
        if now - self.began >= ARRIVES_WITHIN {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upload_may_begin_slowly_and_pause_and_may_not_drip() {
        let least = |seconds| least(Duration::from_secs(seconds));
        assert_eq!([0, 30, 31, 40].map(least), [0, 0, 6_553, 65_536]);
        // One byte before each silence would be too long.
        assert!(least(2 * 29) > 2);
        assert!(least(3_600) < 24 << 20);
    }

    /// Whatever ends its lines, and whatever its quotes hold.
    #[test]
    fn the_rows_of_an_upload_are_counted_before_any_is_queued() {
        let rows = |text: &str, format| {
            let file = BatchFile::spool(text.as_bytes(), Some(format)).unwrap();
            file.most_rows()
        };
        assert_eq!(rows("{}\n{}\n{}", Format::JsonLines), 3);
        assert_eq!(rows("{}\r{}", Format::JsonLines), 2);
        let csv = "to,body\na,\"one\ntwo\nthree\"\nb,four\n";
        assert_eq!(rows(csv, Format::Csv), 2);
        assert!(few_enough(2, 2).is_ok());
        let refused = few_enough(3, 2).unwrap_err();
        assert_eq!(refused.code(), Code::PayloadTooLarge);
        assert_eq!(refused.details()["limit"], 2);
        assert!(refused.message().contains("divide it"));
    }
}
