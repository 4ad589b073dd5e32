// SPDX-License-Identifier: MIT
// Work of the engine between two steps of its batch, in the order of the requests: vectors of texts, and questions and
// orders about slots. Any thread may request it; the engine's thread does it. Only the engine's source file includes
// this.
#pragma once

#include <intaglio/core/error.hpp>
#include <intaglio/runtime/basic_batch.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <exception>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "generation.hpp"
#include "metrics.hpp"
#include "token_engine.hpp"

namespace intaglio::serve {

class between_steps {
 public:
  explicit between_steps(metrics& counts) : counts_(counts) {}

  void add(embedding asked);
  void add(slot_order asked);
  std::size_t size() const;
  /// All that waits is answered with this error.
  void refuse_all(const api_error& why);

  /// One text, if one waits. @param vector_of gives that of one of an embedding's texts
  /// @return seconds that the device was busy  @throws what the device throws
  double embed_one(const std::function<std::vector<float>(const embedding&, std::size_t)>& vector_of);
  /// All orders of slots. @param running fills in the user of a slot  @throws what the device throws
  void do_orders(basic_batch& batch, const std::function<void(std::vector<slot_state>&)>& running);

 private:
  struct embedding_under_way {
    embedding asked;
    std::vector<std::vector<float>> done;
  };
  slot_outcome done(basic_batch& batch, const slot_order& what,
                    const std::function<void(std::vector<slot_state>&)>& running);

  metrics& counts_;
  mutable std::mutex mutex_;
  std::deque<embedding_under_way> embeddings_;
  std::deque<slot_order> orders_;
};

namespace between {

inline double seconds_since(steady::time_point start) {
  return std::chrono::duration<double>(steady::now() - start).count();
}

/// An error's text without the folder, which clients should not see.
inline std::string without_folder(std::string text, const std::filesystem::path& file) {
  const std::string folder = file.parent_path().string() + '/';
  for (std::size_t at = text.find(folder); at != std::string::npos; at = text.find(folder))
    text.erase(at, folder.size());
  return text;
}

}  // namespace between

inline void between_steps::add(embedding asked) {
  const std::lock_guard lock(mutex_);
  embeddings_.push_back({std::move(asked), {}});
}
inline void between_steps::add(slot_order asked) {
  const std::lock_guard lock(mutex_);
  orders_.push_back(std::move(asked));
}
inline std::size_t between_steps::size() const {
  const std::lock_guard lock(mutex_);
  return embeddings_.size() + orders_.size();
}
inline void between_steps::refuse_all(const api_error& why) {
  const std::lock_guard lock(mutex_);
  for (const embedding_under_way& each : embeddings_) each.asked.refuse(why);
  for (const slot_order& each : orders_) each.refuse(why);
  embeddings_.clear(), orders_.clear();
}

inline double between_steps::embed_one(
    const std::function<std::vector<float>(const embedding&, std::size_t)>& vector_of) {
  std::unique_lock lock(mutex_);
  std::erase_if(embeddings_, [](const embedding_under_way& each) { return each.asked.cancelled(); });
  if (embeddings_.empty()) return 0;
  embedding_under_way& of = embeddings_.front();  // others are put after it
  lock.unlock();
  const auto take = [&] {
    const std::lock_guard again(mutex_);
    embedding_under_way out = std::move(embeddings_.front());
    embeddings_.pop_front();
    return out;
  };
  const auto start = steady::now();
  try {
    of.done.push_back(vector_of(of.asked, of.done.size()));
  } catch (const argument_error& refused) {
    take().asked.refuse(api_error(400, refused.what()));
    return 0;
  } catch (const std::exception&) {
    take().asked.refuse(api_error(503, "the device failed", {}, "generation_failed", 1));
    counts_.failed();
    throw;
  }
  const double busy = between::seconds_since(start);
  counts_.device_busy(busy);
  if (of.done.size() == of.asked.texts.size()) {
    embedding_under_way whole = take();
    whole.asked.answer(std::move(whole.done));
  }
  return busy;
}

inline void between_steps::do_orders(basic_batch& batch, const std::function<void(std::vector<slot_state>&)>& running) {
  for (;;) {
    std::unique_lock lock(mutex_);
    if (orders_.empty()) return;
    const slot_order next = std::move(orders_.front());
    orders_.pop_front();
    lock.unlock();
    try {
      next.answer(done(batch, next, running));
    } catch (const file_error& problem) {
      const bool saves = next.what == slot_order::action::save;
      next.refuse(api_error(saves ? 500 : 400, between::without_folder(problem.what(), next.file),
                            saves ? "" : "filename", saves ? "slot_not_saved" : "slot_not_restored"));
    } catch (const argument_error& refused) {
      next.refuse(api_error(400, refused.what(), {}, "slot_refused"));
    } catch (const std::exception&) {
      next.refuse(api_error(503, "the device failed", {}, "generation_failed", 1));
      counts_.failed();
      throw;
    }
  }
}

inline slot_outcome between_steps::done(basic_batch& batch, const slot_order& what,
                                        const std::function<void(std::vector<slot_state>&)>& running) {
  slot_outcome out;
  const auto start = steady::now();
  switch (what.what) {
    case slot_order::action::list:
      out.list.resize(batch.slot_count());
      for (std::uint32_t slot = 0; slot < batch.slot_count(); ++slot)
        out.list[slot].tokens = static_cast<std::uint32_t>(batch.last_history(slot).size());
      running(out.list);
      break;
    case slot_order::action::save: {
      const saved_prefix saved =
          batch.save(batch.last_history(what.slot), what.file, {}, batch.last_adapter(what.slot));
      out.positions = saved.positions, out.bytes = saved.bytes, out.adapter = saved.adapter;
      break;
    }
    case slot_order::action::restore: {
      const saved_prefix found = batch.restore(what.file);
      out.positions = found.positions, out.bytes = found.bytes, out.adapter = found.adapter;
      break;
    }
    case slot_order::action::erase:
      out.positions = batch.forget(batch.last_history(what.slot), batch.last_adapter(what.slot));
      break;
  }
  out.milliseconds = 1000 * between::seconds_since(start);
  return out;
}

}  // namespace intaglio::serve
