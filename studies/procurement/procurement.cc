#include "studies/procurement/procurement.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>

#include "base/input_error.h"
#include "base/parallel.h"
#include "hwprofiles/profile_library.h"
#include "scenario/machine_power.h"
#include "scenario/scenario_memory.h"
#include "studies/offload/storage_links.h"
#include "studies/procurement/cost_cases.h"
#include "studies/procurement/fleet_cost.h"

namespace spillway::studies {
namespace {

class Procurement {
 public:
  Procurement(const ProcurementRequest& request, const OptionProgress& progress)
      : in_(request), progress_(progress), cases_(request) {}

  ProcurementAnswer answer() {
    std::vector<FleetOption> fleets = find_options(in_, progress_);
    cases_.add_inputs(answer_.book);
    replay_all(std::move(fleets));
    cases_.add_prices(answer_.options, answer_.book);
    answer_.inputs = cases_.inputs();
    answer_.machine_prices = cases_.machine_prices();
    answer_.drive_prices = cases_.drive_prices();
    choose_drives();
    add_runs();
    price_options();
    choose();
    add_odds();
    add_drive_table();
    collect_warnings();
    add_pcie();
    add_sensitivity();
    add_step();
    if (in_.today) answer_.today = todays_fleet(in_, progress_);
    return std::move(answer_);
  }

 private:
  // ---- replays ----

  void add_step() {
    if (answer_.options.empty() || !answer_.options.front().failure.empty()) return;
    const PricedOption& option = answer_.options[answer_.chosen.value_or(0)];
    const NvmeProfile* drive = option.drive ? &option.drive->drive : nullptr;
    const std::int64_t count = option.drive ? option.drive->chosen : 0;
    ReplayedPlan plan = replay_plan_of(option.fleet.plans.front(), drive, count, switch_lanes_of(in_.prices));
    answer_.step = result_on_gpu_clock(plan.loaded, std::move(plan.ran));
  }

  void replay_all(std::vector<FleetOption> fleets) {
    const std::size_t all = fleets.size();
    answer_.options.resize(all);
    fits_.resize(all);
    replays_.resize(all);
    std::mutex telling;
    std::size_t begun = 0;
    in_parallel(all, [&](std::size_t o) {
      {
        const std::lock_guard lock(telling);
        if (progress_ && !progress_("replaying " + fleets[o].machine, begun++, all)) throw Cancelled();
      }
      answer_.options[o] = replayed(o, std::move(fleets[o]));
    });
  }

  PricedOption replayed(std::size_t o, FleetOption fleet) {
    PricedOption option;
    option.fleet = std::move(fleet);
    option.failure = option.fleet.failure;
    option.hardware = ProfileLibrary::shared().load_system(option.fleet.machine);
    std::vector<ReplayedPlan> plans;
    bool writes = false, might_write = false;
    for (const RunPlan& plan : option.fleet.plans) {
      plans.push_back(replay_plan_of(plan, nullptr, 0, switch_lanes_of(in_.prices), true));
      option.hardware = plans.back().loaded.hardware;
      option.runs.push_back(plans.back().run);
      const OffloadSettings& offload = plans.back().loaded.scenario.offload;
      might_write = might_write || (offload.moves() && offload.tier == Tier::drive);
      writes = writes || plans.back().run.written_bytes > 0;
    }
    option.price = in_.prices.machine(option.hardware);
    option.writes_nothing = might_write && !writes;
    if (writes && option.is_rented() && option.failure.empty())
      option.failure = "a rented machine keeps the drives it has: none can be bought for what this writes";
    if (writes && option.failure.empty()) {
      fits_[o] = fit_drives(in_, plans);
      option.drive.emplace();
      replays_[o] = std::move(plans);
    }
    set_power(option);
    if (option.failure.empty() && !option.price.price_usd && !option.price.usd_per_hour)
      option.failure = fmt::format(
          R"(no price of {0}: give --prices FILE, for example {{"schema": "spillway-prices", "version": 1, )"
          R"("machines": {{"{0}": {{"price": {{"value": 300000, "unit": "USD", "provenance": "assumed", )"
          R"("source": "an offer", "date": "2026-11"}}}}}}}})",
          option.fleet.machine);
    return option;
  }

