#include "gui/workspace/variant_figures.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/number_text.h"
#include "gui/canvas/time_axis.h"
#include "gui/workspace/shown_figures.h"
#include "scenario/scenario.h"
#include "studies/offload/result_figures.h"

namespace spillway::gui {
namespace {

using Json = nlohmann::ordered_json;

void set_memory(const Outcome& outcome, VariantFigures& figures) {
  const MemoryResult& memory = outcome.result().memory;
  if (!memory.known) return;
  const MemoryScene* const scene = outcome.fullest.memory.get();
  if (scene == nullptr || scene->owners.empty()) return;
  const OwnerStack& owners = scene->owners;
  const OwnerStack::Held peak = owners.at(owners.time_of_peak());
  std::vector<std::size_t> used;
  for (std::size_t i = 0; i < most_owners; ++i) {
    if (owners.owners()[i].words.empty()) continue;
    used.push_back(i);
    figures.owners.emplace_back(owners.owners()[i].words, in_gib(Bytes(peak[i])));
    figures.owner_tokens.push_back(owners.owners()[i].token);
  }
  for (const OwnerStack::Held& held : owners.fold(TimeAxis(scene->whole, figure_columns))) {
    std::vector<float> column;
    for (const std::size_t i : used) column.push_back(static_cast<float>(in_gib(Bytes(held[i]))));
    figures.curve.push_back(std::move(column));
  }
}

// Tokens are of all GPUs: what each writes, of the ranks that stand for as many of them.
void set_drives(const Outcome& outcome, VariantFigures& figures) {
  const Result& result = outcome.result();
  std::map<std::uint16_t, double> by_rank;
  for (const DriveTraffic& drive : result.drives)
    for (const DriveSharer& sharer : drive.sharers) by_rank[sharer.rank] = static_cast<double>(sharer.written.count());
  double written = 0;
  for (const auto& [rank, bytes] : by_rank) written += bytes;
  if (!outcome.loaded.scenario.model.empty())
    written *= static_cast<double>(outcome.loaded.setup.gpus()) /
               static_cast<double>(std::max<std::size_t>(1, result.ranks.size()));
  if (figures.tokens_per_step > 0)
    figures.written_bytes_per_token = written / static_cast<double>(std::max<std::size_t>(1, result.steps.size())) /
                                      static_cast<double>(figures.tokens_per_step);
}

void flatten(const Json& value, const std::string& path, std::vector<std::string>& order) {
  if (!value.is_object()) {
    if (std::find(order.begin(), order.end(), path) == order.end()) order.push_back(path);
    return;
  }
  for (const auto& [key, inner] : value.items()) flatten(inner, path.empty() ? key : path + "." + key, order);
}

}  // namespace

VariantFigures variant_figures(const Outcome& outcome) {
  VariantFigures figures;
  static_cast<studies::Row&>(figures) = studies::row_of({outcome.scenario.name, {}}, outcome.loaded, outcome.result());
  figures.text = outcome.scenario.text;
  Result& result = figures.result;
  const ShownFigure shown = shown_figures(outcome, nullptr).front();
  figures.verdict = shown.short_value;
  figures.shape = verdict_shape(shown.is_alarm ? Verdict::does_not_fit : result.answer());
  if (!outcome.trace().has(Capability::times)) {
    result.step_time = Picos(0);
    result.tokens_per_second = result.mfu = 0;
    figures.tokens_per_step = 0;
  } else {
    // Of as many steps as are in the record.
    const double steps = std::max(1.0, std::round(to_seconds(result.replayed) / to_seconds(result.step_time)));
    const double share = 1 / (steps * static_cast<double>(std::max<std::int64_t>(1, figures.tokens_per_step)));
    for (const studies::WorkRow& row : outcome.work) {
      if (row.total <= 0) continue;
      const std::size_t op = row.example;
      if (op >= outcome.trace().ops.size() || outcome.trace().ops.kind[op] != OpKind::kernel) continue;
      const std::string name = row.phase.empty() ? row.name : row.name + ", " + row.phase;
      figures.kernels[name] += static_cast<double>(row.total) * 1e-6 * share;
      figures.kernel_tokens[name] = owner_token(row.phase);
    }
  }
  set_memory(outcome, figures);
  set_drives(outcome, figures);
  return figures;
}

std::vector<ChangedKey> changed_keys(const std::vector<std::string>& texts) {
  std::vector<std::string> order;
  for (const std::string& text : texts) {
    const Json root = Json::parse(text, nullptr, false, true);
    if (root.is_object()) flatten(root, "", order);
  }
  std::vector<ChangedKey> changed;
  for (const std::string& key : order) {
    if (key == "title" || key == "note" || key == "schema" || key == "version") continue;
    ChangedKey row{key, {}};
    for (const std::string& text : texts) row.values.push_back(setting_of(text, key));
    const bool differs = std::any_of(row.values.begin(), row.values.end(),
                                     [&](const auto& value) { return value != row.values.front(); });
    if (differs) changed.push_back(std::move(row));
  }
  return changed;
}

}  // namespace spillway::gui
