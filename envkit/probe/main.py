"""The probe's door, run by path in the interpreter under test: `python main.py '{"fd": 5}'`.

This file alone must parse under any Python, so that one too old can be told so. Its neighbours are
reached as the package `envkit_probe`, which no installed package shadows and which adds nothing to
`sys.path`; a spawned worker runs this file again (as `__mp_main__`) and finds them the same way.
"""

import os
import sys
import types

OLDEST = (3, 8)
_HERE = os.path.dirname(os.path.abspath(__file__))


def _register():  # type: () -> None
    if sys.path and os.path.abspath(sys.path[0]) == _HERE:
        del sys.path[0]
    package = types.ModuleType("envkit_probe")
    package.__path__ = [_HERE]
    sys.modules.setdefault("envkit_probe", package)


def _too_old():  # type: () -> None
    import json

    record = {"kind": "hello", "version": list(sys.version_info[:3]), "oldest": list(OLDEST)}
    os.write(json.loads(sys.argv[1])["fd"], (json.dumps(record) + "\n").encode("ascii"))


if __name__ == "__main__" and sys.version_info < OLDEST:
    _too_old()
    sys.exit(3)

_register()

if __name__ == "__main__":
    import importlib

    importlib.import_module("envkit_probe.session").main(sys.argv[1])
