"""What the OpenAPI document cannot say, for schemathesis."""

import hashlib

import schemathesis
from schemathesis import GenerationMode

# What a message needs to be sent; random texts seldom are that.
SENDABLE = {
    "to": ["+447700900123", "+14155550132", "+4915112345678", "+818012345678"],
    "recipient_timezone": ["Europe/London", "America/St_Johns", "Asia/Kathmandu"],
    "not_before": ["2020-01-01T00:00:00Z", "2100-01-01T00:00:00+05:45"],
    "expires_at": ["2099-12-31T23:59:60Z", "9999-01-01T00:00:00Z"],
    "body": ["Your code is 482913", "\u0645\u0631\u062d\u0628\u0627 \U0001f44b", ""],
}

# Fields that may be refused although they fit their schema, because what is wrong with them no
# schema can say: those of any operation, and those of one.
ANYWHERE = {"cursor"}
JUDGED = {
    "sendMessage": {
        "to",
        # Neither it nor `content` is there.
        "body",
        "recipient_timezone",
        "expires_at",
        "not_before",
        "metadata.traffic_lane",
        # Texts within them may be none.
        "metadata",
        "content",
    },
    # A file that is none, a header line that has no recipient, a country that is none.
    "uploadBatch": {"body", "to", "region"},
    # Recipients that are none.
    "addSuppression": {"recipient"},
    "showSuppression": {"recipient"},
    "removeSuppression": {"recipient"},
    "takeInbound": {"from"},
    "previewQuietHours": {"phone", "recipient_timezone"},
    # An account other than the key's.
    "addHold": {"id"},
    "resume": {"id"},
}


@schemathesis.hook
def before_call(context, case, kwargs):
    """Two capitals are seldom a country, and random texts seldom a message that can be sent: what is
    refused for that alone tries nothing else."""
    if not is_sound(case):
        return
    if case.query and case.query.get("region"):
        case.query["region"] = "GB"
    body = case.body
    if isinstance(body, dict) and isinstance(body.get("to"), str):
        make_sendable(case, body)


def make_sendable(case, body):
    """Gives three in four messages what they need; which ones depends on the message alone."""
    chance = hashlib.sha256(repr((sorted(body), body["to"])).encode("utf-8", "replace")).digest()
    if chance[0] % 4 == 0:
        return
    sendable = dict(body)
    for name, values in SENDABLE.items():
        if isinstance(body.get(name), str):
            sendable[name] = values[chance[1] % len(values)]
    if sendable.get("content") is None and not sendable.get("body"):
        sendable["body"] = SENDABLE["body"][0]
    case.body = sendable
    # A key that another body had would be all that is looked at.
    if chance[2] % 4 and case.headers and case.headers.get("Idempotency-Key"):
        case.headers["Idempotency-Key"] = chance.hex()


@schemathesis.check
def envelope(ctx, response, case):
    """Each answer is in the one form, and its id is that of the header."""
    if header(response, "content-type").startswith("text/event-stream"):
        return
    answer = response.json()
    assert answer["meta"]["request_id"] == header(response, "x-request-id"), "another id"
    if response.status_code < 400:
        assert "data" in answer and "error" not in answer, "no data"
        return
    error = answer["error"]
    assert "data" not in answer, "data beside an error"
    assert error["status"] == response.status_code, "another status"
    assert error["message"], "no message"
    if error["code"] == "VALIDATION_ERROR":
        assert {"field", "value", "expected"} <= error["details"].keys(), "not said what is wrong"


@schemathesis.check
def waiting_time(ctx, response, case):
    """Whoever must wait is told how long."""
    if response.status_code not in (429, 503):
        return
    seconds = header(response, "retry-after")
    assert seconds.isdigit() and int(seconds) >= 1, f"Retry-After: {seconds}"
    assert str(response.json()["error"]["details"]["retry_after"]) == seconds, "two waiting times"


@schemathesis.check
def refusals(ctx, response, case):
    """What fits the schema is refused only for what no schema can say."""
    if response.status_code != 422 or not is_sound(case):
        return
    details = response.json()["error"]["details"]
    operation = case.operation.definition.raw["operationId"]
    field = details["field"]
    # Lengths are counted in bytes, and 1.0 is no whole number here, as in most languages.
    is_known = field in ANYWHERE | JUDGED.get(operation, set()) or any(
        what in details["expected"] for what in ("bytes", "whole number")
    )
    assert is_known, f"{operation}: {details}"


def is_sound(case):
    return case.meta is not None and case.meta.generation.mode == GenerationMode.POSITIVE


def header(response, name):
    values = response.headers.get(name) or [""]
    return values[0]
