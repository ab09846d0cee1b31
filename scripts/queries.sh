#!/usr/bin/env bash
# The committed data in .sqlx, against which queries are checked when they are compiled.
#
#   scripts/queries.sh          renew it: after a change of a query, or of migrations/
#   scripts/queries.sh --check  only say whether it is what the queries and the migrations give
#
# Every query is described by PostgreSQL itself, on a scratch database with all migrations, which
# exists only meanwhile. The server is that of LANEKEEPER_TEST_DATABASE_URL; where none answers,
# scripts/services.sh starts one.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
server=${LANEKEEPER_TEST_DATABASE_URL:-postgres://lanekeeper:lanekeeper@127.0.0.1:5432/lanekeeper}
scratch=lanekeeper_queries_$$
target=${CARGO_TARGET_DIR:-target}

fail() {
    printf 'queries: %s\n' "$*" >&2
    exit 1
}

case ${1:-} in
'' | --check) ;;
*) fail "takes nothing, or --check" ;;
esac

scripts/services.sh up database
base=${server%%\?*} parameters=
[[ $server != *\?* ]] || parameters=?${server#*\?}
[[ ${base#*://} != */* ]] || base=${base%/*}
url=$base/$scratch$parameters

mkdir -p "$target"
fresh=$(mktemp -d "$target/queries.XXXXXX")
sql() { psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 "$@" </dev/null; }
clean_up() {
    rm -rf "$fresh"
    sql --dbname "$server" --command "DROP DATABASE IF EXISTS $scratch WITH (FORCE)"
}
trap clean_up EXIT

sql --dbname "$server" --command "CREATE DATABASE $scratch"
for migration in migrations/*.sql; do
    PGOPTIONS='--client-min-messages=warning' sql --dbname "$url" --single-transaction --file "$migration"
done

# Query macros write what they learn only when they are expanded: the crate is checked anew.
touch src/lib.rs
DATABASE_URL=$url SQLX_OFFLINE=false SQLX_OFFLINE_DIR=$(realpath "$fresh") \
    cargo check --locked --lib --bins --quiet

if [[ ${1:-} == --check ]]; then
    diff --recursive --brief .sqlx "$fresh" >&2 || fail "out of date: run scripts/queries.sh and commit .sqlx"
    echo "queries: .sqlx is up to date ($(find .sqlx -name 'query-*.json' | wc -l) queries)"
else
    mkdir -p .sqlx
    rm -f .sqlx/query-*.json
    cp "$fresh"/query-*.json .sqlx/
    echo "queries: .sqlx has $(find .sqlx -name 'query-*.json' | wc -l) queries now"
fi
