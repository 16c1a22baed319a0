#!/usr/bin/env bash
# The whole GPU campaign in one command: measure the machine, record PyTorch steps where PyTorch is, run the trainer's
# matrix against predictions from the measured profile, check the allocator's rules. Results lie in one folder.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat <<'TEXT'
usage: validation/run_all.sh [--quick|--full] [--drive FOLDER] [--output FOLDER] [--build FOLDER]
  --quick    quick calibration, one batch of the smallest models: some minutes (the default)
  --full     full calibration and all models; a run that was cut short goes on where it stopped
  --drive    folder on the drive to measure and to offload to (default: the output folder)
  --output   where results go (default: validation/results/DATE)
  --build    folder with built programs (default: build); nothing is built when the program is there
TEXT
}

mode=quick drive= output=validation/results/$(date -u +%F) build=build
while [ $# -gt 0 ]; do
  case "$1" in
    --quick) mode=quick ;;
    --full) mode=full ;;
    --drive | --output | --build)
      [ $# -ge 2 ] || { usage >&2; exit 2; }
      declare "${1#--}=$2"
      shift ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done
mkdir -p "$output"
drive=${drive:-$output}
failed=0

say() { printf '%s\n' "run_all: $*" >&2; }

# step NAME RESULT COMMAND...: skipped where RESULT is there from a run before; a failure is told, and the rest goes on.
step() {
  local name=$1 result=$2 started=$SECONDS status=0
  shift 2
  if [ -e "$output/$result" ]; then
    say "$name: there already"
    return 0
  fi
  "$@" >"$output/$name.log" 2>"$output/$name.err" || status=$?
  if [ "$status" -eq 0 ]; then
    say "$name: done in $((SECONDS - started)) s"
  else
    failed=$((failed + 1))
    say "$name: FAILED with code $status: $(tail -n 1 "$output/$name.err")"
  fi
  return "$status"
}

spillway=$build/cli/spillway
[ -x "$spillway" ] || ./spill build || { say "the build failed"; exit 3; }
quick=()
[ "$mode" = full ] || quick=(--quick)

step pcie host.json "$spillway" calibrate pcie --output "$output/host.json"
step nvme drive.json "$spillway" calibrate nvme "${quick[@]}" --file "$drive/spillway-scratch" \
  --output "$output/drive.json"
step gpu gpu.json "$spillway" calibrate gpu "${quick[@]}" --output "$output/gpu.json"

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
step system system.json write_system

techniques=()
[ "$mode" = full ] || techniques=(--technique keep --technique recompute --technique offload-host
  --technique offload-drive --technique stalloc)
step kernels-cpu kernels-cpu.csv "$spillway" validate kernels --backend cpu --file "$drive/spillway-offload" \
  --hardware "$output/system.json" --output "$output/kernels-cpu.csv"
if [ -e "$output/gpu.json" ]; then
  step kernels-cuda kernels-cuda.csv "$spillway" validate kernels --backend cuda "${techniques[@]}" \
    --file "$drive/spillway-offload" --hardware "$output/system.json" --output "$output/kernels-cuda.csv" \
    --format json
fi

# PyTorch's own steps, and the caching allocator's rules on them: what its history says against what the policy does.
record_model() {
  local model=$1 batch=$2
  step "record-$model" "$model" python3 traces/pytorch/record.py "$output/$model" --model "$model" --batch "$batch" ||
    return
  step "join-$model" "$model.spillway" "$spillway" trace convert "$output/$model/steps.json.gz" \
    "$output/$model.spillway" --graph "$output/$model/graph.json.gz"
  step "memory-$model" "$model.memory" "$spillway" memory "$output/$model/memory.pickle" --allocator torch --format json &&
    mv "$output/memory-$model.log" "$output/$model.memory"
}
if python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>"$output/torch.err"; then
  record_model gpt2-small 8
  if [ "$mode" = full ]; then
    record_model gpt2-large 4
    record_model llama-1b 2
    record_model bert-large 8
  fi
  for settings in expandable_segments:True garbage_collection_threshold:0.6,max_split_size_mb:128; do
    name=gpt2-small-${settings%%:*}
    PYTORCH_CUDA_ALLOC_CONF=$settings step "record-$name" "$name" python3 traces/pytorch/record.py "$output/$name" \
      --model gpt2-small --batch 8 --steps 2
  done
else
  say "PyTorch with a GPU: not here, its steps are left out"
fi

say "results in $output, $failed steps failed"
[ "$failed" -eq 0 ]
