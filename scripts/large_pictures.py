"""A generated picture and a generated network, for what is said of large files: scripts/seams.py and scripts/large_truth.py."""
import os
import struct
import sys
import zlib

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'models'))
import make_models  # noqa: E402


def picture(channels, height, width, seed=1):
    """Noise that has as much in every octave, and discs: texture and edges, [channels, height, width] in 0..255, as bytes."""
    rng = np.random.default_rng(seed)
    octave = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None]) + 1 / max(height, width)
    rows, columns = np.ogrid[:height, :width]
    bands = []
    for _ in range(channels):
        band = np.fft.irfft2(np.fft.rfft2(rng.standard_normal((height, width), np.float32)) / octave ** 1.2, s=(height, width))
        bands.append(.6 * (band - band.min()) / np.ptp(band))
    for _ in range(height * width // 8000):
        y, x, radius = rng.integers(height), rng.integers(width), rng.integers(6, 50)
        top, left = max(0, y - radius), max(0, x - radius)
        inside = (rows[top:y + radius + 1] - y) ** 2 + (columns[:, left:x + radius + 1] - x) ** 2 < radius ** 2
        for band in bands:
            band[top:y + radius + 1, left:x + radius + 1] += inside * (rng.random() * .4)
    return (np.clip(np.stack(bands), 0, 1) * 255).astype(np.uint8)


def unet(width=8, depth=3, seed=7):
    """A U-Net with random weights, two maps out, for pictures of any size."""
    model = make_models.unet(size=64, width=width, depth=depth, seed=seed)
    del model.graph.value_info[:]
    for value in (model.graph.input[0], model.graph.output[0]):
        for k, name in ((2, 'h'), (3, 'w')):
            value.type.tensor_type.shape.dim[k].dim_param = name if value is model.graph.input[0] else 'out_' + name
    return model


def session(model, threads=1):
    """ONNX Runtime's session of a model: a function of an input."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    made = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=['CPUExecutionProvider'])
    name = made.get_inputs()[0].name
    return lambda x: made.run(None, {name: np.ascontiguousarray(x)})[0]


def write_png(path, pixels):
    """pixels: [height, width, 3] bytes."""
    height, width, _ = pixels.shape

    def chunk(kind, data):
        return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
    lines = b''.join(b'\0' + row.tobytes() for row in np.ascontiguousarray(pixels, np.uint8))
    with open(path, 'wb') as f:
        f.write(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, 8, 2, 0, 0, 0))
                + chunk(b'IDAT', zlib.compress(lines, 9)) + chunk(b'IEND', b''))
