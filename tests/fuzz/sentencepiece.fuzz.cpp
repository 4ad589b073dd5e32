// SPDX-License-Identifier: MIT
// tokenizer.model of any bytes either gives a vocabulary or throws file_error, and so does the tokenizer made of it.
// Seeds: python3 tests/fuzz/seeds.py FOLDER
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "intaglio/io/sentencepiece_model.hpp"
#include "intaglio/io/tiktoken_list.hpp"
#include "intaglio/io/tokenizer.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace intaglio;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const io::tokenizer tokens(io::is_tiktoken_list(text) ? io::vocabulary_from_tiktoken(text, "fuzz")
                                                          : io::vocabulary_from_sentencepiece(text, "fuzz"));
    for (const bool special : {false, true})
      (void)tokens.decode(tokens.encode(text.substr(0, 4096), {.parse_special = special}));
  } catch (const file_error& problem) {
    if (std::string_view(problem.what()).size() > 1000) std::abort();
  }
  return 0;
}
