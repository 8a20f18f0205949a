"""What streams.sh has in Python."""
from builder import conv_chain, save
from command_line import commands


def chain(path):
    """Twelve convolutions with PRelus."""
    save(conv_chain([16] * 12, 3, (1, 360, 360), act='PRelu', fill=.01), path)


if __name__ == '__main__':
    commands(chain)
