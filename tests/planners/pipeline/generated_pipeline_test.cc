// Steps generated from models under every pipeline schedule, against the plans they follow.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/input_error.h"
#include "models/pipeline/chunk_passes.h"
#include "models/pipeline/pipeline_json.h"
#include "models/spec/pipeline_setup.h"
#include "models/step/parallel_trace.h"
#include "models/step/stage_program.h"
#include "planners/offload/tier_rates.h"
#include "planners/pipeline/pipeline_executor.h"
#include "planners/pipeline/pipeline_memory.h"
#include "scenario/scenario_run.h"
#include "sim/replay/replay.h"
#include "tests/models/example_profile.h"

namespace spillway::scenario {
namespace {

// Kernels long enough for the host not to matter, a head and an embedding that cost next to nothing.
ModelSpec gpt(std::int64_t layers) {
  ModelSpec model = find_model("gpt2-small");
  model.layers = layers;
  model.hidden = 2048;
  model.heads = model.kv_heads = 16;
  model.head_dim = 128;
  model.feed_forward = 8192;
  model.vocabulary = 16;
  model.max_positions = 1024;
  model.tied_embeddings = false;  // the last stage would wait for the first one's gradient of the table
  return model;
}

TrainingSetup training(const std::string& schedule, std::int64_t p, std::int64_t m) {
  TrainingSetup setup{.micro_batch = 16,
                      .sequence = 1024,
                      .gradient_accumulation = m,
                      .optimizer = OptimizerKind::sgd,
                      .pipeline_parallel = p};
  setup.pipeline_schedule = schedule;
  return setup;
}

// 1 ps a transfer.
Cluster free_network() {
  return {8, [](NetworkCollective, Bytes, const GroupShape&) { return Picos(1); }};
}

std::vector<std::string> generated_names() {
  std::vector<std::string> names;
  for (const NamedSchedule& named : named_schedules()) {
    const std::string name(named.name);
    if (name != "seq1f1b" && name != "slimpipe") names.push_back(name);  // slices: further below
  }
  return names;
}

struct Stages {
  PipelinePlan plan;
  std::vector<StageProgram> programs;
  StageTimes times;
};

Stages record(const ModelSpec& model, const TrainingSetup& setup) {
  const HardwareProfile hardware = example_profile();
  const Cluster cluster = free_network();
  const CostModel cost(hardware);
  Stages stages{plan_of(setup), {}, {}};
  const ParallelLayout layout(setup, model, cluster.gpus_per_machine, stages.plan);
  for (std::int64_t stage = 0; stage < setup.pipeline_parallel; ++stage)
    stages.programs.push_back(record_stage(model, setup, cost, layout, cluster.timer, stage, stages.plan));
  for (const PipelinePlan::Place& place : stages.plan.routes.front()) {
    PassTimes times = pass_times(stages.programs[static_cast<std::size_t>(place.device)], place.chunk, hardware.gpu);
    stages.times.positions.push_back(times);
  }
  if (orders_by_measures(setup)) stages.plan = plan_of(setup, {.times = stages.times});
  return stages;
}

// Every schedule's step takes as long as its plan with the times of the recorded stages says, update aside: what is
// left are launches and the pauses between them. Where no stage waits for the others, as long as the longest stage.
TEST(GeneratedPipeline, StepsTakeAsLongAsTheirPlans) {
  const HardwareProfile hardware = example_profile();
  const ModelSpec model = gpt(16);
  for (const std::string& name : generated_names()) {
    const TrainingSetup setup = resolve(training(name, 4, 8), model);
    const Stages stages = record(model, setup);
    Trace trace = generate_parallel_trace(model, setup, CostModel(hardware), free_network());
    trace.check_invariants();
    Picos update{};
    for (std::size_t i = 0; i < trace.ops.size(); ++i)
      if (trace.ops.phase[i] == Phase::optimizer && trace.ops.kind[i] == OpKind::kernel &&
          trace.lanes[index_of(trace.ops.lane[i])].rank == 1)
        update += trace.ops.duration[i];
    const PipelineTimeline planned = execute_plan(stages.plan, stages.times);
    const auto ratio = [&](bool run_ahead, Ticks wanted) {
      ReplayOptions options;
      options.ranks_run_ahead = run_ahead;
      const Result result = replay(trace, hardware, options);
      return static_cast<double>((result.step_time - update).count()) / static_cast<double>(wanted);
    };
    EXPECT_NEAR(ratio(false, planned.makespan), 1, 0.02) << name;
    EXPECT_NEAR(ratio(true, planned.longest_span), 1, 0.02) << name;
  }
}

// Activations of a device's first to last pass, at most, of one more layer per chunk; in bytes.
std::vector<std::int64_t> activation_peaks_of(const Trace& trace, std::int64_t devices) {
  std::vector<std::int64_t> live(static_cast<std::size_t>(devices), 0), most = live;
  for (const MemoryEvent& event : trace.memory_events) {
    if (trace.tensors.role[index_of(event.tensor)] != TensorRole::activation) continue;
    auto& now = live[static_cast<std::size_t>(event.device)];
    if (event.action == MemoryAction::allocate) now += event.bytes.count();
    if (event.action == MemoryAction::free_requested) now -= event.bytes.count();
    auto& peak = most[static_cast<std::size_t>(event.device)];
    peak = std::max(peak, now);
  }
  return most;
}

std::vector<std::int64_t> layer_peaks(TrainingSetup setup, std::int64_t chunks) {
  setup.micro_batch = 1;
  setup.sequence = 64;
  setup.framework = Framework::megatron_2022;  // what was sent goes
  const std::int64_t devices = setup.pipeline_parallel, positions = devices * chunks;
  const auto peaks = [&](std::int64_t layers) {
    return activation_peaks_of(
        generate_parallel_trace(gpt(layers), setup, CostModel(example_profile()), free_network()), devices);
  };
  std::vector<std::int64_t> more = peaks(3 * positions);
  const std::vector<std::int64_t> less = peaks(2 * positions);
  for (std::size_t d = 0; d < more.size(); ++d) more[d] -= less[d];
  return more;
}

// Each device's peak is what the plan says: layers of so many micro-batches. (B gives back all but 14 of 34 bytes; what
// W keeps besides are gradients, no activations.)
TEST(GeneratedPipeline, PeaksAreThePlans) {
  const std::int64_t p = 4, m = 12;
  const std::int64_t layer = layer_peaks(training("1f1b", 2, 1), 1)[0];
  for (const std::string& name : generated_names()) {
    const TrainingSetup setup = resolve(training(name, p, m), gpt(16));
    const Stages stages = record(gpt(16), setup);
    const std::int64_t chunks = setup.pipeline_chunks;
    if (orders_by_measures(setup)) continue;  // other sizes, another order
    const std::vector<std::int64_t> peaks = layer_peaks(setup, chunks);
    ActivationRules rules;
    const double kept = static_cast<double>(14 * 64 * 2048) / static_cast<double>(layer);
    rules.weight_part = static_cast<std::int64_t>(kept * 1e6);
    const std::vector<double> planned = activation_peaks(stages.plan, execute_plan(stages.plan, stages.times), rules);
    for (std::size_t d = 0; d < planned.size(); ++d)
      EXPECT_NEAR(static_cast<double>(peaks[d]) / static_cast<double>(layer * chunks), planned[d], 0.01)
          << name << " " << d;
  }
}

// Qi et al. 2024: p M_B under ZB-H1 as under 1F1B, (2 p - 1) M_B under ZB-H2. ChronosPipe at p 4, m 8, v 2 (worked by
// hand): 3.5 micro-batches on the first device.
TEST(GeneratedPipeline, PublishedPeaks) {
  const std::int64_t layer = layer_peaks(training("1f1b", 2, 1), 1)[0];
  EXPECT_EQ(layer_peaks(training("1f1b", 4, 12), 1)[0], 4 * layer);
  EXPECT_EQ(layer_peaks(training("zb-h1", 4, 12), 1)[0], 4 * layer);
  EXPECT_EQ(layer_peaks(training("zb-h2", 4, 12), 1)[0], 7 * layer);
  EXPECT_EQ(layer_peaks(training("chronos", 4, 8), 2)[0], 7 * layer);  // half as large chunks
}

// Korthikanti et al. 2022: a layer keeps 34 s b h and the norms' statistics; Qi et al. 2024, section 2.1: W keeps 32.
TEST(GeneratedPipeline, WeightGradientsKeep32Of34) {
  TrainingSetup setup = training("zb-h1", 2, 4);
  setup.micro_batch = 2;
  setup.sequence = 128;
  setup.dropout = 0.1;
  setup.flash_attention = false;
  setup.framework = Framework::megatron_2022;
  setup = resolve(setup, gpt(4));
  const Stages more = record(gpt(6), setup), less = record(gpt(4), setup);
  const auto kept = [&](StageProgram::Part part) {
    return bytes_kept(more.programs[0], 0, part) - bytes_kept(less.programs[0], 0, part);
  };
  const std::int64_t sb = 128 * 2, h = 2048, square = 5 * 16 * 128 * sb;
  EXPECT_EQ(kept(StageProgram::Part::forward), 34 * sb * h + 16 * sb + square);
  EXPECT_EQ(kept(StageProgram::Part::forward) + kept(StageProgram::Part::backward), 32 * sb * h);
  EXPECT_EQ(kept(StageProgram::Part::weights), -32 * sb * h);
}

// A recomputed chunk keeps its input alone until R: one more layer in it keeps nothing more.
TEST(GeneratedPipeline, RecomputedChunksKeepTheirInput) {
  TrainingSetup setup = training("chronos", 4, 8);
  setup.recomputed_chunks = 1;
  const ModelSpec small = gpt(16), large = gpt(24);
  setup = resolve(setup, small);
  const Stages less = record(small, setup), more = record(large, setup);
  for (std::int64_t stage = 1; stage < 4; ++stage) {
    const auto& program = less.programs[static_cast<std::size_t>(stage)];
    EXPECT_EQ(bytes_kept(program, 0, StageProgram::Part::forward), 2 * 16 * 1024 * 2048);
    EXPECT_EQ(bytes_kept(more.programs[static_cast<std::size_t>(stage)], 0, StageProgram::Part::forward),
              2 * 16 * 1024 * 2048);
    EXPECT_GT(bytes_kept(program, 1, StageProgram::Part::forward), 30 * 16 * 1024 * 2048);
    EXPECT_EQ(pass_times(program, 0, example_profile().gpu).recompute,
              pass_times(program, 0, example_profile().gpu).forward);
  }
  // All recomputed, W split as well: the trace holds together, and every micro-batch does three forwards' worth.
  setup.recomputed_chunks = 2;
  setup.split_backward = true;
  Trace trace = generate_parallel_trace(small, setup, CostModel(example_profile()), free_network());
  trace.check_invariants();
  std::map<Phase, std::int64_t> flops;
  for (std::size_t i = 0; i < trace.ops.size(); ++i) flops[trace.ops.phase[i]] += trace.ops.flops[i].count();
  EXPECT_EQ(flops[Phase::recompute], flops[Phase::forward]);
}

// Split or whole, the same work is done; every tensor goes once, and is used only while it is there.
TEST(GeneratedPipeline, SplittingLosesNothing) {
  for (const std::int64_t zero_stage : {0, 1, 2, 3}) {
    std::map<std::string, std::int64_t> flops, ops;
    for (const std::string name : {"1f1b", "zb-h2"}) {
      TrainingSetup setup = training(name, 2, 6);
      setup.micro_batch = 2, setup.sequence = 128;
      setup.tensor_parallel = 2, setup.sequence_parallel = true;
      setup.data_parallel = 2, setup.zero_stage = zero_stage;
      setup.framework = zero_stage < 2 ? Framework::megatron_2022 : Framework::eager;
      Trace trace = generate_parallel_trace(gpt(4), setup, CostModel(example_profile()), free_network());
      trace.check_invariants();
      std::vector<int> state(trace.tensors.size(), 0);
      for (const MemoryEvent& event : trace.memory_events) {
        int& now = state[index_of(event.tensor)];
        EXPECT_EQ(now, event.action == MemoryAction::allocate ? 0 : 1);
        ++now;
      }
      for (std::size_t i = 0; i < trace.ops.size(); ++i) flops[name] += trace.ops.flops[i].count();
    }
    EXPECT_EQ(flops["1f1b"], flops["zb-h2"]);
  }
}

// Both directions hold the model, so each device's weights are there twice, and their gradients are summed.
TEST(GeneratedPipeline, DirectionsHoldTheWeightsTwice) {
  std::map<std::string, std::int64_t> weights, sums;
  for (const std::string name : {"1f1b", "chimera", "dualpipe"}) {
    const Trace trace =
        generate_parallel_trace(gpt(8), training(name, 4, 8), CostModel(example_profile()), free_network());
    for (std::size_t i = 0; i < trace.tensors.size(); ++i)
      if (trace.tensors.role[i] == TensorRole::weight) weights[name] += trace.tensors.bytes[i].count();
    for (const Collective& collective : trace.collectives)
      if (trace.strings.text(trace.ops.name[index_of(collective.op)]).starts_with("all_reduce_directions"))
        sums[name] += collective.bytes.count();
  }
  EXPECT_EQ(weights["chimera"], 2 * weights["1f1b"]);
  EXPECT_EQ(weights["dualpipe"], 2 * weights["1f1b"]);
  EXPECT_EQ(sums["chimera"], weights["chimera"]);  // gradients as wide as weights, all of them, on every device
  EXPECT_EQ(sums["1f1b"], 0);
}

// In a V the first stage has both ends of the model: a tied head reads the embedding's own table where the gradient is
// there all the time, and the plain bf16 set-up with split backwards gets a copy.
TEST(GeneratedPipeline, TiedHeadInAV) {
  ModelSpec model = gpt(8);
  model.vocabulary = 50'000;
  model.tied_embeddings = true;
  const auto tables = [&](const std::string& name, Framework framework) {
    TrainingSetup setup = training(name, 4, 8);
    setup.micro_batch = 1, setup.sequence = 64;
    setup.framework = framework;
    const Trace trace = generate_parallel_trace(model, setup, CostModel(example_profile()), free_network());
    std::int64_t count = 0;
    for (std::size_t i = 0; i < trace.tensors.size(); ++i)
      count += trace.tensors.role[i] == TensorRole::weight &&
               trace.strings.text(trace.tensors.name[i]) == "embedding.weight";
    for (const Collective& collective : trace.collectives)
      EXPECT_NE(trace.strings.text(trace.ops.name[index_of(collective.op)]), "all_reduce_embedding") << name;
    return count;
  };
  EXPECT_EQ(tables("zb-v", Framework::megatron_2022), 1);
  EXPECT_EQ(tables("1f1b-v", Framework::megatron_2022), 1);
  EXPECT_EQ(tables("zb-v", Framework::eager), 2);
}

// A stage of 20 % slower kernels holds all others up; the same seed gives the same step, another one another.
TEST(GeneratedPipeline, StragglersAndJitter) {
  const std::string head =
      R"({"schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2-small", "pipeline_parallel": 4,)"
      R"( "gradient_accumulation": 8, "micro_batch": 8, "pipeline_schedule": "zb-h1"},)"
      R"( "hardware": {"profile": "dgx-a100")";
  const auto step = [&](const std::string& jitter) {
    return run(load(parse_scenario(head + jitter + "}}", "test.json", "/")));
  };
  const Result plain = step(""), slow = step(R"(, "jitter": {"slow_stages": [[1, 1.2]]})");
  EXPECT_GT(slow.step_time, plain.step_time);
  EXPECT_LT(to_seconds(slow.step_time), 1.2 * to_seconds(plain.step_time));
  EXPECT_NEAR(to_seconds(slow.ranks[1].compute_busy) / to_seconds(plain.ranks[1].compute_busy), 1.2, 0.005);
  EXPECT_EQ(slow.ranks[2].compute_busy, plain.ranks[2].compute_busy);
  EXPECT_TRUE(std::any_of(slow.provenance.begin(), slow.provenance.end(), [](const InputProvenance& input) {
    return input.name == "jitter" && input.value == "stage 1 x1.2" && input.provenance == "assumed";
  }));
  const Result one = step(R"(, "jitter": {"sigma": 0.1, "seed": 4})");
  const Result again = step(R"(, "jitter": {"sigma": 0.1, "seed": 4})");
  const Result other = step(R"(, "jitter": {"sigma": 0.1, "seed": 5})");
  EXPECT_EQ(one.fingerprint, again.fingerprint);
  EXPECT_NE(one.step_time, other.step_time);
  EXPECT_NE(one.step_time, plain.step_time);
  EXPECT_NEAR(to_seconds(one.ranks[1].compute_busy) / to_seconds(plain.ranks[1].compute_busy), 1, 0.02);
  EXPECT_THROW(step(R"(, "jitter": {"slow_stages": [[4, 1.2]]})"), InputError);
  EXPECT_THROW(step(R"(, "jitter": {"sigma": 0.6})"), InputError);
}

class ScheduleFile {
 public:
  explicit ScheduleFile(const PipelinePlan& plan) {
    nlohmann::ordered_json object;
    add_plan_json(object, plan);
    write(object.dump());
  }
  explicit ScheduleFile(const std::string& text) { write(text); }
  ~ScheduleFile() { std::filesystem::remove(path_); }
  [[nodiscard]] Scenario scenario(std::int64_t stages, std::int64_t micro_batches) const {
    return parse_scenario(R"({"schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2-small",)"
                          R"( "pipeline_parallel": )" +
                              std::to_string(stages) + R"(, "gradient_accumulation": )" +
                              std::to_string(micro_batches) + R"(, "pipeline_schedule": ")" +
                              path_.filename().string() + R"("}, "hardware": {"profile": "dgx-a100"}})",
                          "test.json", path_.parent_path().string());
  }
  [[nodiscard]] std::string complaint(std::int64_t stages, std::int64_t micro_batches) const {
    try {
      static_cast<void>(load(scenario(stages, micro_batches)));
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }

 private:
  void write(const std::string& text) {
    path_ = std::filesystem::path(::testing::TempDir()) / "generated_pipeline_test.json";
    std::ofstream(path_) << text;
  }
  std::filesystem::path path_;
};

