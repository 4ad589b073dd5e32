// SPDX-License-Identifier: MIT
// A compute module of SPIR-V read for tests/spirv/machine.hpp: its constants with those of a pipeline, the types of its
// values in words, and the instructions of its one function after their operands' indices. Blocks that no path of
// constants reaches are left out. Numbers: SPIR-V specification 1.6, section 3. What is not read is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "spirv/operations.hpp"

namespace spirv {

enum storage : std::uint32_t {
  storage_input = 1,
  storage_workgroup = 4,
  storage_private = 6,
  storage_function = 7,
  storage_push = 9,
  storage_physical = 5349
};

/// A type of values. In registers and in a workgroup's memory values are words after each other; after addresses and
/// among push constants they are where their decorations say.
struct type {
  std::uint32_t code = 0, words = 0, count = 1;  ///< count: of components, members or elements
  bool wide = false;                             ///< of 64 bits
  bool half = false;                             ///< of f16, or of matrices' elements of f16
  std::uint32_t rows = 0, columns = 0;           ///< of a cooperative matrix, whose elements 32 lanes share
  std::uint32_t of = 0;                          ///< components, elements, or what is pointed to
  std::uint32_t storage = 0;                     ///< of pointers
  std::vector<std::uint32_t> members;
  std::map<std::uint32_t, std::uint32_t> offsets;  ///< bytes, of members
  std::uint32_t stride = 0;                        ///< bytes, of elements
};

/// An instruction after its operands' indices among an invocation's words.
struct instruction {
  std::uint32_t code = 0, words = 0, count = 1;  ///< count: of components
  std::uint32_t to = 0, a = 0, b = 0, c = 0;
  std::uint32_t detail = 0;   ///< of the code: extended instruction, storage, index of a list
  std::uint32_t a_words = 0;  ///< of a's components
  bool waits = false;         ///< reads what others write
  bool half = false;          ///< gives f16
};
/// A product of cooperative matrices: [rows, inner] by [inner, columns].
struct matrix_shape {
  std::uint32_t rows = 0, columns = 0, inner = 0;
};
struct move {
  std::uint32_t to = 0, from = 0, words = 0;
};
/// A step of an access chain: a distance, or one times an index.
struct chain_step {
  bool is_index = false;
  std::uint32_t distance = 0, index = 0;
};

class program {
 public:
  /// @param constants by constant_id
  program(std::span<const std::uint32_t> words, std::span<const std::uint32_t> constants)
      : words_(words), constants_(constants) {
    declare();
    find_blocks();
    for (const std::uint32_t label : reached_) read_block(label);
    for (auto& [at, label] : patches_) targets[at] = starts_.at(label);
  }

  std::vector<instruction> code;
  std::vector<std::uint32_t> targets;           ///< of branches: where they go, in `code`
  std::vector<std::vector<move>> edges;         ///< what phis take on the way there, by target
  std::vector<std::vector<chain_step>> chains;  ///< of access chains
  std::vector<std::vector<std::uint32_t>> lists;
  std::vector<matrix_shape> products;  ///< of cooperative matrices
  std::vector<move> values_at_start;   ///< what variables of an invocation hold when it begins
  std::vector<std::uint32_t>
      initial;  ///< the words of an invocation when it begins: constants and indices of variables
  std::uint32_t private_words = 0, workgroup_words = 0;
  std::map<std::uint32_t, std::uint32_t> built_ins;  ///< their indices among private words

 private:
  [[noreturn]] static void fail(const std::string& what) { throw std::runtime_error("spirv: " + what); }
  template <class Visit>
  void each(std::size_t from, Visit visit) const {
    for (std::size_t at = from; at < words_.size() && visit(at, words_[at] & 0xffff, words_.subspan(at));)
      at += (words_[at] >> 16) == 0 ? words_.size() : words_[at] >> 16;
  }

