"""Which time zones telephone numbers belong to, from the Python package phonenumbers.

    phone_zones.py write DIRECTORY   writes the data files that the program is built with
    phone_zones.py check DIRECTORY   exits with 1 unless they are what `write` would write
"""

import sys
from pathlib import Path

import phonenumbers
from numbering_plans import automaton, plan_of_the_world
from phonenumbers.tzdata import TIMEZONE_DATA

SOURCE = """\
# libphonenumber's facts, as the Python package phonenumbers {version} has them (Apache License 2.0,
# the libphonenumber authors). To renew: set the version in scripts/phone_zones.sh, then run
# `scripts/phone_zones.sh write`.
"""

ZONES = """\
# The time zones of telephone numbers, by prefix.
# Each line: the zones, joined by commas; then the prefixes, without +, that belong to all of them.
"""

PLANS = """\
# Which telephone numbers are valid, and how much of one tells where it is: an automaton.
# Each line is a state, counted from 0; the last one is where the digits, without +, begin.
# A number that ends there: `p` a prefix of it tells a place, `c` only its country calling code tells
# anything, `-` it is no valid number. Then `digits:state`, with which it goes on; no other is valid.
"""


def zones() -> list[str]:
    prefixes_of: dict[tuple[str, ...], list[str]] = {}
    for prefix, of_prefix in TIMEZONE_DATA.items():
        prefixes_of.setdefault(tuple(of_prefix), []).append(prefix)
    return [
        f"{','.join(names)} {' '.join(sorted(prefixes))}"
        for names, prefixes in sorted(prefixes_of.items())
    ]


def plans() -> list[str]:
    return automaton(plan_of_the_world(set(TIMEZONE_DATA)))


def files() -> dict[str, str]:
    source = SOURCE.format(version=phonenumbers.__version__)
    contents = {"zones.txt": (ZONES, zones()), "plans.txt": (PLANS, plans())}
    return {
        name: head + source + "".join(f"{line}\n" for line in lines)
        for name, (head, lines) in contents.items()
    }


def write(directory: Path) -> None:
    for name, text in files().items():
        (directory / name).write_text(text, encoding="utf-8")


def check(directory: Path) -> None:
    for name, text in files().items():
        if (directory / name).read_text(encoding="utf-8") != text:
            sys.exit(
                f"{directory / name} is not what phonenumbers {phonenumbers.__version__} says: "
                "run `scripts/phone_zones.sh write`, and look at the difference"
            )


def main(arguments: list[str]) -> None:
    match arguments:
        case ["write", directory]:
            write(Path(directory))
        case ["check", directory]:
            check(Path(directory))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
