//! The `OpenAPI` document, made from the handlers themselves.

use utoipa::OpenApi;
use utoipa::openapi::OpenApi as Document;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, SecurityScheme};

/// What the document says of the whole.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Lanekeeper",
        description = "Send messages by two lanes under one budget.\n\nEvery answer is `{\"data\": …, \"meta\": …}` or `{\"error\": …, \"meta\": …}`. Clients should decide by `error.code`, and name `meta.request_id` when they ask for help.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    tags(
        (name = "messages", description = "Single messages"),
        (name = "lanes", description = "How the lanes stand"),
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
    document
}

/// The whole document.
#[must_use]
pub fn document() -> Document {
    completed(super::router::routes().into_openapi())
}
