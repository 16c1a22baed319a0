#include "studies/procurement/procurement_fields.h"

#include "scenario/scenario_fields.h"
#include "studies/capacity/capacity_fields.h"
#include "studies/offload/ssd_answer.h"

namespace spillway::studies {
namespace {

constexpr FieldInfo tokens_to_train = {
    .key = "tokens", .dimension = Dimension::tokens, .min = 1, .max = 1e18, .about = "To train; or runs."};

template <class Section>
void describe_new(FieldVisitor& visitor) {
  Section section;
  describe(section, visitor);
}

void describe_choices(ProcurementSection& section, FieldVisitor& visitor) {
  const auto names = [&](std::string_view key, std::string_view about, std::vector<std::string>& values) {
    visitor.texts({.key = key, .about = about, .least_items = 1}, values);
  };
  names("machines", "System profiles; default: the scenario's.", section.machines);
  visitor.integers({.key = "gpus",
                    .min = 1,
                    .max = most_request_gpus,
                    .about = "Sizes of the fleet; default: the scenario's.",
                    .least_items = 1},
                   section.gpus);
  names("techniques", "As in `spillway capacity --list`, joined by +; default: keep, selective, full, ssdtrain.",
        section.techniques);
  names("drives", "Drive profiles; default: the library's server drives that state rates and a rating.",
        section.drives);
  fields::integer(visitor, {.key = "drives_per_gpu", .min = 1, .max = 64, .about = "At most."}, section.drives_per_gpu);
  fields::word(visitor, {.key = "route", .about = "To the drives."}, section.route, route_words());
  describe(static_cast<LayoutSizes&>(section), visitor);
  fields::integer(visitor,
                  {.key = "shortlist", .min = 1, .max = 50, .about = "Options that the report describes in full."},
                  section.shortlist);
  fields::integer(visitor,
                  {.key = "replays",
                   .min = 1,
                   .max = 100'000,
                   .about = "Layouts replayed per option and run, at most. Default: 24."},
                  section.replays);
}

}  // namespace

void describe(ProcurementSection& section, FieldVisitor& visitor) {
  std::string note;
  fields::number(visitor, tokens_to_train, section.tokens);
  fields::number(visitor, {.key = "deadline_days", .min = 1e-6, .max = 1e6, .about = "Pauses included; default: none."},
                 section.deadline_days);
  describe_limit(section.budget_usd,
                 {.key = "budget_usd",
                  .about = "For machines, network and drives that are bought, or for the rent of the programme's days; "
                           "default: none.",
                  .above_min = true},
                 visitor);
  fields::list(visitor, {.key = "runs", .about = "One after the other on the whole fleet.", .least_items = 1},
               section.runs, [&](ProcurementSection::Run& run) {
                 FieldInfo tokens = tokens_to_train;
                 tokens.about = "To train.";
                 tokens.required = true;
                 fields::text(visitor, {.key = "name", .about = "Its own one.", .required = true}, run.name);
                 fields::number(visitor, tokens, run.tokens);
                 visitor.object({.key = "set", .about = "Merged into the scenario."}, run.set);
               });
  describe_choices(section, visitor);
  fields::part(visitor, {.key = "today", .about = "The fleet that is there; the report compares with it."},
               section.today, [&](ProcurementFleet& fleet) {
                 fields::text(visitor, {.key = "machine", .about = "Its profile.", .required = true}, fleet.machine);
                 fields::integer(
                     visitor, {.key = "gpus", .min = 1, .max = most_request_gpus, .about = "Of it.", .required = true},
                     fleet.gpus);
                 fields::text(visitor, {.key = "technique", .about = "Default: keep."}, fleet.technique);
               });
  fields::number(visitor,
                 {.key = "least_life_years",
                  .min = 0.001,
                  .max = 1000,
                  .about = "How long a drive must last by its rating as it stands; default: any time."},
                 section.least_life_years);
  fields::number(
      visitor,
      {.key = "period_months", .min = 0.1, .max = 1200, .about = "How long the fleet is kept and written off."},
      section.period_months);
  fields::number(visitor, {.key = "utilisation", .min = 0.001, .max = 1, .about = "Share of the time it trains."},
                 section.utilisation);
  fields::number(visitor,
                 {.key = "used_percent",
                  .max = 99.9,
                  .about = "Of the rating of the first drives; those that replace them are new."},
                 section.used_percent);
  fields::number(visitor,
                 {.key = "write_amplification", .min = 1, .max = 1000, .about = "Bytes on flash for each written."},
                 section.write_amplification);
  fields::word(visitor, {.key = "retention", .about = "How long data must last unpowered."}, section.retention,
               retention_words());
  describe_prices(section.prices, visitor);
  fields::text(visitor,
               {.key = "prices_date",
                .about = "Day, month or year that all prices are brought to; default: that of the newest of them.",
                .pattern = "^[0-9]{4}(-[0-9]{2}(-[0-9]{2})?)?$"},
               section.prices_date);
  fields::flag(visitor, {.key = "used_prices", .about = "Used and discontinued drives may be bought."},
               section.used_prices);
  fields::text(visitor, {.key = "note", .about = "For people."}, note);
}

void add_study_sections() {
  set_section_fields("capacity", describe_new<CapacitySection>);
  set_section_fields("procurement", describe_new<ProcurementSection>);
}

}  // namespace spillway::studies
