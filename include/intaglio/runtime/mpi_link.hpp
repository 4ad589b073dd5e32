// SPDX-License-Identifier: MIT
// The ranks of MPI as a ring, and messages from each rank to the next. They carry the rows of a cut plan between hosts
// that trust each other. Messages are not encrypted; only MPI opens ports.
#pragma once

#include "intaglio/core/compiler.hpp"

#if !__has_include(<mpi.h>)
#error "intaglio/runtime/mpi_link.hpp needs MPI (Debian: libopenmpi-dev): see docs/runtime.md"
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
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "intaglio/core/error.hpp"
#include "intaglio/runtime/stage_link.hpp"

namespace intaglio {

/// Ends the job with an exit code, some time after what this process has written to stderr: MPICH's launcher drops what
/// it has not read when it hears of the end.
[[noreturn]] inline void end_mpi_job(int code) {
  std::fflush(stderr);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  MPI_Abort(MPI_COMM_WORLD, code);
  std::abort();  // MPI_Abort does not return
}

/// The ranks of a job. The program initialises MPI, and finalises it after all objects that use it.
class mpi_ranks {
 public:
  explicit mpi_ranks(MPI_Comm of = MPI_COMM_WORLD) : of_(of) {
    MPI_Comm_rank(of, &rank_);
    MPI_Comm_size(of, &size_);
  }
  MPI_Comm handle() const noexcept { return of_; }
  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  /// The index of a rank's stage; there are as many stages as ranks.
  std::size_t stage() const noexcept { return static_cast<std::size_t>(rank_ == 0 ? size_ - 1 : rank_ - 1); }
  /// The ranks of the stages before and after a rank's own stage; rank 0 sends tokens to rank 1.
  int before() const noexcept { return rank_ == 0 ? size_ - 1 : rank_ - 1; }
  int after() const noexcept { return rank_ + 1 == size_ ? 0 : rank_ + 1; }

  /// Collects a value from each rank, in the order of the stages.
  /// @param limit how long the other ranks, which may be loading, may take to call this
  /// @error device_error naming the ranks that did not call it in time
  template <class T>
  std::vector<T> of_stages(const T& own, std::chrono::seconds limit) const {
    static_assert(std::is_trivially_copyable_v<T>);
    auto its = std::make_unique<exchange<T>>(own);
    its->all.assign(static_cast<std::size_t>(size_), own);
    its->received.assign(its->all.size(), MPI_REQUEST_NULL);
    its->sent = its->received;
    for (std::size_t i = 0; i < its->all.size(); ++i) {
      const int other = static_cast<int>(i);
      if (other == rank_) continue;
      MPI_Irecv(&its->all[i], sizeof(T), MPI_BYTE, other, meeting_tag, of_, &its->received[i]);
      MPI_Isend(&its->own, sizeof(T), MPI_BYTE, other, meeting_tag, of_, &its->sent[i]);
    }
    if (!come(its->received, limit) || !come(its->sent, limit)) {
      const std::string missing = names_of(pending(its->received), before());
      static_cast<void>(its.release());  // MPI may still write to it
      throw device_error(
          missing, "load its stage",
          "rank " + std::to_string(rank_) + " has waited " + std::to_string(limit.count()) + " s for it");
    }
    std::vector<T> all = std::move(its->all);
    std::rotate(all.begin(), all.begin() + 1, all.end());
    return all;
  }

