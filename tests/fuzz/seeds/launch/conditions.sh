#!/bin/bash
TP=${TP:-2}
if [ "$TP" -gt 1 ]; then EXTRA="--sequence-parallel"; fi
ARGS=(--num-layers 4 --hidden-size 256 --num-attention-heads 4)
torchrun --nproc_per_node 4 pretrain_gpt.py --tensor-model-parallel-size $TP ${ARGS[@]} $EXTRA --seq-length 128 --micro-batch-size 1 <<EOF
x
EOF
