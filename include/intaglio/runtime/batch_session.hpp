// SPDX-License-Identifier: MIT
// Definitions of batches of sessions: the constructors, which know the plans, and the code that they run.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/runtime/small_code.hpp"

#include "intaglio/runtime/basic_batch.hpp"
#include "intaglio/runtime/engraved_batch_session.hpp"
