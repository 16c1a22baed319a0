#include "validation/trainer/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "base/input_error.h"
#include "hwprofiles/calibrate/io_ring.h"
#include "hwprofiles/profile_library.h"
#include "validation/trainer/cpu_kernels.h"
#include "validation/trainer/kernel_cases.h"
#include "validation/trainer/step_trace.h"
#include "validation/trainer/technique_plans.h"

namespace spillway::validation {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

TrainerModel tiny() {
  TrainerModel model;
  model.vocabulary = 24;
  model.hidden = 16;
  model.heads = 2;
  model.layers = 2;
  model.sequence = 8;
  return model;
}

Trace plain_trace(const StepGraph& graph) {
  return step_trace(graph, std::vector<Picos>(graph.calls.size(), microseconds(10)), microseconds(3), "CPU");
}

const HardwareProfile& testbed() {
  static const HardwareProfile hardware = [] {
    const char* root = std::getenv("SPILLWAY_SOURCE_ROOT");
    const ProfileLibrary library({std::string(root != nullptr ? root : ".") + "/hwprofiles/data"});
    return library.load_system("ssdtrain-testbed");
  }();
  return hardware;
}

// A step with a buffer for every tensor: no plan, no allocator.
class PlainStep {
 public:
  explicit PlainStep(const TrainerModel& model) : graph_(step_graph(model)) {
    for (const GraphTensor& tensor : graph_.tensors)
      memory_.emplace_back(static_cast<std::size_t>(tensor.bytes().count()));
    for (std::size_t p = 0; p < graph_.parameters.size(); ++p) {
      // Ten times the usual, so that no gradient is lost in the noise of fp32.
      std::vector<float> weight = initial_weight(graph_, p);
      if (!graph_.parameters[p].is_vector)
        for (float& value : weight) value *= 10;
      put(graph_.parameters[p].weight, weight);
    }
    std::vector<std::int32_t> tokens, targets;
    make_batch(model, 1, tokens, targets);
    put(graph_.tokens, tokens);
    put(graph_.targets, targets);
  }

  void run(Phase phase) {
    for (const KernelCall& call : graph_.calls) {
      if (call.phase != phase) continue;
      std::vector<const std::byte*> reads;
      std::vector<std::byte*> writes;
      for (const std::uint32_t t : call.reads) reads.push_back(memory_[t].data());
      for (const std::uint32_t t : call.writes) writes.push_back(memory_[t].data());
      run_on_cpu(graph_, call, {reads, writes, 1});
    }
  }
  double loss() {
    run(Phase::forward);
    return floats(graph_.loss)[0];
  }
  std::vector<float> floats(std::uint32_t tensor) const {
    std::vector<float> values(memory_[tensor].size() / 4);
    std::memcpy(values.data(), memory_[tensor].data(), memory_[tensor].size());
    return values;
  }
  template <class T>
  void put(std::uint32_t tensor, const std::vector<T>& values) {
    ASSERT_EQ(values.size() * sizeof(T), memory_[tensor].size());
    std::memcpy(memory_[tensor].data(), values.data(), memory_[tensor].size());
  }
  const StepGraph& graph() const { return graph_; }

