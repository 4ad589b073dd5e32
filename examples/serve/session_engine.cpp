// SPDX-License-Identifier: MIT
#include "session_engine.hpp"

#include <intaglio/runtime/basic_session.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <future>
#include <mutex>
#include <thread>

#include "../tool/console.hpp"
#include "../tool/engraved_models.hpp"
#include "../tool/model_file.hpp"
#include "../tool/plan_page.hpp"
#include "../tool/template_engine.hpp"
#include "api_error.hpp"

namespace intaglio::serve {
namespace {

/// Logits asked for by /v1/infer.
struct question {
  std::vector<std::int32_t> prompt;
  std::uint32_t top;
  std::promise<std::vector<prediction>> answer;
};

class session_engine : public token_engine {
 public:
  session_engine(const engine_options& options, metrics& counts) : options_(options), counts_(counts) {}
  ~session_engine() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    news_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  void start() override {
    thread_ = std::thread([this] { run(); });
  }
  engine_status status() const override {
    const std::lock_guard lock(mutex_);
    return status_;
  }
  const language* words() const override { return words_ready_ ? words_.get() : nullptr; }
  const model_facts* facts() const override { return words_ready_ ? &facts_ : nullptr; }
  std::string plan_page() const override {
    const std::lock_guard lock(mutex_);
    return plan_page_;
  }
  std::string device() const override {
    const std::lock_guard lock(mutex_);
    return device_name_;
  }

  void submit(std::vector<std::shared_ptr<generation>> list) override {
    const std::lock_guard lock(mutex_);
    require_room(list.size());
    waiting_.insert(waiting_.end(), list.begin(), list.end());
    counts_.waiting = waiting_.size();
    news_.notify_all();
  }

  std::vector<prediction> predict(std::span<const std::int32_t> prompt, std::uint32_t top) override {
    const auto asked = std::make_shared<question>(question{{prompt.begin(), prompt.end()}, top, {}});
    std::future<std::vector<prediction>> answer = asked->answer.get_future();
    {
      const std::lock_guard lock(mutex_);
      require_room(1);
      questions_.push_back(asked);
      news_.notify_all();
    }
    return answer.get();
  }

  void refuse_more() override {
    const std::lock_guard lock(mutex_);
    refuses_ = true;
  }
  void end_all() override {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    news_.notify_all();
  }

 private:
  /// Under the mutex.
  void require_room(std::size_t more) const {
    if (refuses_) throw api_error(503, "the server is stopping", {}, "stopping", 5);
    if (status_.state == engine_state::loading) throw api_error(503, "the model is being loaded", {}, "loading", 1);
    if (status_.state == engine_state::failed) throw api_error(503, "the device or the model failed; /health says why", {}, "failed", 30);
    if (waiting_.size() + questions_.size() + more > options_.queue)
      throw api_error(429, "the queue is full: expected at most " + std::to_string(options_.queue) + " generations that wait", {}, "queue_full",
                      std::clamp(static_cast<unsigned>(static_cast<double>(waiting_.size()) * seconds_each_), 1u, 60u));
  }
  void log(const std::string& event, const std::string& text) const {
    if (options_.log) options_.log(event, text);
  }
  void set_status(engine_state state, const std::string& what = {}, double loaded = 0) {
    const std::lock_guard lock(mutex_);
    status_ = {state, loaded, what};
    counts_.ready = state == engine_state::ready;
  }

  void run() {
    if (!try_to_load()) return wait_for_the_end();
    for (;;) {
      std::shared_ptr<generation> next;
      std::shared_ptr<question> asked;
      {
        std::unique_lock lock(mutex_);
        news_.wait(lock, [&] { return stopping_ || ends_ || !waiting_.empty() || !questions_.empty(); });
        if (stopping_ || ends_) break;
        if (!questions_.empty()) {
          asked = questions_.front();
          questions_.pop_front();
        } else {
          next = waiting_.front();
          waiting_.pop_front();
        }
        counts_.waiting = waiting_.size();
        counts_.running = 1;
      }
      try {
        asked ? answer(*asked) : turn_of(next);
      } catch (const argument_error& refused) {
        if (next) next->fail(refused.what());
        if (asked) asked->answer.set_exception(std::make_exception_ptr(api_error(400, refused.what())));
      } catch (const std::exception& problem) {
        if (next) next->fail("the generation failed on the device");
        if (asked) asked->answer.set_exception(std::make_exception_ptr(api_error(503, "the device failed", {}, "generation_failed", 1)));
        recover(problem.what());
      }
      counts_.running = 0;
      counts_.device_free_bytes = session_ ? runtime::available_memory(session_->device()) : 0;
    }
    wait_for_the_end();
  }

  /// Fails all that waits, and whatever still comes in between.
  void wait_for_the_end() {
    std::unique_lock lock(mutex_);
    for (;;) {
      for (const auto& each : waiting_) each->fail("the server is stopping");
      waiting_.clear();
      for (const auto& each : questions_) each->answer.set_exception(std::make_exception_ptr(api_error(503, "the server is stopping", {}, "stopping", 5)));
      questions_.clear();
      if (stopping_) return;
      news_.wait(lock);
    }
  }

