#include "studies/answer/snapshot_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/number_text.h"
#include "base/short_text.h"
#include "sim/devices/memory/memory_policies.h"
#include "sim/replay/verdict_words.h"
#include "studies/fit/way_names.h"

namespace spillway::studies {
namespace {

constexpr std::string_view no_stack = "no stack recorded";  // MemoryHolder::name
constexpr std::size_t snapshot_bins = 1'200, most_frames = 12;

// As PyTorch takes it; empty: not PyTorch's.
std::string environment_of(const std::string& policy, const std::string& settings) {
  std::string conf = settings;
  if (policy == expandable_policy) conf += std::string(conf.empty() ? "" : ",") + "expandable_segments:True";
  return policy.starts_with(torch_policy) && !conf.empty() ? "PYTORCH_CUDA_ALLOC_CONF=" + conf : "";
}

AnswerWay allocator_way(const std::string& name, std::string group, const std::string& policy,
                        const std::string& settings, std::size_t number) {
  AnswerWay way;
  way.name = name;
  way.group = std::move(group);
  if (way.group.empty())
    way.group = policy.starts_with(torch_policy) ? "Set before the program starts" : "In simulation alone";
  way.number = number;
  way.runs_in = policy.starts_with(torch_policy) ? "PyTorch" : "simulation";
  if (std::string line = environment_of(policy, settings); !line.empty()) way.sentences.push_back(std::move(line));
  way.figures.step = way.figures.tokens = "-";
  return way;
}

void add_ways(const MemoryDiagnosis& diagnosis, const std::vector<MemoryKnob>& knobs, Answer& answer) {
  if (diagnosis.ran_out) {
    const RanOut& ran_out = *diagnosis.ran_out;
    for (const bool serves : {true, false})
      for (const OtherAllocator& other : ran_out.others) {
        if (other.serves != serves) continue;
        AnswerWay way = allocator_way(capitalized(other.name), serves ? "" : "Would not have helped", other.policy,
                                      other.settings, answer.ways.size() + 1);
        way.figures.answer = serves ? Verdict::fits : Verdict::does_not_fit;
        way.figures.peak_reserved = other.reserved;
        way.figures.limit = ran_out.limit;
        way.figures.verdict =
            serves ? fmt::format("{} reserved of {}", short_size(other.reserved), short_size(ran_out.limit))
                   : "runs out too, at " + short_size(other.reserved);
        way.figures.left = serves ? three_digits(in_gib(ran_out.limit - other.reserved)) : "-";
        answer.ways.push_back(std::move(way));
      }
    answer.ways_heading = "What would have served the same requests";
    return;
  }
  for (const bool torchs : {true, false})
    for (const MemoryKnob& knob : knobs) {
      if (knob.is_bound || knob.gain <= Bytes(0) || knob.policy.starts_with(torch_policy) != torchs) continue;
      AnswerWay way = allocator_way(capitalized(knob.name), "", knob.policy, knob.settings, answer.ways.size() + 1);
      way.figures.peak_reserved = knob.peak_reserved;
      way.figures.verdict = fmt::format("{} reserved, {} less", short_size(knob.peak_reserved), short_size(knob.gain));
      way.figures.left = "-";
      answer.ways.push_back(std::move(way));
    }
  answer.ways_heading = "What would save some memory";
}

std::vector<HeldTensor> holders_of(const MemoryDiagnosis& diagnosis) {
  std::vector<HeldTensor> holders;
  for (const MemoryStack& stack : diagnosis.stacks) {
    if (holders.size() == most_tensors) break;
    HeldTensor holder{.name = std::string(no_stack), .bytes = stack.bytes, .blocks = stack.blocks};
    const auto own = std::find_if_not(stack.places.rbegin(), stack.places.rend(),
                                      [](const std::string& place) { return is_library(place); });
    if (own != stack.places.rend())
      holder.name = *own;
    else if (!stack.places.empty())
      holder.name = stack.places.back();
    holder.owner = holder.name;
    holder.frames.assign(stack.places.rbegin(), stack.places.rbegin() + static_cast<std::ptrdiff_t>(std::min(
                                                                            most_frames, stack.places.size())));
    holders.push_back(std::move(holder));
  }
  return holders;
}

}  // namespace

Answer snapshot_answer(const Trace& trace, std::int16_t device, const MemoryDiagnosis& diagnosis,
                       const std::vector<MemoryKnob>& knobs, const std::string& name, std::string command,
                       const Result* judged) {
  AllocationStreamOptions options;
  options.pool.policy = torch_policy;
  options.device = device;
  options.keep_rows = options.keep_totals = true;
  const AllocationStreamResult stream = replay_allocation_stream(trace, options);
  const MemoryPicture picture = memory_picture_on(trace, stream, {}, false, 0, [&trace](std::uint32_t event) {
    return own_place(trace, trace.memory_events[event].stack);
  });
  StageMemory stage = stage_of(picture, snapshot_bins);
  stage.name = fmt::format("GPU {}", device);
  stage.peak_allocated = Bytes(stream.statistics.all().allocated_bytes.peak);
  stage.peak_reserved = Bytes(stream.statistics.all().reserved_bytes.peak);
  stage.tensors = holders_of(diagnosis);

  Answer answer;
  answer.title = name;
  answer.machine = trace.devices.empty() ? "" : std::string(trace.strings.text(trace.devices.front().name));
  answer.command = std::move(command);
  answer.drawn = "as recorded";
  if (diagnosis.ran_out) {
    const RanOut& ran_out = *diagnosis.ran_out;
    stage.limit = stage.capacity = ran_out.limit;
    stage.verdict = answer.answer = Verdict::does_not_fit;
    answer.heading = ran_out_heading(ran_out.place, ran_out.asked, ran_out.device_free);
    answer.when = fmt::format("{} of {} reserved were in use; {} lay cached, the largest piece it may use {}.",
                              short_size(ran_out.allocated), short_size(ran_out.reserved), short_size(ran_out.cached),
                              short_size(ran_out.largest_free));
    answer.held = "when it ran out";
  } else {
    const bool is_judged = judged != nullptr && judged->memory.capacity > Bytes(0);
    answer.answer = is_judged ? judged->answer() : Verdict::unknown;
    answer.heading = is_judged ? verdict_shape(answer.answer) + " " + verdict_heading(*judged)
                               : recorded_heading(stage.peak_allocated);
    if (is_judged) {
      answer.machine = judged->machine;
      stage.verdict = answer.answer;
      stage.capacity = judged->memory.capacity;
      stage.limit = judged->memory.limit;
    } else {
      answer.when = "The record does not say how much memory the GPU has: name it, and the answer is whether it fits.";
    }
    answer.held = "when the most was allocated";
  }
  answer.verdict = to_string(answer.answer);
  if (!diagnosis.places.empty()) {
    const MemoryHolder& most = diagnosis.places.front();
    const double share = diagnosis.alive > Bytes(0) ? in_gib(most.bytes) / in_gib(diagnosis.alive) : 0;
    answer.why = {"line", fmt::format("{} holds the most: {}, {} of what was alive.",
                                      most.name == no_stack ? "What has no recorded stack" : most.name,
                                      short_size(most.bytes), percent_text(share))};
  }
  for (const MemoryHolder& phase : diagnosis.phases)
    if (diagnosis.alive > Bytes(0))
      answer.shares.push_back({phase.name, in_gib(phase.bytes) / in_gib(diagnosis.alive)});
  if (!answer.shares.empty()) answer.binds = "By the phase that asked for it.";
  add_ways(diagnosis, knobs, answer);
  answer.stages.push_back(std::move(stage));
  return answer;
}

}  // namespace spillway::studies
