#include "models/step/start_up.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <unordered_set>
#include <utility>

namespace spillway::models {
namespace {

constexpr std::int64_t parameter_alignment = 64, buffer_alignment = 128;

// One tensor of the framework: a parameter, or one of the experts stacked in it.
struct Piece {
  TrainedParameter* parameter = nullptr;
  std::int64_t elements = 0;
  [[nodiscard]] bool decays() const { return parameter->shape.columns > 1; }
};

std::vector<Piece> pieces_of(const BuiltChunk& chunk, bool experts) {
  std::vector<Piece> pieces;
  for (TrainedParameter* parameter : chunk) {
    if (!parameter->trains || parameter->is_expert != experts) continue;
    const std::int64_t count = std::max<std::int64_t>(1, parameter->shape.experts);
    for (std::int64_t i = 0; i < count; ++i) pieces.push_back({parameter, parameter->shape.elements() / count});
  }
  return pieces;
}

std::array<const Tensor*, 4> states_of(const TrainedParameter& parameter) {
  return {&parameter.first_moment, &parameter.second_moment, &parameter.first_scale, &parameter.second_scale};
}

struct Buffer {
  std::vector<Piece> pieces;
  std::vector<std::int64_t> first;  // element, by piece
  std::int64_t elements = 0, ranks = 1;
};

std::int64_t padded(std::int64_t elements, std::int64_t unit) { return (elements + unit - 1) / unit * unit; }

Buffer buffer_of(const TrainingSetup& setup, const BuiltChunk& chunk, bool experts) {
  Buffer buffer{.pieces = pieces_of(chunk, experts)};
  buffer.ranks = experts ? setup.expert_shards() : setup.shards();
  buffer.first.resize(buffer.pieces.size());
  for (std::size_t i = buffer.pieces.size(); i-- > 0;) {
    buffer.elements = padded(buffer.elements, parameter_alignment);
    buffer.first[i] = buffer.elements;
    buffer.elements += buffer.pieces[i].elements;
  }
  buffer.elements = padded(buffer.elements, std::lcm(buffer.ranks, buffer_alignment));
  return buffer;
}

std::vector<Buffer> buffers_of(const TrainingSetup& setup, const std::vector<BuiltChunk>& chunks) {
  std::vector<Buffer> buffers;
  for (const BuiltChunk& chunk : chunks)
    for (const bool experts : {false, true})
      if (Buffer buffer = buffer_of(setup, chunk, experts); !buffer.pieces.empty())
        buffers.push_back(std::move(buffer));
  return buffers;
}

class Builder {
 public:
  Builder(const TrainingSetup& setup, const std::vector<BuiltChunk>& chunks,
          const std::vector<MemoryEvent>& setup_events, const std::vector<Tensor>& late)
      : setup_(setup), chunks_(chunks), events_(setup_events) {
    for (const Tensor& tensor : late) late_.insert(tensor.id());
    stream_ = setup_events.empty() ? LaneId::none : setup_events.front().stream;
  }

