#!/usr/bin/env bash
# The whole GPU campaign in one command: measure the machine, run the trainer's matrix against predictions from the
# measured profile, record PyTorch steps where PyTorch is, check the allocator's rules. Results lie in one folder.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat <<'TEXT'
usage: validation/run_all.sh [--quick|--full] [--minutes N] [--drive FOLDER] [--output FOLDER] [--build FOLDER]
  --quick    quick calibration, the smallest model in 24 runs, one PyTorch step: at most 8 minutes (the default)
  --full     full calibration, all models; goes on where a run before it stopped, over as many runs as it takes
  --minutes  starts nothing more after so long, and stops what runs by then; what is left is for the next run
  --drive    folder on the drive to measure and to offload to (default: the output folder)
  --output   where results go (default: validation/results/DATE)
  --build    folder with built programs (default: build); nothing is built when the program is there
Steps that are done are in OUTPUT/done; remove a name there to have its step run again.
TEXT
}

mode=quick minutes='' drive='' output=validation/results/$(date -u +%F) build=build
while [ $# -gt 0 ]; do
  case "$1" in
    --quick) mode=quick ;;
    --full) mode=full ;;
    --minutes | --drive | --output | --build)
      [ $# -ge 2 ] || { usage >&2; exit 2; }
      declare "${1#--}=$2"
      shift ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done
[ -n "$minutes" ] || { [ "$mode" = quick ] && minutes=8 || minutes=100000; }
case "$minutes" in *[!0-9]* | '') usage >&2; exit 2 ;; esac
mkdir -p "$output/done" "$output/logs" || exit 2
drive=${drive:-$output}
failed=0 left=0 skipped=0

say() { printf '%s\n' "run_all: $*" >&2; }
remaining() { echo $((minutes * 60 - SECONDS)); }
is_done() { [ -e "$output/done/$1" ]; }

# step NAME COMMAND...: passed over where it was done before; a failure is told, and the rest goes on. What a command
# prints is kept in logs/NAME.out; one that ends with 1 has answered "no", which is a result too.
step() {
  local name=$1 started=$SECONDS status=0 time
  shift
  if is_done "$name"; then
    say "$name: done before"
    return 0
  fi
  time=$(remaining)
  if [ "$time" -le 0 ]; then
    left=$((left + 1))
    say "$name: left for the next run, no time"
    return 1
  fi
  timeout --kill-after=20 --signal=INT "$time" "$@" >"$output/logs/$name.out" 2>"$output/logs/$name.err" || status=$?
  case "$status" in
    0) say "$name: done in $((SECONDS - started)) s" ;;
    1) say "$name: done in $((SECONDS - started)) s, the answer is no: see logs/$name.out"
       failed=$((failed + 1)) ;;
    124 | 137)
      left=$((left + 1))
      say "$name: stopped after $((SECONDS - started)) s, left for the next run"
      return 1 ;;
    *)
      failed=$((failed + 1))
      say "$name: FAILED with code $status: $(tail -n 1 "$output/logs/$name.err")"
      return 1 ;;
  esac
  : >"$output/done/$name"
}

skip() {
  skipped=$((skipped + 1))
  say "$1: skipped: $2"
}

spillway=$build/cli/spillway
[ -x "$spillway" ] || ./spill build || { say "the build failed"; exit 3; }
quick=()
[ "$mode" = full ] || quick=(--quick)

step pcie "$spillway" calibrate pcie --output "$output/host.json"
step nvme "$spillway" calibrate nvme "${quick[@]}" --file "$drive/spillway-scratch" --output "$output/drive.json" \
  --format json
has_gpu=0
if ! [ -e /dev/nvidiactl ] && ! command -v nvidia-smi >/dev/null; then
  skip gpu "no NVIDIA driver on this machine"
# Exit code 1: measured, and no better than the bundled profile, which then stands in.
elif step gpu "$spillway" calibrate gpu "${quick[@]}" --output "$output/gpu.json" --format json ||
  grep -qs '{"end":true}' "$output/gpu.points.jsonl"; then
  has_gpu=1
fi

