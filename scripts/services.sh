#!/usr/bin/env bash
# RabbitMQ, Redis and PostgreSQL on loopback, for tests and for trying the worker out.
#
#   scripts/services.sh up [test|run]   bring up what does not answer yet (default: both)
#   scripts/services.sh up database     only the PostgreSQL for tests
#   scripts/services.sh packages [test] install the servers' packages, if they are missing; for
#                                       tests also Prometheus, which checks deploy/ and is not started
#   scripts/services.sh down            end what `up` started, and nothing else
#   scripts/services.sh rabbitmqctl …   rabbitmqctl for the broker that `up` started
#
# A service that already answers at its URL is used as it is. Otherwise it is started: with Docker
# Compose where an engine answers, else from Debian's packages as a private process whose data lies
# under target/services. URLs: LANEKEEPER_TEST_AMQP_URL, LANEKEEPER_TEST_REDIS_URL and
# LANEKEEPER_TEST_DATABASE_URL (test), LANEKEEPER__AMQP__URL, LANEKEEPER__REDIS__URL and
# LANEKEEPER__DATABASE__URL (run).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
state=$root/target/services
start_seconds=120
default_amqp=amqp://guest:guest@127.0.0.1:5672
default_redis=redis://127.0.0.1:6379
default_database=postgres://lanekeeper:lanekeeper@127.0.0.1:5432/lanekeeper

say() { printf 'services: %s\n' "$*"; }
fail() {
    printf 'services: %s\n' "$*" >&2
    exit 1
}

# --- URLs -------------------------------------------------------------------------------------

