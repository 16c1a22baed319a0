#include "models/network/workspaces.h"

#include <algorithm>

#include "hwprofiles/gpu_profile.h"

namespace spillway::models {
namespace {

constexpr std::int64_t mib = 1 << 20;
// PyTorch's default where it has no own for the generation (":4096:2:16:8").
constexpr std::int64_t usual_cublas_workspace = 8'519'680, hopper_cublas_workspace = 32 * mib;

std::int64_t groups_of(const TrainedParameter& weight) { return weight.shape.experts > 0 ? weight.shape.experts : 1; }

bool is_linear(const TrainedParameter& parameter) {
  const Component component = parameter.shape.component;
  const bool is_inside =
      component == Component::attention || component == Component::mlp || component == Component::experts;
  return parameter.trains && parameter.shape.layer >= 0 && parameter.shape.columns > 1 && is_inside;
}

}  // namespace

std::int64_t Workspaces::product_bytes() const {
  const std::string& architecture = session_.cost().gpu().architecture;
  return architecture == "Hopper" || architecture == "Blackwell" ? 32 * mib + 1024 : 4 * mib;
}

Workspaces::Shape Workspaces::dummy_shape(const TrainedParameter& weight) {
  return {weight.shape.rows / groups_of(weight), weight.shape.columns};
}

void Workspaces::add_dummy(const TrainedParameter& weight) {
  Tensor& dummy = dummies_[dummy_shape(weight)];
  if (!dummy)
    dummy = session_.empty("dummy_weight_gradient", weight.in_fp8 ? DataType::bf16 : weight.type(),
                           weight.shape.elements() / groups_of(weight), TensorRole::buffer);
}

void Workspaces::add(const std::deque<TrainedParameter>& parameters) {
  for (const TrainedParameter& parameter : parameters) {
    if (!is_linear(parameter) || parameter.shape.name.find("router") != std::string::npos) continue;
    if (!product_) product_ = bytes("workspace.transformer_engine", product_bytes());
    if (parameter.shape.experts > 0 && !grouped_.front())
      for (Tensor& each : grouped_) each = bytes("workspace.grouped_products", product_bytes());
    add_dummy(parameter);
  }
}

void Workspaces::add_head(const TrainedParameter& table, DataType type, std::int64_t elements) {
  const bool is_hopper = session_.cost().gpu().architecture == "Hopper";
  const std::int64_t size = is_hopper ? hopper_cublas_workspace : usual_cublas_workspace;
  program_ = bytes("workspace.cublas", size);
  engine_ = bytes("workspace.cublas_backward", size);
  if (table.trains) add_dummy(table);
  if (elements > 0) gathered_ = session_.empty("head.in.gathered", type, elements, TensorRole::buffer);
}

std::vector<Tensor> Workspaces::all() const {
  std::vector<Tensor> tensors = {product_, program_, engine_, gathered_};
  tensors.insert(tensors.end(), grouped_.begin(), grouped_.end());
  for (const auto& [shape, dummy] : dummies_) tensors.push_back(dummy);
  tensors.erase(std::remove_if(tensors.begin(), tensors.end(), [](const Tensor& tensor) { return !tensor; }),
                tensors.end());
  return tensors;
}

void Workspaces::use_grouped() {
  for (const Tensor& each : grouped_) use(each);
}

void Workspaces::use_dummy(const TrainedParameter& weight) {
  const auto found = dummies_.find(dummy_shape(weight));
  if (found != dummies_.end()) use(found->second);
}

}  // namespace spillway::models
