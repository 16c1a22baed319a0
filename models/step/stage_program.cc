#include "models/step/stage_program.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/input_error.h"
#include "models/network/transformer.h"
#include "models/session/autograd.h"
#include "models/spec/expert_load.h"
#include "models/step/chunk_states.h"
#include "models/step/deepspeed_zero.h"
#include "models/step/gradient_reducer.h"
#include "models/step/host_optimizer.h"
#include "models/step/host_times.h"
#include "models/step/optimizer_step.h"
#include "models/step/reference_pass.h"
#include "models/step/start_up.h"
#include "models/step/step_clock.h"
#include "models/step/weight_gatherer.h"

namespace spillway::models {
namespace {

using Part = StageProgram::Part;

// Where the exchange of one micro-batch's tokens runs beside another's computation: of the shorter of the two, what is
// hidden. From two published pairs of steps of Qwen3-30B-A3B on 16 H100, with NCCL 0.55 and with Hybrid-EP 0.6,
// contention and closed gaps included; 1 would be the limit of an exchange that takes no multiprocessors.
constexpr double hidden_exchange = 0.6;

// Whether the forward of the first micro-batch or the backward of the last one has the operation: these have no other
// micro-batch beside them.
bool is_alone(const StageProgram& program, OpId op) {
  for (std::size_t c = 0; c < program.chunks.size(); ++c)
    for (std::int64_t slice = 0; slice < program.slices; ++slice)
      for (const Part part : {Part::forward, Part::recompute, Part::backward, Part::weights}) {
        const std::int64_t recorded = part == Part::forward ? 0 : program.chunks[c].recorded - 1;
        const StageProgram::Section& section =
            program.sections[program.section(static_cast<std::int64_t>(c), recorded, slice, part)];
        if (section.begin.ops <= index_of(op) && index_of(op) < section.end.ops) return true;
      }
  return false;
}

// Exchanges are shorter by what is hidden of them; each layer's against all else that it has on the GPU.
void hide_exchanges(StageProgram& program) {
  struct Times {
    double exchange = 0, other = 0;
  };
  std::map<std::uint16_t, Times> layers;
  std::vector<OpId> exchanges;
  for (const Collective& each : program.trace.collectives)
    if (program.trace.strings.text(each.group) == to_string(CommGroup::expert)) exchanges.push_back(each.op);
  Ops& ops = program.trace.ops;
  for (std::size_t i = 0; i < ops.size(); ++i)
    if (ops.kind[i] == OpKind::kernel) layers[ops.layer[i]].other += to_seconds(ops.duration[i]);
  for (const OpId op : exchanges) layers[ops.layer[index_of(op)]].exchange += to_seconds(ops.duration[index_of(op)]);
  for (const OpId op : exchanges) {
    if (is_alone(program, op)) continue;
    const Times& times = layers[ops.layer[index_of(op)]];
    Picos& duration = ops.duration[index_of(op)];
    const double shown = 1 - hidden_exchange * std::min(1.0, times.other / times.exchange);
    duration = from_seconds(to_seconds(duration) * shown);
  }
}

class StageRecorder {
 public:
  StageRecorder(const ModelSpec& model, const TrainingSetup& setup, const CostModel& cost, const ParallelLayout& layout,
                const CollectiveTimer& timer, std::int64_t stage, const PipelinePlan& plan, bool evaluates)
      : model_(model),
        setup_(setup),
        layout_(layout),
        stage_(stage),
        evaluates_(evaluates),
        session_(cost, cost.gpu().title),
        autograd_(session_),
        communication_(session_, layout, timer, stage),
        reducer_(setup, session_, autograd_, &communication_) {
    session_.merge_free_events();
    set_host_times(session_, setup);
    communication_.set_after_kernels(setup.traits().waits_for_collectives);
    program_.stage = stage_;
    session_.set_graph_pool(setup.graph_pool && !setup.captures(whole_iteration));
    program_.slices = plan.slices;
    if (setup.has_expert_loads() || keeps_logits()) program_.most_recorded = plan.micro_batches;
    for (const ChunkPasses& passes : chunk_passes(plan, stage)) {
      const auto index = static_cast<std::int64_t>(program_.chunks.size());
      StageProgram::Chunk& chunk = program_.chunks.emplace_back();
      chunk.passes = passes;
      chunk.recorded = std::min(passes.turns, program_.most_recorded);
      if (layout.previous(stage, index).stage == stage) chunk.before = layout.previous(stage, index).chunk;
      if (layout.next(stage, index).stage == stage) chunk.after = layout.next(stage, index).chunk;
    }
  }

