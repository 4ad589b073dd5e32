// SPDX-License-Identifier: MIT
#include "batch_engine.hpp"

#include <intaglio/runtime/basic_batch.hpp>
#include <intaglio/runtime/basic_session.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
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
#include "batch_seats.hpp"
#include "batch_shape.hpp"
#include "draft_source.hpp"
#include "engine_start.hpp"
#include "request_queue.hpp"

namespace intaglio::serve {
namespace {

class batch_engine : public token_engine {
 public:
  batch_engine(const engine_options& options, metrics& counts)
      : options_(options), counts_(counts), queue_(options.queue, counts, gauges_), seats_(queue_, counts, gauges_) {}
  ~batch_engine() override {
    queue_.stop();
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

  void submit(std::vector<std::shared_ptr<generation>> list) override { queue_.add(list, now()); }
  void predict(question asked) override { queue_.add(std::move(asked), now()); }
  void embed(embedding asked) override { queue_.add(std::move(asked), now()); }
  void order(slot_order asked) override { queue_.add(std::move(asked), now()); }
  void refuse_more() override { queue_.refuse_more(); }
  void end_all() override { queue_.end_all(); }

 private:
  bool downloads() const { return tool::is_url(options_.model); }
  engine_now now() const { return {status().state, encodes_, scores_}; }
  void log(const std::string& event, const std::string& text) const {
    if (options_.log) options_.log(event, text);
  }
  void set_status(engine_state state, const std::string& what = {}, double loaded = 0) {
    const std::lock_guard lock(status_mutex_);
    status_ = {state, loaded, what};
    gauges_.ready = state == engine_state::ready ? 1 : 0;
  }

  void serve_requests() {
    if (!try_to_load()) return queue_.fail_until_stopped();
    while (queue_.wait_for_work([this] { return seats_.busy(); })) {
      try {
        seats_.look_after_those_away();
        seats_.seat_those_who_wait();
        rest(seats_.step() +
             queue_.between().embed_one([this](const auto& of, std::size_t i) { return vector_of(of, i); }));
        if (batch_) queue_.between().do_orders(*batch_, [this](auto& list) { seats_.add_running(list); });
      } catch (const std::exception& problem) {
        seats_.fail_all("the generation failed on the device");
        recover(problem.what());
      }
      update_gauges();
    }
    seats_.fail_all("the server is stopping");
    update_gauges();
    queue_.fail_until_stopped();
  }

  void update_gauges() {
    gauges_.running = seats_.size();
    gauges_.free_pages = batch_ ? batch_->free_pages() : 0;
    gauges_.waiting_for_pages = batch_ ? batch_->waiting_for_pages() : 0;
    const draft_counts drafts = batch_ ? batch_->drafts() : draft_counts{};
    gauges_.drafted = drafts.drafted, gauges_.accepted = drafts.accepted;
    const auto at = steady::now();
    const bool due = at >= next_memory_;
    if (due)
      update_memory_gauges(), next_memory_ = at + std::chrono::milliseconds(500);  // drivers take long to report it
    if (batch_ && (due || seats_.size() == 0))
      gauges_.set_kernels(kernel_times_of(*batch_));  // in a rest nothing else would, until the next request
  }
  void update_memory_gauges() {
    const gpu::device* const on = batch_ ? &batch_->device() : encoder_ ? &encoder_->device() : nullptr;
    gauges_.device_free_bytes = on != nullptr ? runtime::available_memory(*on) : 0;
    gauges_.device_used_bytes = on != nullptr ? runtime::used_memory(*on) : 0;
  }

  /// Leaves the device idle for its share after `busy` seconds of work.
  void rest(double busy) {
    if (options_.gpu_idle <= 0 || busy <= 0) return;
    queue_.ends_within(std::chrono::duration<double>(busy * options_.gpu_idle / (1 - options_.gpu_idle)));
  }

  std::vector<float> vector_of(const embedding& of, std::size_t which) {
    const std::vector<std::int32_t>& text = of.texts[which];
    if (!of.seconds.empty()) return {encoder_->score(text, of.seconds[which])};
    return encoder_ ? encoder_->embed(text) : batch_->embed(text, {});
  }

  /// Most drafts by the model of --draft.
  std::uint32_t most_drafted() const { return draft_ ? std::min(options_.draft_max, batch_->most_drafts()) : 0; }

  bool try_to_load() {
    try {
      load();
      return true;
    } catch (const std::exception& problem) {
      if (queue_.must_stop()) return false;
      time_out("load_failed", problem.what());
      return false;
    }
  }
  void time_out(const std::string& event, const std::string& why) {
    set_status(engine_state::failed, why);
    log(event, why);
    if (options_.load_failed) options_.load_failed();
    queue_.end_all();
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
    const runtime::load_look look = [this] { end_load_if(queue_.must_stop()); };
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
    if (batch_) {
      gauges_.free_pages = batch_->free_pages();
      generate_some(*batch_, most_drafted(), look);
      gauges_.set_kernels(kernel_times_of(*batch_));
      seats_.use({.batch = &*batch_,
                  .words = words_.get(),
                  .context = facts_.context,
                  .lookup = std::min(options_.prompt_lookup, batch_->most_drafts()),
                  .drafted = most_drafted()});
    } else encoder_->embed(std::array<std::int32_t, 2>{1, 2});
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

  /// The batch or, of an encoder, a session.
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
    seats_.use({});
    batch_.reset(), encoder_.reset(), draft_.reset();
    for (std::chrono::milliseconds pause{100};; pause = std::min(pause * 2, std::chrono::milliseconds(10'000))) {
      try {
        return load();
      } catch (const std::exception& problem) { log("recovery_failed", problem.what()); }
      if (queue_.ends_within(pause)) return;
    }
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
  std::optional<basic_session> encoder_;  ///< instead of a batch, where the model is one
  std::atomic<bool> encodes_{false}, scores_{false};
  steady::time_point next_memory_{};

  mutable std::mutex status_mutex_;  ///< for facts that are read at any time; never held for long
  engine_status status_;
  std::string plan_page_, device_name_;

  request_queue queue_;
  batch_seats seats_;   // after the queue, which its draws wake
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
