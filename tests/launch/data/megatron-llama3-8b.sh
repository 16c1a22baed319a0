#!/bin/bash
# Pre-trains Llama 3 8B on two nodes: arrays, defaults, arithmetic.
set -euo pipefail
export CUDA_DEVICE_MAX_CONNECTIONS=${CUDA_DEVICE_MAX_CONNECTIONS:-1}
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True

RUN_DIR=${1:-"runs/llama3-8b"}   # where checkpoints go
GPUS=8
NODES=${NODES:-2}
WORLD=$((GPUS * NODES))
TP=2
CP=1
PRECISION="bf16"

mkdir -p "$RUN_DIR" "$(dirname "$RUN_DIR")"

LAUNCH=(--nproc_per_node $GPUS --nnodes "$NODES" --rdzv-backend c10d)

SIZES=(
    --num-layers 32
    --hidden-size 4096
    --ffn-hidden-size 14336
    --num-attention-heads 32
    --group-query-attention     # eight groups
    --num-query-groups 8
    --max-position-embeddings 8192
    --position-embedding-type rope --rotary-base 500000
    --normalization RMSNorm --norm-epsilon 1e-5
    --swiglu --disable-bias-linear
    --untie-embeddings-and-output-weights
    --hidden-dropout 0.0 --attention-dropout 0.0
    --vocab-size 128256
)
TRAIN=(
    --micro-batch-size 1
    --global-batch-size $((8 * WORLD))
    --seq-length 8192
    --train-iters 1000
    "--lr 3e-4" "--min-lr 3e-5"
    --use-flash-attn
    --cross-entropy-loss-fusion
)
if [[ "$PRECISION" == "bf16" ]]; then
    TRAIN+=(--bf16 --accumulate-allreduce-grads-in-fp32)
else
    TRAIN+=(--fp16)
fi
SPLIT=(--tensor-model-parallel-size $TP --context-parallel-size $CP)
[ $TP -gt 1 ] && SPLIT+=(--sequence-parallel)

torchrun "${LAUNCH[@]}" pretrain_gpt.py \
    "${SIZES[@]}" \
    ${TRAIN[@]} \
    ${SPLIT[@]} \
    --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather \
    --mock-data --tokenizer-type NullTokenizer --split '99,1,0' \
    --save "$RUN_DIR" --log-interval 1 2>&1 | tee "$RUN_DIR/log.txt"
