#include "studies/fit/fit_question.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "base/input_error.h"
#include "base/named_file.h"
#include "base/number_text.h"
#include "hwprofiles/profile_library.h"
#include "launch/launch_import.h"
#include "scenario/file_kind.h"

namespace spillway::studies {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr std::int64_t longest_default_sequence = 8192;
class Reader {
 public:
  explicit Reader(const FitQuestion& question) : question_(question) {}

  FitSubject read() {
    if (!question_.machine.empty()) {
      machine_ = ProfileLibrary::shared().load_system(question_.machine);
      assume("machines: " + machine_->title);
      for (const std::string& open : machine_->assumed) assume(open);
    }
    const std::string& what = question_.what;
    if (names_model(what))
      read_model(whole_model_name(what));
    else if (!lies_at(what))
      throw nothing_there(what);
    else
      read_by_kind(file_kind(what));
    finish();
    return std::move(subject_);
  }

  FitSubject read(const BaseScenario& scenario) {
    read_scenario(scenario);
    finish();
    return std::move(subject_);
  }

 private:
  void set(const std::string& setting) { subject_.scenario.text = with_setting(subject_.scenario.text, setting); }
  void assume(std::string words) { subject_.assumptions.push_back(std::move(words)); }

  [[nodiscard]] std::string machine_name() const {
    return name_seen_from(fs::current_path().string(), question_.machine);
  }

  void set_machine() {
    if (!machine_) return;
    set("hardware.profile=" + machine_name());
    // How many there are is said by the name.
    for (const std::string key : {"hardware.set.machines", "hardware.set.gpu_count"})
      if (setting_of(subject_.scenario.text, key)) set(key + "=null");
  }

  void read_by_kind(FileKind kind) {
    const std::string& what = question_.what;
    if (kind == FileKind::model) return read_model(whole_model_name(what));
    if (kind != FileKind::launch) return read_scenario(base_scenario(what));
    const LaunchImport launch =
        import_launch({.launch = {.paths = {what}}, .machine = machine_ ? machine_name() : std::string()});
    if (!launch.model.empty())
      throw InputError(what, "", "its model is not bundled and needs a model file",
                       fmt::format("spillway import {} --output X.scenario.json, then spillway fit of that", what));
    subject_.assumptions.insert(subject_.assumptions.end(), launch.warnings.begin(), launch.warnings.end());
    read_scenario({launch.scenario, what, fs::path(what).parent_path().string()});
  }

  // ---- a model alone ----

  void read_model(const std::string& name) {
    if (!machine_)
      throw InputError(question_.what, "--on", "a model alone says nothing of what it runs on",
                       "name the machine: --on 8xh100, --on 16xa100-40gb, --on dgx-h100x2");
    const ModelSpec model = find_model(name);
    subject_.is_model_alone = true;
    const Json text = {{"schema", "spillway-scenario"},
                       {"version", scenario_version},
                       {"title", fmt::format("{} on {}", model.title, machine_->title)},
                       {"model", {{"name", name}}},
                       {"hardware", {{"profile", machine_name()}}}};
    subject_.scenario = {text.dump(), question_.what, ""};
    set_machine();
    set_model_defaults(model);
    for (const std::string& setting : question_.settings) set(setting);
  }

  void set_model_defaults(const ModelSpec& model) {
    const std::int64_t gpus = machine_->total_gpus();
    std::int64_t sequence = question_.sequence;
    if (sequence == 0) {
      sequence = model.reads_images() ? model.max_positions : std::min(model.max_positions, longest_default_sequence);
      assume(fmt::format("sequences of {} tokens: the model's longest{} (--sequence)", sequence,
                         sequence < model.max_positions ? ", at most 8,192" : ""));
    }
    if (!model.reads_images()) set(fmt::format("model.sequence={}", sequence));
    std::int64_t batch = question_.global_batch;
    if (batch == 0) {
      batch = default_batch(gpus, sequence);
      assume(
          fmt::format("{} sequences a step, {} tokens: half a million, with 1 to 16 sequences a GPU (--global-batch)",
                      batch, grouped_text(batch * sequence)));
    }
    set(fmt::format("model.global_batch={}", batch));
    const bool says_load =
        std::any_of(question_.settings.begin(), question_.settings.end(), [](const std::string& setting) {
          return setting.find("expert_load") < setting.find('=') ||
                 setting.find("expert_imbalance") < setting.find('=');
        });
    if (model.has_experts() && !says_load) assume("tokens go to experts evenly (--set model.expert_load=lognormal)");
    set(fmt::format("model.data_parallel={}", std::gcd(gpus, batch)));
    set("model.optimizer_form=fused");
    const bool has_bf16 = machine_->gpu.peak_flops_per_second[static_cast<std::size_t>(Precision::bf16)].has_value();
    if (!has_bf16) set("model.precision=fp16_mixed");
    assume(fmt::format("AdamW in one kernel, mixed precision in {}, no weights frozen (--set)",
                       has_bf16 ? "bf16" : "fp16"));
  }

