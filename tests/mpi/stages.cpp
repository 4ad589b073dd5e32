// SPDX-License-Identifier: MIT
// A model over the ranks of a job: `mpirun -n 3 stages MODEL CACHE` compares logits and tokens of a session and of
// sessions together with the model whole, to the bit. `stages MODEL CACHE rates` cuts over ranks whose devices differ.
// `stages MODEL CACHE die|stop|lose|fill RANK session|batch load|prompt|decode` kills or stops a rank in that while, or
// its device is lost or has no memory: the job has to end. So it does where rank 1 has sent the head of a message and
// stops before its rows: `stages MODEL CACHE stop 1 session rows`.
#include "intaglio/runtime/mpi_stages.hpp"

#include <unistd.h>

#include <array>
#include <csignal>  // kill, of POSIX
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include "gpu/fault_shim.hpp"
#include "intaglio/families/file_types.hpp"
#include "intaglio/runtime/basic_batch.hpp"
#include "intaglio/runtime/basic_session.hpp"
#include "intaglio/runtime/mpi_batch.hpp"

using namespace intaglio;

namespace {

void expect(bool right, const char* what) {
  if (right) return;
  std::fprintf(stderr, "expected %s\n", what);
  end_mpi_job(1);
}

constexpr sampling_options some_draws{.temperature = 0.9f, .top_k = 40, .repeat_penalty = 1.3f, .seed = 5};
std::vector<std::int32_t> some_ids(std::int32_t count, std::int32_t start) {
  std::vector<std::int32_t> out;
  for (std::int32_t i = start; i < start + count; ++i) out.push_back((i * i * 7 + 3 * i + 5) % 4000);
  return out;
}

struct words {
  std::vector<float> logits;
  std::vector<std::int32_t> greedy, drawn;
  bool operator==(const words&) const = default;
};
words words_of(basic_session& of) {
  const auto ids = some_ids(70, 0);
  words out;
  out.logits = of.logits(std::span(ids).first(40)).logits;
  of.reset();
  out.greedy = of.generate(ids, {.max_tokens = 12, .stop_at_end = false}).ids;
  out.drawn = of.generate(std::span(ids).first(30), {.temperature = some_draws.temperature,
                                                     .top_k = some_draws.top_k,
                                                     .repeat_penalty = some_draws.repeat_penalty,
                                                     .seed = some_draws.seed,
                                                     .max_tokens = 12,
                                                     .stop_at_end = false})
                  .ids;
  return out;
}
/// The words of three sessions together, whose prompts take several chunks: one is greedy, one samples, one keeps its
/// logits.
words words_of(basic_batch& of) {
  words out;
  const std::array who{of.join(some_ids(90, 0), {.max_tokens = 12}),
                       of.join(some_ids(400, 7), {.sampling = some_draws, .max_tokens = 12}),
                       of.join(some_ids(20, 50), {.max_tokens = 12, .keep_logits = true})};
  for (int steps = 0; of.active() != 0 && steps < 100; ++steps)
    for (const batch_token& each : of.step()) {
      if (each.of == who[1]) out.drawn.push_back(each.id);
      else out.greedy.push_back(each.id);
      if (each.of != who[2]) continue;
      const auto logits = of.logits(each.of);
      out.logits.insert(out.logits.end(), logits.begin(), logits.end());
    }
  expect(out.greedy.size() == 24 && out.drawn.size() == 12, "36 tokens of three sessions");
  return out;
}

/// What happens to a rank, and when.
struct fate {
  std::string what{};  ///< die, stop, lose (its device) or fill (its device's memory)
  int rank = -1;
  bool batch = false;
  std::string when{};
  bool is(const mpi_ranks& of) const { return of.rank() == rank; }
  bool is_of_device() const { return what == "lose" || what == "fill"; }
  int signal() const { return what == "die" ? SIGKILL : what == "stop" ? SIGSTOP : SIGUSR2; }
};
sigset_t fault_signal() {
  sigset_t out;
  sigemptyset(&out);
  sigaddset(&out, SIGUSR2);
  return out;
}
/// The rank's device has no memory from now on; or, once SIGUSR2 comes, a submission fails.
void plant(const fate& of) {
  if (of.when == "load") return faults::the_shim().arm_all(faults::id::vkAllocateMemory, VK_ERROR_OUT_OF_DEVICE_MEMORY);
  const VkResult code = of.what == "lose" ? VK_ERROR_DEVICE_LOST : VK_ERROR_OUT_OF_DEVICE_MEMORY;
  std::thread([code] {
    const sigset_t awaited = fault_signal();
    int found = 0;
    sigwait(&awaited, &found);
    faults::the_shim().arm(faults::id::vkQueueSubmit, 0, code);
  }).detach();
}
/// The signal for a process of this host in a while, as a host that is gone or does not answer.
void send_soon(pid_t to, int signal) {
  std::thread([to, signal] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    kill(to, signal);
  }).detach();
}

