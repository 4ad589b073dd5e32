# SPDX-License-Identifier: MIT
# Named by CMAKE_TOOLCHAIN_FILE where a tool is built to be seen working, not fast: one file, not optimised.
set(CMAKE_CXX_FLAGS_RELEASE "-DNDEBUG" CACHE STRING "")
set(INTAGLIO_UNITY ON CACHE BOOL "")
