# SPDX-License-Identifier: MIT
# Vulkan::Headers, without asking for the loader as FindVulkan does. Installed beside the package's config.
if(NOT TARGET Vulkan::Headers)
  find_package(VulkanHeaders CONFIG QUIET)
endif()
if(NOT TARGET Vulkan::Headers)
  find_path(INTAGLIO_VULKAN_INCLUDE_DIR vulkan/vulkan_core.h HINTS "$ENV{VULKAN_SDK}/include")
  if(NOT INTAGLIO_VULKAN_INCLUDE_DIR)
    message(FATAL_ERROR
      "intaglio: vulkan/vulkan_core.h is missing: install the Vulkan headers (Debian, Ubuntu: libvulkan-dev)")
  endif()
  add_library(Vulkan::Headers INTERFACE IMPORTED)
  set_target_properties(Vulkan::Headers PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${INTAGLIO_VULKAN_INCLUDE_DIR}")
endif()
