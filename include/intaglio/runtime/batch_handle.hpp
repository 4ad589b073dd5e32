// SPDX-License-Identifier: MIT
// Sessions of one model that decode together, as a caller uses them. This header has declarations;
// runtime/batch_session.hpp has the definitions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/gpu/device_handle.hpp"
#include "intaglio/io/prompt_markup.hpp"
#include "intaglio/plan/table.hpp"
#include "intaglio/runtime/adapter_choice.hpp"
#include "intaglio/runtime/embed_options.hpp"
#include "intaglio/runtime/module_source.hpp"
#include "intaglio/runtime/sampling.hpp"
#include "intaglio/runtime/session_note.hpp"
#include "intaglio/runtime/session_options.hpp"

namespace intaglio {

namespace io {
class checkpoint;
class tokenizer;
}  // namespace io
namespace plan {
struct profile;
}  // namespace plan
namespace runtime {
class batch_executor;
class proposer;
class running_batch;
struct session_body;
}  // namespace runtime

/// Names a session of a batch. Two sessions never have the same handle.
struct batch_handle {
  std::uint32_t slot = 0;    ///< index in the batch
  std::uint64_t number = 0;  ///< 0: no session
  friend bool operator==(const batch_handle&, const batch_handle&) = default;
};

/// Options of a session of a batch.
struct batch_options {
  sampling_options sampling{};   ///< how its tokens are drawn
  std::uint32_t max_tokens = 1;  ///< tokens drawn at most, 1 or more
  bool keep_logits =
      false;  ///< logits() has what the last token was drawn from; takes a copy of the whole batch's logits each step
  /// Most tokens that prompt lookup drafts for a pass, at most most_drafts(); 0: none. generate_options has the same
  /// option. Drafts use rows of vacant slots. With keep_logits next_drafted() returns the tokens after right drafts.
  std::uint32_t prompt_lookup_num_tokens = 0;
  std::uint32_t max_matching_ngram_size = 3;  ///< tokens compared at most, 2 or more
  adapter_choice adapter{};                   ///< the session's adapter, for a plan with room for adapters
  /// Most tokens that the batch's proposer (draft_by) drafts for a pass where prompt lookup finds none, at most
  /// most_drafts(); 0: none. The batch drafts only as many as save time. With keep_logits next_drafted() returns the
  /// tokens after right drafts.
  std::uint32_t draft_num_tokens = 0;
};

/// A token that a session drew.
struct batch_token {
  batch_handle of;      ///< the session
  std::int32_t id = 0;  ///< the token
  bool last = false;    ///< true for the last of max_tokens tokens: the session has left
  bool finite =
      true;  ///< false: the logits are not finite. There is no token, and the session has left; other sessions continue
};

/// Counts of drafts of a batch, or of one session.
struct draft_counts {
  std::uint64_t drafted = 0;   ///< tokens that were fed as drafts in a pass
  std::uint64_t accepted = 0;  ///< drafted tokens that were drawn
};

/// A beginning of a sequence that is saved in a file.
struct saved_prefix {
  std::vector<std::int32_t> tokens;  ///< all tokens of the sequence
  std::uint32_t positions = 0;       ///< number of its first tokens whose keys and values the file has: full pages
  std::uint64_t bytes = 0;           ///< size of the file
  session_note note;                 ///< a note of the program
  adapter_choice adapter{0, 0};      ///< the adapter that computed the keys and values; number 0: none
};

/// Sessions of one model that decode together. A movable handle, used by one thread. After device_lost every call
/// reports device_lost.
class basic_batch {
 public:
  /// Loads a checkpoint onto a device.
  /// @param tables plans with a batch that the program carries, all of one model; the device decides which one is used
  /// @error mismatch_error, file_error: the checkpoint; device_error, out_of_memory, device_lost: the device
  basic_batch(const gpu::device& on, std::span<const plan::table* const> tables, const io::checkpoint& from,
              const session_options& options = {}, runtime::module_source source = &runtime::modules_of<>);
  /// Opens the file or folder and loads it.
  basic_batch(const gpu::device& on, std::span<const plan::table* const> tables, const std::filesystem::path& path,
              const session_options& options = {}, runtime::module_source source = &runtime::modules_of<>);
  /// Shares weights that are on the device already. @param body has no vocabulary where the weights are made up
  basic_batch(std::shared_ptr<runtime::session_body> body, std::unique_ptr<runtime::batch_executor> run);
  /// @{
  /// Takes over the sessions. The other batch has no sessions then and accepts no call.
  basic_batch(basic_batch&&) noexcept;
  basic_batch& operator=(basic_batch&&) noexcept;
  /// @}
  ~basic_batch();

