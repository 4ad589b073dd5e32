// SPDX-License-Identifier: MIT
// Inserts an activation into a SPIR-V module. Kernels mark the position by GLSL's mod(gate, up), OpFMod, which they use
// for nothing else (shaders/include/epilogue.glsl). It is plain code on words that runs when pipelines are made, so
// that users' compilers need no time for it. Numbers: SPIR-V specification 1.6, section 3; GLSL.std.450.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "intaglio/shader/expression.hpp"

namespace intaglio::kernels {

/// Changes loops of a module of embed_shaders that have DontUnroll in shaders that mark them so
/// (shaders/layers_coded.comp, BY_CODEC): asks the driver to unroll them, or gives no hint.
constexpr void hint_loops(std::span<std::uint32_t> module, bool asks) {
  constexpr std::uint32_t op_loop_merge = 246, unroll = 1, dont_unroll = 2;
  for (std::size_t at = 5; at < module.size(); at += (std::max)(module[at] >> 16, 1u))
    if (module[at] == (4u << 16 | op_loop_merge) && at + 3 < module.size() && module[at + 3] == dont_unroll)
      module[at + 3] = asks ? unroll : 0;
}

/// Inserts a function of instructions into a module, in place of the call that its shader leaves for it.
class splicer {
 public:
  /// @param module of embed_shaders: complete, and checked by kernels/check_interfaces.hpp
  constexpr splicer(std::span<const std::uint32_t> module, const shader::expression& f)
      : module_(module), f_(f), next_(module.size() < 5 ? 0 : module[3]) {}

  /// Number of markers in the module.
  constexpr std::size_t markers() const {
    std::size_t count = 0;
    each([&](std::uint32_t code, std::span<const std::uint32_t>) { count += code == op_fmod; });
    return count;
  }

  /// The module with every marker replaced by the expression.
  constexpr std::vector<std::uint32_t> spliced() {
    find_declarations();
    each([&](std::uint32_t code, std::span<const std::uint32_t> words) {
      if (code == op_fmod) write(words[2], words[3], words[4]);
      else if (code != op_decorate || !is_marker(words[1])) append(part_of(code), words);
    });
    std::vector<std::uint32_t> out(module_.begin(), module_.begin() + 5);
    for (const auto* part : {&head_, &import_, &annotations_, &decorations_, &declarations_, &constants_, &functions_})
      append(out, *part);
    out[3] = next_;
    return out;
  }

 private:
  enum : std::uint32_t {
    op_ext_inst_import = 11,
    op_ext_inst = 12,
    op_memory_model = 14,
    op_type_first = 19,
    op_type_bool = 20,
    op_type_int = 21,
    op_type_float = 22,
    op_type_last = 39,
    op_constant = 43,
    op_function = 54,
    op_decorate = 71,
    op_copy_object = 83,
    op_convert_f_to_s = 110,
    op_bitcast = 124,
    op_f_negate = 127,
    op_i_add = 128,
    op_f_add = 129,
    op_f_sub = 131,
    op_f_mul = 133,
    op_f_div = 136,
    op_fmod = 141,
    op_logical_or = 166,
    op_logical_and = 167,
    op_logical_not = 168,
    op_select = 169,
    op_f_ord_equal = 180,
    op_f_ord_less = 184,
    op_f_ord_greater = 186,
    op_f_ord_less_equal = 188,
    op_shift_left = 196
  };
  enum : std::uint32_t { decoration_no_contraction = 42, round_even = 2, f_abs = 4 };

  template <class Each>
  constexpr void each(Each&& visit) const {
    for (std::size_t at = 5; at < module_.size();) {
      const std::size_t length = (std::min<std::size_t>)((std::max)(module_[at] >> 16, 1u), module_.size() - at);
      visit(module_[at] & 0xffffu, module_.subspan(at, length));
      at += length;
    }
  }
  static constexpr void append(std::vector<std::uint32_t>& to, std::span<const std::uint32_t> words) {
    for (const std::uint32_t word : words) to.push_back(word);
  }
  static constexpr void instruction(std::vector<std::uint32_t>& to, std::uint32_t code,
                                    std::initializer_list<std::uint32_t> operands) {
    to.push_back(static_cast<std::uint32_t>(operands.size() + 1) << 16 | code);
    for (const std::uint32_t each : operands) to.push_back(each);
  }

