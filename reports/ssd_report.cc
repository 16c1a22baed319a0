#include "reports/ssd_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/number_text.h"
#include "models/spec/activation_volume.h"
#include "reports/grounds.h"
#include "reports/judged_tests.h"
#include "studies/answer/answer.h"
#include "studies/offload/result_figures.h"

namespace spillway::reports {
namespace {

constexpr std::size_t bins = 48;

using spillway::reports::giga;
double giga(Bytes bytes) { return giga(static_cast<double>(bytes.count())); }

std::string drive_name(const DriveAnswer& drive) {
  const std::string of = drive.sharers == 1 ? "per GPU" : fmt::format("per {} GPUs", drive.sharers);
  return fmt::format("{} x {} {}", drive.count, drive.drive.title.empty() ? drive.drive.name : drive.drive.title, of);
}

std::string time_text(double seconds) {
  return seconds < 1 ? fmt::format("{:.4g} ms", seconds * 1e3) : fmt::format("{:.4g} s", seconds);
}

std::string years_text(double years) {
  if (std::isinf(years)) return "unlimited";
  return years < 1 ? fmt::format("{:.3g} days", years * 365)
                   : (years < 100 ? fmt::format("{:.3g}", years) : number_text(std::round(years))) + " years";
}

ReportCell count_cell(std::int64_t count) {
  return count > 0 ? number_cell(static_cast<double>(count)) : text_cell("-");
}

ReportCell life_count_cell(const DriveAnswer& drive) {
  if (drive.count_for_life > 0 || drive.any_count_for_life <= 0) return count_cell(drive.count_for_life);
  return text_cell(fmt::format("none, {} needed", number_text(drive.any_count_for_life)));
}

// Bytes that come due in each bin of the step, as a rate in GB/s.
ReportSeries course(const DriveLoad& load, std::string name) {
  const std::vector<double> due = traffic_course(load, true, bins);
  const double step = to_seconds(load.step);
  ReportSeries series{std::move(name), {}, {}, false};
  for (std::size_t bin = 0; bin < bins; ++bin)
    for (const std::size_t end : {0U, 1U}) {
      series.x.push_back(static_cast<double>(bin + end) * step / static_cast<double>(bins));
      series.y.push_back(giga(due[bin]));
    }
  return series;
}

ReportSeries level(std::string name, double from, double to, double rate, bool is_limit) {
  return {std::move(name), {from, to}, {rate, rate}, is_limit};
}

class SsdReport {
 public:
  SsdReport(const LoadedScenario& loaded, const SsdAnswer& answer, const SsdQuestion& question)
      : loaded_(loaded), answer_(answer), question_(question), load_(answer.traffic.load) {}

  ReportDocument write() {
    document_.title =
        "Drives for " + (loaded_.scenario.title.empty() ? loaded_.scenario.trace : loaded_.scenario.title);
    document_.subtitle = fmt::format("{}; {} GPU{}; step of {} before any drive is waited for", machine(), answer_.gpus,
                                     answer_.gpus == 1 ? "" : "s", time_text(to_seconds(load_.step)));
    document_.answer = answer_.is_yes() ? Verdict::fits : Verdict::does_not_fit;
    document_.verdict = verdict();
    verdicts();
    purchase();
    step_on_drives();
    traffic();
    if (!answer_.drives.empty() && load_.written() > Bytes(0)) {
      rates();
      lives();
      left_out();
    }
    assumptions();
    return std::move(document_);
  }

 private:
  [[nodiscard]] std::string machine() const {
    return loaded_.hardware.title.empty() ? loaded_.hardware.name : loaded_.hardware.title;
  }

