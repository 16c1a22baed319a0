#include "studies/diagnosis/memory_diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/number_text.h"
#include "sim/devices/memory/memory_policies.h"

namespace spillway::studies {
namespace {

constexpr std::string_view no_stack_text = "no stack recorded";

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

struct Live {
  Bytes bytes{};
  std::uint32_t stack = no_stack;
};

std::string_view between(std::string_view text, std::string_view before, std::string_view behind) {
  const std::size_t begin = text.find(before);
  if (begin == std::string_view::npos) return {};
  const std::string_view rest = text.substr(begin + before.size());
  return rest.substr(0, rest.find(behind));
}

std::string own_place_of(const std::vector<std::string_view>& places) {
  if (places.empty()) return std::string(no_stack_text);
  const auto own = std::find_if_not(places.begin(), places.end(), is_library);
  if (own != places.end()) return std::string(*own);
  // A backward pass runs on a thread of its own, without Python: the node, or the operator, says most.
  for (const auto [before, behind, what] : {std::array{"autograd::generated::", "::apply(", "in C++, backward: "},
                                            std::array{"at::_ops::", "::", "in C++: at::"}})
    for (const std::string_view place : places)
      if (const std::string_view name = between(place, before, behind); !name.empty()) return what + std::string(name);
  return std::string(places.front());
}

class MemoryDiagnosisMaker {
 public:
  MemoryDiagnosisMaker(const Trace& trace, std::int16_t device) : trace_(trace), device_(device) {
    const auto& events = trace.memory_events;
    // Some writers record completions alone.
    if (std::none_of(events.begin(), events.end(), [&](const MemoryEvent& event) {
          return ours(event) && event.action == MemoryAction::free_requested;
        }))
      freed_ = MemoryAction::free_completed;
  }

