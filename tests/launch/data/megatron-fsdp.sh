#!/bin/bash
# Megatron's own FSDP: weights, gradients and state are shared out.
unset CUDA_DEVICE_MAX_CONNECTIONS
torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py \
  --num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672 --num-attention-heads 64 \
  --group-query-attention --num-query-groups 8 --vocab-size 128256 --make-vocab-size-divisible-by 1 \
  --position-embedding-type rope --normalization RMSNorm --swiglu --disable-bias-linear \
  --untie-embeddings-and-output-weights --hidden-dropout 0 --attention-dropout 0 \
  --seq-length 8192 --max-position-embeddings 8192 --micro-batch-size 1 --global-batch-size 32 --bf16 \
  --use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params --use-distributed-optimizer \
  --no-gradient-accumulation-fusion --ckpt-format fsdp_dtensor --init-model-with-meta-device \
  --overlap-grad-reduce --overlap-param-gather --recompute-granularity full --recompute-method uniform \
  --recompute-num-layers 1
