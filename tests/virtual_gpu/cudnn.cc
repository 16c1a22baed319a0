// cuDNN's graph API over the virtual machine: descriptors are kept as they are given, graphs are looked at for what
// they compute, and plans run at known rates. What the real library would not take is not taken here.
#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hwprofiles/calibrate/cudnn_library.h"
#include "tests/virtual_gpu/call.h"

namespace spillway::virtual_gpu {
namespace {

using hwprofiles::cudnn::Attribute;
using hwprofiles::cudnn::Element;
using hwprofiles::cudnn::Kind;
using hwprofiles::cudnn::Pointwise;
using hwprofiles::cudnn::Status;
using hwprofiles::cudnn::Type;

constexpr Status success = 0, bad_parameter = 2000, not_supported = 3000, failed = 5000;

// What a graph computes, and how long that takes in how many kernels.
struct Computed {
  std::string words;  // "causal attention_backward"
  double seconds = 0, bytes = 0;
  int kernels = 1;
};

struct Made {
  Kind kind = Kind::tensor;
  std::map<Attribute, std::vector<unsigned char>> values;
  bool is_final = false;
  std::optional<Computed> computed;  // of a graph
  int rank = 0;                      // of an engine's configuration

  [[nodiscard]] bool has(Attribute attribute) const { return values.contains(attribute); }
  template <class T>
  [[nodiscard]] std::vector<T> all(Attribute attribute) const {
    const auto found = values.find(attribute);
    if (found == values.end()) return {};
    std::vector<T> list(found->second.size() / sizeof(T));
    std::memcpy(list.data(), found->second.data(), list.size() * sizeof(T));
    return list;
  }
  template <class T>
  [[nodiscard]] T one(Attribute attribute) const {
    T value{};
    const auto found = values.find(attribute);
    if (found != values.end() && found->second.size() >= sizeof value)
      std::memcpy(&value, found->second.data(), sizeof value);
    return value;
  }
  [[nodiscard]] Made* child(Attribute attribute) const { return one<Made*>(attribute); }
};

std::map<void*, std::unique_ptr<Made>>& descriptors() {
  static std::map<void*, std::unique_ptr<Made>> all;
  return all;
}
std::map<void*, std::uint64_t>& handles() {  // and their streams
  static std::map<void*, std::uint64_t> all;
  return all;
}
std::uintptr_t next_handle = 16;

Made* known(void* descriptor) {
  const auto found = descriptors().find(descriptor);
  return found == descriptors().end() ? nullptr : found->second.get();
}
bool is_final(const Made& made, Attribute attribute) {
  const Made* child = known(made.child(attribute));
  return child != nullptr && child->is_final;
}

std::size_t element_size(Type type) {
  switch (type) {
    case Type::boolean:
    case Type::character:
      return 1;
    case Type::int64:
    case Type::pointer:
    case Type::descriptor:
    case Type::handle:
      return 8;
    default:
      return 4;
  }
}

using Sides = std::vector<std::int64_t>;
Sides sides(const Made* tensor) { return tensor->all<std::int64_t>(Attribute::tensor_sides); }
Element element(const Made* tensor) { return static_cast<Element>(tensor->one<int>(Attribute::tensor_element)); }

// What each kind needs before it is finished, all of it children that are.
std::vector<Attribute> children_of(const Made& made) {
  switch (made.kind) {
    case Kind::pointwise_operation:
      return {Attribute::pointwise_of, Attribute::pointwise_x, Attribute::pointwise_y};
    case Kind::product_operation:
      return {Attribute::product_of, Attribute::product_a, Attribute::product_b, Attribute::product_c};
    case Kind::reduction_operation:
      return {Attribute::reduction_of, Attribute::reduction_x, Attribute::reduction_y};
    case Kind::reshape_operation:
      return {Attribute::reshape_x, Attribute::reshape_y};
    case Kind::norm_forward:
      return {Attribute::norm_forward_x,     Attribute::norm_forward_mean, Attribute::norm_forward_inverse_deviation,
              Attribute::norm_forward_scale, Attribute::norm_forward_bias, Attribute::norm_forward_epsilon,
              Attribute::norm_forward_y};
    case Kind::norm_backward:
      return {
          Attribute::norm_backward_x,     Attribute::norm_backward_mean,  Attribute::norm_backward_inverse_deviation,
          Attribute::norm_backward_dy,    Attribute::norm_backward_scale, Attribute::norm_backward_dscale,
          Attribute::norm_backward_dbias, Attribute::norm_backward_dx};
    case Kind::heuristics:
      return {Attribute::heuristics_graph};
    case Kind::plan:
      return {Attribute::plan_configuration};
    default:
      return {};
  }
}

bool fits_product(const Made& operation) {
  const Sides a = sides(operation.child(Attribute::product_a)), b = sides(operation.child(Attribute::product_b)),
              c = sides(operation.child(Attribute::product_c));
  return a.size() == 4 && b.size() == 4 && c.size() == 4 && a[3] == b[2] && c[2] == a[2] && c[3] == b[3] &&
         a[0] == b[0] && a[0] == c[0] && a[1] == c[1] && a[1] % b[1] == 0;
}
bool fits_reshape(const Made& operation) {
  Sides x = sides(operation.child(Attribute::reshape_x)), y = sides(operation.child(Attribute::reshape_y));
  std::sort(x.begin(), x.end());
  std::sort(y.begin(), y.end());
  return x == y;
}
bool has_sides(const Made& tensor) {
  const Sides strides = tensor.all<std::int64_t>(Attribute::tensor_strides);
  return sides(&tensor).size() == 4 && strides.size() == 4 && tensor.one<std::int64_t>(Attribute::tensor_id) > 0;
}

// Attention is a softmax between two products, or five products with the softmax made anew; in bf16.
std::optional<Computed> attention(const std::vector<Made*>& operations) {
  std::vector<const Made*> products;
  std::map<Pointwise, int> steps;
  int reductions = 0;
  for (const Made* one : operations) {
    if (one->kind == Kind::product_operation) products.push_back(one);
    if (one->kind == Kind::pointwise_operation)
      ++steps[static_cast<Pointwise>(one->child(Attribute::pointwise_of)->one<int>(Attribute::pointwise_mode))];
    reductions += one->kind == Kind::reduction_operation ? 1 : 0;
  }
  const bool forward = products.size() == 2, causal = steps[Pointwise::index] == 2;
  if (!forward && products.size() != 5) return std::nullopt;
  if (steps[Pointwise::exponential] != 1 || steps[Pointwise::select] != (causal ? 1 : 0) ||
      steps[Pointwise::at_least] != (causal ? 1 : 0))
    return std::nullopt;
  if (forward && (reductions != 2 || steps[Pointwise::divide] != 1 || steps[Pointwise::logarithm] != 1 ||
                  operations.back() != products.back()))
    return std::nullopt;
  const Made* queries = products[0]->child(Attribute::product_a);
  const Made* keys = products[0]->child(Attribute::product_b);
  if (element(queries) != Element::bf16 || element(keys) != Element::bf16) return std::nullopt;
  const Sides q = sides(queries), k = sides(keys);
  const bool groups = q[1] != k[1];
  if (!forward && reductions != (groups ? 3 : 1)) return std::nullopt;
  double flops = 4;
  for (const std::int64_t side : q) flops *= static_cast<double>(side);
  flops *= static_cast<double>(k[3]) * (causal ? 0.5 : 1) * (forward ? 1 : 2.5);
  Computed computed{.words = std::string(causal ? "causal " : "full ") + (groups ? "grouped " : "") +
                             (forward ? "attention_forward" : "attention_backward"),
                    .seconds = constants().attention_fixed + flops / (forward ? constants().attention_forward_rate
                                                                              : constants().attention_backward_rate)};
  computed.kernels = forward ? 1 : 3;
  return computed;
}

std::optional<Computed> computed_by(const std::vector<Made*>& operations) {
  if (operations.size() != 1) return attention(operations);
  const Made& one = *operations.front();
  const bool forward = one.kind == Kind::norm_forward;
  if (!forward && one.kind != Kind::norm_backward) return std::nullopt;
  const Sides x = sides(one.child(forward ? Attribute::norm_forward_x : Attribute::norm_backward_x));
  return Computed{.words = forward ? "norm_forward" : "norm_backward",
                  .seconds = constants().norm_fixed,
                  .bytes = static_cast<double>(x[0] * x[1] * 2 * (forward ? 2 : 3))};
}

bool is_refused(const Computed& computed) {
  return !constants().cudnn_refuses.empty() && computed.words.find(constants().cudnn_refuses) != std::string::npos;
}

// The graph of a plan, through its engine's configuration.
const Made* graph_of(const Made& plan) {
  const Made* configuration = known(plan.child(Attribute::plan_configuration));
  return configuration == nullptr ? nullptr : known(configuration->child(Attribute::configuration_engine));
}

Status finished(Made& made) {
  for (const Attribute attribute : children_of(made))
    if (!is_final(made, attribute)) return bad_parameter;
  switch (made.kind) {
    case Kind::tensor:
      return has_sides(made) ? success : bad_parameter;
    case Kind::product_operation:
      return fits_product(made) ? success : bad_parameter;
    case Kind::reshape_operation:
      return fits_reshape(made) ? success : bad_parameter;
    case Kind::graph: {
      const std::vector<Made*> operations = made.all<Made*>(Attribute::graph_operations);
      if (operations.empty() || !handles().contains(made.one<void*>(Attribute::graph_handle))) return bad_parameter;
      for (const Made* one : operations)
        if (known(const_cast<Made*>(one)) == nullptr || !one->is_final) return bad_parameter;
      made.computed = computed_by(operations);
      return made.computed ? success : not_supported;
    }
    case Kind::plan: {
      // The best engine of the widest heads can't be built: the next one is to be taken.
      const Made* configuration = known(made.child(Attribute::plan_configuration));
      if (!handles().contains(made.one<void*>(Attribute::plan_handle)) || graph_of(made) == nullptr)
        return bad_parameter;
      device().spend(constants().plan_build);
      return configuration->rank == 0 && graph_of(made)->computed->words == "causal attention_backward" ? not_supported
                                                                                                        : success;
    }
    case Kind::variant_pack:
      return made.has(Attribute::pack_ids) && made.has(Attribute::pack_pointers) &&
                     made.all<std::int64_t>(Attribute::pack_ids).size() ==
                         made.all<void*>(Attribute::pack_pointers).size()
                 ? success
                 : bad_parameter;
    default:
      return success;
  }
}

// Every tensor that is in memory has its bytes there; every number is given.
bool names_all(const Made& graph, const Made& pack) {
  std::map<std::int64_t, void*> given;
  const std::vector<std::int64_t> ids = pack.all<std::int64_t>(Attribute::pack_ids);
  const std::vector<void*> pointers = pack.all<void*>(Attribute::pack_pointers);
  for (std::size_t i = 0; i < ids.size(); ++i) given[ids[i]] = pointers[i];
  std::set<const Made*> tensors;
  for (const Made* operation : graph.all<Made*>(Attribute::graph_operations))
    for (const auto& [attribute, bytes] : operation->values)
      if (bytes.size() == sizeof(void*))
        if (const Made* child = known(operation->child(attribute)); child != nullptr && child->kind == Kind::tensor)
          tensors.insert(child);
  return std::all_of(tensors.begin(), tensors.end(), [&](const Made* tensor) {
    if (tensor->one<bool>(Attribute::tensor_is_virtual)) return true;
    const auto found = given.find(tensor->one<std::int64_t>(Attribute::tensor_id));
    if (found == given.end() || found->second == nullptr) return false;
    if (tensor->one<bool>(Attribute::tensor_is_by_value)) return true;
    std::size_t bytes = element(tensor) == Element::bf16 ? 2 : 4;
    for (const std::int64_t side : sides(tensor)) bytes *= static_cast<std::size_t>(side);
    return device_bytes_at(found->second) >= bytes;
  });
}

}  // namespace

std::size_t cudnn_alive() { return descriptors().size() + handles().size(); }

}  // namespace spillway::virtual_gpu

