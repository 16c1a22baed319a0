#include "models/step/trace_assembly.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/input_error.h"

namespace spillway::models {
namespace {

using Section = StageProgram::Section;

template <class Id>
Id shifted(Id id, std::int64_t delta) {
  return static_cast<Id>(static_cast<std::int64_t>(id) + delta);
}

template <class T>
void append_range(std::vector<T>& into, const std::vector<T>& from, std::size_t begin, std::size_t end) {
  into.insert(into.end(), from.begin() + static_cast<std::ptrdiff_t>(begin),
              from.begin() + static_cast<std::ptrdiff_t>(end));
}

}  // namespace

namespace {

// visit(pass, part): the recorded parts that an operation runs, in their order.
template <class Visit>
void for_each_pass(const PipelineOp& op, const StageProgram& program, const Visit& visit) {
  using Part = StageProgram::Part;
  const auto backward = [&](const PipelinePass& pass) {
    visit(pass, Part::backward);
    if (program.chunks[static_cast<std::size_t>(pass.chunk)].passes.splits) visit(pass, Part::weights);
  };
  switch (op.kind) {
    case PipelineOpKind::forward:
      return visit(op.pass, Part::forward);
    case PipelineOpKind::recompute:
      return visit(op.pass, Part::recompute);
    case PipelineOpKind::input_gradient:
      return visit(op.pass, Part::backward);
    case PipelineOpKind::weight_gradient:
      return visit(op.pass, Part::weights);
    case PipelineOpKind::backward:
      return backward(op.pass);
    case PipelineOpKind::paired:
      visit(op.pass, Part::forward);
      return backward(op.second);
    case PipelineOpKind::offload:
    case PipelineOpKind::reload:
      break;
  }
  SPILLWAY_ASSERT(false);
}

}  // namespace

// Copies the sections of one program into the trace.
class TraceAssembly::Stamper {
 public:
  Stamper(Trace& out, Rank& rank, const std::vector<std::int32_t>& turns, std::uint16_t number)
      : out_(out), rank_(rank), turns_(turns), program_(*rank.program), from_(rank.program->trace), number_(number) {
    map_names();
    find_sections();
    deltas_.resize(program_.sections.size());
    std::size_t copies = 0;
    for (const StageProgram::Chunk& chunk : program_.chunks) {
      rank_.first_copy.push_back(copies);
      copies += static_cast<std::size_t>(chunk.passes.turns * program_.slices * StageProgram::parts);
    }
    rank_.copies.resize(copies);
    address_ = 0x7000'0000'0000;
  }

  void run(const std::vector<PipelineOp>& order, double joules) {
    stamp(0, no_index16);
    for (StartUpEvent event : program_.start_up) {
      event.device = static_cast<std::int16_t>(number_);
      event.stream = lanes_[index_of(event.stream)];
      if (event.tensor != TensorId::none) event.tensor = shifted(event.tensor, deltas_[0].tensor);
      out_.start_up.push_back(event);
    }
    rank_.marks.reserve(order.size() + 1);
    for (const PipelineOp& op : order) {
      rank_.marks.push_back(mark());
      stamp_op(op);
    }
    rank_.marks.push_back(mark());
    for (std::int64_t chunk = 0; chunk < static_cast<std::int64_t>(program_.chunks.size()); ++chunk) {
      const StageProgram::Chunk& shape = chunk_of(chunk);
      for (std::int64_t recorded = 0; recorded < shape.recorded; ++recorded)
        set_deltas(chunk, recorded, recorded == shape.recorded - 1 ? shape.passes.turns - 1 : recorded);
    }
    stamp(program_.update_section(), no_index16);
    if (program_.power) {
      DevicePower& power = out_.powers.emplace_back(*program_.power);
      power.rank = number_;
      power.work_microjoules = std::llround(joules * 1e6);
    }
    for (Edge edge : program_.carried) {
      edge.from = mapped(edge.from);
      edge.to = mapped(edge.to);
      out_.carried.push_back(edge);
    }
  }

