#include "launch/launch_import.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include <fmt/format.h>

#include "base/input_error.h"
#include "base/named_file.h"
#include "hwprofiles/profile_library.h"
#include "launch/launch_compose.h"
#include "launch/launch_facts.h"
#include "launch/launch_ledger.h"
#include "launch/launch_model.h"
#include "models/spec/training_setup.h"
#include "scenario/scenario.h"
#include "scenario/scenario_fields.h"

namespace spillway::launch {
namespace {

constexpr std::string_view one_gpu = "h100-80gb-1gpu", many_gpus = "dgx-h100";

class Importer {
 public:
  explicit Importer(const ImportRequest& request) : request_(request), ledger_(read_launch(request.launch)) {}

  LaunchImport take() {
    for (const LaunchFormat whose : {ledger_.launcher(), ledger_.program()})
      for (const LaunchDefault& each : launch_defaults())
        if (each.format == whose && (each.dialect == Dialect::any || each.dialect == ledger_.dialect()))
          ledger_.assume(each.fact, std::string(each.value), each.why);
    compose_kernels(ledger_);
    compose_adapters(ledger_);
    compose_layout(ledger_, machines());
    choose_model();
    compose_deepspeed(ledger_, model_.spec.hidden);
    compose_batches(ledger_, model_.layers > 0 ? model_.layers : model_.spec.layers);
    compose_tower(ledger_, model_.spec);
    choose_dropout();
    choose_hardware();
    choose_autocast();
    LaunchImport made;
    made.unstated = unstated();
    made.unsayable = ledger_.unsayable();
    made.scenario = scenario_text(made);
    if (model_.is_new) {
      made.model_file = model_.name;
      made.model = model_text(model_.spec);
      try {
        static_cast<void>(parse_model(made.model, made.model_file));
      } catch (const InputError& error) {
        throw InputError(request_.launch.paths.front(), "",
                         "the sizes make no model: " + error.place() + ": " + error.cause(),
                         "correct them, or name the model: --model NAME");
      }
    }
    check(made.scenario);
    ledger_.account(made);
    return made;
  }

 private:
  [[nodiscard]] MachineGpus machines() const {
    if (request_.machine.empty()) return {};
    const HardwareProfile hardware = ProfileLibrary::shared().load_system(request_.machine);
    return {hardware.total_gpus(), hardware.gpu_count};
  }

  void choose_model() {
    const std::int64_t t = ledger_.number_or("model.tensor_parallel", 1);
    if (!request_.model.empty()) {
      model_ = {.name = whole_model_name(request_.model), .spec = find_model(request_.model)};
      leave_out_shape("--model says the model");
    } else if (trains_another_kind()) {
      throw InputError(
          request_.launch.paths.front(), "",
          "its sizes are not a GPT's" + (ledger_.script().empty() ? "" : ": the program is " + ledger_.script()),
          "give --model NAME or its file");
    } else if (auto found = model_of(ledger_, t)) {
      model_ = std::move(*found);
    } else {
      throw InputError(request_.launch.paths.front(), "", "it does not say which model is trained",
                       "give --model NAME: one of `spillway list models`, or a file");
    }
    if (model_.is_new) model_.name = request_.model_file.empty() ? "model.json" : request_.model_file;
    ledger_.set("model.name", model_.name, request_.model.empty() ? "its shape" : "--model");
    if (model_.layers > 0) ledger_.set("model.layers", std::to_string(model_.layers), "--num-layers");
  }

  // Megatron-LM's other programs, whose flags for sizes mean other models.
  [[nodiscard]] bool trains_another_kind() const {
    if (ledger_.is_on(facts::other_kind)) return true;
    if (ledger_.program() != LaunchFormat::megatron || ledger_.says(facts::hybrid_layers)) return false;
    for (const std::string_view kind : {"bert", "t5", "mamba", "hybrid", "vision", "vlm", "retro", "ict"})
      if (ledger_.script().find(kind) != std::string::npos) return true;
    return false;
  }

  void leave_out_shape(const std::string& reason) {
    for (const LaunchFlag& row : launch_flags())
      if (row.key == "model.name" && !row.fact.empty()) ledger_.leave_out(row.fact, IgnoreReason::overridden, reason);
  }

  // Megatron-LM has two, a scenario one for both: of a bundled model the residual's.
  void choose_dropout() {
    if (ledger_.program() != LaunchFormat::megatron || model_.is_new) return;
    const std::string residual = *ledger_.text(facts::hidden_dropout);
    const std::string attention = *ledger_.text(facts::attention_dropout);
    const auto value = [](const std::string& text) { return std::strtod(text.c_str(), nullptr); };
    ledger_.set("model.dropout", residual, "Megatron-LM's default");
    const bool is_its_own = value(residual) == model_.spec.dropout;
    if (value(attention) == (is_its_own ? model_.spec.attention_dropout : value(residual))) return;
    const std::string reason = fmt::format("model.dropout counts for both and is {}", residual);
    if (!ledger_.says(facts::attention_dropout)) ledger_.warn("attention's dropout: " + reason);
    ledger_.leave_out(facts::attention_dropout, IgnoreReason::not_said, reason);
  }

