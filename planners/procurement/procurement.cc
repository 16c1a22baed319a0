#include "planners/procurement/procurement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "hwprofiles/profile_library.h"
#include "planners/machine_power.h"
#include "planners/procurement/cost_model.h"
#include "traces/base/input_error.h"

namespace spillway {
namespace {

LiveGiven number(double value) { return {value, {}, 1}; }

std::string told(const Sourced<double>& price) {
  return fmt::format("{}, {}: {}", price.origin.date, provenance_name(price.origin.provenance), price.origin.source);
}

double value_or(const Maybe<double>& leaf, double otherwise) { return leaf ? leaf->value : otherwise; }

class Procurement {
 public:
  Procurement(const Programme& programme, const OptionProgress& progress) : in_(programme), progress_(progress) {}

  ProcurementAnswer answer() {
    std::vector<FleetOption> fleets = find_options(in_, progress_);
    add_inputs();
    for (std::size_t i = 0; i < fleets.size(); ++i) {
      if (progress_ && !progress_("replaying " + fleets[i].machine, i, fleets.size())) throw Cancelled();
      answer_.options.push_back(replayed(std::move(fleets[i])));
    }
    add_runs();
    choose_drives();
    price_options();
    choose();
    add_drive_table();
    add_pcie();
    add_sensitivity();
    return std::move(answer_);
  }

 private:
  // ---- replays ----

  PricedOption replayed(FleetOption fleet) {
    PricedOption option;
    option.fleet = std::move(fleet);
    option.failure = option.fleet.failure;
    option.hardware = ProfileLibrary::shared().load_system(option.fleet.machine);
    std::vector<ReplayedPlan> plans;
    for (const RunPlan& plan : option.fleet.plans) {
      plans.push_back(replay_plan_of(plan, nullptr, 0));
      option.hardware = plans.back().loaded.hardware;
      option.runs.push_back(plans.back().run);
    }
    const bool writes =
        std::any_of(option.runs.begin(), option.runs.end(), [](const RunReplay& run) { return run.written_bytes > 0; });
    if (writes) {
      std::vector<DriveChoice> fits = fit_drives(in_, plans);
      fits_.push_back(std::move(fits));
      option.drive.emplace();
      replays_.push_back(std::move(plans));
    } else {
      fits_.emplace_back();
      replays_.emplace_back();
    }
    set_power(option);
    option.price = in_.prices.machine(option.hardware);
    if (option.failure.empty() && !option.price.price_usd && !option.price.usd_per_hour)
      option.failure = "no price of " + option.fleet.machine + ": add it to the price list";
    return option;
  }

  void set_power(PricedOption& option) const {
    double busy = 0, seconds = 0;
    for (const RunReplay& run : option.runs) {
      busy += run.busy * run.step_seconds;
      seconds += run.step_seconds;
    }
    const MachinePower power = machine_power(option.hardware, in_.prices, seconds > 0 ? busy / seconds : 1);
    option.machine_watts = power.training_watts;
    option.idle_watts = power.idle_watts;
    option.power_from = power.from;
  }

  // ---- tables ----

  void add_inputs() {
    LiveTable table{"Inputs", "What all options share; change a shaded cell and everything follows", {}, {}, {}};
    LiveCase shared{"value", {}, {}};
    const auto give = [&](const std::string& name, double value, const std::string& from) {
      const auto& fields = cost_fields();
      const auto field = std::find_if(fields.begin(), fields.end(), [&](const LiveField& f) { return f.name == name; });
      SPILLWAY_ASSERT(field != fields.end());
      table.fields.push_back({name, field->label, field->unit, ""});
      shared.given[name] = number(value);
      shared.notes[name] = from;
    };
    const auto price = [&](const std::string& name, const Maybe<double>& leaf) {
      give(name, value_or(leaf, name == "power_overhead" ? 1 : 0), leaf ? told(*leaf) : "not in the price list");
    };
    give("tokens", in_.tokens(), "the programme");
    give("period_months", in_.period_months, "the programme");
    give("utilisation", in_.utilisation, "the programme; the rest is repairs, restarts, evaluation");
    price("electricity", in_.prices.electricity_usd_per_kwh);
    price("power_overhead", in_.prices.power_overhead);
    price("maintenance", in_.prices.maintenance_per_year);
    give("write_amplification", in_.endurance.write_amplification, "the programme; 1: files written and freed whole");
    give("retention_credit", retention_factor(in_.endurance.retention),
         in_.endurance.retention == RetentionRelaxation::none ? "as rated" : "published, offered by no vendor");
    give("used", in_.endurance.used_fraction, "the programme");
    give("machine_price_factor", 1, "for what-if");
    give("drive_price_factor", 1, "for what-if");
    price("network_price", in_.prices.network_usd_per_gpu);
    price("switch_price", in_.prices.pcie_switch_usd);
    table.cases.push_back(std::move(shared));
    answer_.inputs = answer_.book.add(std::move(table));
  }