  MemoryDiagnosis run() {
    out_.has_stacks = !trace_.stack_frames.empty();
    find_moment();
    collect();
    if (failed_) explain_failure();
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool ours(const MemoryEvent& event) const { return event.device == device_; }

  // The blocks that were there before the history: alive at its end without an allocation in it, or freed in it first.
  std::unordered_map<std::uint64_t, Live> before() const {
    std::unordered_map<std::uint64_t, Live> found;
    std::unordered_map<std::uint64_t, bool> seen;  // by address: whether its first event was an allocation
    for (const MemoryEvent& event : trace_.memory_events) {
      if (!ours(event)) continue;
      const std::uint64_t at = event.address.count();
      if (event.action == MemoryAction::allocate) seen.try_emplace(at, true);
      if (event.action == freed_ && seen.try_emplace(at, false).second) found[at] = {event.bytes, no_stack};
    }
    for (const MemorySegment& segment : trace_.memory_segments) {
      if (segment.device != device_) continue;
      for (std::uint32_t b = segment.first_block; b < segment.first_block + segment.block_count; ++b) {
        const MemoryBlock& block = trace_.memory_blocks[b];
        if (block.state == BlockState::inactive || seen.contains(block.address.count())) continue;
        found[block.address.count()] = {block.requested, block.stack};
      }
    }
    return found;
  }

  // Calls visit(index) after each event; stops where it says so.
  template <class Visit>
  void walk(std::unordered_map<std::uint64_t, Live>& live, Bytes& sum, const Visit& visit) const {
    live = before();
    sum = Bytes(0);
    for (const auto& [address, block] : live) sum += block.bytes;
    for (std::size_t i = 0; i < trace_.memory_events.size(); ++i) {
      const MemoryEvent& event = trace_.memory_events[i];
      if (!ours(event)) continue;
      const std::uint64_t at = event.address.count();
      if (event.action == MemoryAction::allocate) {
        Live& block = live[at];
        sum += event.bytes - block.bytes;
        block = {event.bytes, event.stack};
      } else if (event.action == freed_) {
        const auto found = live.find(at);
        if (found != live.end()) {
          sum -= found->second.bytes;
          live.erase(found);
        }
      }
      if (!visit(i)) return;
    }
  }

  void find_moment() {
    std::unordered_map<std::uint64_t, Live> live;
    Bytes sum{}, most{-1};
    walk(live, sum, [&](std::size_t i) {
      if (trace_.memory_events[i].action == MemoryAction::out_of_memory) failed_ = i;
      if (sum > most && !failed_) {
        most = sum;
        out_.event = static_cast<std::uint32_t>(i);
      }
      return !failed_;
    });
    if (failed_) out_.event = static_cast<std::uint32_t>(*failed_);
  }

  [[nodiscard]] static std::string module_of(const std::vector<std::string_view>& places) {
    for (const std::string_view place : places)
      if (place.ends_with(" forward") && !is_library(place)) return std::string(place);
    return "outside of forward()";
  }
  [[nodiscard]] static std::string phase_of(const std::vector<std::string_view>& places) {
    if (places.empty()) return std::string(no_stack_text);
    for (const std::string_view place : places) {
      if (place.ends_with(" backward") || has(place, "autograd/graph.py") || has(place, "torch::autograd::Engine::"))
        return "backward";
      if (has(place, "/optim/") || place.ends_with(" zero_grad")) return "optimizer";
    }
    for (const std::string_view place : places)
      if (place.ends_with(" forward")) return "forward";
    return "elsewhere";
  }

  static std::vector<MemoryHolder> sorted(const std::map<std::string, MemoryHolder>& from) {
    std::vector<MemoryHolder> rows;
    for (const auto& [name, holder] : from) {
      rows.push_back(holder);
      rows.back().name = name;
    }
    std::stable_sort(rows.begin(), rows.end(),
                     [](const MemoryHolder& a, const MemoryHolder& b) { return a.bytes > b.bytes; });
    return rows;
  }

  void collect() {
    std::unordered_map<std::uint64_t, Live> live;
    walk(live, out_.alive, [&](std::size_t i) { return i < out_.event; });
    std::map<std::uint32_t, MemoryHolder> by_stack;
    for (const auto& [address, block] : live) {
      MemoryHolder& holder = by_stack[block.stack];
      holder.bytes += block.bytes;
      ++holder.blocks;
    }
    std::map<std::string, MemoryHolder> places, modules, phases;
    for (const auto& [stack, holder] : by_stack) {
      const std::vector<std::string_view> frames = stack_places(trace_, stack);
      for (MemoryHolder* row :
           {&places[own_place_of(frames)], &modules[module_of(frames)], &phases[phase_of(frames)]}) {
        row->bytes += holder.bytes;
        row->blocks += holder.blocks;
      }
      out_.stacks.push_back({std::vector<std::string>(frames.rbegin(), frames.rend()), holder.bytes, holder.blocks});
    }
    std::stable_sort(out_.stacks.begin(), out_.stacks.end(),
                     [](const MemoryStack& a, const MemoryStack& b) { return a.bytes > b.bytes; });
    out_.places = sorted(places);
    out_.modules = sorted(modules);
    out_.phases = sorted(phases);
  }

  // The history up to the failure, which asks once more.
  [[nodiscard]] Trace asked_again() const {
    Trace again = trace_;
    again.memory_events.resize(*failed_ + 1);
    MemoryEvent& event = again.memory_events.back();
    event.action = MemoryAction::allocate;
    event.address = Addr(std::uint64_t{1} << 62U);
    return again;
  }

  void explain_failure() {
    const MemoryEvent& event = trace_.memory_events[*failed_];
    RanOut ran_out;
    ran_out.asked = event.bytes;
    ran_out.place = own_place(trace_, event.stack);
    ran_out.device_free =
        event.address == Addr(0) ? Bytes(-1) : Bytes(static_cast<std::int64_t>(event.address.count()));
    const Trace again = asked_again();
    AllocationStreamOptions options;
    options.device = device_;
    options.keep_totals = true;
    options.pool.policy = torch_policy;
    const AllocationStreamResult free = replay_allocation_stream(again, options);
    const HeldMemory& held = free.held.size() > 1 ? free.held[free.held.size() - 2] : free.initial;
    ran_out.allocated = held.allocated;
    ran_out.reserved = held.reserved;
    ran_out.cached = held.reserved - held.allocated;
    ran_out.limit = held.reserved + std::max(ran_out.device_free, Bytes(0));
    options.pool.device_memory = ran_out.limit;
    const AllocationStreamResult limited = replay_allocation_stream(again, options);
    if (limited.first_out_of_memory) {
      ran_out.largest_free = limited.first_out_of_memory->largest_free_block;
      ran_out.why = describe(*limited.first_out_of_memory);
    } else {
      ran_out.why =
          "PyTorch's allocator as emulated here, in the memory it had, serves this request: other processes took some, "
          "or the history begins too late";
    }
    // What PyTorch's own message advises first.
    constexpr std::array<std::array<std::string_view, 3>, 4> others = {
        {{"expandable segments", expandable_policy, ""},
         {"no block of 128 MiB or more is split", torch_policy, "max_split_size_mb:128"},
         {"GMLake's stitched blocks", gmlake_policy, ""},
         {"no fragmentation at all", ideal_policy, ""}}};
    for (const auto& [name, policy, settings] : others) {
      AllocationStreamOptions other = options;
      other.keep_totals = false;
      other.pool.policy = policy;
      other.pool.settings = settings;
      const AllocationStreamResult result = replay_allocation_stream(again, other);
      ran_out.others.push_back({std::string(name), std::string(policy), std::string(settings),
                                result.out_of_memory == 0, Bytes(result.statistics.all().reserved_bytes.peak)});
    }
    out_.ran_out = std::move(ran_out);
  }

  const Trace& trace_;
  std::int16_t device_;
  MemoryAction freed_ = MemoryAction::free_requested;
  std::optional<std::size_t> failed_;
  MemoryDiagnosis out_;
};

}  // namespace

bool is_library(std::string_view place) {
  constexpr std::array<std::string_view, 5> parts = {"site-packages/", "dist-packages/", "/torch/", "<frozen",
                                                     "/torchinductor_"};
  // Often without a line: "VariableType_3.cpp at::div()".
  constexpr std::array<std::string_view, 8> endings = {".cpp", ".cc", ".cu", ".c", ".h", ".hpp", ".so", ".o"};
  const std::string_view file = place.substr(0, place.find_first_of(": "));
  return place.starts_with("?") || place.starts_with("torch/") ||
         std::any_of(parts.begin(), parts.end(), [&](std::string_view part) { return has(place, part); }) ||
         std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) {
           return file.ends_with(ending) || has(place, std::string(ending) + ":");
         });
}

std::vector<std::string_view> stack_places(const Trace& trace, std::uint32_t stack) {
  std::vector<std::string_view> places;
  for (; stack != no_stack; stack = trace.stack_frames[stack].caller)
    places.push_back(trace.strings.text(trace.stack_frames[stack].place));
  return places;
}

std::string own_place(const Trace& trace, std::uint32_t stack) { return own_place_of(stack_places(trace, stack)); }

MemoryDiagnosis diagnose_memory(const Trace& trace, std::int16_t device) {
  return MemoryDiagnosisMaker(trace, device).run();
}

}  // namespace spillway::studies