// An order from a file is the order by name.
TEST(GeneratedPipeline, FilesAreAsGoodAsNames) {
  for (const std::string name : {"zb-h1", "v-half", "chronos"}) {
    PipelineRequest request;
    request.devices = 4;
    request.micro_batches = 8;
    const ScheduleFile file(build_schedule(name, request));
    const Result by_file = run(load(file.scenario(4, 8)));
    Scenario named = file.scenario(4, 8);
    named.training.pipeline_schedule = name;
    const Result by_name = run(load(named));
    EXPECT_EQ(by_file.fingerprint, by_name.fingerprint) << name;
    EXPECT_EQ(by_file.memory.peak_allocated, by_name.memory.peak_allocated) << name;
  }
}

TEST(GeneratedPipeline, FilesThatCannotRun) {
  const std::string head =
      R"({"stages": 2, "micro_batches": 2, "chunks": 1, "slices": 1, "placement": "looped", "orders": )";
  // Device 0 wants B0 before it sends F1, device 1 wants F1 before it does B0.
  const ScheduleFile stuck(head + R"([["F0", "BW0", "F1", "BW1"], ["F0", "F1", "BW0", "BW1"]]})");
  EXPECT_NE(stuck.complaint(2, 2).find("wait"), std::string::npos) << stuck.complaint(2, 2);
  const ScheduleFile overtaking(head + R"([["F0", "F1", "BW1", "BW0"], ["F0", "F1", "BW1", "BW0"]]})");
  EXPECT_NE(overtaking.complaint(2, 2).find("overtake"), std::string::npos) << overtaking.complaint(2, 2);
  const ScheduleFile sound(head + R"([["F0", "F1", "BW0", "BW1"], ["F0", "BW0", "F1", "BW1"]]})");
  EXPECT_EQ(sound.complaint(2, 2), "");
  EXPECT_NE(sound.complaint(4, 2).find("pipeline_parallel"), std::string::npos);
  EXPECT_NE(sound.complaint(2, 4).find("gradient_accumulation"), std::string::npos);
}

