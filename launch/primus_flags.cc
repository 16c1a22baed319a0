// Keys of Primus' YAML file (AMD-AGI/Primus, 2025 to 2026). What its modules override is Megatron-LM's.
#include "launch/flag_rows.h"

namespace spillway::launch {

std::vector<LaunchFlag> primus_flags() {
  FlagRows rows(LaunchFormat::primus);
  rows.read("modules.pre_trainer.model", "model.name", facts::recipe, "", "a file of its models; its name decides")
      .as_modelled_if("modules.pre_trainer.framework", "megatron", "")
      .as_modelled_if("modules.pre_trainer.config", "pre_trainer.yaml", "its defaults count where nothing is said")
      .time(
          "modules.pre_trainer.overrides.enable_primus_turbo modules.pre_trainer.overrides.use_turbo_* "
          "modules.pre_trainer.overrides.primus_turbo.* modules.pre_trainer.overrides.turbo_*",
          "kernels that are not modelled: changes time")
      .not_said(
          "modules.pre_trainer.overrides.recompute_layer_ids modules.pre_trainer.overrides.patch_primus_pipeline "
          "modules.pre_trainer.overrides.pp_algorithm modules.pre_trainer.overrides.dump_pp_data",
          "another schedule or recomputation: changes memory")
      .not_said("modules.pre_trainer.overrides.no_fp8_weight_transpose_cache", "fp8 weights are kept one way")
      .no_effect("modules.pre_trainer.overrides.auto_continue_train modules.pre_trainer.overrides.disable_last_saving",
                 "checkpoints are between steps")
      .no_effect(
          "work_group user_name exp_name workspace platform.* "
          "modules.pre_trainer.overrides.stderr_sink_level modules.pre_trainer.overrides.file_sink_level",
          "of the run");
  return rows.take();
}

}  // namespace spillway::launch