  void set_power(PricedOption& option) const {
    double busy = 0, seconds = 0;
    for (const RunReplay& run : option.runs) {
      busy += run.busy() * run.step_seconds();
      seconds += run.step_seconds();
    }
    const MachinePower power = machine_power(option.hardware, in_.prices, seconds > 0 ? busy / seconds : 1);
    option.machine_watts = power.training_watts;
    option.idle_watts = power.idle_watts;
    option.power_from = power.from;
  }

  // ---- tables ----

  void add_runs() {
    FormulaTable table{"Runs", "How long each run takes on each fleet", run_fields(), {}, {}};
    for (const PricedOption& option : answer_.options) {
      run_place_.emplace_back();
      for (std::size_t r = 0; r < option.runs.size(); ++r) {
        run_place_.back().push_back(table.cases.size());
        table.cases.push_back(cases_.run(option.name(), option.runs[r], r));
      }
    }
    answer_.runs = answer_.book.add(std::move(table));
  }

  // ---- drives ----

  struct Try {
    std::size_t fit;
    std::int64_t count;
    const std::vector<RunReplay>* runs;
  };
  struct Tried {
    double usd = 0, low_years = 0;  // per 1e9 tokens; life of a drive by its rating as it stands
  };

  [[nodiscard]] std::vector<Tried> costs(const PricedOption& option, const std::vector<DriveChoice>& fits,
                                         const std::vector<Try>& tries) const {
    FormulaWorkbook book = answer_.book;
    FormulaTable runs{"Runs", "", run_fields(), {}, {}}, table{"Drives", "", cost_fields(), {}, {}};
    std::vector<std::vector<std::size_t>> places(tries.size());
    for (std::size_t t = 0; t < tries.size(); ++t)
      for (std::size_t r = 0; r < tries[t].runs->size(); ++r) {
        places[t].push_back(runs.cases.size());
        runs.cases.push_back(cases_.run("", (*tries[t].runs)[r], r));
      }
    const std::size_t runs_table = book.add(std::move(runs));
    for (std::size_t t = 0; t < tries.size(); ++t)
      table.cases.push_back(cases_.option(option, &fits[tries[t].fit].drive, tries[t].count, runs_table, places[t]));
    const std::size_t at = book.add(std::move(table));
    std::vector<Tried> found;
    for (std::size_t t = 0; t < tries.size(); ++t) {
      const Endurance endurance = drive_endurance(fits[tries[t].fit].drive, in_.endurance);
      found.push_back({book.value(at, t, "usd_per_billion"),
                       book.value(at, t, "drive_life_years") * endurance.low / endurance.bytes});
    }
    return found;
  }

  void choose_drives() {
    for (std::size_t o = 0; o < answer_.options.size(); ++o) {
      PricedOption& option = answer_.options[o];
      if (!option.drive || !option.failure.empty()) continue;
      choose_numbers(option, fits_[o]);
      std::vector<RunReplay> quiet;
      replay_cheapest(option, fits_[o], quiet);
      const DriveChoice* best = fits_[o].empty() || fits_[o].front().runs.empty() ? nullptr : &fits_[o].front();
      if (best != nullptr) {
        option.drive = *best;
        option.runs = best->runs;
        option.saves_nothing = best->saves_nothing();
        option.hardware = best->hardware;
        set_power(option);
      } else if (!quiet.empty() && all_fit(quiet)) {
        option.drive.reset();
        option.runs = std::move(quiet);
        option.writes_nothing = true;
        set_power(option);
      } else {
        const auto first =
            std::find_if(fits_[o].begin(), fits_[o].end(), [](const DriveChoice& fit) { return !fit.cannot.empty(); });
        option.failure = first == fits_[o].end()
                             ? "no drives are offered for what it writes"
                             : "no drive carries what it writes: " + first->drive.name + ": " + first->cannot;
      }
    }
  }

  static bool all_fit(const std::vector<RunReplay>& runs) {
    return std::all_of(runs.begin(), runs.end(), [](const RunReplay& run) { return is_yes(run.result.verdict()); });
  }

