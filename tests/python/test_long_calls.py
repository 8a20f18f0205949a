"""Long calls: Ctrl-C, cancel, time-outs and progress of Session.run and tile; several runs of one session at the same time; forks."""
import os
import signal
import threading
import time
import unittest
import warnings

import networks
import numpy as np

import onnx_tile

RUNTIMES = (None, "engine")


def deep(runtime=None, depth=40):
    """A network that takes a while, tiled or not, and an input."""
    model = networks.conv_chain(256, 256, channels=32, depth=depth)
    if runtime:
        model, _ = onnx_tile.tile(model, runtime=runtime, fast_memory="256K", force=True, threads=1)
    return model, np.random.default_rng(2).random((1, 3, 256, 256), np.float32)


class Watched(unittest.TestCase):
    def setUp(self):
        """Ctrl-C as it is in a terminal: what a shell starts in the background is told to ignore it."""
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))

    def ends(self, call, end, exceptions):
        """`call` raises one of the exceptions soon after `end`, which another thread calls in the middle of it."""
        ended = []

        def later():
            begun.wait()
            ended.append(time.monotonic())
            end()

        begun = threading.Event()
        thread = threading.Thread(target=later)
        thread.start()
        try:
            with self.assertRaises(exceptions):
                call(lambda stage, done: begun.set())
        finally:
            begun.set()
            thread.join()
        return time.monotonic() - ended[0]


class Runs(Watched):
    def test_cancelled_by_another_thread(self):
        for runtime in RUNTIMES:
            model, x = deep(runtime)
            with onnx_tile.Session(model, threads=1) as session:
                want, = session.run([x])
                with self.assertRaises(onnx_tile.Cancelled) as caught:
                    session.run([x], progress=lambda stage, done: session.cancel())
                self.assertEqual(str(caught.exception), "the run was cancelled")
                self.assertEqual(caught.exception.exit_code, 6)
                self.ends(lambda tell: session.run([x], progress=tell), session.cancel, onnx_tile.Cancelled)
                self.assertTrue(np.array_equal(session.run([x])[0], want), "a run after one that was cancelled")
                session.cancel()  # nothing runs: nothing happens
                self.assertTrue(np.array_equal(session.run([x])[0], want))

    def test_interrupted(self):
        model, x = deep()
        before = signal.getsignal(signal.SIGINT)
        with onnx_tile.Session(model, threads=2) as session:
            self.ends(lambda tell: session.run([x], progress=tell), lambda: signal.raise_signal(signal.SIGINT), KeyboardInterrupt)
            self.ends(lambda tell: session.run([x], progress=tell), lambda: os.kill(os.getpid(), signal.SIGINT), KeyboardInterrupt)
            self.assertIs(signal.getsignal(signal.SIGINT), before)
            session.run([x])

    def test_times_out(self):
        for runtime in RUNTIMES:
            model, x = deep(runtime)
            with onnx_tile.Session(model, threads=1) as session:
                with self.assertRaises(onnx_tile.TimedOut) as caught:
                    session.run([x], timeout=1e-3)
                self.assertIn("longer than 0.001 seconds", str(caught.exception))
                self.assertIsInstance(caught.exception, TimeoutError)
                self.assertEqual(caught.exception.exit_code, 7)
                session.run([x], timeout=1000)
                session.run([x])
        for wrong in (0, -1, float("nan"), "soon"):
            with self.assertRaises(onnx_tile.UsageError):
                session.run([x], timeout=wrong)

    def test_tells_how_far_it_is(self):
        for runtime in RUNTIMES:
            model, x = deep(runtime, 120)
            told = []
            with onnx_tile.Session(model, threads=1) as session:
                session.run([x], progress=lambda stage, done: told.append((stage, done)))
            self.assertGreater(len(told), 1, runtime)
            self.assertEqual({stage for stage, _ in told}, {"run"})
            shares = [done for _, done in told]
            self.assertEqual(shares, sorted(shares))
            self.assertTrue(0 <= shares[0] and shares[-1] <= 1, shares)

    def test_what_progress_raises_comes_out(self):
        model, x = deep()

        def fail(_stage, _done):
            raise LookupError("no")

        with onnx_tile.Session(model, threads=1) as session:
            with self.assertRaisesRegex(LookupError, "no"):
                session.run([x], progress=fail)
            with self.assertRaises(onnx_tile.Cancelled):
                session.run([x], progress=lambda stage, done: False)
            session.run([x])

    def test_no_file_of_a_cancelled_run(self):
        import tempfile
        model, x = deep()
        with tempfile.TemporaryDirectory() as folder, onnx_tile.Session(model, threads=1) as session:
            path = os.path.join(folder, "y.npy")
            with self.assertRaises(onnx_tile.Cancelled):
                session.run([x], into={"y": path}, progress=lambda stage, done: False)
            self.assertEqual(os.listdir(folder), [])
            session.run([x], into={"y": path})
            self.assertEqual(os.listdir(folder), ["y.npy"])


