"""Finite sets of digit strings, and the patterns of libphonenumber read as such sets."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, reduce
from typing import ClassVar

DIGITS = "0123456789"


class Language:
    """A finite set of digit strings. Equal sets are one object, so that they compare by identity."""

    __slots__ = ("after", "has_empty")

    has_empty: bool
    """Whether the empty string is in it."""
    after: tuple[Language, ...]
    """By first digit, what may follow; nothing at all where no string begins with a digit."""

    _known: ClassVar[dict[tuple[bool, tuple[Language, ...]], Language]] = {}

    def __new__(cls, has_empty: bool, after: tuple[Language, ...] = ()) -> Language:
        if not any(following.has_empty or following.after for following in after):
            after = ()
        key = (has_empty, after)
        if key not in cls._known:
            new = super().__new__(cls)
            new.has_empty, new.after = key
            cls._known[key] = new
        return cls._known[key]

    def __or__(self, other: Language) -> Language:
        return combined(bool.__or__, self, other)

    def __and__(self, other: Language) -> Language:
        return combined(bool.__and__, self, other)

    def __sub__(self, other: Language) -> Language:
        return combined(bool.__gt__, self, other)

    def __add__(self, other: Language) -> Language:
        return joined(self, other)


NOTHING = Language(False)
EMPTY = Language(True)


def following(language: Language) -> tuple[Language, ...]:
    return language.after or (NOTHING,) * len(DIGITS)


@cache
def combined(rule: Callable[[bool, bool], bool], one: Language, other: Language) -> Language:
    if one is NOTHING and other is NOTHING:
        return NOTHING
    both = zip(following(one), following(other), strict=True)
    after = tuple(combined(rule, *pair) for pair in both)
    return Language(rule(one.has_empty, other.has_empty), after)


@cache
def joined(one: Language, other: Language) -> Language:
    """Each string of the one followed by each of the other."""
    longer = Language(False, tuple(joined(after, other) for after in one.after))
    return longer | other if one.has_empty else longer


def one_of(digits: str) -> Language:
    return Language(False, tuple(EMPTY if digit in digits else NOTHING for digit in DIGITS))


def repeated(language: Language, least: int, most: int) -> Language:
    optional = reduce(lambda rest, _: EMPTY | (language + rest), range(most - least), EMPTY)
    return reduce(lambda rest, _: language + rest, range(least), optional)


def any_digits(least: int, most: int) -> Language:
    return repeated(one_of(DIGITS), least, most)


TOKEN = re.compile(r"\(\?:|[()|?]|\[[0-9-]+\]|\\d|[0-9]|\{\d+(?:,\d+)?\}")


def matched_by(pattern: str) -> Language:
    """What a pattern matches as a whole. It knows what libphonenumber's patterns are made of."""
    tokens = TOKEN.findall(pattern)
    if "".join(tokens) != pattern:
        raise ValueError(f"a pattern has something unknown in it: {pattern}")
    return alternatives(tokens[::-1])


def alternatives(rest: list[str]) -> Language:
    """Up to the end of the group or pattern; what it reads is taken from the end of `rest`."""
    language = sequence(rest)
    while rest and rest[-1] == "|":
        rest.pop()
        language |= sequence(rest)
    return language


def sequence(rest: list[str]) -> Language:
    parts = []
    while rest and rest[-1] not in "|)":
        parts.append(quantified(atom(rest), rest))
    return reduce(lambda end, part: part + end, reversed(parts), EMPTY)


def atom(rest: list[str]) -> Language:
    token = rest.pop()
    if token == "(?:":
        group = alternatives(rest)
        rest.pop()
        return group
    if token == r"\d":
        return one_of(DIGITS)
    return one_of("".join(digit for digit in DIGITS if re.fullmatch(token, digit)))


def quantified(language: Language, rest: list[str]) -> Language:
    if rest and rest[-1] == "?":
        rest.pop()
        return EMPTY | language
    if rest and rest[-1].startswith("{"):
        limits = [int(limit) for limit in rest.pop()[1:-1].split(",")]
        return repeated(language, limits[0], limits[-1])
    return language
