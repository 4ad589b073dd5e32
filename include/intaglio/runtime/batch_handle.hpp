// SPDX-License-Identifier: MIT
// Sessions of one model that decode together, as a caller sees them. Declarations; runtime/batch_session.hpp defines
// them.
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

/// Names a session of a batch. No handle is given twice.
struct batch_handle {
  std::uint32_t slot = 0;    ///< place in the batch
  std::uint64_t number = 0;  ///< 0: nobody
  friend bool operator==(const batch_handle&, const batch_handle&) = default;
};

/// What a session of a batch asks for.
struct batch_options {
  sampling_options sampling{};   ///< how its tokens are drawn
  std::uint32_t max_tokens = 1;  ///< drawn at most, 1 or more
  bool keep_logits =
      false;  ///< logits() has what the last token was drawn from; takes a copy of the whole batch's logits each step
  /// Tokens drafted at most for a pass by what followed the last ones earlier; 0: none. As of generate_options. Drafts
  /// take rows of slots that nobody has. At most most_drafts(). With keep_logits next_drafted() has what they bring.
  std::uint32_t prompt_lookup_num_tokens = 0;
  std::uint32_t max_matching_ngram_size = 3;  ///< tokens that are sought at most, 2 or more
  adapter_choice adapter{};                   ///< that the session has, of a plan with room for some
  /// Tokens drafted at most for a pass by the batch's proposer (draft_by) where prompt lookup has none, as many as pay;
  /// 0: none. At most most_drafts(). With keep_logits next_drafted() has what they bring.
  std::uint32_t draft_num_tokens = 0;
};

/// A token that a session drew.
struct batch_token {
  batch_handle of;      ///< the session
  std::int32_t id = 0;  ///< the token
  bool last = false;    ///< max_tokens are drawn: the session has left
  bool finite =
      true;  ///< false: its logits are no numbers. There is no token, and the session has left; the others go on
};

/// Drafts that a batch has had so far.
struct draft_counts {
  std::uint64_t drafted = 0;   ///< tokens that took a row of a pass
  std::uint64_t accepted = 0;  ///< of these, tokens that were drawn
};

/// A beginning that a file holds.
struct saved_prefix {
  std::vector<std::int32_t> tokens;  ///< of the sequence
  std::uint32_t positions = 0;       ///< of its first tokens, whose keys and values the file has: full pages
  std::uint64_t bytes = 0;           ///< of the file
  session_note note;                 ///< the program's own
  adapter_choice adapter{0, 0};      ///< that the keys and values come from; number 0: none
};

/// Sessions of one model that decode together: a movable handle, used by one thread. After device_lost every call
/// answers with device_lost.
class basic_batch {
 public:
  /// Loads a checkpoint onto a device.
  /// @param tables plans with a batch that the program carries, of one model: one is picked by device
  /// @error mismatch_error, file_error: the checkpoint; device_error, out_of_memory, device_lost: the device
  basic_batch(const gpu::device& on, std::span<const plan::table* const> tables, const io::checkpoint& from,
              const session_options& options = {}, runtime::module_source source = &runtime::modules_of<>);
  /// Opens the file or folder itself.
  basic_batch(const gpu::device& on, std::span<const plan::table* const> tables, const std::filesystem::path& path,
              const session_options& options = {}, runtime::module_source source = &runtime::modules_of<>);
  /// Shares weights that are on the device already. @param body without a vocabulary where the weights are made up
  basic_batch(std::shared_ptr<runtime::session_body> body, std::unique_ptr<runtime::batch_executor> run);
  /// @{
  /// Takes over the sessions; the other batch has none and takes no call.
  basic_batch(basic_batch&&) noexcept;
  basic_batch& operator=(basic_batch&&) noexcept;
  /// @}
  ~basic_batch();

