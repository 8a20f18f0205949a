"""The engine as an execution provider of ONNX Runtime, for models as they are."""
from typing import TYPE_CHECKING, Any, Dict, Optional, Union

from ._errors import UsageError
from ._ort import ort_library

if TYPE_CHECKING:
    from ._tile import Size

_NAME = "OnnxTile"


def _is_there(onnxruntime: Any) -> bool:
    return any(d.ep_name == _NAME for d in onnxruntime.get_ep_devices())


def register_ep() -> str:
    """Make the installed ONNX Runtime (1.23 or newer) know the provider, for the whole process; its name, "OnnxTile". Once is enough, and
    more calls do no harm.

        onnx_tile.register_ep()
        session = onnxruntime.InferenceSession("model.onnx", providers=["OnnxTile", "CPUExecutionProvider"])

    Releases that do not take it by name (before 1.25), and all others, take it by `add_ep`.

    UsageError where ONNX Runtime is too old or the package was built without the engine; ImportError without ONNX Runtime.
    """
    import onnxruntime  # type: ignore[import-untyped]
    library = ort_library()
    if not hasattr(onnxruntime, "register_execution_provider_library") or tuple(int(x) for x in onnxruntime.__version__.split(".")[:2]) < (1, 23):
        raise UsageError(f"ONNX Runtime {onnxruntime.__version__} is too old: 1.23 or newer is needed")
    if not _is_there(onnxruntime):
        onnxruntime.register_execution_provider_library(_NAME, library)
    return _NAME


def add_ep(options: Any, *, goal: Optional[str] = None, budget: "Optional[Size]" = None, max_slowdown: Optional[float] = None,
           threads: int = 0, sizes: Optional[int] = None) -> Any:
    """Let sessions of these onnxruntime.SessionOptions run what the engine has on the provider, which is registered where it is not yet.
    Returns the options.

        options = onnx_tile.add_ep(onnxruntime.SessionOptions(), goal="memory")
        session = onnxruntime.InferenceSession("model.onnx", options)

    goal, budget, max_slowdown: as of `tile`, for each part that the engine takes. threads: of each part's own; 0: as many as
    options.intra_op_num_threads says, and where that says nothing the work is done by ONNX Runtime's threads. sizes: plans that are kept of
    a part with free dimensions (4 unless it is given), each with its packed weights.

    UsageError as of `register_ep`; what an option may not be is said when a session is created.
    """
    import onnxruntime
    register_ep()
    threads = threads or options.intra_op_num_threads
    given: "Dict[str, Union[str, int, float, None]]" = {"goal": goal, "budget": budget, "threads": threads or None, "sizes": sizes,
                                                        "max_slowdown": None if max_slowdown is None else 100 * max_slowdown}
    devices = [d for d in onnxruntime.get_ep_devices() if d.ep_name == _NAME]
    options.add_provider_for_devices(devices, {k: str(v) for k, v in given.items() if v is not None})
    return options
