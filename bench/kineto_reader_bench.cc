// How fast Kineto traces are read, in MB per CPU-second, and what memory that takes per event:
//   kineto_reader_bench [MB] [FILE]
// Reads a synthetic trace of that size (500 unless told), written to TMPDIR and removed afterwards, or FILE. First
// the reader alone, then all that opening a trace does. With --benchmark_filter=PART it runs if PART is in its
// name. Peak memory is the growth of the process's largest resident set.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>

#include "bench/large_kineto.h"
#include "traces/capture_fit.h"
#include "traces/derive.h"
#include "traces/formats/kineto/kineto_reader.h"

namespace spillway::bench {
namespace {

struct Usage {
  double cpu_seconds = 0;
  double peak_bytes = 0;
};

Usage usage() {
  rusage now{};
  getrusage(RUSAGE_SELF, &now);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return {seconds(now.ru_utime) + seconds(now.ru_stime), 1024.0 * static_cast<double>(now.ru_maxrss)};
}

void report(const char* what, const Usage& before, double megabytes, std::uint64_t events) {
  const Usage after = usage();
  const double seconds = after.cpu_seconds - before.cpu_seconds;
  std::printf("%-24s %6.2f CPU-s %8.1f MB/CPU-s %8.1f bytes of peak memory per event\n", what, seconds,
              megabytes / seconds, (after.peak_bytes - before.peak_bytes) / static_cast<double>(events));
}

void measure_file(const std::string& path) {
  const double megabytes = static_cast<double>(std::filesystem::file_size(path)) * 1e-6;
  const ReadOptions options;
  const Usage before = usage();
  ByteSource source = ByteSource::open(path, options.max_decompressed_bytes);
  Trace trace = read_kineto(source, options);
  std::printf("%s: %.1f MB, %llu events, %zu ops, %zu spans\n", path.c_str(), megabytes,
              static_cast<unsigned long long>(trace.source_events), trace.ops.size(), trace.spans.size());
  report("read", before, megabytes, trace.source_events);
  derive(trace);
  report("read and derived", before, megabytes, trace.source_events);
  fit_capture(trace);
  report("read, derived, fitted", before, megabytes, trace.source_events);
}

int run_bench(int argc, char** argv) {
  constexpr std::string_view filter = "--benchmark_filter=";
  if (argc > 1 && std::string_view(argv[1]).starts_with(filter)) {
    if (std::string_view("kineto_reader").find(argv[1] + filter.size()) == std::string_view::npos) return 0;
    argc = 1;
  }
  if (argc > 2) {
    measure_file(argv[2]);
    return 0;
  }
  const std::uint64_t megabytes = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 500;
  const auto path =
      std::filesystem::temp_directory_path() / ("spillway_large_kineto_" + std::to_string(::getpid()) + ".json");
  try {
    const bench::LargeKineto written = bench::write_large_kineto(path.string(), megabytes * 1'000'000);
    std::printf("wrote %llu events of %.0f bytes\n", static_cast<unsigned long long>(written.events),
                static_cast<double>(written.bytes) / static_cast<double>(written.events));
    measure_file(path.string());
  } catch (...) {
    std::filesystem::remove(path);
    throw;
  }
  std::filesystem::remove(path);
  return 0;
}

}  // namespace
}  // namespace spillway::bench

int main(int argc, char** argv) {
  try {
    return spillway::bench::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kineto_reader_bench: %s\n", error.what());
    return 1;
  }
}
