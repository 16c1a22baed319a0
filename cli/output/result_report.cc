#include "cli/output/result_report.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/number_text.h"
#include "cli/output/memory_explanation.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string milliseconds_text(Picos time) { return fmt::format("{:.3f} ms", to_seconds(time) * 1e3); }

Json steps_json(const Result& result) {
  Json steps = Json::array();
  for (std::size_t s = 0; s < result.steps.size(); ++s) {
    const StepResult& step = result.steps[s];
    const std::optional<Picos> period = period_of(result, s);
    Json row = {{"name", step.name},
                {"begin_ns", whole_nanoseconds(step.begin)},
                {"period_ns", period ? Json(whole_nanoseconds(*period)) : Json()},
                {"span_ns", whole_nanoseconds(step.span())},
                {"device_busy_ns", whole_nanoseconds(step.device_busy)}};
    if (step.recorded_span != unknown_time) {
      row["recorded_span_ns"] = whole_nanoseconds(step.recorded_span);
      row["relative_error"] = to_seconds(step.span()) / to_seconds(step.recorded_span) - 1;
    }
    steps.push_back(row);
  }
  return steps;
}

Json memory_json(const MemoryResult& memory) {
  return {{"allocator", memory.allocator},
          {"on_host", memory.on_host},
          {"capacity_bytes", memory.capacity.count()},
          {"limit_bytes", memory.limit.count()},
          {"out_of_memory", memory.out_of_memory},
          {"explanation", memory.explanation},
          {"segments_allocated", memory.segments_allocated},
          {"driver_time_ns", whole_nanoseconds(memory.driver_time)},
          {"first_step_driver_time_ns", whole_nanoseconds(memory.first_driver_time)},
          {"peak_time_ns", whole_nanoseconds(memory.peak_time)},
          {"peak_owners", owners_json(memory.owners)},
          {"peak_owners_by_layer", owners_json(memory.owners_by_layer)},
          {"peak_owners_by_phase", owners_json(memory.owners_by_phase)}};
}

// Null where it fits, or where something else than device memory is missing.
Json short_of_json(const Result& result) {
  return result.memory.short_of > Bytes(0) ? Json(result.memory.short_of.count()) : Json();
}

std::string reserve_text(const Reserve& reserve) {
  if (reserve.bytes() <= Bytes(0)) return "";
  std::string text;
  for (const ReservePart& part : reserve.parts)
    if (!part.in_capacity)
      text += fmt::format("{}{} {} ({})", text.empty() ? "" : ", ", gib_text(part.bytes), part.name, part.provenance);
  return fmt::format("  kept free      {}: {}\n", gib_text(reserve.bytes()), text);
}

Json offload_json(const Result& result) {
  if (!result.offload) return {};
  const OffloadResult& offload = *result.offload;
  return {{"technique", offload.technique},
          {"candidate_bytes", offload.candidates.count()},
          {"stored_bytes", offload.stored.count()},
          {"loaded_bytes", offload.loaded.count()},
          {"forwarded_bytes", offload.forwarded.count()},
          {"kept_bytes", offload.kept.count()},
          {"store_bytes_per_second", offload.store_bytes_per_second},
          {"in_flight_bytes", offload.in_flight.count()},
          {"settled", offload.settled}};
}

// What each GPU of a rank writes and reads.
Json sharers_json(const DriveTraffic& drive) {
  Json sharers = Json::array();
  for (const DriveSharer& sharer : drive.sharers)
    sharers.push_back({{"rank", sharer.rank},
                       {"gpus", sharer.gpus},
                       {"bytes_written", sharer.written.count()},
                       {"bytes_read", sharer.read.count()}});
  return sharers;
}

