#include "scenario/scenario_run.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "base/field_setter.h"
#include "base/input_error.h"
#include "base/log.h"
#include "base/parallel.h"
#include "base/read_file.h"
#include "models/cost/collective_time.h"
#include "models/cost/cost_model.h"
#include "models/cost/token_exchange.h"
#include "models/pipeline/named_schedules.h"
#include "models/pipeline/pipeline_json.h"
#include "models/spec/model_spec.h"
#include "models/spec/tower.h"
#include "models/spec/trainable.h"
#include "models/spec/training_setup_fields.h"
#include "models/step/operator_list.h"
#include "models/step/trace_generator.h"
#include "planners/offload/lifetimes.h"
#include "planners/pipeline/pipeline_executor.h"
#include "planners/technique/technique_table.h"
#include "scenario/evaluation.h"
#include "scenario/evaluator.h"
#include "scenario/idle_edits.h"
#include "scenario/load_and_save.h"
#include "scenario/relaxation_setting.h"
#include "scenario/relaxed_hardware.h"
#include "scenario/reserve.h"
#include "scenario/slowest_rank.h"
#include "scenario/step_phases.h"
#include "sim/replay/captured_step.h"
#include "sim/replay/late_frees.h"
#include "sim/replay/unprofiled_step.h"
#include "traces/trace_link.h"

