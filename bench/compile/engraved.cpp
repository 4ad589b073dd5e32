// SPDX-License-Identifier: MIT
// What engraving BitNet 2B costs, with LAYERS layers (bench/compile/measure).
#include <intaglio/intaglio.hpp>
#include <intaglio/models/bitnet_b158.hpp>

using namespace intaglio;
inline constexpr decoder_config config = [] {
  decoder_config c = models::bitnet_2b_4t_config;
  c.num_hidden_layers = LAYERS;
  return c;
}();

int main() {
  return static_cast<int>(
      plan::engraved<models::bitnet_b158<config>, plan::profiles::portable>::table.decode.dispatch_count() & 1);
}