  /// Rank 0 asks the others whether they are reachable; ranks that wait for work answer (answer_question).
  /// @return ranks that do not answer within the limit
  std::vector<int> silent(std::chrono::milliseconds limit = std::chrono::seconds(2)) const {
    std::vector<MPI_Request> answers(static_cast<std::size_t>(size_), MPI_REQUEST_NULL);
    for (int other = 1; other < size_; ++other) {
      MPI_Request asked = MPI_REQUEST_NULL;
      MPI_Irecv(nullptr, 0, MPI_BYTE, other, answer_tag, of_, &answers[static_cast<std::size_t>(other)]);
      MPI_Isend(nullptr, 0, MPI_BYTE, other, question_tag, of_, &asked);
      MPI_Request_free(&asked);
    }
    come(answers, limit);
    return pending(answers);
  }
  /// Answers rank 0's question; ranks above 0 call it while they wait.
  void answer_question() const {
    int there = 0;
    MPI_Iprobe(0, question_tag, of_, &there, MPI_STATUS_IGNORE);
    if (there == 0) return;
    MPI_Recv(nullptr, 0, MPI_BYTE, 0, question_tag, of_, MPI_STATUS_IGNORE);
    MPI_Request given = MPI_REQUEST_NULL;
    MPI_Isend(nullptr, 0, MPI_BYTE, 0, answer_tag, of_, &given);
    MPI_Request_free(&given);
  }
  /// Text of ranks for messages: "rank 2", or "ranks 1, 2". @param otherwise rank to name if the list is empty
  static std::string names_of(const std::vector<int>& list, int otherwise) {
    std::string out = std::to_string(list.empty() ? otherwise : list.front());
    for (std::size_t i = 1; i < list.size(); ++i) out += ", " + std::to_string(list[i]);
    return (list.size() > 1 ? "ranks " : "rank ") + out;
  }

  /// Waits until all ranks have called this. MPI_Finalize waits too, but without a limit.
  /// @return false: some ranks did not call it within the limit, and the program should end the job (end_mpi_job)
  bool all_come(std::chrono::seconds limit = std::chrono::seconds(120)) const {
    std::vector<MPI_Request> asked(1, MPI_REQUEST_NULL);
    MPI_Ibarrier(of_, asked.data());
    return come(asked, limit);
  }

