// SPDX-License-Identifier: MIT
// Keys of GGUF that are read, refused or at odds with each other.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "edited_gguf.hpp"
#include "intaglio/io/checkpoint_gguf.hpp"

using Catch::Matchers::ContainsSubstring;
using intaglio::activation;
using intaglio::architecture;
using intaglio::dtype;
using namespace intaglio::io;
using namespace edited_gguf;

TEST_CASE("checkpoint_gguf: no key of the architecture is passed over", "[checkpoint]") {
  const gguf_image sound = llama();
  CHECK(edited(sound, [](auto&) {}).warnings().empty());
  for (const char* harmless : {"llama.rope.scaling.original_context_length", "llama.dropout"})
    CHECK(edited(sound, [&](auto& i) { i.set(harmless, std::uint32_t{512}); }).warnings().empty());
  for (const char* free : {"general.oddity", "tokenizer.ggml.fim_pre_token_id", "quantize.imatrix.file"}) {
    const auto read = edited(sound, [&](auto& i) { i.set(free, std::uint32_t{1}); });
    CHECK((read.warnings().empty() && read.vocabulary()->warnings.empty()));
  }
  const auto tokenizer = edited(sound, [](auto& i) {
    i.set("tokenizer.ggml.oddity", std::uint32_t{1});
    bytes two = bytes_of(gguf_type_of<std::int32_t>);
    append(two, std::uint64_t{2}), append(two, std::int32_t{3}), append(two, std::int32_t{5});
    i.keys.push_back({"tokenizer.ggml.suppress_tokens", static_cast<std::uint32_t>(gguf_type::array), two});
  });
  REQUIRE(tokenizer.vocabulary()->warnings.size() == 2);
  CHECK(tokenizer.vocabulary()->warnings[0] == "key 'tokenizer.ggml.oddity' is unknown and not read");
  CHECK_THAT(tokenizer.vocabulary()->warnings[1], ContainsSubstring("suppress_tokens' is not used: llama.cpp never"));
  for (const char* unknown :
       {"llama.rope.spiral", "llama.attention.head_count_x", "mistral.rope.freq_base", "Llama.x"}) {
    const auto read = edited(sound, [&](auto& i) { i.set(unknown, 1.f); });
    REQUIRE(read.warnings().size() == 1);
    CHECK_THAT(read.warnings()[0], ContainsSubstring("model.gguf: key '" + std::string(unknown) + "' is unknown"));
  }
  const auto many = edited(sound, [](auto& i) {
    for (int number = 0; number < 40; ++number) i.set("llama.x" + std::to_string(number), std::uint32_t{1});
  });
  CHECK(many.warnings().size() == 17);
  CHECK_THAT(many.warnings().back(), ContainsSubstring("and 24 more keys are unknown"));
  // What is computed has one value for each of these: any other is refused, and so is what is no number.
  for (const gguf_key_rule& rule : gguf_key_rules) {
    if (rule.use == gguf_key_use::read || rule.use == gguf_key_use::harmless) continue;
    const std::string key = "llama." + std::string(rule.tail);
    CAPTURE(key);
    if (rule.use >= gguf_key_use::rotation && rule.use <= gguf_key_use::rms_norm) continue;  // below
    if (rule.use <= gguf_key_use::short_conv) {                                              // of other families alone
      CHECK(edited(sound, [&](auto& i) { i.set(key, 7.25f); }).warnings().size() == 1);
      continue;
    }
    CHECK_THAT(refusal(sound, [&](auto& i) { i.set(key, 7.25f); }), ContainsSubstring("key '" + key + "': expected "));
    CHECK_THAT(refusal(sound, [&](auto& i) { i.set(key, std::numeric_limits<float>::quiet_NaN()); }),
               ContainsSubstring("key '" + key + "': expected "));
    CHECK_THAT(refusal(sound, [&](auto& i) { i.template set<std::string>(key, "1"); }),
               ContainsSubstring("key '" + key + "' has another type"));
    if (rule.use == gguf_key_use::neutral)
      for (const float value : {rule.neutral, rule.absent})
        CHECK(edited(sound, [&](auto& i) { i.set(key, value); }).warnings().empty());
  }
  const float scale = 1.f / std::sqrt(static_cast<float>(edited(sound, [](auto&) {}).config().head_dim));
  CHECK(refusal(sound, [&](auto& i) { i.set("llama.attention.scale", scale); }) == "accepted");
  CHECK(refusal(sound, [](auto& i) { i.set("llama.attention.causal", true); }) == "accepted");
  CHECK_THAT(refusal(sound, [](auto& i) { i.set("llama.attention.causal", false); }), ContainsSubstring("found 0"));
}