// JSON has no infinity: nothing written is no end, null.
Json drives_json(const Result& result) {
  Json drives = Json::array();
  for (const DriveTraffic& drive : result.drives) {
    Json row = {{"name", drive.name},
                {"model", drive.model},
                {"drives_per_machine", drive.drives},
                {"gpus", drive.gpus},
                {"bytes_written", drive.written.count()},
                {"bytes_read", drive.read.count()},
                {"written_by", sharers_json(drive)},
                {"bytes_held", drive.held.count()},
                {"cache_was_full", drive.cache_was_full},
                {"life_years", nullptr}};
    if (drive.life) {
      row["life_years"] = number_or_null(drive.life->years);
      row["life_low_years"] = number_or_null(drive.life->low_years);
      row["life_high_years"] = number_or_null(drive.life->high_years);
      row["endurance_basis"] = drive.life->basis;
      row["assumptions"] = drive.life->assumptions;
    }
    drives.push_back(row);
  }
  return drives;
}

// A step, of the machine whose drives take most; the shortest life.
Json ssd_json(const Result& result) {
  if (result.drives.empty()) return {};
  const DriveTraffic* const shortest = shortest_lived(result);
  const auto life = [shortest](double DriveLife::*years) {
    return shortest == nullptr ? Json() : number_or_null((*shortest->life).*years);
  };
  return {{"bytes_written_per_step", studies::drives_written(result).count()},
          {"bytes_read_per_step", studies::drives_read(result).count()},
          {"life_years", life(&DriveLife::years)},
          {"life_low_years", life(&DriveLife::low_years)},
          {"life_high_years", life(&DriveLife::high_years)},
          {"answer", result.drives_refuse.empty()},
          {"verdict", result.drives_refuse}};
}

Json phases_json(const Result& result) {
  Json phases = Json::array();
  for (const auto& phase : result.phases)
    phases.push_back({{"name", phase.name},
                      {"time_ns", whole_nanoseconds(phase.time)},
                      {"peak_bytes", phase.peak.count()},
                      {"fits", fits_json(phase.verdict)},
                      {"verdict", to_string(phase.verdict)},
                      {"short_of_bytes", phase.short_of.count()},
                      {"basis", phase.basis}});
  return phases;
}

Json between_steps_json(const Result& result) {
  Json all = Json::array();
  for (const auto& one : result.between_steps)
    all.push_back({{"name", one.name},
                   {"on_host", one.on_host},
                   {"peak_bytes", one.peak.count()},
                   {"fits", fits_json(one.verdict)},
                   {"verdict", to_string(one.verdict)},
                   {"short_of_bytes", one.short_of.count()},
                   {"basis", one.basis}});
  return all;
}

Json fidelity_json(const Result& result) {
  if (!result.fidelity) return {};
  const Fidelity& found = *result.fidelity;
  return {{"recorded_ns", whole_nanoseconds(found.recorded)},
          {"replayed_ns", whole_nanoseconds(found.replayed)},
          {"relative_error", found.error},
          {"unexplained_ns", whole_nanoseconds(found.unexplained)},
          {"unexplained_fraction", found.unexplained_share},
          {"cause", found.cause},
          {"unprofiled_step_ns", found.unprofiled > Picos(0) ? Json(whole_nanoseconds(found.unprofiled)) : Json()},
          {"unprofiled_error", found.unprofiled > Picos(0) ? Json(found.unprofiled_error) : Json()},
          {"without_profiler_ns",
           found.without_profiler > Picos(0) ? Json(whole_nanoseconds(found.without_profiler)) : Json()}};
}

Json kept_idle_json(const Result& result) {
  Json rows = Json::array();
  for (const KeptIdle& row : result.kept_idle)
    rows.push_back({{"name", row.name},
                    {"in_host_call", row.in_call},
                    {"count", row.count},
                    {"total_ns", whole_nanoseconds(row.total)},
                    {"longest_ns", whole_nanoseconds(row.longest)},
                    {"on_critical_path_ns", whole_nanoseconds(row.on_path)}});
  return rows;
}

std::string kept_idle_text(const Result& result) {
  constexpr std::size_t most = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, result.kept_idle.size()); ++i) {
    const KeptIdle& row = result.kept_idle[i];
    if (row.on_path <= Picos(0)) break;
    text += fmt::format(
        "    {:>14}  {}{}\n", milliseconds_text(row.on_path), row.name,
        row.count > 1 ? fmt::format(" ({} times, at most {})", row.count, milliseconds_text(row.longest)) : "");
  }
  return text.empty() ? "" : "\n  kept as recorded\n" + text;
}

