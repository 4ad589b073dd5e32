// SPDX-License-Identifier: MIT
// Saves beginnings of sequences to files and loads them (io/session_file.hpp): the full pages that the pool remembers
// of a sequence and, with recurrent layers, the state after them. Sessions share restored pages as they share any
// other.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "intaglio/gpu/queue.hpp"
#include "intaglio/gpu/recorder.hpp"
#include "intaglio/gpu/transfer.hpp"
#include "intaglio/plan/adapters.hpp"
#include "intaglio/runtime/batch_copies.hpp"
#include "intaglio/runtime/saved_record.hpp"

namespace intaglio::runtime {

/// Copies whole pages of the pool between device and host. A page has, for each layer, the keys of each head, then the
/// values.
class page_mover {
 public:
  page_mover(const gpu::device& on, const plan::table& of, const placed_items& pool)
      : device_(on), name_(model_name(of)), pool_(pool), line_(on) {
    for (std::uint32_t layer = 0; layer < of.config->num_hidden_layers; ++layer) {
      const plan::layer_cache its = of.pool(of.pattern(layer));
      if (its.positions == 0 || its.shared) continue;
      const std::uint64_t heads = of.config->key_value_heads_of(of.config->is_windowed(of.first_layer + layer));
      for (const auto& [item, bytes] : {std::pair{2 * layer, its.key_bytes}, {2 * layer + 1, its.value_bytes}})
        for (std::uint64_t head = 0; head < heads; ++head) {
          parts_.push_back({item, head * (bytes / heads), bytes / heads / of.shape.pages});
          page_bytes_ += parts_.back().bytes;
        }
    }
  }

  /// Bytes of a page over all layers.
  std::uint64_t page_bytes() const noexcept { return page_bytes_; }
  /// Reads a page; the result is valid until the next call. @error device_lost, out_of_memory
  std::span<const std::byte> read(std::uint32_t page) {
    move(page, false);
    return memory();
  }
  /// Memory for write(), [page_bytes].
  std::span<std::byte> memory() {
    if (!staging_ && page_bytes_ != 0)
      staging_ = gpu::buffer(device_, page_bytes_, gpu::placement::readback, "a page on its way");
    return staging_.mapped().first(static_cast<std::size_t>(page_bytes_));
  }
  /// Writes the content of memory() to a page. @error device_lost, out_of_memory
  void write(std::uint32_t page) { move(page, true); }

 private:
  struct part {
    std::uint32_t item = 0;               ///< index in the pool
    std::uint64_t offset = 0, bytes = 0;  ///< of a head's first page; of a page
  };
  void move(std::uint32_t page, bool to_pool) {
    if (memory().empty()) return;
    gpu::recorder commands(device_, "move a page of " + name_, std::move(commands_));
    std::uint64_t at = 0;
    for (const part& each : parts_) {
      const placed_items::item& its = pool_.items[each.item];
      const std::uint64_t there = its.offset + each.offset + page * each.bytes;
      if (to_pool) commands.copy(staging_, at, pool_.buffers[its.buffer], there, each.bytes);
      else commands.copy(pool_.buffers[its.buffer], there, staging_, at, each.bytes);
      at += each.bytes;
    }
    if (to_pool) commands.full_barrier();
    commands_ = commands.finish();
    const VkCommandBuffer handle = commands_.handle();
    line_.wait(line_.submit({&handle, 1}, commands_.name()));
  }

  gpu::device device_;
  std::string name_;
  const placed_items& pool_;
  std::vector<part> parts_;
  std::uint64_t page_bytes_ = 0;
  gpu::buffer staging_;
  gpu::recording commands_;
  gpu::queue line_;  // destroyed first, which waits for the device
};

/// The sessions of a batch, whose beginnings can be saved to files.
class batch_prefixes : public batch_copies {
 public:
  saved_prefix save(std::span<const std::int32_t> tokens, const std::filesystem::path& path, const session_note& note,
                    const adapter_choice& adapter) {
    return gpu::translated([&] {
      device().on()->require_alive("save a beginning");
      expect_uncut();
      body_->check_ids(tokens);
      body_->check_room(tokens.size());
      const adapter_choice its = checked_adapter(adapter, plan::adapters_of(table()));
      remember_all();
      std::vector<std::uint32_t> pages = pool_->known(tokens, adapter_key(its));
      const std::optional<prefix_states::found> state =
          copies_ ? copies_->newest(pool_->names_of(tokens, adapter_key(its))) : std::nullopt;
      if (copies_) pages.resize(state ? state->pages : 0);
      page_mover mover(device(), table(), run_->pool());
      io::session_record record = record_of(*body_, run_->weights(), tokens, note);
      record.cached = record.written = static_cast<std::uint32_t>(pages.size()) * pool_->page_size();
      record.cache_bytes = cache_bytes(mover, pages.size());
      record.adapter = its.number, record.adapter_scale = its.scale;
      io::session_writer to(path, record);
      for (const std::uint32_t page : pages) to.cache(mover.read(page));
      if (state) {
        std::vector<std::byte> bytes(static_cast<std::size_t>(table().kept_bytes()));
        const auto [buffer, offset] = run_->states().memory_of(state->index);
        gpu::transfer(device()).download(*buffer, offset, bytes);
        to.cache(bytes);
      }
      to.commit();
      return saved_prefix{record.tokens, record.cached, to.size(), note, its};
    });
  }

