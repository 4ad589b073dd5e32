// SPDX-License-Identifier: MIT
// The modules of each kernel with their demands of a device, so that planning can query these without the modules'
// code.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string_view>

#include "intaglio/core/short_name.hpp"
#include "intaglio/kernels/catalogue.hpp"
#include "intaglio/kernels/module_use.hpp"
#include "intaglio/kernels/spirv/demands.hpp"

namespace intaglio::kernels {

/// The devices that a module is for.
enum class module_target : std::uint8_t {
  any,          ///< every device
  gpu,          ///< all except CPU drivers with wide loads
  cpu,          ///< CPU drivers with wide loads
  matrix,       ///< devices with cooperative matrices
  batch_matrix  ///< devices with cooperative matrices; its tiles are chosen at run time
};

/// A module of a kernel, without its code.
struct declared_module {
  kernel of;
  module_target target;
  short_name<27> name;                     ///< as in kernels/spirv/
  void (*demand)(module_use&);             ///< computes the demands of a use of it
  std::span<const unsigned> capabilities;  ///< as numbered in SPIR-V
};

/// All modules, in the order of the kernels.
inline constexpr auto declared_modules = std::to_array<declared_module>({
#define INTAGLIO_MODULE(kernel_name, target, module)                                             \
  declared_module{kernel::kernel_name, module_target::target, #module, &spirv::module##_demands, \
                  spirv::module##_capabilities}
    INTAGLIO_MODULE(embed, any, embed),
    INTAGLIO_MODULE(norm_quantize, gpu, norm_quantize),
    INTAGLIO_MODULE(norm_quantize, cpu, norm_quantize_cpu),
    INTAGLIO_MODULE(ternary_matmul, gpu, ternary_matmul),
    INTAGLIO_MODULE(ternary_matmul, gpu, ternary_matmul_portable),
    INTAGLIO_MODULE(ternary_matmul, cpu, ternary_matmul_cpu),
    INTAGLIO_MODULE(ternary_batch, any, ternary_batch),
    INTAGLIO_MODULE(ternary_batch, any, ternary_batch_portable),
    INTAGLIO_MODULE(ternary_batch, batch_matrix, ternary_batch_matrix),
    INTAGLIO_MODULE(ternary_chunk, any, ternary_chunk),
    INTAGLIO_MODULE(ternary_chunk, any, ternary_chunk_portable),
    INTAGLIO_MODULE(ternary_chunk, batch_matrix, ternary_chunk_fragments),
    INTAGLIO_MODULE(ternary_float, gpu, ternary_float),
    INTAGLIO_MODULE(ternary_float, cpu, ternary_float_cpu),
    INTAGLIO_MODULE(attention, gpu, attention),
    INTAGLIO_MODULE(attention, cpu, attention_cpu),
    INTAGLIO_MODULE(attention_chunk, any, attention_chunk),
    INTAGLIO_MODULE(dense_matmul, gpu, dense_matmul),
    INTAGLIO_MODULE(dense_matmul, cpu, dense_matmul_cpu),
    INTAGLIO_MODULE(dense_batch, any, dense_batch),
    INTAGLIO_MODULE(head_screen, any, head_screen),
    INTAGLIO_MODULE(head_screen, any, head_screen_portable),
    INTAGLIO_MODULE(head_rescore, any, head_rescore),
    INTAGLIO_MODULE(sample, gpu, sample),
    INTAGLIO_MODULE(sample, cpu, sample_cpu),
    INTAGLIO_MODULE(accept, any, accept),
    INTAGLIO_MODULE(layers, gpu, layers),
    INTAGLIO_MODULE(layers, gpu, layers_long),
    INTAGLIO_MODULE(layers, cpu, layers_cpu),
    INTAGLIO_MODULE(matmul, gpu, matmul),
    INTAGLIO_MODULE(matmul, gpu, matmul_portable),
    INTAGLIO_MODULE(matmul, cpu, matmul_cpu),
    INTAGLIO_MODULE(turn, any, turn),
    INTAGLIO_MODULE(norm_add, any, norm_add),
    INTAGLIO_MODULE(route, any, route),
    INTAGLIO_MODULE(expert_sum, any, expert_sum),
    INTAGLIO_MODULE(quantize_f16, any, quantize_f16),
    INTAGLIO_MODULE(matmul_chunk, any, matmul_chunk),
    INTAGLIO_MODULE(matmul_chunk, batch_matrix, matmul_chunk_batch),
    INTAGLIO_MODULE(matmul_chunk, batch_matrix, matmul_chunk_fragments),
    INTAGLIO_MODULE(matmul_chunk, matrix, matmul_chunk_matrix),
    INTAGLIO_MODULE(attention_f16, any, attention_f16_portable),
    INTAGLIO_MODULE(attention_f16, matrix, attention_fragments),
    INTAGLIO_MODULE(attention_f16, matrix, attention_f16),
    INTAGLIO_MODULE(walk_gate_up, gpu, walk_gate_up),
    INTAGLIO_MODULE(walk_gate_up, gpu, walk_gate_up_portable),
    INTAGLIO_MODULE(walk_gate_up, cpu, walk_gate_up_cpu),
    INTAGLIO_MODULE(walk_down, gpu, walk_down),
    INTAGLIO_MODULE(walk_down, gpu, walk_down_portable),
    INTAGLIO_MODULE(walk_down, cpu, walk_down_cpu),
    INTAGLIO_MODULE(pages, any, pages),
    INTAGLIO_MODULE(walk_select, any, walk_select),
    INTAGLIO_MODULE(walk_up, any, walk_up),
    INTAGLIO_MODULE(walk_sum, any, walk_sum),
    INTAGLIO_MODULE(fixed, any, fixed),
    INTAGLIO_MODULE(matmul_batch, any, matmul_batch),
    INTAGLIO_MODULE(matmul_batch, any, matmul_batch_portable),
    INTAGLIO_MODULE(matmul_batch, batch_matrix, matmul_batch_matrix),
    INTAGLIO_MODULE(matmul_batch, batch_matrix, matmul_batch_tiled),
    INTAGLIO_MODULE(layers_coded, gpu, layers_coded),
    INTAGLIO_MODULE(layers_coded, gpu, layers_dense),
    INTAGLIO_MODULE(layers_coded, gpu, layers_mixed),
    INTAGLIO_MODULE(layers_coded, gpu, layers_experts),
    INTAGLIO_MODULE(walk_trace, any, walk_trace),
    INTAGLIO_MODULE(rms_norm, any, rms_norm),
    INTAGLIO_MODULE(attention_batch, any, attention_batch),
    INTAGLIO_MODULE(expert_tiles, any, expert_tiles),
    INTAGLIO_MODULE(dense_rows, any, dense_rows),
    INTAGLIO_MODULE(ternary_rows, any, ternary_rows),
    INTAGLIO_MODULE(layers_rows, matrix, layers_rows),
    INTAGLIO_MODULE(layers_ternary_rows, matrix, layers_ternary_rows),
    INTAGLIO_MODULE(layers_batch, matrix, layers_batch),
    INTAGLIO_MODULE(layers_rows_normed, matrix, layers_rows_normed),
    INTAGLIO_MODULE(layers_batch_normed, matrix, layers_batch_normed),
    INTAGLIO_MODULE(gated, any, gated),
    INTAGLIO_MODULE(short_conv, any, short_conv),
    INTAGLIO_MODULE(delta_net, any, delta_net),
    INTAGLIO_MODULE(head_gate, any, head_gate),
    INTAGLIO_MODULE(streams, any, streams),
#undef INTAGLIO_MODULE
});

/// The demands of a module with the given specialization constants, by constant_id.
constexpr module_use use_of(const declared_module& module, std::span<const std::uint32_t> constants) {
  module_use out{constants};
  module.demand(out);
  return out;
}

/// A specialization constant with a value.
struct given_constant {
  std::uint32_t id;
  std::uint64_t value;
};
/// A value for a kernel's constant. @tparam Member of the kernel's `constants`
template <auto Member>
constexpr given_constant given(std::uint64_t value) {
  return {constant_id<Member>, value};
}
/// Shared memory of a module in bytes.
/// @param constants all constants that it depends on; if one is missing, the result is the largest number
constexpr std::uint64_t shared_memory_bytes(std::string_view module, std::initializer_list<given_constant> constants) {
  constexpr std::uint64_t never = (std::numeric_limits<std::uint64_t>::max)();
  for (const declared_module& each : declared_modules) {
    if (each.name.size() != module.size() || each.name != module) continue;
    std::array<std::uint32_t, max_specialization_constants> bits{};
    static_assert(max_specialization_constants <= 64, "module_use::absent has 64 bits");
    module_use out{bits, ~std::uint64_t{0}};
    for (const given_constant& one : constants) {
      bits[one.id] = static_cast<std::uint32_t>(one.value);
      out.absent &= ~(std::uint64_t{1} << one.id);
    }
    each.demand(out);
    return out.defined ? out.shared_memory_bytes : never;
  }
  return never;
}

}  // namespace intaglio::kernels