  // The number of each model with the least cost when all is written that the step wants to write.
  void choose_numbers(const PricedOption& option, std::vector<DriveChoice>& fits) const {
    std::vector<Try> tries;
    for (std::size_t f = 0; f < fits.size(); ++f) {
      if (fits[f].cannot.empty() && !in_.prices.drive_usd(fits[f].drive)) fits[f].cannot = "no price of a new one";
      if (!fits[f].cannot.empty()) continue;
      for (const std::int64_t n : fits[f].numbers) tries.push_back({f, n, &option.runs});
    }
    const std::vector<Tried> tried = costs(option, fits, tries);
    std::vector<double> cost(fits.size(), std::numeric_limits<double>::infinity()), years(fits.size(), 0);
    for (std::size_t t = 0; t < tries.size(); ++t) {
      const std::size_t f = tries[t].fit;
      years[f] = std::max(years[f], tried[t].low_years);
      if (tried[t].low_years < in_.least_life_years || tried[t].usd >= cost[f]) continue;
      cost[f] = tried[t].usd;
      fits[f].chosen = tries[t].count;
    }
    for (std::size_t f = 0; f < fits.size(); ++f)
      if (fits[f].cannot.empty() && fits[f].chosen == 0)
        fits[f].cannot =
            fmt::format("its rating as it stands lasts less than the {:g} years asked for", in_.least_life_years);
    sort_by_cost(fits, cost);
  }

  static void sort_by_cost(std::vector<DriveChoice>& fits, const std::vector<double>& cost) {
    std::vector<std::size_t> order(fits.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return cost[a] < cost[b]; });
    std::vector<DriveChoice> sorted;
    sorted.reserve(fits.size());
    for (const std::size_t i : order) sorted.push_back(std::move(fits[i]));
    fits = std::move(sorted);
  }

  // The cheapest models on machines that have them, ordered by what these replays cost. quiet: a replay that writes
  // nothing, where one did.
  void replay_cheapest(const PricedOption& option, std::vector<DriveChoice>& fits,
                       std::vector<RunReplay>& quiet) const {
    // As many at once as are still wanted: the same models as one after the other.
    std::size_t done = 0, asked = 0;
    while (done < drives_replayed) {
      const std::size_t first = asked;
      while (asked < std::min({fits.size(), first + drives_replayed - done, 2 * drives_replayed}) &&
             fits[asked].chosen > 0)
        ++asked;
      if (asked == first) break;
      std::vector<std::vector<RunReplay>> quiet_ones(asked - first);
      in_parallel(asked - first, [&](std::size_t i) { replay_with(option, fits[first + i], quiet_ones[i]); });
      for (std::size_t i = 0; i < quiet_ones.size(); ++i) {
        if (fits[first + i].chosen > 0) ++done;
        if (!quiet_ones[i].empty()) quiet = std::move(quiet_ones[i]);
      }
    }
    std::vector<Try> tries;
    for (std::size_t f = 0; f < fits.size(); ++f)
      if (!fits[f].runs.empty()) tries.push_back({f, fits[f].chosen, &fits[f].runs});
    const std::vector<Tried> tried = costs(option, fits, tries);
    constexpr double endless = std::numeric_limits<double>::infinity();
    std::vector<double> cost(fits.size());
    // Not replayed, then what can't: behind any cost.
    for (std::size_t f = 0; f < fits.size(); ++f)
      cost[f] = fits[f].chosen > 0 ? std::numeric_limits<double>::max() : endless;
    for (std::size_t t = 0; t < tries.size(); ++t) cost[tries[t].fit] = tried[t].usd;
    sort_by_cost(fits, cost);
  }

  // From the number chosen upwards until its plan writes something; chosen is 0 if it never does.
  void replay_with(const PricedOption& option, DriveChoice& fit, std::vector<RunReplay>& quiet) const {
    const std::int64_t least = std::exchange(fit.chosen, 0);
    for (const std::int64_t n : fit.numbers) {
      if (n < least) continue;
      fit.runs.clear();
      for (const RunPlan& plan : option.fleet.plans) {
        ReplayedPlan last = replay_plan_of(plan, &fit.drive, n, switch_lanes_of(in_.prices));
        fit.runs.push_back(std::move(last.run));
        fit.hardware = std::move(last.loaded.hardware);
      }
      if (!fit.writes()) {
        quiet = fit.runs;
        continue;
      }
      if (!all_fit(fit.runs)) continue;
      fit.chosen = n;
      return;
    }
    fit.cannot = fit.writes() ? "out of memory with them" : "the plan for them writes nothing: it keeps all";
    fit.runs.clear();
  }

  // ---- cost ----

