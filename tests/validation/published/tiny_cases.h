// A file of cases that runs in no time: GPT-2 of two layers on one A100.
#pragma once

#include <string>

namespace spillway::validation {

// `cases`: the elements of "cases".
inline std::string tiny_cases(const std::string& cases, const std::string& more = "") {
  return R"({"schema": "spillway-cases", "version": 1, "title": "Tiny",
    "models": {"tiny": {"schema": "spillway.model", "version": 1, "title": "Tiny", "source": "made up", "layers": 2,
      "hidden": 256, "heads": 4, "feed_forward": 1024, "vocabulary": 512, "max_positions": 128, "mask": "causal",
      "norm": "layer_norm", "norm_placement": "pre", "activation": "gelu", "positions": "learned", "fused_qkv": true,
      "qkv_bias": true, "output_bias": true, "feed_forward_bias": true, "tied_embeddings": true}},
    "common": {"source": "desk", "metric": "iteration_time", "unit": "ms", "hardware.profile": "a100-80gb-1gpu",
      "model.name": "tiny"},)" +
         more + R"( "cases": [)" + cases + "]}";
}

}  // namespace spillway::validation
