// SPDX-License-Identifier: MIT
// Runs a compute module of SPIR-V on the CPU, in workgroups that all run at once and subgroups of any width: what no
// CPU driver does. An invocation goes on until it waits: at a barrier, at a subgroup operation, or after a read of what
// others write. So workgroups that wait for each other come on by turns. What drivers leave undefined ends the test:
// an address outside of the memory given, a barrier or subgroup operation that not all of those concerned reach, and a
// run that does not end.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "spirv/program.hpp"

namespace spirv {

/// How a dispatch is shared out: workgroups, invocations of each, lanes of a subgroup.
struct shares {
  std::uint32_t groups = 1, threads = 1, subgroup = 32;
};

class machine : shares {
 public:
  /// @param memory all that addresses may lie in
  machine(const program& of, shares shared_out, std::vector<std::span<std::byte>> memory)
      : shares(shared_out), code_(&of), memory_(std::move(memory)) {
    std::sort(memory_.begin(), memory_.end(), [](const auto& a, const auto& b) { return a.data() < b.data(); });
  }

  /// @param push the bytes of push constants
  void run(std::span<const std::byte> push) {
    push_ = push;
    begin();
    while (left_ != 0) {
      bool moved = false;
      for (workgroup& each : workgroups_) moved = turn(each) || moved;
      if (!moved) throw std::runtime_error("spirv: invocations wait for each other for good");
    }
  }
  std::uint64_t instructions() const { return instructions_; }

 private:
  enum class state : std::uint8_t { runs, in_subgroup, at_barrier, ended };
  struct invocation {
    std::uint32_t at = 0;
    state now = state::runs;
    std::vector<std::uint32_t> words, own;  ///< values; variables of the invocation
  };
  struct workgroup {
    std::vector<std::uint32_t> shared;
    std::vector<invocation> invocations;
  };
  enum : std::uint32_t {
    built_in_groups = 24,
    built_in_group = 26,
    built_in_index = 29,
    built_in_subgroup = 40,
    built_in_lane = 41
  };

  void begin() {
    workgroups_.clear();
    left_ = groups * threads;
    for (std::uint32_t g = 0; g < groups; ++g) {
      workgroup made{std::vector<std::uint32_t>(code_->workgroup_words, 0xdeadbeefu), {}};
      for (std::uint32_t t = 0; t < threads; ++t) {
        invocation its;
        its.words = code_->initial, its.own.assign(code_->private_words, 0xdeadbeefu);
        for (const move& each : code_->values_at_start)
          std::copy_n(its.words.data() + each.from, each.words, its.own.data() + each.to);
        for (const auto& [which, index] : code_->built_ins) {
          std::uint32_t* to = its.own.data() + index;
          if (which == built_in_index) to[0] = t;
          else if (which == built_in_subgroup) to[0] = t / subgroup;
          else if (which == built_in_lane) to[0] = t % subgroup;
          else if (which == built_in_group) to[0] = g, to[1] = to[2] = 0;
          else if (which == built_in_groups) to[0] = groups, to[1] = to[2] = 1;
          else throw std::runtime_error("spirv: built-in " + std::to_string(which));
        }
        made.invocations.push_back(std::move(its));
      }
      workgroups_.push_back(std::move(made));
    }
  }

