// SPDX-License-Identifier: MIT
// How sessions decode together. Each session has a slot, and draws the tokens that it would draw without the others.
// Sessions join and leave between steps. The KV cache is a pool of pages, which sessions take as they grow; prompts
// with the same beginning share its pages. The code is the same for every model. Defines basic_batch.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/io/checkpoint.hpp"
#include "intaglio/runtime/batch_handle.hpp"
#include "intaglio/runtime/running_batch.hpp"

namespace intaglio {

INTAGLIO_DEFINITION basic_batch::basic_batch(const gpu::device& on, std::span<const plan::table* const> tables,
                                             const io::checkpoint& from, const session_options& options,
                                             runtime::module_source source)
    : run_(std::make_unique<runtime::running_batch>(on, tables, from, options, source)) {}
INTAGLIO_DEFINITION basic_batch::basic_batch(const gpu::device& on, std::span<const plan::table* const> tables,
                                             const std::filesystem::path& path, const session_options& options,
                                             runtime::module_source source)
    : basic_batch(on, tables, gpu::translated([&] { return io::checkpoint::open(path, options.checkpoint); }), options,
                  source) {}
INTAGLIO_DEFINITION basic_batch::basic_batch(std::shared_ptr<runtime::session_body> body,
                                             std::unique_ptr<runtime::batch_executor> run)
    : run_(std::make_unique<runtime::running_batch>(std::move(body), std::move(run))) {}
INTAGLIO_DEFINITION basic_batch::basic_batch(basic_batch&&) noexcept = default;
INTAGLIO_DEFINITION basic_batch& basic_batch::operator=(basic_batch&&) noexcept = default;
INTAGLIO_DEFINITION basic_batch::~basic_batch() = default;
INTAGLIO_DEFINITION const plan::table& basic_batch::table() const { return run_->table(); }
INTAGLIO_DEFINITION const gpu::device& basic_batch::device() const { return run_->device(); }
INTAGLIO_DEFINITION std::uint32_t basic_batch::context() const { return run_->context(); }
INTAGLIO_DEFINITION std::uint32_t basic_batch::slot_count() const { return run_->slot_count(); }
INTAGLIO_DEFINITION bool basic_batch::has_tokenizer() const { return run_->has_tokenizer(); }
INTAGLIO_DEFINITION const io::tokenizer& basic_batch::tokenizer() const { return run_->tokenizer(); }
INTAGLIO_DEFINITION const std::vector<std::string>& basic_batch::warnings() const { return run_->warnings(); }
INTAGLIO_DEFINITION std::vector<std::int32_t> basic_batch::encode(
    std::span<const io::chat_message> conversation) const {
  return run_->encode(conversation);
}
INTAGLIO_DEFINITION std::vector<std::int32_t> basic_batch::encode(std::string_view text,
                                                                  io::prompt_markup markup) const {
  return run_->encode(text, markup);
}
INTAGLIO_DEFINITION std::uint32_t basic_batch::active() const { return run_->active(); }
INTAGLIO_DEFINITION std::uint32_t basic_batch::free_slots() const { return run_->free_slots(); }
INTAGLIO_DEFINITION std::uint32_t basic_batch::free_pages() const { return run_->free_pages(); }
INTAGLIO_DEFINITION std::uint32_t basic_batch::waiting_for_pages() const { return run_->waiting_for_pages(); }
INTAGLIO_DEFINITION bool basic_batch::fits(std::span<const std::int32_t> prompt, std::uint32_t max_tokens,
                                           const adapter_choice& adapter) const {
  return run_->fits(prompt, max_tokens, adapter);
}
INTAGLIO_DEFINITION batch_handle basic_batch::join(std::span<const std::int32_t> prompt, const batch_options& options) {
  return run_->join(prompt, options);
}
INTAGLIO_DEFINITION std::span<const batch_token> basic_batch::step(std::uint32_t tokens) { return run_->step(tokens); }
INTAGLIO_DEFINITION void basic_batch::leave(batch_handle whose) { run_->leave(whose); }
INTAGLIO_DEFINITION bool basic_batch::has(batch_handle whose) const { return run_->has(whose); }
INTAGLIO_DEFINITION const std::vector<std::int32_t>& basic_batch::history(batch_handle whose) const {
  return run_->history(whose);
}
INTAGLIO_DEFINITION std::uint32_t basic_batch::cached_tokens(batch_handle whose) const {
  return run_->cached_tokens(whose);
}
INTAGLIO_DEFINITION std::span<const float> basic_batch::logits(batch_handle whose) const { return run_->logits(whose); }
INTAGLIO_DEFINITION void basic_batch::set_next(batch_handle whose, std::int32_t id, std::uint32_t back) {
  run_->set_next(whose, id, back);
}
INTAGLIO_DEFINITION saved_prefix basic_batch::save(std::span<const std::int32_t> tokens,
                                                   const std::filesystem::path& path, const session_note& note,
                                                   const adapter_choice& adapter) {
  return run_->save(tokens, path, note, adapter);
}
INTAGLIO_DEFINITION saved_prefix basic_batch::restore(const std::filesystem::path& path) { return run_->restore(path); }
INTAGLIO_DEFINITION std::uint32_t basic_batch::forget(std::span<const std::int32_t> tokens,
                                                      const adapter_choice& adapter) {
  return run_->forget(tokens, adapter);
}
INTAGLIO_DEFINITION const std::vector<std::int32_t>& basic_batch::last_history(std::uint32_t slot) const {
  return run_->last_history(slot);
}
INTAGLIO_DEFINITION const adapter_choice& basic_batch::last_adapter(std::uint32_t slot) const {
  return run_->last_adapter(slot);
}
INTAGLIO_DEFINITION std::uint32_t basic_batch::most_drafts() const { return run_->most_drafts(); }
INTAGLIO_DEFINITION void basic_batch::draft(batch_handle whose, std::span<const std::int32_t> ids) {
  run_->draft(whose, ids);
}
INTAGLIO_DEFINITION std::optional<batch_token> basic_batch::next_drafted(batch_handle whose) {
  return run_->next_drafted(whose);
}
INTAGLIO_DEFINITION void basic_batch::draft_by(std::shared_ptr<runtime::proposer> by) { run_->draft_by(std::move(by)); }
INTAGLIO_DEFINITION draft_counts basic_batch::drafts() const { return run_->drafts(); }
INTAGLIO_DEFINITION draft_counts basic_batch::drafts(batch_handle whose) const { return run_->drafts(whose); }
INTAGLIO_DEFINITION std::vector<float> basic_batch::embed(std::span<const std::int32_t> ids,
                                                          const embed_options& options) {
  return run_->embed(ids, options);
}
INTAGLIO_DEFINITION const runtime::batch_executor& basic_batch::executor() const { return run_->executor(); }
INTAGLIO_DEFINITION runtime::batch_executor& basic_batch::executor() { return run_->executor(); }

}  // namespace intaglio
