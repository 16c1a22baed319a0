P=*[a*[a*[a*[a*[a*[a*[a*[a*[a*[a*[a*[a*[a*[a*[a*[a*[a*[a*[a*[a*[a*[a*[a*[a*[a*[a*[a*[a*[a*[a*[a*[a*[a*[a*[a*[a*[a*[a*[a*[a
T=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
[[ $T == $P ]] && A=1
torchrun --nproc_per_node 4 pretrain_gpt.py --tensor-model-parallel-size 2 --hidden-size 256 --num-attention-heads 4 --vocab-size 1000 --seq-length 128 --max-position-embeddings 128 --micro-batch-size 1 --global-batch-size 8 --num-layers 4
