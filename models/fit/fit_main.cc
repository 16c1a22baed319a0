// spillway-fit TABLES OUT: fits the operator times that models/times holds.
//
// TABLES is the folder of published tables (aiconfigurator, cudnn-frontend, vidur as docs/operator-times.md lists
// them); one JSON file per measured GPU is written to OUT. Prints the error of every fit on the rows kept out of it.
// The same tables give the same files to the byte.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <fmt/format.h>

#include "models/fit/gemm_fit.h"
#include "models/fit/gpu_tables.h"

namespace spillway::fit {
namespace {

constexpr const char* source =
    "fitted by spillway-fit to NVIDIA's aiconfigurator tables (github.com/ai-dynamo/aiconfigurator 095f58a, "
    "Apache-2.0), "
    "cudnn-frontend benchmarks (github.com/NVIDIA/cudnn-frontend 3929da2, MIT) and Microsoft's vidur profiles "
    "(github.com/microsoft/vidur 7d47513, MIT); a fifth of the rows kept out";

struct Format {
  Precision precision;
  const char* name;
};

class Fit {
 public:
  explicit Fit(std::filesystem::path tables) : tables_(std::move(tables)) {
    for (const GpuTables& gpu : gpu_tables())
      times_[gpu.name] = {.name = gpu.name, .profiles = gpu.profiles, .source = source, .facts = facts_of(gpu)};
  }
  void gemm();
  void write(const std::filesystem::path& folder) const;

 private:
  [[nodiscard]] MeasuredGemm measured_gemm(const GpuTables& gpu, const Format& format) const {
    return {times_.at(gpu.name).facts, format.precision,
            read_gemm_rows((tables_ / "aiconfigurator" / gpu.gemm).string(), format.name)};
  }
  void left_out(const std::map<std::string, MeasuredGemm>& measured, const std::string& name);

  std::filesystem::path tables_;
  std::map<std::string, OperatorTimes> times_;
};

// How well the datasheet and the nearest kin predict a GPU whose own measurements no fit has seen.
void Fit::left_out(const std::map<std::string, MeasuredGemm>& measured, const std::string& name) {
  std::vector<OperatorTimes> others;
  for (const auto& [other, times] : times_)
    if (other != name) others.push_back(times);
  DatasheetFacts facts = times_.at(name).facts;
  facts.achieved = {};
  const OperatorTimes guess = carried_over(others[nearest_kin(others, facts)], facts);
  for (const GemmTimes& gemm : guess.gemm) {
    if (gemm.precision != Precision::bf16) continue;
    const GemmErrors errors = gemm_errors(gemm, measured.at(name), false);
    fmt::print("  {} left out, by {}: sides >= 1024 {}; all sizes {}\n", name, guess.name, to_text(errors.large),
               to_text(errors.all));
  }
}

void Fit::gemm() {
  for (const Format& format : {Format{Precision::bf16, "bfloat16"}, Format{Precision::fp8, "fp8"}}) {
    fmt::print("matrix products, {}\n", format.name);
    std::map<std::string, MeasuredGemm> measured;
    for (const GpuTables& gpu : gpu_tables()) measured[gpu.name] = measured_gemm(gpu, format);
    for (const GpuTables& gpu : gpu_tables()) {
      std::vector<std::string> names = {gpu.name};
      if (!gpu.kin.empty()) names.push_back(gpu.kin);
      std::vector<MeasuredGemm> group;
      for (const std::string& name : names) group.push_back(measured.at(name));
      if (group.front().rows.empty() ||
          times_.at(gpu.name).gemm.size() > (format.precision == Precision::fp8 ? 1U : 0U))
        continue;
      const std::vector<GemmTimes> fitted = fit_gemm(group);
      for (std::size_t i = 0; i < names.size(); ++i) {
        times_.at(names[i]).gemm.push_back(fitted[i]);
        const GemmErrors errors = gemm_errors(fitted[i], group[i], true);
        fmt::print("  {}: sides >= 1024 {}; all sizes {}\n", names[i], to_text(errors.large), to_text(errors.all));
      }
    }
    if (format.precision == Precision::bf16)
      for (const GpuTables& gpu : gpu_tables()) left_out(measured, gpu.name);
  }
}

void Fit::write(const std::filesystem::path& folder) const {
  std::filesystem::create_directories(folder);
  for (const auto& [name, times] : times_) {
    std::ofstream file(folder / (name + ".json"));
    file << operator_times_text(times);
  }
}

int run(const std::string& tables, const std::string& out) {
  Fit fit(tables);
  fit.gemm();
  fit.write(out);
  return 0;
}

}  // namespace
}  // namespace spillway::fit

int main(int count, char** arguments) {
  if (count != 3) {
    std::fputs("usage: spillway-fit TABLES OUT\n", stderr);
    return 2;
  }
  try {
    return spillway::fit::run(arguments[1], arguments[2]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "spillway-fit: {}\n", error.what());
    return 2;
  }
}