std::string ranks_text(const Result& result) {
  std::string text = "\n  peak reserved   idle\n";
  for (const RankResult& rank : result.ranks)
    text += fmt::format("    {:>11} {:>6}  {}{}\n", gib_text(rank.peak_reserved),
                        rank.bubble ? percent_text(*rank.bubble) : "?", rank.name, verdict_note(rank.verdict, ", "));
  return text;
}

}  // namespace

// Parts that are off the capacity already don't count again.
Json reserve_json(const Reserve& reserve) {
  Json parts = Json::array();
  for (const ReservePart& part : reserve.parts)
    parts.push_back({{"name", part.name},
                     {"bytes", part.bytes.count()},
                     {"is_margin", part.is_margin},
                     {"off_the_capacity_already", part.in_capacity},
                     {"provenance", part.provenance},
                     {"source", part.source}});
  return {{"parts", parts},
          {"bytes", reserve.bytes().count()},
          {"taken_bytes", reserve.taken.count()},
          {"margin_bytes", reserve.margin.count()}};
}

Json range_json(const FigureRange& range) {
  return {{"low", range.known ? Json(range.low) : Json()},
          {"high", range.known ? Json(range.high) : Json()},
          {"share", 0.8},
          {"basis", range.basis}};
}

Json result_json(const Result& result) {
  Json document = json_document("spillway-result");
  document["title"] = result.title;
  if (!result.machine.empty()) document["machine"] = {{"title", result.machine}, {"assumed", result.machine_assumed}};
  document["fingerprint"] = fmt::format("{:016x}", result.fingerprint);
  put_verdict(document, result);
  document["verdict_words"] = verdict_sentence(result);
  document["short_of_bytes"] = short_of_json(result);
  document["reserve"] = reserve_json(result.reserve);
  document["step_time_ns"] = whole_nanoseconds(result.step_time);
  document["step_time_range"] = range_json(result.step_time_range);
  document["peak_range"] = range_json(result.peak_range);
  document["peak_allocated_bytes"] = result.memory.known ? Json(result.memory.peak_allocated.count()) : Json();
  document["peak_reserved_bytes"] = result.memory.known ? Json(result.memory.peak_reserved.count()) : Json();
  document["binding_resource"] = to_string(result.binding);
  document["binding_words"] = describe(result.binding);
  Json parts = Json::object();
  for (int i = 0; i < binding_count; ++i)
    parts[std::string(to_string(static_cast<Binding>(i))) + "_ns"] =
        whole_nanoseconds(result.breakdown[static_cast<std::size_t>(i)]);
  document["breakdown"] = parts;
  document["replayed_ns"] = whole_nanoseconds(result.replayed);
  document["bubble_fraction"] = number_or_null(result.bubble);  // the name before "gpu_idle_fraction"
  document["gpu_idle_fraction"] = number_or_null(result.bubble);
  document["tokens_per_second"] = result.tokens_per_second > 0 ? Json(result.tokens_per_second) : Json();
  document["mfu"] = result.mfu > 0 ? Json(result.mfu) : Json();
  document["mfu_basis"] = result.mfu_basis;
  if (result.evaluation)
    document["evaluation"] = {{"time_ns", whole_nanoseconds(result.evaluation->time)},
                              {"every_steps", result.evaluation->every_steps},
                              {"batches", result.evaluation->batches},
                              {"simulated_batches", result.evaluation->simulated_batches},
                              {"tokens", result.evaluation->tokens},
                              {"time_share", result.evaluation->time_share},
                              {"tokens_per_second", result.evaluation->tokens_per_second},
                              {"peak_bytes", result.evaluation->peak.count()}};
  if (!result.phases.empty()) document["phases"] = phases_json(result);
  if (!result.between_steps.empty()) document["between_steps"] = between_steps_json(result);
  if (result.power)
    document["power"] = {{"clock_share", result.power->clock_share},
                         {"gpu_watts", result.power->watts},
                         {"gpu_limit_watts", result.power->limit_watts},
                         {"gpu_joules_per_step", result.power->joules}};
  document["steps"] = steps_json(result);
  document["fidelity"] = fidelity_json(result);
  document["unexplained_ns"] = whole_nanoseconds(result.unexplained());
  document["kept_idle"] = kept_idle_json(result);
  document["memory"] = memory_json(result.memory);
  if (result.host_memory.known)
    document["host_memory"] = {{"peak_bytes", result.host_memory.peak.count()},
                               {"capacity_bytes", result.host_memory.capacity.count()},
                               {"fits", fits_json(result.host_memory.verdict())},
                               {"verdict", to_string(result.host_memory.verdict())}};
  Json ranks = Json::array();
  for (const RankResult& rank : result.ranks)
    ranks.push_back({{"name", rank.name},
                     {"bubble_fraction", number_or_null(rank.bubble)},
                     {"gpu_idle_fraction", number_or_null(rank.bubble)},
                     {"compute_busy_ns", whole_nanoseconds(rank.compute_busy)},
                     {"peak_allocated_bytes", rank.peak_allocated.count()},
                     {"peak_reserved_bytes", rank.peak_reserved.count()},
                     {"fits", fits_json(rank.verdict)},
                     {"verdict", to_string(rank.verdict)}});
  document["ranks"] = ranks;
  Json links = Json::array();
  for (const LinkResult& link : result.links)
    links.push_back({{"name", link.name}, {"bytes", link.bytes.count()}, {"busy_fraction", link.busy_fraction}});
  document["links"] = links;
  document["offload"] = offload_json(result);
  document["drives"] = drives_json(result);
  document["ssd"] = ssd_json(result);
  Json provenance = Json::array();
  for (const InputProvenance& input : result.provenance)
    provenance.push_back(
        {{"name", input.name}, {"value", input.value}, {"provenance", input.provenance}, {"source", input.source}});
  document["provenance"] = provenance;
  document["warnings"] = result.warnings;
  return document;
}