  bool try_to_load() {
    try {
      load();
      return true;
    } catch (const std::exception& problem) {
      log("load_failed", problem.what());
      set_status(engine_state::failed, problem.what());
      if (options_.load_failed && !must_stop()) options_.load_failed();
      return false;
    }
  }

  void load() {
    set_status(status().state, "opening the model");
    tool::set_quiet();  // warnings go to the log
    const io::checkpoint checkpoint = tool::open_model({options_.model, options_.i2s_layout});
    plans_ = &tool::engraved_model_of(checkpoint);
    if (!checkpoint.vocabulary())
      throw file_error(checkpoint.path(), std::nullopt, "the model has no tokenizer", "tokenizer.json or tokenizer.model beside the weights", "none");
    if (!words_) {
      words_ = std::make_unique<language>(*checkpoint.vocabulary(), plans_->config().vocab_size, tool::template_engine());
      facts_.id = options_.name.empty() ? std::string(plans_->name) : options_.name;
      facts_.aliases = options_.aliases;
      facts_.vocab_size = plans_->config().vocab_size;
      facts_.context = plans_->cpu.context;
      facts_.created = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
    }
    gpu::device_options device_options;
    device_options.selector = options_.device;
    const gpu::device device(device_options);
    if (const std::string note = device.note(); !note.empty()) log("device", note);
    session_options loading;
    loading.templates = tool::template_engine();
    loading.progress = [&](const load_progress& at) {
      set_status(status().state, "weights", at.bytes_total == 0 ? 0 : static_cast<double>(at.bytes_done) / static_cast<double>(at.bytes_total));
      const std::lock_guard lock(mutex_);
      if (stopping_) throw std::runtime_error("stopped while the model was loaded");
    };
    const std::array<const plan::table*, 2> tables{&plans_->cpu, &plans_->portable};
    session_.emplace(device, tables, checkpoint, loading);
    for (const std::string& each : session_->warnings()) log("warning", each);
    const plan::table& table = session_->table();
    {
      const std::lock_guard lock(mutex_);
      device_name_ = device.label();
      plan_page_ = tool::plan_page(table, facts_.id, {}).text();
    }
    words_ready_ = true;
    counts_.weights_bytes = table.weight_bytes();
    counts_.cache_bytes = table.cache_bytes();
    counts_.device_free_bytes = runtime::available_memory(device);
    // Ready is who has generated: compiles what is compiled on first use, too.
    const std::array<std::int32_t, 2> any{static_cast<std::int32_t>(facts_.vocab_size / 2), 1};
    const auto warm = session_->generate(any, {.max_tokens = 2, .stop_at_end = false});
    if (warm.ids.size() != 2) throw device_error(device.label(), "generate", "expected 2 tokens, found " + std::to_string(warm.ids.size()));
    session_->reset();
    log("ready", facts_.id + " on " + device.label());
    set_status(engine_state::ready);
  }