  void price_options() {
    FormulaTable table{"Options", "Cost of every fleet that can train the programme", cost_fields(), {}, {}};
    for (std::size_t o = 0; o < answer_.options.size(); ++o) {
      PricedOption& option = answer_.options[o];
      if (!option.failure.empty()) continue;
      option.place = table.cases.size();
      table.cases.push_back(case_of(o));
    }
    answer_.priced = answer_.book.add(std::move(table));
    for (PricedOption& option : answer_.options) {
      if (!option.failure.empty()) continue;
      const auto value = [&](const char* field) { return answer_.book.value(answer_.priced, option.place, field); };
      option.days = value("days");
      option.usd_per_billion = value("usd_per_billion");
      option.programme_usd = value("programme_cost");
      option.in_time = option.days <= in_.days_there_are();
      if (option.is_rented()) {
        option.rent_usd = option.programme_usd;
      } else {
        option.buy_usd = value("capital");
        const double gpu_hours = value("total") / value("usd_per_gpu_hour_alone");
        if (option.price.usd_per_hour)
          option.rent_usd =
              option.price.usd_per_hour->value / static_cast<double>(option.hardware.gpu_count) * gpu_hours;
      }
      option.in_budget = in_.budget_usd <= 0 || option.least_usd() <= in_.budget_usd;
    }
  }

  [[nodiscard]] FormulaCase case_of(std::size_t o) const {
    const PricedOption& option = answer_.options[o];
    FormulaCase made = cases_.option(option, option.drive ? &option.drive->drive : nullptr,
                                     option.drive ? option.drive->chosen : 0, answer_.runs, run_place_[o]);
    if (option.drive) made.name += "; " + option.drive_name();
    return made;
  }

