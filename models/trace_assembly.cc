#include "models/trace_assembly.h"

#include <algorithm>
#include <utility>

#include "traces/base/input_error.h"

namespace spillway {
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

// Copies the sections of one program into the trace.
class TraceAssembly::Stamper {
 public:
  Stamper(Trace& out, Rank& rank, std::uint16_t number)
      : out_(out), rank_(rank), program_(*rank.program), from_(rank.program->trace), number_(number) {
    map_names();
    find_sections();
    deltas_.resize(program_.sections.size());
    rank_.copies.resize(static_cast<std::size_t>(program_.chunks * program_.micro_batches * 2));
    address_ = 0x7000'0000'0000;
  }

  void run(const std::vector<PipelineSlot>& order) {
    stamp(0, no_index16);
    for (const PipelineSlot& slot : order) stamp_slot(slot);
    for (std::int64_t chunk = 0; chunk < program_.chunks; ++chunk)
      for (std::int64_t recorded = 0; recorded < program_.recorded; ++recorded)
        set_deltas(chunk, recorded, recorded == program_.recorded - 1 ? program_.micro_batches - 1 : recorded);
    stamp(program_.update_section(), no_index16);
  }

 private:
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
  void stamp_slot(const PipelineSlot& slot) {
    const std::int64_t recorded = program_.recording_of(slot.micro_batch);
    for (std::int64_t other = 0; other < recorded; ++other)
      set_deltas(slot.chunk, other, other == recorded - 1 ? slot.micro_batch - 1 : other);
    if (slot.is_backward) set_deltas(slot.chunk, recorded, slot.micro_batch);
    const std::size_t section = program_.section(slot.chunk, recorded, slot.is_backward);
    stamp(section, static_cast<std::uint16_t>(slot.micro_batch));
    rank_.copies[copy_index(program_, slot.chunk, slot.micro_batch, slot.is_backward)] = deltas_[section];
  }

  void set_deltas(std::int64_t chunk, std::int64_t recorded, std::int64_t micro_batch) {
    for (const bool is_backward : {false, true})
      deltas_[program_.section(chunk, recorded, is_backward)] =
          rank_.copies[copy_index(program_, chunk, micro_batch, is_backward)];
  }

  void stamp(std::size_t index, std::uint16_t micro_batch) {
    const Section& section = program_.sections[index];
    Deltas& deltas = deltas_[index];
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
      ops.start[i] += on_host ? host_shift : stream_shift;
      if (!on_host) ops.launched_by[i] = shifted(ops.launched_by[i], deltas.op);
      if (on_host) last_call_ = OpId(static_cast<std::uint32_t>(i));
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
      event.device = static_cast<std::int16_t>(number_);
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

std::size_t TraceAssembly::add_rank(const StageProgram& program, const std::vector<PipelineSlot>& order,
                                    const std::string& name) {
  const std::size_t number = ranks_.size();
  SPILLWAY_ASSERT(number < 0x7fff);
  Rank& rank = ranks_.emplace_back();
  rank.program = &program;
  Stamper(out_, rank, static_cast<std::uint16_t>(number)).run(order);
  for (Device device : program.trace.devices) {
    device.name = out_.strings.intern(program.trace.strings.text(device.name));
    device.rank = static_cast<std::uint16_t>(number);
    device.ordinal = static_cast<std::int16_t>(number);
    out_.devices.push_back(device);
  }
  for (Lane& lane : out_.lanes)
    if (lane.rank == number && lane.kind == LaneKind::host_thread) lane.name = out_.strings.intern("host of " + name);
  if (number == 0) out_.findings = program.trace.findings;
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
  const Rank& from = ranks_[sender];
  const Rank& to = ranks_[receiver];
  for (std::int64_t m = 0; m < from.program->micro_batches; ++m) {
    const auto section_of = [&](const Rank& rank, std::int64_t chunk) -> const Section& {
      return rank.program->sections[rank.program->section(chunk, rank.program->recording_of(m), is_backward)];
    };
    const std::int64_t from_delta = from.copies[copy_index(*from.program, sender_chunk, m, is_backward)].op;
    const std::int64_t to_delta = to.copies[copy_index(*to.program, receiver_chunk, m, is_backward)].op;
    const std::vector<OpId>& sends = section_of(from, sender_chunk).sends;
    const std::vector<OpId>& receives = section_of(to, receiver_chunk).receives;
    SPILLWAY_ASSERT(sends.size() == receives.size());
    for (std::size_t n = 0; n < sends.size(); ++n)
      for (const OpId wait : waits_of(shifted(sends[n], from_delta)))
        between_.push_back({.from = wait, .to = shifted(receives[n], to_delta), .kind = EdgeKind::cross_stream});
  }
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
    const std::int64_t copies = program->micro_batches - program->recorded + 1;
    for (std::int64_t chunk = 0; chunk < program->chunks; ++chunk)
      for (std::int64_t recorded = 0; recorded < program->recorded; ++recorded)
        for (const bool is_backward : {false, true})
          add(program->sections[program->section(chunk, recorded, is_backward)],
              recorded == std::max<std::int64_t>(program->recorded - 2, 0) ? copies : 1);
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

}  // namespace spillway
