#include "reports/procurement_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "base/number_text.h"
#include "base/version.h"
#include "reports/grounds.h"
#include "reports/procurement_figures.h"
#include "reports/procurement_sections.h"
#include "studies/offload/result_figures.h"

namespace spillway::reports {
namespace {

constexpr double gibibyte = 1073741824.0;

std::string tokens_text(double tokens) {
  return tokens >= 1e12 ? figure(tokens / 1e12) + " x 10¹² tokens" : figure(tokens / 1e9) + " x 10⁹ tokens";
}

class Writer {
 public:
  Writer(const ProcurementRequest& request, const ProcurementAnswer& answer) : in_(request), answer_(answer) {}

  ReportDocument write() {
    document_.title = "Procurement for " + in_.title;
    document_.subtitle = fmt::format("{} in {} run{}{}; fleet kept for {} months, training {} % of the time",
                                     tokens_text(in_.tokens()), in_.runs.size(), in_.runs.size() == 1 ? "" : "s",
                                     in_.deadline_days > 0 ? " within " + figure(in_.deadline_days) + " days" : "",
                                     figure(in_.period_months), figure(100 * in_.utilisation));
    document_.answer = answer_.chosen ? Verdict::fits : Verdict::does_not_fit;
    document_.verdict = verdict() + how_often() + unknown_prices();
    document_.formulas = answer_.book;
    asked();
    in_short();
    if (in_.budget_usd > 0) document_.sections.push_back(budget_section(in_, answer_));
    if (answer_.today) document_.sections.push_back(today_section(in_, answer_));
    shortlist();
    rent_or_buy();
    drives();
    if (answer_.step) document_.sections.push_back(step_picture_section(*answer_.step, in_.runs.front().name));
    if (auto links = links_section(answer_)) document_.sections.push_back(std::move(*links));
    sensitivity();
    prices();
    provenance();
    left_out();
    constexpr std::array<std::string_view, 5> first = {"What was asked", "In short", "Budget", "Options",
                                                       "Rent or buy"};
    for (ReportSection& part : document_.sections)
      part.is_detail = std::find(first.begin(), first.end(), part.heading) == first.end();
    return std::move(document_);
  }

 private:
  ReportSection& section(std::string heading, bool new_page = false) {
    document_.sections.push_back({std::move(heading), {}, {}, {}, {}, {}, new_page});
    return document_.sections.back();
  }
  [[nodiscard]] double value(const PricedOption& option, const char* field) const {
    return answer_.book.value(answer_.priced, option.place, field);
  }
  // The chosen option, else the cheapest that trains it at all.
  [[nodiscard]] const PricedOption* best() const {
    if (answer_.chosen) return &answer_.options[*answer_.chosen];
    const bool any = !answer_.options.empty() && answer_.options.front().failure.empty();
    return any ? &answer_.options.front() : nullptr;
  }

  [[nodiscard]] std::string verdict() const {
    const PricedOption* option = best();
    if (option == nullptr)
      return fmt::format("No: none of {} options trains the programme; {}.", answer_.options.size(),
                         answer_.options.empty() ? "there are none" : answer_.options.front().failure);
    const std::string what = option->name() + (option->drive ? " with " + option->drive_name() : "");
    if (!answer_.chosen && std::any_of(answer_.options.begin(), answer_.options.end(),
                                       [](const PricedOption& one) { return one.in_time; }))
      return over_budget(in_, answer_);
    if (!answer_.chosen) {
      const bool by_deadline = in_.deadline_days > 0 && in_.deadline_days <= in_.period_days();
      return fmt::format("No: the cheapest option, {}, takes {} days of the {} {}, and no other is fast enough.", what,
                         figure(option->days), figure(in_.days_there_are()),
                         by_deadline ? "there are" : "that the fleet is kept");
    }
    const std::string trains = fmt::format("It trains {} in {} days{}", tokens_text(in_.tokens()), figure(option->days),
                                           in_.deadline_days > 0 ? " of " + figure(in_.deadline_days) : "");
    if (option->is_rented())
      return fmt::format("Yes: rent {}. {} for {} ({} USD per 10⁹ tokens) if it can be rented for these days alone.",
                         what, trains, dollars(option->programme_usd), figure(option->usd_per_billion));
    return fmt::format(
        "Yes, with {}{}: {} to buy, {} more to run and maintain over {} months. {}: {} of that if the fleet is kept as "
        "busy for the rest of the time ({} USD per 10⁹ tokens), all {} if it is not.{}",
        what, rented_alone(*option), dollars(value(*option, "capital")), dollars(value(*option, "running")),
        figure(in_.period_months), trains, dollars(option->programme_usd), figure(option->usd_per_billion),
        dollars(value(*option, "total")), rented_instead(*option));
  }

