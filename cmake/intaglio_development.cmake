# SPDX-License-Identifier: MIT
# What our own programs and tests are built with; a consumer never sees it.
option(INTAGLIO_WERROR "Warnings are errors in our own programs and tests" OFF)
option(INTAGLIO_UNITY
  "Compile several files of the tests and of the tool at a time: less CPU time where nothing is cached" OFF)
option(INTAGLIO_SELF_CONTAINED
  "Link the tool and the server to all but the system's C library statically, so that they run elsewhere" OFF)
set(INTAGLIO_SANITIZE "" CACHE STRING "Sanitizers of our own programs and tests, as in -fsanitize=")
set(INTAGLIO_SHARED "${PROJECT_SOURCE_DIR}/../shared" CACHE PATH
  "Shared test material: models/, conformance/, vectors/")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)

add_library(intaglio_development INTERFACE)
target_compile_options(intaglio_development INTERFACE -Wall -Wextra -Wpedantic -Wconversion
  $<$<BOOL:${INTAGLIO_WERROR}>:-Werror>)
# g++ 13 takes any reference got through a call with a temporary argument for dangling; g++ 14 looks closer.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^13\\.")
  target_compile_options(intaglio_development INTERFACE -Wno-dangling-reference)
endif()
# What -O3 gains over -O2 (loops of the codecs as vectors), without the quarter of compile time that the rest of it
# costs. hello is compiled as by a user who says -O2, since its size is held (step size).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(intaglio_development INTERFACE
    $<$<AND:$<CONFIG:Release>,$<NOT:$<STREQUAL:$<TARGET_PROPERTY:NAME>,hello>>>:-fvect-cost-model=dynamic
    -funswitch-loops -fpeel-loops>)
endif()
target_link_libraries(intaglio_development INTERFACE intaglio::intaglio)
# For the programs that tools/release packs.
add_library(intaglio_self_contained INTERFACE)
if(INTAGLIO_SELF_CONTAINED)
  set(OPENSSL_USE_STATIC_LIBS ON)
  target_link_options(intaglio_self_contained INTERFACE -static-libstdc++ -static-libgcc)
endif()
if(INTAGLIO_SANITIZE)
  # Of the undefined behaviour, checks of null, dynamic types and object sizes before every access are left out, a
  # quarter of the compile time: what is read there AddressSanitizer sees too.
  target_compile_options(intaglio_development INTERFACE -fsanitize=${INTAGLIO_SANITIZE}
    -fno-sanitize=null,vptr,object-size -fno-sanitize-recover=all
    -fno-omit-frame-pointer -g1)
  target_link_options(intaglio_development INTERFACE -fsanitize=${INTAGLIO_SANITIZE})
endif()
