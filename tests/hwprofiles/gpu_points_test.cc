#include "hwprofiles/gpu_points.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "base/input_error.h"

namespace spillway::hwprofiles {
namespace {

std::string place(const char* name) {
  std::string path = testing::TempDir() + "/" + name;
  std::remove(path.c_str());
  return path;
}

GpuIdentity some_device() {
  GpuIdentity device;
  device.name = "NVIDIA H100 80GB HBM3";
  device.memory = Bytes(85'000'000'000);
  device.sm_count = 132;
  device.power_limit_watts = 700;
  return device;
}

GpuPoint product() {
  return {.kind = PointKind::product,
          .what = "tn",
          .value = {1.25e-4, 0.01},
          .samples = 20,
          .precision = Precision::fp8,
          .m = 4096,
          .n = 1024,
          .k = 8192};
}

// What is written line by line reads back, and a line that was being written when the program died is passed over.
TEST(GpuPoints, SurviveTheirProgram) {
  const std::string path = place("points.jsonl");
  {
    GpuPointFile file(path);
    file.add(device_line(some_device()));
    file.add(point_line(product()));
    GpuPoint copy{.kind = PointKind::copy_to_host, .value = {2e-3, 0}, .bytes = Bytes(1 << 20), .pinned = false};
    file.add(point_line(copy));
    file.add(note_line("no counters"));
    file.add(failed_line({"copies", "unspecified launch failure"}));
    file.add(point_line(product()).substr(0, 20));
  }
  const GpuMeasurement read = read_gpu_points(path);
  EXPECT_EQ(read.device.name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(read.device.memory, Bytes(85'000'000'000));
  EXPECT_EQ(read.device.power_limit_watts, 700);
  ASSERT_EQ(read.points.size(), 2U);
  EXPECT_EQ(read.points[0].kind, PointKind::product);
  EXPECT_EQ(read.points[0].precision, Precision::fp8);
  EXPECT_EQ(read.points[0].k, 8192);
  EXPECT_DOUBLE_EQ(read.points[0].value.median, 1.25e-4);
  EXPECT_DOUBLE_EQ(read.points[0].value.relative, 0.01);
  EXPECT_EQ(read.points[0].samples, 20);
  EXPECT_FALSE(read.points[1].pinned);
  EXPECT_EQ(read.points[1].bytes, Bytes(1 << 20));
  EXPECT_THAT(read.notes, testing::ElementsAre("no counters"));
  ASSERT_EQ(read.failed.size(), 1U);
  EXPECT_EQ(read.failed[0].part, "copies");
  EXPECT_FALSE(read.is_whole);
  std::ofstream(path, std::ios::app) << "\n";
  EXPECT_THROW(static_cast<void>(read_gpu_points(path)), InputError);
}

TEST(GpuPoints, EndWhenTheyAreAll) {
  const std::string path = place("whole.jsonl");
  {
    GpuPointFile file(path);
    file.add(device_line(some_device()));
    file.add(end_line());
  }
  EXPECT_TRUE(read_gpu_points(path).is_whole);
}

// Measurements are dear.
TEST(GpuPoints, AreNotWrittenOver) {
  const std::string path = place("kept.jsonl");
  std::ofstream(path) << "mine";
  EXPECT_THROW(GpuPointFile{path}, InputError);
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "mine");
  EXPECT_THROW(GpuPointFile{"/nowhere/at/all"}, InputError);
  const std::string empty = place("empty.jsonl");
  { const GpuPointFile nothing(empty); }
  EXPECT_FALSE(std::ifstream(empty).good());
}

std::string points_refusal(const std::string& text) {
  const std::string path = place("wrong.jsonl");
  std::ofstream(path) << text;
  try {
    static_cast<void>(read_gpu_points(path));
  } catch (const InputError& error) {
    return error.place() + ": " + error.cause();
  }
  return "";
}

TEST(GpuPoints, TellWhatIsWrongWithAFile) {
  using testing::HasSubstr;
  const std::string head = device_line(some_device());
  EXPECT_THAT(points_refusal(""), HasSubstr("no file of raw points"));
  EXPECT_THAT(points_refusal(point_line(product())), HasSubstr("no file of raw points"));
  EXPECT_THAT(points_refusal(head + "{\"point\":{\"kind\":\"product\",\"value\":-1}}\n"), HasSubstr("line 2"));
  EXPECT_THAT(points_refusal(head + "{\"point\":{\"kind\":\"nonsense\",\"value\":1}}\n"), HasSubstr("line 2"));
  EXPECT_THAT(points_refusal(head + "{\"pint\":1}\n"), HasSubstr("line 2"));
}

}  // namespace
}  // namespace spillway::hwprofiles
