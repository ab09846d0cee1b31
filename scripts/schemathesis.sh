#!/usr/bin/env bash
# schemathesis, which holds the HTTP API to its own OpenAPI document: installs it with all that it
# needs, each at the version in schemathesis.txt, under target/clients/schemathesis, for the tests.
# Installs python3 and pip with apt-get where they are missing. Does nothing twice.
#   scripts/schemathesis.sh                installs it
#   scripts/schemathesis.sh run URL [...]  a longer run by hand against a server of `lanekeeper dev`
#                                          at URL; more arguments go to schemathesis, such as -n 2000
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
versions=$root/scripts/schemathesis.txt
library=${CARGO_TARGET_DIR:-$root/target}/clients/schemathesis

me=schemathesis
. "$root/scripts/packages.sh"

has_library() { cmp -s "$versions" "$library/versions"; }

install_library() {
    command -v python3 >/dev/null && python3 -m pip --version >/dev/null 2>&1 ||
        install_packages python3 python3-pip
    say "installing schemathesis"
    rm -rf "$library"
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps \
        --target "$library" --requirement "$versions" || fail "pip could not install $versions"
    cp "$versions" "$library/versions"
}

prepare() {
    mkdir -p "${library%/*}"
    exec 9>"$library.lock"
    flock 9
    has_library || install_library
}

run() {
    local url=${1:?the address of a server, such as http://127.0.0.1:8080} rules=$root/tests/it/api/contract
    shift
    prepare
    # Where it leaves what it has found.
    mkdir -p "${library%/clients/*}/schemathesis"
    cd "${library%/clients/*}/schemathesis"
    PYTHONPATH=$library:$rules PYTHONDONTWRITEBYTECODE=1 SCHEMATHESIS_HOOKS=rules exec python3 -m \
        schemathesis.cli --config-file "$rules/schemathesis.toml" run "$url/openapi.json" "$@"
}

case ${1:-} in
'') prepare ;;
run) run "${@:2}" ;;
*) fail "expected nothing, or run and an address, not $1" ;;
esac
