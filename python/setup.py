"""What pyproject.toml cannot say: the version is the Makefile's, and the wheel holds binaries for one machine but any Python 3.

In the source archive (scripts/sdist.sh) the sources lie in tree/ beside this file, and the program and the library are compiled
from them: ONNX_TILE_ENGINE=no leaves out the native engine, and oneDNN with it.
"""
import os
import re
import shutil
import subprocess

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.join(HERE, "tree")


def version():
    """As the packer says, or as the Makefile of the sources has it."""
    told = os.environ.get("ONNX_TILE_VERSION")
    if told:
        return told
    with open(os.path.join(TREE, "Makefile"), encoding="utf-8") as f:
        return re.search(r"^VERSION *:= *(\S+)", f.read(), re.M)[1]


def compile_tree():
    """Program and libraries from tree/ into the package. What is missing is named on stderr, and nothing is installed."""
    engine = os.environ.get("ONNX_TILE_ENGINE", "yes")
    told = dict(os.environ, INSTALL="no", TESTS="no", ENGINE=engine, GLPK="no")
    flags = [f"ENGINE={engine}", "GLPK=no", "BUILD=build/wheel", "OPT=-O2", "CFLAGS=-fPIC -fvisibility=hidden"]
    subprocess.run(["make", f"-j{os.cpu_count() or 1}", *flags, "wheel-parts"], cwd=TREE, env=told, check=True)
    built = os.path.join(TREE, "build", "wheel")
    for name, place in (("libonnxtile.so", "lib/libonnxtile.so"), ("libonnxtile_ort.so", "lib/libonnxtile_ort.so"),
                        ("shared-program", "bin/onnx-tile")):
        where = os.path.join(HERE, "onnx_tile", *place.split("/"))
        if os.path.exists(os.path.join(built, name)):
            os.makedirs(os.path.dirname(where), exist_ok=True)
            shutil.copy(os.path.join(built, name), where)


class Binary(Distribution):
    """Files for one machine, though no extension module is compiled."""

    def has_ext_modules(self):
        return True


class Compiled(build_py):
    """The package with what is compiled of the sources, where they are there."""

    def run(self):
        if os.path.isdir(TREE):
            compile_tree()
            self.data_files = self._get_data_files()
        super().run()


class AnyPython(bdist_wheel):
    """py3-none-PLATFORM: the library is reached through ctypes."""

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


setup(version=version(), distclass=Binary, cmdclass={"bdist_wheel": AnyPython, "build_py": Compiled})
