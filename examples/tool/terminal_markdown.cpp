// SPDX-License-Identifier: MIT
#include "terminal_markdown.hpp"

#include <intaglio/io/unicode.hpp>
#include <intaglio/platform/library.hpp>
#include <intaglio/platform/terminal.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

#if __has_include(<md4c.h>)
#include <md4c.h>
#define INTAGLIO_HAS_MD4C 1
#endif

namespace intaglio::tool {
namespace {

/// Bytes of the escape sequence of a colour at `at`; 0: there is none.
std::size_t escape_at(std::string_view text, std::size_t at) {
  if (text[at] != '\x1b') return 0;
  const std::size_t end = text.find('m', at);
  return end == std::string_view::npos ? 1 : end + 1 - at;
}

/// A piece of text with the escape sequences around it; a word, or the space after one.
struct styled_text {
  std::string text;
  std::string style;
};

/// Breaks runs into lines. `first` and `rest` are in front of the first line and of the others.
class line_filler {
 public:
  line_filler(std::size_t columns, std::string first, std::string rest)
      : columns_(columns), rest_(std::move(rest)), line_(std::move(first)), at_(columns_of(line_)), start_(at_) {}

  void add(std::string_view text, const std::string& style) {
    for (std::size_t at = 0; at < text.size();) {
      const bool blank = text[at] == ' ' || text[at] == '\t';
      std::size_t end = at;
      while (end < text.size() && (text[end] == ' ' || text[end] == '\t') == blank) ++end;
      if (blank) {
        put_word();
        space_ = true, space_style_ = style;
      } else {
        word_.push_back({std::string(text.substr(at, end - at)), style});
      }
      at = end;
    }
  }
  void end_line() {
    put_word();
    next_line();
  }
  std::vector<std::string> finish() {
    put_word();
    if (at_ > start_ || lines_.empty()) next_line();
    return std::move(lines_);
  }

 private:
  void put_word() {
    std::size_t width = 0;
    for (const styled_text& each : word_) width += columns_of(each.text);
    if (width == 0) return;
    const bool gap = std::exchange(space_, false) && at_ > start_;
    if (at_ > start_ && at_ + (gap ? 1 : 0) + width > columns_) next_line();
    else if (gap) put(" ", space_style_, 1);
    for (const styled_text& each : std::exchange(word_, {})) put_whole(each);
  }
  /// A word that no line has room for is cut.
  void put_whole(const styled_text& word) {
    for (std::size_t from = 0, at = 0; at < word.text.size();) {
      const std::size_t from_column = at_;
      std::size_t width = 0;
      while (at < word.text.size()) {
        const io::code_point character = io::decode_utf8(word.text, at);
        const std::size_t next = platform::columns_of_character(character.value);
        if (from_column + width + next > columns_ && from_column + width > start_) break;
        width += next, at += character.bytes;
      }
      put(std::string_view(word.text).substr(from, at - from), word.style, width);
      from = at;
      if (at < word.text.size()) next_line();
    }
  }
  void put(std::string_view text, const std::string& style, std::size_t width) {
    if (!style.empty()) line_ += style;
    line_ += text;
    if (!style.empty()) line_ += "\x1b[0m";
    at_ += width;
  }
  void next_line() {
    lines_.push_back(std::exchange(line_, rest_));
    start_ = at_ = columns_of(rest_);
  }

  std::size_t columns_;
  std::string rest_, line_;
  std::size_t at_, start_;
  std::vector<styled_text> word_;
  bool space_ = false;
  std::string space_style_;
  std::vector<std::string> lines_;
};

}  // namespace

std::size_t columns_of(std::string_view text) {
  std::size_t out = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (const std::size_t escape = escape_at(text, at); escape > 0) {
      at += escape;
      continue;
    }
    const io::code_point character = io::decode_utf8(text, at);
    out += platform::columns_of_character(character.value), at += character.bytes;
  }
  return out;
}

std::vector<std::string> wrapped(std::string_view text, std::size_t columns) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = (std::min)(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    const std::size_t indent = (std::min)((std::min)(line.find_first_not_of(' '), line.size()), columns / 2);
    line_filler filler(columns, std::string(line.substr(0, indent)), {});
    filler.add(line.substr(indent), {});
    for (std::string& each : filler.finish()) out.push_back(std::move(each));
    at = end + 1;
  }
  return out;
}

#ifdef INTAGLIO_HAS_MD4C
namespace {

auto md4c_parse() {
  static const auto function = [] {
    std::string problem;
    return reinterpret_cast<decltype(&::md_parse)>(platform::library_function("libmd4c.so.0", "md_parse", problem));
  }();
  return function;
}

/// Takes what md4c reads, block by block, and has the lines.
class page {
 public:
  explicit page(std::size_t columns) : columns_((std::max<std::size_t>)(columns, 8)) {}

