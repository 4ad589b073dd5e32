// SPDX-License-Identifier: MIT
// The interface between a kernel's shader and its C++ side: push constants in order, specialization constants by id,
// workgroup width. kernels/reflection.hpp compares every SPIR-V module with its interface at compile time.
#pragma once

#include "intaglio/core/message.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "intaglio/core/short_name.hpp"

namespace intaglio::kernels {

/// Types of constants. binary: the words 0 and 1 in every dispatch (shaders/include/unrolled.glsl).
enum class field_type : std::uint8_t { address, u32, f32, boolean, binary };

/// Bytes of a constant of this type.
constexpr std::uint32_t size_bytes(field_type type) {
  return type == field_type::address || type == field_type::binary ? 8u : 4u;
}
/// Value of a 64-bit push constant that is not bound.
constexpr std::uint64_t unbound(field_type type) { return type == field_type::binary ? std::uint64_t{1} << 32 : 0; }

/// One push constant: addresses are 64-bit device addresses.
struct push_constant {
  short_name<22> name;
  field_type type = field_type::address;
};

/// One specialization constant; its constant_id is its index in the list.
struct specialization_constant {
  short_name<22> name;
  field_type type = field_type::u32;
};

/// The most push constants of a kernel.
inline constexpr std::size_t max_push_constants = 14;
/// The most specialization constants of a kernel.
inline constexpr std::size_t max_specialization_constants = 48;
/// The push constant bytes that every Vulkan device offers; a kernel may not need more.
inline constexpr std::uint32_t max_push_constant_bytes = 128;

/// The constants of an interface, exactly as many as it has. The list that initializes them lives as long as the
/// variable that holds them.
template <class Constant>
struct constant_list {
  std::initializer_list<Constant> items;
  constexpr std::size_t size() const { return items.size(); }
  constexpr const Constant& operator[](std::size_t i) const { return items.begin()[i]; }
};
/// Index of the constant with a name, or `none`.
template <class Constant>
constexpr std::size_t index_of_name(const constant_list<Constant>& among, std::string_view wanted, std::size_t none) {
  std::size_t i = 0;
  for (const Constant& each : among.items) {
    if (each.name.length == wanted.size() && are_equal({each.name.letters, each.name.length}, wanted)) return i;
    ++i;
  }
  return none;
}

/// The interface of one kernel. Specialization constant 0 is always the workgroup's width in x.
struct kernel_interface {
  std::string_view name;
  constant_list<push_constant> push{};
  constant_list<specialization_constant> specialization{};

  constexpr std::size_t push_count() const {
    std::size_t n = 0;
    while (n < push.size() && !push[n].name.empty()) ++n;
    return n;
  }
  constexpr std::size_t specialization_count() const {
    std::size_t n = 0;
    while (n < specialization.size() && !specialization[n].name.empty()) ++n;
    return n;
  }
  /// Byte offset of push constant `index`. Addresses come first in every interface, so there is no padding.
  constexpr std::uint32_t push_offset(std::size_t index) const {
    std::uint32_t bytes = 0;
    for (std::size_t i = 0; i < index; ++i) bytes += size_bytes(push[i].type);
    return bytes;
  }
  constexpr std::uint32_t push_bytes() const { return push_offset(push_count()); }
  /// The 64-bit push constants of a dispatch before any is bound.
  std::vector<std::uint64_t> unbound_push() const {
    std::vector<std::uint64_t> out(push_count());
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = unbound(push[i].type);
    return out;
  }

  /// Index of a push constant by name, or max_push_constants if there is none.
  constexpr std::size_t push_index(std::string_view wanted) const {
    return index_of_name(push, wanted, max_push_constants);
  }
  /// Index of a specialization constant by name, or max_specialization_constants if there is none.
  constexpr std::size_t specialization_index(std::string_view wanted) const {
    return index_of_name(specialization, wanted, max_specialization_constants);
  }
};

}  // namespace intaglio::kernels
