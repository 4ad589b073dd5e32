// SPDX-License-Identifier: MIT
// A model on a device, as a caller sees it: sessions and the text that they give. Declarations, with C handles alone;
// runtime/session.hpp defines them (docs/embedding.md says which to include where).
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
  std::uint32_t layer = 0;               ///< that it computed; 0 outside of the layers
  double nanoseconds = 0;                ///< by the device's timestamps
};

}  // namespace runtime

/// Logits of some tokens and, where asked for, the states between layers.
struct logits_result {
  std::uint32_t tokens = 0;   ///< that were fed
  std::vector<float> logits;  ///< [tokens, vocab_size]
  std::vector<float> hidden;  ///< [layers + 1, tokens, hidden_size]: the embedding's output, then after each layer,
                              ///< before the final norm
};

/// A generation that is running: feeds the prompt, draws tokens, gives text piece by piece. Read it in a range-for, or
/// drive it from a program's own loop with advance(), which never waits and keeps to a budget of device time. Holds its
/// session until it is done or destroyed; a program that stops reading early drops it. Movable. Used by one thread.
class text_stream {
 public:
  /// Continues the session's history. Made by session::generate, reply and begin.
  /// @error argument_error: an option out of range, or nothing to continue
  text_stream(runtime::session_use use, const generate_options& options);
  /// Takes over the generation; the other stream is done.
  text_stream(text_stream&&) noexcept;
  text_stream& operator=(text_stream&&) = delete;
  ~text_stream();

  /// True when there is no more to come but what piece() has now.
  bool done() const noexcept;
  /// What has come since the last advance() or next(); whole UTF-8 sequences.
  std::string_view piece() const noexcept;
  /// Everything so far.
  const generation& result() const noexcept;

  /// For a program's own loop: takes what is finished and hands the device at most one submission of at most
  /// `budget_ms` (as far as the plan's cut points allow). Never waits, but once where the device fell back from all
  /// layers in one dispatch to the chain of dispatches.
  /// @return true while there is more to come
  /// @error device_lost, out_of_memory, device_error: logits that are no numbers, a kernel of that chain that differs
  /// from the reference
  bool advance(double budget_ms);

  /// Waits until there is text, or the end. @return false at the end, when piece() is empty
  /// @error as of advance()
  bool next();

  /// What the features of the FFNs added for the tokens fed so far (docs/walk.md), each once. Never waits.
  /// @error argument_error: a plan without a trace; a generation that is done, whose session has it then
  trace_result take_trace();

  /// Ends the generation after what has come so far; piece() then has what a stop string had held back.
  void cancel();

  /// Reads the stream once, each step as of next().
  class iterator {
   public:
    /// @{
    /// What a range-for and std::ranges ask of an input iterator.
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
  /// Takes the first step and gives an iterator over the pieces of text. @error as of next()
  iterator begin() {
    next();
    return iterator(*this);
  }
  /// The end of the pieces.
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  std::unique_ptr<runtime::running_text> run_;
};

/// A model on a device with one history of tokens: a movable handle. One call at a time, and none while a text_stream
/// of it runs: anything else throws argument_error. After device_lost it answers every call with device_lost; a new
/// device and session can be made.
class basic_session {
 public:
  /// Loads a checkpoint onto a device.
  /// @param tables the plans that the program carries, of one model: one is picked by device
  /// @param source where the program has the modules of their kernels; by default it has those of all kernels
  /// @error mismatch_error, file_error: the checkpoint; device_error, out_of_memory, device_lost: the device
  basic_session(const gpu::device& on, std::span<const plan::table* const> tables, const io::checkpoint& from,
                const session_options& options, runtime::module_source source = &runtime::modules_of<>);
  /// Opens the file or folder itself.
  basic_session(const gpu::device& on, std::span<const plan::table* const> tables, const std::filesystem::path& path,
                const session_options& options, runtime::module_source source = &runtime::modules_of<>);
  /// What is loaded already (cut_session).
  explicit basic_session(std::shared_ptr<runtime::session_body> body);

  /// The context: positions of the KV cache.
  std::uint32_t context() const;
  /// Tokens so far, fed or drawn.
  std::uint32_t position() const;
  /// All tokens fed or drawn since the last reset(), in their order.
  const std::vector<std::int32_t>& history() const;
  /// The plan that this session runs, chosen by its device.
  const plan::table& table() const;
  /// The device that the session was made on.
  const gpu::device& device() const;
  /// The executor below the session, for its counters and times.
  const runtime::executor& executor() const;
  /// True where the model came with a tokenizer.
  bool has_tokenizer() const;
  /// The model's tokenizer.
  /// @error argument_error: the model came without one
  const io::tokenizer& tokenizer() const;
  /// What is odd but harmless: about the file, its vocabulary, the pipeline cache.
  const std::vector<std::string>& warnings() const;

  /// Forgets everything that was fed.
  void reset();

  /// The adapter of all that is fed from now on, of a plan with room for some (docs/runtime.md, "Adapters"). Where it
  /// is another one than before, the history is fed anew.
  /// @error argument_error: a number that the plan has not, a scale that is no number
  void use_adapter(const adapter_choice& choice);

  /// Writes tokens, KV cache, sampler and note into a file (docs/chat.md), whole or not at all.
  /// @error file_error: the place or the disk; argument_error: the note, or a session with an adapter; device_lost,
  /// out_of_memory
  void save(const std::filesystem::path& path, const session_note& note = {});
  /// Goes on where a saved session was, in place of the present one: the logits that follow are those of the
  /// uninterrupted run, bit for bit.
  /// @error file_error: not a sound file, or one of other weights or of another plan, and this session is as it was;
  /// device_lost, out_of_memory
  session_note restore(const std::filesystem::path& path);

