// SPDX-License-Identifier: MIT
#include "line_editor.hpp"

#include "console.hpp"
#include "line_history.hpp"

#include <intaglio/platform/console.hpp>
#include <intaglio/platform/library.hpp>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstdlib>
#include <deque>

#if __has_include(<histedit.h>)
#include <histedit.h>
#define INTAGLIO_HAS_LIBEDIT 1
#endif

namespace intaglio::tool {
namespace {

/// Stands for a line's end inside a message that is being edited.
constexpr std::string_view line_mark = "\u23ce";

void replace_all(std::string& in, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = in.find(from, at)) != std::string::npos; at += to.size())
    in.replace(at, from.size(), to);
}

/// One byte of stdin; -1 at the end of the input or after a signal.
int typed_byte() {
  for (;;) {
    if (graceful_stop::received() != 0) return -1;
    if (!platform::input_comes(200)) continue;  // a signal may have come just before
    std::byte byte{};
    const std::int64_t count = platform::read_input({&byte, 1});
    if (count < 0 && errno == EINTR) continue;
    return count == 1 ? std::to_integer<int>(byte) : -1;
  }
}

/// A line of stdin without its end.
std::optional<std::string> plain_line() {
  std::string out;
  for (;;) {
    const int byte = typed_byte();
    if (byte < 0) return out.empty() && graceful_stop::received() == 0 ? std::nullopt : std::optional(out);
    if (byte == '\n') return out;
    out += static_cast<char>(byte);
  }
}

}  // namespace

#ifdef INTAGLIO_HAS_LIBEDIT
/// libedit's functions, opened at run time, so that a program without it starts. Not in a namespace without a name:
/// `parts` has one.
struct edit_library {
#if defined(__APPLE__)
  static constexpr const char* file = "libedit.3.dylib";
#else
  static constexpr const char* file = "libedit.so.2";
#endif
  decltype(&::el_init) init = nullptr;
  decltype(&::el_end) end = nullptr;
  decltype(&::el_set) set = nullptr;
  decltype(&::el_gets) gets = nullptr;
  decltype(&::el_resize) resize = nullptr;
  decltype(&::el_line) line = nullptr;
  decltype(&::el_insertstr) insert = nullptr;
  decltype(&::history_init) history_init = nullptr;
  decltype(&::history_end) history_end = nullptr;
  decltype(&::history) history = nullptr;

  edit_library() {
    find("el_init", init);
    find("el_end", end);
    find("el_set", set);
    find("el_gets", gets);
    find("el_resize", resize);
    find("el_line", line);
    find("el_insertstr", insert);
    find("history_init", history_init);
    find("history_end", history_end);
    find("history", history);
  }
  bool whole() const {
    return init && end && set && gets && resize && line && insert && history_init && history_end && history;
  }

 private:
  template <class F>
  void find(const char* name, F& function) {
    std::string problem;
    function = reinterpret_cast<F>(platform::library_function(file, name, problem));
  }
};

