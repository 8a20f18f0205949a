"""The Python beside a shell test: one file, a function for each thing that the test asks of it. Loads nothing but the standard library."""
import inspect
import sys


def commands(*functions):
    """Call the function that the first argument names; its parameters are the other arguments, which are strings.

    Another name, or a wrong number of arguments, ends with a line of usage.
    """
    by_name = {f.__name__: f for f in functions}
    f = by_name.get(sys.argv[1]) if len(sys.argv) > 1 else None
    if not f:
        sys.exit(f'usage: {sys.argv[0]} {"|".join(by_name)} ARGUMENTS...')
    try:
        inspect.signature(f).bind(*sys.argv[2:])
    except TypeError as e:
        sys.exit(f'{sys.argv[0]} {f.__name__}{inspect.signature(f)}: {e}')
    f(*sys.argv[2:])
