// Communication: the collectives of one rank, on an EagerSession.
//
// Each kind of group has its own lane. Transfers between stages have one for sending and one for receiving. A receive
// lasts as long as its send; both start when the data is there and both sides have posted.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hwprofiles/network_profile.h"
#include "models/session/eager_session.h"
#include "models/spec/parallel_layout.h"

namespace spillway::models {

// `bytes` as nccl-tests counts: what each rank ends up with (all-reduce, all-gather, broadcast), starts from
// (reduce-scatter, all-to-all), the message (send-receive).
using CollectiveTimer = std::function<Picos(NetworkCollective kind, Bytes bytes, const GroupShape& group)>;

// `gradient`: all ranks with the same weights. `shard`, `copies`: ParallelLayout's; `shard` is `gradient` if there is
// one copy. `updated_weights`, `updated_experts`: those of `shard` and of `expert_gradient`, on a communicator beside
// the one of the gradients. So what waits for an update on the host holds no reduction back.
enum class CommGroup : std::uint8_t {
  tensor,
  context,
  gradient,
  shard,
  copies,
  expert,
  expert_gradient,
  updated_weights,
  updated_experts
};
std::string_view to_string(CommGroup group);

// The lane of CommGroup::gradient where shards have the usual one.
inline constexpr std::string_view all_data_lane = "all data";
// Lanes of transfers between stages, and of collectives in which one rank of each stage takes part.
inline constexpr std::string_view send_lane = "send", receive_lane = "receive", stages_lane = "stages";

class Communication {
 public:
  // References must outlive the object. `stage`: of this rank.
  Communication(EagerSession& session, const ParallelLayout& layout, const CollectiveTimer& timer, std::int64_t stage)
      : session_(session), layout_(layout), timer_(timer), stage_(stage) {}

  [[nodiscard]] const ParallelLayout& layout() const { return layout_; }
  [[nodiscard]] std::int64_t stage() const { return stage_; }
  [[nodiscard]] GroupShape shape(CommGroup group) const;

  // From now on collectives of groups wait for all kernels launched before them (Collection::after_kernels), or not.
  void set_after_kernels(bool waits) { after_kernels_ = waits; }
  [[nodiscard]] bool after_kernels() const { return after_kernels_; }

  // All of these do nothing, or give x itself, in a group of one.
  void all_reduce(CommGroup group, std::string_view name, const std::vector<Tensor>& in_place);
  void all_reduce(CommGroup group, std::string_view name, const std::vector<Tensor>& in_place,
                  Bytes whole);  // a part of them
  [[nodiscard]] Tensor all_gather(CommGroup group, const std::string& name, const Tensor& x, TensorRole role);
  [[nodiscard]] Tensor reduce_scatter(CommGroup group, const std::string& name, const Tensor& x, TensorRole role);
  [[nodiscard]] Tensor all_to_all(CommGroup group, const std::string& name, const Tensor& x, TensorRole role,
                                  const HostWork& host = {});
  // Over tensors given; `whole`: bytes of the buffer that each rank starts from or ends up with.
  // `pieces`: as so many collectives of equal size, one behind the other.
  void gather_into(CommGroup group, std::string_view name, std::vector<Tensor> reads, std::vector<Tensor> writes,
                   Bytes whole, std::int64_t pieces = 1);
  void scatter_into(CommGroup group, std::string_view name, std::vector<Tensor> reads, std::vector<Tensor> writes,
                    Bytes whole);
  // Tokens to the ranks of their experts, or results back. `rows`: bytes of a row for each expert of each token of this
  // rank; the result has so many elements.
  [[nodiscard]] Tensor exchange_tokens(const std::string& name, const Tensor& x, const TokenRoute& route, Bytes rows,
                                       std::int64_t elements, TensorRole role, const HostWork& host = {});
  // The next collective is cut up beside a product, which leaves so much of its time to be seen. For groups of several.
  using Exposed = std::function<Picos(Picos whole)>;
  void expose_next(Exposed exposed) { exposed_ = std::move(exposed); }
  // One step of a ring: x goes to the next rank, `into` comes from the one before.
  void shift(CommGroup group, std::string_view name, const Tensor& x, const Tensor& into);

  // To and from the neighbouring stages. `share`: the message is that part of the tensor (1 / t when a tensor group
  // splits it up and gathers it on the other side).
  void send(std::string_view name, const Tensor& x, std::int64_t to_stage, std::int64_t parts);
  void receive(std::string_view name, const Tensor& into, std::int64_t from_stage, std::int64_t parts);
  // Among these stages, ascending, which wait for each other; nothing on the others. Names tell groups apart.
  void all_reduce_stages(std::string_view name, const std::vector<Tensor>& in_place,
                         const std::vector<std::int64_t>& stages);

 private:
  [[nodiscard]] std::string_view lane(CommGroup group) const;
  void run(CommGroup group, std::string_view name, NetworkCollective kind, Bytes whole, std::vector<Tensor> reads,
           std::vector<Tensor> writes, std::int64_t pieces = 1, const HostWork& host = {});
  void transfer(std::string_view name, std::string_view lane, CollectiveKind kind, const Tensor& tensor,
                std::int64_t other, std::int64_t parts);

  EagerSession& session_;
  const ParallelLayout& layout_;
  const CollectiveTimer& timer_;
  std::int64_t stage_;
  bool after_kernels_ = false;
  Exposed exposed_;
};

}  // namespace spillway::models
