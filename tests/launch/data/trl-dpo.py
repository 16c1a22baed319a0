from trl import DPOConfig, DPOTrainer
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-3.1-8B")
args = DPOConfig(output_dir="out", beta=0.1, max_length=1536, max_prompt_length=512, per_device_train_batch_size=1,
                 gradient_accumulation_steps=8, optim="adamw_bnb_8bit")
DPOTrainer(model=model, args=args, train_dataset=data).train()