  /// All invocations of a workgroup, as far as they come. @return whether any came on
  bool turn(workgroup& of) {
    bool moved = false;
    for (std::uint32_t first = 0; first < threads; first += subgroup) {
      const std::span<invocation> lanes(of.invocations.data() + first, subgroup);
      for (bool again = true; again;) {
        for (invocation& each : lanes)
          if (each.now == state::runs) go_on(of, each), moved = true;
        again = shuffles(lanes);
      }
    }
    const std::size_t waiting = of_state(of.invocations, state::at_barrier),
                      ended = of_state(of.invocations, state::ended);
    if (waiting != 0 && waiting + ended == threads) {
      if (ended != 0) throw std::runtime_error("spirv: a barrier that not all invocations of a workgroup reach");
      for (invocation& each : of.invocations) {
        if (each.at != of.invocations[0].at)
          throw std::runtime_error("spirv: invocations of a workgroup at two barriers");
        each.now = state::runs;
      }
      moved = true;
    }
    return moved;
  }
  static std::size_t of_state(std::span<const invocation> all, state which) {
    return static_cast<std::size_t>(
        std::count_if(all.begin(), all.end(), [&](const auto& each) { return each.now == which; }));
  }
  /// A subgroup operation that all lanes have reached. @return whether there was one
  bool shuffles(std::span<invocation> lanes) {
    const std::size_t there = of_state(lanes, state::in_subgroup);
    if (there == 0 || of_state(lanes, state::runs) != 0) return false;
    for (const invocation& each : lanes)
      if (each.now != state::in_subgroup || each.at != lanes[0].at)
        throw std::runtime_error("spirv: a subgroup operation that not all lanes reach");
    const instruction& i = code_->code[lanes[0].at - 1];
    if (i.code == op_matrix_mul_add) return multiply(lanes, i), true;
    std::vector<std::uint32_t> from(lanes.size() * i.words);
    for (std::size_t lane = 0; lane < lanes.size(); ++lane)
      std::copy_n(lanes[lane].words.data() + i.a, i.words, from.data() + lane * i.words);
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      const std::uint32_t by = lanes[lane].words[i.b];
      const std::size_t other = i.code == op_shuffle ? by : lane ^ by;
      if (other >= lanes.size()) throw std::runtime_error("spirv: a shuffle from no lane");
      std::copy_n(from.data() + other * i.words, i.words, lanes[lane].words.data() + i.to);
      lanes[lane].now = state::runs;
    }
    return true;
  }

