// The real cuDNN, without a device: the very graphs that a calibration builds are given to its heuristics for an H100
// and an A100 that are only described. Skipped where there is no cuDNN, or no driver's library nor the toolkit's stub
// of one, which engines look for.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <tuple>

#include "hwprofiles/calibrate/cudnn_cases.h"
#include "hwprofiles/calibrate/cudnn_graph.h"

#ifdef SPILLWAY_HAS_CUDNN_HEADER
#include <cudnn_graph.h>
#endif

namespace spillway::hwprofiles::cudnn {
namespace {

#ifdef SPILLWAY_HAS_CUDNN_HEADER
template <class Ours, class Theirs>
constexpr bool is_same(Ours ours, Theirs theirs) {
  return static_cast<long>(ours) == static_cast<long>(theirs);
}
// Our numbers are the library's.
#define SPILLWAY_SAME(ours, theirs) static_assert(is_same(ours, theirs))
SPILLWAY_SAME(Element::fp32, CUDNN_DATA_FLOAT);
SPILLWAY_SAME(Element::int32, CUDNN_DATA_INT32);
SPILLWAY_SAME(Element::bf16, CUDNN_DATA_BFLOAT16);
SPILLWAY_SAME(Element::boolean, CUDNN_DATA_BOOLEAN);
SPILLWAY_SAME(Pointwise::add, CUDNN_POINTWISE_ADD);
SPILLWAY_SAME(Pointwise::multiply, CUDNN_POINTWISE_MUL);
SPILLWAY_SAME(Pointwise::divide, CUDNN_POINTWISE_DIV);
SPILLWAY_SAME(Pointwise::subtract, CUDNN_POINTWISE_SUB);
SPILLWAY_SAME(Pointwise::exponential, CUDNN_POINTWISE_EXP);
SPILLWAY_SAME(Pointwise::logarithm, CUDNN_POINTWISE_LOG);
SPILLWAY_SAME(Pointwise::is_identity, CUDNN_POINTWISE_IDENTITY);
SPILLWAY_SAME(Pointwise::at_least, CUDNN_POINTWISE_CMP_GE);
SPILLWAY_SAME(Pointwise::index, CUDNN_POINTWISE_GEN_INDEX);
SPILLWAY_SAME(Pointwise::select, CUDNN_POINTWISE_BINARY_SELECT);
SPILLWAY_SAME(Reduction::sum, CUDNN_REDUCE_TENSOR_ADD);
SPILLWAY_SAME(Reduction::maximum, CUDNN_REDUCE_TENSOR_MAX);
SPILLWAY_SAME(HeuristicMode::fallback, CUDNN_HEUR_MODE_FALLBACK);
SPILLWAY_SAME(HeuristicMode::best, CUDNN_HEUR_MODE_A);
SPILLWAY_SAME(layer_norm, CUDNN_LAYER_NORM);
SPILLWAY_SAME(training, CUDNN_NORM_FWD_TRAINING);
SPILLWAY_SAME(Kind::pointwise, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
SPILLWAY_SAME(Kind::engine, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
SPILLWAY_SAME(Kind::engine_configuration, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
SPILLWAY_SAME(Kind::heuristics, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
SPILLWAY_SAME(Kind::plan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
SPILLWAY_SAME(Kind::pointwise_operation, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
SPILLWAY_SAME(Kind::graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
SPILLWAY_SAME(Kind::variant_pack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
SPILLWAY_SAME(Kind::tensor, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
SPILLWAY_SAME(Kind::product, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
SPILLWAY_SAME(Kind::product_operation, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
SPILLWAY_SAME(Kind::reduction, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
SPILLWAY_SAME(Kind::reduction_operation, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
SPILLWAY_SAME(Kind::norm_forward, CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);
SPILLWAY_SAME(Kind::norm_backward, CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR);
SPILLWAY_SAME(Kind::reshape_operation, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
SPILLWAY_SAME(Attribute::pointwise_mode, CUDNN_ATTR_POINTWISE_MODE);
SPILLWAY_SAME(Attribute::pointwise_compute, CUDNN_ATTR_POINTWISE_MATH_PREC);
SPILLWAY_SAME(Attribute::pointwise_axis, CUDNN_ATTR_POINTWISE_AXIS);
SPILLWAY_SAME(Attribute::heuristics_mode, CUDNN_ATTR_ENGINEHEUR_MODE);
SPILLWAY_SAME(Attribute::heuristics_graph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
SPILLWAY_SAME(Attribute::heuristics_results, CUDNN_ATTR_ENGINEHEUR_RESULTS);
SPILLWAY_SAME(Attribute::configuration_engine, CUDNN_ATTR_ENGINECFG_ENGINE);
SPILLWAY_SAME(Attribute::plan_handle, CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
SPILLWAY_SAME(Attribute::plan_configuration, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
SPILLWAY_SAME(Attribute::plan_workspace, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
SPILLWAY_SAME(Attribute::pointwise_of, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
SPILLWAY_SAME(Attribute::pointwise_x, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
SPILLWAY_SAME(Attribute::pointwise_b, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
SPILLWAY_SAME(Attribute::pointwise_y, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
SPILLWAY_SAME(Attribute::pointwise_t, CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
SPILLWAY_SAME(Attribute::graph_handle, CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
SPILLWAY_SAME(Attribute::graph_operations, CUDNN_ATTR_OPERATIONGRAPH_OPS);
SPILLWAY_SAME(Attribute::tensor_alignment, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
SPILLWAY_SAME(Attribute::tensor_element, CUDNN_ATTR_TENSOR_DATA_TYPE);
SPILLWAY_SAME(Attribute::tensor_sides, CUDNN_ATTR_TENSOR_DIMENSIONS);
SPILLWAY_SAME(Attribute::tensor_strides, CUDNN_ATTR_TENSOR_STRIDES);
SPILLWAY_SAME(Attribute::tensor_id, CUDNN_ATTR_TENSOR_UNIQUE_ID);
SPILLWAY_SAME(Attribute::tensor_is_virtual, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
SPILLWAY_SAME(Attribute::tensor_is_by_value, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
SPILLWAY_SAME(Attribute::pack_ids, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
SPILLWAY_SAME(Attribute::pack_pointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
SPILLWAY_SAME(Attribute::pack_workspace, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
SPILLWAY_SAME(Attribute::product_compute, CUDNN_ATTR_MATMUL_COMP_TYPE);
SPILLWAY_SAME(Attribute::product_a, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
SPILLWAY_SAME(Attribute::product_b, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
SPILLWAY_SAME(Attribute::product_c, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
SPILLWAY_SAME(Attribute::product_of, CUDNN_ATTR_OPERATION_MATMUL_DESC);
SPILLWAY_SAME(Attribute::reduction_operator, CUDNN_ATTR_REDUCTION_OPERATOR);
SPILLWAY_SAME(Attribute::reduction_compute, CUDNN_ATTR_REDUCTION_COMP_TYPE);
SPILLWAY_SAME(Attribute::reduction_x, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
SPILLWAY_SAME(Attribute::reduction_y, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
SPILLWAY_SAME(Attribute::reduction_of, CUDNN_ATTR_OPERATION_REDUCTION_DESC);
SPILLWAY_SAME(Attribute::norm_forward_mode, CUDNN_ATTR_OPERATION_NORM_FWD_MODE);
SPILLWAY_SAME(Attribute::norm_forward_phase, CUDNN_ATTR_OPERATION_NORM_FWD_PHASE);
SPILLWAY_SAME(Attribute::norm_forward_x, CUDNN_ATTR_OPERATION_NORM_FWD_XDESC);
SPILLWAY_SAME(Attribute::norm_forward_mean, CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC);
SPILLWAY_SAME(Attribute::norm_forward_inverse_deviation, CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC);
SPILLWAY_SAME(Attribute::norm_forward_scale, CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC);
SPILLWAY_SAME(Attribute::norm_forward_bias, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC);
SPILLWAY_SAME(Attribute::norm_forward_epsilon, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC);
SPILLWAY_SAME(Attribute::norm_forward_y, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC);
SPILLWAY_SAME(Attribute::norm_backward_mode, CUDNN_ATTR_OPERATION_NORM_BWD_MODE);
SPILLWAY_SAME(Attribute::norm_backward_x, CUDNN_ATTR_OPERATION_NORM_BWD_XDESC);
SPILLWAY_SAME(Attribute::norm_backward_mean, CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC);
SPILLWAY_SAME(Attribute::norm_backward_inverse_deviation, CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC);
SPILLWAY_SAME(Attribute::norm_backward_dy, CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC);
SPILLWAY_SAME(Attribute::norm_backward_scale, CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC);
SPILLWAY_SAME(Attribute::norm_backward_dscale, CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC);
SPILLWAY_SAME(Attribute::norm_backward_dbias, CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC);
SPILLWAY_SAME(Attribute::norm_backward_dx, CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC);
SPILLWAY_SAME(Attribute::reshape_x, CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
SPILLWAY_SAME(Attribute::reshape_y, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
SPILLWAY_SAME(Type::handle, CUDNN_TYPE_HANDLE);
SPILLWAY_SAME(Type::element, CUDNN_TYPE_DATA_TYPE);
SPILLWAY_SAME(Type::boolean, CUDNN_TYPE_BOOLEAN);
SPILLWAY_SAME(Type::int64, CUDNN_TYPE_INT64);
SPILLWAY_SAME(Type::pointer, CUDNN_TYPE_VOID_PTR);
SPILLWAY_SAME(Type::heuristic_mode, CUDNN_TYPE_HEUR_MODE);
SPILLWAY_SAME(Type::pointwise, CUDNN_TYPE_POINTWISE_MODE);
SPILLWAY_SAME(Type::descriptor, CUDNN_TYPE_BACKEND_DESCRIPTOR);
SPILLWAY_SAME(Type::reduction, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE);
SPILLWAY_SAME(Type::character, CUDNN_TYPE_CHAR);
SPILLWAY_SAME(Type::norm_mode, CUDNN_TYPE_NORM_MODE);
SPILLWAY_SAME(Type::norm_phase, CUDNN_TYPE_NORM_FWD_PHASE);
#if CUDNN_VERSION >= 90800
SPILLWAY_SAME(Kind::device_properties, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
SPILLWAY_SAME(Attribute::heuristics_device, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
SPILLWAY_SAME(Attribute::plan_device, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
SPILLWAY_SAME(Attribute::engine_device, CUDNN_ATTR_ENGINE_DEVICEPROP);
SPILLWAY_SAME(Attribute::device_json, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
#endif
#endif

struct Card {
  const char* name;
  int version, multiprocessors, shared_memory, l2_cache;
};
constexpr Card h100 = {"NVIDIA H100 80GB HBM3", 900, 132, 232448, 52428800};
constexpr Card a100 = {"NVIDIA A100-SXM4-80GB", 800, 108, 166912, 41943040};

// As cuDNN writes a device's properties down.
std::string json_of(const Card& card) {
  std::string text = R"({"cudaDeviceId":0,"deviceName":")" + std::string(card.name) + "\"";
  const auto add = [&](const char* key, long value) {
    text += ",\"" + std::string(key) + "\":" + std::to_string(value);
  };
  add("deviceVer", card.version);
  add("driverVer", 13000);
  add("isTccDriver", 0);
  add("l2CacheSize", card.l2_cache);
  text += R"(,"maxBlockSize":[1024,1024,64],"maxGridSize":[2147483647,65535,65535])";
  add("maxCtasPerSM", 32);
  add("maxRegistersPerSM", 65536);
  add("maxSharedMemoryPerBlock", 49152);
  add("maxSharedMemoryPerBlockOptin", card.shared_memory);
  add("maxThreadsPerBlock", 1024);
  add("maxThreadsPerSM", 2048);
  add("memClockRateKHz", 1593000);
  add("multiProcessorCount", card.multiprocessors);
  add("pciDeviceId", 0);
  add("regsPerBlock", 65536);
  add("reservedSharedMemoryPerBlock", 1024);
  add("smClockRateKHz", 1410000);
  add("supportCoopLaunch", 1);
  add("totalGlobalMem", 85017755648);
  add("warpSize", 32);
  return text + "}";
}

class Deviceless : public testing::TestWithParam<Card> {
 protected:
  void SetUp() override {
    try {
      library_ = Library::load();
    } catch (const Refusal& refusal) {
      GTEST_SKIP() << "no cuDNN to ask: " << refusal.cause();
    }
    if (library_.get_version() < 90800) GTEST_SKIP() << "cuDNN " << library_.version() << " takes no described device";
    bool has_driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) != nullptr;
#ifdef SPILLWAY_DRIVER_STUB
    has_driver = has_driver || dlopen(SPILLWAY_DRIVER_STUB, RTLD_NOW | RTLD_GLOBAL) != nullptr;
#endif
    if (!has_driver) GTEST_SKIP() << "no driver's library, nor the toolkit's stub: engines want one to ask";
  }
  std::size_t engines(const GpuPoint& point) const {
    const Owned device = described_device(library_, json_of(GetParam()));
    Graph graph(library_);
    describe(point, graph);
    return Engines(graph, {.device = &device}).count();
  }

  Library library_;
};

// Each kind of graph that a calibration has, at the first sizes that it comes to: it is taken, and engines are offered.
TEST_P(Deviceless, EnginesAreOfferedForEveryGraph) {
  std::set<std::tuple<std::string, bool, bool, std::int64_t>> seen;
  for (const GpuPoint& point : cudnn_cases(true)) {
    if (!seen.emplace(point.what, point.batch > 0 && point.causal, point.kv_heads != point.heads, point.head_dim)
             .second)
      continue;
    SCOPED_TRACE(point.what + (point.causal ? ", causal, " : ", ") + std::to_string(point.heads) + " heads of " +
                 std::to_string(point.kv_heads) + ", head size " + std::to_string(point.head_dim));
    try {
      EXPECT_GE(engines(point), 1U);
    } catch (const Refusal& refusal) {
      ADD_FAILURE() << refusal.what();
    }
  }
  EXPECT_EQ(seen.size(), 18U);
}

// Without a kernel for it: heads that no engine's tiles hold.
TEST_P(Deviceless, WhatNoEngineTakesIsRefused) {
  GpuPoint point;
  point.what = "attention_backward";
  point.batch = 1;
  point.heads = point.kv_heads = 2;
  point.sequence = 1024;
  point.head_dim = 2048;
  EXPECT_THROW(engines(point), Refusal);
}

TEST_P(Deviceless, ABrokenDescriptionIsRefused) {
  EXPECT_THROW(described_device(library_, R"({"deviceVer": 900})"), Refusal);
}

INSTANTIATE_TEST_SUITE_P(Cards, Deviceless, testing::Values(h100, a100),
                         [](const auto& card) { return std::string(card.param.version == 900 ? "H100" : "A100"); });

}  // namespace
}  // namespace spillway::hwprofiles::cudnn
