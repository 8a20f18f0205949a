"""examples/diffusers_vae.py in the released diffusers: the decoder of random weights, swapped, gives the same pictures at several sizes. Skipped
without diffusers, whose dependencies (PyTorch) are 3 GB."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples"))
try:
    import diffusers
    import torch
    from diffusers_vae import swap_decoder
except ImportError:
    diffusers = None


@unittest.skipIf(diffusers is None, "without diffusers")
class Diffusers(unittest.TestCase):
    def test_swapped(self):
        torch.manual_seed(1)
        vae = diffusers.AutoencoderKL(block_out_channels=(32, 64), up_block_types=("UpDecoderBlock2D",) * 2, norm_num_groups=8,
                                      down_block_types=("DownEncoderBlock2D",) * 2, latent_channels=4).eval()
        sizes = [(1, 4, 24, 40), (2, 4, 32, 16)]
        latents = [torch.randn(s) for s in sizes]
        with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
            want = [vae.decode(x).sample for x in latents]
            path = os.path.join(folder, "vae.onnx")
            result = swap_decoder(vae, path, size=(32, 32), force=True, fast_memory="64K", target="cpu-generic")
            self.assertGreater(len(result.regions), 0)
            for x, w in zip(latents, want):
                torch.testing.assert_close(vae.decode(x).sample, w, rtol=1e-3, atol=1e-4)
            self.assertIsNone(swap_decoder(vae, path))  # found, not made
            torch.testing.assert_close(vae.decode(latents[0], return_dict=False)[0], want[0], rtol=1e-3, atol=1e-4)


if __name__ == "__main__":
    unittest.main()
