// SPDX-License-Identifier: MIT
// Stages of a cut plan as ranks of MPI, for hosts that trust each other: nothing is encrypted, and no port is opened
// but MPI's own. Rank 0 has the last stage and the session; rank r > 0 has stage r - 1. Nothing else includes this.
#pragma once

#include "intaglio/core/compiler.hpp"

#if !__has_include(<mpi.h>)
#error "intaglio/runtime/mpi_stages.hpp needs MPI (Debian: libopenmpi-dev): see docs/runtime.md"
#endif
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "intaglio/runtime/cut_session.hpp"

namespace intaglio {

/// The ranks of a job. MPI is initialised by the program, and finalised behind all that uses it.
class mpi_ranks {
 public:
  explicit mpi_ranks(MPI_Comm of = MPI_COMM_WORLD) : of_(of) {
    MPI_Comm_rank(of, &rank_);
    MPI_Comm_size(of, &size_);
  }
  MPI_Comm handle() const noexcept { return of_; }
  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  /// Which stage a rank has, of as many as there are ranks.
  std::size_t stage() const noexcept { return static_cast<std::size_t>(rank_ == 0 ? size_ - 1 : rank_ - 1); }
  /// The ranks of the stage before and behind a rank's own; rank 0 sends tokens to rank 1.
  int before() const noexcept { return rank_ == 0 ? size_ - 1 : rank_ - 1; }
  int behind() const noexcept { return rank_ + 1 == size_ ? 0 : rank_ + 1; }

  /// A value of each rank, in the order of the stages.
  template <class T>
  std::vector<T> of_stages(const T& own) const {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> all(static_cast<std::size_t>(size_));
    MPI_Allgather(&own, sizeof(T), MPI_BYTE, all.data(), sizeof(T), MPI_BYTE, of_);
    std::rotate(all.begin(), all.begin() + 1, all.end());
    return all;
  }

 private:
  MPI_Comm of_;
  int rank_ = 0, size_ = 1;
};

namespace runtime {

/// A way to the stage behind and from the one before, by messages of MPI.
class mpi_link final : public stage_link {
 public:
  /// @param limit how long take() waits for a message; 0: for ever
  mpi_link(const mpi_ranks& ranks, std::chrono::seconds limit) : ranks_(ranks), limit_(limit) {}

  ~mpi_link() { sent(); }

  /// The rows are on their way while the next pass runs.
  bool put(stage_message& message) override {
    if (ended_) return false;
    sent();
    if (message.failure) set_failure(message);
    head_ = {message.failure ? state::failed : state::passes, message.kind, message.position, message.count,
             message.payload.size()};
    std::swap(sending_, message.payload);
    message.failure = nullptr;
    begin_send(&head_, sizeof head_);
    for (std::size_t at = 0; at < sending_.size(); at += piece)
      begin_send(sending_.data() + at, (std::min)(piece, sending_.size() - at));
    return true;
  }
  bool take(stage_message& message) override {
    if (ended_) return false;
    header of{};
    receive(&of, sizeof of);
    message.kind = of.kind;
    message.position = of.position;
    message.count = of.count;
    message.payload.resize(static_cast<std::size_t>(of.bytes));
    if (of.bytes != 0) receive(message.payload.data(), message.payload.size());
    message.failure = nullptr;
    if (of.what == state::failed) message.failure = failure_of(message);
    if (of.what == state::ended) ended_ = true;
    return !ended_;
  }
  bool ready() override {
    if (ended_) return true;
    int there = 0;
    MPI_Iprobe(ranks_.before(), tag, ranks_.handle(), &there, MPI_STATUS_IGNORE);
    return there != 0;
  }
  void end() noexcept override {
    if (std::exchange(told_end_, true)) return;
    sent();
    const header of{state::ended, pass_kind::decode, 0, 0, 0};
    MPI_Send(&of, sizeof of, MPI_BYTE, ranks_.behind(), tag, ranks_.handle());
  }

 private:
  enum class state : std::uint8_t { passes, failed, ended };
  struct header {
    state what = state::passes;
    pass_kind kind = pass_kind::decode;
    std::uint32_t position = 0, count = 0;
    std::uint64_t bytes = 0;
  };
  static constexpr int tag = 1;
  static constexpr std::size_t piece = std::size_t{1} << 30;  ///< of a message; MPI counts in int