  std::vector<std::string> read(std::string_view text) {
    MD_PARSER parser{};
    parser.flags = MD_FLAG_TABLES | MD_FLAG_STRIKETHROUGH | MD_FLAG_NOHTML | MD_FLAG_PERMISSIVEURLAUTOLINKS;
    parser.enter_block = [](MD_BLOCKTYPE type, void* detail, void* self) {
      return static_cast<page*>(self)->enter(type, detail), 0;
    };
    parser.leave_block = [](MD_BLOCKTYPE type, void*, void* self) { return static_cast<page*>(self)->leave(type), 0; };
    parser.enter_span = [](MD_SPANTYPE type, void* detail, void* self) {
      return static_cast<page*>(self)->begin(type, detail), 0;
    };
    parser.leave_span = [](MD_SPANTYPE type, void*, void* self) { return static_cast<page*>(self)->end(type), 0; };
    parser.text = [](MD_TEXTTYPE type, const MD_CHAR* of, MD_SIZE size, void* self) {
      return static_cast<page*>(self)->text(type, {of, size}), 0;
    };
    md4c_parse()(text.data(), static_cast<MD_SIZE>(text.size()), &parser, this);
    flush();
    return std::move(lines_);
  }

 private:
  struct list {
    bool numbered, tight;
    unsigned next;
  };
  static constexpr const char *bold = "\x1b[1m", *italic = "\x1b[3m", *struck = "\x1b[9m", *code = "\x1b[36m",
                              *underlined = "\x1b[4m", *dim = "\x1b[2m", *plain = "\x1b[0m";

  void enter(MD_BLOCKTYPE type, void* detail) {
    flush();
    switch (type) {
      case MD_BLOCK_QUOTE:
        gap(), indents_.push_back(std::string(dim) + "│ " + plain);
        break;
      case MD_BLOCK_UL:
        if (lists_.empty()) gap();
        lists_.push_back({false, static_cast<MD_BLOCK_UL_DETAIL*>(detail)->is_tight != 0, 0});
        break;
      case MD_BLOCK_OL: {
        if (lists_.empty()) gap();
        const auto& of = *static_cast<MD_BLOCK_OL_DETAIL*>(detail);
        lists_.push_back({true, of.is_tight != 0, of.start});
        break;
      }
      case MD_BLOCK_LI: {
        if (!lists_.back().tight) gap();
        mark_ = lists_.back().numbered ? std::to_string(lists_.back().next++) + ". " : "• ";
        indents_.emplace_back(columns_of(mark_), ' ');
        break;
      }
      case MD_BLOCK_HR:
        gap();
        lines_.push_back(indent() + dim + repeated("─", columns_ - columns_of(indent())) + plain);
        break;
      case MD_BLOCK_H:
        gap(), styles_.push_back(bold);
        break;
      case MD_BLOCK_CODE:
        gap(), verbatim_ = true;
        break;
      case MD_BLOCK_P:
        if (mark_.empty()) gap();
        break;
      case MD_BLOCK_TABLE:
        gap(), rows_.clear();
        break;
      case MD_BLOCK_TR:
        rows_.emplace_back();
        break;
      default:
        break;
    }
  }
  void leave(MD_BLOCKTYPE type) {
    switch (type) {
      case MD_BLOCK_QUOTE:
        flush(), indents_.pop_back();
        break;
      case MD_BLOCK_UL:
      case MD_BLOCK_OL:
        flush(), lists_.pop_back();
        break;
      case MD_BLOCK_LI:
        flush(), mark_.clear(), indents_.pop_back();
        break;
      case MD_BLOCK_H:
        flush(), styles_.pop_back();
        break;
      case MD_BLOCK_CODE:
        code_block(), verbatim_ = false;
        break;
      case MD_BLOCK_TH:
      case MD_BLOCK_TD:
        rows_.back().push_back(std::exchange(runs_, {}));
        break;
      case MD_BLOCK_TABLE:
        table();
        break;
      default:
        flush();
        break;
    }
  }
  void begin(MD_SPANTYPE type, void* detail) {
    switch (type) {
      case MD_SPAN_EM:
        styles_.push_back(italic);
        break;
      case MD_SPAN_STRONG:
        styles_.push_back(bold);
        break;
      case MD_SPAN_DEL:
        styles_.push_back(struck);
        break;
      case MD_SPAN_CODE:
        styles_.push_back(code);
        break;
      case MD_SPAN_A: {
        const MD_ATTRIBUTE& address = static_cast<MD_SPAN_A_DETAIL*>(detail)->href;
        address_.assign(address.text == nullptr ? "" : address.text, address.size);
        link_text_.clear();
        styles_.push_back(underlined);
        break;
      }
      default:
        styles_.push_back({});
        break;
    }
  }
  void end(MD_SPANTYPE type) {
    styles_.pop_back();
    if (type == MD_SPAN_A && !address_.empty() && link_text_ != address_)
      runs_.push_back({" (" + std::exchange(address_, {}) + ")", dim});
  }
  void text(MD_TEXTTYPE type, std::string_view of) {
    if (type == MD_TEXT_BR) return runs_.push_back({"\n", {}});
    const std::string said = type == MD_TEXT_SOFTBR ? " " : type == MD_TEXT_NULLCHAR ? "\ufffd" : std::string(of);
    link_text_ += said;
    std::string style;
    for (const std::string& each : styles_) style += each;
    runs_.push_back({said, style});
  }