 private:
  [[nodiscard]] const StageProgram::Chunk& chunk_of(std::int64_t chunk) const {
    return program_.chunks[static_cast<std::size_t>(chunk)];
  }
  [[nodiscard]] Mark mark() const {
    return {static_cast<std::uint32_t>(out_.ops.size()), static_cast<std::uint32_t>(out_.memory_events.size()),
            static_cast<std::uint64_t>(address_)};
  }

  void stamp_op(const PipelineOp& op) {
    for_each_pass(op, program_, [this](const PipelinePass& pass, Part part) { stamp_pass(pass, part); });
  }

  void map_names() {
    names_.resize(from_.strings.size());
    for (std::size_t i = 0; i < names_.size(); ++i)
      names_[i] = out_.strings.intern(from_.strings.text(static_cast<StringId>(i)));
    for (Lane lane : from_.lanes) {
      lane.rank = number_;
      if (lane.device >= 0) lane.device = static_cast<std::int16_t>(number_);
      lane.name = names_[static_cast<std::size_t>(lane.name)];
      lanes_.push_back(out_.lane(lane));
    }
    for (const StringId name : from_.ops.name) op_names_.push_back(names_[static_cast<std::size_t>(name)]);
    for (const LaneId lane : from_.ops.lane) op_lanes_.push_back(lanes_[index_of(lane)]);
    for (const StringId name : from_.tensors.name) tensor_names_.push_back(names_[static_cast<std::size_t>(name)]);
    for (const StringId name : from_.tensors.dtype) tensor_types_.push_back(names_[static_cast<std::size_t>(name)]);
  }

  void find_sections() {
    op_section_.resize(from_.ops.size());
    tensor_section_.resize(from_.tensors.size());
    tensor_address_.resize(from_.tensors.size());
    for (std::size_t s = 0; s < program_.sections.size(); ++s) {
      const Section& section = program_.sections[s];
      std::fill(op_section_.begin() + static_cast<std::ptrdiff_t>(section.begin.ops),
                op_section_.begin() + static_cast<std::ptrdiff_t>(section.end.ops), static_cast<std::uint32_t>(s));
      std::fill(tensor_section_.begin() + static_cast<std::ptrdiff_t>(section.begin.tensors),
                tensor_section_.begin() + static_cast<std::ptrdiff_t>(section.end.tensors),
                static_cast<std::uint32_t>(s));
    }
    for (const MemoryEvent& event : from_.memory_events)
      if (event.action == MemoryAction::allocate) tensor_address_[index_of(event.tensor)] = event.address;
  }

  // A recorded micro-batch's neighbour stands for the neighbour of its copy; any other for itself.
  void stamp_pass(const PipelinePass& pass, Part part) {
    const StageProgram::Chunk& shape = chunk_of(pass.chunk);
    const std::int64_t turn = turns_[static_cast<std::size_t>(pass.micro_batch)], recorded = shape.recording_of(turn);
    for (std::int64_t other = 0; other < recorded; ++other)
      set_deltas(pass.chunk, other, other == recorded - 1 ? turn - 1 : other);
    for (const std::int64_t chunk : {std::int64_t{pass.chunk}, shape.before, shape.after})
      if (chunk >= 0) set_deltas(chunk, recorded, turn);
    const std::size_t section = program_.section(pass.chunk, recorded, pass.slice, part);
    stamp(section, static_cast<std::uint16_t>(pass.micro_batch));
    copy_of(rank_, pass.chunk, turn, pass.slice, part) = deltas_[section];
  }

