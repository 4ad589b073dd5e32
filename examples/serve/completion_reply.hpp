// SPDX-License-Identifier: MIT
// Generations as OpenAI's answers: one document at the end, or events as the text comes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api_error.hpp"
#include "generation.hpp"
#include "http.hpp"
#include "metrics.hpp"

namespace intaglio::serve {

struct completion_identity {
  std::string id, model, fingerprint;
  std::int64_t created = 0;
  bool chat = false, stream = false, include_usage = false, usage_so_far = false, logprobs = false;
  std::uint32_t prompts = 1;        ///< choices come prompt by prompt
  std::vector<std::string> echo{};  ///< prompts to repeat in front of the texts; else empty
};

/// A call of a function, whole or as far as it has come.
struct call_made {
  std::string id, name, arguments;
};

/// Generations as one answer of some API. What of it depends on the API are the four functions that write.
class generations_reply : public pending_reply {
 public:
  generations_reply(std::vector<std::shared_ptr<generation>> choices, bool stream, metrics& counts);
  bool streams() const override { return stream_; }
  std::string poll() override;
  bool done() const override { return open_ == 0; }
  http_reply reply() override;
  void cancel() override;

 protected:
  struct choice {
    std::shared_ptr<generation> from;
    std::string thought, text;
    std::vector<call_made> calls;
    std::vector<token_logprobs> tokens;
    std::string finish, stopped_by;
    bool open = true;
  };
  /// Tokens of all choices so far, and messages.
  struct token_counts {
    std::uint64_t prompt = 0, completion = 0, cached = 0, thought = 0, left_out = 0, drafted = 0, accepted = 0,
                  shifts = 0, discarded = 0;
    /// Details of the prompt: tokens from the cache, and messages that were left out, if any.
    json prompt_details() const {
      json out{{"cached_tokens", cached}};
      if (left_out != 0) out["truncated_messages"] = left_out;
      return out;
    }
    /// Details of the answer: thoughts, drafts and shifts of the context, if any.
    json completion_details() const {
      json out = json::object();
      if (thought != 0) out["reasoning_tokens"] = thought;
      if (drafted != 0) {
        out["accepted_prediction_tokens"] = accepted;
        out["rejected_prediction_tokens"] = drafted - accepted;
      }
      put_shifts(out);
      return out;
    }
    /// Shifts of the context and tokens that they dropped, if there were any.
    void put_shifts(json& in) const {
      if (shifts != 0) in["context_shifts"] = shifts, in["discarded_tokens"] = discarded;
    }
  };

  /// Events of a stream: the first ones, news of a choice (its calls have their ids by then), the last ones.
  virtual std::string first_events() { return {}; }
  virtual std::string events(const choice& of, std::size_t index, const news& what) = 0;
  virtual std::string last_events() = 0;
  virtual std::string error_events(const api_error& problem) = 0;
  /// All of it as one document.
  virtual json document() = 0;

  /// @param prompts choices come prompt by prompt, and a prompt's tokens count once
  token_counts counted(std::size_t prompts = 1) const;
  const std::vector<choice>& choices() const { return choices_; }

 private:
  void keep(choice& of, const news& what);
  api_error error() const;

  std::vector<choice> choices_;
  bool stream_, begun_ = false;
  std::string error_;
  int error_status_ = 503;
  std::size_t open_;
  metrics& counts_;
};

/// OpenAI's /v1/chat/completions and /v1/completions.
class completion_reply : public generations_reply {
 public:
  completion_reply(completion_identity identity, std::vector<std::shared_ptr<generation>> choices, metrics& counts)
      : generations_reply(std::move(choices), identity.stream, counts), identity_(std::move(identity)),
        text_offsets_(this->choices().size()) {}

 protected:
  std::string first_events() override;
  std::string events(const choice& of, std::size_t index, const news& what) override;
  std::string last_events() override;
  std::string error_events(const api_error& problem) override;
  json document() override;

 private:
  json head() const;
  static json usage_of(const token_counts& all);
  std::string event(json choice) const;
  /// The prompt of a choice, if the reply echoes it.
  std::string echo_of(std::size_t index) const {
    return identity_.echo.empty() ? std::string() : identity_.echo[index / (choices().size() / identity_.prompts)];
  }

  completion_identity identity_;
  std::vector<std::size_t> text_offsets_;
};

/// A name that nothing else has. @param letters after the prefix
std::string random_name(const char* prefix, int letters = 24);
/// An event of a stream. @param name of the event; empty: the event has no name
std::string event_text(const json& value, std::string_view name = {});
json error_body(const api_error& error);

}  // namespace intaglio::serve