  /// The plan that this batch runs, chosen by its device.
  const plan::table& table() const;
  /// The device that the batch was made on.
  const gpu::device& device() const;
  /// Positions that one session may have.
  std::uint32_t context() const;
  /// Sessions that the batch has room for.
  std::uint32_t slot_count() const;
  /// True where the model came with a tokenizer.
  bool has_tokenizer() const;
  /// The model's tokenizer.
  /// @error argument_error: the model came without one
  const io::tokenizer& tokenizer() const;
  /// What is odd but harmless: about the file, its vocabulary, the pipeline cache.
  const std::vector<std::string>& warnings() const;
  /// Tokens of a conversation up to where the answer begins. @error as of basic_session::reply
  std::vector<std::int32_t> encode(std::span<const io::chat_message> conversation) const;
  /// Tokens of a ready-made prompt, as of basic_session::encode. @error argument_error: no tokenizer
  std::vector<std::int32_t> encode(std::string_view text, io::prompt_markup markup = io::prompt_markup::read) const;

  /// Sessions that are there, those whose prompt waits among them.
  std::uint32_t active() const;
  /// Slots that nobody has.
  std::uint32_t free_slots() const;
  /// Pages that a session could take: those that nobody uses.
  std::uint32_t free_pages() const;
  /// Sessions that wait for pages, which those that came before them have.
  std::uint32_t waiting_for_pages() const;
  /// Whether join() would take such a session now.
  bool fits(std::span<const std::int32_t> prompt, std::uint32_t max_tokens, const adapter_choice& adapter = {}) const;

  /// A session of its own for a prompt, which the next steps feed. It takes pages for the prompt and some tokens, and
  /// more as it grows. Where there are none left, those who came first have them: the session that joined last gives
  /// its pages back, waits, and is fed anew when there are pages again, with the same tokens; nobody joins meanwhile.
  /// The pool has room for one session of the whole context, so that the first always goes on, and everybody becomes
  /// the first.
  /// @error argument_error: an empty prompt, an id or an option out of range, more than the context, no slot, too few
  /// pages, others that wait for pages; nothing has changed by then
  batch_handle join(std::span<const std::int32_t> prompt, const batch_options& options);

  /// Feeds at most one chunk of one waiting prompt, then takes up to `tokens` tokens of every session whose prompt is
  /// fed.
  /// @return the new tokens, those of a session in their order, and who left without one; valid until the next call.
  /// None where nobody is ready
  /// @error device_lost, out_of_memory
  std::span<const batch_token> step(std::uint32_t tokens = 1);

  /// Ends a session; one that has left already stays so. @error device_lost, out_of_memory
  void leave(batch_handle whose);

  /// Whether the session is still there.
  bool has(batch_handle whose) const;
  /// The prompt of a session and the tokens that it drew. @error argument_error: it has left
  const std::vector<std::int32_t>& history(batch_handle whose) const;
  /// Tokens of its prompt that it found in pages of others, once its prompt is being fed; also where the session left,
  /// until somebody takes its slot.
  /// @error argument_error: somebody did
  std::uint32_t cached_tokens(batch_handle whose) const;
  /// f32 [vocab_size] from which the last token of a session with keep_logits was drawn, penalties not yet applied; of
  /// the last step's last pass, also where the session left with that token, until somebody joins. @error
  /// argument_error: it did not ask for them, or drew none yet
  std::span<const float> logits(batch_handle whose) const;
  /// Puts a token in the place of the last one that was drawn, which is not fed yet: for who draws on the host.
  /// @param back tokens that are taken back first, the last one that was drawn among them
  /// @error argument_error: it has left, drew none, or no such token; more than were drawn; tokens taken back from a
  /// model with recurrent layers
  void set_next(batch_handle whose, std::int32_t id, std::uint32_t back = 0);

