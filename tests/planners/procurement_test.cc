#include "planners/procurement/procurement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "hwprofiles/profile_library.h"
#include "planners/procurement/cost_model.h"
#include "traces/base/input_error.h"

namespace spillway {
namespace {

using testing::HasSubstr;

LiveGiven number(double value) { return {value, {}, 1}; }

// Fields are worked out from those above them, cases apart, and told to a spreadsheet as the same expression.
TEST(LiveTable, WorksOutAndTranslates) {
  LiveBook book;
  LiveTable first{"In", "inputs", {{"a", "A", "", ""}, {"b", "B", "", ""}}, {{"x", {}, {}}, {"y", {}, {}}}, {}};
  first.cases[0].given = {{"a", number(7)}, {"b", number(2)}};
  first.cases[1].given = {{"a", number(9)}, {"b", number(4)}};
  const std::size_t in = book.add(first);
  LiveTable second{"Out",
                   "results",
                   {{"sum", "S", "", ""}, {"per", "P", "", "ceil(sum / 3) + max(sum, 2) * min(1, 4)"}},
                   {{"z", {}, {}}},
                   {}};
  second.cases[0].given["sum"] = {0, {{in, 0, "a"}, {in, 1, "b"}}, 0.5};  // (7 + 4) / 2
  const std::size_t out = book.add(second);
  EXPECT_DOUBLE_EQ(book.value(out, 0, "sum"), 5.5);
  EXPECT_DOUBLE_EQ(book.value(out, 0, "per"), 2 + 5.5);
  EXPECT_EQ(live_formula(book, in, 0, 0), "");
  EXPECT_EQ(live_formula(book, out, 0, 0), "=('In'!C4+'In'!D5)*0.5");
  EXPECT_EQ(live_formula(book, out, 0, 1), "=ROUNDUP(C4/3,0)+MAX(C4,2)*MIN(1,4)");
  EXPECT_EQ(live_address(first, 26, 0, false), "AC4");
  LiveTable bad{"Bad", "", {{"c", "", "", "nobody + 1"}}, {{"z", {}, {}}}, {}};
  EXPECT_THROW(book.add(bad), InputError);
}

class PriceFile : public testing::Test {
 protected:
  PriceFile() : folder_(std::filesystem::temp_directory_path() / "spillway_price_test") {
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
    EXPECT_NO_THROW(library.load_system(name)) << name;
    EXPECT_TRUE(price.price_usd || price.usd_per_hour) << name;
    if (price.price_usd) {
      EXPECT_TRUE(sourced(*price.price_usd)) << name;
    }
  }
  for (const auto& [name, price] : prices.drives_usd) {
    EXPECT_NO_THROW(library.load_nvme(name)) << name;
    EXPECT_TRUE(sourced(price)) << name;
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
  LiveBook book;
  LiveTable table{"T", "", cost_fields(), {{"c", {}, {}}}, {}};
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
  EXPECT_NEAR(value("drive_life_years"), 1, 1e-6);
  EXPECT_EQ(value("sets"), 3);
  EXPECT_EQ(value("replacements"), 2);
  EXPECT_EQ(value("capital"), 2 * 100'000 + 16 * 500 + 64 * 1000 + 2 * 700);
  EXPECT_DOUBLE_EQ(value("power_kw"), (2 * 4000 + 64 * 10) * 1.5 / 1000);
  const double mean_kw = (2 * (4000 * 0.5 + 1000 * 0.5) + 64 * 10 * 0.5) * 1.5 / 1000;
  EXPECT_DOUBLE_EQ(value("energy_cost"), mean_kw * 3 * 365 * 24 * 0.1);
  EXPECT_EQ(value("replacement_cost"), 64 * 2 * 1000);
  const double total = value("capital") + value("energy_cost") + value("replacement_cost");
  EXPECT_NEAR(value("usd_per_billion"), total / (3 * 365.0 / 2), 1e-6);
  EXPECT_NEAR(value("programme_cost"), value("usd_per_billion"), 1e-9);  // 1e9 tokens
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
  static ProcurementAnswer answer(const std::string& path, const ProgrammeFlags& flags = {}) {
    return answer_procurement(read_programme(path, {}, flags));
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
  EXPECT_DOUBLE_EQ(chosen.days, std::ceil(1e10 / run.tokens_per_step) * run.step_seconds / 86400 / 0.8);
  for (const PricedOption& option : free.options) EXPECT_GE(option.usd_per_billion, chosen.usd_per_billion);
  // Half of what the chosen one takes: another one, or none.
  ProgrammeFlags flags;
  flags.deadline_days = chosen.days * 0.75;
  const ProcurementAnswer tight = answer(path, flags);
  if (tight.chosen) {
    EXPECT_LE(tight.options[*tight.chosen].days, flags.deadline_days);
  }
  flags.deadline_days = chosen.days / 1000;
  const Programme late = read_programme(path, {}, flags);
  const ProcurementAnswer none = answer_procurement(late);
  EXPECT_FALSE(none.chosen);
  EXPECT_EQ(procurement_report(late, none).verdict.substr(0, 3), "No:");
}

// Drives: the number chosen carries the need with its caches full, has the room, and costs least of all numbers; the
// cheapest model is the option's; and its replacements follow from its life.
TEST_F(ProcurementFile, ChoosesDrivesByCost) {
  const std::string path = scenario(R"("tokens": 1e11, "gpus": [8], "techniques": ["ssdtrain"], "drives_per_gpu": 3,
                  "drives": ["micron-9550-max-6.4tb", "samsung-980-pro-1tb", "samsung-pm9a3-3.84tb"])",
                                    R"(, "offload": {"least_elements": 1048576})");
  const Programme programme = read_programme(path, {});
  const ProcurementAnswer found = answer_procurement(programme);
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
    const std::size_t place = found.drive_places[able++];
    const auto value = [&](const char* field) { return found.book.value(found.drive_table, place, field); };
    EXPECT_GE(fit.hardest().steady_rate, fit.hardest().required_rate * 0.999) << fit.drive.name;
    EXPECT_TRUE(fit.hardest().holds_steady) << fit.drive.name;
    EXPECT_GE(fit.chosen, fit.least);
    EXPECT_LE(fit.chosen, 3);
    EXPECT_EQ(value("replacements"), std::max(1.0, std::ceil(3 / value("drive_life_years"))) - 1) << fit.drive.name;
    // Written bytes are counted alike here and in the report on drives, which trains without pauses.
    EXPECT_NEAR(value("drive_life_years") * programme.utilisation / fit.hardest().years, 1, 0.02) << fit.drive.name;
    EXPECT_GE(value("usd_per_billion"), before);
    before = value("usd_per_billion");
  }
  EXPECT_EQ(able, found.drive_places.size());
  ASSERT_TRUE(found.pcie);
  EXPECT_FALSE(found.pcie->links.empty());
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

// Two runs on one fleet: their days add up, and the tokens are both's.
TEST_F(ProcurementFile, RunsFollowEachOther) {
  const std::string runs =
      R"("gpus": [8], "techniques": ["keep"], "runs": [{"name": "a", "tokens": 1e10},
         {"name": "b", "tokens": 2e10, "set": {"model": {"layers": 6}}}])";
  const ProcurementAnswer both = answer(scenario(runs));
  ASSERT_TRUE(both.chosen);
  const PricedOption& option = both.options[*both.chosen];
  ASSERT_EQ(option.runs.size(), 2U);
  EXPECT_LT(option.runs[1].step_seconds, option.runs[0].step_seconds);
  const double days = both.book.value(both.runs, 0, "busy_days") + both.book.value(both.runs, 1, "busy_days");
  EXPECT_DOUBLE_EQ(option.days, days / 0.9);
  EXPECT_DOUBLE_EQ(both.book.value(both.priced, option.place, "tokens"), 3e10);
}

// A sweep's points are the options, the fastest of each machine, number of GPUs and technique.
TEST_F(ProcurementFile, TakesASweep) {
  const std::string path = (folder_ / "sweep.json").string();
  std::ofstream(path) << R"({"schema": "spillway-sweep", "version": 1, "title": "two", "base": {"model": {"name":
    "gpt2-small", "sequence": 512, "global_batch": 64, "data_parallel": 8}, "hardware": {"profile": "dgx-a100"}},
    "axes": [{"name": "b", "key": "model.micro_batch", "values": [4, 8]},
             {"name": "machine", "key": "hardware.profile", "values": ["dgx-a100", "dgx-h100"]}],
    "objectives": ["step_time", "peak_memory"], "procurement": {"tokens": 1e10}})";
  const ProcurementAnswer found = answer(path);
  ASSERT_TRUE(found.chosen);
  EXPECT_GE(found.options.size(), 1U);
  for (const PricedOption& option : found.options) EXPECT_EQ(option.fleet.gpus, 8);
}

