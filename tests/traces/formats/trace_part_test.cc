#include "traces/formats/trace_part.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/input_error.h"

namespace spillway::traces {
namespace {

// Three steps of 100 us, each with four kernels launched 10 us before they run; times of an epoch clock.
std::string three_steps(const std::string& name, std::size_t padding = 0) {
  std::string events;
  constexpr std::int64_t epoch = 1'700'000'000'000'000;
  int correlation = 1;
  const auto add = [&events](const std::string& event) { events += (events.empty() ? "" : ",\n") + event; };
  const auto head = [](const std::string& category, const std::string& called, std::int64_t ts, int dur) {
    return R"({"ph": "X", "cat": ")" + category + R"(", "name": ")" + called + R"(", "pid": 1, "tid": 5, "ts": )" +
           std::to_string(ts) + ".250, \"dur\": " + std::to_string(dur);
  };
  add(R"({"ph": "M", "name": "thread_name", "pid": 1, "tid": 5, "args": {"name": "main"}})");
  for (int step = 0; step < 3; ++step) {
    const std::int64_t begin = epoch + step * 100;
    const std::string number = std::to_string(step);
    add(head("user_annotation", "ProfilerStep#" + number, begin, 100) + R"(, "args": {}})");
    add(head("gpu_user_annotation", "ProfilerStep#" + number, begin + 5, 90) + R"(, "args": {}})");
    for (int i = 0; i < 4; ++i, ++correlation) {
      const std::string args = "\"correlation\": " + std::to_string(correlation);
      add(head("cuda_runtime", "cudaLaunchKernel", begin + 20 * i, 2) + R"(, "args": {)" + args + "}}");
      add(head("kernel", "step" + number, begin + 20 * i + 10, 8) + R"(, "args": {"device": 0, "stream": 7, )" + args +
          R"(, "note": ")" + std::string(padding, 'x') + "\"}}");
    }
  }
  const std::string path = (std::filesystem::path(testing::TempDir()) / name).string();
  std::ofstream(path) << "{\"traceEvents\": [" + events + "]}";
  return path;
}

std::size_t kernels(const Trace& trace) {
  std::size_t count = 0;
  for (const OpKind kind : trace.ops.kind) count += kind == OpKind::kernel ? 1 : 0;
  return count;
}

// Steps, first instant and length, whether the file is smaller than what is looked at in one piece, or many times that.
TEST(TracePart, SurveyFindsStepsAndLength) {
  for (const std::size_t padding : {0, 1'000'000}) {
    const TraceSurvey survey = survey_trace(three_steps("survey.json", padding));
    EXPECT_EQ(survey.first_us, 1'700'000'000'000'000);
    EXPECT_NEAR(survey.length_us, 300, 0.5);
    EXPECT_EQ(survey.events, 3U * (2 + 8));
    ASSERT_EQ(survey.steps.size(), 3U) << padding;
    EXPECT_EQ(survey.steps[1].name, "ProfilerStep#1");
    EXPECT_NEAR(survey.steps[1].from_us, 100, 0.5);
    EXPECT_NEAR(survey.steps[1].until_us, 200, 0.5);
  }
}

// One step of three has a third of the kernels, all of one name.
TEST(TracePart, APartHasWhatBeginsInIt) {
  const std::string path = three_steps("part.json");
  const TraceSurvey survey = survey_trace(path);
  const Trace trace = read_trace_part(path, {survey.steps[1].from_us, survey.steps[1].until_us});
  EXPECT_EQ(kernels(trace), 4U);
  EXPECT_EQ(trace.steps.size(), 1U);
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    if (trace.ops.kind[i] == OpKind::kernel) {
      EXPECT_EQ(trace.strings.text(trace.ops.name[i]), "step1");
    }
  EXPECT_EQ(trace.lanes[0].number, 5);
  const Trace whole = read_trace_part(path, {0, 1e15});
  EXPECT_EQ(kernels(whole), kernels(read_trace(path)));
  EXPECT_EQ(whole.ops.size(), read_trace(path).ops.size());
}

TEST(TracePart, WhatCanNotBeReadIsSaid) {
  const std::string path = three_steps("wrong.json");
  EXPECT_THROW(read_trace_part(path, {400, 500}), InputError);
  EXPECT_THROW(read_trace_part(path, {50, 50}), InputError);
  const std::string other = (std::filesystem::path(testing::TempDir()) / "empty.json").string();
  std::ofstream(other) << R"({"traceEvents": []})";
  EXPECT_THROW(survey_trace(other), InputError);
}

TEST(TracePart, SurveysAreCancelled) {
  ReadOptions options;
  options.progress = [](std::uint64_t, std::uint64_t) { return false; };
  EXPECT_THROW(survey_trace(three_steps("cancelled.json"), options), Cancelled);
}

}  // namespace
}  // namespace spillway::traces
