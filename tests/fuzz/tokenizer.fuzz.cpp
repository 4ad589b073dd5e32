// SPDX-License-Identifier: MIT
// Vocabularies, tokenizer.json and texts out of arbitrary bytes: nothing but file_error and argument_error, and every
// text round trips.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "intaglio/io/detokenizer.hpp"
#include "intaglio/io/hf_tokenizer.hpp"
#include "intaglio/io/tokenizer.hpp"

namespace {

using namespace intaglio;

/// Takes values from the front of the input; zeros when it is used up.
struct input {
  std::string_view left;
  std::uint8_t byte() {
    if (left.empty()) return 0;
    const char c = left[0];
    left.remove_prefix(1);
    return static_cast<std::uint8_t>(c);
  }
  std::string text(std::size_t longest) {
    const std::size_t size = std::min<std::size_t>(byte() % (longest + 1), left.size());
    std::string out(left.substr(0, size));
    left.remove_prefix(size);
    return out;
  }
};

/// @param loses whether the tokenizer may give another text back
void check_text(const io::tokenizer& tokens, std::string_view text, bool loses, bool parse_special) {
  const auto encoded = tokens.encode(text, {.parse_special = parse_special});
  io::detokenizer stream(tokens);
  for (const auto id : encoded)
    if (!io::is_utf8(stream.feed(id)) || stream.pending().size() > 3) std::abort();
  if (!io::is_utf8(stream.flush())) std::abort();
  if (loses || parse_special) return;
  if (tokens.decode(encoded) != text) std::abort();
}

void check_vocabulary(const io::vocabulary& file, std::string_view text) {
  try {
    const io::tokenizer tokens(file);
    // SentencePiece keeps no spaces apart, NFC rewrites, and bytes without a token are lost with a warning.
    const bool loses = file.model != "gpt2" || file.nfc ||
                       std::any_of(tokens.warnings().begin(), tokens.warnings().end(), [](const std::string& line) {
                         return line.find("bytes have no token") != std::string::npos;
                       });
    check_text(tokens, text, loses, false);
    check_text(tokens, text, loses, true);
  } catch (const file_error& e) {
    if (std::string_view(e.what()).size() > 2000) std::abort();
  }
}

/// A vocabulary that is sound but for what the input adds and damages.
io::vocabulary arbitrary_vocabulary(input& in, bool sentences) {
  io::vocabulary out;
  out.source = "fuzz";
  out.model = sentences ? "llama" : "gpt2";
  constexpr const char* names[] = {"llama-bpe", "gpt-2", "qwen2", "starcoder", "default"};
  out.pre_tokenizer = names[in.byte() % 5];
  const auto add = [&](std::string text, int type) {
    out.tokens.push_back(std::move(text)), out.token_types.push_back(type),
        out.scores.push_back(static_cast<float>(static_cast<int>(in.byte()) - 128));
  };
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const char* digits = "0123456789ABCDEF";
    std::string text;
    if (sentences) text = std::string("<0x") + digits[byte >> 4] + digits[byte & 15] + ">";
    else io::append_utf8(text, io::byte_alphabet[byte]);
    out.tokens.push_back(std::move(text)), out.token_types.push_back(sentences ? 6 : 1), out.scores.push_back(0);
  }
  for (int i = in.byte() % 32; i > 0; --i) {
    const int type = in.byte();
    add(in.text(8), type % 16 == 15 ? type : 1 + type % 4);
  }
  if (!sentences || in.byte() % 2) {
    for (int i = in.byte() % 32; i > 0; --i) {
      const auto pick = [&] { return out.tokens[(in.byte() + std::size_t{256} * in.byte()) % out.tokens.size()]; };
      const std::string left = pick(), right = pick();
      if (in.byte() % 32) add(left + right, 1);
      out.merges.push_back(left + " " + right);
    }
  }
  if (in.byte() % 4 == 0) out.bos_id = static_cast<std::int64_t>(in.byte()) * 3 - 1;
  if (in.byte() % 8 == 0) out.add_space_prefix = false;
  if (in.byte() % 8 == 0) out.ignore_merges = true;
  if (in.byte() % 16 == 0 && !out.tokens.empty()) out.tokens[in.byte() % out.tokens.size()] = in.text(12);
  return out;
}

/// A Unigram vocabulary of the input, with a map that a trie of two blocks and the input make.
io::vocabulary arbitrary_unigram(input& in) {
  io::vocabulary out;
  out.source = "fuzz", out.model = "t5", out.unknown_id = 0;
  out.tokens = {"<unk>"}, out.scores = {0}, out.token_types = {2};
  for (int i = in.byte() % 32; i > 0; --i) {
    const std::string text = in.text(6);
    const bool byte = in.byte() % 8 == 0;
    out.tokens.push_back(byte ? "<0x4" + std::to_string(i % 10) + ">" : text), out.token_types.push_back(byte ? 6 : 1);
    out.scores.push_back(static_cast<float>(static_cast<int>(in.byte()) - 128));
  }
  std::string units(2048, '\0');
  units[2] = 4;  // the root's children are in the second block
  for (int i = in.byte() % 32; i > 0; --i) {
    const std::size_t label = in.byte(), unit = 4 * (256 + label);
    units[unit] = static_cast<char>(label);
    for (std::size_t k = 1; k < 3; ++k) units[unit + k] = static_cast<char>(in.byte() % 8);
  }
  if (in.byte() % 8 != 0) out.charsmap = std::string("\0\10\0\0", 4) + units + in.text(32) + '\0';
  out.add_space_prefix = in.byte() % 2 == 0, out.remove_extra_whitespaces = in.byte() % 2 == 0;
  for (bool* way : {&out.spaces.merged, &out.spaces.end_stripped, &out.spaces.split, &out.spaces.words})
    *way = in.byte() % 2 == 0;
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in{{reinterpret_cast<const char*>(data), size}};
  const std::uint8_t mode = in.byte() % 4;
  if (mode == 0) {
    try {
      const auto file = io::vocabulary_from_tokenizer_json(in.left, "fuzz");
      check_vocabulary(file, in.left);
    } catch (const file_error&) {}
    return 0;
  }
  if (mode == 3) {
    check_vocabulary(arbitrary_unigram(in), in.left);
    return 0;
  }
  const auto file = arbitrary_vocabulary(in, mode == 2);
  check_vocabulary(file, in.left);
  return 0;
}
