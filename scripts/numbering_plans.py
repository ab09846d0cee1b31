"""Of which numbers the prefix tells a place, by libphonenumber's numbering plans."""

from functools import reduce
from typing import NamedTuple

import phonenumbers
from languages import DIGITS, EMPTY, NOTHING, Language, any_digits, following, matched_by, one_of
from phonenumbers import PhoneMetadata, PhoneNumberType
from phonenumbers.phonemetadata import PhoneNumberDesc
from phonenumbers.phonenumberutil import is_number_type_geographical

LONGEST_NATIONAL_NUMBER = 17
ANY_NUMBER = any_digits(0, LONGEST_NATIONAL_NUMBER)

# What libphonenumber tries before it asks whether a number is a fixed line or a mobile.
SPECIAL_KINDS = (
    "premium_rate",
    "toll_free",
    "shared_cost",
    "voip",
    "personal_number",
    "pager",
    "uan",
    "voicemail",
)


class Plan(NamedTuple):
    """Numbers by what is known of where they are. What is in neither is no valid number."""

    placed: Language
    """A longer prefix tells a place."""
    countrywide: Language
    """Only the country calling code tells something."""

    def valid(self) -> Language:
        return self.placed | self.countrywide


def numbers_of(kind: PhoneNumberDesc | None) -> Language:
    if kind is None or not kind.national_number_pattern:
        return NOTHING
    numbers = matched_by(kind.national_number_pattern)
    if not kind.possible_length:
        return numbers
    lengths = (any_digits(length, length) for length in kind.possible_length if length > 0)
    return numbers & reduce(Language.__or__, lengths, NOTHING)


def plan_of_region(code: int, metadata: PhoneMetadata) -> Plan:
    general = numbers_of(metadata.general_desc)
    special_kinds = (numbers_of(getattr(metadata, kind)) for kind in SPECIAL_KINDS)
    special = general & reduce(Language.__or__, special_kinds)
    fixed = (general & numbers_of(metadata.fixed_line)) - special
    mobile = (general & numbers_of(metadata.mobile)) - special - fixed
    if is_number_type_geographical(PhoneNumberType.MOBILE, code):
        return Plan(fixed | mobile, special)
    return Plan(fixed, special | mobile)


def plan_of_country(code: int, has_places: bool) -> Plan:
    """The first region that claims a number says what it is: by its leading digits if it has any."""
    placed = countrywide = NOTHING
    unclaimed = ANY_NUMBER
    for region in phonenumbers.COUNTRY_CODE_TO_REGION_CODE[code]:
        metadata = PhoneMetadata.metadata_for_region_or_calling_code(code, region)
        plan = plan_of_region(code, metadata)
        claimed = unclaimed & plan.valid()
        if metadata.leading_digits is not None:
            claimed = unclaimed & (matched_by(metadata.leading_digits) + ANY_NUMBER)
        placed |= claimed & plan.placed
        countrywide |= claimed & plan.countrywide
        unclaimed -= claimed
    return Plan(placed, countrywide) if has_places else Plan(NOTHING, placed | countrywide)


def plan_of_the_world(prefixes: set[str]) -> Plan:
    """Of numbers with their country calling code, where any of these prefixes begins with it."""
    placed = countrywide = NOTHING
    for code in map(str, phonenumbers.COUNTRY_CODE_TO_REGION_CODE):
        if code not in prefixes:
            continue
        has_places = any(prefix.startswith(code) and prefix != code for prefix in prefixes)
        plan = plan_of_country(int(code), has_places)
        digits = reduce(Language.__add__, map(one_of, code))
        placed |= digits + plan.placed
        countrywide |= digits + plan.countrywide
    return Plan(placed, countrywide)


def automaton(plan: Plan) -> list[str]:
    """One line per state, the start last: what a number that ends there is, and `digits:state` for
    those with which it goes on. States are counted from 0; each goes on to earlier ones only."""
    lines: list[str] = []
    states: dict[Plan, int] = {}

    def state(here: Plan) -> int:
        if here not in states:
            pairs = zip(following(here.placed), following(here.countrywide), strict=True)
            digits_to: dict[int, str] = {}
            for digit, after in zip(DIGITS, map(Plan._make, pairs), strict=True):
                if after != Plan(NOTHING, NOTHING):
                    target = state(after)
                    digits_to[target] = digits_to.get(target, "") + digit
            kind = "p" if here.placed.has_empty else "c" if here.countrywide.has_empty else "-"
            edges = (f" {digits}:{target}" for target, digits in digits_to.items())
            states[here] = len(lines)
            lines.append(kind + "".join(edges))
        return states[here]

    state(plan)
    return lines
