// SPDX-License-Identifier: MIT
// The implementation of basic_batch: sessions join, are fed, draw together and leave.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/io/checkpoint.hpp"
#include "intaglio/io/prompt.hpp"
#include "intaglio/plan/adapters.hpp"
#include "intaglio/runtime/batch_feeding.hpp"
#include "intaglio/runtime/load_session.hpp"
#include "intaglio/runtime/pooled_states.hpp"

namespace intaglio::runtime {

/// The implementation of basic_batch; this object does not move.
class running_batch : public batch_feeding {
 public:
  running_batch(const gpu::device& on, std::span<const plan::table* const> tables, const io::checkpoint& from,
                const session_options& options, runtime::module_source source)
      : batch_feeding(runtime::open_session(on, tables, from, options), nullptr) {
    gpu::translated([&] {
      run_ = runtime::load_executor<runtime::batch_executor>(*body_, *body_->table, from, options, source);
      start();
    });
  }
  running_batch(std::shared_ptr<runtime::session_body> body, std::unique_ptr<runtime::batch_executor> run)
      : batch_feeding(std::move(body), std::move(run)) {}

  bool has_tokenizer() const { return body_->tokens.has_value(); }
  const io::tokenizer& tokenizer() const { return body_->tokenizer(); }
  const std::vector<std::string>& warnings() const { return body_->warnings; }
  std::vector<std::int32_t> encode(std::span<const io::chat_message> conversation) const {
    return gpu::translated([&] { return body_->encode(conversation); });
  }
  std::vector<std::int32_t> encode(std::string_view text, io::prompt_markup markup = io::prompt_markup::read) const {
    return gpu::translated([&] { return io::encode_prompt(tokenizer(), text, markup); });
  }

  std::uint32_t active() const { return slot_count() - free_slots(); }
  std::uint32_t free_pages() const { return pool_->free(); }
  bool fits(std::span<const std::int32_t> prompt, std::uint32_t max_tokens, const adapter_choice& adapter) const {
    return free_slots() != 0 && waiting_for_pages() == 0 && !prompt.empty() && max_tokens != 0 &&
           prompt.size() + max_tokens <= context() &&
           pool_->has_room(prompt, first_positions(prompt.size(), positions(prompt.size(), max_tokens)),
                           adapter_key(checked_adapter(adapter, plan::adapters_of(table()))));
  }

  batch_handle join(std::span<const std::int32_t> prompt, const batch_options& options) {
    return gpu::translated([&] {
      device().on()->require_alive("join a batch");
      if (prompt.empty()) throw argument_error("prompt", "at least one token", "none");
      body_->check_ids(prompt);
      runtime::validate(options.sampling, table().config->vocab_size, context());
      if (options.max_tokens == 0) throw argument_error("max_tokens", "at least 1", "0");
      if (prompt.size() + options.max_tokens > context())
        throw argument_error("prompt and max_tokens", "at most " + std::to_string(context()) + " tokens (the context)",
                             std::to_string(prompt.size() + options.max_tokens) + " tokens");
      check_drafts(options);
      const adapter_choice adapter = checked_adapter(options.adapter, plan::adapters_of(table()));
      const std::uint32_t slot = free_slot();
      if (slot == members_.size())
        throw argument_error("sessions of the batch", "a free slot", "all " + std::to_string(slot_count()) + " taken");
      const std::uint32_t all = positions(prompt.size(), options.max_tokens),
                          wanted = first_positions(prompt.size(), all);
      std::optional<runtime::page_pool::list> pages;
      if (waiting_for_pages() == 0) pages = pool_->take(prompt, wanted, adapter_key(adapter));
      if (!pages)
        throw argument_error("KV pages",
                             std::to_string(pool_->pages_of(wanted)) + " for " + std::to_string(wanted) + " positions",
                             std::to_string(pool_->free()) + " of " + std::to_string(table().shape.pages) + " free" +
                                 (waiting_for_pages() != 0 ? ", for which others wait" : ""));
      member& of = members_[slot];
      of = {};
      of.number = ++last_number_;
      of.history.reserve(all + 1);
      of.history.assign(prompt.begin(), prompt.end());
      of.pages = std::move(*pages);
      of.options = options;
      of.options.adapter = adapter;
      of.prompt = static_cast<std::uint32_t>(prompt.size());
      waiting_.push_back(slot);
      return batch_handle{slot, of.number};
    });
  }

