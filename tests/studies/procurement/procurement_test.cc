#include "studies/procurement/procurement.h"
#include "reports/procurement_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/input_error.h"
#include "hwprofiles/profile_library.h"
#include "scenario/machine_power.h"
#include "scenario/relaxed_hardware.h"
#include "studies/offload/storage_links.h"
#include "studies/procurement/fleet_cost.h"

namespace spillway::reports {
namespace {

using testing::HasSubstr;

FormulaInput number(double value) { return {value, {}, 1}; }

// Fields are worked out from those above them, cases apart, and told to a spreadsheet as the same expression.
TEST(FormulaTable, WorksOutAndTranslates) {
  FormulaWorkbook book;
  FormulaTable first{"In", "inputs", {{"a", "A", "", ""}, {"b", "B", "", ""}}, {{"x", {}, {}}, {"y", {}, {}}}, {}};
  first.cases[0].given = {{"a", number(7)}, {"b", number(2)}};
  first.cases[1].given = {{"a", number(9)}, {"b", number(4)}};
  const std::size_t in = book.add(first);
  FormulaTable second{"Out",
                      "results",
                      {{"sum", "S", "", ""}, {"per", "P", "", "ceil(sum / 3) + max(sum, 2) * min(1, 4)"}},
                      {{"z", {}, {}}},
                      {}};
  second.cases[0].given["sum"] = {0, {{in, 0, "a"}, {in, 1, "b"}}, 0.5};  // (7 + 4) / 2
  const std::size_t out = book.add(second);
  EXPECT_DOUBLE_EQ(book.value(out, 0, "sum"), 5.5);
  EXPECT_DOUBLE_EQ(book.value(out, 0, "per"), 2 + 5.5);
  EXPECT_EQ(cell_formula(book, in, 0, 0), "");
  EXPECT_EQ(cell_formula(book, out, 0, 0), "=('In'!C4+'In'!D5)*0.5");
  EXPECT_EQ(cell_formula(book, out, 0, 1), "=ROUNDUP(C4/3,0)+MAX(C4,2)*MIN(1,4)");
  EXPECT_EQ(cell_address(first, 26, 0, false), "AC4");
  FormulaTable bad{"Bad", "", {{"c", "", "", "nobody + 1"}}, {{"z", {}, {}}}, {}};
  EXPECT_THROW(book.add(bad), InputError);
}

class PriceFile : public testing::Test {
 protected:
  PriceFile()
      : folder_(std::filesystem::temp_directory_path() / ("spillway_price_test_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~PriceFile() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& rest) {
    const std::string path = (folder_ / "prices.json").string();
    std::ofstream(path) << R"({"schema": "spillway-prices", "version": 1)" << rest << "}";
    return path;
  }
  std::string complaint(const std::string& rest) {
    try {
      PriceList::load(write(rest));
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }
  std::filesystem::path folder_;
};

// Every price tells its day and who says so; machines and drives named are those of the library.
TEST_F(PriceFile, BundledOnesAreSourcedAndKnown) {
  const PriceList prices = PriceList::bundled();
  const ProfileLibrary& library = ProfileLibrary::shared();
  const auto sourced = [](const Sourced<double>& leaf) {
    return !leaf.origin.source.empty() && !leaf.origin.date.empty();
  };
  EXPECT_GE(prices.machines.size(), 15U);
  for (const auto& [name, price] : prices.machines) {
    EXPECT_NO_THROW(static_cast<void>(library.load_system(name))) << name;
    EXPECT_TRUE(price.price_usd || price.usd_per_hour) << name;
    if (price.price_usd) {
      EXPECT_TRUE(sourced(*price.price_usd)) << name;
    }
  }
  for (const auto& [name, price] : prices.drives_usd) {
    EXPECT_NO_THROW(static_cast<void>(library.load_nvme(name))) << name;
    EXPECT_TRUE(sourced(price.usd)) << name;
  }
  ASSERT_TRUE(prices.electricity_usd_per_kwh && prices.power_overhead && prices.network_usd_per_gpu);
}

// A file of one's own goes over the bundled list entry by entry; a drive that nobody names is priced by its capacity.
TEST_F(PriceFile, GoesOverTheBundledOne) {
  const std::string leaf = R"("unit": "USD", "provenance": "measured", "source": "an offer", "date": "2026-03")";
  const PriceList prices = PriceList::load(
      write(R"(, "machines": {"dgx-h100": {"price": {"value": 1000, )" + leaf +
            R"(}}}, "drives_per_tb": {"enterprise": {"value": 100, "unit": "USD/TB", "provenance": "assumed", )"
            R"("source": "s", "date": "2026"}})"));
  EXPECT_EQ(prices.machines.at("dgx-h100").price_usd->value, 1000);
  EXPECT_EQ(prices.machines.at("dgx-h100").price_usd->origin.source, "an offer");
  EXPECT_TRUE(prices.machines.at("dgx-a100").price_usd);
  const NvmeProfile drive = ProfileLibrary::shared().load_nvme("micron-9550-max-12.8tb");
  EXPECT_DOUBLE_EQ(prices.drive_usd(drive)->value, 1280);
  EXPECT_THAT(prices.drive_usd(drive)->origin.source, HasSubstr("by capacity"));
}

// A price per TB of TLC is none of 3D XPoint's or of SLC's; used and discontinued drives aren't bought unless asked
// for, and then the source says so.
TEST_F(PriceFile, PerTbIsOfFlashWithManyBitsACellAndNewOnesOnly) {
  const ProfileLibrary& library = ProfileLibrary::shared();
  PriceList prices = PriceList::bundled();
  EXPECT_FALSE(prices.drive_usd(library.load_nvme("intel-optane-dc-p5800x-0.8tb")));
  EXPECT_FALSE(prices.drive_usd(library.load_nvme("solidigm-d7-p5810-0.8tb")));  // SLC
  EXPECT_FALSE(prices.drive_usd(library.load_nvme("intel-optane-dc-p5800x-1.6tb")));
  const NvmeProfile used = library.load_nvme("samsung-pm1733-7.68tb");
  EXPECT_NEAR(prices.drive_usd(used)->value, 7.68 * prices.drives_usd_per_tb.at("enterprise").value, 1);
  prices.takes_any_condition = true;
  EXPECT_EQ(prices.drive_usd(used)->value, prices.drives_usd.at("samsung-pm1733-7.68tb").usd.value);
  EXPECT_THAT(prices.drive_usd(used)->origin.source, HasSubstr("used: "));
  EXPECT_THAT(prices.drive_usd(library.load_nvme("intel-optane-dc-p5800x-1.6tb"))->origin.source,
              HasSubstr("discontinued: "));
}

// A price under a name that no profile bears is refused, unless the programme names it.
TEST_F(PriceFile, NamesAreProfiles) {
  const std::string leaf = R"("unit": "USD", "provenance": "measured", "source": "an offer", "date": "2026-03")";
  EXPECT_THAT(complaint(R"(, "machines": {"dgx-h1000": {"price": {"value": 1, )" + leaf + "}}}"),
              HasSubstr("did you mean dgx-h100"));
  EXPECT_THAT(complaint(R"(, "drives": {"micron-9550": {"value": 1, )" + leaf + "}}"),
              HasSubstr("/drives/micron-9550"));
  EXPECT_THAT(complaint(R"(, "drives": {"samsung-990-pro-2tb": {"value": 1, "condition": "worn", )" + leaf + "}}"),
              HasSubstr("take one of new, used, discontinued"));
  const std::string path = write(R"(, "machines": {"ours": {"price": {"value": 7, )" + leaf + "}}}");
  EXPECT_EQ(PriceList::load(path, std::vector<std::string>{"ours"}).machines.at("ours").price_usd->value, 7);
}

TEST_F(PriceFile, MistakesAreNamed) {
  const std::string rest = R"("provenance": "assumed", "source": "s", "date": "2026"})";
  EXPECT_THAT(complaint(R"(, "electricty": {})"), HasSubstr("did you mean electricity?"));
  EXPECT_THAT(complaint(R"(, "electricity": {"value": -1, "unit": "USD/kWh", )" + rest),
              HasSubstr("/electricity/value"));
  EXPECT_THAT(complaint(R"(, "electricity": {"value": 1, "unit": "EUR/kWh", )" + rest), HasSubstr("USD/kWh"));
  EXPECT_THAT(complaint(R"(, "electricity": {"value": 1, "unit": "USD/kWh", "provenance": "assumed", "source": "s"})"),
              HasSubstr("/electricity/date"));
  EXPECT_THAT(complaint(R"(, "power_overhead": {"value": 0.5, )" + rest), HasSubstr("from 1"));
}

// By hand: 2 machines of 8 GPUs at 100,000 USD, 4 drives of 1,000 USD per GPU that take 600 TB each and get 50 TB a
// month each: they live 1 year, so 36 months take 3 sets. 1 day of training at half the time is 2 days.
TEST(CostModel, IsWhatItSays) {
  FormulaWorkbook book;
  FormulaTable table{"T", "", cost_fields(), {{"c", {}, {}}}, {}};
  auto& given = table.cases[0].given;
  const double month_days = 365.0 / 12;
  for (const auto& [name, value] :
       std::initializer_list<std::pair<const char*, double>>{{"tokens", 1e9},
                                                             {"period_months", 36},
                                                             {"utilisation", 0.5},
                                                             {"electricity", 0.1},
                                                             {"power_overhead", 1.5},
                                                             {"maintenance", 0},
                                                             {"write_amplification", 1},
                                                             {"retention_credit", 1},
                                                             {"used", 0},
                                                             {"machine_price_factor", 1},
                                                             {"drive_price_factor", 1},
                                                             {"gpus", 16},
                                                             {"gpus_per_machine", 8},
                                                             {"machine_price", 100'000},
                                                             {"network_price", 500},
                                                             {"machine_rent", 0},
                                                             {"pays_power", 1},
                                                             {"machine_watts", 4000},
                                                             {"idle_watts", 1000},
                                                             {"busy_days", 1},
                                                             {"written_tb", 50 * 4 * 2 / month_days},
                                                             {"drives_per_gpu", 4},
                                                             {"drive_price", 1000},
                                                             {"drive_endurance_tb", 600.0001},
                                                             {"drive_watts", 10},
                                                             {"switches_per_machine", 1},
                                                             {"switch_price", 700}})
    given[name] = number(value);
  const std::size_t at = book.add(table);
  const auto value = [&](const char* field) { return book.value(at, 0, field); };
  EXPECT_DOUBLE_EQ(value("days"), 2);
  EXPECT_NEAR(value("tbw_month"), 50, 1e-9);
  EXPECT_NEAR(value("drive_life_years"), 0.5, 1e-6);  // without the pauses of half of the time
  EXPECT_NEAR(value("drive_kept_years"), 1, 1e-6);
  EXPECT_EQ(value("replacements"), 2);
  EXPECT_EQ(value("capital"), 2 * 100'000 + 16 * 500 + 64 * 1000 + 2 * 700);
  EXPECT_DOUBLE_EQ(value("power_kw"), (2 * 4000 + 64 * 10) * 1.5 / 1000);
  const double mean_kw = (2 * (4000 * 0.5 + 1000 * 0.5) + 64 * 10 * 0.5) * 1.5 / 1000;
  EXPECT_DOUBLE_EQ(value("energy_cost"), mean_kw * 3 * 365 * 24 * 0.1);
  EXPECT_EQ(value("replacement_cost"), 64 * 2 * 1000);
  const double total = value("capital") + value("energy_cost") + value("replacement_cost");
  EXPECT_NEAR(value("usd_per_billion"), total / (3 * 365.0 / 2), 1e-6);
  EXPECT_NEAR(value("programme_cost"), value("usd_per_billion"), 1e-9);  // 1e9 tokens
  EXPECT_NEAR(value("usd_per_billion_alone"), total, 1e-6);
}

// The hour of a machine that `fit`, `techniques` and sweeps reckon with is the bill's, for a fleet that never pauses
// and has no network; both are what a bill adds.
TEST(CostModel, AnHourOfAMachineIsTheBillsFormula) {
  const PriceList prices = PriceList::bundled();
  for (const char* const name : {"dgx-h100", "dgx-a100"}) {
    const HardwareProfile hardware = ProfileLibrary::shared().load_system(name);
    const MachinePrice price = prices.machine(hardware);
    ASSERT_TRUE(price.price_usd) << name;
    const auto bill = [&](double utilisation, double network) {
      FormulaWorkbook book;
      FormulaTable table{"T", "", cost_fields(), {{"c", {}, {}}}, {}};
      auto& given = table.cases[0].given;
      for (const FormulaField& field : cost_fields())
        if (field.expression.empty()) given[field.name] = number(0);
      const MachinePower power = machine_power(hardware, prices, 1);
      for (const auto& [field, value] :
           std::initializer_list<std::pair<const char*, double>>{{"tokens", 5e9},
                                                                 {"period_months", write_off_months},
                                                                 {"utilisation", utilisation},
                                                                 {"electricity", prices.electricity_usd_per_kwh->value},
                                                                 {"power_overhead", prices.power_overhead->value},
                                                                 {"maintenance", prices.maintenance_per_year->value},
                                                                 {"write_amplification", 1},
                                                                 {"retention_credit", 1},
                                                                 {"machine_price_factor", 1},
                                                                 {"drive_price_factor", 1},
                                                                 {"gpus", 8},
                                                                 {"gpus_per_machine", 8},
                                                                 {"machine_price", price.price_usd->value},
                                                                 {"network_price", network},
                                                                 {"pays_power", 1},
                                                                 {"machine_watts", power.training_watts},
                                                                 {"idle_watts", power.idle_watts},
                                                                 {"busy_days", 2},
                                                                 {"drive_endurance_tb", 1}})
        given[field] = number(value);
      const std::size_t at = book.add(table);
      return book.value(at, 0, "usd_per_billion");
    };
    const double hours = 2 * 24, per_billion = machine_usd_per_hour(hardware, prices) * hours / 5;
    EXPECT_NEAR(bill(1, 0), per_billion, 1e-9 * per_billion) << name;
    EXPECT_GT(bill(0.9, 0), 1.05 * per_billion) << name;
    EXPECT_GT(bill(1, prices.network_usd_per_gpu->value), 1.01 * per_billion) << name;
  }
}

// Half of a drive's rating used: the first set lives half a year, those after it a whole one: 0.5 + 3 x 1 > 3 years.
// What is left is what sim/devices/endurance.h says, with a credit for retention and without.
TEST(CostModel, OnlyTheFirstSetIsUsed) {
  const NvmeProfile drive = ProfileLibrary::shared().load_nvme("micron-9550-max-6.4tb");
  for (const RetentionRelaxation retention : {RetentionRelaxation::none, RetentionRelaxation::three_weeks}) {
    const EnduranceOptions options{.used_fraction = 0.5, .retention = retention};
    FormulaWorkbook book;
    FormulaTable table{"T", "", cost_fields(), {{"c", {}, {}}}, {}};
    auto& given = table.cases[0].given;
    for (const FormulaField& field : cost_fields())
      if (field.expression.empty()) given[field.name] = number(1);
    const double tb = drive_endurance(drive).bytes / 1e12, credit = retention_factor(retention);
    given["drive_endurance_tb"] = number(tb);
    given["retention_credit"] = number(credit);
    given["used"] = number(0.5);
    given["period_months"] = number(36 * credit);
    given["written_tb"] = number(1.000001 * tb / 365);  // of one day: a rating a year, nearly
    const std::size_t at = book.add(table);
    EXPECT_NEAR(book.value(at, 0, "drive_life_tb"), drive_endurance(drive, options).bytes / 1e12, 1e-6 * tb);
    EXPECT_NEAR(book.value(at, 0, "drive_life_years"), credit - 0.5, 1e-3);
    EXPECT_NEAR(book.value(at, 0, "new_life_years"), credit, 1e-3);
    EXPECT_EQ(book.value(at, 0, "replacements"), 3) << credit;
  }
}

class ProcurementFile : public PriceFile {
 protected:
  std::string scenario(const std::string& procurement, const std::string& more = "") {
    const std::string path = (folder_ / "programme.json").string();
    std::ofstream(path) << R"({"schema": "spillway-scenario", "version": 1, "title": "small", "model": {"name": )"
                        << R"("gpt2-small", "sequence": 512, "global_batch": 64}, "hardware": {"profile": "dgx-a100"})"
                        << more << R"(, "procurement": {"tensor_parallel": [1, 2], "pipeline_parallel": [1], )"
                        << R"("micro_batch": [4, 8], "replays": 6, )" << procurement << "}}";
    return path;
  }
  static ProcurementAnswer answer(const std::string& path,
                                  const ProcurementSection& flags = unsaid<ProcurementSection>()) {
    return answer_procurement(read_procurement_request(path, {}, flags));
  }
  static std::string complaint_of(const std::string& path) {
    try {
      answer(path);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }
};

// Days are steps x step time over utilisation; the chosen option is the cheapest of those in time.
TEST_F(ProcurementFile, ChoosesTheCheapestInTime) {
  const std::string path = scenario(
      R"("tokens": 1e10, "gpus": [8, 16], "techniques": ["keep", "full"], "utilisation": 0.8, "deadline_days": 1000)");
  const ProcurementAnswer free = answer(path);
  ASSERT_TRUE(free.chosen);
  ASSERT_EQ(free.options.size(), 4U);
  const PricedOption& chosen = free.options[*free.chosen];
  const RunReplay& run = chosen.runs.front();
  EXPECT_EQ(run.tokens_per_step, 64 * 512);
  EXPECT_DOUBLE_EQ(chosen.days,
                   std::ceil(1e10 / static_cast<double>(run.tokens_per_step)) * run.step_seconds() / 86400 / 0.8);
  for (const PricedOption& option : free.options) EXPECT_GE(option.usd_per_billion, chosen.usd_per_billion);
  // Just below what the cheapest one takes: the larger fleet, which is dearer.
  auto flags = unsaid<ProcurementSection>();
  flags.deadline_days = chosen.days * 0.99;
  const ProcurementAnswer tight = answer(path, flags);
  ASSERT_TRUE(tight.chosen);
  EXPECT_LE(tight.options[*tight.chosen].days, *flags.deadline_days);
  EXPECT_GT(tight.options[*tight.chosen].usd_per_billion, chosen.usd_per_billion);
  flags.deadline_days = chosen.days / 1000;
  const ProcurementRequest late = read_procurement_request(path, {}, flags);
  const ProcurementAnswer none = answer_procurement(late);
  EXPECT_FALSE(none.chosen);
  EXPECT_EQ(procurement_report(late, none).verdict.substr(0, 3), "No:");
}

// A budget is for what is bought: options beyond it aren't chosen, and the report says by how much.
TEST_F(ProcurementFile, KeepsABudget) {
  const std::string path = scenario(R"("tokens": 1e10, "gpus": [8, 16], "techniques": ["keep"], "utilisation": 0.8)");
  const ProcurementAnswer free = answer(path);
  ASSERT_TRUE(free.chosen);
  const double least = std::min(free.options[0].least_usd(), free.options[1].least_usd());
  ASSERT_GT(least, 0);
  for (const PricedOption& option : free.options) EXPECT_TRUE(option.in_budget);
  auto flags = unsaid<ProcurementSection>();
  flags.budget_usd = least * 1.01;
  const ProcurementRequest enough = read_procurement_request(path, {}, flags);
  const ProcurementAnswer some = answer_procurement(enough);
  ASSERT_TRUE(some.chosen);
  EXPECT_DOUBLE_EQ(some.options[*some.chosen].least_usd(), least);
  EXPECT_EQ(std::count_if(some.options.begin(), some.options.end(), [](const auto& one) { return one.in_budget; }), 1);
  EXPECT_THAT(report_csv(procurement_report(enough, some)), HasSubstr("1 of 2 options that train it fit in"));
  flags.budget_usd = least / 2;
  const ProcurementRequest little = read_procurement_request(path, {}, flags);
  const ProcurementAnswer none = answer_procurement(little);
  EXPECT_FALSE(none.chosen);
  EXPECT_THAT(procurement_report(little, none).verdict, HasSubstr("more than the budget of"));
}

// Drives: the number chosen carries the need with its caches full, has the room, and costs least of all numbers; the
// cheapest model is the option's; and its replacements follow from its life.
TEST_F(ProcurementFile, ChoosesDrivesByCost) {
  const std::string path = scenario(R"("tokens": 1e11, "gpus": [8], "techniques": ["ssdtrain"], "drives_per_gpu": 3,
                  "drives": ["micron-9550-max-6.4tb", "samsung-980-pro-1tb", "samsung-pm9a3-3.84tb"])",
                                    R"(, "offload": {"least_elements": 1048576})");
  const ProcurementRequest request = read_procurement_request(path, {});
  const ProcurementAnswer found = answer_procurement(request);
  ASSERT_TRUE(found.with_drives) << found.options.front().failure;
  const PricedOption& option = found.options[*found.with_drives];
  ASSERT_TRUE(option.drive);
  EXPECT_GT(option.runs.front().written_bytes, 0);
  EXPECT_EQ(found.drives.front().drive.name, option.drive->drive.name);
  std::size_t able = 0;
  double before = 0;
  for (const DriveChoice& fit : found.drives) {
    if (fit.chosen == 0) {
      EXPECT_FALSE(fit.cannot.empty());
      continue;
    }
    ASSERT_FALSE(fit.runs.empty()) << fit.drive.name;
    const std::size_t place = found.drive_places[able++];
    const auto value = [&](const char* field) { return found.book.value(found.drive_table, place, field); };
    const RunReplay& run = fit.runs.front();
    EXPECT_GE(fit.hardest().steady_rate, fit.hardest().required_rate * 0.999) << fit.drive.name;
    EXPECT_TRUE(fit.hardest().holds_steady) << fit.drive.name;
    EXPECT_THAT(fit.numbers, testing::Contains(fit.chosen));
    EXPECT_LE(fit.chosen, 3);
    EXPECT_EQ(value("replacements"), std::max(1.0, std::ceil(3 / value("drive_kept_years"))) - 1) << fit.drive.name;
    // Wear is of what the machine with these drives writes.
    const double rate = run.written_bytes / run.step_seconds();
    const double years = years_to_write(drive_endurance(fit.drive).bytes * static_cast<double>(fit.chosen), rate);
    EXPECT_NEAR(value("drive_life_years") / years, 1, 0.001) << fit.drive.name;
    const ReplayedPlan plan = replay_plan_of(option.fleet.plans.front(), &fit.drive, fit.chosen, common_switch_lanes);
    const RunReplay& again = plan.run;
    EXPECT_EQ(again.written_bytes, run.written_bytes) << fit.drive.name;
    EXPECT_NEAR(value("drive_life_years") / planners::shortest_life_years(plan.ran.result), 1, 1e-6) << "as `run` says";
    EXPECT_GT(run.written_bytes, 0);
    EXPECT_GE(value("usd_per_billion"), before);
    before = value("usd_per_billion");
  }
  EXPECT_EQ(able, found.drive_places.size());
  ASSERT_TRUE(found.pcie);
  EXPECT_FALSE(found.pcie->links.empty());
}

std::string shipped(const char* name) {
  const char* root = std::getenv("SPILLWAY_SOURCE_ROOT");
  return std::string(root == nullptr ? "." : root) + "/cli/scenarios/" + name;
}

// What the links of the chosen number of drives carry counts, not those of all drives that a machine takes.
TEST_F(ProcurementFile, LinksAreThoseOfTheNumberOfDrives) {
  auto flags = unsaid<ProcurementSection>();
  flags.machines = {"dgx-h100"};
  flags.gpus = {32};
  flags.techniques = {"checkpoints"};
  flags.drives = {"solidigm-d7-ps1030-6.4tb", "intel-optane-dc-p5800x-0.4tb"};
  flags.used_prices = true;
  flags.retention = RetentionRelaxation::one_day;
  flags.write_amplification = 3;
  flags.used_percent = 50;
  const ProcurementRequest request = read_procurement_request(shipped("llama3-8b-procurement.json"), {}, flags);
  const ProcurementAnswer found = answer_procurement(request);
  ASSERT_TRUE(found.with_drives) << found.options.front().failure;
  const PricedOption& option = found.options[*found.with_drives];
  const HardwareProfile machine = ProfileLibrary::shared().load_system("dgx-h100");
  for (std::size_t f = 0; f < found.drives.size(); ++f) {
    const DriveChoice& fit = found.drives[f];
    ASSERT_FALSE(fit.runs.empty()) << fit.drive.name << ": " << fit.cannot;
    const DriveAnswer& hardest = fit.hardest();
    EXPECT_GE(hardest.link_rate, hardest.required_rate) << fit.drive.name;
    EXPECT_GE(hardest.steady_rate, hardest.required_rate) << fit.drive.name;
    EXPECT_TRUE(hardest.holds_steady) << fit.drive.name;
    const HardwareProfile equipped = with_endless_drives(with_drives(machine, fit.drive, fit.chosen, 8));
    const double links = to_bytes_per_second(storage_links(equipped, 8, DriveRoute::gpudirect).write);
    EXPECT_NEAR(hardest.link_rate / links, 1, 0.02) << fit.drive.name;
    // Flash is credited for short retention and wears by the workload's amplification, 3D XPoint neither.
    const RunReplay& run = fit.runs.front();
    const double rate = run.written_bytes / run.step_seconds();
    const double bytes = drive_endurance(fit.drive, request.endurance).bytes * static_cast<double>(fit.chosen);
    EXPECT_NEAR(
        found.book.value(found.drive_table, found.drive_places[f], "drive_life_years") / years_to_write(bytes, rate), 1,
        0.001)
        << fit.drive.name;
  }
  // The report's low end is the rating as it stands, without any credit.
  const ReportDocument report = procurement_report(request, found);
  bool seen = false;
  for (const ReportSection& section : report.sections)
    for (const ReportTable& table : section.tables) {
      if (table.caption != "Life and cost of each set") continue;
      seen = true;
      const auto low = std::find(table.columns.begin(), table.columns.end(), "low") - table.columns.begin();
      const DriveChoice& fit = found.drives.front();
      const RunReplay& run = fit.runs.front();
      const double bytes = drive_endurance(fit.drive, request.endurance).low * static_cast<double>(fit.chosen);
      EXPECT_NEAR(*table.rows[0][static_cast<std::size_t>(low)].number /
                      years_to_write(bytes, run.written_bytes / run.step_seconds()),
                  1, 0.001);
    }
  EXPECT_TRUE(seen);
  // What the drives bring: the peak without them is there to compare with.
  ASSERT_EQ(found.without_drives.size(), 1U);
  EXPECT_GT(found.without_drives[0].result.memory.peak_reserved, option.runs[0].result.memory.peak_reserved);
  // Billed switches are the replayed ones.
  EXPECT_EQ(found.book.value(found.priced, option.place, "switches_per_machine"),
            static_cast<double>(added_switches(option.hardware)));
  EXPECT_THAT(report_html(report), HasSubstr("Warning: "));
  EXPECT_THAT(report_csv(report), HasSubstr("qualifies, up to 4 per GPU"));
}

// Slots beyond a DGX H100's eight hang from switches of 16 lanes up, below the switches the others hang from.
TEST(StorageLinks, MoreDrivesThanSlotsNeedSwitches) {
  const ProfileLibrary& library = ProfileLibrary::shared();
  const HardwareProfile machine = library.load_system("dgx-h100");
  const NvmeProfile drive = library.load_nvme("micron-9550-max-6.4tb");
  EXPECT_EQ(added_switches(with_drives(machine, drive, 1, 8)), 0);
  const HardwareProfile more = with_drives(machine, drive, 3, 8);
  EXPECT_EQ(added_switches(more), 4);  // 16 more drives, 4 beside the drives of each of the machine's switches
  EXPECT_EQ(added_switches(with_drives(more, drive, 1, 8)), 0) << "added ones go again";
  EXPECT_EQ(added_switches(with_drives(machine, drive, 3, 8, 24)), 8);  // two drives of four lanes below each
  bool seen = false;
  for (const LinkShare& link : storage_links(with_endless_drives(more), 8, DriveRoute::gpudirect).links)
    seen = seen || link.name.starts_with("added switch");
  EXPECT_TRUE(seen);
}

// A technique whose plan writes nothing buys no drives and says so; a rented machine can't be given any; drives that
// don't last as long as they must aren't bought.
TEST_F(ProcurementFile, DrivesAreOnlyBoughtToBeWrittenTo) {
  auto flags = unsaid<ProcurementSection>();
  flags.machines = {"dgx-h100"};
  flags.techniques = {"ssdtrain"};
  flags.drives = {"micron-9550-max-6.4tb"};
  flags.drives_per_gpu = 1;
  const std::string path = shipped("gpt2-small-procurement.json");
  const ProcurementAnswer quiet = answer(path, flags);
  ASSERT_TRUE(quiet.chosen);
  EXPECT_TRUE(quiet.options[0].writes_nothing);
  EXPECT_FALSE(quiet.options[0].drive);
  EXPECT_EQ(quiet.options[0].runs[0].written_bytes, 0);
  EXPECT_THAT(quiet.options[0].name(), HasSubstr("writes nothing"));
  const std::string small = scenario(R"("tokens": 1e11, "gpus": [8], "techniques": ["ssdtrain"], "drives_per_gpu": 3,
                  "drives": ["micron-9550-max-6.4tb"])",
                                     R"(, "offload": {"least_elements": 1048576})");
  flags = unsaid<ProcurementSection>();
  flags.machines = {"cloud-8xa100"};
  const ProcurementAnswer rented = answer(small, flags);
  EXPECT_FALSE(rented.chosen);
  EXPECT_THAT(rented.options[0].failure, HasSubstr("rented"));
  flags = unsaid<ProcurementSection>();
  flags.least_life_years = 100;
  const ProcurementAnswer lasting = answer(small, flags);
  EXPECT_FALSE(lasting.chosen);
  EXPECT_THAT(lasting.options[0].failure, HasSubstr("100 years asked for"));
}

// A fleet that is given back before the tokens are trained doesn't train them.
TEST_F(ProcurementFile, TheFleetIsKeptAsLongAsItTrains) {
  const std::string path = scenario(R"("tokens": 1e12, "gpus": [8], "techniques": ["keep"])");
  auto flags = unsaid<ProcurementSection>();
  flags.period_months = 0.1;
  const ProcurementRequest request = read_procurement_request(path, {}, flags);
  const ProcurementAnswer found = answer_procurement(request);
  EXPECT_FALSE(found.chosen);
  EXPECT_THAT(procurement_report(request, found).verdict, HasSubstr("that the fleet is kept"));
}

// What is spent stands in the verdict, not the programme's share of it alone; options beyond the shortlist are named.
TEST_F(ProcurementFile, SaysWhatIsSpent) {
  const std::string path = scenario(
      R"("tokens": 1e10, "gpus": [8], "machines": ["dgx-a100", "dgx-h100"], "techniques": ["keep", "selective", "full"],
         "shortlist": 1)");
  const ProcurementRequest request = read_procurement_request(path, {});
  const ProcurementAnswer found = answer_procurement(request);
  ASSERT_TRUE(found.chosen);
  const ReportDocument report = procurement_report(request, found);
  EXPECT_THAT(report.verdict, HasSubstr(" to buy, "));
  // Days of work pay no purchase: rent is told first.
  EXPECT_LT(report.verdict.find("For this programme alone rent it: "), report.verdict.find(" to buy, "));
  EXPECT_THAT(report.verdict, HasSubstr("if the fleet is kept as busy"));
  const auto options = std::find_if(report.sections.begin(), report.sections.end(),
                                    [](const ReportSection& section) { return section.heading == "Options"; });
  ASSERT_NE(options, report.sections.end());
  EXPECT_EQ(options->tables[0].rows.size(), 2U) << "the best of each machine";
  ASSERT_FALSE(options->items.empty());
  EXPECT_THAT(options->items[0], HasSubstr("4 more, dearer"));
}

// Moving an input moves the cost as the formulas say: a fifth on machines' prices is a fifth of what they cost.
TEST_F(ProcurementFile, SensitivityFollowsTheFormulas) {
  const ProcurementAnswer found = answer(scenario(R"("tokens": 1e10, "gpus": [8], "techniques": ["keep"])"));
  ASSERT_TRUE(found.chosen);
  const PricedOption& option = found.options[*found.chosen];
  bool seen = false;
  for (const Sensitivity& one : found.sensitivity) {
    if (one.input != "machine price or rent") continue;
    seen = true;
    const auto value = [&](const char* field) { return found.book.value(found.priced, option.place, field); };
    const double years = 3, machine = value("machine_capital") * (1 + years * 0.05) / value("tokens_in_period") * 1e9;
    EXPECT_NEAR(one.high_usd - option.usd_per_billion, 0.2 * machine, 1e-6 * machine);
    EXPECT_NEAR(option.usd_per_billion - one.low_usd, 0.2 * machine, 1e-6 * machine);
    EXPECT_EQ(one.low_cheapest, option.name());
  }
  EXPECT_TRUE(seen);
}

// The step's swing has the ends of its range, and its cost follows.
TEST_F(ProcurementFile, StepTimeSwingsByItsRange) {
  const ProcurementAnswer found = answer(scenario(R"("tokens": 1e10, "gpus": [8], "techniques": ["keep"])"));
  ASSERT_TRUE(found.chosen);
  const PricedOption& option = found.options[*found.chosen];
  const FigureRange& range = option.runs.front().result.step_time_range;
  ASSERT_TRUE(range.known);
  EXPECT_DOUBLE_EQ(option.busy_range().high, range.high);
  const auto step = std::find_if(found.sensitivity.begin(), found.sensitivity.end(),
                                 [](const Sensitivity& one) { return one.input == "step time"; });
  ASSERT_NE(step, found.sensitivity.end());
  EXPECT_DOUBLE_EQ(step->low, range.low);
  EXPECT_DOUBLE_EQ(step->high, range.high);
  EXPECT_NEAR(step->high_usd / option.usd_per_billion, range.high, 0.02);  // all but what idles costs by the day
  PricedOption unknown = option;
  unknown.runs.front().result.step_time_range.known = false;
  EXPECT_DOUBLE_EQ(unknown.busy_range().low, 1 - step_time_error);
  EXPECT_FALSE(unknown.busy_range().known);
}

// What is there today is judged as an option of the same fleet and technique is.
TEST_F(ProcurementFile, TodaysFleetIsJudgedAsAnOptionIs) {
  const std::string rest = R"("tokens": 1e10, "gpus": [8], "techniques": ["full"], "today": )";
  const std::string same = scenario(rest + R"({"machine": "dgx-a100", "gpus": 8, "technique": "full"})");
  const ProcurementAnswer found = answer(same);
  ASSERT_TRUE(found.chosen && found.today && found.step);
  const PricedOption& option = found.options[*found.chosen];
  EXPECT_EQ(found.today->failure, "");
  EXPECT_DOUBLE_EQ(found.today->days, option.days);
  EXPECT_EQ(found.today->runs.front().result.fingerprint, option.runs.front().result.fingerprint);
  EXPECT_EQ(found.step->fingerprint, option.runs.front().result.fingerprint);
  EXPECT_NEAR(found.today->kilowatts * 1000, option.machine_watts, 1e-6 * option.machine_watts);
  const ProcurementAnswer half = answer(scenario(rest + R"({"machine": "dgx-a100", "gpus": 4})"));
  EXPECT_EQ(half.today->technique, "keep");
  EXPECT_GT(half.today->days, found.today->days);
  const ReportDocument document = procurement_report(read_procurement_request(same, {}), found);
  const auto heads = [&](const std::string& heading) {
    return std::any_of(document.sections.begin(), document.sections.end(),
                       [&](const ReportSection& section) { return section.heading == heading; });
  };
  EXPECT_TRUE(heads("Compared with what is there today"));
  EXPECT_TRUE(heads("The step of small"));
  // Three GPUs don't divide the batch; drives aren't said.
  EXPECT_NE(answer(scenario(rest + R"({"machine": "dgx-a100", "gpus": 3})")).today->failure, "");
  EXPECT_THAT(complaint_of(scenario(rest + R"({"machine": "dgx-a100", "gpus": 8, "technique": "no"})")),
              HasSubstr("/procurement/today/technique"));
  EXPECT_THAT(complaint_of(scenario(rest + R"({"gpus": 8})")), HasSubstr("/procurement/today"));
}

// Two runs on one fleet: their days add up, and the tokens are both's.
TEST_F(ProcurementFile, RunsFollowEachOther) {
  const std::string runs =
      R"("gpus": [8], "techniques": ["keep"], "runs": [{"name": "a", "tokens": 1e10},
         {"name": "b", "tokens": 2e10, "set": {"model": {"layers": 6}}}])";
  const ProcurementAnswer both = answer(scenario(runs));
  ASSERT_TRUE(both.chosen);
  const PricedOption& option = both.options[*both.chosen];
  ASSERT_EQ(option.runs.size(), 2U);
  EXPECT_LT(option.runs[1].step_seconds(), option.runs[0].step_seconds());
  const double days = both.book.value(both.runs, 0, "busy_days") + both.book.value(both.runs, 1, "busy_days");
  EXPECT_DOUBLE_EQ(option.days, days / 0.9);
  EXPECT_DOUBLE_EQ(both.book.value(both.priced, option.place, "tokens"), 3e10);
}

// A sweep's points are the options: for each machine, number of GPUs and technique the one that takes least GPU time,
// whatever the file's objectives, and machines don't drop out for one another.
TEST_F(ProcurementFile, TakesASweep) {
  const std::string path = (folder_ / "sweep.json").string();
  const auto write = [&](const std::string& axis, const std::string& base, const std::string& procurement) {
    std::ofstream(path) << R"({"schema": "spillway-sweep", "version": 1, "title": "two", "base": {"model": {"name":
      "gpt2-small", "sequence": 512, )" +
                               base +
                               R"("data_parallel": 8}, "hardware": {"profile": "dgx-a100"}},
      "axes": [)" + axis + R"({"name": "b", "key": "model.micro_batch", "values": [1, 4, 8]},
               {"name": "machine", "key": "hardware.profile", "values": ["dgx-a100", "dgx-h100"]}],
      "objectives": ["peak_memory"], "procurement": {"tokens": 1e10)" +
                               procurement + "}}";
  };
  const std::string batch = R"("global_batch": 64, )";
  write("", batch, "");
  const ProcurementAnswer found = answer(path);
  ASSERT_TRUE(found.chosen);
  ASSERT_EQ(found.options.size(), 2U);
  EXPECT_NE(found.options[0].fleet.machine, found.options[1].fleet.machine);
  for (const PricedOption& option : found.options) {
    EXPECT_EQ(option.fleet.gpus, 8);
    for (const char* other : {"1", "4", "8"}) {
      RunPlan plan = option.fleet.plans[0];
      plan.candidate.edits.push_back(std::string("model.micro_batch=") + other);
      EXPECT_GE(replay_plan_of(plan, nullptr, 0, common_switch_lanes).run.step_seconds(),
                option.runs[0].step_seconds() * 0.999999)
          << option.name() << ", b " << other;
    }
  }
  write(R"({"name": "g", "key": "model.global_batch", "values": [64, 128]}, )", batch, "");
  EXPECT_THAT(complaint_of(path), HasSubstr("'model.global_batch' train different things"));
  write(R"({"name": "m", "key": "model.name", "values": ["gpt2-small", "gpt2-medium"]}, )", batch, "");
  EXPECT_THAT(complaint_of(path), HasSubstr("/axes/0"));
  write("", "", "");
  EXPECT_THAT(complaint_of(path), HasSubstr("/base/model/global_batch"));
  write("", batch, R"(, "machines": ["hgx-b200"])");
  EXPECT_THAT(complaint_of(path), HasSubstr("/procurement/machines"));
  write("", batch, "");
  auto flags = unsaid<ProcurementSection>();
  flags.gpus = {64};
  EXPECT_THROW(answer(path, flags), InputError);
}

TEST_F(ProcurementFile, SameBytesAgain) {
  const std::string path = scenario(R"("tokens": 1e10, "gpus": [8], "techniques": ["keep", "full"])");
  const ProcurementRequest request = read_procurement_request(path, {});
  const ReportDocument first = procurement_report(request, answer_procurement(request)),
                       second = procurement_report(request, answer_procurement(request));
  EXPECT_EQ(report_html(first), report_html(second));
  EXPECT_EQ(report_csv(first), report_csv(second));
  EXPECT_THAT(report_html(first), HasSubstr("Not modelled"));
}

TEST_F(ProcurementFile, MistakesAreNamed) {
  EXPECT_THAT(complaint_of(scenario(R"("gpus": [8])")), HasSubstr("tokens"));
  const std::string open = (folder_ / "open.json").string();
  std::ofstream(open) << R"({"schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2-small"},)"
                      << R"( "hardware": {"profile": "dgx-a100"}})";
  EXPECT_THAT(complaint_of(open), testing::AllOf(HasSubstr("--tokens 1T"), HasSubstr("--set model.global_batch=1024")))
      << "both at once";
  EXPECT_THAT(complaint_of(scenario(R"("tokens": 1e9, "tokns": 1)")), HasSubstr("did you mean tokens?"));
  EXPECT_THAT(complaint_of(scenario(R"("tokens": 1e9, "machines": ["dgx-h101"])")), HasSubstr("dgx-h100"));
  EXPECT_THAT(complaint_of(scenario(R"("tokens": 1e9, "techniques": ["kept"])")), HasSubstr("did you mean keep?"));
  EXPECT_THAT(complaint_of(scenario(R"("tokens": 1e9, "utilisation": 1.5)")), HasSubstr("from 0.001 to 1"));
  EXPECT_THAT(complaint_of(scenario(R"("tokens": 1e9, "runs": [{"name": "a", "tokens": 1}])")),
              HasSubstr("runs have their own tokens"));
  EXPECT_THAT(complaint_of(scenario(R"("tokens": 1e9, "gpus": [0])")), HasSubstr("/procurement/gpus"));
  // What no option can be asked with isn't a "No".
  const std::string sound = scenario(R"("tokens": 1e9, "gpus": [8], "techniques": ["keep"])");
  EXPECT_THROW(read_procurement_request(sound, std::vector<std::string>{"hardware.set.gpu.foo=1"}), InputError);
  EXPECT_THROW(read_procurement_request(sound, std::vector<std::string>{"hardware.set.price=-100000"}), InputError);
  auto flags = unsaid<ProcurementSection>();
  flags.drives = {"samsung-pm983-0.96tb"};
  EXPECT_THROW(read_procurement_request(sound, {}, flags), InputError);
  flags = unsaid<ProcurementSection>();
  flags.tokens = std::nan("");
  try {
    static_cast<void>(read_procurement_request(sound, {}, flags));
    ADD_FAILURE();
  } catch (const InputError& error) {
    EXPECT_EQ(error.place(), "--tokens");
  }
}

}  // namespace
}  // namespace spillway::reports
