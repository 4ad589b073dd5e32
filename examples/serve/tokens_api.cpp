// SPDX-License-Identifier: MIT
// /apply-template, /tokenize, /detokenize and /pdf-text: what a model is fed, without feeding it.
#include "api.hpp"

#include <intaglio/io/unicode.hpp>

#include "request.hpp"

namespace intaglio::serve {

http_reply api::apply_template(const asked& of) {
  completion_request wanted = read_chat_request(of.body, of.facts(), options_.limit);
  wanted.talk.names = of.words().names_of(wanted.talk, options_.limit.ignore_unknown);
  std::uint32_t left_out = 0;
  return json_reply({{"prompt", chat_prompt(of, wanted, left_out).text}});
}

http_reply api::tokenize(const asked& of) {
  const tokenize_request wanted = read_tokenize_request(of.body, options_.limit);
  const io::tokenizer& tokens = of.words().tokens;
  const auto ids = tokens.encode(
      wanted.content, {.parse_special = wanted.parse_special, .add_bos = wanted.add_special && tokens.adds_bos()});
  return json_reply({{"tokens", ids}, {"count", ids.size()}});
}

http_reply api::detokenize(const asked& of) {
  const auto ids = read_detokenize_request(of.body, of.facts(), options_.limit);
  const std::string bytes = of.words().tokens.decode(ids, {.skip_control = false, .text_start = true});
  std::string text;
  io::append_replacing_invalid(text, bytes);
  return json_reply({{"content", text}});
}

http_reply api::pdf_text(const asked& of) {
  const auto reply = std::make_shared<later_reply>(of.wake);
  pdfs_.submit(of.request.body, reply);
  http_reply out;
  out.pending = reply;
  return out;
}

}  // namespace intaglio::serve
