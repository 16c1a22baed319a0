#include "validation/campaign/campaign_results.h"

#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/field_reader.h"
#include "base/input_error.h"
#include "base/json_error.h"
#include "base/read_file.h"

namespace spillway::validation {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t largest_manifest = 256U << 20U;
constexpr const char* another_remedy =
    "bring back the whole folder that the campaign wrote to (--out), or name one that is whole";

struct LeftOut {
  std::string name;
  Bytes bytes;
};

void describe(CampaignStep& step, FieldVisitor& visitor) {
  fields::text(visitor, {.key = "name", .required = true}, step.name);
  fields::text(visitor, {.key = "phase", .required = true}, step.phase);
  fields::word(visitor, {.key = "status", .required = true}, step.status, step_status_words());
  fields::number(visitor, {.key = "seconds"}, step.seconds);
  fields::text(visitor, {.key = "reason"}, step.reason);
  fields::flag(visitor, {.key = "earlier"}, step.from_earlier);
}

void describe(CampaignComparison& row, FieldVisitor& visitor) {
  fields::text(visitor, {.key = "case", .required = true}, row.case_name);
  fields::text(visitor, {.key = "metric", .required = true}, row.metric);
  fields::text(visitor, {.key = "unit", .required = true}, row.unit);
  fields::number(visitor, {.key = "measured", .above_min = true}, row.measured);
  fields::number(visitor, {.key = "blind"}, row.blind);
  fields::text(visitor, {.key = "blind_profile"}, row.blind_profile);
  fields::number(visitor, {.key = "from_trace"}, row.from_trace);
  fields::number(visitor, {.key = "measured_share", .max = 1}, row.measured_share);
  visitor.flag({.key = "verdict_is_right"}, row.verdict_is_right);
}

void describe(AllocatorVerdict& verdict, FieldVisitor& visitor) {
  fields::text(visitor, {.key = "check", .required = true}, verdict.check);
  fields::flag(visitor, {.key = "confirmed", .required = true}, verdict.is_confirmed);
  visitor.texts({.key = "differences"}, verdict.differences);
}

void describe(CampaignPack& pack, FieldVisitor& visitor) {
  fields::text(visitor, {.key = "name", .required = true}, pack.name);
  fields::bytes(visitor, {.key = "bytes", .required = true}, pack.bytes);
  fields::integer(visitor, {.key = "crc32", .max = 4294967295.0, .required = true}, pack.crc32);
}

void describe(CampaignResults& results, FieldVisitor& visitor) {
  visitor.head({.schema = "spillway-campaign", .noun = "a GPU campaign's results"});
  fields::text(visitor, {.key = "spillway"}, results.program);
  fields::map(visitor, {.key = "machine", .even_empty = true}, results.machine,
              [&](std::string& value) { fields::text(visitor, {.key = ""}, value); });
  fields::flag(visitor, {.key = "finished", .required = true}, results.is_finished);
  const auto described = [&visitor](auto& element) { describe(element, visitor); };
  fields::list(visitor, {.key = "steps", .required = true}, results.steps, described);
  fields::list(visitor, {.key = "comparisons", .required = true}, results.comparisons, described);
  fields::list(visitor, {.key = "allocator"}, results.allocator, described);
  fields::list(visitor, {.key = "packs", .required = true}, results.packs, described);
  std::vector<LeftOut> left_out;
  fields::list(visitor, {.key = "left_out"}, left_out, [&visitor](LeftOut& one) {
    fields::text(visitor, {.key = "name", .required = true}, one.name);
    fields::bytes(visitor, {.key = "bytes", .required = true}, one.bytes);
  });
  for (LeftOut& one : left_out) results.left_out.emplace_back(std::move(one.name), one.bytes);
  std::optional<std::string> kept;  // for the calls that resume it
  visitor.object({.key = "kept"}, kept);
}

// A pack's name is a file's beside the manifest, and nothing else.
void check_pack(const std::string& folder, const CampaignPack& pack) {
  const fs::path path = fs::path(folder) / pack.name;
  if (pack.name.empty() || fs::path(pack.name).filename() != pack.name)
    throw InputError((fs::path(folder) / "campaign.json").string(), "/packs",
                     "'" + pack.name + "' is no file beside it", another_remedy);
  const std::string content = read_file_as_it_is(path.string());
  const std::size_t length = static_cast<std::size_t>(pack.bytes.count());
  if (content.size() < length)
    throw InputError(path.string(), "",
                     "is cut off: " + std::to_string(content.size()) + " of " + std::to_string(length) + " bytes",
                     another_remedy);
  uLong crc = crc32_z(0, nullptr, 0);
  crc = crc32_z(crc, reinterpret_cast<const Bytef*>(content.data()), length);
  if (static_cast<std::int64_t>(crc) != pack.crc32)
    throw InputError(path.string(), "", "is damaged: its CRC-32 is not the one that campaign.json states",
                     another_remedy);
}

}  // namespace

const Words& step_status_words() {
  static const Words words = {{"done", "came to its end"},
                              {"failed", "ended with an error"},
                              {"skipped", "the machine lacks what it needs"},
                              {"stopped", "was cut off by its time or an interrupt"},
                              {"left", "no time was left to begin it"}};
  return words;
}

CampaignResults read_campaign(const std::string& folder) {
  const std::string file = (fs::path(folder) / "campaign.json").string();
  if (std::error_code error; !fs::exists(file, error))
    throw InputError(file, "", "is not there", "name the folder that validation/gpu_campaign.sh wrote to (--out)");
  CampaignResults results;
  nlohmann::ordered_json document;
  try {
    document = nlohmann::ordered_json::parse(read_file(file, largest_manifest));
  } catch (const nlohmann::json::exception& error) {
    throw json_error(file, error, another_remedy);
  }
  read_fields(document, file, "", [&results](FieldVisitor& visitor) { describe(results, visitor); });
  for (const CampaignPack& pack : results.packs) check_pack(folder, pack);
  return results;
}

std::vector<CampaignErrors> campaign_errors(const CampaignResults& results) {
  std::vector<std::string> metrics;
  for (const CampaignComparison& row : results.comparisons)
    if (std::find(metrics.begin(), metrics.end(), row.metric) == metrics.end()) metrics.push_back(row.metric);
  std::vector<CampaignErrors> all;
  for (const std::string& metric : metrics)
    for (const auto& [column, predicted_of] :
         {std::pair("blind", &CampaignComparison::blind), std::pair("from_trace", &CampaignComparison::from_trace)}) {
      std::vector<double> measured, predicted;
      for (const CampaignComparison& row : results.comparisons)
        if (row.metric == metric && row.measured && row.*predicted_of) {
          measured.push_back(*row.measured);
          predicted.push_back(*(row.*predicted_of));
        }
      if (!measured.empty()) all.push_back({metric, column, error_statistics(measured, predicted)});
    }
  return all;
}

TrainerCaveats trainer_caveats(const CampaignResults& results) {
  TrainerCaveats found;
  bool is_first = true;
  for (const CampaignComparison& row : results.comparisons) {
    if (row.measured_share) {
      found.least_measured = is_first ? *row.measured_share : std::min(found.least_measured, *row.measured_share);
      found.most_measured = std::max(found.most_measured, *row.measured_share);
      is_first = false;
    }
    if (!row.verdict_is_right) continue;
    ++found.verdicts;
    found.right += *row.verdict_is_right ? 1 : 0;
  }
  return found;
}

}  // namespace spillway::validation
