#!/usr/bin/env bash
# Runs a worker with a sandbox carrier on the broker $1, the Redis $2 and the PostgreSQL $3, and says
# how to use it.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
program=${CARGO_TARGET_DIR:-target}/debug/lanekeeper
sent=${CARGO_TARGET_DIR:-target}/sandbox.jsonl
# Whoever names another database has it in the environment, with its password.
database=
if [[ -z ${LANEKEEPER__DATABASE__URL:-} ]]; then
    database="LANEKEEPER__DATABASE__URL=$3 "
fi
export LANEKEEPER__AMQP__URL=$1 LANEKEEPER__REDIS__URL=$2 LANEKEEPER__DATABASE__URL=$3
export LANEKEEPER__DATABASE__MIGRATE=${LANEKEEPER__DATABASE__MIGRATE:-true}
export LANEKEEPER__OPS__LISTEN=${LANEKEEPER__OPS__LISTEN:-127.0.0.1:9464}
export LANEKEEPER__CARRIERS__DEFAULT__KIND=${LANEKEEPER__CARRIERS__DEFAULT__KIND:-sandbox}
if [[ $LANEKEEPER__CARRIERS__DEFAULT__KIND == sandbox ]]; then
    export LANEKEEPER__CARRIERS__DEFAULT__SANDBOX_RECORD_FILE=${LANEKEEPER__CARRIERS__DEFAULT__SANDBOX_RECORD_FILE:-$sent}
fi

# Before a worker is announced: is the port for operations free?
host=${LANEKEEPER__OPS__LISTEN%:*} port=${LANEKEEPER__OPS__LISTEN##*:}
host=${host#[} host=${host%]}
if timeout 1 bash -c 'exec 3<>"/dev/tcp/$1/$2"' open "$host" "$port" 2>/dev/null; then
    echo "run: something listens on $LANEKEEPER__OPS__LISTEN already, perhaps another worker;" \
        "set LANEKEEPER__OPS__LISTEN to another address, such as 127.0.0.1:9465" >&2
    exit 1
fi

cat <<TEXT

A worker is about to run; Ctrl-C ends it. From another terminal:

  publish   printf '%s\n' '{"to":"+447700900123","body":"Hello"}' |
              $program enqueue - --account demo --channel sms --origin api --batch "hello-\$(date +%s)"
  look      tail -f ${LANEKEEPER__CARRIERS__DEFAULT__SANDBOX_RECORD_FILE:-the carrier}
            curl -s http://$LANEKEEPER__OPS__LISTEN/metrics
            curl -s http://$LANEKEEPER__OPS__LISTEN/readyz
            $database$program lanes demo --watch

TEXT
exec "$program" worker