using namespace spillway::virtual_gpu;

extern "C" {
std::size_t cudnnGetVersion() { return static_cast<std::size_t>(constants().cudnn_version); }
const char* cudnnGetErrorString(int status) {
  return status == success         ? "CUDNN_STATUS_SUCCESS"
         : status == bad_parameter ? "CUDNN_STATUS_BAD_PARAM"
         : status == not_supported ? "CUDNN_STATUS_NOT_SUPPORTED"
                                   : "CUDNN_STATUS_EXECUTION_FAILED";
}
void cudnnGetLastErrorString(char* text, std::size_t size) { std::strncpy(text, "its own words\nand where", size); }
int cudnnCreate(void** handle) {
  const Call call("cudnnCreate", 0.2);
  if (!call) return failed;
  *handle = reinterpret_cast<void*>(next_handle += 16);
  handles()[*handle] = 0;
  return success;
}
int cudnnDestroy(void* handle) {
  const Call call("cudnnDestroy");
  handles().erase(handle);
  return call ? success : failed;
}
int cudnnSetStream(void* handle, void* stream) {
  const Call call("cudnnSetStream");
  if (!call || !handles().contains(handle)) return failed;
  handles()[handle] = reinterpret_cast<std::uintptr_t>(stream) / 16;
  return success;
}
int cudnnBackendCreateDescriptor(int kind, void** descriptor) {
  const Call call("cudnnBackendCreateDescriptor");
  if (!call) return failed;
  auto made = std::make_unique<Made>();
  made->kind = static_cast<Kind>(kind);
  *descriptor = made.get();
  descriptors()[*descriptor] = std::move(made);
  return success;
}
int cudnnBackendDestroyDescriptor(void* descriptor) {
  const Call call("cudnnBackendDestroyDescriptor");
  const bool was_there = descriptors().erase(descriptor) > 0;
  return call && was_there ? success : failed;
}
int cudnnBackendSetAttribute(void* descriptor, int attribute, int type, std::int64_t count, const void* values) {
  const Call call("cudnnBackendSetAttribute");
  Made* made = known(descriptor);
  if (!call) return failed;
  if (made == nullptr || made->is_final || values == nullptr || count < 1) return bad_parameter;
  const auto* bytes = static_cast<const unsigned char*>(values);
  made->values[static_cast<Attribute>(attribute)].assign(
      bytes, bytes + static_cast<std::size_t>(count) * element_size(static_cast<Type>(type)));
  return success;
}
int cudnnBackendGetAttribute(void* descriptor, int attribute, int, std::int64_t wanted, std::int64_t* count,
                             void* values) {
  const Call call("cudnnBackendGetAttribute");
  const Made* made = known(descriptor);
  if (!call) return failed;
  if (made == nullptr || !made->is_final) return bad_parameter;
  if (static_cast<Attribute>(attribute) == Attribute::plan_workspace) {
    const std::int64_t bytes = 1 << 20;
    std::memcpy(values, &bytes, sizeof bytes);
    *count = 1;
    return success;
  }
  if (static_cast<Attribute>(attribute) != Attribute::heuristics_results) return bad_parameter;
  Made* graph = known(made->child(Attribute::heuristics_graph));
  *count = is_refused(*graph->computed) ? 0 : std::min<std::int64_t>(wanted, 2);
  for (std::int64_t i = 0; i < *count; ++i) {
    Made* configuration = known(static_cast<void**>(values)[i]);
    if (configuration == nullptr || configuration->kind != Kind::engine_configuration) return bad_parameter;
    const auto* bytes = reinterpret_cast<const unsigned char*>(&graph);
    configuration->values[Attribute::configuration_engine].assign(bytes, bytes + sizeof graph);
    configuration->rank = static_cast<int>(i);
    configuration->is_final = true;
  }
  return success;
}
int cudnnBackendFinalize(void* descriptor) {
  const Call call("cudnnBackendFinalize");
  Made* made = known(descriptor);
  if (!call) return failed;
  if (made == nullptr || made->is_final) return bad_parameter;
  const Status status = finished(*made);
  made->is_final = status == success;
  return status;
}
int cudnnBackendExecute(void* handle, void* plan, void* pack) {
  const std::lock_guard lock(one_at_a_time());
  {
    const Call call("cudnnBackendExecute");
    if (!call) return failed;
  }
  const Made *of_plan = known(plan), *of_pack = known(pack);
  if (!handles().contains(handle) || of_plan == nullptr || of_pack == nullptr || !of_plan->is_final ||
      !of_pack->is_final)
    return bad_parameter;
  const Made* graph = graph_of(*of_plan);
  if (graph == nullptr || !names_all(*graph, *of_pack)) return bad_parameter;
  if (device_bytes_at(of_pack->one<void*>(Attribute::pack_workspace)) < (1 << 20)) return bad_parameter;
  const Computed& computed = *graph->computed;
  for (int i = 0; i < computed.kernels; ++i)
    launch_for("cudnn_kernel", computed.seconds / computed.kernels, computed.bytes / computed.kernels,
               handles()[handle]);
  return success;
}
}