# One system of what was measured; without a GPU the bundled H200 stands in, and only exact figures mean something.
write_system() {
  local gpu=$output/gpu.json
  [ -e "$gpu" ] || gpu=h200-sxm-141gb
  python3 - "$output" "$gpu" <<'PYTHON'
import json, os, sys
folder, gpu = sys.argv[1:]
def measured(name, fallback):
    path = os.path.join(folder, name)
    return os.path.abspath(path) if os.path.exists(path) else fallback
host = measured("host.json", "generic-pcie5-host")
if host.endswith(".json"):
    with open(host, encoding="utf-8") as profile:
        kinds = {node["kind"] for node in json.load(profile).get("pcie", [])}
    if not {"gpu_slot", "drive_slot"} <= kinds:
        host = "generic-pcie5-host"  # a virtual machine shows no links
system = {"schema": "spillway-hardware-profile/1", "kind": "system", "name": "this-machine",
          "title": "This machine, as measured", "provenance": "measured", "source": "validation/run_all.sh",
          "gpu": {"profile": os.path.abspath(gpu) if os.path.exists(gpu) else gpu, "count": 1}, "host": host,
          "drives": [{"profile": measured("drive.json", "samsung-990-pro-2tb"), "name": "scratch", "count": 1,
                      "raid0": False}]}
with open(os.path.join(folder, "system.json"), "w", encoding="utf-8") as out:
    json.dump(system, out, indent=2)
PYTHON
}
write_system || { say "no python3: the machine can't be described"; exit 3; }

# kernels NAME BACKEND [OPTION...]: one part of the matrix, with CSV, JSON and picture beside it.
kernels() {
  local name=$1 backend=$2
  shift 2
  step "$name" "$spillway" validate kernels --backend "$backend" --file "$drive/spillway-offload" \
    --hardware "$output/system.json" --output "$output/$name.csv" --plot "$output/$name.svg" --format json "$@" &&
    cp "$output/logs/$name.out" "$output/$name.json"
}
kernels kernels-cpu cpu
if [ "$has_gpu" = 0 ]; then
  skip kernels-cuda "no GPU was measured"
elif [ "$mode" = quick ]; then
  for batch in 2 4 8; do
    kernels "kernels-cuda-124m-batch-$batch" cuda --model "GPT-2 124M, batch $batch" --technique keep \
      --technique recompute --technique recompute-every-2 --technique offload-host --technique offload-drive \
      --technique recompute-offload --technique order-arena --technique stalloc
  done
else
  kernels kernels-cuda-124m cuda --model 'GPT-2 124M'
  kernels kernels-cuda-bert cuda --model BERT-large
  kernels kernels-cuda-774m cuda --model 'GPT-2 774M'
  kernels kernels-cuda-1b cuda --model Llama-1B
fi

# PyTorch's own steps: recorded, joined, their allocations served again; then replayed and predicted.
record_model() {
  local model=$1 batch=$2
  is_done "record-$model" || rm -rf "${output:?}/$model"
  step "record-$model" python3 traces/pytorch/record.py "$output/$model" --model "$model" --batch "$batch" || return
  step "join-$model" "$spillway" trace convert "$output/$model/steps.json.gz" "$output/$model.spillway" \
    --graph "$output/$model/graph.json.gz" || return
  step "memory-$model" "$spillway" memory "$output/$model/memory.pickle" --allocator torch --format json
}
if python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>"$output/logs/torch.err"; then
  record_model gpt2-small 8
  if [ "$mode" = full ]; then
    record_model gpt2-large 4
    record_model llama-1b 2
    record_model bert-large 8
  fi
  predictions=steps-$mode
  step "$predictions" python3 validation/step_predictions.py "$output" "$output/system.json" --spillway "$spillway" \
    --batch gpt2-large=4 --batch llama-1b=2 --output "$output/$predictions.json"
  step allocator-record python3 validation/allocator_checks.py record "$output/allocator" &&
    step allocator-compare python3 validation/allocator_checks.py compare "$output/allocator" --spillway "$spillway" \
      --output "$output/allocator.json"
else
  skip pytorch "no PyTorch that sees a GPU"
fi

say "results in $output: $failed steps failed, $left left for the next run, $skipped skipped; $SECONDS s"
[ "$failed" -eq 0 ] && [ "$left" -eq 0 ]
