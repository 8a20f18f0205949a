"""The command line of tests over seeds: which, of which tool."""
import argparse


def parse(doc, count):
    """(arguments, seeds): `count` of them from 0, those that --start and --seeds tell, or the one of --seed. doc: of the script."""
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--tool', default='build/onnx-tile')
    p.add_argument('--start', type=int, default=0)
    p.add_argument('--seeds', type=int, default=count)
    p.add_argument('--seed', type=int)
    p.add_argument('-v', action='store_true')
    args = p.parse_args()
    return args, [args.seed] if args.seed is not None else range(args.start, args.start + args.seeds)
