# shellcheck shell=bash
# Sourced by scripts/quickstart, scripts/test and the scripts of ci/. It moves to the root of the checkout and offers
#
#   prepare         everything that running needs: Vulkan loader, lavapipe, shader compiler, Python, and the package in .venv
#   prepare test    the validation layer and the test tools as well
#   pin_lavapipe    no driver but lavapipe from here on
#   link_package    the package in a folder of links, shaped as it is once installed: for tools that follow no import hook
#   RUN_TESTS       the command that runs the whole test suite, in parallel
#   usage           the comment at the head of the calling script, for --help
#
# Written for bash 3.2, which macOS has.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

unset PYTHONDONTWRITEBYTECODE # each of the many processes that the scripts start would compile the whole package anew
PATH="$PATH:/usr/sbin:/sbin" # ldconfig lies there, and not every user's PATH has them

# One worker more than cores, because many tests wait for a process or a thread; each takes seconds to import the tests. A file's
# tests stay with one worker, because what they share (clips, a browser, a cluster) is made once for each worker, and so do the files
# that need the same kernels (SAME_KERNELS in tests/conftest.py). The files keep their order: slow ones come early.
# A worker that crashes ends the run, which then names the test. If another worker took its place, the run could wait for ever:
# pytest-xdist 3.8 hands out tests that are already done, and waits for their results (issue 1378 of pytest-dev/pytest-xdist).
RUN_TESTS=(
    pytest -n "$(($(getconf _NPROCESSORS_ONLN) + 1))" --maxprocesses 6 --max-worker-restart 0 --dist loadfile --no-loadscope-reorder
)

say() { printf '%s\n' "$*" >&2; }

fail() { # could not run: exit code 2, as everywhere in this project
    say "$(basename "$0"): $*"
    exit 2
}

usage() { awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; }

no_arguments() { # no_arguments "$@": for scripts that take only --help
    [[ $# == 0 ]] && return
    case $1 in
        --help) usage && exit 0 ;;
        *) fail "there is no argument $1; --help says what this does" ;;
    esac
}

# ── the machine ───────────────────────────────────────────────────────────────────────────────────────────────────────