namespace spillway::scenario {
namespace {

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> found(1);
  for (const char raw : text) {
    const auto c = static_cast<unsigned char>(raw);
    if (std::isalnum(c) != 0)
      found.back() += static_cast<char>(std::tolower(c));
    else if (!found.back().empty())
      found.emplace_back();
  }
  if (found.back().empty()) found.pop_back();
  return found;
}

// Numbers of models, and the form factors that drivers name: cards and bridges, not modules ("NVIDIA H100 PCIe", but
// "NVIDIA H100 80GB HBM3" for SXM5).
bool must_occur(const std::string& word) {
  if (word == "pcie" || word == "nvl") return true;
  const bool digit = std::any_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  return digit && !word.ends_with("gb") && word.rfind("sxm", 0) != 0;
}

void add_origin(LoadedScenario& loaded, std::string name, std::string value, const Origin& origin) {
  loaded.provenance.push_back(
      {std::move(name), std::move(value), std::string(provenance_name(origin.provenance)), origin.source});
}

void log_profile(std::string_view name, std::string_view reason) {
  if (is_verbose()) log_choice("profile", fmt::format("{} ({})", name, reason));
}

void apply_overrides(const Scenario& scenario, HardwareProfile& hardware) {
  for (const auto& [path, text] : scenario.hardware_overrides) {
    try {
      apply_override(hardware, path, text);
    } catch (const InputError& error) {
      throw InputError(scenario.path, "/hardware/set/" + path, error.cause(), error.remedy());
    }
  }
}

void note_hardware(LoadedScenario& loaded) {
  for (const ProfileLeaf& leaf : leaves_of(loaded.hardware)) {
    constexpr std::array shown = {std::string_view("gpu.memory"),          std::string_view("gpu.memory_bandwidth"),
                                  std::string_view("gpu.launch_to_start"), std::string_view("gpu.kernel_gap"),
                                  std::string_view("gpu.context_memory"),  std::string_view("host.dispatch_cost")};
    if (std::find(shown.begin(), shown.end(), leaf.path) != shown.end())
      add_origin(loaded, leaf.path, leaf.value + (leaf.unit.empty() ? "" : " " + leaf.unit), leaf.origin);
  }
}

void note_trainable(LoadedScenario& loaded, const ModelSpec& model, const TrainingSetup& setup) {
  if (setup.trains_all() && setup.images == 0) return;
  const TrainableCounts counts = trainable_counts(model, setup);
  add_origin(loaded, "model.trainable",
             fmt::format("{} of {} parameters ({:.4g} %)", counts.trained, counts.all,
                         100 * static_cast<double>(counts.trained) / static_cast<double>(counts.all)),
             {.source = "counted: what the scenario trains of its model's shape"});
}

// What the optimizer's time and place on the CPU rest on.
void note_host_update(LoadedScenario& loaded, StateDevice device) {
  constexpr std::array shown = {std::string_view("host.cpu_adam_parameters_per_second"),
                                std::string_view("host.dram_bandwidth"), std::string_view("host.cores"),
                                std::string_view("host.dram")};
  for (const ProfileLeaf& leaf : leaves_of(loaded.hardware))
    if (std::find(shown.begin(), shown.end(), leaf.path) != shown.end())
      add_origin(loaded, leaf.path, leaf.value + (leaf.unit.empty() ? "" : " " + leaf.unit), leaf.origin);
  if (!loaded.hardware.host.cpu_adam_parameters_per_second)
    loaded.warnings.push_back(
        "the host's profile doesn't say how fast Adam runs on its CPU: its DRAM bandwidth and "
        "cores are gone by (host.cpu_adam_parameters_per_second)");
  if (device == StateDevice::drives && loaded.hardware.drives.empty() && loaded.scenario.offload.drives.empty())
    throw InputError(loaded.scenario.path, "/model/optimizer_device", loaded.hardware.name + " has no drives",
                     "name some: --set offload.drives=samsung-990-pro-2tb");
}

constexpr const char* machine_of_unknown = "h100-80gb-1gpu";

void find_hardware(LoadedScenario& loaded, const ProfileLibrary& library) {
  const Scenario& scenario = loaded.scenario;
  std::string source = scenario.captured_on;
  if (source.empty() && !loaded.trace.devices.empty()) {
    const Device& device = loaded.trace.devices.front();
    source = match_gpu(library, loaded.trace.strings.text(device.name), device.memory);
    if (!source.empty() && is_verbose())
      log_choice("profile", fmt::format("{}, which fits the capture's device '{}'", source,
                                        loaded.trace.strings.text(device.name)));
    if (source.empty())
      loaded.warnings.push_back("no GPU profile fits the capture's device '" +
                                std::string(loaded.trace.strings.text(device.name)) + "'");
  }
  const std::string target = !scenario.hardware.empty() ? scenario.hardware : source;
  if (target.empty()) {
    loaded.hardware = library.load_system(machine_of_unknown);
    loaded.warnings.push_back(
        "the capture names no GPU spillway knows: its own durations are replayed, and no memory "
        "limit is checked (name one: hardware.profile)");
    loaded.options.memory.capacity = Bytes(0);
    return;
  }
  loaded.hardware = library.load_system(target);
  if (!scenario.hardware.empty()) log_profile(target, "hardware.profile");
  if (!scenario.captured_on.empty()) log_profile(scenario.captured_on, "what the trace was captured on");
  const GpuProfile recorded = library.load_gpu(source.empty() ? loaded.hardware.gpu.name : source);
  apply_overrides(scenario, loaded.hardware);
  loaded.options.speed = speed_between(recorded, loaded.hardware.gpu);
  loaded.options.memory.capacity = loaded.hardware.gpu.memory.value - loaded.hardware.gpu.context_memory.value;
  note_hardware(loaded);
}

Precision peak_precision(TrainingPrecision precision) {
  switch (precision) {
    case TrainingPrecision::fp32:
      return Precision::fp32;
    case TrainingPrecision::tf32:
      return Precision::tf32;
    case TrainingPrecision::fp16_mixed:
      return Precision::fp16;
    case TrainingPrecision::fp8_mixed:
      return Precision::fp8;
    case TrainingPrecision::nvfp4_mixed:
      return Precision::fp4;
    case TrainingPrecision::bf16:
    case TrainingPrecision::bf16_mixed:
      return Precision::bf16;
  }
  return Precision::bf16;
}

constexpr std::uint64_t largest_plan = std::uint64_t{1} << 30;

// A schedule from a file, checked, and played through once at equal times to see that it comes to an end.
TrainingSetup with_schedule(TrainingSetup setup, const std::string& file, PipelinePlan plan) {
  plan.name = setup.pipeline_schedule = file;
  StageTimes equal;
  equal.positions = {{1, 1, 1, 1}};
  try {
    static_cast<void>(execute_plan(plan, equal));
  } catch (const InputError& error) {
    throw InputError(file, error.place(), error.cause(), error.remedy());
  }
  setup.pipeline_plan = std::make_shared<const PipelinePlan>(std::move(plan));
  return setup;
}

std::optional<Plan> plan_of(const Scenario& scenario) {
  if (scenario.plan.empty()) return std::nullopt;
  ByteSource source = ByteSource::open(scenario.plan, largest_plan);
  return read_plan(source);
}

TrainingSetup with_plan(const Scenario& scenario, const std::optional<Plan>& plan) {
  const std::string& file = scenario.training.pipeline_schedule;
  if (plan && plan->schedule) return with_schedule(scenario.training, scenario.plan, *plan->schedule);
  if (!file.ends_with(".json")) return scenario.training;
  return with_schedule(scenario.training, file, read_plan_json(read_file(file, largest_plan), file));
}

// Volta and Turing have no bf16: fp16's rate is what such a step could reach in fp16, and more than it would in bf16.
void warn_of_precision(LoadedScenario& loaded, TrainingPrecision precision) {
  const GpuProfile& gpu = loaded.hardware.gpu;
  const bool is_bf16 = precision == TrainingPrecision::bf16_mixed || precision == TrainingPrecision::bf16;
  if (!is_bf16 || gpu.peak_flops_per_second[static_cast<std::size_t>(Precision::bf16)]) return;
  loaded.warnings.push_back(
      gpu.title +
      " states no rate of bf16 arithmetic: timed as if in fp16; set model.precision=fp16_mixed, or "
      "give the rate in gpu.peak_flops.bf16");
}

// A vision tower that runs is told of. One that doesn't is held: frozen weights in 16 bits, whole on each GPU unless
// ZeRO 3 shares them out.
void hold_other_parts(LoadedScenario& loaded, const ModelSpec& model) {
  if (model.held_parameters == 0) return;
  if (const TrainingSetup& setup = loaded.setup; setup.images > 0)
    return add_origin(
        loaded, "model.images",
        fmt::format("{} of a sequence, {} of its {} tokens; the vision tower's {:.2f} B parameters run, trained: {}",
                    setup.images, setup.images * setup.image_tokens, setup.sequence,
                    1e-9 * static_cast<double>(model.held_parameters), to_string(setup.train_tower)),
        {.source = "counted: tokens of images are part of the sequence"});
  const std::string words = fmt::format("the vision tower's {:.2f} B parameters are held and not run",
                                        1e-9 * static_cast<double>(model.held_parameters));
  const bool would_train = loaded.scenario.training.train_tower != TrainTower::frozen;
  loaded.warnings.push_back("text only: " + words + (would_train ? ": model.images says how many it would read" : ""));
  const std::int64_t shares = loaded.setup.zero_stage == 3 ? loaded.setup.data_parallel : 1;
  const Bytes held(2 * model.held_parameters / shares);
  loaded.reserve.parts = {{.name = "vision tower", .bytes = held, .provenance = "computed", .source = words}};
}

// step: the one that would be generated, where it is at hand.
void load_generated(LoadedScenario& loaded, const ModelSpec& given, const ScenarioMachine& machine,
                    const std::optional<Plan>& plan, std::optional<Trace> step = std::nullopt) {
  const Scenario& scenario = loaded.scenario;
  loaded.hardware = machine.hardware;
  const ModelSpec model = with_layers(scenario, given);
  const TrainingSetup setup = loaded.setup = resolve(with_plan(scenario, plan), model);
  const HardwareProfile& hardware = loaded.hardware;
  if (setup.gpus() > hardware.total_gpus())
    loaded.warnings.push_back("the set-up takes " + std::to_string(setup.gpus()) + " GPUs, " + hardware.name + " has " +
                              std::to_string(hardware.total_gpus()) + ": more machines like it are assumed");
  loaded.warnings.insert(loaded.warnings.end(), model.notes.begin(), model.notes.end());
  hold_other_parts(loaded, model);
  warn_of_precision(loaded, setup.precision);
  loaded.trace = step ? std::move(*step) : generate_trace(model, setup, machine.cost, machine.cluster);
  if (setup.evaluate_every > 0) loaded.evaluation = evaluation_traces(model, setup, machine);
  hold_phases(loaded, model, machine);
  loaded.between_steps = load_and_save(model, setup, machine.hardware.gpu_count);
  loaded.options.memory.capacity = loaded.hardware.gpu.memory.value - loaded.hardware.gpu.context_memory.value;
  loaded.layers = chunked_layers(model, setup);
  loaded.options.tokens_per_step = setup.step_tokens();
  loaded.options.ranks_run_ahead = !setup.step_barrier;
  // 6 flops per matmul parameter and token where all is trained, plus attention scores and context (causal: half),
  // forward and backward.
  const double tokens = static_cast<double>(loaded.options.tokens_per_step);
  double attention = 6.0 * static_cast<double>(half_squares_of_scores(model) * setup.document()) * tokens;
  if (setup.frozen_layers > 0)  // a third of it is forward
    attention *= 1 - 2.0 / 3 * static_cast<double>(setup.frozen_layers) / static_cast<double>(model.all_layers());
  const auto sequences = static_cast<double>(setup.step_sequences());
  loaded.options.model_flops_per_step =
      product_flops_per_token(model, setup) * tokens + attention + tower_flops(model, setup) * sequences;
  note_trainable(loaded, model, setup);
  const Maybe<double> peak = peak_flops_or_wider(loaded.hardware.gpu, peak_precision(setup.precision));
  if (peak) loaded.options.peak_flops_per_second = peak->value * static_cast<double>(setup.gpus());
  note_hardware(loaded);
  if (setup.optimizer_device != StateDevice::gpu) note_host_update(loaded, setup.optimizer_device);
}

RelativeSpeed times(const RelativeSpeed& a, const RelativeSpeed& b) {
  return {a.compute * b.compute, a.memory * b.memory, a.host * b.host, a.pcie * b.pcie, a.network * b.network};
}

void warn_of(LoadedScenario& loaded, const Finding& finding) {
  const std::string warning = finding.kind + " (" + std::to_string(finding.count) + "): " + finding.remedy;
  if (std::find(loaded.warnings.begin(), loaded.warnings.end(), warning) == loaded.warnings.end())
    loaded.warnings.push_back(warning);
}

// What the scenario says of the replay itself, and the trace's findings.
void set_options(LoadedScenario& loaded, const std::optional<Plan>& plan) {
  const Scenario& scenario = loaded.scenario;
  if (scenario.jitter.is_used()) {
    if (!wait_for_slowest(loaded.trace, scenario.jitter))
      loaded.warnings.push_back(
          "hardware.jitter: the trace doesn't say of all collectives what they wait for or of how many ranks they are; "
          "those don't wait for slower ranks");
    apply_jitter(loaded.trace, scenario.jitter);
    add_origin(loaded, "jitter", describe(scenario.jitter), {.source = "said by the scenario, not measured"});
  }
  loaded.options.speed = times(loaded.options.speed, scenario.what_if);
  if (scenario.what_if.pcie != 1)  // of transfers, too
    loaded.hardware = with_faster_links(loaded.hardware, std::min(scenario.what_if.pcie, endless));
  loaded.options.tie_order = TieOrder::parse(scenario.tie_order);
  loaded.options.memory.allocator = scenario.allocator;
  loaded.options.memory.settings = scenario.allocator_config;
  if (places_of(loaded) != nullptr) {  // without places yet nothing is fragmented
    loaded.options.memory.allocator = ideal_policy;
    loaded.options.memory.settings.clear();
  }
  if (!scenario.memory_plan.empty()) {
    ByteSource source = ByteSource::open(scenario.memory_plan, std::uint64_t{1} << 30);
    loaded.options.memory.plan = std::make_shared<const MemoryPlan>(read_memory_plan(source));
  }
  if (plan) apply_plan(loaded, *plan);
  std::optional<bool>& hooks = loaded.scenario.offload.hooks;
  if (!hooks) hooks = !loaded.trace.unprofiled_steps.empty();
  if (scenario.offload.moves()) prepare_for_offload(loaded);
  if (scenario.capacity_bytes) loaded.options.memory.capacity = Bytes(*scenario.capacity_bytes);
  keep_reserve(loaded);
  if (!loaded.scenario.model.empty()) loaded.options.gpus_alike = loaded.setup.gpus();
  for (const Finding& finding : loaded.trace.findings) warn_of(loaded, finding);
  for (std::string& idle : idle_edits(loaded)) loaded.warnings.push_back(std::move(idle));
}

// The scenario's drives in place of the machine's.
void set_drives(LoadedScenario& loaded, const ProfileLibrary& library) {
  const OffloadSettings& offload = loaded.scenario.offload;
  if (offload.drives.empty()) return;
  DriveGroup group;
  group.name = "offload";
  group.drive = library.load_nvme(offload.drives);
  log_profile(offload.drives, "offload.drives");
  group.count = offload.drives_per_machine;
  loaded.hardware.drives = {std::move(group)};
  assign_slots(loaded.hardware, true);
}

}  // namespace