  // Where nothing else is trained and the rent of these days is less than the purchase.
  [[nodiscard]] std::string rented_alone(const PricedOption& option) const {
    if (!option.price.usd_per_hour) return "";
    const double rent = option.price.usd_per_hour->value / static_cast<double>(option.hardware.gpu_count);
    const double gpu_hours = value(option, "total") / value(option, "usd_per_gpu_hour_alone");
    if (rent * gpu_hours >= value(option, "total")) return "";
    return fmt::format(". For this programme alone rent it: {} for {} days. Bought", dollars(rent * gpu_hours),
                       figure(option.days));
  }

  // Of what is bought: the same machines rented for the programme's days, and the use at which both cost the same.
  [[nodiscard]] std::string rented_instead(const PricedOption& option) const {
    const double alone = value(option, "usd_per_gpu_hour_alone");
    if (!option.price.usd_per_hour)
      return fmt::format(" Rented for these days alone it costs less below {} USD an hour of a GPU.", figure(alone));
    const double rent = option.price.usd_per_hour->value / static_cast<double>(option.hardware.gpu_count);
    const double gpu_hours = value(option, "total") / alone, even = alone / rent * option.days / in_.period_days();
    // Where that is less, the answer began with it.
    std::string words = rented_alone(option).empty()
                            ? fmt::format(" Rented for these days alone, at {} USD an hour of a GPU, it costs {}; ",
                                          figure(rent), dollars(rent * gpu_hours))
                            : fmt::format(" Against a rent of {} USD an hour of a GPU, ", figure(rent));
    return words + (even <= 1 ? fmt::format("bought it costs less from a use of {:.0f} % of the {} months on.",
                                            100 * even, figure(in_.period_months))
                              : fmt::format("rented it costs less however busy it is in {} months.",
                                            figure(in_.period_months)));
  }

  // How often the answer is the cheapest when prices are drawn from their ranges.
  [[nodiscard]] std::string how_often() const {
    if (!answer_.chosen || answer_.odds.empty()) return "";
    const double odds = answer_.odds[*answer_.chosen];
    std::string words =
        fmt::format(" With prices of {} drawn from their ranges it is the cheapest in {:.0f} % of {} draws",
                    in_.prices.date, 100 * odds, number_text(static_cast<double>(price_draws)));
    if (!answer_.deciding_price) return words + "; no single price decides.";
    return words +
           fmt::format("; the price that decides is that of {} (in its lower half {:.0f} %, in its upper {:.0f} %).",
                       answer_.prices[*answer_.deciding_price].name, 100 * answer_.odds_if_low,
                       100 * answer_.odds_if_high);
  }

  [[nodiscard]] std::string unknown_prices() const {
    std::string names;
    for (const UsedPrice& used : answer_.prices)
      if (used.by_chosen && used.price.kind == PriceKind::assumed) names += (names.empty() ? "" : ", ") + used.name;
    return names.empty() ? "" : " No real price is known of: " + names + "; these are assumed.";
  }

  // The title page: what was asked, of when, by what.
  void asked() {
    ReportSection& part = section("What was asked");
    ReportTable table{"", {"", ""}, {}};
    const auto row = [&](const char* name, std::string text) {
      table.rows.push_back({text_cell(name), text_cell(std::move(text))});
    };
    const std::size_t machines = [&] {
      std::set<std::string> names;
      for (const PricedOption& option : answer_.options) names.insert(option.fleet.machine);
      return names.size();
    }();
    row("question",
        fmt::format("Which of {} machines, how many, with which technique and which drives train {}{} at least "
                    "cost?",
                    machines, tokens_text(in_.tokens()),
                    in_.deadline_days > 0 ? " within " + figure(in_.deadline_days) + " days" : ""));
    const PricedOption* option = best();
    row("answer", option == nullptr ? "none of them"
                                    : (answer_.chosen ? "" : "none in time; the cheapest is ") + option->name() +
                                          (option->drive ? " with " + option->drive_name() : ""));
    row("prices of", in_.prices.date);
    row("worked out by", std::string("spillway ") + program_version());
    if (option != nullptr)
      for (std::size_t r = 0; r < option->runs.size(); ++r)
        row(r == 0 ? "fingerprint of the replay" : "", fmt::format("{:016x}", option->runs[r].result.fingerprint));
    part.tables.push_back(std::move(table));
    if (option != nullptr) part.tables.push_back(grounds(*option));
  }

  // Of the option: its replay's inputs, and the prices that it is costed with.
  [[nodiscard]] ReportTable grounds(const PricedOption& option) const {
    ReportTable table =
        grounds_table(option.runs.front().result.provenance, option.runs.front().result.step_time_range);
    for (const auto& word : price_kind_words()) {
      std::string names;
      double low = 1, high = 1;
      for (const UsedPrice& used : answer_.prices) {
        const Price& price = used.price;
        if (!used.by_chosen || price_kind_words()[price.kind].name != word.name || price.value <= 0) continue;
        names += (names.empty() ? "price of " : ", ") + used.name;
        low = std::min(low, price.low / price.value);
        high = std::max(high, price.high / price.value);
      }
      if (!names.empty())
        table.rows.push_back({text_cell(names), text_cell(std::string(word.name)),
                              text_cell(fmt::format("{:+.0f} to {:+.0f} %", (low - 1) * 100, (high - 1) * 100))});
    }
    return table;
  }