  // ---- a scenario, or a trace ----

  void read_scenario(const BaseScenario& scenario) {
    subject_.scenario = scenario;
    for (const std::string& setting : question_.settings) set(setting);
    const Scenario given = scenario_of(subject_.scenario, {});
    if (given.model.empty()) return require_no_model_settings();
    if (question_.sequence > 0) set(fmt::format("model.sequence={}", question_.sequence));
    const std::int64_t batch = question_.global_batch > 0 ? question_.global_batch : given.training.step_sequences();
    const bool says_batch = setting_of(subject_.scenario.text, "model.global_batch").has_value();
    const bool says_accumulation = setting_of(subject_.scenario.text, "model.gradient_accumulation").has_value();
    if (!says_batch) subject_.batch_edits.push_back(fmt::format("model.global_batch={}", batch));
    if (!says_batch && says_accumulation) subject_.batch_edits.emplace_back("model.gradient_accumulation=null");
    set(fmt::format("model.global_batch={}", batch));
    set("model.gradient_accumulation=null");
    if (!machine_) return;
    set_machine();
    keep_layout(given.training, batch);
  }

  void require_no_model_settings() {
    if (question_.global_batch > 0 || question_.sequence > 0)
      throw InputError(question_.what, question_.sequence > 0 ? "--sequence" : "--global-batch",
                       "a recorded step has the sequences it has", "leave it out, or name a model");
    set_machine();
  }

  // The scenario's own layout where it still makes sense on as many GPUs, else replicas alone.
  void keep_layout(const TrainingSetup& given, std::int64_t batch) {
    const std::int64_t split = given.tensor_parallel * given.pipeline_parallel * given.context_parallel;
    if (given.gpus() == machine_->total_gpus()) return;
    const std::int64_t replicas = machine_->total_gpus() / split;
    if (replicas * split == machine_->total_gpus() && batch % (replicas * given.micro_batch) == 0) {
      const std::int64_t shards = replicas * given.context_parallel / given.shard_groups;
      if (replicas % given.shard_groups != 0 || shards == 1) set("model.shard_groups=null");
      return set(fmt::format("model.data_parallel={}", replicas));
    }
    for (const char* key : {"tensor_parallel", "pipeline_parallel", "context_parallel", "pipeline_schedule",
                            "pipeline_chunks", "expert_parallel", "micro_batch", "shard_groups"})
      set(fmt::format("model.{}=null", key));
    set(fmt::format("model.data_parallel={}", std::gcd(machine_->total_gpus(), batch)));
  }

  // ---- of all ----

  void finish() {
    Scenario& parsed = subject_.parsed = scenario_of(subject_.scenario, {});
    if (parsed.model.empty()) {
      subject_.hardware = load(parsed).hardware;
      return;
    }
    subject_.model = with_layers(parsed, find_model(parsed.model));
    subject_.hardware = hardware_of(parsed);
    subject_.gpus = machine_ ? machine_->total_gpus() : parsed.training.gpus();
  }

  const FitQuestion& question_;
  FitSubject subject_;
  std::optional<HardwareProfile> machine_;
};

}  // namespace

const Words& fit_goal_words() {
  static const Words words = {{"speed", "the shortest step"},       {"cost", "the cheapest token"},
                              {"life", "drives that live longest"}, {"memory", "the lowest peak of device memory"},
                              {"gpus", "the fewest GPUs"},          {"change", "the fewest edits"}};
  return words;
}

std::int64_t default_batch(std::int64_t gpus, std::int64_t sequence) {
  constexpr std::int64_t tokens = 1 << 19, most_each = 16;
  std::int64_t each = 1;
  while (each < most_each && 2 * each * gpus * sequence <= tokens) each *= 2;
  return each * gpus;
}

FitSubject fit_subject(const FitQuestion& question) { return Reader(question).read(); }

FitSubject fit_subject(const FitQuestion& question, const BaseScenario& scenario) {
  return Reader(question).read(scenario);
}

}  // namespace spillway::studies
