# Conan profile for Debian 12: dependencies come from the system's packages. See docs/packaging.md.
include(default)
[settings]
compiler.cppstd=20
[platform_requires]
vulkan-headers/1.3.239
boost/1.81.0
nlohmann_json/3.11.2
xxhash/0.8.1
[platform_tool_requires]
cmake/3.25.1
[conf]
tools.cmake.cmaketoolchain:generator=Ninja
