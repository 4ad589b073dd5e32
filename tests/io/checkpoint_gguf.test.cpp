// SPDX-License-Identifier: MIT
#include "intaglio/io/checkpoint_gguf.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "edited_gguf.hpp"

using Catch::Matchers::ContainsSubstring;
using intaglio::activation;
using intaglio::architecture;
using intaglio::dtype;
using namespace intaglio::io;
using namespace edited_gguf;

TEST_CASE("checkpoint_gguf: the architecture string decides activation and its type", "[checkpoint]") {
  const auto folder = conformance("bitnet-tiny");
  const auto old = checkpoint::open(folder / "gguf/bitnet-tiny-f16.gguf"),
             current = checkpoint::open(folder / "gguf/bitnet-tiny-b158-f16.gguf");
  CHECK(old.stated_architecture() == "bitnet");
  CHECK(old.config().hidden_act == activation::silu);
  CHECK(old.config().activation_type == dtype::f32);
  CHECK(current.stated_architecture() == "bitnet-b1.58");
  CHECK(current.config().hidden_act == activation::relu_squared);
  CHECK(current.config().activation_type == dtype::i8);
  CHECK(checkpoint::open(folder / "hf-packed").config() == current.config());
}

TEST_CASE("checkpoint_gguf: a second table is the head, unless it is the embedding again", "[checkpoint]") {
  const temporary_folder made;
  const gguf_image tied = gguf_image::of(conformance("bitnet-tiny") / "gguf/bitnet-tiny-b158-f16.gguf");
  const auto with_head = [&](const std::string& architecture, auto&& edit) {
    gguf_image image = tied;
    auto head = image.tensor_at("token_embd.weight");
    head.name = "output.weight";
    edit(head);
    image.tensors.push_back(head);
    for (auto& key : image.keys)
      if (key.name.starts_with("bitnet-b1.58.")) key.name = architecture + key.name.substr(12);
    image.set<std::string>("general.architecture", architecture);
    return checkpoint::open(write_bytes(made / "model.gguf", image.build()));
  };
  const auto same = [](auto&) {};
  const auto other = [](auto& head) { head.data.back() ^= std::byte{1}; };
  const auto in_f32 = [](auto& head) {
    std::vector<float> values(head.data.size() / 2);
    decode_row(dtype::f16, head.data, values);
    const auto view = std::as_bytes(std::span(values));
    head.type = 0;
    head.data.assign(view.begin(), view.end());
  };
  for (const auto& copied : {with_head("bitnet-b1.58", same), with_head("bitnet", same), with_head("bitnet-25", same),
                             with_head("bitnet-25", other)}) {
    CAPTURE(copied.stated_architecture());
    CHECK(copied.config().tie_word_embeddings);
    CHECK(copied.find("output.weight") == nullptr);
    REQUIRE(copied.warnings().size() == 1);
    CHECK_THAT(copied.warnings()[0],
               ContainsSubstring("model.gguf: output.weight is ignored: the model's head is its embedding"));
  }
  for (const auto& untied :
       {with_head("bitnet-b1.58", other), with_head("bitnet", other), with_head("bitnet-b1.58", in_f32)}) {
    CAPTURE(untied.stated_architecture());
    CHECK_FALSE(untied.config().tie_word_embeddings);
    CHECK(untied.find("output.weight") != nullptr);
    CHECK(untied.warnings().empty());
  }
}

TEST_CASE("checkpoint_gguf: keys and values of heads have one width", "[checkpoint]") {
  const temporary_folder made;
  gguf_image image = gguf_image::of(conformance("bitnet-tiny") / "gguf/bitnet-tiny-b158-i2_s.gguf");
  image.set("bitnet-b1.58.attention.key_length", std::uint32_t{64});
  CHECK(checkpoint::open(write_bytes(made / "model.gguf", image.build())).config().head_dim == 64);
  image.set("bitnet-b1.58.attention.value_length", std::uint32_t{32});
  CHECK_THROWS_WITH(checkpoint::open(write_bytes(made / "model.gguf", image.build())),
                    ContainsSubstring("attention.value_length") &&
                        ContainsSubstring("expected 64 as attention.key_length, found 32"));
}