  void choose() {
    std::vector<std::size_t> order(answer_.options.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto rank = [&](std::size_t o) {
      const PricedOption& option = answer_.options[o];
      const double usd = option.failure.empty() ? option.usd_per_billion : std::numeric_limits<double>::infinity();
      return std::pair(usd, option.writes_nothing);  // of two alike, the one that doesn't pretend to offload
    };
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
    const auto sort_by = [&](auto& list) {
      std::remove_reference_t<decltype(list)> sorted;
      for (const std::size_t o : order) sorted.push_back(std::move(list[o]));
      list = std::move(sorted);
    };
    sort_by(answer_.options);
    sort_by(fits_);
    sort_by(replays_);
    sort_by(run_place_);
    for (std::size_t o = 0; o < answer_.options.size(); ++o) {
      const PricedOption& option = answer_.options[o];
      if (!option.failure.empty()) continue;
      if (option.in_time && option.in_budget && !answer_.chosen) answer_.chosen = o;
      // Drives are judged by a step that gains memory from them, if there is one.
      const std::pair basis(option.saves_nothing.empty(), option.in_time);
      if (!option.drive || (answer_.with_drives && basis <= with_drives_)) continue;
      answer_.with_drives = o;
      with_drives_ = basis;
    }
  }

  // ---- prices as ranges ----

  std::size_t used(const std::string& name, const std::string& unit, const Price& price, bool by_chosen) {
    std::vector<UsedPrice>& all = answer_.prices;
    auto found = std::find_if(all.begin(), all.end(), [&](const UsedPrice& one) { return one.name == name; });
    if (found == all.end()) found = all.insert(all.end(), {name, unit, price, false});
    found->by_chosen = found->by_chosen || by_chosen;
    return static_cast<std::size_t>(found - all.begin());
  }

  // By field of the option's cost: the price that it is.
  std::map<std::string, std::size_t> prices_of(const PricedOption& option, bool is_chosen) {
    std::map<std::string, std::size_t> found;
    const std::string& machine = option.fleet.machine;
    if (option.is_rented()) {
      found["machine_rent"] = used(machine, "USD/h", *option.price.usd_per_hour, is_chosen);
      return found;
    }
    found["machine_price"] = used(machine, "USD", *option.price.price_usd, is_chosen);
    const auto value = [&](const char* field) { return answer_.book.value(answer_.priced, option.place, field); };
    if (value("network_price") > 0)
      found["network_price"] = used("network per GPU", "USD", *in_.prices.network_usd_per_gpu, is_chosen);
    if (in_.prices.electricity_usd_per_kwh)
      found["electricity"] = used("electricity", "USD/kWh", *in_.prices.electricity_usd_per_kwh, is_chosen);
    if (!option.drive) return found;
    const NvmeProfile& drive = option.drive->drive;
    if (const auto price = in_.prices.drive_usd(drive))
      found["drive_price"] = used(drive.name, "USD", *price, is_chosen);
    if (value("switches_per_machine") > 0 && in_.prices.pcie_switch_usd)
      found["switch_price"] = used("PCIe switch", "USD", *in_.prices.pcie_switch_usd, is_chosen);
    return found;
  }

  // Of the options in time, or of all where none is.
  void add_odds() {
    answer_.odds.assign(answer_.options.size(), 0);
    std::vector<std::size_t> which;
    std::vector<OddsCase> cases;
    for (std::size_t o = 0; o < answer_.options.size(); ++o) {
      const PricedOption& option = answer_.options[o];
      if (!option.failure.empty() || (answer_.chosen && !option.in_time)) continue;
      cases.push_back({case_of(o), prices_of(option, o == answer_.chosen.value_or(0))});
      which.push_back(o);
    }
    if (cases.empty()) return;
    std::vector<RangedPrice> ranges;
    for (const UsedPrice& one : answer_.prices)
      ranges.push_back({one.name, one.price.value, one.price.low, one.price.high});
    const PriceOdds odds = price_odds(answer_.book, ranges, cases, 0);
    for (std::size_t c = 0; c < which.size(); ++c) answer_.odds[which[c]] = odds.cheapest[c];
    answer_.deciding_price = odds.decides;
    answer_.odds_if_low = odds.if_low;
    answer_.odds_if_high = odds.if_high;
  }

  // ---- parts of the report ----

  void add_drive_table() {
    if (!answer_.with_drives) return;
    const std::size_t o = *answer_.with_drives;
    std::vector<DriveChoice>& fits = fits_[o];
    answer_for_chosen(in_, replays_[o], fits);
    answer_.options[o].drive = fits.front();
    FormulaTable runs{"Drive runs", "Each run with each set of drives, as replayed", run_fields(), {}, {}};
    FormulaTable table{"Drives", "Drives for " + answer_.options[o].name(), cost_fields(), {}, {}};
    std::vector<std::vector<std::size_t>> places;
    for (const DriveChoice& fit : fits) {
      if (fit.runs.empty()) continue;
      places.emplace_back();
      for (std::size_t r = 0; r < fit.runs.size(); ++r) {
        places.back().push_back(runs.cases.size());
        runs.cases.push_back(cases_.run(fmt::format("{} x {}", fit.chosen, fit.drive.name), fit.runs[r], r));
      }
    }
    answer_.drive_runs = answer_.book.add(std::move(runs));
    for (const DriveChoice& fit : fits) {
      if (fit.runs.empty()) continue;
      const std::size_t place = table.cases.size();
      answer_.drive_places.push_back(place);
      FormulaCase made = cases_.option(answer_.options[o], &fit.drive, fit.chosen, answer_.drive_runs, places[place]);
      made.name = fmt::format("{} x {}", fit.chosen, fit.drive.name);
      table.cases.push_back(std::move(made));
    }
    answer_.drives = fits;
    answer_.drive_table = answer_.book.add(std::move(table));
    add_without(answer_.options[o]);
  }

  // The same layouts with nothing offloaded.
  void add_without(const PricedOption& option) {
    try {
      for (RunPlan plan : option.fleet.plans) {
        plan.candidate.edits.push_back(setting(offload_key, no_offload));
        answer_.without_drives.push_back(replay_plan_of(plan, nullptr, 0, switch_lanes_of(in_.prices), true).run);
      }
    } catch (const InputError&) {
      answer_.without_drives.clear();  // a step that needs what its technique does
    }
  }

  void collect_warnings() {
    for (const PricedOption& option : answer_.options)
      for (const RunReplay& run : option.runs)
        for (const std::string& warning : run.result.warnings)
          if (std::find(answer_.warnings.begin(), answer_.warnings.end(), warning) == answer_.warnings.end())
            answer_.warnings.push_back(warning);
  }

  void add_pcie() {
    if (!answer_.with_drives) return;
    const PricedOption& option = answer_.options[*answer_.with_drives];
    const std::vector<ReplayedPlan>& plans = replays_[*answer_.with_drives];
    const auto most = std::max_element(plans.begin(), plans.end(), [](const ReplayedPlan& a, const ReplayedPlan& b) {
      return a.run.written_bytes * b.run.step_seconds() < b.run.written_bytes * a.run.step_seconds();
    });
    SsdQuestion question;
    question.drives = {option.drive->drive};
    question.drives_per_gpu = option.drive->chosen;
    question.route = in_.route;
    question.switch_lanes = switch_lanes_of(in_.prices);
    question.endurance = in_.endurance;
    answer_.pcie = answer_pcie(most->loaded, most->ran, question);
  }

  // A field, multiplied.
  struct Swing {
    std::string input, unit, field;
    double base = 1;           // of the field, in `unit`; 1: the factors themselves are told
    double low = 0, high = 0;  // factors; of the endurance each drive's own
    enum class Of : unsigned char { all, drives, flash, garbage } of = Of::all;  // has a meaning where
  };

  [[nodiscard]] bool applies(const Swing& swing, const PricedOption& option) const {
    if (swing.of == Swing::Of::all) return true;
    if (!option.drive) return false;
    const Endurance endurance = drive_endurance(option.drive->drive);
    return swing.of == Swing::Of::drives ||
           (swing.of == Swing::Of::flash ? endurance.is_flash : endurance.collects_garbage);
  }

  [[nodiscard]] std::vector<Swing> swings(const PricedOption& base) const {
    const auto shared = [this](const char* field) { return answer_.book.value(answer_.inputs, 0, field); };
    const double use = shared("utilisation"), pue = shared("power_overhead"), wa = shared("write_amplification"),
                 credit = shared("retention_credit");
    constexpr double weeks = 6.67;
    using Of = Swing::Of;
    return {{"machine price or rent", "x", "machine_price_factor", 1, 0.8, 1.2, Of::all},
            {"drive price", "x", "drive_price_factor", 1, 0.5, 2, Of::drives},
            {"utilisation", "", "utilisation", use, 0.8, std::min(1.1, 1 / use), Of::all},
            {"step time", "x", "busy_days", 1, base.busy_range().low, base.busy_range().high, Of::all},
            {"period kept", "months", "period_months", in_.period_months, 2.0 / 3, 4.0 / 3, Of::all},
            {"electricity", "USD/kWh", "electricity", shared("electricity"), 0.5, 2, Of::all},
            {"facility overhead (PUE)", "", "power_overhead", pue, (1 + (pue - 1) / 2) / pue, (1 + (pue - 1) * 2) / pue,
             Of::all},
            {"maintenance a year", "", "maintenance", shared("maintenance"), 0, 2, Of::all},
            {"write amplification", "", "write_amplification", wa, 1 / wa, std::max(3.0, wa * 2) / wa, Of::garbage},
            {"endurance for the writes", "x", "drive_endurance_tb", 1, endurance_of(base, true),
             endurance_of(base, false), Of::drives},
            {"credit for short retention", "", "retention_credit", credit, 1 / credit, std::max(weeks, credit) / credit,
             Of::flash}};
  }

  // The ends of its drives' range, over the figure counted with.
  static double endurance_of(const PricedOption& option, bool low) {
    if (!option.drive) return 1;
    const Endurance endurance = drive_endurance(option.drive->drive);
    return (low ? endurance.low : endurance.high) / endurance.bytes;
  }

  void add_sensitivity() {
    const bool any = !answer_.options.empty() && answer_.options.front().failure.empty();
    if (!any) return;
    const std::size_t of = answer_.chosen.value_or(0);
    answer_.sensitivity = moved_inputs(of, "Sensitivity");
    if (answer_.with_drives && *answer_.with_drives != of)
      answer_.drive_sensitivity = moved_inputs(*answer_.with_drives, "Sensitivity with drives");
  }

  std::vector<Sensitivity> moved_inputs(std::size_t of, const std::string& sheet) {
    const PricedOption& base = answer_.options[of];
    FormulaTable table{sheet, base.name() + " with one input moved at a time", cost_fields(), {}, {}};
    std::vector<Sensitivity> found;
    for (const Swing& swing : swings(base)) {
      if (!applies(swing, base) || swing.low == swing.high || swing.base == 0) continue;
      const double told_low = swing.base * swing.low, told_high = swing.base * swing.high;
      found.push_back({swing.input, swing.unit, told_low, told_high, 0, 0, 0, 0, cheapest_under(swing, true),
                       cheapest_under(swing, false)});
      for (const bool low : {true, false}) {
        FormulaCase moved = case_of(of);
        moved.name = fmt::format("{} {:.4g} {}", swing.input, low ? told_low : told_high, swing.unit);
        move(moved, swing, base, low);
        table.cases.push_back(std::move(moved));
      }
    }
    const std::size_t at = answer_.book.add(std::move(table));
    for (std::size_t i = 0; i < found.size(); ++i) {
      found[i].low_usd = answer_.book.value(at, 2 * i, "usd_per_billion");
      found[i].high_usd = answer_.book.value(at, 2 * i + 1, "usd_per_billion");
      if (!base.drive) continue;
      found[i].low_years = answer_.book.value(at, 2 * i, "drive_life_years");
      found[i].high_years = answer_.book.value(at, 2 * i + 1, "drive_life_years");
    }
    const auto width = [](const Sensitivity& one) { return std::abs(one.high_usd - one.low_usd); };
    std::stable_sort(found.begin(), found.end(),
                     [&](const Sensitivity& a, const Sensitivity& b) { return width(a) > width(b); });
    return found;
  }

  void move(FormulaCase& moved, const Swing& swing, const PricedOption& option, bool low) const {
    if (!applies(swing, option)) return;
    const bool is_endurance = swing.field == "drive_endurance_tb";
    const double factor = is_endurance ? endurance_of(option, low) : (low ? swing.low : swing.high);
    FormulaInput& given = moved.given.at(swing.field);
    (given.cells.empty() ? given.number : given.factor) *= factor;
  }

  // In time, else of all; drives are chosen anew among the models that were replayed with the option.
  [[nodiscard]] std::string cheapest_under(const Swing& swing, bool low) const {
    FormulaWorkbook book = answer_.book;
    FormulaTable runs{"Moved runs", "", run_fields(), {}, {}}, table{"Moved", "", cost_fields(), {}, {}};
    struct Moved {
      std::size_t option;
      const DriveChoice* fit;
      std::vector<std::size_t> places;  // of its runs
    };
    std::vector<Moved> which;
    for (std::size_t o = 0; o < answer_.options.size(); ++o) {
      if (!answer_.options[o].failure.empty()) continue;
      which.push_back({o, nullptr, {}});
      if (!answer_.options[o].drive) continue;
      for (const DriveChoice& fit : fits_[o]) {
        if (fit.runs.empty() || fit.drive.name == answer_.options[o].drive->drive.name) continue;
        which.push_back({o, &fit, {}});
        for (std::size_t r = 0; r < fit.runs.size(); ++r) {
          which.back().places.push_back(runs.cases.size());
          runs.cases.push_back(cases_.run("", fit.runs[r], r));
        }
      }
    }
    const std::size_t runs_table = book.add(std::move(runs));
    for (const Moved& one : which) {
      PricedOption option = answer_.options[one.option];
      if (one.fit != nullptr) option.drive = *one.fit;
      FormulaCase moved = one.fit == nullptr
                              ? case_of(one.option)
                              : cases_.option(option, &one.fit->drive, one.fit->chosen, runs_table, one.places);
      move(moved, swing, option, low);
      table.cases.push_back(std::move(moved));
    }
    const std::size_t at = book.add(std::move(table));
    std::optional<std::size_t> best;
    bool best_in_time = false;
    for (std::size_t c = 0; c < which.size(); ++c) {
      const double days = book.value(at, c, "days"), kept = book.value(at, c, "period_days");
      const bool in_time = days <= kept && (in_.deadline_days <= 0 || days <= in_.deadline_days);
      const bool better =
          !best || (in_time && !best_in_time) ||
          (in_time == best_in_time && book.value(at, c, "usd_per_billion") < book.value(at, *best, "usd_per_billion"));
      if (!better) continue;
      best = c;
      best_in_time = in_time;
    }
    const Moved& chosen = which[*best];
    const std::string with =
        chosen.fit == nullptr ? "" : fmt::format(" with {} x {} per GPU", chosen.fit->chosen, chosen.fit->drive.name);
    return answer_.options[chosen.option].name() + with + (best_in_time ? "" : " (late)");
  }

  const ProcurementRequest& in_;
  const OptionProgress& progress_;
  CostCases cases_;
  ProcurementAnswer answer_;
  std::vector<std::vector<DriveChoice>> fits_;       // by option; those that write
  std::vector<std::vector<ReplayedPlan>> replays_;   // by option; those that write, with endless drives
  std::vector<std::vector<std::size_t>> run_place_;  // by option: its cases of "Runs"
  std::pair<bool, bool> with_drives_{};              // of answer_.with_drives: saves memory, is in time
};

}  // namespace

ProcurementAnswer answer_procurement(const ProcurementRequest& request, const OptionProgress& progress) {
  return Procurement(request, progress).answer();
}

}  // namespace spillway::studies