  StageProgram run() {
    const auto count = static_cast<std::int64_t>(program_.chunks.size());
    program_.sections.resize(program_.section(count, 0, 0, Part::forward) + 1);
    record(0, [this](StageProgram::Section&) { allocate(); });
    if (!evaluates_) note_start_up();
    session_.begin_step("step 0");
    std::vector<std::int64_t> order;
    for (std::int64_t c = 0; c < count; ++c) order.push_back(c);
    std::sort(order.begin(), order.end(), [this](std::int64_t one, std::int64_t other) {
      return layout_.position(stage_, one) < layout_.position(stage_, other);
    });
    for (std::int64_t recorded = 0; recorded < program_.most_recorded; ++recorded) record_turn(order, recorded);
    record(program_.update_section(), [this](StageProgram::Section&) {
      if (!evaluates_) update();
    });
    program_.trace = session_.finish();
    if (setup_.overlap_experts && !evaluates_) hide_exchanges(program_);
    settle_clock(program_, session_.take_drawing(), session_.cost());
    return std::move(program_);
  }

 private:
  struct Chunk {
    std::unique_ptr<Transformer> transformer;
    std::optional<WeightGatherer> gatherer;
    std::optional<ReferencePass> reference;
    bool is_first = false, is_last = false;
    // Of a decoder beside an encoder: it begins here; it gets the encoder's result besides its stream; it passes it on.
    bool starts_decoder = false, gets_memory = false, passes_memory = false;
    std::optional<ChunkStates> states;  // in host memory
    // Names of Megatron-core's loop: gradients as received and as sent back, the last stage's input; see holds_names().
    Tensor held_gradient, held_input_gradient, held_input;
    // Between the forward and the backward of a micro-batch.
    struct Slice {
      std::vector<Tensor> inputs;  // what came from the chunk before, or leaves of it
      Tensor ids, labels;          // kept for R only
      Tensor output;
      std::uint32_t first_node = 0, root = 0;
    };
    std::vector<Slice> slices;
  };
  // One pass of the recorded micro-batch through a chunk.
  struct Pass {
    std::int64_t chunk = 0, slice = 0;
    bool is_last = false;  // that makes gradients, if it is a backward
  };

  template <class Work>
  void record(std::size_t index, Work&& work) {
    const CapturedScope scope(session_, setup_.captures(whole_iteration) && index != program_.update_section());
    StageProgram::Section made;
    made.begin = session_.mark();
    work(made);
    made.end = session_.mark();
    program_.sections[index] = std::move(made);
  }

  // One micro-batch through the stage's chunks and back.
  void record_turn(const std::vector<std::int64_t>& order, std::int64_t recorded) {
    const auto part = [&](std::int64_t c, std::int64_t slice, Part which,
                          void (StageRecorder::*work)(const Pass&, StageProgram::Section&)) {
      const Pass pass{.chunk = c, .slice = slice, .is_last = slice == 0 && recorded + 1 == shape_of(c).recorded};
      Transformer& transformer = *chunks_[static_cast<std::size_t>(c)].transformer;
      transformer.set_slice(slice);
      transformer.set_expert_pass(recorded * program_.slices + slice);
      record(program_.section(c, recorded, slice, which), [&](StageProgram::Section& s) { (this->*work)(pass, s); });
    };
    for (const std::int64_t c : order)
      for (std::int64_t slice = 0; recorded < shape_of(c).recorded && slice < program_.slices; ++slice)
        part(c, slice, Part::forward, &StageRecorder::forward);
    if (evaluates_) return;
    for (auto c = order.rbegin(); c != order.rend(); ++c) {
      for (std::int64_t slice = program_.slices; recorded < shape_of(*c).recorded && slice-- > 0;) {
        if (shape_of(*c).passes.recomputes) part(*c, slice, Part::recompute, &StageRecorder::recompute);
        part(*c, slice, Part::backward, &StageRecorder::backward);
        if (shape_of(*c).passes.splits) part(*c, slice, Part::weights, &StageRecorder::weights);
      }
    }
  }

