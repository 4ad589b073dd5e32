// SPDX-License-Identifier: MIT
// Reads the interface of a SPIR-V module in a constant expression and compares it with the C++ one. Only the part
// before the first function is read. Every access is checked, and malformed input ends in a problem, never in a loop.
// Numbers: SPIR-V specification 1.6, section 3.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "intaglio/core/message.hpp"
#include "intaglio/kernels/interface.hpp"

namespace intaglio::kernels {

/// Types that an interface may use, as a module declares them; `other` is any other type.
enum class spirv_type : std::uint8_t { other, address, u32, i32, u64, uvec2, f32, boolean };

/// The type's name in messages.
constexpr std::string_view name(spirv_type type) {
  constexpr std::string_view names[] = {"another type", "an address", "u32", "i32", "u64", "uvec2", "f32", "bool"};
  return names[static_cast<std::size_t>(type)];
}
/// The type's name in messages.
constexpr std::string_view name(field_type type) {
  return type == field_type::address  ? "an address"
         : type == field_type::u32    ? "u32"
         : type == field_type::f32    ? "f32"
         : type == field_type::binary ? "uvec2"
                                      : "bool";
}

/// One member of a module's push-constant block. A trailing underscore, for names that GLSL reserves, is not part of
/// the name.
struct reflected_member {
  std::string_view name;
  spirv_type type = spirv_type::other;
  std::uint32_t offset_bytes = 0;
};

/// One specialization constant of a module.
struct reflected_constant {
  std::string_view name;  ///< empty for a workgroup size that no constant of the shader names
  spirv_type type = spirv_type::other;
  std::uint32_t id = 0;            ///< constant_id
  std::uint32_t default_bits = 0;  ///< 0 or 1 for bool
};

/// The id of a workgroup size that is not specialised.
inline constexpr std::uint32_t no_specialization = ~0u;

/// The interface that a module declares. Names point into the module.
struct reflected_module {
  std::string_view problem;  ///< empty if the module could be read
  std::uint32_t problem_word = 0;
  std::string_view entry_point;
  std::array<reflected_member, max_push_constants + 4> push{};
  std::size_t push_count = 0;
  std::uint32_t push_bytes = 0;  ///< end of the last member; members of other types count as 4
  std::array<reflected_constant, max_specialization_constants + 2> constants{};  ///< by rising constant_id
  std::size_t constant_count = 0;
  std::array<std::uint32_t, 24> capabilities{};
  std::size_t capability_count = 0;
  std::array<std::uint32_t, 3> local_size{1, 1, 1};  ///< defaults where specialised
  std::array<std::uint32_t, 3> local_size_id{no_specialization, no_specialization, no_specialization};

  constexpr bool needs(std::uint32_t capability) const {
    for (std::size_t i = 0; i < capability_count; ++i)
      if (capabilities[i] == capability) return true;
    return false;
  }
};

/// Reads one module once; only `reflect` uses it.
class spirv_reader {
 public:
  constexpr spirv_reader(const char* bytes, std::size_t size_bytes) : bytes_(bytes), words_(size_bytes / 4) {
    if (size_bytes % 4 != 0) fail("its size is no multiple of 4");
    else if (words_ < 5 || word(0) != 0x07230203) fail("it does not begin with SPIR-V's magic number");
  }

  constexpr reflected_module read() {
    for (begin(); next();) declaration(opcode_);
    // Names and member decorations come before the types that show which of them matter.
    if (block_ != 0) read_block();
    read_constants();
    return out_;
  }

 private:
  enum : std::uint32_t {
    op_name = 5,
    op_member_name = 6,
    op_entry_point = 15,
    op_execution_mode = 16,
    op_capability = 17,
    op_type_bool = 20,
    op_type_int = 21,
    op_type_float = 22,
    op_type_vector = 23,
    op_type_struct = 30,
    op_type_pointer = 32,
    op_constant = 43,
    op_spec_constant_true = 48,
    op_spec_constant_false = 49,
    op_spec_constant = 50,
    op_function = 54,
    op_variable = 59,
    op_decorate = 71,
    op_member_decorate = 72,
    op_execution_mode_id = 331
  };
  enum : std::uint32_t {
    decoration_spec_id = 1,
    decoration_offset = 35,
    storage_push_constant = 9,
    storage_physical = 5349,
    mode_local_size = 17,
    mode_local_size_id = 38
  };
  struct typed {
    std::uint32_t id = 0, type = 0, value = 0;
  };
  template <std::size_t N>
  struct list {
    std::array<typed, N> items{};
    std::size_t size = 0;
    constexpr const typed* find(std::uint32_t id) const {
      for (std::size_t i = 0; i < size; ++i)
        if (items[i].id == id) return &items[i];
      return nullptr;
    }
  };

