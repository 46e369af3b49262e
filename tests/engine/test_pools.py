"""Which devices are meant, and what goes together."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from vkssim.cli.options import single_device
from vkssim.engine import cluster, pools
from vkssim.engine.options import Clips, ScoreOptions
from vkssim.engine.pools import WorkerOptions, chosen_devices, in_step_of
from vkssim.engine.processes import WorkerProcess
from vkssim.engine.task import WorkerSpec
from vkssim.engine.worker import has_lock
from vkssim.errors import NoDeviceError, OptionError
from vkssim.host.devices import DeviceInfo, DeviceKind
from vkssim.host.vectors import THREADS_VARIABLE

from ..host.made_up import device_info
from ..support.clips import write, y4m_bytes
from ..support.pictures import clip

CLIP = Path(__file__).resolve().parents[2] / "fixtures" / "bbb_576x324_ref.mp4"


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch) -> list[DeviceInfo]:
    """Two GPUs and a software device, as a machine may list them."""
    found = [
        device_info(0, "NVIDIA Made Up", DeviceKind.DISCRETE),
        device_info(1, "NVIDIA Made Up", DeviceKind.DISCRETE),
        device_info(2, "llvmpipe (LLVM 15, 256 bits)", DeviceKind.CPU),
    ]
    monkeypatch.setattr(pools, "list_devices", lambda _instance: found)
    return found


def _chosen(selector: object) -> list[int]:
    return [device.index for device in chosen_devices("vulkan", selector)]  # type: ignore[arg-type]


def test_all_are_the_gpus(three: list[DeviceInfo]) -> None:
    assert _chosen("all") == _chosen(" All ") == [0, 1]


def test_all_is_the_software_device_where_there_is_no_gpu(three: list[DeviceInfo]) -> None:
    del three[:2]
    assert _chosen("all") == [2]


def test_lists(three: list[DeviceInfo]) -> None:
    assert _chosen("0,2") == _chosen(["0", "llvmpipe"]) == _chosen([0, 2]) == [0, 2]
    assert _chosen("1, 1") == [1, 1]
    assert _chosen(f"{three[1].uuid},{three[0].uuid}") == [1, 0]


def test_one_device_is_chosen_elsewhere(three: list[DeviceInfo]) -> None:
    assert _chosen(None) == _chosen(1) == _chosen("1") == _chosen("NVIDIA") == []
    assert _chosen("llvmpipe (LLVM 15, 256 bits)") == []  # a name with a comma
    assert single_device({"backend": "vulkan", "device": "NVIDIA"})["device"] == "NVIDIA"
    assert single_device({"backend": "vulkan", "device": "all"})["device"] == str(three[0].uuid)


def test_what_there_is_not(three: list[DeviceInfo]) -> None:
    with pytest.raises(NoDeviceError, match="'7' matches no device"):
        _chosen("0,7")
    with pytest.raises(OptionError, match="is empty"):
        _chosen([])
    with pytest.raises(OptionError, match="the cpu backend has no devices"):
        chosen_devices("cpu", "all")
    with pytest.raises(OptionError, match="`backend` is 'cuda'"):
        chosen_devices("cuda", "all")


def test_workers_of_this_machine(three: list[DeviceInfo]) -> None:
    workers = WorkerOptions(device="0,2")
    assert workers.several
    assert [spec.kind for spec in workers.specs()] == ["gpu", "software"]
    assert [spec.device for spec in workers.specs()] == [str(three[0].uuid), str(three[2].uuid)]
    (numpy,) = WorkerOptions(backend="cpu").specs()
    assert (numpy.backend, numpy.device, numpy.kind) == ("cpu", None, "cpu")


@pytest.fixture
def lock(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Turn the interpreter's lock on or off, by what Python says of it."""
    return lambda on: monkeypatch.setattr(sys, "_is_gil_enabled", lambda: on, raising=False)


def test_an_older_python_has_a_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sys, "_is_gil_enabled", raising=False)
    assert has_lock()


@pytest.mark.parametrize(
    ("on", "engines", "in_step", "expected"),
    [
        (True, 0, 1, 1),
        (True, 2, 1, 1),
        (False, 2, 1, 2),
        (True, 3, 1, 2),
        (False, 3, 1, 3),
        (True, 7, 1, 4),
        (True, 8, 1, 4),
        (False, 7, 1, 7),
        (True, 7, 2, 4),
        (False, 7, 2, 7),
        (False, 7, 3, 1),
        (False, 1, 1, 1),
    ],
)
def test_workers_of_a_gpu(
    monkeypatch: pytest.MonkeyPatch, lock: Callable[[bool], None], on: bool, engines: int, in_step: int, expected: int
) -> None:
    """Clips in step keep an engine busy each, and decode their reference once."""
    lock(on)
    started: list[int] = []
    monkeypatch.setattr(WorkerOptions, "specs", lambda self, **_how: [WorkerSpec("vulkan", None, "gpu", "made up")])
    monkeypatch.setattr(pools, "engines_of", lambda _spec: engines)
    monkeypatch.setattr(pools, "DevicePool", lambda spec: started.append(spec.workers))
    WorkerOptions().open([Clips(str(CLIP), str(CLIP))], ScoreOptions(("float_ssim",)), in_step)
    assert started == [expected]


