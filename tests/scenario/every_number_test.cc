// Every number of a scenario and of a machine moves a figure of `run`, or is said not to.
//
// Each numeric key is set to a tenth and to ten times what it is (what is refused as out of range: to half and twice,
// to one less and one more), in the scenarios below one after the other, until a figure moves. Where none does, a
// warning that wasn't there before must say why. What needs none is an exception with its own reason, and an exception
// that isn't needed fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "base/field_rows.h"
#include "base/input_error.h"
#include "hwprofiles/fields.h"
#include "scenario/brief_run.h"
#include "scenario/result_bytes.h"
#include "scenario/scenario_fields.h"

namespace spillway::scenario {
namespace {

// Small ones that between them read every key.
const std::vector<std::string>& scenarios() {
  static const std::vector<std::string> all = {
      R"("model": {"name": "gpt2-small", "layers": 8, "micro_batch": 2, "sequence": 512, "gradient_accumulation": 8,
          "tensor_parallel": 2, "pipeline_parallel": 2, "pipeline_chunks": 2, "data_parallel": 4,
          "pipeline_schedule": "interleaved", "zero_stage": 1, "bucket_bytes": 1000000, "recompute": "full",
          "recompute_layers": 1},
         "hardware": {"profile": "dgx-a100", "set": {"machines": "2"}, "jitter": {"seed": 3, "sigma": 0.05}},
         "what_if": {"network": 1.5, "gpu": 1.5, "compute": 1.5, "memory": 1.5})",
      R"("model": {"name": "gpt2-small", "layers": 4, "micro_batch": 4, "sequence": 512, "data_parallel": 16,
          "tensor_parallel": 2, "zero_stage": 3, "shard_groups": 2, "prefetch": 1, "evaluate_every": 100,
          "evaluation_batches": 4,
          "evaluation_micro_batch": 2,
          "dropout": 0.1, "frozen_layers": 1, "trained_layers": 2},
         "hardware": {"profile": "hgx-a100-4hdr", "set": {"machines": "4"}})",
      R"("model": {"name": "olmoe-1b-7b", "layers": 2, "micro_batch": 1, "sequence": 1024, "data_parallel": 8,
          "expert_parallel": 4, "gradient_accumulation": 2, "expert_load": "lognormal", "expert_load_cv": 0.8,
          "expert_load_seed": 2, "expert_load_steps": 1, "expert_capacity": 1.2},
         "hardware": {"profile": "dgx-h100"})",
      R"("model": {"name": "olmoe-1b-7b", "layers": 2, "micro_batch": 1, "sequence": 1024, "tensor_parallel": 2,
          "data_parallel": 4, "expert_parallel": 4, "sequence_parallel": true,
          "expert_tensor_parallel": 1, "expert_imbalance": 1.5, "recompute": "full", "recompute_every": 1,
          "framework": "megatron"},
         "hardware": {"profile": "dgx-h100"})",
      R"("model": {"name": "gpt2-small", "layers": 6, "micro_batch": 8, "sequence": 1024},
         "hardware": {"profile": "ssdtrain-testbed"}, "memory": {"capacity_bytes": 12000000000, "reserve": 1000000000},
         "offload": {"technique": "ssdtrain", "workers": 12, "chunk_leaves": 2, "least_elements": 1000000,
          "in_flight_bytes": 200000000, "adaptive_bandwidth": 30000000000, "least_life_years": 3,
          "drive_free_bytes": 500000000, "drive_used_percent": 5})",
      R"("model": {"name": "gpt2-small", "layers": 6, "micro_batch": 8, "sequence": 1024},
         "hardware": {"profile": "a100-40gb-1gpu"}, "what_if": {"pcie": 1.5},
         "offload": {"technique": "ssdtrain", "drives": "samsung-990-pro-2tb", "drives_per_machine": 2,
          "route": "bounce", "least_elements": 1000000, "adaptive": false})",
      R"("model": {"name": "gpt2-small", "layers": 4, "micro_batch": 2, "sequence": 512, "data_parallel": 2,
          "zero_stage": 2, "optimizer_device": "cpu", "optimizer": "adamw", "host_threads": 1},
         "hardware": {"profile": "workstation-2x4090"}, "what_if": {"host": 1.5})",
      R"("model": {"name": "gpt2-small", "layers": 2, "micro_batch": 1, "sequence": 512, "optimizer": "galore_adamw",
          "optimizer_rank": 64, "document_tokens": 128},
         "hardware": {"profile": "gh200-1gpu"})",
      R"("model": {"name": "gpt2-small", "layers": 4, "micro_batch": 4, "sequence": 512, "trainable": "lora",
          "lora_rank": 16, "lora_dropout": 0.05, "global_batch": 16, "evaluate_every": 100, "evaluation_batches": 4,
          "evaluation_keeps": "logits", "evaluation_flush": 2},
         "hardware": {"profile": "gb200-nvl4"})",
      R"("model": {"name": "gpt2-small", "layers": 4, "micro_batch": 1, "sequence": 512, "data_parallel": 4,
          "framework": "deepspeed", "zero_stage": 3, "recompute": "full", "sub_group": 3000000,
          "prefetch_elements": 2000000},
         "hardware": {"profile": "dgx-a100"})",
      R"("model": {"name": "gpt2-small", "layers": 8, "micro_batch": 1, "sequence": 512, "pipeline_parallel": 4,
          "pipeline_chunks": 2, "gradient_accumulation": 8, "pipeline_schedule": "chronos", "recomputed_chunks": 1,
          "offloaded_states": 1},
         "hardware": {"profile": "dgx-a100"})",
      R"("model": {"name": "gpt2-small", "layers": 8, "micro_batch": 1, "sequence": 1024, "pipeline_parallel": 4,
          "gradient_accumulation": 8, "pipeline_schedule": "seq1f1b", "sequence_slices": 4},
         "hardware": {"profile": "dgx-1-v100"})",
      R"("model": {"name": "t5-small", "micro_batch": 2, "sequence": 256, "pipeline_parallel": 4, "pipeline_split": 1,
          "gradient_accumulation": 4},
         "hardware": {"profile": "dgx-a100"})",
      R"("model": {"name": "tinyllama-1.1b", "layers": 2, "micro_batch": 1, "sequence": 2048, "context_parallel": 4},
         "hardware": {"profile": "gh200x4"})",
      R"("model": {"name": "gpt2-small", "layers": 2, "micro_batch": 2, "sequence": 512, "precision": "fp8_mixed",
          "framework": "megatron", "mtp_layers": 1},
         "hardware": {"profile": "h100-sxm5-80gb-measured"}, "memory": {"allocator": "gmlake"})",
      R"("model": {"name": "gpt2-small", "layers": 2, "micro_batch": 2, "sequence": 512, "precision": "nvfp4_mixed",
          "bf16_layers_first": 1, "bf16_layers_last": 1, "framework": "megatron"},
         "hardware": {"profile": "b200-180gb-1gpu"})",
      R"("model": {"name": "gpt2-small", "layers": 2, "micro_batch": 2, "sequence": 512, "precision": "tf32"},
         "hardware": {"profile": "l40s-1gpu"})",
      R"("model": {"name": "gpt2-small", "layers": 2, "micro_batch": 2, "sequence": 512, "precision": "fp16_mixed",
          "loss_metrics": 1},
         "hardware": {"profile": "v100-32gb-1gpu"}, "memory": {"capacity_bytes": 3000000000, "reserve": 0})",
      R"("model": {"name": "gpt2-small", "layers": 4, "micro_batch": 4, "sequence": 512, "data_parallel": 2,
          "loss": "group", "prompt_tokens": 128, "rollout_group": 4, "rollout_memory": 0.1, "rollout_sleep": 1,
          "rollout_parallel": 2, "framework": "huggingface"},
         "hardware": {"profile": "dgx-a100"})",
      R"("model": {"name": "Qwen/Qwen3-VL-4B-Instruct", "layers": 4, "micro_batch": 1, "sequence": 512, "images": 4,
          "image_tokens": 16},
          "hardware": {"profile": "h100-80gb-1gpu"})",
      R"("model": {"name": "gpt2-small", "layers": 2, "micro_batch": 4, "sequence": 512, "loss": "group",
          "value_model": "same", "value_micro_batch": 2, "framework": "huggingface"},
         "hardware": {"profile": "h100-80gb-1gpu"})",
      R"("model": {"name": "gpt2-small", "layers": 2, "micro_batch": 8, "sequence": 1024},
         "hardware": {"profile": "h100-80gb-1gpu"},
         "offload": {"technique": "mix", "tier": "host", "budget_bytes": 2000000000})"};
  return all;
}

