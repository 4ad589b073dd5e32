// SPDX-License-Identifier: MIT
// How products of one token are split among workgroups: an input of planning for a device, which `tune` changes.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstddef>
#include <cstdint>

#include "intaglio/core/array_view.hpp"
#include "intaglio/plan/table.hpp"

namespace intaglio::plan {

/// A shape that replaces the engraved plan's shape of one product.
struct product_shape {
  std::uint64_t product = 0;                ///< product_key() of the engraved plan's dispatch
  std::uint32_t subgroups = 0, groups = 0;  ///< subgroups of a workgroup; workgroups (x)
  friend constexpr bool operator==(const product_shape&, const product_shape&) = default;
};

/// A key that distinguishes the products of a plan: a hash of kernel, constants and the plan's own shape.
constexpr std::uint64_t product_key(const dispatch& call) {
  std::uint64_t mixed = 0xcbf29ce484222325u;
  const auto mix = [&](std::uint64_t with) { mixed = (mixed ^ with) * 0x9E3779B97F4A7C15u, mixed ^= mixed >> 32; };
  mix(static_cast<std::uint64_t>(call.kernel));
  mix(call.subgroups);
  mix(call.groups[0]);
  for (std::size_t i = 1; i < kernels::interface_of(call.kernel).specialization_count(); ++i)
    mix(call.specialization[i]);
  return mixed;
}

/// Whether a dispatch is a product of one token whose workgroups split its rows, for any number of workgroups.
constexpr bool shares_rows(const dispatch& call) {
  if (call.groups[1] != 1 || call.groups[2] != 1) return false;
  bool out = false;
  kernels::visit(call.kernel, [&]<class Kernel>(std::type_identity<Kernel>) {
    const auto c = kernels::constants_of<Kernel>(call.specialization);
    if constexpr (requires { Kernel::shares_rows(c); }) out = Kernel::shares_rows(c);
  });
  return out;
}
/// Whether later dispatches read a result of each workgroup, so that the number of workgroups must be the plan's.
constexpr bool counts_groups(const dispatch& call) {
  bool out = false;
  kernels::visit(call.kernel, [&]<class Kernel>(std::type_identity<Kernel>) {
    const auto c = kernels::constants_of<Kernel>(call.specialization);
    if constexpr (requires { c.keeps_firsts; }) out = c.keeps_firsts != 0;
  });
  return out;
}

/// Rows of a product that workgroups split.
constexpr std::uint32_t rows_of(const dispatch& call) {
  std::uint32_t out = 0;
  kernels::visit(call.kernel, [&]<class Kernel>(std::type_identity<Kernel>) {
    const auto c = kernels::constants_of<Kernel>(call.specialization);
    if constexpr (requires { c.rows; }) out = c.rows;
  });
  return out;
}

/// The first of the shapes that belongs to a dispatch, or null.
constexpr const product_shape* shape_of(const dispatch& call, array_view<const product_shape> among) {
  if (among.empty() || !shares_rows(call)) return nullptr;
  const std::uint64_t key = product_key(call);
  for (const product_shape& each : among)
    if (each.product == key && (each.groups == call.groups[0] || !counts_groups(call))) return &each;
  return nullptr;
}

}  // namespace intaglio::plan