namespace {

std::string shown_prompt;                 ///< what libedit asks for while it draws
std::deque<unsigned char> waiting_bytes;  ///< read, not yet looked at
bool pasting = false;
bool marks_pastes = false;  ///< the terminal was asked to put a paste between marks

char* prompt_of(EditLine*) { return shown_prompt.data(); }

std::vector<std::string> known_commands;  ///< what the Tab key completes
const edit_library* completing = nullptr;

/// The Tab key: the rest of a word of a command, or of what several have in common; a second time, which there are.
unsigned char complete_command(EditLine* edit, int) {
  const LineInfo* const line = completing->line(edit);
  const std::string_view typed(line->buffer, static_cast<std::size_t>(line->cursor - line->buffer));
  std::vector<std::string_view> fitting;
  const auto blanks = std::count(typed.begin(), typed.end(), ' ');
  for (const std::string& each : known_commands)
    if (each.starts_with(typed) && std::count(each.begin(), each.end(), ' ') == blanks) fitting.push_back(each);
  if (typed.empty() || fitting.empty()) return CC_REFRESH_BEEP;
  std::string_view shared = fitting[0];
  for (const std::string_view each : fitting)
    shared = shared.substr(
        0, static_cast<std::size_t>(std::mismatch(shared.begin(), shared.end(), each.begin(), each.end()).first -
                                    shared.begin()));
  std::string rest(shared.substr(typed.size()));
  if (fitting.size() == 1) rest += ' ';
  if (!rest.empty()) return completing->insert(edit, rest.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
  std::string all = "\n";
  for (const std::string_view each : fitting) all.append(each.substr(typed.rfind(' ') + 1)).append("  ");
  print(all + "\n");
  flush_output();
  return CC_REDISPLAY;
}

int next_byte() {
  if (waiting_bytes.empty()) return typed_byte();
  const int out = waiting_bytes.front();
  waiting_bytes.pop_front();
  return out;
}
/// True where another byte comes at once, as after the escape of a key.
bool byte_follows() { return !waiting_bytes.empty() || platform::input_comes(25); }
/// Takes the bytes if the input continues with them.
bool takes(std::string_view bytes) {
  std::string read;
  for (const char wanted : bytes) {
    const int byte = byte_follows() ? next_byte() : -1;
    if (byte >= 0) read += static_cast<char>(byte);
    if (byte != static_cast<unsigned char>(wanted)) {
      waiting_bytes.insert(waiting_bytes.begin(), read.begin(), read.end());
      return false;
    }
  }
  return true;
}

/// libedit's next character: UTF-8 decoded, a pasted or an Alt-Enter line end as its mark. -1 at the end or after a
/// signal.
int read_character(EditLine*, wchar_t* out) {
  if (!marks_pastes) {  // from here on the terminal hands over keys one by one
    marks_pastes = true;
    print("\x1b[?2004h");
    flush_output();
  }
  for (;;) {
    const int first = next_byte();
    if (first < 0) return graceful_stop::received() != 0 ? -1 : 0;
    if (first == 0x1b) {
      if (!pasting && (takes("\r") || takes("\n"))) return *out = L'\u23ce', 1;
      if (takes(pasting ? "[201~" : "[200~")) {
        pasting = !pasting;
        continue;
      }
    }
    if (pasting && (first == '\r' || first == '\n')) return *out = L'\u23ce', 1;
    if (pasting && first == '\t') return *out = L' ', 1;
    if (pasting && first < 0x20) continue;
    const int more = first < 0xc2 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : first < 0xf5 ? 3 : 0;
    wchar_t code = more == 0 ? first : first & (0x3f >> more);
    for (int i = 0; i < more; ++i) {
      const int byte = next_byte();
      if (byte < 0x80 || byte > 0xbf) {
        if (byte >= 0) waiting_bytes.push_front(static_cast<unsigned char>(byte));
        return *out = L'\ufffd', 1;
      }
      code = code << 6 | (byte & 0x3f);
    }
    *out = more == 0 && first >= 0x80 ? L'\ufffd' : code;
    return 1;
  }
}

}  // namespace
#endif

std::string state_folder() {
  const std::string home = platform::state_home();
  return home.empty() ? home : home + "/intaglio";
}

struct line_editor::parts {
  bool terminal = is_terminal(platform::standard_input) && is_terminal(platform::standard_output);
  line_history lines;
#ifdef INTAGLIO_HAS_LIBEDIT
  edit_library library;
  EditLine* edit = nullptr;
  History* history = nullptr;
#endif

