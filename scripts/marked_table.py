"""Tables of documents that a script writes: they stand between two marks, `<!-- table: SCRIPT -->`."""
import os

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def replace(document, script, text):
    """Puts `text` between the two marks of `script` (its path) in the file `document`. ValueError where these are not two."""
    mark = f'<!-- table: {os.path.relpath(os.path.abspath(script), ROOT)} -->'
    with open(document, encoding='utf-8') as f:
        before, _, after = f.read().split(mark)
    with open(document, 'w', encoding='utf-8') as f:
        f.write(f'{before}{mark}\n\n{text.strip()}\n\n{mark}{after}')