  void begin_send(const void* bytes, std::size_t size) {
    MPI_Isend(bytes, static_cast<int>(size), MPI_BYTE, ranks_.behind(), tag, ranks_.handle(),
              &requests_.emplace_back(MPI_REQUEST_NULL));
  }
  void sent() noexcept {
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    requests_.clear();
  }
  void receive(void* to, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += piece) {
      await();
      MPI_Recv(static_cast<std::byte*>(to) + at, static_cast<int>((std::min)(piece, bytes - at)), MPI_BYTE,
               ranks_.before(), tag, ranks_.handle(), MPI_STATUS_IGNORE);
    }
  }
  /// Looks for a message, at first without rest, since decode waits for it, and then seldom: a rank that waits for work
  /// shall not take a processor.
  void await() const {
    using clock = std::chrono::steady_clock;
    const auto start = clock::now();
    for (int there = 0;;) {
      MPI_Iprobe(ranks_.before(), tag, ranks_.handle(), &there, MPI_STATUS_IGNORE);
      if (there != 0) return;
      const auto waited = clock::now() - start;
      if (limit_.count() != 0 && waited > limit_)
        throw device_error("rank " + std::to_string(ranks_.before()), "wait for rows of the stream",
                           "nothing came for " + std::to_string(limit_.count()) + " s");
      if (waited > std::chrono::milliseconds(20)) std::this_thread::sleep_for(std::chrono::microseconds(200));
      else if (waited > std::chrono::milliseconds(2)) std::this_thread::yield();
    }
  }

  /// A failure crosses as its text, with the rank in front of it.
  void set_failure(stage_message& message) const {
    std::string text = "rank " + std::to_string(ranks_.rank()) + ": ";
    try {
      std::rethrow_exception(message.failure);
    } catch (const std::exception& what) { text = what.what(); } catch (...) {
      text = "unknown";
    }
    if (!text.starts_with("rank ")) text = "rank " + std::to_string(ranks_.rank()) + ": " + text;
    const auto bytes = std::as_bytes(std::span(text));
    message.payload.assign(bytes.begin(), bytes.end());
  }
  static std::exception_ptr failure_of(const stage_message& message) {
    const std::string text(reinterpret_cast<const char*>(message.payload.data()), message.payload.size());
    const std::size_t colon = (std::min)(text.find(": "), text.size());
    return std::make_exception_ptr(
        device_error(text.substr(0, colon), "run its stage", text.substr((std::min)(colon + 2, text.size()))));
  }

  mpi_ranks ranks_;
  std::chrono::seconds limit_;
  header head_;
  std::vector<std::byte> sending_;
  std::vector<MPI_Request> requests_;
  bool ended_ = false, told_end_ = false;
};

/// A rank's part of a cut, the same on all ranks.
struct rank_cut {
  const plan::table* table = nullptr;
  std::shared_ptr<const plan::stage> stage;
};

/// What a rank tells the others before the cut.
struct rank_offer {
  std::uint64_t memory_bytes = 0,
                device = 0;  ///< device: tells devices of one host apart, alike where they share memory
  std::uint64_t model = 0;   ///< of the plans
  bool is_cpu = false;
};

/// @error argument_error: ranks with other models, a cut that is none; out_of_memory: this rank's stage does not fit
inline rank_cut cut_over_ranks(const mpi_ranks& ranks, const gpu::device& on,
                               std::span<const plan::table* const> tables, const std::vector<std::uint32_t>& after) {
  rank_offer own;
  own.memory_bytes = available_memory(on);
  own.is_cpu = on.description().type == gpu::device_type::cpu;
  char host[MPI_MAX_PROCESSOR_NAME] = {};
  int length = 0;
  MPI_Get_processor_name(host, &length);
  own.device = std::hash<std::string_view>{}({host, static_cast<std::size_t>(length)});
  for (const std::uint8_t byte : on.description().uuid) own.device = plan::mixed(own.device, byte);
  const plan::table& table = choose_table(tables, class_of(on));
  for (const plan::table* const each : tables) own.model = plan::mixed(own.model, each->hash);
  const std::vector<rank_offer> all = ranks.of_stages(own);

  std::vector<plan::stage_costs> costs;
  std::vector<plan::stage_device> devices;
  for (const rank_offer& each : all) {
    if (each.model != all.back().model)
      throw argument_error("model of rank " + std::to_string(ranks.rank()),
                           "one file, context and version of the program on all ranks", "others");
    const plan::table* its = tables.front();
    for (const plan::table* const of : tables)
      if (of->is_for_cpus() == each.is_cpu) its = of;
    const auto same = static_cast<std::uint64_t>(
        std::count_if(all.begin(), all.end(), [&](const rank_offer& other) { return other.device == each.device; }));
    costs.emplace_back(*its);
    devices.push_back({each.memory_bytes / same, 1});
  }
  const auto layers = table.config->num_hidden_layers;
  const auto ranges =
      plan::stages_of(layers, !after.empty() || all.size() == 1 ? after : plan::choose_cut(costs, devices));
  if (ranges.size() != all.size())
    throw argument_error("cut", "as many stages as ranks, " + std::to_string(all.size()),
                         std::to_string(ranges.size()));
  const rank_cut out{&table, std::make_shared<const plan::stage>(table, ranges[ranks.stage()])};
  const memory_need need = needed_memory(out.stage->table());
  if (need.total() > devices[ranks.stage()].memory_bytes)
    throw out_of_memory(on.label(), "load the stage of rank " + std::to_string(ranks.rank()),
                        "need " + gpu::bytes_text(need.total()) + " for layers " +
                            std::to_string(out.stage->layers().first) + " to " +
                            std::to_string(out.stage->layers().end - 1) + ", have " +
                            gpu::bytes_text(devices[ranks.stage()].memory_bytes));
  return out;
}

}  // namespace runtime

