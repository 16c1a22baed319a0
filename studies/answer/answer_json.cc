#include "studies/answer/answer_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/short_text.h"
#include "base/version.h"

namespace spillway::studies {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t longest_name = 200;
constexpr std::int64_t bin_levels = 1 << 16;

struct Character {
  std::uint32_t code = 0xFFFD;
  std::size_t length = 1;  // of its bytes
};

Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
  const std::uint32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 0;
  if (length == 0 || first > 0xF4 || text.size() < length) return {};
  std::uint32_t code = first & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3FU);
  }
  constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < least[length] || (code >= 0xD800 && code < 0xE000) || code > 0x10FFFF) return {};
  return {code, length};
}

bool is_told_by_number(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069) || code == 0x200E || code == 0x200F || code == 0x061C || code == 0x2028 ||
         code == 0x2029 || code == 0xFEFF;
}

std::vector<std::string> characters(std::string_view text) {
  std::vector<std::string> all;
  while (!text.empty()) {
    const Character one = first_character(text);
    if (one.code == '\t' || one.code == '\n')
      all.emplace_back(" ");
    else if (is_told_by_number(one.code))
      all.push_back(fmt::format("\\u{{{:04X}}}", one.code));
    else
      all.push_back(one.code == 0xFFFD ? "\xEF\xBF\xBD" : std::string(text.substr(0, one.length)));
    text.remove_prefix(one.length);
  }
  return all;
}

std::string joined(const std::vector<std::string>& parts, std::size_t from, std::size_t to) {
  std::string text;
  for (std::size_t i = from; i < to; ++i) text += parts[i];
  return text;
}

Json or_null(Bytes bytes) { return bytes < Bytes(0) ? Json() : Json(bytes.count()); }
std::string hex(std::uint64_t digits) { return fmt::format("{:016x}", digits); }

Json texts_json(const std::vector<std::string>& texts) {
  Json list = Json::array();
  for (const std::string& text : texts) list.push_back(visible_text(text));
  return list;
}
Json names_json(const std::vector<std::string>& names) {
  Json list = Json::array();
  for (const std::string& name : names) list.push_back(visible_name(name));
  return list;
}

Json figures_json(const AnswerFigures& figures) {
  Json json = {{"verdict", to_string(figures.answer)},
               {"step_time_ns", figures.step_time > Picos(0) ? Json(whole_nanoseconds(figures.step_time)) : Json()}};
  const FigureRange& range = figures.step_time_range;
  json["step_time_range"] = {{"low", range.known ? Json(range.low) : Json()},
                             {"high", range.known ? Json(range.high) : Json()},
                             {"basis", visible_text(range.basis)}};
  json["tokens_per_second"] = figures.tokens_per_second > 0 ? Json(figures.tokens_per_second) : Json();
  json["mfu"] = figures.mfu > 0 ? Json(figures.mfu) : Json();
  json["peak_allocated_bytes"] = or_null(figures.peak_allocated);
  json["peak_reserved_bytes"] = or_null(figures.peak_reserved);
  json["limit_bytes"] = figures.limit > Bytes(0) ? Json(figures.limit.count()) : Json();
  json["short_of_bytes"] = figures.short_of > Bytes(0) ? Json(figures.short_of.count()) : Json();
  json["host_bytes"] = figures.host ? Json(figures.host->count()) : Json();
  json["usd_per_million_tokens"] = figures.usd_per_million_tokens ? Json(*figures.usd_per_million_tokens) : Json();
  json["life_years"] = figures.life_years ? Json(*figures.life_years) : Json();
  json["fingerprint"] = hex(figures.fingerprint);
  json["shown"] = {{"verdict", visible_text(figures.verdict)},
                   {"step", figures.step},
                   {"tokens", figures.tokens},
                   {"left", figures.left},
                   {"room", visible_text(room_words(figures))},
                   {"mfu", figures.mfu_text},
                   {"binds", figures.binds}};
  return json;
}

std::int64_t nanos(std::int64_t picos) { return whole_nanoseconds(Picos(picos)); }

// Four numbers each: begin, end, micro-batch or -1, Phase; begin and end in units that leave them six digits.
void put_passes(Json& json, const std::vector<Pass>& passes) {
  constexpr std::int64_t most = 1'000'000;
  std::int64_t unit = 1;
  while (!passes.empty() && nanos(passes.back().end) / unit >= most) unit *= 10;
  const bool numbered = std::any_of(passes.begin(), passes.end(), [](const Pass& pass) {
    return pass.micro_batch != no_index16 && pass.micro_batch > 0;
  });
  json["pass_unit_ns"] = unit;
  Json& list = json["passes"] = Json::array();
  for (const Pass& pass : passes) {
    const bool has_number = numbered && pass.micro_batch != no_index16;
    for (const std::int64_t number :
         {nanos(pass.begin) / unit, nanos(pass.end) / unit,
          has_number ? std::int64_t{pass.micro_batch} : std::int64_t{-1}, static_cast<std::int64_t>(pass.phase)})
      list.push_back(number);
  }
}

