#include "cli/output/diagnosis_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/number_text.h"
#include "base/short_text.h"
#include "cli/options/text_page.h"
#include "cli/output/table.h"
#include "reports/pictures/treemap_svg.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t shown_rows = 8;  // rows of a table for people

std::string time_text(Picos time) { return time > Picos(0) ? short_duration(to_seconds(time)) : "-"; }
// Rounds to 0.0 % otherwise.
bool is_told(double share) { return share >= 0.0005; }
double share_of_time(Picos part, Picos whole) { return whole > Picos(0) ? to_seconds(part) / to_seconds(whole) : 0; }
// In what is left of a line behind `used` characters: of a line of Python its end, of a kernel its beginning.
std::string short_name(const std::string& name, std::size_t used) {
  constexpr std::size_t least = 20;
  const std::size_t room = std::max(page_width() - std::min(page_width(), used), least);
  return elided(name, room, name.find(".py") != std::string::npos);
}

std::string recorded_text(const StepDiagnosis& d) {
  const std::string steps = d.steps == 0 ? "" : fmt::format(" of {} step{}", d.steps, d.steps == 1 ? "" : "s");
  const std::string busy = d.gpu_busy > Picos(0) ? fmt::format("GPU work in {} ({})", time_text(d.gpu_busy),
                                                               percent_text(share_of_time(d.gpu_busy, d.recorded)))
                                                 : "no GPU work";
  std::string text = fmt::format("  in all      {}{}: host calls or GPU work in {}, {}", time_text(d.recorded), steps,
                                 time_text(d.active), busy);
  if (d.recorded_reserved > Bytes(0))
    text += fmt::format("; {} reserved at most, replayed {}: what was cached before is not in the capture",
                        gib_text(d.recorded_reserved), gib_text(d.replayed_reserved));
  return "\n" + paragraph(text, page_width(), 14);
}

// The rows that matter, without the columns of the long form.
std::string short_text(const StepDiagnosis& d) {
  std::string text = recorded_text(d);
  const auto add = [&](const char* heading, Picos time, const std::string& name, Picos gpu_idle) {
    const std::string idle = gpu_idle > Picos(0) ? fmt::format(", GPU idle {}", time_text(gpu_idle)) : std::string();
    const std::string first = fmt::format("    {:<12} {:>8} {:>7}  ", heading, time_text(time),
                                          percent_text(share_of_time(time, d.recorded)));
    text += first + short_name(name, first.size() + idle.size()) + idle + "\n";
  };
  for (const DiagnosisRow& row : d.host)
    if (row.gpu_idle > Picos(0)) add("host", row.time, row.name, row.gpu_idle);
  for (const DiagnosisRow& row : d.kernels) add("kernel", row.time, row.name, {});
  for (const DiagnosisRow& row : d.operators) add("operator", row.time, row.name, {});
  for (const CollectiveRow& row : d.collectives)
    if (row.wait > Picos(0)) add("waiting in", row.wait, row.name, {});
  if (d.launch_bound > Picos(0))
    add("launch-bound", d.launch_bound, "works that begin as soon as they are launched", {});
  return text + "    what each would give: spillway explain\n";
}

std::string rows_text(const char* heading, const std::vector<DiagnosisRow>& rows, Picos whole, bool on_host) {
  if (rows.empty()) return "";
  std::string text = fmt::format("\n  {}\n    {:>8} {:>7} {}{:>7}\n", heading, "time", "share",
                                 on_host ? fmt::format("{:>8} ", "GPU idle") : "", "times");
  for (std::size_t i = 0; i < std::min(rows.size(), shown_rows); ++i) {
    if (i > 0 && !is_told(share_of_time(rows[i].time, whole))) break;  // the longest stand first
    const std::string first = fmt::format(
        "    {:>8} {:>7} {}{:>7}  ", time_text(rows[i].time), percent_text(share_of_time(rows[i].time, whole)),
        on_host ? fmt::format("{:>8} ", time_text(rows[i].gpu_idle)) : "", rows[i].count);
    text += first + short_name(rows[i].name, first.size()) + "\n";
  }
  return text;
}

Json rows_json(const std::vector<DiagnosisRow>& rows, bool on_host) {
  Json list = Json::array();
  for (const DiagnosisRow& row : rows) {
    list.push_back({{"name", row.name}, {"count", row.count}, {"time_ns", whole_nanoseconds(row.time)}});
    if (on_host) list.back()["gpu_idle_ns"] = whole_nanoseconds(row.gpu_idle);
  }
  return list;
}

double share_of(Bytes part, Bytes whole) {
  return whole > Bytes(0) ? static_cast<double>(part.count()) / static_cast<double>(whole.count()) : 0;
}

std::string holders_text(const char* heading, const std::vector<MemoryHolder>& holders, Bytes whole) {
  std::string text = fmt::format("\n  {}\n", heading);
  for (std::size_t i = 0; i < std::min(holders.size(), shown_rows); ++i) {
    const double part = share_of(holders[i].bytes, whole);
    text += fmt::format("    {:>12} {:>7}  {} ({} block{})\n", bytes_text(holders[i].bytes), percent_text(part),
                        short_name(holders[i].name, 40), holders[i].blocks, holders[i].blocks == 1 ? "" : "s");
  }
  return text;
}

