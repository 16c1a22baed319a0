#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "base/field_path.h"
#include "base/input_error.h"
#include "base/nearest_name.h"
#include "hwprofiles/fields.h"
#include "hwprofiles/measured_collectives.h"
#include "hwprofiles/profile_library.h"

namespace spillway::hwprofiles {
namespace {

// "x0.5" -> 0.5; nothing when the text is an absolute value.
std::optional<double> factor_in(std::string_view text) {
  if (text.empty() || (text.front() != 'x' && text.front() != 'X')) return std::nullopt;
  const double factor = parse_quantity(text.substr(1), Dimension::plain).value;
  if (factor <= 0) throw InputError("", "", "a factor must be above 0", "write for example x0.5");
  return factor;
}

class Overrider final : public ProfileVisitor, public PathVisitor {
 public:
  Overrider(std::string_view path, std::string_view text)
      : pattern_(path), text_(text), factor_(factor_in(text)), prefix_(pattern_.ends_with('*')) {
    if (prefix_) pattern_.pop_back();
  }

  [[nodiscard]] std::size_t matched() const { return matched_; }
  [[nodiscard]] bool changes_families() const { return changes_families_; }
  [[nodiscard]] const std::vector<std::string>& paths() const { return paths_; }

  void quantity(const FieldInfo& info, Leaf& leaf) override {
    const std::string path = path_of(info.key);
    if (!matches(path) || (prefix_ && !leaf.present())) return;
    if (factor_ && !leaf.present()) {
      throw InputError("", path, "the profile gives no value to multiply", "set an absolute value with its unit");
    }
    const double value = factor_ ? leaf.value() * *factor_ : parse_quantity(text_, info.dimension).value;
    check(path, info, value);
    if (!leaf.holds(value)) throw InputError("", path, "'" + text_ + "' is out of range", "give a smaller value");
    leaf.set(value, origin(leaf.present() && leaf.origin() != nullptr ? leaf.origin()->source : "no value"));
    ++matched_;
  }

  void curve(const FieldInfo& y, Dimension, Maybe<Curve>& curve) override {
    if (const std::string path = path_of(y.key); curve && matches(path)) scale(path, *curve);
  }

  void family(const FieldInfo& y, Dimension, std::string_view, Maybe<CurveFamily>& family) override {
    if (const std::string path = path_of(y.key); family && matches(path)) {
      scale(path, *family);
      changes_families_ = true;
    }
  }

 private:
  bool matches(const std::string& path) {
    paths_.push_back(path);
    return prefix_ ? path.starts_with(pattern_) : path == pattern_;
  }

  void check(const std::string& path, const FieldInfo& info, double value) const {
    const bool whole = info.dimension != Dimension::count || value == std::floor(value);
    if (whole && value >= info.min && value <= info.max) return;
    const PrintedQuantity low = print_quantity(info.min, info.dimension),
                          high = print_quantity(info.max, info.dimension);
    throw InputError("", path, "'" + text_ + "' is out of range",
                     fmt::format("give {} from {} {} to {} {}", whole ? "a value" : "a whole number", low.value,
                                 low.unit, high.value, high.unit));
  }

  template <class AnyCurve>
  void scale(const std::string& path, Sourced<AnyCurve>& curve) {
    if (!factor_) throw InputError("", path, "a curve takes a factor only", "write for example x0.9");
    curve.value.scale_y(*factor_);
    // What was measured goes before other tables, scaled or not.
    const bool is_measured = curve.origin.provenance == OriginKind::measured;
    curve.origin = origin(curve.origin.source);
    if (is_measured) curve.origin.provenance = OriginKind::measured;
    ++matched_;
  }

  [[nodiscard]] Origin origin(const std::string& before) const {
    return {OriginKind::assumed, "what-if " + text_ + " on: " + before, ""};
  }

  std::string pattern_, text_;
  std::optional<double> factor_;
  bool prefix_ = false;
  std::size_t matched_ = 0;
  bool changes_families_ = false;
  std::vector<std::string> paths_;
};

// What was measured under the values as they were follows them.
void follow(HardwareProfile& profile, const HardwareProfile& before, const std::string& why) {
  if (profile.scale_up) retime_collectives(*profile.scale_up, *before.scale_up, why);
  if (profile.scale_out) retime_collectives(*profile.scale_out, *before.scale_out, why);
  const double payload = profile.host.pcie_payload_efficiency.value / before.host.pcie_payload_efficiency.value;
  if (payload == 1 || profile.gpu.cpu_link_bandwidth) return;
  for (Maybe<Rate>* rate :
       {&profile.gpu.host_to_device_bandwidth, &profile.gpu.device_to_host_bandwidth, &profile.gpu.duplex_bandwidth})
    if (*rate)
      *rate = Sourced<Rate>{rate_from_bytes_per_second(to_bytes_per_second((*rate)->value) * payload),
                            {OriginKind::assumed, why + ": " + (*rate)->origin.source, ""}};
}

void override_one(HardwareProfile& profile, std::string_view path, std::string_view text) {
  const HardwareProfile before = profile;
  Overrider overrider(path, text);
  describe(profile, overrider);
  if (overrider.matched() == 0) {
    throw InputError("", std::string(path), "the profile has no such value",
                     suggest(path, overrider.paths(), "list the paths with `spillway profile show`"));
  }
  if (!overrider.changes_families())
    follow(profile, before, "what-if " + std::string(text) + " of " + std::string(path) + " on");
}

}  // namespace

void apply_override(HardwareProfile& profile, std::string_view path, std::string_view text) {
  HardwareProfile changed = profile;  // all or nothing
  if (path == "gpu.speed") {
    if (!factor_in(text)) throw InputError("", "gpu.speed", "takes a factor only", "write for example x2");
    bool achieved = false;
    for (const Maybe<double>& rate : profile.gpu.achieved_flops_per_second) achieved = achieved || rate.has_value();
    override_one(changed, "gpu.peak_flops.*", text);
    override_one(changed, "gpu.memory_bandwidth", text);
    if (achieved) override_one(changed, "gpu.achieved_flops.*", text);
  } else {
    override_one(changed, path, text);
    if (path == "gpu.pcie_generation" || path == "gpu.pcie_lanes") {  // measured on another link
      changed.gpu.host_to_device_bandwidth.reset();
      changed.gpu.device_to_host_bandwidth.reset();
      changed.gpu.duplex_bandwidth.reset();
    }
  }
  assign_slots(changed, true);
  profile = std::move(changed);
}

}  // namespace spillway::hwprofiles
