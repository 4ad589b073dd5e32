// SPDX-License-Identifier: MIT
#include "intaglio/io/packed_index.hpp"

#include <catch2/catch_test_macros.hpp>

#include "files.hpp"

using intaglio::dtype;
using intaglio::file_error;
using namespace intaglio::io;

namespace {

template <class... Values>
bytes as_bytes(Values... values) {
  return {static_cast<std::byte>(values)...};
}
bytes written(packed_index index) {
  packed_index_writer out;
  packed_fields(out, index);
  return std::move(out).bytes();
}
const std::string path = "model.packed";
packed_index_reader reader_of(std::span<const std::byte> from) { return {from, 0x1000, path}; }

/// Values that all differ, so that no two fields can be swapped.
packed_index full_index() {
  packed_index out;
  out.codec = "q8_0", out.stated_architecture = "llama", out.states_context = false;
  out.config = {.model_type = intaglio::architecture::gemma3,
                .hidden_size = 1,
                .intermediate_size = 2,
                .num_hidden_layers = 3,
                .num_attention_heads = 4,
                .num_key_value_heads = 5,
                .head_dim = 6,
                .vocab_size = 7,
                .max_position_embeddings = 8,
                .rope_theta = 9.f,
                .rope_scaling = {intaglio::rope_type::llama3, 10.f, 11.f, 12.f, 13},
                .rms_norm_eps = 14.f,
                .hidden_act = intaglio::activation::gelu_tanh,
                .tie_word_embeddings = true,
                .activation_type = dtype::f64,
                .sliding_window = 15,
                .sliding_window_pattern = 16,
                .rope_local_base_freq = 17.f,
                .query_pre_attn_scalar = 18,
                .num_local_experts = 19,
                .num_experts_per_tok = 20};
  intaglio::io::vocabulary& words = out.vocabulary.emplace();
  words.architecture = "gemma", words.model = "llama", words.pre_tokenizer = "",
  words.tokens = {"", "a", std::string("\0b", 2)};
  words.scores = {-1.f, 0.5f}, words.token_types = {6}, words.merges = {"a b", "c d"};
  words.bos_id = 1, words.eos_id = -2, words.eot_id = 3, words.unknown_id = 4, words.padding_id = 5;
  words.eom_id = 6, words.end_ids = {7, -8};
  words.added = {
      {.id = 1, .single_word = true}, {.id = 2, .lstrip = true}, {.id = 3, .rstrip = true, .normalized = true}};
  words.nfc = true;
  words.add_bos = true, words.add_eos = false, words.add_space_prefix = true, words.remove_extra_whitespaces = false,
  words.space_prefix_once = true, words.ignore_merges = false;
  words.charsmap = std::string("a\0b", 3), words.spaces.split = true, words.doubles_separator = true;
  words.chat_template = "{{ x }}";
  out.weights = {{.layout = "one", .copies = 1, .bytes = 3},
                 {.layout = "", .copies = 30, .bytes = std::uint64_t{1} << 40}};
  out.sums = {0, ~std::uint64_t{0}};
  return out;
}

}  // namespace

TEST_CASE("packed index: fields as bytes", "[packed]") {
  packed_index_writer out;
  out.number(std::uint32_t{0x01020304}, "");
  out.number(1.f, "");
  out.number(std::int64_t{-2}, "");
  out.flag(true, "");
  out.text("ab", "");
  out.list(std::vector<std::uint8_t>{7, 8}, 1, "", [&](std::uint8_t each) { out.number(each, ""); });
  out.maybe(std::optional<std::uint8_t>(), "", [&](std::uint8_t) { FAIL(); });
  out.maybe(std::optional<std::uint8_t>(9), "", [&](std::uint8_t each) { out.number(each, ""); });
  CHECK(std::move(out).bytes() == as_bytes(4, 3, 2, 1, 0, 0, 0x80, 0x3F, 0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
                                           1, 2, 0, 0, 0, 'a', 'b', 2, 0, 0, 0, 7, 8, 0, 1, 9));
}

TEST_CASE("packed index: fields of bytes, with their offsets", "[packed]") {
  const bytes file = as_bytes(4, 3, 2, 1, 1, 2, 0, 0, 0, 'a', 'b', 2, 0, 0, 0, 7, 8, 0, 1, 9);
  auto from = reader_of(file);
  std::uint32_t number = 0;
  from.number(number, "");
  CHECK((number == 0x01020304 && from.at() == 0x1004 && from.left() == 16));
  bool flag = false;
  from.flag(flag, "");
  CHECK(flag);
  std::string text = "old";
  from.text(text, "");
  CHECK((text == "ab" && from.at() == 0x100B));
  std::vector<std::uint8_t> list{1, 2, 3};
  const auto each = [&](std::uint8_t& item) { from.number(item, ""); };
  from.list(list, 1, "", each);
  CHECK(list == std::vector<std::uint8_t>{7, 8});
  std::optional<std::uint8_t> none, some;
  from.maybe(none, "", each);
  from.maybe(some, "", each);
  CHECK((!none && some == 9));
  CHECK((from.at() == 0x1014 && from.left() == 0));
}

