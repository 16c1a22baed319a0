// spillway-fit TABLES OUT: fits the operator times that models/times holds.
//
// TABLES is the folder of published tables (aiconfigurator, cudnn-frontend, vidur as docs/internals/operator-times.md
// lists them); one JSON file per measured GPU is written to OUT. Prints the error of every fit on the rows kept out of
// it. The same tables give the same files to the byte.
#include <array>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <fmt/format.h>

#include "models/fit/attention_fit.h"
#include "models/fit/gemm_fit.h"
#include "models/fit/gpu_tables.h"
#include "models/fit/memory_fit.h"

namespace spillway::models::fit {
namespace {

constexpr const char* source =
    "fitted by spillway-fit to NVIDIA's aiconfigurator tables (github.com/ai-dynamo/aiconfigurator 095f58a, "
    "Apache-2.0), "
    "cudnn-frontend benchmarks (github.com/NVIDIA/cudnn-frontend 3929da2, MIT) and Microsoft's vidur profiles "
    "(github.com/microsoft/vidur 7d47513, MIT); a fifth of the rows kept out";

struct Format {
  Precision precision;
  const char* name;
};

class FitCall {
 public:
  explicit FitCall(std::filesystem::path tables) : tables_(std::move(tables)) {
    for (const GpuTables& gpu : gpu_tables())
      times_[gpu.name] = {.name = gpu.name, .profiles = gpu.profiles, .source = source, .facts = facts_of(gpu)};
  }
  void gemm();
  void attention();
  void memory();
  void write(const std::filesystem::path& folder) const;

 private:
  [[nodiscard]] MeasuredGemm measured_gemm(const GpuTables& gpu, const Format& format) const {
    return {times_.at(gpu.name).facts, format.precision,
            read_gemm_rows((tables_ / "aiconfigurator" / gpu.gemm).string(), format.name)};
  }
  void serving(const GpuTables& gpu, const Format& format);
  void training(const GpuTables& gpu, const Format& format, AttentionPass pass);
  void left_out(const std::map<std::string, MeasuredGemm>& measured, const std::string& name);