class Plans(Watched):
    def setUp(self):
        super().setUp()
        self.model = networks.conv_chain(2048, 2048, channels=24, depth=24)

    def test_cancelled_and_interrupted(self):
        with self.assertRaises(onnx_tile.Cancelled):
            onnx_tile.tile(self.model, progress=lambda stage, done: False)
        self.ends(lambda tell: onnx_tile.tile(self.model, progress=tell), lambda: os.kill(os.getpid(), signal.SIGINT), KeyboardInterrupt)

    def test_times_out_and_leaves_no_file(self):
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaises(onnx_tile.TimedOut) as caught:
                onnx_tile.tile(self.model, os.path.join(folder, "t.onnx"), timeout=0.01)
            self.assertIn("planning took longer than 0.01 seconds", str(caught.exception))
            self.assertEqual(os.listdir(folder), [])

    def test_tells_its_stages(self):
        told = []
        plain = onnx_tile.tile(self.model)[0]
        watched, _ = onnx_tile.tile(self.model, progress=lambda stage, done: told.append((stage, done)))
        self.assertEqual(plain.SerializeToString(), watched.SerializeToString())
        self.assertIn("select", {stage for stage, _ in told})
        self.assertTrue(all(0 <= done <= 1 for _, done in told))


class Contexts(unittest.TestCase):
    def test_threads_run_one_session(self):
        for runtime in RUNTIMES:
            model, _ = deep(runtime, 4)
            xs = [np.random.default_rng(k).random((1, 3, 256, 256), np.float32) for k in range(8)]
            with onnx_tile.Session(model, threads=1) as one:
                want = [one.run([x])[0] for x in xs]
            for contexts in (1, 3):
                wrong = []

                def work(k):
                    for _ in range(4):
                        if not np.array_equal(session.run([xs[k]])[0], want[k]):
                            wrong.append(k)

                with onnx_tile.Session(model, threads=2, contexts=contexts) as session:
                    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
                    for t in threads:
                        t.start()
                    for t in threads:
                        t.join()
                    self.assertEqual(wrong, [])
                    self.assertGreater(session.profile().data["weight_bytes"], 0)

    def test_runs_are_side_by_side(self):
        """Two runs of two contexts are inside at once: each waits for the other in its progress."""
        model, x = deep()
        both = threading.Barrier(2, timeout=60)
        met = []

        def meet(_stage, _done):
            if threading.get_ident() not in met:
                met.append(threading.get_ident())
                both.wait()

        with onnx_tile.Session(model, threads=1, contexts=2) as session:
            threads = [threading.Thread(target=session.run, args=([x],), kwargs={"progress": meet}) for _ in range(2)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
        self.assertEqual(len(met), 2)
        self.assertFalse(both.broken)

    def test_refused(self):
        model, x = deep(depth=3)
        for wrong in (0, -1, 1000, "two", True, 1.5):
            with self.assertRaises(onnx_tile.UsageError):
                onnx_tile.Session(model, contexts=wrong)
        for wrong in (0, -1, 2**63, "8", True, 1.5):
            with self.assertRaises(onnx_tile.UsageError):
                onnx_tile.Session(model, threads=wrong)
        session = onnx_tile.Session(model, contexts=2)
        session.close()
        session.close()
        with self.assertRaises(onnx_tile.UsageError):
            session.run([x])
        with onnx_tile.Session(model, threads=1) as session:
            def again(first, end):
                return session.run([x])[0][:, :, first:end]
            with self.assertRaisesRegex(onnx_tile.UsageError, "cannot run its session"):
                session.run({"x": onnx_tile.Rows(again, axis=2)})

    def test_closed_during_runs(self):
        """From another thread it waits; from a function of the run it is refused; by two threads at the same time it ends."""
        model, x = deep(depth=3)
        session = onnx_tile.Session(model, threads=1, contexts=2)
        tried = []

        def rows(first, end):
            if not tried:
                tried.append(threading.Thread(target=session.close))
                tried[0].start()
                with self.assertRaisesRegex(onnx_tile.UsageError, "cannot close its session"):
                    session.close()
            return x[:, :, first:end]
        want = onnx_tile.Session(model, threads=1).run([x])[0]
        self.assertTrue(np.array_equal(session.run({"x": onnx_tile.Rows(rows, axis=2)})[0], want))
        tried[0].join()
        with self.assertRaisesRegex(onnx_tile.UsageError, "is closed"):
            session.run([x])
        for _ in range(20):
            shared = onnx_tile.Session(model, threads=1, contexts=4)
            threads = [threading.Thread(target=shared.close) for _ in range(4)]
            for t in threads:
                t.start()
            for t in threads:
                t.join(60)
                self.assertFalse(t.is_alive(), "two calls of close wait for each other")

    def test_children_of_fork(self):
        """A child runs an inherited session; one that another thread is in is refused in one line."""
        model, x = deep()
        with onnx_tile.Session(model, threads=2) as session:
            want, = session.run([x])
            self.assertEqual(self.in_child(lambda: np.array_equal(session.run([x])[0], want)), 0)
            inside, go = threading.Event(), threading.Event()

            def hold(_stage, _done):
                inside.set()
                go.wait(60)

            thread = threading.Thread(target=session.run, args=([x],), kwargs={"progress": hold})
            thread.start()
            inside.wait(60)

            def refused():
                try:
                    session.run([x])
                except onnx_tile.UsageError as why:
                    session.close()  # nor does this wait for the run, which is in the parent
                    return "forked" in str(why)
                return False

            status = self.in_child(refused)
            go.set()
            thread.join()
            self.assertEqual(status, 0)

    @staticmethod
    def in_child(question):
        """Exit status of a child of fork: 0 where the answer is yes."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of forks in processes that have threads
            child = os.fork()
        if child == 0:
            code = 1
            try:
                code = 0 if question() else 1
            finally:
                os._exit(code)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class TiledForOthers(unittest.TestCase):
    def test_what_it_was(self):
        model = networks.conv_chain(64, 48)
        x = np.random.default_rng(1).random((1, 3, 64, 48), np.float32)
        want, = onnx_tile.Session(model, threads=1).run([x])
        tiled, _ = onnx_tile.tile(model, runtime="onnxruntime", fast_memory="32K", force=True, threads=1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with onnx_tile.Session(tiled, threads=1, contexts=2, plan=False) as session:
                self.assertTrue(np.array_equal(session.run([x])[0], want))
                self.assertFalse(any(n["name"].startswith("tile/") for n in session.profile().nodes))
            with onnx_tile.Session(tiled, threads=1, contexts=2) as session:
                self.assertTrue(np.allclose(session.run([x])[0], want, rtol=1e-4, atol=1e-5))
        del tiled.metadata_props[[p.key for p in tiled.metadata_props].index("onnx_tile.original")]
        with self.assertWarnsRegex(RuntimeWarning, "give that one"):
            session = onnx_tile.Session(tiled, threads=1)
        self.assertTrue(np.allclose(session.run([x])[0], want, rtol=1e-4, atol=1e-5))


if __name__ == "__main__":
    unittest.main()