Cluster cluster_of(const HardwareProfile& hardware) {
  const auto timer = [hardware](NetworkCollective kind, Bytes bytes, const GroupShape& group) {
    if (group.tokens.chosen > 0) return token_exchange_time(hardware, bytes, group).time;
    return collective_time(hardware, kind, bytes, group.ranks, group.per_machine, group.stride).time;
  };
  return {.gpus_per_machine = hardware.joined_gpus(), .timer = timer, .gpus_per_host = hardware.gpu_count};
}

HardwareProfile hardware_of(const Scenario& scenario) {
  HardwareProfile hardware = [&] {
    try {
      log_profile(scenario.hardware, "hardware.profile");
      return ProfileLibrary::shared().load_system(scenario.hardware);
    } catch (const InputError& error) {
      if (!error.file().empty() && !error.place().empty()) throw;  // in the profile's own file
      throw InputError(scenario.path, "/hardware/profile", scenario.hardware + ": " + error.cause(), error.remedy());
    }
  }();
  apply_overrides(scenario, hardware);
  return hardware;
}

std::string match_gpu(const ProfileLibrary& library, std::string_view device_name, Bytes device_memory) {
  const std::vector<std::string> device = words(device_name);
  const auto has = [&](const std::string& word) {
    return std::find(device.begin(), device.end(), word) != device.end();
  };
  std::string best;
  std::size_t best_score = 0;
  for (const ProfileEntry& entry : library.list()) {
    if (entry.kind != ProfileKind::gpu) continue;
    std::size_t score = 0;
    bool fits = true;
    for (const std::string& word : words(entry.name)) {
      if (has(word))
        ++score;
      else if (must_occur(word))
        fits = false;
    }
    if (!fits || score == 0) continue;
    const double memory = static_cast<double>(library.load_gpu(entry.name).memory.value.count());
    const double error = std::abs(memory / std::max(1.0, static_cast<double>(device_memory.count())) - 1);
    if (device_memory > Bytes(0) && error > 0.1) continue;
    if (score > best_score) {
      best = entry.name;
      best_score = score;
    }
  }
  return best;
}

