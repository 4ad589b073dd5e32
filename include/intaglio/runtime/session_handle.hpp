// SPDX-License-Identifier: MIT
// A model on a device, as a caller uses it: sessions and the text that they generate. Declarations with C handles only;
// runtime/session.hpp has the definitions (docs/embedding.md says which header to include where).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/gpu/device_handle.hpp"
#include "intaglio/io/prompt_markup.hpp"
#include "intaglio/runtime/adapter_choice.hpp"
#include "intaglio/runtime/embed_options.hpp"
#include "intaglio/runtime/generation.hpp"
#include "intaglio/runtime/module_source.hpp"
#include "intaglio/runtime/session_note.hpp"
#include "intaglio/runtime/session_options.hpp"
#include "intaglio/runtime/trace_result.hpp"

namespace intaglio {

namespace io {
class checkpoint;
class tokenizer;
}  // namespace io
namespace plan {
struct dispatch;
struct profile;
struct table;
}  // namespace plan

namespace runtime {

class executor;
class running_text;
class session_use;
struct session_body;

/// Measured time of one dispatch of a pass.
struct dispatch_time {
  const plan::dispatch* what = nullptr;  ///< the dispatch in the session's plan
  std::uint32_t layer = 0;               ///< whose work it is; 0 outside of the layers
  double nanoseconds = 0;                ///< by the device's timestamps
};

}  // namespace runtime

/// Logits of some tokens and, if requested, the states between layers.
struct logits_result {
  std::uint32_t tokens = 0;   ///< number of tokens that were fed
  std::vector<float> logits;  ///< [tokens, vocab_size]
  std::vector<float> hidden;  ///< [layers + 1, tokens, hidden_size]: the embedding's output, then after each layer,
                              ///< before the final norm
};

/// A running generation: it feeds the prompt, draws tokens and gives the text piece by piece. Read it in a range-for,
/// or drive it from a program's own loop with advance(), which never waits and keeps to a budget of device time. It
/// holds its session until it is done or destroyed; a program that stops reading early destroys it. Movable. Used by
/// one thread.
class text_stream {
 public:
  /// Continues the session's history. Made by session::generate, reply and begin.
  /// @error argument_error: an option out of range, or an empty history
  text_stream(runtime::session_use use, const generate_options& options);
  /// Takes over the generation; the other stream is done.
  text_stream(text_stream&&) noexcept;
  text_stream& operator=(text_stream&&) = delete;
  ~text_stream();

  /// True when no text will follow the current piece().
  bool done() const noexcept;
  /// The text that came since the last advance() or next(); whole UTF-8 sequences.
  std::string_view piece() const noexcept;
  /// The result so far.
  const generation& result() const noexcept;

  /// For a program's own loop: takes finished tokens and gives the device at most one submission of at most `budget_ms`
  /// (as far as the plan's cut points allow). It never waits, except once if the device changes from the resident
  /// dispatch to the chain of dispatches.
  /// @return true while more text is to come
  /// @error device_lost, out_of_memory, device_error: logits that are not finite, or a kernel of the chain that differs
  ///   from the reference
  bool advance(double budget_ms);

  /// Waits until there is text, or until the end. @return false at the end, when piece() is empty
  /// @error as advance()
  bool next();

  /// The contributions of the features of the FFNs for the tokens fed so far (docs/walk.md); each is returned once.
  /// Never waits.
  /// @error argument_error: a plan without a trace, or a generation that is done: its session has the trace then
  trace_result take_trace();

  /// Ends the generation after the text so far; piece() then includes text that was held back because of a stop string.
  void cancel();

  /// An iterator that reads the stream once; each step does what next() does.
  class iterator {
   public:
    /// @{
    /// The types and operators that a range-for and std::ranges require of an input iterator.
    using iterator_concept = std::input_iterator_tag;
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;
    iterator() = default;
    explicit iterator(text_stream& of) : of_(&of) {}
    std::string_view operator*() const { return of_->piece(); }
    iterator& operator++() {
      of_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator& it, std::default_sentinel_t) {
      return it.of_ == nullptr || it.of_->piece().empty();
    }
    /// @}

