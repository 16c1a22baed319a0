A0=xxxxxxxxxx
if true; then A1=$A0$A0; fi
if true; then A2=$A1$A1; fi
if true; then A3=$A2$A2; fi
if true; then A4=$A3$A3; fi
if true; then A5=$A4$A4; fi
if true; then A6=$A5$A5; fi
torchrun --nproc_per_node 4 pretrain_gpt.py --tensor-model-parallel-size 2 --hidden-size 256 --num-attention-heads 4 --vocab-size 1000 --seq-length 128 --max-position-embeddings 128 --micro-batch-size 1 --global-batch-size 8 --num-layers 4