ModelSpec with_layers(const Scenario& scenario, ModelSpec model) {
  model.mtp_layers = scenario.training.mtp_layers;
  if (model.mtp_layers > 0)  // what a configuration left out of it
    std::erase_if(model.notes, [](const std::string& note) { return note.find("multi-token") != std::string::npos; });
  if (scenario.layers == 0) return model;
  if (model.has_encoder())
    throw InputError(scenario.path, "/model/layers",
                     model.title + " has layers of two kinds, an encoder's and a decoder's",
                     "write a model file with the layers you mean");
  model.layers = scenario.layers;
  return model;
}

LoadedScenario load(const Scenario& scenario, const ReadOptions& read) {
  if (!scenario.model.empty()) return load(scenario, find_model(scenario.model));
  return load_captured(scenario, read_captured(scenario, read));
}

// A list of operators on the machine that the scenario names.
static Trace priced(const Scenario& scenario) {
  if (scenario.hardware.empty())
    throw InputError(scenario.trace, "", "a list of operators has no times, and no machine is named to run on",
                     "name one: --on h100, or hardware.profile");
  const HardwareProfile hardware = hardware_of(scenario);
  if (hardware.total_gpus() > 1)
    throw InputError(
        scenario.trace, "",
        fmt::format("its operators are those of one GPU, and {} has {}", hardware.name, hardware.total_gpus()),
        "name a machine of one, as in --on h100");
  return priced_step(read_operator_list(scenario.trace), CostModel(hardware));
}