find_manifest() { # find_manifest FOLDER PATTERN: the first such file in the folders of the Vulkan loader
    local base file
    for base in "${XDG_DATA_HOME:-${HOME:-}/.local/share}" ${XDG_DATA_DIRS:+${XDG_DATA_DIRS//:/ }} \
        /usr/local/etc /usr/local/share /etc /usr/share /opt/homebrew/etc /opt/homebrew/share; do
        for file in "$base/vulkan/$1/"$2; do
            [[ -f $file ]] && echo "$file" && return
        done
    done
    return 1
}

find_lavapipe() { # Mesa names the file by the machine, newer versions without it; a file for another word size may be beside it
    find_manifest icd.d "lvp_icd.$(uname -m).json" || find_manifest icd.d lvp_icd.json || find_manifest icd.d 'lvp_icd*.json'
}

have_loader() {
    if [[ $(uname) == Darwin ]]; then
        compgen -G '/opt/homebrew/lib/libvulkan*.dylib' || compgen -G '/usr/local/lib/libvulkan*.dylib'
    else
        [[ $(ldconfig -p) == *libvulkan.so.1* ]]
    fi
}

have_atomics() { # which Playwright's Node.js needs
    [[ $(uname) == Darwin || $(ldconfig -p) == *libatomic.so.1* ]]
}

find_driver() { # macOS has no lavapipe; MoltenVK is its driver
    if [[ $(uname) == Darwin ]]; then find_manifest icd.d MoltenVK_icd.json; else find_lavapipe; fi
}

SUPPORTED='import sys; sys.exit(sys.version_info < (3, 11))'

find_python() { # a Python of 3.11 or later that can make virtual environments
    local candidate
    for candidate in python3 python3.14 python3.13 python3.12 python3.11 /usr/bin/python3; do
        if "$candidate" -c "import ensurepip, venv; $SUPPORTED"; then
            command -v "$candidate"
            return
        fi
    done 2>/dev/null
    return 1
}

find_browser() { # for the tests of pages; Playwright's own if there is no package, as on Ubuntu, which has a snap
    command -v chromium || command -v chromium-browser || command -v google-chrome ||
        compgen -G '.venv/lib/python*/site-packages/playwright/driver/package/.local-browsers/chromium-*'
}

list_missing() { # list_missing [test]: Debian's names of the missing packages; "python" stands for any package with a new enough one
    command -v glslangValidator >/dev/null || echo glslang-tools
    command -v spirv-val >/dev/null || echo spirv-tools
    have_loader >/dev/null 2>&1 || echo libvulkan1
    find_driver >/dev/null || echo mesa-vulkan-drivers
    find_python >/dev/null || echo python
    [[ ${1:-} != test ]] || find_manifest explicit_layer.d 'VkLayer_khronos_validation.json' >/dev/null || echo vulkan-validationlayers
    [[ ${1:-} != test ]] || find_browser >/dev/null || echo chromium
    [[ ${1:-} != test ]] || have_atomics || echo libatomic1
}

# ── installing it ─────────────────────────────────────────────────────────────────────────────────────────────────────

explain() { # explain [test]: what to install without apt
    local tests=${1:-}
    local dnf="dnf install vulkan-loader mesa-vulkan-drivers glslang spirv-tools python3${tests:+ vulkan-validation-layers chromium libatomic}"
    local pacman="pacman -S --needed vulkan-icd-loader vulkan-swrast glslang spirv-tools python${tests:+ vulkan-validation-layers chromium}"
    local brew="brew install vulkan-loader molten-vk glslang spirv-tools python@3.13${tests:+ vulkan-validationlayers && brew install --cask chromium}"
    if command -v dnf >/dev/null; then
        say "  sudo $dnf"
    elif command -v pacman >/dev/null; then
        say "  sudo $pacman"
    elif command -v brew >/dev/null; then
        say "  $brew"
    else
        say "  Fedora:          sudo $dnf"
        say "  Arch:            sudo $pacman"
        say "  macOS:           $brew"
        say "  anything else:   the Vulkan loader, Mesa's lavapipe, glslangValidator, spirv-val, Python 3.11 or later with venv${tests:+,}"
        [[ -z $tests ]] || say "                   the Khronos validation layer, libatomic, and Chromium"
    fi
}

apt_python() { # the package of the release's own Python, or of a later one beside it; fails if all are too old
    local package version
    for package in python3-venv python3.14-venv python3.13-venv python3.12-venv python3.11-venv; do
        version=$(apt-cache show --no-all-versions "$package" 2>/dev/null | sed -n 's/^Version: //p')
        if [[ -n $version ]] && dpkg --compare-versions "$version" ge 3.11; then
            echo "$package"
            return
        fi
    done
    return 1
}

apt_has_browser() { # and not one that only installs a snap, which does not run in containers
    local version
    version=$(apt-cache show --no-all-versions chromium 2>/dev/null | sed -n 's/^Version: //p')
    [[ -n $version && $version != *snap* ]]
}

install_packages() { # install_packages NAME…: by apt-get, as root or with sudo
    local as_root=() packages=() name
    if [[ $(id -u) != 0 ]]; then
        command -v sudo >/dev/null || fail "missing: $*. There is no sudo here; run this as root, or have them installed"
        as_root=(sudo)
    fi
    say "Installing with apt-get: $*"
    # env, so that neither array is ever empty: to bash 3.2 and 4.3 an empty array is unset
    "${as_root[@]:-env}" apt-get update -qq
    for name in "$@"; do
        if [[ $name == python ]]; then
            name=$(apt_python) || fail "no Python of 3.11 or later in this release's repositories. Install one" \
                "(https://www.python.org/downloads/) so that python3.11 or later is on the PATH, and run this again"
        fi
        if [[ $name != chromium ]] || apt_has_browser; then # else install_browser installs it, after Playwright
            packages+=("$name")
        fi
    done
    [[ ${#packages[@]} != 0 ]] || return 0
    "${as_root[@]:-env}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -qq -y --no-install-recommends -o Dpkg::Use-Pty=0 "${packages[@]}" </dev/null >/dev/null
}

PINS=ci/requirements # tools/pin_requirements makes them

pip() { .venv/bin/python -m pip "$@" --quiet --disable-pip-version-check </dev/null; }

install_torch() { # on Linux the pinned one, without CUDA
    local said
    if [[ $(uname) == Linux ]]; then
        said=$(pip install --retries 1 --timeout 15 --extra-index-url https://download.pytorch.org/whl/cpu \
            --require-hashes --no-deps --requirement "$PINS/torch.txt" 2>&1) && return
        [[ $said != *'DO NOT MATCH THE HASHES'* ]] || fail "a wheel of torch is not the one that is pinned: $said"
        say "None of the pinned wheels of torch is for this Python or can be had; the tests get another one"
    fi
    pip install torch
}

install_package() { # install_package [test]: in the CI with the pinned versions; elsewhere with the versions that pip finds
    local tests=${1:-}
    if [[ ${CI:-} == true ]]; then
        pip install --require-hashes --no-deps --requirement "$PINS/test.txt" # which has the dependencies of all
        [[ -z $tests ]] || install_torch
        pip install --no-build-isolation --no-deps --editable .
        pip check >&2 # that the pins fit the project
    else
        [[ -z $tests ]] || install_torch
        pip install --editable ".${tests:+[$tests]}"
    fi
}

prepare_tools() { # prepare_tools FOLDER LIST: an environment with the tools that a list of ci/requirements pins
    [[ -x $1/bin/python ]] || "$(find_python)" -m venv "$1"
    "$1/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --requirement "$PINS/$2.txt" </dev/null
}

install_browser() {
    say "Installing Playwright's Chromium into .venv"
    PLAYWRIGHT_BROWSERS_PATH=0 .venv/bin/python -m playwright install --with-deps chromium </dev/null >/dev/null
}

fingerprint() { # changes with every file that an editable install depends on; Python files are read from the checkout itself
    {
        pwd
        find pyproject.toml setup.py scripts/build_shaders shaders ci/requirements -type f \
            ! -path 'shaders/spv/*' ! -path '*/__pycache__/*' -print0 | sort -z | xargs -0 cksum
    } | cksum
}

make_environment() { # make_environment STAMP: a .venv that can be installed into, and whose stamp is empty until that is done
    if ! .venv/bin/python -c "$SUPPORTED" 2>/dev/null; then
        if [[ -L .venv || -e .venv ]]; then # --clear empties it, and follows links
            [[ ! -L .venv && -f $1 ]] || fail "$PWD/.venv has no Python that vkssim supports, and this script did not make it. Move it away"
        fi
        "$(find_python)" -m venv --clear .venv
    fi
    : >"$1"
}

prepare() {
    local tests=${1:-} absent built stamp=.venv/vkssim-installed
    absent=$(list_missing "$tests")
    if [[ -n $absent ]]; then
        if ! command -v apt-get >/dev/null; then
            say "missing, by Debian's names: ${absent//$'\n'/ }. There is no apt-get here; please run"
            explain "$tests"
            exit 2
        fi
        # shellcheck disable=SC2086 # one word a package
        install_packages $absent
        absent=$(list_missing "$tests" | grep -vx chromium) || true
        [[ -z $absent ]] || fail "still missing after apt-get: ${absent//$'\n'/ }"
    fi

    built=$(fingerprint)
    # The stamp has the fingerprint, then the extra: an environment with the test tools is enough for running too.
    if [[ -x .venv/bin/vkssim && -f $stamp && $(cat "$stamp") == "$built/$tests"* ]] && compgen -G 'shaders/spv/*.spv' >/dev/null; then
        return
    fi
    make_environment "$stamp"
    say "Installing vkssim into .venv and building its shaders"
    install_package "$tests"
    [[ -z $tests ]] || find_browser >/dev/null || install_browser
    echo "$built/$tests" >"$stamp"
}

# vkssim.host and vkssim.shaders are the folders host/ and shaders/. Python finds them through the editable install's import
# hook, which neither mypy nor import-linter follows.
link_package() { # link_package FOLDER
    rm -rf "$1/vkssim"
    mkdir -p "$1/vkssim"
    ln -s "$PWD"/vkssim/* "$PWD/host" "$PWD/shaders" "$1/vkssim/"
}

pin_lavapipe() { # a missing software driver is a failure; no other driver may take its place
    local driver
    driver=$(find_lavapipe) || fail "lavapipe is not installed: no lvp_icd*.json where the Vulkan loader looks (apt: mesa-vulkan-drivers)"
    # The second is the older name of the first, for loaders before 1.3.207.
    export VK_DRIVER_FILES=$driver VK_ICD_FILENAMES=$driver
    unset VKSSIM_DEVICE VK_ADD_DRIVER_FILES VK_LOADER_DRIVERS_SELECT VK_LOADER_DRIVERS_DISABLE
    say "Vulkan driver: $driver and no other"
}