  /// Finds or adds the types that the expression needs, and finds the ids of markers.
  constexpr void find_declarations() {
    each([&](std::uint32_t code, std::span<const std::uint32_t> words) {
      if (code == op_ext_inst_import && words.size() == 6 && words[2] == 0x4c534c47u && words[3] == 0x6474732eu &&
          words[4] == 0x3035342eu)
        glsl_ = words[1];  // "GLSL.std.450"
      if (code == op_type_bool) bool_ = words[1];
      if (code == op_type_float && words[2] == 32) float_ = words[1];
      if (code == op_type_int && words[2] == 32 && words[3] == 1) int_ = words[1];
      if (code == op_fmod) markers_.push_back(words[2]);
    });
    if (glsl_ == 0)
      instruction(import_, op_ext_inst_import, {glsl_ = next_++, 0x4c534c47u, 0x6474732eu, 0x3035342eu, 0});
    if (bool_ == 0) instruction(constants_, op_type_bool, {bool_ = next_++});
    if (int_ == 0) instruction(constants_, op_type_int, {int_ = next_++, 32, 1});
  }
  /// The section of the output to which an instruction belongs.
  constexpr std::vector<std::uint32_t>& part_of(std::uint32_t code) {
    if (code == op_memory_model) section_ = (std::max)(section_, 1);
    if (code >= op_type_first && code <= op_type_last) section_ = (std::max)(section_, 2);
    if (code == op_function) section_ = 3;
    return section_ == 0 ? head_ : section_ == 1 ? annotations_ : section_ == 2 ? declarations_ : functions_;
  }
  /// Whether an id is a marker. Decorations of markers are dropped; the instruction that replaces a marker gets new
  /// ones.
  constexpr bool is_marker(std::uint32_t id) const {
    return std::find(markers_.begin(), markers_.end(), id) != markers_.end();
  }

  constexpr std::uint32_t constant(std::uint32_t type, std::uint32_t bits) {
    for (const auto& known : known_)
      if (known[0] == type && known[1] == bits) return known[2];
    instruction(constants_, op_constant, {type, next_, bits});
    known_.push_back({type, bits, next_});
    return next_++;
  }
  constexpr std::uint32_t number(float value) { return constant(float_, std::bit_cast<std::uint32_t>(value)); }

  /// Adds an instruction with one result, by default with a new id.
  constexpr std::uint32_t result(std::uint32_t code, std::uint32_t type, std::initializer_list<std::uint32_t> operands,
                                 std::uint32_t id = 0) {
    if (id == 0) id = next_++;
    functions_.push_back(static_cast<std::uint32_t>(operands.size() + 3) << 16 | code);
    functions_.push_back(type);
    functions_.push_back(id);
    for (const std::uint32_t each : operands) functions_.push_back(each);
    const bool rounds = code == op_f_add || code == op_f_sub || code == op_f_mul || code == op_f_div;
    if (rounds) instruction(decorations_, op_decorate, {id, decoration_no_contraction});
    return id;
  }
  constexpr std::uint32_t add(std::uint32_t a, std::uint32_t b) { return result(op_f_add, float_, {a, b}); }
  constexpr std::uint32_t subtract(std::uint32_t a, std::uint32_t b) { return result(op_f_sub, float_, {a, b}); }
  constexpr std::uint32_t multiply(std::uint32_t a, std::uint32_t b) { return result(op_f_mul, float_, {a, b}); }
  constexpr std::uint32_t select(std::uint32_t condition, std::uint32_t a, std::uint32_t b, std::uint32_t id = 0) {
    return result(op_select, float_, {condition, a, b}, id);
  }

