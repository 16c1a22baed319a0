#!/usr/bin/env bash
# Mixture of experts; the number of nodes is the caller's.
NNODES=${SLURM_NNODES:-4}
MODEL=(--use-mcore-models --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32
  --group-query-attention --num-query-groups 8 --seq-length 4096 --max-position-embeddings 32768
  --position-embedding-type rope --normalization RMSNorm --swiglu --disable-bias-linear
  --untie-embeddings-and-output-weights --attention-dropout 0 --hidden-dropout 0)
MOE=(--num-experts 8 --moe-router-topk 2 --moe-grouped-gemm --moe-token-dispatcher-type alltoall
  --moe-aux-loss-coeff 1e-2 --expert-model-parallel-size 8)
#MOE+=(--moe-expert-capacity-factor 1.0)
case "${SIZE:-8x7b}" in
  8x7b) MODEL+=(--vocab-size 32000) ;;
  *)    MODEL+=(--vocab-size 32768) ;;
esac
torchrun --nproc-per-node=8 --nnodes=$NNODES pretrain_gpt.py ${MODEL[@]} ${MOE[@]} \
  --pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 8 \
  --micro-batch-size 1 --global-batch-size 256 --bf16 --use-distributed-optimizer --overlap-grad-reduce \
  --recompute-granularity full --recompute-method uniform --recompute-num-layers 1 \
  --train-iters 500000 --lr 1e-4 "$@"