  // Owned and rented on one footing: an hour of a GPU.
  void rent_or_buy() {
    ReportTable table{"An hour of a GPU, bought and rented",
                      {"fleet and technique", "how", "USD per GPU hour", "break-even rent, this programme alone",
                       "written off a month USD", "energy MWh in the period", "kWh per 10⁹ tokens"},
                      {}};
    for (std::size_t o = 0, shown = 0; o < answer_.options.size() && shown < static_cast<std::size_t>(in_.shortlist);
         ++o) {
      const PricedOption& option = answer_.options[o];
      if (!option.failure.empty()) continue;
      ++shown;
      const bool rented = option.is_rented();
      table.rows.push_back({text_cell(option.name()), text_cell(rented ? "rented" : "bought"),
                            cell(value(option, "usd_per_gpu_hour")),
                            rented ? text_cell("-") : cell(value(option, "usd_per_gpu_hour_alone")),
                            rented ? text_cell("-") : cell(value(option, "capital_per_month")),
                            cell(value(option, "energy_mwh")), cell(value(option, "kwh_per_billion"))});
    }
    if (table.rows.empty()) return;
    ReportSection& part = section("Rent or buy");
    part.paragraphs.push_back(fmt::format(
        "Bought: all that a fleet costs over its {} months, over its GPUs' hours; the purchase is written off evenly "
        "and "
        "worth nothing then. Where nothing but this programme is trained, renting is cheaper below the rent beside it. "
        "Rented: power is in the rent.",
        figure(in_.period_months)));
    if (const PricedOption* option = best(); option != nullptr && option->price.usd_per_hour)
      part.paragraphs.push_back(
          fmt::format("Rent of a {}: {} USD an hour ({} to {}), of {}: {}.", option->fleet.machine,
                      figure(option->price.usd_per_hour->value), figure(option->price.usd_per_hour->low),
                      figure(option->price.usd_per_hour->high), option->price.usd_per_hour->origin.date,
                      option->price.usd_per_hour->origin.source));
    part.tables.push_back(std::move(table));
  }

  // Every price that an option is costed with: of one date, with what stands behind it.
  void prices() {
    if (answer_.prices.empty()) return;
    ReportSection& part = section("Prices");
    part.paragraphs.push_back(fmt::format(
        "All of {}: a price of another day is brought to it by the index of its class where the list has one, and the "
        "source says by how much; else it stays, and its range is widened by {:.0f} % a year. A price that states no "
        "range "
        "may be off by {:.0f} % (quote), {:.0f} % (list), {:.0f} % (street) or {:.0f} % (assumed). Odds: {} draws, "
        "half of "
        "them below the price and half above, evenly in the logarithm, seed {}.",
        in_.prices.date, 100 * (widening - 1), 100 * (range_factor(PriceKind::quote) - 1),
        100 * (range_factor(PriceKind::list) - 1), 100 * (range_factor(PriceKind::street) - 1),
        100 * (range_factor(PriceKind::assumed) - 1), number_text(static_cast<double>(price_draws)), price_seed));
    ReportTable odds{
        "How often each option is the cheapest", {"fleet and technique", "USD per 10⁹ tokens", "% of draws"}, {}};
    for (std::size_t o = 0; o < answer_.options.size(); ++o)
      if (answer_.odds[o] > 0)
        odds.rows.push_back({text_cell(answer_.options[o].name()), cell(answer_.options[o].usd_per_billion),
                             cell(100 * answer_.odds[o])});
    part.tables.push_back(std::move(odds));
    ReportTable table{"Prices", {"what", "price", "low", "high", "unit", "of", "kind", "for", "source"}, {}};
    for (const UsedPrice& used : answer_.prices) {
      const Price& price = used.price;
      table.rows.push_back({text_cell(used.name), cell(price.value), cell(price.low), cell(price.high),
                            text_cell(used.unit), text_cell(price.origin.date),
                            text_cell(std::string(price_kind_words()[price.kind].name)), count(price.quantity),
                            text_cell(price.origin.source)});
    }
    part.tables.push_back(std::move(table));
  }

