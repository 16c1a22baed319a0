#include "models/stage_program.h"

#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "models/autograd.h"
#include "models/gradient_reducer.h"
#include "models/host_times.h"
#include "models/optimizer_step.h"
#include "models/transformer.h"
#include "traces/base/input_error.h"

namespace spillway {
namespace {

constexpr std::int64_t most_recorded = 4;

class StageRecorder {
 public:
  StageRecorder(const ModelSpec& model, const TrainingSetup& setup, const CostModel& cost, const ParallelLayout& layout,
                const CollectiveTimer& timer, std::int64_t stage)
      : model_(model),
        setup_(setup),
        layout_(layout),
        stage_(stage),
        session_(cost, cost.gpu().title),
        autograd_(session_),
        communication_(session_, layout, timer, stage),
        reducer_(setup, session_, autograd_, &communication_) {
    session_.merge_free_events();
    set_host_times(session_, setup.framework);
    communication_.set_after_kernels(setup.framework == Framework::megatron_2021);
  }

  StageProgram run() {
    program_.stage = stage_;
    program_.chunks = layout_.chunks();
    program_.micro_batches = setup_.gradient_accumulation;
    program_.recorded = std::min(setup_.gradient_accumulation, most_recorded);
    section([this](StageProgram::Section&) { allocate(); });
    session_.begin_step("step 0");
    for (std::int64_t chunk = 0; chunk < program_.chunks; ++chunk) {
      for (std::int64_t index = 0; index < program_.recorded; ++index) {
        section([&](StageProgram::Section& s) { forward(chunk, s); });
        section([&](StageProgram::Section& s) { backward(chunk, index + 1 == program_.recorded, s); });
      }
    }
    section([this](StageProgram::Section&) { update(); });
    program_.trace = session_.finish();
    return std::move(program_);
  }

 private:
  struct Chunk {
    std::unique_ptr<Transformer> transformer;
    std::optional<WeightGatherer> gatherer;
    bool is_first = false, is_last = false;
  };

  template <class Work>
  void section(Work&& work) {
    StageProgram::Section made;
    made.begin = session_.mark();
    work(made);
    made.end = session_.mark();
    program_.sections.push_back(made);
  }

  void allocate() {
    for (std::int64_t c = 0; c < program_.chunks; ++c) {
      Chunk& chunk = chunks_.emplace_back();
      chunk.is_first = layout_.is_first(stage_, c);
      chunk.is_last = layout_.is_last(stage_, c);
      const ModelPart part{layout_.layers(stage_, c), chunk.is_first, chunk.is_last};
      chunk.transformer = std::make_unique<Transformer>(model_, setup_, part, session_, autograd_, &communication_);
      for (TrainedParameter& parameter : chunk.transformer->parameters()) parameters_.push_back(&parameter);
      if (setup_.zero_stage == 3) gather_units(chunk);
    }
    optimizer_.emplace(setup_, session_, parameters_, &communication_);
  }

  void gather_units(Chunk& chunk) {
    chunk.gatherer.emplace(setup_, session_, communication_, chunk.transformer->parameters());
    WeightGatherer* gatherer = &*chunk.gatherer;
    chunk.transformer->set_units({[gatherer](std::int64_t layer) { gatherer->before(layer); },
                                  [gatherer](std::int64_t layer) { gatherer->after(layer); },
                                  [gatherer](std::int64_t layer) { gatherer->before_backward(layer); },
                                  [gatherer, this](std::int64_t layer) {
                                    reducer_.end_unit();
                                    gatherer->after_backward(layer);
                                  }});
  }

  Tensor copied(Tensor tensor) {
    session_.kernel({.name = "Memcpy HtoD",
                     .writes = {tensor},
                     .cost = {.kind = KernelClass::copy_to_device, .type = tensor.type()},
                     .kind = OpKind::copy_host_to_device});
    return tensor;
  }

  // Megatron-LM without sequence parallelism sends 1 / t of the tensor from each rank of the tensor group and gathers
  // it on the other side (Narayanan et al. 2021, section 4.1).
  [[nodiscard]] std::int64_t parts() const {
    return is_megatron(setup_.framework) && !setup_.sequence_parallel ? setup_.tensor_parallel : 1;
  }
  [[nodiscard]] std::int64_t neighbour(std::int64_t step) const {
    return (stage_ + step + layout_.stages()) % layout_.stages();
  }
  [[nodiscard]] OpId last_on(std::string_view lane) const { return session_.last_collective(lane); }

