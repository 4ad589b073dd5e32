// SPDX-License-Identifier: MIT
// A model on a device, ready to run: loading, prompts, generation, logits. The same code for every model; session.hpp
// adds the type.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/io/checkpoint.hpp"
#include "intaglio/io/prompt.hpp"
#include "intaglio/runtime/load_session.hpp"
#include "intaglio/runtime/saved_session.hpp"
#include "intaglio/runtime/text_stream.hpp"

namespace intaglio {

/// Logits of some tokens and, where asked for, the states between layers.
struct logits_result {
  std::uint32_t tokens = 0;
  std::vector<float> logits;  ///< [tokens, vocab_size]
  std::vector<float> hidden;  ///< [layers + 1, tokens, hidden_size]: the embedding's output, then after each layer,
                              ///< before the final norm
};

/// Movable handle. One call at a time, and none while a text_stream of it runs: anything else throws argument_error.
/// After device_lost it answers every call with device_lost; a new device and session can be made.
class basic_session {
 public:
  /// @param tables the plans that the program carries, of one model: one is picked by device
  /// @param source where the program has the modules of their kernels; by default it has those of all kernels
  /// @error mismatch_error, file_error: the checkpoint; device_error, out_of_memory, device_lost: the device
  basic_session(const gpu::device& on, std::span<const plan::table* const> tables, const io::checkpoint& from,
                const session_options& options, runtime::module_source source = &runtime::modules_of<>)
      : body_(runtime::load_session(on, tables, from, options, source)) {}

  /// The context: positions of the KV cache.
  std::uint32_t context() const { return body().table->context; }
  /// Tokens so far, fed or drawn.
  std::uint32_t position() const { return body().size(); }
  const std::vector<std::int32_t>& history() const { return body().history; }
  const plan::table& table() const { return *body().table; }
  const gpu::device& device() const { return body().device; }
  const runtime::executor& executor() const { return *body().run; }
  bool has_tokenizer() const { return body().tokens.has_value(); }
  /// @error argument_error: the model came without one
  const io::tokenizer& tokenizer() const { return body().tokenizer(); }
  /// What is odd but harmless: about the file, its vocabulary, the pipeline cache.
  const std::vector<std::string>& warnings() const { return body().warnings; }

  /// Forgets everything that was fed.
  void reset() {
    runtime::session_use use(body_);
    use->history.clear();
    use->cached = 0;
  }

  /// Writes tokens, KV cache, sampler and note into a file (docs/chat.md), whole or not at all.
  /// @error file_error: the place or the disk; argument_error: the note; device_lost, out_of_memory
  void save(const std::filesystem::path& path, const session_note& note = {}) {
    gpu::translated([&] {
      runtime::session_use use(body_);
      runtime::save_session(*use, path, note);
    });
  }
  /// Goes on where a saved session was, in place of the present one: the logits that follow are those of the
  /// uninterrupted run, bit for bit.
  /// @error file_error: not a sound file, or one of other weights or of another plan, and this session is as it was;
  /// device_lost, out_of_memory
  session_note restore(const std::filesystem::path& path) {
    return gpu::translated([&] {
      runtime::session_use use(body_);
      return runtime::restore_session(*use, path);
    });
  }

  /// What the features of the FFNs added for the tokens fed one at a time since the last call (docs/walk.md), of a plan
  /// with graph::traced: tokens of generations, and of prompts where they are fed by chunks of 1. Each is given once.
  /// @error argument_error: a plan without a trace
  trace_result take_trace() {
    return gpu::translated([&] {
      runtime::session_use use(body_);
      return use->run->take_trace(use->size());
    });
  }

  /// Appends tokens and feeds them. The last one waits for the pass that draws its successor.
  /// @param chunk tokens at once, 0: the plan's; the results do not depend on it
  /// @error argument_error: no tokens, an id out of range, more tokens than the context has room for
  void prefill(std::span<const std::int32_t> ids, std::uint32_t chunk = 0) {
    gpu::translated([&] {
      runtime::session_use use(body_);
      const std::uint32_t step = use->checked_chunk(chunk);
      append(*use, ids);
      use->feed_until(use->size() - 1, step);
    });
  }

  /// Makes `ids` the whole history; what it begins with in common with the present one stays in the KV cache. Feeds
  /// nothing yet.
  /// @error argument_error as of prefill()
  void prompt(std::span<const std::int32_t> ids) {
    gpu::translated([&] {
      runtime::session_use use(body_);
      set_prompt(*use, ids);
    });
  }