  void set_deltas(std::int64_t chunk, std::int64_t recorded, std::int64_t turn) {
    const Deltas* copies = &copy_of(rank_, chunk, turn, 0, Part::forward);
    const std::size_t first = program_.section(chunk, recorded, 0, Part::forward);
    const auto count = static_cast<std::size_t>(program_.slices * StageProgram::parts);
    std::copy_n(copies, count, deltas_.begin() + static_cast<std::ptrdiff_t>(first));
    const std::int64_t source = chunk_of(chunk).recording_of(turn);
    if (source == recorded) return;
    // The copies are of another recording, alike piece by piece.
    const std::size_t other = program_.section(chunk, source, 0, Part::forward);
    for (std::size_t i = 0; i < count; ++i) rebase(deltas_[first + i], other + i, first + i);
  }

  // Of one section's copy, to be applied to what another section made.
  void rebase(Deltas& deltas, std::size_t from, std::size_t to) const {
    if (!deltas.is_there) return;
    const TraceMark &source = program_.sections[from].begin, &target = program_.sections[to].begin;
    deltas.op += static_cast<std::int64_t>(source.ops) - static_cast<std::int64_t>(target.ops);
    deltas.tensor += static_cast<std::int64_t>(source.tensors) - static_cast<std::int64_t>(target.tensors);
    if (std::max(source.tensors, target.tensors) < tensor_address_.size())
      deltas.address += static_cast<std::int64_t>(tensor_address_[source.tensors].count()) -
                        static_cast<std::int64_t>(tensor_address_[target.tensors].count());
  }

  void stamp(std::size_t index, std::uint16_t micro_batch) {
    const Section& section = program_.sections[index];
    Deltas& deltas = deltas_[index];
    deltas.is_there = true;
    deltas.op = static_cast<std::int64_t>(out_.ops.size()) - static_cast<std::int64_t>(section.begin.ops);
    deltas.tensor = static_cast<std::int64_t>(out_.tensors.size()) - static_cast<std::int64_t>(section.begin.tensors);
    if (section.begin.tensors < section.end.tensors) {
      const auto first = static_cast<std::int64_t>(tensor_address_[section.begin.tensors].count());
      deltas.address = address_ - first;
      const std::size_t last = section.end.tensors - 1;
      address_ += static_cast<std::int64_t>(tensor_address_[last].count()) - first +
                  (from_.tensors.bytes[last].count() + 511) / 512 * 512;
    }
    const Picos host_shift = host_ - section.begin.host;
    const Picos stream_shift = std::max(host_shift, stream_ - section.begin.stream);
    append_ops(section, deltas, host_shift, stream_shift, micro_batch);
    append_tensors(section, deltas);
    append_memory(section, deltas, host_shift);
    append_uses(section, deltas);
    append_collectives(section, deltas);
    host_ = section.end.host + host_shift;
    stream_ = std::max(stream_, section.end.stream + stream_shift);
  }

  void append_ops(const Section& section, const Deltas& deltas, Picos host_shift, Picos stream_shift,
                  std::uint16_t micro_batch) {
    Ops& ops = out_.ops;
    const Ops& from = from_.ops;
    const std::size_t b = section.begin.ops, e = section.end.ops, first = ops.size();
    append_range(ops.name, op_names_, b, e);
    append_range(ops.kind, from.kind, b, e);
    append_range(ops.phase, from.phase, b, e);
    append_range(ops.lane, op_lanes_, b, e);
    append_range(ops.layer, from.layer, b, e);
    ops.micro_batch.resize(first + (e - b), micro_batch);
    append_range(ops.step, from.step, b, e);
    append_range(ops.flags, from.flags, b, e);
    append_range(ops.start, from.start, b, e);
    append_range(ops.duration, from.duration, b, e);
    append_range(ops.launched_by, from.launched_by, b, e);
    append_range(ops.span, from.span, b, e);
    append_range(ops.bytes, from.bytes, b, e);
    append_range(ops.flops, from.flops, b, e);
    for (std::size_t i = first; i < ops.size(); ++i) {
      const bool on_host = is_host_call(ops.kind[i]);
      const bool by_host = on_host || ops.launched_by[i] == OpId::none;  // a transfer starts when the host asks for it
      if (ops.start[i] != unknown_time) ops.start[i] += by_host ? host_shift : stream_shift;
      if (ops.launched_by[i] != OpId::none) ops.launched_by[i] = shifted(ops.launched_by[i], deltas.op);
      if (on_host && ops.start[i] != unknown_time) last_call_ = OpId(static_cast<std::uint32_t>(i));
    }
  }

