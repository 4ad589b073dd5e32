// SPDX-License-Identifier: MIT
#include "intaglio/io/original_names.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace intaglio::io;

TEST_CASE("original_names: tensors of Meta's and Mistral's files, and others that are none") {
  CHECK(gguf_name_of_original("tok_embeddings.weight") == "token_embd.weight");
  CHECK(gguf_name_of_original("norm.weight") == "output_norm.weight");
  CHECK(gguf_name_of_original("output.weight") == "output.weight");
  CHECK(gguf_name_of_original("layers.31.attention.wo.weight") == "blk.31.attn_output.weight");
  CHECK(gguf_name_of_original("layers.0.feed_forward.w1.weight") == "blk.0.ffn_gate.weight");
  CHECK(gguf_name_of_original("layers.0.feed_forward.w2.weight") == "blk.0.ffn_down.weight");
  CHECK(gguf_name_of_original("layers.0.feed_forward.w3.weight") == "blk.0.ffn_up.weight");
  CHECK(gguf_name_of_original("layers.7.ffn_norm.weight") == "blk.7.ffn_norm.weight");
  for (const char* name :
       {"", "layers.", "layers.01.ffn_norm.weight", "layers.-1.ffn_norm.weight", "layers.1234567.ffn_norm.weight",
        "layers.1.ffn_norm", "layers.1.ffn_norm.bias", "layers.1.attention.wq.lora.weight",
        "model.layers.0.ffn_norm.weight", "layers.1x.ffn_norm.weight", "rope.freqs"}) {
    CAPTURE(name);
    CHECK_FALSE(gguf_name_of_original(name));
  }
  CHECK(gguf_name_of_original("layers.3.feed_forward.gate.weight") == "blk.3.ffn_gate_inp.weight");
  CHECK(expert_of_original("layers.3.feed_forward.experts.7.w2.weight")->gguf == "blk.3.ffn_down_exps.weight");
  CHECK(expert_of_original("layers.3.feed_forward.experts.7.w2.weight")->number == 7);
  for (const char* name :
       {"layers.3.feed_forward.w2.weight", "layers.3.feed_forward.experts.07.w2.weight",
        "model.layers.3.feed_forward.experts.7.w2.weight", "layers.3.block_sparse_moe.experts.7.w2.weight"})
    CHECK_FALSE(expert_of_original(name));
  CHECK(is_rotary_table("rope.freqs"));
  CHECK(is_rotary_table("model.layers.3.self_attn.rotary_emb.inv_freq"));
  CHECK_FALSE(is_rotary_table("layers.0.ffn_norm.weight"));
}
