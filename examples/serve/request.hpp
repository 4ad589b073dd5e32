// SPDX-License-Identifier: MIT
// What a client asks for, read from JSON field by field: each has a type and a range, and a refusal names both. Unknown
// fields are refused by name, unless limits say that they are ignored.
#pragma once

#include <intaglio/runtime/adapter_choice.hpp>
#include <intaglio/runtime/sampling.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "context_shift.hpp"
#include "conversation.hpp"
#include "grammar.hpp"
#include "json_document.hpp"
#include "limits.hpp"

namespace intaglio::serve {

/// Facts about a model that requests are checked against.
struct model_facts {
  std::string id;                    ///< as /v1/models lists it
  std::vector<std::string> aliases;  ///< other names that clients may ask for
  std::uint32_t vocab_size = 0, context = 0;
  std::int64_t created = 0;       ///< Unix time
  bool any_name = false;          ///< any other name means this model too
  std::uint32_t hidden_size = 0;  ///< numbers of an embedding
  /// Adapters that requests choose among: their names, which are also those of models, and their files.
  std::vector<std::pair<std::string, std::string>> adapters{};
};

/// A text, or token ids as they are.
using prompt_input = std::variant<std::string, std::vector<std::int32_t>>;

/// How tokens are drawn beyond what the device's sampler does; on the host, from the device's logits.
struct shaping {
  float frequency_penalty = 0, presence_penalty = 0;       ///< -2 .. 2, over the tokens generated so far
  static constexpr float never = -1e30f;                   ///< a bias: drawn only where a form allows nothing else
  std::vector<std::pair<std::int32_t, float>> logit_bias;  ///< -100 .. 100 or never, added to logits
  std::optional<std::uint32_t> logprobs;                   ///< alternatives to report beside each token
  std::shared_ptr<const grammar> form;                     ///< what the text has to be
  std::string form_field = "response_format";              ///< of the request, that asks for it
  std::optional<std::uint32_t> thought_tokens;             ///< of a thought, which is then closed
  std::uint32_t min_tokens = 0;                            ///< that come before an end token can
  bool needed() const {
    return frequency_penalty != 0 || presence_penalty != 0 || !logit_bias.empty() || logprobs || form ||
           thought_tokens || min_tokens != 0;
  }
};

/// How a reply is taken apart.
struct reply_reading {
  reply_layout layout;
  bool in_thought = false;  ///< the prompt ends within one
  bool calls = false;       ///< functions may be called
};

/// A request for /v1/completions or /v1/chat/completions.
struct completion_request {
  bool chat = false;
  conversation talk;      ///< of a chat
  bool truncate = false;  ///< a chat that the context has no room for loses its oldest turns
  form_writer form_rule;  ///< of shaping::form, for grammars that have more than it
  std::optional<reply_reading> reading;
  std::vector<prompt_input> prompts;  ///< of a completion
  bool parse_special = true;          ///< texts of control tokens in prompts are those tokens
  sampling_options sampling{.temperature = 1};
  std::optional<adapter_choice> adapter;  ///< absent: the engine's default
  bool seeded = false;                    ///< else sampling.seed is for the server to draw
  shaping shape;
  std::optional<std::uint32_t> max_tokens;
  std::optional<context_shift> shift;  ///< a text that the context has no room for goes on
  std::uint32_t n = 1;
  std::vector<std::string> stop;
  std::vector<std::int32_t> stop_ids;  ///< tokens that end the text, and are no part of it
  std::optional<std::string> suffix;   ///< for a completion of one text: the text after the gap to be filled
  bool echo = false;                   ///< the reply repeats the prompt in front of the text
  bool stream = false, include_usage = false;
  bool usage_so_far = false;  ///< beside every piece, not only at the end
};

/// The adapter of that name, in full; none of another name.
adapter_choice adapter_named(std::string_view name, const model_facts& model);
/// The adapter of a list as llama.cpp's server has it: {"id": 0 .., "scale": 1}, at most one with a scale other than 0;
/// none where there is none. @param name of the field  @throws api_error 400 naming it
adapter_choice read_adapters(const json& list, const std::string& name, const model_facts& model);
/// @throws api_error 404: another model
void require_model(const std::string& name, const model_facts& model);

/// @throws api_error 400 naming the field; 404: another model
completion_request read_chat_request(const json& body, const model_facts& model, const limits& limit);
completion_request read_completion_request(const json& body, const model_facts& model, const limits& limit);

/// {"content": text, "add_special": bool, "parse_special": bool} and {"tokens": [ids]}.
struct tokenize_request {
  std::string content;
  bool add_special = false, parse_special = false;
};
tokenize_request read_tokenize_request(const json& body, const limits& limit);
std::vector<std::int32_t> read_detokenize_request(const json& body, const model_facts& model, const limits& limit);

/// {"input": a text, token ids, or several of these, "encoding_format": "float" or "base64", "dimensions"}
struct embedding_request {
  std::vector<prompt_input> input;
  bool base64 = false;
  std::optional<std::uint32_t> dimensions;  ///< the first ones, scaled to a length of 1 again
};
embedding_request read_embedding_request(const json& body, const model_facts& model, const limits& limit);

/// {"query", "documents": texts, or objects with a "text", "top_n", "return_documents": false}
struct rerank_request {
  std::string query;
  std::vector<std::string> documents;
  std::optional<std::uint32_t> top_n;  ///< number of best documents to return; absent: all
  bool return_documents = false;
};
rerank_request read_rerank_request(const json& body, const limits& limit);

/// {"prompt", "top": 5, "mode": "dense", "features": K}
struct infer_request {
  std::string prompt;
  std::uint32_t top = 5;
  std::string mode;                       ///< walk, dense or compare
  std::optional<std::uint32_t> features;  ///< of a layer, that a walk takes; absent: all that the gate lets through
};
infer_request read_infer_request(const json& body, const limits& limit);

/// {"prompt"} or {"messages", "reply"}, {"top": 5}
struct trace_request {
  std::vector<turn> messages;
  std::string text;  ///< the prompt, or the reply to the messages
  std::uint32_t top = 5;
};
trace_request read_trace_request(const json& body, const limits& limit);

}  // namespace intaglio::serve
