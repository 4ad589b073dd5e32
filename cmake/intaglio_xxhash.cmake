# SPDX-License-Identifier: MIT
# xxHash::xxhash, of which the header alone is used. Installed beside the package's config.
if(NOT TARGET xxHash::xxhash)
  find_package(xxHash CONFIG QUIET)
endif()
if(NOT TARGET xxHash::xxhash)
  find_path(INTAGLIO_XXHASH_INCLUDE_DIR xxhash.h)
  if(NOT INTAGLIO_XXHASH_INCLUDE_DIR)
    message(FATAL_ERROR "intaglio: xxhash.h is missing: install xxHash 0.8 (Debian, Ubuntu: libxxhash-dev)")
  endif()
  add_library(xxHash::xxhash INTERFACE IMPORTED)
  set_target_properties(xxHash::xxhash PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${INTAGLIO_XXHASH_INCLUDE_DIR}")
endif()