  [[nodiscard]] std::string verdict() const {
    if (answer_.traffic.to_host > Bytes(0))
      return fmt::format(
          "No: {} stores in host memory what it moves, {:.4g} GB a step, so drives would be bought for nothing.",
          answer_.traffic.technique, giga(answer_.traffic.to_host));
    if (load_.written() == Bytes(0) && answer_.kept_by_plan > Bytes(0))
      return fmt::format(
          "No: {} writes nothing here, so drives would be bought for nothing: it keeps, or computes again, the {:.4g} "
          "GB of each step that it might move. offload.technique=ssdtrain with offload.adaptive=false moves them all.",
          answer_.traffic.technique, giga(answer_.kept_by_plan));
    if (answer_.drives.empty()) return "No: this machine has no drive. Name some with --drives.";
    if (load_.written() == Bytes(0)) return "Yes: this step keeps no activation large enough to be offloaded.";
    const auto good = std::count_if(answer_.drives.begin(), answer_.drives.end(),
                                    [](const DriveAnswer& drive) { return drive.is_yes(); });
    if (good > 0)
      return fmt::format("Yes: {} of {} sets of drives hold {:.4g} GB/s for each GPU and last {:.3g} years.", good,
                         answer_.drives.size(), giga(answer_.required_rate), question_.life_years);
    return answer_.drives.size() == 1 ? why_not(answer_.drives.front()) : why_none();
  }

  // By the tests that fail; a rate that holds is said beside them.
  [[nodiscard]] std::string why_not(const DriveAnswer& drive) const {
    if (!drive.cannot_tell.empty()) return fmt::format("No: {}: {}.", drive_name(drive), drive.verdict(0));
    const std::vector<JudgedTest> tests = drive.tests(question_.life_years);
    std::string words = fmt::format("No: {} fail by {}: {}.", drive_name(drive), failing(tests), why_failing(tests));
    if (!drive.lasts) words += fmt::format(" {:.3g} years are asked for.", question_.life_years);
    if (drive.holds_steady)
      words += fmt::format(" They hold the {:.4g} GB/s of each GPU.", giga(answer_.required_rate));
    return words;
  }

  [[nodiscard]] std::string why_none() const {
    std::vector<std::pair<std::string, int>> failures;
    const auto count = [&failures](const std::string& name) {
      const auto found = std::find_if(failures.begin(), failures.end(), [&](const auto& f) { return f.first == name; });
      ++(found == failures.end() ? failures.emplace_back(name, 0) : *found).second;
    };
    for (const DriveAnswer& drive : answer_.drives) {
      if (!drive.cannot_tell.empty())
        count("not known");
      else
        for (const JudgedTest& test : drive.tests(question_.life_years))
          if (!test.holds) count(test.name);
    }
    std::string words =
        fmt::format("No: none of {} sets of drives passes every test. Of them fail by ", answer_.drives.size());
    for (const auto& [name, sets] : failures)
      words += fmt::format("{}{}: {}", name == failures.front().first ? "" : "; ", name, sets);
    return words + ".";
  }

  ReportSection& section(std::string heading, bool is_detail = false) {
    document_.sections.push_back({std::move(heading), {}, {}, {}, {}});
    document_.sections.back().is_detail = is_detail;
    return document_.sections.back();
  }

  void verdicts() {
    if (answer_.drives.empty() || load_.written() == Bytes(0)) return;
    ReportSection& part = section("Each set of drives");
    for (const DriveAnswer& drive : answer_.drives)
      part.items.push_back(drive_name(drive) + ": " + drive.verdict(question_.life_years));
    ReportTable judged{"Tests of each set", {"drives per set", "test", "asked", "given", "holds"}, {}};
    for (const DriveAnswer& drive : answer_.drives)
      if (drive.cannot_tell.empty())
        add_tests(drive.tests(question_.life_years), {text_cell(drive_name(drive))}, judged);
    if (!judged.rows.empty()) part.tables.push_back(std::move(judged));
  }

