#include "bench/large_kineto.h"

#include <array>
#include <cstdio>
#include <memory>
#include <stdexcept>

namespace spillway::bench {
namespace {

constexpr int layers = 24;
constexpr std::array operators = {"aten::linear",  "aten::layer_norm",
                                  "aten::gelu",    "aten::scaled_dot_product_attention",
                                  "aten::dropout", "aten::add_"};
constexpr std::array kernels = {
    "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn",
    "void at::native::vectorized_layer_norm_kernel<c10::Half, float>(int, float, c10::Half const*, c10::Half*)",
    "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl>(int, at::detail::Array<char*, "
    "2>)"};

class Writer {
 public:
  explicit Writer(const std::string& path) : file_(std::fopen(path.c_str(), "wb")) {
    if (!file_) throw std::runtime_error("can't write " + path);
    put("{\"schemaVersion\": 1,\n\"deviceProperties\": [{\"id\": 0, \"name\": \"GPU\", \"totalGlobalMem\": "
        "85899345920}],\n"
        "\"traceEvents\": [\n");
  }

  void step() {
    const std::int64_t begin = now_;
    for (int layer = 0; layer < 2 * layers; ++layer) {
      for (std::size_t i = 0; i < operators.size(); ++i)
        one_operator(operators[i], kernels[i % kernels.size()], layer < layers);
      memory(layer < layers ? 1 << 20 : -(1 << 20), layer < layers ? layer : 2 * layers - 1 - layer);
    }
    event(R"("ph": "X", "cat": "user_annotation", "name": "ProfilerStep#%lld", "pid": 4711, "tid": 4711,
    "ts": %s, "dur": %s,
    "args": {
      "External id": %lld,"Record function id": 0, "Ev Idx": %lld
    })",
          steps_++, time(begin).data(), time(now_ - begin, 0).data(), id_, events_);
  }

  LargeKineto finish() {
    put("{\"name\": \"Record Window End\", \"ph\": \"i\", \"s\": \"g\", \"pid\": \"\", \"tid\": \"\", \"ts\": 0}\n], "
        "\"traceName\": \"synthetic\"}\n");
    if (std::fclose(file_.release()) != 0) throw std::runtime_error("can't write the synthetic trace to its end");
    return {bytes_, static_cast<std::uint64_t>(events_ + 1)};
  }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  using Text = std::array<char, 32>;

  // Nanoseconds as microseconds with three decimals.
  static Text time(std::int64_t ns, std::int64_t base_us = 1'712'195'495'000'000) {
    Text text{};
    std::snprintf(text.data(), text.size(), "%lld.%03d", static_cast<long long>(base_us + ns / 1000),
                  static_cast<int>(ns % 1000));
    return text;
  }

  void put(const char* text) {
    const int count = std::fputs(text, file_.get());
    if (count < 0) throw std::runtime_error("can't write the synthetic trace");
    bytes_ += std::char_traits<char>::length(text);
  }

  template <class... Values>
  void event(const char* format, Values... values) {
    std::array<char, 1024> text{};
    std::snprintf(text.data(), text.size(), format, values...);
    put("  {\n    ");
    put(text.data());
    put("\n  },\n");
    ++events_;
  }

  void cpu_operator(const char* name, std::int64_t begin, std::int64_t duration) {
    event(R"("ph": "X", "cat": "cpu_op", "name": "%s", "pid": 4711, "tid": 4711,
    "ts": %s, "dur": %s,
    "args": {
      "External id": %lld,"Record function id": 0, "Sequence number": %lld, "Fwd thread id": 0, "Ev Idx": %lld
    })",
          name, time(begin).data(), time(duration, 0).data(), id_, id_, events_);
  }

  void one_operator(const char* name, const char* kernel, bool forward) {
    ++id_;
    cpu_operator(forward ? name : "autograd::engine::evaluate_function: NativeBackward0", now_, 21'250);
    cpu_operator(forward ? "aten::empty" : "NativeBackward0", now_ + 1'500, 18'125);
    cpu_operator("aten::as_strided", now_ + 4'000, 1'001);
    event(R"("ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 4711, "tid": 4711,
    "ts": %s, "dur": %s,
    "args": {
      "External id": %lld,"cbid": 211, "correlation": %lld
    })",
          time(now_ + 9'000).data(), time(4'321, 0).data(), id_, id_);
    for (const char* const end : {"s", "f"})
      event(R"("ph": "%s", "id": %lld, "pid": %d, "tid": %d, "ts": %s,
    "cat": "ac2g", "name": "ac2g")",
            end, id_, *end == 's' ? 4711 : 0, *end == 's' ? 4711 : 7, time(now_ + 9'000).data());
    event(R"("ph": "X", "cat": "kernel", "name": "%s", "pid": 0, "tid": 7,
    "ts": %s, "dur": %s,
    "args": {
      "External id": %lld,"queued": 0, "device": 0, "context": 1,"stream": 7, "correlation": %lld,"registers per thread": 64,
      "shared memory": 49152,"blocks per SM": 3.2,"warps per SM": 12.8,"grid": [432, 1, 1],"block": [128, 1, 1],
      "est. achieved occupancy %%": 20
    })",
          kernel, time(now_ + 15'000).data(), time(19'008, 0).data(), id_, id_);
    now_ += 22'000;
  }

  void memory(int bytes, int slot) {
    allocated_ += bytes;
    event(R"("ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 4711, "tid": 4711,
    "ts": %s,
    "args": {
      "Total Reserved": 4294967296, "Total Allocated": %lld, "Bytes": %d, "Addr": %lld, "Device Id": 0, "Device Type": 1,
      "Ev Idx": %lld
    })",
          time(now_).data(), allocated_, bytes, 140'000'000'000'000LL + slot * 2'097'152LL, events_);
  }

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_;
  std::int64_t now_ = 0;  // nanoseconds
  long long id_ = 0, steps_ = 0, allocated_ = 0;
  long long events_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace

LargeKineto write_large_kineto(const std::string& path, std::uint64_t bytes) {
  Writer writer(path);
  while (writer.bytes() < bytes) writer.step();
  return writer.finish();
}

}  // namespace spillway::bench
