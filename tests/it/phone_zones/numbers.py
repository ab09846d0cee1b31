"""Prints numbers and, as the package phonenumbers has them, their time zones: `+number zone,zone`.

The example numbers of every region and kind, then valid ones drawn up to VALID in all, then INVALID
ones of a possible length that belong to no kind of number. The same ones at every run.
"""

import itertools
import random
from collections.abc import Iterator

import phonenumbers
from phonenumbers import PhoneNumber, PhoneNumberFormat, PhoneNumberType
from phonenumbers.timezone import time_zones_for_number
from phonenumbers.tzdata import TIMEZONE_DATA

VALID = 10_000
INVALID = 1_000

draw = random.Random(20261130)


def examples() -> list[PhoneNumber]:
    kinds = PhoneNumberType.values()
    of_regions = (
        phonenumbers.example_number_for_type(region, kind)
        for region in sorted(phonenumbers.SUPPORTED_REGIONS)
        for kind in kinds
    )
    of_no_region = (
        phonenumbers.example_number_for_non_geo_entity(code)
        for code in sorted(phonenumbers.COUNTRY_CODES_FOR_NON_GEO_REGIONS)
    )
    return [number for number in (*of_regions, *of_no_region) if number is not None]


def e164(number: PhoneNumber) -> str:
    return phonenumbers.format_number(number, PhoneNumberFormat.E164)


def with_other_end(digits: str, kept: int) -> str:
    """The digits with those after the first `kept` drawn anew."""
    return digits[:kept] + "".join(draw.choice("0123456789") for _ in digits[kept:])


def candidates(known: list[str]) -> Iterator[str]:
    """Digits that may be numbers: below every prefix of the table in turn, and like those known."""
    for prefix in itertools.cycle(sorted(TIMEZONE_DATA)):
        for length in range(8, 14):
            yield with_other_end(prefix.ljust(length, "0"), len(prefix))
        for digits in draw.choices(known, k=3):
            yield with_other_end(digits, draw.randint(3, len(digits) - 1))


def is_e164(digits: str) -> bool:
    try:
        return e164(phonenumbers.parse(f"+{digits}")) == f"+{digits}"
    except phonenumbers.NumberParseException:
        return False


def numbers() -> tuple[list[str], list[str]]:
    valid = dict.fromkeys(e164(number) for number in examples())
    invalid: dict[str, None] = {}
    for digits in filter(is_e164, candidates([number[1:] for number in valid])):
        number = phonenumbers.parse(f"+{digits}")
        if phonenumbers.is_valid_number(number):
            valid[e164(number)] = None
        elif phonenumbers.is_possible_number(number):
            invalid[e164(number)] = None
        if len(valid) >= VALID and len(invalid) >= INVALID:
            break
    return list(valid)[:VALID], draw.sample(list(invalid), INVALID)


for drawn in numbers():
    for text in drawn:
        print(text, ",".join(time_zones_for_number(phonenumbers.parse(text))))
