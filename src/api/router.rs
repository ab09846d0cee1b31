//! Every route, with its description.

use std::sync::Arc;

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::middleware::{from_fn, from_fn_with_state, map_response};
use axum::response::Response;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use utoipa_swagger_ui::{Config, SwaggerUi};

use super::app::App;
use super::error::{ApiError, Code};
use super::{
    auth, batches, caps, holds, lanes, messages, openapi, page, preview, seal, send, suppressions,
    turns,
};

/// Every route of the API.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::with_openapi(openapi::base())
        .routes(routes!(send::send_message, messages::show_message))
        .routes(routes!(messages::list_messages))
        .routes(routes!(batches::upload_batch))
        .routes(routes!(batches::batch))
        .routes(routes!(batches::batch_rejections))
        .routes(routes!(preview::preview_quiet_hours))
        .routes(routes!(
            suppressions::list_suppressions,
            suppressions::add_suppression
        ))
        .routes(routes!(
            suppressions::show_suppression,
            suppressions::remove_suppression
        ))
        .routes(routes!(suppressions::take_inbound))
        .routes(routes!(caps::list_caps))
        .routes(routes!(caps::show_cap, caps::put_cap, caps::remove_cap))
        .routes(routes!(holds::list_holds, holds::add_hold))
        .routes(routes!(holds::resume))
        .routes(routes!(lanes::lanes))
        .routes(routes!(lanes::events::lane_events))
}

/// The whole of the API, its document and its reference page.
pub fn router(app: Arc<App>) -> Router {
    let (routes, document) = routes().split_for_parts();
    let document = openapi::completed(document);
    let reference = SwaggerUi::new("/docs")
        .external_url_unchecked(
            "/openapi.json",
            serde_json::to_value(&document).unwrap_or_default(),
        )
        // Else the page would send the document's address to a validator elsewhere.
        .config(Config::default().validator_url("none"));
    let reference = Router::<Arc<App>>::from(reference).layer(map_response(reference_policy));
    let everything = routes
        .merge(reference)
        .merge(page::routes())
        .fallback(nothing_there)
        .method_not_allowed_fallback(no_such_method);
    // The last one is the outermost.
    everything
        .layer(from_fn_with_state(Arc::clone(&app), turns::in_turn))
        .layer(from_fn(seal::in_time))
        .layer(from_fn(seal::within_limits))
        .layer(from_fn_with_state(Arc::clone(&app), auth::authenticate))
        .layer(from_fn_with_state(
            Arc::clone(&app),
            page::from_this_machine,
        ))
        .layer(from_fn_with_state(Arc::clone(&app), seal::seal))
        .with_state(app)
}

/// The reference page loads nothing from elsewhere. Its library styles elements inline.
async fn reference_policy(mut response: Response) -> Response {
    let policy = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
        base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    let policy = HeaderValue::from_static(policy);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    response
}

async fn nothing_there() -> ApiError {
    seal::nothing_there()
}

async fn no_such_method() -> ApiError {
    let message = "this path does not know that method; the header Allow lists those it knows";
    ApiError::new(Code::MethodNotAllowed, message)
}