   private:
    text_stream* of_ = nullptr;
  };
  /// Takes the first step and returns an iterator over the pieces of text. @error as next()
  iterator begin() {
    next();
    return iterator(*this);
  }
  /// The end of the pieces.
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  std::unique_ptr<runtime::running_text> run_;
};

/// A model on a device with one history of tokens: a movable handle. It allows one call at a time, and no call while a
/// text_stream of it runs; anything else throws argument_error. After device_lost every call reports device_lost; a new
/// device and session can be made.
class basic_session {
 public:
  /// Loads a checkpoint onto a device.
  /// @param tables the plans that the program carries, all of one model; the device decides which one is used
  /// @param source where the program has the modules of their kernels; by default it has the modules of all kernels
  /// @error mismatch_error, file_error: the checkpoint; device_error, out_of_memory, device_lost: the device
  basic_session(const gpu::device& on, std::span<const plan::table* const> tables, const io::checkpoint& from,
                const session_options& options, runtime::module_source source = &runtime::modules_of<>);
  /// Opens the file or folder and loads it.
  basic_session(const gpu::device& on, std::span<const plan::table* const> tables, const std::filesystem::path& path,
                const session_options& options, runtime::module_source source = &runtime::modules_of<>);
  /// Takes a session that is loaded already (cut_session).
  explicit basic_session(std::shared_ptr<runtime::session_body> body);

  /// The context: number of positions of the KV cache.
  std::uint32_t context() const;
  /// Number of tokens so far, fed or drawn.
  std::uint32_t position() const;
  /// All tokens fed or drawn since the last reset(), in their order.
  const std::vector<std::int32_t>& history() const;
  /// The plan that this session runs, chosen by its device.
  const plan::table& table() const;
  /// The device that the session was made on.
  const gpu::device& device() const;
  /// The executor of the session, for its counters and times.
  const runtime::executor& executor() const;
  /// True where the model came with a tokenizer.
  bool has_tokenizer() const;
  /// The model's tokenizer.
  /// @error argument_error: the model came without one
  const io::tokenizer& tokenizer() const;
  /// Warnings about the file, its vocabulary or the pipeline cache. They do no harm.
  const std::vector<std::string>& warnings() const;

  /// Forgets all tokens.
  void reset();

  /// Sets the adapter of all tokens that are fed from now on, for a plan with room for adapters (docs/runtime.md,
  /// "Adapters"). If it differs from the current adapter, the history is fed anew.
  /// @error argument_error: a number that the plan does not have, a scale that is not finite
  void use_adapter(const adapter_choice& choice);

  /// Writes tokens, KV cache, sampler and note into a file (docs/chat.md), completely or not at all.
  /// @error file_error: the path or the disk; argument_error: the note, or a session with an adapter; device_lost,
  ///   out_of_memory
  void save(const std::filesystem::path& path, const session_note& note = {});
  /// Replaces this session's state by the state of a saved session. The logits that follow have the same bits as in the
  /// uninterrupted run.
  /// @error file_error: a damaged file, or a file of other weights or of another plan; this session is unchanged then;
  ///   device_lost, out_of_memory
  session_note restore(const std::filesystem::path& path);

  /// The contributions of the features of the FFNs for the tokens that were fed one at a time since the last call
  /// (docs/walk.md), for a plan with graph::traced. These are tokens of generations, and of prompts fed by chunks of 1.
  /// Each is returned once.
  /// @error argument_error: a plan without a trace
  trace_result take_trace();

  /// Appends tokens and feeds all but the last one, which the pass that draws the next token feeds.
  /// @param chunk tokens fed at once, 0: the plan's number; the results do not depend on it
  /// @error argument_error: no tokens, an id out of range, more tokens than the context has room for
  void prefill(std::span<const std::int32_t> ids, std::uint32_t chunk = 0);

  /// Replaces the history by `ids`. A beginning in common with the previous history stays in the KV cache. Feeds
  /// nothing yet.
  /// @error argument_error as prefill()
  void prompt(std::span<const std::int32_t> ids);