  void allocate() {
    for (std::int64_t c = 0; c < static_cast<std::int64_t>(program_.chunks.size()); ++c) {
      Chunk& chunk = chunks_.emplace_back();
      chunk.slices.resize(static_cast<std::size_t>(program_.slices));
      chunk.is_first = layout_.is_first(stage_, c);
      chunk.is_last = layout_.is_last(stage_, c);
      if (layout_.decoder_stage() > 0) {
        chunk.starts_decoder = stage_ == layout_.decoder_stage();
        chunk.gets_memory = stage_ > layout_.decoder_stage();
        chunk.passes_memory = stage_ >= layout_.decoder_stage() && !chunk.is_last;
      }
      const ModelPart part{layout_.layers(stage_, c), chunk.is_first, chunk.is_last};
      chunk.transformer = std::make_unique<Transformer>(model_, setup_, part, session_, autograd_, &communication_,
                                                        chunk.is_last ? table_here() : nullptr);
      for (TrainedParameter& parameter : chunk.transformer->parameters())
        if (parameter.trains) parameters_.push_back(&parameter);
      if (setup_.zero_stage == 3) gather_units(chunk);
      if (setup_.zero_stage == 2 && setup_.bucket_bytes == whole_layers) mark_units(chunk);
    }
    if (setup_.has_expert_loads()) draw_experts();
    if (setup_.traits().core) add_workspaces();
    if (setup_.traits().megatron && !setup_.traits().core) add_gather_buffer();
    if (keeps_logits()) chunks_.front().transformer->keep_logits();
    if (evaluates_) return;
    if (setup_.compares_answers()) hold_references();
    if (setup_.traits().buckets_hold_all) add_buckets();
    if (setup_.has_flat_states() && !parameters_.empty()) {
      zero_.emplace(setup_, session_, communication_, parameters_);
      reducer_.set_zero(*zero_);
      return;
    }
    const std::vector<TrainedParameter*> at_home = offload_states();
    if (setup_.optimizer_device == StateDevice::gpu || setup_.offloaded_states > 0) {
      if (!at_home.empty()) optimizer_.emplace(setup_, session_, at_home, &communication_);
      if (setup_.updates_in_backward())
        reducer_.set_update([this](TrainedParameter& parameter) { optimizer_->update_now(parameter); });
      return;
    }
    for (TrainedParameter* parameter : parameters_)
      parameter->is_summed_late = layout_.routes() > 1 || has_copies(parameter->shape.name);
    host_optimizer_.emplace(setup_, session_, parameters_, &communication_,
                            std::min(setup_.gpus(), layout_.gpus_per_host()));
    reducer_.set_host(*host_optimizer_);
  }

  void hold_references() {
    for (std::int64_t c = 0; c < static_cast<std::int64_t>(chunks_.size()); ++c) {
      Chunk& chunk = chunks_[static_cast<std::size_t>(c)];
      const ModelPart part{layout_.layers(stage_, c), chunk.is_first, chunk.is_last};
      chunk.reference.emplace(model_, setup_, part, session_, autograd_, &communication_);
    }
  }

  // The rank shown is the one of its group that gets most rows in this stage.
  void draw_experts() {
    ExpertLoad load(model_, setup_);
    std::vector<std::int64_t> layers;
    for (std::int64_t c = 0; c < static_cast<std::int64_t>(chunks_.size()); ++c) {
      const LayerRange range = layout_.layers(stage_, c);
      for (std::int64_t layer = range.first; layer < range.first + range.count; ++layer)
        if (model_.has_experts(layer)) layers.push_back(layer);
    }
    load.show_fullest(layers, program_.most_recorded * program_.slices);
    for (Chunk& chunk : chunks_) chunk.transformer->set_expert_load(load);
  }

  // Of an evaluation: as transformers' Trainer joins them (EvalLoopContainer.add, nested_concat).
  [[nodiscard]] bool keeps_logits() const { return evaluates_ && setup_.evaluation_keeps == EvaluationKeeps::logits; }
  void keep_logits(Chunk& chunk) {
    Tensor logits = chunk.transformer->take_logits();
    batch_logits_ = {};  // a name, until the next batch has its own
    batch_logits_ =
        communication_.all_gather(CommGroup::gradient, "evaluation.gathered", logits, TensorRole::temporary);
    logits = {};
    if (kept_logits_) {
      Tensor joined = session_.empty("evaluation.logits", batch_logits_.type(),
                                     kept_logits_.elements() + batch_logits_.elements(), TensorRole::temporary);
      session_.kernel({.name = "cat", .reads = {kept_logits_, batch_logits_}, .writes = {joined}});
      kept_logits_ = std::move(joined);
    } else {
      kept_logits_ = batch_logits_;
    }
    const std::int64_t done = ++evaluated_;
    const bool flushes = setup_.evaluation_flush > 0 && done % setup_.evaluation_flush == 0;
    if (!flushes && done < setup_.gradient_accumulation) return;
    const Bytes bytes = kept_logits_.bytes();
    session_.transfer({.name = "Memcpy DtoH",
                       .kind = OpKind::copy_device_to_host,
                       .lane = "evaluation results",
                       .bytes = bytes,
                       .reads = {kept_logits_}});
    session_.device_sync();
    kept_logits_ = batch_logits_ = {};
  }

