#include "sim/devices/endurance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/input_error.h"

namespace spillway::sim {
namespace {

constexpr double terabyte = 1e12;
constexpr double modelled_error = 0.15;
constexpr double least_spare = 0.01;
constexpr double page = 4096;

void require(bool condition, const char* option, const char* cause) {
  if (!condition) throw InputError("", option, cause, "correct it");
}

// What the vendor's rating stands for.
struct Rating {
  double bytes = 0;
  bool is_flash = true, collects_garbage = true;
  double write_size = page;  // of its random writes
  std::string text;
};

Rating rating_of(const NvmeProfile& drive) {
  Rating rating;
  const std::string& workload = drive.rated_workload;
  if (drive.rated_endurance) {
    rating.bytes = static_cast<double>(drive.rated_endurance->value.count());
    rating.text = fmt::format("rated {:.0f} TB", rating.bytes / terabyte);
  } else if (drive.drive_writes_per_day && drive.warranty_years && drive.capacity) {
    rating.bytes = drive.drive_writes_per_day->value * 365 * drive.warranty_years->value *
                   static_cast<double>(drive.capacity->value.count());
    rating.text = fmt::format("{} drive writes a day for {} years", drive.drive_writes_per_day->value,
                              drive.warranty_years->value);
  }
  if (!workload.empty() && !rating.text.empty()) rating.text += " (" + workload + ")";
  rating.is_flash = drive.media.find("XPoint") == std::string::npos;
  rating.collects_garbage = rating.is_flash && workload.find("no GC") == std::string::npos;
  const double size = std::strtod(workload.c_str(), nullptr);  // "16K random"
  if (size > 0 && workload.find("K random") != std::string::npos) rating.write_size = size * 1024;
  return rating;
}

struct Carried {
  double bytes = 0;
  bool modelled = false;
  std::string basis;
};

// From the rating to sequential writes. `aligned`: the rating for random writes of whole mapping units.
Carried sequential_bytes(const NvmeProfile& drive, const Rating& rating, double aligned, Endurance& found) {
  if (drive.sequential_endurance) {
    const double bytes = static_cast<double>(drive.sequential_endurance->value.count());
    const bool by_vendor = drive.sequential_endurance->origin.provenance != OriginKind::assumed;
    if (!by_vendor) found.assumptions.push_back("sequential endurance: " + drive.sequential_endurance->origin.source);
    return {bytes, !by_vendor,
            fmt::format("{} {:.0f} TB of sequential writes", by_vendor ? "vendor's" : "estimated", bytes / terabyte)};
  }
  if (!rating.collects_garbage) return {aligned, false, rating.text + ", no garbage collection"};
  const OverProvisioning spare = over_provisioning(drive);
  if (!spare.known) {
    found.assumptions.emplace_back("over-provisioning unknown: sequential writes are credited nothing over the rating");
    return {aligned, false, rating.text + " as it stands"};
  }
  const double amplification = random_write_amplification(spare.spare);
  if (rating.text.find("random") == std::string::npos)
    found.assumptions.emplace_back("the rated workload is taken to wear the flash like uniformly random 4 KiB writes");
  if (spare.origin.provenance == OriginKind::assumed)
    found.assumptions.push_back(fmt::format("spare flash {:.1f} %: {}", 100 * spare.spare, spare.origin.source));
  return {aligned * amplification, true,
          fmt::format("{} x {:.2f}, the write amplification at {:.1f} % spare flash", rating.text, amplification,
                      100 * spare.spare)};
}

void check(const EnduranceOptions& options) {
  require(options.write_size > Bytes(0), "write size", "it is not positive");
  require(options.write_amplification >= 1 && std::isfinite(options.write_amplification), "write amplification",
          "it is below 1");
  require(options.used_fraction >= 0 && options.used_fraction <= 1, "used fraction", "it is not in [0, 1]");
}

}  // namespace

double lambert_w0(double x) {
  const double branch = -std::exp(-1.0);
  SPILLWAY_ASSERT(x >= branch - 1e-15);
  if (x <= branch) return -1;
  const double p = std::sqrt(2 * (std::exp(1.0) * x + 1));
  double w = x < 0.5 ? -1 + p - p * p / 3 + 11 * p * p * p / 72 : std::log1p(x);
  for (int i = 0; i < 60; ++i) {  // Halley
    const double e = std::exp(w), f = w * e - x;
    if (f == 0 || w == -1) break;
    const double step = f / (e * (w + 1) - (w + 2) * f / (2 * w + 2));
    w -= step;
    if (std::abs(step) <= 1e-15 * std::abs(w)) break;
  }
  return w;
}

double random_write_amplification(double spare) {
  SPILLWAY_ASSERT(spare > 0);
  const double a = 1 + spare;
  return a / (a + lambert_w0(-a * std::exp(-a)));
}

OverProvisioning over_provisioning(const NvmeProfile& drive) {
  if (drive.over_provisioning) {
    const double spare = drive.over_provisioning->value;
    return {spare >= least_spare, spare, drive.over_provisioning->origin};
  }
  if (!drive.capacity || drive.capacity->value <= Bytes(0)) return {};
  const double user = static_cast<double>(drive.capacity->value.count());
  double raw = 1099511627776.0 / 1024;
  while (raw < user) raw *= 2;
  const double spare = raw / user - 1;
  return {spare >= least_spare,
          spare,
          {OriginKind::assumed, fmt::format("{:g} TiB of flash behind {:g} TB", raw / 1099511627776.0, user / terabyte),
           ""}};
}

double retention_factor(RetentionRelaxation relaxation) {
  switch (relaxation) {
    case RetentionRelaxation::none:
      return 1;
    case RetentionRelaxation::three_weeks:
      return 6.67;
    case RetentionRelaxation::one_day:
      return 86;
  }
  return 1;
}

Endurance drive_endurance(const NvmeProfile& drive, const EnduranceOptions& options) {
  check(options);
  Endurance found;
  const Rating rating = rating_of(drive);
  found.is_flash = rating.is_flash;
  found.collects_garbage = rating.collects_garbage;
  const double cycles = rating.is_flash ? retention_factor(options.retention) : 1;
  const double amplified = rating.collects_garbage ? options.write_amplification : 1;
  if (cycles > 1)
    found.assumptions.push_back(
        fmt::format("retention relaxed from 3 years to {}: x{:g} cycles, a publication's figure no vendor offers",
                    options.retention == RetentionRelaxation::one_day ? "1 day" : "3 weeks", cycles));
  found.known = rating.bytes > 0 || drive.rated_endurance || drive.sequential_endurance;
  if (!found.known) {
    found.basis = "the profile rates no endurance";
    return found;
  }
  const double unit =
      drive.indirection_unit ? std::max(page, static_cast<double>(drive.indirection_unit->value.count())) : page;
  const double aligned = rating.bytes * std::max(1.0, unit / rating.write_size);
  const double random = aligned / std::max(1.0, unit / static_cast<double>(options.write_size.count()));
  Carried carried{random, false, fmt::format("{}, random writes of {} bytes", rating.text, options.write_size.count())};
  double most = random;
  const bool in_order = options.pattern == WritePattern::sequential;
  const Carried sequential = sequential_bytes(drive, rating, aligned, found);
  if (in_order) carried = sequential;
  most = sequential.bytes * (sequential.modelled ? 1 + modelled_error : 1);
  found.published = !carried.modelled;
  found.basis = carried.basis;
  if (amplified > 1)
    found.assumptions.push_back(fmt::format("the workload itself amplifies its writes x{:g}", amplified));
  if (options.used_fraction > 0)
    found.assumptions.push_back(fmt::format("{:g} % of the rated life is used up", 100 * options.used_fraction));
  // Cycles used up are cycles of the rating, whatever the retention asked for later.
  const double relaxed = (cycles - options.used_fraction) / amplified;
  const double plain = (1 - options.used_fraction) / amplified;
  found.bytes = carried.bytes * relaxed;
  found.low = std::min(rating.bytes > 0 ? random : carried.bytes, carried.bytes) * plain;
  found.high = std::max(most, carried.bytes) * relaxed;
  return found;
}

double years_to_write(double endurance, double bytes_per_second) {
  if (bytes_per_second <= 0) return std::numeric_limits<double>::infinity();
  return endurance / bytes_per_second / (365.0 * 86400.0);
}

}  // namespace spillway::sim
