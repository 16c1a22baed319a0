// The fields of a TrainingSetup by name.
#include <algorithm>
#include <array>
#include <charconv>
#include <variant>

#include <fmt/format.h>

#include "base/input_error.h"
#include "base/nearest_name.h"
#include "models/pipeline/named_schedules.h"
#include "models/spec/training_setup.h"

namespace spillway::models {
namespace {

using Member =
    std::variant<std::int64_t TrainingSetup::*, double TrainingSetup::*, bool TrainingSetup::*,
                 TrainingPrecision TrainingSetup::*, OptimizerKind TrainingSetup::*, OptimizerForm TrainingSetup::*,
                 Recompute TrainingSetup::*, Framework TrainingSetup::*, std::string TrainingSetup::*,
                 AttentionKernel TrainingSetup::*, LossForm TrainingSetup::*, StateDevice TrainingSetup::*>;
struct Field {
  std::string_view key;
  Member member;
};

constexpr std::array<Field, 40> fields = {{
    {"micro_batch", &TrainingSetup::micro_batch},
    {"sequence", &TrainingSetup::sequence},
    {"gradient_accumulation", &TrainingSetup::gradient_accumulation},
    {"precision", &TrainingSetup::precision},
    {"fp32_gradients", &TrainingSetup::fp32_gradients},
    {"optimizer", &TrainingSetup::optimizer},
    {"optimizer_form", &TrainingSetup::optimizer_form},
    {"recompute", &TrainingSetup::recompute},
    {"flash_attention", &TrainingSetup::flash_attention},
    {"attention_kernel", &TrainingSetup::attention_kernel},
    {"fused_kernels", &TrainingSetup::fused_kernels},
    {"loss", &TrainingSetup::loss},
    {"loss_metrics", &TrainingSetup::loss_metrics},
    {"dropout", &TrainingSetup::dropout},
    {"framework", &TrainingSetup::framework},
    {"global_batch", &TrainingSetup::global_batch},
    {"tensor_parallel", &TrainingSetup::tensor_parallel},
    {"sequence_parallel", &TrainingSetup::sequence_parallel},
    {"context_parallel", &TrainingSetup::context_parallel},
    {"pipeline_parallel", &TrainingSetup::pipeline_parallel},
    {"pipeline_chunks", &TrainingSetup::pipeline_chunks},
    {"pipeline_schedule", &TrainingSetup::pipeline_schedule},
    {"sequence_slices", &TrainingSetup::sequence_slices},
    {"recomputed_chunks", &TrainingSetup::recomputed_chunks},
    {"split_backward", &TrainingSetup::split_backward},
    {"offloaded_states", &TrainingSetup::offloaded_states},
    {"step_barrier", &TrainingSetup::step_barrier},
    {"pipeline_split", &TrainingSetup::pipeline_split},
    {"data_parallel", &TrainingSetup::data_parallel},
    {"expert_parallel", &TrainingSetup::expert_parallel},
    {"zero_stage", &TrainingSetup::zero_stage},
    {"bucket_bytes", &TrainingSetup::bucket_bytes},
    {"prefetch", &TrainingSetup::prefetch},
    {"late_prefetch", &TrainingSetup::late_prefetch},
    {"fp32_reduction", &TrainingSetup::fp32_reduction},
    {"overlap_gradients", &TrainingSetup::overlap_gradients},
    {"phase_timers", &TrainingSetup::phase_timers},
    {"optimizer_device", &TrainingSetup::optimizer_device},
    {"weight_device", &TrainingSetup::weight_device},
    {"delayed_update", &TrainingSetup::delayed_update},
}};

constexpr int choices(TrainingPrecision) { return static_cast<int>(TrainingPrecision::fp8_mixed) + 1; }
constexpr int choices(OptimizerKind) { return static_cast<int>(OptimizerKind::muon) + 1; }
constexpr int choices(OptimizerForm) { return static_cast<int>(OptimizerForm::fused) + 1; }
constexpr int choices(Recompute) { return static_cast<int>(Recompute::full) + 1; }
constexpr int choices(Framework) { return static_cast<int>(Framework::megatron_2021) + 1; }
constexpr int choices(AttentionKernel) { return static_cast<int>(AttentionKernel::triton) + 1; }
constexpr int choices(LossForm) { return static_cast<int>(LossForm::fused) + 1; }
constexpr int choices(StateDevice) { return static_cast<int>(StateDevice::drives) + 1; }

const Field& find_field(std::string_view key) {
  for (const Field& field : fields)
    if (field.key == key) return field;
  throw InputError("", std::string(key), "no such setting of a training set-up", suggest(key, training_setup_keys()));
}

[[noreturn]] void refuse(std::string_view key, std::string_view text, const std::string& wanted) {
  throw InputError("", std::string(key), fmt::format("\"{}\" is not a value of it", text), "give " + wanted);
}

struct Setter {
  TrainingSetup& setup;
  std::string_view key, text;

  template <class Number>
  void number(Number& into, const char* wanted) const {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) refuse(key, text, wanted);
    into = value;
  }
  void operator()(std::int64_t TrainingSetup::*member) const { number(setup.*member, "a whole number"); }
  void operator()(double TrainingSetup::*member) const { number(setup.*member, "a number"); }
  void operator()(bool TrainingSetup::*member) const {
    if (text != "true" && text != "false") refuse(key, text, "true or false");
    setup.*member = text == "true";
  }
  // The one text there is: a schedule.
  void operator()(std::string TrainingSetup::*member) const {
    std::vector<std::string_view> names;
    for (const NamedSchedule& named : named_schedules()) names.push_back(named.name);
    if (!text.ends_with(".json") && text != "one_f_one_b" && std::find(names.begin(), names.end(), text) == names.end())
      throw InputError("", std::string(key), fmt::format("no pipeline schedule is called \"{}\"", text),
                       suggest(text, names));
    setup.*member = text;
  }
  template <class Enum>
  void operator()(Enum TrainingSetup::*member) const {
    std::string all;
    for (int i = 0; i < choices(Enum{}); ++i) {
      if (to_string(static_cast<Enum>(i)) == text) {
        setup.*member = static_cast<Enum>(i);
        return;
      }
      all += (i == 0 ? "" : ", ") + std::string(to_string(static_cast<Enum>(i)));
    }
    refuse(key, text, "one of " + all);
  }
};

struct Getter {
  const TrainingSetup& setup;

  std::string operator()(std::int64_t TrainingSetup::*member) const { return fmt::format("{}", setup.*member); }
  std::string operator()(double TrainingSetup::*member) const { return fmt::format("{}", setup.*member); }
  std::string operator()(bool TrainingSetup::*member) const { return setup.*member ? "true" : "false"; }
  std::string operator()(std::string TrainingSetup::*member) const { return setup.*member; }
  template <class Enum>
  std::string operator()(Enum TrainingSetup::*member) const {
    return std::string(to_string(setup.*member));
  }
};

}  // namespace

const std::vector<std::string>& training_setup_keys() {
  static const std::vector<std::string> keys = [] {
    std::vector<std::string> result;
    result.reserve(std::size(fields));
    for (const Field& field : fields) result.emplace_back(field.key);
    return result;
  }();
  return keys;
}

void set_field(TrainingSetup& setup, std::string_view key, std::string_view text) {
  std::visit(Setter{setup, key, text}, find_field(key).member);
}

std::string field_text(const TrainingSetup& setup, std::string_view key) {
  return std::visit(Getter{setup}, find_field(key).member);
}

}  // namespace spillway::models