 private:
  StepGraph graph_;
  std::vector<std::vector<std::byte>> memory_;
};

// Along its own gradient g, the loss rises by |g|: (L(w + e g/|g|) - L(w - e g/|g|)) / 2e = |g|, for every parameter.
TEST(TrainerKernels, GradientsMatchFiniteDifferences) {
  PlainStep step(tiny());
  step.loss();
  step.run(Phase::backward);
  for (const StepGraph::Parameter& parameter : step.graph().parameters) {
    const std::string& name = step.graph().tensors[parameter.weight].name;
    const std::vector<float> gradient = step.floats(parameter.gradient), weight = step.floats(parameter.weight);
    double square = 0;
    for (const float g : gradient) square += static_cast<double>(g) * g;
    const double norm = std::sqrt(square);
    // What the softmax cannot see has no gradient: the same for all keys is the same for none.
    ASSERT_GT(norm, 1e-5) << name;
    const double e = 0.02;
    double loss[2] = {};
    for (const int side : {0, 1}) {
      std::vector<float> moved = weight;
      for (std::size_t i = 0; i < moved.size(); ++i)
        moved[i] += static_cast<float>((side == 0 ? -e : e) * static_cast<double>(gradient[i]) / norm);
      step.put(parameter.weight, moved);
      loss[side] = step.loss();
    }
    step.put(parameter.weight, weight);
    EXPECT_NEAR((loss[1] - loss[0]) / (2 * e), norm, 0.01 * norm + 5e-5) << name;
  }
}

// One element against the closed form: uniform logits give a loss of log(vocabulary).
TEST(TrainerKernels, LossOfUniformLogitsIsLogVocabulary) {
  PlainStep step(tiny());
  for (const StepGraph::Parameter& parameter : step.graph().parameters)
    if (step.graph().tensors[parameter.weight].name == "head.weight")
      step.put(parameter.weight, std::vector<float>(step.floats(parameter.weight).size(), 0.0F));
  EXPECT_NEAR(step.loss(), std::log(24.0), 1e-5);
}

TEST(TrainerKernels, Bf16RoundsToNearestEven) {
  EXPECT_EQ(to_bf16(1.0F), 0x3f80);
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x3f808000U)), 0x3f80);  // halfway, down to even
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x3f818000U)), 0x3f82);  // halfway, up to even
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x3f808001U)), 0x3f81);
  EXPECT_TRUE(std::isnan(to_float(to_bf16(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_EQ(to_float(0xc000), -2.0F);
}

// AdamW's first step, from zero moments: m/(1-b1) = g, v/(1-b2) = g^2, so w' = w (1 - lr wd) - lr sign(g).
TEST(TrainerKernels, FirstAdamStepMovesByTheLearningRate) {
  PlainStep step(tiny());
  step.loss();
  step.run(Phase::backward);
  const StepGraph::Parameter& head = step.graph().parameters.back();
  const std::vector<float> before = step.floats(head.weight), gradient = step.floats(head.gradient);
  step.run(Phase::optimizer);
  const std::vector<float> after = step.floats(head.weight);
  const TrainerModel& model = step.graph().model;
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (std::abs(gradient[i]) < 1e-4F) continue;  // epsilon would show
    const float wanted = before[i] * (1 - model.learning_rate * model.weight_decay) -
                         (gradient[i] > 0 ? model.learning_rate : -model.learning_rate);
    EXPECT_NEAR(after[i], wanted, 1e-6F) << i;
  }
}

TEST(TrainerModelCheck, RefusesWhatCannotBe) {
  TrainerModel model = tiny();
  model.heads = 3;
  EXPECT_THROW(step_graph(model), InputError);
  model = tiny();
  model.layers = 0;
  EXPECT_THROW(step_graph(model), InputError);
}

// What a step holds at its peak is known in closed form before the backward begins: every weight and state, and every
// activation that the backward needs. The trace must be sound in itself, with the same sums.
TEST(StepTrace, IsSound) {
  const StepGraph graph = step_graph(tiny());
  const Trace trace = plain_trace(graph);
  trace.check_invariants();
  Bytes live;
  for (const MemoryEvent& event : trace.memory_events)
    live += event.action == MemoryAction::allocate ? event.bytes : -event.bytes;
  Bytes persistent;
  for (const GraphTensor& tensor : graph.tensors)
    if (tensor.persistent) persistent += tensor.bytes();
  EXPECT_EQ(live, persistent);  // all else has been given back
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    if (trace.ops.kind[i] == OpKind::kernel) {
      EXPECT_EQ(graph.calls[call_of(graph, trace, OpId(static_cast<std::uint32_t>(i)))].name,
                trace.strings.text(trace.ops.name[i]));
    }
}

class TrainerRun : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::current_path() / ("trainer_test_" + std::to_string(getpid()));
    fs::create_directories(folder_);
    options_.file = (folder_ / "offload").string();
    options_.allocator.policy = "torch";
  }
  void TearDown() override {
    EXPECT_TRUE(fs::is_empty(folder_)) << "something was left behind";
    fs::remove_all(folder_);
  }
  TrainingRun run(const StepGraph& graph, const Trace& trace, const TechniquePlan& technique, int steps) {
    options_.allocator = technique.allocator;
    return train(*backend_, graph, trace, technique.plan, options_, steps);
  }
  static bool has_uring() {
    try {
      const IoRing ring(1);
      return true;
    } catch (const InputError&) {
      return false;
    }
  }

  fs::path folder_;
  PlanRunOptions options_;
  std::unique_ptr<Backend> backend_ = make_cpu_backend();
};