 private:
  /// mpi_link's messages have tag 1.
  static constexpr int meeting_tag = 2, question_tag = 3, answer_tag = 4;
  template <class T>
  struct exchange {
    explicit exchange(const T& of) : own(of) {}
    T own;
    std::vector<T> all;
    std::vector<MPI_Request> received, sent;  ///< by rank
  };
  static bool come(std::vector<MPI_Request>& what, std::chrono::milliseconds limit) {
    const auto start = std::chrono::steady_clock::now();
    for (int done = 0;;) {
      MPI_Testall(static_cast<int>(what.size()), what.data(), &done, MPI_STATUSES_IGNORE);
      if (done != 0) return true;
      if (std::chrono::steady_clock::now() - start > limit) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  /// Ranks whose message has not arrived.
  static std::vector<int> pending(std::vector<MPI_Request>& of) {
    std::vector<int> out;
    for (std::size_t i = 0; i < of.size(); ++i) {
      int done = 0;
      MPI_Test(&of[i], &done, MPI_STATUS_IGNORE);
      if (done == 0) out.push_back(static_cast<int>(i));
    }
    return out;
  }

  MPI_Comm of_;
  int rank_ = 0, size_ = 1;
};

namespace runtime {

/// A link to the next stage and from the previous stage, by messages of MPI. Messages circulate until each rank has
/// received the end message. Used by one thread.
class mpi_link final : public stage_link {
 public:
  /// @param limit how long an expected message may take
  mpi_link(const mpi_ranks& ranks, std::chrono::seconds limit) : ranks_(ranks), limit_(limit) {}

  ~mpi_link() {
    mpi_link::end();
    // MPI may still read messages that are not received yet, so they are never freed.
    if (!under_way_.empty()) static_cast<void>(new (std::nothrow) std::deque<parcel>(std::move(under_way_)));
  }

  /// Does not wait for the receiver: two ranks that send to each other would wait forever.
  bool put(stage_message& message) override {
    if (ended_) return false;
    collect_sent();
    parcel next = std::exchange(spare_, {});
    header of{state::passes, message.kind, message.position, message.count, 0};
    if (message.failure) of.what = write_failure(message);
    next.rows.assign(message.bytes.begin(), message.bytes.end());
    message.failure = nullptr;
    of.bytes = next.rows.size();
    send(std::move(next), of, message.words);
    return true;
  }
  /// @error device_error: rank 0 waited longer than the limit; the link has ended then
  bool take(stage_message& message) override {
    if (ended_) return false;
    const header of = take_head(message.words);
    message.kind = of.kind, message.position = of.position, message.count = of.count;
    message.payload.resize(static_cast<std::size_t>(of.bytes));
    for (std::size_t at = 0; at < message.payload.size(); at += piece)
      receive(message.payload, at, (std::min)(piece, message.payload.size() - at));
    message.bytes = message.payload;
    message.failure = read_failure(of.what, message.payload);
    if (of.what == state::ended) ended_ = true;
    return !ended_;
  }
  bool ready() override {
    if (ended_) return true;
    int there = 0;
    MPI_Iprobe(ranks_.before(), tag, ranks_.handle(), &there, MPI_STATUS_IGNORE);
    return there != 0;
  }
  /// Rank 0 receives pending messages until the end message has passed all ranks; the other ranks pass it on.
  void end() noexcept override {
    if (std::exchange(sent_end_, true) || given_up_) return;
    try {
      send({}, {state::ended, pass_kind::decode, 0, 0, 0}, {});
      for (stage_message rest; !ended_;) take(rest);
      const auto start = clock::now();
      for (collect_sent(); !under_way_.empty() && clock::now() - start < limit_; collect_sent())
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    } catch (const std::exception&) { given_up_ = true; }
  }

 private:
  using clock = std::chrono::steady_clock;
  enum class state : std::uint8_t { passes, failed, lost, no_memory, ended };
  struct header {
    state what = state::passes;
    pass_kind kind = pass_kind::decode;
    std::uint32_t position = 0, count = 0;
    std::uint64_t bytes = 0;
  };
  /// Memory that MPI reads until the message is received: header and words, then rows.
  struct parcel {
    std::vector<std::byte> head, rows;
    std::vector<MPI_Request> requests;
  };
  static constexpr int tag = 1;
  static constexpr std::size_t piece = std::size_t{1} << 30;  ///< of a message; MPI counts in int

  void send(parcel next, const header& of, std::span<const std::uint32_t> words) {
    next.head.resize(sizeof of + words.size_bytes());
    std::memcpy(next.head.data(), &of, sizeof of);
    if (!words.empty()) std::memcpy(next.head.data() + sizeof of, words.data(), words.size_bytes());
    next.requests.clear();
    const auto begin = [&](const std::byte* bytes, std::size_t size) {
      MPI_Isend(bytes, static_cast<int>(size), MPI_BYTE, ranks_.after(), tag, ranks_.handle(),
                &next.requests.emplace_back(MPI_REQUEST_NULL));
    };
    begin(next.head.data(), next.head.size());
    for (std::size_t at = 0; at < next.rows.size(); at += piece)
      begin(next.rows.data() + at, (std::min)(piece, next.rows.size() - at));
    under_way_.push_back(std::move(next));
  }
  /// Frees messages that were received, the oldest first.
  void collect_sent() {
    while (!under_way_.empty()) {
      std::vector<MPI_Request>& its = under_way_.front().requests;
      int done = 0;
      MPI_Testall(static_cast<int>(its.size()), its.data(), &done, MPI_STATUSES_IGNORE);
      if (done == 0) return;
      spare_ = std::move(under_way_.front());
      under_way_.pop_front();
    }
  }
  header take_head(std::vector<std::uint32_t>& words) {
    const MPI_Status found = await();
    int bytes = 0;
    MPI_Get_count(&found, MPI_BYTE, &bytes);
    header of{};
    head_.resize((std::max)(static_cast<std::size_t>((std::max)(bytes, 0)), sizeof of));
    receive(head_, 0, static_cast<std::size_t>((std::max)(bytes, 0)));
    std::memcpy(&of, head_.data(), sizeof of);
    words.resize((head_.size() - sizeof of) / 4);
    if (!words.empty()) std::memcpy(words.data(), head_.data() + sizeof of, 4 * words.size());
    return of;
  }
  /// Waits for the next message.
  MPI_Status await() {
    MPI_Status out{};
    poll_until([&] {
      int there = 0;
      MPI_Iprobe(ranks_.before(), tag, ranks_.handle(), &there, &out);
      return there != 0;
    });
    return out;
  }
  /// Receives the next message into `size` bytes after `at`. A large one arrives only while its sender takes part,
  /// which MPI_Recv would wait for without a limit.
  void receive(std::vector<std::byte>& into, std::size_t at, std::size_t size) {
    MPI_Request asked = MPI_REQUEST_NULL;
    MPI_Irecv(into.data() + at, static_cast<int>(size), MPI_BYTE, ranks_.before(), tag, ranks_.handle(), &asked);
    try {
      poll_until([&] {
        int done = 0;
        MPI_Test(&asked, &done, MPI_STATUS_IGNORE);
        return done != 0;
      });
    } catch (...) {  // MPI may still write to this memory, so it is never freed
      static_cast<void>(new (std::nothrow) std::vector<std::byte>(std::move(into)));
      throw;
    }
  }
  /// Polls: at first continuously, since decode waits for it, then seldom, so that a rank that waits for work does not
  /// use a processor. The limit applies to rank 0, which has asked for its message; other ranks wait for work.
  template <class Happens>
  void poll_until(const Happens& happens) {
    const auto start = clock::now();
    while (!happens()) {
      const auto waited = clock::now() - start;
      if (ranks_.rank() == 0 && waited > limit_) {
        ended_ = given_up_ = true;
        throw device_error(mpi_ranks::names_of(ranks_.silent(), ranks_.before()), "wait for rows of the stream",
                           "nothing came for " + std::to_string(limit_.count()) + " s");
      }
      if (!under_way_.empty()) collect_sent();  // some transports of MPI progress only inside calls
      if (ranks_.rank() != 0 && waited > std::chrono::milliseconds(20)) ranks_.answer_question();
      if (waited > std::chrono::milliseconds(20)) std::this_thread::sleep_for(std::chrono::microseconds(200));
      else if (waited > std::chrono::milliseconds(2)) std::this_thread::yield();
    }
  }

  /// Writes a failure as its kind and its text, with the rank in front.
  state write_failure(stage_message& message) const {
    state out = state::failed;
    std::string text = "unknown";
    try {
      std::rethrow_exception(message.failure);
    } catch (const device_lost& what) { out = state::lost, text = what.what(); } catch (const out_of_memory& what) {
      out = state::no_memory, text = what.what();
    } catch (const std::exception& what) { text = what.what(); } catch (...) {
    }
    if (!text.starts_with("rank ")) text = "rank " + std::to_string(ranks_.rank()) + ": " + std::string(runs) + text;
    const auto bytes = std::as_bytes(std::span(text));
    message.hold(bytes);
    return out;
  }
  static std::exception_ptr read_failure(state what, std::span<const std::byte> payload) {
    if (what == state::passes || what == state::ended) return nullptr;
    const std::string text(reinterpret_cast<const char*>(payload.data()), payload.size());
    const std::size_t colon = (std::min)(text.find(": "), text.size());
    std::string its = text.substr((std::min)(colon + 2, text.size()));
    if (its.starts_with(runs)) its.erase(0, runs.size());
    const std::string rank = text.substr(0, colon), did(runs.substr(0, runs.size() - 2));
    if (what == state::lost) return std::make_exception_ptr(device_lost(rank, did, its));
    if (what == state::no_memory) return std::make_exception_ptr(out_of_memory(rank, did, its));
    return std::make_exception_ptr(device_error(rank, did, its));
  }
  static constexpr std::string_view runs = "run its stage: ";

  mpi_ranks ranks_;
  std::chrono::seconds limit_;
  std::deque<parcel> under_way_;
  parcel spare_;
  std::vector<std::byte> head_;
  bool ended_ = false, sent_end_ = false, given_up_ = false;
};

}  // namespace runtime
}  // namespace intaglio
