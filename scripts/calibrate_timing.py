"""Sessions of a runtime, and times that hold on a machine with other work: models that are compared run in turn, the least of each counts.

With one thread the time is that of the processor, which others cannot lengthen but through shared caches and memory.
"""
import time

import numpy as np


class OnnxRuntime:
    name, package = 'onnxruntime', 'onnxruntime'
    fuses_chains = False               # of element-wise operators

    def __init__(self, model, threads):
        import onnxruntime as ort
        so = ort.SessionOptions()
        so.intra_op_num_threads = threads
        so.log_severity_level = 4
        self.session = ort.InferenceSession(model, so, providers=['CPUExecutionProvider'])
        self.feeds = {i.name: feed(i.shape) for i in self.session.get_inputs()}
        self.input_bytes = sum(a.nbytes for a in self.feeds.values())

    def run(self):
        self.session.run(None, self.feeds)


class OpenVINO:
    name, package = 'openvino', 'openvino'
    fuses_chains = True

    def __init__(self, model, threads):
        import openvino as ov
        core = ov.Core()
        settings = {'PERFORMANCE_HINT': 'LATENCY', 'INFERENCE_PRECISION_HINT': 'f32', 'INFERENCE_NUM_THREADS': threads}
        self.request = core.compile_model(core.read_model(model), 'CPU', settings).create_infer_request()
        self.arrays = [feed(list(i.shape)) for i in self.request.model_inputs]       # not copied: they must live as long
        self.input_bytes = sum(a.nbytes for a in self.arrays)
        for k, a in enumerate(self.arrays):
            self.request.set_input_tensor(k, ov.Tensor(a, shared_memory=True))

    def run(self):
        self.request.infer()


RUNTIMES = {r.name: r for r in (OnnxRuntime, OpenVINO)}


def feed(shape):
    return np.random.default_rng(3).random(shape, np.float32) + np.float32(0.5)


class Clock:
    """Times of models of one runtime. budget: seconds that a comparison takes about."""

    def __init__(self, runtime, threads, budget):
        self.runtime, self.threads, self.budget = runtime, threads, budget
        self.now = time.process_time if threads == 1 else time.perf_counter

    def times(self, *models):
        """Least seconds of each."""
        sessions = [self.runtime(m, self.threads) for m in models]
        best = [float('inf')] * len(models)
        for s in sessions:
            s.run()
        end = time.perf_counter() + self.budget
        rounds = 0
        while rounds < 5 or time.perf_counter() < end:
            rounds += 1
            for k, s in enumerate(sessions):
                count = max(1, min(20, int(2e-4 / best[k]))) if rounds > 1 else 1
                t = self.now()
                for _ in range(count):
                    s.run()
                best[k] = min(best[k], (self.now() - t) / count)
        return best

    def difference(self, long, short):
        """Seconds that the first takes more than the second; never below a nanosecond."""
        a, b = self.times(long, short)
        return max(a - b, 1e-9)
