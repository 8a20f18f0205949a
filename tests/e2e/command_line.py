"""The Python beside a shell test: one file, a function for each thing that the test asks of it. Loads nothing but the standard library."""
import inspect
import os
import sys
import traceback


def commands(*functions):
    """Call the function that the first argument names; its parameters are the other arguments, which are strings.

    Another name, or a wrong number of arguments, ends with a line of usage. What fails says its line of code, and below it, last,
    what is wrong.
    """
    by_name = {f.__name__: f for f in functions}
    f = by_name.get(sys.argv[1]) if len(sys.argv) > 1 else None
    if not f:
        sys.exit(f'usage: {sys.argv[0]} {"|".join(by_name)} ARGUMENTS...')
    try:
        inspect.signature(f).bind(*sys.argv[2:])
    except TypeError as e:
        sys.exit(f'{sys.argv[0]} {f.__name__}{inspect.signature(f)}: {e}')
    try:
        f(*sys.argv[2:])
    except Exception as e:
        at = [x for x in traceback.extract_tb(e.__traceback__) if x.filename == f.__code__.co_filename][-1]
        sys.exit(f'{at.line}\n{os.path.basename(at.filename)}:{at.lineno}: {type(e).__name__}: {e}')
