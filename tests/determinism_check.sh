#!/usr/bin/env bash
# The same bits from every compiler: builds the program with gcc and clang at -O0 and -O3, runs every bundled
# scenario and every tie order of it, and compares the JSON results (fingerprint included) byte by byte. The real
# captures in ../shared/data (or $SPILLWAY_SHARED_DATA) join in where they are.
# Run through ./spill determinism, which installs the compilers first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

root=build-determinism
mkdir -p "$root"
for compiler in gcc clang; do
  [ "$compiler" = gcc ] && cxx=g++ || cxx=clang++
  for level in 0 3; do
    folder=$root/$compiler-O$level
    [ -f "$folder/build.ninja" ] || CC=$compiler CXX=$cxx meson setup "$folder" -Doptimization="$level" -Ddebug=false >&2
    ninja -C "$folder" cli/spillway >&2
  done
done

inputs=(cli/scenarios/*.json)
data=${SPILLWAY_SHARED_DATA:-../shared/data}/traces
for capture in hta/df_index_resolver hta/ns_resolution_rank-0 hta/trace_diff_test_V100_ws2_rank1 \
  hta/critical_path_cuda_event_sync tracelens/resnet_act_checkpoint \
  kineto-tb_plugin/resnet50_num_workers_0.1623143089861.pt.trace; do
  [ ! -f "$data/$capture.json.gz" ] || inputs+=("$data/$capture.json.gz")
done

runs=0 different=0
for scenario in "${inputs[@]}"; do
  for order in fifo reverse shuffle:7; do
    first=
    for folder in "$root"/*-O[03]; do
      result=$folder/$(basename "$scenario" .json)-${order/:/-}.json
      status=0
      "$folder/cli/spillway" run "$scenario" --tie-order="$order" --format json >"$result" || status=$?
      [ "$status" -le 1 ] || { echo "$folder: $scenario failed with exit code $status"; exit 2; }
      first=${first:-$result}
      runs=$((runs + 1))
      cmp "$first" "$result" || different=$((different + 1))
    done
  done
done
echo "$runs runs compared, $different differ"
[ "$runs" -gt 0 ] && [ "$different" -eq 0 ]
