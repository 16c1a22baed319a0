#include "studies/capacity/capacity_fields.h"

namespace spillway::studies {
namespace {

void describe(Constraints& constraints, FieldVisitor& visitor) {
  const auto bound = [&](std::string_view key, std::string_view about, double& limit) {
    describe_limit(limit, {.key = key, .about = about, .above_min = true}, visitor);
  };
  describe_bounds(constraints, visitor);
  bound("budget_usd", "Of machines and drives named, at most.", constraints.most_usd);
  bound("power_kw", "Of the same, while they train, at most.", constraints.most_kilowatts);
}

}  // namespace

const Words& capacity_goal_words() {
  static const Words words = {{"largest", "the last value that holds"}, {"smallest", "the first one"}};
  return words;
}

void describe(CapacitySection& section, FieldVisitor& visitor) {
  fields::text(visitor,
               {.key = "axis",
                .about = "layers, sequence, micro_batch, global_batch, gpus, replicas, memory, drives, or a key that "
                         "takes a whole number, such as model.prefetch. Default: layers; memory for a trace."},
               section.axis);
  fields::integer_or_none(visitor, {.key = "from", .min = 1, .about = "Smallest value; default: step."}, section.from);
  fields::integer_or_none(visitor, {.key = "to", .min = 1, .about = "Largest value; default: as far as the key goes."},
                          section.to);
  fields::integer_or_none(visitor,
                          {.key = "step",
                           .min = 1,
                           .about = "Default: the pipeline's stages for layers, 1024 for sequences, a batch of one per "
                                    "replica, 1 GiB of memory, else 1."},
                          section.step);
  fields::word(visitor,
               {.key = "goal", .about = "Default: smallest for memory, drives and parallel sizes, else largest."},
               section.goal, capacity_goal_words());
  fields::list(visitor,
               {.key = "techniques",
                .about = "Names of bundled techniques (`spillway capacity --list`) or of those defined before, joined "
                         "by +; or {name, set}.",
                .least_items = 1,
                .shorthand = "name"},
               section.techniques, [&](CapacitySection::Technique& technique) {
                 fields::text(visitor, {.key = "name", .required = true}, technique.name);
                 visitor.object({.key = "set", .about = "Merged into the scenario; null takes a key out."},
                                technique.set);
               });
  fields::group(visitor,
                {.key = "layouts",
                 .about = "Search layouts at every value, on the scenario's GPUs; always with the axis gpus.",
                 .also_flag = true},
                [&] {
                  section.has_layouts = true;
                  describe(static_cast<LayoutSizes&>(section), visitor);
                });
  visitor.texts(
      {.key = "machines", .about = "System profiles: every technique on each; answers are priced.", .least_items = 1},
      section.machines);
  visitor.texts(
      {.key = "drives", .about = "Drive profiles: every technique with each; answers are priced.", .least_items = 1},
      section.drives);
  fields::group(visitor, {.key = "constraints", .about = "What must hold beside that the step fits."},
                [&] { describe(section.constraints, visitor); });
  fields::integer(visitor, {.key = "replays", .min = 1, .about = "Layouts replayed at a value, at most."},
                  section.replays);
  describe_prices(section.prices, visitor);
}

}  // namespace spillway::studies
