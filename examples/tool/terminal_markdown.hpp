// SPDX-License-Identifier: MIT
// Markdown as lines of a terminal. The reader is md4c, opened at run time; without it text is wrapped as it is.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace intaglio::tool {

/// Columns of a terminal that UTF-8 text takes; escape sequences of colours take none.
std::size_t columns_of(std::string_view text);

/// Lines of at most `columns` columns each. Words stay whole where a line has room for them.
/// @param text any number of lines
std::vector<std::string> wrapped(std::string_view text, std::size_t columns);

/// True where md4c is there (Debian, Ubuntu: libmd4c0).
bool reads_markdown();

/// Headings, emphasis, lists, quotes, code, tables and links, in at most `columns` columns a line. Escape sequences are
/// ended within their line. HTML and images stay as they are written.
std::vector<std::string> markdown_lines(std::string_view text, std::size_t columns);

}  // namespace intaglio::tool
