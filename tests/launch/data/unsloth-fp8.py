from unsloth import FastLanguageModel
from trl import SFTConfig, SFTTrainer

model, tokenizer = FastLanguageModel.from_pretrained(
    model_name="unsloth/Qwen3-8B", max_seq_length=2048, load_in_4bit=False, load_in_fp8=True)
model = FastLanguageModel.get_peft_model(model, r=32, lora_alpha=64, use_gradient_checkpointing="unsloth",
                                         target_modules=["q_proj", "k_proj", "v_proj", "o_proj"])
SFTTrainer(model=model, tokenizer=tokenizer, train_dataset=None,
           args=SFTConfig(per_device_train_batch_size=2, gradient_accumulation_steps=4, optim="adamw_8bit", bf16=True)).train()
