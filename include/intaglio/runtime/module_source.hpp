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

/// Runs a dispatch of a kernel and compares it with the reference. Defined in runtime/kernel_proof.hpp, which a file
/// that names modules_of includes.
/// @return the largest difference, relative to the largest expected value; 0 for the resident dispatch, which is
///   compared with a chain
template <kernels::kernel which>
double prove(kernel_trial& trial, const plan::dispatch& call);
#define INTAGLIO_EACH(module, of) \
  template <>                     \
  double prove<kernels::kernel::of>(kernel_trial & trial, const plan::dispatch& call);
INTAGLIO_VARIANTS(INTAGLIO_EACH)
#undef INTAGLIO_EACH

/// A module of a program, and the function that proves it on a device; both are empty where the program lacks the
/// module.
struct program_module {
  /// Compares a dispatch of the kernel with the reference.
  using proof_function = double (*)(kernel_trial&, const plan::dispatch&);

  std::span<const std::byte> spirv;  ///< its words
  proof_function proof = nullptr;    ///< prove() of its kernel

  /// The module's SPIR-V.
  constexpr operator std::span<const std::byte>() const noexcept { return spirv; }
};

/// A module's SPIR-V. A program contains only the modules that it names (runtime/kernel_modules.hpp).
template <kernels::variant which>
std::span<const std::byte> module_bytes();
#define INTAGLIO_EACH(module, of) \
  template <>                     \
  std::span<const std::byte> module_bytes<kernels::variant::module>();
INTAGLIO_VARIANTS(INTAGLIO_EACH)
#undef INTAGLIO_EACH

/// Returns a program's module of a variant.
using module_source = program_module (*)(kernels::variant);
/// The source of a program that has only the modules and proofs of some plans (plan::variants_used). Modules that are
/// not in `used` are not part of the program.
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
