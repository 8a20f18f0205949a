"""A pass of Olive (olive-ai): chains of operators run tile by tile.

    import olive
    from onnx_tile.olive import package_config

    olive.run({..., "passes": {"tile": {"type": "OnnxTile", "goal": "memory"}}}, package_config=package_config())

`python -m onnx_tile.olive > package.json` writes the same for `olive run --package-config package.json`. The pass comes last: behind
conversion, optimisation and quantisation.
"""
import glob
import importlib
import json
import os
from typing import Any, Dict, Optional

from ._tile import tile


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as why:
        raise ImportError(f"onnx_tile.olive needs Olive: pip install olive-ai ({why})") from None


_passes: Any = _module("olive.passes")
_model: Any = _module("olive.model")
_common: Any = _module("olive.passes.pass_config")
_utils: Any = _module("olive.model.utils")
_paths: Any = _module("olive.resource_path")

# The options of `tile` that a workflow sets: type, what it is where it is not set, and what for.
_OPTIONS: Dict[str, Any] = {
    "goal": (str, "memory", "what to minimise: memory or time"),
    "budget": (Optional[str], None, "what the whole process must keep to by prediction, '200M'"),
    "max_slowdown": (float, 0.1, "what goal memory may cost: 0.1 is 10 %"),
    "max_tensor": (Optional[str], None, "bytes that no tensor may take, '4M'"),
    "shapes": (Optional[dict], None, "{input: dimensions} that are bound"),
    "design": (Optional[dict], None, "{input: dimensions} to plan for while dynamic ones stay dynamic"),
    "target": (Optional[str], None, "host, a shipped preset or an .xml file"),
    "runtime": (Optional[str], None, "who runs the model: onnxruntime, openvino, portable, ..."),
    "threads": (int, 0, "as the model will be run; 0: the target's own"),
    "bit_exact": (bool, False, "nothing that adds up in another order"),
    "force": (bool, False, "tile even at a predicted loss"),
    "single_file": (bool, False, "weights stay in the file"),
}


class OnnxTile(_passes.Pass):  # type: ignore[misc]
    """Tiles an ONNX model as `onnx_tile.tile` does, by its options; fails as it does."""

    @classmethod
    def _default_config(cls, accelerator_spec: Any) -> Dict[str, Any]:
        return {name: _common.PassConfigParam(type_=kind, default_value=value, description=text)
                for name, (kind, value, text) in _OPTIONS.items()}

    def _run_for_config(self, model: Any, config: Any, output_model_path: str) -> Any:
        out = _utils.resolve_onnx_path(output_model_path, os.path.basename(model.model_path))
        given = config if isinstance(config, dict) else config.model_dump()
        tile(model.model_path, out, **{name: given[name] for name in _OPTIONS})
        if not glob.glob(glob.escape(out[:-len(".onnx")]) + ".*.data"):
            return _model.ONNXModelHandler(model_path=_paths.LocalFile({"path": out}))
        folder = _paths.LocalFolder({"path": os.path.dirname(out)})  # weights lie beside the model
        return _model.ONNXModelHandler(model_path=folder, onnx_file_name=os.path.basename(out))


def package_config() -> Dict[str, Any]:
    """Olive's own passes, and OnnxTile: for olive.run(..., package_config=...)."""
    own = _module("olive.package_config").OlivePackageConfig.get_default_config_path()
    with open(own, encoding="utf-8") as f:
        config: Dict[str, Any] = json.load(f)
    config["passes"]["OnnxTile"] = {
        "module_path": "onnx_tile.olive.OnnxTile", "supported_providers": ["CPUExecutionProvider"], "supported_accelerators": ["cpu"],
        "supported_precisions": ["*"], "supported_algorithms": [], "supported_quantization_encodings": []}
    return config


if __name__ == "__main__":
    print(json.dumps(package_config(), indent=1))
