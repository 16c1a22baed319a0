// Row-major matrix products by cuBLASLt: c[m, n] = op(a) op(b) [+ bias of n], inner size k, fp32 accumulation.
//
// The same shape always takes the algorithm that the heuristic likes best, and none that adds in an order of chance is
// allowed: the same operands give the same bits. Products of fp8 have scales of 1, and want b transposed.
#pragma once

#include <cublasLt.h>

#include <cstdint>

#include "hwprofiles/calibrate/cuda_require.h"
#include "hwprofiles/calibrate/product_shapes.h"

namespace spillway::hwprofiles {

constexpr std::size_t operand_bytes(Precision precision) {
  return precision == Precision::fp8 ? 1 : precision == Precision::bf16 ? 2 : 4;
}
constexpr std::size_t result_bytes(Precision precision) { return precision == Precision::fp32 ? 4 : 2; }

// cuBLASLt has no algorithm for the shape.
class UnsupportedProduct : public InputError {
 public:
  using InputError::InputError;
};

class BlasHandle {
 public:
  BlasHandle() { require(cublasLtCreate(&handle_), "starting cuBLASLt"); }
  BlasHandle(const BlasHandle&) = delete;
  BlasHandle& operator=(const BlasHandle&) = delete;
  ~BlasHandle() { cublasLtDestroy(handle_); }
  [[nodiscard]] cublasLtHandle_t get() const { return handle_; }

 private:
  cublasLtHandle_t handle_ = nullptr;
};

class CudaProduct {
 public:
  // Throws UnsupportedProduct.
  CudaProduct(cublasLtHandle_t handle, const ProductShape& shape, std::size_t workspace_bytes)
      : has_bias_(shape.has_bias) {
    try {
      describe(shape);
      choose(handle, workspace_bytes);
    } catch (...) {
      release();
      throw;
    }
  }
  CudaProduct(const CudaProduct&) = delete;
  CudaProduct& operator=(const CudaProduct&) = delete;
  ~CudaProduct() { release(); }

  void run(cublasLtHandle_t handle, const void* a, const void* b, const void* bias, void* c, void* workspace,
           std::size_t workspace_bytes, cudaStream_t stream) {
    if (has_bias_) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    const float one = 1, zero = 0;
    require(cublasLtMatmul(handle, operation_, &one, b, b_, a, a_, &zero, c, c_, c, c_, &algorithm_, workspace,
                           workspace_bytes, stream),
            "matrix product");
  }

 private:
  void release() {
    for (const cublasLtMatrixLayout_t layout : {a_, b_, c_})
      if (layout != nullptr) cublasLtMatrixLayoutDestroy(layout);
    if (operation_ != nullptr) cublasLtMatmulDescDestroy(operation_);
  }
  void describe(const ProductShape& shape) {
    const cudaDataType_t element = shape.precision == Precision::fp8    ? CUDA_R_8F_E4M3
                                   : shape.precision == Precision::bf16 ? CUDA_R_16BF
                                                                        : CUDA_R_32F;
    const cudaDataType_t result = shape.precision == Precision::fp32 ? CUDA_R_32F : CUDA_R_16BF;
    require(cublasLtMatmulDescCreate(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "matrix product");
    // Row-major c = op(a) op(b) is column-major c' = op(b)' op(a)'.
    set(CUBLASLT_MATMUL_DESC_TRANSA, shape.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, shape.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (shape.precision == Precision::fp8) set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, std::int8_t{1});  // as training does
    if (has_bias_) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
      set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, result);
    }
    layout(b_, element, shape.transpose_b ? shape.k : shape.n, shape.transpose_b ? shape.n : shape.k);
    layout(a_, element, shape.transpose_a ? shape.m : shape.k, shape.transpose_a ? shape.k : shape.m);
    layout(c_, result, shape.n, shape.m);
  }
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    require(cublasLtMatmulDescSetAttribute(operation_, attribute, &value, sizeof value), "matrix product");
  }
  static void layout(cublasLtMatrixLayout_t& made, cudaDataType_t type, std::int64_t rows, std::int64_t columns) {
    require(cublasLtMatrixLayoutCreate(&made, type, static_cast<std::uint64_t>(rows),
                                       static_cast<std::uint64_t>(columns), rows),
            "matrix product");
  }
  void choose(cublasLtHandle_t handle, std::size_t workspace_bytes) {
    cublasLtMatmulPreference_t preference = nullptr;
    require(cublasLtMatmulPreferenceCreate(&preference), "matrix product");
    const auto want = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      return cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value);
    };
    cublasStatus_t status = want(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
    if (status == CUBLAS_STATUS_SUCCESS)
      status = want(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    if (status == CUBLAS_STATUS_SUCCESS)
      status = cublasLtMatmulAlgoGetHeuristic(handle, operation_, b_, a_, c_, c_, preference, 1, &found, &count);
    cublasLtMatmulPreferenceDestroy(preference);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && count == 0))
      throw UnsupportedProduct("GPU", "matrix product", "cuBLASLt has no algorithm for it", "choose other sides");
    require(status, "matrix product");
    algorithm_ = found.algo;
  }

  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
  bool has_bias_;
};

}  // namespace spillway::hwprofiles