  // How many drives do, whatever number was asked about.
  void purchase() {
    if (load_.written() == Bytes(0) || answer_.drives.empty()) return;
    // A number that is enough for both is bought; where no set has one, there is nothing to buy.
    const auto to_buy = [](const DriveAnswer& drive) {
      const bool is_enough = drive.count_for_life > 0 && drive.count_for_rate > 0;
      return is_enough ? std::max(drive.count_for_life, drive.count_for_rate) : 0;
    };
    const bool any = std::any_of(answer_.drives.begin(), answer_.drives.end(),
                                 [&](const DriveAnswer& drive) { return to_buy(drive) > 0; });
    ReportTable table{"", {"drives", fmt::format("for {:.3g} years", question_.life_years), "for the rate"}, {}};
    if (any) table.columns.insert(table.columns.end(), {"buy", "USD"});
    if (question_.tokens > 0) table.columns.push_back(fmt::format("USD for {:.3g} tokens", question_.tokens));
    for (const DriveAnswer& drive : answer_.drives) {
      const std::int64_t count = to_buy(drive);
      const auto& price = drive.drive.price_usd;
      const std::string of = drive.sharers == 1 ? "a GPU" : fmt::format("{} GPUs", drive.sharers);
      const std::string& name = drive.drive.title.empty() ? drive.drive.name : drive.drive.title;
      table.rows.push_back(
          {text_cell(fmt::format("{}, for {}", name, of)), life_count_cell(drive), count_cell(drive.count_for_rate)});
      if (any) {
        table.rows.back().push_back(count_cell(count));
        table.rows.back().push_back(price && count > 0 ? number_cell(price->value * static_cast<double>(count))
                                                       : text_cell(price ? "-" : "no price known"));
      }
      if (question_.tokens > 0)
        table.rows.back().push_back(drive.usd_per_billion_tokens
                                        ? number_cell(*drive.usd_per_billion_tokens * question_.tokens / 1e9)
                                        : text_cell("-"));
    }
    // Sets of other sizes of the same drives ask for as many.
    const auto alike = [](const std::vector<ReportCell>& a, const std::vector<ReportCell>& b) {
      return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                        [](const ReportCell& one, const ReportCell& other) { return one.text == other.text; });
    };
    table.rows.erase(std::unique(table.rows.begin(), table.rows.end(), alike), table.rows.end());
    ReportSection& part = section("To buy");
    if (!any) part.paragraphs.emplace_back("No number of these drives that a machine holds is enough.");
    part.tables.push_back(std::move(table));
  }

  void step_on_drives() {
    if (load_.written() == Bytes(0) ||
        std::none_of(answer_.drives.begin(), answer_.drives.end(), [](const auto& drive) { return drive.step; }))
      return;
    ReportSection& part = section("The step on each set", true);
    ReportTable table{"The step replayed with each set",
                      {"drives per set", "technique", "memory", "short GiB", "step s", "80 % within",
                       "written GB per GPU", "read back GB per GPU"},
                      {}};
    for (const DriveAnswer& drive : answer_.drives) {
      if (!drive.step) continue;
      const StepOnDrives& step = *drive.step;
      table.rows.push_back(
          {text_cell(drive_name(drive)), text_cell(step.technique), text_cell(std::string(to_string(step.verdict))),
           step.short_of > Bytes(0) ? number_cell(static_cast<double>(step.short_of.count()) / (1 << 30))
                                    : text_cell("-"),
           number_cell(to_seconds(step.step_time)),
           text_cell(range_cell(step.step_time_range, to_seconds(step.step_time))), number_cell(giga(step.written)),
           number_cell(giga(step.read))});
    }
    part.tables.push_back(std::move(table));
    const auto replayed = std::find_if(answer_.drives.begin(), answer_.drives.end(),
                                       [](const DriveAnswer& drive) { return drive.step.has_value(); });
    part.tables.push_back(grounds_table(loaded_.provenance, replayed->step->step_time_range));
  }

  void traffic() {
    ReportSection& part = section("What a step writes", true);
    part.paragraphs.push_back(answer_.traffic.basis);
    if (load_.written() == Bytes(0)) return;
    std::string where =
        answer_.traffic.rank > 0 ? fmt::format(" (stage {}, which writes most)", answer_.traffic.rank) : "";
    part.paragraphs.push_back(fmt::format(
        "Each GPU{} writes {:.4g} GB in {} tensors. In half of the step, as SSDTrain "
        "allows, that takes {:.4g} GB/s; over all of it {:.4g} GB/s. A set is asked for the sum of the GPUs "
        "that share it.",
        where, giga(load_.written()), answer_.traffic.tensors, giga(answer_.required_rate),
        giga(answer_.required_rate) / 2));
    if (load_.step != answer_.traffic.replayed)
      part.paragraphs.push_back(fmt::format(
          "Its transfers lengthen the step to {:.4g} s; drives are asked for the {:.4g} s that it takes where "
          "nothing holds it up.",
          to_seconds(answer_.traffic.replayed), to_seconds(load_.step)));
    ReportTable table{"Bytes per step and GPU by the operator that makes them",
                      {"operator", "tensors", "written GB", "read GB", "share %"},
                      {}};
    for (const TrafficCause& cause : answer_.traffic.causes)
      table.rows.push_back({text_cell(cause.name), number_cell(static_cast<double>(cause.tensors)),
                            number_cell(giga(cause.written)), number_cell(giga(cause.read)),
                            number_cell(100 * giga(cause.written) / giga(load_.written()))});
    part.tables.push_back(std::move(table));
  }