GPU = WorkerSpec("vulkan", None, "gpu", "made up")


@pytest.mark.parametrize(
    ("pairs", "specs", "in_step"),
    [
        (1, [GPU], 1),
        (8, [GPU], 8),
        (12, [GPU], 6),
        (3, [GPU] * 2, 2),
        (16, [GPU] * 4, 4),
        (48, [GPU] * 4, 6),
        (8, [replace(GPU, kind="software")] * 2, 1),
        (8, [replace(GPU, kind="software")], 8),
    ],
)
def test_each_gpu_gets_its_share_of_the_pairs_of_a_reference(pairs: int, specs: list[WorkerSpec], in_step: int) -> None:
    """Groups are as large as others, so that no GPU waits for one that has more."""
    assert in_step_of(pairs, specs) == in_step


@pytest.mark.parametrize(("engines", "pairs", "workers", "in_step"), [(7, 1, 4, 1), (7, 16, 1, 8), (7, 2, 4, 1), (0, 4, 1, 2)])
def test_each_of_several_gpus_has_the_workers_of_one(
    monkeypatch: pytest.MonkeyPatch, lock: Callable[[bool], None], engines: int, pairs: int, workers: int, in_step: int
) -> None:
    lock(True)
    monkeypatch.setattr(WorkerOptions, "specs", lambda self, **_how: [replace(GPU, label=name) for name in "ab"])
    monkeypatch.setattr(pools, "_seconds", lambda *_words: math.inf)
    monkeypatch.setattr(WorkerProcess, "start", lambda _process: None)
    monkeypatch.setattr(WorkerProcess, "engines", lambda _process: engines)
    with WorkerOptions().open([Clips(str(CLIP), str(CLIP))], ScoreOptions(("float_ssim",)), pairs) as pool:
        assert [handle.label for handle in pool.workers()] == ["a", "b"] * workers
        assert (pool.several, pool.in_step) == (True, in_step)


def test_actors_count_video_engines_for_containers_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str | None] = []
    monkeypatch.setattr(cluster, "Cluster", lambda **options: asked.append(options["decode"]))
    raw = write(tmp_path / "a.y4m", y4m_bytes(clip(1)))
    for clips in ([Clips(str(CLIP), str(CLIP))], [Clips(raw, raw)], []):
        WorkerOptions(engine="ray").open(clips, ScoreOptions(("float_ssim",), decode="auto"))
    assert asked == ["auto", None, None]


@pytest.mark.parametrize(
    ("cores", "pairs", "chosen", "processes", "threads"),
    [
        (16, 64, "", 8, 4),
        (16, 3, "", 3, 10),
        (16, 1, "", 1, None),
        (2, 64, "", 1, None),
        (128, 64, "", 16, 16),
        (16, 64, "16", 1, None),
    ],
)
def test_a_software_device_has_processes_for_its_cores(
    monkeypatch: pytest.MonkeyPatch, cores: int, pairs: int, chosen: str, processes: int, threads: int | None
) -> None:
    """A user who chose the number of threads gets one process with these."""
    monkeypatch.setattr(pools, "usable_cores", lambda: cores)
    if chosen:
        monkeypatch.setenv(THREADS_VARIABLE, chosen)
    else:
        monkeypatch.delenv(THREADS_VARIABLE, raising=False)
    software, options, clips = [replace(GPU, kind="software")], ScoreOptions(("float_ssim",)), [Clips("a", "b")] * pairs
    specs = WorkerOptions(processes=True)._needed(software, clips, options)
    assert WorkerOptions()._needed(software, clips, options) == software, "a script may not start processes"
    assert [spec.threads for spec in specs] == [threads] * processes


@pytest.mark.parametrize(("repeated", "gpus"), [(1, 1), (4, 1), (2000, 2), (4000, 4)])
def test_a_short_job_starts_few_gpus(tmp_path: Path, repeated: int, gpus: int) -> None:
    """The other clips are as long as the first one if their files are as large: 48 frames of 576x324."""
    specs = [GPU] * 4
    options = ScoreOptions(("float_ssim",))
    assert len(WorkerOptions()._needed(specs, [Clips(str(CLIP), str(CLIP))] * repeated, options)) == gpus
    assert len(WorkerOptions()._needed(specs, [Clips(str(CLIP), str(tmp_path / "missing"))], options)) == 4, "nothing is known"
    assert len(WorkerOptions()._needed(specs, [], options)) == 4