TEST_CASE("checkpoint_gguf: keys that are read have a use, or are named", "[checkpoint]") {
  const gguf_image sound = llama();
  const auto config = edited(sound, [](auto&) {}).config();
  for (const gguf_key_rule& rule : gguf_key_rules) {
    const bool other = rule.use == gguf_key_use::rms_norm || rule.use == gguf_key_use::rotation ||
                       rule.use == gguf_key_use::yarn || rule.use == gguf_key_use::experts;
    if (rule.use != gguf_key_use::read && !other) continue;
    // Without a scaling there is no original context; a pooling is not part of the config.
    if (rule.tail == "rope.scaling.original_context_length" || rule.tail == "pooling_type") continue;
    const std::string key = "llama." + std::string(rule.tail);
    CAPTURE(key);
    const auto unused = [&](auto value) {
      try {
        const auto read = edited(sound, [&](auto& i) { i.set(key, value); });
        return read.warnings().empty() && read.config() == config;
      } catch (const intaglio::file_error&) { return false; }
    };
    CHECK_FALSE(unused(std::uint32_t{7}));
    CHECK_FALSE(unused(7.25f));
    CHECK_FALSE(unused(std::string("odd")));
  }
  const auto warned = [&](const char* key, auto value) {
    const auto read = edited(sound, [&](auto& i) { i.set(key, value); });
    REQUIRE(read.warnings().size() == 1);
    return read.warnings()[0];
  };
  CHECK_THAT(warned("llama.ssm.state_size", std::uint32_t{16}), ContainsSubstring("llama.ssm.state_size' is not used"));
  CHECK_THAT(warned("llama.rope.scaling.yarn_beta_fast", 16.f), ContainsSubstring("yarn_beta_fast' is not used"));
  CHECK_THAT(warned("llama.expert_feed_forward_length", std::uint32_t{64}), ContainsSubstring("' is not used"));
  CHECK_THAT(refusal(sound, [](auto& i) { i.template set<std::string>("general.type", "adapter"); }),
             ContainsSubstring("key 'general.type': expected model, found adapter"));
  CHECK(refusal(sound, [](auto& i) { i.template set<std::string>("general.type", "model"); }) == "accepted");
}

TEST_CASE("checkpoint_gguf: layers with a state are listed, or every n-th layer has none", "[checkpoint]") {
  const gguf_image sound =
      gguf_image::of(conformance("qwen35-tiny", "conformance2", "confgen2.py") / "gguf/qwen35-tiny-bf16.gguf");
  const auto config = edited(sound, [](auto&) {}).config();
  const auto listed = [&](std::uint32_t interval) {
    return [&, interval](auto& i) {
      bytes raw = bytes_of(gguf_type_of<bool>);
      append(raw, std::uint64_t{config.num_hidden_layers});
      for (std::uint32_t l = 0; l < config.num_hidden_layers; ++l) append(raw, config.recurrent_layers.has(l));
      i.remove("qwen35.attention.recurrent_layers");
      i.keys.push_back({"qwen35.attention.recurrent_layers", static_cast<std::uint32_t>(gguf_type::array), raw});
      i.remove("qwen35.full_attention_interval");
      if (interval != 0) i.set("qwen35.full_attention_interval", interval);
    };
  };
  CHECK(edited(sound, listed(0)).config() == config);
  CHECK(edited(sound, listed(4)).config() == config);
  CHECK_THAT(refusal(sound, listed(2)),
             ContainsSubstring("interval': expected the layers of attention.recurrent_layers, found 2"));
}