TEST_CASE("checkpoint_gguf: a key says what inputs of ternary layers are where the codec does not", "[checkpoint]") {
  const gguf_image image = llama();
  CHECK_THAT(refusal(image, [](auto& i) { i.template set<std::string>("intaglio.activation_type", "i8"); }),
             ContainsSubstring("type of blk.0.attn_q.weight: expected f32 f16 bf16 tq1_0 tq2_0 i2_s u8, found q4_k"));
  CHECK_THAT(refusal(image, [](auto& i) { i.template set<std::string>("intaglio.activation_type", "i4"); }),
             ContainsSubstring("key 'intaglio.activation_type': expected i8 or f32, found 'i4'"));
  CHECK_THAT(refusal(image,
                     [](auto& i) {
                       i.template set<std::string>("intaglio.activation_type", "f32");
                       i.set("llama.expert_count", std::uint32_t{8});
                       i.set("llama.expert_used_count", std::uint32_t{2});
                     }),
             ContainsSubstring("key 'llama.expert_count': expected 0 beside ternary layers, found 8"));
}

TEST_CASE("checkpoint_gguf: keys that are absent, of another type or out of range are refused by name",
          "[checkpoint]") {
  const gguf_image sound = bitnet();
  for (const char* tail : {"embedding_length", "feed_forward_length", "block_count", "attention.head_count",
                           "context_length", "attention.layer_norm_rms_epsilon"}) {
    const std::string key = "bitnet-b1.58." + std::string(tail);
    CHECK_THAT(refusal(sound, [&](auto& i) { i.remove(key); }),
               ContainsSubstring("key '" + key + "': expected a number, found no such key"));
    CHECK_THAT(refusal(sound, [&](auto& i) { i.set(key, true); }),
               ContainsSubstring("key '" + key + "' has another type: expected ") && ContainsSubstring("found bool"));
  }
  CHECK_THAT(refusal(sound, [](auto& i) { i.remove("general.architecture"); }),
             ContainsSubstring("type 36"));  // I2_S is BitNet's
  CHECK_THAT(refusal(llama(), [](auto& i) { i.remove("general.architecture"); }),
             ContainsSubstring(
                 "expected one of: " + std::string(intaglio::family_names(&intaglio::family::gguf_names).view()) +
                 ", found no such key"));
  CHECK_THAT(refusal(llama(), [](auto& i) { i.template set<std::string>("general.architecture", "falcon\x1b"); }),
             ContainsSubstring("found 'falcon\\x1b'"));
  CHECK_THAT(refusal(sound, [](auto& i) { i.set("bitnet-b1.58.attention.head_count", std::uint32_t{3}); }),
             ContainsSubstring("a divisor of embedding_length 256, found 3"));
  CHECK_THAT(refusal(sound, [](auto& i) { i.set("bitnet-b1.58.attention.head_count", std::uint32_t{0}); }),
             ContainsSubstring("a divisor of embedding_length 256, found 0"));
  CHECK_THAT(refusal(sound, [](auto& i) { i.set("bitnet-b1.58.rope.dimension_count", std::uint32_t{32}); }),
             ContainsSubstring("expected 64 as the heads are wide, found 32"));
  CHECK_THAT(refusal(sound, [](auto& i) { i.set("bitnet-b1.58.expert_count", std::uint32_t{8}); }),
             ContainsSubstring("expert_count': expected 0, found 8"));
  CHECK(refusal(sound, [](auto& i) { i.set("bitnet-b1.58.expert_count", std::uint32_t{0}); }) == "accepted");
}

TEST_CASE("checkpoint_gguf: the vocabulary's size is stated, or that of the embedding", "[checkpoint]") {
  const gguf_image sound = bitnet();
  constexpr const char* key = "bitnet-b1.58.vocab_size";
  CHECK(edited(sound, [](auto& i) { i.remove(key); }).config().vocab_size == 1024);
  CHECK_THAT(
      refusal(sound, [](auto& i) { i.set(key, std::uint32_t{1023}); }),
      ContainsSubstring(
          "tokenizer.ggml.tokens has more tokens than the embedding has rows: expected at most 1023, found 1024"));
  const auto without = [](auto& i) {
    std::erase_if(i.tensors, [](const auto& tensor) { return tensor.name == "token_embd.weight"; });
  };
  CHECK_THAT(refusal(sound, [&](auto& i) { without(i), i.remove(key); }),
             ContainsSubstring("vocab_size': expected a number, found no such key"));
  CHECK_THAT(refusal(sound, [&](auto& i) { without(i), i.set(key, std::uint32_t{1024}); }),
             ContainsSubstring("missing: token_embd.weight [1024, 256]"));
  const auto huge = [&](auto& i) {
    without(i), i.remove(key);
    i.tensors.push_back(
        {"token_embd.weight", {1, config_limits::vocab_size + 1}, 24, bytes(config_limits::vocab_size + 1)});
  };
  CHECK_THAT(refusal(sound, huge),
             ContainsSubstring("rows of token_embd.weight': expected at most 16777216, found 16777217"));
}

