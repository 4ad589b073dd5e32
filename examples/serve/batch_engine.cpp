// SPDX-License-Identifier: MIT
#include "batch_engine.hpp"

#include <intaglio/runtime/basic_batch.hpp>
#include <intaglio/runtime/basic_session.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <filesystem>
#include <mutex>
#include <thread>

#include "../tool/console.hpp"
#include "../tool/download.hpp"
#include "../tool/driver_trial.hpp"
#include "../tool/engraved_models.hpp"
#include "../tool/known_models.hpp"
#include "../tool/model_file.hpp"
#include "../tool/plan_page.hpp"
#include "../tool/template_engine.hpp"
#include "batch_shape.hpp"
#include "between_steps.hpp"
#include "draft_source.hpp"
#include "engine_start.hpp"
#include "seat.hpp"

namespace intaglio::serve {
namespace {

class batch_engine : public token_engine {
 public:
  batch_engine(const engine_options& options, metrics& counts) : options_(options), counts_(counts) {}
  ~batch_engine() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    news_.notify_all();
    if (!thread_.joinable()) return;
    if (downloads()) tool::graceful_stop::ask(SIGTERM);
    thread_.join();
    if (downloads()) tool::watch_progress({});
  }

  void start() override {
    if (downloads())
      tool::watch_progress([this](std::string_view label, double share, std::string_view detail) {
        if (label == "downloading")
          set_status(engine_state::loading, "downloading the model: " + std::string(detail), share);
      });
    thread_ = std::thread([this] { serve_requests(); });
  }
  engine_status status() const override {
    const std::lock_guard lock(status_mutex_);
    return status_;
  }
  const language* words() const override { return words_ready_ ? words_.get() : nullptr; }
  const model_facts* facts() const override { return words_ready_ ? &facts_ : nullptr; }
  const engine_gauges& gauges() const override { return gauges_; }
  std::string plan_page() const override {
    const std::lock_guard lock(status_mutex_);
    return plan_page_;
  }
  std::string device() const override {
    const std::lock_guard lock(status_mutex_);
    return device_name_;
  }

  void submit(std::vector<std::shared_ptr<generation>> list) override {
    const std::lock_guard lock(mutex_);
    require_room(list.size());
    require_decoder();
    waiting_.insert(waiting_.end(), list.begin(), list.end());
    gauges_.waiting = waiting_.size();
    news_.notify_all();
  }

  void predict(question asked) override {
    const std::lock_guard lock(mutex_);
    require_room(1);
    require_decoder();
    questions_.push_back(std::make_shared<question>(std::move(asked)));
    news_.notify_all();
  }

  void embed(embedding asked) override {
    const std::lock_guard lock(mutex_);
    require_room(1);
    if (!asked.seconds.empty() && !scores_)
      throw api_error(
          501,
          "this model has no head that scores a query and a document together; /v1/embeddings gives vectors "
          "to compare",
          {}, "unsupported_endpoint");
    between_.add(std::move(asked));
    news_.notify_all();
  }
  void order(slot_order asked) override {
    const std::lock_guard lock(mutex_);
    require_room(1);
    require_decoder();
    between_.add(std::move(asked));
    news_.notify_all();
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
  bool downloads() const { return tool::is_url(options_.model); }
  /// Under the mutex.
  void require_room(std::size_t more) const {
    if (refuses_) throw api_error(503, "the server is stopping", {}, "stopping", 5);
    const engine_state state = status().state;
    if (state == engine_state::loading) throw api_error(503, "the model is being loaded", {}, "loading", 1);
    if (state == engine_state::failed)
      throw api_error(503, "the device or the model failed; /health says why", {}, "failed", 30);
    const std::uint64_t slot_count = std::max<std::uint64_t>(gauges_.slot_count, 1), running = gauges_.running,
                        free_slots =
                            slot_count -
                            std::min(running, slot_count);  // who waits for the end of a step alone needs no room
    if (waiting_.size() + questions_.size() + between_.size() + more > options_.queue + free_slots)
      throw api_error(
          429, "the queue is full: expected at most " + std::to_string(options_.queue) + " generations that wait", {},
          "queue_full",
          std::clamp(static_cast<unsigned>(static_cast<double>(waiting_.size() / slot_count) * seconds_each_), 1u,
                     60u));
  }
  /// Once the model is loaded.
  void require_decoder() const {
    if (encodes_)
      throw api_error(
          400,
          "model: expected a decoder, whose texts have a next token, found an encoder: /v1/embeddings gives "
          "its vectors",
          "model", "unsupported_model");
  }
  void log(const std::string& event, const std::string& text) const {
    if (options_.log) options_.log(event, text);
  }
  void set_status(engine_state state, const std::string& what = {}, double loaded = 0) {
    const std::lock_guard lock(status_mutex_);
    status_ = {state, loaded, what};
    gauges_.ready = state == engine_state::ready ? 1 : 0;
  }

  void serve_requests() {
    if (!try_to_load()) return wait_for_the_end();
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        news_.wait(lock, [&] {
          return stopping_ || ends_ || !waiting_.empty() || !questions_.empty() || between_.size() != 0 ||
                 !seats_.empty() || !returning_.empty() || some_have_drawn();
        });
        if (stopping_ || ends_) break;
        std::erase_if(waiting_, [](const auto& each) { return each->cancelled(); });
      }
      try {
        look_after_those_away();
        seat_those_who_wait();
        rest(step() + between_.embed_one([this](const auto& of, std::size_t i) { return vector_of(of, i); }));
        if (batch_) between_.do_orders(*batch_, [this](auto& list) { add_running(list); });
      } catch (const std::exception& problem) {
        fail_all("the generation failed on the device");
        recover(problem.what());
      }
      update_gauges();
    }
    fail_all("the server is stopping");
    update_gauges();
    wait_for_the_end();
  }