  constexpr std::uint32_t word(std::size_t index) const {
    const char* at = bytes_ + 4 * index;
    return static_cast<std::uint32_t>(static_cast<unsigned char>(at[0])) |
           static_cast<std::uint32_t>(static_cast<unsigned char>(at[1])) << 8 |
           static_cast<std::uint32_t>(static_cast<unsigned char>(at[2])) << 16 |
           static_cast<std::uint32_t>(static_cast<unsigned char>(at[3])) << 24;
  }
  constexpr void fail(std::string_view problem) {
    if (!out_.problem.empty()) return;
    out_.problem = problem;
    out_.problem_word = static_cast<std::uint32_t>(at_);
  }
  /// Operand `index` of the current instruction; the first is 1.
  constexpr std::uint32_t operand(std::uint32_t index) {
    if (index < length_) return word(at_ + index);
    fail("an instruction lacks an operand");
    return 0;
  }
  /// The string that begins at operand `index`.
  constexpr std::string_view string(std::uint32_t index) {
    const std::size_t begin = 4 * (at_ + index), end = 4 * (at_ + length_);
    for (std::size_t i = begin; i < end; ++i)
      if (bytes_[i] == '\0') return {bytes_ + begin, i - begin};
    fail("a name does not end");
    return {};
  }
  template <std::size_t N>
  constexpr void add(list<N>& to, typed item) {
    if (to.size == N) return fail("it declares more than the reader has room for");
    to.items[to.size++] = item;
  }

  /// `begin` and `next` walk the instructions up to the first function.
  constexpr void begin() { at_ = 5, length_ = 0; }
  constexpr bool next() {
    if (!out_.problem.empty()) return false;
    at_ += length_;
    if (at_ >= words_) return fail("it has no function"), false;
    const std::uint32_t head = word(at_);
    length_ = head >> 16;
    opcode_ = head & 0xFFFF;
    if (length_ == 0 || length_ > words_ - at_) return fail("an instruction has no possible length"), false;
    return opcode_ != op_function;
  }

  constexpr void declaration(std::uint32_t opcode) {
    switch (opcode) {
      case op_capability:
        if (out_.capability_count == out_.capabilities.size())
          return fail("it declares more capabilities than the reader has room for");
        out_.capabilities[out_.capability_count++] = operand(1);
        return;
      case op_entry_point:
        if (!out_.entry_point.empty()) return fail("it has more than one entry point");
        if (operand(1) != 5) return fail("its entry point is no compute shader");
        out_.entry_point = string(3);
        return;
      case op_execution_mode:
      case op_execution_mode_id: {
        const std::uint32_t mode = operand(2);
        if (mode != mode_local_size && mode != mode_local_size_id) return;
        for (std::uint32_t axis = 0; axis < 3; ++axis)
          (mode == mode_local_size ? out_.local_size : size_ids_)[axis] = operand(3 + axis);
        return;
      }
      case op_decorate:
        if (operand(2) == decoration_spec_id) add(spec_ids_, {operand(1), 0, operand(3)});
        return;
      case op_constant:
      case op_spec_constant:
        return add(constants_, {operand(2), operand(1), operand(3)});
      case op_spec_constant_true:
      case op_spec_constant_false:
        return add(constants_, {operand(2), operand(1), opcode == op_spec_constant_true ? 1u : 0u});
      case op_variable:
        if (operand(3) != storage_push_constant) return;
        if (block_ != 0) return fail("it has more than one push-constant block");
        if (const typed* pointer = push_pointers_.find(operand(1))) block_ = pointer->type;
        if (block_ == 0) fail("its push-constant variable has no known type");
        return;
      default:
        return type_declaration(opcode);
    }
  }
  constexpr void type_declaration(std::uint32_t opcode) {
    switch (opcode) {
      case op_type_bool:
        return add(types_, {operand(1), static_cast<std::uint32_t>(spirv_type::boolean), 0});
      case op_type_int: {
        const std::uint32_t width = operand(2), is_signed = operand(3);
        const spirv_type type = width == 32   ? is_signed != 0 ? spirv_type::i32 : spirv_type::u32
                                : width == 64 ? is_signed != 0 ? spirv_type::other : spirv_type::u64
                                              : spirv_type::other;
        return add(types_, {operand(1), static_cast<std::uint32_t>(type), 0});
      }
      case op_type_float:
        return add(types_,
                   {operand(1), static_cast<std::uint32_t>(operand(2) == 32 ? spirv_type::f32 : spirv_type::other), 0});
      case op_type_vector:
        if (operand(3) == 2 && type_of(operand(2)) == spirv_type::u32)
          add(types_, {operand(1), static_cast<std::uint32_t>(spirv_type::uvec2), 0});
        return;
      case op_type_pointer:
        if (operand(2) == storage_physical)
          add(types_, {operand(1), static_cast<std::uint32_t>(spirv_type::address), 0});
        if (operand(2) == storage_push_constant) add(push_pointers_, {operand(1), operand(3), 0});
        return;
      case op_type_struct:
        return add(structs_, {operand(1), static_cast<std::uint32_t>(at_), length_ - 2});
      default:
        return;
    }
  }

