// simdjson over the trace that kineto_reader_bench reads: every event's name, phase, times and identifiers, on demand,
// and nothing made of them. MB per CPU-second.
//   simdjson_bench [MB]
#include <simdjson.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <filesystem>
#include <string>

#include "bench/large_kineto.h"

namespace {

namespace sj = simdjson;

struct Sums {
  std::size_t events = 0, bytes_of_text = 0;
  double times = 0;
};

Sums read_events(const std::string& path) {
  const sj::padded_string text = sj::padded_string::load(path);
  sj::ondemand::parser parser;
  sj::ondemand::document document = parser.iterate(text);
  Sums sums;
  for (sj::ondemand::object event : document["traceEvents"].get_array()) {
    ++sums.events;
    for (sj::ondemand::field field : event) {
      const std::string_view key = field.unescaped_key();
      if (key == "name" || key == "ph" || key == "cat") {
        sums.bytes_of_text += std::string_view(field.value()).size();
      } else if (key == "ts" || key == "dur") {
        sums.times += double(field.value());
      }
    }
  }
  return sums;
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t megabytes = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 500;
  const auto path =
      std::filesystem::temp_directory_path() / ("spillway_simdjson_" + std::to_string(::getpid()) + ".json");
  int status = 0;
  try {
    const spillway::bench::LargeKineto written =
        spillway::bench::write_large_kineto(path.string(), megabytes * 1'000'000);
    const std::clock_t begin = std::clock();
    const Sums sums = read_events(path.string());
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    std::printf("%zu events, %zu bytes of text, %.3g us in all\n", sums.events, sums.bytes_of_text, sums.times);
    std::printf("%-24s %6.2f CPU-s %8.1f MB/CPU-s\n", "simdjson", seconds,
                static_cast<double>(written.bytes) * 1e-6 / seconds);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    status = 1;
  }
  std::filesystem::remove(path);
  return status;
}
