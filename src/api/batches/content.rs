//! What an upload says that it is.

use axum::http::{HeaderMap, header};

use crate::api::error::{ApiError, ApiResult, Code};
use crate::batch::Format;

/// What an upload says that it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// A file, read as a stream.
    File(Format),
    /// One JSON array.
    Array,
}

impl Content {
    /// Reads `Content-Type`. Everything is UTF-8, and a coding such as gzip is not undone here.
    ///
    /// # Errors
    /// [`Code::UnsupportedMediaType`].
    pub(super) fn of(headers: &HeaderMap) -> ApiResult<Self> {
        let coding = headers.get(header::CONTENT_ENCODING);
        if coding.is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
            return Err(unsupported("send it without Content-Encoding"));
        }
        let kind = headers.get(header::CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let mut parts = kind.split(';').map(|part| part.trim().to_ascii_lowercase());
        let found = match parts.next().as_deref() {
            Some("text/csv") => Self::File(Format::Csv),
            Some("application/x-ndjson" | "application/ndjson" | "application/jsonl") => {
                Self::File(Format::JsonLines)
            }
            Some("application/json") => Self::Array,
            _ => {
                return Err(unsupported(
                    "expected the header Content-Type: application/x-ndjson, text/csv or \
                     application/json",
                ));
            }
        };
        let is_utf8 = |part: String| {
            let charset = part
                .strip_prefix("charset=")
                .map(|it| it.trim_matches('"').to_owned());
            charset.is_none_or(|charset| matches!(&*charset, "utf-8" | "utf8" | "us-ascii"))
        };
        if parts.all(is_utf8) {
            Ok(found)
        } else {
            Err(unsupported(
                "save the file in UTF-8, and say charset=utf-8 or nothing",
            ))
        }
    }
}

fn unsupported(message: &'static str) -> ApiError {
    ApiError::new(Code::UnsupportedMediaType, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: &'static str, coding: Option<&'static str>) -> Option<Content> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, kind.parse().unwrap());
        if let Some(coding) = coding {
            headers.insert(header::CONTENT_ENCODING, coding.parse().unwrap());
        }
        Content::of(&headers).ok()
    }

    #[test]
    fn kinds_are_known_in_any_spelling_and_with_parameters() {
        let (csv, lines) = (Content::File(Format::Csv), Content::File(Format::JsonLines));
        for (kind, expected) in [
            ("text/csv", Some(csv)),
            ("Text/CSV; charset=\"UTF-8\"; header=present", Some(csv)),
            ("application/x-ndjson", Some(lines)),
            ("application/jsonl;charset=utf8", Some(lines)),
            ("application/json", Some(Content::Array)),
            ("text/csv; charset=windows-1252", None),
            ("text/plain", None),
            ("multipart/form-data; boundary=x", None),
            ("", None),
        ] {
            assert_eq!(of(kind, None), expected, "{kind}");
        }
    }

    #[test]
    fn nothing_is_uncompressed() {
        assert_eq!(of("text/csv", Some("gzip")), None);
        assert!(of("text/csv", Some("identity")).is_some());
        assert!(Content::of(&HeaderMap::new()).is_err());
    }
}
