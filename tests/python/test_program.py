"""The program of the package: the same one by both names, with its exit status."""
import os
import subprocess
import sys
import tempfile
import unittest

import networks

import onnx_tile


class Program(unittest.TestCase):
    COMMANDS = ([os.path.join(os.path.dirname(sys.executable), "onnx-tile")], [sys.executable, "-m", "onnx_tile"])

    def test_both_names(self):
        with tempfile.TemporaryDirectory() as folder:
            model = networks.path_of(networks.conv_chain(64, 64), folder, "m")
            tables = []
            for k, command in enumerate(self.COMMANDS):
                out = f"{folder}/t{k}.onnx"
                p = subprocess.run(command + [model, "-o", out, "--force", "--l2", "32K"], capture_output=True, text=True)
                self.assertEqual((p.returncode, p.stderr), (0, ""))
                self.assertTrue(os.path.exists(out))
                tables.append([line for line in p.stdout.splitlines() if not line.startswith("wrote ")])
            self.assertEqual(*tables)
            p = subprocess.run(self.COMMANDS[0] + ["run", model, "--json"], capture_output=True, text=True)
            self.assertEqual(p.returncode, 0, p.stderr)

    def test_version_and_failures(self):
        for command in self.COMMANDS:
            p = subprocess.run(command + ["--version"], capture_output=True, text=True)
            self.assertEqual(p.stdout, f"onnx-tile {onnx_tile.__version__}\n")
            p = subprocess.run(command + ["/nowhere/x.onnx", "-o", "/nowhere/y"], capture_output=True, text=True)
            self.assertEqual(p.returncode, 1)
            self.assertEqual(len(p.stderr.splitlines()), 1)
            with self.assertRaises(onnx_tile.ModelError) as caught:
                onnx_tile.tile("/nowhere/x.onnx")
            self.assertEqual(p.stderr, f"onnx-tile: error: {caught.exception}\n")

    def test_nothing_under_the_gpl(self):
        folder = os.path.dirname(onnx_tile.__file__)
        names = os.listdir(os.path.join(folder, "licenses"))
        self.assertIn("onnx-tile", names)
        libraries = [x for _, _, files in os.walk(os.path.dirname(folder)) for x in files if ".so" in x]
        for name in names + libraries:
            self.assertNotIn("glpk", name)


if __name__ == "__main__":
    unittest.main()