  /// A new device and session, again and again until one works.
  void recover(const std::string& why) {
    log("device_failed", why);
    counts_.restarted();
    set_status(engine_state::recovering, why);
    session_.reset();
    for (std::chrono::milliseconds pause{100};; pause = std::min(pause * 2, std::chrono::milliseconds(10'000))) {
      try {
        return load();
      } catch (const std::exception& problem) {
        log("recovery_failed", problem.what());
      }
      std::unique_lock lock(mutex_);
      if (news_.wait_for(lock, pause, [&] { return stopping_ || ends_; })) return;
    }
  }

  bool must_stop() const {
    const std::lock_guard lock(mutex_);
    return stopping_ || ends_;
  }
  /// Whether the turn is over.
  bool is_over(const generation& of, steady::time_point until) const {
    if (of.cancelled() || must_stop()) return true;
    if (steady::now() < until) return false;
    const std::lock_guard lock(mutex_);
    return !waiting_.empty();
  }

  void turn_of(const std::shared_ptr<generation>& next) {
    if (!next->cancelled()) take_turn(*next);
    if (const auto& ids = next->ids(); next->done() && !ids.empty()) {
      const double span = std::chrono::duration<double>(next->last_token - next->first_token).count();
      counts_.generated(static_cast<std::uint32_t>(next->prompt().size()), next->cached_tokens, static_cast<std::uint32_t>(ids.size()),
                        std::chrono::duration<double>(next->first_token - next->arrived).count(), ids.size() > 1 ? span / static_cast<double>(ids.size() - 1) : 0);
      seconds_each_ = 0.8 * seconds_each_ + 0.2 * std::chrono::duration<double>(next->last_token - next->arrived).count();
    } else if (must_stop()) {
      next->fail("the server is stopping");
    } else if (!next->cancelled()) {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(next);
      counts_.waiting = waiting_.size();
    }
  }

  void take_turn(generation& of) {
    const auto start = steady::now();
    std::vector<std::int32_t> all(of.prompt());
    all.insert(all.end(), of.ids().begin(), of.ids().end());
    const std::uint32_t known = feed(std::span(all).first(all.size() - (of.drawn_by_host() ? 1 : 0)), of);
    if (of.ids().empty()) of.cached_tokens = std::min<std::uint32_t>(known, static_cast<std::uint32_t>(of.prompt().size() - 1));
    if (of.cancelled() || must_stop()) return;
    // What it cost to come to its turn is worth a longer one, so that most of the time goes into new tokens.
    const auto begun = steady::now();
    const auto until = begun + std::max<steady::duration>(options_.slice, 3 * (begun - start));
    if (of.drawn_by_host()) return draw_on_host(of, all, until);
    generate_options wanted;
    const sampling_options& s = of.sampling();
    wanted.temperature = s.temperature;
    wanted.top_k = s.top_k;
    wanted.top_p = s.top_p;
    wanted.min_p = s.min_p;
    wanted.repeat_penalty = s.repeat_penalty;
    wanted.repeat_last_n = s.repeat_last_n;
    wanted.seed = s.seed;
    wanted.max_tokens = of.max_tokens() - static_cast<std::uint32_t>(of.ids().size());
    text_stream stream = session_->begin(wanted);
    for (std::size_t taken = 0;;) {
      const bool more = stream.next();
      const auto& ids = stream.result().ids;
      bool goes_on = true;
      while (goes_on && taken < ids.size()) goes_on = of.take(ids[taken++]);
      if (!goes_on || !more || is_over(of, until)) return stream.cancel();
    }
  }

  void draw_on_host(generation& of, std::vector<std::int32_t>& all, steady::time_point until) {
    for (;;) {
      const std::array last{all.back()};
      const logits_result found = session_->logits(last);
      all.push_back(of.draw(found.logits, session_->history()));
      if (!of.take(all.back()) || is_over(of, until)) return;
    }
  }

  /// Makes `ids` the history, fed but for the last one, and gives up early where nobody waits any more.
  /// @return tokens that were there already
  std::uint32_t feed(std::span<const std::int32_t> ids, const generation& of) {
    if (ids.empty()) return session_->reset(), 0;
    const auto& history = session_->history();
    const auto same = static_cast<std::size_t>(std::mismatch(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(std::min(ids.size(), history.size())), history.begin()).first - ids.begin());
    const auto kept = session_->executor().kept(static_cast<std::uint32_t>(same));
    const std::size_t step = session_->table().prefill.max_tokens;
    std::size_t at = std::max<std::size_t>(same, 1);
    session_->prompt(ids.first(at));
    while (at < ids.size() && !of.cancelled() && !must_stop()) {
      const std::size_t count = std::min(step, ids.size() - at);
      session_->prefill(ids.subspan(at, count));
      at += count;
    }
    return kept;
  }

  void answer(question& asked) {
    const std::span<const std::int32_t> ids(asked.prompt);
    if (ids.size() > 1) session_->prompt(ids.first(ids.size() - 1));
    else session_->reset();
    const logits_result found = session_->logits(ids.last(1));
    const double all = log_sum_exp(found.logits);
    std::vector<std::int32_t> order(std::min<std::size_t>(found.logits.size(), words_->tokens.size()));
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
    const auto count = static_cast<std::ptrdiff_t>(std::min<std::size_t>(asked.top, order.size()));
    std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](std::int32_t a, std::int32_t b) {
      const float x = found.logits[static_cast<std::size_t>(a)], y = found.logits[static_cast<std::size_t>(b)];
      return x != y ? x > y : a < b;
    });
    std::vector<prediction> out;
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      const std::int32_t id = order[static_cast<std::size_t>(i)];
      out.push_back({std::string(words_->tokens.piece(id)), std::exp(found.logits[static_cast<std::size_t>(id)] - all)});
    }
    asked.answer.set_value(std::move(out));
  }

  engine_options options_;
  metrics& counts_;
  const tool::engraved_model* plans_ = nullptr;
  std::unique_ptr<language> words_;
  model_facts facts_;
  std::atomic<bool> words_ready_{false};
  std::optional<basic_session> session_;
  std::atomic<double> seconds_each_{0.5};  ///< of a generation, lately

  mutable std::mutex mutex_;
  std::condition_variable news_;
  engine_status status_;
  std::deque<std::shared_ptr<generation>> waiting_;
  std::deque<std::shared_ptr<question>> questions_;
  std::string plan_page_, device_name_;
  bool stopping_ = false, refuses_ = false, ends_ = false;
  std::thread thread_;  // the last: it uses all of the above
};

}  // namespace

std::unique_ptr<token_engine> make_session_engine(const engine_options& options, metrics& counts) { return std::make_unique<session_engine>(options, counts); }

}  // namespace intaglio::serve
