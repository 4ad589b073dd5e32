// SPDX-License-Identifier: MIT
#include "pages.hpp"

#include <cstddef>

#include "file_in_program.hpp"

#ifndef INTAGLIO_SERVE_PAGES
#error "expected INTAGLIO_SERVE_PAGES, the folder of the web page as a string"
#endif

#define INTAGLIO_SERVE_FILE(name, file) INTAGLIO_FILE_IN_PROGRAM(name, INTAGLIO_SERVE_PAGES "/" file)

INTAGLIO_SERVE_FILE(intaglio_serve_chat_html, "chat.html")
INTAGLIO_SERVE_FILE(intaglio_serve_chat_css, "chat.css")
INTAGLIO_SERVE_FILE(intaglio_serve_chat_js, "chat.js")
INTAGLIO_SERVE_FILE(intaglio_serve_store_js, "store.js")
INTAGLIO_SERVE_FILE(intaglio_serve_highlight_js, "highlight.js")
INTAGLIO_SERVE_FILE(intaglio_serve_math_js, "math.js")
INTAGLIO_SERVE_FILE(intaglio_serve_markdown_js, "markdown.js")
INTAGLIO_SERVE_FILE(intaglio_serve_tldr_js, "tldr.js")
INTAGLIO_SERVE_FILE(intaglio_serve_tldr_html, "tldr.html")

namespace intaglio::serve {

std::vector<page_file> page_files() {
  const auto text = [](const std::byte* begin, const std::byte* end) {
    return std::string_view(reinterpret_cast<const char*>(begin), static_cast<std::size_t>(end - begin));
  };
  constexpr std::string_view html = "text/html; charset=utf-8", script = "text/javascript; charset=utf-8",
                             style = "text/css; charset=utf-8";
  return {{"/", html, text(intaglio_serve_chat_html, intaglio_serve_chat_html_end)},
          {"/chat.css", style, text(intaglio_serve_chat_css, intaglio_serve_chat_css_end)},
          {"/chat.js", script, text(intaglio_serve_chat_js, intaglio_serve_chat_js_end)},
          {"/store.js", script, text(intaglio_serve_store_js, intaglio_serve_store_js_end)},
          {"/highlight.js", script, text(intaglio_serve_highlight_js, intaglio_serve_highlight_js_end)},
          {"/math.js", script, text(intaglio_serve_math_js, intaglio_serve_math_js_end)},
          {"/markdown.js", script, text(intaglio_serve_markdown_js, intaglio_serve_markdown_js_end)},
          {"/tldr.js", script, text(intaglio_serve_tldr_js, intaglio_serve_tldr_js_end)},
          {"/tldr.html", html, text(intaglio_serve_tldr_html, intaglio_serve_tldr_html_end)}};
}

}  // namespace intaglio::serve
