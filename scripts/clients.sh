#!/usr/bin/env bash
# What tests need beside Rust: the AMQP libraries that docs/PUBLISHING.md uses in Python and Node (pika
# under target/clients/python, amqplib under target/clients/node), and a browser for the lanes page
# (Chromium, driven by playwright-core and looked at by axe-core, under target/clients/browser).
# Installs python3, pip, nodejs, npm and chromium with apt-get where they are missing. Does nothing
# when everything is there.
set -euo pipefail

pika=1.4.4
amqplib=2.3.1
playwright=1.65.1
axe=4.14.1

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
    { has_amqplib && has_browser; } || command -v npm >/dev/null || missing+=(npm)
    command -v chromium >/dev/null || missing+=(chromium fonts-dejavu-core)
    ((${#missing[@]} == 0)) || install_packages "${missing[@]}"
}

has_pika() { [[ -e $clients/python/pika-$pika.dist-info/RECORD ]]; }
has_amqplib() { [[ $(cat "$clients/node/version" 2>/dev/null) == "amqplib@$amqplib" ]]; }
has_browser() { [[ $(cat "$clients/browser/version" 2>/dev/null) == "playwright-core@$playwright axe-core@$axe" ]]; }

# Into a directory of our own, which also a pip that is managed by the system allows.
install_pika() {
    say "installing pika $pika"
    rm -rf "$clients/python"
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps \
        --target "$clients/python" "pika==$pika" || fail "pip could not install pika $pika"
}

# Packages of npm into a directory of their own.
install_node() {
    local into=$clients/$1
    shift
    say "installing $*"
    rm -rf "$into"
    mkdir -p "$into"
    # A package of its own: otherwise npm would look for one in the directories above.
    printf '{"private": true}\n' >"$into/package.json"
    npm install --prefix "$into" --save-exact --no-audit --no-fund --no-progress --ignore-scripts \
        --loglevel=error "$@" >/dev/null || fail "npm could not install $*"
    printf '%s\n' "$*" >"$into/version"
}

mkdir -p "$clients"
exec 9>"$clients/lock"
flock 9
packages
has_pika || install_pika
has_amqplib || install_node node "amqplib@$amqplib"
has_browser || install_node browser "playwright-core@$playwright" "axe-core@$axe"
[[ $(node -p 'parseInt(process.versions.node)') -ge 18 ]] ||
    fail "amqplib $amqplib needs Node 18 or newer, and node is $(node --version)"
