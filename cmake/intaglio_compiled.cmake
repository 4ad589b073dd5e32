# SPDX-License-Identifier: MIT
# The target intaglio::compiled: a static library of all that sessions run, made where somebody links with it, so that a
# file which engraves a model costs a tenth (docs/embedding.md). Each module of SPIR-V is a member of its own: a program
# has those of its plans and no others.
if(NOT TARGET intaglio::compiled)
  block()
    # Beside this file: in the tree and in Conan's package, in vcpkg's (share/intaglio), in ours (share/cmake/intaglio).
    find_path(headers intaglio/kernels/variant.hpp PATHS "${CMAKE_CURRENT_LIST_DIR}/../include"
      "${CMAKE_CURRENT_LIST_DIR}/../../include" "${CMAKE_CURRENT_LIST_DIR}/../../../include"
              NO_CACHE NO_DEFAULT_PATH REQUIRED)
    set(list "${headers}/intaglio/kernels/variant.hpp")
    cmake_path(NORMAL_PATH list)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${list}")
    file(READ "${list}" text)
    string(REGEX MATCHALL "\n  each\\([a-z0-9_]+" lines "${text}")
    if(NOT lines)
      message(FATAL_ERROR "${list}: expected the modules of kernels, each(NAME, KERNEL), found none")
    endif()
    set(sources "${CMAKE_CURRENT_BINARY_DIR}/intaglio_compiled")
    set(files "${sources}/sessions.cpp" "${sources}/readers.cpp")
    file(CONFIGURE OUTPUT "${sources}/sessions.cpp" CONTENT "#define INTAGLIO_IMPLEMENTATION
#define INTAGLIO_READERS_APART
#include <intaglio/session.hpp>
#include <intaglio/batch_session.hpp>
")
    file(CONFIGURE OUTPUT "${sources}/readers.cpp" CONTENT "#define INTAGLIO_IMPLEMENTATION
#include <intaglio/readers.hpp>
")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^.*\\(" "" module "${line}")
      file(CONFIGURE OUTPUT "${sources}/${module}.cpp" @ONLY CONTENT "#include <intaglio/kernels/module_text.hpp>
#include <intaglio/kernels/spirv/@module@.hpp>
#include <intaglio/runtime/module_source.hpp>

template <>
std::span<const std::byte> intaglio::runtime::module_bytes<intaglio::kernels::variant::@module@>() {
  return intaglio::kernels::whole(intaglio::kernels::spirv::@module@_parts);
}
")
      list(APPEND files "${sources}/${module}.cpp")
    endforeach()
    add_library(intaglio_compiled STATIC EXCLUDE_FROM_ALL ${files})
    add_library(intaglio::compiled ALIAS intaglio_compiled)
    target_link_libraries(intaglio_compiled PUBLIC intaglio::intaglio)
    target_compile_definitions(intaglio_compiled INTERFACE INTAGLIO_COMPILED)
  endblock()
endif()