TEST_F(ProcurementFile, SameBytesAgain) {
  const std::string path = scenario(R"("tokens": 1e10, "gpus": [8], "techniques": ["keep", "full"])");
  const Programme programme = read_programme(path, {});
  const ReportDocument first = procurement_report(programme, answer_procurement(programme)),
                       second = procurement_report(programme, answer_procurement(programme));
  EXPECT_EQ(report_html(first), report_html(second));
  EXPECT_EQ(report_csv(first), report_csv(second));
  EXPECT_THAT(report_html(first), HasSubstr("Not modelled"));
}

TEST_F(ProcurementFile, MistakesAreNamed) {
  EXPECT_THAT(complaint_of(scenario(R"("gpus": [8])")), HasSubstr("tokens"));
  EXPECT_THAT(complaint_of(scenario(R"("tokens": 1e9, "tokns": 1)")), HasSubstr("did you mean tokens?"));
  EXPECT_THAT(complaint_of(scenario(R"("tokens": 1e9, "machines": ["dgx-h101"])")), HasSubstr("dgx-h100"));
  EXPECT_THAT(complaint_of(scenario(R"("tokens": 1e9, "techniques": ["kept"])")), HasSubstr("did you mean keep?"));
  EXPECT_THAT(complaint_of(scenario(R"("tokens": 1e9, "utilisation": 1.5)")), HasSubstr("from 0.001 to 1"));
  EXPECT_THAT(complaint_of(scenario(R"("tokens": 1e9, "runs": [])")), HasSubstr("runs have their own tokens"));
  EXPECT_THAT(complaint_of(scenario(R"("tokens": 1e9, "gpus": [0])")), HasSubstr("/procurement/gpus"));
}

}  // namespace
}  // namespace spillway