  /// Continues the history. @error argument_error: an option out of range, an empty history
  text_stream begin(const generate_options& options = {}) {
    return gpu::translated([&] { return text_stream(runtime::session_use(body_), options); });
  }
  /// Answers to a prompt of token ids, as they are.
  text_stream begin(std::span<const std::int32_t> ids, const generate_options& options = {}) {
    return gpu::translated([&] {
      runtime::session_use use(body_);
      set_prompt(*use, ids);
      return text_stream(std::move(use), options);
    });
  }
  /// Continues a ready-made prompt: texts of control tokens in it are those tokens, and it begins with one BOS where
  /// the model wants one. Text that a stranger typed goes through reply(), or through encode() with
  /// prompt_markup::plain.
  text_stream complete(std::string_view text, const generate_options& options = {}) {
    return begin(encode(text), options);
  }
  /// Answers a user in a conversation of one turn, through the model's chat template.
  text_stream reply(std::string_view text, const generate_options& options = {}) {
    return gpu::translated([&] {
      const io::chat_message message{"user", std::string(text)};
      return reply(std::span(&message, 1), options);
    });
  }
  /// Answers the last turn of a conversation.
  /// @error argument_error: the model's chat template refuses the conversation; file_error: the template is not known
  text_stream reply(std::span<const io::chat_message> conversation, const generate_options& options = {}) {
    return gpu::translated([&] { return begin(encode(conversation), options); });
  }

  /// Continues the history to its end; `each` gets every piece of text and may throw, which ends the generation and
  /// reaches the caller.
  generation generate(const generate_options& options = {}, const std::function<void(std::string_view)>& each = {}) {
    return finished(begin(options), each);
  }
  generation generate(std::span<const std::int32_t> ids, const generate_options& options = {},
                      const std::function<void(std::string_view)>& each = {}) {
    return finished(begin(ids, options), each);
  }

  /// Tokens of a ready-made prompt, behind one BOS where the model wants one.
  /// @error argument_error: no tokenizer, more than 1 GiB
  std::vector<std::int32_t> encode(std::string_view text, io::prompt_markup markup = io::prompt_markup::read) const {
    return gpu::translated([&] { return io::encode_prompt(tokenizer(), text, markup); });
  }
  /// Tokens of a conversation in the model's chat template, up to where the answer begins. @error as of reply()
  std::vector<std::int32_t> encode(std::span<const io::chat_message> conversation) const {
    return gpu::translated([&] { return body().encode(conversation); });
  }

  /// Appends tokens, feeds them all and gives the logits of each.
  /// @param chunk tokens at once, 0: the plan's; the results do not depend on it
  /// @error argument_error as of prefill()
  logits_result logits(std::span<const std::int32_t> ids, std::uint32_t chunk = 0, bool hidden = false) {
    return gpu::translated([&] {
      runtime::session_use use(body_);
      return runtime::feed_for_logits<logits_result>(*use, ids, use->checked_chunk(chunk), hidden,
                                                     [&] { append(*use, ids); });
    });
  }

  /// Time of every dispatch of one decode pass, or of one prefill pass of `tokens` tokens, at the present position.
  /// Leaves the history as it is; the KV cache behind it is overwritten.
  /// @error argument_error: no room in the context; device_error: no timestamps
  std::vector<runtime::dispatch_time> measure(std::uint32_t tokens = 1) {
    return gpu::translated([&] {
      runtime::session_use use(body_);
      const bool decode = tokens == 1;
      if (tokens == 0 || (!decode && tokens > use->table->prefill.max_tokens))
        throw argument_error("tokens of the timed pass", "1 .. " + std::to_string(use->table->prefill.max_tokens),
                             std::to_string(tokens));
      use->check_room(std::size_t{use->size()} + tokens);
      const std::vector<std::uint32_t> ids(tokens, 0);
      return use->recovering([&] {
        return use->run->measure(decode ? runtime::pass_kind::decode : runtime::pass_kind::prefill, use->size(), ids);
      });
    });
  }

 private:
  runtime::session_body& body() const {
    if (!body_) throw argument_error("session", "one with a model", "one that was moved from");
    return *body_;
  }
  static void append(runtime::session_body& to, std::span<const std::int32_t> ids) {
    if (ids.empty()) throw argument_error("prompt", "at least one token", "none");
    to.check_ids(ids);
    to.check_room(to.history.size() + ids.size());
    to.history.insert(to.history.end(), ids.begin(), ids.end());
  }
  static void set_prompt(runtime::session_body& to, std::span<const std::int32_t> ids) {
    if (ids.empty()) throw argument_error("prompt", "at least one token", "none");
    to.check_ids(ids);
    to.check_room(ids.size());
    to.replace(ids);
  }
  static generation finished(text_stream stream, const std::function<void(std::string_view)>& each) {
    while (stream.next())
      if (each) each(stream.piece());
    return gpu::translated([&] { return stream.result(); });
  }

  std::shared_ptr<runtime::session_body> body_;
};

}  // namespace intaglio
