// Shared links as fluid: weighted max-min fair rates, solved in integers.
//
//   flow 1 ──▶ [ copy engine ] ──▶ [ PCIe up ] ──▶ [ drive write ]      a path: up to 8 links,
//   flow 2 ──▶ [ copy engine'] ────────┘                                each with a usage factor
//
// Rates solve  max-min r_f / w_f  subject to  r_f <= cap_f  and, for each link l,
//   sum over flows f on l of  r_f * usage_fl / 2^16  <=  capacity_l.
// Progressive filling: the level L is the minimum over links of floor(free / sum w*usage). Flows with a cap at or below
// L*w get their cap. If there are none, the flows of the least link get L*w; repeat. Links are dirty once a flow on
// them starts or ends, or their capacity changes. solve() visits only the connected components of dirty links, once per
// instant. A component's solution stands if flows only ended and others of the same path, cap and weight took their
// places, as copies of a queue do. The newcomers then get the rates of the flows they replace; only the first end is
// left to find.
//
// Exactness. Rate unit 2^-20 unit/ns, time 1 ps, so a flow's `remaining` is held in 1/(1000 * 2^20) of an amount unit,
// 128 bits, and settling never rounds. A completion is rounded up to the next picosecond. When it fires the flow is
// complete by definition: the rest that its rate would have carried in that last picosecond is its `overshoot`. Hence,
// exactly, for each link:
//   integral of consumption over time == amounts carried * usage + overshoot.
// Invariants, tested on random networks: consumption <= capacity, and each flow runs at its cap or crosses a saturated
// link. A saturated link has less free capacity than the sum of w*usage of its flows (in 2^-16 Rate). On it no flow has
// a higher level (to within rounding down: at most w Rate units per flow).
//
// Source: max-min fairness by progressive filling, Bertsekas & Gallager, Data Networks (2nd ed.), 6.5.2; the
// dirty-component idea follows SimGrid's modified-set; we deviate by integer arithmetic (no epsilon).
// Complexity of solve(): O(rounds * component); O(component) where flows only replaced others. Value type.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "sim/engine/ids.h"
#include "sim/engine/wide.h"

namespace spillway::sim {

// A rate cap that never binds.
inline constexpr Rate unlimited_rate = Rate::max();
// The usage factor of a flow that takes one unit of link capacity per unit it moves.
inline constexpr std::uint32_t full_usage = 1u << 16;
inline constexpr std::uint32_t max_usage = 1u << 20;
inline constexpr std::uint32_t max_weight = 1u << 16;
inline constexpr std::uint32_t max_hops = 8;
inline constexpr Rate max_capacity{std::int64_t{1} << 45};  // about 33 PB/s
inline constexpr std::int64_t max_amount = std::int64_t{1} << 62;

struct PathEntry {
  LinkId link{};
  std::uint32_t usage = full_usage;  // in [1, max_usage]; a flow of rate r takes r * usage / 2^16 of the link
};

class FluidNetwork {
 public:
  struct Flow {
    Wide remaining = 0;  // 1/(1000 * 2^20) unit
    Rate rate{}, cap{};
    Picos settled{};           // when `remaining` held: the flow's last rate change
    Picos end = Picos::max();  // completion at this rate
    std::int64_t amount = 0;
    std::int64_t next_rate = -1;  // found by the running solve, or a predecessor's; negative while open
    std::uint32_t weight = 1, first_hop = 0, hops = 0, owner = 0;
    std::uint32_t visited = 0;  // number of the last solve that saw it
    bool active = false;
    std::uint32_t place[max_hops] = {};  // index in each link's member list
  };
  struct LinkTotals {
    std::int64_t units = 0;  // completed flows, amount * usage / 2^16, rounded down
    Picos busy{};            // time with consumption > 0
    Rate consumption{};      // now, rounded up
  };

  // 0 <= capacity <= max_capacity; a link of capacity 0 stalls its flows.
  LinkId add_link(Rate capacity);
  // At most max_hops distinct links; entries of the same link are added up.
  PathId add_path(std::span<const PathEntry> entries);

  // Starts `amount` > 0 units; returns the flow's slot (slots are reused). It moves after the next solve().
  std::uint32_t start(Picos now, std::int64_t amount, PathId path, Rate cap, std::uint32_t weight, std::uint32_t owner);
  // Ends a flow that is complete (now == its end).
  void finish(Picos now, std::uint32_t slot);
  void set_capacity(LinkId link, Rate capacity);

