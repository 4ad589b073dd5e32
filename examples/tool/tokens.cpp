// SPDX-License-Identifier: MIT
// tokenize and detokenize.
#include "commands.hpp"
#include "console.hpp"
#include "model_file.hpp"

#include <intaglio/io/unicode.hpp>

#include <nlohmann/json.hpp>

namespace intaglio::tool {

void tokenize(const tokenize_options& options) {
  const io::checkpoint model = open_model(options.model);
  const io::tokenizer tokenizer = open_tokenizer(model);
  const std::string text = options.file ? read_text(*options.file) : options.text.value_or("");
  naming_file(options.file ? *options.file : options.model.shown(), [&] {
    const auto ids = tokenizer.encode(text, {.parse_special = options.special, .add_bos = options.bos});
    if (options.json) {
      auto pieces = nlohmann::ordered_json::array();
      for (const auto id : ids) {
        std::string piece;
        io::append_replacing_invalid(piece, tokenizer.piece(id));
        pieces.push_back(std::move(piece));
      }
      return print_line(nlohmann::ordered_json{{"ids", ids}, {"pieces", pieces}}.dump());
    }
    std::string list;
    for (const auto id : ids) list.append(list.empty() ? "" : ",").append(std::to_string(id));
    print_line(list);
  });
}

void detokenize(const detokenize_options& options) {
  const auto ids = parse_ids(options.ids);
  const io::checkpoint model = open_model(options.model);
  const io::tokenizer tokenizer = open_tokenizer(model);
  naming_file(options.model.shown(), [&] {
    const std::string text = tokenizer.decode(ids);
    if (options.json) {
      std::string valid;
      io::append_replacing_invalid(valid, text);
      return print_line(nlohmann::ordered_json{{"text", valid}}.dump());
    }
    print(text);
    if (is_terminal(1)) print("\n");
  });
}

}  // namespace intaglio::tool