  std::span<const batch_token> step(std::uint32_t tokens = 1) {
    drawn_.clear();
    return gpu::translated([&] {
      device().on()->require_alive("step a batch");
      if (tokens == 0 || tokens > table().ring_size)
        throw argument_error("tokens of a step", "1 .. " + std::to_string(table().ring_size), std::to_string(tokens));
      // Earlier stages of a cut plan begin with the prompt while the last stage draws.
      const bool first = !run_->is_stage() || !ask_for_chunks();
      if (first) feed_waiting();
      decode(tokens);
      if (!first) feed_waiting();
      return std::span<const batch_token>(drawn_);
    });
  }

  void leave(batch_handle whose) {
    if (member* const of = find(whose)) remove(whose.slot, *of);
  }

  bool has(batch_handle whose) const { return find(whose) != nullptr; }
  const std::vector<std::int32_t>& history(batch_handle whose) const { return present(whose).history; }
  std::uint32_t cached_tokens(batch_handle whose) const {
    if (const former* const of = find_left(whose)) return of->found;
    return present(whose).found.value_or(0);
  }
  std::span<const float> logits(batch_handle whose) const {
    if (whose.slot >= members_.size() || logits_of_[whose.slot] != whose.number || whose.number == 0)
      throw argument_error("logits", "a session that keeps them and drew a token", "none");
    return run_->logits(logits_row_[whose.slot]);
  }
  void set_next(batch_handle whose, std::int32_t id, std::uint32_t back) {
    member& of = const_cast<member&>(present(whose));
    const std::size_t drawn = of.history.size() - of.prompt;
    if (drawn == 0)
      throw argument_error("token to put instead of another", "a session that drew one", "one that drew none");
    if (back >= drawn)
      throw argument_error("tokens to take back", "fewer than the " + std::to_string(drawn) + " that were drawn",
                           std::to_string(back));
    if (back != 0 && copies_)
      throw argument_error("tokens to take back", "a model without recurrent layers, whose states do not go back",
                           "one with them");
    body_->check_ids(std::span(&id, 1));
    gpu::translated([&] { settle(); });
    of.history.resize(of.history.size() - back);
    of.history.back() = id;
    if (back != 0) {
      of.fed = (std::min)(of.fed, static_cast<std::uint32_t>(of.history.size()) - 1);
      // The caches' windows may have advanced without the current tokens.
      if (in_caches_ == whose.slot && table().config->sliding_window != 0) in_caches_ = slot_count();
    }
    if (of.ready) update_slot(whose.slot, of);
  }

  std::vector<float> embed(std::span<const std::int32_t> ids, const embed_options& options) {
    return gpu::translated([&] {
      device().on()->require_alive("embed a text");
      if (ids.empty()) throw argument_error("text to embed", "at least one token", "none");
      body_->check_ids(ids);
      body_->check_room(ids.size());
      const std::uint32_t chunk = body_->checked_chunk_of(options.chunk, ids.size());
      settle();  // the text uses the caches
      in_caches_ = slot_count();
      std::vector<float> out;
      guarded([&] {
        runtime::pooled_states states(*table().config, runtime::last_norm(device(), run_->table(), run_->weights()),
                                      options.pooling.value_or(body_->file_pooling.value_or(pooling::last)));
        out = runtime::pool_text(
            table(), std::move(states), static_cast<std::uint32_t>(ids.size()), chunk,
            [&](std::uint32_t position, std::uint32_t count) {
              run_->feed_alone(position, ids.subspan(position, count), body_->submit_budget_ms);
            },
            [&](std::uint32_t first, std::span<float> into) { run_->read_stream(first, into); }, options.normalize,
            device().label());
      });
      return out;
    });
  }

  const runtime::batch_executor& executor() const { return *run_; }
  runtime::batch_executor& executor() { return *run_; }

