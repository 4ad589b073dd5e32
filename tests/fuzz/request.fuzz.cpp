// SPDX-License-Identifier: MIT
// The server's request bodies out of arbitrary bytes: read or refused in words of ours, and a form that was taken has a
// text that it allows byte by byte. The first byte says which path the body is for.
#include "../../examples/serve/request.cpp"
#include "../../examples/serve/conversation.cpp"
#include "../../examples/serve/gbnf.cpp"
#include "../../examples/serve/grammar.cpp"
#include "../../examples/serve/json_document.cpp"
#include "../../examples/serve/json_schema.cpp"
#include "../../examples/serve/number_form.cpp"
#include "../../examples/serve/pattern.cpp"
#include "../../examples/serve/pattern_automaton.cpp"
#include "../../examples/serve/reply_grammar.cpp"
#include "../../examples/serve/reply_layout.cpp"
#include "../../examples/serve/schema_arrays.cpp"
#include "../../examples/serve/schema_objects.cpp"
#include "../../examples/serve/schema_rules.cpp"
#include "../../examples/serve/schema_words.cpp"
#include "../../examples/serve/text_formats.cpp"
#include "../../examples/serve/text_language.cpp"
#include "../../examples/serve/text_match.cpp"

#include <intaglio/core/error.hpp>

#include <cstdlib>

#include "../../examples/serve/api_error.hpp"

using namespace intaglio;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const serve::model_facts model{.id = "fable", .aliases = {}, .vocab_size = 4096, .context = 512};
  const serve::limits limit;
  try {
    const serve::json body = serve::parse_json({reinterpret_cast<const char*>(data) + 1, size - 1}, limit);
    std::shared_ptr<const serve::grammar> form;
    switch (data[0] % 6) {
      case 0:
        form = serve::read_chat_request(body, model, limit).shape.form;
        break;
      case 1:
        form = serve::read_completion_request(body, model, limit).shape.form;
        break;
      case 2:
        serve::read_tokenize_request(body, limit);
        break;
      case 3:
        serve::read_detokenize_request(body, model, limit);
        break;
      case 4:
        serve::read_infer_request(body, limit);
        break;
      default:
        serve::read_trace_request(body, limit);
        break;
    }
    if (form) {
      serve::text_match match(form);
      for (int i = 0; i < 64 && !match.finished(); ++i) {
        bool any = match.complete();
        for (unsigned byte = 0; byte < 256 && !any; ++byte) {
          const char one = static_cast<char>(byte);
          if (!match.allows({&one, 1}, 4096)) continue;
          match.take({&one, 1});
          any = true;
        }
        if (!any) std::abort();  // a taken form that no text fits
        if (match.complete()) break;
      }
    }
  } catch (const serve::api_error& refusal) {
    if (refusal.status < 400 || refusal.status >= 500 || std::string_view(refusal.what()).size() > 2000) std::abort();
  } catch (const serve::match_limit&) {  // more readings than the server follows: refused there
  }
  return 0;
}
