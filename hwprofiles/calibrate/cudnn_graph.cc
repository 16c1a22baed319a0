#include "hwprofiles/calibrate/cudnn_graph.h"

#include <algorithm>

namespace spillway::hwprofiles::cudnn {
namespace {

constexpr std::int64_t alignment = 16;
constexpr std::int64_t most_engines = 8;
constexpr Sides one = {1, 1, 1, 1};

std::vector<std::int64_t> listed(const Sides& sides) { return {sides.begin(), sides.end()}; }
std::size_t bytes_of(Element element) { return element == Element::bf16 ? 2 : element == Element::boolean ? 1 : 4; }

}  // namespace

Owned::Owned(const Library& library, Kind kind) : library_(library) {
  library.require(library.create_descriptor(static_cast<int>(kind), &descriptor_), "making a descriptor");
}

void Owned::set(Attribute attribute, Type type, std::int64_t count, const void* values) {
  library_.require(
      library_.set_attribute(descriptor_, static_cast<int>(attribute), static_cast<int>(type), count, values),
      "describing a graph");
}

void Owned::finalize(const char* what) { library_.require(library_.finalize(descriptor_), what); }

Sides packed(const Sides& sides) { return {sides[1] * sides[2] * sides[3], sides[2] * sides[3], sides[3], 1}; }
Sides by_token(const Sides& sides) { return {sides[1] * sides[2] * sides[3], sides[3], sides[1] * sides[3], 1}; }

Graph::Tensor Graph::add(const Sides& sides, const Sides& strides, Element element, Place place) {
  const auto id = static_cast<std::int64_t>(tensors_.size()) + 1;
  Owned made(library_, Kind::tensor);
  made.set(Attribute::tensor_element, Type::element, static_cast<int>(element));
  made.set(Attribute::tensor_sides, listed(sides));
  made.set(Attribute::tensor_strides, listed(strides));
  made.set(Attribute::tensor_id, std::vector<std::int64_t>{id});
  made.set(Attribute::tensor_alignment, std::vector<std::int64_t>{alignment});
  made.set(Attribute::tensor_is_virtual, place == Place::inner);
  made.set(Attribute::tensor_is_by_value, place == Place::host);
  made.finalize("describing a tensor");
  tensors_.push_back({std::move(made), sides, strides});
  if (place == Place::memory)
    operands_.push_back({id, static_cast<std::size_t>(sides[0] * sides[1] * sides[2] * sides[3]) * bytes_of(element)});
  return tensors_.size() - 1;
}

Graph::Tensor Graph::operand(const Sides& sides, const Sides& strides, Element element) {
  return add(sides, strides, element, Place::memory);
}
Graph::Tensor Graph::inner(const Sides& sides, const Sides& strides, Element element) {
  return add(sides, strides, element, Place::inner);
}
Graph::Tensor Graph::number(float value) {
  const Tensor made = add(one, one, Element::fp32, Place::host);
  numbers_.emplace_back(static_cast<std::int64_t>(made) + 1, value);
  return made;
}

void Graph::apply(Pointwise op, std::int64_t axis, Tensor x, Tensor y, std::optional<Tensor> b,
                  std::optional<Tensor> t) {
  Owned mode(library_, Kind::pointwise);
  mode.set(Attribute::pointwise_mode, Type::pointwise, static_cast<int>(op));
  mode.set(Attribute::pointwise_compute, Type::element,
           static_cast<int>(op == Pointwise::at_least ? Element::boolean : Element::fp32));
  if (op == Pointwise::index) mode.set(Attribute::pointwise_axis, std::vector<std::int64_t>{axis});
  mode.finalize("describing an operation");
  Owned operation(library_, Kind::pointwise_operation);
  operation.set(Attribute::pointwise_of, mode);
  operation.set(Attribute::pointwise_x, of(x));
  if (b) operation.set(Attribute::pointwise_b, of(*b));
  if (t) operation.set(Attribute::pointwise_t, of(*t));
  operation.set(Attribute::pointwise_y, of(y));
  operation.finalize("describing an operation");
  modes_.push_back(std::move(mode));
  operations_.push_back(std::move(operation));
}

void Graph::apply(Pointwise op, Tensor x, Tensor y, std::optional<Tensor> b, std::optional<Tensor> t) {
  apply(op, 0, x, y, b, t);
}
Graph::Tensor Graph::apply_inner(Pointwise op, Tensor x, std::optional<Tensor> b, Element element) {
  const Tensor y = inner(sides(x), element);
  apply(op, x, y, b);
  return y;
}
void Graph::index(Tensor x, std::int64_t axis, Tensor y) { apply(Pointwise::index, axis, x, y, {}, {}); }

void Graph::multiply(Tensor a, Tensor b, Tensor c) {
  Owned mode(library_, Kind::product);
  mode.set(Attribute::product_compute, Type::element, static_cast<int>(Element::fp32));
  mode.finalize("describing a product");
  Owned operation(library_, Kind::product_operation);
  operation.set(Attribute::product_a, of(a));
  operation.set(Attribute::product_b, of(b));
  operation.set(Attribute::product_c, of(c));
  operation.set(Attribute::product_of, mode);
  operation.finalize("describing a product");
  modes_.push_back(std::move(mode));
  operations_.push_back(std::move(operation));
}

void Graph::reduce(Reduction op, Tensor x, Tensor y) {
  Owned mode(library_, Kind::reduction);
  mode.set(Attribute::reduction_operator, Type::reduction, static_cast<int>(op));
  mode.set(Attribute::reduction_compute, Type::element, static_cast<int>(Element::fp32));
  mode.finalize("describing a reduction");
  Owned operation(library_, Kind::reduction_operation);
  operation.set(Attribute::reduction_x, of(x));
  operation.set(Attribute::reduction_y, of(y));
  operation.set(Attribute::reduction_of, mode);
  operation.finalize("describing a reduction");
  modes_.push_back(std::move(mode));
  operations_.push_back(std::move(operation));
}

void Graph::reshape(Tensor x, Tensor y) {
  Owned operation(library_, Kind::reshape_operation);
  operation.set(Attribute::reshape_x, of(x));
  operation.set(Attribute::reshape_y, of(y));
  operation.finalize("describing a transposition");
  operations_.push_back(std::move(operation));
}

void Graph::norm(Kind kind, const std::vector<std::pair<Attribute, Tensor>>& tensors) {
  Owned operation(library_, kind);
  const bool forward = kind == Kind::norm_forward;
  operation.set(forward ? Attribute::norm_forward_mode : Attribute::norm_backward_mode, Type::norm_mode, layer_norm);
  if (forward) operation.set(Attribute::norm_forward_phase, Type::norm_phase, training);
  for (const auto& [attribute, tensor] : tensors) operation.set(attribute, of(tensor));
  operation.finalize("describing a norm");
  operations_.push_back(std::move(operation));
}

std::vector<std::pair<std::int64_t, void*>> Graph::numbers() {
  std::vector<std::pair<std::int64_t, void*>> all;
  for (auto& [id, value] : numbers_) all.emplace_back(id, &value);
  return all;
}

std::vector<Descriptor> Graph::operations() const {
  std::vector<Descriptor> all;
  for (const Owned& operation : operations_) all.push_back(operation.get());
  return all;
}

Owned described_device(const Library& library, const std::string& json) {
  Owned device(library, Kind::device_properties);
  device.set(Attribute::device_json, Type::character, static_cast<std::int64_t>(json.size()), json.data());
  device.finalize("describing a device");
  return device;
}

Engines::Engines(const Graph& graph, const Target& target) : graph_(graph.library(), Kind::graph) {
  const Library& library = graph.library();
  const std::vector<Descriptor> operations = graph.operations();
  graph_.set(Attribute::graph_operations, Type::descriptor, static_cast<std::int64_t>(operations.size()),
             operations.data());
  if (target.handle != nullptr) graph_.set(Attribute::graph_handle, Type::handle, 1, &target.handle);
  graph_.finalize("a graph of operations");

  Owned heuristics(library, Kind::heuristics);
  heuristics.set(Attribute::heuristics_graph, graph_);
  heuristics.set(Attribute::heuristics_mode, Type::heuristic_mode, static_cast<int>(HeuristicMode::best));
  if (target.device != nullptr) heuristics.set(Attribute::heuristics_device, *target.device);
  heuristics.finalize("asking for engines");
  std::vector<Descriptor> places;
  for (std::int64_t i = 0; i < most_engines; ++i) {
    configurations_.emplace_back(library, Kind::engine_configuration);
    places.push_back(configurations_.back().get());
  }
  std::int64_t found = 0;
  library.require(library.get_attribute(heuristics.get(), static_cast<int>(Attribute::heuristics_results),
                                        static_cast<int>(Type::descriptor), most_engines, &found, places.data()),
                  "asking for engines");
  while (configurations_.size() > static_cast<std::size_t>(std::max<std::int64_t>(found, 0)))
    configurations_.pop_back();
  if (configurations_.empty()) throw Refusal("cuDNN", "asking for engines", "no engine takes this graph", "");
}

Plan::Plan(const Graph& graph, const Target& target) : library_(graph.library()), engines_(graph, target) {
  std::optional<Refusal> first;
  for (std::size_t i = 0; i < engines_.count() && !plan_; ++i) {
    try {
      Owned plan(library_, Kind::plan);
      if (target.handle != nullptr) plan.set(Attribute::plan_handle, Type::handle, 1, &target.handle);
      if (target.device != nullptr) plan.set(Attribute::plan_device, *target.device);
      plan.set(Attribute::plan_configuration, engines_.configuration(i));
      plan.finalize("building a plan");
      plan_.emplace(std::move(plan));
    } catch (const Refusal& refusal) {
      if (!first) first = refusal;
    }
  }
  if (!plan_) throw *first;
  std::int64_t bytes = 0, count = 0;
  library_.require(library_.get_attribute(plan_->get(), static_cast<int>(Attribute::plan_workspace),
                                          static_cast<int>(Type::int64), 1, &count, &bytes),
                   "asking for its workspace");
  workspace_ = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 0));
}

void Plan::run(Handle handle, Graph& graph, const std::vector<void*>& operands, void* workspace) const {
  std::vector<std::int64_t> ids;
  std::vector<void*> pointers;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    ids.push_back(graph.operands()[i].id);
    pointers.push_back(operands[i]);
  }
  for (const auto& [id, address] : graph.numbers()) {
    ids.push_back(id);
    pointers.push_back(address);
  }
  Owned pack(library_, Kind::variant_pack);
  pack.set(Attribute::pack_ids, ids);
  pack.set(Attribute::pack_pointers, Type::pointer, static_cast<std::int64_t>(pointers.size()), pointers.data());
  pack.set(Attribute::pack_workspace, Type::pointer, 1, &workspace);
  pack.finalize("naming its operands");
  library_.require(library_.execute(handle, plan_->get(), pack.get()), "running a plan");
}

}  // namespace spillway::hwprofiles::cudnn