struct Answer {
  std::string figures, refusal;
  std::set<std::string> warnings;
};

// Without what only tells the machine's values again.
std::string figures_of(Result result) {
  result.warnings.clear();
  result.provenance.clear();
  result.title.clear();
  result.fingerprint = 0;
  std::erase_if(result.links, [](const LinkResult& link) { return link.bytes == Bytes(0); });
  return bytes_of(result);
}

Answer answer(const std::string& text) {
  try {
    const BriefRun run = run_briefly(parse_scenario(text, "every number", "/"));
    const std::vector<std::string>& warnings = run.run.result.warnings;
    return {figures_of(run.run.result), "", {warnings.begin(), warnings.end()}};
  } catch (const InputError& error) {
    return {"", error.what(), {}};
  }
}

std::string document(const std::string& body) {
  return R"({"schema": "spillway-scenario", "version": 1, )" + body + "}";
}

const Answer& plain_answer(std::size_t scenario) {
  static std::map<std::size_t, Answer> all;
  if (all.count(scenario) == 0) all[scenario] = answer(document(scenarios()[scenario]));
  return all[scenario];
}

enum class Outcome { moved, said, silent, refused };

Outcome outcome(std::size_t scenario, const std::string& setting) {
  Answer now;
  try {
    now = answer(with_setting(document(scenarios()[scenario]), setting));
  } catch (const InputError& error) {
    now.refusal = error.what();
  }
  const Answer& before = plain_answer(scenario);
  if (!now.refusal.empty()) return Outcome::refused;
  if (now.figures != before.figures) {
    for (const std::string& warning : now.warnings)
      EXPECT_FALSE(warning.find(" changes nothing here") != std::string::npos &&
                   warning.find(setting.substr(0, setting.find('='))) != std::string::npos)
          << scenario << " " << setting << " moves figures: " << warning;
    return Outcome::moved;
  }
  return std::includes(before.warnings.begin(), before.warnings.end(), now.warnings.begin(), now.warnings.end())
             ? Outcome::silent
             : Outcome::said;
}