  // DistributedDataParallel copies gradients into them (gradient_as_bucket_view is false).
  void add_buckets() {
    std::int64_t elements = 0;
    for (const TrainedParameter* parameter : parameters_) elements += parameter->shape.elements();
    if (communication_.shape(CommGroup::gradient).ranks > 1 && elements > 0)
      buckets_ = session_.empty("gradient.buckets", parameters_.front()->value.type(), elements, TensorRole::buffer);
  }

  void add_gather_buffer() {
    if (!setup_.sequence_parallel || setup_.tensor_parallel == 1) return;
    const Transformer& first = *chunks_.front().transformer;
    gather_buffer_ = session_.empty("gather.buffer", first.type(), first.stream_elements() * setup_.tensor_parallel,
                                    TensorRole::buffer);
    for (Chunk& chunk : chunks_) chunk.transformer->set_gather_buffer(gather_buffer_);
  }

  void add_workspaces() {
    workspaces_.emplace(session_);
    for (Chunk& chunk : chunks_) {
      workspaces_->add(chunk.transformer->parameters());
      if (chunk.is_last && chunk.transformer->head_table() != nullptr) {
        const bool gathers = setup_.sequence_parallel && setup_.tensor_parallel > 1;
        workspaces_->add_head(*chunk.transformer->head_table(), chunk.transformer->type(),
                              gathers ? chunk.transformer->stream_elements() * setup_.tensor_parallel : 0);
      }
      chunk.transformer->set_workspaces(&*workspaces_);
    }
  }

  void note_start_up() {
    // DeepSpeed makes its states before the first step; others' come with the first update.
    const bool early_states = setup_.traits().pytorch && (setup_.zero_stage == 1 || setup_.zero_stage == 2);
    if (early_states || setup_.has_flat_states()) return;
    std::vector<BuiltChunk> built;
    std::vector<Tensor> late = workspaces_ ? workspaces_->all() : std::vector<Tensor>();
    if (gather_buffer_) late.push_back(gather_buffer_);
    for (Chunk& chunk : chunks_) {
      built.push_back(built_chunk(chunk.transformer->parameters()));
      if (!workspaces_) continue;
      for (const Tensor& table : chunk.transformer->tables()) late.push_back(table);
    }
    program_.start_up = start_up_of(setup_, built, session_.memory_events(), late);
  }

  // In a V the stage of the head has the embedding too. A tied head then reads the same table, if its gradient is there
  // all the time or made by whole backwards: which of two split ones comes first is the plan's business.
  TrainedParameter* table_here() {
    const bool any_order = setup_.has_main_gradients() && setup_.zero_stage < 2;
    const bool splits = std::any_of(program_.chunks.begin(), program_.chunks.end(),
                                    [](const StageProgram::Chunk& chunk) { return chunk.passes.splits; });
    if (!model_.embeds_at_head() || setup_.zero_stage == 3 || layout_.routes() > 1 || (splits && !any_order))
      return nullptr;
    for (Chunk& chunk : chunks_) {
      if (chunk.transformer == nullptr) continue;  // the one that asks
      for (TrainedParameter& parameter : chunk.transformer->parameters())
        if (parameter.shape.name == "embedding.weight") return &parameter;
    }
    return nullptr;
  }

