// SPDX-License-Identifier: MIT
// Demands of a SPIR-V module with given specialization constants: shared memory, workgroup size, capabilities. They are
// read from the module's declarations, also in a constant expression; none is written by hand. Numbers: SPIR-V
// specification 1.6, section 3. Sizes: standard storage buffer layout (std430) in the order of declaration, as Vulkan
// 1.3 counts storage class Workgroup (maxComputeSharedMemorySize).
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "intaglio/core/checked.hpp"
#include "intaglio/kernels/specialized_arithmetic.hpp"

namespace intaglio::kernels {

/// The demands of one dispatch of one module.
struct module_demands {
  std::string_view problem;  ///< empty if the module could be read
  std::uint32_t problem_word = 0;
  std::uint64_t shared_memory_bytes = 0;
  std::array<std::uint32_t, 3> workgroup{1, 1, 1};  ///< invocations in x, y and z
  std::array<std::uint32_t, 24> capabilities{};
  std::size_t capability_count = 0;

  /// Invocations of a workgroup; the largest number if the product overflows.
  constexpr std::uint64_t invocations() const {
    const checked_size all = checked_size{workgroup[0]} * workgroup[1] * workgroup[2];
    return all ? all.value() : (std::numeric_limits<std::uint64_t>::max)();
  }
  constexpr bool needs(std::uint32_t capability) const {
    for (std::size_t i = 0; i < capability_count; ++i)
      if (capabilities[i] == capability) return true;
    return false;
  }
};

/// Reads one module once; only `demands_of` uses it. Words: a type whose size() and operator[] give the module's words.
/// Constant: called with a constant_id and its default bits, it gives the constant's bits.
template <class Words, class Constant>
class demand_reader {
 public:
  constexpr demand_reader(Words words, Constant constant) : words_(words), constant_(constant) {
    if (words_.size() < 5 || words_[0] != 0x07230203) fail("it does not begin with SPIR-V's magic number");
    else if (words_[3] > most_ids) fail("it has more ids than SPIR-V allows");
    else index_of_.assign(words_[3], 0);  // resize(n) is not a constant expression for clang 16 with libstdc++ 12
  }

  constexpr module_demands read() {
    if (!out_.problem.empty()) return out_;
    for (at_ = 5, length_ = 0; next();) declaration();
    for (std::size_t axis = 0; axis < 3 && out_.problem.empty(); ++axis) {
      if (size_ids_[axis] == 0) continue;
      const specialized_value* size = known(values_, size_ids_[axis]);
      if (size == nullptr || !size->known) fail("the size of its workgroup is no constant that can be read");
      else out_.workgroup[axis] = static_cast<std::uint32_t>(size->bits);
    }
    if (out_.problem.empty() && !shared_) fail("its shared memory takes more bytes than 64 bits can count");
    out_.shared_memory_bytes = shared_.value();
    return out_;
  }

 private:
  enum : std::uint32_t {
    op_execution_mode = 16,
    op_capability = 17,
    op_type_bool = 20,
    op_type_int = 21,
    op_type_float = 22,
    op_type_vector = 23,
    op_type_matrix = 24,
    op_type_array = 28,
    op_type_struct = 30,
    op_type_pointer = 32,
    op_constant_true = 41,
    op_constant_false = 42,
    op_constant = 43,
    op_constant_composite = 44,
    op_constant_null = 46,
    op_spec_constant_true = 48,
    op_spec_constant_false = 49,
    op_spec_constant = 50,
    op_spec_constant_composite = 51,
    op_spec_constant_op = 52,
    op_function = 54,
    op_variable = 59,
    op_decorate = 71,
    op_execution_mode_id = 331
  };
  enum : std::uint32_t {
    decoration_spec_id = 1,
    decoration_built_in = 11,
    built_in_workgroup_size = 25,
    storage_workgroup = 4,
    storage_physical = 5349,
    mode_local_size = 17,
    mode_local_size_id = 38,
    capability_explicit_workgroup_layout = 4428,
    most_ids = 0x3FFFFF  ///< section 2.17, universal limits
  };
  /// A type that memory can hold: its size, its alignment, and the width of integers and bools.
  struct memory_type {
    std::uint32_t id = 0;
    checked_size bytes = 0;
    std::uint32_t alignment = 0;  ///< 0: the size cannot be read
    std::uint32_t width = 0;      ///< bits of an integer or float, 1 of a bool, 0 of others
    bool is_integer = false;
  };
  struct pair {
    std::uint32_t id = 0, value = 0;
  };

