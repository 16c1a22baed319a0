#!/bin/bash
# FSDP by the words of the Trainer's own argument.
torchrun --nproc_per_node=8 train.py \
  --model_name_or_path meta-llama/Llama-2-7b-hf --data_path ours.json --output_dir out \
  --bf16 True --tf32 True --num_train_epochs 3 --per_device_train_batch_size 2 --gradient_accumulation_steps 8 \
  --model_max_length 2048 --evaluation_strategy no --save_strategy steps --save_steps 2000 --learning_rate 2e-5 \
  --fsdp "full_shard auto_wrap offload" --fsdp_transformer_layer_cls_to_wrap LlamaDecoderLayer