  void in_short() {
    const PricedOption* option = best();
    if (option == nullptr) return;
    ReportSection& part = section("In short");
    ReportTable table{option->name(), {"figure", "value", "unit"}, {}};
    const auto row = [&](const char* label, double number, const char* unit) {
      table.rows.push_back({text_cell(label), cell(number), text_cell(unit)});
    };
    row("machines", value(*option, "machines"), "");
    row("programme, pauses included", option->days, "days");
    if (in_.deadline_days > 0) row("left before the deadline", in_.deadline_days - option->days, "days");
    row("capital", value(*option, "capital") / 1e6, "million USD");
    row("running cost over the period", value(*option, "running") / 1e6, "million USD");
    row("power while it trains, facility included", value(*option, "power_kw"), "kW");
    const double joules = energy_of_step(*option);
    row("energy of a step", joules < 1e6 ? joules / 1e3 : joules / 1e6, joules < 1e6 ? "kJ" : "MJ");
    row("cost per 10⁹ trained tokens, the fleet kept busy for the whole period", option->usd_per_billion, "USD");
    if (!option->is_rented())
      row("cost per 10⁹ trained tokens, nothing else trained on it", value(*option, "usd_per_billion_alone"), "USD");
    if (option->drive) {
      row("drives in use", value(*option, "drives"), "");
      row("life of a drive of the first set, written to without a pause", value(*option, "drive_life_years"), "years");
      row("replacements of each drive in the period", value(*option, "replacements"), "");
      row("drives' share of the cost per 10⁹ tokens", value(*option, "drive_usd_per_billion"), "USD");
    }
    part.tables.push_back(std::move(table));
    for (std::size_t r = 0; r < option->runs.size(); ++r) {
      const RunReplay& run = option->runs[r];
      part.items.push_back(fmt::format(
          "{}: layout {}; step of {} s (80 % of steps like it: {}), {} % of the GPUs' peak, {} of {} GiB of memory; "
          "bound by {}.",
          in_.runs.size() > 1 ? in_.runs[r].name : "Plan", option->fleet.plans[r].candidate.name,
          figure(run.step_seconds()), range_cell(run.result.step_time_range, run.step_seconds()),
          figure(100 * run.result.mfu), figure(in_gib(run.result.memory.peak_reserved)),
          figure(in_gib(run.result.memory.capacity)), describe(run.result.binding)));
    }
    add_runner_up(*option, part);
    add_drives_or_not(*option, part);
    part.items.push_back(how_sure());
  }

  [[nodiscard]] double energy_of_step(const PricedOption& option) const {
    double joules = 0;
    const double watts = value(option, "power_kw") * 1000;
    for (const RunReplay& run : option.runs) joules = std::max(joules, watts * run.step_seconds());
    return joules;
  }

  void add_runner_up(const PricedOption& option, ReportSection& part) const {
    for (const PricedOption& other : answer_.options) {
      if (&other == &option || !other.failure.empty()) continue;
      if (other.in_time != option.in_time || other.in_budget != option.in_budget) continue;
      const double more = other.usd_per_billion / option.usd_per_billion - 1;
      part.items.push_back(fmt::format(
          "Next: {}, {} USD per 10⁹ tokens ({} % more) in {} days{}.", other.name(), figure(other.usd_per_billion),
          number_text(std::round(1000 * more) / 10), figure(other.days),
          1 + more < option.busy_range().high / other.busy_range().low
              ? fmt::format(
                    "; too close to tell: its steps may take {:.2f} of the replayed time, and those above {:.2f}",
                    other.busy_range().low, option.busy_range().high)
              : ""));
      return;
    }
  }

  void add_drives_or_not(const PricedOption& option, ReportSection& part) const {
    if (!answer_.with_drives) {
      const bool asked = std::any_of(answer_.options.begin(), answer_.options.end(),
                                     [](const PricedOption& each) { return each.drive.has_value(); });
      const bool none = std::any_of(answer_.options.begin(), answer_.options.end(),
                                    [](const PricedOption& each) { return each.writes_nothing; });
      if (asked) part.items.emplace_back("No set of drives carries what the options with offloading write.");
      if (none)
        part.items.emplace_back(
            "Options named \"which writes nothing\" keep all activations: no drives are bought for them.");
      return;
    }
    const PricedOption& with = answer_.options[*answer_.with_drives];
    if (!with.saves_nothing.empty())
      part.items.push_back(with.saves_nothing +
                           ": no basis for judging drives, and none is at hand that gains memory.");
    if (&with == &option) return;
    part.items.push_back(
        fmt::format("Drives to offload to are not worth it here: {} with {} costs {} USD per 10⁹ tokens{}.",
                    with.name(), with.drive_name(), figure(with.usd_per_billion),
                    with.in_time ? "" : fmt::format(" and takes {} days", figure(with.days))));
  }

  // How far the cost moves, and how much of it rests on assumptions.
  [[nodiscard]] std::string how_sure() const {
    double low = 0, high = 0, base = best()->usd_per_billion;
    std::string widest;
    for (const Sensitivity& one : answer_.sensitivity) {
      low = std::max(low, base - std::min(one.low_usd, one.high_usd));
      high = std::max(high, std::max(one.low_usd, one.high_usd) - base);
      if (widest.empty()) widest = one.input;
    }
    return fmt::format(
        "Any one assumption off as in the table of sensitivities moves the cost by -{:.2g} to +{:.2g} %; most of it: "
        "{}. "
        "Prices "
        "are those of the list, with their days and sources on the page of assumptions.",
        100 * low / base, 100 * high / base, widest);
  }