  void choose_hardware() {
    if (!request_.machine.empty()) {
      const std::string here = std::filesystem::current_path().string();
      return ledger_.set("hardware.profile", name_seen_from(here, request_.machine), "--on");
    }
    std::int64_t gpus = whole_number(ledger_.chosen("model.data_parallel").value_or("1")).value_or(1);
    for (const char* key : {"model.tensor_parallel", "model.context_parallel", "model.pipeline_parallel"})
      gpus *= ledger_.number_or(key, 1);
    ledger_.set("hardware.profile", std::string(gpus > 1 ? many_gpus : one_gpu),
                "a launch names no machine; --on MACHINE does");
  }

  // Trainers' mixed precision without shards is torch.autocast over weights in fp32; frozen ones where they are loaded
  // so.
  void choose_autocast() {
    const LaunchFormat program = ledger_.program();
    if (program != LaunchFormat::hf && program != LaunchFormat::litgpt && program != LaunchFormat::foundry) return;
    if (!ledger_.chosen("model.precision")) return;
    const bool has_adapters = ledger_.chosen("model.trainable").value_or("full") != "full";
    if (has_adapters && ledger_.text(facts::weights_type) != "fp32") return;
    try {
      if (may_autocast(parse_scenario(scenario_text({}), "", "").training, model_.spec))
        ledger_.set("model.autocast", "true", "mixed precision without shards casts fp32 weights where they are used");
      else if (has_adapters)
        ledger_.leave_out(facts::weights_type, IgnoreReason::adds, "frozen weights are in 16 bits or fewer here");
    } catch (const InputError&) {
      return;  // check() says it with its place
    }
  }

  // What memory hangs on most, where no flag and no default of the framework's says it.
  [[nodiscard]] std::vector<UnstatedKey> unstated() const {
    std::vector<UnstatedKey> open;
    for (const char* key : {"model.micro_batch", "model.sequence", "model.precision"})
      if (!ledger_.chosen(key))
        open.push_back({key, ledger_.is_left_open(key) ? "auto, and nothing says it" : "the launch doesn't say it"});
    if (model_.spec.tower != nullptr && says_images())
      open.push_back({"model.images", "how many images a sequence has is in the data"});
    const bool has_recipe =
        ledger_.launcher() == LaunchFormat::bridge || ledger_.launcher() == LaunchFormat::torchtitan;
    if (has_recipe && ledger_.says(facts::recipe))
      open.push_back({"recipe", "what " + ledger_.setting_of(facts::recipe).value + " sets is not read"});
    if (!model_.states_vocabulary) open.push_back({"model.name", "the launch doesn't say its vocabulary"});
    return open;
  }

  [[nodiscard]] bool says_images() const {
    return ledger_.says(facts::frozen_tower) || ledger_.says(facts::frozen_projector) ||
           ledger_.says(facts::image_pixels);
  }

  // Keys in the order in which a scenario describes them.
  [[nodiscard]] std::string scenario_text(const LaunchImport& made) const {
    nlohmann::ordered_json head = {{"schema", "spillway-scenario"}, {"version", scenario_version}};
    head["title"] = fmt::format("{}, from {}", model_.spec.title,
                                std::filesystem::path(request_.launch.paths.front()).filename().string());
    std::string text = head.dump();
    const auto& chosen = ledger_.all_chosen();
    for (const FieldRow& row : scenario_rows()) {
      const auto found = chosen.find(row.path);
      if (found == chosen.end()) continue;
      const bool is_text =
          row.kind == FieldKind::text || row.kind == FieldKind::word || row.kind == FieldKind::word_or_file;
      std::string assignment = row.path + "=";
      assignment += is_text ? nlohmann::ordered_json(found->second).dump() : found->second;
      text = with_setting(text, assignment);
    }
    ImportedFrom from{.launcher = std::string(launch_format_words()[ledger_.program()].name),
                      .open = {},
                      .unsayable = made.unsayable};
    for (const UnstatedKey& each : made.unstated)
      if (each.key != "model.name" || model_.is_new) from.open.push_back(each.key);
    return with_import(text, from);
  }

  // As `spillway run` would, with the launch's places in what is wrong.
  void check(const std::string& text) const {
    try {
      const Scenario scenario = parse_scenario(text, "", "");
      ModelSpec spec = model_.spec;
      if (scenario.layers > 0) spec.layers = scenario.layers;
      static_cast<void>(resolve(scenario.training, spec));
    } catch (const InputError& error) {
      std::string key = error.place();
      std::replace(key.begin(), key.end(), '/', '.');
      if (key.starts_with('.')) key.erase(0, 1);
      const std::string path = key.starts_with("model.") ? key : "model." + key;
      if (const auto place = ledger_.place_of_key(path))
        throw InputError(place->first, place->second, error.cause(), error.remedy());
      throw InputError(request_.launch.paths.front(), key, error.cause(), error.remedy());
    }
  }

  const ImportRequest& request_;
  LaunchLedger ledger_;
  LaunchModel model_;
};

}  // namespace

LaunchImport import_launch(const ImportRequest& request) { return Importer(request).take(); }

}  // namespace spillway::launch
