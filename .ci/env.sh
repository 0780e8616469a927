# Sourced by demo, test and run, which set `root` to the repository. Finds a Python and makes virtual environments beside this file.

# An environment of the caller must not reach into ours, and sums must not depend on how many cores the machine has.
unset PYTHONPATH PYTHONHOME VIRTUAL_ENV
export PYTHONFAULTHANDLER=1 PYTHONNOUSERSITE=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 VECLIB_MAXIMUM_THREADS=1

say() { printf '%s\n' "== $*"; }
die() { printf '%s\n' "error: $*" >&2; exit 1; }

# Sets `base` to the first interpreter that is new enough and can make a virtual environment with pip; PYTHON=... comes first.
find_python() {
    old="" bare=""
    for base in ${PYTHON:+"$PYTHON"} python3 python3.13 python3.12 python3.11 python3.14; do
        # Run each candidate: a name on PATH may be a version manager's stub for a version that is not there.
        "$base" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || { old="$old $base"; continue; }
        "$base" -c 'import venv, ensurepip' >/dev/null 2>&1 || { bare="$bare $base"; continue; }
        return 0
    done
    [ -z "$bare" ] || die "found$bare but without the modules venv and ensurepip: install them (Debian, Ubuntu: apt-get install python3-venv)"
    die "no Python 3.11 or newer found (tried$old): install one, or name it, as in PYTHON=/path/to/python3.12 sh .ci/test"
}

# What an environment depends on: if this text changes, it is made anew.
fingerprint() {
    { printf '%s\n' "$root" "$@"; "$base" -VV; cat "$root"/.ci/env.sh "$root"/pyproject.toml "$root"/plugins/*/pyproject.toml; } | cksum
}

# make_env NAME EXTRAS [REQUIREMENT...]: the environment .ci/.venv-NAME with the project and its plugins installed in place, so that a change of
# source needs no second installation. Sets `bin` to the folder of its programs. An environment that is up to date is used as it is.
make_env() {
    name=$1 extras=$2
    env="$root/.ci/.venv-$name"
    bin="$env/bin"
    find_python
    stamp=$(fingerprint "$@")
    if [ -f "$env/stamp" ] && [ "$(cat "$env/stamp")" = "$stamp" ]; then return 0; fi
    say "making the virtual environment .ci/.venv-$name with $("$base" -V) (a minute or two, once)"
    set -- "$root[$extras]"
    for plugin in "$root"/plugins/*/; do
        if [ -f "${plugin}pyproject.toml" ]; then set -- "$@" -e "${plugin%/}"; fi
    done
    rm -rf "$env"
    "$base" -m venv "$env" || die "$base -m venv failed; its message is above"
    # -qq: errors only. One call for all, so that the plugins' requirement `pullback` is met from here and not from a registry.
    "$bin/python" -m pip install -qq -e "$@" || die "installation failed; pip's message is above"
    printf '%s\n' "$stamp" > "$env/stamp"
}
