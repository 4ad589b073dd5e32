// SPDX-License-Identifier: MIT
#include "model_set.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <utility>

#include "intaglio/io/model_path.hpp"
#include "request.hpp"

namespace intaglio::serve {
namespace {

namespace fs = std::filesystem;

std::int64_t unix_time_of(const fs::path& path) {
  std::error_code gone;
  const auto written = fs::last_write_time(path, gone);
  if (gone) return 0;
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::file_clock::to_sys(written).time_since_epoch())
      .count();
}

std::string bytes_of(std::uint64_t bytes) {
  return std::to_string(bytes / 1'000'000) + '.' + std::to_string(bytes / 100'000 % 10) + " MB";
}

const char* state_name(engine_state state) {
  switch (state) {
    case engine_state::loading:
      return "loading";
    case engine_state::ready:
      return "loaded";
    case engine_state::recovering:
      return "recovering";
    case engine_state::failed:
      break;
  }
  return "failed";
}

}  // namespace

std::vector<model_set::file> model_set::scan(const std::string& folder) {
  std::vector<file> out;
  std::set<std::string> taken;
  const auto add = [&](std::string name, const fs::path& path, const fs::path& entry) {
    if (!taken.insert(name).second && !taken.insert(name = entry.filename().string()).second) return;
    out.push_back({std::move(name), path.string()});
  };
  std::error_code ignored;
  for (const fs::path& each : io::listed_folder(folder)) {
    const std::string name = each.filename().string();
    if (fs::is_directory(each, ignored)) {
      if (const auto models = io::models_of_folder(each); models.size() == 1) add(name, models.front(), each);
    } else if (io::names_gguf_model(name)) {
      const io::gguf_split split = io::gguf_split_of(name);
      add(split.part != 0 ? std::string(split.prefix) : each.stem().string(), each, each);
    }
  }
  return out;
}

model_set::model_set(std::unique_ptr<token_engine> only) : only_(std::make_shared<entry>()) {
  only_->engine = std::move(only);
}

model_set::model_set(std::string folder, std::uint64_t memory, bool any_name, std::size_t most_waiting,
                     engine_maker make)
    : folder_(std::move(folder)), any_name_(any_name), most_waiting_(most_waiting), make_(std::move(make)),
      budget_(memory) {
  std::error_code ignored;
  if (!fs::is_directory(folder_, ignored))
    throw std::runtime_error("--models: expected a folder, found '" + printable(folder_, 200) + "'");
  refresh();
  if (entries_.empty())
    throw std::runtime_error("--models: expected GGUF files or folders with config.json in " + printable(folder_, 200) +
                             ", found none");
}

model_set::~model_set() {
  end_all();
  std::vector<std::shared_ptr<token_engine>> last;  // their threads may still ask for room
  {
    const std::lock_guard lock(core_->mutex);
    for (const auto& [name, each] : entries_) last.push_back(std::move(each->engine));
  }
}

void model_set::start() {
  if (only_) only_->engine->start();
}

/// Files that have come are taken in, those that are gone are left out unless they are loaded. Under the mutex, or at
/// the beginning.
void model_set::refresh() {
  std::map<std::string, std::shared_ptr<entry>> now;
  for (file& each : scan(folder_)) {
    const auto known = entries_.find(each.name);
    std::shared_ptr<entry>& to = now[each.name];
    if (known != entries_.end()) to = known->second;
    else to = std::make_shared<entry>();
    if (!to->engine) to->of = std::move(each);
  }
  for (const auto& [name, each] : entries_)
    if (each->engine) now.emplace(name, each);
  entries_ = std::move(now);
}

/// Counts as one of the model's uses until it is gone, which it has to be without the mutex. Under the mutex.
/// @param of_request else it keeps the model loaded, and is no reason to keep it longer than others
std::shared_ptr<void> model_set::use_of(const std::shared_ptr<entry>& of, bool of_request) {
  ++of->uses;
  if (of_request) of->used = std::chrono::steady_clock::now();
  return {static_cast<void*>(of.get()), [of, of_request, core = core_](void*) {
            const std::lock_guard lock(core->mutex);
            --of->uses;
            if (of_request) of->used = std::chrono::steady_clock::now();
            core->news.notify_all();
          }};
}

std::shared_ptr<const served_model> model_set::served(const std::shared_ptr<token_engine>& engine,
                                                      std::shared_ptr<void> use) {
  return std::make_shared<served_model>(served_model{*engine, *engine->facts(), *engine->words(), std::move(use)});
}

std::shared_ptr<model_set::visit> model_set::ask(const std::optional<std::string>& name) {
  if (only_) return std::shared_ptr<visit>(new visit(*this, name.value_or(std::string())));
  const std::lock_guard lock(core_->mutex);
  if (refuses_) throw api_error(503, "the server is stopping", {}, "stopping", 5);
  if (name && entries_.find(*name) == entries_.end()) refresh();
  std::string names;
  for (const auto& [each, of] : entries_) names += (names.empty() ? "'" : "', '") + printable(each, 60);
  if (names.size() > 240) names = names.substr(0, 236) + " ...";
  const bool one = entries_.size() == 1;
  if (!name && !one)
    throw api_error(400, "model: expected one of " + names + "', found nothing", "model", "model_not_found");
  if (name && entries_.find(*name) == entries_.end() && !(one && any_name_))
    throw api_error(404, "model: expected one of " + names + "', found '" + printable(*name, 60) + "'", "model",
                    "model_not_found");
  if (waiting_ >= most_waiting_)
    throw api_error(
        429,
        "the queue is full: expected at most " + std::to_string(most_waiting_) + " requests that wait for their models",
        {}, "queue_full", 5);
  return std::shared_ptr<visit>(new visit(*this, name && entries_.contains(*name) ? *name : entries_.begin()->first));
}

model_set::visit::~visit() {
  if (!waits_) return;
  const std::lock_guard lock(set_.core_->mutex);
  --set_.waiting_;
}

std::shared_ptr<const served_model> model_set::visit::look() {
  if (set_.only_) {
    const auto& engine = set_.only_->engine;
    if (engine->facts() == nullptr || engine->words() == nullptr)
      throw api_error(503, "the model is being loaded", {}, "loading", 1);
    if (!name_.empty()) require_model(name_, *engine->facts());
    return served(engine, {});
  }
  std::shared_ptr<token_engine> old;  // its thread is waited for without the mutex
  const std::lock_guard lock(set_.core_->mutex);
  if (!std::exchange(waits_, true)) ++set_.waiting_;
  if (set_.ends_) throw api_error(503, "the server is stopping", {}, "stopping", 5);
  const auto at = set_.entries_.find(name_);
  if (at == set_.entries_.end()) throw api_error(404, "model: the file is gone", "model", "model_not_found");
  const std::shared_ptr<entry> of = at->second;
  if (!use_) {
    if (of->leaving) return nullptr;
    if (of->engine && of->uses == 0 && of->engine->status().state == engine_state::failed)
      old = std::exchange(of->engine, nullptr), of->room = 0;
    if (!of->engine) {
      of->engine = set_.make_(of->of, [&set = set_, of](std::uint64_t bytes, std::uint64_t available) {
        set.make_room(of, bytes, available);
      });
      of->engine->start();
    }
    use_ = set_.use_of(of, true);
  }
  const engine_status now = of->engine->status();
  if (now.state == engine_state::failed)
    throw api_error(500, "model: '" + printable(name_, 60) + "' could not be loaded: " + printable(now.what, 300),
                    "model", "model_load_failed");
  if (now.state == engine_state::loading || of->engine->words() == nullptr) return nullptr;
  return served(of->engine, use_);
}

/// Takes the engine of the least recently used model among those without a use. If all are in use, the least used model
/// accepts no further use. Call it with the mutex held. @return nullptr: none
std::shared_ptr<token_engine> model_set::take_least_used(const entry& but) {
  entry *idle = nullptr, *busy = nullptr;
  bool some_leave = false;
  for (const auto& [name, each] : entries_) {
    if (each.get() == &but || !each->engine || each->room == 0) continue;
    const engine_state state = each->engine->status().state;
    if (state == engine_state::loading || state == engine_state::recovering) continue;
    some_leave = some_leave || (each->leaving && each->uses != 0);
    entry*& least = each->uses == 0 ? idle : busy;
    if (least == nullptr || each->used < least->used) least = each.get();
  }
  if (idle == nullptr) {
    if (busy != nullptr && !some_leave) busy->leaving = true;
    return nullptr;
  }
  idle->room = 0;
  idle->leaving = true;  // until its memory is free: requests for it wait
  return std::move(idle->engine);
}

/// On the thread that loads. @throws std::runtime_error: there can be no room; the server stops
void model_set::make_room(const std::shared_ptr<entry>& of, std::uint64_t bytes, std::uint64_t available) {
  std::unique_lock lock(core_->mutex);
  of->room = 0;
  if (budget_ == 0) budget_ = available != 0 ? available - available / 8 : UINT64_MAX;
  if (bytes > budget_)
    throw std::runtime_error("it takes " + bytes_of(bytes) + ", expected at most the " + bytes_of(budget_) +
                             " that all models together may have (--memory)");
  for_room_.push_back(of.get());
  const auto leave = [&] {
    for_room_.erase(std::find(for_room_.begin(), for_room_.end(), of.get()));
    for (const auto& [name, each] : entries_) each->leaving = false;  // the next request that needs room sets it again
    core_->news.notify_all();
  };
  for (;;) {
    if (ends_) {
      leave();
      throw std::runtime_error("the server is stopping");
    }
    std::uint64_t taken = 0;
    for (const auto& [name, each] : entries_) taken += each->room;
    const bool first = for_room_.front() == of.get();
    if (first && bytes <= budget_ - std::min(budget_, taken)) {
      of->room = bytes;
      return leave();
    }
    if (std::shared_ptr<token_engine> out = first ? take_least_used(*of) : nullptr) {
      lock.unlock();
      out.reset();
      lock.lock();
      for (const auto& [name, each] : entries_)
        if (!each->engine) each->leaving = false;
      continue;
    }
    core_->news.wait_for(lock, std::chrono::milliseconds(100));
  }
}

std::vector<listed_model> model_set::list() {
  std::vector<listed_model> out;
  const auto add = [&](const std::shared_ptr<entry>& of) {
    listed_model& next = out.emplace_back();
    next.id = of->of.name, next.path = of->of.path;
    if (of->engine) {
      const engine_status now = of->engine->status();
      next.state = state_name(now.state), next.what = now.what;
      if (of->engine->words() != nullptr && !of->leaving &&
          (now.state == engine_state::ready || now.state == engine_state::recovering || only_))
        next.loaded = served(of->engine, only_ ? nullptr : use_of(of, false));
    }
    if (only_ && next.loaded) next.id = next.loaded->facts.id, next.modified = next.loaded->facts.created;
    if (next.path.empty()) return;
    next.modified = unix_time_of(next.path);
    std::error_code folder;
    if (const auto size = fs::file_size(next.path, folder); !folder) next.file_bytes = size;
  };
  if (only_) {
    add(only_);
    return out;
  }
  const std::lock_guard lock(core_->mutex);
  refresh();
  for (const auto& [name, each] : entries_) add(each);
  return out;
}

std::pair<std::uint64_t, std::uint64_t> model_set::memory() const {
  const std::lock_guard lock(core_->mutex);
  std::uint64_t taken = 0;
  for (const auto& [name, each] : entries_) taken += each->room;
  return {taken, budget_};
}

std::vector<std::shared_ptr<token_engine>> model_set::engines() const {
  std::vector<std::shared_ptr<token_engine>> out;
  if (only_) out.push_back(only_->engine);
  for (const auto& [name, each] : entries_)
    if (each->engine) out.push_back(each->engine);
  return out;
}

// Engines are called without the mutex: they may release uses, which takes it.
void model_set::refuse_more() {
  std::vector<std::shared_ptr<token_engine>> all;
  {
    const std::lock_guard lock(core_->mutex);
    refuses_ = true;
    all = engines();
  }
  for (const auto& each : all) each->refuse_more();
}

void model_set::end_all() {
  std::vector<std::shared_ptr<token_engine>> all;
  {
    const std::lock_guard lock(core_->mutex);
    refuses_ = ends_ = true;
    all = engines();
  }
  core_->news.notify_all();
  for (const auto& each : all) each->end_all();
}

}  // namespace intaglio::serve