  void update_gauges() {
    gauges_.running = seats_.size() + away_.size() + returning_.size();
    gauges_.free_pages = batch_ ? batch_->free_pages() : 0;
    gauges_.waiting_for_pages = batch_ ? batch_->waiting_for_pages() : 0;
    const draft_counts drafts = batch_ ? batch_->drafts() : draft_counts{};
    gauges_.drafted = drafts.drafted, gauges_.accepted = drafts.accepted;
    const auto now = steady::now();
    const bool due = now >= next_memory_, rests = seats_.empty() && away_.empty() && returning_.empty();
    if (due)
      update_memory_gauges(), next_memory_ = now + std::chrono::milliseconds(500);  // drivers take long to report it
    if (batch_ && (due || rests))
      gauges_.set_kernels(kernel_times_of(*batch_));  // in a rest nothing else would, until the next request
  }
  void update_memory_gauges() {
    const gpu::device* const on = batch_ ? &batch_->device() : encoder_ ? &encoder_->device() : nullptr;
    gauges_.device_free_bytes = on != nullptr ? runtime::available_memory(*on) : 0;
    gauges_.device_used_bytes = on != nullptr ? runtime::used_memory(*on) : 0;
  }

  void fail_all(const std::string& why) {
    std::vector<std::shared_ptr<form_draws::draw>> drawing;
    for (const seat& each : away_) each.who->cancel(), drawing.push_back(each.drawing);
    for (const seat& each : seats_)
      if (each.drawing) each.who->cancel(), drawing.push_back(each.drawing);
    draws_.wait(drawing, std::chrono::hours(1));  // a cancelled draw ends at the next byte
    seats_.insert(seats_.end(), away_.begin(), away_.end());
    seats_.insert(seats_.end(), returning_.begin(), returning_.end());
    for (const seat& each : seats_) fail(each, why);
    seats_.clear(), away_.clear(), returning_.clear();
  }

  bool some_have_drawn() const {
    return std::any_of(away_.begin(), away_.end(), [&](const seat& each) { return draws_.done(*each.drawing); });
  }
  /// Returns sessions that drew outside of the batch with their tokens, or ends them.
  void look_after_those_away() {
    std::erase_if(returning_, [](const seat& each) { return each.who->cancelled(); });
    std::erase_if(away_, [&](seat& each) {
      if (!draws_.done(*each.drawing)) return false;
      if (!each.who->cancelled() && take_drawn(each))
        each.shorten(facts_.context), returning_.push_back(std::move(each));
      return true;
    });
  }