  // Declarations.
  std::uint32_t index_of(std::uint32_t id, std::uint32_t type_id) {
    type_of_[id] = type_id;
    const std::uint32_t at = static_cast<std::uint32_t>(initial.size());
    initial.resize(at + types_.at(type_id).words);
    return indices_[id] = at;
  }
  std::uint32_t at(std::uint32_t id) const {
    const auto found = indices_.find(id);
    if (found == indices_.end()) fail("id " + std::to_string(id) + " has no value");
    return found->second;
  }
  void declare() {
    each(5, [&](std::size_t from, std::uint32_t code_, std::span<const std::uint32_t> w) {
      if (code_ == op_function) return body_ = from, false;
      const std::uint32_t length = w[0] >> 16;
      if (code_ == op_decorate && length > 3) decorations_[{w[1], w[2]}] = w[3];
      if (code_ == op_member_decorate && w[3] == decoration_offset) offsets_[w[1]][w[2]] = w[4];
      if ((code_ >= op_type_void && code_ <= op_type_function) || code_ == op_type_matrix)
        declare_type(code_, w.first(length));
      if (code_ == op_undef || (code_ >= op_constant_true && code_ <= op_spec_constant_op))
        declare_constant(code_, w.first(length));
      if (code_ == op_variable) declare_variable(w.first(length));
      return true;
    });
  }
  void declare_type(std::uint32_t code_, std::span<const std::uint32_t> w) {
    type t;
    t.code = code_;
    switch (code_) {
      case op_type_bool:
        t.words = 1;
        break;
      case op_type_int:
      case op_type_float:
        t.half = code_ == op_type_float && w[2] == 16;
        if (w[2] != 32 && w[2] != 64 && !t.half) fail("a type of " + std::to_string(w[2]) + " bits");
        t.words = t.half ? 1 : w[2] / 32, t.wide = w[2] == 64;
        break;
      case op_type_vector:
        t.of = w[2], t.count = w[3], t.words = t.count * types_.at(w[2]).words;
        t.wide = types_.at(w[2]).wide, t.half = types_.at(w[2]).half;
        break;
      case op_type_matrix:
        t.of = w[2], t.rows = initial[at(w[4])], t.columns = initial[at(w[5])], t.half = types_.at(w[2]).half;
        if (types_.at(w[2]).code != op_type_float || types_.at(w[2]).wide)
          fail("a matrix of other elements than f16 and f32");
        t.words = t.rows * t.columns / 32;
        break;
      case op_type_array:
        t.of = w[2], t.count = initial[at(w[3])], t.words = t.count * types_.at(w[2]).words;
        t.stride = decoration(w[1], decoration_array_stride);
        break;
      case op_type_runtime_array:
        t.of = w[2], t.stride = decoration(w[1], decoration_array_stride);
        break;
      case op_type_struct:
        t.members.assign(w.begin() + 2, w.end());
        t.count = static_cast<std::uint32_t>(t.members.size());
        t.offsets = offsets_[w[1]];
        for (const std::uint32_t each_ : t.members) t.words += types_[each_].words;
        break;
      case op_type_pointer:
        t.storage = w[2], t.of = w[3], t.words = w[2] == storage_physical ? 2 : 1;
        t.wide = t.words == 2;
        break;
      default:
        break;
    }
    types_[w[1]] = t;
  }
  std::uint32_t decoration(std::uint32_t id, std::uint32_t which) const {
    const auto found = decorations_.find({id, which});
    return found == decorations_.end() ? 0 : found->second;
  }
  void declare_constant(std::uint32_t code_, std::span<const std::uint32_t> w) {
    const std::uint32_t to = index_of(w[2], w[1]);
    const auto of_pipeline = [&](std::uint32_t otherwise) {
      const auto found = decorations_.find({w[2], decoration_spec_id});
      return found != decorations_.end() && found->second < constants_.size() ? constants_[found->second] : otherwise;
    };
    switch (code_) {
      case op_constant_true:
        initial[to] = 1;
        break;
      case op_spec_constant_true:
        initial[to] = of_pipeline(1);
        break;
      case op_spec_constant_false:
        initial[to] = of_pipeline(0);
        break;
      case op_spec_constant:
        initial[to] = of_pipeline(w[3]);
        break;
      case op_constant:
        for (std::size_t i = 3; i < w.size(); ++i) initial[to + i - 3] = w[i];
        if (types_.at(w[1]).half) initial[to] = bits(intaglio::f32_from_f16(static_cast<std::uint16_t>(w[3])));
        break;
      case op_constant_composite:
      case op_spec_constant_composite: {
        std::uint32_t next = to;
        for (const std::uint32_t each_ : w.subspan(3))
          for (std::uint32_t i = 0; i < types_.at(type_of_.at(each_)).words; ++i)
            initial[next++] = initial[at(each_) + i];
        if (types_.at(w[1]).rows != 0)  // one value for all elements
          for (; next < to + types_.at(w[1]).words; ++next) initial[next] = initial[to];
        break;
      }
      case op_spec_constant_op: {
        std::vector<std::uint32_t> as{static_cast<std::uint32_t>(w.size() - 1) << 16 | w[3], w[1], w[2]};
        as.insert(as.end(), w.begin() + 4, w.end());
        const instruction made = read(w[3], as);
        compute(made, initial.data(), *this);
        break;
      }
      default:
        break;  // false, undefined, null: 0
    }
  }
  void declare_variable(std::span<const std::uint32_t> w) {
    const std::uint32_t to = index_of(w[2], w[1]);
    const type& of = types_.at(types_.at(w[1]).of);
    if (w[3] == storage_input) built_ins[decoration(w[2], decoration_built_in)] = private_words;
    if (w[3] == storage_workgroup) initial[to] = std::exchange(workgroup_words, workgroup_words + of.words);
    if (w[3] == storage_input || w[3] == storage_private || w[3] == storage_function)
      initial[to] = std::exchange(private_words, private_words + of.words);
    if (w.size() > 4) values_at_start.push_back({initial[to], at(w[4]), of.words});
  }