  constexpr void fail(std::string_view problem) {
    if (!out_.problem.empty()) return;
    out_.problem = problem;
    out_.problem_word = static_cast<std::uint32_t>(at_);
  }
  constexpr std::uint32_t operand(std::uint32_t index) {
    if (index < length_) return words_[at_ + index];
    fail("an instruction lacks an operand");
    return 0;
  }
  static constexpr const pair* find(const std::vector<pair>& in, std::uint32_t id) {
    for (const pair& each : in)
      if (each.id == id) return &each;
    return nullptr;
  }
  /// The type or value with an id, if it was declared.
  template <class T>
  constexpr const T* known(const std::vector<T>& in, std::uint32_t id) const {
    if (id >= index_of_.size() || index_of_[id] >= in.size() || in[index_of_[id]].id != id) return nullptr;
    return &in[index_of_[id]];
  }
  template <class T>
  constexpr void declare(std::vector<T>& in, const T& its) {
    if (its.id >= index_of_.size()) return fail("an id is beyond the bound that it states");
    index_of_[its.id] = static_cast<std::uint32_t>(in.size());
    in.push_back(its);
  }
  constexpr memory_type type_of(std::uint32_t id) const {
    const memory_type* found = known(types_, id);
    return found == nullptr ? memory_type{id} : *found;
  }

  /// The next instruction before the first function. A module without functions may end instead.
  constexpr bool next() {
    if (!out_.problem.empty()) return false;
    at_ += length_;
    if (at_ >= words_.size()) return false;
    const std::uint32_t head = words_[at_];
    length_ = head >> 16;
    opcode_ = head & 0xFFFF;
    if (length_ == 0 || length_ > words_.size() - at_) return fail("an instruction has no possible length"), false;
    return opcode_ != op_function;
  }

  constexpr void declaration() {
    switch (opcode_) {
      case op_capability:
        if (out_.capability_count == out_.capabilities.size())
          return fail("it declares more capabilities than the reader has room for");
        if (operand(1) == capability_explicit_workgroup_layout)
          return fail("it lays its shared memory out itself, which is not read");
        out_.capabilities[out_.capability_count++] = operand(1);
        return;
      case op_execution_mode:
      case op_execution_mode_id:
        if (operand(2) != mode_local_size && operand(2) != mode_local_size_id) return;
        for (std::uint32_t axis = 0; axis < 3; ++axis)
          (operand(2) == mode_local_size ? out_.workgroup : size_ids_)[axis] = operand(3 + axis);
        return;
      case op_decorate:
        if (operand(2) == decoration_spec_id) spec_ids_.push_back({operand(1), operand(3)});
        else if (operand(2) == decoration_built_in && operand(3) == built_in_workgroup_size) sizes_id_ = operand(1);
        return;
      case op_variable:
        if (operand(3) == storage_workgroup) variable();
        return;
      default:
        if (opcode_ >= op_type_bool && opcode_ <= op_type_pointer) type();
        else if (opcode_ >= op_constant_true && opcode_ <= op_spec_constant_op) constant();
    }
  }

  constexpr void type() {
    const std::uint32_t id = operand(1);
    switch (opcode_) {
      case op_type_bool:
        return add_type({id, 4, 4, 1, true});
      case op_type_int:
      case op_type_float: {
        const std::uint32_t width = operand(2);
        if (width != 8 && width != 16 && width != 32 && width != 64) return fail("it has numbers of an unknown width");
        return add_type({id, width / 8, width / 8, width, opcode_ == op_type_int});
      }
      case op_type_vector:
      case op_type_matrix: {  // a matrix is an array of its columns
        const memory_type part = type_of(operand(2));
        const std::uint32_t count = operand(3);
        if (opcode_ == op_type_matrix) return add_type(array_of(id, part, count));
        return add_type({id, part.bytes * count, part.alignment * (count == 2 ? 2 : 4)});
      }
      case op_type_array: {
        const memory_type part = type_of(operand(2));
        const specialized_value* count = known(values_, operand(3));
        if (count == nullptr || !count->known) return add_type({id});
        return add_type(array_of(id, part, count->bits));
      }
      case op_type_struct:
        return add_type(structure(id));
      case op_type_pointer:
        if (operand(2) == storage_workgroup) pointees_.push_back({id, operand(3)});
        else if (operand(2) == storage_physical) add_type({id, 8, 8});
        return;
      default:
        return;
    }
  }
  constexpr void add_type(const memory_type& its) { declare(types_, its); }
  static constexpr memory_type array_of(std::uint32_t id, const memory_type& part, std::uint64_t count) {
    if (part.alignment == 0) return {id};
    return {id, part.bytes.round_up(part.alignment) * count, part.alignment};
  }
  constexpr memory_type structure(std::uint32_t id) {
    memory_type out{id, 0, 1};
    for (std::uint32_t i = 2; i < length_; ++i) {
      const memory_type member = type_of(operand(i));
      if (member.alignment == 0) return {id};
      out.bytes = out.bytes.round_up(member.alignment) + member.bytes;
      if (member.alignment > out.alignment) out.alignment = member.alignment;
    }
    out.bytes = out.bytes.round_up(out.alignment);
    return out;
  }

