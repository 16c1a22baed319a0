// The part of cuDNN 9 in use: its graph API, of a library that is loaded when asked for. No header of cuDNN's is needed
// to build: the numbers here are those of its ABI, which tests hold to NVIDIA's header where there is one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/input_error.h"

namespace spillway::hwprofiles::cudnn {

using Status = int;  // 0: success; 3000 to 3999: not supported
using Handle = void*;
using Descriptor = void*;

enum class Element : int { fp32 = 0, int32 = 4, bf16 = 9, boolean = 11 };
enum class Pointwise : int {
  add = 0,
  multiply = 1,
  divide = 6,
  subtract = 9,
  exponential = 13,
  logarithm = 15,
  is_identity = 21,
  at_least = 303,
  index = 501,
  select = 601
};
enum class Reduction : int { sum = 0, maximum = 3 };
enum class HeuristicMode : int { fallback = 2, best = 3 };
inline constexpr int layer_norm = 0, training = 1;  // mode and phase of a norm

enum class Kind : int {  // of a descriptor
  pointwise = 0,
  engine = 2,
  engine_configuration = 3,
  heuristics = 4,
  plan = 5,
  pointwise_operation = 13,
  graph = 15,
  variant_pack = 16,
  tensor = 17,
  product = 18,
  product_operation = 19,
  reduction = 21,
  reduction_operation = 22,
  norm_forward = 29,
  norm_backward = 30,
  reshape_operation = 31,
  device_properties = 38
};

enum class Attribute : int {
  pointwise_mode = 0,
  pointwise_compute = 1,
  pointwise_axis = 9,
  heuristics_mode = 200,
  heuristics_graph = 201,
  heuristics_results = 202,
  heuristics_device = 204,
  configuration_engine = 300,
  plan_handle = 400,
  plan_configuration = 401,
  plan_workspace = 402,
  plan_device = 407,
  pointwise_of = 750,
  pointwise_x = 751,
  pointwise_b = 752,
  pointwise_y = 753,
  pointwise_t = 758,
  graph_handle = 800,
  graph_operations = 801,
  tensor_alignment = 900,
  tensor_element = 901,
  tensor_sides = 902,
  tensor_strides = 903,
  tensor_id = 906,
  tensor_is_virtual = 907,
  tensor_is_by_value = 908,
  pack_ids = 1000,
  pack_pointers = 1001,
  pack_workspace = 1003,
  engine_device = 1307,
  product_compute = 1500,
  product_a = 1520,
  product_b = 1521,
  product_c = 1522,
  product_of = 1523,
  reduction_operator = 1600,
  reduction_compute = 1601,
  reduction_x = 1610,
  reduction_y = 1611,
  reduction_of = 1612,
  norm_forward_mode = 2000,
  norm_forward_phase = 2001,
  norm_forward_x = 2002,
  norm_forward_mean = 2003,
  norm_forward_inverse_deviation = 2004,
  norm_forward_scale = 2005,
  norm_forward_bias = 2006,
  norm_forward_epsilon = 2007,
  norm_forward_y = 2013,
  norm_backward_mode = 2100,
  norm_backward_x = 2101,
  norm_backward_mean = 2102,
  norm_backward_inverse_deviation = 2103,
  norm_backward_dy = 2104,
  norm_backward_scale = 2105,
  norm_backward_dscale = 2107,
  norm_backward_dbias = 2108,
  norm_backward_dx = 2109,
  reshape_x = 2200,
  reshape_y = 2201,
  device_json = 2702
};

enum class Type : int {  // of an attribute's values
  handle = 0,
  element = 1,
  boolean = 2,
  int64 = 3,
  pointer = 6,
  heuristic_mode = 8,
  pointwise = 14,
  descriptor = 15,
  reduction = 18,
  character = 24,
  norm_mode = 27,
  norm_phase = 28
};

// cuDNN does not do it: a graph, a version, or the library as it is on this machine.
class Refusal : public InputError {
 public:
  using InputError::InputError;
};

// The library's functions; it is never unloaded.
class Library {
 public:
  // Loads the library that SPILLWAY_CUDNN names, else libcudnn.so.9 where the dynamic loader or cuda_libraries.h finds
  // it. Throws Refusal: none is there, it lacks a function, or its major version is not 9.
  static Library load();

  [[nodiscard]] std::string version() const;  // "9.19.0"
  // Throws Refusal with the library's own words unless it succeeded.
  void require(Status status, const char* what) const;

  std::size_t (*get_version)() = nullptr;
  const char* (*status_text)(Status) = nullptr;
  void (*last_error)(char*, std::size_t) = nullptr;
  Status (*create)(Handle*) = nullptr;
  Status (*destroy)(Handle) = nullptr;
  Status (*set_stream)(Handle, void*) = nullptr;
  Status (*create_descriptor)(int, Descriptor*) = nullptr;
  Status (*destroy_descriptor)(Descriptor) = nullptr;
  Status (*set_attribute)(Descriptor, int, int, std::int64_t, const void*) = nullptr;
  Status (*get_attribute)(Descriptor, int, int, std::int64_t, std::int64_t*, void*) = nullptr;
  Status (*finalize)(Descriptor) = nullptr;
  Status (*execute)(Handle, Descriptor, Descriptor) = nullptr;
};

}  // namespace spillway::hwprofiles::cudnn