  void append_tensors(const Section& section, const Deltas& deltas) {
    Tensors& tensors = out_.tensors;
    const std::size_t b = section.begin.tensors, e = section.end.tensors, first = tensors.size();
    append_range(tensors.name, tensor_names_, b, e);
    append_range(tensors.bytes, from_.tensors.bytes, b, e);
    append_range(tensors.storage, from_.tensors.storage, b, e);
    append_range(tensors.role, from_.tensors.role, b, e);
    append_range(tensors.dtype, tensor_types_, b, e);
    for (std::size_t i = first; i < tensors.size(); ++i)
      tensors.storage[i] = static_cast<std::uint32_t>(tensors.storage[i] + deltas.tensor);
  }

  void append_memory(const Section& section, const Deltas& deltas, Picos shift) {
    const OpId before = call_before_;
    for (std::size_t i = section.begin.memory_events; i < section.end.memory_events; ++i) {
      MemoryEvent event = from_.memory_events[i];
      const Deltas& owner = deltas_[tensor_section_[index_of(event.tensor)]];
      event.time += shift;
      event.address =
          Addr(static_cast<std::uint64_t>(static_cast<std::int64_t>(event.address.count()) + owner.address));
      event.tensor = shifted(event.tensor, owner.tensor);
      const bool inside = event.anchor != OpId::none && index_of(event.anchor) >= section.begin.ops;
      event.anchor = inside ? shifted(event.anchor, deltas.op) : before;
      if (event.device >= 0) event.device = static_cast<std::int16_t>(number_);
      event.stream = lanes_[index_of(event.stream)];
      out_.memory_events.push_back(event);
    }
    call_before_ = last_call_;
  }

  [[nodiscard]] OpId mapped(OpId op) const { return shifted(op, deltas_[op_section_[index_of(op)]].op); }

  void append_uses(const Section& section, const Deltas& deltas) {
    for (std::size_t i = section.begin.uses; i < section.end.uses; ++i) {
      Use use = from_.uses[i];
      use.op = shifted(use.op, deltas.op);
      use.tensor = shifted(use.tensor, deltas_[tensor_section_[index_of(use.tensor)]].tensor);
      out_.uses.push_back(use);
    }
    for (std::size_t i = section.begin.edges; i < section.end.edges; ++i) {
      Edge edge = from_.edges[i];
      if (!deltas_[op_section_[index_of(edge.from)]].is_there) continue;
      edge.from = mapped(edge.from);
      edge.to = shifted(edge.to, deltas.op);
      out_.edges.push_back(edge);
    }
  }

  void append_collectives(const Section& section, const Deltas& deltas) {
    for (std::size_t i = section.begin.collectives; i < section.end.collectives; ++i) {
      Collective collective = from_.collectives[i];
      const StringId name = op_names_[index_of(collective.op)];
      collective.op = shifted(collective.op, deltas.op);
      collective.group = names_[static_cast<std::size_t>(collective.group)];
      rank_.collectives[{collective.group, name}].push_back(collective.op);
      out_.collectives.push_back(collective);
    }
  }

