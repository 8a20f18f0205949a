"""What library.sh has in Python."""
import re

from command_line import commands


def sums(*paths):
    """Two lists of sums are the same."""
    a, b = ([float(x.split()[-1]) for x in open(f)] for f in paths)
    assert len(a) == len(b) and all(abs(x - y) <= 1e-4 * abs(x) for x, y in zip(a, b)), (a, b)


def shown(root):
    """The examples of the header and of the guide, each as a function of C."""
    header = open(root + '/include/onnx_tile.h').read()
    guide = re.search(r'^## Library$(.*?)^## ', open(root + '/docs/guide.md').read(), re.M | re.S)[1]
    shown = [re.sub(r'^ \*', '', b, flags=re.M) for b in re.findall(r'(?:^ \*     .*\n)+', header, re.M)] + re.findall(r'(?:^    .*\n)+', guide, re.M)
    assert len(shown) == 3, len(shown)
    print('#include <onnx_tile.h>\n#include <stdio.h>\n')
    for k, block in enumerate(shown):
        print(f'int example_{k}(const void *pixels);\nint example_{k}(const void *pixels)\n{{\n    (void)pixels;\n{block}    return 0;\n}}\n')
    print('int main(void) { return example_0(NULL); }')


if __name__ == '__main__':
    commands(sums, shown)