TEST_CASE("packed index: values and counts beyond their bounds are refused by offset", "[packed]") {
  const auto refusal = [](const bytes& file, auto&& read) -> std::string {
    auto from = reader_of(file);
    try {
      read(from);
    } catch (const file_error& problem) { return problem.what(); }
    return "accepted";
  };
  const auto flag = [](auto& from) {
    bool out;
    from.flag(out, "way");
  };
  CHECK(refusal(as_bytes(1), flag) == "accepted");
  CHECK(refusal(as_bytes(2), flag) == "model.packed: offset 0x1000: way: expected at most 1, found 2");
  CHECK(refusal({}, flag) ==
        "model.packed: offset 0x1000: way runs past the end of the index: expected 1 bytes, found 0");
  const auto kind = [](auto& from) {
    intaglio::activation out;
    from.number(out, "act", static_cast<std::uint64_t>(intaglio::activation::gelu_tanh));
  };
  constexpr auto last = static_cast<std::uint64_t>(intaglio::activation::gelu_tanh);
  bytes act(sizeof(intaglio::activation));
  act[0] = static_cast<std::byte>(last);
  CHECK(refusal(act, kind) == "accepted");
  act[0] = static_cast<std::byte>(last + 1);
  CHECK(refusal(act, kind) == "model.packed: offset 0x1000: act: expected at most " + std::to_string(last) +
                                  ", found " + std::to_string(last + 1));
  const auto natural = [](auto& from) {
    std::uint32_t out;
    from.number(out, "size");
  };
  CHECK(refusal(as_bytes(0xFF, 0xFF, 0xFF, 0xFF), natural) == "accepted");
  CHECK(refusal(as_bytes(1, 2, 3), natural) ==
        "model.packed: offset 0x1000: size runs past the end of the index: expected 4 bytes, found 3");
  const auto text = [](auto& from) {
    std::string out;
    from.text(out, "name");
  };
  CHECK(refusal(as_bytes(3, 0, 0, 0, 'a', 'b'), text) ==
        "model.packed: offset 0x1004: name runs past the end of the index: expected 3 bytes, found 2");
  CHECK(refusal(as_bytes(0xFF, 0xFF, 0xFF, 0xFF), text) ==
        "model.packed: offset 0x1004: name runs past the end of the index: expected 4294967295 bytes, found 0");
  // Nothing is made for a count that the bytes cannot bear.
  const auto list = [](auto& from) {
    std::vector<std::uint64_t> out;
    from.list(out, 8, "sums", [&](std::uint64_t& each) { from.number(each, "sum"); });
  };
  CHECK(refusal(as_bytes(1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8), list) == "accepted");
  CHECK(refusal(as_bytes(2, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11), list) ==
        "model.packed: offset 0x1000: sums: entries: expected at most 1, for which bytes are left, found 2");
  CHECK(refusal(as_bytes(0xFF, 0xFF, 0xFF, 0xFF), list) ==
        "model.packed: offset 0x1000: sums: entries: expected at most 0, for which bytes are left, found 4294967295");
}

TEST_CASE("packed index: every field comes back", "[packed]") {
  const packed_index index = full_index();
  const bytes file = written(index);
  packed_index out;
  auto from = reader_of(file);
  packed_fields(from, out);
  CHECK(from.left() == 0);
  CHECK((out.codec == index.codec && out.stated_architecture == index.stated_architecture && !out.states_context));
  CHECK(out.config == index.config);
  REQUIRE(out.vocabulary);
  const auto &words = *out.vocabulary, &wanted = *index.vocabulary;
  CHECK((words.architecture == wanted.architecture && words.model == wanted.model &&
         words.pre_tokenizer == wanted.pre_tokenizer));
  CHECK((words.tokens == wanted.tokens && words.scores == wanted.scores && words.token_types == wanted.token_types &&
         words.merges == wanted.merges));
  CHECK(
      (words.bos_id == 1 && words.eos_id == -2 && words.eot_id == 3 && words.unknown_id == 4 && words.padding_id == 5));
  CHECK((words.eom_id == 6 && words.end_ids == std::vector<std::int64_t>{7, -8}));
  CHECK((words.added == wanted.added && words.nfc));
  CHECK((words.add_bos == true && words.add_eos == false && words.add_space_prefix == true));
  CHECK((words.charsmap == std::string_view("a\0b", 3) && words.doubles_separator));
  CHECK(words.spaces == wanted.spaces);
  CHECK((words.remove_extra_whitespaces == false && words.space_prefix_once == true && words.ignore_merges == false));
  CHECK(words.chat_template == "{{ x }}");
  REQUIRE(out.weights.size() == 2);
  for (std::size_t i = 0; i < 2; ++i)
    CHECK((out.weights[i].layout == index.weights[i].layout && out.weights[i].copies == index.weights[i].copies &&
           out.weights[i].bytes == index.weights[i].bytes));
  CHECK(out.sums == index.sums);
  // Read and written once more it has the same bytes.
  CHECK(written(out) == file);

  packed_index bare = index;
  bare.vocabulary.reset();
  CHECK(written(bare).size() < file.size());
  out.vocabulary.reset();
  const bytes without = written(bare);
  auto again = reader_of(without);
  packed_fields(again, out);
  CHECK((again.left() == 0 && !out.vocabulary));
}

TEST_CASE("packed index: one that is cut anywhere is refused", "[packed]") {
  const bytes file = written(full_index());
  for (std::size_t size = 0; size < file.size(); ++size) {
    INFO(size << " of " << file.size() << " bytes");
    const bytes cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    auto from = reader_of(cut);
    packed_index out;
    CHECK_THROWS_AS(packed_fields(from, out), file_error);
  }
}