// Of log(24) = 3.2 at first, the walk leaves about (7/8) log(8/7) + ... < 1 to a model that has learnt it.
TEST_F(TrainerRun, LossFalls) {
  TrainerModel model = tiny();
  model.learning_rate = 1e-2F;
  model.batch = 8;
  const StepGraph graph = step_graph(model);
  const Trace trace = plain_trace(graph);
  const TrainingRun trained = run(graph, trace, technique_plan(trace, "keep", testbed()), 80);
  EXPECT_NEAR(trained.steps.front().loss, std::log(24.0), 0.1);
  EXPECT_LT(trained.steps.back().loss, 2.0F);
}

// Every technique, both element types: the numbers of plain training bit by bit, kernels and transfers in the order
// planned, every byte count as the replay predicted.
TEST_F(TrainerRun, EveryTechniqueDoesWhatWasPredicted) {
  const HardwareProfile& hardware = testbed();
  KernelCaseOptions options;
  options.file = options_.file;
  options.hardware = &hardware;
  const std::vector<KernelOutcome> outcomes = run_kernel_cases(*backend_, cpu_kernel_cases(), options, {});
  std::map<std::string, std::map<std::string, double>> by_technique;
  for (const KernelOutcome& outcome : outcomes) {
    SCOPED_TRACE(outcome.run.model + ", " + outcome.run.technique);
    if (!has_uring() && outcome.skipped.find("io_uring") != std::string::npos) continue;
    ASSERT_EQ(outcome.skipped, "");
    EXPECT_TRUE(outcome.same_bits);
    EXPECT_TRUE(outcome.order_kept);
    EXPECT_TRUE(outcome.transfers_kept);
    EXPECT_TRUE(std::isfinite(outcome.last_loss));
    EXPECT_TRUE(outcome.pool_kept);
    std::map<std::string, double>& figures = by_technique[outcome.run.technique];
    for (const KernelRow& row : outcome.rows) {
      EXPECT_EQ(row.measured, row.from_trace) << row.metric;
      EXPECT_FALSE(row.blind.has_value()) << row.metric;
      EXPECT_EQ(row.unit, "B") << row.metric;  // no times of the processor, no peaks of the simulator's own pool
      if (outcome.run.shape.type == ElementType::f32) figures[row.metric] = row.measured;
    }
    if (outcome.run.shape.type == ElementType::f32) {
      figures["pool_allocated"] = static_cast<double>(outcome.pool_allocated.count());
      figures["pool_reserved"] = static_cast<double>(outcome.pool_reserved.count());
    }
  }
  // The techniques do something.
  EXPECT_GT(by_technique["offload-host"]["host_written"], 0);
  EXPECT_LT(by_technique["recompute"]["pool_allocated"], by_technique["keep"]["pool_allocated"]);
  EXPECT_LE(by_technique["order-arena"]["pool_reserved"], by_technique["keep"]["pool_reserved"]);
  if (!has_uring()) GTEST_SKIP() << "io_uring is not there: no runs with drives";
  EXPECT_GT(by_technique["offload-drive"]["drive_written"], 0);
  EXPECT_EQ(by_technique["offload-drive"]["drive_read"], by_technique["offload-drive"]["drive_written"]);
  EXPECT_LT(by_technique["offload-drive"]["pool_allocated"], by_technique["keep"]["pool_allocated"]);
  EXPECT_GT(by_technique["recompute-offload"]["drive_written"], 0);
  EXPECT_LE(by_technique["recompute-offload"]["pool_allocated"], by_technique["recompute"]["pool_allocated"]);
  EXPECT_LT(by_technique["stream"]["pool_allocated"], by_technique["keep"]["pool_allocated"]);
}

