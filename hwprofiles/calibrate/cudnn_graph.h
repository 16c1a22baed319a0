// Operation graphs of cuDNN: tensors and operations, and the plan that runs one. All descriptors are given back.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hwprofiles/calibrate/cudnn_library.h"

namespace spillway::hwprofiles::cudnn {

// A descriptor; every function throws Refusal where the library does.
class Owned {
 public:
  Owned(const Library& library, Kind kind);
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  Owned(Owned&& other) noexcept : library_(other.library_), descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  Owned& operator=(Owned&&) = delete;
  ~Owned() {
    if (descriptor_ != nullptr) library_.destroy_descriptor(descriptor_);
  }

  [[nodiscard]] Descriptor get() const { return descriptor_; }
  void set(Attribute attribute, Type type, std::int64_t count, const void* values);
  void set(Attribute attribute, Type type, int word) { set(attribute, type, 1, &word); }
  void set(Attribute attribute, const std::vector<std::int64_t>& numbers) {
    set(attribute, Type::int64, static_cast<std::int64_t>(numbers.size()), numbers.data());
  }
  void set(Attribute attribute, bool flag) { set(attribute, Type::boolean, 1, &flag); }
  void set(Attribute attribute, const Owned& child) { set(attribute, Type::descriptor, 1, &child.descriptor_); }
  void finalize(const char* what);

 private:
  const Library& library_;
  Descriptor descriptor_ = nullptr;
};

using Sides = std::array<std::int64_t, 4>;
// Strides without gaps; of b, h, s, d that lie as b, s, h, d, which is how projections leave queries, keys and values.
Sides packed(const Sides& sides);
Sides by_token(const Sides& sides);

class Graph {
 public:
  using Tensor = std::size_t;  // its number
  struct Operand {             // in device memory
    std::int64_t id = 0;
    std::size_t bytes = 0;
  };

  explicit Graph(const Library& library) : library_(library) {}

  Tensor operand(const Sides& sides, const Sides& strides, Element element);
  Tensor number(float value);  // the same everywhere
  // Between operations, in no memory.
  Tensor inner(const Sides& sides, Element element = Element::fp32) { return inner(sides, packed(sides), element); }
  Tensor inner(const Sides& sides, const Sides& strides, Element element);

  // y = op(x), op(x, b), or op(x, b) where t.
  void apply(Pointwise op, Tensor x, Tensor y, std::optional<Tensor> b = {}, std::optional<Tensor> t = {});
  Tensor apply_inner(Pointwise op, Tensor x, std::optional<Tensor> b = {}, Element element = Element::fp32);
  void index(Tensor x, std::int64_t axis, Tensor y);  // y: each element's place along the axis
  void multiply(Tensor a, Tensor b, Tensor c);        // matrices of the last two sides
  void reduce(Reduction op, Tensor x, Tensor y);
  void reshape(Tensor x, Tensor y);
  // A norm's attributes, each with its tensor.
  void norm(Kind kind, const std::vector<std::pair<Attribute, Tensor>>& tensors);

  [[nodiscard]] const Sides& sides(Tensor tensor) const { return tensors_[tensor].sides; }
  [[nodiscard]] const Sides& strides(Tensor tensor) const { return tensors_[tensor].strides; }
  [[nodiscard]] const std::vector<Operand>& operands() const { return operands_; }
  // Ids and host addresses of numbers, as long as the graph is there.
  [[nodiscard]] std::vector<std::pair<std::int64_t, void*>> numbers();
  [[nodiscard]] std::vector<Descriptor> operations() const;
  [[nodiscard]] const Library& library() const { return library_; }

 private:
  enum class Place : std::uint8_t { memory, inner, host };
  struct Made {
    Owned descriptor;
    Sides sides, strides;
  };
  Tensor add(const Sides& sides, const Sides& strides, Element element, Place place);
  void apply(Pointwise op, std::int64_t axis, Tensor x, Tensor y, std::optional<Tensor> b, std::optional<Tensor> t);
  [[nodiscard]] const Owned& of(Tensor tensor) const { return tensors_[tensor].descriptor; }

  const Library& library_;
  std::vector<Made> tensors_;
  std::vector<Operand> operands_;
  std::deque<std::pair<std::int64_t, float>> numbers_;
  std::vector<Owned> modes_, operations_;  // what operations refer to, and themselves
};

// A graph's target: a handle's device, or one that is only described (Kind::device_properties).
struct Target {
  Handle handle = nullptr;
  const Owned* device = nullptr;
};
// A device that is not there, from cuDNN's description of it in JSON. Throws Refusal.
Owned described_device(const Library& library, const std::string& json);

// The engines that cuDNN's heuristics offer for a graph, best first.
class Engines {
 public:
  // Throws Refusal: the graph is not one that it takes, or no engine does.
  Engines(const Graph& graph, const Target& target);
  [[nodiscard]] std::size_t count() const { return configurations_.size(); }
  [[nodiscard]] const Owned& configuration(std::size_t i) const { return configurations_[i]; }

 private:
  Owned graph_;
  std::vector<Owned> configurations_;
};

// The first of the engines that can be built, as PyTorch takes it.
class Plan {
 public:
  // Throws Refusal with the first engine's reason.
  Plan(const Graph& graph, const Target& target);
  [[nodiscard]] std::size_t workspace_bytes() const { return workspace_; }
  // Operands' addresses as graph.operands() has them. Throws Refusal.
  void run(Handle handle, Graph& graph, const std::vector<void*>& operands, void* workspace) const;

 private:
  const Library& library_;
  Engines engines_;
  std::optional<Owned> plan_;
  std::size_t workspace_ = 0;
};

}  // namespace spillway::hwprofiles::cudnn