Trace read_captured(const Scenario& scenario, const ReadOptions& read) {
  if (is_operator_list(scenario.trace)) return priced(scenario);
  Trace trace = read_trace(scenario.trace, read);
  if (!scenario.execution_trace.empty())
    trace = link_traces(std::move(trace), read_trace(scenario.execution_trace, read));
  if (trace.unprofiled_steps.empty()) return trace;
  // Its own durations are replayed, so that the machine only has to have links.
  return at_unprofiled_speed(std::move(trace), ProfileLibrary::shared().load_system(machine_of_unknown));
}

LoadedScenario load_captured(const Scenario& scenario, Trace captured) {
  LoadedScenario loaded;
  loaded.scenario = scenario;
  loaded.trace = std::move(captured);
  const ProfileLibrary& library = ProfileLibrary::shared();
  if (is_priced(loaded.trace)) {
    loaded.hardware = hardware_of(scenario);
    loaded.options.memory.capacity = loaded.hardware.gpu.memory.value - loaded.hardware.gpu.context_memory.value;
    note_hardware(loaded);
  } else {
    find_hardware(loaded, library);
  }
  set_drives(loaded, library);
  const std::optional<Plan> plan = plan_of(scenario);
  if (plan && plan->schedule)
    throw InputError(scenario.plan, "/schedule", "a captured step has the schedule it has",
                     "plan the schedule of a generated step");
  set_options(loaded, plan);
  return loaded;
}

