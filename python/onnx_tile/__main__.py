"""`python -m onnx_tile`: the program."""
from ._program import main

main()