  std::filesystem::path tables_;
  std::map<std::string, OperatorTimes> times_;
};

// How well the datasheet and the nearest kin predict a GPU whose own measurements no fit has seen.
void FitCall::left_out(const std::map<std::string, MeasuredGemm>& measured, const std::string& name) {
  std::vector<OperatorTimes> others;
  for (const auto& [other, times] : times_)
    if (other != name) others.push_back(times);
  DatasheetFacts facts = times_.at(name).facts;
  facts.achieved = {};
  const OperatorTimes guess = carried_over(others[nearest_kin(others, facts)], facts);
  for (const GemmTimes& gemm : guess.gemm) {
    if (gemm.precision != Precision::bf16) continue;
    const GemmErrors errors = gemm_errors(gemm, measured.at(name), false);
    fmt::print("  {} left out, by {}: sides >= 1024 {}; all sizes {}\n", name, guess.name, to_text(errors.large),
               to_text(errors.all));
  }
}

void FitCall::gemm() {
  for (const Format& format : {Format{Precision::bf16, "bfloat16"}, Format{Precision::fp8, "fp8"}}) {
    fmt::print("matrix products, {}\n", format.name);
    std::map<std::string, MeasuredGemm> measured;
    for (const GpuTables& gpu : gpu_tables()) measured[gpu.name] = measured_gemm(gpu, format);
    for (const GpuTables& gpu : gpu_tables()) {
      std::vector<std::string> names = {gpu.name};
      if (!gpu.kin.empty()) names.push_back(gpu.kin);
      std::vector<MeasuredGemm> group;
      for (const std::string& name : names) group.push_back(measured.at(name));
      if (group.front().rows.empty() ||
          times_.at(gpu.name).gemm.size() > (format.precision == Precision::fp8 ? 1U : 0U))
        continue;
      const std::vector<GemmTimes> fitted = fit_gemm(group);
      for (std::size_t i = 0; i < names.size(); ++i) {
        times_.at(names[i]).gemm.push_back(fitted[i]);
        const GemmErrors errors = gemm_errors(fitted[i], group[i], true);
        fmt::print("  {}: sides >= 1024 {}; all sizes {}\n", names[i], to_text(errors.large), to_text(errors.all));
      }
    }
    if (format.precision == Precision::bf16)
      for (const GpuTables& gpu : gpu_tables()) left_out(measured, gpu.name);
  }
}

void FitCall::serving(const GpuTables& gpu, const Format& format) {
  MeasuredAttention measured{times_.at(gpu.name).facts, format.precision, AttentionPass::forward, {}};
  const std::filesystem::path folder = tables_ / "aiconfigurator";
  measured.rows = read_context_rows((folder / gpu.context_attention).string(), format.name, true);
  if (!gpu.encoder_attention.empty()) {
    const auto full = read_context_rows((folder / gpu.encoder_attention).string(), format.name, false);
    measured.rows.insert(measured.rows.end(), full.begin(), full.end());
  }
  if (measured.rows.empty()) return;
  AttentionTimes fitted = fit_attention(measured);
  const AttentionErrors errors = attention_errors(fitted, measured, true);
  fmt::print("  {} {} prefill: causal {}; unmasked {}\n", gpu.name, format.name, to_text(errors.causal),
             to_text(errors.full));
  times_.at(gpu.name).attention_serving.push_back(std::move(fitted));
}

// So few rows that each is also predicted by a fit to all the others.
void FitCall::training(const GpuTables& gpu, const Format& format, AttentionPass pass) {
  MeasuredAttention measured{times_.at(gpu.name).facts, format.precision, pass, {}};
  if (!gpu.sdpa_prefix.empty())
    measured.rows = read_training_rows((tables_ / "cudnn-frontend").string(), gpu.sdpa_prefix, format.name, pass);
  if (measured.rows.empty()) return;
  AttentionTimes fitted = fit_attention(measured);
  const bool forward = pass == AttentionPass::forward;
  fmt::print("  {} {} training {}: held out {}; each left out in turn {}\n", gpu.name, format.name,
             forward ? "forward" : "backward", to_text(attention_errors(fitted, measured, true).all),
             to_text(leave_one_out(measured)));
  (forward ? times_.at(gpu.name).attention_forward : times_.at(gpu.name).attention_backward)
      .push_back(std::move(fitted));
}

// FlashAttention-2 on A100 as its paper gives it (Dao 2023, arXiv:2307.08691, section 1: 50 to 73 % of the peak
// forwards, up to 63 % backwards); read off, so with a wide error.
AttentionTimes published_a100(AttentionPass pass) {
  constexpr double error = 0.1;
  AttentionTimes times;
  times.physics = {.efficiency = pass == AttentionPass::forward ? 0.80 : 0.66,
                   .softmax = 20,
                   .prologue = 3,
                   .memory_efficiency = 0.8,
                   .fixed_us = pass == AttentionPass::forward ? 14.0 : 26.0,
                   .overlap = 3,
                   .throttle = 0,
                   .throttle_ms = 5};
  times.table_error = times.physics_error = {error, error, error};
  return times;
}

// cuDNN on B200 as Transformer Engine timed it (ops/transformer-engine/attention.csv, the ten rows whose shape's
// SHA-256 is 0 modulo 5), with cuDNN's own rows from 4,096 tokens: a random search over the six numbers, memory and
// overlap as for H200. Shorter rows of cuDNN's are PyTorch's launches, up to 0.5 ms, not kernels. The other 54 rows: 12
// % median.
AttentionTimes searched_b200(AttentionPass pass) {
  constexpr double error = 0.12;
  const bool forward = pass == AttentionPass::forward;
  AttentionTimes times;
  times.physics = {.efficiency = forward ? 0.6731 : 0.6215,
                   .softmax = 0,
                   .prologue = 8,
                   .memory_efficiency = 0.8,
                   .fixed_us = forward ? 36.8 : 5.0,
                   .overlap = 3,
                   .throttle = forward ? 0.1292 : 0.3034,
                   .throttle_ms = forward ? 30.0 : 1.0};
  times.table_error = times.physics_error = {error, error, error};
  return times;
}

void FitCall::attention() {
  fmt::print("attention\n");
  for (const GpuTables& gpu : gpu_tables())
    for (const Format& format : {Format{Precision::bf16, "bfloat16"}, Format{Precision::fp8, "fp8"}}) {
      serving(gpu, format);
      training(gpu, format, AttentionPass::forward);
      training(gpu, format, AttentionPass::backward);
    }
  OperatorTimes& a100 = times_.at("a100-sxm");
  a100.attention_forward.push_back(published_a100(AttentionPass::forward));
  a100.attention_backward.push_back(published_a100(AttentionPass::backward));
  OperatorTimes& b200 = times_.at("b200-sxm");
  b200.attention_forward = {searched_b200(AttentionPass::forward)};
  b200.attention_backward = {searched_b200(AttentionPass::backward)};
}

// PyTorch's kernels on our own H100 (validation/results/2026-11-26-h100-sxm5-80gb): LayerNorms of 768 to 1,280 in the
// recorded steps of three models, both kernels of a backward together; log-softmaxes of 50,257 and 128,256 words, whose
// rows come from memory each time; the fused AdamW. Shares read off, errors those of these very kernels.
constexpr std::array measured_h100 = {
    MemoryTimes{.kind = MemoryKind::norm_forward, .efficiency = 0.58, .fixed_us = 2, .error = 0.08},
    MemoryTimes{.kind = MemoryKind::norm_backward, .efficiency = 0.32, .fixed_us = 3, .error = 0.13},
    MemoryTimes{.kind = MemoryKind::softmax, .efficiency = 0.88, .fixed_us = 2, .error = 0.03},
    MemoryTimes{.kind = MemoryKind::optimizer, .efficiency = 0.67, .fixed_us = 4, .error = 0.05}};

void FitCall::memory() {
  fmt::print("memory-bound kernels\n");
  for (const GpuTables& gpu : gpu_tables()) {
    OperatorTimes& times = times_.at(gpu.name);
    const auto add = [&](const char* name, MemoryKind kind, const std::vector<MemoryRow>& rows) {
      ErrorSummary errors;
      times.memory.push_back(fit_memory(kind, rows, times.facts, errors));
      fmt::print("  {} {}: {:.3f} of the bandwidth + {:.1f} us; {}\n", gpu.name, name, times.memory.back().efficiency,
                 times.memory.back().fixed_us, to_text(errors));
    };
    const std::string vidur = (tables_ / "vidur").string(), norms = (tables_ / "cudnn-frontend" / gpu.norms).string();
    if (!gpu.vidur.empty()) {
      add("elementwise", MemoryKind::elementwise, read_vidur_rows(vidur, gpu.vidur, MemoryKind::elementwise));
      add("embedding", MemoryKind::gather, read_vidur_rows(vidur, gpu.vidur, MemoryKind::gather));
    }
    if (!gpu.norms.empty()) {
      add("norm forward", MemoryKind::norm_forward, read_norm_rows(norms, MemoryKind::norm_forward));
      add("norm backward", MemoryKind::norm_backward, read_norm_rows(norms, MemoryKind::norm_backward));
    }
  }
  std::vector<MemoryTimes>& h100 = times_.at("h100-sxm").memory;
  h100.insert(h100.end(), measured_h100.begin(), measured_h100.end());
}

void FitCall::write(const std::filesystem::path& folder) const {
  std::filesystem::create_directories(folder);
  for (const auto& [name, times] : times_) {
    std::ofstream file(folder / (name + ".json"));
    file << operator_times_text(times);
  }
}

int run(const std::string& tables, const std::string& out) {
  FitCall fit(tables);
  fit.gemm();
  fit.attention();
  fit.memory();
  fit.write(out);
  return 0;
}

}  // namespace
}  // namespace spillway::models::fit

int main(int count, char** arguments) {
  if (count != 3) {
    std::fputs("usage: spillway-fit TABLES OUT\n", stderr);
    return 2;
  }
  try {
    return spillway::models::fit::run(arguments[1], arguments[2]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "spillway-fit: {}\n", error.what());
    return 2;
  }
}
