#!/bin/bash
python3 -m MaxText.train MaxText/configs/base.yml run_name=ours model_name=llama3-8b \
  per_device_batch_size=4 max_target_length=8192 ici_fsdp_parallelism=8 steps=50
