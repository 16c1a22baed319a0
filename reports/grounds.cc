#include "reports/grounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::reports {
namespace {

struct Kind {
  std::string_view provenance, off_by;
};

// The best known first; what a scenario says itself is as it says.
constexpr Kind kinds[] = {
    {"measured", "not stated"},
    {"datasheet", "not stated: the maker's figure"},
    {"fitted", "not stated for each: in the range of the step"},
    {"assumed", "not known: nobody measured it; measure, or ask for it"},
};

std::string listed(const std::vector<const InputProvenance*>& inputs) {
  constexpr std::size_t most = 6;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, inputs.size()); ++i) text += (i == 0 ? "" : ", ") + inputs[i]->name;
  if (inputs.size() > most) text += fmt::format(" and {} more", inputs.size() - most);
  return text;
}

}  // namespace

ReportTable grounds_table(const std::vector<InputProvenance>& inputs, const FigureRange& step_time) {
  ReportTable table{"What they rest on", {"inputs", "are", "may be off by"}, {}};
  const auto add = [&table](std::string what, std::string is, std::string off_by) {
    table.rows.push_back(
        {{std::move(what), std::nullopt}, {std::move(is), std::nullopt}, {std::move(off_by), std::nullopt}});
  };
  for (const Kind& kind : kinds) {
    std::vector<const InputProvenance*> of_kind;
    for (const InputProvenance& input : inputs)
      if (input.provenance == kind.provenance) of_kind.push_back(&input);
    if (!of_kind.empty()) add(listed(of_kind), std::string(kind.provenance), std::string(kind.off_by));
  }
  add("the step's time, of all of them", "replayed",
      step_time.known ? fmt::format("{:+.0f} to {:+.0f} % in 80 % of steps like it ({})", (step_time.low - 1) * 100,
                                    (step_time.high - 1) * 100, step_time.basis)
                      : "not known: " + step_time.basis);
  return table;
}

}  // namespace spillway::reports