TEST(GeneratedPipeline, SizesThatASchedulesCannotHave) {
  const ModelSpec model = gpt(16);
  const auto place = [&](TrainingSetup setup) -> std::string {
    try {
      static_cast<void>(resolve(setup, model));
    } catch (const InputError& error) {
      return error.place();
    }
    return "";
  };
  EXPECT_EQ(place(training("dualpipe", 3, 8)), "pipeline_parallel");        // odd, both ways
  EXPECT_EQ(place(training("chimera", 4, 7)), "gradient_accumulation");     // odd
  EXPECT_EQ(place(training("dualpipe-v", 4, 4)), "gradient_accumulation");  // below 2 p
  EXPECT_EQ(place(training("interleaved", 4, 6)), "gradient_accumulation");
  EXPECT_EQ(place(training("zb-h1", 1, 8)), "pipeline_schedule");
  EXPECT_EQ(place(training("chronoss", 4, 8)), "pipeline_schedule");
  TrainingSetup setup = training("1f1b", 4, 8);
  setup.recomputed_chunks = 1;
  EXPECT_EQ(place(setup), "recomputed_chunks");
  setup = training("po-h", 4, 8);
  setup.recomputed_chunks = 1;
  EXPECT_EQ(place(setup), "recomputed_chunks");
  setup = training("1f1b", 4, 8);
  setup.sequence_slices = 4;
  EXPECT_EQ(place(setup), "sequence_slices");
  setup = training("seq1f1b", 4, 8);
  setup.sequence_slices = 7;  // of 1,024 tokens
  EXPECT_EQ(place(setup), "sequence_slices");
  setup = training("slimpipe", 4, 8);
  setup.sequence_slices = 2;  // fewer than stages
  EXPECT_EQ(place(setup), "sequence_slices");
  setup = training("seq1f1b", 4, 8);
  setup.flash_attention = false;
  EXPECT_EQ(place(setup), "flash_attention");
  EXPECT_EQ(resolve(training("seq1f1b", 4, 8), model).sequence_slices, 4);
  setup = training("zb-v", 4, 8);
  setup.pipeline_chunks = 3;
  EXPECT_EQ(place(setup), "pipeline_chunks");
  EXPECT_EQ(place(training("chronos", 4, 8)), "");
  EXPECT_EQ(resolve(training("chronos", 4, 8), model).pipeline_chunks, 2);
  EXPECT_THROW(set_field(setup, "pipeline_schedule", "1f2b"), InputError);
}