// The reference's times mean nothing about a GPU, but they add up: phases to the step, hidden and exposed to what
// moved.
TEST_F(TrainerRun, TimesAddUp) {
  if (!has_uring()) GTEST_SKIP() << "io_uring is not there";
  const HardwareProfile& hardware = testbed();
  KernelCaseOptions options;
  options.steps = 2;  // one warms up, the last is timed kernel by kernel: medians of one step
  options.file = options_.file;
  options.hardware = &hardware;
  options.step_times = true;
  std::vector<KernelCase> cases;
  for (const char* technique : {"keep", "offload-drive", "recompute-offload"})
    cases.push_back({"tiny", tiny(), technique, false});
  const std::vector<KernelOutcome> outcomes = run_kernel_cases(*backend_, cases, options, {});
  EXPECT_FALSE(outcomes[0].measured_overlap.has_value());
  for (const KernelOutcome& outcome : outcomes) {
    SCOPED_TRACE(outcome.run.technique);
    std::map<std::string, KernelRow> rows;
    for (const KernelRow& row : outcome.rows) rows[row.metric] = row;
    const auto measured = [](const KernelRow& row) { return row.measured; };
    const auto from_trace = [](const KernelRow& row) { return row.from_trace; };
    const auto blind = [](const KernelRow& row) { return row.blind.value(); };
    const auto adds_up = [&rows](auto figure) {
      EXPECT_NEAR(figure(rows["forward_time"]) + figure(rows["backward_time"]) + figure(rows["optimizer_time"]),
                  figure(rows["step_time"]), 1e-9);
      EXPECT_GT(figure(rows["forward_time"]), 0);
      EXPECT_GT(figure(rows["backward_time"]), 0);
      EXPECT_GT(figure(rows["optimizer_time"]), 0);
    };
    adds_up(measured);
    adds_up(from_trace);
    adds_up(blind);
    // A processor's kernels take far longer than any GPU's; the profile knows nothing of that.
    EXPECT_NE(blind(rows["step_time"]), from_trace(rows["step_time"]));
    EXPECT_GT(outcome.measured_share, 0);
    EXPECT_LT(outcome.measured_share, 1);
    if (outcome.run.technique == "keep") continue;
    ASSERT_TRUE(outcome.measured_overlap && outcome.predicted_overlap);
    for (const Overlap& overlap : {*outcome.measured_overlap, *outcome.predicted_overlap}) {
      EXPECT_GT(overlap.transfer_seconds, 0);
      EXPECT_LE(overlap.transfer_seconds, overlap.step_seconds);
      EXPECT_GE(overlap.exposed_seconds(), -1e-12);
    }
  }
}

// Frees that come whenever their store has ended move blocks about, and change no number.
TEST_F(TrainerRun, StoresBesideComputeChangeNoNumber) {
  if (!has_uring()) GTEST_SKIP() << "io_uring is not there";
  const StepGraph graph = step_graph(tiny());
  const Trace trace = plain_trace(graph);
  const TrainingRun keep = run(graph, trace, technique_plan(trace, "keep", testbed()), 4);
  for (const char* technique : {"offload-drive", "offload-host", "recompute-offload", "stream"}) {
    const TrainingRun beside = run(graph, trace, technique_plan(trace, technique, testbed()), 4);
    EXPECT_EQ(beside.weights_digest, keep.weights_digest) << technique;
    for (std::size_t s = 0; s < 4; ++s) EXPECT_EQ(beside.steps[s].loss, keep.steps[s].loss);
  }
}

// Through cuFile, straight from and to what the backend calls device memory: the same numbers. Where it does not start,
// through host memory.
TEST_F(TrainerRun, GpudirectChangesNoNumber) {
  if (!has_uring()) GTEST_SKIP() << "io_uring is not there";
  const StepGraph graph = step_graph(tiny());
  const Trace trace = plain_trace(graph);
  const TrainingRun keep = run(graph, trace, technique_plan(trace, "keep", testbed()), 3);
  options_.gpudirect = true;
  setenv("SPILLWAY_CUFILE", SPILLWAY_FAKE_CUFILE, 1);
  const fs::path nvidia_fs = fs::path(testing::TempDir()) / ("nvidia-fs-" + std::to_string(getpid()));
  setenv("SPILLWAY_NVIDIA_FS", nvidia_fs.c_str(), 1);
  for (const bool is_direct : {false, true}) {
    if (is_direct) {
      fs::create_directories(nvidia_fs);
      std::ofstream(nvidia_fs / "stats") << "IO stats: Enabled\nReads : n=0 ok=0\nWrites : n=0 ok=0\n";
    }
    for (const char* technique : {"offload-drive", "stream"}) {
      const TrainingRun direct = run(graph, trace, technique_plan(trace, technique, testbed()), 3);
      if (direct.file_access == "buffered") GTEST_SKIP() << "no O_DIRECT here";
      // What cuFile does by way of host memory is not called GPUDirect Storage.
      EXPECT_EQ(direct.file_access, is_direct ? "GPUDirect Storage" : "cuFile through host memory");
      EXPECT_EQ(direct.weights_digest, keep.weights_digest) << technique;
    }
  }
  fs::remove_all(nvidia_fs);
  unsetenv("SPILLWAY_NVIDIA_FS");
  setenv("SPILLWAY_CUFILE", "/none/libcufile.so.0", 1);
  const TrainingRun bounced = run(graph, trace, technique_plan(trace, "offload-drive", testbed()), 3);
  EXPECT_EQ(bounced.file_access, "O_DIRECT");
  EXPECT_EQ(bounced.weights_digest, keep.weights_digest);
  unsetenv("SPILLWAY_CUFILE");
}