TEST(EveryNumber, ScenariosRun) {
  for (std::size_t i = 0; i < scenarios().size(); ++i) EXPECT_EQ(plain_answer(i).refusal, "") << i;
}

std::string text_of(double value) {
  std::string text = std::to_string(value);
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.pop_back();
  return text;
}

struct Named {
  const char *key, *text;
};

// Why neither a figure nor a message comes of it.
constexpr Named exceptions[] = {
    {"version", "the form of the document: a newer one is refused"},
    {"model.lora_dropout", "a mask costs as much at any probability above 0"},
    {"model.dropout", "a mask costs as much at any probability above 0"},
    {"drives.*.drive.read_efficiency", "a curve, and no machine of the scenarios has it"},
    {"drives.*.drive.steady_write_bandwidth", "of drives that these steps write little or nothing to"},
    {"drives.*.drive.write_cache", "of drives that these steps write little or nothing to"},
    {"drives.*.drive.write_efficiency", "a curve, and no machine of the scenarios has it"},
    {"gpu.chunk_unmap_cost", "no allocator gives chunks back in these steps"},
    {"gpu.copy_efficiency", "a curve, and no machine of the scenarios has it"},
    {"gpu.product_lines.*.curve", "of a product that these steps don't have"},
    {"gpu.product_lines.*.m", "of a product that these steps don't have"},
    {"gpu.product_lines.*.n", "of a product that these steps don't have"},
    {"host.socket_bandwidth", "no copy of these steps crosses sockets"},
};

// What no machine of the scenarios states.
constexpr Named absent_values[] = {
    {"drives.*.drive.folding_bytes", "1 GB"},
    {"drives.*.drive.folding_write_bandwidth", "1 GB/s"},
    {"drives.*.drive.indirection_unit", "64 KiB"},
    {"drives.*.drive.over_provisioning", "0.5"},
    {"drives.*.drive.price", "100 USD"},
    {"drives.*.drive.sequential_endurance", "100 TB"},
    {"drives.*.drive.thermal_duty", "0.1"},
    {"gpu.achieved_flops.fp16", "1 TFLOPS"},
    {"gpu.achieved_flops.fp32", "1 TFLOPS"},
    {"gpu.achieved_flops.fp4", "1 TFLOPS"},
    {"gpu.achieved_flops.fp64", "1 TFLOPS"},
    {"gpu.achieved_flops.int8", "1 TFLOPS"},
    {"gpu.achieved_flops.tf32", "1 TFLOPS"},
    {"gpu.chunk_create_cost", "1 ms"},
    {"gpu.chunk_map_cost", "1 ms"},
    {"gpu.chunk_unmap_cost", "1 ms"},
    {"gpu.copy_fraction_beside_kernels", "0.5"},
    {"gpu.event_gap", "1 us"},
    {"gpu.event_record_call", "1 us"},
    {"gpu.event_wait_call", "1 us"},
    {"gpu.idle_power", "50 W"},
    {"gpu.loaded_clock_mhz", "1000"},
    {"gpu.loaded_power", "100 W"},
    {"gpu.locked_clock_mhz", "700"},
    {"gpu.peak_flops.fp4", "1 TFLOPS"},
    {"gpu.peak_flops.fp64", "1 TFLOPS"},
    {"gpu.peak_flops.int8", "1 TFLOPS"},
    {"gpu.power_limit", "150 W"},
    {"gpu.price_per_hour", "1 USD/h"},
    {"gpu.shared_hbm_fraction", "0.05"},
    {"gpu.sustained_flops", "50 TFLOPS"},
    {"gpu.two_stream_speedup", "1.5"},
    {"host.framework_slowdown", "10"},
    {"host.pcie.*.bandwidth", "1 GB/s"},
    {"host.pcie.*.duplex_bandwidth", "1 GB/s"},
    {"host.price", "100 USD"},
    {"price", "100 USD"},
    {"price_per_hour", "1 USD/h"},
    {"scale_out.port_power", "10 W"},
    {"scale_out.port_price", "10 USD"},
    {"scale_out.switch_reduction", "1.5"},
    {"scale_up.gpus_per_port", "2"},
    {"scale_up.port_power", "10 W"},
    {"scale_up.port_price", "10 USD"},
    {"scale_up.ring_through_host", "1 GB/s"},
    {"scale_up_gpus", "16"},
};