// Slices of a causal sequence do the work of the whole one, send the same and keep the same, but for keys and values,
// which are there for the whole sequence from its first slice to the end of its last backward.
TEST(GeneratedPipeline, SlicesDoTheWorkOfTheirSequence) {
  const HardwareProfile hardware = example_profile();
  const ModelSpec model = gpt(8);
  struct Sums {
    std::int64_t flops = 0, sent = 0, kept = 0;
  };
  const auto sums = [&](const std::string& schedule) {
    TrainingSetup setup = training(schedule, 4, 6);
    setup.framework = Framework::megatron_2022;
    const Trace trace = generate_parallel_trace(model, resolve(setup, model), CostModel(hardware), free_network());
    trace.check_invariants();
    Sums sum;
    for (std::size_t i = 0; i < trace.ops.size(); ++i) {
      sum.flops += trace.ops.flops[i].count();
      const std::string_view name = trace.strings.text(trace.ops.name[i]);
      if (name == "send_forward" || name == "send_backward") sum.sent += trace.ops.bytes[i].count();
    }
    for (const MemoryEvent& event : trace.memory_events)
      if (event.action == MemoryAction::allocate &&
          trace.tensors.role[index_of(event.tensor)] == TensorRole::activation &&
          !trace.strings.text(trace.tensors.name[index_of(event.tensor)]).ends_with("keys_values"))
        sum.kept += event.bytes.count();
    return sum;
  };
  const Sums whole = sums("1f1b"), sliced = sums("seq1f1b");
  EXPECT_EQ(sliced.flops, whole.flops);
  EXPECT_EQ(sliced.sent, whole.sent);
  EXPECT_NEAR(static_cast<double>(sliced.kept) / static_cast<double>(whole.kept), 1, 1e-3);
}