  void add_runs() {
    LiveTable table{"Runs", "How long each run takes on each fleet", run_fields(), {}, {}};
    for (std::size_t o = 0; o < answer_.options.size(); ++o) {
      const PricedOption& option = answer_.options[o];
      run_place_.emplace_back();
      for (std::size_t r = 0; r < option.runs.size(); ++r) {
        run_place_.back().push_back(table.cases.size());
        table.cases.push_back(run_case(option, r));
      }
    }
    // Drives may stretch a step: the table is put into the book once they are chosen.
    pending_runs_ = std::move(table);
  }

  [[nodiscard]] LiveCase run_case(const PricedOption& option, std::size_t r) const {
    const RunReplay& run = option.runs[r];
    LiveCase made{option.name() + (in_.runs.size() > 1 ? ": " + in_.runs[r].name : ""), {}, {}};
    made.given = {{"tokens", number(in_.runs[r].tokens)},
                  {"tokens_per_step", number(run.tokens_per_step)},
                  {"step_seconds", number(run.step_seconds)},
                  {"written_gb", number(run.written_bytes / 1e9)}};
    return made;
  }

  // What is given of an option with `count` of a drive per GPU (null: none). Runs come from `runs`, a table of `book`.
  [[nodiscard]] LiveCase cost_case(const PricedOption& option, const NvmeProfile* drive, std::int64_t count,
                                   std::size_t runs_table, const std::vector<std::size_t>& places) const {
    LiveCase made{option.name(), {}, {}};
    for (const std::string& name : shared_cost_fields()) made.given[name] = {0, {{answer_.inputs, 0, name}}, 1};
    const bool buys = option.price.price_usd.has_value();
    made.given["gpus"] = number(static_cast<double>(option.fleet.gpus));
    made.given["gpus_per_machine"] = number(static_cast<double>(option.hardware.gpu_count));
    made.given["machine_price"] = number(buys ? option.price.price_usd->value : 0);
    const bool one_machine = option.fleet.gpus <= option.hardware.gpu_count;
    made.given["network_price"] =
        buys && !one_machine ? LiveGiven{0, {{answer_.inputs, 0, "network_price"}}, 1} : number(0);
    made.given["machine_rent"] = number(buys ? 0 : value_or(option.price.usd_per_hour, 0));
    made.given["pays_power"] = number(buys ? 1 : 0);
    made.given["machine_watts"] = number(option.machine_watts);
    made.given["idle_watts"] = number(option.idle_watts);
    LiveGiven days{0, {}, 1}, written{0, {}, 1};
    for (const std::size_t place : places) {
      days.cells.push_back({runs_table, place, "busy_days"});
      written.cells.push_back({runs_table, place, "written_tb"});
    }
    made.given["busy_days"] = std::move(days);
    made.given["written_tb"] = std::move(written);
    const double endurance = drive != nullptr ? drive_endurance(*drive).bytes / 1e12 : 0;
    const auto usd = drive != nullptr ? in_.prices.drive_usd(*drive) : std::nullopt;
    made.given["drives_per_gpu"] = number(drive != nullptr ? static_cast<double>(count) : 0);
    made.given["drive_price"] = number(value_or(usd, 0));
    made.given["drive_endurance_tb"] = number(drive != nullptr ? endurance : 1);
    made.given["drive_watts"] = number(drive != nullptr ? value_or(drive->active_watts, 0) : 0);
    made.given["switches_per_machine"] =
        number(drive != nullptr ? static_cast<double>(switches(option, *drive, count)) : 0);
    made.given["switch_price"] = {0, {{answer_.inputs, 0, "switch_price"}}, 1};
    return made;
  }