LoadedScenario load(const Scenario& scenario, const ModelSpec& model) {
  return load(scenario, model, ScenarioMachine(hardware_of(scenario)));
}

// As the step runs without a technique: what that moves comes back when it did.
static void give_back_late(LoadedScenario& loaded) {
  ReplayOptions options = loaded.options;
  options.memory = {.allocator = std::string(ideal_policy), .detail = Detail::clock};
  options.collective_places = places_of_nccl;
  const Result times = replay(loaded.trace, loaded.hardware, options);
  add_late_frees(loaded.trace, times.op_start, times.op_end);
}

static LoadedScenario load_with(const Scenario& scenario, const ModelSpec& model, const ScenarioMachine& machine,
                                std::optional<Trace> step) {
  LoadedScenario loaded;
  loaded.scenario = scenario;
  const std::optional<Plan> plan = plan_of(scenario);
  load_generated(loaded, model, machine, plan, std::move(step));
  set_drives(loaded, ProfileLibrary::shared());
  set_options(loaded, plan);
  if (scenario.record_streams) give_back_late(loaded);
  return loaded;
}

LoadedScenario load(const Scenario& scenario, const ModelSpec& model, const ScenarioMachine& machine) {
  return load_with(scenario, model, machine, std::nullopt);
}

LoadedScenario load(const Scenario& scenario, const ModelSpec& model, const ScenarioMachine& machine, Trace step) {
  return load_with(scenario, model, machine, std::move(step));
}

Trace generated_step(const Scenario& scenario, const ModelSpec& model, const ScenarioMachine& machine) {
  const ModelSpec layered = with_layers(scenario, model);
  return generate_trace(layered, resolve(with_plan(scenario, plan_of(scenario)), layered), machine.cost,
                        machine.cluster);
}

std::string machine_key(const Scenario& scenario) {
  std::string key = scenario.hardware;
  for (const auto& [path, text] : scenario.hardware_overrides) key += fmt::format("\n{}={}", path, text);
  return key;
}

