#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_reduce.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <utility>

#include "validation/trainer/backend.h"
#include "validation/trainer/cpu_kernels.h"
#include "validation/trainer/state_bodies.h"

namespace spillway::validation {
namespace {

constexpr std::size_t page = 4096;

std::byte* take_pages(Bytes bytes) {
  const std::size_t size = (static_cast<std::size_t>(bytes.count()) + page - 1) / page * page;
  return static_cast<std::byte*>(std::aligned_alloc(page, std::max(size, page)));
}

// Everything is done when the call returns, so every mark has passed.
class CpuBackend final : public Backend {
 public:
  ~CpuBackend() override = default;
  [[nodiscard]] std::string name() const override { return "cpu"; }
  [[nodiscard]] std::string device() const override { return "CPU reference"; }
  [[nodiscard]] Bytes memory() const override { return Bytes(std::int64_t{1} << 40); }

  std::byte* take_segment(Bytes bytes) override {
    std::byte* memory = take_pages(bytes);
    // What is read before it is written shows: these bytes are a NaN in fp32 and in bf16.
    if (memory != nullptr) std::memset(memory, 0xff, static_cast<std::size_t>(bytes.count()));
    return memory;
  }
  void give_segment(std::byte* segment) override { std::free(segment); }
  std::byte* take_host(Bytes bytes) override { return take_pages(bytes); }
  void give_host(std::byte* memory) override { std::free(memory); }

  void run(const StepGraph& graph, const KernelCall& call, const Operands& operands) override {
    const Clock::time_point start = Clock::now();
    run_on_cpu(graph, call, operands);
    if (!timing_) return;
    const std::chrono::nanoseconds took = Clock::now() - start;
    times_.push_back({seconds(start - timed_since_), nanoseconds(took.count())});
  }
  void fill(std::byte* device, ElementType type, std::int64_t elements, const Filling& filling) override {
    if (type == ElementType::bf16)
      fill_all(reinterpret_cast<bodies::Bf16*>(device), elements, filling);
    else
      fill_all(reinterpret_cast<float*>(device), elements, filling);
  }
  std::uint64_t digest(const std::byte* device, Bytes bytes) override {
    const std::int64_t size = bytes.count(), words = (size + 7) / 8;
    return tbb::parallel_reduce(
        tbb::blocked_range<std::int64_t>(0, words, grain), std::uint64_t{0},
        [=](const auto& range, std::uint64_t sum) {
          for (std::int64_t i = range.begin(); i < range.end(); ++i) sum += bodies::digest_word(device, size, i);
          return sum;
        },
        std::plus<>());
  }
  Mark mark() override { return 0; }
  Mark copy(CopyTo to, std::byte* device, std::byte* host, Bytes bytes, Mark) override {
    const auto size = static_cast<std::size_t>(bytes.count());
    to == CopyTo::host ? std::memcpy(host, device, size) : std::memcpy(device, host, size);
    return 0;
  }
  [[nodiscard]] bool passed(Mark) override { return true; }
  void wait(Mark) override {}
  void time_kernels(bool on) override {
    timing_ = on;
    timed_since_ = Clock::now();
  }
  std::vector<KernelTime> take_times() override { return std::exchange(times_, {}); }
  void stamp() override { stamps_.push_back(Clock::now()); }
  std::vector<double> take_stamps() override {
    std::vector<double> since;
    for (const Clock::time_point at : stamps_) since.push_back(seconds(at - stamps_.front()));
    stamps_.clear();
    return since;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::int64_t grain = 1 << 16;
  template <class T>
  static void fill_all(T* to, std::int64_t elements, const Filling& filling) {
    tbb::parallel_for(tbb::blocked_range<std::int64_t>(0, elements, grain), [&](const auto& range) {
      for (std::int64_t i = range.begin(); i < range.end(); ++i)
        bodies::store(to + i, bodies::initial_element(filling, i));
    });
  }
  static double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

  bool timing_ = false;
  Clock::time_point timed_since_;
  std::vector<KernelTime> times_;
  std::vector<Clock::time_point> stamps_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend() { return std::make_unique<CpuBackend>(); }

}  // namespace spillway::validation
