// SPDX-License-Identifier: MIT
// How sessions decode together: each has a slot, whose tokens are those that a session alone would draw. They join and
// leave between steps; the KV cache is a pool of pages, which sessions take as they grow, and prompts that begin alike
// share those pages. The same code for every model. Defines basic_batch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/io/checkpoint.hpp"
#include "intaglio/io/prompt.hpp"
#include "intaglio/runtime/batch_executor.hpp"
#include "intaglio/runtime/batch_handle.hpp"
#include "intaglio/runtime/load_session.hpp"
#include "intaglio/runtime/page_pool.hpp"

namespace intaglio {
namespace runtime {

/// What a basic_batch does, in one place that does not move.
class running_batch {
 public:
  running_batch(const gpu::device& on, std::span<const plan::table* const> tables, const io::checkpoint& from,
                const session_options& options, runtime::module_source source)
      : body_(runtime::open_session(on, tables, from, options)) {
    gpu::translated([&] {
      run_ = runtime::load_executor<runtime::batch_executor>(*body_, *body_->table, from, options, source);
      start();
    });
  }
  running_batch(std::shared_ptr<runtime::session_body> body, std::unique_ptr<runtime::batch_executor> run)
      : body_(std::move(body)), run_(std::move(run)) {
    start();
  }

  const plan::table& table() const { return *body_->table; }
  const gpu::device& device() const { return body_->device; }
  std::uint32_t context() const { return table().context; }
  std::uint32_t slot_count() const { return table().shape.slot_count; }
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
  std::uint32_t free_slots() const {
    std::uint32_t out = 0;
    for (const member& each : members_) out += each.number == 0 ? 1 : 0;
    return out;
  }
  std::uint32_t free_pages() const { return pool_->free(); }
  std::uint32_t waiting_for_pages() const {
    std::uint32_t out = 0;
    for (const member& each : members_) out += each.number != 0 && each.pages.pages.empty() ? 1 : 0;
    return out;
  }
  bool fits(std::span<const std::int32_t> prompt, std::uint32_t max_tokens) const {
    return free_slots() != 0 && waiting_for_pages() == 0 && !prompt.empty() && max_tokens != 0 &&
           prompt.size() + max_tokens <= context() &&
           pool_->has_room(prompt, first_positions(prompt.size(), positions(prompt.size(), max_tokens)));
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
      std::uint32_t slot = 0;
      while (slot < members_.size() && members_[slot].number != 0) ++slot;
      if (slot == members_.size())
        throw argument_error("sessions of the batch", "a free slot", "all " + std::to_string(slot_count()) + " taken");
      const std::uint32_t all = positions(prompt.size(), options.max_tokens),
                          wanted = first_positions(prompt.size(), all);
      std::optional<runtime::page_pool::list> pages;
      if (waiting_for_pages() == 0) pages = pool_->take(prompt, wanted);
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
      feed_waiting();
      decode(tokens);
      return std::span<const batch_token>(drawn_);
    });
  }

  void leave(batch_handle whose) {
    if (member* const of = find(whose)) remove(whose.slot, *of);
  }

  bool has(batch_handle whose) const { return find(whose) != nullptr; }
  const std::vector<std::int32_t>& history(batch_handle whose) const { return present(whose).history; }
  std::uint32_t cached_tokens(batch_handle whose) const {
    if (const member* const of = find(whose)) return of->found.value_or(0);
    if (whose.number == 0 || whose.slot >= members_.size() || found_by_[whose.slot].number != whose.number)
      return present(whose).found.value_or(0);
    return found_by_[whose.slot].tokens;
  }
  std::span<const float> logits(batch_handle whose) const {
    if (whose.slot >= members_.size() || logits_of_[whose.slot] != whose.number || whose.number == 0)
      throw argument_error("logits", "a session that keeps them and drew a token", "none");
    return run_->logits(whose.slot);
  }
  void set_next(batch_handle whose, std::int32_t id) {
    member& of = const_cast<member&>(present(whose));
    if (of.history.size() == of.prompt)
      throw argument_error("token to put in another's place", "a session that drew one", "one that drew none");
    body_->check_ids(std::span(&id, 1));
    gpu::translated([&] { settle(); });
    of.history.back() = id;
    tell(whose.slot, of);
  }