  /// Continues the history. @error argument_error: an option out of range, an empty history
  text_stream begin(const generate_options& options = {});
  /// Answers to a prompt of token ids, which are used unchanged.
  text_stream begin(std::span<const std::int32_t> ids, const generate_options& options = {});
  /// Continues a ready-made prompt: texts of control tokens in it become those tokens, and it begins with one BOS if
  /// the model requires one. Text typed by an untrusted user belongs in reply(), or in encode() with
  /// prompt_markup::plain.
  text_stream complete(std::string_view text, const generate_options& options = {});
  /// Answers a user in a conversation of one turn, through the model's chat template.
  text_stream reply(std::string_view text, const generate_options& options = {});
  /// Answers the last turn of a conversation.
  /// @error argument_error: the model's chat template refuses the conversation; file_error: an unknown template
  text_stream reply(std::span<const io::chat_message> conversation, const generate_options& options = {});

  /// Continues the history to its end. `each` receives every piece of text and may throw: that ends the generation and
  /// reaches the caller.
  generation generate(const generate_options& options = {}, const std::function<void(std::string_view)>& each = {});
  /// Answers to a prompt of token ids, to the end. @error as the other generate()
  generation generate(std::span<const std::int32_t> ids, const generate_options& options = {},
                      const std::function<void(std::string_view)>& each = {});

  /// Tokens of a ready-made prompt, with one BOS in front if the model requires one.
  /// @error argument_error: no tokenizer, more than 1 GiB
  std::vector<std::int32_t> encode(std::string_view text, io::prompt_markup markup = io::prompt_markup::read) const;
  /// Tokens of a conversation in the model's chat template, up to the beginning of the answer. @error as reply()
  std::vector<std::int32_t> encode(std::span<const io::chat_message> conversation) const;

  /// Appends tokens, feeds all of them and returns the logits of each.
  /// @param chunk tokens fed at once, 0: the plan's number; the results do not depend on it
  /// @error argument_error as prefill()
  logits_result logits(std::span<const std::int32_t> ids, std::uint32_t chunk = 0, bool hidden = false);

  /// A vector for a text: the pooled states of its tokens after the last norm. The session forgets its history and the
  /// text.
  /// @return f32 [hidden_size]
  /// @error argument_error as prefill(); device_error: states that are not finite
  std::vector<float> embed(std::span<const std::int32_t> ids, const embed_options& options = {});
  /// The vector of a text between the tokens that the model's tokenizer adds around a text; control tokens written in
  /// it are plain text. @error argument_error: no tokenizer
  std::vector<float> embed(std::string_view text, const embed_options& options = {});

  /// Whether the model is a cross-encoder, which scores pairs of texts.
  bool has_score() const;
  /// The score of two texts read together by a cross-encoder: an unbounded number, larger where the second text fits
  /// the first one better. @param second index in ids where the second text begins  @error as embed(); argument_error:
  /// no such head
  float score(std::span<const std::int32_t> ids, std::uint32_t second);
  /// The score of a pair of texts (io::encode_pair).
  float score(std::string_view first, std::string_view second);

  /// Measures every dispatch of one decode pass, or of one prefill pass of `tokens` tokens, at the current position.
  /// The history stays; the KV cache after it is overwritten.
  /// @error argument_error: no room in the context; device_error: no timestamps
  std::vector<runtime::dispatch_time> measure(std::uint32_t tokens = 1);

 private:
  runtime::session_body& body() const;
  static void append(runtime::session_body& to, std::span<const std::int32_t> ids);
  static void set_prompt(runtime::session_body& to, std::span<const std::int32_t> ids);
  static generation finished(text_stream stream, const std::function<void(std::string_view)>& each);

  std::shared_ptr<runtime::session_body> body_;
};

/// A session of a model type.
/// @tparam Profiles device profiles for which the program carries plans; by default CPU drivers and any GPU. The device
///   decides which plan is used.
template <class Model, const plan::profile&... Profiles>
class session : public basic_session {
 public:
  /// Opens a GGUF file (or the first part of a split one) or a Hugging Face folder and loads it.
  /// @error mismatch_error, file_error; device_error, out_of_memory, device_lost
  session(const gpu::device& on, const std::filesystem::path& path, const session_options& options = {});
  /// Loads a checkpoint that is open. @error as the other constructor
  session(const gpu::device& on, const io::checkpoint& from, const session_options& options = {});
};

}  // namespace intaglio
