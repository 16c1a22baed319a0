#!/bin/bash
# DeepSeek-V3 with a layout by stages and one layer of multi-token prediction.
export CUDA_DEVICE_MAX_CONNECTIONS=1
torchrun --nnodes 32 --nproc_per_node 8 pretrain_gpt.py \
  --use-mcore-models --transformer-impl transformer_engine \
  --num-layers 61 --hidden-size 7168 --ffn-hidden-size 18432 --num-attention-heads 128 --kv-channels 128 \
  --multi-latent-attention --q-lora-rank 1536 --kv-lora-rank 512 --qk-head-dim 128 --qk-pos-emb-head-dim 64 \
  --v-head-dim 128 --qk-layernorm --vocab-size 129280 --make-vocab-size-divisible-by 1 \
  --position-embedding-type rope --normalization RMSNorm --swiglu --disable-bias-linear \
  --untie-embeddings-and-output-weights --hidden-dropout 0 --attention-dropout 0 \
  --num-experts 256 --moe-layer-freq "([0]*3+[1]*58)" --moe-ffn-hidden-size 2048 \
  --moe-shared-expert-intermediate-size 2048 --moe-router-topk 8 --moe-router-enable-expert-bias \
  --moe-router-load-balancing-type seq_aux_loss --moe-router-score-function sigmoid --moe-grouped-gemm \
  --moe-token-dispatcher-type flex --moe-flex-dispatcher-backend deepep \
  --mtp-num-layers 1 --mtp-loss-scaling-factor 0.1 \
  --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 2048 --bf16 \
  --tensor-model-parallel-size 1 --pipeline-model-parallel-size 8 --expert-model-parallel-size 32 \
  --expert-tensor-parallel-size 1 --pipeline-model-parallel-layout "Et*3|(tt|)*29m|L" \
  --use-distributed-optimizer --recompute-granularity selective --recompute-modules mla_up_proj mlp
