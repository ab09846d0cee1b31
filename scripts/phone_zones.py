"""Which time zones the prefixes of telephone numbers belong to, from the package `phonenumbers`.

    phone_zones.py write FILE   writes the data file that the program is built with
    phone_zones.py check FILE   exits with 1 unless that file is what `write` would write
"""

import sys
from pathlib import Path

import phonenumbers
from phonenumbers.tzdata import TIMEZONE_DATA

HEAD = """\
# The time zones of telephone numbers, by prefix: libphonenumber's facts, as the Python package
# phonenumbers {version} has them (Apache License 2.0, the libphonenumber authors).
# To renew: set the version in scripts/phone_zones.sh, run `scripts/phone_zones.sh write`.
# Each line: the zones, joined by commas; then the prefixes, without +, that belong to all of them.
"""


def data_file() -> str:
    prefixes_of: dict[tuple[str, ...], list[str]] = {}
    for prefix, zones in TIMEZONE_DATA.items():
        prefixes_of.setdefault(tuple(zones), []).append(prefix)
    lines = (
        f"{','.join(zones)} {' '.join(sorted(prefixes))}\n"
        for zones, prefixes in sorted(prefixes_of.items())
    )
    return HEAD.format(version=phonenumbers.__version__) + "".join(lines)


def check(path: Path) -> None:
    if path.read_text(encoding="utf-8") != data_file():
        sys.exit(
            f"{path} is not what phonenumbers {phonenumbers.__version__} says: "
            "run `scripts/phone_zones.sh write`, and look at the difference"
        )


def main(arguments: list[str]) -> None:
    match arguments:
        case ["write", path]:
            Path(path).write_text(data_file(), encoding="utf-8")
        case ["check", path]:
            check(Path(path))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
