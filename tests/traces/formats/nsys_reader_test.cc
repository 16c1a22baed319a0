#include "traces/formats/nsys_reader.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>

#include "base/input_error.h"
#include "tests/traces/test_files.h"

namespace spillway::traces {
namespace {

class NsysTest : public ::testing::Test {
 protected:
  void SetUp() override { path_ = test::temporary_path("nsys #1?.sqlite"); }
  void TearDown() override { std::filesystem::remove(path_); }
  void make(const std::string& sql) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
    char* message = nullptr;
    ASSERT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &message), SQLITE_OK) << message;
    sqlite3_close(database);
  }
  std::string path_;
};

// Process 5 is globalTid >> 24. Two processes use correlation 1: the join needs both.
constexpr const char* two_processes = R"(
  CREATE TABLE StringIds(id INTEGER, value TEXT);
  INSERT INTO StringIds VALUES (1,'cudaLaunchKernel_v7000'),(2,'gemm'),(3,'cudaStreamSynchronize_v3020'),(4,'step'),(5,'cudaMemcpy_v3020');
  CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INT, end INT, globalTid INT, correlationId INT, nameId INT);
  INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES
    (300, 900, (5<<24)+7, 2, 3), (100, 110, (5<<24)+7, 1, 1), (150, 160, (6<<24)+8, 1, 1), (950, 990, (5<<24)+7, 3, 5);
  CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, deviceId INT, streamId INT, correlationId INT, globalPid INT, demangledName INT);
  INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (200, 850, 0, 7, 1, 5<<24, 2), (210, NULL, 1, 7, 1, 6<<24, 2), (50, 40, 0, 7, 9, 5<<24, 2), (990, 995, 0, 7, 77, 5<<24, 2);
  CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INT, end INT, deviceId INT, streamId INT, correlationId INT, globalPid INT, bytes INT, copyKind INT, srcKind INT, dstKind INT);
  INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (960, 980, 0, 7, 3, 5<<24, 4096, 1, 0, 2);
  CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(start INT, end INT, deviceId INT, streamId INT, correlationId INT, globalPid INT);
  INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (300, 900, 0, 7, 2, 5<<24);
  CREATE TABLE NVTX_EVENTS(start INT, end INT, eventType INT, text TEXT, textId INT, globalTid INT);
  INSERT INTO NVTX_EVENTS VALUES (90, 1000, 59, NULL, 4, (5<<24)+7), (95, 96, 34, 'mark', NULL, (5<<24)+7), (90, NULL, 59, 'open', NULL, (5<<24)+7);
  CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS(start INT, deviceId INT, address INT, bytes INT, memoryOperationType INT);
  INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (20, 0, 4096, 512, 1), (10, 0, 4096, 512, 0), (30, 0, 4096, -5, 0);
)";

// Reports grow with the rows read; saying no ends the reading, as with the other formats.
TEST_F(NsysTest, CanBeCancelled) {
  make(
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, deviceId INT, streamId INT);"
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 140000) "
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT i, i + 1, 0, 7 FROM n;");
  std::vector<std::uint64_t> reports;
  const auto go_on_until = [&](std::size_t count) {
    reports.clear();
    return ReadOptions{.progress = [&reports, count](std::uint64_t rows, std::uint64_t) {
      reports.push_back(rows);
      return reports.size() < count;
    }};
  };
  EXPECT_EQ(read_nsys(path_, go_on_until(100)).ops.size(), 140000U);
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_LT(reports[0], reports[1]);
  EXPECT_THROW(read_nsys(path_, go_on_until(1)), Cancelled);
  EXPECT_EQ(reports.size(), 1U);
}