  /// The plan that this batch runs, chosen by its device.
  const plan::table& table() const;
  /// The device that the batch was made on.
  const gpu::device& device() const;
  /// Number of positions that one session may have.
  std::uint32_t context() const;
  /// Number of sessions that the batch has room for.
  std::uint32_t slot_count() const;
  /// True where the model came with a tokenizer.
  bool has_tokenizer() const;
  /// The model's tokenizer.
  /// @error argument_error: the model came without one
  const io::tokenizer& tokenizer() const;
  /// Warnings about the file, its vocabulary or the pipeline cache. They do no harm.
  const std::vector<std::string>& warnings() const;
  /// Tokens of a conversation up to the beginning of the answer. @error as basic_session::reply
  std::vector<std::int32_t> encode(std::span<const io::chat_message> conversation) const;
  /// Tokens of a ready-made prompt, as basic_session::encode. @error argument_error: no tokenizer
  std::vector<std::int32_t> encode(std::string_view text, io::prompt_markup markup = io::prompt_markup::read) const;

  /// Number of sessions in the batch, including sessions whose prompts wait.
  std::uint32_t active() const;
  /// Number of vacant slots.
  std::uint32_t free_slots() const;
  /// Number of pages that no session uses.
  std::uint32_t free_pages() const;
  /// Number of sessions that wait for pages which earlier sessions use.
  std::uint32_t waiting_for_pages() const;
  /// Whether join() would accept such a session now.
  bool fits(std::span<const std::int32_t> prompt, std::uint32_t max_tokens, const adapter_choice& adapter = {}) const;

  /// Adds a session for a prompt, which the next steps feed. The session takes pages for the prompt and for some
  /// tokens, and more pages as it grows. When no pages are left, the session that joined last gives its pages back and
  /// waits. Once there are pages again it is fed anew and draws the same tokens. No session joins meanwhile. The pool
  /// has room for one session of the whole context. So the session that joined first always continues, and every
  /// session becomes the first.
  /// @error argument_error: an empty prompt, an id or an option out of range, more than the context, no vacant slot,
  ///   too few pages, other sessions that wait for pages; the batch is unchanged then
  batch_handle join(std::span<const std::int32_t> prompt, const batch_options& options);

  /// Feeds at most one chunk of one waiting prompt, then draws up to `tokens` tokens of every session whose prompt is
  /// fed.
  /// @return the new tokens, those of a session in their order, and sessions that left without a token; valid until the
  ///   next call. Empty where no session is ready
  /// @error device_lost, out_of_memory
  std::span<const batch_token> step(std::uint32_t tokens = 1);

  /// Ends a session; does nothing if it has left already. @error device_lost, out_of_memory
  void leave(batch_handle whose);

  /// Whether the session has not left yet.
  bool has(batch_handle whose) const;
  /// The prompt of a session and the tokens that it drew. @error argument_error: the session has left
  const std::vector<std::int32_t>& history(batch_handle whose) const;
  /// Number of tokens of a session's prompt that were found in pages of other sessions, known once the prompt is being
  /// fed. Also valid after the session left, until another session takes its slot.
  /// @error argument_error: another session has taken its slot
  std::uint32_t cached_tokens(batch_handle whose) const;
  /// Logits from which the last token of a session with keep_logits was drawn, before penalties: f32 [vocab_size]. They
  /// come from the last pass of the last step. Also valid after the session left with that token, until a session
  /// joins.
  /// @error argument_error: the session was joined without keep_logits, or has drawn no token yet
  std::span<const float> logits(batch_handle whose) const;
  /// Replaces the last token that was drawn and is not fed yet. For callers that draw on the host.
  /// @param back number of tokens taken back first, including the last one that was drawn
  /// @error argument_error: the session has left or drew no token; no such token id; more tokens taken back than were
  ///   drawn; tokens taken back from a model with recurrent layers
  void set_next(batch_handle whose, std::int32_t id, std::uint32_t back = 0);

