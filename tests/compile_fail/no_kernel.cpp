// SPDX-License-Identifier: MIT
// An op that no kernel of the catalogue computes where it stands.
// expect: attn_output\.weight: no kernel computes matmul here; expected ternary \(i2_s\) weights of int8 or f32 inputs, found f16
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/plan/engrave.hpp"

using namespace intaglio;
struct mine {
  static constexpr const decoder_config& config = models::fable_config;
  static constexpr auto graph() {
    using namespace intaglio::graph;
    [[maybe_unused]] constexpr auto w = dtype::i2_s;
    return 
#ifdef INTAGLIO_TWIN
        embedding{"token_embd.weight", 4096, 256} | repeat(8, residual(rms_norm{"attn_norm.weight", 1e-5f} | self_attention<w>{config} | rms_norm{"attn_sub_norm.weight", 1e-5f} | linear<w>{"attn_output.weight", 256, 256})) | rms_norm{"output_norm.weight", 1e-5f} | lm_head{"token_embd.weight", 4096, 256}
#else
        embedding{"token_embd.weight", 4096, 256} | repeat(8, residual(rms_norm{"attn_norm.weight", 1e-5f} | self_attention<w>{config} | linear<dtype::f16>{"attn_output.weight", 256, 256})) | rms_norm{"output_norm.weight", 1e-5f} | lm_head{"token_embd.weight", 4096, 256}
#endif
    ;
  }
};
constexpr auto& table = plan::engraved<mine, plan::profiles::cpu>::table;
static_assert(table.decode.dispatch_count() > 0);