  Tensor receive(const char* name, TensorRole role, std::int64_t from, Chunk& chunk, StageProgram::Section& s) {
    const DataType type = chunk.transformer->type();
    Tensor tensor = session_.empty(name, type, chunk.transformer->stream_elements(), role);
    communication_.receive(name, tensor, from, parts());
    s.receive = last_on(receive_lane);
    if (is_megatron(setup_.framework)) session_.device_sync();
    return tensor;
  }

  void forward(std::int64_t index, StageProgram::Section& s) {
    Chunk& chunk = chunks_[static_cast<std::size_t>(index)];
    session_.set_phase(Phase::forward);
    session_.forget_kernels();  // what runs before is the schedule's business
    read_timer();
    Tensor input;
    if (chunk.is_first) {
      input = copied(chunk.transformer->empty_input());
      leaf_ = {};
    } else {
      leaf_ = autograd_.leaf(receive("receive_forward", TensorRole::activation, neighbour(-1), chunk, s));
      input = leaf_;
    }
    const Tensor labels = chunk.is_last ? copied(chunk.transformer->empty_labels()) : Tensor();
    Tensor out = chunk.transformer->forward(input, labels);
    root_ = out.node();
    read_timer();
    if (!chunk.is_last) {
      communication_.send("send_forward", out, neighbour(1), parts());
      s.send = last_on(send_lane);
    }
    // Megatron-LM frees what it has sent (Korthikanti et al. 2022, appendix B).
    if (chunk.is_last || setup_.framework == Framework::eager) output_ = std::move(out);
    session_.set_layer(-1);
  }

  void backward(std::int64_t index, bool is_last_micro_batch, StageProgram::Section& s) {
    Chunk& chunk = chunks_[static_cast<std::size_t>(index)];
    session_.set_phase(Phase::backward);
    session_.forget_kernels();
    read_timer();
    Tensor gradient;
    if (chunk.is_last) {
      gradient = session_.empty("loss.grad", DataType::fp32, 1, TensorRole::temporary);
      session_.kernel({.name = "fill_one", .writes = {gradient}});
    } else {
      gradient = receive("receive_backward", TensorRole::temporary, neighbour(1), chunk, s);
    }
    reducer_.begin_backward(is_last_micro_batch);
    const std::uint32_t leaf = leaf_.node();
    leaf_ = {};
    Tensor passed = autograd_.backward_to(leaf, root_, std::move(gradient));
    output_ = {};
    reducer_.end_backward();
    chunk.transformer->run_metrics();
    session_.set_layer(-1);
    if (chunk.gatherer) chunk.gatherer->end_backward();
    read_timer();
    if (chunk.is_first) return;
    communication_.send("send_backward", passed, neighbour(-1), parts());
    s.send = last_on(send_lane);
  }

  void read_timer() {
    if (setup_.phase_timers) session_.device_sync();
  }

  void update() {
    session_.set_phase(Phase::backward);
    reducer_.finish(parameters_);
    if (model_.tied_embeddings && layout_.stages() > 1)
      for (TrainedParameter* parameter : parameters_)
        if (parameter->shape.name == "embedding.weight")
          communication_.all_reduce_stages("all_reduce_embedding", {parameter->gradient}, true);
    session_.set_phase(Phase::optimizer);
    optimizer_->run();
  }

  const ModelSpec& model_;
  const TrainingSetup& setup_;
  const ParallelLayout& layout_;
  std::int64_t stage_;
  EagerSession session_;
  Autograd autograd_;
  Communication communication_;
  GradientReducer reducer_;
  std::deque<Chunk> chunks_;
  std::vector<TrainedParameter*> parameters_;
  std::optional<OptimizerStep> optimizer_;
  StageProgram program_;
  Tensor leaf_, output_;  // between the forward and the backward of a micro-batch
  std::uint32_t root_ = 0;
};

}  // namespace

StageProgram record_stage(const ModelSpec& model, const TrainingSetup& setup, const CostModel& cost,
                          const ParallelLayout& layout, const CollectiveTimer& timer, std::int64_t stage) {
  return StageRecorder(model, setup, cost, layout, timer, stage).run();
}

}  // namespace spillway
