# SPDX-License-Identifier: MIT
# The target intaglio::module: `import intaglio;` is what <intaglio/session.hpp>, <intaglio/batch_session.hpp> and the
# headers of models declare (docs/embedding.md). Made where INTAGLIO_MODULE is on.
if(NOT TARGET intaglio::module)
  block()
    if(CMAKE_VERSION VERSION_LESS 3.28)
      message(FATAL_ERROR "intaglio: INTAGLIO_MODULE: expected CMake 3.28 or newer, found ${CMAKE_VERSION}")
    endif()
    if((CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 15) OR
       (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 18))
      message(FATAL_ERROR
        "intaglio: INTAGLIO_MODULE: expected clang 18 or g++ 15 (14.2 fails at the import), or newer,"
        " found ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
    endif()
    find_path(headers intaglio/session.hpp PATHS "${CMAKE_CURRENT_LIST_DIR}/../include"
      "${CMAKE_CURRENT_LIST_DIR}/../../../include"
              NO_CACHE NO_DEFAULT_PATH REQUIRED)
    set(includes
      "#include <intaglio/batch_session.hpp>\n#include <intaglio/core/version.hpp>\n#include <intaglio/session.hpp>\n")
    set(models "")
    file(GLOB files CONFIGURE_DEPENDS "${headers}/intaglio/models/*.hpp")
    foreach(file IN LISTS files)
      cmake_path(GET file FILENAME name)
      string(APPEND includes "#include <intaglio/models/${name}>\n")
      file(READ "${file}" text)
      string(REGEX MATCHALL "\n(struct|inline constexpr decoder_config) [a-z0-9_]+" lines "${text}")
      foreach(line IN LISTS lines)
        string(REGEX REPLACE "^.* " "" name "${line}")
        string(APPEND models "using intaglio::models::${name};\n")
      endforeach()
    endforeach()
    if(NOT models)
      message(FATAL_ERROR "intaglio: ${headers}/intaglio/models: expected headers of models, found none")
    endif()
    configure_file("${CMAKE_CURRENT_LIST_DIR}/intaglio.cppm.in"
      "${CMAKE_CURRENT_BINARY_DIR}/intaglio_module/intaglio.cppm" @ONLY)
    add_library(intaglio_module STATIC EXCLUDE_FROM_ALL)
    target_sources(intaglio_module PUBLIC FILE_SET CXX_MODULES BASE_DIRS "${CMAKE_CURRENT_BINARY_DIR}/intaglio_module"
                   FILES "${CMAKE_CURRENT_BINARY_DIR}/intaglio_module/intaglio.cppm")
    add_library(intaglio::module ALIAS intaglio_module)
    target_link_libraries(intaglio_module PUBLIC intaglio::intaglio)
  endblock()
endif()
