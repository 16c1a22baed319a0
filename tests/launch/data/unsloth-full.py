from unsloth import FastLanguageModel
from trl import SFTConfig, SFTTrainer

model, tokenizer = FastLanguageModel.from_pretrained(
    model_name="unsloth/Llama-3.2-3B", max_seq_length=8192, load_in_4bit=False, full_finetuning=True)
SFTTrainer(model=model, tokenizer=tokenizer, train_dataset=None,
           args=SFTConfig(per_device_train_batch_size=1, gradient_accumulation_steps=16, optim="adamw_8bit")).train()
