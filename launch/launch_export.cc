#include "launch/launch_export.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include <fmt/format.h>

#include "base/input_error.h"
#include "hwprofiles/profile_library.h"
#include "launch/launch_decompose.h"
#include "launch/launch_facts.h"
#include "launch/launch_table.h"
#include "models/spec/model_spec.h"
#include "models/spec/training_setup_fields.h"
#include "scenario/scenario_run.h"

namespace spillway::launch {
namespace {

struct Written {
  const LaunchFlag* row;
  std::string value;  // the framework's
};

// Whose rows a target has, the program's last; and what its file is.
struct Target {
  std::string_view name, about;
  std::array<LaunchFormat, 3> formats;
  LaunchFormat program;
  bool is_whole_program;  // LaunchExport's
  std::string (*write)(const std::vector<Written>&, const Scenario&, const TrainingSetup&);
};

std::string header(const Scenario& scenario, std::string_view comment) {
  std::string title = scenario.title;
  for (char& letter : title)
    if (static_cast<unsigned char>(letter) < 32) letter = ' ';
  return fmt::format("{} Made by spillway of: {}\n", comment, title);
}

// In single quotes where a shell would read more than the letters.
std::string shell_quoted(const std::string& text) {
  const bool is_plain = !text.empty() && text.find_first_not_of(
                                             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                             "0123456789_-+.,:/=@%") == std::string::npos;
  if (is_plain) return text;
  std::string quoted = "'";
  for (const char letter : text) quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return quoted + "'";
}

// A switch stands alone; accelerate's want a value.
std::string word_of(const Written& flag) {
  const LaunchFlag& row = *flag.row;
  const bool alone = flag.value == "true" && (is_switch(row) || row.role != FlagRole::value) &&
                     (row.format != LaunchFormat::accelerate || row.fact == facts::fsdp);
  const bool is_list = row.fact == facts::adapter_modules || row.fact == facts::graph_scope;  // of words
  if (is_list) return fmt::format("--{} {}", row.flag, flag.value);
  return alone ? "--" + row.flag : fmt::format("--{} {}", row.flag, shell_quoted(flag.value));
}

std::string script(const std::vector<Written>& flags, const Scenario& scenario, LaunchFormat launcher,
                   std::string_view start, std::string_view program, std::string_view remark) {
  std::string text = "#!/bin/bash\n" + header(scenario, "#") + fmt::format("# {}\n", remark);
  std::string starts, rest;
  for (const Written& flag : flags) {
    if (flag.row->format == LaunchFormat::environment)
      text += fmt::format("export {}={}\n", flag.row->flag,
                          flag.row->key == "model.host_threads" && flag.value == "0" ? std::string(all_cores)
                                                                                     : shell_quoted(flag.value));
    else if (flag.row->format == launcher)
      starts += " " + word_of(flag);
    else
      rest += " \\\n    " + word_of(flag);
  }
  return fmt::format("{}{}{} {}{} \\\n    \"$@\"\n", text, start, starts, program, rest);
}

std::string megatron_script(const std::vector<Written>& flags, const Scenario& scenario,
                            const TrainingSetup& /*setup*/) {
  return script(flags, scenario, LaunchFormat::launcher, "torchrun", "pretrain_gpt.py",
                "Behind its name come the data, the tokenizer, the learning rate and how long to train.");
}

std::string torch_script(const std::vector<Written>& flags, const Scenario& scenario, const TrainingSetup& setup) {
  constexpr std::string_view any =
      "train.py is any program of Hugging Face's Trainer; behind its name come data and the learning rate.";
  constexpr std::string_view with_adapters =
      "train.py is a program that takes trl's ModelConfig (trl/scripts/sft.py); behind its name come data and the "
      "learning rate.";
  return script(flags, scenario, LaunchFormat::accelerate, "accelerate launch", "train.py",
                setup.has_adapters() ? with_adapters : any);
}

std::string toml_file(const std::vector<Written>& flags, const Scenario& scenario, const TrainingSetup& setup) {
  std::vector<std::pair<std::string, std::string>> sections;
  for (const Written& flag : flags) {
    const std::size_t dot = flag.row->flag.rfind('.');
    const std::string section = flag.row->flag.substr(0, dot);
    auto at = std::find_if(sections.begin(), sections.end(), [&](const auto& each) { return each.first == section; });
    if (at == sections.end()) at = sections.insert(sections.end(), {section, ""});
    const bool is_bare = flag.value == "true" || flag.value == "false" || whole_number(flag.value);
    std::string value = is_bare ? flag.value : "\"" + flag.value + "\"";
    if (flag.row->fact == facts::fp8) value = fmt::format("[{}]", value);  // a list of converters
    at->second += fmt::format("{} = {}\n", flag.row->flag.substr(dot + 1), value);
  }
  std::string text = header(scenario, "#") + fmt::format("# For {} GPUs.\n", setup.gpus());
  for (const auto& [section, lines] : sections) text += fmt::format("\n[{}]\n{}", section, lines);
  return text;
}

std::string json_file(const std::vector<Written>& flags, const Scenario& /*scenario*/, const TrainingSetup& /*setup*/) {
  nlohmann::ordered_json root = nlohmann::ordered_json::object();
  for (const Written& flag : flags) {
    std::string pointer = "/" + flag.row->flag;
    std::replace(pointer.begin(), pointer.end(), '.', '/');
    nlohmann::ordered_json value = flag.value;
    if (flag.value == "true" || flag.value == "false")
      value = flag.value == "true";
    else if (const auto number = whole_number(flag.value))
      value = *number;
    root[nlohmann::ordered_json::json_pointer(pointer)] = std::move(value);
  }
  return root.dump(2) + "\n";
}

using enum LaunchFormat;
constexpr std::string_view target_names = "megatron torchtitan deepspeed torch";

const std::array<Target, 4>& targets() {
  static const std::array<Target, 4> all = [] {
    std::array<Target, 4> made = {
        {{"", "a shell script for Megatron-LM", {environment, launcher, megatron}, megatron, true, megatron_script},
         {"", "torchtitan's TOML file", {torchtitan, torchtitan, torchtitan}, torchtitan, true, toml_file},
         {"", "DeepSpeed's JSON file", {deepspeed, deepspeed, deepspeed}, deepspeed, false, json_file},
         {"",
          "a shell script of accelerate launch with TrainingArguments",
          {environment, accelerate, hf},
          hf,
          false,
          torch_script}}};
    std::string_view rest = target_names;
    for (Target& each : made) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      each.name = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return made;
  }();
  return all;
}

class Exporter {
 public:
  Exporter(const Scenario& scenario, const Target& target) : scenario_(scenario), target_(target) {
    if (scenario.model.empty())
      throw InputError(scenario.path, "/model", "a recorded step has no launch",
                       "export a scenario that names a model");
    spec_ = with_layers(scenario, find_model(scenario.model));
    setup_ = resolve(scenario.training, spec_);
    const std::int64_t per_node = ProfileLibrary::shared().load_system(scenario.hardware).gpu_count;
    said_ = facts_of(scenario, setup_, spec_, target.program, per_node);
  }