  // The deepest chunks' states go to the host; gives the parameters that the GPU's own optimizer has.
  std::vector<TrainedParameter*> offload_states() {
    std::vector<std::int64_t> by_depth;
    for (std::int64_t c = 0; c < static_cast<std::int64_t>(chunks_.size()); ++c) by_depth.push_back(c);
    std::sort(by_depth.begin(), by_depth.end(), [this](std::int64_t one, std::int64_t other) {
      return layout_.position(stage_, one) > layout_.position(stage_, other);
    });
    std::vector<TrainedParameter*> moved;
    for (std::size_t i = 0; i < static_cast<std::size_t>(setup_.offloaded_states); ++i) {
      Chunk& chunk = chunks_[static_cast<std::size_t>(by_depth[i])];
      std::vector<TrainedParameter*> inside;
      for (TrainedParameter& parameter : chunk.transformer->parameters())
        if (parameter.shape.layer >= 0 && !parameter.is_partial_sum) inside.push_back(&parameter);
      if (inside.empty()) continue;
      chunk.states.emplace(setup_, session_, communication_, inside, std::min(setup_.gpus(), layout_.gpus_per_host()));
      moved.insert(moved.end(), inside.begin(), inside.end());
    }
    std::vector<TrainedParameter*> rest;
    for (TrainedParameter* parameter : parameters_)
      if (std::find(moved.begin(), moved.end(), parameter) == moved.end()) rest.push_back(parameter);
    return rest;
  }

  // The chunk's last gradients are there.
  void end_gradients(const Pass& pass) {
    Chunk& chunk = chunks_[static_cast<std::size_t>(pass.chunk)];
    if (!chunk.states || !pass.is_last) return;
    chunk.states->update();
    carry(chunk.states->new_weights(), first_kernel(pass.chunk));
    for (const auto& buffer : chunk.states->buffers())
      if (buffer.first_in != OpId::none) carry({buffer.last_out}, buffer.first_in);
  }
  void carry(const std::vector<OpId>& awaited, OpId to) {
    for (const OpId from : awaited) program_.carried.push_back({.from = from, .to = to, .kind = EdgeKind::data});
  }
  // An update on the host that leaves nothing to do for the GPU is part of the step all the same.
  void carry_update(OpId last) {
    const std::size_t first = program_.sections[program_.section(0, 0, 0, Part::forward)].begin.ops;
    if (last != OpId::none) carry({last}, OpId(static_cast<std::uint32_t>(first)));
  }
  [[nodiscard]] OpId first_kernel(std::int64_t index) const {
    const StageProgram::Section& section = program_.sections[program_.section(index, 0, 0, Part::forward)];
    for (std::size_t i = section.begin.ops; i < section.end.ops; ++i)
      if (session_.kind_of(OpId(static_cast<std::uint32_t>(i))) == OpKind::kernel)
        return OpId(static_cast<std::uint32_t>(i));
    SPILLWAY_ASSERT(false);
    return OpId::none;
  }

  void gather_units(Chunk& chunk) {
    chunk.gatherer.emplace(setup_, session_, communication_, chunk.transformer->parameters(), evaluates_);
    WeightGatherer* gatherer = &*chunk.gatherer;
    chunk.transformer->set_units({[gatherer](std::int64_t layer) { gatherer->before(layer); },
                                  [gatherer](std::int64_t layer) { gatherer->after(layer); },
                                  [gatherer](std::int64_t layer) { gatherer->before_backward(layer); },
                                  [gatherer, this](std::int64_t layer) {
                                    reducer_.end_unit();
                                    gatherer->after_backward(layer);
                                  },
                                  [gatherer] { gatherer->before_head(); }});
  }

  // FSDP's units under a stage that keeps the weights.
  void mark_units(Chunk& chunk) {
    const auto nothing = [](std::int64_t) {};
    chunk.transformer->set_units({nothing, nothing, nothing, [this](std::int64_t) { reducer_.end_unit(); }, [] {}});
  }

  Tensor copied(Tensor tensor) {
    session_.copy_in(tensor);
    return tensor;
  }

  // Megatron-LM without sequence parallelism sends 1 / t of the tensor from each rank of the tensor group and gathers
  // it on the other side (Narayanan et al. 2021, section 4.1).
  [[nodiscard]] std::int64_t parts() const {
    return setup_.traits().megatron && !setup_.sequence_parallel ? setup_.tensor_parallel : 1;
  }
  [[nodiscard]] const StageProgram::Chunk& shape_of(std::int64_t index) const {
    return program_.chunks[static_cast<std::size_t>(index)];
  }
  [[nodiscard]] OpId last_on(std::string_view lane) const { return session_.last_collective(lane); }

