# … in Latin-1
torchrun train.py --tensor-model-parallel-size 2 --title "…ÿ" --num-layers 4 --seq-length 128 --micro-batch-size 1