  LaunchExport take() {
    LaunchExport made{.is_whole_program = target_.is_whole_program};
    for (const LaunchFormat format : formats())
      for (const LaunchFlag& row : launch_flags())
        if (row.format == format && row.exported) write(row, made);
    pass_checks(made);
    made.text = target_.write(written_, scenario_, setup_);
    made.unsaid.insert(made.unsaid.end(), said_.unsaid.begin(), said_.unsaid.end());
    rest(made);
    return made;
  }

 private:
  [[nodiscard]] std::vector<LaunchFormat> formats() const {
    std::vector<LaunchFormat> once;
    for (const LaunchFormat each : target_.formats)
      if (std::find(once.begin(), once.end(), each) == once.end()) once.push_back(each);
    return once;
  }

  void write(const LaunchFlag& row, LaunchExport& made) {
    const auto found = said_.facts.find(row.fact);
    if (found == said_.facts.end()) return;
    const auto value = their_value(row, found->second);
    if (!value) return;
    said_.settled.insert(std::string(row.key));
    const bool is_off = *value == "false" && is_switch(row) && target_.program != torchtitan &&
                        target_.program != deepspeed && row.key != "model.precision";
    if (is_off) return;  // as without it; without a precision it would be open
    made.said.push_back({std::string(row.key), found->second, row.flag, *value});
    written_.push_back({&row, *value});
  }

