"""The Trainer with little said."""
import argparse

from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=4)
args = parser.parse_args()
model = AutoModelForCausalLM.from_pretrained("EleutherAI/pythia-410m")
Trainer(model=model, args=TrainingArguments("out", per_device_train_batch_size=args.batch, fp16=True)).train()