/// Plans of a file, for CPU drivers and for GPUs.
struct plans {
  plan::planned cpu, portable;
  std::array<const plan::table*, 2> tables;
  plans(const io::checkpoint& file, const plan::batch_shape& shape)
      : cpu(of(file, plan::profiles::cpu, shape)), portable(of(file, plan::profiles::portable, shape)),
        tables{&cpu.table(), &portable.table()} {}
  static plan::planned of(const io::checkpoint& file, const plan::profile& target, const plan::batch_shape& shape) {
    return families::planned_of(file.config(), families::types_of(file).types, "model", target, 512, shape);
  }
};
constexpr plan::batch_shape wide{.slot_count = 4, .page_size = 16}, narrow{.slot_count = 2, .page_size = 16};

struct job {
  const mpi_ranks& ranks;
  const io::checkpoint& file;
  const gpu::device& on;
  session_options options;
  fate meets;

  void compare() const {
    const plans alone(file, {}), together(file, narrow);
    const rank_cut_options alike{.read_rate = [](const gpu::device&) -> double {
      throw std::logic_error("the devices are alike, and their rates are measured");
    }};
    if (ranks.rank() != 0) {
      serve_mpi_stage(ranks, on, alone.tables, file, options, alike);
      return serve_mpi_batch_stage(ranks, on, together.tables, file, options);
    }
    const words found = [&] {
      basic_session cut = mpi_session(ranks, on, alone.tables, file, options, alike);
      return words_of(cut);
    }();
    const words found_together = [&] {
      basic_batch cut = mpi_batch(ranks, on, together.tables, file, options);
      expect(cut.slot_count() == 2 * static_cast<std::uint32_t>(ranks.size()), "a group of slots for each rank");
      words out = words_of(cut);
      cut.join(some_ids(400, 30), {.max_tokens = 3});
      cut.step();  // chunks are under way when it ends
      return out;
    }();
    basic_session whole(on, alone.tables, file, options);
    expect(found == words_of(whole), "the whole model's logits, greedy and drawn tokens");
    expect(found.drawn.size() == 12, "12 drawn tokens");
    const plans of_whole(file, wide);
    basic_batch whole_batch(on, of_whole.tables, file, options);
    expect(found_together == words_of(whole_batch), "the whole batch's logits, greedy and drawn tokens");
    std::printf("%d ranks: logits, greedy and drawn tokens of the whole model, alone and together\n", ranks.size());
  }

  /// The middle one of three stages is on a device that reads as fast as the others together.
  void cut_by_rates() const {
    const plans of(file, {});
    int measured = 0;
    const rank_cut_options wish{.read_rate = [&](const gpu::device&) {
      ++measured;
      return ranks.stage() == 1 ? 2e9 : 1e9;
    }};
    constexpr std::chrono::seconds limit(30);
    const auto layers = [&](const rank_cut_options& by) {
      return ranks.of_stages(runtime::cut_over_ranks(ranks, on, of.tables, by, limit).stage->layers().size(), limit);
    };
    const std::vector<std::uint32_t> fast = layers(wish);
    expect(measured == 1, "one measurement on each rank");
    expect(fast.size() == 3 && fast[1] > fast[0] && fast[1] > fast[2], "the most layers on the fastest device");
    expect(layers({{1, 2}, wish.read_rate})[1] == 1 && measured == 1, "no measurement for a cut that is given");
    if (ranks.rank() == 0) std::printf("%u, %u and %u layers by the ranks' rates\n", fast[0], fast[1], fast[2]);
  }

  /// After out_of_memory in a rank the session goes on.
  void go_on(basic_session& of, std::span<const std::int32_t> ids, const generate_options& wish,
             const std::vector<std::int32_t>& expected, const out_of_memory& found) const {
    of.reset();
    expect(of.generate(ids, wish).ids == expected, "the tokens from before the failure");
    std::printf("rank 0 goes on: out_of_memory: %s\n", found.what());
  }

