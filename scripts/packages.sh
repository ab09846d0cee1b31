# To be sourced by the scripts that install what tests need: words under the script's own name, which
# it sets as `me`, and Debian packages.

say() { printf '%s: %s\n' "$me" "$*"; }
fail() {
    printf '%s: %s\n' "$me" "$*" >&2
    exit 1
}

as_root() {
    if ((EUID == 0)); then "$@"; else sudo "$@"; fi
}

install_packages() {
    command -v apt-get >/dev/null || fail "missing: $*. Install them, then run this again"
    say "installing Debian packages: $*"
    local install=(as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@")
    "${install[@]}" </dev/null || { as_root apt-get update </dev/null && "${install[@]}" </dev/null; } ||
        fail "could not install: $*"
}