std::string step_key(const Scenario& scenario) {
  if (scenario.model.empty())  // what a list of operators takes depends on the machine
    return fmt::format("capture\n{}\n{}\n{}", scenario.trace, scenario.execution_trace,
                       is_operator_list(scenario.trace) ? machine_key(scenario) : "");
  TrainingSetup training = scenario.training;  // visitors may change what they visit; this one does not
  FieldTexts texts;
  describe(training, texts);
  return fmt::format("{}\n{}\n{}\n{}\n{}", scenario.model, scenario.layers, texts.take(), scenario.plan,
                     machine_key(scenario));
}

void prepare_for_offload(LoadedScenario& loaded) {
  if (!loaded.scenario.model.empty() || ties_uses_to_memory(loaded.trace)) return;
  const bool recorded = loaded.trace.has(Capability::uses);
  if (!recorded && loaded.scenario.offload.technique == streaming_word)
    throw InputError(loaded.scenario.trace, "uses", "the capture doesn't show weights and optimizer state as tensors",
                     "stream them in a generated step, or join the capture with an ExecutionTrace of the same step");
  // SSDTrain's rule moves activations alone and computes nothing again.
  loaded.trace = captured_step(std::move(loaded.trace), "offloading a captured step",
                               loaded.scenario.offload.technique != ssdtrain_word);
  for (const char* kind : {"uses_inferred", "memory_from_uses"})
    if (const Finding* finding = loaded.trace.finding(kind)) warn_of(loaded, *finding);
  const bool from_uses = recorded && !loaded.trace.is_inferred(Capability::uses);
  loaded.provenance.push_back({from_uses ? "trace.memory" : "trace.uses", "inferred", "assumed",
                               from_uses ? "lifetimes of tensors as far as ops use them, no workspaces"
                                         : "uses from the lifetimes of memory blocks and phases"});
}

// Its fates tell when tensors leave, and not that another stage's GPU holds them meanwhile.
void refuse_peers(const Scenario& scenario, const Plan& plan) {
  if (!plan.fates) return;
  for (const NamedSchedule& named : named_schedules())
    if (named.moves == ScheduleMoves::to_peer && named.name == plan.fates->technique)
      throw InputError(scenario.plan, "/fates/technique",
                       plan.fates->technique + " keeps activations on another stage's GPU, which a plan doesn't tell",
                       "run the schedule itself: model.pipeline_schedule, without the plan");
}

void apply_plan(LoadedScenario& loaded, const Plan& plan) {
  refuse_peers(loaded.scenario, plan);
  Plan parts = plan;
  parts.schedule.reset();
  // The uses of a capture may be inferred yet, from what the order moves.
  if (parts.order && loaded.scenario.model.empty()) {
    loaded.trace = reordered(loaded.trace, *parts.order);
    parts.order.reset();
  }
  const auto refuse = [&](const char* place) {
    throw InputError(
        loaded.scenario.plan, place, "the plan was made for another trace",
        "make it again from this scenario: `spillway run --plan-output FILE`, `spillway plan order` or `plan offload`");
  };
  if (parts.fates) prepare_for_offload(loaded);
  const std::uint64_t digest = parts.fates || parts.order ? digest_of_works(loaded.trace) : 0;
  if (parts.order && parts.order->digest != digest) refuse("/order/digest");
  if (parts.fates && parts.fates->digest != digest &&
      !(parts.order && parts.fates->digest == digest_of_works(reordered(loaded.trace, *parts.order))))
    refuse("/fates/digest");
  MemoryReplayOptions& memory = loaded.options.memory;
  if (loaded.scenario.allocator_named || memory.plan != nullptr) parts.memory.clear();
  if (!parts.memory.empty()) {
    memory.allocator = ideal_policy;  // until they are followed
    memory.settings.clear();
  }
  loaded.plan = std::make_shared<const Plan>(std::move(parts));
}

const Technique* places_of(const LoadedScenario& loaded) {
  if (loaded.plan && !loaded.plan->memory.empty()) return nullptr;
  const Technique* row = technique_said(allocator_key, loaded.scenario.allocator);
  return row == nullptr || row->make == nullptr ? nullptr : row;
}

ScenarioRun run_traced(const LoadedScenario& loaded) { return Evaluator(loaded).take_run(); }

Result run(const LoadedScenario& loaded) { return Evaluator(loaded).take_run().result; }

