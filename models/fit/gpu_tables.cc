#include "models/fit/gpu_tables.h"

#include "hwprofiles/profile_library.h"

namespace spillway::models::fit {

const std::vector<GpuTables>& gpu_tables() {
  static const std::vector<GpuTables> tables = {
      {.name = "a100-sxm",
       .profiles = {"a100-sxm4-80gb"},
       .gemm = "a100_sxm__gemm_perf__trtllm_1.0.0.csv.gz",
       .context_attention = "a100_sxm__context_attention_perf__trtllm_1.0.0.csv.gz",
       .vidur = "compute_a100_"},
      {.name = "b200-sxm",
       .profiles = {"b200-sxm-180gb"},
       .gemm = "b200_sxm__gemm_perf__trtllm_1.3.0rc20.csv.gz",
       .context_attention = "b200_sxm__context_attention_perf__trtllm_1.3.0rc20.csv.gz",
       .sdpa_prefix = "sdpa_benchmark_training_artifacts_sdpa_bf16_benchmark_results_NVIDIA_B200"},
      {.name = "h100-sxm",
       .profiles = {"h100-sxm5-80gb"},
       .gemm = "h100_sxm__gemm_perf__trtllm_1.3.0rc20.csv.gz",
       .context_attention = "h100_sxm__context_attention_perf__trtllm_1.3.0rc20.csv.gz",
       .encoder_attention = "h100_sxm__encoder_attention_perf__trtllm_1.3.0rc20.csv.gz",
       .vidur = "compute_h100_",
       .kin = "h200-sxm"},
      {.name = "h200-sxm",
       .profiles = {"h200-sxm-141gb"},
       .gemm = "h200_sxm__gemm_perf__trtllm_1.3.0rc20.csv.gz",
       .context_attention = "h200_sxm__context_attention_perf__trtllm_1.3.0rc20.csv.gz",
       .encoder_attention = "h200_sxm__encoder_attention_perf__trtllm_1.3.0rc20.csv.gz",
       .sdpa_prefix = "sdpa_benchmark_training_results_h200",
       .norms = "norms_results_h200_all_models_20260227_035147.csv"},
      {.name = "l40s",
       .profiles = {"l40s"},
       .gemm = "l40s__gemm_perf__trtllm_1.3.0rc20.csv.gz",
       .context_attention = "l40s__context_attention_perf__trtllm_1.3.0rc20.csv.gz"},
  };
  return tables;
}

DatasheetFacts facts_of(const GpuTables& gpu) {
  return datasheet_facts(ProfileLibrary::standard().load_gpu(gpu.profiles.front()));
}

}  // namespace spillway::models::fit
