#!/usr/bin/env bash
# The AMQP libraries that docs/PUBLISHING.md uses in Python and Node, for its tests: pika under
# target/clients/python, amqplib under target/clients/node. Installs python3, pip, nodejs and npm
# with apt-get where they are missing. Does nothing when everything is there.
set -euo pipefail

pika=1.4.4
amqplib=2.3.1

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
clients=${CARGO_TARGET_DIR:-$root/target}/clients

me=clients
. "$root/scripts/packages.sh"

# Only what is needed to run the programs, and to install what is not there yet.
packages() {
    local missing=()
    command -v python3 >/dev/null || missing+=(python3)
    command -v node >/dev/null || missing+=(nodejs)
    has_pika || python3 -m pip --version >/dev/null 2>&1 || missing+=(python3-pip)
    has_amqplib || command -v npm >/dev/null || missing+=(npm)
    ((${#missing[@]} == 0)) || install_packages "${missing[@]}"
}

has_pika() { [[ -e $clients/python/pika-$pika.dist-info/RECORD ]]; }
has_amqplib() { [[ $(cat "$clients/node/version" 2>/dev/null) == "$amqplib" ]]; }

# Into a directory of our own, which also a pip that is managed by the system allows.
install_pika() {
    say "installing pika $pika"
    rm -rf "$clients/python"
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps \
        --target "$clients/python" "pika==$pika" || fail "pip could not install pika $pika"
}

install_amqplib() {
    say "installing amqplib $amqplib"
    rm -rf "$clients/node"
    mkdir -p "$clients/node"
    # A package of its own: otherwise npm would look for one in the directories above.
    printf '{"private": true}\n' >"$clients/node/package.json"
    npm install --prefix "$clients/node" --save-exact --no-audit --no-fund --no-progress \
        --loglevel=error "amqplib@$amqplib" >/dev/null || fail "npm could not install amqplib $amqplib"
    printf '%s\n' "$amqplib" >"$clients/node/version"
}

mkdir -p "$clients"
exec 9>"$clients/lock"
flock 9
packages
has_pika || install_pika
has_amqplib || install_amqplib
[[ $(node -p 'parseInt(process.versions.node)') -ge 18 ]] ||
    fail "amqplib $amqplib needs Node 18 or newer, and node is $(node --version)"