  void shortlist() {
    ReportSection& part = section("Options", true);
    ReportTable table{"Cheapest first",
                      {"fleet and technique", "layout", "step s", "MFU %", "peak GiB", "days", "in time",
                       "capital million USD", "running million USD", "power kW", "USD per 10⁹ tokens"},
                      {}};
    ReportTable failed{"What can't", {"fleet and technique", "why"}, {}};
    std::size_t shown = 0, able = 0, in_time = 0;
    std::string rest;
    std::size_t left = 0;
    std::set<std::string> machines;  // the best option of each is shown
    for (const PricedOption& option : answer_.options) {
      if (!option.failure.empty()) {
        failed.rows.push_back({text_cell(option.name()), text_cell(option.failure)});
        continue;
      }
      ++able;
      in_time += option.in_time ? 1 : 0;
      const bool is_best = machines.insert(option.fleet.machine).second;
      if (shown++ >= static_cast<std::size_t>(in_.shortlist) && !is_best) {
        ++left;
        rest += (rest.empty() ? "" : "; ") + option.name() + " " + figure(option.usd_per_billion);
        continue;
      }
      double seconds = 0, mfu = 0;
      std::string layout;
      for (std::size_t r = 0; r < option.runs.size(); ++r) {
        seconds = std::max(seconds, option.runs[r].step_seconds());
        mfu = std::max(mfu, option.runs[r].result.mfu);
        layout += (layout.empty() ? "" : "; ") + option.fleet.plans[r].candidate.name;
      }
      table.rows.push_back({text_cell(option.name() + (option.drive ? "; " + option.drive_name() : "")),
                            text_cell(layout), cell(seconds), cell(100 * mfu), cell(in_gib(largest_peak(option.runs))),
                            cell(option.days), text_cell(option.in_time ? "yes" : "no"),
                            cell(value(option, "capital") / 1e6), cell(value(option, "running") / 1e6),
                            cell(value(option, "power_kw")), cell(option.usd_per_billion)});
    }
    std::int64_t screened = 0, replayed = 0;
    for (const PricedOption& option : answer_.options)
      for (const RunPlan& plan : option.fleet.plans) {
        screened += plan.screened;
        replayed += plan.replayed;
      }
    part.paragraphs.push_back(fmt::format(
        "{} option{}; {} can train the programme, {} in time. Their layouts are the fastest of {} estimated, {} of "
        "them "
        "replayed in full (t tensor parallel, p pipeline stages, b sequences of a micro-batch). Capital: machines, "
        "network, drives, switches. Running: energy or rent, maintenance, worn-out drives.{}",
        answer_.options.size(), answer_.options.size() == 1 ? "" : "s", able, in_time, screened, replayed,
        in_.runs.size() > 1 ? " Step and MFU are the largest of the runs'." : ""));
    if (left > 0) part.items.push_back(fmt::format("{} more, dearer (USD per 10⁹ tokens): {}.", left, rest));
    if (!table.rows.empty()) part.tables.push_back(std::move(table));
    if (!failed.rows.empty()) part.tables.push_back(std::move(failed));
  }

  void drives() {
    if (!answer_.with_drives) return;
    const PricedOption& option = answer_.options[*answer_.with_drives];
    ReportSection& part = section("Drives for " + option.name(), true);
    const DriveAnswer& first = option.drive->hardest();
    const Wanted most = wanted();
    part.paragraphs.push_back(fmt::format(
        "Where no drive is waited for, each GPU writes {} GB a step of {} s and reads {} GB back (the rest is asked "
        "for "
        "while it still leaves); in half of the step, as SSDTrain allows, writing takes {} GB/s. A number of drives "
        "qualifies, up to {} per GPU, when step after step it holds this rate, on links and switches for just so many. "
        "Steady is the rate over the bursts of a step once the cache no longer changes; a cache drains between bursts, "
        "so "
        "it may be more than the rate without a pause, full, beside it.",
        figure(giga(most.written)), figure(most.seconds), figure(giga(most.read)),
        figure(giga(first.required_rate / static_cast<double>(first.sharers))), in_.drives_per_gpu));
    part.paragraphs.push_back(fmt::format(
        "Of each model the number is taken that costs least over the period if all this is written. The {} cheapest "
        "models "
        "are then replayed on the machine with them: written, peak, life and cost are those of that replay, whose plan "
        "may "
        "keep more. Years: of the first set, written to step after step, as `spillway run` says; at {} % utilisation "
        "they "
        "are so much longer, which is what replacements go by. Low: its rating as it stands, high: the credit for "
        "sequential writes at its largest.",
        drives_replayed, figure(100 * in_.utilisation)));
    part.items.push_back(what_it_brings(option));
    ReportTable rate{"Rate of each set",
                     {"drives per GPU", "needed GB/s", "caches empty GB/s", "steady GB/s", "full, no pause GB/s",
                      "headroom x", "links GB/s", "PCIe lanes per machine", "switches added", "W per machine"},
                     {}};
    ReportTable life{
        "Life and cost of each set",
        {"drives per GPU", "written GB a step and GPU", "peak GiB", "TB a month, each", "years", "low", "high",
         "replaced", "USD each", "capital million USD", "worn ones million USD", "USD per 10⁹ tokens"},
        {}};
    ReportTable price{"Where their prices are from", {"drive", "USD each", "of", "kind", "source"}, {}};
    std::size_t k = 0;
    std::string others;
    std::map<std::string, std::string> why;
    for (const DriveChoice& fit : answer_.drives) {
      std::string& names = fit.cannot.empty() ? others : why[fit.cannot];
      if (fit.runs.empty())
        names +=
            (names.empty() ? "" : ", ") + (fit.chosen > 0 ? fmt::format("{} x ", fit.chosen) : "") + fit.drive.name;
      else
        add_drive(option, fit, answer_.drive_places[k++], rate, life, price);
    }
    part.tables.push_back(std::move(rate));
    part.tables.push_back(std::move(life));
    part.tables.push_back(std::move(price));
    if (!others.empty())
      part.items.push_back(
          "These carry it too, cost more if all is written that the step wants to write, and were not "
          "replayed: " +
          others + ".");
    ReportTable cannot{"Drives that don't qualify", {"why", "models"}, {}};
    for (const auto& [reason, names] : why)
      if (!names.empty()) cannot.rows.push_back({text_cell(reason), text_cell(names)});
    if (!cannot.rows.empty()) part.tables.push_back(std::move(cannot));
    if (!in_.passed_over.empty())
      part.items.push_back(
          fmt::format("{} more server drives of the library state no rate, no rating, or are older than "
                      "PCIe 4.0.",
                      in_.passed_over.size()));
  }

