// SPDX-License-Identifier: MIT
// Where a program has the SPIR-V modules of its plans.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

#include "intaglio/kernels/variant.hpp"

namespace intaglio::plan {
struct dispatch;
}

namespace intaglio::runtime {

class kernel_trial;

/// Runs a dispatch of a kernel and holds it against the reference. Defined in runtime/kernel_proof.hpp, which a file
/// that names modules_of includes.
/// @return the largest difference, in units of the largest expected value; 0 of what does all layers, which is held
/// against a chain
template <kernels::kernel which>
double prove(kernel_trial& trial, const plan::dispatch& call);
#define INTAGLIO_EACH(module, of) \
  template <>                     \
  double prove<kernels::kernel::of>(kernel_trial & trial, const plan::dispatch& call);
INTAGLIO_VARIANTS(INTAGLIO_EACH)
#undef INTAGLIO_EACH

/// A module of a program, and what proves it on a device; neither where the program has it not.
struct program_module {
  /// Holds a dispatch of the kernel against the reference.
  using proof_function = double (*)(kernel_trial&, const plan::dispatch&);

  std::span<const std::byte> spirv;  ///< its words
  proof_function proof = nullptr;    ///< prove() of its kernel

  /// The module's SPIR-V.
  constexpr operator std::span<const std::byte>() const noexcept { return spirv; }
};

/// A module's SPIR-V. A program has those that it asks for, and no others (runtime/kernel_modules.hpp).
template <kernels::variant which>
std::span<const std::byte> module_bytes();
#define INTAGLIO_EACH(module, of) \
  template <>                     \
  std::span<const std::byte> module_bytes<kernels::variant::module>();
INTAGLIO_VARIANTS(INTAGLIO_EACH)
#undef INTAGLIO_EACH

/// Where a program has a module.
using module_source = program_module (*)(kernels::variant);
/// The source of a program with the modules and proofs of some plans alone (plan::variants_used): what `used` does not
/// name is not part of it.
template <kernels::variant_set used = kernels::all_variants>
program_module modules_of(kernels::variant which) {
#define INTAGLIO_EACH(module, of)                   \
  if constexpr (used.has(kernels::variant::module)) \
    if (which == kernels::variant::module)          \
      return {module_bytes<kernels::variant::module>(), &prove<kernels::kernel::of>};
  INTAGLIO_VARIANTS(INTAGLIO_EACH)
#undef INTAGLIO_EACH
  return {};
}

}  // namespace intaglio::runtime
