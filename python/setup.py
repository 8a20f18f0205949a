"""What pyproject.toml cannot say: the version is the Makefile's, and the wheel holds binaries for one machine but any Python 3."""
import os

from setuptools import Distribution, setup
from wheel.bdist_wheel import bdist_wheel


class Binary(Distribution):
    """Files for one machine, though no extension module is compiled."""

    def has_ext_modules(self):
        return True


class AnyPython(bdist_wheel):
    """py3-none-PLATFORM: the library is reached through ctypes."""

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


setup(version=os.environ["ONNX_TILE_VERSION"], distclass=Binary, cmdclass={"bdist_wheel": AnyPython})
