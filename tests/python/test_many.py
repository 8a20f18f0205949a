"""Again and again, and several at a time: nothing leaks, nothing is shared."""
import gc
import os
import threading
import unittest

import networks
import numpy as np

import onnx_tile

REPEATS = int(os.environ.get("REPEATS", "1000"))


def resident_kilobytes():
    with open("/proc/self/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))


class Many(unittest.TestCase):
    def grows(self, call, most_kilobytes):
        """The process must not grow between the first tenth of the repeats and the last: that is what a leak would do."""
        for _ in range(max(REPEATS // 10, 20)):
            call()
        gc.collect()
        before = resident_kilobytes()
        for _ in range(REPEATS):
            call()
        gc.collect()
        self.assertLess(resident_kilobytes() - before, most_kilobytes)

    def test_tile_and_inspect(self):
        content = networks.conv_chain(32, 32, 4, 2).SerializeToString()
        options = {"fast_memory": 8192, "force": True, "threads": 1, "target": "cpu-generic"}
        self.grows(lambda: (onnx_tile.tile(content, **options), onnx_tile.inspect(content, **options)), 2000)

    def test_explain(self):
        content = networks.conv_chain(32, 32, 4, 2).SerializeToString()
        self.grows(lambda: onnx_tile.explain(content, target="cpu-generic"), 2000)

    def test_sessions(self):
        content = networks.conv_chain(32, 32, 4, 2).SerializeToString()
        x = np.ones((1, 3, 32, 32), np.float32)
        self.grows(lambda: onnx_tile.Session(content, threads=1).run({"x": x}), 2000)

    def test_runs_of_one_session(self):
        session = onnx_tile.Session(networks.conv_chain(rows="height", width=32, channels=4, depth=2), threads=1)
        arrays = [np.ones((1, 3, 16 + k, 32), np.float32) for k in range(8)]
        state = iter(range(10 ** 9))
        self.grows(lambda: (session.run({"x": arrays[next(state) % 8]}), session.profile()), 2000)

    def test_failures(self):
        def fail():
            for call in (lambda: onnx_tile.tile(b"no model"), lambda: onnx_tile.tile("/nowhere/x.onnx"),
                         lambda: onnx_tile.Session(b"no model")):
                with self.assertRaises(onnx_tile.Error):
                    call()
        self.grows(fail, 2000)

    def test_threads(self):
        model = networks.conv_chain(96, 96, 8, 3)
        x = np.random.default_rng(3).random((1, 3, 96, 96), np.float32)
        options = {"fast_memory": 32768, "force": True, "threads": 1}
        want, _ = onnx_tile.tile(model.SerializeToString(), **options)
        y, = onnx_tile.Session(want, threads=1).run([x])
        wrong = []

        def work(content):
            try:
                for _ in range(5):
                    tiled, _ = onnx_tile.tile(content, **options)
                    out, = onnx_tile.Session(tiled, threads=1).run([x])
                    if tiled != want or not np.array_equal(out, y):
                        wrong.append("another result")
            except Exception as why:
                wrong.append(repr(why))

        threads = [threading.Thread(target=work, args=(model.SerializeToString(),)) for _ in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])

    def test_one_session_for_all(self):
        session = onnx_tile.Session(networks.conv_chain(64, 64, 8, 3), threads=2)
        arrays = [np.random.default_rng(k).random((1, 3, 64, 64), np.float32) for k in range(4)]
        want = [session.run([x])[0] for x in arrays]
        wrong = []

        def work(k):
            try:
                for _ in range(40):
                    y, = session.run([arrays[k]])
                    if not np.array_equal(y, want[k]):
                        wrong.append("another's result")
                    session.profile()
            except Exception as why:
                wrong.append(repr(why))

        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])

    def test_close_waits_for_a_run(self):
        x = np.ones((1, 3, 256, 256), np.float32)
        for _ in range(10):
            session = onnx_tile.Session(networks.conv_chain(256, 256, 8, 3), threads=1)
            said, started = [], threading.Event()

            def work():
                try:
                    while True:
                        started.set()
                        session.run([x])
                except onnx_tile.UsageError as why:
                    said.append(str(why))

            thread = threading.Thread(target=work)
            thread.start()
            started.wait()
            session.close()
            thread.join()
            self.assertEqual(said, ["the session is closed"])

    def test_the_interpreter_goes_on_while_a_model_is_tiled(self):
        content = networks.conv_chain(512, 512, 24, 6).SerializeToString()
        done = threading.Event()
        thread = threading.Thread(target=lambda: (onnx_tile.Session(content, threads=1).run([np.ones((1, 3, 512, 512), np.float32)]), done.set()))
        thread.start()
        steps = 0
        while not done.is_set():
            steps += 1
        thread.join()
        self.assertGreater(steps, 1000)


if __name__ == "__main__":
    unittest.main()