  /// Saves what the pages hold of a sequence's beginning that was computed with an adapter (last_adapter). The sequence
  /// may be of sessions in the batch or of sessions that left. The file has full pages in front of the last token:
  /// pages of prompts and, where prefill gives the bits of decode, pages of tokens that were drawn. With recurrent
  /// layers it ends at the newest copy of a state.
  /// @error file_error: the path or the disk; argument_error: an id or a number out of range, a model that is cut over
  ///   devices; device_lost, out_of_memory
  saved_prefix save(std::span<const std::int32_t> tokens, const std::filesystem::path& path,
                    const session_note& note = {}, const adapter_choice& adapter = {});
  /// Loads a saved beginning. Sessions that begin with its tokens and have its adapter at the same scale share its
  /// pages from then on, until another session needs them. A file that is refused changes nothing.
  /// @error file_error: a damaged file, or a file of another plan or of other weights; argument_error: too few unused
  ///   pages, a model that is cut over devices; device_lost, out_of_memory
  saved_prefix restore(const std::filesystem::path& path);
  /// Makes the pages of that beginning with that adapter unavailable to new sessions, except pages that sessions use.
  /// @return number of positions in these pages
  std::uint32_t forget(std::span<const std::int32_t> tokens, const adapter_choice& adapter = {});
  /// Tokens of the session that has a slot, or that had it last. @error argument_error: no such slot
  const std::vector<std::int32_t>& last_history(std::uint32_t slot) const;
  /// The adapter of the session that has a slot, or that had it last; number 0: none. @error argument_error: no such
  /// slot
  const adapter_choice& last_adapter(std::uint32_t slot) const;

  /// Most tokens that can be drafted for a pass of one session: each takes a vacant slot. 0 for models with recurrent
  /// layers, where passes run the resident dispatch, and with f16 products.
  std::uint32_t most_drafts() const;
  /// Sets a session's drafts for the next pass, in their order, such as those of a smaller model. As many are tried as
  /// there are vacant slots. The session draws the same tokens with and without drafts.
  /// @error argument_error: the session has left, an id out of range, passes that take no drafts (most_drafts)
  void draft(batch_handle whose, std::span<const std::int32_t> ids);
  /// Returns the next token of a session that draws on the host, between two steps. It needs keep_logits, and a last
  /// token (drawn or replaced by set_next) that equals the draft at that position of the last pass: the result is the
  /// token that the pass drew after it. The session continues with that token as after a step, and logits() has the
  /// logits that it was drawn from. Call it again after each token.
  /// @return none: the next step draws the next token
  std::optional<batch_token> next_drafted(batch_handle whose);
  /// Sets the proposer of drafts, such as a draft_model, for sessions with draft_num_tokens; null: none. Sessions draw
  /// the same tokens with and without it. @error argument_error: passes that take no drafts (most_drafts)
  void draft_by(std::shared_ptr<runtime::proposer> by);
  /// Counts of drafts over all sessions, which show whether drafts are useful.
  draft_counts drafts() const;
  /// Counts of drafts of one session. Also valid after it left, until the next session in its slot has left too.
  /// @error argument_error: the counts are no longer there
  draft_counts drafts(batch_handle whose) const;

  /// A vector for a text, as basic_session::embed, between two steps; it changes no session.
  /// @error argument_error: no tokens, an id out of range, more tokens than a session may have; device_lost,
  ///   out_of_memory; device_error: states that are not finite
  std::vector<float> embed(std::span<const std::int32_t> ids, const embed_options& options = {});

  /// @{
  /// The executor of the batch, for its counters and times.
  const runtime::batch_executor& executor() const;
  runtime::batch_executor& executor();
  /// @}

 private:
  std::unique_ptr<runtime::running_batch> run_;
};

/// Sessions of a model type that decode together.
/// @tparam Shape number of sessions, and the pages of their KV caches
/// @tparam Profiles device profiles for which the program carries plans; by default CPU drivers and any GPU. The device
///   decides which plan is used
template <class Model, plan::batch_shape Shape, const plan::profile&... Profiles>
class batch_session : public basic_batch {
 public:
  /// Opens a GGUF file (or the first part of a split one) or a Hugging Face folder and loads it.
  /// @error mismatch_error, file_error; device_error, out_of_memory, device_lost
  batch_session(const gpu::device& on, const std::filesystem::path& path, const session_options& options = {});
  /// Loads a checkpoint that is open. @error as the other constructor
  batch_session(const gpu::device& on, const io::checkpoint& from, const session_options& options = {});
};

}  // namespace intaglio