TEST_CASE("checkpoint_gguf: a head of another shape than the embedding is refused as such", "[checkpoint]") {
  need_shared();
  const auto with_head = [](auto& i) -> gguf_image::tensor& {
    auto head = i.tensor_at("token_embd.weight");
    head.name = "output.weight";
    i.tensors.push_back(head);
    return i.tensors.back();
  };
  CHECK_THAT(refusal(bitnet(),
                     [&](auto& i) {
                       auto& head = with_head(i);
                       head.shape = {256, 1023}, head.data.resize(2 * 256 * 1023);
                     }),
             ContainsSubstring("shape of output.weight: expected [1024, 256], found [1023, 256]"));
  // With a head, and a vocabulary of stated size, but no embedding.
  CHECK_THAT(refusal(bitnet(),
                     [&](auto& i) {
                       with_head(i), i.set("bitnet-b1.58.vocab_size", std::uint32_t{1024});
                       std::erase_if(i.tensors, [](const auto& tensor) { return tensor.name == "token_embd.weight"; });
                     }),
             ContainsSubstring("1 difference)") && ContainsSubstring("missing: token_embd.weight"));
}

TEST_CASE("checkpoint_gguf: scaled RoPE is read, or refused where it is not known", "[checkpoint]") {
  need_shared();
  const auto scaled = [](std::string prefix, std::string type, std::optional<float> factor) {
    return [=](auto& i) {
      i.template set<std::string>(prefix + ".rope.scaling.type", type);
      i.remove(prefix + ".rope.scaling.factor");
      if (factor) i.set(prefix + ".rope.scaling.factor", *factor);
    };
  };
  for (const auto& [type, factor] : {std::pair<const char*, std::optional<float>>{"none", std::nullopt},
                                     {"none", 1.f},
                                     {"linear", 1.f},
                                     {"linear", std::nullopt}}) {
    CHECK(edited(bitnet(), scaled("bitnet-b1.58", type, factor)).warnings().empty());
    CHECK(edited(llama(), scaled("llama", type, factor)).warnings().empty());
  }
  CHECK((edited(llama(), scaled("llama", "linear", 4.f)).config().rope_scaling ==
         intaglio::rope_scaling_config{.type = intaglio::rope_type::linear, .factor = 4.f}));
  const auto yarn = edited(llama(), [&](auto& i) {
    scaled("llama", "yarn", 4.f)(i), i.set("llama.rope.scaling.original_context_length", std::uint32_t{256});
  });
  CHECK(yarn.warnings().empty());
  CHECK((yarn.config().rope_scaling ==
         intaglio::rope_scaling_config{intaglio::rope_type::yarn, 4.f, 1.f, 32.f, 256, 1.1386294f, true}));
  CHECK_THAT(
      refusal(llama(),
              [&](auto& i) { scaled("llama", "yarn", 4.f)(i), i.set("llama.rope.scaling.yarn_ext_factor", 0.f); }),
      ContainsSubstring("yarn_ext_factor': expected no such key, or -1"));
  CHECK_THAT(refusal(bitnet(), scaled("bitnet-b1.58", "linear", 4.f)),
             ContainsSubstring("rope.scaling.factor': expected 1: a BitNet is not scaled, found 4"));
  const auto idle = edited(llama(), scaled("llama", "none", 4.f));
  CHECK(idle.config().rope_scaling.type == intaglio::rope_type::plain);
  REQUIRE(idle.warnings().size() == 1);
  CHECK_THAT(idle.warnings()[0],
             ContainsSubstring("model.gguf: key 'llama.rope.scaling.factor' is not used: llama.rope.scaling.type"));
  for (const char* type : {"longrope", "spiral"})
    CHECK_THAT(refusal(llama(), scaled("llama", type, 4.f)),
               ContainsSubstring("expected none, linear or yarn, found '" + std::string(type) + "'"));
  for (const float factor :
       {0.f, -1.f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
    CHECK_THAT(refusal(llama(), scaled("llama", "linear", factor)),
               ContainsSubstring("rope.scaling.factor': expected a finite number from 1"));
  // Without a type it is linear, as in llama.cpp; the factor's older key counts where the newer one is absent.
  for (const char* key : {"llama.rope.scaling.factor", "llama.rope.scale_linear"}) {
    CAPTURE(key);
    CHECK((edited(llama(), [&](auto& i) { i.set(key, 4.f); }).config().rope_scaling ==
           intaglio::rope_scaling_config{.type = intaglio::rope_type::linear, .factor = 4.f}));
    CHECK_THAT(refusal(llama(), [&](auto& i) { i.set(key, -2.f); }),
               ContainsSubstring(std::string(key) + "': expected a finite number from 1, found -2"));
  }
  const auto both =
      edited(llama(), [](auto& i) { i.set("llama.rope.scaling.factor", 2.f), i.set("llama.rope.scale_linear", 4.f); });
  CHECK(both.config().rope_scaling.factor == 2.f);
  REQUIRE(both.warnings().size() == 1);
  CHECK_THAT(both.warnings()[0], ContainsSubstring("rope.scale_linear' is not used: rope.scaling.factor is there"));
}

TEST_CASE("checkpoint_gguf: Llama 3.1's factors become the scaling that they come from", "[checkpoint]") {
  const gguf_image sound = gguf_image::of(conformance("llama-tiny") / "gguf/llama-tiny-rope31-f16.gguf");
  const auto scaling = checkpoint::open(conformance("llama-tiny") / "hf-rope31").config().rope_scaling;
  CHECK((edited(sound, [](auto&) {}).config().rope_scaling == scaling));
  const auto with = [&](auto&& edit) {
    return refusal(sound, [&](auto& i) { edit(i.tensor_at("rope_freqs.weight")); });
  };
  CHECK_THAT(with([](auto& t) { t.data[3] = std::byte{0x41}; }),
             ContainsSubstring("tensor 'rope_freqs.weight': expected factors of Llama 3.1's RoPE scaling"));
  CHECK_THAT(with([](auto& t) { t.shape = {8}, t.data.resize(32); }),
             ContainsSubstring("tensor 'rope_freqs.weight': expected 16 values of f32, found 32 bytes of f32"));
  CHECK_THAT(refusal(sound, [](auto& i) { i.set("llama.rope.scaling.factor", 4.f); }),
             ContainsSubstring("'rope_freqs.weight' beside llama.rope.scaling.factor: expected one of the two, found "
                               "linear by 4 and llama3 by "));
  const auto ones = [](auto& i) {
    auto& data = i.tensor_at("rope_freqs.weight").data;
    for (std::size_t at = 0; at < data.size(); at += 4)
      data[at] = data[at + 1] = std::byte{}, data[at + 2] = std::byte{0x80}, data[at + 3] = std::byte{0x3F};
  };
  CHECK((edited(sound, ones).config().rope_scaling == intaglio::rope_scaling_config{}));
  // Ones leave the factor of the keys as it is.
  const auto scaled = edited(sound, [&](auto& i) { ones(i), i.set("llama.rope.scaling.factor", 4.f); });
  CHECK((scaled.config().rope_scaling ==
         intaglio::rope_scaling_config{.type = intaglio::rope_type::linear, .factor = 4.f}));
}

TEST_CASE("checkpoint_gguf: a window of a family without windows is refused or inert, as llama.cpp has it",
          "[checkpoint]") {
  const auto image = [](const std::string& model) {
    return gguf_image::of(conformance(model, "conformance2", "confgen2.py") / ("gguf/" + model + "-bf16.gguf"));
  };
  CHECK_THAT(refusal(image("lfm2-tiny"), [](auto& i) { i.set("lfm2.attention.sliding_window", std::uint32_t{32}); }),
             ContainsSubstring("lfm2.attention.sliding_window': expected 0: lfm2 has no windows here, found 32"));
  const auto qwen =
      edited(image("qwen2-tiny"), [](auto& i) { i.set("qwen2.attention.sliding_window", std::uint32_t{32}); });
  CHECK(qwen.config().sliding_window == 0);
  REQUIRE(qwen.warnings().size() == 1);
  CHECK_THAT(qwen.warnings().front(),
             ContainsSubstring("key 'qwen2.attention.sliding_window' is not used: qwen2 has no windows"));
}

TEST_CASE("checkpoint_gguf: Gemma's windows, and what no key says", "[checkpoint]") {
  const gguf_image sound = gguf_image::of(conformance("gemma3-tiny") / "gguf/gemma3-tiny-q4_0.gguf");
  const auto config = edited(sound, [](auto&) {}).config();
  CHECK((config.sliding_window == 32 && config.sliding_window_pattern == 6 && config.rope_local_base_freq == 10'000.f &&
         config.query_pre_attn_scalar == 0));
  const auto other = edited(sound, [](auto& i) {
                       i.set("gemma3.attention.sliding_window_pattern", std::uint32_t{3}),
                           i.set("gemma3.rope.freq_base_swa", 5'000.f);
                     }).config();
  CHECK((other.sliding_window_pattern == 3 && other.rope_local_base_freq == 5'000.f));
  CHECK(edited(sound, [](auto& i) { i.remove("gemma3.attention.sliding_window"); }).config().sliding_window == 0);
  const auto listed = [&](std::vector<std::uint8_t> windowed) {
    return [windowed](auto& i) {
      bytes raw;
      append(raw, std::uint32_t{7});
      append(raw, std::uint64_t{windowed.size()});
      for (const std::uint8_t each : windowed) append(raw, each);
      i.keys.push_back({"gemma3.attention.sliding_window_pattern", 9, raw});
    };
  };
  std::vector<std::uint8_t> every_second(config.num_hidden_layers);
  for (std::size_t layer = 0; layer < every_second.size(); ++layer) every_second[layer] = layer % 2 == 0;
  CHECK(edited(sound, listed(every_second)).config().sliding_window_pattern == 2);
  every_second.front() = 0;
  CHECK_THAT(refusal(sound, listed(every_second)),
             ContainsSubstring("sliding_window_pattern': expected false in every"));
  CHECK_THAT(refusal(sound, listed({1, 0})), ContainsSubstring("sliding_window_pattern': expected "));
  CHECK_THAT(refusal(sound, [](auto& i) { i.set("gemma3.final_logit_softcapping", 30.f); }),
             ContainsSubstring("final_logit_softcapping': expected 0, found 30"));
}

TEST_CASE("checkpoint_gguf: the tokenizer's keys as they are", "[checkpoint]") {
  const temporary_folder made;
  gguf_image image = bitnet();
  image.set("tokenizer.ggml.unknown_token_id", std::uint32_t{0xFFFFFFFF});
  image.set("tokenizer.ggml.padding_token_id", std::uint32_t{7});
  image.set("tokenizer.ggml.add_space_prefix", false);
  const auto path = write_bytes(made / "model.gguf", image.build());
  const vocabulary read = gguf_vocabulary(gguf::open(path));
  CHECK(read.source == path.string());
  CHECK(read.architecture == "bitnet-b1.58");
  CHECK(read.model == "gpt2");
  CHECK((read.tokens.size() == 1024 && read.scores.size() == 1024 && read.token_types.size() == 1024));
  CHECK(read.unknown_id == 0xFFFFFFFFll);
  CHECK(read.padding_id == 7);
  CHECK(read.add_space_prefix == false);
  CHECK_FALSE(read.remove_extra_whitespaces);
  gguf_image none;
  none.set<std::string>("general.architecture", "llama");
  const bytes empty = none.build();
  const vocabulary absent = gguf_vocabulary(gguf::from_memory(empty, "memory"));
  CHECK((absent.model.empty() && absent.tokens.empty() && absent.merges.empty() && !absent.bos_id && !absent.add_bos &&
         !absent.chat_template));
}

TEST_CASE("checkpoint_gguf: the key of pooling", "[checkpoint]") {
  const auto stated = [](std::uint32_t type) {
    return edited(llama(), [&](auto& i) { i.set("llama.pooling_type", type); });
  };
  using intaglio::pooling;
  CHECK_FALSE(edited(llama(), [](auto&) {}).pooling());
  CHECK_FALSE(stated(0).pooling());
  CHECK((stated(1).pooling() == pooling::mean && stated(2).pooling() == pooling::first &&
         stated(3).pooling() == pooling::last));
  const auto rank = stated(4);
  CHECK_FALSE(rank.pooling());
  REQUIRE(rank.warnings().size() == 1);
  CHECK_THAT(rank.warnings()[0], ContainsSubstring("pooling_type: expected 0 .. 3, found 4"));
}

TEST_CASE("checkpoint_gguf: biases of zeros are left out, any other is a difference", "[checkpoint]") {
  const gguf_image sound = llama();
  const auto with = [](std::string name, std::vector<float> values) {
    return [=](auto& i) {
      const auto view = std::as_bytes(std::span(values));
      i.tensors.push_back({name, {values.size()}, 0, bytes(view.begin(), view.end())});
    };
  };
  const std::size_t rows = edited(sound, [](auto&) {}).config().q_size();
  const auto taken = edited(sound, [&](auto& i) {
    with("blk.0.attn_q.bias", std::vector<float>(rows))(i);
    with("blk.1.attn_q.bias", std::vector<float>(rows, -0.f))(i);
  });
  CHECK(taken.find("blk.0.attn_q.bias") == nullptr);
  REQUIRE(taken.warnings().size() == 1);
  CHECK_THAT(taken.warnings()[0],
             ContainsSubstring("model.gguf: 2 biases are zeros and are left out, the first: blk.0.attn_q.bias"));
  std::vector<float> one(rows);
  one[7] = 0.25f;
  CHECK_THAT(refusal(sound, with("blk.0.attn_q.bias", one)),
             ContainsSubstring("bias blk.0.attn_q.bias: expected none, or zeros, found 0.25 as value 7"));
  one[7] = std::numeric_limits<float>::quiet_NaN();
  CHECK_THAT(refusal(sound, with("blk.0.attn_q.bias", one)), ContainsSubstring("found nan as value 7"));
  CHECK_THAT(refusal(sound, with("blk.0.attn_q.bias", std::vector<float>(3))),
             ContainsSubstring("bias blk.0.attn_q.bias: expected ") && ContainsSubstring("found 3 of f32"));
  CHECK_THAT(refusal(sound, with("blk.0.attn_x.bias", std::vector<float>(3))),
             ContainsSubstring("not part of the model: blk.0.attn_x.bias"));
}

TEST_CASE("checkpoint_gguf: codecs that are read alone have ggml's values, bit for bit", "[checkpoint]") {
  const gguf_image sound = llama();
  const auto npy = [](const std::string& name) {
    const bytes all = read_bytes(shared("conformance2/codecs/" + name));
    const std::size_t header = std::to_integer<std::size_t>(all.at(8)) + 256 * std::to_integer<std::size_t>(all.at(9));
    return bytes(all.begin() + static_cast<std::ptrdiff_t>(10 + header), all.end());
  };
  for (const auto& [id, name] : {std::pair<std::uint32_t, std::string>{6, "Q5_0"},
                                 {7, "Q5_1"},
                                 {10, "Q2_K"},
                                 {11, "Q3_K"},
                                 {13, "Q5_K"},
                                 {20, "IQ4_NL"},
                                 {23, "IQ4_XS"},
                                 {39, "MXFP4"}}) {
    CAPTURE(name);
    const bytes blocks = npy(name + ".blocks.npy"), values = npy(name + ".values.npy");
    const std::string tensor = "blk.0.ffn_up.weight";
    const std::size_t elements = 768 * 256, repeats = elements * sizeof(float) / values.size();
    const auto model = edited(sound, [&, id = id](auto& i) {
      auto& changed = i.tensor_at(tensor);
      REQUIRE(changed.shape == std::vector<std::uint64_t>{256, 768});
      changed.type = id;
      changed.data.clear();
      for (std::size_t n = 0; n < repeats; ++n) changed.data.insert(changed.data.end(), blocks.begin(), blocks.end());
    });
    std::vector<float> read(elements);
    model.read_f32(model.at(tensor), 0, 768, read);
    std::size_t same = 0;
    for (std::size_t n = 0; n < repeats; ++n)
      same += std::memcmp(read.data() + n * values.size() / sizeof(float), values.data(), values.size()) == 0;
    CHECK(same == repeats);
  }
}
