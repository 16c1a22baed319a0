// Keys of LitGPT's YAML files and flags of its commands (litgpt/args.py, config_hub).
#include "launch/flag_rows.h"

namespace spillway::launch {

std::vector<LaunchFlag> litgpt_flags() {
  FlagRows rows(LaunchFormat::litgpt);
  constexpr std::string_view targets = "model.lora_targets";
  rows.read("checkpoint_dir", "model.name", facts::model, "", "")
      .read("model_name", "model.name", facts::model, "", "")
      .read("precision", "model.precision", "bf16-true=bf16 bf16-mixed=bf16_mixed 16-mixed=fp16_mixed 32-true=fp32")
      .read("quantize", "model.base_weights", "bnb.nf4=nf4 bnb.nf4-dq=nf4_double bnb.int8-training=int8")
      .read("devices", "model.data_parallel", facts::gpus_per_node, whole, "")
      .read("num_nodes", "model.data_parallel", facts::nodes, whole, "")
      .read("lora_r", "model.lora_rank", whole, "with adapters")
      .read("lora_dropout", "model.lora_dropout", "")
      .read("lora_query", targets, facts::adapters_of_query, on_off, "")
      .read("lora_key", targets, facts::adapters_of_key, on_off, "")
      .read("lora_value", targets, facts::adapters_of_value, on_off, "")
      .read("lora_projection", targets, facts::adapters_of_output, on_off, "")
      .read("lora_mlp", targets, facts::adapters_of_mlp, on_off, "")
      .read("train.micro_batch_size", "model.micro_batch", whole)
      .read("train.global_batch_size", "model.global_batch", whole)
      .read("train.max_seq_length", "model.sequence", whole)
      .read("optimizer", "model.optimizer", "adamw=adamw adam=adam sgd=sgd")
      .read("optimizer.class_path", "model.optimizer",
            "torch.optim.adamw=adamw torch.optim.adam=adam torch.optim.sgd=sgd *.pagedadamw8bit=adamw_8bit "
            "*.adamw8bit=adamw_8bit *.pagedadamw=adamw",
            "")
      .as_modelled_if("lora_head", "false", "")
      .as_modelled_if("optimizer.init_args.fused", "false", "")
      .as_modelled_if("train.tie_embeddings", "false", "")
      .saves("galore_*", "an optimizer that is not modelled: lowers memory")
      .file("config", LaunchFormat::litgpt, "the YAML file")
      .no_effect(
          "lora_alpha out_dir data data.* train.* eval.* optimizer.* logger_name seed tokenizer_dir resume "
          "initial_checkpoint_dir access_token initial_validation log.*",
          "of the run, of the data, or a value");
  return rows.take();
}

}  // namespace spillway::launch
