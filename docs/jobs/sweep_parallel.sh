#!/bin/bash
# All shards of a sweep over the cores of this machine, or of several by ssh, under GNU parallel.
#   docs/jobs/sweep_parallel.sh sweep.json 16 stores [--sshlogin host1,host2 ...]
# Started again after an interruption it goes on where it was.
set -euo pipefail
sweep=$1 shards=$2 stores=$3
shift 3
mkdir -p "$stores"
parallel "$@" --joblog "$stores/parallel.log" \
  "${SPILLWAY:-spillway}" sweep "$sweep" --quiet --resume --jobs 1 --shard "{}/$shards" \
  --output "$stores/{}.store" --format json '>/dev/null || [ $? -eq 1 ]' ::: $(seq 0 $((shards - 1)))
"${SPILLWAY:-spillway}" merge "$stores"/*.store --format json >"$stores/answer.json" || [ $? -eq 1 ]