  // Of the run that wants to write at the highest rate.
  struct Wanted {
    double written = 0, read = 0, seconds = 0;
  };
  [[nodiscard]] Wanted wanted() const {
    if (!answer_.pcie) return {};
    const DriveLoad& load = answer_.pcie->traffic.load;
    return {static_cast<double>(load.written().count()), static_cast<double>(load.read().count()),
            to_seconds(load.step)};
  }

  [[nodiscard]] std::string what_it_brings(const PricedOption& option) const {
    const double with = in_gib(largest_peak(option.runs));
    if (answer_.without_drives.empty())
      return fmt::format("{}: the peak is {} GiB per GPU; the layout can't be replayed without offloading.",
                         option.drive_name(), figure(with));
    const double without = in_gib(largest_peak(answer_.without_drives));
    Verdict all = Verdict::fits;
    for (const RunReplay& run : answer_.without_drives) all = both(all, run.result.verdict());
    return fmt::format(
        "What {} bring: the same layout's peak is {} GiB per GPU without offloading{} and {} GiB with it, "
        "{} GiB less.",
        option.drive_name(), figure(without),
        all <= Verdict::tight     ? ""
        : all == Verdict::unknown ? ", of which nobody knows whether it fits,"
                                  : ", which does not fit,",
        figure(with), figure(std::round(100 * (without - with)) / 100));
  }

  void add_drive(const PricedOption& option, const DriveChoice& fit, std::size_t place, ReportTable& rate,
                 ReportTable& life, ReportTable& prices) const {
    const auto of = [&](const char* field) { return answer_.book.value(answer_.drive_table, place, field); };
    const DriveAnswer& answer = fit.hardest();
    const std::string name =
        fmt::format("{} x {}", fit.chosen, fit.drive.title.empty() ? fit.drive.name : fit.drive.title);
    const double gpus = std::min(static_cast<double>(option.fleet.gpus), of("gpus_per_machine"));
    rate.rows.push_back(
        {text_cell(name), cell(giga(answer.required_rate)), cell(giga(answer.first_rate)),
         cell(giga(answer.steady_rate)), cell(giga(answer.stages.back().rate)),
         cell(answer.steady_rate / answer.required_rate), cell(giga(answer.link_rate)),
         count(static_cast<std::int64_t>(gpus) * fit.chosen * fit.drive.pcie_lanes.value),
         cell(of("switches_per_machine")),
         fit.drive.active_watts ? cell(gpus * of("drives_per_gpu") * of("drive_watts")) : text_cell("-")});
    const Endurance endurance = drive_endurance(fit.drive, in_.endurance);
    const double years = of("drive_life_years");
    double written = 0;
    for (const RunReplay& run : fit.runs) written = std::max(written, run.written_bytes);
    life.rows.push_back({text_cell(name), cell(giga(written)), cell(in_gib(largest_peak(fit.runs))),
                         cell(of("tbw_month")), cell(years), cell(years * endurance.low / endurance.bytes),
                         cell(years * endurance.high / endurance.bytes), cell(of("replacements")),
                         cell(of("drive_price")), cell(of("drive_capital") / 1e6), cell(of("replacement_cost") / 1e6),
                         cell(of("usd_per_billion"))});
    if (const auto price = in_.prices.drive_usd(fit.drive))
      prices.rows.push_back({text_cell(fit.drive.name), cell(price->value), text_cell(price->origin.date),
                             text_cell(std::string(provenance_name(price->origin.provenance))),
                             text_cell(price->origin.source)});
  }