  std::vector<float> embed(std::span<const std::int32_t> ids, const embed_options& options) {
    return gpu::translated([&] {
      device().on()->require_alive("embed a text");
      const std::uint32_t chunk = body_->checked_chunk(options.chunk);
      if (ids.empty()) throw argument_error("text to embed", "at least one token", "none");
      body_->check_ids(ids);
      body_->check_room(ids.size());
      settle();  // the text takes the caches
      in_caches_ = slot_count();
      std::vector<float> out;
      guarded([&] {
        runtime::pooled_states states(*table().config, runtime::last_norm(device(), table(), run_->weights()),
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
  struct member {
    std::uint64_t number = 0;  ///< 0: nobody
    std::vector<std::int32_t> history;
    runtime::page_pool::list pages;
    batch_options options;
    std::uint32_t prompt = 0;            ///< tokens of it
    std::uint32_t fed = 0;               ///< positions that the pages hold while the prompt, or all so far, is fed
    std::optional<std::uint32_t> found;  ///< of the prompt's, found there when it was first fed
    std::uint32_t told = 0;              ///< tokens drawn since the device was told of the slot
    bool started = false, ready = false;
  };

  /// Positions that are written: the last token drawn is not.
  static std::uint32_t positions(std::size_t prompt, std::uint32_t max_tokens) {
    return static_cast<std::uint32_t>(prompt) + max_tokens - 1;
  }
  std::uint32_t all_positions(const member& of) const { return positions(of.prompt, of.options.max_tokens); }
  /// Those whose pages are taken at once: `ahead` more than there are tokens, so that the device is seldom told of new
  /// ones.
  std::uint32_t first_positions(std::size_t tokens, std::uint32_t all) const {
    return grows_ ? (std::min)(all, static_cast<std::uint32_t>(tokens) + ahead) : all;
  }
  static constexpr std::uint32_t ahead = 64;

  void start() {
    const plan::table& t = table();
    if (t.batch.layers == 0) throw argument_error("plan", "one with a batch", "one without");
    members_.resize(t.shape.slot_count);
    logits_of_.resize(t.shape.slot_count);
    found_by_.resize(t.shape.slot_count);
    alone_ = in_caches_ = t.shape.slot_count;
    order_.reserve(t.shape.slot_count);
    pool_.emplace(t.shape.pages, t.shape.page_size);
    drawn_.reserve(std::size_t{t.shape.slot_count} * 8);
    for (const plan::dispatch& each : t.prefill.period)
      same_bits_ = same_bits_ && each.kernel != kernels::kernel::matmul_chunk &&
                   each.kernel != kernels::kernel::attention_halves;
    grows_ = same_bits_;  // who is fed anew has to go on as before
  }

  const member* find(batch_handle whose) const {
    return whose.number != 0 && whose.slot < members_.size() && members_[whose.slot].number == whose.number
               ? &members_[whose.slot]
               : nullptr;
  }
  member* find(batch_handle whose) { return const_cast<member*>(std::as_const(*this).find(whose)); }
  const member& present(batch_handle whose) const {
    const member* const of = find(whose);
    if (of == nullptr) throw argument_error("session of the batch", "one that is there", "one that has left");
    return *of;
  }

  void tell(std::uint32_t slot, member& of) {
    of.told = 0;
    run_->set(slot, words_of(of));
  }
  runtime::slot_words words_of(const member& of) const {
    return {of.history, of.pages.pages, (std::min)(all_positions(of), held(of)), of.ready, of.options.sampling};
  }
  std::uint32_t held(const member& of) const {
    return static_cast<std::uint32_t>(of.pages.pages.size()) * pool_->page_size();
  }

  /// What a session that decoded alone has in the caches goes to its pages.
  void settle() {
    if (alone_ == slot_count()) return;
    const std::uint32_t slot = std::exchange(alone_, slot_count());
    member& of = members_[slot];
    const auto end = static_cast<std::uint32_t>(of.history.size()) - 1;
    if (end > alone_from_) guarded([&] { run_->leave_alone(slot, alone_from_, end); });
    tell(slot, of);
  }

  void remove(std::uint32_t slot, member& of) {
    give_back(slot, of);
    std::erase(waiting_, slot);
    found_by_[slot] = {of.number, of.found.value_or(0)};
    of = {};
  }

  /// Its pages. What they hold is remembered.
  void give_back(std::uint32_t slot, member& of) {
    if (alone_ == slot && of.ready && same_bits_) settle();
    if (alone_ == slot) alone_ = slot_count();
    if (in_caches_ == slot) in_caches_ = slot_count();
    run_->set(slot, {});
    if (of.ready && same_bits_) pool_->remember(of.pages, std::span(of.history).first(of.history.size() - 1));
    pool_->release(of.pages);
    of.ready = of.started = false;
    of.fed = 0;
    if (!pool_->spoiled().empty()) clean(slot);
  }

  /// Masked positions are read and multiplied by zero, so the next session with these pages must find numbers in them.
  void clean(std::uint32_t slot) {
    settle();
    guarded([&] { run_->clean(slot, pool_->spoiled()); });
    pool_->cleaned();
    in_caches_ = slot_count();
  }

  /// Pages for that many positions. Where there are too few, those who joined after it give theirs back, the last one
  /// first.
  /// @return false: there are too few nevertheless
  bool make_room(std::uint32_t slot, std::uint32_t wanted) {
    member& of = members_[slot];
    while (!pool_->grow(of.pages, wanted)) {
      std::uint32_t last = slot;
      for (std::uint32_t i = 0; i < slot_count(); ++i)
        if (members_[i].number > members_[last].number && !members_[i].pages.pages.empty()) last = i;
      if (last == slot) return false;
      put_back(last);
    }
    return true;
  }
  void put_back(std::uint32_t slot) {
    give_back(slot, members_[slot]);
    std::erase(waiting_, slot);
    const auto behind = std::find_if(waiting_.begin(), waiting_.end(),
                                     [&](std::uint32_t each) { return members_[each].number > members_[slot].number; });
    waiting_.insert(behind, slot);
  }
  /// Pages for the next tokens of all that are ready, in the order in which they came.
  void grow(std::uint32_t tokens) {
    if (!grows_) return;
    order_.clear();
    for (std::uint32_t slot = 0; slot < slot_count(); ++slot)
      if (members_[slot].ready) order_.push_back(slot);
    std::sort(order_.begin(), order_.end(),
              [&](std::uint32_t a, std::uint32_t b) { return members_[a].number < members_[b].number; });
    for (const std::uint32_t slot : order_) {
      member& of = members_[slot];
      if (!of.ready) continue;  // put back for one before it
      const auto now = static_cast<std::uint32_t>(of.history.size()) - 1;
      const std::uint32_t all = all_positions(of), wanted = (std::min)(all, now + tokens);
      if (wanted <= held(of)) continue;
      if (!pool_->grow(of.pages, (std::min)(all, now + (std::max)(tokens, ahead))) && !make_room(slot, wanted)) {
        put_back(slot);
        continue;
      }
      if (alone_ == slot) run_->set(slot, words_of(of));  // read when it leaves the caches
      else tell(slot, of);
    }
  }

  /// What a failed pass leaves in pages is not relied on: the sessions that were fed then have left, and nothing is
  /// remembered of it.
  template <class Body>
  void guarded(Body&& body) {
    try {
      body();
    } catch (...) {
      waiting_.clear();
      alone_ = in_caches_ = slot_count();
      for (member& each : members_) each = {};
      pool_.emplace(table().shape.pages, table().shape.page_size);
      for (std::uint32_t slot = 0; slot < slot_count(); ++slot) run_->set(slot, {});
      throw;
    }
  }

  void feed_waiting() {
    if (waiting_.empty()) return;
    const std::uint32_t slot = waiting_.front();
    member& of = members_[slot];
    if (of.pages.pages.empty()) {  // it was put back, as all behind it were
      auto pages = pool_->take(of.history, first_positions(of.history.size(), all_positions(of)));
      if (!pages) return;
      of.pages = std::move(*pages);
    }
    settle();                                                            // the prompt takes the caches
    const auto all = static_cast<std::uint32_t>(of.history.size()) - 1;  // the last token goes in with the first pass
    if (!of.started) {
      of.started = true;
      pool_->share(of.pages, of.history, first_positions(of.history.size(), all_positions(of)));
      of.fed = of.pages.shared * pool_->page_size();
      if (!of.found) of.found = of.fed;
      in_caches_ = slot_count();
      tell(slot, of);
    }
    if (of.fed < all) {
      const std::uint32_t count = (std::min)(table().prefill.max_tokens, all - of.fed);
      guarded([&] {
        run_->prefill(slot, of.fed, std::span(of.history).subspan(of.fed, count), in_caches_ == slot ? 0 : of.fed,
                      body_->submit_budget_ms);
      });
      in_caches_ = slot;
      of.fed += count;
    }
    if (of.fed < all) return;
    pool_->remember(of.pages, std::span(of.history).first(all));
    of.ready = true;
    tell(slot, of);
    waiting_.pop_front();
  }

  void decode(std::uint32_t tokens) {
    grow(tokens);
    std::uint32_t rows = 0, ready = 0;
    bool keeps = false;
    for (std::uint32_t slot = 0; slot < slot_count(); ++slot)
      if (members_[slot].ready) rows = slot + 1, ++ready, keeps = keeps || members_[slot].options.keep_logits;
    if (rows == 0) return;
    const bool alone = ready == 1 && waiting_.empty() && !keeps && run_->has_alone();
    if (alone) {
      member& of = members_[rows - 1];
      if (alone_ != rows - 1) {
        settle();
        in_caches_ = slot_count();
        alone_from_ = static_cast<std::uint32_t>(of.history.size()) - 1;
        guarded([&] { run_->enter_alone(rows - 1, words_of(of)); });
        alone_ = rows - 1;
        of.told = 0;
      }
      tokens = (std::min)(tokens, of.prompt + of.options.max_tokens - static_cast<std::uint32_t>(of.history.size()));
      guarded([&] { run_->decode_alone(tokens, body_->submit_budget_ms); });
    } else {
      settle();
      guarded([&] { run_->decode(rows, tokens, keeps, body_->submit_budget_ms); });
    }
    bool spoiled = false;
    for (std::uint32_t slot = 0; slot < rows; ++slot) {
      member& of = members_[slot];
      if (!of.ready) continue;
      logits_of_[slot] = of.options.keep_logits ? of.number : 0;
      for (std::uint32_t i = 0; i < tokens; ++i) {
        const std::uint32_t drawn = alone ? run_->drawn_alone(of.told) : run_->drawn(slot, of.told);
        ++of.told;
        if (drawn >= table().config->vocab_size) {
          drawn_.push_back({{slot, of.number}, -1, true, false});
          spoiled = true;
          break;
        }
        of.history.push_back(static_cast<std::int32_t>(drawn));
        const bool last = of.history.size() == of.prompt + of.options.max_tokens;
        drawn_.push_back({{slot, of.number}, static_cast<std::int32_t>(drawn), last});
        if (last) break;
      }
    }
    // The spoiled ones first, so that nobody's last tokens are remembered behind pages of theirs.
    if (spoiled)
      for (const batch_token& each : drawn_)
        if (!each.finite) {
          member& of = members_[each.of.slot];
          of.ready = false;
          pool_->spoil(of.pages);
          remove(each.of.slot, of);
        }
    for (const batch_token& each : drawn_)
      if (each.last && each.finite) remove(each.of.slot, members_[each.of.slot]);
  }

  std::shared_ptr<runtime::session_body> body_;
  std::unique_ptr<runtime::batch_executor> run_;
  std::optional<runtime::page_pool> pool_;
  std::vector<member> members_;           ///< by slot
  std::vector<std::uint64_t> logits_of_;  ///< by slot: whose logits the executor has
  struct found_tokens {
    std::uint64_t number = 0;
    std::uint32_t tokens = 0;
  };
  std::vector<found_tokens> found_by_;  ///< by slot: who had it last
  std::deque<std::uint32_t> waiting_;   ///< slots whose prompts are not fed yet, in the order in which they joined
  std::vector<std::uint32_t> order_;
  std::vector<batch_token> drawn_;
  std::uint64_t last_number_ = 0;
  std::uint32_t alone_ = 0, alone_from_ = 0;  ///< slot that decodes in the caches of a session alone, slots(): none;
                                              ///< positions of its pages before it did
  std::uint32_t in_caches_ = 0;               ///< slot whose prompt the caches hold as far as it is fed, slots(): none
  bool same_bits_ = true;  ///< prefill leaves decode's bits, so that pages may be shared whatever wrote them
  bool grows_ = true;      ///< pages are taken as sessions grow; else all at once
};

}  // namespace runtime

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
INTAGLIO_DEFINITION bool basic_batch::fits(std::span<const std::int32_t> prompt, std::uint32_t max_tokens) const {
  return run_->fits(prompt, max_tokens);
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
INTAGLIO_DEFINITION void basic_batch::set_next(batch_handle whose, std::int32_t id) { run_->set_next(whose, id); }
INTAGLIO_DEFINITION std::vector<float> basic_batch::embed(std::span<const std::int32_t> ids,
                                                          const embed_options& options) {
  return run_->embed(ids, options);
}
INTAGLIO_DEFINITION const runtime::batch_executor& basic_batch::executor() const { return run_->executor(); }
INTAGLIO_DEFINITION runtime::batch_executor& basic_batch::executor() { return run_->executor(); }

}  // namespace intaglio
