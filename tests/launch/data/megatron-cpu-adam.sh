#!/bin/bash
# Adam on the CPU, beside which Megatron-LM asks for the precision-aware optimizer.
torchrun --nproc_per_node 8 pretrain_gpt.py \
  --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 \
  --group-query-attention --num-query-groups 8 --vocab-size 128256 --make-vocab-size-divisible-by 128 \
  --position-embedding-type rope --normalization RMSNorm --swiglu --disable-bias-linear \
  --untie-embeddings-and-output-weights --hidden-dropout 0 --attention-dropout 0 \
  --seq-length 4096 --max-position-embeddings 8192 --micro-batch-size 2 --global-batch-size 64 --bf16 \
  --tensor-model-parallel-size 4 --sequence-parallel --use-distributed-optimizer \
  --optimizer-cpu-offload --use-precision-aware-optimizer --overlap-cpu-optimizer-d2h-h2d
