// SPDX-License-Identifier: MIT
// Sessions whole: the constructors that know the plans, and what they run.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/runtime/small_code.hpp"

#include "intaglio/runtime/basic_session.hpp"
#include "intaglio/runtime/engraved_session.hpp"