  /// Rank 1 stops between a message's head and its rows, which are more than MPI sends before they are asked for.
  void stop_before_rows() const {
    runtime::mpi_link link(ranks, std::chrono::seconds(3));
    runtime::stage_message message;
    if (ranks.rank() == meets.rank) {
      message.hold(std::vector<std::byte>(std::size_t{1} << 26));
      link.put(message);
      std::raise(meets.signal());
    }
    link.take(message);
  }

  /// For ever.
  void run_until_it_ends() const {
    std::fprintf(stderr, "rank %d is process %ld\n", ranks.rank(), static_cast<long>(getpid()));
    if (meets.when == "rows") return stop_before_rows();
    const plans of(file, meets.batch ? narrow : plan::batch_shape{});
    session_options own = options;
    if (meets.is(ranks) && meets.is_of_device()) plant(meets);
    else if (meets.is(ranks) && meets.when == "load")
      own.progress = [&](const load_progress&) { std::raise(meets.signal()); };
    constexpr std::chrono::seconds limit(3);
    const std::vector<pid_t> processes = ranks.of_stages(getpid(), 10 * limit);  // a busy machine makes plans for long
    const auto meet = [&] {
      if (meets.when != "load")
        send_soon(processes.at(static_cast<std::size_t>(meets.rank == 0 ? ranks.size() - 1 : meets.rank - 1)),
                  meets.signal());
    };
    const bool prompts = meets.when == "prompt";
    const auto ids = some_ids(prompts ? 450 : 3, 0);
    if (ranks.rank() != 0)
      return meets.batch ? serve_mpi_batch_stage(ranks, on, of.tables, file, own, {}, limit)
                         : serve_mpi_stage(ranks, on, of.tables, file, own, {}, limit);
    if (!meets.batch) {
      basic_session cut = mpi_session(ranks, on, of.tables, file, own, {}, limit);
      const generate_options wish{.max_tokens = prompts ? 1u : 100u, .stop_at_end = false};
      const std::vector<std::int32_t> expected = cut.generate(ids, wish).ids;
      meet();
      try {
        for (;;) cut.reset(), cut.generate(ids, wish);
      } catch (const out_of_memory& found) { return go_on(cut, ids, wish, expected, found); }
    }
    basic_batch cut = mpi_batch(ranks, on, of.tables, file, own, {}, limit);
    meet();
    for (std::int32_t turn = 0;; ++turn) {
      cut.join(prompts ? some_ids(450, turn) : ids, {.max_tokens = prompts ? 1u : 100u});
      while (cut.active() != 0) cut.step();
    }
  }
};

void run(const mpi_ranks& ranks, int argc, char** argv) {
  const bool by_rates = argc == 4 && std::string(argv[3]) == "rates";
  if (argc != 3 && argc != 7 && !by_rates)
    throw argument_error("arguments", "MODEL CACHE [rates|die|stop|lose|fill RANK session|batch load|prompt|decode]",
                         std::to_string(argc - 1));
  // llvmpipe's name has the width of its vectors, which the variable sets.
  if (by_rates) setenv("LP_NATIVE_VECTOR_WIDTH", ranks.rank() == 1 ? "128" : "256", 1);
  const fate meets = argc != 7 ? fate{} : fate{argv[3], std::atoi(argv[4]), std::string(argv[5]) == "batch", argv[6]};
  const io::checkpoint file = io::checkpoint::open(argv[1]);
  gpu::device_options opened;
  if (meets.is(ranks) && meets.is_of_device()) opened.entry = &faults::entry;
  const gpu::device on(opened);
  const job of{ranks, file, on, {.cache_folder = argv[2]}, meets};
  if (by_rates) return of.cut_by_rates();
  if (argc == 3) return of.compare();
  of.run_until_it_ends();
}

}  // namespace

int main(int argc, char** argv) {
  const sigset_t blocked = fault_signal();
  pthread_sigmask(SIG_BLOCK, &blocked, nullptr);  // also for threads that are started later: one waits for it
  MPI_Init(&argc, &argv);
  {
    const mpi_ranks ranks;
    try {
      run(ranks, argc, argv);
      expect(ranks.all_come(), "all ranks at the end");
    } catch (const std::exception& problem) {
      const char* type = dynamic_cast<const device_lost*>(&problem) != nullptr     ? "device_lost: "
                         : dynamic_cast<const out_of_memory*>(&problem) != nullptr ? "out_of_memory: "
                                                                                   : "";
      std::fprintf(stderr, "rank %d: %s%s\n", ranks.rank(), type, problem.what());
      end_mpi_job(1);
    }
  }
  MPI_Finalize();
  return 0;
}