// Pages of 512 bytes; every page between the root and the leaves is made to name the next of them in each place, so
// that a walk meets the last leaf some 50^n times.
TEST_F(NsysTest, PagesThatShareTheirChildrenAreRefused) {
  make(
      "PRAGMA page_size = 512; CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, deviceId INT, streamId INT);"
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT i, i + 1, 0, 7 FROM n;");
  std::string bytes;
  {
    std::ifstream file(path_, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  constexpr std::size_t page = 512, first_cell = 12;
  constexpr char inner = 5, leaf = 13;
  const auto byte = [&](std::size_t at) { return static_cast<std::size_t>(static_cast<unsigned char>(bytes[at])); };
  std::vector<std::size_t> chain;
  std::size_t last = 0;
  for (std::size_t at = page; at < bytes.size(); at += page) {
    if (bytes[at] == inner) chain.push_back(at);
    if (bytes[at] == leaf) last = at / page + 1;
  }
  ASSERT_GT(chain.size(), 4U);
  chain.resize(std::min<std::size_t>(chain.size(), 15));
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const std::size_t child = i + 1 < chain.size() ? chain[i + 1] / page + 1 : last;
    const auto name_child = [&](std::size_t at) {
      for (std::size_t b = 0; b < 4; ++b) bytes[at + b] = static_cast<char>(child >> (8 * (3 - b)));
    };
    name_child(chain[i] + 8);
    for (std::size_t cell = 0; cell < byte(chain[i] + 3) * 256 + byte(chain[i] + 4); ++cell) {
      const std::size_t pointer = chain[i] + first_cell + 2 * cell;
      name_child(chain[i] + byte(pointer) * 256 + byte(pointer + 1));
    }
  }
  std::ofstream(path_, std::ios::binary) << bytes;
  try {
    read_nsys(path_, {});
    FAIL() << "a walk without an end has ended";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("more rows than fit"), std::string::npos) << error.what();
  }
}

// A program that still has the file open, or was killed, left rows in the log beside it.
TEST_F(NsysTest, RowsInALogBesideItAreNotPassedOver) {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
  const auto run = [&](const char* sql) {
    ASSERT_EQ(sqlite3_exec(database, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
  };
  run("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, deviceId INT, streamId INT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 0, 7);");
  EXPECT_EQ(read_nsys(path_, {}).ops.size(), 1U);
  run("PRAGMA journal_mode = wal; INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (3, 4, 0, 7);");
  try {
    read_nsys(path_, {});
    ADD_FAILURE() << "the second row was passed over";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("-wal"), std::string::npos) << error.what();
  }
  sqlite3_close(database);  // folds the log in
  EXPECT_EQ(read_nsys(path_, {}).ops.size(), 2U);
}

// Event 5 is recorded twice; who waits for it waits for the last record before.
TEST_F(NsysTest, EventsSayWhatIsWaitedFor) {
  make(R"(
    CREATE TABLE StringIds(id INTEGER, value TEXT);
    INSERT INTO StringIds VALUES (1,'cudaLaunchKernel_v7000'),(2,'gemm'),(3,'cudaEventRecord_v3020'),
      (4,'cudaEventSynchronize_v3020'),(5,'cudaStreamWaitEvent_v3020');
    CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INT, end INT, globalTid INT, correlationId INT, nameId INT);
    INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (5, 6, 5<<24, 9, 4), (10, 20, 5<<24, 1, 1), (30, 31, 5<<24, 2, 3),
      (40, 45, 5<<24, 3, 1), (50, 51, 5<<24, 4, 3), (60, 90, 5<<24, 5, 4), (100, 101, 5<<24, 6, 5), (110, 111, 5<<24, 7, 4);
    CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, deviceId INT, streamId INT, correlationId INT, globalPid INT, demangledName INT);
    INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (20, 80, 0, 7, 1, 5<<24, 2), (46, 85, 0, 8, 3, 5<<24, 2);
    CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(start INT, end INT, deviceId INT, streamId INT, correlationId INT, globalPid INT, syncType INT, eventId INT);
    INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (5, 6, 0, 4294967295, 9, 5<<24, 2, 5), (60, 90, 0, 4294967295, 5, 5<<24, 2, 5),
      (100, 101, 0, 7, 6, 5<<24, 3, 5), (110, 111, 0, 4294967295, 7, 5<<24, 2, 77);
    CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT(deviceId INT, contextId INT, streamId INT, correlationId INT, globalPid INT, eventId INT);
    INSERT INTO CUPTI_ACTIVITY_KIND_CUDA_EVENT VALUES (0, 1, 8, 4, 5<<24, 5), (0, 1, 7, 2, 5<<24, 5), (0, 1, 7, 99, 5<<24, 5);
  )");
  const Trace t = read_nsys(path_, {});
  const auto stream = [&](const Sync& sync) {
    return sync.lane == LaneId::none ? -1 : t.lanes[index_of(sync.lane)].number;
  };
  ASSERT_EQ(t.syncs.size(), 4U);  // the synchronisations before any record and of an unknown event have none
  EXPECT_EQ(index_of(t.syncs[0].op), 2U);
  EXPECT_EQ(stream(t.syncs[0]), 7);
  EXPECT_EQ(index_of(t.syncs[1].op), 4U);
  EXPECT_EQ(stream(t.syncs[1]), 8);
  EXPECT_EQ(index_of(t.syncs[2].op), 5U);
  EXPECT_EQ(t.syncs[2].event, t.syncs[1].op);
  EXPECT_EQ(index_of(t.syncs[3].op), 6U);
  EXPECT_EQ(stream(t.syncs[3]), 7);
  EXPECT_EQ(t.syncs[3].event, t.syncs[1].op);
}

TEST_F(NsysTest, ExportsWithoutAnyCudaSaySo) {
  make("CREATE TABLE StringIds(id INTEGER, value TEXT); CREATE TABLE TARGET_INFO_GPU(id INT, name TEXT);");
  try {
    read_nsys(path_, {});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("--trace=cuda,nvtx"), std::string::npos) << error.what();
  }
}

