// SPDX-License-Identifier: MIT
// The plan's own table, run on the CPU, tells fable's goldens; decode and prefill agree bit for bit.
#include "intaglio/reference/machine.hpp"

#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "conformance.hpp"
#include "intaglio/io/checkpoint.hpp"
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/plan/engrave.hpp"
#include "loaded_machine.hpp"
#include "shared.hpp"

using namespace intaglio;

namespace {
constexpr const plan::table& fable_table = plan::engraved<models::fable, plan::profiles::cpu>::table;

/// A model file and a machine with its weights.
struct loaded_model {
  const plan::table& table;
  io::checkpoint file;
  file_weights weights{table, file};
  loaded_machine machine{weights};

  explicit loaded_model(const plan::table& of = fable_table,
                        const std::filesystem::path& path = shared("models/fable-bitnet-i2_s.gguf"))
      : table(of), file(io::checkpoint::open(path)) {}

  /// Everything but the last token by prefill in chunks, the last by decode; returns its logits.
  std::vector<float> logits(std::span<const std::uint32_t> ids, std::size_t chunk) {
    for (std::size_t at = 0; at + 1 < ids.size();) {
      const std::size_t count = std::min({chunk, ids.size() - 1 - at, std::size_t{table.prefill.max_tokens}});
      machine.feed(static_cast<std::uint32_t>(at), ids.subspan(at, count));
      machine.run(table.prefill);
      at += count;
    }
    machine.feed(static_cast<std::uint32_t>(ids.size()) - 1, ids.last(1));
    machine.run(table.decode);
    const auto found = machine.floats(table.decode.logits_offset, table.config->vocab_size);
    return {found.begin(), found.end()};
  }
};

/// conformance/bitnet-tiny as its GGUF files of architecture "bitnet" say it.
constexpr decoder_config float_config{.model_type = architecture::bitnet,
                                      .hidden_size = 256,
                                      .intermediate_size = 768,
                                      .num_hidden_layers = 3,
                                      .num_attention_heads = 4,
                                      .num_key_value_heads = 2,
                                      .head_dim = 64,
                                      .vocab_size = 1024,
                                      .max_position_embeddings = 1024,
                                      .rope_theta = 500'000.f,
                                      .rms_norm_eps = 1e-5f,
                                      .hidden_act = activation::silu,
                                      .activation_type = dtype::f32};
constexpr const plan::table& float_table =
    plan::engraved<models::bitnet_b158<float_config>, plan::profiles::cpu>::table;
}  // namespace

TEST_CASE("the reference tells fable's goldens", "[reference][machine]") {
  std::ifstream text(shared("models/goldens/fable.json")),
      numbers(shared("models/goldens/fable-logits.f32"), std::ios::binary);
  const auto goldens = nlohmann::json::parse(text);
  for (const auto& prompt : goldens["prompts"]) {
    const auto ids = prompt["ids"].get<std::vector<std::uint32_t>>();
    INFO(prompt["text"]);
    loaded_model fable;
    const auto found = fable.logits(ids, 32);
    std::vector<float> expected(4096);
    numbers.seekg(prompt["logits_row"].get<std::streamoff>() * 4096 * 4);
    numbers.read(reinterpret_cast<char*>(expected.data()), 4096 * 4);
    REQUIRE(numbers);
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < 4096; ++i) {
      difference += std::pow(static_cast<double>(found[i]) - static_cast<double>(expected[i]), 2);
      size += std::pow(static_cast<double>(expected[i]), 2);
    }
    CHECK(std::sqrt(difference / size) <= 3 * prompt["spread"]["largest_relative_l2"].get<double>() + 1e-4);
    const auto greedy = prompt["greedy"].get<std::vector<std::uint32_t>>();
    const auto stable = std::min<std::size_t>(prompt["greedy_stable"].get<std::size_t>(), 12);
    for (std::size_t i = 0; i < stable; ++i) {
      CHECK(fable.machine.ring[i] == greedy[i]);
      fable.machine.run(fable_table.decode);
    }
  }
}

TEST_CASE("any chunk size gives the same bits as one token at a time", "[reference][machine]") {
  std::vector<std::uint32_t> ids{4093};
  for (std::uint32_t i = 0; i < 40; ++i) ids.push_back(i * 97 % 4093);
  const auto one = loaded_model{}.logits(ids, 1);
  for (const std::size_t chunk : {2u, 7u, 32u}) {
    const auto other = loaded_model{}.logits(ids, chunk);
    CHECK(std::memcmp(one.data(), other.data(), one.size() * sizeof(float)) == 0);
  }
}

TEST_CASE("activations that are not quantised give bitnet-tiny's goldens, and any chunk the same bits",
          "[reference][machine]") {
  const auto file = conformance("bitnet-tiny") / "gguf/bitnet-tiny-f16.gguf";
  const std::vector<std::uint32_t> ids{652, 770, 888, 938};  // prompt p4
  std::vector<float> expected(1024);
  std::ifstream numbers(shared("conformance/bitnet-tiny/goldens/silu/logits_p4_all.npy"), std::ios::binary);
  numbers.seekg(128 + 3 * 1024 * 4);
  numbers.read(reinterpret_cast<char*>(expected.data()), 1024 * 4);
  REQUIRE(numbers);
  const auto one = loaded_model(float_table, file).logits(ids, 1),
             other = loaded_model(float_table, file).logits(ids, 3);
  CHECK(one == other);
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(std::abs(one[i] - expected[i]) <= 1e-3f);
}
