// SPDX-License-Identifier: MIT
// Which of a program's plans a device gets.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstdint>
#include <span>

#include "intaglio/plan/device_classes.hpp"
#include "intaglio/plan/device_plan.hpp"
#include "intaglio/plan/table.hpp"

namespace intaglio::runtime {

/// Chooses a plan for a device among a program's plans: the strongest one whose device class the device meets. A device
/// may meet none, for example with 16 KiB of shared memory or 256 invocations a workgroup. Then it gets the first plan
/// that can be proven for it, where plans for its kind of device come first; else the first plan.
inline const plan::table& choose_table(std::span<const plan::table* const> tables, const plan::device_class& device) {
  const plan::table* best = tables.front();
  std::uint32_t most = 0;
  for (const plan::table* each : tables)
    for (const plan::device_class* of : each->classes)
      if (device.meets(*of) && 1 + plan::strength(*of) > most) best = each, most = 1 + plan::strength(*of);
  if (most != 0) return *best;
  for (const bool of_its_kind : {true, false})
    for (const plan::table* each : tables)
      if ((each->is_for_cpus() == device.is_cpu) == of_its_kind && plan::is_provable(*each, device)) return *each;
  return *best;
}

}  // namespace intaglio::runtime