// Stage 0 holds (p + k - 1) slices of 1 / k where 1F1B holds p sequences (Seq1F1B, arXiv 2406.03488), and the bubble
// is that of so many more, smaller passes; attention makes later slices longer than the plan's equal ones.
TEST(GeneratedPipeline, SlicesTakeLessMemoryAndBubble) {
  const HardwareProfile hardware = example_profile();
  const ModelSpec model = gpt(16);
  const auto run_of = [&](const std::string& schedule) {
    const TrainingSetup setup = resolve(training(schedule, 4, 4), model);
    const Trace trace = generate_parallel_trace(model, setup, CostModel(hardware), free_network());
    return std::pair(replay(trace, hardware, {}), activation_peaks_of(trace, 4));
  };
  const auto [whole, whole_peaks] = run_of("1f1b");
  const auto [sliced, sliced_peaks] = run_of("seq1f1b");
  const double share = static_cast<double>(sliced_peaks[0]) / static_cast<double>(whole_peaks[0]);
  EXPECT_GT(share, 7.0 / 16 - 0.01);
  EXPECT_LT(share, 7.0 / 16 + 0.1);
  const TrainingSetup setup = resolve(training("seq1f1b", 4, 4), model);
  const Stages stages = record(model, setup);
  const PipelineTimeline planned = execute_plan(stages.plan, stages.times);
  EXPECT_NEAR(static_cast<double>(sliced.step_time.count()) / static_cast<double>(planned.makespan), 1, 0.08);
}

