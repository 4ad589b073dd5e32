// SPDX-License-Identifier: MIT
// The last step of planning: fits a dispatch of an engraved plan to a device. Afterwards it has its module, all
// specialization constants, its workgroups and their size; a recorder changes none of them.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <cstdint>

#include "intaglio/plan/device_classes.hpp"
#include "intaglio/plan/product_shape.hpp"
#include "intaglio/plan/table.hpp"

namespace intaglio::plan {

/// The workgroups of a dispatch, as the rules of kernels for devices read them.
constexpr kernels::launch launch_of(const dispatch& d) { return {d.groups, d.subgroups, d.least_groups}; }

/// Whether a device can run a resident dispatch: all its workgroups run at once, and the device has the cooperative
/// matrices that it multiplies with.
constexpr bool runs(const dispatch& all, const device_class& device) {
  const kernels::demands offers = device.offers();
  if (device.resident_workgroups == 0 || (has_exchange(all) && !offers.has(demand::narrow_f16))) return false;
  const bool wide = offers.has(demand::wide_loads);
  return all.subgroups == 1 ? wide : !wide && launch_of(all).resident(device) != 0;
}

/// Subgroups of a workgroup whose work can be split among any number of them. Where subgroups are wide, the number that
/// a plan has for 32 lanes would leave an invocation 64 registers (Radeons before RDNA: 1,024 invocations). CPU drivers
/// execute subgroups without rows like those with rows, and discard their results.
constexpr std::uint32_t fewer_subgroups(std::uint32_t planned, const device_class& device) {
  if (device.is_cpu) return (std::min)(planned, 2u);
  const std::uint32_t most = device.registers_are_shared() ? 256u : device.workgroup_invocations,
                      room = (std::max)(1u, (std::min)(most, device.workgroup_invocations) / device.subgroup_size);
  return (std::min)(planned, room);
}

/// Fits one dispatch to a device.
/// @param d of an engraved plan  @param shape replaces the plan's shape, or null
/// @param form of a sampler that draws one token a row
constexpr dispatch fitted(const dispatch& d, const device_class& device, const kernels::pass_rows& pass = {},
                          const product_shape* shape = nullptr, kernels::sample_form form = kernels::sample_form::any) {
  dispatch out = d;
  kernels::launch of = launch_of(d);
  if (shape != nullptr) of.groups[0] = shape->groups, of.subgroups = shape->subgroups;
  kernels::visit(d.kernel, [&]<class Kernel>(std::type_identity<Kernel>) {
    auto c = kernels::constants_of<Kernel>(d.specialization);
    if constexpr (Kernel::id == kernels::kernel::sample)
      if (form != kernels::sample_form::any) Kernel::take_form(c, of, form);
    out.variant = kernels::fit<Kernel>(c, of, device, pass);
    if constexpr (requires { Kernel::any_subgroups; }) of.subgroups = fewer_subgroups(of.subgroups, device);
    c.workgroup_size = of.subgroups * device.subgroup_size;
    if constexpr (requires { c.narrow; })
      c.narrow = device.shared_memory_bytes < kernels::usual_shared_memory_bytes ? 1 : 0;
    if constexpr (requires { c.subgroup_width; }) c.subgroup_width = device.subgroup_size;
    if constexpr (Kernel::id == kernels::kernel::layers_coded)
      out.unrolls = kernels::layers_coded::asks_for_loops(static_cast<std::uint32_t>(c.codec), c.inner_norms != 0);
    kernels::store(c, out.specialization);
  });
  out.groups = of.groups;
  out.subgroups = of.subgroups;
  return out;
}

/// Whether a dispatch draws one token a row; such a sampler has forms that compile sooner or run faster.
constexpr bool draws_tokens(const dispatch& call) {
  return call.kernel == kernels::kernel::sample &&
         kernels::constants_of<kernels::sample_kernel>(call.specialization).draws == 1;
}

/// Rows of the recording that a pass over `rows` of `all` rows uses: 8, 16, 32 and so on, or all.
constexpr std::uint32_t recorded_rows(std::uint32_t rows, std::uint32_t all) {
  std::uint32_t out = all < 8 ? all : 8;
  while (out < rows && out < all) out *= 2;
  return out < all && all % out == 0 ? out : all;
}

}  // namespace intaglio::plan