TEST_F(NsysTest, JoinsOnCorrelationAndProcess) {
  make(two_processes);
  const Trace t = read_nsys(path_, {});
  ASSERT_EQ(t.ops.size(), 8U);  // 4 calls, 3 kernels (one has a negative duration), 1 copy
  EXPECT_EQ(t.rank_count, 2);
  // Calls by start: launch of process 5, launch of 6, sync, memcpy.
  EXPECT_EQ(t.ops.kind[0], OpKind::launch);
  EXPECT_EQ(t.ops.kind[2], OpKind::stream_sync);
  EXPECT_NE(t.ops.flags[3] & static_cast<std::uint8_t>(OpFlag::blocking), 0);
  // Device work in launch order.
  EXPECT_EQ(t.ops.launched_by[4], OpId(0));
  EXPECT_EQ(t.ops.duration[4], nanoseconds(650));
  EXPECT_EQ(t.ops.launched_by[5], OpId(1));
  EXPECT_EQ(t.ops.duration[5], unknown_time);
  EXPECT_EQ(t.ops.kind[6], OpKind::copy_host_to_device);
  EXPECT_NE(t.ops.flags[6] & static_cast<std::uint8_t>(OpFlag::pageable), 0);
  EXPECT_EQ(t.ops.launched_by[7], OpId::none);
  EXPECT_EQ(t.finding("missing_launch")->count, 1U);
  EXPECT_EQ(t.finding("negative_duration")->count, 1U);
  ASSERT_EQ(t.syncs.size(), 1U);
  EXPECT_EQ(t.syncs[0].lane, t.ops.lane[4]);
  ASSERT_EQ(t.spans.size(), 2U);
  EXPECT_EQ(t.strings.text(t.spans.name[0]), "step");
  EXPECT_EQ(t.spans.duration[1], unknown_time);
  ASSERT_EQ(t.memory_events.size(), 2U);
  EXPECT_EQ(t.memory_events[0].action, MemoryAction::allocate);
  EXPECT_FALSE(std::filesystem::exists(path_ + "-journal"));
}

// A graph recorded as a whole is one piece of work; ranges tie calls, and what they launched, to the innermost open
// one.
TEST_F(NsysTest, GraphsAsAWholeAndNestedRanges) {
  make(R"(
    CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INT, end INT, globalTid INT, correlationId INT, nameId TEXT);
    INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(1000, 1400, 16777217, 7, 'cudaGraphLaunch_v10000');
    INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(5000, 5200, 16777217, 8, 'cudaLaunchKernel');
    CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE(start INT, end INT, globalPid INT, correlationId INT, streamId INT,
                                                 deviceId INT, graphId INT);
    INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES(2000, 4000, 16777216, 7, 7, 0, 3);
    CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, globalPid INT, correlationId INT, streamId INT,
                                            deviceId INT, demangledName TEXT);
    INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(5300, 5400, 16777216, 8, 7, 0, 'gemm');
    CREATE TABLE NVTX_EVENTS(start INT, end INT, eventType INT, text TEXT, globalTid INT);
    INSERT INTO NVTX_EVENTS VALUES(4500, 5100, 59, 'inner', 16777217);
    INSERT INTO NVTX_EVENTS VALUES(500, 6000, 59, 'outer', 16777217);
  )");
  const Trace t = read_nsys(path_, {});
  ASSERT_EQ(t.ops.size(), 4U);
  EXPECT_EQ(t.strings.text(t.ops.name[2]), "CUDA graph 3");
  EXPECT_EQ(t.ops.launched_by[2], OpId(0));
  EXPECT_EQ(t.ops.duration[2], nanoseconds(2000));
  EXPECT_EQ(t.finding("graph_without_nodes")->count, 1U);
  const auto range = [&](std::size_t op) { return t.strings.text(t.spans.name[index_of(t.ops.span[op])]); };
  EXPECT_EQ(range(0), "outer");
  EXPECT_EQ(range(2), "outer");
  EXPECT_EQ(range(1), "inner");
  EXPECT_EQ(range(3), "inner");
}

// Tables are created lazily and columns come and go.
TEST_F(NsysTest, MissingTablesAndColumns) {
  make(
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT); INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, "
      "2), ('x', 3), (-1, 4), (9223372036854775807, 1);");
  const Trace t = read_nsys(path_, {});
  EXPECT_EQ(t.ops.size(), 1U);
  EXPECT_EQ(t.finding("time_out_of_range")->count, 3U);
}

TEST_F(NsysTest, NotNsys) {
  EXPECT_THROW(read_nsys(path_, {}), InputError);  // no such file
  make("CREATE TABLE x(y INT)");
  EXPECT_THROW(read_nsys(path_, {}), InputError);
  std::filesystem::resize_file(path_, 100);
  EXPECT_THROW(read_nsys(path_, {}), InputError);
}

}  // namespace
}  // namespace spillway::traces