  Tensor receive(const char* name, TensorRole role, std::int64_t from, Chunk& chunk, StageProgram::Section& s) {
    const DataType type = chunk.transformer->type();
    Tensor tensor = session_.empty(name, type, chunk.transformer->stream_elements(), role);
    communication_.receive(name, tensor, from, parts());
    s.receives.push_back(last_on(receive_lane));
    if (setup_.traits().megatron) session_.device_sync();
    return tensor;
  }

  void send(const char* name, const Tensor& tensor, std::int64_t to, StageProgram::Section& s) {
    communication_.send(name, tensor, to, parts());
    s.sends.push_back(last_on(send_lane));
  }

  void forward(const Pass& pass, StageProgram::Section& s) {
    Chunk& chunk = chunks_[static_cast<std::size_t>(pass.chunk)];
    Chunk::Slice& slice = chunk.slices[static_cast<std::size_t>(pass.slice)];
    const StageProgram::Chunk& shape = shape_of(pass.chunk);
    session_.set_phase(Phase::forward);
    session_.forget_kernels();  // what runs before is the schedule's business
    read_timer();
    slice.inputs.clear();
    const auto get = [&](const char* name, TensorRole role) {
      return shape.before >= 0 ? take_handed(pass)
                               : receive(name, role, layout_.previous(stage_, pass.chunk).stage, chunk, s);
    };
    for (int i = 0; i < (chunk.is_first ? 0 : chunk.gets_memory ? 2 : 1); ++i)
      slice.inputs.push_back(get("receive_forward", TensorRole::activation));
    std::vector<Tensor> beside;
    for (std::size_t i = 0; chunk.reference && !chunk.is_first && i < chunk.reference->forwards(); ++i)
      beside.push_back(get("receive_reference", TensorRole::temporary));
    if (chunk.is_first) slice.ids = copied(chunk.transformer->empty_input());
    if (chunk.is_last || chunk.starts_decoder) slice.labels = copied(chunk.transformer->empty_labels());
    autograd_.set_recording(!evaluates_ && !shape.passes.recomputes);
    Tensor out = run_layers(chunk, slice);
    autograd_.set_recording(true);
    if (chunk.reference) chunk.reference->run(*chunk.transformer, slice.ids, slice.labels, beside);
    if (keeps_logits()) keep_logits(chunk);
    if (!evaluates_ && chunk.is_last && holds_names() && !chunk.is_first) chunk.held_input = slice.inputs.front();
    read_timer();
    const std::int64_t next = layout_.next(stage_, pass.chunk).stage;
    if (!chunk.is_last && shape.after < 0) send("send_forward", out, next, s);
    if (chunk.passes_memory) send("send_forward", slice.inputs.back(), next, s);
    if (shape.after >= 0) hand_over(pass, out);
    for (Tensor& one : beside) {
      if (shape.after >= 0)
        hand_over(pass, std::move(one));
      else
        send("send_reference", one, next, s);
    }
    beside.clear();
    // Megatron-LM frees what it has sent (Korthikanti et al. 2022, appendix B).
    const bool goes_again = shape.passes.recomputes;
    if (!goes_again && !evaluates_ && (chunk.is_last || !setup_.traits().megatron)) slice.output = std::move(out);
    out = {};
    if (!goes_again) forget_input(slice);
    session_.set_layer(-1);
  }
  static void forget_input(Chunk::Slice& slice) {
    slice.labels = {};
    slice.ids = {};
  }
  // From one chunk to the next on the same stage, or of gradients to the one before.
  void hand_over(const Pass& pass, Tensor tensor) {
    handed_.resize(static_cast<std::size_t>(program_.slices));
    handed_[static_cast<std::size_t>(pass.slice)].push_back(std::move(tensor));
  }
  Tensor take_handed(const Pass& pass) {
    std::deque<Tensor>& handed = handed_[static_cast<std::size_t>(pass.slice)];
    Tensor first = std::move(handed.front());
    handed.pop_front();
    return first;
  }

  // From what came in to what goes out; while recording, the former become leaves.
  Tensor run_layers(Chunk& chunk, Chunk::Slice& slice) {
    slice.first_node = autograd_.next_node();
    if (autograd_.is_recording())
      for (Tensor& input : slice.inputs) input = autograd_.leaf(input);
    const Tensor& input = chunk.is_first ? slice.ids : slice.inputs.front();
    Tensor out = chunk.transformer->forward(input, slice.labels, chunk.gets_memory ? slice.inputs.back() : Tensor());
    slice.root = out.node();
    return out;
  }