  constexpr spirv_type type_of(std::uint32_t id) const {
    const typed* found = types_.find(id);
    return found == nullptr ? spirv_type::other : static_cast<spirv_type>(found->type);
  }
  static constexpr std::string_view without_underscore(std::string_view name) {
    return !name.empty() && name.back() == '_' ? name.substr(0, name.size() - 1) : name;
  }

  constexpr void read_block() {
    const typed* block = structs_.find(block_);
    if (block == nullptr) return fail("its push-constant block is no structure");
    if (block->value > out_.push.size()) return fail("it has more push constants than the reader has room for");
    out_.push_count = block->value;
    for (std::uint32_t i = 0; i < block->value; ++i) out_.push[i].type = type_of(word(block->type + 2 + i));
    for (begin(); next();) {
      if ((opcode_ != op_member_name && opcode_ != op_member_decorate) || operand(1) != block_) continue;
      const std::uint32_t member = operand(2);
      if (member >= out_.push_count) return fail("it decorates a member that its push-constant block does not have");
      if (opcode_ == op_member_name) out_.push[member].name = without_underscore(string(3));
      else if (operand(3) == decoration_offset) out_.push[member].offset_bytes = operand(4);
    }
    for (std::size_t i = 0; i < out_.push_count; ++i) {
      const spirv_type type = out_.push[i].type;
      const bool wide = type == spirv_type::address || type == spirv_type::u64 || type == spirv_type::uvec2;
      const std::uint32_t begin = out_.push[i].offset_bytes, end = begin < 0xFFFF ? begin + (wide ? 8 : 4) : begin;
      if (end > out_.push_bytes) out_.push_bytes = end;
    }
  }

  constexpr void read_constants() {
    if (!out_.problem.empty()) return;
    if (spec_ids_.size > out_.constants.size())
      return fail("it has more specialization constants than the reader has room for");
    for (std::size_t i = 0; i < spec_ids_.size; ++i) {
      const typed* found = constants_.find(spec_ids_.items[i].id);
      if (found == nullptr) return fail("it gives a constant_id to something that is no constant");
      const std::uint32_t id = spec_ids_.items[i].value;
      std::size_t index = out_.constant_count;
      while (index > 0 && out_.constants[index - 1].id >= id) --index;
      // glslc declares the workgroup's width twice if the shader names it too.
      if (index < out_.constant_count && out_.constants[index].id == id) {
        if (out_.constants[index].type != type_of(found->type)) return fail("two types share one constant_id");
        continue;
      }
      for (std::size_t j = out_.constant_count++; j > index; --j) out_.constants[j] = out_.constants[j - 1];
      out_.constants[index] = {{}, type_of(found->type), id, found->value};
    }
    for (begin(); next();) {
      if (opcode_ != op_name) continue;
      const typed* id = spec_ids_.find(operand(1));
      for (std::size_t i = 0; id != nullptr && i < out_.constant_count; ++i)
        if (out_.constants[i].id == id->value) out_.constants[i].name = without_underscore(string(2));
    }
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (size_ids_[axis] == 0) continue;
      if (const typed* size = constants_.find(size_ids_[axis])) out_.local_size[axis] = size->value;
      if (const typed* id = spec_ids_.find(size_ids_[axis])) out_.local_size_id[axis] = id->value;
    }
  }

  const char* bytes_;
  std::size_t words_;
  std::size_t at_ = 0;
  std::uint32_t length_ = 0, opcode_ = 0, block_ = 0;
  std::array<std::uint32_t, 3> size_ids_{};
  list<max_specialization_constants + 2> spec_ids_{};
  list<64> types_{};         ///< type: spirv_type
  list<64> structs_{};       ///< type: word of the instruction, value: members
  list<8> push_pointers_{};  ///< type: pointee
  list<256> constants_{};    ///< type: type id, value: bits
  reflected_module out_{};
};

/// Reads the interface of a module. @param module little-endian bytes of SPIR-V
constexpr reflected_module reflect(std::string_view module) {
  return spirv_reader(module.data(), module.size()).read();
}
/// Reads the interface of a module from its literal.
/// @param module the literal of kernels/spirv/<name>.hpp; its closing NUL is not part of the module
template <std::size_t N>
constexpr reflected_module reflect(const char (&module)[N]) {
  return reflect(std::string_view(module, N - 1));
}

