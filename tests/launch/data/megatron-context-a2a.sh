#!/bin/bash
torchrun --nproc_per_node 8 pretrain_gpt.py \
  --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 \
  --group-query-attention --num-query-groups 8 --vocab-size 128256 --make-vocab-size-divisible-by 1 \
  --position-embedding-type rope --rotary-base 500000 --normalization RMSNorm --swiglu --disable-bias-linear \
  --untie-embeddings-and-output-weights --hidden-dropout 0 --attention-dropout 0 \
  --seq-length 32768 --max-position-embeddings 131072 --micro-batch-size 1 --global-batch-size 8 --bf16 \
  --context-parallel-size 4 --cp-comm-type a2a --use-distributed-optimizer --attention-backend flash
