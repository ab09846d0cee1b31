//! Parameters of the query string.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::error::{ApiError, ApiResult};
use super::wrong::{Wrong, wrong};

/// Parameters of the query string. Unknown ones are refused: a misspelt filter must not show
/// everything.
#[derive(Debug)]
pub struct Query<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> ApiResult<Self> {
        let query = axum::extract::Query::<T>::try_from_uri(&parts.uri);
        match query {
            Ok(query) => Ok(Self(query.0)),
            Err(rejection) => Err(unreadable(&rejection)),
        }
    }
}

/// The rejection's text names parameter and expectation, and may repeat a value.
fn unreadable(rejection: &axum::extract::rejection::QueryRejection) -> ApiError {
    let text = rejection.body_text();
    // A name may hold anything; the text around it begins with the first of these.
    let text = text
        .split_once("query string: ")
        .map_or(&*text, |(_, text)| text);
    told(text)
}

fn told(text: &str) -> ApiError {
    // A parameter's name stands in front of what is wrong with it; one that is not known may be anything.
    let about_name = text.find("unknown field `").map_or(text, |at| &text[at..]);
    let (name, wrong) = match (wrong(about_name), text.split_once(": ")) {
        (whole @ Wrong { name: Some(_), .. }, _) | (whole, None) => ("query", whole),
        (_, Some((name, rest))) => (name, wrong(rest)),
    };
    ApiError::validation(wrong.name.as_deref().unwrap_or(name), None, wrong.expected)
}

#[cfg(test)]
mod tests {
    use axum::http::Uri;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read")]
    struct List {
        limit: u16,
        all: Option<bool>,
    }

    #[test]
    fn a_parameter_that_is_wrong_is_named_and_its_value_is_not_told() {
        let number = "expected a whole number, not negative";
        let known = "there is none of that name; expected `limit` or `all`";
        for (query, field, expected) in [
            ("", "limit", "expected a value"),
            ("limit=S3NTINEL", "limit", number),
            ("limit=-1", "limit", number),
            ("limit", "limit", number),
            ("limit=%ff", "limit", number),
            ("limit=65536", "limit", "expected a smaller number"),
            ("limit=1&limit=1", "limit", "expected once"),
            ("limit=1&all=S3NTINEL", "all", "expected true or false"),
            ("limit=1&al=S3NTINEL", "al", known),
            ("limit=1&=S3NTINEL", "", known),
            ("limit=1&a%3A+b=S3NTINEL", "a: b", known),
        ] {
            let uri: Uri = format!("/?{query}").parse().unwrap();
            let read = axum::extract::Query::<List>::try_from_uri(&uri);
            let error = unreadable(&read.unwrap_err());
            assert_eq!(error.details()["field"], field, "{query}");
            assert_eq!(error.details()["expected"], expected, "{query}");
            assert!(!format!("{error:?}").contains("S3NTINEL"), "{error:?}");
        }
    }
}
