A0=(a b)
A1=("${A0[@]}" ${A0[@]})
A2=("${A1[@]}" ${A1[@]})
A3=("${A2[@]}" ${A2[@]})
A4=("${A3[@]}" ${A3[@]})
A5=("${A4[@]}" ${A4[@]})
A6=("${A5[@]}" ${A5[@]})
torchrun --nproc_per_node 4 pretrain_gpt.py --tensor-model-parallel-size 2 --hidden-size 256 --num-attention-heads 4 --vocab-size 1000 --seq-length 128 --max-position-embeddings 128 --micro-batch-size 1 --global-batch-size 8 --num-layers 4
