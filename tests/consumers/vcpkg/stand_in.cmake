# SPDX-License-Identifier: MIT
# Usage: cmake -DPORT_FOLDER=TREE/cmake/vcpkg/intaglio -DFOLDER=FOLDER -P stand_in.cmake
# Runs the portfile without vcpkg, by functions of this file in place of vcpkg's, and makes FOLDER/package. It shows
# that the tree installs what the portfile names, and that the package's files find each other in vcpkg's folders. It
# does not show what vcpkg itself checks of a package (tests/consumers/run vcpkg).
cmake_minimum_required(VERSION 3.25)
cmake_path(GET PORT_FOLDER FILENAME PORT)
set(CURRENT_PORT_DIR "${PORT_FOLDER}")
set(CURRENT_PACKAGES_DIR "${FOLDER}/package")

# The arguments are a command.
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# The argument is a path in the package.
function(expect path)
  if(NOT EXISTS "${CURRENT_PACKAGES_DIR}/${path}")
    message(FATAL_ERROR "${PORT_FOLDER}/portfile.cmake: expected ${path} in the package, found none")
  endif()
endfunction()

function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 of "" SOURCE_PATH OPTIONS)
  run("${CMAKE_COMMAND}" -S "${of_SOURCE_PATH}" -B "${FOLDER}/build" -G Ninja -DCMAKE_BUILD_TYPE=Release
      "-DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR}" ${of_OPTIONS})
endfunction()

function(vcpkg_cmake_install)
  run("${CMAKE_COMMAND}" --build "${FOLDER}/build" --target install)
endfunction()

# CMake's files of a package are in share/PORT, one folder less deep than where this tree installs them.
function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 of "" CONFIG_PATH "")
  expect("${of_CONFIG_PATH}/${PORT}-config.cmake")
  file(GLOB files "${CURRENT_PACKAGES_DIR}/${of_CONFIG_PATH}/*")
  foreach(file IN LISTS files)
    file(READ "${file}" text)
    set(prefix "PACKAGE_PREFIX_DIR \"\${CMAKE_CURRENT_LIST_DIR}/")
    string(REPLACE "${prefix}../" "${prefix}" text "${text}")
    set(above "get_filename_component(_IMPORT_PREFIX \"\${_IMPORT_PREFIX}\" PATH)\n")
    string(REPLACE "${above}${above}${above}" "${above}${above}" text "${text}")
    cmake_path(GET file FILENAME name)
    file(WRITE "${CURRENT_PACKAGES_DIR}/share/${PORT}/${name}" "${text}")
  endforeach()
  file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/${of_CONFIG_PATH}")
endfunction()

function(vcpkg_fixup_pkgconfig)
  expect("lib/pkgconfig/${PORT}.pc")
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 of "" "" FILE_LIST)
  file(COPY_FILE "${of_FILE_LIST}" "${CURRENT_PACKAGES_DIR}/share/${PORT}/copyright")
endfunction()

include("${PORT_FOLDER}/portfile.cmake")
expect("share/${PORT}/usage")
expect("share/${PORT}/${PORT}_compiled.cmake")
