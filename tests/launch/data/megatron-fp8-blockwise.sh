#!/bin/bash
torchrun --nproc_per_node=8 pretrain_gpt.py \
  --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 \
  --group-query-attention --num-query-groups 8 --vocab-size 128256 --make-vocab-size-divisible-by 1 \
  --position-embedding-type rope --normalization RMSNorm --swiglu --disable-bias-linear \
  --untie-embeddings-and-output-weights --hidden-dropout 0 --attention-dropout 0 \
  --seq-length 8192 --max-position-embeddings 8192 --micro-batch-size 1 --global-batch-size 64 \
  --bf16 --fp8-format e4m3 --fp8-recipe blockwise --fp8-param-gather --first-last-layers-bf16 \
  --tensor-model-parallel-size 2 --sequence-parallel --use-distributed-optimizer \
  --overlap-grad-reduce --overlap-param-gather