namespace {

struct RelaxedSpeed {
  const char* name;
  const char* setting;
  RelativeSpeed factor;
  std::array<Binding, 2> bindings;  // on the critical path
};
constexpr const char *endless_links = "links infinitely fast", *endless_drives = "drives infinitely fast";
constexpr RelaxedSpeed relaxed_speeds[] = {
    {"GPU arithmetic x2", "what_if.compute", {.compute = relaxation_factor}, {Binding::compute, Binding::compute}},
    {"GPU memory bandwidth x2", "what_if.memory", {.memory = relaxation_factor}, {Binding::hbm, Binding::hbm}},
    {"host x2", "what_if.host", {.host = relaxation_factor}, {Binding::host, Binding::launch_latency}},
    {"PCIe x2", "what_if.pcie", {.pcie = relaxation_factor}, {Binding::pcie, Binding::pcie}},
    {"communication x2", "what_if.network", {.network = relaxation_factor}, {Binding::network, Binding::network}},
    {"whole GPU x2",
     "what_if.gpu",
     {.compute = relaxation_factor, .memory = relaxation_factor},
     {Binding::compute, Binding::hbm}}};

}  // namespace

std::string setting_of_relaxation(std::string_view resource) {
  for (const RelaxedSpeed& speed : relaxed_speeds)
    if (resource == speed.name) return speed.setting;
  return {};
}

double path_share_of_relaxation(std::string_view resource, const Result& result) {
  std::array<Binding, 2> bindings = {Binding::pcie, Binding::pcie};
  if (resource == endless_drives) bindings = {Binding::storage, Binding::storage};
  for (const RelaxedSpeed& speed : relaxed_speeds)
    if (resource == speed.name) bindings = speed.bindings;
  const auto time = [&result](Binding binding) {
    return to_seconds(result.breakdown[static_cast<std::size_t>(binding)]);
  };
  const double whole = to_seconds(result.replayed);
  const double of_these = time(bindings[0]) + (bindings[0] == bindings[1] ? 0 : time(bindings[1]));
  return whole > 0 ? of_these / whole : 0;
}

std::vector<Relaxation> explain(const LoadedScenario& loaded, const Result& unrelaxed) {
  struct Case {
    const char* name;
    RelativeSpeed factor;
    std::optional<HardwareProfile> hardware{};
  };
  std::vector<Case> cases;
  for (const RelaxedSpeed& speed : relaxed_speeds) cases.push_back({speed.name, speed.factor});
  // As what_if.pcie does: of copies that are transfers, too.
  for (Case& one : cases)
    if (one.factor.pcie != 1) one.hardware = with_faster_links(loaded.hardware, one.factor.pcie);
  const auto has_states_on = [&setup = loaded.setup](StateDevice device) {
    return setup.optimizer_device == device || setup.weight_device == device;
  };
  const bool uses_drives = loaded.offloads() || has_states_on(StateDevice::drives);
  if (uses_drives || has_states_on(StateDevice::cpu))
    cases.push_back({endless_links, {}, with_faster_links(loaded.hardware, endless)});
  if (uses_drives && !loaded.hardware.drives.empty())
    cases.push_back({endless_drives, {}, with_endless_drives(loaded.hardware)});
  // Other phases than the training stay as they are.
  const Picos beside = unrelaxed.phases.empty() ? Picos(0) : unrelaxed.step_time - unrelaxed.phases.back().time;
  std::vector<Relaxation> relaxations(cases.size());
  in_parallel(cases.size(), [&](std::size_t i) {
    ReplayOptions options = loaded.options;
    options.memory.capacity = unrelaxed.memory.limit;
    options.speed = times(options.speed, cases[i].factor);
    const Result result = run_on(loaded, cases[i].hardware ? *cases[i].hardware : loaded.hardware, options);
    const Picos now = beside + result.step_time;
    const double before = to_seconds(unrelaxed.step_time);
    relaxations[i] = {cases[i].name, now, before > 0 ? 1 - to_seconds(now) / before : 0};
  });
  return relaxations;
}

}  // namespace spillway::scenario
