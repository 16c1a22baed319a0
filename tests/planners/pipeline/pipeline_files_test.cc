// Plans as JSON and as pictures.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/input_error.h"
#include "models/pipeline/named_schedules.h"
#include "models/pipeline/pipeline_json.h"
#include "reports/pictures/pipeline_svg.h"

namespace spillway::reports {
namespace {

PipelineRequest request_for(std::string_view name) {
  PipelineRequest request;
  request.devices = 4;
  request.micro_batches = 8;
  request = resolve_request(name, request);
  request.times.positions = {{16, 16, 16, 16}};
  request.times.offload = request.times.reload = 4;
  return request;
}

// Written and read again, every schedule runs alike.
TEST(PipelineFiles, JsonThereAndBack) {
  for (const NamedSchedule& named : named_schedules()) {
    SCOPED_TRACE(std::string(named.name));
    const PipelineRequest request = request_for(named.name);
    const PipelinePlan plan = build_schedule(named.name, request);
    nlohmann::ordered_json document;
    add_plan_json(document, plan);
    const PipelinePlan again = read_plan_json(document.dump(), "plan.json");
    EXPECT_EQ(execute_plan(plan, request.times).makespan, execute_plan(again, request.times).makespan);
    ASSERT_EQ(again.compute.size(), plan.compute.size());
    for (std::size_t d = 0; d < plan.compute.size(); ++d) {
      ASSERT_EQ(again.compute[d].size(), plan.compute[d].size());
      for (std::size_t i = 0; i < plan.compute[d].size(); ++i) {
        EXPECT_EQ(text_of(again, again.compute[d][i]), text_of(plan, plan.compute[d][i]));
        EXPECT_EQ(again.compute[d][i].after, plan.compute[d][i].after);
      }
      EXPECT_EQ(again.copies[d].size(), plan.copies[d].size());
    }
  }
}

std::string place_of_error(const std::string& text) {
  try {
    read_plan_json(text, "plan.json");
  } catch (const InputError& error) {
    EXPECT_EQ(error.file(), "plan.json");
    return error.place();
  }
  return "none";
}

TEST(PipelineFiles, BadJson) {
  EXPECT_EQ(place_of_error("{"), "byte 2");
  EXPECT_EQ(place_of_error("[]"), "/");
  EXPECT_EQ(place_of_error(R"({"micro_batches": 1})"), "/stages");
  EXPECT_EQ(place_of_error(R"({"stages": 0, "micro_batches": 1})"), "/stages");
  EXPECT_EQ(place_of_error(R"({"stages": 1, "micro_batches": 1})"), "/orders");
  EXPECT_EQ(place_of_error(R"({"stages": 2, "micro_batches": 1, "orders": [["F0", "BW0"]]})"), "/orders");
  EXPECT_EQ(place_of_error(R"({"stages": 1, "micro_batches": 1, "orders": [["F0", "X0"]]})"), "/orders/0/1");
  EXPECT_EQ(place_of_error(R"({"stages": 1, "micro_batches": 1, "orders": [["F0", "B0x"]]})"), "/orders/0/1");
  EXPECT_EQ(place_of_error(R"({"stages": 1, "micro_batches": 1, "orders": [["BW0", "F0"]]})"),
            "device 0, operation 0 (BW0)");
  EXPECT_EQ(place_of_error(R"({"stages": 1, "micro_batches": 1, "placement": "ring", "orders": [[]]})"), "/placement");
  EXPECT_EQ(place_of_error(R"({"stages": 2, "micro_batches": 1, "routes": [[[0, 0], [0, 0]]], "orders": [[], []]})"),
            "schedule");
  EXPECT_EQ(place_of_error(R"({"stages": 1, "micro_batches": 1, "orders": [["F0", "BW0"]], "waits": [[[1, 0]]]})"),
            "/waits/0");
  EXPECT_EQ(place_of_error(R"({"stages": 1, "micro_batches": 1, "orders": [["F0", "BW0"]]})"), "none");
}

// A box per pass, a row per device, the figures in words; nothing that isn't finished.
TEST(PipelineFiles, Picture) {
  for (const char* name : {"1f1b", "chronos", "dualpipe", "po-h", "seq1f1b"}) {
    const PipelineRequest request = request_for(name);
    const PipelinePlan plan = build_schedule(name, request);
    const PipelineTimeline timeline = execute_plan(plan, request.times);
    PipelineSvgOptions options;
    options.title = "<" + std::string(name) + ">";
    options.memory_limit = 3;
    const std::string svg = pipeline_svg(plan, timeline, activation_profile(plan, timeline), options);
    EXPECT_EQ(svg.find("nan"), std::string::npos);
    EXPECT_NE(svg.find("&lt;" + std::string(name)), std::string::npos);
    EXPECT_NE(svg.find(">device 3<"), std::string::npos);
    std::size_t boxes = 0;
    for (std::size_t at = svg.find("<rect"); at != std::string::npos; at = svg.find("<rect", at + 1)) ++boxes;
    EXPECT_GE(boxes, plan.operations()) << name;
    EXPECT_EQ(svg, pipeline_svg(plan, timeline, activation_profile(plan, timeline), options));
  }
}

TEST(PipelineFiles, TooMuchForAPicture) {
  PipelineRequest request;
  request.devices = 64;
  request.micro_batches = 1024;
  const PipelinePlan plan = build_schedule("1f1b", request);
  request.times.positions = {{1, 1, 1, 1}};
  const PipelineTimeline timeline = execute_plan(plan, request.times);
  EXPECT_THROW(pipeline_svg(plan, timeline, activation_profile(plan, timeline), {}), InputError);
}

}  // namespace
}  // namespace spillway::reports
