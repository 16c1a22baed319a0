#include "cli/output/sweep_plot.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/input_error.h"
#include "base/nearest_name.h"
#include "base/output_file.h"
#include "reports/sweep_svg.h"

namespace spillway::cli {
namespace {

using Kind = SweepPlot::Kind;
constexpr std::array<std::string_view, 3> kinds = {"front", "map", "tornado"};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, comma - begin));
    begin = comma + 1;
  }
  return parts;
}

Objective objective_of(const std::string& name) {
  std::vector<std::string_view> names;
  for (const Objective objective : all_objectives) {
    if (to_string(objective) == name) return objective;
    names.push_back(to_string(objective));
  }
  throw InputError("--plot", name, "no objective has this name", suggest(name, names));
}

// A front needs two: the file's, or memory or time beside its only one.
std::vector<Objective> usual_objectives(Kind kind, const SweepFile& file) {
  std::vector<Objective> usual = file.objectives;
  if (kind != Kind::front) return {usual.front()};
  if (usual.size() < 2)
    usual.push_back(usual.front() == Objective::peak_memory ? Objective::step_time : Objective::peak_memory);
  return {usual[0], usual[1]};
}

}  // namespace

SweepPlot parse_plot(const std::string& text, const SweepFile& file) {
  const std::size_t equals = text.find('='), colon = std::min(text.find(':'), equals);
  const std::string kind = text.substr(0, colon);
  const auto found = std::find(kinds.begin(), kinds.end(), kind);
  if (found == kinds.end()) throw InputError("--plot", text, "no picture '" + kind + "'", suggest(kind, kinds));
  if (equals == std::string::npos || equals + 1 == text.size())
    throw InputError("--plot", text, "no file is named", "write " + kind + "=picture.svg");
  SweepPlot plot;
  plot.kind = static_cast<Kind>(found - kinds.begin());
  plot.path = text.substr(equals + 1);
  std::vector<std::string> of = split(colon < equals ? text.substr(colon + 1, equals - colon - 1) : "");
  const std::size_t axes = plot.kind == Kind::map ? 2 : 0, objectives = plot.kind == Kind::front ? 2 : 1;
  if (of.size() < axes || of.size() > axes + objectives || (plot.kind == Kind::front && of.size() == 1))
    throw InputError("--plot", text,
                     plot.kind == Kind::map     ? "a map is over two axes"
                     : plot.kind == Kind::front ? "a front is over two objectives"
                                                : "a tornado is of one objective",
                     "see spillway sweep --help");
  plot.axes.assign(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(axes));
  for (std::size_t i = axes; i < of.size(); ++i) plot.objectives.push_back(objective_of(of[i]));
  if (plot.objectives.empty()) plot.objectives = usual_objectives(plot.kind, file);
  return plot;
}

void write_plot(const SweepPlot& plot, const SweepFile& file, const SweepOutcome& outcome, SweepWorkers& workers,
                SweepStore& store) {
  std::string svg;
  switch (plot.kind) {
    case Kind::front:
      svg = sweep_front_svg(file, outcome, plot.objectives[0], plot.objectives[1]);
      break;
    case Kind::map:
      svg = sweep_map_svg(file, sweep_map(file, outcome, plot.axes[0], plot.axes[1], plot.objectives[0]),
                          plot.objectives[0]);
      break;
    case Kind::tornado:
      svg =
          sweep_tornado_svg(file, sweep_tornado(file, outcome, plot.objectives[0], workers, store), plot.objectives[0]);
      break;
  }
  OutputFile out(plot.path);
  out.write(svg);
  out.commit();
}

}  // namespace spillway::cli