  void sensitivity() {
    const PricedOption* option = best();
    if (option == nullptr || answer_.sensitivity.empty()) return;
    ReportSection& part = section("If the assumptions are wrong", true);
    part.paragraphs.emplace_back(
        "One input at a time is moved, the rest stays. Cheapest: the option that would be chosen then, with the model "
        "of "
        "drive, of those replayed with it, that costs least then; their numbers stay.");
    const auto add = [&](const PricedOption& of, const std::vector<Sensitivity>& moved) {
      swings(of, moved, of.drive ? value(of, "drive_life_years") : 0, option->name(), part);
    };
    add(*option, answer_.sensitivity);
    if (!answer_.drive_sensitivity.empty()) add(answer_.options[*answer_.with_drives], answer_.drive_sensitivity);
  }

  static void swings(const PricedOption& option, const std::vector<Sensitivity>& moved, double years,
                     const std::string& cheapest_now, ReportSection& part) {
    const auto shown = [](double value, const std::string& unit) {
      return unit == "x" ? "x " + figure(value) : figure(value) + (unit.empty() ? "" : " " + unit);
    };
    const std::string name = option.name() + (option.drive ? ", " + option.drive_name() : "");
    ReportTornado cost{"Cost per 10⁹ trained tokens: " + option.name(), "USD", option.usd_per_billion, {}};
    ReportTornado life{"Life of a drive: " + option.drive_name(), "years", years, {}};
    ReportTable table{
        "Sensitivity of " + name,
        {"input", "low", "high", "USD per 10⁹ tokens if low", "if high", "cheapest if low", "cheapest if high"},
        {}};
    if (option.drive) table.columns.insert(table.columns.begin() + 5, {"drive years if low", "drive years if high"});
    for (const Sensitivity& one : moved) {
      const std::string low = shown(one.low, one.unit), high = shown(one.high, one.unit);
      cost.swings.push_back({one.input, low, high, one.low_usd, one.high_usd});
      if (option.drive && std::abs(one.high_years - one.low_years) > 1e-9 * one.high_years)
        life.swings.push_back({one.input, low, high, one.low_years, one.high_years});
      const auto cheapest = [&](const std::string& then) {
        return text_cell(then == cheapest_now ? "the same" : then);
      };
      std::vector<ReportCell> row = {text_cell(one.input), text_cell(low), text_cell(high), cell(one.low_usd),
                                     cell(one.high_usd)};
      if (option.drive) row.insert(row.end(), {cell(one.low_years), cell(one.high_years)});
      row.insert(row.end(), {cheapest(one.low_cheapest), cheapest(one.high_cheapest)});
      table.rows.push_back(std::move(row));
    }
    part.tornados.push_back(std::move(cost));
    std::stable_sort(life.swings.begin(), life.swings.end(), [](const ReportSwing& a, const ReportSwing& b) {
      return std::abs(a.high - a.low) > std::abs(b.high - b.low);
    });
    if (!life.swings.empty()) part.tornados.push_back(std::move(life));
    part.tables.push_back(std::move(table));
  }

  void provenance() {
    ReportSection& part = section("Assumptions and where figures are from", true);
    part.paragraphs.emplace_back(
        "Every figure above is worked out from these inputs, from the replays named below, and from the profiles' "
        "leaves; `spillway profile show` prints each leaf with its source. Assumed: nobody vouches for it; ask for an "
        "offer or measure before signing.");
    ReportTable table{"Inputs", {"input", "value", "of", "kind", "source"}, {}};
    const FormulaTable& inputs = answer_.book.tables()[answer_.inputs];
    const auto leaf_row = [&](const std::string& name, const Sourced<double>& leaf, const char* unit) {
      table.rows.push_back({text_cell(name), text_cell(figure(leaf.value) + " " + unit), text_cell(leaf.origin.date),
                            text_cell(std::string(provenance_name(leaf.origin.provenance))),
                            text_cell(leaf.origin.source)});
    };
    const PriceList& prices = in_.prices;
    for (const char* field : {"period_months", "utilisation", "write_amplification", "retention_credit", "used"}) {
      const std::size_t at = inputs.index(field);
      table.rows.push_back({text_cell(inputs.fields[at].label),
                            text_cell(figure(inputs.values[0][at]) + " " + inputs.fields[at].unit), text_cell("-"),
                            text_cell("given"), text_cell(inputs.cases[0].notes.at(field))});
    }
    if (prices.electricity_usd_per_kwh) leaf_row("electricity", *prices.electricity_usd_per_kwh, "USD/kWh");
    if (prices.power_overhead) leaf_row("facility over machine power", *prices.power_overhead, "");
    if (prices.power_idle_share) leaf_row("machine's power at rest, of its most", *prices.power_idle_share, "");
    if (prices.maintenance_per_year) leaf_row("maintenance a year, of the capital", *prices.maintenance_per_year, "");
    if (prices.network_usd_per_gpu) leaf_row("network per GPU", *prices.network_usd_per_gpu, "USD");
    if (prices.pcie_switch_usd) leaf_row("PCIe switch", *prices.pcie_switch_usd, "USD");
    add_machine_prices(leaf_row);
    if (answer_.with_drives) {
      const DriveChoice& fit = *answer_.options[*answer_.with_drives].drive;
      if (const auto price = prices.drive_usd(fit.drive)) leaf_row(fit.drive.name, *price, "USD");
    }
    part.tables.push_back(std::move(table));
    for (const std::string& warning : answer_.warnings) part.items.push_back("Warning: " + warning + ".");
    add_drive_leaves(part);
    add_replay(part);
  }

