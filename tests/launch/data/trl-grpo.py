from trl import GRPOConfig, GRPOTrainer

args = GRPOConfig(output_dir="out", beta=0.04, num_generations=4, max_prompt_length=256, max_completion_length=768,
                  per_device_train_batch_size=4, gradient_accumulation_steps=2, use_vllm=True, vllm_mode="colocate",
                  vllm_gpu_memory_utilization=0.25, vllm_enable_sleep_mode=True)
GRPOTrainer(model="Qwen/Qwen2.5-7B-Instruct", reward_funcs=reward, args=args, train_dataset=data).train()