  saved_prefix restore(const std::filesystem::path& path) {
    return gpu::translated([&] {
      device().on()->require_alive("restore a beginning");
      expect_uncut();
      const io::session_reader from{io::mapped_file(path)};
      const io::session_record& record = from.record();
      page_mover mover(device(), table(), run_->pool());
      expect_plan(from, *body_);
      const std::uint32_t pages = expect_pages(from);
      expect_cache_bytes(from, cache_bytes(mover, pages));
      const adapter_choice its = expect_adapter(from);
      saved_prefix out{
          record.tokens, record.cached, from.file().size(), {saved_sampling(from, *body_), record.note}, its};
      expect_weights(from, *body_, run_->weights());
      std::optional<page_pool::list> list;
      if (waiting_for_pages() == 0) list = pool_->take(record.tokens, record.cached, adapter_key(its));
      if (!list)
        throw argument_error("KV pages of a beginning", std::to_string(pages) + " that nobody uses",
                             std::to_string(pool_->free()) + " of " + std::to_string(table().shape.pages));
      try {
        for (std::uint32_t i = list->shared; i < pages; ++i) {
          from.cache(i * mover.page_bytes(), mover.memory());
          mover.write(list->pages[i]);
        }
        from.file().expect_unchanged();
        pool_->remember(*list, std::span(record.tokens).first(record.cached));
        if (copies_ && pages != 0) restore_state(from, pages * mover.page_bytes(), adapter_key(its));
      } catch (...) {
        pool_->release(*list);
        throw;
      }
      pool_->release(*list);
      return out;
    });
  }

  std::uint32_t forget(std::span<const std::int32_t> tokens, const adapter_choice& adapter) {
    const adapter_choice its = checked_adapter(adapter, plan::adapters_of(table()));
    return pool_->forget(tokens, adapter_key(its)) * pool_->page_size();
  }

  const std::vector<std::int32_t>& last_history(std::uint32_t slot) const {
    expect_slot(slot);
    return members_[slot].number != 0 ? members_[slot].history : left_[slot].history;
  }
  const adapter_choice& last_adapter(std::uint32_t slot) const {
    expect_slot(slot);
    return members_[slot].number != 0 ? members_[slot].options.adapter : left_[slot].adapter;
  }

 protected:
  using batch_copies::batch_copies;

 private:
  void expect_slot(std::uint32_t slot) const {
    if (slot >= slot_count())
      throw argument_error("slot", "0 .. " + std::to_string(slot_count() - 1), std::to_string(slot));
  }
  /// @error argument_error: a model that is cut over devices, since each device has only a part of the pages
  void expect_uncut() const {
    if (run_->is_stage())
      throw argument_error("saved beginning", "a model on one device", "one that is cut over several");
  }
  /// @error file_error: an adapter that the plan does not have
  adapter_choice expect_adapter(const io::session_reader& from) const {
    const io::session_record& record = from.record();
    const std::uint32_t count = plan::adapters_of(table());
    if (record.adapter > count)
      from.refuse(io::session_layout::at_adapter, "adapter", "at most " + std::to_string(count),
                  std::to_string(record.adapter));
    return {record.adapter, record.adapter_scale};
  }
  std::uint64_t cache_bytes(const page_mover& mover, std::size_t pages) const {
    return pages == 0 ? 0 : pages * mover.page_bytes() + table().kept_bytes();
  }
  /// Makes the pool remember what the sessions in the batch have written so far.
  void remember_all() {
    settle();
    if (!same_bits_) return;
    for (member& each : members_)
      if (each.ready) pool_->remember(each.pages, std::span(each.history).first(each.history.size() - 1));
  }
  /// @return pages that the file has  @error file_error: positions that are not full pages before the last token
  std::uint32_t expect_pages(const io::session_reader& from) const {
    using layout = io::session_layout;
    const io::session_record& record = from.record();
    const std::uint32_t size = pool_->page_size();
    if (record.cached % size != 0 || (record.cached != 0 && record.cached >= record.tokens.size()))
      from.refuse(layout::at_cached, "tokens in the cache",
                  "full pages of " + std::to_string(size) + ", and fewer than the " +
                      std::to_string(record.tokens.size()) + " tokens",
                  std::to_string(record.cached));
    if (record.written != record.cached)
      from.refuse(layout::at_written, "positions written", std::to_string(record.cached),
                  std::to_string(record.written));
    return record.cached / size;
  }
  void restore_state(const io::session_reader& from, std::uint64_t at, std::uint64_t root) {
    const std::uint64_t name =
        pool_->names_of(from.record().tokens, root)[from.record().cached / pool_->page_size() - 1];
    if (copies_->has(name)) return;
    const auto [buffer, offset] = run_->states().memory_of(copies_->put(name));
    try {
      gpu::transfer to(device());
      to.upload(*buffer, offset, table().kept_bytes(),
                [&](std::span<std::byte> into, std::uint64_t done) { from.cache(at + done, into); });
      to.finish();
    } catch (...) {
      copies_->forget(name);
      throw;
    }
  }
};

}  // namespace intaglio::runtime
