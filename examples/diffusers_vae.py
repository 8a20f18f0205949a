#!/usr/bin/env python3
"""The decoder of a diffusers pipeline, tiled and run by onnx_tile in place of PyTorch.

    import diffusers
    from diffusers_vae import swap_decoder

    pipe = diffusers.StableDiffusionPipeline.from_pretrained(...)
    swap_decoder(pipe.vae, "vae.onnx")                # exports and tiles it once; later calls find the file
    pipe("a lighthouse", height=1024, width=1024)

Needs diffusers, torch, onnx, numpy. The file takes latents of every size.
"""
import copy
import os

import torch
from diffusers.models.autoencoders.vae import DecoderOutput

import onnx_tile


class _Decoder(torch.nn.Module):
    """What `vae.decode` computes of scaled latents."""

    def __init__(self, vae):
        super().__init__()
        self.quant, self.decoder = getattr(vae, "post_quant_conv", None), vae.decoder

    def forward(self, latents):
        """The picture."""
        return self.decoder(latents if self.quant is None else self.quant(latents))


def export(vae, path):
    """The decoder as ONNX, for one latent of any size."""
    sizes = {2: "height", 3: "width"}
    latents = torch.zeros(1, vae.config.latent_channels, 32, 32)
    decoder = copy.deepcopy(_Decoder(vae)).float().cpu().eval()
    torch.onnx.export(decoder, (latents,), path, input_names=["latents"], output_names=["picture"],
                      dynamic_axes={"latents": sizes, "picture": {2: "rows", 3: "columns"}}, opset_version=17, dynamo=False)


def swap_decoder(vae, path, size=(128, 128), **options):
    """Let `vae.decode` run the tiled decoder in the file `path`, which is made if it is not there. size: of latents, to plan for. options: of
    onnx_tile.tile. Returns the Result of tiling, None where the file was there."""
    result = None
    if not os.path.exists(path):
        export(vae, path + ".whole")
        design = {"latents": (1, vae.config.latent_channels, *size)}
        _, result = onnx_tile.tile(path + ".whole", path, design=design, **options)
        os.remove(path + ".whole")
    session = onnx_tile.Session(path)

    def decode(latents, return_dict=True, generator=None):
        pictures = [torch.from_numpy(session.run({"latents": one.numpy()})[0]) for one in latents.detach().float().cpu().split(1)]
        picture = torch.cat(pictures).to(latents.device, latents.dtype)
        return DecoderOutput(sample=picture) if return_dict else (picture,)

    vae.decode = decode
    return result