// Slices of a schedule from a file, in an order that no backward can follow.
TEST(GeneratedPipeline, SlicesComeBackLastFirst) {
  PipelineRequest request{.devices = 2, .micro_batches = 2, .slices = 2};
  PipelinePlan plan = build_schedule("seq1f1b", resolve_request("seq1f1b", request));
  EXPECT_NO_THROW(require_steps(plan));
  for (auto& lane : plan.compute)
    for (PipelineOp& op : lane)
      if (op.kind == PipelineOpKind::backward) op.pass.slice = static_cast<std::int16_t>(1 - op.pass.slice);
  EXPECT_THROW(require_steps(plan), InputError);
}

ModelSpec wide_gpt(std::int64_t hidden) {
  ModelSpec model = gpt(8);
  model.hidden = hidden;
  model.heads = model.kv_heads = hidden / 128;
  model.feed_forward = 4 * hidden;
  model.vocabulary = 1024;
  return model;
}

LoadedScenario load_wide(const std::string& schedule, std::int64_t hidden) {
  LoadedScenario loaded = load(parse_scenario(R"({"schema": "spillway-scenario", "version": 1,
    "model": {"name": "wide", "micro_batch": 4, "pipeline_parallel": 4, "gradient_accumulation": 8, "optimizer": "sgd",
              "pipeline_schedule": ")" + schedule +
                                                  R"("},
    "hardware": {"profile": "dgx-h100"}, "memory": {"allocator": "ideal"}})",
                                              "test", ""),
                               wide_gpt(hidden));
  loaded.options.memory.capacity = Bytes(0);
  return loaded;
}