  void rates() {
    ReportSection& part = section("Rate", true);
    part.paragraphs.emplace_back(
        "Required: what the step makes, when it makes it. Available: what the drives and the "
        "links to them give all GPUs at once, with empty caches and after the cache no longer "
        "changes. A set holds the rate when the step is not stretched and writing takes half "
        "of it at most, and so does reading.");
    ReportTable table{"Rate of each set",
                      {"drives per set", "GPUs per set", "written GB a step", "links GB/s", "caches empty GB/s",
                       "steady GB/s", "required GB/s", "steady headroom x", "cache full after steps", "steady step s",
                       "holds, empty", "holds, steady"},
                      {}};
    const double step = to_seconds(load_.step);
    ReportChart over_step{"Required and available write rate over a step", "seconds into the step", "GB/s", {}};
    over_step.series.push_back(course(load_, "required: activations as they are made"));
    over_step.series.push_back(
        level("required on average over half of the step", 0, step, giga(answer_.required_rate), true));
    ReportChart filling{"Write rate of a set written to without pause", "TB written to the set", "GB/s", {}};
    double most = giga(load_.written()) / 1e3;
    for (const DriveAnswer& drive : answer_.drives) {
      if (drive.first_rate <= 0) continue;
      const double required = giga(drive.required_rate);
      table.rows.push_back(
          {text_cell(drive_name(drive)), number_cell(static_cast<double>(drive.sharers)),
           number_cell(giga(drive.written)), number_cell(giga(drive.link_rate)), number_cell(giga(drive.first_rate)),
           number_cell(giga(drive.steady_rate)), number_cell(required), number_cell(giga(drive.steady_rate) / required),
           drive.load.steps_to_full < 0 ? text_cell("never")
                                        : number_cell(static_cast<double>(drive.load.steps_to_full + 1)),
           number_cell(to_seconds(drive.load.steady.length)), text_cell(drive.holds_first ? "yes" : "no"),
           text_cell(drive.holds_steady ? "yes" : "no")});
      over_step.series.push_back(level("available, steady: " + drive_name(drive), 0, step,
                                       giga(drive.steady_rate) / static_cast<double>(drive.sharers), false));
      filling.series.push_back(filled(drive));
      most = std::max(most, 1.5 * filling.series.back().x.back());
    }
    extend(filling, most);
    part.charts.push_back(std::move(over_step));
    part.charts.push_back(std::move(filling));
    part.tables.push_back(std::move(table));
  }

  // The rate of the set, written to without pause, against TB written.
  [[nodiscard]] static ReportSeries filled(const DriveAnswer& drive) {
    ReportSeries series{drive_name(drive), {}, {}, false};
    double at = 0;
    for (const WriteStage& stage : drive.stages) {
      series.x.push_back(at);
      series.y.push_back(giga(stage.rate));
      if (std::isinf(stage.bytes)) break;
      at += stage.bytes / 1e12;
      series.x.push_back(at);
      series.y.push_back(giga(stage.rate));
    }
    return series;
  }

  // Sets whose rate no longer changes keep it to the chart's edge.
  void extend(ReportChart& chart, double most) const {
    for (ReportSeries& series : chart.series)
      if (!series.x.empty() && series.x.back() < most) {
        series.x.push_back(most);
        series.y.push_back(series.y.back());
      }
    chart.series.push_back(level("required by one GPU", 0, most, giga(answer_.required_rate), true));
  }

