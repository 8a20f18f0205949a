"""plan_memory: places against the definition of a plan, files and rows, failures."""
import os
import tempfile
import unittest

import numpy as np

import onnx_tile


class PlanMemory(unittest.TestCase):
    def test_rows(self):
        """No two buffers that live at one time meet, offsets are aligned, and the height is where the highest ends."""
        rng = np.random.default_rng(3)
        rows = []
        for k in range(40):
            lower = int(rng.integers(0, 50))
            rows.append((f"b {k},", lower, lower + int(rng.integers(1, 20)), int(rng.integers(1, 5000)), int(2 ** rng.integers(0, 7))))
        plan = onnx_tile.plan_memory(rows)
        offsets = plan.offsets
        self.assertEqual(set(offsets), {r[0] for r in rows})
        for name, lower, upper, size, alignment in rows:
            self.assertEqual(offsets[name] % alignment, 0)
            for other, lower2, upper2, size2, _ in rows:
                apart = offsets[name] + size <= offsets[other] or offsets[other] + size2 <= offsets[name]
                self.assertTrue(other == name or lower >= upper2 or lower2 >= upper or apart, (name, other))
        self.assertEqual(plan.height_bytes, max(offsets[r[0]] + r[3] for r in rows))
        alive = [sum(r[3] for r in rows if r[1] <= t < r[2]) for t in range(70)]
        self.assertGreaterEqual(plan.height_bytes, max(alive))
        self.assertGreaterEqual(plan.scopes[0]["lower_bound_bytes"], max(alive))
        self.assertIn("height", str(plan))
        self.assertIn("40 buffers", repr(plan))
        self.assertIn("<table>", plan._repr_html_())

    def test_files_and_modes(self):
        rows = [("a", 0, 2, 100), ("b", 2, 4, 60)]
        self.assertEqual(onnx_tile.plan_memory(rows).height_bytes, 100)
        self.assertEqual(onnx_tile.plan_memory(rows, mode="sequential").height_bytes, 160)
        with tempfile.TemporaryDirectory() as folder:
            out, again = os.path.join(folder, "-out.csv"), os.path.join(folder, "again.csv")
            first = onnx_tile.plan_memory(rows, out, capacity="1K", time_limit=1.5, threads=2)
            with open(out, encoding="utf-8") as f:
                self.assertEqual(f.readline().strip(), "id,lower,upper,size,alignment,offset")
            self.assertEqual(onnx_tile.plan_memory(out, again).offsets, first.offsets)   # offsets that are there stay
            kernel = os.path.join(folder, "k.tk")
            with open(kernel, "w", encoding="utf-8") as f:
                f.write("no kernel")
            with self.assertRaises(onnx_tile.ModelError):
                onnx_tile.plan_memory(kernel, sizes={"n": 4}, target="h200")

    def test_pairs(self):
        """Of three that take turns two must share; the cheapest pair does."""
        rows = [("a", 0, 1, 8), ("b", 1, 2, 8), ("c", 2, 3, 8)]
        pairs = [("a", "b", 5), ("b", "c", 3), ("a", "c")]
        self.assertIsNone(onnx_tile.plan_memory(rows).reuse_cost)
        plan = onnx_tile.plan_memory(rows, capacity=16, pairs=pairs)
        self.assertEqual(plan.reuse_cost, 1)
        self.assertTrue(plan.scopes[0]["reuse_cost_proved"])
        self.assertEqual(plan.offsets["a"], plan.offsets["c"])
        self.assertNotEqual(plan.offsets["a"], plan.offsets["b"])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "p.json")
            with open(path, "w", encoding="utf-8") as f:
                f.write('[{"first": "a", "second": "c", "weight": 7}]')
            self.assertEqual(onnx_tile.plan_memory(rows, pairs=path).reuse_cost, 7)
        with self.assertRaisesRegex(onnx_tile.UsageError, "pair"):
            onnx_tile.plan_memory(rows, pairs=[("a",)])
        with self.assertRaises(onnx_tile.ModelError):
            onnx_tile.plan_memory(rows, pairs=[("a", "d")])

    def test_footprint(self):
        """Two loads that live at one time; 4 KiB more beside them fit above, beside the first alone in the place of the second."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "k.tk")
            with open(path, "w", encoding="utf-8") as f:
                f.write('kernel k target "ascend-a2" {\n  param x: 32x32 f32 @gm\n  param y: 32x32 f32 @gm\n  alloc a: 32x32 f32 @ub\n'
                        '  alloc b: 32x32 f32 @ub\n  alloc c: 32x32 f32 @ub\n  load a <- x\n  load b <- x\n  c = vector.add(a, b)\n'
                        '  store y <- c\n}\n')
            self.assertIsNone(onnx_tile.plan_memory(path).footprint)
            scope, = onnx_tile.plan_memory(path, footprint=True).footprint
        self.assertEqual((scope["scope"], scope["peak_bytes"]), ("ub", max(line["live_bytes"] for line in scope["lines"])))
        self.assertEqual([line["live_bytes"] for line in scope["lines"] if line["line"] == 7], [4096])
        self.assertGreaterEqual(scope["peak_bytes"], 8192)
        with self.assertRaises(onnx_tile.UsageError):
            onnx_tile.plan_memory([("a", 0, 1, 8)], footprint=True)

    def test_what_cannot_be(self):
        with self.assertRaisesRegex(onnx_tile.BudgetError, "^(?!onnx-tile)"):
            onnx_tile.plan_memory([("a", 0, 2, 100), ("b", 1, 4, 60)], capacity=159)
        with self.assertRaisesRegex(onnx_tile.UsageError, "mode 'best'"):
            onnx_tile.plan_memory([], mode="best")
        with self.assertRaisesRegex(onnx_tile.UsageError, "must be"):
            onnx_tile.plan_memory([("a", 0, 2)])
        rows = [("a", 0, 2, 100), ("b", 3, 2, 100)]
        with self.assertRaisesRegex(onnx_tile.ModelError, r"^buffers\[1\]: the lifetime is empty"):  # the caller's row, no file of ours
            onnx_tile.plan_memory(rows)
        with self.assertRaisesRegex(onnx_tile.BudgetError, "^buffers: "):
            onnx_tile.plan_memory(rows[:1], capacity=10)
        with self.assertRaisesRegex(onnx_tile.ModelNotFound, "/nowhere/x.csv"):
            onnx_tile.plan_memory("/nowhere/x.csv")


if __name__ == "__main__":
    unittest.main()
