#!/bin/bash
# Mamba-2 layers between attention and feed-forward blocks.
torchrun --nproc_per_node 8 pretrain_mamba.py \
  --hybrid-override-pattern "M-M-M-M*-M-M-M-M*-" --is-hybrid-model \
  --num-layers 18 --hidden-size 4096 --num-attention-heads 32 --group-query-attention --num-query-groups 8 \
  --ffn-hidden-size 21504 --mamba-state-dim 128 --mamba-head-dim 64 --mamba-num-groups 8 \
  --squared-relu --disable-bias-linear --normalization RMSNorm --position-embedding-type none \
  --vocab-size 131072 --seq-length 8192 --max-position-embeddings 8192 \
  --micro-batch-size 1 --global-batch-size 64 --bf16 --tensor-model-parallel-size 8 --sequence-parallel