  std::vector<StartUpEvent> run() {
    if (has_buffers(setup_)) {
      build();
      make_masters();
    }
    if (has_buffers(setup_) && is_adam())
      make_moments();
    else
      make_own_states();
    for (const MemoryEvent& event : events_)
      if (is_listed_late(event.tensor)) make_late(event.bytes, event.tensor);
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool is_listed_late(TensorId tensor) const { return late_.count(tensor) != 0; }
  [[nodiscard]] bool is_adam() const {
    return setup_.optimizer == OptimizerKind::adam || setup_.optimizer == OptimizerKind::adamw;
  }
  [[nodiscard]] bool is_split() const { return setup_.zero_stage >= 1; }

  std::uint32_t allocate(Bytes bytes, TensorId tensor = TensorId::none) {
    out_.push_back({.bytes = bytes, .block = blocks_, .stream = stream_, .tensor = tensor});
    return blocks_++;
  }
  void free(std::uint32_t block) { out_.push_back({.block = block, .allocates = false, .stream = stream_}); }
  void make_late(Bytes bytes, TensorId tensor) {
    out_.push_back({.bytes = bytes, .block = blocks_++, .late = true, .stream = stream_, .tensor = tensor});
  }

  void build() {
    std::unordered_set<std::uint32_t> placed;
    const auto place = [&placed](const Tensor& tensor) {
      if (tensor) placed.insert(static_cast<std::uint32_t>(tensor.id()));
    };
    std::vector<std::vector<std::uint32_t>> blocks;  // of pieces, by buffer
    for (const BuiltChunk& chunk : chunks_) {
      for (TrainedParameter* parameter : chunk)
        if (parameter->trains) {
          for (const Tensor* tensor : {&parameter->value, &parameter->gradient, &parameter->master}) place(*tensor);
          for (const Tensor* state : states_of(*parameter)) place(*state);
        }
      for (const bool experts : {false, true}) {
        const std::vector<Piece> pieces = pieces_of(chunk, experts);
        if (pieces.empty()) continue;
        blocks.emplace_back();
        for (const Piece& piece : pieces)
          blocks.back().push_back(allocate(Bytes(piece.elements * size_of(piece.parameter->value.type())),
                                           is_split() ? TensorId::none : piece.parameter->value.id()));
      }
    }
    for (const MemoryEvent& event : events_)
      if (placed.count(static_cast<std::uint32_t>(event.tensor)) == 0 && !is_listed_late(event.tensor))
        allocate(event.bytes, event.tensor);
    buffers_ = buffers_of(setup_, chunks_);
    for (std::size_t b = 0; b < buffers_.size(); ++b) {
      const Tensor &value = buffers_[b].pieces.front().parameter->value,
                   &gradient = buffers_[b].pieces.front().parameter->gradient;
      if (is_split()) allocate(Bytes(buffers_[b].elements * size_of(value.type())), value.id());
      allocate(Bytes(buffers_[b].elements * size_of(gradient.type())), gradient.id());
      for (std::size_t i = blocks[b].size(); is_split() && i-- > 0;) free(blocks[b][i]);
    }
  }

  // Elements of each piece that the first rank's optimizer has, those with weight decay first.
  [[nodiscard]] std::vector<std::pair<TrainedParameter*, std::int64_t>> shards() const {
    std::vector<std::pair<TrainedParameter*, std::int64_t>> result;
    for (const bool decays : {true, false}) {
      for (const Buffer& buffer : buffers_) {
        const std::int64_t end = is_split() ? buffer.elements / buffer.ranks : buffer.elements;
        for (std::size_t i = 0; i < buffer.pieces.size(); ++i) {
          const std::int64_t mine = std::min(buffer.first[i] + buffer.pieces[i].elements, end) - buffer.first[i];
          if (buffer.pieces[i].decays() == decays && mine > 0) result.emplace_back(buffer.pieces[i].parameter, mine);
        }
      }
    }
    return result;
  }

  void make_masters() {
    for (const auto& [parameter, elements] : shards()) {
      if (!parameter->master) continue;
      const std::uint32_t clone = allocate(Bytes(elements * size_of(parameter->value.type())));
      allocate(Bytes(elements * size_of(parameter->master.type())), parameter->master.id());
      free(clone);
    }
  }

  void make_moments() {
    for (const auto& [parameter, elements] : shards())
      for (const Tensor* moment : {&parameter->first_moment, &parameter->second_moment})
        if (*moment) make_late(Bytes(elements * size_of(moment->type())), first_moment());
  }
  [[nodiscard]] TensorId first_moment() const {
    for (const BuiltChunk& chunk : chunks_)
      for (const TrainedParameter* parameter : chunk)
        if (parameter->first_moment) return parameter->first_moment.id();
    return TensorId::none;
  }

  void make_own_states() {
    for (const BuiltChunk& chunk : chunks_)
      for (const TrainedParameter* parameter : chunk)
        for (const Tensor* state : states_of(*parameter))
          if (*state) make_late(state->bytes(), state->id());
  }

  const TrainingSetup& setup_;
  const std::vector<BuiltChunk>& chunks_;
  const std::vector<MemoryEvent>& events_;
  std::unordered_set<TensorId> late_;
  std::vector<Buffer> buffers_;
  std::vector<StartUpEvent> out_;
  std::uint32_t blocks_ = 0;
  LaneId stream_ = LaneId::none;
};

}  // namespace

// The projection of attention's result is built before what makes it.
BuiltChunk built_chunk(std::deque<TrainedParameter>& parameters) {
  BuiltChunk chunk;
  std::size_t layer_begins = 0;
  for (TrainedParameter& parameter : parameters) {
    if (chunk.empty() || chunk.back()->shape.layer != parameter.shape.layer) layer_begins = chunk.size();
    if (parameter.shape.name.find("attention.out.") == std::string::npos) {
      chunk.push_back(&parameter);
      continue;
    }
    const bool is_latent = std::any_of(
        chunk.begin() + static_cast<std::ptrdiff_t>(layer_begins), chunk.end(),
        [](const TrainedParameter* other) { return other->shape.name.find("attention.kv_down") != std::string::npos; });
    const std::size_t place = layer_begins + (is_latent ? 1 : 0);  // latent attention's norm is a module of its own
    chunk.insert(chunk.begin() + static_cast<std::ptrdiff_t>(std::min(place, chunk.size())), &parameter);
  }
  return chunk;
}

bool has_buffers(const TrainingSetup& setup) {
  return setup.traits().core && setup.zero_stage <= 1 && setup.has_main_gradients() &&
         setup.optimizer_device == StateDevice::gpu && setup.offloaded_states == 0 && !setup.fp8_weights;
}

std::vector<StartUpEvent> start_up_of(const TrainingSetup& setup, const std::vector<BuiltChunk>& chunks,
                                      const std::vector<MemoryEvent>& setup_events, const std::vector<Tensor>& late) {
  return Builder(setup, chunks, setup_events, late).run();
}

}  // namespace spillway::models