  // The function.
  bool constant(std::uint32_t id) const { return indices_.count(id) != 0 && at(id) < constant_words_; }
  std::vector<std::uint32_t> ways(std::span<const std::uint32_t> w) const {
    const std::uint32_t code_ = w[0] & 0xffff;
    if (code_ == op_branch) return {w[1]};
    if (code_ == op_branch_conditional)
      return constant(w[1]) ? std::vector{initial[at(w[1])] != 0 ? w[2] : w[3]} : std::vector{w[2], w[3]};
    if (code_ == op_switch) {
      std::vector<std::uint32_t> out{w[2]};
      for (std::uint32_t i = 3; i + 1 < w[0] >> 16; i += 2) {
        if (constant(w[1]) && initial[at(w[1])] == w[i]) return {w[i + 1]};
        if (!constant(w[1])) out.push_back(w[i + 1]);
      }
      return out;
    }
    return {};
  }
  void find_blocks() {
    constant_words_ = static_cast<std::uint32_t>(initial.size());
    std::uint32_t label = 0, first = 0;
    each(body_, [&](std::size_t from, std::uint32_t code_, std::span<const std::uint32_t> w) {
      if (code_ == op_function && first != 0) fail("a second function");
      if (code_ == op_label) {
        label = w[1];
        if (first == 0) first = label;
        blocks_[label] = from;
      }
      if (code_ >= op_branch && code_ <= op_unreachable) ends_[label] = from;
      return true;
    });
    std::map<std::uint32_t, bool> seen;
    std::vector<std::uint32_t> left{first};
    while (!left.empty()) {
      const std::uint32_t now = left.back();
      left.pop_back();
      if (std::exchange(seen[now], true)) continue;
      reached_.push_back(now);
      each(blocks_.at(now), [&](std::size_t from, std::uint32_t code_, std::span<const std::uint32_t> w) {
        if (has_result(code_)) index_of(w[2], w[1]);
        return from != ends_.at(now);
      });
      for (const std::uint32_t next : ways(words_.subspan(ends_.at(now)))) left.push_back(next);
    }
  }
  void read_block(std::uint32_t label) {
    starts_[label] = static_cast<std::uint32_t>(code.size());
    each(blocks_.at(label), [&](std::size_t from, std::uint32_t code_, std::span<const std::uint32_t> w) {
      if (from == ends_.at(label)) return end_block(label, code_, w), false;
      if (code_ == op_variable) declare_variable(w.first(w[0] >> 16));
      else if (code_ != op_phi && code_ != op_label && code_ != op_loop_merge && code_ != op_selection_merge)
        code.push_back(read(code_, w.first(w[0] >> 16)));
      return true;
    });
  }
  std::uint32_t way(std::uint32_t from, std::uint32_t label) {
    const std::uint32_t out = static_cast<std::uint32_t>(targets.size());
    targets.push_back(0);
    patches_.push_back({out, label});
    std::vector<move> moves;
    each(blocks_.at(label), [&](std::size_t, std::uint32_t code_, std::span<const std::uint32_t> w) {
      if (code_ == op_phi)
        for (std::uint32_t i = 3; i + 1 < w[0] >> 16; i += 2)
          if (w[i + 1] == from) moves.push_back({at(w[2]), at(w[i]), types_.at(w[1]).words});
      return code_ == op_label || code_ == op_phi;
    });
    edges.push_back(std::move(moves));
    return out;
  }
  void end_block(std::uint32_t label, std::uint32_t code_, std::span<const std::uint32_t> w) {
    instruction out{.code = code_};
    const std::vector<std::uint32_t> to = ways(w);
    if (to.size() == 1) out.code = op_branch;
    if (out.code == op_switch) {
      out.a = at(w[1]), out.detail = static_cast<std::uint32_t>(lists.size());
      std::vector<std::uint32_t> cases;
      for (std::uint32_t i = 3; i + 1 < w[0] >> 16; i += 2) cases.push_back(w[i]);
      lists.push_back(cases);
    }
    if (out.code == op_branch_conditional) out.a = at(w[1]);
    for (std::size_t i = 0; i < to.size(); ++i) {
      const std::uint32_t its = way(label, to[i]);
      if (i == 0) out.to = its;
    }
    code.push_back(out);
  }

