// SPDX-License-Identifier: MIT
#include "rank_job.hpp"

#include <intaglio/core/error.hpp>

#include <utility>

#include "batch_engine.hpp"

#ifdef INTAGLIO_MPI
#include <intaglio/platform/console.hpp>
#include <intaglio/platform/process.hpp>
#include <intaglio/runtime/basic_batch.hpp>
#include <intaglio/runtime/mpi_batch.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "../tool/console.hpp"
#include "../tool/driver_trial.hpp"
#include "../tool/engraved_models.hpp"
#include "../tool/model_file.hpp"
#include "engine_start.hpp"
#include "log.hpp"
#endif

namespace intaglio::serve {

#ifdef INTAGLIO_MPI
namespace {

std::atomic<bool> asked_to_stop{false};
static_assert(std::atomic<bool>::is_always_lock_free);  // a signal's handler sets it
extern "C" {
void note_stop(int) { asked_to_stop = true; }
void stop_by_user_signal(int) { platform::ask_to_stop(); }
}

/// Ends the process where something takes longer than it may, since MPI's own waits have no limit: mpirun then ends the
/// others, stopped ones too.
class watch {
 public:
  watch() : thread_([this] { watch_limits(); }) {}
  ~watch() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  watch(const watch&) = delete;
  watch& operator=(const watch&) = delete;

  /// Starts a time limit now. @param what the event that must happen by then, for the message
  void expect_within(std::chrono::seconds limit, std::string what) {
    const std::lock_guard lock(mutex_);
    due_ = clock::now() + limit, what_ = std::move(what);
  }
  void expect_nothing() {
    const std::lock_guard lock(mutex_);
    due_ = clock::time_point::max();
  }
  /// Once a signal has asked for the end (note_stop). @param limit until the process has to end
  void expect_end_within(std::chrono::seconds limit) {
    const std::lock_guard lock(mutex_);
    end_limit_ = limit;
  }

 private:
  using clock = std::chrono::steady_clock;
  void watch_limits() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, std::chrono::milliseconds(100), [&] { return over_; })) {
      if (asked_to_stop && end_limit_.count() != 0 && due_ == clock::time_point::max()) {
        due_ = clock::now() + end_limit_;
        what_ = "rank 0 has not ended the job " + std::to_string(end_limit_.count()) + " s after a signal asked for it";
      }
      if (clock::now() < due_) continue;
      log_line("error", "ranks_failed", {{"detail", what_}});
      std::_Exit(3);
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  clock::time_point due_ = clock::time_point::max();
  std::chrono::seconds end_limit_{0};
  std::string what_;
  bool over_ = false;
  std::thread thread_;  // the last: it uses all of the above
};

/// What ranks exchange before they load.
struct rank_facts {
  std::array<char, 200> device{};
};

std::string layers_text(const plan::stage& of) {
  return "layers " + std::to_string(of.layers().first) + " to " + std::to_string(of.layers().end - 1) + ", " +
         gpu::bytes_text(runtime::needed_memory(of.table()).total());
}
void log_stage(const plan::stage& of, const gpu::device& on) {
  log_line("info", "stage", {{"detail", layers_text(of) + ", on " + on.label()}});
}

}  // namespace

struct rank_job::parts {
  rank_limits limits;
  watch over{};
  bool has_joined = false;  ///< rank 0 has its batch, whose end ends the others
};

rank_job::rank_job(const rank_limits& limits) : parts_(std::make_unique<parts>(limits)) {
  parts_->over.expect_within(
      limits.answer, "MPI_Init has waited " + std::to_string(limits.answer.count()) + " s: some ranks have not begun");
  int threads = MPI_THREAD_SINGLE;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &threads);
  parts_->over.expect_nothing();
  const mpi_ranks ranks;
  rank_ = ranks.rank(), size_ = ranks.size();
  if (size_ < 2) {
    MPI_Finalize();
    throw argument_error("--mpi", "two ranks or more: mpirun -n 2 intaglio-serve --mpi", "one");
  }
  set_log_rank(rank_);
  if (threads < MPI_THREAD_SERIALIZED)
    throw device_error("MPI", "begin", "expected one that threads may call in turn, found one for a single thread");
  char host[MPI_MAX_PROCESSOR_NAME] = {};
  int length = 0;
  MPI_Get_processor_name(host, &length);
  log_line("info", "rank",
           {{"ranks", std::int64_t{size_}},
            {"process", std::int64_t{platform::process_id()}},
            {"host", std::string(host, static_cast<std::size_t>(length))}});
  if (rank_ == 0) {
    std::signal(SIGUSR1, &stop_by_user_signal);
    return;
  }
  for (const int each : {SIGTERM, SIGINT, SIGUSR1}) std::signal(each, &note_stop);
  parts_->over.expect_end_within(limits.drain + 3 * limits.answer);
}
rank_job::~rank_job() = default;

