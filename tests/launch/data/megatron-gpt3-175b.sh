#!/bin/bash
#SBATCH --nodes=128 --ntasks-per-node=8
#SBATCH --job-name=gpt3-175b --time=04:00:00
# Strings instead of arrays, srun with a shell inside.
MASTER=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
options=" \
    --tensor-model-parallel-size 8 \
    --pipeline-model-parallel-size 16 \
    --num-layers-per-virtual-pipeline-stage 1 \
    --sequence-parallel \
    --recompute-activations \
    --num-layers 96 --hidden-size 12288 --num-attention-heads 96 \
    --seq-length 2048 --max-position-embeddings 2048 \
    --micro-batch-size 1 --global-batch-size 1536 --rampup-batch-size 16 16 5859375 \
    --tokenizer-type GPT2BPETokenizer --vocab-file /data/vocab.json --merge-file /data/merges.txt \
    --lr 6.0e-5 --lr-decay-style cosine --clip-grad 1.0 --weight-decay 0.1 \
    --bf16 --use-distributed-optimizer"
run_cmd="python -u pretrain_gpt.py $options --data-path /data/$USER/pile --distributed-timeout-minutes 60"
srun --label bash -c "${run_cmd}"
