// SPDX-License-Identifier: MIT
// Small packed files that the library itself writes, for tests and the fuzzer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "files.hpp"
#include "intaglio/io/packed_writer.hpp"
#include "packed_bytes.hpp"

namespace packed_files {

using namespace intaglio;
using namespace intaglio::io;

inline packed_index small_index() {
  packed_index out;
  out.codec = "q8_0";
  out.stated_architecture = "llama";
  out.config = {.model_type = architecture::llama,
                .hidden_size = 64,
                .intermediate_size = 128,
                .num_hidden_layers = 3,
                .num_attention_heads = 4,
                .num_key_value_heads = 2,
                .head_dim = 16,
                .vocab_size = 8,
                .max_position_embeddings = 256,
                .rope_theta = 10'000.f,
                .rope_scaling = {rope_type::llama3, 8.f, 1.f, 4.f, 64},
                .rms_norm_eps = 1e-5f,
                .hidden_act = activation::silu,
                .tie_word_embeddings = false,
                .activation_type = dtype::i8,
                .sliding_window = 48,
                .query_pre_attn_scalar = 96,
                .num_local_experts = 4,
                .num_experts_per_tok = 2};
  io::vocabulary& words = out.vocabulary.emplace();
  words.architecture = "llama", words.model = "gpt2", words.pre_tokenizer = "llama-bpe";
  words.tokens = {"a", "b", "ab", "c"}, words.scores = {0.f, 1.f, 2.f, 3.f}, words.token_types = {1, 1, 1, 3},
  words.merges = {"a b"};
  words.bos_id = 3, words.add_bos = true, words.ignore_merges = false, words.chat_template = "{{ messages }}";
  out.weights = {{.layout = "one", .copies = 1, .bytes = 3},
                 {.layout = "a layer's", .copies = 3, .bytes = 70'000},
                 {.layout = "whole chunks", .copies = 1, .bytes = 131'072}};
  return out;
}
/// Without the vocabulary, which is none that a tokenizer takes.
inline packed_index sound_index() {
  packed_index out = small_index();
  out.vocabulary.reset();
  return out;
}
inline std::vector<std::byte> noise(std::uint64_t bytes, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> out(static_cast<std::size_t>(bytes));
  for (auto& each : out) each = static_cast<std::byte>(random());
  return out;
}
/// The file of an index, whose weights' bytes are noise of the seed 10 * weight + copy.
inline bytes file_of(const packed_index& index) {
  const temporary_folder folder;
  packed_writer out(folder / "file", index, 7);
  for (std::size_t w = 0; w < index.weights.size(); ++w)
    for (std::uint32_t copy = 0; copy < index.weights[w].copies; ++copy) {
      const auto content = noise(index.weights[w].bytes, static_cast<unsigned>(10 * w) + copy);
      const auto first = std::span(content).first(content.size() / 3);
      out.write(first);
      out.write(std::span(content).subspan(first.size()));
    }
  out.commit();
  return read_bytes(folder / "file");
}

}  // namespace packed_files
