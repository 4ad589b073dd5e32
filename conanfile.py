# SPDX-License-Identifier: MIT
import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.files import copy, load
from conan.tools.scm import Version
from conan.tools.system.package_manager import Apt

required_conan_version = ">=2.7"


class Intaglio(ConanFile):
    name = "intaglio"
    description = "Header-only library: language models engraved by the C++ compiler, run by Vulkan"
    license = "MIT"
    topics = ("header-only", "vulkan", "llm", "inference", "bitnet", "gguf")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"system_deps": [True, False]}
    default_options = {"system_deps": False, "boost/*:header_only": True}
    exports_sources = "include/*", "cmake/intaglio_compiled.cmake", "LICENSE"
    no_copy_source = True

    def set_version(self):
        text = load(self, os.path.join(self.recipe_folder, "include/intaglio/core/version.hpp"))
        parts = dict(re.findall(r"^#define INTAGLIO_VERSION_(MAJOR|MINOR|PATCH) (\d+)$", text, re.MULTILINE))
        self.version = f"{parts['MAJOR']}.{parts['MINOR']}.{parts['PATCH']}"

    def export(self):
        copy(self, "include/intaglio/core/version.hpp", self.recipe_folder, self.export_folder)

    def requirements(self):
        if not self.options.system_deps:
            self.requires("vulkan-headers/[>=1.3.239]", transitive_headers=True)
            self.requires("boost/[>=1.74 <2]", transitive_headers=True)
            self.requires("nlohmann_json/[>=3.11 <4]", transitive_headers=True)
            self.requires("xxhash/[>=0.8 <1]", transitive_headers=True)

    def system_requirements(self):
        if self.options.system_deps:
            Apt(self).check(["libvulkan-dev", "nlohmann-json3-dev", "libxxhash-dev"])

    def validate(self):
        try:
            check_min_cppstd(self, 20)
        except ConanInvalidConfiguration:
            raise ConanInvalidConfiguration(
                f"intaglio needs C++20, the profile has compiler.cppstd={self.settings.get_safe('compiler.cppstd')}: "
                "add -s compiler.cppstd=20, or write it into the profile") from None
        oldest = {"gcc": "12", "clang": "16"}.get(str(self.settings.compiler))
        if oldest and Version(self.settings.compiler.version) < oldest:
            raise ConanInvalidConfiguration(
                f"intaglio needs {self.settings.compiler} {oldest} or newer, found {self.settings.compiler.version}")

    def package_id(self):
        self.info.clear()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        copy(self, "*", os.path.join(self.source_folder, "include"), os.path.join(self.package_folder, "include"))
        copy(
            self,
            "intaglio_compiled.cmake",
            os.path.join(self.source_folder, "cmake"),
            os.path.join(self.package_folder, "cmake"),
        )

    def package_info(self):
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.set_property("cmake_file_name", "intaglio")
        self.cpp_info.set_property("cmake_target_name", "intaglio::intaglio")
        self.cpp_info.set_property("cmake_build_modules", ["cmake/intaglio_compiled.cmake"])  # intaglio::compiled
        self.cpp_info.set_property("pkg_config_name", "intaglio")
        if self.settings.os in ("Linux", "FreeBSD"):
            # The Vulkan loader is opened at run time, nothing links to it.
            self.cpp_info.system_libs = ["dl", "pthread"]