  instruction read(std::uint32_t code_, std::span<const std::uint32_t> w) {
    instruction out{.code = code_};
    if (has_result(code_)) {
      const type& t = types_.at(w[1]);
      out.to = at(w[2]), out.words = t.words;
      out.count = t.code == op_type_vector ? t.count : 1;
      out.half = t.half;
    }
    const auto words_of = [&](std::uint32_t id) { return types_.at(type_of_.at(id)).words; };
    switch (code_) {
      case op_load:
      case op_store: {
        const std::uint32_t pointer = code_ == op_load ? w[3] : w[1];
        const type& p = types_.at(type_of_.at(pointer));
        out.a = at(pointer), out.detail = p.storage, out.words = types_.at(p.of).words;
        if (code_ == op_store) out.b = at(w[2]);
        if ((p.storage == storage_physical || p.storage == storage_push) && types_.at(p.of).half) fail("f16 in memory");
        out.waits = code_ == op_load && p.storage == storage_physical && w.size() > 4 && (w[4] & 1) != 0;  // volatile
        if ((p.storage == storage_physical || p.storage == storage_push) && types_.at(p.of).code > op_type_vector &&
            types_.at(p.of).code != op_type_pointer)
          fail("a whole struct or array after an address");
        break;
      }
      case op_access_chain:
        out.a = at(w[3]), out.detail = read_chain(w), out.b = types_.at(w[1]).storage;
        break;
      case op_bitcast:
        if (out.half != types_.at(type_of_.at(w[3])).half) {  // two f16 in a word
          if (out.words + words_of(w[3]) != 3) fail("the bits of other than two f16");
          out.code = op_ext_inst, out.detail = out.half ? unpack_half : pack_half, out.a = at(w[3]);
          break;
        }
        [[fallthrough]];
      case op_copy_object:
      case op_convert_ptr_to_u:
      case op_convert_u_to_ptr:
        out.code = op_composite_extract, out.a = at(w[3]);
        break;
      case op_composite_extract:
        out.a = at(w[3]) + inner(type_of_.at(w[3]), w.subspan(4));
        break;
      case op_composite_insert:
        out.a = at(w[3]), out.b = at(w[4]), out.c = inner(type_of_.at(w[4]), w.subspan(5)),
        out.a_words = words_of(w[3]);
        break;
      case op_composite_construct:
      case op_vector_shuffle: {
        out.detail = static_cast<std::uint32_t>(lists.size());
        std::vector<std::uint32_t> from;
        if (code_ == op_composite_construct)
          for (const std::uint32_t each_ : w.subspan(3))
            for (std::uint32_t i = 0; i < words_of(each_); ++i) from.push_back(at(each_) + i);
        if (const type& t = types_.at(w[1]); t.rows != 0) from.assign(t.words, at(w[3]));
        if (code_ == op_vector_shuffle)
          for (const std::uint32_t each_ : w.subspan(5))
            from.push_back(each_ < words_of(w[3]) ? at(w[3]) + each_ : at(w[4]) + each_ - words_of(w[3]));
        lists.push_back(from);
        break;
      }
      case op_ext_inst:
        out.detail = w[4], out.a = at(w[5]), out.b = w.size() > 6 ? at(w[6]) : 0, out.c = w.size() > 7 ? at(w[7]) : 0;
        break;
      case op_shuffle_xor:
      case op_shuffle:
        out.a = at(w[4]), out.b = at(w[5]);
        break;
      case op_matrix_mul_add: {
        out.a = at(w[3]), out.b = at(w[4]), out.c = at(w[5]), out.detail = static_cast<std::uint32_t>(products.size());
        const type &a = types_.at(type_of_.at(w[3])), &b = types_.at(type_of_.at(w[4]));
        const type& t = types_.at(w[1]);
        if (a.rows != 16 || a.columns != 16 || b.rows != 16 || b.columns != 8 || !a.half || !b.half || t.half ||
            t.columns != 8)
          fail("a product of matrices in another shape than 16 x 16 by 16 x 8");
        products.push_back({t.rows, t.columns, a.columns});
        break;
      }
      case op_atomic_i_add:
        out.a = at(w[3]), out.b = at(w[6]);
        break;
      case op_control_barrier:
      case op_memory_barrier:
        break;
      case op_bit_field_insert:
        out.a = at(w[3]), out.b = at(w[4]), out.c = at(w[5]), out.detail = at(w[6]);
        break;
      default:
        read_operands(out, w);
    }
    if (!knows(out))
      fail("instruction " + std::to_string(code_) + (code_ == op_ext_inst ? ", " + std::to_string(out.detail) : ""));
    return out;
  }
  void read_operands(instruction& out, std::span<const std::uint32_t> w) {
    if (w.size() > 3) {
      const type& t = types_.at(type_of_.at(w[3]));
      out.a = at(w[3]), out.a_words = t.code == op_type_vector ? types_.at(t.of).words : t.words;
      if (out.code == op_any || out.code == op_all) out.count = t.count;
      if (out.code == op_select) out.a_words = t.code == op_type_vector;
    }
    if (w.size() > 4) out.b = at(w[4]);
    if (w.size() > 5 && out.code == op_select) out.c = at(w[5]);
    if (w.size() > 5 && out.code == op_bit_field_s_extract) out.c = at(w[5]);
    const std::uint32_t of = out.count == 0 ? 0 : out.words / out.count;
    if (out.code != op_any && out.code != op_all) out.words = of;  // of a component
  }
  std::uint32_t inner(std::uint32_t of, std::span<const std::uint32_t> path) const {
    std::uint32_t out = 0;
    for (const std::uint32_t index : path) {
      const type& t = types_.at(of);
      if (t.code == op_type_struct) {
        for (std::uint32_t i = 0; i < index; ++i) out += types_.at(t.members[i]).words;
        of = t.members[index];
      } else {
        out += index * types_.at(t.of).words;
        of = t.of;
      }
    }
    return out;
  }
  std::uint32_t read_chain(std::span<const std::uint32_t> w) {
    const type& pointer = types_.at(type_of_.at(w[3]));
    const bool laid_out = pointer.storage == storage_physical || pointer.storage == storage_push;
    std::uint32_t of = pointer.of;
    std::vector<chain_step> steps;
    std::uint32_t fixed = 0;
    for (const std::uint32_t id : w.subspan(4)) {
      const type& t = types_.at(of);
      if (t.code == op_type_struct) {
        const std::uint32_t index = initial[at(id)];
        if (laid_out) fixed += t.offsets.at(index);
        else
          for (std::uint32_t i = 0; i < index; ++i) fixed += types_.at(t.members[i]).words;
        of = t.members[index];
      } else {
        const std::uint32_t each_ = !laid_out                  ? types_.at(t.of).words
                                    : t.code == op_type_vector ? 4 * types_.at(t.of).words
                                                               : t.stride;
        if (constant(id)) fixed += each_ * initial[at(id)];
        else steps.push_back({true, each_, at(id)});
        of = t.of;
      }
    }
    if (fixed != 0) steps.push_back({false, fixed, 0});
    chains.push_back(steps);
    return static_cast<std::uint32_t>(chains.size() - 1);
  }

  std::span<const std::uint32_t> words_, constants_;
  std::size_t body_ = 0;
  std::uint32_t constant_words_ = 0;
  std::map<std::uint32_t, type> types_;
  std::map<std::uint32_t, std::uint32_t> type_of_, indices_, starts_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> decorations_;
  std::map<std::uint32_t, std::map<std::uint32_t, std::uint32_t>> offsets_;
  std::map<std::uint32_t, std::size_t> blocks_, ends_;
  std::vector<std::uint32_t> reached_;
  std::vector<std::pair<std::size_t, std::uint32_t>> patches_;
};

}  // namespace spirv