 private:
  void decode(std::uint32_t tokens) {
    for (std::uint32_t taken = 0; taken < tokens;) {
      const std::uint32_t now = (std::min)(tokens - taken, tokens_to_copy());
      taken += decode_some(now);
      copy_decoded();
    }
  }
  /// Prepares the only active slot to decode in the caches of a single session.
  void go_alone(std::uint32_t slot) {
    if (alone_ == slot) return;
    settle();
    member& of = members_[slot];
    alone_from_ = static_cast<std::uint32_t>(of.history.size()) - 1;
    const std::uint32_t held = in_caches_ == slot ? of.fed : 0;  // no other session has used the caches since
    in_caches_ = slot_count();
    guarded([&] { run_->enter_alone(slot, words_of(of), held); });
    alone_ = slot;
    of.reported = 0;
  }
  /// Decodes tokens of that slot. @param keeps keep its last logits
  void decode_alone(std::uint32_t slot, std::uint32_t tokens, bool keeps) {
    guarded([&] {
      run_->decode_alone(tokens, body_->submit_budget_ms);
      if (keeps) run_->keep_alone_logits(slot);
    });
  }
  /// The sessions that take part in the next passes.
  struct those_ready {
    std::uint32_t rows = 0, count = 0;  ///< rows: number of slots up to the last such session
    bool keep_logits = false;
  };
  /// Counts the ready sessions, also for each group.
  those_ready count_ready() {
    those_ready out;
    rows_.assign(rows_.size(), 0);
    for (std::uint32_t slot = 0; slot < slot_count(); ++slot) {
      if (!members_[slot].ready) continue;
      out = {slot + 1, out.count + 1, out.keep_logits || members_[slot].options.keep_logits};
      rows_[run_->group_of(slot)] = slot % run_->table().shape.slot_count + 1;
    }
    return out;
  }
  /// @return number of passes; sessions with drafts may have drawn more tokens
  std::uint32_t decode_some(std::uint32_t tokens) {
    const std::size_t first = drawn_.size();
    close_offers();
    grow(tokens);
    const auto [rows, ready, keeps] = count_ready();
    if (rows == 0) return tokens;
    const bool lone = ready == 1 && waiting_.empty() && (keeps ? run_->alone_has_logits() : run_->has_alone());
    if (is_drafting()) rows_.front() = place_drafts(rows);
    const std::uint32_t drafted = drafted_rows();
    const bool alone = lone && drafted == 0;
    if (alone) go_alone(rows - 1);
    else settle();
    const auto start = std::chrono::steady_clock::now();  // a change of caches is no part of a pass
    if (alone) {
      const member& of = members_[rows - 1];
      tokens = (std::min)(tokens, of.prompt + of.options.max_tokens - static_cast<std::uint32_t>(of.history.size()));
      decode_alone(rows - 1, tokens, keeps);
    } else {
      if (drafted != 0) tokens = 1;
      guarded([&, kept = keeps] { run_->decode_groups(rows_, tokens, kept, body_->submit_budget_ms); });
    }
    observe(ready + drafted,
            std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count() / tokens);
    bool spoiled = false;
    for (std::uint32_t slot = 0; slot < rows; ++slot) {
      member& of = members_[slot];
      if (!of.ready) continue;
      logits_of_[slot] = of.options.keep_logits ? of.number : 0, logits_row_[slot] = slot;
      if (!of.drafts.empty()) {
        std::uint32_t taken = 0;
        for (const std::uint32_t drawn : take_drafts(slot, of, ready, drafted))
          if (++taken, !take_drawn(slot, of, drawn, spoiled)) break;
        if (taken > 1) update_slot(slot, of);
        else ++of.reported;
        continue;
      }
      of.drafting.decoded(tokens), of.right.decoded(tokens);
      for (std::uint32_t i = 0; i < tokens; ++i, ++of.reported)
        if (!take_drawn(slot, of, alone ? run_->drawn_alone(of.reported) : run_->drawn(slot, of.reported), spoiled))
          break;
    }
    remove_ended(first, spoiled);
    return tokens;
  }
  /// @return whether the session continues
  bool take_drawn(std::uint32_t slot, member& of, std::uint32_t drawn, bool& spoiled) {
    if (drawn >= table().config->vocab_size) {
      drawn_.push_back({{slot, of.number}, -1, true, false});
      spoiled = true;
      return false;
    }
    of.history.push_back(static_cast<std::int32_t>(drawn));
    const bool last = of.history.size() == of.prompt + of.options.max_tokens;
    drawn_.push_back({{slot, of.number}, static_cast<std::int32_t>(drawn), last});
    return !last;
  }
  void remove_ended(std::size_t first, bool spoiled) {
    // Sessions with spoiled pages first, so that no last tokens are remembered after such pages.
    for (member& each : members_)
      if (each.is_spoiled) pool_->spoil(each.pages);
    const auto now = std::span(drawn_).subspan(first);
    if (spoiled)
      for (const batch_token& each : now)
        if (!each.finite) {
          member& of = members_[each.of.slot];
          of.ready = false;
          pool_->spoil(of.pages);
          remove(each.of.slot, of);
        }
    for (const batch_token& each : now)
      if (each.last && each.finite) remove(each.of.slot, members_[each.of.slot]);
    for (std::uint32_t slot = 0; slot < slot_count(); ++slot) {
      member& of = members_[slot];
      if (!std::exchange(of.is_spoiled, false)) continue;
      if (grows_) {
        put_back(slot);
        continue;
      }
      drawn_.push_back({{slot, of.number}, -1, true, false});
      of.ready = false;
      remove(slot, of);
    }
  }
};

}  // namespace intaglio::runtime
