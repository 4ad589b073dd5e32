# SPDX-License-Identifier: MIT
"""The Vulkan layer of vulkan_faults.cpp, compiled into a folder that ends with the process."""

import json
import os
import subprocess
import tempfile


class Layer:
    def __init__(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = self.scratch.name
        self.library = f"{self.folder}/libvulkan_faults.so"
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "vulkan_faults.cpp")
        flags = "-std=c++20 -O1 -Wall -Wextra -shared -fPIC -fvisibility=hidden".split()
        compiler = [os.environ.get("CXX", "c++"), *flags, *os.environ.get("CPPFLAGS", "").split()]
        subprocess.run([*compiler, source, "-o", self.library], check=True)
        described = {
            "name": "VK_LAYER_INTAGLIO_faults",
            "type": "GLOBAL",
            "library_path": self.library,
            "api_version": "1.3.0",
            "implementation_version": "1",
            "description": "faults",
            "functions": {
                "vkGetInstanceProcAddr": "faults_instance_call",
                "vkGetDeviceProcAddr": "faults_device_call",
            },
        }
        with open(f"{self.folder}/faults.json", "w") as file:
            json.dump({"file_format_version": "1.1.2", "layer": described}, file)
        # What a process needs to run on the layer.
        self.environment = {
            "VK_LAYER_PATH": self.folder,
            "VK_INSTANCE_LAYERS": "VK_LAYER_INTAGLIO_faults",
            "INTAGLIO_FAULTS": self.folder,
        }

    def fault(self, name, text=""):
        """Lets a fault happen from here on (vulkan_faults.cpp has their names)."""
        with open(f"{self.folder}/{name}.new", "w") as file:
            file.write(text)
        os.rename(f"{self.folder}/{name}.new", f"{self.folder}/{name}")