// io_uring whose requests fail from one on: what a drive does that is pulled out.
class UnpluggedRing final : public IoQueue {
 public:
  UnpluggedRing(unsigned entries, std::size_t good) : ring_(entries), good_(good) {}
  void submit(Direction direction, int file, std::span<std::byte> memory, Bytes offset, std::uint64_t tag) override {
    ring_.submit(direction, file, memory, offset, tag);
  }
  Completion wait() override { return judged(ring_.wait()); }
  std::optional<Completion> poll() override {
    const std::optional<Completion> completion = ring_.poll();
    return completion ? std::optional(judged(*completion)) : completion;
  }
  unsigned in_flight() const override { return ring_.in_flight(); }

 private:
  Completion judged(Completion completion) {
    if (completed_++ >= good_) completion.result = -EIO;
    return completion;
  }
  IoRing ring_;
  std::size_t good_, completed_ = 0;
};

// At whichever transfer it happens: one clear message, no hang, nothing left behind (TearDown looks).
TEST_F(TrainerRun, UnpluggedMidRunIsToldInWords) {
  if (!has_uring()) GTEST_SKIP() << "io_uring is not there";
  const StepGraph graph = step_graph(tiny());
  const Trace trace = plain_trace(graph);
  for (const char* technique : {"offload-drive", "recompute-offload", "stream"})
    for (const std::size_t good : {0, 1, 5}) {
      options_.make_queue = [good](unsigned entries) { return std::make_unique<UnpluggedRing>(entries, good); };
      try {
        run(graph, trace, technique_plan(trace, technique, testbed()), 2);
        FAIL() << technique << " went on after " << good;
      } catch (const InputError& error) {
        EXPECT_THAT(error.what(), HasSubstr(std::strerror(EIO))) << technique;
        EXPECT_EQ(error.file(), options_.file);
      }
    }
}

// A device that is lost at its n-th kernel: what the CUDA backend throws then.
class LostBackend final : public Backend {
 public:
  explicit LostBackend(int good) : good_(good) {}
  std::string name() const override { return "lost"; }
  std::string device() const override { return cpu_->device(); }
  Bytes memory() const override { return cpu_->memory(); }
  std::byte* take_segment(Bytes bytes) override { return ++held_, cpu_->take_segment(bytes); }
  void give_segment(std::byte* segment) override { --held_, cpu_->give_segment(segment); }
  std::byte* take_host(Bytes bytes) override { return ++held_, cpu_->take_host(bytes); }
  void give_host(std::byte* memory) override { --held_, cpu_->give_host(memory); }
  void run(const StepGraph& graph, const KernelCall& call, const Operands& operands) override {
    is_lost_ = is_lost_ || good_-- <= 0;
    refuse();
    cpu_->run(graph, call, operands);
  }
  void fill(std::byte* device, ElementType type, std::int64_t elements, const Filling& filling) override {
    refuse();
    cpu_->fill(device, type, elements, filling);
  }
  std::uint64_t digest(const std::byte* device, Bytes bytes) override {
    refuse();
    return cpu_->digest(device, bytes);
  }
  Mark mark() override { return cpu_->mark(); }
  Mark copy(CopyTo to, std::byte* device, std::byte* host, Bytes bytes, Mark after) override {
    refuse();
    return cpu_->copy(to, device, host, bytes, after);
  }
  bool passed(Mark mark) override {
    refuse();
    return cpu_->passed(mark);
  }
  void wait(Mark mark) override {
    refuse();
    cpu_->wait(mark);
  }
  void time_kernels(bool on) override { cpu_->time_kernels(on); }
  std::vector<KernelTime> take_times() override { return cpu_->take_times(); }
  void stamp() override { cpu_->stamp(); }
  std::vector<double> take_stamps() override { return cpu_->take_stamps(); }
  int held() const { return held_; }