  /// Starts waiting work in order while there are slots and pages; work that had a slot before comes first.
  void seat_those_who_wait() {
    while (!returning_.empty()) {
      const auto& who = *returning_.front().who;
      const batch_options options = options_of(who, returning_.front().history.size());
      if (!batch_->fits(returning_.front().history, options.max_tokens, who.adapter())) return;
      seat next = std::move(returning_.front());
      returning_.pop_front();
      const std::vector<std::int32_t> all = next.history;
      sit(std::move(next), all, options);
    }
    const std::lock_guard lock(mutex_);
    for (; !questions_.empty() && batch_->fits(questions_.front()->prompt, 1); questions_.pop_front()) {
      const auto& asked = questions_.front();
      sit({.asked = asked}, asked->prompt, {.max_tokens = 1, .keep_logits = true});
    }
    for (; questions_.empty() && !waiting_.empty(); waiting_.pop_front()) {
      const auto& who = waiting_.front();
      const batch_options options = options_of(*who, who->prompt().size());
      if (!batch_->fits(who->prompt(), options.max_tokens, who->adapter())) break;
      sit(first_seat_of(who), who->prompt(), options);
    }
    gauges_.waiting = waiting_.size();
    gauges_.running = seats_.size() + away_.size() + returning_.size();
  }
  batch_options options_of(const generation& who, std::size_t tokens) const {
    return batch_options_of(who, tokens, facts_.context, std::min(options_.prompt_lookup, batch_->most_drafts()),
                            most_drafted());
  }
  void sit(seat next, std::span<const std::int32_t> prompt, const batch_options& options) {
    try {
      if (next.who) next.drafts_before = {next.who->drafted, next.who->accepted};
      next.handle = batch_->join(prompt, options);
      seats_.push_back(std::move(next));
    } catch (const argument_error& refused) {
      if (next.who) next.who->fail(refused.what());
      if (next.asked) next.asked->refuse(api_error(400, refused.what()));
    } catch (...) {
      seats_.push_back(std::move(next));  // it ends with the others
      throw;
    }
  }

  /// Number of tokens of a step: after each token the engine looks after sessions that draw on the host or wait.
  std::uint32_t tokens_of_step() {
    for (const seat& each : seats_)
      if (each.keeps_logits()) return 1;
    const std::lock_guard lock(mutex_);
    if (!waiting_.empty() || !questions_.empty() || step_seconds_ <= 0) return 1;
    constexpr double wanted_seconds = 0.01;
    return static_cast<std::uint32_t>(std::clamp(wanted_seconds / step_seconds_, 1.0, 8.0));
  }

  /// Leaves the device idle for its share behind `busy` seconds of work.
  void rest(double busy) {
    if (options_.gpu_idle <= 0 || busy <= 0) return;
    std::unique_lock lock(mutex_);
    news_.wait_for(lock, std::chrono::duration<double>(busy * options_.gpu_idle / (1 - options_.gpu_idle)),
                   [&] { return stopping_ || ends_; });
  }

  /// @return seconds that the device was busy
  double step() {
    std::erase_if(seats_, [&](const seat& each) {
      const bool gone = each.who && each.who->cancelled();
      if (gone) batch_->leave(each.handle);
      return gone;
    });
    if (seats_.empty()) return 0;
    const std::uint32_t tokens = tokens_of_step();
    const auto start = steady::now();
    const std::span<const batch_token> drawn = batch_->step(tokens);
    const double busy = std::chrono::duration<double>(steady::now() - start).count();
    step_seconds_ = busy / tokens;
    counts_.device_busy(busy);
    for (const batch_token& token : drawn) {
      const auto of =
          std::find_if(seats_.begin(), seats_.end(), [&](const seat& each) { return each.handle == token.of; });
      if (of == seats_.end()) continue;  // ended with an earlier token of this step
      if (!token.finite) {
        if (of->drawing) of->who->cancel(), draws_.wait({&of->drawing, 1}, std::chrono::hours(1));
        fail(*of, "the model's numbers at this position are none: this generation has ended, others go on");
        seats_.erase(of);
      } else if (of->asked) {
        of->asked->answer(likeliest(*words_, batch_->logits(token.of), of->asked->top));
        seats_.erase(of);
      } else if (of->who->has_form()) {
        if (of->who->ids().empty()) of->who->cached_tokens = batch_->cached_tokens(token.of);
        draw_in_form(*of, token);
      } else if (!take_all(*of, token)) {
        batch_->leave(token.of);
        seats_.erase(of);
      }
    }
    take_forms();
    return busy;
  }

  std::vector<float> vector_of(const embedding& of, std::size_t which) {
    const std::vector<std::int32_t>& text = of.texts[which];
    if (!of.seconds.empty()) return {encoder_->score(text, of.seconds[which])};
    return encoder_ ? encoder_->embed(text) : batch_->embed(text, {});
  }

