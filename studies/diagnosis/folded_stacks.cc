#include <algorithm>
#include <map>

#include "studies/diagnosis/memory_diagnosis.h"
#include "studies/diagnosis/step_diagnosis.h"
#include "traces/span_tree.h"

namespace spillway::studies {
namespace {

// Steps are told apart by numbers, which would keep equal stacks apart.
std::string clean(std::string_view name) {
  std::string text(name.starts_with("ProfilerStep#") ? name.substr(0, name.find('#')) : name);
  for (char& c : text)
    if (c == ';' || static_cast<unsigned char>(c) < 0x20) c = c == ';' ? ',' : ' ';
  return text;
}

std::string lines_of(const std::map<std::string, std::int64_t>& stacks) {
  std::string text;
  for (const auto& [stack, value] : stacks)
    if (value > 0) text += stack + " " + std::to_string(value) + "\n";
  return text;
}

}  // namespace

std::string folded_host_stacks(const Trace& trace) {
  const Spans& spans = trace.spans;
  const std::vector<SpanId> parents = span_parents(trace);
  std::vector<Picos> own(spans.size());
  for (std::size_t s = 0; s < spans.size(); ++s) {
    if (spans.start[s] == unknown_time) continue;
    own[s] += spans.duration[s];
    if (parents[s] != SpanId::none) own[index_of(parents[s])] -= spans.duration[s];
  }
  std::map<std::string, std::int64_t> stacks;
  for (std::size_t s = 0; s < spans.size(); ++s) {
    if (own[s] <= Picos(0)) continue;
    std::string text = clean(trace.strings.text(spans.name[s]));
    for (SpanId up = parents[s]; up != SpanId::none; up = parents[index_of(up)])
      text = clean(trace.strings.text(spans.name[index_of(up)])) + ";" + text;
    stacks[clean(trace.strings.text(trace.lanes[index_of(spans.lane[s])].name)) + ";" + text] +=
        own[s] / picos_per_microsecond;
  }
  return lines_of(stacks);
}

std::string folded_memory_stacks(const MemoryDiagnosis& diagnosis) {
  std::map<std::string, std::int64_t> stacks;
  for (const MemoryStack& stack : diagnosis.stacks) {
    std::string text;
    for (const std::string& place : stack.places) text += (text.empty() ? "" : ";") + clean(place);
    stacks[text.empty() ? std::string("no stack recorded") : text] += stack.bytes.count();
  }
  return lines_of(stacks);
}

}  // namespace spillway::studies
