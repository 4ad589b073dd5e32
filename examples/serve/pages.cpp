// SPDX-License-Identifier: MIT
#include "pages.hpp"

#include <cstddef>

#include "file_in_program.hpp"

#ifndef INTAGLIO_SERVE_PAGES
#error "expected INTAGLIO_SERVE_PAGES, the folder of the web page as a string"
#endif

// Each file of the folder: its name in the program, its name, its address, its media type.
// clang-format off
#define INTAGLIO_SERVE_PAGES_OF(take)                                     \
  take(chat_html, "chat.html", "/", html)                                 \
  take(chat_css, "chat.css", "/chat.css", style)                          \
  take(elements_js, "elements.js", "/elements.js", script)                \
  take(store_js, "store.js", "/store.js", script)                         \
  take(highlight_js, "highlight.js", "/highlight.js", script)             \
  take(math_js, "math.js", "/math.js", script)                            \
  take(markdown_js, "markdown.js", "/markdown.js", script)                \
  take(key_js, "key.js", "/key.js", script)                               \
  take(conversations_js, "conversations.js", "/conversations.js", script) \
  take(server_js, "server.js", "/server.js", script)                      \
  take(answer_js, "answer.js", "/answer.js", script)                      \
  take(attachments_js, "attachments.js", "/attachments.js", script)       \
  take(turns_js, "turns.js", "/turns.js", script)                         \
  take(trace_js, "trace.js", "/trace.js", script)                         \
  take(chat_js, "chat.js", "/chat.js", script)                            \
  take(tldr_js, "tldr.js", "/tldr.js", script)                            \
  take(tldr_html, "tldr.html", "/tldr.html", html)
// clang-format on

#define INTAGLIO_SERVE_FILE(name, file, address, type) \
  INTAGLIO_FILE_IN_PROGRAM(intaglio_serve_##name, INTAGLIO_SERVE_PAGES "/" file)
INTAGLIO_SERVE_PAGES_OF(INTAGLIO_SERVE_FILE)

namespace intaglio::serve {

std::vector<page_file> page_files() {
  constexpr std::string_view html = "text/html; charset=utf-8", script = "text/javascript; charset=utf-8",
                             style = "text/css; charset=utf-8";
  std::vector<page_file> out;
  const auto add = [&](std::string_view address, std::string_view type, const std::byte* begin, const std::byte* end) {
    out.push_back({address, type, {reinterpret_cast<const char*>(begin), static_cast<std::size_t>(end - begin)}});
  };
#define INTAGLIO_SERVE_ADD(name, file, address, type) \
  add(address, type, intaglio_serve_##name, intaglio_serve_##name##_end);
  INTAGLIO_SERVE_PAGES_OF(INTAGLIO_SERVE_ADD)
  return out;
}

}  // namespace intaglio::serve