  // Switches for the drives that have no slot in the machine: x16 up, the rest down.
  [[nodiscard]] std::int64_t switches(const PricedOption& option, const NvmeProfile& drive, std::int64_t count) const {
    const HardwareProfile machine = ProfileLibrary::shared().load_system(option.fleet.machine);
    const auto slots = std::count_if(machine.host.pcie.begin(), machine.host.pcie.end(),
                                     [](const PcieNode& node) { return node.kind == PcieNodeKind::drive_slot; });
    const std::int64_t gpus = std::min(option.fleet.gpus, machine.gpu_count);
    const std::int64_t more = std::max<std::int64_t>(0, count * gpus - slots) * drive.pcie_lanes.value;
    const auto down = static_cast<std::int64_t>(value_or(in_.prices.pcie_switch_lanes, 96)) - 16;
    return (more + down - 1) / down;
  }

  // ---- drives ----

  // The number of each model with the least cost; the cheapest model of all; a last replay with it.
  void choose_drives() {
    for (std::size_t o = 0; o < answer_.options.size(); ++o) {
      PricedOption& option = answer_.options[o];
      if (!option.drive || !option.failure.empty()) continue;
      std::vector<DriveChoice>& fits = fits_[o];
      order_by_cost(option, fits);
      if (fits.empty() || fits.front().chosen == 0) {
        option.failure =
            fits.empty() ? "no drives are offered for what it writes"
                         : "no drive carries what it writes: " + fits.front().drive.name + ": " + fits.front().cannot;
        continue;
      }
      option.drive = fits.front();
      for (std::size_t r = 0; r < option.runs.size(); ++r) {
        const ReplayedPlan last = replay_plan_of(option.fleet.plans[r], &option.drive->drive, option.drive->chosen);
        const RunReplay wanted = std::exchange(option.runs[r], last.run);
        // Wear is that of what the step wants to write, whatever this drive's rate lets it.
        option.runs[r].written_bytes = wanted.written_bytes;
        option.runs[r].read_bytes = wanted.read_bytes;
        option.hardware = last.loaded.hardware;
        if (!last.ran.result.fits()) option.failure = "out of memory with " + option.drive_name();
      }
      set_power(option);
      for (std::size_t r = 0; r < option.runs.size(); ++r) pending_runs_.cases[run_place_[o][r]] = run_case(option, r);
    }
    answer_.runs = answer_.book.add(std::move(pending_runs_));
  }

  void order_by_cost(const PricedOption& option, std::vector<DriveChoice>& fits) const {
    LiveBook book = answer_.book;
    LiveTable runs{"Runs", "", run_fields(), {}, {}};
    std::vector<std::size_t> places;
    for (std::size_t r = 0; r < option.runs.size(); ++r) {
      places.push_back(r);
      runs.cases.push_back(run_case(option, r));
    }
    const std::size_t runs_table = book.add(std::move(runs));
    LiveTable table{"Drives", "", cost_fields(), {}, {}};
    struct Try {
      std::size_t fit;
      std::int64_t count;
    };
    std::vector<Try> tries;
    for (std::size_t f = 0; f < fits.size(); ++f) {
      if (!fits[f].cannot.empty()) continue;
      if (!in_.prices.drive_usd(fits[f].drive)) {
        fits[f].cannot = "no price of it";
        continue;
      }
      for (std::int64_t n = fits[f].least; n <= in_.drives_per_gpu; ++n) {
        tries.push_back({f, n});
        table.cases.push_back(cost_case(option, &fits[f].drive, n, runs_table, places));
      }
    }
    const std::size_t at = book.add(std::move(table));
    std::vector<double> cost(fits.size(), std::numeric_limits<double>::infinity());
    for (std::size_t t = 0; t < tries.size(); ++t) {
      const double usd = book.value(at, t, "usd_per_billion");
      if (usd >= cost[tries[t].fit]) continue;
      cost[tries[t].fit] = usd;
      fits[tries[t].fit].chosen = tries[t].count;
    }
    std::vector<std::size_t> order(fits.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return cost[a] < cost[b]; });
    std::vector<DriveChoice> sorted;
    for (const std::size_t i : order) sorted.push_back(std::move(fits[i]));
    fits = std::move(sorted);
  }

