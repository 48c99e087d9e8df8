#!/bin/sh
# Makes the environment of this bundle on a machine without a network.
#
#     sh install.sh PREFIX [OPTION...]      as `envkit install` has them: --sha256 HEX, --dry-run, --json ...
#     sh install.sh --envkit VERB ...       any other verb, of the envkit that the bundle has
#
# Needs a POSIX shell and Python 3.10 or later. Nothing is fetched, and nothing outside PREFIX, ENVKIT_HOME and
# the folder for temporary files is written. Exit codes are envkit's: 0 ok, 1 findings, 2 bad input, 3 machine.

set -u

say() {
    printf '%s\n' "$*" >&2
}

usage() {
    say "usage: sh $0 PREFIX [OPTION of envkit install ...]"
    say "       sh $0 --envkit VERB [ARGUMENT ...]"
}

case ${1-} in
    '' | -h | --help)
        usage
        [ "${1-}" ] || exit 2
        exit 0
        ;;
esac

# A name that ends in newlines would lose them to $(...), so one sign is put behind it and taken off again.
case $0 in
    */*) folder=${0%/*}/ ;;
    *) folder=./ ;;
esac
case $folder in
    -*) folder=./$folder ;;
esac
here=$(CDPATH='' cd "$folder" && pwd -P && printf .) || {
    say "error: the folder of $0 cannot be read"
    exit 3
}
here=${here%??}

if [ ! -f "$here/bundle.json" ] || [ ! -f "$here/envkit-wheels/start.py" ]; then
    say "error: the rest of the bundle is not beside install.sh"
    say "hint: unpack all of it: mkdir DIR && tar -xf BUNDLE -C DIR && sh DIR/install.sh PREFIX"
    exit 2
fi

fits() {
    command -v "$1" >/dev/null && "$1" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null
}

if [ "${PYTHON-}" ]; then
    if fits "$PYTHON"; then
        exec "$PYTHON" -I -B "$here/envkit-wheels/start.py" "$@"
    fi
    say "error: PYTHON is $PYTHON, which is no Python 3.10 or later"
    say "hint: name another, or unset PYTHON"
    exit 3
fi
for python in python3 python3.13 python3.12 python3.11 python3.10; do
    if fits "$python"; then
        exec "$python" -I -B "$here/envkit-wheels/start.py" "$@"
    fi
done
say "error: no Python 3.10 or later is here (python3, python3.10 ... python3.13 were tried)"
say "hint: load or install one, or name it: PYTHON=/path/to/python3 sh $0 PREFIX"
exit 3