// PipeOffload (arXiv 2503.01328): with k, the time of moving all activations out and in over that of a forward and a
// backward, at most 1, half of them leave at no cost. k falls with the width.
TEST(GeneratedPipeline, HalfOfTheActivationsAreFreeWhereKIsAtMostOne) {
  struct Half {
    double k = 0, slower = 0, share = 0, peak = 0;
  };
  const auto move_half = [](std::int64_t hidden) {
    const LoadedScenario stays = load_wide("po-uniform", hidden), moves = load_wide("po-h", hidden);
    const Result keep = run(stays), away = run(moves);
    Bytes all{};
    for (const SavedTensor& saved : saved_in_layers(stays.trace)) all += saved.bytes;
    const double rate = tier_rates(stays.hardware, Tier::host, 4).store;
    double busy = 0;
    for (const RankResult& rank : keep.ranks) busy += to_seconds(rank.compute_busy);
    const auto peak = [](const Result& result) {
      return static_cast<double>(result.ranks.front().peak_allocated.count());
    };
    return Half{.k = 2 * static_cast<double>(all.count()) / rate / busy,
                .slower = to_seconds(away.step_time) / to_seconds(keep.step_time) - 1,
                .share = static_cast<double>(away.offload->stored.count()) / static_cast<double>(all.count()),
                .peak = peak(away) / peak(keep)};
  };
  const Half wide = move_half(12288), narrow = move_half(1024);
  EXPECT_LE(wide.k, 1);
  EXPECT_NEAR(wide.share, 0.5, 0.05);
  EXPECT_LT(wide.slower, 0.02);
  EXPECT_LT(wide.peak, 1);
  EXPECT_GT(narrow.k, 2);
  EXPECT_GT(narrow.slower, 0.02) << "where k is large, moving half costs time";
}

