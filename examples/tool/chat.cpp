// SPDX-License-Identifier: MIT
// chat: a conversation, message by message, and the commands between them.
#include "commands.hpp"
#include "console.hpp"
#include "conversation.hpp"
#include "engine.hpp"
#include "engraved_models.hpp"
#include "line_editor.hpp"
#include "model_file.hpp"
#include "sampling_choice.hpp"
#include "terminal_markdown.hpp"
#include "terminal_text.hpp"
#include "thought_text.hpp"

#include <intaglio/core/letters_between.hpp>
#include <intaglio/core/number_text.hpp>
#include <intaglio/platform/console.hpp>
#include <intaglio/platform/terminal.hpp>
#include <intaglio/runtime/sampling.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace intaglio::tool {
namespace {

constexpr const char* chat_help = R"(/system [TEXT]     show or set the system message; /system - takes it away
/reset             forget the conversation
/set [NAME VALUE]  show or change how replies are drawn: temperature, top_k,
                   top_p, min_p, repeat_penalty, seed, tokens; and whether the
                   terminal shows Markdown as such: markdown on, markdown off
/retry             another reply to the last message, with the next seed
/save FILE         keep the conversation with all that was computed of it
/load FILE         go on where a kept one was
/stats             speed, context and memory
/model [MODEL]     show the model, or go on with another
/help              this
/quit              leave; Ctrl-D too
A line that ends in \ goes on in the next one; lines between two lines of """
belong together; Alt-Enter makes a new line too. The Tab key completes commands
and the names after /set. Ctrl-C stops a reply and keeps what there is.)";

constexpr std::array<std::string_view, 10> names{"/help",  "/load", "/model", "/quit",  "/reset",
                                                 "/retry", "/save", "/set",   "/stats", "/system"};
constexpr std::array<std::string_view, 8> settings{"markdown",    "min_p",  "repeat_penalty", "seed",
                                                   "temperature", "tokens", "top_k",          "top_p"};

/// What the Tab key completes: commands, and the names after /set.
std::vector<std::string> completions() {
  std::vector<std::string> out(names.begin(), names.end());
  for (const std::string_view each : settings) out.push_back("/set " + std::string(each));
  return out;
}

/// "; did you mean NAME?" where one of the names is near, else nothing.
std::string nearest_of(std::string_view text, std::span<const std::string_view> known) {
  std::string out;
  std::size_t least = 3;
  for (const std::string_view each : known)
    if (const std::size_t found = letters_between(text, each); found < least)
      least = found, out = "; did you mean " + std::string(each) + "?";
  return out;
}

/// Escape sequences for people, nothing for a pipe or with NO_COLOR.
struct colours {
  const char *you = "", *aside = "", *plain = "";
  static colours of(bool terminal) {
    const char* const kind = std::getenv("TERM");
    if (!terminal || std::getenv("NO_COLOR") != nullptr || kind == nullptr || std::string_view(kind) == "dumb")
      return {};
    return {"\x1b[1;32m", "\x1b[2m", "\x1b[0m"};
  }
};

/// A reply on a terminal: thoughts dim where there are colours, Markdown drawn where it is wanted.
class drawn_reply {
 public:
  drawn_reply(platform::terminal_size size, bool colours, bool markdown)
      : thoughts_(std::string(colours ? terminal_text::thought_begins : ""),
                  std::string(colours ? terminal_text::thought_ends : "")),
        text_(size.columns, size.rows, markdown) {}
  std::string show(std::string_view piece) { return text_.show(thoughts_.show(piece)); }
  std::string finish() {
    std::string out = text_.show(thoughts_.finish());
    return out += text_.finish();
  }

 private:
  thought_text thoughts_;
  terminal_text text_;
};

class chat_loop {
 public:
  chat_loop(const chat_options& options, const common_options& common)
      : common_(common), model_(options.model), wanted_(generation_of(options.sampling, 0.7f, true)),
        terminal_(is_terminal(platform::standard_input) && is_terminal(platform::standard_output)),
        colour_(colours::of(terminal_)) {
    wanted_.max_tokens = options.tokens;
    said_.system = options.system;
    engine_ = std::make_unique<engine>(model_, common_);
  }

  void run() {
    const std::string folder = state_folder();
    line_editor editor(folder.empty() ? std::string{} : folder + "/chat_history", completions());
    std::optional<graceful_stop> guard;
    if (terminal_) guard.emplace();  // elsewhere a signal between two messages ends the tool
    note("Type and press Enter. /help shows commands, /quit leaves, Ctrl-C stops a reply.");
    bool asked_to_leave = false;
    for (;;) {
      const std::optional<std::string> message = editor.read("> ");
      if (const int signal = graceful_stop::received(); signal != 0) {
        const bool nothing_typed = !message || message->empty();
        if (signal == SIGTERM || (nothing_typed && asked_to_leave)) throw interrupted(signal);
        graceful_stop::forget();
        asked_to_leave = nothing_typed;
        if (nothing_typed) note("Ctrl-C again or Ctrl-D leaves.");
        continue;
      }
      asked_to_leave = false;
      if (!message || *message == "/quit" || *message == "/exit") break;
      if (message->find_first_not_of(" \t\n") == std::string::npos) continue;
      if (message->front() == '/') {
        command(*message);
      } else {
        said_.turns.push_back({"user", *message});
        try {
          reply();
        } catch (const input_error& wrong) {
          if (!terminal_) throw;
          show_error(wrong.what());
        }
      }
    }
    if (terminal_) print("\n");
    engine_->require_silence();
  }

 private:
  void reply() {
    naming_file(engine_->file(), [&] {
      const auto ids = fitting_tokens();
      // Elsewhere than on a terminal a reply is what the model wrote.
      const std::unique_ptr<drawn_reply> drawn = on_terminal();
      last_ = engine_->generate(ids, wanted_, [&](std::string_view piece) {
        print(drawn ? drawn->show(piece) : std::string(piece));
        flush_output();
      });
      if (drawn) print(drawn->finish());
    });
    print("\n");
    said_.turns.push_back({"assistant", last_->result.text});
    if (last_->signal == SIGTERM || (last_->signal != 0 && !terminal_)) {
      flush_output();
      throw interrupted(last_->signal);
    }
    if (last_->result.finish == finish_reason::length && engine_->facts().position + 1 >= engine_->context())
      print_note("the context of " + std::to_string(engine_->context()) + " tokens is full: the reply ends here");
    graceful_stop::forget();
  }

  /// Nothing where stdout is no terminal, or one that takes no escape sequences.
  std::unique_ptr<drawn_reply> on_terminal() const {
    const char* const kind = std::getenv("TERM");
    if (!terminal_ || kind == nullptr || std::string_view(kind) == "dumb") return nullptr;
    const bool colours = *colour_.plain != '\0';
    return std::make_unique<drawn_reply>(platform::size_of_terminal(), colours, colours && markdown_);
  }

  /// The conversation as tokens. If the context has no room for it and a reply, the oldest turns are left out, and a
  /// message shows how many.
  std::vector<std::int32_t> fitting_tokens() {
    const std::uint32_t context = engine_->context(),
                        room = std::min(context / 4, wanted_.max_tokens.value_or(context));
    std::vector<turn> all = said_.all();
    const std::size_t first = said_.system ? 1 : 0;
    std::vector<std::int32_t> ids = engine_->encode(all);
    std::size_t without = 0;
    for (; ids.size() + room > context && all.size() > first + 2; without += 2) {
      const auto at = all.begin() + static_cast<std::ptrdiff_t>(first);
      all.erase(at, at + 2);
      ids = engine_->encode(all);
    }
    if (ids.size() >= context) {
      said_.turns.pop_back();
      throw input_error(printable(engine_->file(), 240) + ": the conversation: expected at most " +
                        std::to_string(context - 1) + " tokens, found " + std::to_string(ids.size()) +
                        "; /reset forgets it");
    }
    if (without != left_out_ && without != 0)
      print_note("the context has " + std::to_string(context) + " tokens: the oldest " + std::to_string(without) +
                 " messages are left out from here on; /reset forgets all");
    left_out_ = without;
    return ids;
  }

  void command(const std::string& line) {
    const std::size_t blank = line.find(' ');
    const std::string name = line.substr(0, blank);
    const std::size_t from = blank == std::string::npos ? blank : line.find_first_not_of(' ', blank);
    const std::string rest = from == std::string::npos ? std::string{} : line.substr(from);
    try {
      if (name == "/help") print_note(chat_help);
      else if (name == "/reset") reset();
      else if (name == "/system") set_system(rest);
      else if (name == "/set") set(rest);
      else if (name == "/retry") retry();
      else if (name == "/save") save(rest);
      else if (name == "/load") load(rest);
      else if (name == "/stats") stats();
      else if (name == "/model") change_model(rest);
      else unknown(name);
    } catch (const device_error&) {
      throw;
    } catch (const error& wrong) {  // a file, an argument: the conversation goes on
      show_error(wrong.what());
    } catch (const input_error& wrong) { show_error(wrong.what()); }
  }

  /// An answer to a command: never on stdout, which has replies alone.
  void print_note(const std::string& sentence) const {
    note(is_terminal(platform::standard_error) ? colour_.aside + sentence + colour_.plain : sentence);
  }

  void reset() {
    said_.turns.clear();
    last_.reset();
    engine_->reset();
  }
  void set_system(const std::string& text) {
    if (text.empty()) return print_note(said_.system ? "system message: " + *said_.system : "no system message");
    if (text == "-") said_.system.reset();
    else said_.system = text;
  }
  void set(const std::string& text) {
    if (text.empty())
      return print_note("temperature " + fixed(wanted_.temperature, 2) + ", top_k " +
                        std::to_string(wanted_.top_k.value_or(0)) + ", top_p " + fixed(wanted_.top_p, 2) + ", min_p " +
                        fixed(wanted_.min_p, 2) + ", repeat_penalty " + fixed(wanted_.repeat_penalty, 2) + ", seed " +
                        std::to_string(wanted_.seed) + ", tokens " +
                        (wanted_.max_tokens ? std::to_string(*wanted_.max_tokens) : "as there is room") +
                        ", markdown " + (markdown_ ? "on" : "off"));
    const std::size_t blank = text.find(' ');
    const std::string name = text.substr(0, blank), value = blank == std::string::npos ? "" : text.substr(blank + 1);
    if (name == "markdown") return set_markdown(value);
    generate_options next = wanted_;
    const auto number = [&]<class T>(T& to) {
      bool whole = false;
      if constexpr (std::is_floating_point_v<T>) {
        const auto read = number_of_text(value);
        if (read) to = static_cast<T>(*read);
        whole = read.has_value();
      } else {
        const char* const end = value.data() + value.size();
        const auto read = std::from_chars(value.data(), end, to);
        whole = read.ec == std::errc{} && read.ptr == end;
      }
      if (!whole || value.empty()) throw argument_error(name, "a number", "'" + printable(value, 40) + "'");
    };
    if (name == "temperature") number(next.temperature);
    else if (name == "top_k") {
      number(next.top_k.emplace());
      if (next.top_k == 0u) next.top_k.reset();
    } else if (name == "top_p") number(next.top_p);
    else if (name == "min_p") number(next.min_p);
    else if (name == "repeat_penalty") number(next.repeat_penalty);
    else if (name == "seed") number(next.seed);
    else if (name == "tokens") number(next.max_tokens.emplace());
    else
      throw argument_error("/set", "temperature, top_k, top_p, min_p, repeat_penalty, seed, tokens or markdown",
                           "'" + printable(name, 40) + "'" + nearest_of(name, settings));
    if (next.max_tokens == 0u) throw argument_error(name, "at least 1", "0");
    runtime::validate(next.sampling(), std::numeric_limits<std::int32_t>::max(), engine_->context());
    wanted_ = next;
  }
  void set_markdown(const std::string& value) {
    if (value != "on" && value != "off")
      throw argument_error("markdown", "on or off", "'" + printable(value, 40) + "'");
    if (value == "on" && !reads_markdown())
      return print_note("Markdown needs md4c (Debian and Ubuntu: apt install libmd4c0)");
    markdown_ = value == "on";
  }
  void unknown(const std::string& name) const {
    print_note("unknown: " + printable(name, 40) + nearest_of(name, names) + "; /help shows the commands");
  }
  void retry() {
    if (!said_.forget_reply()) return print_note("there is no reply yet");
    if (wanted_.temperature > 0) print_note("seed " + std::to_string(++wanted_.seed));
    else print_note("at temperature 0 every reply is the same");
    reply();
  }
  void save(const std::string& path) {
    if (path.empty()) return print_note("/save needs the name of a file");
    engine_->save(path, wanted_.sampling(), said_.note());
    print_note("kept in " + printable(path, 240));
  }
  void load(const std::string& path) {
    if (path.empty()) return print_note("/load needs the name of a file");
    const auto [sampling, text] = engine_->restore(path);
    try {
      said_ = conversation::of_note(text, path);
    } catch (const error&) {
      reset();
      throw;
    }
    wanted_.temperature = sampling.temperature, wanted_.top_k = sampling.top_k, wanted_.top_p = sampling.top_p,
    wanted_.min_p = sampling.min_p;
    wanted_.repeat_penalty = sampling.repeat_penalty, wanted_.repeat_last_n = sampling.repeat_last_n,
    wanted_.seed = sampling.seed;
    last_.reset();
    const engine_facts at = engine_->facts();
    print_note(std::to_string(said_.turns.size()) + " turns, " + std::to_string(at.position) + " of " +
               std::to_string(at.context) + " tokens; temperature " + fixed(wanted_.temperature, 2) + ", seed " +
               std::to_string(wanted_.seed));
    if (!terminal_ || said_.turns.empty()) return;
    const std::string& last = said_.turns.back().text;
    const std::unique_ptr<drawn_reply> drawn = on_terminal();
    print(drawn ? drawn->show(last) : last);
    print((drawn ? drawn->finish() : "") + "\n");
  }
  void stats() const {
    const engine_facts at = engine_->facts();
    std::string out;
    if (last_) {
      const generation_timings& t = last_->result.timings;
      const std::uint32_t decoded =
          t.generated_tokens > 0 ? t.generated_tokens - 1 : 0;  // the first one comes with the prompt
      out += "last reply: " + std::to_string(t.generated_tokens) + " tokens, " +
             (t.decode_ms > 0 ? fixed(decoded / t.decode_ms * 1e3, 1) : "-") + " tokens/s, first after " +
             fixed(last_->first_token_ms, 0) + " ms; fed " + std::to_string(t.prompt_tokens) + ", cached " +
             std::to_string(t.cached_tokens) + " tokens\n";
    }
    out += "context: " + std::to_string(at.position) + " of " + std::to_string(at.context) + " tokens\n";
    out += "memory: weights " + bytes_text(static_cast<double>(at.weight_bytes)) + ", KV cache " +
           bytes_text(static_cast<double>(at.cache_bytes)) + ", in all " +
           bytes_text(static_cast<double>(at.device_bytes)) + "\n";
    const auto times = [&](const char* what, const kernel_shares& of) {
      if (of.timed == 0) return;
      out += std::string(what) + fixed(of.pass_ms, 3) + " ms of the device, by kernel:";
      for (const auto& each : of.kernels)
        if (each.share >= 0.005) out += " " + each.kernel + " " + fixed(100 * each.share, 0) + " %";
      out += " (of " + std::to_string(of.timed) + " passes)\n";
    };
    times("a token: ", engine_->decode_times());
    times("a pass over the prompt: ", engine_->prompt_times());
    if (last_ && wanted_.gpu_idle > 0)
      out += "device busy for " + fixed(last_->result.timings.busy_ms, 0) + " ms of the last reply\n";
    print_note(out + "device: " + at.device);
  }
  void change_model(const std::string& path) {
    if (!path.empty()) {
      model_options other = model_;
      other.path = path;
      const io::checkpoint file = open_model(other);  // refused before the present one goes
      judge_codecs(file, engraved_model_of(file, cache_of(other.context, other.cache_type), other.codec), other.codec);
      const model_options before = std::exchange(model_, other);
      engine_.reset();  // both may not fit
      last_.reset();
      try {
        engine_ = std::make_unique<engine>(model_, common_);
      } catch (const std::exception& wrong) {
        show_error(wrong.what());
        model_ = before;
        engine_ = std::make_unique<engine>(model_, common_);
      }
    }
    const engine_facts at = engine_->facts();
    print_note(at.model + " (" + at.profile + "), " + std::to_string(at.layers) + " layers, context of " +
               std::to_string(at.context) + ": " + printable(engine_->file(), 240));
  }

  common_options common_;
  model_options model_;
  generate_options wanted_;
  bool terminal_, markdown_ = reads_markdown();
  colours colour_;
  std::unique_ptr<engine> engine_;
  conversation said_;
  std::optional<answer> last_;
  std::size_t left_out_ = 0;  ///< messages that the context has no room for
};

}  // namespace

void chat(const chat_options& options, const common_options& common) { chat_loop(options, common).run(); }

}  // namespace intaglio::tool
