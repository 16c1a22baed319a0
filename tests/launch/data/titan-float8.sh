#!/bin/bash
# The bundled TOML, and its layers in float8 by flags of the command.
torchrun --nproc_per_node=8 -m torchtitan.train --job.config_file titan-llama3-8b.toml \
  --model.converters="quantize.linear.float8" --quantize.linear.float8.recipe_name rowwise \
  --quantize.linear.float8.enable_fsdp_float8_all_gather --compile.enable --training.local_batch_size 1 \
  --validation.enable --validation.freq 500 --validation.steps 20