  constexpr void variable() {
    const pair* pointee = find(pointees_, operand(1));
    const memory_type its = pointee == nullptr ? memory_type{} : type_of(pointee->value);
    if (its.alignment == 0) return fail("a variable of its shared memory has no size that can be read");
    shared_ = shared_.round_up(its.alignment) + its.bytes;
  }

  /// The bits of the current constant; for a specialization constant the given ones.
  constexpr std::uint64_t specialized(std::uint32_t id, std::uint64_t bits) {
    const pair* spec = find(spec_ids_, id);
    if (spec == nullptr || opcode_ < op_spec_constant_true) return bits;
    return constant_(spec->value, static_cast<std::uint32_t>(bits));
  }
  constexpr void constant() {
    const std::uint32_t id = operand(2);
    const memory_type its = type_of(operand(1));
    specialized_value out{id, 0, its.width, false};
    switch (opcode_) {
      case op_constant_true:
      case op_constant_false:
      case op_spec_constant_true:
      case op_spec_constant_false: {
        const bool value = opcode_ == op_constant_true || opcode_ == op_spec_constant_true;
        out.bits = specialized(id, value ? 1 : 0) != 0 ? 1 : 0;
        out.known = true;
        break;
      }
      case op_constant:
      case op_spec_constant: {
        const std::uint64_t high = length_ > 4 ? operand(4) : 0;
        const std::uint64_t bits = high << 32 | operand(3);
        out.bits = within(its.width == 64 ? bits : specialized(id, bits), its.width);
        out.known = its.is_integer;
        break;
      }
      case op_constant_null:
        out.known = its.is_integer;
        break;
      case op_constant_composite:
      case op_spec_constant_composite:
        if (id == sizes_id_)  // wins over the execution mode
          for (std::uint32_t axis = 0; axis < 3; ++axis) size_ids_[axis] = operand(3 + axis);
        return;
      case op_spec_constant_op:
        out = operation(id, its);
        break;
      default:
        return;
    }
    declare(values_, out);
  }
  /// Evaluates OpSpecConstantOp. The result is unknown if an operand is, or if the operation is not on integers.
  constexpr specialized_value operation(std::uint32_t id, const memory_type& its) {
    specialized_value out{id, 0, its.width, false};
    std::array<specialized_value, 3> of{};
    if (!its.is_integer || length_ < 5 || length_ > 4 + of.size()) return out;
    for (std::uint32_t i = 4; i < length_; ++i) {
      const specialized_value* found = known(values_, operand(i));
      if (found == nullptr || !found->known) return out;
      of[i - 4] = *found;
    }
    out.known = evaluate_specialized(operand(3), length_ - 4, of, out);
    return out;
  }

  Words words_;
  Constant constant_;
  std::size_t at_ = 0;
  std::uint32_t length_ = 0, opcode_ = 0;
  std::array<std::uint32_t, 3> size_ids_{};
  std::uint32_t sizes_id_ = 0;  ///< the id that is decorated as WorkgroupSize
  std::vector<pair> spec_ids_, pointees_;
  std::vector<std::uint32_t> index_of_;  ///< by id: index in types_ or values_
  std::vector<memory_type> types_;
  std::vector<specialized_value> values_;
  checked_size shared_ = 0;
  module_demands out_{};
};

/// Words of a module, read from little-endian bytes at any address.
template <class Byte>
struct words_in_bytes {
  const Byte* bytes = nullptr;
  std::size_t count = 0;  ///< bytes
  constexpr std::size_t size() const { return count / 4; }
  constexpr std::uint32_t operator[](std::size_t index) const {
    std::uint32_t out = 0;
    for (std::size_t i = 4; i-- > 0;) out = out << 8 | static_cast<unsigned char>(bytes[4 * index + i]);
    return out;
  }
};

/// The demands of a module. The words before its first function are enough.
/// @param constant called with a constant_id and its default bits, gives the constant's bits
template <class Words, class Constant>
constexpr module_demands demands_of(Words words, Constant constant) {
  return demand_reader<Words, Constant>(words, constant).read();
}

}  // namespace intaglio::kernels
