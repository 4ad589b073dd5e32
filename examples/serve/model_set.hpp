// SPDX-License-Identifier: MIT
// The models that a server answers with: one that is loaded at the start and stays, or those of a folder, which are
// loaded when a request names them, and unloaded, the least recently used first, where others need their memory.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "token_engine.hpp"

namespace intaglio::serve {

/// A model that answers. It stays loaded as long as this lives.
struct served_model {
  token_engine& engine;
  const model_facts& facts;
  const language& words;
  std::shared_ptr<void> use;
};

/// A model as lists show it.
struct listed_model {
  std::string id, path;                        ///< path: empty for the one that is loaded at the start
  std::int64_t modified = 0;                   ///< Unix time
  std::uint64_t file_bytes = 0;                ///< 0: not known
  const char* state = "unloaded";              ///< unloaded, loading, loaded, recovering or failed
  std::string what;                            ///< the current step, or the reason of a failure
  std::shared_ptr<const served_model> loaded;  ///< while it answers
};

class model_set {
 public:
  struct file {
    std::string name, path;
  };
  /// @param make_room as engine_options has it
  using engine_maker = std::function<std::unique_ptr<token_engine>(
      const file& of, std::function<void(std::uint64_t bytes, std::uint64_t available)> make_room)>;

  /// One model, which stays.
  explicit model_set(std::unique_ptr<token_engine> only);
  /// @param memory bytes that loaded models may take together; 0: seven eighths of what the device has left when the
  /// first one is loaded  @param any_name names that are not known mean the one model, where there is but one
  /// @throws std::runtime_error: no folder, or nothing in it that looks like a model
  model_set(std::string folder, std::uint64_t memory, bool any_name, std::size_t most_waiting, engine_maker make);
  ~model_set();
  model_set(const model_set&) = delete;
  model_set& operator=(const model_set&) = delete;

  /// Begins to load the one model.
  void start();
  /// The one model's engine; nullptr: there is a folder.
  const token_engine* only() const { return only_ ? only_->engine.get() : nullptr; }

  /// A request's way to its model.
  class visit {
   public:
    ~visit();
    /// @return nullptr: the model is being loaded, or waits for memory
    /// @throws api_error: it could not be loaded; of the one model, that it is not loaded yet
    std::shared_ptr<const served_model> look();

   private:
    friend class model_set;
    visit(model_set& of, std::string name) : set_(of), name_(std::move(name)) {}
    model_set& set_;
    std::string name_;
    std::shared_ptr<void> use_;  ///< of the load that it waits for
    bool waits_ = false;
  };
  /// @param name absent: the one that there is
  /// @throws api_error 404: no such model; 400: there are several, and none is named; 429: too many wait
  std::shared_ptr<visit> ask(const std::optional<std::string>& name);

  /// All of them, by name.
  std::vector<listed_model> list();
  /// Bytes that loaded models use, and their limit; the limit is 0 until it is known.
  std::pair<std::uint64_t, std::uint64_t> memory() const;

  void refuse_more();
  void end_all();

  /// Models of a folder: GGUF files (the first of those that are split), folders with config.json or params.json, and
  /// folders with one GGUF file.
  static std::vector<file> scan(const std::string& folder);

 private:
  struct entry {
    file of;
    std::shared_ptr<token_engine> engine;  ///< nullptr: not loaded, nor being loaded
    std::uint64_t room = 0;                ///< bytes that were granted to it
    std::uint32_t uses = 0;                ///< of this load
    bool leaving = false;                  ///< takes no further use, and is unloaded when those that are have ended
    std::chrono::steady_clock::time_point used{};
  };
  /// What uses refer to, also when the set is gone.
  struct core {
    mutable std::mutex mutex;
    std::condition_variable news;
  };

  void refresh();
  entry& entry_of(const std::string& name);
  std::shared_ptr<void> use_of(const std::shared_ptr<entry>& of, bool of_request);
  std::vector<std::shared_ptr<token_engine>> engines() const;
  void make_room(const std::shared_ptr<entry>& of, std::uint64_t bytes, std::uint64_t available);
  std::shared_ptr<token_engine> take_least_used(const entry& but);
  static std::shared_ptr<const served_model> served(const std::shared_ptr<token_engine>& engine,
                                                    std::shared_ptr<void> use);

  const std::shared_ptr<core> core_ = std::make_shared<core>();
  const std::string folder_;
  const bool any_name_ = false;
  const std::size_t most_waiting_ = 0;
  const engine_maker make_;
  const std::shared_ptr<entry> only_;
  // Under core_->mutex:
  std::uint64_t budget_ = 0;
  std::map<std::string, std::shared_ptr<entry>> entries_;
  std::deque<const entry*> for_room_;  ///< models that wait for memory, in this order
  std::size_t waiting_ = 0;            ///< visits
  bool refuses_ = false, ends_ = false;
};

}  // namespace intaglio::serve
