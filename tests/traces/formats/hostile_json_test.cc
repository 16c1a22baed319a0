// What every JSON reader must take without crashing: names that are no UTF-8, integers beyond 64 bits in any field.
#include <gtest/gtest.h>

#include <string>

#include "base/input_error.h"
#include "tests/traces/test_files.h"
#include "traces/formats/execution_trace_reader.h"
#include "traces/formats/kineto/kineto_reader.h"
#include "traces/utf8.h"

namespace spillway::traces {
namespace {

struct Format {
  const char* name;
  Trace (*read)(ByteSource&, const ReadOptions&);
  const char* file;  // every number a whole one, every name letters only
};

constexpr Format formats[] = {
    {"kineto", read_kineto,
     R"({"traceEvents":[
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":5,"ts":10,"dur":2,"args":{"correlation":3}},
{"ph":"X","cat":"kernel","name":"ncclKernel","pid":0,"tid":7,"ts":20,"dur":4,"args":{"device":0,"stream":7,
"correlation":3,"Collective name":"allreduce","dtype":"Float","In msg nelems":64,"Out msg nelems":64,"Group size":8}},
{"ph":"X","cat":"cpu_op","name":"aten","pid":1,"tid":5,"ts":9,"dur":6,"args":{"External id":4,"Sequence number":5,
"Record function id":6}},
{"ph":"i","cat":"cpu_instant_event","name":"[memory]","pid":1,"tid":5,"ts":12,"args":{"Total Allocated":512,
"Total Reserved":1024,"Bytes":512,"Addr":4096,"Device Id":0,"Device Type":1}}]})"},
    {"execution_trace", read_execution_trace,
     R"({"schema":"1.0.1","nodes":[{"id":2,"parent":1,"name":"aten","op_schema":"","tid":1,"rf_id":3,"fw_parent":0,
"fw_tid":0,"seq_id":4,"inputs":[[7,70,8,24,4,"cuda:0"]],"outputs":[[8,80,0,24,4,"cuda:0"]],"input_types":["Tensor"],
"output_types":["Tensor"]}]})"},
};

class HostileJson : public ::testing::TestWithParam<Format> {
 protected:
  // Reads a changed file: a trace whose invariants hold and whose texts are UTF-8, or one clear refusal.
  static void survives(const std::string& text) {
    ByteSource source = test::source_of(text);
    try {
      const Trace trace = GetParam().read(source, {});
      trace.check_invariants();
      for (std::size_t i = 0; i < trace.ops.size(); ++i) {
        const std::string name(trace.strings.text(trace.ops.name[i]));
        EXPECT_EQ(to_valid_utf8(name), name) << text;
      }
    } catch (const InputError& error) {
      EXPECT_STRNE(error.what(), "");
    }
  }
};

TEST_P(HostileJson, TheFileItselfIsRead) {
  ByteSource source = test::source_of(GetParam().file);
  const Trace trace = GetParam().read(source, {});
  EXPECT_GT(trace.ops.size(), 0U);
}

// Each number of the file in turn: below and above int64, above uint64, a fraction no integer holds, at the limits.
TEST_P(HostileJson, NumbersBeyondInt64) {
  const std::string file = GetParam().file;
  const std::string digits = "0123456789";
  std::size_t replaced = 0;
  for (std::size_t at = file.find_first_of(digits); at != std::string::npos;) {
    const std::size_t end = file.find_first_not_of(digits, at);
    if (file[at - 1] == ':' || file[at - 1] == '[' || (file[at - 1] == ',' && file[at - 2] != '"')) {
      for (const char* number : {"9223372036854775808", "-9223372036854775809", "99999999999999999999999", "1e300",
                                 "9223372036854775807", "-9223372036854775808"})
        survives(file.substr(0, at) + number + file.substr(end));
      ++replaced;
    }
    at = file.find_first_of(digits, end);
  }
  EXPECT_GE(replaced, 10U);
}

// In each text of the file in turn: a lone continuation byte, a cut sequence, an overlong slash, a surrogate, a NUL.
TEST_P(HostileJson, InvalidUtf8) {
  const std::string file = GetParam().file;
  for (std::size_t at = file.find('"'); at != std::string::npos; at = file.find('"', at + 1)) {
    for (const std::string& bytes : {std::string("\x80"), std::string("\xe2\x82"), std::string("\xc0\xaf"),
                                     std::string("\xed\xa0\x80"), std::string("\\ud800"), std::string("\\u0000")})
      survives(file.substr(0, at + 1) + bytes + file.substr(at + 1));
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, HostileJson, ::testing::ValuesIn(formats),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace spillway::traces
