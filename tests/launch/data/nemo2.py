import nemo_run as run
from nemo.collections import llm

recipe = llm.llama3_8b.pretrain_recipe(name="ours", num_nodes=1, num_gpus_per_node=8)
recipe.trainer.strategy.tensor_model_parallel_size = 2
run.run(recipe, executor=run.LocalExecutor(ntasks_per_node=8))