  /// What the features of the FFNs added for the tokens fed one at a time since the last call (docs/walk.md), of a plan
  /// with graph::traced: tokens of generations, and of prompts where they are fed by chunks of 1. Each is given once.
  /// @error argument_error: a plan without a trace
  trace_result take_trace();

  /// Appends tokens and feeds them. The last one waits for the pass that draws its successor.
  /// @param chunk tokens at once, 0: the plan's; the results do not depend on it
  /// @error argument_error: no tokens, an id out of range, more tokens than the context has room for
  void prefill(std::span<const std::int32_t> ids, std::uint32_t chunk = 0);

  /// Makes `ids` the whole history; what it begins with in common with the present one stays in the KV cache. Feeds
  /// nothing yet.
  /// @error argument_error as of prefill()
  void prompt(std::span<const std::int32_t> ids);

  /// Continues the history. @error argument_error: an option out of range, an empty history
  text_stream begin(const generate_options& options = {});
  /// Answers to a prompt of token ids, as they are.
  text_stream begin(std::span<const std::int32_t> ids, const generate_options& options = {});
  /// Continues a ready-made prompt: texts of control tokens in it are those tokens, and it begins with one BOS where
  /// the model wants one. Text that a stranger typed goes through reply(), or through encode() with
  /// prompt_markup::plain.
  text_stream complete(std::string_view text, const generate_options& options = {});
  /// Answers a user in a conversation of one turn, through the model's chat template.
  text_stream reply(std::string_view text, const generate_options& options = {});
  /// Answers the last turn of a conversation.
  /// @error argument_error: the model's chat template refuses the conversation; file_error: the template is not known
  text_stream reply(std::span<const io::chat_message> conversation, const generate_options& options = {});

  /// Continues the history to its end; `each` gets every piece of text and may throw, which ends the generation and
  /// reaches the caller.
  generation generate(const generate_options& options = {}, const std::function<void(std::string_view)>& each = {});
  /// Answers to a prompt of token ids, to its end. @error as of the other generate()
  generation generate(std::span<const std::int32_t> ids, const generate_options& options = {},
                      const std::function<void(std::string_view)>& each = {});

  /// Tokens of a ready-made prompt, behind one BOS where the model wants one.
  /// @error argument_error: no tokenizer, more than 1 GiB
  std::vector<std::int32_t> encode(std::string_view text, io::prompt_markup markup = io::prompt_markup::read) const;
  /// Tokens of a conversation in the model's chat template, up to where the answer begins. @error as of reply()
  std::vector<std::int32_t> encode(std::span<const io::chat_message> conversation) const;

  /// Appends tokens, feeds them all and gives the logits of each.
  /// @param chunk tokens at once, 0: the plan's; the results do not depend on it
  /// @error argument_error as of prefill()
  logits_result logits(std::span<const std::int32_t> ids, std::uint32_t chunk = 0, bool hidden = false);

  /// A vector for a text: the states of its tokens behind the last norm, pooled. What was fed before is forgotten, and
  /// so is the text.
  /// @return f32 [hidden_size]
  /// @error argument_error as of prefill(); device_error: states that are no numbers
  std::vector<float> embed(std::span<const std::int32_t> ids, const embed_options& options = {});
  /// The vector of a text between the tokens that the model's tokenizer puts around one; control tokens written in it
  /// are plain text. @error argument_error: no tokenizer
  std::vector<float> embed(std::string_view text, const embed_options& options = {});

  /// Whether the model is a cross-encoder, which scores two texts.
  bool has_score() const;
  /// What a cross-encoder's head makes of two texts read together: a number without bounds, larger where the second one
  /// suits the first. @param second where it begins in ids  @error as of embed(); argument_error: no such head
  float score(std::span<const std::int32_t> ids, std::uint32_t second);
  /// The score of a pair of texts (io::encode_pair).
  float score(std::string_view first, std::string_view second);

  /// Time of every dispatch of one decode pass, or of one prefill pass of `tokens` tokens, at the present position.
  /// Leaves the history as it is; the KV cache behind it is overwritten.
  /// @error argument_error: no room in the context; device_error: no timestamps
  std::vector<runtime::dispatch_time> measure(std::uint32_t tokens = 1);

 private:
  runtime::session_body& body() const;
  static void append(runtime::session_body& to, std::span<const std::int32_t> ids);
  static void set_prompt(runtime::session_body& to, std::span<const std::int32_t> ids);
  static generation finished(text_stream stream, const std::function<void(std::string_view)>& each);

  std::shared_ptr<runtime::session_body> body_;
};

/// A model ready to run.
/// @tparam Profiles what the program carries plans for; by default CPU drivers and any GPU. One is picked by device.
template <class Model, const plan::profile&... Profiles>
class session : public basic_session {
 public:
  /// Opens a GGUF file (or the first part of a split one) or a Hugging Face folder and loads it.
  /// @error mismatch_error, file_error; device_error, out_of_memory, device_lost
  session(const gpu::device& on, const std::filesystem::path& path, const session_options& options = {});
  /// Loads a checkpoint that is open. @error as of the other constructor
  session(const gpu::device& on, const io::checkpoint& from, const session_options& options = {});
};

}  // namespace intaglio