/// Whether a module's type is the type that an interface expects.
constexpr bool same_type(field_type expected, spirv_type found) {
  switch (expected) {
    case field_type::address:
      return found == spirv_type::address || found == spirv_type::u64 || found == spirv_type::uvec2;
    case field_type::u32:
      return found == spirv_type::u32;
    case field_type::f32:
      return found == spirv_type::f32;
    case field_type::boolean:
      return found == spirv_type::boolean;
    case field_type::binary:
      return found == spirv_type::uvec2;
  }
  return false;
}

/// Whether a module may lack specialization constants, because not every form of a kernel uses each of them.
enum class unused_constants : bool { refused, allowed };

/// The first difference between a module and the C++ interface as one sentence; empty if they agree. Example:
/// "ternary_matmul: push constant 3 is 'weights' at offset 24 in the shader, 'weight' at offset 24 in the C++
/// interface".
constexpr text<> difference(const kernel_interface& expected, const reflected_module& module,
                            unused_constants unused = unused_constants::refused) {
  text<> out(expected.name);
  if (!module.problem.empty())
    return out.append(": the SPIR-V module is unusable at word ", module.problem_word, ": ", module.problem);
  if (module.entry_point != "main")
    return out.append(": the entry point is '", module.entry_point, "' in the shader, expected 'main'");
  static_assert(8 * max_push_constants <= max_push_constant_bytes,
                "any C++ interface fits, so the shader alone needs a look");
  if (module.push_bytes > max_push_constant_bytes)
    return out.append(": push constants take ", module.push_bytes, " bytes in the shader, every device has room for ",
                      max_push_constant_bytes);

  const std::size_t push = expected.push_count() > module.push_count ? expected.push_count() : module.push_count;
  for (std::size_t i = 0; i < push; ++i) {
    const bool in_module = i < module.push_count, in_interface = i < expected.push_count();
    const reflected_member found = in_module ? module.push[i] : reflected_member{};
    const push_constant wanted = in_interface ? expected.push[i] : push_constant{};
    const std::uint32_t offset = in_interface ? expected.push_offset(i) : 0;
    if (in_module && in_interface && found.name == wanted.name && found.offset_bytes == offset) {
      if (same_type(wanted.type, found.type)) continue;
      return out.append(": push constant ", i, ", '", wanted.name, "', is ", found.type, " in the shader, ",
                        wanted.type, " in the C++ interface");
    }
    out.append(": push constant ", i, " is ");
    if (in_module) out.append("'", found.name, "' at offset ", found.offset_bytes, " in the shader, ");
    else out.append("missing in the shader, ");
    if (in_interface) return out.append("'", wanted.name, "' at offset ", offset, " in the C++ interface");
    return out.append("missing in the C++ interface");
  }

  std::size_t at = 0;
  const std::size_t constants = expected.specialization_count();
  for (std::size_t i = 0; i < constants || at < module.constant_count; ++i) {
    const bool in_module = at < module.constant_count && module.constants[at].id == i;
    const bool in_interface = i < constants;
    if (in_interface && !in_module && unused == unused_constants::allowed) continue;
    if (!in_interface && !in_module) i = module.constants[at].id;
    const reflected_constant found = in_module || !in_interface ? module.constants[at++] : reflected_constant{};
    const specialization_constant wanted = in_interface ? expected.specialization[i] : specialization_constant{};
    // The workgroup's width needs no name: local_size_x_id is enough to declare it.
    if (in_module && in_interface && (found.name == wanted.name || (i == 0 && found.name.empty()))) {
      if (same_type(wanted.type, found.type)) continue;
      return out.append(": specialization constant ", i, ", '", wanted.name, "', is ", found.type, " in the shader, ",
                        wanted.type, " in the C++ interface");
    }
    out.append(": specialization constant ", i, " is ");
    if (in_module || !in_interface) out.append("'", found.name, "' in the shader, ");
    else out.append("missing or unused in the shader, ");
    if (in_interface) return out.append("'", wanted.name, "' in the C++ interface");
    return out.append("missing in the C++ interface");
  }

  if (module.local_size_id[0] != 0 || module.local_size[1] != 1 || module.local_size[2] != 1 ||
      module.local_size_id[1] != no_specialization || module.local_size_id[2] != no_specialization)
    return out.append(": the workgroup is not as wide as specialization constant 0 and 1 in y and z in the shader");
  return {};
}

/// Compares a shader with an interface. @return empty if they agree, else a sentence with the difference
template <std::size_t N>
constexpr text<> matches(const kernel_interface& expected, const char (&module)[N],
                         unused_constants unused = unused_constants::refused) {
  return difference(expected, reflect(module), unused);
}

/// `agrees` if Difference, a text, is empty; otherwise compilation fails and the compiler shows the text.
template <auto Difference>
struct shader_interface {
  static_assert(reason<Difference>::model_fits, "intaglio: a shader and its C++ interface differ");
  static constexpr bool agrees = true;
};

}  // namespace intaglio::kernels