  void recompute(const Pass& pass, StageProgram::Section&) {
    Chunk& chunk = chunks_[static_cast<std::size_t>(pass.chunk)];
    Chunk::Slice& slice = chunk.slices[static_cast<std::size_t>(pass.slice)];
    session_.set_phase(Phase::recompute);
    session_.forget_kernels();
    Tensor out = run_layers(chunk, slice);
    if (chunk.is_last) slice.output = std::move(out);
    out = {};
    forget_input(slice);
    session_.set_layer(-1);
  }

  // What comes from the chunk after this one: the gradient of its input, and of the encoder's result.
  Tensor incoming(Chunk& chunk, const Pass& pass, StageProgram::Section& s) {
    if (chunk.is_last) {
      Tensor gradient = session_.empty("loss.grad", DataType::fp32, 1, TensorRole::temporary);
      session_.kernel({.name = "fill_one", .writes = {gradient}});
      return gradient;
    }
    if (shape_of(pass.chunk).after >= 0) return take_handed(pass);
    return receive("receive_backward", TensorRole::temporary, layout_.next(stage_, pass.chunk).stage, chunk, s);
  }

  void backward(const Pass& pass, StageProgram::Section& s) {
    Chunk& chunk = chunks_[static_cast<std::size_t>(pass.chunk)];
    Chunk::Slice& slice = chunk.slices[static_cast<std::size_t>(pass.slice)];
    const StageProgram::Chunk& shape = shape_of(pass.chunk);
    session_.set_phase(Phase::backward);
    session_.forget_kernels();
    read_timer();
    Tensor gradient = incoming(chunk, pass, s), memory_gradient;
    if (holds_names() && !chunk.is_last) chunk.held_gradient = gradient;
    if (chunk.passes_memory)
      memory_gradient =
          receive("receive_backward", TensorRole::temporary, layout_.next(stage_, pass.chunk).stage, chunk, s);
    reducer_.begin_backward(pass.is_last);
    const std::size_t leaves = slice.inputs.size();
    slice.inputs.clear();
    autograd_.set_deferring(shape.passes.splits);
    std::vector<Tensor> passed = autograd_.backward_to(slice.first_node, leaves, slice.root, std::move(gradient));
    autograd_.set_deferring(false);
    slice.output = {};
    if (memory_gradient)
      session_.kernel(
          {.name = "add_encoder_gradient_", .reads = {passed.back(), memory_gradient}, .writes = {passed.back()}});
    memory_gradient = {};
    reducer_.end_backward();
    forget_copies();
    if (!shape.passes.splits) end_gradients(pass);
    chunk.transformer->end_micro_batch();
    session_.set_layer(-1);
    if (chunk.gatherer) chunk.gatherer->end_backward();
    read_timer();
    if (shape.before >= 0)
      hand_over(pass, std::move(passed.front()));
    else
      for (const Tensor& one : passed) send("send_backward", one, layout_.previous(stage_, pass.chunk).stage, s);
    if (holds_names() && !chunk.is_first) chunk.held_input_gradient = std::move(passed.front());
  }

  // Names of 1F1B's loop (megatron/core/pipeline_parallel/schedules.py) live until they get their next values: the
  // gradient received, through the next forward; the gradient sent, through the next backward; and the loss on the last
  // stage holds the leaf of its graph, the input, through the next forward.
  [[nodiscard]] bool holds_names() const {
    return setup_.traits().core && layout_.stages() > 1 && program_.chunks.size() == 1 && program_.slices == 1;
  }
  void forget_names() {
    for (Chunk& chunk : chunks_) chunk.held_gradient = chunk.held_input_gradient = chunk.held_input = {};
  }

  void weights(const Pass& pass, StageProgram::Section&) {
    session_.set_phase(Phase::backward);
    session_.forget_kernels();
    reducer_.begin_backward(pass.is_last);
    autograd_.run_deferred();
    reducer_.end_backward();
    forget_copies();
    end_gradients(pass);
    session_.set_layer(-1);
  }

  // In a pipeline, what follows is the schedule's business.
  void forget_copies() {
    if (host_optimizer_ && layout_.stages() > 1) host_optimizer_->forget();
  }

  void read_timer() {
    if (setup_.phase_timers) session_.device_sync();
  }

  [[nodiscard]] bool has_copies(const std::string& name) const {
    return layout_.stages() > 1 &&
           (name == "embedding.weight" || name == "positions.weight" || name.ends_with("relative_bias.weight"));
  }