  // Something happened since the last solve().
  [[nodiscard]] bool dirty() const { return !dirty_links_.empty() || !pathless_.empty(); }
  // Solves the dirty components and settles flows with a changed rate. The spans below hold until the next call.
  void solve(Picos now);
  // Slots that complete first in their component (with ties). The first end makes the component dirty, so every other
  // flow is solved again before its own end.
  [[nodiscard]] std::span<const std::uint32_t> earliest() const { return earliest_; }
  // Slots with a changed rate, and so a changed end.
  [[nodiscard]] std::span<const std::uint32_t> changed_flows() const { return changed_; }
  // Links of the solved components.
  [[nodiscard]] std::span<const std::uint32_t> solved_links() const { return component_links_; }

  [[nodiscard]] const Flow& flow(std::uint32_t slot) const { return flows_[slot]; }
  [[nodiscard]] std::uint32_t slot_count() const { return static_cast<std::uint32_t>(flows_.size()); }
  [[nodiscard]] std::uint32_t link_count() const { return static_cast<std::uint32_t>(links_.size()); }
  [[nodiscard]] std::uint32_t path_count() const { return static_cast<std::uint32_t>(path_first_.size()); }
  [[nodiscard]] Rate capacity(LinkId link) const { return links_[index(link)].capacity; }
  // Consumption in 2^-16 Rate units.
  [[nodiscard]] std::int64_t scaled_consumption(LinkId link) const { return links_[index(link)].used; }
  [[nodiscard]] LinkTotals totals(LinkId link, Picos now) const;
  [[nodiscard]] std::span<const PathEntry> path(PathId path) const;
  // Units a flow has moved by `now`, rounded down.
  [[nodiscard]] std::int64_t moved(std::uint32_t slot, Picos now) const;
  // The exact equation of the header, running flows included; false on the first link that breaks it.
  [[nodiscard]] bool conserves(Picos now) const;

 private:
  struct Member {
    std::uint32_t slot = 0, hop = 0;
  };
  enum class Change : std::uint8_t {
    none,
    replaced,  // flows ended, and as many like them started
    other,     // to be solved
  };
  // A flow that ended since the last solve and that none has replaced.
  struct Vacancy {
    Rate cap{};
    std::int64_t rate = 0;
    std::uint32_t weight = 0, first_hop = 0, hops = 0;
  };
  struct Link {
    Rate capacity{};
    std::int64_t used = 0;                              // consumption, scaled by 2^16
    std::int64_t weight_sum = 0;                        // sum of weight * usage of its flows
    std::int64_t free = 0, open_weight = 0, level = 0;  // during a solve
    Picos changed{}, busy{};                            // last change of `used`; busy time until then
    Wide integral = 0;                                  // of `used` until `changed`
    Wide carried = 0;                                   // amount * usage of completed flows
    Wide overshoot = 0;                                 // see above, times usage
    std::uint32_t visited = 0;
    std::uint32_t next = 0;       // of its component as last solved, in a circle
    std::uint32_t newcomers = 0;  // flows that took another's place since the last solve, of paths that begin here
    std::uint32_t last_newcomer = 0;
    Change change = Change::none;
    std::vector<Member> members;
  };

  void mark(std::uint32_t link, Change change);
  bool take_vacancy(Flow& flow);
  void close_vacancies();
  bool keep(std::uint32_t seed, Picos now);
  bool keep_but_one(std::uint32_t seed, std::uint32_t newcomer, Picos now);
  template <bool is_solved>
  void collect(std::uint32_t seed);
  void fill(std::size_t first_flow, std::size_t first_link);
  bool fix_capped(std::size_t first_flow, std::int64_t level);
  void fix(Flow& flow, std::int64_t rate);
  void apply_rates(std::size_t first_flow, Picos now);
  void apply_use(std::size_t first_link, Picos now);
  void set_rate(std::uint32_t slot, Picos now);
  static void account(Link& link, std::int64_t used, Picos now);

  std::vector<Link> links_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> free_slots_;
  std::vector<PathEntry> path_entries_;
  std::vector<std::uint32_t> path_first_, path_hops_;
  std::vector<std::uint32_t> dirty_links_, pathless_;
  std::vector<Vacancy> vacancies_;
  std::vector<std::uint32_t> component_, component_links_, changed_, earliest_;  // of the last solve
  std::uint32_t solves_ = 0;
  bool any_capped_ = false;  // in the component being solved
};

}  // namespace spillway::sim