std::int64_t unit_for(std::int64_t most) {
  std::int64_t unit = 1;
  while (most / unit > bin_levels) unit *= 2;
  return unit;
}

std::int64_t rounded(std::int64_t bytes, std::int64_t unit) {
  return (std::max<std::int64_t>(0, bytes) + unit / 2) / unit;
}

// So many to one: the fullest of them.
std::vector<std::vector<std::int64_t>> folded_bins(const std::vector<std::vector<std::int64_t>>& bins, std::size_t by) {
  if (by == 1) return bins;
  const auto sum = [](const std::vector<std::int64_t>& bin) {
    std::int64_t all = 0;
    for (const std::int64_t bytes : bin) all += bytes;
    return all;
  };
  std::vector<std::vector<std::int64_t>> folded;
  for (std::size_t i = 0; i < bins.size(); ++i) {
    if (i % by == 0)
      folded.push_back(bins[i]);
    else if (sum(bins[i]) > sum(folded.back()))
      folded.back() = bins[i];
  }
  return folded;
}

Json stage_json(const StageMemory& stage, std::size_t fold, bool with_passes) {
  Json json = {{"name", visible_name(stage.name)},
               {"verdict", to_string(stage.verdict)},
               {"capacity_bytes", stage.capacity > Bytes(0) ? Json(stage.capacity.count()) : Json()},
               {"limit_bytes", stage.limit > Bytes(0) ? Json(stage.limit.count()) : Json()},
               {"peak_reserved_bytes", stage.peak_reserved.count()},
               {"peak_allocated_bytes", stage.peak_allocated.count()},
               {"idle_fraction", stage.idle ? Json(*stage.idle) : Json()},
               {"axis", stage.timed ? "ns" : "event"}};
  const auto place = [&](std::int64_t at) { return stage.timed ? nanos(at) : at; };
  json["begin"] = place(stage.begin);
  json["end"] = place(stage.end);
  json["peak_at"] = place(stage.peak_at);
  json["peak_words"] = visible_name(stage.peak_words);
  json["owners"] = names_json(stage.owners);
  json["at_peak_bytes"] = stage.at_peak;
  const std::int64_t unit = unit_for(stage.peak_allocated.count());
  json["bin_unit_bytes"] = unit;
  Json bins = Json::array();
  const auto folded = folded_bins(stage.bins, fold);
  for (std::size_t owner = 0; owner < stage.owners.size(); ++owner) {
    Json& row = bins.emplace_back(Json::array());
    for (const std::vector<std::int64_t>& bin : folded) row.push_back(rounded(bin[owner], unit));
  }
  json["bins"] = std::move(bins);
  json["tensors"] = Json::array();
  for (const HeldTensor& tensor : stage.tensors)
    json["tensors"].push_back({{"name", visible_name(tensor.name)},
                               {"owner", visible_name(tensor.owner)},
                               {"layer", visible_name(tensor.layer)},
                               {"bytes", tensor.bytes.count()},
                               {"blocks", tensor.blocks},
                               {"frames", names_json(tensor.frames)}});
  put_passes(json, with_passes ? stage.passes : std::vector<Pass>());
  return json;
}

Json lanes_json(const StepLanes& lanes) {
  Json json = {{"columns", lanes.columns},
               {"end_ns", whole_nanoseconds(lanes.end)},
               {"colors", lanes.colors},
               {"names", names_json(lanes.names)}};
  json["lanes"] = Json::array();
  for (const StepLane& lane : lanes.lanes)
    json["lanes"].push_back({{"name", visible_name(lane.name)},
                             {"rank", lane.rank},
                             {"kind", lane.kind},
                             {"blocks", lane.blocks},
                             {"runs", lane.runs}});
  return json;
}

