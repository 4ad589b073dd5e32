// SPDX-License-Identifier: MIT
// What gives generations their tokens: a model on a device behind a queue. Sockets and JSON know this interface alone.
#pragma once

#include <intaglio/io/chat_template.hpp>
#include <intaglio/io/prompt.hpp>
#include <intaglio/io/tokenizer.hpp>
#include <intaglio/runtime/adapter_choice.hpp>
#include <intaglio/runtime/sampling.hpp>

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "api_error.hpp"
#include "conversation.hpp"
#include "generation.hpp"
#include "metrics.hpp"

namespace intaglio::serve {

/// Whether a chat template is known by that name: chatml, or a family's.
bool is_template_name(std::string_view name);

/// What of a model needs no device. Immutable once it is there.
struct language {
  /// @param chosen a chat template in place of the file's: its text, or a name; empty: the file's, or ChatML where it
  /// has none  @throws argument_error: one that cannot be run
  language(io::vocabulary file, std::uint32_t vocab_size, const io::template_renderer& templates,
           const std::string& chosen = {});
  /// Tokens of a ready-made prompt after one BOS, where the model wants one.
  std::vector<std::int32_t> encode(std::string_view text, io::prompt_markup markup = io::prompt_markup::read) const {
    return io::encode_prompt(tokens, text, markup);
  }
  /// Texts around a gap that the model fills: control tokens in front of each, and one after both.
  /// @throws api_error 400 naming `field`: the model has no such tokens
  std::vector<std::int32_t> encode_gap(std::string_view before, std::string_view after, const char* field) const;
  /// A conversation up to where the answer begins, or goes on.
  struct prompt {
    std::string text;
    std::vector<std::int32_t> ids;
    bool in_thought = false;  ///< it ends within one
  };
  /// What the template cannot write (functions, calls, their results) is written into the texts of the turns.
  /// @throws argument_error: an order of turns that the template refuses; api_error: no template
  prompt encode(const conversation& talk) const;
  /// Translates names with the values that the template has for them. @throws api_error 400: it has no such name
  json names_of(const conversation& talk, bool ignore_unknown) const;

  io::vocabulary file;
  io::tokenizer tokens;
  std::optional<io::chat_template> chat;
  std::string no_chat;        ///< why there is none
  std::string template_note;  ///< a warning about it for the log; empty: none
  reply_layout layout;
  bool takes_system = false, takes_tools = false, takes_calls = false, takes_results = false;  ///< the template
  vocabulary_view view;

 private:
  bool renders(std::span<const io::chat_message> messages, const std::string& names, std::string_view wanted) const;
  void look_at_template();
  std::vector<io::chat_message> messages_of(const conversation& talk) const;
  std::string call_text(const tool_call& call) const;
};

/// What a model's file says of it without being loaded.
struct model_head {
  std::unique_ptr<const language> words;
  std::uint32_t context = 0;  ///< of the plan that it would get
};

enum class engine_state : std::uint8_t { loading, ready, recovering, failed };

struct engine_status {
  engine_state state = engine_state::loading;
  double loaded = 0;  ///< share of the weights' bytes
  std::string what;   ///< a sentence: the current step, or the reason of a failure
};

/// A token and its probability.
struct prediction {
  std::string token;
  double probability = 0;
};
/// The likeliest tokens, likeliest first.
std::vector<prediction> likeliest(const language& words, std::span<const float> logits, std::uint32_t top);

/// What comes after a prompt. One of the two is called, on any thread.
struct question {
  std::vector<std::int32_t> prompt;
  std::uint32_t top = 5;
  std::function<void(std::vector<prediction>)> answer;
  std::function<void(const api_error&)> refuse;
};

/// Texts that become vectors, one each, or pairs that become scores. One of the first two is called, on any thread.
struct embedding {
  std::vector<std::vector<std::int32_t>> texts;                 ///< tokens, at most the context
  std::function<void(std::vector<std::vector<float>>)> answer;  ///< [hidden_size] each, of length 1
  std::function<void(const api_error&)> refuse;
  std::function<bool()> cancelled;
  std::vector<std::uint32_t> seconds{};  ///< where the second text of each begins: vectors are a score each; or empty
};

/// What a slot does, or what of its last generation can still be found.
struct slot_state {
  std::uint64_t task = 0;    ///< number of the generation that uses it, never used twice; 0: none
  std::uint32_t tokens = 0;  ///< of the generation that has it, or had it last
  std::uint32_t drawn = 0, max_tokens = 0;
  bool drafts = false;  ///< its passes may have rows of drafts
  sampling_options sampling{};
};
struct slot_outcome {
  std::vector<slot_state> list;  ///< by slot
  std::uint32_t positions = 0;   ///< saved, restored or forgotten
  std::uint64_t bytes = 0;       ///< of the file
  double milliseconds = 0;
  adapter_choice adapter{0, 0};  ///< that these positions come from; number 0: none
};
/// What is to be known or done of a slot. One of the last two is called, on any thread.
struct slot_order {
  enum class action : std::uint8_t { list, save, restore, erase };
  action what = action::list;
  std::uint32_t slot = 0;
  std::filesystem::path file{};  ///< of save and restore
  std::function<void(const slot_outcome&)> answer{};
  std::function<void(const api_error&)> refuse{};
};

class token_engine {
 public:
  virtual ~token_engine() = default;
  /// Begins to load, on a thread of its own. Once.
  virtual void start() = 0;
  virtual engine_status status() const = 0;
  /// Known when the model's file is read; nullptr before. Both then stay.
  virtual const language* words() const = 0;
  virtual const model_facts* facts() const = 0;
  virtual const engine_gauges& gauges() const = 0;
  /// The plan as a page, and the device's name.
  virtual std::string plan_page() const = 0;
  virtual std::string device() const = 0;
  /// All of them, or none. They end by themselves, by cancel(), or by fail().
  /// @throws api_error 503: not ready; 429: the queue is full
  virtual void submit(std::vector<std::shared_ptr<generation>> list) = 0;
  /// @throws api_error as submit()
  virtual void predict(question asked) = 0;
  /// @throws api_error as submit(); 501: scores of a model without a head for them
  virtual void embed(embedding asked) = 0;
  /// @throws api_error as submit()
  virtual void order(slot_order asked) = 0;
  /// The adapter of requests that choose none (POST /lora-adapters). Any thread may read and write it.
  std::atomic<adapter_choice>& default_adapter() { return default_adapter_; }
  /// From here on submit() refuses.
  virtual void refuse_more() = 0;
  /// Ends what still runs with an error.
  virtual void end_all() = 0;

 private:
  std::atomic<adapter_choice> default_adapter_{adapter_choice{0, 0}};
};

}  // namespace intaglio::serve
