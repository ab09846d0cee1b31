//! The `OpenAPI` document, made from the handlers themselves.

use utoipa::OpenApi;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::schema::{Object, Type};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, SecurityScheme};
use utoipa::openapi::{HeaderBuilder, OpenApi as Document, RefOr, Response};

use super::send::ChannelName;

/// What the document says of the whole.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Lanekeeper",
        description = "Send messages by two lanes under one budget.\n\nEvery answer is `{\"data\": …, \"meta\": …}` or `{\"error\": …, \"meta\": …}`. Clients should decide by `error.code`, and name `meta.request_id` when they ask for help.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    // What only parameters name is not collected by itself.
    components(schemas(ChannelName)),
    tags(
        (name = "messages", description = "Single messages"),
        (name = "batches", description = "Many messages with one request"),
        (name = "compliance", description = "When recipients may be written to"),
        (name = "suppressions", description = "Who must not be written to, and what recipients reply"),
        (name = "frequency caps", description = "How often one recipient may be written to"),
        (name = "lanes", description = "How the lanes stand"),
        (name = "holds", description = "Pause, resume, cancel"),
    ),
)]
struct Base;

/// The document without routes.
pub(super) fn base() -> Document {
    Base::openapi()
}

/// The document with what concerns all routes.
pub(super) fn completed(mut document: Document) -> Document {
    let key = ApiKeyValue::with_description(
        "X-API-Key",
        "A key as `lanekeeper key create` shows it, once",
    );
    let components = document.components.get_or_insert_default();
    components.add_security_scheme("api_key", SecurityScheme::ApiKey(ApiKey::Header(key)));
    let operations = document.paths.paths.values_mut().flat_map(operations);
    operations.for_each(complete);
    document
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem {
        get,
        put,
        post,
        delete,
        patch,
        ..
    } = item;
    [get, put, post, delete, patch].into_iter().flatten()
}

/// What handlers say of their errors is for those who call them in Rust; their answers stand in the
/// document anyway, with the headers that each of them has.
fn complete(operation: &mut Operation) {
    if let Some(description) = &mut operation.description {
        let end = description.find("# Errors").unwrap_or(description.len());
        description.truncate(end);
        description.truncate(description.trim_end().len());
    }
    for (status, response) in &mut operation.responses.responses {
        let RefOr::T(response) = response else {
            continue;
        };
        add_header(
            response,
            "X-Request-Id",
            "The request's id, as in `meta`",
            Type::String,
        );
        if matches!(&**status, "429" | "503") {
            let again = "When to ask again, in seconds";
            add_header(response, "Retry-After", again, Type::Integer);
        }
    }
}

fn add_header(response: &mut Response, name: &str, description: &str, kind: Type) {
    let header = HeaderBuilder::new()
        .description(Some(description))
        .schema(Some(Object::with_type(kind)))
        .build();
    let headers = &mut response.headers;
    headers.entry(name.to_owned()).or_insert(RefOr::T(header));
}

/// The whole document.
#[must_use]
pub fn document() -> Document {
    completed(super::router::routes().into_openapi())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    fn collect<'a>(value: &'a Value, references: &mut BTreeSet<&'a str>) {
        match value {
            Value::Object(entries) => {
                let target = entries.get("$ref").and_then(Value::as_str);
                references.extend(target);
                entries
                    .values()
                    .for_each(|value| collect(value, references));
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, references)),
            _ => {}
        }
    }

    #[test]
    fn whatever_the_document_points_at_is_in_it() {
        let document = serde_json::to_value(document()).unwrap();
        let mut references = BTreeSet::new();
        collect(&document, &mut references);
        assert!(references.len() > 3);
        for reference in references {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
    }

    #[test]
    fn readers_of_the_document_are_told_nothing_of_rust() {
        let document = document().to_json().unwrap();
        assert!(!document.contains("# Errors"), "{document}");
    }

    #[test]
    fn whoever_must_wait_is_told_how_long() {
        let mut document = document();
        for operation in document.paths.paths.values_mut().flat_map(operations) {
            for (status, response) in &operation.responses.responses {
                let RefOr::T(response) = response else {
                    panic!("{status} is described elsewhere");
                };
                assert!(response.headers.contains_key("X-Request-Id"));
                let waits = ["429", "503"].contains(&status.as_str());
                assert_eq!(
                    response.headers.contains_key("Retry-After"),
                    waits,
                    "{status}"
                );
            }
        }
    }
}
