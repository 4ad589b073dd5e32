// SPDX-License-Identifier: MIT
// Definitions of sessions: the constructors, which know the plans, and the code that they run.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/runtime/small_code.hpp"

#include "intaglio/reference/machine.hpp"
#include "intaglio/runtime/weight_image.hpp"

#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpragma-clang-attribute"  // all headers may have been included before
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#endif

#include "intaglio/runtime/basic_session.hpp"
#include "intaglio/runtime/engraved_session.hpp"

#if defined(__clang__)
#pragma clang attribute pop
#pragma clang diagnostic pop
#endif