 private:
  void refuse() const {
    if (is_lost_) throw InputError("GPU", "measuring", "unknown error", "see dmesg for NVRM and Xid");
  }
  std::unique_ptr<Backend> cpu_ = make_cpu_backend();
  int good_, held_ = 0;
  bool is_lost_ = false;
};

// Wherever in the step it happens: the device's own words, all memory given back, no file left.
TEST_F(TrainerRun, ALostDeviceIsToldInWords) {
  if (!has_uring()) GTEST_SKIP() << "io_uring is not there";
  const StepGraph graph = step_graph(tiny());
  const Trace trace = plain_trace(graph);
  for (const char* technique : {"keep", "offload-host", "offload-drive", "stream"})
    for (const int good : {0, 20, 60}) {
      LostBackend backend(good);
      const TechniquePlan plan = technique_plan(trace, technique, testbed());
      options_.allocator = plan.allocator;
      try {
        train(backend, graph, trace, plan.plan, options_, 2);
        FAIL() << technique << " went on after " << good;
      } catch (const InputError& error) {
        EXPECT_THAT(error.what(), HasSubstr("GPU: measuring: unknown error")) << technique;
      }
      EXPECT_EQ(backend.held(), 0) << technique << " after " << good;
    }
}

// A quota, a limit or a full disk is met before the first step.
TEST_F(TrainerRun, FullDiskIsToldInWords) {
  if (!has_uring()) GTEST_SKIP() << "io_uring is not there";
  const StepGraph graph = step_graph(tiny());
  const Trace trace = plain_trace(graph);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit low = before;
  low.rlim_cur = 4096;
  setrlimit(RLIMIT_FSIZE, &low);
  std::string said;
  try {
    run(graph, trace, technique_plan(trace, "offload-drive", testbed()), 1);
  } catch (const InputError& error) {
    said = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(said, HasSubstr("can't be reserved"));
}

std::int64_t bytes_the_process_wrote() {
  std::ifstream io("/proc/self/io");
  std::string key;
  std::int64_t value = 0;
  while (io >> key >> value)
    if (key == "write_bytes:") return value;
  return -1;
}

// What the kernel says went to storage is what the transfers say, each rounded up to a page.
TEST_F(TrainerRun, BytesReachTheDrive) {
  if (!has_uring()) GTEST_SKIP() << "io_uring is not there";
  const StepGraph graph = step_graph(tiny());
  const Trace trace = plain_trace(graph);
  const std::int64_t before = bytes_the_process_wrote();
  const TrainingRun offloaded = run(graph, trace, technique_plan(trace, "offload-drive", testbed()), 2);
  const std::int64_t wrote = bytes_the_process_wrote() - before;
  if (before < 0) GTEST_SKIP() << "no /proc/self/io";
  if (offloaded.file_access != "O_DIRECT") GTEST_SKIP() << "no O_DIRECT here";
  std::int64_t wanted = 0;
  for (const StepMeasure& step : offloaded.steps)
    for (const TransferRecord& record : step.transfers)
      if (record.tier == Tier::drive && !record.inbound) wanted += (record.bytes.count() + 4095) / 4096 * 4096;
  EXPECT_GT(wanted, 0);
  // The file system writes a few blocks of its own.
  EXPECT_GE(wrote, wanted);
  EXPECT_LE(wrote, wanted + (1 << 20));
}

TEST_F(TrainerRun, OutOfMemoryIsToldInWords) {
  const StepGraph graph = step_graph(tiny());
  const Trace trace = plain_trace(graph);
  TechniquePlan keep = technique_plan(trace, "keep", testbed());
  keep.allocator.device_memory = Bytes(1 << 20);  // less than one segment
  options_.allocator = keep.allocator;
  try {
    train(*backend_, graph, trace, keep.plan, options_, 1);
    FAIL() << "it fits";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("allocated"));
  }
}

TEST_F(TrainerRun, OffloadingToDrivesNeedsAFile) {
  const StepGraph graph = step_graph(tiny());
  const Trace trace = plain_trace(graph);
  options_.file.clear();
  EXPECT_THROW(run(graph, trace, technique_plan(trace, "offload-drive", testbed()), 1), InputError);
  EXPECT_THROW(technique_plan(trace, "offload-drvie", testbed()), InputError);
}

}  // namespace
}  // namespace spillway::validation
