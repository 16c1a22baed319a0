from trl import KTOConfig, KTOTrainer
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-3.1-8B")
args = KTOConfig(output_dir="out", beta=0.1, max_length=1024, per_device_train_batch_size=4,
                 gradient_accumulation_steps=2, desirable_weight=1.0)
KTOTrainer(model=model, args=args, train_dataset=data).train()