  /// Sums of 16 products for each element, exact where they fit a double, and rounded once. The elements of a lane are
  /// those that NVIDIA's driver gives it: pairs of neighbouring columns of the left matrix and the sums, of rows of the
  /// right matrix.
  void multiply(std::span<invocation> lanes, const instruction& i) const {
    if (lanes.size() != 32) throw std::runtime_error("spirv: a product of matrices by other than 32 lanes");
    const matrix_shape& shape = code_->products[i.detail];
    std::array<float, 16 * 16> left{};
    std::array<float, 16 * 8> right{};
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
      const std::uint32_t* const w = lanes[lane].words.data();
      const std::uint32_t group = lane / 4, pair = lane % 4 * 2;
      for (std::uint32_t e = 0; e < 8; ++e)
        left[(group + e / 4 * 8) * 16 + pair + e % 2 + e / 2 % 2 * 8] = real(w[i.a + e]);
      for (std::uint32_t e = 0; e < 4; ++e) right[(pair + e % 2 + e / 2 * 8) * 8 + group] = real(w[i.b + e]);
    }
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
      std::uint32_t* const w = lanes[lane].words.data();
      for (std::uint32_t e = 0; e < 4; ++e) {
        const std::uint32_t row = lane / 4 + e / 2 * 8, column = lane % 4 * 2 + e % 2;
        double sum = real(w[i.c + e]);
        for (std::uint32_t k = 0; k < shape.inner; ++k) sum += double{left[row * 16 + k]} * right[k * 8 + column];
        w[i.to + e] = bits(static_cast<float>(sum));
      }
      lanes[lane].now = state::runs;
    }
  }

  void jump(invocation& of, std::uint32_t target) {
    const std::vector<move>& moves = code_->edges[target];
    std::array<std::uint32_t, 1024> kept;
    std::uint32_t* at = kept.data();
    for (const move& each : moves) {
      if (at + each.words > kept.data() + kept.size()) throw std::runtime_error("spirv: too many phis");
      at = std::copy_n(of.words.data() + each.from, each.words, at);
    }
    at = kept.data();
    for (const move& each : moves) {
      std::copy_n(at, each.words, of.words.data() + each.to);
      at += each.words;
    }
    of.at = code_->targets[target];
  }

  std::uint64_t address(const std::uint32_t* w) const { return w[0] | std::uint64_t{w[1]} << 32; }
  std::byte* checked(std::uint64_t at, std::size_t bytes) {
    auto* const from = reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(at));
    const auto inside = [&](std::span<std::byte> of) {
      return from >= of.data() && from + bytes <= of.data() + of.size();
    };
    if (!inside(last_)) {
      const auto after = std::upper_bound(memory_.begin(), memory_.end(), from,
                                          [](const std::byte* p, const auto& of) { return p < of.data(); });
      if (after == memory_.begin() || !inside(after[-1]))
        throw std::runtime_error("spirv: an address outside of all memory, of " + std::to_string(bytes) + " bytes");
      last_ = after[-1];
    }
    return from;
  }

  std::uint32_t* own(workgroup& group, invocation& of, std::uint32_t storage, std::uint32_t index,
                     std::uint32_t words) {
    std::vector<std::uint32_t>& in = storage == storage_workgroup ? group.shared : of.own;
    if (std::size_t{index} + words > in.size()) throw std::runtime_error("spirv: an index outside of a variable");
    return in.data() + index;
  }
  void load(workgroup& group, invocation& of, const instruction& i) {
    std::uint32_t* w = of.words.data();
    if (i.detail == storage_physical) std::memcpy(w + i.to, checked(address(w + i.a), 4 * i.words), 4 * i.words);
    else if (i.detail == storage_push) std::memcpy(w + i.to, push_.subspan(w[i.a], 4 * i.words).data(), 4 * i.words);
    else std::copy_n(own(group, of, i.detail, w[i.a], i.words), i.words, w + i.to);
  }
  void store(workgroup& group, invocation& of, const instruction& i) {
    std::uint32_t* w = of.words.data();
    if (i.detail == storage_physical) std::memcpy(checked(address(w + i.a), 4 * i.words), w + i.b, 4 * i.words);
    else std::copy_n(w + i.b, i.words, own(group, of, i.detail, w[i.a], i.words));
  }
  void follow(invocation& of, const instruction& i) const {
    std::uint32_t* w = of.words.data();
    std::uint64_t at = i.b == storage_physical ? address(w + i.a) : w[i.a];
    for (const chain_step& each : code_->chains[i.detail])
      at += each.is_index ? std::uint64_t{w[each.index]} * each.distance : each.distance;
    w[i.to] = static_cast<std::uint32_t>(at);
    if (i.b == storage_physical) w[i.to + 1] = static_cast<std::uint32_t>(at >> 32);
  }

  void go_on(workgroup& group, invocation& of) {
    for (;;) {
      const instruction& i = code_->code[of.at++];
      if (++instructions_ > (std::uint64_t{1} << 36)) throw std::runtime_error("spirv: a run that does not end");
      switch (i.code) {
        case op_branch:
          jump(of, i.to);
          break;
        case op_branch_conditional:
          jump(of, i.to + (of.words[i.a] == 0));
          break;
        case op_switch: {
          const auto& cases = code_->lists[i.detail];
          const auto found = std::find(cases.begin(), cases.end(), of.words[i.a]);
          jump(of, i.to + (found == cases.end() ? 0 : 1 + static_cast<std::uint32_t>(found - cases.begin())));
          break;
        }
        case op_return:
          of.now = state::ended, --left_;
          return;
        case op_unreachable:
          throw std::runtime_error("spirv: came where no invocation comes");
        case op_control_barrier:
          of.now = state::at_barrier;
          return;
        case op_memory_barrier:
          break;
        case op_shuffle:
        case op_shuffle_xor:
        case op_matrix_mul_add:
          of.now = state::in_subgroup;
          return;
        case op_access_chain:
          follow(of, i);
          break;
        case op_store:
          store(group, of, i);
          break;
        case op_load:
          load(group, of, i);
          if (i.waits) return;
          break;
        case op_atomic_i_add: {
          std::byte* const at = checked(address(of.words.data() + i.a), 4);
          std::uint32_t before = 0;
          std::memcpy(&before, at, 4);
          const std::uint32_t after = before + of.words[i.b];
          of.words[i.to] = before;
          std::memcpy(at, &after, 4);
          break;
        }
        default:
          compute(i, of.words.data(), *code_);
      }
    }
  }

  const program* code_;
  std::vector<std::span<std::byte>> memory_;
  std::span<const std::byte> push_;
  std::vector<workgroup> workgroups_;
  std::size_t left_ = 0;
  std::uint64_t instructions_ = 0;
  std::span<std::byte> last_;
};

}  // namespace spirv