  template <class Row>
  void add_machine_prices(const Row& row) const {
    std::set<std::string> told;
    for (const PricedOption& option : answer_.options) {
      if (!told.insert(option.fleet.machine).second) continue;
      if (option.price.price_usd)
        row(option.fleet.machine, *option.price.price_usd, "USD");
      else if (option.price.usd_per_hour)
        row(option.fleet.machine, *option.price.usd_per_hour, "USD/h");
    }
  }

  void add_drive_leaves(ReportSection& part) const {
    if (!answer_.with_drives) return;
    const DriveChoice& fit = *answer_.options[*answer_.with_drives].drive;
    const Endurance endurance = drive_endurance(fit.drive, in_.endurance);
    part.items.push_back(fmt::format("{}: takes {} PB of these writes, all options counted; {}.", fit.drive.name,
                                     figure(endurance.bytes / 1e15), endurance.basis));
    for (const std::string& text : endurance.assumptions) part.items.push_back(fit.drive.name + ": " + text + ".");
    std::string assumed;
    const auto add = [&assumed](const char* name, const auto& leaf) {
      if (leaf && leaf->origin.provenance == OriginKind::assumed)
        assumed += (assumed.empty() ? "" : ", ") + std::string(name);
    };
    add("write rate", fit.drive.write_bandwidth);
    add("steady write rate", fit.drive.steady_write_bandwidth);
    add("interference of reads and writes", fit.drive.read_write_interference);
    add("power", fit.drive.active_watts);
    if (!fit.drive.active_watts)
      part.items.push_back(fit.drive.name + ": its profile states no power; 0 W is counted.");
    if (!assumed.empty()) part.items.push_back(fit.drive.name + ": assumed in its profile: " + assumed + ".");
  }

  // The inputs that mattered to the chosen replay, those that nobody measured or published first.
  void add_replay(ReportSection& part) const {
    const PricedOption* option = best();
    if (option == nullptr) return;
    part.items.push_back("Power of a machine: " + option->power_from +
                         ", weighed by the share of the step in which its "
                         "GPUs compute.");
    std::map<std::string, int> kinds;
    for (const InputProvenance& input : option->runs.front().result.provenance) ++kinds[input.provenance];
    std::string counts;
    for (const auto& [kind, n] : kinds) counts += (counts.empty() ? "" : ", ") + fmt::format("{} {}", n, kind);
    for (std::size_t r = 0; r < option->runs.size(); ++r)
      part.items.push_back(fmt::format("Replay of {}: fingerprint {:016x}.",
                                       in_.runs.size() > 1 ? in_.runs[r].name : option->name(),
                                       option->runs[r].result.fingerprint));
    ReportTable table{"What the replay rests on (" + counts + ")", {"input", "value", "kind", "source"}, {}};
    for (const bool assumed : {true, false})
      for (const InputProvenance& input : option->runs.front().result.provenance)
        if ((input.provenance == "assumed") == assumed)
          table.rows.push_back(
              {text_cell(input.name), text_cell(input.value), text_cell(input.provenance), text_cell(input.source)});
    if (!table.rows.empty()) part.tables.push_back(std::move(table));
  }

  void left_out() {
    ReportSection& part = section("Not modelled");
    part.items = {
        "Failures and restarts, beyond the utilisation given; drives that fail before they are worn out; spares.",
        "Checkpoints, data loading and evaluation: neither their time nor their writes to drives.",
        "Interest, tax, resale, staff, floor space; prices that move within the period; discounts for many.",
        "Other jobs on the same network, switches or drives; ranks that differ from one another.",
        "Drives that came with the machines: drives for offloading are counted as bought on top.",
        "Heat, where a drive's profile states no thermal duty; power caps of GPUs.",
        "Quality of the model trained: a step counts for its tokens, whatever its batch."};
  }

  const ProcurementRequest& in_;
  const ProcurementAnswer& answer_;
  ReportDocument document_;
};

}  // namespace

ReportDocument procurement_report(const ProcurementRequest& request, const ProcurementAnswer& answer) {
  return Writer(request, answer).write();
}

}  // namespace spillway::reports