  /// Saves what pages hold of a sequence's beginning with an adapter (last_adapter), be it of sessions that are there
  /// or have left: full pages in front of its last token, those of prompts and, where prefill leaves decode's bits, of
  /// what was drawn; of models with recurrent layers up to the newest copy of a state.
  /// @error file_error: the place or the disk; argument_error: an id or a number out of range; device_lost,
  /// out_of_memory
  saved_prefix save(std::span<const std::int32_t> tokens, const std::filesystem::path& path,
                    const session_note& note = {}, const adapter_choice& adapter = {});
  /// Brings a saved beginning back. Sessions that begin with its tokens and have its adapter at its scale share its
  /// pages from then on, until somebody needs them. A file that is refused changes nothing.
  /// @error file_error: not a sound file, or one of another plan or of other weights; argument_error: too few pages
  /// that nobody uses; device_lost, out_of_memory
  saved_prefix restore(const std::filesystem::path& path);
  /// Nobody finds the pages of that beginning with that adapter any more, but for those that sessions use. @return
  /// positions of these pages
  std::uint32_t forget(std::span<const std::int32_t> tokens, const adapter_choice& adapter = {});
  /// Tokens of the session that has a slot, or had it last. @error argument_error: no such slot
  const std::vector<std::int32_t>& last_history(std::uint32_t slot) const;
  /// The adapter of that session; number 0: none. @error argument_error: no such slot
  const adapter_choice& last_adapter(std::uint32_t slot) const;

  /// Tokens that can be drafted for a pass of one session: a slot each besides its own. 0 of models with recurrent
  /// layers, where passes run all layers in one dispatch, and with f16.
  std::uint32_t most_drafts() const;
  /// Drafts of a session for the next pass, in their order, from a smaller model or a caller that knows what comes: as
  /// many of them are tried as there are slots that nobody has. The tokens that it draws are those without drafts.
  /// @error argument_error: it has left, an id out of range, passes that take none (most_drafts)
  void draft(batch_handle whose, std::span<const std::int32_t> ids);
  /// For who draws on the host, between two steps: where the last token of a session with keep_logits, drawn or set
  /// (set_next), is what was drafted there for the last pass, the token that the pass drew behind it. The session goes
  /// on with that token as after a step, and logits() has what it was drawn from. Call it again behind each.
  /// @return none: the next step draws the next token
  std::optional<batch_token> next_drafted(batch_handle whose);
  /// Who proposes drafts for sessions with draft_num_tokens from now on, such as a draft_model; null: nobody. The
  /// tokens that sessions draw are those without. @error argument_error: passes that take no drafts (most_drafts)
  void draft_by(std::shared_ptr<runtime::proposer> by);
  /// Counts of drafts over all sessions, for a caller that wants to know what drafts are worth.
  draft_counts drafts() const;
  /// Counts of drafts of one session; also where it left, until the next one in its slot has left too. @error
  /// argument_error: it has
  draft_counts drafts(batch_handle whose) const;

  /// A vector for a text, as of basic_session::embed, between two steps: sessions stay as they are.
  /// @error argument_error: no tokens, an id out of range, more tokens than a session may have; device_lost,
  /// out_of_memory; device_error: states that are no numbers
  std::vector<float> embed(std::span<const std::int32_t> ids, const embed_options& options = {});

  /// @{
  /// The executor below the batch, for its counters and times.
  const runtime::batch_executor& executor() const;
  runtime::batch_executor& executor();
  /// @}

 private:
  std::unique_ptr<runtime::running_batch> run_;
};

/// A model ready to serve.
/// @tparam Shape how many sessions at once, and the pages of their KV caches
/// @tparam Profiles what the program carries plans for; by default CPU drivers and any GPU. One is picked by device.
template <class Model, plan::batch_shape Shape, const plan::profile&... Profiles>
class batch_session : public basic_batch {
 public:
  /// Opens a GGUF file (or the first part of a split one) or a Hugging Face folder and loads it.
  /// @error mismatch_error, file_error; device_error, out_of_memory, device_lost
  batch_session(const gpu::device& on, const std::filesystem::path& path, const session_options& options = {});
  /// Loads a checkpoint that is open. @error as of the other constructor
  batch_session(const gpu::device& on, const io::checkpoint& from, const session_options& options = {});
};

}  // namespace intaglio