Json outline_json(const WayOutline& outline, std::size_t fold) {
  const std::int64_t most =
      outline.allocated.empty() ? 0 : *std::max_element(outline.allocated.begin(), outline.allocated.end());
  const std::int64_t unit = unit_for(most);
  Json json = {{"stage", visible_name(outline.stage)},
               {"begin_ns", nanos(outline.begin)},
               {"end_ns", nanos(outline.end)},
               {"peak_allocated_bytes", most},
               {"bin_unit_bytes", unit}};
  json["bins"] = Json::array();
  for (std::size_t i = 0; i < outline.allocated.size(); i += fold) {
    std::int64_t fullest = 0;
    for (std::size_t k = i; k < std::min(i + fold, outline.allocated.size()); ++k)
      fullest = std::max(fullest, outline.allocated[k]);
    json["bins"].push_back(rounded(fullest, unit));
  }
  put_passes(json, outline.passes);
  return json;
}

Json launch_json(const AnswerLaunch& launch) {
  constexpr const char* states[] = {"runs", "with_code", "no"};
  return {{"framework", launch.framework},
          {"state", states[static_cast<std::size_t>(launch.state)]},
          {"figures", visible_text(launch.figures)},
          {"with_code_figures", visible_text(launch.with_code_figures)},
          {"lines", texts_json(launch.lines)},
          {"code", texts_json(launch.code)},
          {"cannot_say", texts_json(launch.cannot_say)}};
}

Json way_json(const AnswerWay& way, std::size_t fold, bool with_outlines) {
  Json json = {{"number", way.number > 0 ? Json(way.number) : Json()},
               {"name", visible_text(way.name)},
               {"group", way.group},
               {"edits", texts_json(way.edits)}};
  json["changes"] = Json::array();
  for (const AnswerChange& change : way.changes)
    json["changes"].push_back({{"key", visible_text(change.key)},
                               {"from", visible_text(change.from)},
                               {"to", visible_text(change.to)},
                               {"worth", visible_text(change.worth)}});
  json["runs_in"] = way.runs_in;
  json["figures"] = figures_json(way.figures);
  json["sentences"] = texts_json(way.sentences);
  json["launches"] = Json::array();
  for (const AnswerLaunch& launch : way.launches) json["launches"].push_back(launch_json(launch));
  json["folded"] = Json::array();
  for (const AnswerFolded& folded : way.folded)
    json["folded"].push_back({{"name", visible_text(folded.name)},
                              {"reason", folded.reason},
                              {"step", folded.figures.step},
                              {"left", folded.figures.left}});
  json["outlines"] = Json::array();
  if (with_outlines)
    for (const WayOutline& outline : way.outlines) json["outlines"].push_back(outline_json(outline, fold));
  return json;
}

Json shares_json(const std::vector<AnswerShare>& shares) {
  Json list = Json::array();
  for (const AnswerShare& share : shares)
    list.push_back({{"name", visible_name(share.name)}, {"fraction", share.fraction}});
  return list;
}

Json helps_json(const std::vector<AnswerHelp>& helps) {
  Json list = Json::array();
  for (const AnswerHelp& help : helps)
    list.push_back({{"name", visible_name(help.name)},
                    {"fraction", help.fraction},
                    {"step_time_ns", help.step_time > Picos(0) ? Json(whole_nanoseconds(help.step_time)) : Json()},
                    {"of_path", help.of_path ? Json(*help.of_path) : Json()}});
  return list;
}

Json defaults_json(const std::vector<AnswerDefault>& defaults) {
  Json list = Json::array();
  for (const AnswerDefault& one : defaults)
    list.push_back({{"key", one.key}, {"value", one.value}, {"sentence", visible_text(one.sentence)}});
  return list;
}

Json work_json(const std::vector<AnswerWork>& work) {
  Json list = Json::array();
  for (const AnswerWork& one : work) {
    Json rows = Json::array();
    for (const DiagnosisRow& row : one.rows)
      rows.push_back({{"name", visible_name(row.name)},
                      {"count", row.count},
                      {"time_ns", whole_nanoseconds(row.time)},
                      {"gpu_idle_ns", whole_nanoseconds(row.gpu_idle)}});
    list.push_back({{"kind", one.kind}, {"rows", std::move(rows)}});
  }
  return list;
}

struct Cut {
  std::size_t fold = 1;
  bool with_lanes = true, with_outlines = true, with_passes = true;
};

