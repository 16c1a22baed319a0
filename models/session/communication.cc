#include "models/session/communication.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/input_error.h"
#include "models/cost/collective_time.h"

namespace spillway::models {
namespace {

Bytes crossing(NetworkCollective kind, Bytes whole, std::int64_t ranks) {
  return Bytes(std::llround(static_cast<double>(whole.count()) * bus_factor(kind, static_cast<double>(ranks))));
}

CollectiveKind recorded_kind(NetworkCollective kind) {
  switch (kind) {
    case NetworkCollective::all_reduce:
      return CollectiveKind::all_reduce;
    case NetworkCollective::all_gather:
      return CollectiveKind::all_gather;
    case NetworkCollective::reduce_scatter:
      return CollectiveKind::reduce_scatter;
    case NetworkCollective::all_to_all:
      return CollectiveKind::all_to_all;
    case NetworkCollective::broadcast:
      return CollectiveKind::broadcast;
    case NetworkCollective::send_receive:
      return CollectiveKind::send;
  }
  return CollectiveKind::unknown;
}

Bytes bytes_of(const std::vector<Tensor>& tensors) {
  Bytes sum{};
  for (const Tensor& tensor : tensors) sum += tensor.bytes();
  return sum;
}

}  // namespace

std::string_view to_string(CommGroup group) {
  switch (group) {
    case CommGroup::tensor:
      return "tensor";
    case CommGroup::context:
      return "context";
    case CommGroup::gradient:
    case CommGroup::shard:
      return "data";
    case CommGroup::copies:
      return "data copies";
    case CommGroup::expert:
      return "expert";
    case CommGroup::expert_gradient:
      return "expert data";
    case CommGroup::updated_weights:
      return "updated weights";
    case CommGroup::updated_experts:
      return "updated experts";
  }
  return "";
}

GroupShape Communication::shape(CommGroup group) const {
  switch (group) {
    case CommGroup::tensor:
      return layout_.tensor_group();
    case CommGroup::context:
      return layout_.context_group();
    case CommGroup::gradient:
      return layout_.gradient_group();
    case CommGroup::shard:
    case CommGroup::updated_weights:
      return layout_.shard_group();
    case CommGroup::copies:
      return layout_.copy_group();
    case CommGroup::expert:
      return layout_.expert_group();
    case CommGroup::expert_gradient:
    case CommGroup::updated_experts:
      return layout_.expert_gradient_group();
  }
  return {};
}

std::string_view Communication::lane(CommGroup group) const {
  return group == CommGroup::gradient && layout_.copy_group().ranks > 1 ? all_data_lane : to_string(group);
}

void Communication::run(CommGroup group, std::string_view name, NetworkCollective kind, Bytes whole,
                        std::vector<Tensor> reads, std::vector<Tensor> writes, std::int64_t pieces,
                        const HostWork& host) {
  const GroupShape members = shape(group);
  Picos time = timer_(kind, whole / pieces, members) * pieces;
  if (exposed_) time = std::exchange(exposed_, nullptr)(time);
  const Bytes input = kind == NetworkCollective::all_gather ? whole / members.ranks : whole;
  session_.collective({.name = name,
                       .kind = recorded_kind(kind),
                       .group = lane(group),
                       .group_size = members.ranks,
                       .input = input,
                       .buffer = whole,
                       .crossing = crossing(kind, whole, members.ranks),
                       .time = time,
                       .reads = std::move(reads),
                       .writes = std::move(writes),
                       .after_kernels = after_kernels_,
                       .host = host});
}

void Communication::all_reduce(CommGroup group, std::string_view name, const std::vector<Tensor>& in_place) {
  const Bytes whole = bytes_of(in_place);
  all_reduce(group, name, in_place, whole);
}

void Communication::all_reduce(CommGroup group, std::string_view name, const std::vector<Tensor>& in_place,
                               Bytes whole) {
  if (shape(group).ranks == 1 || in_place.empty()) return;
  run(group, name, NetworkCollective::all_reduce, whole, in_place, in_place);
}

Tensor Communication::all_gather(CommGroup group, const std::string& name, const Tensor& x, TensorRole role) {
  const std::int64_t ranks = shape(group).ranks;
  if (ranks == 1) return x;
  Tensor whole = session_.empty(name, x.type(), x.elements() * ranks, role);
  run(group, "all_gather", NetworkCollective::all_gather, whole.bytes(), {x}, {whole});
  return whole;
}

Tensor Communication::reduce_scatter(CommGroup group, const std::string& name, const Tensor& x, TensorRole role) {
  const std::int64_t ranks = shape(group).ranks;
  if (ranks == 1) return x;
  Tensor part = session_.empty(name, x.type(), (x.elements() + ranks - 1) / ranks, role);
  run(group, "reduce_scatter", NetworkCollective::reduce_scatter, x.bytes(), {x}, {part});
  return part;
}

Tensor Communication::all_to_all(CommGroup group, const std::string& name, const Tensor& x, TensorRole role,
                                 const HostWork& host) {
  if (shape(group).ranks == 1) return x;
  Tensor result = session_.empty(name, x.type(), x.elements(), role);
  run(group, "all_to_all", NetworkCollective::all_to_all, x.bytes(), {x}, {result}, 1, host);
  return result;
}

Tensor Communication::exchange_tokens(const std::string& name, const Tensor& x, const TokenRoute& route, Bytes rows,
                                      std::int64_t elements, TensorRole role, const HostWork& host) {
  GroupShape members = shape(CommGroup::expert);
  members.tokens = route;
  Tensor result = session_.empty(name, x.type(), elements, role);
  const Picos whole = timer_(NetworkCollective::all_to_all, rows, members);
  session_.collective({.name = "all_to_all",
                       .kind = CollectiveKind::all_to_all,
                       .group = to_string(CommGroup::expert),
                       .group_size = members.ranks,
                       .input = rows,
                       .buffer = rows,
                       .crossing = crossing(NetworkCollective::all_to_all, rows, members.ranks),
                       .time = whole,
                       .reads = {x},
                       .writes = {result},
                       .after_kernels = after_kernels_,
                       .host = host});
  return result;
}

void Communication::gather_into(CommGroup group, std::string_view name, std::vector<Tensor> reads,
                                std::vector<Tensor> writes, Bytes whole, std::int64_t pieces) {
  if (shape(group).ranks == 1) return;
  run(group, name, NetworkCollective::all_gather, whole, std::move(reads), std::move(writes), pieces);
}

void Communication::scatter_into(CommGroup group, std::string_view name, std::vector<Tensor> reads,
                                 std::vector<Tensor> writes, Bytes whole) {
  if (shape(group).ranks == 1) return;
  run(group, name, NetworkCollective::reduce_scatter, whole, std::move(reads), std::move(writes));
}

void Communication::shift(CommGroup group, std::string_view name, const Tensor& x, const Tensor& into) {
  run(group, name, NetworkCollective::send_receive, into.bytes(), {x}, {into});
}

void Communication::transfer(std::string_view name, std::string_view lane, CollectiveKind kind, const Tensor& tensor,
                             std::int64_t other, std::int64_t parts) {
  const Bytes message = tensor.bytes() / parts;
  Collection collection{.name = name,
                        .kind = kind,
                        .group = lane,
                        .group_size = 2,
                        .input = message,
                        .buffer = message,
                        .crossing = message / 2,  // reads or writes it
                        .time = timer_(NetworkCollective::send_receive, message, layout_.stage_pair(stage_, other))};
  (kind == CollectiveKind::send ? collection.reads : collection.writes).push_back(tensor);
  session_.collective(collection);
}

void Communication::send(std::string_view name, const Tensor& x, std::int64_t to_stage, std::int64_t parts) {
  transfer(name, send_lane, CollectiveKind::send, x, to_stage, parts);
}

void Communication::receive(std::string_view name, const Tensor& into, std::int64_t from_stage, std::int64_t parts) {
  transfer(name, receive_lane, CollectiveKind::receive, into, from_stage, parts);
  if (parts > 1) run(CommGroup::tensor, "all_gather", NetworkCollective::all_gather, into.bytes(), {into}, {into});
}

void Communication::all_reduce_stages(std::string_view name, const std::vector<Tensor>& in_place,
                                      const std::vector<std::int64_t>& stages) {
  const bool is_member = std::find(stages.begin(), stages.end(), stage_) != stages.end();
  if (stages.size() < 2 || in_place.empty() || !is_member) return;
  const auto ranks = static_cast<std::int64_t>(stages.size());
  const GroupShape group{ranks, layout_.stage_pair(stages.front(), stages.back()).per_machine == 2 ? ranks : 1};
  const Bytes whole = bytes_of(in_place);
  session_.collective({.name = name,
                       .kind = CollectiveKind::all_reduce,
                       .group = stages_lane,
                       .group_size = group.ranks,
                       .input = whole,
                       .buffer = whole,
                       .crossing = crossing(NetworkCollective::all_reduce, whole, group.ranks),
                       .time = timer_(NetworkCollective::all_reduce, whole, group),
                       .reads = in_place,
                       .writes = in_place});
}

}  // namespace spillway::models