  std::string indent() const {
    std::string out;
    for (const std::string& each : indents_) out += each;
    return out;
  }
  /// An empty line between blocks.
  void gap() {
    if (!lines_.empty() && columns_of(lines_.back()) > columns_of(indent())) lines_.push_back(indent());
    while (!lines_.empty() && lines_.back().ends_with(' ')) lines_.back().pop_back();
  }
  /// What is in front of the next line: an item's mark once, instead of its indent.
  std::string front() {
    std::string out = indent();
    if (!mark_.empty()) {
      out.resize(out.size() - indents_.back().size());
      out += std::exchange(mark_, {});
    }
    return out;
  }
  void flush() {
    if (runs_.empty() || verbatim_) return;
    fill(std::exchange(runs_, {}));
  }
  void fill(const std::vector<styled_text>& runs) {
    const std::string first = front();
    line_filler filler(columns_, first, indent());
    for (const styled_text& each : runs)
      if (each.text == "\n") filler.end_line();
      else filler.add(each.text, each.style);
    for (std::string& each : filler.finish()) lines_.push_back(std::move(each));
  }
  /// Lines as they are, cut where the terminal ends.
  void code_block() {
    std::string all;
    for (const styled_text& each : std::exchange(runs_, {})) all += each.text;
    while (all.ends_with('\n')) all.pop_back();
    const std::string in_front = front();
    const std::size_t room = columns_ - (std::min)(columns_of(in_front), columns_ / 2);
    bool first = true;
    for (std::size_t at = 0; at <= all.size();) {
      const std::size_t end = (std::min)(all.find('\n', at), all.size());
      for (const std::string& each : cut(std::string_view(all).substr(at, end - at), room)) {
        lines_.push_back((std::exchange(first, false) ? in_front : indent()) + code + each + plain);
      }
      at = end + 1;
    }
  }
  static std::vector<std::string> cut(std::string_view line, std::size_t room) {
    std::vector<std::string> out(1);
    std::size_t width = 0;
    for (std::size_t at = 0; at < line.size();) {
      const io::code_point character = io::decode_utf8(line, at);
      const bool tab = character.value == U'\t';
      const std::size_t wide = tab ? 4 - width % 4 : platform::columns_of_character(character.value);
      if (width + wide > room && width > 0) out.emplace_back(), width = 0;
      if (tab) out.back().append(wide, ' ');
      else out.back() += line.substr(at, character.bytes);
      width += wide, at += character.bytes;
    }
    return out;
  }
  static std::string repeated(std::string_view what, std::size_t times) {
    std::string out;
    while (times-- > 0) out += what;
    return out;
  }

  /// Columns side by side where the terminal has room for them, else a row's cells one after the other.
  void table() {
    std::vector<std::size_t> widths;
    for (const auto& row : rows_)
      for (std::size_t i = 0; i < row.size(); ++i) {
        if (i == widths.size()) widths.push_back(1);
        widths[i] = (std::max)(widths[i], columns_of(line_of(row[i])));
      }
    std::size_t all = columns_of(indent());
    for (const std::size_t each : widths) all += each + 2;
    const auto rows = std::exchange(rows_, {});
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (all > columns_) {
        std::vector<styled_text> cells;
        for (const auto& cell : rows[r]) {
          if (!cells.empty()) cells.push_back({" | ", dim});
          cells.insert(cells.end(), cell.begin(), cell.end());
        }
        fill(cells);
        continue;
      }
      std::string line = front();
      for (std::size_t i = 0; i < rows[r].size(); ++i) {
        const std::string cell = line_of(rows[r][i]);
        line += r == 0 ? bold + cell + plain : cell;
        if (i + 1 < rows[r].size()) line.append(widths[i] + 2 - columns_of(cell), ' ');
      }
      lines_.push_back(line);
      if (r == 0) lines_.push_back(indent() + dim + repeated("─", all - columns_of(indent())) + plain);
    }
  }
  static std::string line_of(const std::vector<styled_text>& cell) {
    std::string out;
    for (const styled_text& each : cell) out += each.style.empty() ? each.text : each.style + each.text + plain;
    return out;
  }

  std::size_t columns_;
  std::vector<std::string> lines_, indents_, styles_;
  std::vector<list> lists_;
  std::vector<styled_text> runs_;
  std::vector<std::vector<std::vector<styled_text>>> rows_;  ///< of a table, its cells
  std::string mark_, address_, link_text_;
  bool verbatim_ = false;
};

}  // namespace

bool reads_markdown() { return md4c_parse() != nullptr; }
std::vector<std::string> markdown_lines(std::string_view text, std::size_t columns) {
  return reads_markdown() ? page(columns).read(text) : wrapped(text, columns);
}
#else
bool reads_markdown() { return false; }
std::vector<std::string> markdown_lines(std::string_view text, std::size_t columns) { return wrapped(text, columns); }
#endif

}  // namespace intaglio::tool
