// SPDX-License-Identifier: MIT
// Template texts and conversations out of arbitrary bytes: known or refused, and typed text never becomes a control
// token.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/io/chat_template.hpp"

using namespace intaglio;

namespace {

const io::tokenizer& tokens() {
  static const io::tokenizer built = [] {
    io::vocabulary file;
    file.source = "fuzz", file.model = "gpt2", file.pre_tokenizer = "llama-bpe";
    for (const char32_t c : io::byte_alphabet) io::append_utf8(file.tokens.emplace_back(), c);
    for (const char* text : {"<bos>", "<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>", "<start_of_turn>",
                             "<end_of_turn>", "[INST]", "[/INST]"})
      file.tokens.push_back(text);
    file.token_types.assign(file.tokens.size(), 1);
    for (std::size_t i = 256; i < file.tokens.size(); ++i) file.token_types[i] = 3;
    file.bos_id = 256, file.eos_id = 257;
    return io::tokenizer(file);
  }();
  return built;
}

std::size_t control_tokens(const std::vector<std::int32_t>& ids) {
  std::size_t out = 0;
  for (const auto id : ids) out += tokens().type(id) == io::token_type::control;
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  io::vocabulary file;
  file.source = "fuzz", file.chat_template = std::string(text), file.tokens = {"<bos>", "</s>"}, file.bos_id = 0,
  file.eos_id = 1;
  for (const char* architecture : {"llama", "bitnet", "bitnet-b1.58"}) {
    file.architecture = architecture;
    try {
      (void)io::chat_template::of(file);
    } catch (const file_error& e) {
      if (std::string_view(e.what()).size() > 400) std::abort();
    }
  }
  if (size < 2) return 0;

  // The rest as a conversation: a byte of role, then text up to the next 0.
  const auto& [name, family] = io::chat_family_names[data[0] % io::chat_family_names.size()];
  const io::chat_template chat({.family = family, .writes_bos = (data[1] & 1) != 0}, "<bos>", "<|eot_id|>");
  std::vector<io::chat_message> messages, empty;
  for (std::size_t at = 2; at < size;) {
    constexpr const char* roles[] = {"user", "assistant", "system", "tool"};
    const std::size_t end = std::min(text.find('\0', at + 1), size);
    messages.push_back({roles[data[at] % 16 == 15 ? 3 : data[at] % 3], std::string(text.substr(at + 1, end - at - 1))});
    at = end + 1;
  }
  for (const auto& message : messages) empty.push_back({message.role, ""});
  try {
    const bool prompt = (data[1] & 2) != 0;
    const auto whole = chat.render(messages, prompt);
    std::size_t before = 0;
    for (const auto& range : whole.typed) {
      if (range.begin < before || range.end <= range.begin || range.end > whole.text.size()) std::abort();
      before = range.end;
    }
    if (control_tokens(chat.encode(tokens(), messages, prompt)) != control_tokens(chat.encode(tokens(), empty, prompt)))
      std::abort();
  } catch (const argument_error&) {}
  return 0;
}