  void add_running(std::vector<slot_state>& to) const {
    for (const seat& each : seats_) {
      slot_state& of = to[each.handle.slot];
      of.task = each.handle.number;
      if (!each.who) continue;
      of.drawn = static_cast<std::uint32_t>(each.who->ids().size());
      of.max_tokens = each.who->max_tokens(), of.sampling = each.who->sampling();
      of.drafts = (options_.prompt_lookup != 0 || draft_) && batch_->most_drafts() != 0;
    }
  }
  /// Most drafts by the model of --draft.
  std::uint32_t most_drafted() const { return draft_ ? std::min(options_.draft_max, batch_->most_drafts()) : 0; }

  void draw_in_form(seat& of, const batch_token& token) {
    of.of_device = token.id;
    of.drawing = draws_.start(of.who, batch_->logits(token.of), of.history, token.id);
  }
  /// Draws for sessions whose text follows a form. Each gets a short time; longer draws continue outside of the batch,
  /// which does not wait for them. Tokens behind right drafts are drawn as long as that time lasts.
  void take_forms() {
    const auto end = steady::now() + form_moment;
    for (std::vector<std::shared_ptr<form_draws::draw>> drawing;; drawing.clear()) {
      for (const seat& each : seats_)
        if (each.drawing) drawing.push_back(each.drawing);
      if (drawing.empty()) return;
      draws_.wait(drawing, form_moment);
      take_drawn_forms(end);
    }
  }
  void take_drawn_forms(steady::time_point end) {
    std::erase_if(seats_, [&](seat& each) {
      if (!each.drawing) return false;
      each.count(batch_->drafts(each.handle));
      if (!draws_.done(*each.drawing)) {
        batch_->leave(each.handle);
        away_.push_back(std::move(each));
        return true;
      }
      const bool goes_on = take_drawn(each);
      if (goes_on && !each.shorten(facts_.context)) {
        if (each.history.back() != each.of_device) batch_->set_next(each.handle, each.history.back());
        const auto next = steady::now() < end ? batch_->next_drafted(each.handle) : std::nullopt;
        if (next) draw_in_form(each, *next);
        return false;
      }
      batch_->leave(each.handle);
      if (goes_on) returning_.push_back(std::move(each));
      return true;
    });
  }

  /// @return false: the generation has ended
  bool take_drawn(seat& of) {
    const auto drawn = std::exchange(of.drawing, nullptr);
    if (!drawn->error.empty()) {
      of.who->fail(drawn->error, drawn->status);
      counts_.failed();
      return false;
    }
    of.history.push_back(drawn->id);
    return take_token(of, drawn->id);
  }

  /// One ends with an error.
  void fail(const seat& each, const std::string& why) {
    if (each.who) each.who->fail(why);
    if (each.asked) each.asked->refuse(api_error(503, why, {}, "generation_failed", 1));
    counts_.failed();
  }

  /// With what drafts bring behind a token that the host drew.
  /// @return false: the generation has ended, or waits for a slot to go on
  bool take_all(seat& of, const batch_token& token) {
    for (std::optional<batch_token> next = token; next; next = batch_->next_drafted(token.of))
      if (!take(of, *next)) return false;
    return true;
  }
  /// @return as take_all
  bool take(seat& of, const batch_token& token) {
    generation& who = *of.who;
    if (who.ids().empty()) who.cached_tokens = batch_->cached_tokens(token.of);
    of.count(batch_->drafts(token.of));
    std::int32_t id = token.id;
    if (who.drawn_by_host()) {
      try {
        id = who.draw(batch_->logits(token.of), of.history, token.id);
      } catch (const std::exception& problem) {  // the host's: the device and the others are well
        fail(of, problem.what());
        return false;
      }
    }
    if (!of.history.empty()) of.history.push_back(id);
    if (!take_token(of, id)) return false;
    if (of.shorten(facts_.context)) return returning_.push_back(std::move(of)), false;
    if (id != token.id) batch_->set_next(token.of, id);
    return true;
  }

  /// @return false: the generation has ended
  bool take_token(const seat& of, std::int32_t id) {
    generation& who = *of.who;
    const auto before = who.last_token;
    bool goes_on = false;
    try {
      goes_on = who.take(id);
    } catch (const std::exception& problem) {
      fail(of, problem.what());
      return false;
    }
    if (who.ids().size() > 1) counts_.token(std::chrono::duration<double>(who.last_token - before).count());
    if (goes_on) return true;
    counts_.generated(static_cast<std::uint32_t>(who.prompt().size()), who.cached_tokens,
                      static_cast<std::uint32_t>(who.ids().size()),
                      std::chrono::duration<double>(who.first_token - who.arrived).count());
    seconds_each_ = 0.8 * seconds_each_ + 0.2 * std::chrono::duration<double>(who.last_token - who.arrived).count();
    return false;
  }

