# SPDX-License-Identifier: MIT
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(intaglio_package "${CMAKE_INSTALL_DATADIR}/cmake/intaglio")

install(TARGETS intaglio_library EXPORT intaglio FILE_SET HEADERS)
install(EXPORT intaglio NAMESPACE intaglio:: FILE intaglio-targets.cmake DESTINATION ${intaglio_package})
configure_package_config_file(cmake/intaglio-config.cmake.in "${PROJECT_BINARY_DIR}/intaglio-config.cmake"
                              INSTALL_DESTINATION ${intaglio_package} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/intaglio-config-version.cmake" COMPATIBILITY SameMinorVersion
  ARCH_INDEPENDENT)
install(FILES "${PROJECT_BINARY_DIR}/intaglio-config.cmake" "${PROJECT_BINARY_DIR}/intaglio-config-version.cmake"
              cmake/intaglio_compiled.cmake cmake/intaglio_vulkan_headers.cmake cmake/intaglio_xxhash.cmake DESTINATION
              ${intaglio_package})

set(intaglio_pc_libs "-pthread")
if(CMAKE_DL_LIBS)
  string(APPEND intaglio_pc_libs " -l${CMAKE_DL_LIBS}")
endif()
configure_file(cmake/intaglio.pc.in "${PROJECT_BINARY_DIR}/intaglio.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/intaglio.pc" DESTINATION ${CMAKE_INSTALL_DATADIR}/pkgconfig)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/licenses/intaglio)
# What `intaglio engrave` builds other models' tools from; the tool itself comes with it where it was built
# (examples/tool).
file(GLOB intaglio_tool_sources CONFIGURE_DEPENDS examples/tool/*.cpp examples/tool/*.hpp examples/tool/fable*
  examples/tool/windows.*)
install(FILES ${intaglio_tool_sources} examples/tool/CMakeLists.txt DESTINATION share/intaglio/tool)