void rank_job::meet(const gpu::device& on) {
  const mpi_ranks ranks;
  rank_facts own;
  const std::string label = on.label();
  std::copy_n(label.begin(), std::min(label.size(), own.device.size() - 1), own.device.begin());
  const std::vector<rank_facts> all = ranks.of_stages(own, runtime::loading(parts_->limits.answer));
  devices_.clear();
  for (std::size_t stage = 0; stage < all.size(); ++stage)
    devices_ += (stage == 0 ? "" : ", ") + std::string(all[stage].device.data()) + " (rank " +
                std::to_string(stage + 1 == all.size() ? 0 : stage + 1) + ')';
}

basic_batch rank_job::batch(const gpu::device& on, std::span<const plan::table* const> tables,
                            const io::checkpoint& from, const session_options& options,
                            const std::vector<std::uint32_t>& after) {
  meet(on);
  basic_batch out =
      mpi_batch(mpi_ranks(), on, tables, from, options, {after, &tool::stream_read_rate}, parts_->limits.answer,
                &runtime::modules_of<>, [&](const plan::stage& of) { log_stage(of, on); });
  parts_->has_joined = true;
  return out;
}

void rank_job::serve_stage(const engine_options& wanted) {
  tool::set_quiet();  // warnings are rank 0's
  tool::model_options opened{wanted.model, wanted.i2s_layout};
  opened.lora = wanted.lora;
  tool::load_model(opened, [&](const io::checkpoint& checkpoint) {
    const tool::engraved_model& plans = batch_plans_of(checkpoint, wanted, {});
    const gpu::device on(gpu::device_options{.selector = wanted.device});
    tool::try_driver(on);
    meet(on);
    const std::array<const plan::table*, 2> tables{&plans.cpu, &plans.portable};
    serve_mpi_batch_stage(mpi_ranks(), on, tables, checkpoint, {}, {wanted.cut, &tool::stream_read_rate},
                          parts_->limits.answer, &runtime::modules_of<>,
                          [&](const plan::stage& of) { log_stage(of, on); });
  });
}

int rank_job::end(int code) {
  const mpi_ranks ranks;
  const std::string limit = std::to_string(parts_->limits.answer.count()) + " s";
  parts_->over.expect_within(2 * parts_->limits.answer, "the ranks have not ended within two times " + limit);
  if (code == 0 && rank_ == 0 && !parts_->has_joined) {
    log_line("info", "ranks_stopped", {{"detail", "the ranks are ended while they load"}});
    end_mpi_job(code);
  }
  if (code == 0 && !ranks.all_come(parts_->limits.answer)) {
    log_line("error", "ranks_failed", {{"detail", "some ranks have not ended within " + limit}});
    code = 3;
  }
  if (code != 0) {
    log_line("error", "ranks_failed",
             {{"detail", "rank " + std::to_string(rank_) + " ends the job with exit code " + std::to_string(code)}});
    end_mpi_job(code);
  }
  MPI_Finalize();
  parts_->over.expect_nothing();
  return code;
}
#else
struct rank_job::parts {};
rank_job::rank_job(const rank_limits&) {
  throw argument_error("--mpi", "a server that is built with INTAGLIO_MPI=ON (docs/serving_at_scale.md)",
                       "one without");
}
rank_job::~rank_job() = default;
void rank_job::meet(const gpu::device&) {}
basic_batch rank_job::batch(const gpu::device&, std::span<const plan::table* const>, const io::checkpoint&,
                            const session_options&, const std::vector<std::uint32_t>&) {
  throw argument_error("--mpi", "a server that is built with INTAGLIO_MPI=ON", "one without");
}
void rank_job::serve_stage(const engine_options&) {}
int rank_job::end(int code) { return code; }
#endif

}  // namespace intaglio::serve
