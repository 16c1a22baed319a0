#include "sim/replay/verdict_words.h"

#include <algorithm>

#include "base/short_text.h"

namespace spillway::sim {
namespace {

std::string capitalised(std::string words) {
  words.front() = static_cast<char>(words.front() - 'a' + 'A');
  return words;
}

}  // namespace

std::string to_spare(const Result& result) {
  return short_size(result.memory.limit - result.memory.peak_reserved) + " free";
}

std::string short_words(const Result& result) {
  const std::string words = lacking(result);
  const bool has_figure = !words.empty() && words.front() >= '0' && words.front() <= '9';
  return (has_figure ? "short " : "short of ") + words;
}

namespace {

// What loading or saving whole weights lacks beside a step that fits; null: nothing, or the step doesn't.
const PhaseResult* lacking_between(const Result& result) {
  if (both(result.memory.verdict(), result.host_memory.verdict()) == Verdict::does_not_fit) return nullptr;
  const auto found = std::find_if(result.between_steps.begin(), result.between_steps.end(),
                                  [](const PhaseResult& one) { return one.verdict == Verdict::does_not_fit; });
  return found == result.between_steps.end() ? nullptr : &*found;
}

std::string lack_words(const PhaseResult& one) {
  return short_size(one.short_of) + (one.on_host ? " of host memory" : "") + " for " + one.name;
}

}  // namespace

std::string lacking(const Result& result) {
  if (result.may_fit()) return result.drives_refuse;
  if (const PhaseResult* one = lacking_between(result)) return lack_words(*one);
  if (const HostMemoryResult& host = result.host_memory; host.verdict() == Verdict::does_not_fit)
    return short_size(host.peak - host.capacity) + " of host memory";
  if (result.memory.short_of > Bytes(0)) return short_size(result.memory.short_of);
  for (const RankResult& rank : result.ranks)
    if (rank.verdict == Verdict::does_not_fit) return "memory of " + rank.name;
  return "memory";
}

namespace {

// "42.2 GiB free of 79.0 GiB on the fullest GPU (stage 0)".
std::string room_of_all(const Result& result) {
  const MemoryResult& memory = result.memory;
  std::string words = short_size(memory.limit - memory.peak_reserved) + " free of " + short_size(memory.capacity);
  if (result.ranks.size() < 2) return words;
  const auto fullest =
      std::max_element(result.ranks.begin(), result.ranks.end(),
                       [](const RankResult& a, const RankResult& b) { return a.peak_reserved < b.peak_reserved; });
  return words + " on the fullest GPU (" + fullest->name + ")";
}

// As replayed.
std::string plain_sentence(const Result& result) {
  const MemoryResult& memory = result.memory;
  switch (result.as_replayed()) {
    case Verdict::does_not_fit:
      if (const HostMemoryResult& host = result.host_memory; host.verdict() == Verdict::does_not_fit)
        return "does not fit: " + short_size(host.peak) + " of host memory wanted, the machine has " +
               short_size(host.capacity);
      if (const PhaseResult* one = lacking_between(result))
        return "does not fit: the step does, but " + one->name + " is " + short_size(one->short_of) + " short" +
               (one->on_host ? " of host memory" : "") + " (" + one->basis + ")";
      if (memory.verdict() == Verdict::does_not_fit && memory.short_of == Bytes(0))
        return "does not fit: it runs out of memory";
      return "does not fit: " + short_size(memory.short_of) + " short on the GPU's " + short_size(memory.capacity);
    case Verdict::unknown:
      if (!result.drives_refuse.empty()) break;
      return "unknown: " + result.why_unknown() +
             (!memory.known    ? ""
              : memory.on_host ? "; peak " + short_size(memory.peak_allocated) + " of host memory"
                               : "; peak reserved " + short_size(memory.peak_reserved));
    case Verdict::tight:
      if (!result.drives_refuse.empty()) break;
      if (memory.gives_back)
        return "tight: runs with " + to_spare(result) + ", as the allocator gives cached memory back in each step";
      return "tight: runs with " + to_spare(result) + ", but not with the margin of " +
             short_size(result.reserve.margin) + " kept free";
    case Verdict::fits:
      if (!result.drives_refuse.empty()) break;
      return "fits with " + room_of_all(result);
  }
  return "no: " + result.drives_refuse;
}

// "fits if micro_batch <= 3 at 8,192 tokens (not stated)"; what it is otherwise stands before what begins with
// "unless".
std::string hanging_sentence(const Result& result) {
  std::string conditions, others;
  for (const std::string& clause : result.hangs_on) {
    std::string& part = clause.starts_with("if ") ? conditions : others;
    part += (part.empty() ? "" : " and ") + (part.empty() ? clause : clause.substr(clause.find(' ') + 1));
  }
  if (conditions.empty()) return plain_sentence(result) + ", " + others;
  return "fits " + conditions + (others.empty() ? "" : ", " + others);
}

}  // namespace

std::string verdict_sentence(const Result& result) {
  return result.hangs_on.empty() ? plain_sentence(result) : "unknown: " + hanging_sentence(result);
}

std::string verdict_heading(const Result& result) { return capitalised(verdict_sentence(result)); }

std::string verdict_cell(const Result& result) {
  if (!result.may_fit()) return capitalised(short_words(result));
  if (!result.drives_refuse.empty()) return "Drives refuse";
  const std::string word = capitalised(std::string(to_string(result.verdict())));
  return result.verdict() == Verdict::unknown ? word : word + ", " + to_spare(result);
}

std::string verdict_shape(Verdict verdict) {
  return verdict == Verdict::fits ? "✔" : verdict == Verdict::does_not_fit ? "✖" : "▲";
}

std::string verdict_mark(const Result& result) {
  const bool refuses = result.may_fit() && !result.drives_refuse.empty();
  return verdict_shape(result.answer()) + " " + (refuses ? "drives refuse" : std::string(to_string(result.verdict())));
}

std::string ran_out_mark() { return "✖ ran out"; }

std::string ran_out_heading(const std::string& place, Bytes asked, Bytes free) {
  return "✖ Ran out: " + place + " asked for " + short_size(asked) +
         (free < Bytes(0) ? "" : ", " + short_size(free) + " were free");
}

std::string recorded_heading(Bytes most) {
  return "▲ Nothing ran out while it was recorded: at most " + short_size(most);
}

std::string search_heading(const FoundWays& found) {
  const auto ways = [](std::size_t count) { return std::to_string(count) + (count == 1 ? " set-up" : " set-ups"); };
  const std::string how = found.how.empty() ? "" : " " + found.how;
  const bool in_doubt = !found.unknown.empty();
  const auto head = [&](const char* shape) {
    return (in_doubt ? "▲ Not known: as replayed it fits" : shape + std::string(" Fits")) + how;
  };
  const std::string doubt = in_doubt ? "; " + found.unknown : "";
  if (found.same > 0)
    return head("✔") + " in " + ways(found.same) +
           (found.same == 1 ? " that trains the same" : " that train the same") + doubt;
  if (found.numerics > 0) return head("▲") + " in " + ways(found.numerics) + ", with other numerics alone" + doubt;
  if (found.research > 0) return head("▲") + " in " + ways(found.research) + " that no program runs today" + doubt;
  if (found.tight > 0)
    return head("▲") + " tightly: none of " + ways(found.tried) + " that were tried keeps the margin free" + doubt;
  if (in_doubt) return "▲ Not known whether any set-up fits: " + found.unknown;
  if (found.ended_early)
    return "▲ Not decided: none of " + ways(found.tried) + " that were tried fits, and the search ended early";
  return "✖ Does not fit in any of " + ways(found.tried) + " that were tried";
}

}  // namespace spillway::sim
