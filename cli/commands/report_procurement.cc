#include "cli/commands/report_procurement.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/options/command_options.h"
#include "cli/options/interrupt.h"
#include "cli/options/setting_options.h"
#include "cli/options/store_option.h"
#include "cli/output/progress.h"
#include "cli/output/report_output.h"
#include "cli/output/result_report.h"
#include "cli/output/table.h"
#include "reports/procurement_report.h"
#include "scenario/scenario_fields.h"
#include "studies/procurement/procurement.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ProcurementCall {
  std::string store;  // of replays
  std::string path;
  std::vector<std::string> settings, outputs;
  ProcurementSection said = unsaid<ProcurementSection>();
};

// Every field of a table's case, by name.
Json case_json(const FormulaTable& table, std::size_t place) {
  Json json = Json::object();
  for (std::size_t f = 0; f < table.fields.size(); ++f)
    json[table.fields[f].name] = number_or_null(table.values[place][f]);
  return json;
}

Json option_json(const ProcurementAnswer& answer, const PricedOption& option, double odds) {
  Json json = {{"name", option.name()},
               {"machine", option.fleet.machine},
               {"gpus", option.fleet.gpus},
               {"technique", option.fleet.technique}};
  if (!option.failure.empty()) {
    json["failure"] = option.failure;
    return json;
  }
  json["in_time"] = option.in_time;
  json["in_budget"] = option.in_budget;
  json["buy_usd"] = number_or_null(option.buy_usd);
  json["rent_usd"] = number_or_null(option.rent_usd);
  json["probability_cheapest"] = odds;
  json["days"] = option.days;
  json["usd_per_billion_tokens"] = option.usd_per_billion;
  json["programme_usd"] = option.programme_usd;
  json["rented"] = option.is_rented();
  json["machine_usd_per_hour_rented"] = Json();
  if (option.price.usd_per_hour) json["machine_usd_per_hour_rented"] = option.price.usd_per_hour->value;
  json["writes_nothing"] = option.writes_nothing;
  json["saves_nothing"] = option.saves_nothing;
  if (option.drive) json["drives"] = {{"model", option.drive->drive.name}, {"per_gpu", option.drive->chosen}};
  json["plans"] = Json::array();
  for (std::size_t r = 0; r < option.runs.size(); ++r) {
    const RunReplay& run = option.runs[r];
    json["plans"].push_back({{"layout", option.fleet.plans[r].candidate.name},
                             {"settings", option.settings_of(r)},
                             {"fits", fits_json(run.result.verdict())},
                             {"verdict", to_string(run.result.verdict())},
                             {"step_time_ns", static_cast<std::int64_t>(run.step_seconds() * 1e9 + 0.5)},
                             {"step_time_range", range_json(run.result.step_time_range)},
                             {"tokens_per_step", static_cast<double>(run.tokens_per_step)},
                             {"mfu", run.result.mfu},
                             {"peak_reserved_bytes", run.result.memory.peak_reserved.count()},
                             {"peak_allocated_bytes", run.result.memory.peak_allocated.count()},
                             {"written_bytes_per_step", static_cast<std::int64_t>(run.written_bytes)},
                             {"binding_resource", to_string(run.result.binding)},
                             {"fingerprint", fmt::format("{:016x}", run.result.fingerprint)}});
  }
  json["figures"] = case_json(answer.book.tables()[answer.priced], option.place);
  return json;
}

Json swings_json(const std::vector<Sensitivity>& swings) {
  Json json = Json::array();
  for (const Sensitivity& one : swings)
    json.push_back({{"input", one.input},
                    {"unit", one.unit},
                    {"low", one.low},
                    {"high", one.high},
                    {"usd_per_billion_tokens", {one.low_usd, one.high_usd}},
                    {"drive_life_years", {one.low_years, one.high_years}},
                    {"cheapest", {one.low_cheapest, one.high_cheapest}}});
  return json;
}