  [[nodiscard]] Written* written(std::string_view flag) {
    const auto found =
        std::find_if(written_.begin(), written_.end(), [&](const Written& each) { return each.row->flag == flag; });
    return found == written_.end() ? nullptr : &*found;
  }
  void put(std::string_view flag, std::string value, LaunchExport& made) {
    Written* const there = written(flag);
    if (there == nullptr) return written_.push_back({find_flag(target_.program, flag), std::move(value)});
    there->value = value;
    for (SaidKey& each : made.said)
      if (each.flag == flag) each.as = value;
  }

  // What the framework's own program asserts of its arguments before it starts.
  void pass_checks(LaunchExport& made) {
    if (target_.program == megatron) {
      // megatron/training/arguments.py, validate_args()
      if (written("optimizer-cpu-offload") != nullptr) put("use-precision-aware-optimizer", "true", made);
      const bool is_fsdp = written("use-megatron-fsdp") != nullptr;
      if (is_fsdp || written("use-precision-aware-optimizer") != nullptr) {
        if (setup_.zero_stage == 0 && setup_.data_parallel * setup_.context_parallel > 1)
          made.unsaid.push_back(
              {"model.zero_stage", "0", "Megatron-LM's precision-aware optimizer is a distributed one", "1"});
        put("use-distributed-optimizer", "true", made);
      }
      if (is_fsdp) put("ckpt-format", "fsdp_dtensor", made);
      // Graphs replay random numbers; nothing in them goes to the host.
      if (!setup_.cuda_graphs.empty()) put("te-rng-tracker", "true", made);
      if (setup_.captures(whole_iteration)) put("no-check-for-nan-in-loss-and-grad", "true", made);
      // megatron/core/optimizer/layer_wise_optimizer.py: whole matrices over ranks, without the distributed optimizer
      if (setup_.optimizer == OptimizerKind::muon && setup_.zero_stage == 1) {
        put("optimizer", "dist_muon", made);
        std::erase_if(written_, [](const Written& each) { return each.row->flag == "use-distributed-optimizer"; });
        for (SaidKey& each : made.said)
          if (each.key == "model.zero_stage") each.flag = "optimizer", each.as = "dist_muon";
      }
      const Written *positions = written("max-position-embeddings"), *sequence = written("seq-length");
      if (positions != nullptr && sequence != nullptr &&
          whole_number(positions->value).value_or(0) < whole_number(sequence->value).value_or(0))
        put("max-position-embeddings", std::string(sequence->value), made);
    }
    if (target_.program == hf && written("use_liger_kernel") != nullptr) choose_liger(made);
    // deepspeed/runtime/zero/config.py: the optimizer leaves under stages 1 to 3 alone
    const Written* const stage = target_.program == deepspeed ? written("zero_optimization.stage") : nullptr;
    if (stage == nullptr || stage->value != "0" || setup_.optimizer_device == StateDevice::gpu) return;
    put("zero_optimization.stage", "1", made);
    if (setup_.data_parallel * setup_.context_parallel > 1)
      made.unsaid.push_back({"model.zero_stage", "0", "DeepSpeed moves the optimizer under stages 1 to 3 alone", "1"});
  }

