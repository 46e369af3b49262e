"""The shaders' constants and interface, and the SPIR-V that was built from them."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from vkssim.host.pipelines import PUSH_BYTES
from vkssim.shaders import constants, load_module
from vkssim.shaders.interface import INTERFACES, PART, module_name, modules
from vkssim.shaders.spirv import reflect

SHADERS = Path(__file__).resolve().parents[2] / "shaders"


def test_taps_are_not_renormalised() -> None:
    """docs/adr/0001: libvmaf's taps sum to 1.000002, and the shaders use them unchanged."""
    assert sum(constants.GAUSSIAN) == pytest.approx(1.000002, abs=1e-12)
    for taps in (constants.GAUSSIAN, constants.LOW_PASS):
        assert taps == taps[::-1]


def test_constants_of_the_formulas() -> None:
    assert pytest.approx((6.5025, 58.5225)) == (constants.C1, constants.C2)
    assert constants.C3 == constants.C2 / 2
    assert list(constants.BETA) == list(constants.GAMMA) == [0.0448, 0.2856, 0.3001, 0.2363, 0.1333]
    assert list(constants.ALPHA) == [0, 0, 0, 0, 0.1333]


def test_built_modules_are_what_the_host_declares() -> None:
    for stem, shape, precision in modules():
        name, declared = module_name(stem, shape, precision), INTERFACES[stem]
        found = reflect(load_module(name))
        assert found.constants == declared.constants_of(shape), name
        assert tuple(name for name, _, _ in found.push) == (*declared.push, *PART), name
        assert {name for name, _, kind in found.push if kind == "float"} == declared.floats & set(declared.push), name
        assert found.bindings == declared.bindings(shape), name
        assert 4 * len(found.push) <= PUSH_BYTES, name


def test_rows_and_layers_are_those_of_the_whole_dispatch() -> None:
    """docs/adr/0002: the numbers of GLSL begin at 0 in each part of a dispatch, in y and in z."""
    sources = {path: path.read_text("utf-8") for path in SHADERS.rglob("*") if path.suffix in (".comp", ".glsl")}
    assert len(sources) > len(INTERFACES)
    of_parts = re.compile(r"gl_(WorkGroupID|GlobalInvocationID|NumWorkGroups)(?!\.x)")
    assert [path.name for path, text in sources.items() if of_parts.search(text)] == ["workgroup.glsl"]


def test_unbuilt_module_says_what_to_run() -> None:
    with pytest.raises(FileNotFoundError, match="scripts/build_shaders"):
        load_module("ssim.round")


def test_reflect_refuses_what_is_no_spirv() -> None:
    with pytest.raises(ValueError, match="not a SPIR-V module"):
        reflect(struct.pack("<5I", *range(5)))


def test_pack_holds_to_the_declared_names() -> None:
    interface = INTERFACES["ms_ssim_decimate"]
    values = {name: number for number, name in enumerate(interface.push)}
    assert len(interface.pack(**values)) == 4 * len(interface.push)
    with pytest.raises(TypeError, match="push constants are"):
        interface.pack(**values, radius=1)
    with pytest.raises(TypeError, match="push constants are"):
        interface.pack(width=1)