  /// exp(x) in the steps of kernels/arithmetic.hpp.
  constexpr std::uint32_t exp(std::uint32_t x, std::uint32_t id) {
    const std::uint32_t below = result(op_f_ord_less, bool_, {x, number(-87.0f)}),
                        above = result(op_f_ord_greater, bool_, {x, number(88.0f)});
    x = select(below, number(-87.0f), select(above, number(88.0f), x));
    const std::uint32_t n = result(op_ext_inst, float_, {glsl_, round_even, multiply(x, number(1.44269504f))});
    const std::uint32_t upper = multiply(n, number(0.693359375f)), lower = multiply(n, number(-2.12194440e-4f));
    const std::uint32_t r = subtract(subtract(x, upper), lower);
    std::uint32_t p = number(1.9875691500e-4f);
    for (const float each : {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f})
      p = add(multiply(p, r), number(each));
    const std::uint32_t sum = add(add(multiply(p, multiply(r, r)), r), number(1.0f));
    const std::uint32_t exponent = result(op_i_add, int_, {result(op_convert_f_to_s, int_, {n}), constant(int_, 127)});
    const std::uint32_t power =
        result(op_bitcast, float_, {result(op_shift_left, int_, {exponent, constant(int_, 23)})});
    return select(below, number(0.0f), multiply(sum, power), id);
  }

  constexpr std::uint32_t write(const shader::step& s, std::span<const std::uint32_t> y, std::uint32_t gate,
                                std::uint32_t up, std::uint32_t id) {
    using shader::operation;
    const std::uint32_t a = y[s.of[0]], b = y[s.of[1]], c = y[s.of[2]];
    switch (s.what) {
      case operation::gate:
        return gate;
      case operation::up:
        return up;
      case operation::constant:
        return constant(float_, s.bits);
      case operation::negate:
        return result(op_f_negate, float_, {a}, id);
      case operation::absolute:
        return result(op_ext_inst, float_, {glsl_, f_abs, a}, id);
      case operation::exp:
        return exp(a, id);
      case operation::add:
        return result(op_f_add, float_, {a, b}, id);
      case operation::subtract:
        return result(op_f_sub, float_, {a, b}, id);
      case operation::multiply:
        return result(op_f_mul, float_, {a, b}, id);
      case operation::divide:
        return result(op_f_div, float_, {a, b}, id);
      case operation::maximum:
        return select(result(op_f_ord_greater, bool_, {a, b}), a, b, id);
      case operation::minimum:
        return select(result(op_f_ord_less, bool_, {a, b}), a, b, id);
      case operation::less:
        return result(op_f_ord_less, bool_, {a, b}, id);
      case operation::less_equal:
        return result(op_f_ord_less_equal, bool_, {a, b}, id);
      case operation::equal:
        return result(op_f_ord_equal, bool_, {a, b}, id);
      case operation::both:
        return result(op_logical_and, bool_, {a, b}, id);
      case operation::either:
        return result(op_logical_or, bool_, {a, b}, id);
      case operation::opposite:
        return result(op_logical_not, bool_, {a}, id);
      case operation::select:
        return select(a, b, c, id);
    }
    return 0;
  }
  /// Adds all steps of the expression; the last one gets the marker's id.
  constexpr void write(std::uint32_t id, std::uint32_t gate, std::uint32_t up) {
    std::array<std::uint32_t, shader::max_steps> y{};
    for (std::size_t i = 0; i < f_.size; ++i) y[i] = write(f_.steps[i], y, gate, up, i + 1u == f_.size ? id : 0);
    const std::uint32_t last = y[f_.size - 1u];
    if (last != id) result(op_copy_object, float_, {last}, id);  // a parameter or a constant
  }

  std::span<const std::uint32_t> module_;
  const shader::expression& f_;
  std::uint32_t next_, glsl_ = 0, bool_ = 0, float_ = 0, int_ = 0;
  int section_ = 0;
  std::vector<std::uint32_t> markers_, head_, import_, annotations_, decorations_, declarations_, constants_,
      functions_;
  std::vector<std::array<std::uint32_t, 3>> known_;
};

}  // namespace intaglio::kernels