# Sets scheme, user, password, host, port and path from URL $1, with default port $2.
split_url() {
    local rest=${1#*://} login=
    scheme=${1%%://*}
    path=
    rest=${rest%%\?*}
    if [[ $rest == */* ]]; then
        path=${rest#*/}
        rest=${rest%%/*}
    fi
    if [[ $rest == *@* ]]; then
        login=${rest%@*}
        rest=${rest##*@}
    fi
    user=$(percent_decode "${login%%:*}")
    password=
    [[ $login == *:* ]] && password=$(percent_decode "${login#*:}")
    if [[ $rest == \[*\]* ]]; then
        host=${rest%%]*}
        host=${host#[}
        rest=${rest##*]}
    else
        host=${rest%%:*}
    fi
    port=$2
    if [[ $rest == *:* ]]; then port=${rest##*:}; fi
}

percent_decode() { printf '%b' "${1//%/\\x}"; }

require_loopback() {
    case $host in
    127.* | localhost | ::1) ;;
    *) fail "nothing answers at $scheme://$host:$port, and only loopback services can be started from here" ;;
    esac
    case $scheme in
    amqp | redis | postgres | postgresql) ;;
    *) fail "nothing answers at $scheme://$host:$port, and services started from here speak no TLS" ;;
    esac
}

# --- Whether a service answers ------------------------------------------------------------------

# Sends $3 to host $1, port $2 and prints the first $4 bytes of the answer in hexadecimal.
ask() {
    timeout 3 bash -c '
        exec 3<>"/dev/tcp/$1/$2" && printf "$3" >&3 && head -c "$4" <&3 | od -An -tx1 | tr -d " \n"
    ' ask "$@" 2>/dev/null || true
}

# A broker's first frame is a method frame, whose first byte is 1. With TLS, an open port must do.
amqp_answers() {
    if [[ $scheme == amqps ]]; then
        timeout 3 bash -c 'exec 3<>"/dev/tcp/$1/$2"' open "$host" "$port" 2>/dev/null
    else
        [[ $(ask "$host" "$port" 'AMQP\0\0\x09\x01' 1) == 01 ]]
    fi
}

# `+PONG`, or `-NOAUTH …` from a server that wants a password first.
redis_answers() {
    if [[ $scheme == rediss ]]; then
        timeout 3 bash -c 'exec 3<>"/dev/tcp/$1/$2"' open "$host" "$port" 2>/dev/null
    else
        case $(ask "$host" "$port" 'PING\r\n' 5) in
        2b504f4e47 | 2d4e4f4155) true ;;
        *) false ;;
        esac
    fi
}

# To a client that asks for TLS the server says yes or no: S or N.
postgres_answers() {
    case $(ask "$host" "$port" '\0\0\0\x08\x04\xd2\x16\x2f' 1) in
    53 | 4e) true ;;
    *) false ;;
    esac
}

# Whether URL $1 lets us in, now and to that database.
postgres_lets_in() {
    psql --no-psqlrc --dbname "$1" --command 'SELECT 1' >/dev/null 2>&1 </dev/null
}

# Waits for check $1 of the process with id $2 (empty: some container), whose log is $3.
await() {
    local deadline=$((SECONDS + start_seconds))
    until "$1"; do
        if [[ -n $2 ]] && ! kill -0 "$2" 2>/dev/null; then
            tail -n 20 "$3" >&2 || true
            fail "the server ended while starting; its log is $3"
        fi
        ((SECONDS < deadline)) || fail "no answer within $start_seconds s; the log is $3"
        sleep 0.2
    done
}

# --- Packages -----------------------------------------------------------------------------------

as_root() {
    if ((EUID == 0)); then "$@"; else sudo "$@"; fi
}

rabbitmq_sbin() {
    local found
    found=$(compgen -G '/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin' | sort -V | tail -n 1) || true
    [[ -n $found ]] && printf '%s\n' "$found"
}

# Where the newest PostgreSQL has its server: Debian keeps it off the PATH.
postgres_bin() {
    local found
    found=$(compgen -G '/usr/lib/postgresql/*/bin/initdb' | sort -V | tail -n 1) || true
    [[ -n $found ]] || found=$(command -v initdb) || return 0
    dirname "$found"
}

# Installing the server's package creates a cluster for the whole system, unless told otherwise.
install_postgres() {
    local settings=/etc/postgresql-common/createcluster.conf kept
    [[ -e $settings ]] || install_packages postgresql-common
    kept=$(mktemp)
    cp "$settings" "$kept"
    printf '\ncreate_main_cluster = false\n' | as_root tee -a "$settings" >/dev/null
    install_packages postgresql
    as_root cp "$kept" "$settings"
    rm -f "$kept"
}

# Packages start their servers on all interfaces when installed; a policy of "no" stops that.
install_packages() {
    command -v apt-get >/dev/null ||
        fail "missing: $*. Install them, or start RabbitMQ, Redis and PostgreSQL yourself and set their URLs"
    say "installing Debian packages: $*"
    local policy=/usr/sbin/policy-rc.d own_policy=no
    if [[ ! -e $policy ]]; then
        printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
        as_root chmod 755 "$policy"
        own_policy=yes
    fi
    local install=(as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@")
    local done=yes
    "${install[@]}" </dev/null || { as_root apt-get update </dev/null && "${install[@]}" </dev/null; } || done=no
    if [[ $own_policy == yes ]]; then as_root rm -f "$policy"; fi
    [[ $done == yes ]] || fail "could not install: $*"
    if [[ -d /run/systemd/system ]]; then
        as_root systemctl disable "$@" >/dev/null 2>&1 || true
    fi
}

packages() {
    local missing=()
    rabbitmq_sbin >/dev/null || missing+=(rabbitmq-server)
    command -v redis-server >/dev/null || missing+=(redis-server)
    command -v redis-cli >/dev/null || missing+=(redis-tools)
    if [[ ${1:-} == test ]]; then
        command -v prometheus >/dev/null && command -v promtool >/dev/null || missing+=(prometheus)
    fi
    ((${#missing[@]} == 0)) || install_packages "${missing[@]}"
    require_recent_rabbitmq
    postgres_packages
}

postgres_packages() {
    [[ -n $(postgres_bin) ]] || install_postgres
    command -v psql >/dev/null || install_packages postgresql-client
    local version
    version=$("$(postgres_bin)/postgres" --version | grep -oE '[0-9]+' | head -n 1)
    ((version >= 15)) || fail "this system's PostgreSQL is $version, and Lanekeeper needs 15"
}

require_recent_rabbitmq() {
    local version
    version=$(rabbitmq_sbin)
    version=${version#*rabbitmq_server-}
    version=${version%%/*}
    if [[ $(printf '%s\n' 3.10 "$version" | sort -V | head -n 1) != 3.10 ]]; then
        fail "this system's RabbitMQ is $version, and Lanekeeper needs 3.10 (Debian 12, Ubuntu 24.04 or newer, or Docker)"
    fi
}

# --- Starting -----------------------------------------------------------------------------------

# Runs a command detached in directory $1, log in $1/log, and prints its process id.
detach() {
    local dir=$1
    shift
    cd "$dir"
    setsid nohup "$@" >>"$dir/log" 2>&1 </dev/null &
    local pid=$!
    cd "$root"
    echo "$pid"
}

rabbitmq_environment() {
    local dir=$1 port=$2
    export HOME=$dir
    export ERL_EPMD_ADDRESS=127.0.0.1 ERL_EPMD_PORT=$((port > 2100 ? port - 1000 : port + 1000))
    export RABBITMQ_NODENAME=lanekeeper-$port@localhost
    export RABBITMQ_NODE_IP_ADDRESS=127.0.0.1 RABBITMQ_NODE_PORT=$port
    export RABBITMQ_DIST_PORT=$((port + 20000 > 65535 ? port - 2000 : port + 20000))
    export RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS='-kernel inet_dist_use_interface {127,0,0,1}'
    export RABBITMQ_CONF_ENV_FILE=$dir/none RABBITMQ_ADVANCED_CONFIG_FILE=$dir/none
    export RABBITMQ_CONFIG_FILE=$dir/rabbitmq.conf RABBITMQ_ENABLED_PLUGINS_FILE=$dir/plugins
    export RABBITMQ_MNESIA_BASE=$dir/data RABBITMQ_LOG_BASE=$dir/logs
    export RABBITMQ_SCHEMA_DIR=$dir/schema RABBITMQ_GENERATED_CONFIG_DIR=$dir/schema
    export RABBITMQ_PID_FILE=$dir/rabbitmq.pid
}

start_rabbitmq() {
    local dir=$state/rabbitmq-$port pid
    mkdir -p "$dir/logs" "$dir/data" "$dir/schema"
    [[ -e $dir/.erlang.cookie ]] || (umask 277 && head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$dir/.erlang.cookie")
    echo '[].' >"$dir/plugins"
    {
        echo "default_user = ${user:-guest}"
        echo "default_pass = ${password:-guest}"
        [[ -z $path ]] || echo "default_vhost = $(percent_decode "$path")"
        echo 'disk_free_limit.absolute = 200MB'
    } >"$dir/rabbitmq.conf"
    (
        ulimit -n "$(ulimit -Hn)" 2>/dev/null || true
        rabbitmq_environment "$dir" "$port"
        detach "$dir" epmd >"$dir/epmd.pid"
        detach "$dir" "$(rabbitmq_sbin)/rabbitmq-server" >"$dir/pid"
    )
    pid=$(<"$dir/pid")
    await amqp_answers "$pid" "$dir/log"
    say "RabbitMQ started on $host:$port (process $pid, $dir)"
}

start_redis() {
    local dir=$state/redis-$port pid options=(--bind 127.0.0.1 --port "$port" --save '' --appendonly no)
    mkdir -p "$dir"
    [[ -z $password ]] || options+=(--requirepass "$password")
    detach "$dir" redis-server "${options[@]}" --dir "$dir" >"$dir/pid"
    pid=$(<"$dir/pid")
    await redis_answers "$pid" "$dir/log"
    say "Redis started on $host:$port (process $pid, $dir)"
}

# PostgreSQL refuses to run as root: then `unprivileged` makes it run as another user, the owner of
# the cluster's directory $1 where that exists already.
unprivileged=()
leave_root() {
    ((EUID == 0)) || return 0
    server_user=$(stat --format %U "$1" 2>/dev/null || id -un postgres 2>/dev/null || echo nobody)
    unprivileged=(setpriv --reuid "$server_user" --regid "$(id -g "$server_user")" --clear-groups)
}

give_away() {
    ((EUID > 0)) || chown "$server_user" "$1"
}

# Sets `home` to the directory of the cluster whose state is in $1, made if need be: beside the other
# services' data, or under /tmp where the server's user cannot get there.
find_home() {
    local dir=$1
    home=$(cat "$dir/home" 2>/dev/null || echo "$dir/cluster")
    leave_root "$home"
    if [[ ! -d $home ]]; then
        mkdir "$home"
        give_away "$home"
        if ! "${unprivileged[@]}" test -x "$home/."; then
            rmdir "$home"
            home=$(mktemp -d /tmp/lanekeeper-postgres.XXXXXX)
            give_away "$home"
        fi
    fi
    echo "$home" >"$dir/home"
}

create_cluster() {
    (umask 077 && printf '%s\n' "${password:-lanekeeper}" >"$home/password")
    give_away "$home/password"
    (
        cd "$home" # Where the server's user can be: it looks at its own directory first.
        "${unprivileged[@]}" "$(postgres_bin)/initdb" --pgdata data --no-sync --encoding UTF8 --locale C.UTF-8 \
            --username "${user:-lanekeeper}" --pwfile password --auth scram-sha-256 >log 2>&1
    ) || fail "initdb failed; its log is $home/log"
    rm -f "$home/password"
}

# Starts the cluster for URL $1. What tests write need not outlive the machine ($2 = test).
start_postgres() {
    local url=$1 dir=$state/postgres-$port home pid
    local options=(-c "listen_addresses=$host" -c "port=$port" -c unix_socket_directories= -c max_connections=300)
    mkdir -p "$dir"
    find_home "$dir"
    [[ -e $home/data/PG_VERSION ]] || create_cluster
    echo "fsync = $([[ $2 == test ]] && echo off || echo on)" >"$home/data/postgresql.auto.conf"
    detach "$home" "${unprivileged[@]}" "$(postgres_bin)/postgres" -D "$home/data" "${options[@]}" >"$dir/pid"
    pid=$(<"$dir/pid")
    url=${url%%\?*}
    maintenance=${url%"/$path"}/postgres
    await maintenance_answers "$pid" "$home/log"
    postgres_lets_in "$url" ||
        psql --no-psqlrc --quiet --dbname "$maintenance" --command "CREATE DATABASE \"$(percent_decode "$path")\"" </dev/null
    say "PostgreSQL started on $host:$port (process $pid, $home)"
}

maintenance_answers() { postgres_lets_in "$maintenance"; }

# A cluster that was started for tests keeps what it is told once it is used for more.
make_durable() {
    local dir=$state/postgres-$port home
    [[ -e $dir/pid && -e $dir/home ]] || return 0
    home=$(<"$dir/home")
    [[ $(readlink "/proc/$(<"$dir/pid")/cwd") == "$home/data" ]] || return 0
    echo 'fsync = on' >"$home/data/postgresql.auto.conf"
    kill -HUP "$(<"$dir/pid")"
}

engine_answers() {
    command -v docker >/dev/null && docker compose version >/dev/null 2>&1 &&
        timeout 10 docker info >/dev/null 2>&1
}

compose() {
    docker compose --project-name lanekeeper-services --file "$root/scripts/services.compose.yaml" "$@"
}

start_container() {
    say "starting $1 with Docker Compose on $host:$port"
    touch "$state/compose"
    AMQP_PORT=$port REDIS_PORT=$port POSTGRES_PORT=$port AMQP_USER=${user:-guest} AMQP_PASSWORD=${password:-guest} \
        POSTGRES_USER=${user:-lanekeeper} POSTGRES_PASSWORD=${password:-lanekeeper} POSTGRES_DB=${path:-lanekeeper} \
        compose up --detach --wait "$1" </dev/null
    await "$2" '' "docker compose logs $1"
}

# --- Commands -----------------------------------------------------------------------------------

ensure_amqp() {
    split_url "$1" 5672
    if amqp_answers; then
        say "RabbitMQ answers at $host:$port"
        return
    fi
    require_loopback
    if engine_answers; then
        start_container rabbitmq amqp_answers
    else
        packages
        start_rabbitmq
    fi
}

ensure_redis() {
    split_url "$1" 6379
    if redis_answers; then
        say "Redis answers at $host:$port"
        return
    fi
    require_loopback
    if engine_answers; then
        start_container redis redis_answers
    else
        packages
        start_redis
    fi
}

# The database at URL $1, for $2 (test or run).
ensure_database() {
    split_url "$1" 5432
    path=${path:-$user} # The database's name, unless one is given.
    if postgres_answers; then
        say "PostgreSQL answers at $host:$port"
        require_entry "$1"
        [[ $2 == test ]] || make_durable
        return
    fi
    require_loopback
    if engine_answers; then
        start_container postgres postgres_answers
    else
        postgres_packages
        start_postgres "$1" "$2"
    fi
}

# Another program's server may answer there. Without psql, whoever connects first will say so.
require_entry() {
    if ! command -v psql >/dev/null || postgres_lets_in "$1"; then return; fi
    fail "PostgreSQL answers at $host:$port, but not to ${user:-lanekeeper} for the database ${path:-lanekeeper}." \
        "There, run: CREATE ROLE ${user:-lanekeeper} LOGIN CREATEDB PASSWORD '…'; CREATE DATABASE ${path:-lanekeeper} OWNER ${user:-lanekeeper};" \
        "or set LANEKEEPER_TEST_DATABASE_URL (for tests) or LANEKEEPER__DATABASE__URL (make run) to another port of" \
        "127.0.0.1, and one is started there"
}

up() {
    mkdir -p "$state"
    exec 9>"$state/lock"
    if ! flock --nonblock 9; then
        say "waiting for another run that is bringing services up"
        flock 9
    fi
    case ${1:-all} in
    test | all)
        ensure_amqp "${LANEKEEPER_TEST_AMQP_URL:-$default_amqp}" 9>&-
        ensure_redis "${LANEKEEPER_TEST_REDIS_URL:-$default_redis}" 9>&-
        ;;&
    test | all | database) ensure_database "${LANEKEEPER_TEST_DATABASE_URL:-$default_database}" test 9>&- ;;&
    run | all)
        ensure_amqp "${LANEKEEPER__AMQP__URL:-$default_amqp}" 9>&-
        ensure_redis "${LANEKEEPER__REDIS__URL:-$default_redis}" 9>&-
        ensure_database "${LANEKEEPER__DATABASE__URL:-$default_database}" run 9>&-
        ;;
    test | database) ;;
    *) fail "up takes test, run or database, not $1" ;;
    esac
}

# A process id may have been given to another process since: ours work in their own directory, and
# PostgreSQL in that of its cluster.
stop_process() {
    local file=$1 dir place signal=TERM pid
    dir=$(dirname "$file")
    [[ -e $file ]] || return 0
    pid=$(<"$file")
    place=$dir
    if [[ -e $dir/home ]]; then
        place=$(<"$dir/home")/data
        signal=INT # To end although clients are connected.
    fi
    if [[ $(readlink "/proc/$pid/cwd" 2>/dev/null) == "$place" ]]; then
        kill -s "$signal" -- "-$pid" 2>/dev/null || kill -s "$signal" "$pid" 2>/dev/null || true
        local deadline=$((SECONDS + 30))
        while kill -0 "$pid" 2>/dev/null; do
            ((SECONDS < deadline)) || kill -KILL -- "-$pid" 2>/dev/null || true
            sleep 0.1
        done
        ended=yes
        say "ended process $pid of $(basename "$dir")"
    fi
    rm -f "$file"
}

down() {
    local file ended=no
    for file in "$state"/*/pid "$state"/*/epmd.pid; do
        stop_process "$file"
    done
    if [[ -e $state/compose ]]; then
        compose down --volumes </dev/null
        rm -f "$state/compose"
        ended=yes
    fi
    [[ $ended == yes ]] || say "nothing to end: no service was started from here"
}

# The broker at LANEKEEPER__AMQP__URL, if it was started here: its node has a name and cookie of its own.
control_rabbitmq() {
    split_url "${LANEKEEPER__AMQP__URL:-$default_amqp}" 5672
    local dir=$state/rabbitmq-$port
    if [[ -e $dir/pid ]]; then
        rabbitmq_environment "$dir" "$port"
        exec "$(rabbitmq_sbin)/rabbitmqctl" "$@"
    elif [[ -e $state/compose ]]; then
        AMQP_PORT=$port compose exec -T rabbitmq rabbitmqctl "$@" </dev/null
    else
        fail "the broker on port $port was not started from here; use its own rabbitmqctl"
    fi
}

case ${1:-up} in
up) up "${2:-all}" ;;
packages) packages "${2:-}" ;;
down) down ;;
rabbitmqctl) control_rabbitmq "${@:2}" ;;
*) fail "commands: up [test|run|database], packages [test], down, rabbitmqctl …" ;;
esac