  void lives() {
    ReportSection& part = section("Life and cost", true);
    part.paragraphs.push_back(fmt::format(
        "Years of training without pause until the rated bytes are written, at the pace the drives allow. Low: the "
        "rating as it stands. High: the sequential figure, 15 % above the model's where it "
        "is modelled. The verdict goes by the life {}. Drives asked "
        "for: to last {:.3g} years, and to hold the rate once the cache is full, of at most 64 that a machine holds.",
        told(question_.bound), question_.life_years));
    ReportTable table{"Life of each set",
                      {"drives per set", "one drive takes PB", "rests on", "years", "low", "high",
                       fmt::format("drives per set for {:.3g} years", question_.life_years),
                       "drives per set for the rate", "PCIe lanes for both"},
                      {}};
    ReportTable cost{"Cost", {"drives per set", "USD each", "price from", "USD per GPU", "USD per 1e9 tokens"}, {}};
    if (question_.tokens > 0)
      for (const char* column : {"TB written per GPU in the run", "run's share of the life %", "days of training"})
        cost.columns.emplace_back(column);
    for (const DriveAnswer& drive : answer_.drives) {
      table.rows.push_back({text_cell(drive_name(drive)), number_cell(drive.endurance.bytes / 1e15),
                            text_cell(drive.endurance.basis), number_cell(drive.years), number_cell(drive.low_years),
                            number_cell(drive.high_years), life_count_cell(drive), count_cell(drive.count_for_rate),
                            count_cell(drive.lanes)});
      cost.rows.push_back(cost_row(drive));
    }
    part.tables.push_back(std::move(table));
    part.tables.push_back(std::move(cost));
  }

  [[nodiscard]] std::vector<ReportCell> cost_row(const DriveAnswer& drive) const {
    const auto& price = drive.drive.price_usd;
    std::vector<ReportCell> row = {text_cell(drive_name(drive))};
    if (price) {
      const std::string date = price->origin.date.empty() ? "undated" : price->origin.date;
      row.push_back(number_cell(price->value));
      row.push_back(
          text_cell(fmt::format("{}, {}: {}", date, provenance_name(price->origin.provenance), price->origin.source)));
      row.push_back(number_cell(price->value * static_cast<double>(drive.count) / static_cast<double>(drive.sharers)));
    } else {
      row.insert(row.end(), {text_cell("-"), text_cell("the price list has none"), text_cell("-")});
    }
    row.push_back(drive.usd_per_billion_tokens ? number_cell(*drive.usd_per_billion_tokens) : text_cell("-"));
    if (question_.tokens <= 0) return row;
    if (answer_.tokens_per_step <= 0) {
      row.insert(row.end(), {text_cell("-"), text_cell("-"), text_cell("-")});
      return row;
    }
    const double steps = question_.tokens / static_cast<double>(answer_.tokens_per_step);
    const double seconds = steps * to_seconds(drive.load.steady.length);
    row.push_back(number_cell(steps * giga(load_.written()) / 1e3));
    row.push_back(number_cell(100 * seconds / (drive.years * 365 * 86400)));
    row.push_back(number_cell(seconds / 86400));
    return row;
  }

