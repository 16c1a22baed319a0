#!/bin/bash
#SBATCH --job-name=llama2-13b
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --exclusive
source cluster.env
SIZES=(--num-layers 40 --hidden-size 5120 --ffn-hidden-size 13824 --num-attention-heads 40
  --vocab-size 32000 --make-vocab-size-divisible-by 1 --position-embedding-type rope --normalization RMSNorm
  --swiglu --disable-bias-linear --untie-embeddings-and-output-weights --hidden-dropout 0 --attention-dropout 0
  --seq-length 4096 --max-position-embeddings 4096)
srun --mpi=none bash -c "python pretrain_gpt.py ${SIZES[*]} \
  --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP --sequence-parallel \
  --use-distributed-optimizer --micro-batch-size $MICRO_BATCH --global-batch-size 256 --bf16 \
  --data-path $DATA --tokenizer-model $TOKENIZER"