Json today_json(const TodaysFleet& today) {
  Json json = {{"machine", today.machine}, {"gpus", today.gpus}, {"technique", today.technique}};
  json["failure"] = today.failure.empty() ? Json() : Json(today.failure);
  const auto if_known = [&](double value) { return today.failure.empty() ? Json(value) : Json(); };
  json["days"] = if_known(today.days);
  json["kilowatts"] = if_known(today.kilowatts);
  json["kwh_per_billion_tokens"] = if_known(today.kwh_per_billion);
  json["plans"] = Json::array();
  for (std::size_t r = 0; r < today.runs.size(); ++r)
    json["plans"].push_back({{"layout", today.layouts[r]},
                             {"step_time_ns", std::llround(today.runs[r].step_seconds() * 1e9)},
                             {"step_time_range", range_json(today.runs[r].result.step_time_range)},
                             {"fingerprint", fmt::format("{:016x}", today.runs[r].result.fingerprint)}});
  return json;
}

Json answer_json(const ProcurementAnswer& answer, const ReportDocument& document) {
  Json json = json_document("spillway.procurement");
  json["title"] = document.title;
  json["answer"] = is_yes(document.answer);
  json["verdict"] = document.verdict;
  json["chosen"] = answer.chosen ? Json(answer.options[*answer.chosen].name()) : Json();
  if (answer.chosen)
    json["fingerprint"] = fmt::format("{:016x}", answer.options[*answer.chosen].runs.front().result.fingerprint);
  json["today"] = answer.today ? today_json(*answer.today) : Json();
  json["inputs"] = case_json(answer.book.tables()[answer.inputs], 0);
  json["options"] = Json::array();
  for (std::size_t o = 0; o < answer.options.size(); ++o)
    json["options"].push_back(option_json(answer, answer.options[o], answer.odds[o]));
  json["prices"] = Json::array();
  for (const UsedPrice& used : answer.prices)
    json["prices"].push_back({{"name", used.name},
                              {"unit", used.unit},
                              {"value", used.price.value},
                              {"low", used.price.low},
                              {"high", used.price.high},
                              {"kind", price_kind_words()[used.price.kind].name},
                              {"date", used.price.origin.date},
                              {"quantity", used.price.quantity},
                              {"source", used.price.origin.source}});
  json["price_that_decides"] = Json();
  if (answer.deciding_price)
    json["price_that_decides"] = {{"name", answer.prices[*answer.deciding_price].name},
                                  {"probability_cheapest_if_low", answer.odds_if_low},
                                  {"probability_cheapest_if_high", answer.odds_if_high}};
  json["drives"] = Json::array();
  std::size_t able = 0;
  for (const DriveChoice& fit : answer.drives) {
    Json entry = {{"drive", fit.drive.name}, {"answer", fit.cannot.empty()}, {"replayed", !fit.runs.empty()}};
    if (!fit.runs.empty()) {
      const DriveAnswer& hardest = fit.hardest();
      entry["per_gpu"] = fit.chosen;
      entry["required_write_bytes_per_second"] = hardest.required_rate;
      entry["steady_write_bytes_per_second"] = hardest.steady_rate;
      entry["unceasing_write_bytes_per_second"] = hardest.stages.back().rate;
      entry["peak_reserved_bytes"] = largest_peak(fit.runs).count();
      entry["figures"] = case_json(answer.book.tables()[answer.drive_table], answer.drive_places[able++]);
    } else if (fit.cannot.empty()) {
      entry["per_gpu"] = fit.chosen;
    } else {
      entry["why_not"] = fit.cannot;
    }
    json["drives"].push_back(std::move(entry));
  }
  json["peak_without_drives_bytes"] =
      answer.without_drives.empty() ? Json() : Json(largest_peak(answer.without_drives).count());
  json["sensitivity"] = swings_json(answer.sensitivity);
  if (!answer.drive_sensitivity.empty()) json["drive_sensitivity"] = swings_json(answer.drive_sensitivity);
  json["warnings"] = answer.warnings;
  return json;
}