std::string result_details(const Result& result) {
  std::string text = fmt::format("  fingerprint    {:016x}\n  step time      {}\n  80 % range     {}\n",
                                 result.fingerprint, milliseconds_text(result.step_time), step_range_words(result));
  if (result.fidelity)
    text += fmt::format(
        "  replayed       {} of it rests on idle time nothing explains\n",
        percent_text(result.replayed > Picos(0) ? to_seconds(result.unexplained()) / to_seconds(result.replayed)
                                                : 0.0));
  if (result.evaluation)
    text += fmt::format("  evaluation     holds {} beside the model\n", gib_text(result.evaluation->peak));
  if (result.power) text += fmt::format("  GPU energy     {:.0f} J a step\n", result.power->joules);
  if (result.memory.known) {
    text += reserve_text(result.reserve);
    if (result.memory.driver_time > Picos(0))
      text += fmt::format("  in the driver  {} a step for memory\n", for_people(result.memory.driver_time));
    if (!result.memory.explanation.empty()) text += fmt::format("  memory         {}\n", result.memory.explanation);
    text += owners_text("at the peak", result.memory.owners, 12);
    text += owners_text("by phase", result.memory.owners_by_phase, 8);
    text += owners_text("by layer", result.memory.owners_by_layer, 4);
  }
  if (!result.ranks.empty()) text += ranks_text(result);
  text += "\n  critical path\n";
  for (int i = 0; i < binding_count; ++i) {
    const auto binding = static_cast<Binding>(i);
    if (result.breakdown[static_cast<std::size_t>(i)] > Picos(0))
      text += fmt::format("    {:>7}  {:>14}  {}\n", percent_text(binding_share(result, binding)),
                          milliseconds_text(result.breakdown[static_cast<std::size_t>(i)]), describe(binding));
  }
  text += kept_idle_text(result);
  for (std::size_t s = 0; s < result.steps.size(); ++s) {
    const StepResult& step = result.steps[s];
    const std::optional<Picos> period = period_of(result, s);
    text += fmt::format("\n  {}: {}{} from its first launch to its last work", step.name,
                        period ? milliseconds_text(*period) + " behind the one before, " : "",
                        milliseconds_text(step.span()));
    // The CPU's update, or weights that are fetched, hold the next step back behind this one's last kernel.
    if (result.steps.size() == 1 && result.step_time > step.span())
      text += fmt::format(", {} from its beginning to the next one's", milliseconds_text(result.step_time));
    if (step.recorded_span != unknown_time)
      text += fmt::format(", recorded {} ({:+.3f} %)", milliseconds_text(step.recorded_span),
                          (to_seconds(step.span()) / to_seconds(step.recorded_span) - 1) * 100);
  }
  return text + "\n";
}