Json holders_json(const std::vector<MemoryHolder>& holders) {
  Json list = Json::array();
  for (const MemoryHolder& holder : holders)
    list.push_back({{"name", holder.name}, {"bytes", holder.bytes.count()}, {"blocks", holder.blocks}});
  return list;
}

Json ran_out_json(const RanOut& ran_out) {
  Json others = Json::array();
  for (const OtherAllocator& other : ran_out.others)
    others.push_back({{"name", other.name},
                      {"allocator", other.policy},
                      {"settings", other.settings},
                      {"serves", other.serves},
                      {"peak_reserved_bytes", other.reserved.count()}});
  return {{"asked_bytes", ran_out.asked.count()},
          {"asked_at", ran_out.place},
          {"device_free_bytes", ran_out.device_free < Bytes(0) ? Json() : Json(ran_out.device_free.count())},
          {"allocated_bytes", ran_out.allocated.count()},
          {"reserved_bytes", ran_out.reserved.count()},
          {"cached_bytes", ran_out.cached.count()},
          {"largest_free_block_bytes", ran_out.largest_free.count()},
          {"limit_bytes", ran_out.limit.count()},
          {"why", ran_out.why},
          {"others", others}};
}

std::string ran_out_text(const RanOut& ran_out) {
  std::string text =
      fmt::format("\n  what made it run out\n    asked        {} at {}\n", bytes_text(ran_out.asked), ran_out.place);
  if (ran_out.device_free >= Bytes(0))
    text += fmt::format("    free         {} on the device\n", bytes_text(ran_out.device_free));
  text += paragraph(fmt::format("    allocated    {} of {} reserved; {} cached, the largest piece it may use {}",
                                bytes_text(ran_out.allocated), bytes_text(ran_out.reserved), bytes_text(ran_out.cached),
                                bytes_text(ran_out.largest_free)),
                    page_width(), 17);
  text += paragraph("    why          " + ran_out.why, page_width(), 17) + "\n  what would have fitted\n";
  for (const OtherAllocator& other : ran_out.others)
    text += fmt::format("    {:<4} {:>12}  {}\n", other.serves ? "yes" : "no", bytes_text(other.reserved), other.name);
  return text;
}

}  // namespace

std::string diagnosis_text(const StepDiagnosis& d) {
  if (d.depth == DiagnosisDepth::short_form) return short_text(d);
  std::string text = recorded_text(d);
  text += rows_text("the host, by what it did while the GPU was idle", d.host, d.recorded, true);
  text += rows_text("Python's own time", d.frames, d.recorded, true);
  text += rows_text("kernels", d.kernels, d.recorded, false);
  text += rows_text("operators, by the GPU time they launched", d.operators, d.recorded, false);
  text += rows_text("modules, by the GPU time they launched", d.modules, d.recorded, false);
  if (!d.collectives.empty()) text += "\n  collectives: waits are estimated, beyond the shortest of their kind\n";
  for (std::size_t i = 0; i < std::min(d.collectives.size(), shown_rows); ++i)
    text +=
        fmt::format("    {:>8}, {:>8} of it waiting  {} ({} times)\n", time_text(d.collectives[i].time),
                    time_text(d.collectives[i].wait), short_name(d.collectives[i].name, 60), d.collectives[i].count);
  if (d.launch_bound > Picos(0))
    text += fmt::format("\n  launch-bound {} ({}): works that begin as soon as the host launches them\n",
                        time_text(d.launch_bound), percent_text(share_of_time(d.launch_bound, d.recorded)));
  for (std::size_t i = 0; i < std::min<std::size_t>(d.stretches.size(), 3); ++i)
    text +=
        paragraph(fmt::format("    {:>8} at {}, {} works, GPU work in {}, from {}", time_text(d.stretches[i].length),
                              precise_duration_text(d.stretches[i].begin), d.stretches[i].works,
                              time_text(d.stretches[i].busy), short_name(d.stretches[i].where, 30)),
                  page_width(), 20);
  if (!d.reliefs.empty()) text += fmt::format("\n  what each would give\n    {:>8} {:>7}\n", "step", "gain");
  for (std::size_t i = 0; i < std::min(d.reliefs.size(), shown_rows); ++i)
    if (i == 0 || is_told(d.reliefs[i].gain))
      text += fmt::format("    {:>8} {:>7}  {}\n", time_text(d.reliefs[i].step_time), percent_text(d.reliefs[i].gain),
                          short_name(d.reliefs[i].what, 22));
  return text;
}

