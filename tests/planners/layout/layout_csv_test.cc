// The table of buffers: what it may look like, and what is said of it when it is wrong.
#include "planners/layout/layout_csv.h"

#include <gtest/gtest.h>

#include "base/input_error.h"

namespace spillway::planners {
namespace {

std::string complaint(const std::string& text) {
  try {
    read_layout_csv(text, "b.csv");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(LayoutCsv, ReadsColumnsInAnyOrderAndTheirSynonyms) {
  const LayoutTable table = read_layout_csv("size,end,begin,buffer\r\n4,2,0,\"a,b\"\r\n\r\n5,3,1,c", "b.csv");
  ASSERT_EQ(table.buffers.size(), 2U);
  EXPECT_EQ(table.ids[0], "a,b");
  EXPECT_EQ(table.buffers[0].upper, 3);  // "end" is the last moment alive
  EXPECT_EQ(table.buffers[1].size, 5);
  EXPECT_EQ(table.buffers[1].fixed_offset, layout_free);
}

TEST(LayoutCsv, ReadsAlignmentsAndGivenOffsets) {
  const LayoutTable table = read_layout_csv("id,lower,upper,size,alignment,offset\na,0,1,4,8,\nb,0,1,4,,12\n", "b.csv");
  EXPECT_EQ(table.buffers[0].alignment, 8);
  EXPECT_EQ(table.buffers[0].fixed_offset, layout_free);
  EXPECT_EQ(table.buffers[1].alignment, 1);
  EXPECT_EQ(table.buffers[1].fixed_offset, 12);
}

TEST(LayoutCsv, WritesWhatItReads) {
  const std::string text = "id,lower,upper,size,offset\na,0,3,4,0\n\"b \"\"c\"\", d\",1,2,5,4\n";
  const LayoutTable table = read_layout_csv(text, "b.csv");
  EXPECT_EQ(write_layout_csv(table, std::vector<std::int64_t>{0, 4}), text);
}

TEST(LayoutCsv, SaysWhatIsWrongAndWhere) {
  const std::string head = "id,lower,upper,size\n";
  const auto expect = [](const std::string& text, const std::string& place, const std::string& cause) {
    const std::string said = complaint(text);
    EXPECT_NE(said.find("b.csv"), std::string::npos) << said;
    EXPECT_NE(said.find(place), std::string::npos) << said;
    EXPECT_NE(said.find(cause), std::string::npos) << said;
  };
  expect("", "", "is empty");
  expect(head, "", "has no buffers");
  expect("id,lower,upper\na,0,1\n", "line 1", "no column \"size\"");
  expect("id,lower,upper,sise\na,0,1,2\n", "line 1", "did you mean size?");
  expect("id,lower,start,upper,size\n", "line 1", "two columns for lower");
  expect(head + "a,0,1,2\nb,0,1\n", "line 3", "3 fields");
  expect(head + "a,0,1,-2\n", "line 2", "negative size");
  expect(head + "a,1,1,2\n", "line 2", "upper is not above lower");
  expect("id,lower,end,size\na,1,0,2\n", "line 2", "ends before it begins");
  expect(head + "a,0,1,2.5\n", "line 2", "size \"2.5\" is no whole number");
  expect(head + "a,0,x,2\n", "line 2", "upper \"x\" is no whole number");
  expect(head + "a,0,1,99999999999999999999\n", "line 2", "beyond 64 bits");
  expect(head + "a,0,9223372036854775807,1\n", "line 2", "beyond 2^61");
  expect(head + "a,0,1,2\n\nb,0,1,2\na,1,2,3\n", "line 5", "id \"a\" again, first on line 2");
  expect(head + "a,0,1,4000000000000000000\nb,0,1,4000000000000000000\n", "line 3", "2^62");
  expect("id,lower,upper,size,alignment\na,0,1,2,0\n", "line 2", "alignment below 1");
  expect("id,lower,upper,size,offset\na,0,1,2,-3\n", "line 2", "negative offset");
  expect("id,lower,upper,size,offset\na,0,2,2,0\nb,1,2,2,1\n", "line 3", "overlaps");
}

}  // namespace
}  // namespace spillway::planners