void warn_of_verdict(const Context& context, const Result& result) {
  const Verdict found = result.verdict();
  if (found == Verdict::tight || found == Verdict::unknown) warn(context, verdict_sentence(result));
}

void put_verdict(Json& document, const Result& result) {
  put_verdict(document, result.verdict());
  if (result.verdict() == Verdict::unknown) document["why_unknown"] = result.why_unknown();
  if (!result.hangs_on.empty()) document["hangs_on"] = result.hangs_on;
}

ExitCode exit_code_of(const Result& result) {
  if (result.answer() == Verdict::does_not_fit) return exit_answer_is_no;
  return result.is_in_doubt() ? exit_not_known : exit_done;
}

// Of a verdict in CSV.
static std::string true_or_false(Verdict verdict) {
  return verdict == Verdict::unknown ? "unknown" : verdict <= Verdict::tight ? "true" : "false";
}

// Empty where it fits, or nobody knows how much is missing.
static std::string short_of_cell(const Result& result) {
  return result.memory.short_of > Bytes(0) ? std::to_string(result.memory.short_of.count()) : "";
}

Table result_row(const Result& result) {
  Table table({"title", "fits", "step_time_ns", "peak_allocated_bytes", "peak_reserved_bytes", "binding_resource",
               "tokens_per_second", "mfu", "fingerprint", "verdict", "reserve_bytes", "short_of_bytes", "replay_error",
               "unexplained_ns"});
  table.add({result.title, true_or_false(result.verdict()), std::to_string(whole_nanoseconds(result.step_time)),
             result.memory.known ? std::to_string(result.memory.peak_allocated.count()) : "",
             result.memory.known ? std::to_string(result.memory.peak_reserved.count()) : "",
             std::string(to_string(result.binding)), fmt::format("{:.3f}", result.tokens_per_second),
             fmt::format("{:.6f}", result.mfu), fmt::format("{:016x}", result.fingerprint),
             std::string(to_string(result.verdict())), std::to_string(result.reserve.bytes().count()),
             short_of_cell(result), result.fidelity ? fmt::format("{:.6f}", result.fidelity->error) : "",
             std::to_string(whole_nanoseconds(result.unexplained()))});
  return table;
}

Table comparison(const Result& a, const Result& b, bool whole) {
  constexpr double nothing = 0.05;  // of a per cent
  Table table({"figure", "A", "B", "unit", "change"});
  for (const ComparedFigure& figure : compared_figures(a, b)) {
    const bool is_nothing = figure.unit == "%" && figure.a.value_or(1) < nothing && figure.b.value_or(1) < nothing;
    if (is_nothing && !whole) continue;
    table.add(
        {figure.name, ComparedFigure::text(figure.a), ComparedFigure::text(figure.b), figure.unit, figure.change()});
  }
  return table;
}

Json comparison_json(const Result& a, const Result& b) {
  Json document = json_document("spillway-comparison");
  document["a"] = result_json(a);
  document["b"] = result_json(b);
  document["step_time_ratio"] = to_seconds(b.step_time) / to_seconds(a.step_time);
  document["peak_reserved_difference_bytes"] =
      a.memory.known && b.memory.known ? Json((b.memory.peak_reserved - a.memory.peak_reserved).count()) : Json();
  Json warnings = Json::array();
  document["warnings"] = warnings;
  return document;
}

}  // namespace spillway::cli