TEST_CASE("checkpoint_gguf: counts are taken in every type that holds them", "[checkpoint]") {
  const gguf_image sound = llama();
  const auto config = edited(sound, [](auto&) {}).config();
  const auto as = [&]<class T>(T) {
    return edited(sound,
                  [](auto& i) {
                    for (auto& key : i.keys)
                      if (key.name.starts_with("llama.") && key.type == 4) {
                        std::uint32_t value = 0;
                        std::memcpy(&value, key.value.data(), 4);
                        i.set(std::string(key.name), static_cast<T>(value));
                      }
                    for (const char* id : {"bos", "eos", "unknown"})
                      i.set("tokenizer.ggml." + std::string(id) + "_token_id", static_cast<T>(2));
                  })
        .config();
  };
  CHECK(as(std::uint16_t{}) == config);
  CHECK(as(std::int32_t{}) == config);
  CHECK(as(std::uint64_t{}) == config);
  CHECK(as(std::int64_t{}) == config);
  CHECK_THAT(refusal(sound, [](auto& i) { i.set("llama.block_count", std::int32_t{-2}); }),
             ContainsSubstring("key 'llama.block_count': expected a number from 0 to 4294967295, found -2"));
  CHECK_THAT(refusal(sound, [](auto& i) { i.set("llama.block_count", std::uint64_t{1} << 33); }),
             ContainsSubstring("found 8589934592"));
  CHECK_THAT(refusal(sound, [](auto& i) { i.set("llama.block_count", 2.f); }),
             ContainsSubstring("'llama.block_count' has another type: expected u32, found f32"));
  CHECK_THAT(refusal(sound, [](auto& i) { i.set("llama.rope.freq_base", std::uint32_t{10'000}); }),
             ContainsSubstring("'llama.rope.freq_base' has another type: expected f32, found u32"));
}

TEST_CASE("checkpoint_gguf: a number for each layer is taken where all are equal", "[checkpoint]") {
  const gguf_image sound = llama();
  const auto config = edited(sound, [](auto&) {}).config();
  const auto listed = [](std::string key, std::vector<std::int32_t> values) {
    return [=](auto& i) {
      bytes raw;
      append(raw, std::uint32_t{5});
      append(raw, std::uint64_t{values.size()});
      for (const std::int32_t value : values) append(raw, value);
      i.remove(key);
      i.keys.push_back({key, 9, raw});
    };
  };
  for (const auto& [tail, value] : {std::pair{"attention.head_count", config.num_attention_heads},
                                    {"attention.head_count_kv", config.num_key_value_heads},
                                    {"feed_forward_length", config.intermediate_size}}) {
    const std::string key = "llama." + std::string(tail);
    CAPTURE(key);
    std::vector<std::int32_t> values(config.num_hidden_layers, static_cast<std::int32_t>(value));
    CHECK(edited(sound, listed(key, values)).config() == config);
    values.back() += 1;
    CHECK_THAT(refusal(sound, listed(key, values)),
               ContainsSubstring("key '" + key + "': expected one number for all"));
    values.back() = -1;
    CHECK_THAT(refusal(sound, listed(key, values)), ContainsSubstring("key '" + key + "': expected a number from 0"));
    values.pop_back();
    CHECK_THAT(refusal(sound, listed(key, values)), ContainsSubstring(" numbers as llama.block_count, found "));
    CHECK_THAT(refusal(sound, listed(key, {})), ContainsSubstring(" numbers as llama.block_count, found 0"));
  }
}

TEST_CASE("checkpoint_gguf: numbers at odds with each other are refused by name", "[checkpoint]") {
  const gguf_image sound = llama();
  const auto with = [&](const char* tail, auto value) {
    return refusal(sound, [&](auto& i) { i.set("llama." + std::string(tail), value); });
  };
  CHECK_THAT(with("attention.value_length", std::uint32_t{8}),
             ContainsSubstring("attention.value_length': expected 32 as attention.key_length, found 8"));
  CHECK_THAT(refusal(sound,
                     [](auto& i) {
                       i.remove("llama.attention.key_length");
                       i.set("llama.attention.value_length", std::uint32_t{8});
                     }),
             ContainsSubstring(" as embedding_length / attention.head_count, found 8"));
  CHECK_THAT(refusal(sound,
                     [](auto& i) {
                       for (const char* tail : {"attention.value_length", "rope.dimension_count"})
                         i.remove("llama." + std::string(tail));
                       i.set("llama.attention.key_length", std::uint32_t{0});
                     }),
             ContainsSubstring("head_dim: expected 1 to 65536, found 0"));
  CHECK_THAT(with("expert_used_count", std::uint32_t{2}),
             ContainsSubstring("expected 0 without expert_count, found 2"));
  CHECK_THAT(with("attention.layer_norm_rms_epsilon", 0.f), ContainsSubstring("rms_norm_eps: expected above 0"));
  CHECK_THAT(with("attention.layer_norm_rms_epsilon", -1.f), ContainsSubstring("rms_norm_eps: expected above 0"));
  CHECK_THAT(with("rope.freq_base", std::numeric_limits<float>::quiet_NaN()),
             ContainsSubstring("rope_theta: expected"));
  const auto idle = edited(sound, [](auto& i) { i.set("llama.rope.freq_base_swa", 5.f); });
  REQUIRE(idle.warnings().size() == 1);
  CHECK_THAT(idle.warnings()[0],
             ContainsSubstring("key 'llama.rope.freq_base_swa' is not used: the model has no window"));
}

TEST_CASE("checkpoint_gguf: an ERNIE 4.5 with experts has keys that other values of are refused", "[checkpoint]") {
  const auto with = [&](const char* tail, std::uint32_t value) {
    return refusal(llama(), [&](auto& i) {
      const auto set = [&](const char* end, auto number) { i.set("ernie4_5-moe." + std::string(end), number); };
      i.template set<std::string>("general.architecture", "ernie4_5-moe");
      for (const auto& [end, number] : {std::pair{"embedding_length", 64u},
                                        {"block_count", 2u},
                                        {"feed_forward_length", 128u},
                                        {"attention.head_count", 4u},
                                        {"context_length", 512u},
                                        {"vocab_size", 1024u},
                                        {"expert_count", 8u},
                                        {"expert_used_count", 2u},
                                        {"expert_feed_forward_length", 32u},
                                        {"expert_shared_count", 2u},
                                        {"expert_shared_feed_forward_length", 64u},
                                        {"interleave_moe_layer_step", 1u},
                                        {"leading_dense_block_count", 1u}})
        set(end, number);
      set("attention.layer_norm_rms_epsilon", 1e-5f);
      set(tail, value);
    });
  };
  CHECK_THAT(with("expert_gating_func", 2), ContainsSubstring("expert_gating_func': expected 1, a softmax, found 2"));
  CHECK_THAT(with("interleave_moe_layer_step", 2),
             ContainsSubstring("interleave_moe_layer_step': expected 1 or 0, found 2"));
  CHECK_THAT(with("expert_shared_feed_forward_length", 96),
             ContainsSubstring("expert_shared_count': expected experts that are as wide together as the shared one"));
  CHECK_THAT(with("leading_dense_block_count", 2), ContainsSubstring("num_dense_layers: expected less than"));
  for (const auto& [tail, value] : {std::pair{"expert_gating_func", 1u}, {"interleave_moe_layer_step", 1u}})
    CHECK_THAT(with(tail, value),
               ContainsSubstring("tensor"));  // all keys are read: of a Llama's tensors some are others
}