void run_procurement(Context& context, const ProcurementCall& call) {
  check_report_paths(call.outputs);
  ProcurementRequest request = read_procurement_request(call.path, call.settings, call.said);
  const Progress progress(context);
  StoreInUse store(context, call.store);
  request.store = store.get();
  std::string last;
  const ProcurementAnswer answer =
      answer_procurement(request, [&](const std::string& what, std::size_t done, std::size_t all) {
        if (!what.empty()) last = fmt::format("{}: {} of {}", what, done, all);
        return progress.show(last) && !is_interrupted();
      });
  const ReportDocument document = procurement_report(request, answer);
  for (const std::string& output : call.outputs) write_report(document, output);
  for (const std::string& warning : answer.warnings) warn(context, warning);
  if (context.json())
    print_json(answer_json(answer, document));
  else
    print_document(context, document);
  if (!is_yes(document.answer)) context.exit_code = exit_answer_is_no;
}

}  // namespace

void add_procurement_report(Command& group, Context& context) {
  const auto call = std::make_shared<ProcurementCall>();
  Command* command = group.add_subcommand(
      "procurement",
      "Machines, drives and cost of a training programme; exit code 1 if nothing trains it by the deadline");
  ProcurementSection& said = call->said;
  command->add_option("FILE", call->path, "a scenario or a sweep; its \"procurement\" says what the options leave open")
      ->required();
  command
      ->add_option("--output", call->outputs,
                   "write the report: .html, .pdf, .xlsx or .csv; may be repeated, of one and the same run")
      ->to_write()
      ->type_name("FILE")
      ->allow_extra_args(false);
  command->add_option("--tokens", said.tokens, "tokens to train: 2e12, 2T")
      ->amount(Dimension::tokens, "")
      ->type_name("N");
  command->add_option("--deadline-days", said.deadline_days, "days there are for it, pauses included")->type_name("N");
  command
      ->add_option("--budget", said.budget_usd,
                   "most that may be spent, in USD: on what is bought, or on the rent of these days")
      ->amount(Dimension::money, "USD")
      ->check(positive_number())
      ->type_name("USD");
  command->add_option("--period-months", said.period_months, "how long the fleet is kept and written off (36)")
      ->type_name("N");
  command->add_option("--utilisation", said.utilisation, "share of the time it trains (0.9)")->type_name("X");
  command->add_option("--machines", said.machines, "system profiles to choose from, separated by commas")
      ->delimiter(',')
      ->type_name("NAME");
  command->add_option("--gpus", said.gpus, "sizes of the fleet to choose from, separated by commas")
      ->delimiter(',')
      ->type_name("N");
  command->add_option("--technique", said.techniques, "as in `spillway capacity --list`, joined by +; may be repeated")
      ->type_name("TECHNIQUE")
      ->allow_extra_args(false);
  command->add_option("--drives", said.drives, "drive profiles to choose from (all server drives of the library)")
      ->delimiter(',')
      ->type_name("MODEL");
  command->add_option("--drives-per-gpu", said.drives_per_gpu, "at most so many (8)")->type_name("N");
  command
      ->add_option("--least-life-years", said.least_life_years,
                   "how long a drive must last by its rating as it stands; any time if not given")
      ->type_name("N");
  command->add_option("--prices", said.prices, "entries that go over those of the bundled price list")
      ->type_name("FILE");
  command->add_option("--prices-date", said.prices_date, "that all prices are brought to (that of the newest)")
      ->type_name("DATE");
  command->add_flag("--used-prices", said.used_prices, "used and discontinued drives may be bought too");
  command->add_option("--shortlist", said.shortlist, "options shown (6)")->type_name("N");
  command->add_option("--used", said.used_percent, "how much of the first drives' rated life is used up, in percent")
      ->type_name("PERCENT");
  command->add_option("--write-amplification", said.write_amplification, "of the workload itself (1)")->type_name("X");
  command
      ->add_word<RetentionRelaxation>("--retention", said.retention, retention_words(),
                                      "credit flash for data that is kept for weeks or a day, as no vendor does")
      ->choices({"rated", "weeks", "day"});
  command->add_word<DriveRoute>("--route", said.route, route_words(), "how bytes get to the drives")
      ->choices({"gpudirect", "bounce"});
  add_setting_options(*command, call->settings);
  add_store_option(*command, call->store);
  command->callback([&context, call] { run_stoppable([&] { run_procurement(context, *call); }); });
}

}  // namespace spillway::cli