  // Liger's kernels, where they are not those that it puts in by itself.
  void choose_liger(LaunchExport& made) {
    const bool is_chunked = setup_.loss == LossForm::chunked;
    if (setup_.fused_norms && setup_.fused_rotary && setup_.fused_gate && is_chunked) return;
    static const LaunchFlag config{.format = hf, .flag = "liger_kernel_config"};
    nlohmann::ordered_json kernels = {
        {"rope", setup_.fused_rotary}, {"rms_norm", setup_.fused_norms}, {"swiglu", setup_.fused_gate}};
    if (!is_chunked) kernels["fused_linear_cross_entropy"] = false;
    if (setup_.loss == LossForm::fused) kernels["cross_entropy"] = true;
    written_.push_back({&config, kernels.dump()});
    made.said.push_back({"model.loss", std::string(to_string(setup_.loss)), config.flag, kernels.dump()});
  }

  // What the framework does by itself, for a key that no flag says.
  [[nodiscard]] std::string by_itself(const std::string& key, const TrainingSetup& usual) const {
    if (key == "framework") return std::string(usual_framework(target_.program));
    const bool of_data = key == "images" || key == "image_tokens";
    if (of_data || (key == "train_tower" && setup_.images == 0)) return field_text(setup_, key);
    if (key == "train_tower" && target_.program == LaunchFormat::hf)
      return std::string(to_string(setup_.has_adapters() ? TrainTower::frozen : TrainTower::whole));
    for (const LaunchDefault& each : launch_defaults())
      if (each.format == target_.program && each.dialect == Dialect::any && each.fact == "model." + key)
        return std::string(each.value);
    return field_text(usual, key);
  }

  void rest(LaunchExport& made) const {
    const TrainingSetup usual;
    for (const std::string& key : training_setup_keys()) {
      const std::string path = "model." + key, value = field_text(setup_, key);
      if (said_.settled.contains(path) || value == by_itself(key, usual)) continue;
      made.unsaid.push_back({path, value, fmt::format("{} has no flag for it", target_.name)});
    }
    if (scenario_.offload.moves())
      made.unsaid.push_back(
          {"offload.technique", scenario_.offload.technique, "no framework's flag moves these tensors"});
    if (!scenario_.plan.empty())
      made.unsaid.push_back({"plan", scenario_.plan, "no framework's flag carries out a plan"});
    if (!scenario_.memory_plan.empty())
      made.unsaid.push_back({"memory.plan", scenario_.memory_plan, "no framework's flag carries out a plan"});
    constexpr std::string_view model = "model.";
    const std::vector<std::string>& keys = training_setup_keys();
    for (UnsaidKey& each : made.unsaid) {
      const std::string key = each.key.starts_with(model) ? each.key.substr(model.size()) : "";
      if (!each.otherwise && std::find(keys.begin(), keys.end(), key) != keys.end())
        each.otherwise = by_itself(key, usual);
    }
  }

  const Scenario& scenario_;
  const Target& target_;
  ModelSpec spec_;
  TrainingSetup setup_;
  ScenarioFacts said_;
  std::vector<Written> written_;
};

}  // namespace

const Words& export_target_words() {
  static const Words words = [] {
    std::vector<Word> list;
    for (const Target& each : targets()) list.push_back({each.name, each.about});
    return Words(std::move(list));
  }();
  return words;
}

std::string_view export_target_of(std::string_view launcher) {
  const auto format = launch_format_words().find(launcher);
  if (!format) return {};
  for (const Target& each : targets())
    if (each.program == engine_of(static_cast<LaunchFormat>(*format))) return each.name;
  return {};
}

LaunchExport export_launch(const Scenario& scenario, std::string_view target) {
  const auto place = export_target_words().find(target);
  SPILLWAY_ASSERT(place.has_value());
  return Exporter(scenario, targets()[*place]).take();
}

}  // namespace spillway::launch