  explicit parts(const std::string& history_file) : lines(terminal ? history_file : std::string{}) {
    if (!lines.warning().empty()) warn(lines.warning());
    if (!terminal) return;
#ifdef INTAGLIO_HAS_LIBEDIT
    const char* const kind = std::getenv("TERM");
    if (library.whole() && kind != nullptr && std::string_view(kind) != "dumb" && *kind != '\0') start();
    if (edit == nullptr)
      note(library.whole() ? std::string("This terminal cannot edit lines.")
                           : std::string(edit_library::file) + " is not here: lines cannot be edited.");
#else
    note("Built without libedit: lines cannot be edited.");
#endif
  }
#ifdef INTAGLIO_HAS_LIBEDIT
  void start() {
    if (std::setlocale(LC_CTYPE, "C.UTF-8") == nullptr) std::setlocale(LC_CTYPE, "");
    edit = library.init("intaglio", stdin, stdout, stderr);
    if (edit == nullptr) return;
    history = library.history_init();
    HistEvent event{};
    library.history(history, &event, H_SETSIZE, static_cast<int>(line_history::most));
    for (const std::string& each : lines.all()) library.history(history, &event, H_ENTER, each.c_str());
    library.set(edit, EL_EDITOR, "emacs");
    library.set(edit, EL_PROMPT, &prompt_of);
    library.set(edit, EL_HIST, library.history, history);
    library.set(edit, EL_SIGNAL, 0);
    library.set(edit, EL_GETCFN, &read_character);
    completing = &library;
    library.set(edit, EL_ADDFN, "complete-command", "Complete a command", &complete_command);
    library.set(edit, EL_BIND, "^I", "complete-command", nullptr);
    library.set(edit, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    library.set(edit, EL_BIND, "\x1b[3~", "ed-delete-next-char", nullptr);
  }
  std::optional<std::string> edited(std::string_view prompt) {
    flush_output();
    shown_prompt = prompt;
    waiting_bytes.clear();
    pasting = marks_pastes = false;
    library.resize(edit);
    int count = 0;
    const char* const line = library.gets(edit, &count);
    if (marks_pastes) print("\x1b[?2004l");
    if (graceful_stop::received() != 0) print("\n");
    flush_output();
    if (line == nullptr || count <= 0)
      return graceful_stop::received() != 0 ? std::optional<std::string>("") : std::nullopt;
    std::string out(line, static_cast<std::size_t>(count));
    if (out.ends_with('\n')) out.pop_back();
    return out;
  }
#endif
  ~parts() {
#ifdef INTAGLIO_HAS_LIBEDIT
    if (edit != nullptr) library.end(edit);
    if (history != nullptr) library.history_end(history);
#endif
  }

  std::optional<std::string> line(std::string_view prompt) {
#ifdef INTAGLIO_HAS_LIBEDIT
    if (edit != nullptr) return edited(prompt);
#endif
    if (terminal) print(prompt);
    flush_output();
    return plain_line();
  }
  void keep(std::string message) {
    replace_all(message, "\n", line_mark);
    if (!lines.add(message)) return;
#ifdef INTAGLIO_HAS_LIBEDIT
    HistEvent event{};
    if (edit != nullptr) library.history(history, &event, H_ENTER, message.c_str());
#endif
  }
};

line_editor::line_editor(const std::string& history_file, std::vector<std::string> commands)
    : parts_(std::make_unique<parts>(history_file)) {
#ifdef INTAGLIO_HAS_LIBEDIT
  known_commands = std::move(commands);
#else
  static_cast<void>(commands);
#endif
}
line_editor::~line_editor() = default;

std::optional<std::string> line_editor::read(std::string_view prompt) {
  std::string out;
  bool block = false, more = false;
  do {
    std::optional<std::string> line = parts_->line(more ? ". " : prompt);
    if (graceful_stop::received() != 0) return out + line.value_or("");
    if (!line) {
      if (!more) return std::nullopt;
      break;
    }
    if (*line == "\"\"\"") {
      if (block) break;
      block = true;
      more = true;
      continue;
    }
    more = block || line->ends_with('\\');
    if (!block && more) line->pop_back();
    out += *line;
    if (more) out += '\n';
  } while (more);
  if (block && out.ends_with('\n')) out.pop_back();
  replace_all(out, line_mark, "\n");
  if (!out.empty()) parts_->keep(out);
  return out;
}

}  // namespace intaglio::tool
