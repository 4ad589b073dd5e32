// SPDX-License-Identifier: MIT
// The code around a snippet that names models.
#include <intaglio/graph/layers/walk_ffn.hpp>
#include <intaglio/models/bitnet_b158.hpp>
#include <intaglio/models/gemma3.hpp>
#include <intaglio/models/llama.hpp>

using namespace intaglio;
inline constexpr decoder_config config = models::fable_config;

namespace shown {
// the block
}
