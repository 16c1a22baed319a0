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
    // Of a decoder beside an encoder: it begins here; it gets the encoder's result besides its stream; it passes it on.
    bool starts_decoder = false, gets_memory = false, passes_memory = false;
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
      if (layout_.decoder_stage() > 0) {
        chunk.starts_decoder = stage_ == layout_.decoder_stage();
        chunk.gets_memory = stage_ > layout_.decoder_stage();
        chunk.passes_memory = stage_ >= layout_.decoder_stage() && !chunk.is_last;
      }
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
    s.receives.push_back(last_on(receive_lane));
    if (is_megatron(setup_.framework)) session_.device_sync();
    return tensor;
  }

  void send(const char* name, const Tensor& tensor, std::int64_t to, StageProgram::Section& s) {
    communication_.send(name, tensor, to, parts());
    s.sends.push_back(last_on(send_lane));
  }

  void forward(std::int64_t index, StageProgram::Section& s) {
    Chunk& chunk = chunks_[static_cast<std::size_t>(index)];
    session_.set_phase(Phase::forward);
    session_.forget_kernels();  // what runs before is the schedule's business
    read_timer();
    leaves_.clear();
    for (int i = 0; i < (chunk.is_first ? 0 : chunk.gets_memory ? 2 : 1); ++i)
      leaves_.push_back(autograd_.leaf(receive("receive_forward", TensorRole::activation, neighbour(-1), chunk, s)));
    const Tensor input = chunk.is_first ? copied(chunk.transformer->empty_input()) : leaves_.front();
    const bool reads_labels = chunk.is_last || chunk.starts_decoder;
    const Tensor labels = reads_labels ? copied(chunk.transformer->empty_labels()) : Tensor();
    Tensor out = chunk.transformer->forward(input, labels, chunk.gets_memory ? leaves_.back() : Tensor());
    root_ = out.node();
    read_timer();
    if (!chunk.is_last) send("send_forward", out, neighbour(1), s);
    if (chunk.passes_memory) send("send_forward", leaves_.back(), neighbour(1), s);
    // Megatron-LM frees what it has sent (Korthikanti et al. 2022, appendix B).
    if (chunk.is_last || setup_.framework == Framework::eager) output_ = std::move(out);
    session_.set_layer(-1);
  }

  void backward(std::int64_t index, bool is_last_micro_batch, StageProgram::Section& s) {
    Chunk& chunk = chunks_[static_cast<std::size_t>(index)];
    session_.set_phase(Phase::backward);
    session_.forget_kernels();
    read_timer();
    Tensor gradient, memory_gradient;
    if (chunk.is_last) {
      gradient = session_.empty("loss.grad", DataType::fp32, 1, TensorRole::temporary);
      session_.kernel({.name = "fill_one", .writes = {gradient}});
    } else {
      gradient = receive("receive_backward", TensorRole::temporary, neighbour(1), chunk, s);
    }
    if (chunk.passes_memory)
      memory_gradient = receive("receive_backward", TensorRole::temporary, neighbour(1), chunk, s);
    reducer_.begin_backward(is_last_micro_batch);
    const std::uint32_t first = leaves_.empty() ? 1 : leaves_.front().node();
    const std::size_t leaves = leaves_.size();
    leaves_.clear();
    const std::vector<Tensor> passed = autograd_.backward_to(first, leaves, root_, std::move(gradient));
    output_ = {};
    if (memory_gradient)
      session_.kernel(
          {.name = "add_encoder_gradient_", .reads = {passed.back(), memory_gradient}, .writes = {passed.back()}});
    memory_gradient = {};
    reducer_.end_backward();
    chunk.transformer->run_metrics();
    session_.set_layer(-1);
    if (chunk.gatherer) chunk.gatherer->end_backward();
    read_timer();
    for (const Tensor& one : passed) send("send_backward", one, neighbour(-1), s);
  }

  void read_timer() {
    if (setup_.phase_timers) session_.device_sync();
  }

  // Gradients of parameters that several stages have copies of are summed over these: the embedding, of the input, of
  // the decoder's beside an encoder, of a tied head; learned positions; the relative bias of a stack.
  void sum_copies() {
    const std::int64_t last = layout_.stages() - 1, decoder = layout_.decoder_stage();
    if (last == 0) return;
    std::vector<std::int64_t> readers = {0}, embedders, of_encoder, of_decoder;
    if (decoder > 0) readers.push_back(decoder);
    embedders = readers;
    if (model_.tied_embeddings && embedders.back() != last) embedders.push_back(last);
    for (std::int64_t stage = 0; stage <= last; ++stage) (stage < decoder ? of_encoder : of_decoder).push_back(stage);
    for (TrainedParameter* parameter : parameters_) {
      const std::string& name = parameter->shape.name;
      const auto sum = [&](const char* collective, const std::vector<std::int64_t>& stages) {
        communication_.all_reduce_stages(collective, {parameter->gradient}, stages);
      };
      if (name == "embedding.weight") sum("all_reduce_embedding", embedders);
      if (name == "positions.weight") sum("all_reduce_positions", readers);
      if (name.ends_with("relative_bias.weight"))
        stage_ < decoder ? sum("all_reduce_encoder_bias", of_encoder) : sum("all_reduce_decoder_bias", of_decoder);
    }
  }

  void update() {
    session_.set_phase(Phase::backward);
    reducer_.finish(parameters_);
    sum_copies();
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
  std::vector<Tensor>
      leaves_;  // what came from the stage before; between the forward and the backward of a micro-batch
  Tensor output_;
  std::uint32_t root_ = 0;
};

}  // namespace

StageProgram record_stage(const ModelSpec& model, const TrainingSetup& setup, const CostModel& cost,
                          const ParallelLayout& layout, const CollectiveTimer& timer, std::int64_t stage) {
  return StageRecorder(model, setup, cost, layout, timer, stage).run();
}

}  // namespace spillway
