#!/bin/bash
# A command that is shown, then evaluated; defaults by := and the first layers of each stage made again.
: "${TP:=8}"
: "${PP:=2}"
ARGS="--num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672 --num-attention-heads 64 --group-query-attention \
--num-query-groups 8 --vocab-size 32000 --make-vocab-size-divisible-by 1 --position-embedding-type rope \
--normalization RMSNorm --swiglu --disable-bias-linear --untie-embeddings-and-output-weights \
--hidden-dropout 0 --attention-dropout 0 --seq-length 4096 --max-position-embeddings 4096"
CMD="torchrun --nnodes 4 --nproc_per_node 8 pretrain_gpt.py $ARGS --tensor-model-parallel-size $TP \
--pipeline-model-parallel-size $PP --sequence-parallel --use-distributed-optimizer --micro-batch-size 1 \
--global-batch-size 128 --bf16 --recompute-granularity full --recompute-method block --recompute-num-layers 12"
echo "$CMD"
eval "$CMD"
