#include "cli/commands/prices_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/number_text.h"
#include "cli/options/command_options.h"
#include "cli/output/table.h"
#include "hwprofiles/price_list.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

struct PricesCall {
  std::string file, date;
  bool all = false;
};

constexpr double old_after_years = 1;

// Why a price is no price to sign for; empty: it is one.
std::string fault_of(const Price& price, double age) {
  std::string fault;
  if (price.kind == PriceKind::assumed) fault = "assumed";
  if (age > old_after_years) fault += (fault.empty() ? "" : ", ") + std::string("old");
  return fault;
}

void check_prices(Context& context, const PricesCall& call) {
  const PriceList list = PriceList::load(call.file, {}, call.date);
  const double at = years_of(list.date);
  Json document = json_document("spillway.prices_check");
  document["date"] = list.date;
  document["items"] = Json::array();
  document["warnings"] = Json::array();
  Table table({"price", "value", "low", "high", "of", "years old", "kind", "fault", "source"});
  std::size_t faults = 0, all = 0;
  for (const PriceList::Named& named : list.all()) {
    const Price on_date = list.on_date(named.price);
    const double age = std::max(0.0, at - years_of(named.price.origin.date));
    const std::string fault = fault_of(named.price, age);
    ++all;
    faults += fault.empty() ? 0 : 1;
    if (fault.empty() && !call.all) continue;
    table.add({named.name, number_text(on_date.value), number_text(on_date.low), number_text(on_date.high),
               named.price.origin.date, fmt::format("{:.1f}", age),
               std::string(price_kind_words()[named.price.kind].name), fault.empty() ? "-" : fault,
               on_date.origin.source});
    document["items"].push_back({{"name", named.name},
                                 {"value", on_date.value},
                                 {"low", on_date.low},
                                 {"high", on_date.high},
                                 {"date", named.price.origin.date},
                                 {"years_old", age},
                                 {"kind", price_kind_words()[named.price.kind].name},
                                 {"quantity", named.price.quantity},
                                 {"is_old", age > old_after_years},
                                 {"is_assumed", named.price.kind == PriceKind::assumed},
                                 {"source", on_date.origin.source}});
  }
  if (context.json()) {
    print_json(document);
  } else {
    if (!table.empty() || context.rows_only()) print(context, table);
    if (!context.rows_only())
      print(fmt::format("{}{} of {} prices are assumed, or older than a year on {}\n", table.empty() ? "" : "\n",
                        faults, all, list.date));
  }
  if (faults > 0) context.exit_code = exit_answer_is_no;
}

}  // namespace

void add_prices_commands(Command& app, Context& context) {
  Command* group = app.add_subcommand("prices", "The price list: what of it is old or assumed");
  group->require_subcommand();
  const auto call = std::make_shared<PricesCall>();
  Command* command =
      group->add_subcommand("check", "Prices that are assumed or older than a year; exit code 1 if there is one");
  command->add_option("FILE", call->file, "entries that go over those of the bundled price list");
  command->add_option("--date", call->date, "that all prices are brought to (that of the newest)")->type_name("DATE");
  command->add_flag("--all", call->all, "the others too");
  command->callback([&context, call] { check_prices(context, *call); });
}

}  // namespace spillway::cli