Json document_json(const Answer& answer, const Cut& cut) {
  Json json = {{"schema", "spillway-answer"}, {"version", 1}};
  json["title"] = visible_name(answer.title);
  json["machine"] = visible_name(answer.machine);
  json["verdict"] = {{"word", answer.verdict},
                     {"fits", fits_json(answer.answer)},
                     {"heading", visible_text(answer.heading)},
                     {"best", visible_text(answer.best)},
                     {"as_given", visible_text(answer.as_given)},
                     {"advice", visible_text(answer.advice)},
                     {"hangs_on", texts_json(answer.hangs_on)}};
  json["when"] = visible_text(answer.when);
  json["why"] = {{"kind", answer.why.kind}, {"sentence", visible_text(answer.why.sentence)}, {"owners", Json::array()}};
  for (const PeakOwner& owner : answer.why.owners)
    json["why"]["owners"].push_back({{"owner", visible_name(owner.name)}, {"bytes", owner.bytes.count()}});
  json["head"] = Json::array();
  for (const HeadFigure& one : head_figures(answer))
    json["head"].push_back({{"name", one.name}, {"value", one.value}, {"detail", one.detail}});
  json["now"] = answer.now ? figures_json(*answer.now) : Json();
  json["facts"] = Json::array();
  for (const AnswerFact& fact : answer.facts)
    json["facts"].push_back({{"label", fact.label}, {"words", visible_text(fact.words)}});
  json["phases"] = Json::array();
  for (const AnswerPhase& phase : answer.phases)
    json["phases"].push_back(
        {{"name", phase.name}, {"words", visible_text(phase.words)}, {"verdict", to_string(phase.answer)}});
  json["gpus"] = Json::array();
  for (const RankResult& gpu : answer.gpus)
    json["gpus"].push_back({{"name", visible_name(gpu.name)},
                            {"verdict", to_string(gpu.verdict)},
                            {"peak_reserved_bytes", gpu.peak_reserved.count()},
                            {"idle_fraction", gpu.bubble ? Json(*gpu.bubble) : Json()}});
  json["ways_heading"] = answer.ways_heading;
  json["ways"] = Json::array();
  for (const AnswerWay& way : answer.ways) json["ways"].push_back(way_json(way, cut.fold, cut.with_outlines));
  json["search"] = answer.is_search ? Json{{"state", answer.search_state}, {"sentence", answer.search}} : Json();
  json["binds"] = {{"sentence", visible_text(answer.binds)}, {"shares", shares_json(answer.shares)}};
  json["helps"] = helps_json(answer.helps);
  json["no_help"] = texts_json(answer.no_help);
  json["work"] = work_json(answer.work);
  json["held"] = answer.held;
  json["drawn"] = visible_text(answer.drawn);
  json["stages"] = Json::array();
  for (const StageMemory& stage : answer.stages) json["stages"].push_back(stage_json(stage, cut.fold, cut.with_passes));
  json["timeline"] = lanes_json(cut.with_lanes ? answer.lanes : StepLanes());
  Json inputs = Json::array();
  for (const InputProvenance& input : answer.inputs)
    inputs.push_back({{"name", visible_name(input.name)},
                      {"value", visible_name(input.value)},
                      {"provenance", input.provenance},
                      {"source", visible_text(input.source)}});
  std::vector<std::string> warnings = answer.warnings;
  if (cut.fold > 1) warnings.push_back(fmt::format("memory over time has {} times coarser bins", cut.fold));
  if (!cut.with_lanes) warnings.emplace_back("what runs when is left out: it would make the document too large");
  if (!cut.with_outlines)
    warnings.emplace_back("the set-ups' memory is left out: it would make the document too large");
  if (!cut.with_passes)
    warnings.emplace_back("the stages' passes are left out: they would make the document too large");
  json["rests_on"] = {{"inputs", std::move(inputs)},
                      {"times", visible_text(answer.times)},
                      {"assumed", texts_json(answer.assumed)},
                      {"defaulted", defaults_json(answer.defaults)},
                      {"warnings", texts_json(warnings)}};
  json["reproduce"] = {{"command", visible_text(answer.command)},
                       {"version", program_version()},
                       {"commit", program_commit()},
                       {"fingerprint", hex(answer.fingerprint)}};
  return json;
}

}  // namespace

std::string visible_text(std::string_view text) {
  const std::vector<std::string> all = characters(text);
  return joined(all, 0, all.size());
}

std::string visible_name(std::string_view name) {
  const std::vector<std::string> all = characters(name);
  if (all.size() <= longest_name) return joined(all, 0, all.size());
  return joined(all, 0, longest_name / 2) + "…" + joined(all, all.size() - longest_name / 2 + 1, all.size());
}

Json answer_json(const Answer& answer, std::size_t most_bytes) {
  constexpr Cut cuts[] = {{}, {2}, {4}, {4, false}, {4, false, false}, {16, false, false, false}};
  Json json;
  for (const Cut& cut : cuts) {
    json = document_json(answer, cut);
    if (json.dump().size() <= most_bytes) break;
  }
  return json;
}

}  // namespace spillway::studies
