// How good the searched pipeline schedule is: random problems of p 4 to 12 stages and m p to 3p micro-batches, half of
// them with uneven stages, limits from a third of p to p micro-batches. Each line is a problem: the search's step, the
// best named schedule's that fits, the lower bound; the last lines are averages over those that a named one fits.
//
//   schedule_search_bench [CHUNKS [PROBLEMS [FIRST]]]      CHUNKS 0: any
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>

#include "planners/pipeline/schedule_search.h"

namespace spillway::bench {
namespace {

struct Draw {
  std::mt19937_64 random;
  std::int64_t operator()(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most - least + 1));
  }
};

SearchRequest problem(std::uint64_t seed, std::int64_t chunks) {
  Draw draw{std::mt19937_64(seed)};
  SearchRequest request;
  request.devices = draw(4, 12);
  request.micro_batches = draw(request.devices, 3 * request.devices);
  request.chunks = chunks;
  const bool is_uneven = seed % 2 == 1;
  const PassTimes base{100 * draw(80, 120), 100 * draw(80, 130), 100 * draw(50, 110), 0};
  const std::int64_t parts = request.devices * std::max<std::int64_t>(1, chunks);
  request.times.positions.clear();
  for (std::int64_t i = 0; i < (is_uneven ? parts : 1); ++i) {
    const std::int64_t share = is_uneven ? draw(75, 125) : 100;
    PassTimes part{base.forward * share / 100, base.input_gradient * share / 100, base.weight_gradient * share / 100,
                   0};
    part.recompute = part.forward;
    request.times.positions.push_back(part);
  }
  if (chunks > 1)
    for (PassTimes& part : request.times.positions)
      part = {part.forward / chunks, part.input_gradient / chunks, part.weight_gradient / chunks,
              part.recompute / chunks};
  request.times.transfer = 100 * draw(0, 8);
  const std::int64_t p = request.devices;
  const std::int64_t halves = chunks == 1 ? draw(2 * p, 4 * p - 2) : draw(2 * p / 3, 2 * p);
  request.limits = {static_cast<double>(halves) / 2};
  return request;
}

struct Mean {
  double sum = 0;
  int count = 0;
  void add(double value) { sum += value, ++count; }
  [[nodiscard]] double percent() const { return count == 0 ? 0 : 100 * sum / count; }
};

void run(std::int64_t chunks, std::uint64_t problems, std::uint64_t first) {
  Mean gain, room;
  int worse = 0;
  double longest = 0, total = 0;
  for (std::uint64_t seed = first; seed < first + problems; ++seed) {
    const SearchRequest request = problem(seed, chunks);
    const std::clock_t begin = std::clock();
    const SearchResult result = search_schedule(request);
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    longest = std::max(longest, seconds);
    total += seconds;
    const auto makespan = static_cast<double>(result.timeline.makespan);
    const auto named = static_cast<double>(result.best_named_makespan);
    const auto bound = static_cast<double>(result.lower_bound);
    std::printf("%3llu p %2lld m %2lld limit %4.1f  %8.0f %8.0f %8.0f  gain %5.2f %%  gap %5.2f %%  %5.2f s  %s / %s\n",
                static_cast<unsigned long long>(seed), static_cast<long long>(request.devices),
                static_cast<long long>(request.micro_batches), request.limits[0], makespan, named, bound,
                named > 0 ? 100 * (named - makespan) / named : 0, 100 * (makespan - bound) / makespan, seconds,
                result.plan.name.c_str(), result.best_named.c_str());
    std::fflush(stdout);
    if (!result.found || named == 0) continue;
    gain.add((named - makespan) / named);
    room.add((named - bound) / named);
    worse += makespan > named ? 1 : 0;
  }
  std::printf(
      "%d of %llu have a named schedule: shorter by %.2f %% on average (at most %.2f %% by the bound), worse %d; "
      "%.2f s of one core each, %.2f s the longest\n",
      gain.count, static_cast<unsigned long long>(problems), gain.percent(), room.percent(), worse,
      total / static_cast<double>(problems), longest);
}

}  // namespace
}  // namespace spillway::bench

int main(int argc, char** argv) {
  const std::int64_t chunks = argc > 1 ? std::atoll(argv[1]) : 0;
  const long long problems = argc > 2 ? std::atoll(argv[2]) : 50, first = argc > 3 ? std::atoll(argv[3]) : 1;
  spillway::bench::run(chunks, static_cast<std::uint64_t>(problems), static_cast<std::uint64_t>(first));
}
