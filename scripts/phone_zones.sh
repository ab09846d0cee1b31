#!/usr/bin/env bash
# The time zones of telephone numbers, from the Python package phonenumbers:
#   scripts/phone_zones.sh          installs it under target/clients/phonenumbers, for the tests
#   scripts/phone_zones.sh check    whether the committed data files are what the package says
#   scripts/phone_zones.sh write    writes them anew
# Installs python3 and pip with apt-get where they are missing. Does nothing twice.
set -euo pipefail

phonenumbers=9.0.43

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
library=${CARGO_TARGET_DIR:-$root/target}/clients/phonenumbers
data=$root/src/gates/phone_zones

me='phone zones'
. "$root/scripts/packages.sh"

has_library() { [[ -e $library/phonenumbers-$phonenumbers.dist-info/RECORD ]]; }

install_library() {
    command -v python3 >/dev/null && python3 -m pip --version >/dev/null 2>&1 ||
        install_packages python3 python3-pip
    say "installing phonenumbers $phonenumbers"
    rm -rf "$library"
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps \
        --target "$library" "phonenumbers==$phonenumbers" ||
        fail "pip could not install phonenumbers $phonenumbers"
}

prepare() {
    mkdir -p "${library%/*}"
    exec 9>"$library.lock"
    flock 9
    has_library || install_library
}

with_data() {
    prepare
    PYTHONPATH=$library PYTHONDONTWRITEBYTECODE=1 python3 "$root/scripts/phone_zones.py" "$1" "$data"
}

case ${1:-} in
'') prepare ;;
check | write) with_data "$1" ;;
*) fail "expected nothing, check or write, not $1" ;;
esac