// po-f moves what po-h keeps as well.
TEST(GeneratedPipeline, AllOfTheActivationsLeaveUnderPoF) {
  const Result half = run(load_wide("po-h", 12288)), all = run(load_wide("po-f", 12288));
  EXPECT_GT(all.offload->stored.count(), half.offload->stored.count() * 3 / 2);
  EXPECT_LT(all.ranks.front().peak_allocated, half.ranks.front().peak_allocated);
}

// BPipe: no stage holds more than (p + 3) / 2 micro-batches, its guests counted, where 1F1B's first holds p; links
// between GPUs are wide enough for it to cost next to nothing. The last stage's host is not so far ahead of its device
// that its own peak is over before guests come: what a backward makes, a quarter of a micro-batch, is there besides.
TEST(GeneratedPipeline, BpipeLevelsTheStages) {
  const auto load_eight = [](const std::string& schedule) {
    LoadedScenario loaded = load(parse_scenario(R"({"schema": "spillway-scenario", "version": 1,
      "model": {"name": "wide", "micro_batch": 4, "pipeline_parallel": 8, "gradient_accumulation": 16,
                "optimizer": "sgd", "pipeline_schedule": ")" +
                                                    schedule +
                                                    R"("},
      "hardware": {"profile": "dgx-h100"}, "memory": {"allocator": "ideal"}})",
                                                "test", ""),
                                 wide_gpt(4096));
    loaded.options.memory.capacity = Bytes(0);
    return loaded;
  };
  const LoadedScenario plain = load_eight("1f1b"), level = load_eight("bpipe");
  const Result one = run(plain), other = run(level);
  Bytes all{};
  for (const SavedTensor& saved : saved_in_layers(plain.trace)) all += saved.bytes;
  const double batch = static_cast<double>(all.count()) / (8 * 16);  // of one micro-batch on one stage
  const auto peak = [&](const Result& result, std::size_t rank) {
    return static_cast<double>(result.ranks[rank].peak_allocated.count()) / batch;
  };
  for (std::size_t rank = 0; rank < 8; ++rank) {
    const double held = static_cast<double>(8 - rank) + peak(other, rank) - peak(one, rank);
    EXPECT_LT(held, 5.75) << rank;
    EXPECT_GT(held, 2) << rank;
  }
  EXPECT_GT(other.offload->stored, Bytes(0));
  EXPECT_NEAR(to_seconds(other.step_time) / to_seconds(one.step_time), 1, 0.02);
}

TEST(GeneratedPipeline, SchedulesThatMoveActivationsAreTechniques) {
  const auto place = [](const std::string& offload) -> std::string {
    try {
      static_cast<void>(parse_scenario(R"({"schema": "spillway-scenario", "version": 1,
        "model": {"name": "gpt2-small", "pipeline_parallel": 4, "gradient_accumulation": 8,
                  "pipeline_schedule": "po-h"}, "hardware": {"profile": "dgx-h100"}, "offload": )" +
                                           offload + "}",
                                       "test", ""));
    } catch (const InputError& error) {
      return error.place();
    }
    return "";
  };
  EXPECT_EQ(place("{}"), "");
  EXPECT_EQ(place(R"({"tier": "host"})"), "");
  EXPECT_EQ(place(R"({"technique": "ssdtrain"})"), "/offload/technique");
  EXPECT_EQ(place(R"({"tier": "drive"})"), "/offload/tier");
}

}  // namespace
}  // namespace spillway::scenario
