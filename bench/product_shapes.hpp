// SPDX-License-Identifier: MIT
// The products of a layer of the models that benches measure.
#pragma once
#include <cstdint>

#include "intaglio/kernels/kinds.hpp"

namespace intaglio::bench::shapes {

using kernels::epilogue;

/// A matrix product of a layer and what is done with its result.
struct product {
  const char* name;
  std::uint32_t rows, columns;
  epilogue after;
  std::uint32_t q = 0, kv = 0;
};
inline constexpr product mistral[] = {{"q+k+v", 6144, 4096, epilogue::rope_cache, 4096, 1024},
                                      {"output", 4096, 4096, epilogue::add},
                                      {"gate+up", 28672, 4096, epilogue::gated},
                                      {"down", 4096, 14336, epilogue::add}};
inline constexpr product gemma[] = {{"q+k+v", 4096, 2560, epilogue::store},
                                    {"output", 2560, 2048, epilogue::store},
                                    {"gate+up", 20480, 2560, epilogue::gated},
                                    {"down", 2560, 10240, epilogue::store}};
inline constexpr product llama[] = {{"q+k+v", 3072, 2048, epilogue::rope_cache, 2048, 512},
                                    {"output", 2048, 2048, epilogue::add},
                                    {"gate+up", 16384, 2048, epilogue::gated},
                                    {"down", 2048, 8192, epilogue::add}};
inline constexpr product bitnet[] = {{"q+k+v", 3840, 2560, epilogue::rope_cache, 2560, 640},
                                     {"output", 2560, 2560, epilogue::add},
                                     {"gate+up", 13824, 2560, epilogue::gated},
                                     {"down", 2560, 6912, epilogue::add}};

}  // namespace intaglio::bench::shapes