  // SSDTrain's closed forms for the same step, and what they take for granted.
  void left_out() {
    ReportSection& part = section("What a projection from rates and ratings leaves out", true);
    const TrainingSetup& setup = loaded_.setup;
    if (!loaded_.scenario.model.empty() && setup.recompute == Recompute::none && setup.pipeline_parallel == 1) {
      const ModelSpec model = with_layers(loaded_.scenario, find_model(loaded_.scenario.model));
      ActivationProjection p;
      p.layers = model.layers;
      p.hidden = model.hidden;
      p.heads = model.heads;
      p.vocabulary = model.vocabulary;
      p.sequence = setup.sequence;
      p.micro_batch = setup.micro_batch;
      p.tensor_parallel = setup.tensor_parallel;
      p.sequence_parallel = setup.sequence_parallel;
      const double volume = activation_volume(p) * static_cast<double>(setup.gradient_accumulation);
      part.paragraphs.push_back(
          fmt::format("SSDTrain's formula (arXiv 2408.10013, for a GPT with a feed-forward of 4 hidden) puts the "
                      "activations of this "
                      "step at {:.4g} GB a GPU, logits included; the trace keeps {:.4g} GB that can be offloaded.",
                      giga(volume), giga(load_.written())));
    }
    for (const DriveAnswer& drive : answer_.drives) {
      if (drive.load.steps_to_full < 0 || drive.holds_steady || drive.first_rate <= 0) continue;
      const WriteStage &first = drive.stages.front(), &last = drive.stages.back();
      std::string item = fmt::format(
          "{} take {:.4g} GB/s for {:.4g} GB, {:.3g} steps' worth, and {:.4g} GB/s once full; over a steady step that "
          "is "
          "{:.4g} GB/s where {:.4g} are needed",
          drive_name(drive), giga(first.rate), giga(first.bytes),
          first.bytes / static_cast<double>(drive.written.count()), giga(last.rate), giga(drive.steady_rate),
          giga(drive.required_rate));
      if (drive.load.steady.length > load_.step)
        item += ", and the step grows to " + time_text(to_seconds(drive.load.steady.length));
      part.items.push_back(item + ".");
    }
    if (part.items.empty())
      part.items.emplace_back("None of these drives loses a rate it needs once its cache is full.");
    for (const DriveAnswer& drive : answer_.drives) relaxed(drive, part);
  }

  // The published relaxations, beside the plain figure, whether or not they are asked for.
  void relaxed(const DriveAnswer& drive, ReportSection& part) const {
    if (!drive.endurance.known || drive.endurance.bytes <= 0 ||
        question_.endurance.retention != RetentionRelaxation::none)
      return;
    EnduranceOptions options = question_.endurance;
    const auto years = [&](RetentionRelaxation retention) {
      options.retention = retention;
      return drive.years * drive_endurance(drive.drive, options).bytes / drive.endurance.bytes;
    };
    part.items.push_back(
        fmt::format("{}: {} expected with retention as rated. Retention relaxed to 3 weeks (x6.67) would make it {}, "
                    "to 1 day (x86) {}; published factors no vendor offers, not counted here.",
                    drive_name(drive), years_text(drive.years), years_text(years(RetentionRelaxation::three_weeks)),
                    years_text(years(RetentionRelaxation::one_day))));
  }

  void assumptions() {
    ReportSection& part = section("Assumptions");
    for (const DriveAnswer& drive : answer_.drives) {
      for (const std::string& text : drive.endurance.assumptions)
        part.items.push_back(drive_name(drive) + ": " + text + ".");
      std::string assumed;
      const auto add = [&assumed](const char* name, const auto& leaf) {
        if (leaf && leaf->origin.provenance == OriginKind::assumed)
          assumed += (assumed.empty() ? "" : ", ") + std::string(name);
      };
      add("read rate", drive.drive.read_bandwidth);
      add("write rate", drive.drive.write_bandwidth);
      add("steady write rate", drive.drive.steady_write_bandwidth);
      add("write cache", drive.drive.write_cache);
      add("interference of reads and writes", drive.drive.read_write_interference);
      add("price", drive.drive.price_usd);
      if (!assumed.empty()) part.items.push_back(drive_name(drive) + ": assumed in its profile: " + assumed + ".");
    }
    part.items.push_back(question_.route == DriveRoute::gpudirect
                             ? "Drives read and write GPU memory themselves (GPUDirect Storage)."
                             : "Every byte goes through a pinned buffer in host memory.");
    part.items.emplace_back(
        "Training runs without pause; a year is 365 days. Files are written whole and freed whole.");
    for (const std::string& warning : loaded_.warnings) part.items.push_back(studies::warning_words(warning));
  }

  const LoadedScenario& loaded_;
  const SsdAnswer& answer_;
  const SsdQuestion& question_;
  const DriveLoad& load_;
  ReportDocument document_;
};

}  // namespace

ReportDocument ssd_report(const LoadedScenario& loaded, const SsdAnswer& answer, const SsdQuestion& question) {
  return SsdReport(loaded, answer, question).write();
}

}  // namespace spillway::reports
