#include "studies/offload/rok.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/axis.h"
#include "base/input_error.h"
#include "base/number_text.h"
#include "base/svg_canvas.h"
#include "base/svg_plot.h"
#include "base/svg_text.h"
#include "planners/offload/hybrid_search.h"
#include "planners/technique/technique_table.h"
#include "scenario/scenario_memory.h"

namespace spillway::studies {
namespace {

constexpr std::array<std::string_view, 4> families = {"keep", "recompute", "offload", hybrid_word};
constexpr std::array<std::string_view, 4> colours = {"#1A1A1A", "#D55E00", "#0072B2", "#009E73"};

Candidate under(std::string_view family, std::int64_t micro_batch) {
  const Recompute recompute = family == "recompute" ? Recompute::full : Recompute::none;
  return {std::string(family),
          {"model.micro_batch=" + std::to_string(micro_batch), setting(recompute_key, to_string(recompute)),
           setting(offload_key, family == "offload"     ? ssdtrain_word
                                : family == hybrid_word ? hybrid_word
                                                        : no_offload)}};
}

}  // namespace

std::string family_words(std::string_view family) {
  return family == "keep"        ? "kept"
         : family == "recompute" ? "recomputed"
         : family == "offload"   ? "offloaded"
                                 : "as planned, per tensor";
}

namespace {

void mark_frontier(std::vector<RokPoint>& points) {
  for (RokPoint& point : points)
    point.on_frontier =
        point.result.fits() && std::none_of(points.begin(), points.end(), [&](const RokPoint& other) {
          return other.result.fits() && other.activations <= point.activations &&
                 other.model_flops_per_second >= point.model_flops_per_second &&
                 (other.activations < point.activations || other.model_flops_per_second > point.model_flops_per_second);
        });
}

class Picture : private SvgCanvas {
 public:
  Picture(const std::string& title, const std::vector<RokPoint>& points)
      : title_(title),
        points_(points),
        x_(Axis::from_zero(most([](const RokPoint& p) { return gib(p); }), left, width - right, 5)),
        y_(Axis::from_zero(most([](const RokPoint& p) { return tera(p); }), height - bottom, top, 5)) {
    text(24, 30, 16, fit_text(title, 16, width - 48), svg_ink, "start", svg_bold);
  }

  std::string draw() {
    draw_axes(*this, {x_, x_.ticks(5), "most activations at once, GiB per GPU"},
              {y_, y_.ticks(5), "model throughput, TFLOP/s over all GPUs"});
    for (std::size_t f = 0; f < families.size(); ++f) family(f);
    return document(width, height, title_);
  }

 private:
  static constexpr double width = 760, height = 520, left = 84, right = 24, top = 84, bottom = 64;

  static double gib(const RokPoint& p) { return in_gib(p.activations); }
  static double tera(const RokPoint& p) { return p.model_flops_per_second / 1e12; }
  template <class Value>
  [[nodiscard]] double most(Value value) const {
    double found = 0;
    for (const RokPoint& point : points_) found = std::max(found, value(point));
    return found;
  }

  void label(double x, double y, std::string_view anchor, const std::string& words, std::string_view fill = svg_faint) {
    text(x, y, 13, words, fill, anchor);
  }
  void family(std::size_t f) {
    std::vector<RokPoint> own;
    for (const RokPoint& point : points_)
      if (point.candidate.name == families[f]) own.push_back(point);
    if (own.empty()) return;
    const double legend = left + 130 * static_cast<double>(legends_++);
    put("<circle cx=\"{:.1f}\" cy=\"58\" r=\"5\" fill=\"{}\"/>\n", legend, colours[f]);
    label(legend + 12, 62, "start", family_words(families[f]), svg_ink);
    std::string path;
    for (const RokPoint& point : own)
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : " L", x_.at(gib(point)), y_.at(tera(point)));
    put("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>\n", path, colours[f]);
    for (const RokPoint& point : own) {
      // Hollow: not known to fit.
      put("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\" fill=\"{}\" stroke=\"{}\" stroke-width=\"1.5\"/>\n",
          x_.at(gib(point)), y_.at(tera(point)), point.result.fits() ? colours[f] : "#FFFFFF", colours[f]);
      const bool below = f % 2 == 1;
      label(x_.at(gib(point)), y_.at(tera(point)) + (below ? 20 : -10), "middle", std::to_string(point.micro_batch),
            colours[f]);
    }
  }

  const std::string& title_;
  const std::vector<RokPoint>& points_;
  Axis x_, y_;
  int legends_ = 0;
};

}  // namespace

Bytes most_activations(const LoadedScenario& loaded, ScenarioRun run) {
  take_replayed_order(loaded, run);
  constexpr std::array clocks = {MemoryClock::program};
  const std::vector<MemoryPicture> pictures = step_memory_on(loaded, run, clocks);
  SPILLWAY_ASSERT(!pictures.empty());  // a generated step knows its memory
  const MemoryPicture& picture = pictures.front();
  const Trace& trace = run.trace(loaded);
  constexpr std::array<std::string_view, 5> state = {"weight", "gradient", "optimizer_state", "buffer", "input"};
  const auto counts = [&](const MemoryPicture::Block& block) {
    if (block.event < 0 || std::find(state.begin(), state.end(), picture.kinds[block.kind]) != state.end())
      return false;
    const OpId after = trace.memory_events[static_cast<std::size_t>(block.event)].anchor;
    return after == OpId::none || trace.ops.phase[index_of(after)] != Phase::optimizer;
  };
  std::vector<std::pair<std::int64_t, std::int64_t>> changes;  // memory event, bytes: as the allocator saw them
  for (const MemoryPicture::Block& block : picture.blocks) {
    if (!counts(block)) continue;
    changes.emplace_back(block.event, block.size.count());
    if (block.freed >= 0) changes.emplace_back(block.freed, -block.size.count());
  }
  std::sort(changes.begin(), changes.end());
  std::int64_t held = 0, most = 0;
  for (const auto& [event, bytes] : changes) most = std::max(most, held += bytes);
  return Bytes(most);
}

std::vector<RokPoint> rok_curve(const ScenarioWith& with, std::span<const std::int64_t> micro_batches, bool with_mix,
                                const std::function<bool(std::size_t, std::size_t)>& progress) {
  if (const Scenario scenario = with({}); scenario.model.empty())
    throw InputError(scenario.path.empty() ? scenario.trace : scenario.path, "model",
                     "the curve needs a model, so that the batch can change",
                     "name a scenario with a model, not a captured trace");
  std::vector<RokPoint> points;
  const std::size_t count = with_mix ? families.size() : families.size() - 1;
  std::size_t done = 0;
  for (std::size_t f = 0; f < count; ++f)
    for (const std::int64_t micro_batch : micro_batches) {
      if (progress && !progress(done++, count * micro_batches.size())) return points;
      Candidate candidate = under(families[f], micro_batch);
      const LoadedScenario loaded = load(with(candidate.edits));
      ScenarioRun ran = run_traced(loaded);
      RokPoint& point = points.emplace_back();
      static_cast<Row&>(point) = row_of(std::move(candidate), loaded, ran.result);
      point.micro_batch = micro_batch;
      const double seconds = to_seconds(ran.result.step_time);
      point.model_flops_per_second = seconds > 0 ? loaded.options.model_flops_per_step / seconds : 0;
      point.activations = most_activations(loaded, std::move(ran));
    }
  mark_frontier(points);
  return points;
}

std::string rok_svg(const std::string& title, const std::vector<RokPoint>& points) {
  return Picture(title, points).draw();
}

}  // namespace spillway::studies