  /// Fails all that waits, and whatever still comes in between.
  void wait_for_the_end() {
    std::unique_lock lock(mutex_);
    for (;;) {
      for (const auto& each : waiting_) each->fail("the server is stopping");
      waiting_.clear();
      for (const auto& each : questions_) each->refuse(api_error(503, "the server is stopping", {}, "stopping", 5));
      questions_.clear();
      between_.refuse_all(api_error(503, "the server is stopping", {}, "stopping", 5));
      if (stopping_) return;
      news_.wait(lock);
    }
  }

  bool try_to_load() {
    try {
      load();
      return true;
    } catch (const std::exception& problem) {
      if (must_stop()) return false;
      time_out("load_failed", problem.what());
      return false;
    }
  }
  void time_out(const std::string& event, const std::string& why) {
    set_status(engine_state::failed, why);
    log(event, why);
    if (options_.load_failed) options_.load_failed();
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }

  void load() {
    set_status(status().state, "opening the model");
    tool::set_quiet();  // warnings go to the log
    tool::model_options opened{options_.model, options_.i2s_layout};
    opened.lora = options_.lora;
    io::adapter_set adapters = adapters_of(options_.lora_by_request);
    if (adapters.size() != 0) opened.beside = &adapters;
    tool::load_model(opened, [&](const io::checkpoint& checkpoint) { load(checkpoint, adapters); });
  }

  void load(const io::checkpoint& checkpoint, const io::adapter_set& adapters) {
    const runtime::load_look look = [this] { end_load_if(must_stop()); };
    plans_ = &batch_plans_of(checkpoint, options_, adapters);
    encodes_ = family_of(plans_->config().model_type).encoder;
    if (!words_ready_) look(), set_facts(vocabulary_of(checkpoint), adapters);
    std::optional<draft_source> draft;
    if (!options_.draft.empty()) draft.emplace(options_, words_->tokens, facts_.id, plans_->cpu);
    const std::vector<gpu::device> on = opened_devices(options_, look);
    session_options loading;
    loading.templates = tool::template_engine();
    loading.progress = [&](const load_progress& at) {
      if (!tool::model_arrives())
        set_status(status().state, "weights",
                   at.bytes_total == 0 ? 0 : static_cast<double>(at.bytes_done) / static_cast<double>(at.bytes_total));
      look();
    };
    if (options_.make_room) {
      batch_.reset(), encoder_.reset();
      const auto bytes_of = [](const plan::table& of) { return runtime::needed_memory(of).total(); };
      options_.make_room(std::max(bytes_of(plans_->cpu), bytes_of(plans_->portable)), runtime::available_memory(on));
    }
    const std::array<const plan::table*, 2> tables{&plans_->cpu, &plans_->portable};
    const plan::table& planned = plans_->table(runtime::class_of(on.back()));
    log("loading", facts_.id + " takes " + runtime::need_text(runtime::needed_memory(planned), planned.context));
    const plan::table& table = make_batch(on, tables, checkpoint, loading);
    {
      const std::lock_guard lock(status_mutex_);
      device_name_ = labels_of(on, options_);
      plan_page_ = tool::plan_page(table, facts_.id, {}).text();
    }
    words_ready_ = true;
    gauges_.ranks = options_.ranks == nullptr ? 0 : static_cast<std::uint64_t>(options_.ranks->size());
    gauges_.weights_bytes = table.weight_bytes();
    gauges_.cache_bytes = table.cache_bytes() + table.pool_bytes();
    std::string computed = tool::computed_text(table);
    if (adapters.size() != 0)
      computed += "; " + std::to_string(adapters.size()) + " adapters by request, " + gpu::bytes_text(adapters.bytes());
    if (draft) draft_ = draft->load(batch_ ? &*batch_ : nullptr, loading, gauges_), computed += "; " + draft->summary();
    if (const std::string note = lookup_note(options_, batch_, facts_.id); !note.empty()) log("warning", note);
    gauges_.slot_count = batch_ ? batch_->slot_count() : table.shape.slot_count;
    gauges_.page_size = table.shape.page_size, gauges_.pages = table.shape.pages;
    update_memory_gauges();
    if (batch_)
      gauges_.free_pages = batch_->free_pages(), generate_some(*batch_, draft_ ? most_drafted() : 0, look),
      gauges_.set_kernels(kernel_times_of(*batch_));
    else encoder_->embed(std::array<std::int32_t, 2>{1, 2});
    set_status(engine_state::ready);  // before it is logged: a reader of the log sends requests at once
    log("ready", facts_.id + " on " + device_name_ + ": " + computed);
  }