Json diagnosis_json(const StepDiagnosis& d) {
  const bool is_full = d.depth == DiagnosisDepth::full;
  Json document = {
      {"steps", d.steps},
      {"recorded_ns", whole_nanoseconds(d.recorded)},
      {"active_ns", whole_nanoseconds(d.active)},
      {"gpu_busy_ns", whole_nanoseconds(d.gpu_busy)},
      {"recorded_peak_reserved_bytes", d.recorded_reserved > Bytes(0) ? Json(d.recorded_reserved.count()) : Json()},
      {"host", rows_json(d.host, true)}};
  if (is_full) document["python_frames"] = rows_json(d.frames, true);
  document["kernels"] = rows_json(d.kernels, false);
  document["operators"] = rows_json(d.operators, false);
  if (is_full) document["modules"] = rows_json(d.modules, false);
  document["collectives"] = Json::array();
  for (const CollectiveRow& row : d.collectives)
    document["collectives"].push_back({{"name", row.name},
                                       {"count", row.count},
                                       {"bytes", row.bytes.count()},
                                       {"time_ns", whole_nanoseconds(row.time)},
                                       {"estimated_wait_ns", whole_nanoseconds(row.wait)}});
  document["launch_bound_ns"] = whole_nanoseconds(d.launch_bound);
  document["launch_bound"] = Json::array();
  for (const LaunchBoundStretch& row : d.stretches)
    document["launch_bound"].push_back({{"from", row.where},
                                        {"begin_ns", whole_nanoseconds(row.begin)},
                                        {"length_ns", whole_nanoseconds(row.length)},
                                        {"gpu_busy_ns", whole_nanoseconds(row.busy)},
                                        {"works", row.works}});
  if (!is_full) return document;
  document["reliefs"] = Json::array();
  for (const Relief& row : d.reliefs)
    document["reliefs"].push_back(
        {{"what", row.what}, {"step_time_ns", whole_nanoseconds(row.step_time)}, {"gain_fraction", row.gain}});
  return document;
}

std::string diagnosis_text(const MemoryDiagnosis& d) {
  std::string text =
      fmt::format("\n  alive {}: {}\n", d.ran_out ? "when it ran out" : "when most was", bytes_text(d.alive));
  if (!d.has_stacks)
    return text + "    no call stacks were recorded: torch.cuda.memory._record_memory_history() does\n";
  text += holders_text("by the program's own line", d.places, d.alive);
  text += holders_text("by forward() of a module", d.modules, d.alive);
  text += holders_text("by phase", d.phases, d.alive);
  return d.ran_out ? text + ran_out_text(*d.ran_out) : text;
}

Json diagnosis_json(const MemoryDiagnosis& d) {
  return {{"event", d.event},
          {"alive_bytes", d.alive.count()},
          {"has_stacks", d.has_stacks},
          {"by_line", holders_json(d.places)},
          {"by_module", holders_json(d.modules)},
          {"by_phase", holders_json(d.phases)},
          {"ran_out", d.ran_out ? ran_out_json(*d.ran_out) : Json()}};
}

std::string snapshot_page(const studies::Answer& answer, const MemoryDiagnosis& d, const std::string& agreement) {
  constexpr std::size_t label = 20;
  std::string text;
  const auto line = [&](const std::string& words, std::size_t indent) {
    if (!words.empty())
      text += paragraph(std::string(indent, ' ') + words, page_width(), std::max<std::size_t>(2, indent));
  };
  line(answer.heading, 0);
  line(answer.when, 2);
  line(answer.why.sentence, 2);
  if (d.has_stacks) {
    text += holders_text("who held it, by the program's own line", d.places, d.alive);
    text += holders_text("by forward() of a module", d.modules, d.alive);
    text += holders_text("by phase", d.phases, d.alive);
  } else {
    line("no call stacks were recorded: torch.cuda.memory._record_memory_history() does", 2);
  }
  std::string heading;
  for (const studies::AnswerWay& way : answer.ways) {
    const bool serves = way.figures.answer != Verdict::does_not_fit;
    const std::string words = !d.ran_out ? "would save some" : serves ? "would have fitted" : "would not";
    if (heading.empty()) text += "\n";
    text += paragraph(fmt::format("  {:<{}}{}{}", words == heading ? "" : words, label, way.name,
                                  serves ? ", " + way.figures.verdict : ""),
                      page_width(), label + 2);
    heading = words;
    for (const std::string& sentence : way.sentences) line(sentence, label + 2);
  }
  return text + "\n" + paragraph(agreement, page_width());
}

std::string memory_treemap(const MemoryDiagnosis& d, const std::string& title) {
  std::vector<TreemapItem> items;
  for (const MemoryHolder& holder : d.places)
    if (holder.bytes > Bytes(0)) {
      const std::size_t colon = holder.name.find(':');
      items.push_back({{colon == std::string::npos ? std::string("elsewhere") : holder.name.substr(0, colon),
                        colon == std::string::npos ? holder.name : "line " + holder.name.substr(colon + 1)},
                       static_cast<double>(holder.bytes.count()),
                       bytes_text(holder.bytes)});
    }
  return treemap_svg(title,
                     fmt::format("{} alive {}, by file and line", bytes_text(d.alive),
                                 d.ran_out ? "when an allocation failed" : "when most was"),
                     items);
}

}  // namespace spillway::cli