const char* text_of(std::span<const Named> table, const std::string& key) {
  for (const Named& one : table)
    if (one.key == key) return one.text;
  return nullptr;
}

void expect_heard(const std::string& key, Outcome outcome) {
  const bool is_heard = outcome <= Outcome::said;
  const char* const reason = text_of(exceptions, key);
  EXPECT_NE(is_heard, reason != nullptr) << key
                                         << (is_heard                      ? " needs no exception"
                                             : outcome == Outcome::refused ? " is refused only"
                                                                           : " is silent");
}

TEST(EveryNumber, OfAScenario) {
  for (const FieldRow& row : scenario_rows()) {
    if (row.inside_list ||
        (row.kind != FieldKind::integer && row.kind != FieldKind::number && row.path != "memory.reserve"))
      continue;
    bool moved = false;
    for (std::size_t i = 0; i < scenarios().size() && !moved; ++i) {
      const std::optional<std::string> own = setting_of(document(scenarios()[i]), row.path);
      if (!own) continue;
      const double value = std::stod(*own);
      for (const double other : {value / 10, value * 10, value / 2, value * 2, value - 1, value + 1}) {
        if (row.kind == FieldKind::integer && other != std::floor(other)) continue;
        const Outcome result = outcome(i, row.path + "=" + text_of(other));
        moved = moved || result == Outcome::moved || result == Outcome::said;
        if (moved) break;
      }
    }
    expect_heard(row.path, moved ? Outcome::moved : Outcome::silent);
  }
}

struct Number {
  bool is_present = false, is_curve = false;
};

class Numbers final : public ProfileVisitor, public PathVisitor {
 public:
  std::map<std::string, Number> all;
  void quantity(const FieldInfo& info, Leaf& leaf) override { all[path_of(info.key)] = {leaf.present(), false}; }
  void curve(const FieldInfo& y, Dimension, Maybe<Curve>& curve) override {
    all[path_of(y.key)] = {curve.has_value(), true};
  }
  void family(const FieldInfo& y, Dimension, std::string_view, Maybe<CurveFamily>& family) override {
    all[path_of(y.key)] = {family.has_value(), true};
  }
};

// "gpu.gemm_efficiency.3.curve" as "gpu.gemm_efficiency.*.curve".
std::string general(const std::string& path) {
  std::string text;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const bool digit =
        std::isdigit(static_cast<unsigned char>(path[i])) != 0 && i > 0 && (path[i - 1] == '.' || text.back() == '*');
    if (!digit)
      text += path[i];
    else if (text.back() != '*')
      text += '*';
  }
  return text;
}

TEST(EveryNumber, OfAMachine) {
  std::map<std::string, Outcome> outcomes;
  std::set<std::string> absent;
  for (std::size_t i = 0; i < scenarios().size(); ++i) {
    HardwareProfile hardware = hardware_of(parse_scenario(document(scenarios()[i]), "x", "/"));
    std::map<std::string, int> tries;
    Numbers numbers;
    describe(hardware, numbers);
    for (const auto& [path, number] : numbers.all) {
      const std::string key = general(path);
      const char* const value = number.is_present ? nullptr : text_of(absent_values, key);
      if (!number.is_present) absent.insert(key);
      if (!number.is_present && value == nullptr) continue;
      const auto known = outcomes.emplace(key, Outcome::refused).first;
      if (known->second <= Outcome::said || tries[key]++ >= 2) continue;
      const std::vector<const char*> texts =
          value != nullptr ? std::vector{value} : std::vector{"x0.1", "x10", "x0.5", "x2", "x1.2", "x0.0001"};
      for (const char* text : texts) {
        known->second = std::min(known->second, outcome(i, "hardware.set." + path + "=" + text));
        if (known->second <= Outcome::said) break;
      }
    }
  }
  for (const auto& [key, result] : outcomes) expect_heard(key, result);
  for (const std::string& key : absent)
    EXPECT_TRUE(outcomes.count(key) != 0 || text_of(exceptions, key) != nullptr) << "in no machine: " << key;
}

}  // namespace
}  // namespace spillway::scenario