  // Gradients of parameters that several stages have copies of are summed over these: the embedding, of the input, of
  // the decoder's beside an encoder, of a tied head; learned positions; the relative bias of a stack. Copies on one
  // stage are summed there. Where the pipeline runs both ways, everything is there twice.
  void sum_copies() {
    if (layout_.stages() == 1) return;
    const std::int64_t decoder = layout_.decoder_stage();
    sum_directions();
    std::vector<std::int64_t> readers = {layout_.first_stage()}, embedders, of_encoder, of_decoder;
    if (decoder > 0) readers.push_back(decoder);
    embedders = readers;
    if (model_.embeds_at_head()) embedders.push_back(layout_.last_stage());
    std::sort(embedders.begin(), embedders.end());
    embedders.erase(std::unique(embedders.begin(), embedders.end()), embedders.end());
    for (std::int64_t stage = 0; stage < layout_.stages(); ++stage)
      (stage < decoder ? of_encoder : of_decoder).push_back(stage);
    sum_here("embedding.weight");
    if (layout_.routes() > 1) return;
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
  void sum_directions() {
    if (layout_.routes() == 1) return;
    const std::int64_t other = layout_.stages() - 1 - stage_;
    std::vector<Tensor> gradients;
    for (const TrainedParameter* parameter : parameters_) gradients.push_back(parameter->gradient);
    communication_.all_reduce_stages("all_reduce_directions_" + std::to_string(std::min(stage_, other)),
                                     std::move(gradients), {std::min(stage_, other), std::max(stage_, other)});
  }
  // The embedding and a tied head on one stage, in chunks of their own.
  void sum_here(std::string_view name) {
    std::vector<Tensor> copies;
    for (const TrainedParameter* parameter : parameters_)
      if (parameter->shape.name == name) copies.push_back(parameter->gradient);
    if (copies.size() > 1) session_.kernel({.name = "add_copies", .reads = copies, .writes = copies});
  }

  void update() {
    forget_names();
    session_.set_phase(Phase::backward);
    reducer_.finish(parameters_);
    sum_copies();
    session_.set_phase(Phase::optimizer);
    pause_between_steps();
    if (zero_)
      zero_->update();
    else if (host_optimizer_)
      carry_update(host_optimizer_->run());
    else if (optimizer_)
      optimizer_->run();
    for (Chunk& chunk : chunks_)
      if (chunk.states) chunk.states->end_step();
  }
  // A step ends with its last kernel, so what the program does after that is counted before the update.
  void pause_between_steps() {
    if (!setup_.traits().pauses_between_steps) return;
    session_.device_sync();
    session_.host_work("between steps", between_steps, {}, {}, false);
  }

  const ModelSpec& model_;
  const TrainingSetup& setup_;
  const ParallelLayout& layout_;
  std::int64_t stage_;
  bool evaluates_;
  EagerSession session_;
  Autograd autograd_;
  Communication communication_;
  GradientReducer reducer_;
  std::optional<Workspaces> workspaces_;  // of Megatron-core
  Tensor gather_buffer_;                  // of Megatron-LM
  Tensor buckets_;                        // of DistributedDataParallel
  std::deque<Chunk> chunks_;
  std::vector<TrainedParameter*> parameters_;  // those that are trained
  std::optional<OptimizerStep> optimizer_;
  std::optional<DeepspeedZero> zero_;
  std::optional<HostOptimizer> host_optimizer_;
  StageProgram program_;
  std::vector<std::deque<Tensor>> handed_;  // by slice, first in first out
  Tensor kept_logits_, batch_logits_;
  std::int64_t evaluated_ = 0;  // batches
};

}  // namespace

StageProgram record_stage(const ModelSpec& model, const TrainingSetup& setup, const CostModel& cost,
                          const ParallelLayout& layout, const CollectiveTimer& timer, std::int64_t stage,
                          const PipelinePlan& plan) {
  return StageRecorder(model, setup, cost, layout, timer, stage, plan, false).run();
}

StageProgram record_evaluation(const ModelSpec& model, const TrainingSetup& setup, const CostModel& cost,
                               const ParallelLayout& layout, const CollectiveTimer& timer, std::int64_t stage,
                               const PipelinePlan& plan) {
  return StageRecorder(model, setup, cost, layout, timer, stage, plan, true).run();
}

}  // namespace spillway::models