  Trace& out_;
  Rank& rank_;
  const std::vector<std::int32_t>& turns_;
  const StageProgram& program_;
  const Trace& from_;
  std::uint16_t number_;
  std::vector<StringId> names_, op_names_, tensor_names_, tensor_types_;
  std::vector<LaneId> lanes_, op_lanes_;
  std::vector<std::uint32_t> op_section_, tensor_section_;
  std::vector<Addr> tensor_address_;
  std::vector<Deltas> deltas_;  // by section: of the copy that references mean at the moment
  Picos host_{}, stream_{};
  std::int64_t address_ = 0;
  OpId last_call_ = OpId::none, call_before_ = OpId::none;
};

TraceAssembly::TraceAssembly(const PipelinePlan& plan) : plan_(plan), energy_plan_(&plan), turns_(turns_of(plan)) {}

// In the order of the step, so that sums are the same however many of its micro-batches the trace has.
double TraceAssembly::joules_of(const StageProgram& program) const {
  const std::vector<std::int32_t> turns = turns_of(*energy_plan_);
  std::vector<StageProgram::Chunk> chunks = program.chunks;
  const std::vector<ChunkPasses> passes = chunk_passes(*energy_plan_, program.stage);
  for (std::size_t c = 0; c < chunks.size(); ++c) chunks[c].passes.turns = passes[c].turns;
  double joules = 0;
  joules += program.sections.front().joules;
  for (const PipelineOp& op : energy_plan_->compute[static_cast<std::size_t>(program.stage)])
    for_each_pass(op, program, [&](const PipelinePass& pass, Part part) {
      const std::int64_t recorded =
          chunks[static_cast<std::size_t>(pass.chunk)].recording_of(turns[static_cast<std::size_t>(pass.micro_batch)]);
      joules += program.sections[program.section(pass.chunk, recorded, pass.slice, part)].joules;
    });
  joules += program.sections.back().joules;
  return joules;
}

std::size_t TraceAssembly::add_rank(const StageProgram& program, const std::string& name) {
  const std::size_t number = ranks_.size();
  SPILLWAY_ASSERT(number < 0x7fff);
  Rank& rank = ranks_.emplace_back();
  rank.program = &program;
  Stamper(out_, rank, turns_, static_cast<std::uint16_t>(number))
      .run(plan_.compute[static_cast<std::size_t>(program.stage)], joules_of(program));
  for (Device device : program.trace.devices) {
    device.name = out_.strings.intern(program.trace.strings.text(device.name));
    device.rank = static_cast<std::uint16_t>(number);
    device.ordinal = static_cast<std::int16_t>(number);
    out_.devices.push_back(device);
  }
  for (Lane& lane : out_.lanes)
    if (lane.rank == number && lane.kind == LaneKind::host_thread && lane.number == 1)
      lane.name = out_.strings.intern("host of " + name);
  if (number == 0) {
    out_.findings = program.trace.findings;
    out_.capture_fit = program.trace.capture_fit;
  }
  return number;
}

std::vector<OpId> TraceAssembly::waits_of(OpId op) const {
  std::vector<OpId> result = {out_.ops.launched_by[index_of(op)]};
  auto edge = std::lower_bound(out_.edges.begin(), out_.edges.end(), op,
                               [](const Edge& e, OpId to) { return index_of(e.to) < index_of(to); });
  for (; edge != out_.edges.end() && edge->to == op; ++edge) result.push_back(edge->from);
  return result;
}

void TraceAssembly::connect(std::size_t sender, std::size_t receiver, std::int64_t sender_chunk,
                            std::int64_t receiver_chunk, bool is_backward) {
  Rank& from = ranks_[sender];
  Rank& to = ranks_[receiver];
  const Part part = is_backward ? Part::backward : Part::forward;
  const StageProgram::Chunk& shape = from.program->chunks[static_cast<std::size_t>(sender_chunk)];
  const auto join = [&](std::int64_t turn, std::int64_t slice) {
    const std::int64_t recorded = shape.recording_of(turn);
    const std::int64_t from_delta = copy_of(from, sender_chunk, turn, slice, part).op;
    const std::int64_t to_delta = copy_of(to, receiver_chunk, turn, slice, part).op;
    const auto& sends = from.program->sections[from.program->section(sender_chunk, recorded, slice, part)].sends;
    const auto& receives = to.program->sections[to.program->section(receiver_chunk, recorded, slice, part)].receives;
    SPILLWAY_ASSERT(sends.size() == receives.size());
    for (std::size_t n = 0; n < sends.size(); ++n)
      for (const OpId wait : waits_of(shifted(sends[n], from_delta)))
        between_.push_back({.from = wait, .to = shifted(receives[n], to_delta), .kind = EdgeKind::cross_stream});
  };
  for (std::int64_t turn = 0; turn < shape.passes.turns; ++turn)
    for (std::int64_t slice = 0; slice < from.program->slices; ++slice) join(turn, slice);
}

void TraceAssembly::meet(const std::vector<std::size_t>& ranks, std::string_view lane) {
  std::map<StringId, std::vector<const std::vector<OpId>*>> by_name;
  const StringId wanted = out_.strings.intern(lane);
  for (const std::size_t rank : ranks)
    for (const auto& [key, ops] : ranks_[rank].collectives)
      if (key.first == wanted) by_name[key.second].push_back(&ops);
  for (const auto& [name, lists] : by_name) {
    for (std::size_t n = 0; n < lists.front()->size(); ++n) {
      for (const auto* one : lists) {
        for (const OpId wait : waits_of((*one)[n]))
          for (const auto* other : lists)
            if (other != one) between_.push_back({.from = wait, .to = (*other)[n], .kind = EdgeKind::cross_stream});
      }
    }
  }
}

void TraceAssembly::reserve(const std::vector<const StageProgram*>& programs) {
  TraceMark sum;
  for (const StageProgram* program : programs) {
    const auto add = [&sum](const Section& section, std::int64_t times) {
      const auto n = static_cast<std::size_t>(times);
      sum.ops += n * (section.end.ops - section.begin.ops);
      sum.tensors += n * (section.end.tensors - section.begin.tensors);
      sum.memory_events += n * (section.end.memory_events - section.begin.memory_events);
      sum.uses += n * (section.end.uses - section.begin.uses);
      sum.edges += n * (section.end.edges - section.begin.edges);
      sum.collectives += n * (section.end.collectives - section.begin.collectives);
    };
    add(program->sections.front(), 1);
    add(program->sections.back(), 1);
    for (std::int64_t c = 0; c < static_cast<std::int64_t>(program->chunks.size()); ++c) {
      const StageProgram::Chunk& chunk = program->chunks[static_cast<std::size_t>(c)];
      const std::int64_t copies = chunk.passes.turns - chunk.recorded + 1;
      for (std::int64_t recorded = 0; recorded < chunk.recorded; ++recorded)
        for (std::int64_t slice = 0; slice < program->slices; ++slice)
          for (const Part part : {Part::forward, Part::recompute, Part::backward, Part::weights})
            add(program->sections[program->section(c, recorded, slice, part)],
                recorded == std::max<std::int64_t>(chunk.recorded - 2, 0) ? copies : 1);
    }
  }
  out_.ops.reserve(sum.ops);
  Tensors& tensors = out_.tensors;
  tensors.name.reserve(sum.tensors), tensors.bytes.reserve(sum.tensors), tensors.storage.reserve(sum.tensors);
  tensors.role.reserve(sum.tensors), tensors.dtype.reserve(sum.tensors);
  out_.memory_events.reserve(sum.memory_events);
  out_.uses.reserve(sum.uses);
  out_.edges.reserve(sum.edges + sum.collectives);
  out_.collectives.reserve(sum.collectives);
}

Trace TraceAssembly::finish() {
  out_.edges.insert(out_.edges.end(), between_.begin(), between_.end());
  out_.rank_count = static_cast<std::uint16_t>(ranks_.size());
  out_.memory_size_is_requested = true;
  out_.source_events = out_.ops.size();
  const Picos end = out_.ops.size() == 0 ? Picos(0) : *std::max_element(out_.ops.start.begin(), out_.ops.start.end());
  out_.steps.push_back({.name = out_.strings.intern("step 0"), .duration = end});
  for (int i = 0; i < capability_count; ++i) out_.set(static_cast<Capability>(i));
  return std::move(out_);
}

}  // namespace spillway::models