  /// What of the model needs no device; the plans are chosen.
  void set_facts(const io::vocabulary& vocabulary, const io::adapter_set& adapters) {
    words_ = std::make_unique<language>(vocabulary, plans_->config().vocab_size, tool::template_engine(),
                                        options_.chat_template);
    if (!words_->template_note.empty()) log("warning", words_->template_note);
    facts_ = facts_of(options_, *plans_, adapters);
  }

  /// The batch or, of an encoder, the session in its place.
  const plan::table& make_batch(std::span<const gpu::device> on, std::span<const plan::table* const> tables,
                                const io::checkpoint& checkpoint, const session_options& loading) {
    if (encodes_ && on.size() > 1) throw argument_error("--devices", "one, for an encoder", std::to_string(on.size()));
    if (encodes_) scores_ = encoder_.emplace(on.front(), tables, checkpoint, loading).has_score();
    else batch_.emplace(batch_over(on, tables, checkpoint, loading, options_));
    for (const std::string& each : encoder_ ? encoder_->warnings() : batch_->warnings()) log("warning", each);
    return encoder_ ? encoder_->table() : batch_->table();
  }

  /// A new device and batch, again and again until one works.
  void recover(const std::string& why) {
    if (options_.ranks != nullptr) return time_out("ranks_failed", why);  // the caller of mpirun starts it anew
    counts_.restarted();
    set_status(engine_state::recovering, why);
    log("device_failed", why);
    batch_.reset(), encoder_.reset(), draft_.reset();
    for (std::chrono::milliseconds pause{100};; pause = std::min(pause * 2, std::chrono::milliseconds(10'000))) {
      try {
        return load();
      } catch (const std::exception& problem) { log("recovery_failed", problem.what()); }
      std::unique_lock lock(mutex_);
      if (news_.wait_for(lock, pause, [&] { return stopping_ || ends_; })) return;
    }
  }

  bool must_stop() const {
    const std::lock_guard lock(mutex_);
    return stopping_ || ends_;
  }

  engine_options options_;
  metrics& counts_;
  engine_gauges gauges_;
  const tool::engraved_model* plans_ = nullptr;
  std::unique_ptr<language> words_;
  model_facts facts_;
  std::atomic<bool> words_ready_{false};
  std::optional<basic_batch> batch_;
  std::shared_ptr<draft_model> draft_;
  std::optional<basic_session> encoder_;  ///< in its place, where the model is one
  std::atomic<bool> encodes_{false}, scores_{false};
  static constexpr std::chrono::milliseconds form_moment{10};
  std::vector<seat> seats_, away_;  ///< away: they draw in a form, and have no slot meanwhile
  std::deque<seat> returning_;      ///< have drawn or were shortened, and wait for a slot
  double step_seconds_ = 0;         ///< of a token of the batch, lately
  steady::time_point next_memory_{};
  std::atomic<double> seconds_each_{0.5};  ///< of a generation, lately

  mutable std::mutex status_mutex_;  ///< for facts that are read at any time; never held for long
  engine_status status_;
  std::string plan_page_, device_name_;

  mutable std::mutex mutex_;
  std::condition_variable news_;
  std::deque<std::shared_ptr<generation>> waiting_;
  std::deque<std::shared_ptr<question>> questions_;
  between_steps between_{counts_};
  bool stopping_ = false, refuses_ = false, ends_ = false;
  form_draws draws_{2, [this] {
                      const std::lock_guard lock(mutex_);
                      news_.notify_all();
                    }};
  std::thread thread_;  // the last: it uses all of the above
};

}  // namespace

model_head read_model_head(const engine_options& options) {
  const io::checkpoint file = tool::open_model({options.model, options.i2s_layout});
  return {std::make_unique<language>(vocabulary_of(file), file.config().vocab_size, tool::template_engine(),
                                     options.chat_template),
          options.context != 0 ? options.context : tool::default_context(file.config())};
}

std::unique_ptr<token_engine> make_batch_engine(const engine_options& options, metrics& counts) {
  return std::make_unique<batch_engine>(options, counts);
}

}  // namespace intaglio::serve