  // ---- cost ----

  void price_options() {
    LiveTable table{"Options", "Cost of every fleet that can train the programme", cost_fields(), {}, {}};
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
      option.in_time = in_.deadline_days <= 0 || option.days <= in_.deadline_days;
    }
  }

  [[nodiscard]] LiveCase case_of(std::size_t o) const {
    const PricedOption& option = answer_.options[o];
    LiveCase made = cost_case(option, option.drive ? &option.drive->drive : nullptr,
                              option.drive ? option.drive->chosen : 0, answer_.runs, run_place_[o]);
    if (option.drive) made.name += "; " + option.drive_name();
    return made;
  }

  void choose() {
    std::vector<std::size_t> order(answer_.options.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto rank = [&](std::size_t o) {
      const PricedOption& option = answer_.options[o];
      return option.failure.empty() ? option.usd_per_billion : std::numeric_limits<double>::infinity();
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
      if (option.in_time && !answer_.chosen) answer_.chosen = o;
      const bool better = option.drive && (!answer_.with_drives || (option.in_time && !in_time_with_drives_));
      if (!better) continue;
      answer_.with_drives = o;
      in_time_with_drives_ = option.in_time;
    }
  }

  // ---- parts of the report ----

  void add_drive_table() {
    if (!answer_.with_drives) return;
    const std::size_t o = *answer_.with_drives;
    std::vector<DriveChoice>& fits = fits_[o];
    answer_for_chosen(in_, replays_[o], fits);
    answer_.options[o].drive = fits.front();
    LiveTable table{"Drives", "Every drive that carries " + answer_.options[o].name(), cost_fields(), {}, {}};
    for (const DriveChoice& fit : fits) {
      if (fit.chosen == 0) continue;
      answer_.drive_places.push_back(table.cases.size());
      LiveCase made = cost_case(answer_.options[o], &fit.drive, fit.chosen, answer_.runs, run_place_[o]);
      made.name = fmt::format("{} x {}", fit.chosen, fit.drive.name);
      table.cases.push_back(std::move(made));
    }
    answer_.drives = fits;
    answer_.drive_table = answer_.book.add(std::move(table));
  }

  void add_pcie() {
    if (!answer_.with_drives) return;
    const PricedOption& option = answer_.options[*answer_.with_drives];
    const std::vector<ReplayedPlan>& plans = replays_[*answer_.with_drives];
    const auto most = std::max_element(plans.begin(), plans.end(), [](const ReplayedPlan& a, const ReplayedPlan& b) {
      return a.run.written_bytes * b.run.step_seconds < b.run.written_bytes * a.run.step_seconds;
    });
    SsdQuestion question;
    question.drives = {option.drive->drive};
    question.count = option.drive->chosen;
    question.route = in_.route;
    question.endurance = in_.endurance;
    answer_.pcie = answer_pcie(most->loaded, most->ran, question);
  }

  struct Swing {
    std::string input, unit, field;
    double low = 0, high = 0;  // what the field becomes
    bool is_factor = false;    // they multiply it
    bool of_drives = false;    // has a meaning only where drives are written to
  };

  [[nodiscard]] std::vector<Swing> swings() const {
    const auto shared = [this](const char* field) { return answer_.book.value(answer_.inputs, 0, field); };
    const double wa = in_.endurance.write_amplification;
    return {
        {"machine price or rent", "x", "machine_price_factor", 0.8, 1.2, false, false},
        {"drive price", "x", "drive_price_factor", 0.5, 2, false, true},
        {"utilisation", "", "utilisation", shared("utilisation") * 0.8, std::min(1.0, shared("utilisation") * 1.1),
         false, false},
        {"step time", "x", "busy_days", 0.9, 1.1, true, false},
        {"period kept", "months", "period_months", in_.period_months * 2 / 3, in_.period_months * 4 / 3, false, false},
        {"electricity", "USD/kWh", "electricity", shared("electricity") * 0.5, shared("electricity") * 2, false, false},
        {"facility overhead (PUE)", "", "power_overhead", 1.1, 1.6, false, false},
        {"maintenance a year", "", "maintenance", 0, shared("maintenance") * 2, false, false},
        {"write amplification", "x", "write_amplification", 1, std::max(3.0, wa * 2), false, true},
        {"endurance for the writes", "x", "drive_endurance_tb", endurance_low_, endurance_high_, true, true},
        {"credit for short retention", "x", "retention_credit", 1, 6.67, false, true}};
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
    if (base.drive) {
      const Endurance endurance = drive_endurance(base.drive->drive);
      endurance_low_ = endurance.low / endurance.bytes;
      endurance_high_ = endurance.high / endurance.bytes;
    }
    LiveTable table{sheet, base.name() + " with one input moved at a time", cost_fields(), {}, {}};
    std::vector<Sensitivity> found;
    for (const Swing& swing : swings()) {
      if ((swing.of_drives && !base.drive) || swing.low == swing.high) continue;
      found.push_back({swing.input, swing.unit, swing.low, swing.high, 0, 0, 0, 0, cheapest_under(swing, swing.low),
                       cheapest_under(swing, swing.high)});
      for (const double value : {swing.low, swing.high}) {
        LiveCase moved = case_of(of);
        moved.name = fmt::format("{} {:.4g} {}", swing.input, value, swing.unit);
        move(moved, swing, value);
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

  static void move(LiveCase& moved, const Swing& swing, double value) {
    LiveGiven& given = moved.given.at(swing.field);
    if (!swing.is_factor)
      given = number(value);
    else if (given.cells.empty())
      given.number *= value;
    else
      given.factor *= value;
  }

  // In time, else of all.
  [[nodiscard]] std::string cheapest_under(const Swing& swing, double value) const {
    LiveBook book = answer_.book;
    LiveTable table{"Moved", "", cost_fields(), {}, {}};
    std::vector<std::size_t> which;
    for (std::size_t o = 0; o < answer_.options.size(); ++o) {
      if (!answer_.options[o].failure.empty()) continue;
      LiveCase moved = case_of(o);
      move(moved, swing, value);
      table.cases.push_back(std::move(moved));
      which.push_back(o);
    }
    const std::size_t at = book.add(std::move(table));
    std::optional<std::size_t> best;
    bool best_in_time = false;
    for (std::size_t c = 0; c < which.size(); ++c) {
      const bool in_time = in_.deadline_days <= 0 || book.value(at, c, "days") <= in_.deadline_days;
      const bool better =
          !best || (in_time && !best_in_time) ||
          (in_time == best_in_time && book.value(at, c, "usd_per_billion") < book.value(at, *best, "usd_per_billion"));
      if (!better) continue;
      best = c;
      best_in_time = in_time;
    }
    return answer_.options[which[*best]].name() + (best_in_time ? "" : " (late)");
  }

  const Programme& in_;
  const OptionProgress& progress_;
  ProcurementAnswer answer_;
  std::vector<std::vector<DriveChoice>> fits_;       // by option; those that write
  std::vector<std::vector<ReplayedPlan>> replays_;   // by option; those that write, with endless drives
  std::vector<std::vector<std::size_t>> run_place_;  // by option: its cases of "Runs"
  LiveTable pending_runs_;
  bool in_time_with_drives_ = false;
  double endurance_low_ = 1, endurance_high_ = 1;
};

}  // namespace

std::string PricedOption::name() const {
  const std::int64_t machines = (fleet.gpus + hardware.gpu_count - 1) / hardware.gpu_count;
  return fmt::format("{} x {} ({} GPUs), {}", machines, fleet.machine, fleet.gpus, fleet.technique);
}

std::string PricedOption::drive_name() const {
  return drive && drive->chosen > 0 ? fmt::format("{} x {} per GPU", drive->chosen, drive->drive.name) : "";
}

ProcurementAnswer answer_procurement(const Programme& programme, const OptionProgress& progress) {
  return Procurement(programme, progress).answer();
}

}  // namespace spillway