/// Rank 0's session over all ranks; the others serve_mpi_stage() meanwhile. MPI is called by the thread that uses the
/// session, which ends before MPI does.
/// @param after layers in front of each cut; empty: chosen by the ranks' memory
/// @param limit how long rows of a pass may be on their way
/// @error as of cut_session; device_error naming a rank that failed, or did not answer
inline basic_session mpi_session(const mpi_ranks& ranks, const gpu::device& on,
                                 std::span<const plan::table* const> tables, const io::checkpoint& from,
                                 const session_options& options = {}, const std::vector<std::uint32_t>& after = {},
                                 std::chrono::seconds limit = std::chrono::seconds(120),
                                 runtime::module_source source = &runtime::modules_of<>) {
  return gpu::translated([&] {
    const runtime::rank_cut cut = runtime::cut_over_ranks(ranks, on, tables, after);
    if (ranks.size() == 1) return basic_session(on, tables, from, options, source);
    runtime::expect_for_cut(from, options);
    const std::array own{cut.table};
    auto body = runtime::open_session(on, own, from, options);
    body->run = runtime::take_last_stage(*body, {{cut.table}, {cut.stage}}, from, options, source);
    // Chunks that every rank has room for.
    for (std::uint32_t* const each : {&body->prefill_tokens, &body->logits_tokens, &body->verify_tokens})
      for (const std::uint32_t rank : ranks.of_stages(*each)) *each = (std::min)(*each, rank);
    const auto link = std::make_shared<runtime::mpi_link>(ranks, limit);
    const std::shared_ptr<runtime::stage_link> ending(link.get(), [link](runtime::stage_link* of) { of->end(); });
    body->run->join(std::make_unique<runtime::stage_crossing>(
        on, body->run->table(), body->run->state(),
        runtime::stages_before{ending, ending, static_cast<std::size_t>(ranks.size())}));
    return basic_session(std::move(body));
  });
}

/// A rank above 0: loads its stage and runs passes until rank 0's session ends.
/// @error as of cut_session: the program then ends the job (MPI_Abort)
inline void serve_mpi_stage(const mpi_ranks& ranks, const gpu::device& on, std::span<const plan::table* const> tables,
                            const io::checkpoint& from, const session_options& options = {},
                            const std::vector<std::uint32_t>& after = {},
                            runtime::module_source source = &runtime::modules_of<>) {
  gpu::translated([&] {
    const runtime::rank_cut cut = runtime::cut_over_ranks(ranks, on, tables, after);
    runtime::expect_for_cut(from, options);
    const auto stage = runtime::load_front(on, cut.stage, from, options, source);
    for (const std::uint32_t each :
         {cut.table->prefill.max_tokens, cut.table->logits.max_tokens, cut.table->verify.max_tokens})
      ranks.of_stages(each);
    runtime::mpi_link link(ranks, std::chrono::seconds(0));
    stage->serve(link, link);
  });
}

}  // namespace intaglio
