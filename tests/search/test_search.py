"""The search itself, from Python: real encoders, tiny clips."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import partial
from operator import attrgetter, methodcaller
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import av
import numpy as np
import pytest

import vkssim
from vkssim.clips import VideoFacts
from vkssim.errors import EncodeError, InputError, OptionError, OutputError
from vkssim.metrics.vmaf_model import model_folder
from vkssim.report.thresholds import parse_threshold
from vkssim.search import encode, search_run
from vkssim.search.encoders import encoder_of
from vkssim.search.model import SettingsModel
from vkssim.search.recipe import Recipe, refusal
from vkssim.search.search_run import SearchRun
from vkssim.search.source import Sampling, Source, frame_costs
from vkssim.search.trial import Target, Trial

from ..frames.encoding import encode_frames
from .clips import CUT, FRAMES, LONG, QUICK, SCALED, arguments, break_settings, damage_settings, remuxed, source

pytestmark = pytest.mark.usefixtures("shared_device")
LIMIT = "float_ssim=0.93"


def searched(clip: str, targets: Any = LIMIT, *, encoder: str = "libx264", **more: Any) -> Any:
    return vkssim.search_setting(
        clip,
        **arguments(
            encoder=encoder, targets=targets, options=more.pop("options", QUICK.get(encoder, ())), **{**SCALED, **more}
        ),
    )


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A clip of many shots."""
    return source(tmp_path_factory.mktemp("long") / "long.mkv", count=LONG, shots=LONG // CUT)


def test_the_answer_is_the_cheapest_of_all_settings(clip: str) -> None:
    exhausted = {float(crf): searched(clip, least=crf, most=crf).choice.trial for crf in range(26, 34)}
    expected = max(crf for crf, trial in exhausted.items() if trial.meets)
    with searched(clip) as running:
        trials = list(running)
        choice = running.choice
    assert choice.setting == expected
    assert choice.meets
    assert choice.trial in trials
    assert choice.trial.bytes == exhausted[expected].bytes
    assert choice.trial.values == exhausted[expected].values
    assert len(trials) <= 5
    assert choice.certainty > 0.9
    assert choice.probability == 1.0
    assert running.trials == trials


def test_bit_rates_in_two_passes(clip: str) -> None:
    choice = searched(clip, parameter="bitrate", least=100, most=3000, two_pass=True, trials=6).choice
    assert choice.meets
    assert choice.parameter == "bitrate"
    assert choice.trial.kbps == pytest.approx(choice.setting, rel=0.5)


def test_a_search_that_is_cut_short_says_so(clip: str) -> None:
    choice = searched(clip, trials=1).choice
    assert choice.notes == ("the search ended after 1 trial, as many as `trials` allows: another setting may be the answer",)
    assert searched(clip, trials=1, least=choice.setting, most=choice.setting).choice.notes == ()


def test_several_targets_must_all_hold(clip: str) -> None:
    loose = searched(clip).choice.setting
    tight = searched(clip, [LIMIT, "float_ssim:min=0.95"]).choice
    assert tight.setting < loose
    assert tight.trial.values["float_ssim:min"] >= 0.95


@pytest.mark.parametrize("options", ["preset=ultrafast", "preset=veryfast:asm=0"])
def test_samples_forecast_the_whole_clip(long: str, options: str) -> None:
    """A clip of many shots: the whole clip at the CRF of the samples is near to what they say.

    The second preset begins shots with an intra frame; the other has none there, so that its frames after a cut are worse.
    On a CPU with AVX-512, x264 is reproducible only without its assembly.
    """
    running = searched(long, samples=5, options=options)
    choice, sampling = running.choice, running.sampling
    assert sampling is not None
    assert len(sampling.cuts) >= LONG // CUT - 1  # one of these cuts may change little
    assert sum(sample.count for sample in sampling.samples) < sampling.frames
    assert choice.meets
    assert not choice.trial.whole
    assert 0 < choice.probability < 1
    whole = searched(long, samples=1000, options=options, least=choice.setting, most=choice.setting).choice.trial
    assert whole.whole
    assert choice.trial.bytes == pytest.approx(whole.bytes, rel=0.1)
    assert choice.trial.values["float_ssim:mean"] == pytest.approx(whole.values["float_ssim:mean"], abs=0.005)


def test_the_setting_between_one_that_fails_on_the_whole_clip_and_one_that_meets_is_tried(
    long: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole clip needs a setting one better than its samples do, and the one that is two better is tried first."""

    def encode(self: Any, name: str, sampling: Sampling, place: int, output: Any = None) -> tuple[Trial, list[Any]]:
        score = 1 - 10 ** -(2.8 - 0.05 * place - 0.05 * (name == "whole"))
        name = "float_ssim:mean"
        met, whole = score >= 0.95, sampling.is_whole
        return Trial(place, {name: score}, met, 1000, 10.0, 10, 0.1, whole, {name: 0.0}, float(met)), []

    monkeypatch.setattr(SearchRun, "_encode", encode)
    monkeypatch.setattr(SettingsModel, "likely", lambda _: 27)
    running = searched(long, "float_ssim=0.95", samples=5, whole=True)
    assert running.choice.setting == 28
    assert [(trial.setting, trial.meets) for trial in running.trials if trial.whole] == [(29, False), (27, True), (28, True)]


@pytest.mark.parametrize("sure", [0.5, 0.8, 0.9, 0.99])
@pytest.mark.parametrize("limit", [0.9, 0.95, 0.975])
def test_the_answer_of_samples_is_the_cheapest_that_is_sure_enough(
    clip: str, monkeypatch: pytest.MonkeyPatch, sure: float, limit: float
) -> None:
    """Of all settings, each of which says how probable it is that the whole clip meets the target."""
    (target,) = [Target(parse_threshold(f"float_ssim={limit}", "targets"), decibels=True)]

    def trial(place: int) -> Trial:
        score, deviation = 1 - 10 ** -(2.8 - 0.05 * place), 0.4 + 0.01 * place
        chance = target.probability(score, deviation)
        return Trial(place, {target.name: score}, score >= limit, 1000, 10.0, 10, 0.1, False, {target.name: deviation}, chance)

    monkeypatch.setattr(SearchRun, "_encode", lambda _self, _name, _sampling, place: (trial(place), []))
    running = searched(clip, f"float_ssim={limit}", sure=sure)
    choice = running.choice
    assert choice.setting == max(place for place in range(52) if trial(place).probability >= sure)
    assert choice.meets
    assert choice.probability >= sure
    assert len(running.trials) <= 5


def test_the_last_trial_is_for_a_setting_that_probably_meets_the_target(clip: str) -> None:
    """If it is the first as well, the prior of the encoder says which one."""
    first = {sure: searched(clip, trials=1, sure=sure).choice for sure in (0.5, 0.9)}
    assert first[0.9].meets
    assert first[0.9].setting < first[0.5].setting


def test_a_check_of_the_whole_clip_begins_with_what_the_samples_show(long: str) -> None:
    """Its trials leave no doubt, so that `sure` has nothing to decide."""
    running, other = (searched(long, samples=5, whole=True, sure=sure) for sure in (0.5, 0.99))
    assert [trial.setting for trial in running] == [trial.setting for trial in other]
    assert [trial.whole for trial in running.trials] == sorted(trial.whole for trial in running.trials)
    choice = running.choice
    assert (choice.meets, choice.trial.whole, choice.probability) == (True, True, 1.0)


def test_a_target_of_the_worst_frame_is_noted_where_samples_answer_it(long: str) -> None:
    choice = searched(long, "float_ssim:min=0.5", samples=5, least=30, most=30).choice
    assert choice.notes == ("float_ssim:min: samples seldom have the worst frames of a clip; `whole` looks at all of them",)
    assert choice.trial.deviations["float_ssim:min"] >= 1.0
    assert searched(long, "float_ssim:min=0.5", samples=5, least=30, most=30, whole=True).choice.notes == ()


def test_the_journal_of_another_search_is_refused(clip: str, tmp_path: Path) -> None:
    running = searched(clip, resume=tmp_path / "state")
    next(iter(running))
    running.close()
    with pytest.raises(OptionError, match="another search"):
        list(searched(clip, resume=tmp_path / "state", options="preset=veryfast"))


def test_a_model_that_changed_is_another_search(clip: str, tmp_path: Path) -> None:
    folder, model = model_folder(), tmp_path / "model.json"
    assert folder is not None
    model.write_bytes((folder / "vmaf_v0.6.1.json").read_bytes())
    asked: dict[str, Any] = {"features": f"vmaf=model={model}", "backend": "cpu", "resume": tmp_path / "state"}
    search = partial(searched, clip, "vmaf=80", **asked)
    running = search()
    next(iter(running))
    running.close()
    model.write_bytes(model.read_bytes() + b"\n")
    with pytest.raises(OptionError, match="another search"):
        list(search())


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"encoder": "libx_264"}, "did you mean libx264"),
        ({"targets": []}, "needs a target"),
        ({"targets": "float_ssim=1.5"}, "`targets` float_ssim:mean=1.5: it is 1 at most; mean_db is in dB"),
        ({"targets": "float_psnr:p5=30"}, "float_psnr is not scored"),
        ({"targets": "float_ssim:p7=0.9"}, "unknown pooling 'p7'"),
        ({"options": "preset"}, "not of the form NAME=VALUE"),
        ({"options": "preset=nonsense"}, "`options`: libx264 says: Error setting preset/tune nonsense"),
        ({"options": "made-up=1"}, "Error parsing option 'made-up = 1'"),
        ({"options": "crf=20", "parameter": "bitrate"}, "`options` crf: the search sets the quality itself, by bitrate"),
        ({"encoder": "libvpx-vp9", "options": "b=100k"}, "`options` b: the search sets the quality itself"),
        ({"options": "video_size=16x16"}, "`options`: the size and the pixel format are those of the clip"),
        ({"options": "time_base=1/5"}, "`options` time_base: the times of the frames are those of the clip"),
        ({"options": "flags=+cgop+pass2"}, "`options` flags: the search makes the passes itself"),
        ({"options": "flags=512"}, "`options` flags: the search makes the passes itself"),
        (
            {"options": "flags=+global_header"},
            "each file that is written has headers where it needs them; leave global_header out",
        ),
        ({"encoder": "libx265", "options": "preset=ultrafast:fps=5"}, "`options` fps: the frame rate is that of the clip"),
        ({"options": "x264opts=qp=10"}, "`options` x264opts: give the options in it directly"),
        ({"options": "x264-params=a"}, "give the options in it directly"),
        ({"encoder": "libvpx-vp9", "options": "made-up=1"}, "has no option made-up"),
        ({"parameter": "cq"}, "libx264 has crf, qp, bitrate"),
        ({"least": 40, "most": 30}, "crf from 40 to 30"),
        ({"step": 0.0}, "`step` is 0"),
        ({"trials": 0}, "`trials` is 0"),
        ({"sure": 0.3}, "`sure` is 0.3; it must be 0.5 to 0.999"),
        ({"sure": math.nan}, "`sure` is nan; it must be 0.5 to 0.999"),
        ({"samples": 0.0}, "`samples` is 0"),
        ({"samples": math.inf}, "`samples` is inf"),
        ({"parameter": "bitrate", "most": math.inf}, "bit rates from 50 to inf kbit/s; both must be 1 or more"),
        ({"parameter": "bitrate", "least": 0.0}, "bit rates from 0 to 100000 kbit/s"),
        ({"resume": ""}, "a journal is beside a file of results, and '.' names no file"),
        ({"targets": None}, "`targets` is None, of type NoneType; it must be Sequence[str] | str"),
        ({"trials": 2.5}, "`trials` is 2.5, of type float; it must be int"),
        ({"bits": 8.0}, "`bits` is 8.0"),
        ({"encoder": None}, "`name` is None"),
        ({"options": [5]}, "`options` is [5]"),
        ({"whole": "no"}, "`whole` is 'no'"),
        ({"progress": 1}, "`progress` is 1"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_what_is_refused(clip: str, more: dict[str, Any], text: str) -> None:
    with pytest.raises(OptionError) as caught:
        list(searched(clip, **{"targets": LIMIT, **more}))
    assert text in str(caught.value)


@pytest.mark.parametrize("name", ["none.mkv", "text.mkv"])
def test_a_source_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "text.mkv").write_text("no video at all")
    with pytest.raises(InputError, match="cannot be read"):
        searched(str(tmp_path / name))


def test_the_clip_is_written_with_its_score_and_its_sound(tmp_path: Path) -> None:
    path = source(tmp_path / "clip.mkv", bits=10, sound="flac", colours=(9, 16, 9, 1))
    out = tmp_path / "out.mkv"
    choice = searched(path, output=out, options="preset=ultrafast").choice
    assert choice.meets
    report = vkssim.score_files(path, out, features="float_ssim=scale=1")
    assert report.pooled()["float_ssim"]["mean"] == pytest.approx(choice.trial.values["float_ssim:mean"], abs=1e-12)
    with av.open(str(out)) as after:
        video: Any = after.streams.video[0]
        assert video.codec_context.name == "h264"
        assert video.codec_context.pix_fmt == "yuv420p10le"
        context = video.codec_context
        assert (context.color_primaries, context.color_trc, context.colorspace, context.color_range) == (9, 16, 9, 1)
        assert sum(packet.size for packet in after.demux(video)) == pytest.approx(choice.trial.bytes, rel=0.01)
    packets = []
    for name in (path, str(out)):
        with av.open(name) as container:
            packets.append([bytes(packet) for packet in container.demux(audio=0) if packet.size])
    assert packets[0] == packets[1]
    assert packets[0]
    assert [name.name for name in tmp_path.iterdir() if name.name.startswith(".")] == []


HDR = "master-display=G(13250,34500)B(7500,3000)R(34000,16000)WP(15635,16450)L(10000000,1):max-cll=1000,400"


@pytest.mark.parametrize("encoder", ["libx264", "libx265", "libsvtav1"])
def test_hdr_metadata_is_kept(tmp_path: Path, encoder: str) -> None:
    path = source(
        tmp_path / "hdr.mkv",
        bits=10,
        colours=(9, 16, 9, 1),
        count=4,
        codec="libx265",
        options={"preset": "ultrafast", "x265-params": f"log-level=none:{HDR}"},
    )
    out = tmp_path / "out.mkv"
    choice = searched(path, "float_ssim=0.1", encoder=encoder, output=out, least=30, most=30).choice
    assert choice.meets
    before, after = Source(path).facts, Source(str(out)).facts
    assert before.mastering.display
    assert after.colours == before.colours
    assert after.mastering.light == before.mastering.light == (1000, 400)
    assert after.mastering.display is not None
    np.testing.assert_allclose(after.mastering.display, before.mastering.display, atol=1e-3)
    np.testing.assert_allclose(after.mastering.display[:4], before.mastering.display[:4], atol=1e-4)


def test_a_bare_stream_without_times_has_those_of_its_numbers(tmp_path: Path) -> None:
    path = source(tmp_path / "clip.h264", codec="libx264", options={"preset": "ultrafast", "qp": "4"})
    before = Source(path)
    assert before.scan().times == [round(n / 25 / before.facts.time_base) for n in range(FRAMES)]
    out = tmp_path / "out.mp4"
    choice = searched(path, "float_ssim=0.5", output=out, least=30, most=30).choice
    assert choice.trial.bytes > 0
    after = Source(str(out))
    times = [float(time * after.facts.time_base) for time in after.scan().times]
    assert np.diff(times) == pytest.approx([1 / 25] * (FRAMES - 1), abs=1e-3)


def test_times_that_go_back_are_an_error_before_the_first_trial(tmp_path: Path) -> None:
    """A transport stream that was made of two by `cat` has such times."""
    frames = 32  # more than the second by which times have to go back
    one = Path(source(tmp_path / "one.ts", codec="libx264", options={"preset": "ultrafast"}, count=frames))
    both = tmp_path / "both.ts"
    both.write_bytes(2 * one.read_bytes())
    running = searched(str(both), output=tmp_path / "out.mkv")
    with pytest.raises(
        OutputError, match=rf"`output` \S+: the presentation times of \S+ go back at frame {frames}, as in a file"
    ):
        list(running)
    assert running.trials == []
    choice = searched(str(both), "float_ssim=0.5", least=30, most=30).choice
    assert choice.trial.frames == 2 * frames
    assert any("the presentation times go back" in note for note in choice.notes)


def test_attachments_are_kept_and_what_is_left_out_is_noted(clip: str, tmp_path: Path) -> None:
    path = remuxed(clip, tmp_path / "more.mkv", subtitles=["ass"], font=True, twice=True)
    asked: dict[str, Any] = {"targets": "float_ssim=0.5", "least": 30, "most": 30}
    assert searched(path, **asked, output=tmp_path / "out.mkv").choice.notes == (
        "stream 0 was chosen from 0 (ffv1 64x48), 1 (ffv1 64x48)",
        "stream 1 (video) is left out: sound, subtitles and attachments alone are copied",
    )
    with av.open(str(tmp_path / "out.mkv")) as written:
        assert [stream.type for stream in written.streams] == ["video", "subtitle", "attachment"]
        font: Any = written.streams[2]
        assert (font.name, font.mimetype, font.data) == ("font.ttf", "font/ttf", b"no font at all")
    assert searched(path, **asked, output=tmp_path / "out.mp4").choice.notes == (
        "stream 0 was chosen from 0 (ffv1 64x48), 1 (ffv1 64x48)",
        "stream 1 (video) is left out: sound, subtitles and attachments alone are copied",
        "stream 2 (subtitle) is left out: .mp4 cannot hold it",
        "stream 3 (attachment) is left out: .mp4 cannot hold it",
    )


@pytest.mark.parametrize(("ending", "kept"), [(".mkv", False), (".mp4", True)])
def test_the_shape_of_samples_is_kept_or_noted(tmp_path: Path, ending: str, kept: bool) -> None:
    frame = av.VideoFrame.from_ndarray(np.full((64, 64), 99, np.uint8), "gray").reformat(format="yuv420p")
    options = {"preset": "ultrafast"}
    path = encode_frames(tmp_path / "wide.mkv", [frame], "libx264", options=options, sample_aspect_ratio=Fraction(4, 3))
    out = tmp_path / f"out{ending}"
    choice = searched(path, "float_ssim=0.5", encoder="libvpx-vp9", options="cpu-used=8", least=60, most=60, output=out).choice
    assert Source(path).facts.aspect == Fraction(4, 3)
    assert (Source(str(out)).facts.aspect == Fraction(4, 3)) == kept
    assert any("the shape of the samples, 4/3, is not kept" in note for note in choice.notes) != kept


@pytest.mark.parametrize("encoder", ["libx264", "libx265"])
def test_headers_that_are_not_repeated_reach_the_decoder(clip: str, tmp_path: Path, encoder: str) -> None:
    """As in a file, whose headers lie beside its packets; so the sizes are those of the file too."""
    asked: dict[str, Any] = {"encoder": encoder, "least": 30, "most": 30, "targets": "float_ssim=0.1"}
    usual = searched(clip, **asked).choice.trial
    bare = searched(clip, **asked, options=f"{QUICK[encoder]}:repeat-headers=0").choice.trial
    written = searched(clip, **asked, output=tmp_path / "out.mkv").choice.trial
    assert bare.values == usual.values == written.values
    assert bare.bytes == usual.bytes == written.bytes


def test_frames_that_a_decoder_does_not_give_are_not_laid_to_the_encoder(clip: str, tmp_path: Path) -> None:
    """The file of shots has headers in its packets alone."""
    asked: dict[str, Any] = {"options": f"{QUICK['libx265']}:repeat-headers=0", "least": 30, "most": 30, **SCALED}
    running = vkssim.search_shots(
        clip, **arguments(encoder="libx265", targets="float_ssim=0.1", output=tmp_path / "out.mkv", **asked)
    )
    with pytest.raises(EncodeError, match=rf"hevc gives no picture for {CUT} of {CUT} frames of libx265"):
        list(running)


def test_threads_share_a_search(clip: str) -> None:
    """Each gets every trial, and the one choice."""
    expected = searched(clip).choice
    search = searched(clip)
    with ThreadPoolExecutor(4) as pool:
        settings = [future.result().setting for future in [pool.submit(lambda: search.choice) for _ in range(4)]]
        trials = [future.result() for future in [pool.submit(list, search) for _ in range(4)]]
    assert settings == [expected.setting] * 4
    assert trials == [search.trials] * 4


@pytest.mark.parametrize("ask", [attrgetter("choice"), list, methodcaller("close")], ids=["choice", "iterate", "close"])
def test_a_search_cannot_be_asked_by_its_own_progress(clip: str, ask: Callable[[Any], object]) -> None:
    search: Any = searched(clip, progress=lambda _done, _all: ask(search))
    with pytest.raises(OptionError, match="`progress` runs within the search"):
        list(search)
    search.close()


def test_an_encoder_that_fails_is_an_error_of_its_own(clip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*arguments: Any) -> Any:
        raise av.InvalidDataError(1, "made up")

    monkeypatch.setattr(encode, "_opened", failing)
    with pytest.raises(InputError, match="libx264 failed: made up"):
        list(searched(clip))


NO_STREAM = "vp9 cannot decode the stream of libx264: Invalid data found when processing input"


def test_a_setting_whose_stream_cannot_be_decoded_is_named_and_passed_over(clip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = searched(clip).choice.setting
    break_settings(monkeypatch, lambda setting, _output: setting == expected)
    choice = searched(clip).choice
    assert choice.meets
    assert choice.setting == expected - 1
    assert choice.notes == (f"crf {expected:g}: {NO_STREAM}; it counts as a setting that misses the targets",)
    assert choice.certainty > 0.9


def test_a_file_is_written_with_another_setting_if_the_answer_fails_there(
    clip: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = searched(clip).choice.setting
    break_settings(monkeypatch, lambda setting, output: setting == expected and output is not None)
    choice = searched(clip, output=tmp_path / "out.mkv").choice
    assert choice.meets
    assert choice.setting < expected
    assert any(NO_STREAM in note for note in choice.notes)
    assert (tmp_path / "out.mkv").exists()


@pytest.mark.parametrize("off", [-1, 0])
def test_damaged_streams_of_neighbours_hide_no_answer(clip: str, monkeypatch: pytest.MonkeyPatch, off: int) -> None:
    """Those are the first trial and the setting beside it, which is tried next if nothing else is known."""
    search = searched(clip)
    expected, first = search.choice.setting, search.trials[0].setting
    broken = {first + off, first + off + 1}
    damage_settings(monkeypatch, lambda setting: setting in broken)
    damaged = searched(clip)
    assert damaged.choice.meets
    assert damaged.choice.setting == expected - (expected in broken)
    assert any(f"crf {first:g} scores far lower than" in note for note in damaged.choice.notes)


def test_settings_that_no_cheaper_one_outdoes_are_not_called_damaged(clip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here all settings from one on are far worse, as x264's last ones are for pictures of 16x16."""
    search = searched(clip)
    falls = search.choice.setting
    damage_settings(monkeypatch, lambda setting: setting >= falls)
    choice = searched(clip).choice
    assert choice.setting == falls - 1
    assert choice.notes == ()


def test_an_encoder_of_which_no_stream_can_be_decoded_is_an_error(clip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    break_settings(monkeypatch, lambda _place, _output: True)
    with pytest.raises(EncodeError, match=rf"crf \d+: {NO_STREAM}"):
        list(searched(clip))


def test_frames_of_an_encode_that_fails_count_for_no_other(clip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are fed before it fails, and their scores would come with those of the next setting."""
    original = encode.encoded_pairs
    failed: list[int] = []

    def pairs(frames: Any, sample: Any, recipe: Any, place: int, *more: Any, **planes: Any) -> Any:
        yield from original(frames, sample, recipe, place, *more, **planes)
        if not failed:
            failed.append(place)
            raise EncodeError("its last frame never came")

    monkeypatch.setattr(search_run, "encoded_pairs", pairs)
    trials = list(searched(clip))
    assert failed
    for trial in trials:
        (alone,) = searched(clip, least=trial.setting, most=trial.setting)
        assert trial.values == alone.values


@pytest.mark.parametrize("flushes", [False, True])
def test_an_encoder_that_hangs_is_left_after_a_limit(clip: str, monkeypatch: pytest.MonkeyPatch, flushes: bool) -> None:
    """At a frame, or when it has to give the last ones; the other settings answer."""
    expected, ends, original = searched(clip).choice.setting, threading.Event(), encode._opened

    class Hanging:
        def __init__(self, encoder: Any) -> None:
            self._encoder = encoder

        def __getattr__(self, name: str) -> Any:
            return getattr(self._encoder, name)

        def encode_lazy(self, frame: Any) -> Any:
            if (frame is None) == flushes:
                ends.wait(60)
            yield from self._encoder.encode_lazy(frame)

    def context(recipe: Any, place: int, *more: Any) -> Any:
        encoder = original(recipe, place, *more)
        return Hanging(encoder) if recipe.parameter.values[place] == expected else encoder

    monkeypatch.setattr(encode, "_opened", context)
    monkeypatch.setattr(encode, "MAX_SILENCE_S", 2.0)
    try:
        choice = searched(clip).choice
    finally:
        ends.set()
    assert choice.setting == expected - 1
    assert choice.notes[0].startswith(f"crf {expected:g}: libx264 hangs: it did not ")
    assert " within 2 s; it counts as" in choice.notes[0]


def test_each_of_the_last_frames_has_a_time_limit_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow encoder may hold a hundred of them, and each is a sign of life."""
    limits = []

    def wait(future: Any, limit: float) -> bool:
        limits.append(limit)
        future.result()
        return True

    def packets(frame: Any) -> Iterator[str]:
        yield from ["last", "of", "all"] if frame is None else []

    monkeypatch.setattr(encode, "wait_for", wait)
    stand_in = SimpleNamespace(name="stand-in", encode_lazy=packets)
    assert list(encode._packets(stand_in, ["a frame"])) == ["last", "of", "all"]
    assert limits == [encode.MAX_SILENCE_S] * 5  # the frame, three packets and the end


def test_an_encoder_that_does_not_open_is_left_after_a_limit(clip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ends, original = threading.Event(), av.CodecContext.create

    class Hanging:
        """An encoder, of which the search sets and reads anything."""

        flags = 0

        def __setattr__(self, name: str, value: Any) -> None:
            pass

        def open(self) -> None:
            ends.wait(60)

    search = searched(clip)
    monkeypatch.setattr(av.CodecContext, "create", lambda *asked: Hanging() if asked == ("libx264", "w") else original(*asked))
    monkeypatch.setattr(encode, "MAX_SILENCE_S", 0.2)
    try:
        with pytest.raises(EncodeError, match=r"libx264 hangs: it did not open within 0\.2 s"):
            search.choice  # noqa: B018
    finally:
        ends.set()


def test_no_file_is_written_where_no_setting_meets_the_target(clip: str, tmp_path: Path) -> None:
    choice = searched(clip, "float_ssim=0.9999", least=30, most=31, output=tmp_path / "out.mkv").choice
    assert (choice.meets, choice.setting, choice.certainty) == (False, 30, 0.0)
    assert "no file is written" in choice.notes[0]
    assert list(tmp_path.iterdir()) == []


def test_deeper_encodes_are_scored_against_what_the_encoder_got(clip: str) -> None:
    choice = searched(clip, "float_ssim=0.5", bits=10, least=20, most=20).choice
    assert choice.meets
    assert searched(clip, "float_ssim=0.5", bits=10).recipe.format == "yuv420p10le"


def test_costs_are_those_of_a_quick_encode(clip: str) -> None:
    """A frame that is repeated costs the encoder nearly nothing."""
    assert len(Source(clip).scan().costs) == FRAMES
    cost = frame_costs(64, 48)
    found = Source(clip)
    frame = next(found.frames(0, 1, found.scan()))
    assert cost(frame) > 5 * cost(frame)


NO_GPU = "h264_nvenc needs an NVIDIA GPU that can encode, and NVIDIA's driver; FFmpeg says: "


@pytest.mark.parametrize(
    ("said", "start", "end"),
    [
        ("Cannot load libcuda.so.1", NO_GPU, "The encoders that need no GPU are libx264, libx265, libsvtav1, libvpx-vp9"),
        ("OpenEncodeSessionEx failed: unsupported device (2): (no details)", NO_GPU, "libvpx-vp9"),
        ("InitializeEncoder failed: (8)", "h264_nvenc cannot encode 64x48 yuv420p: ", "InitializeEncoder failed: (8)"),
    ],
)
def test_an_encoder_that_cannot_be_opened(said: str, start: str, end: str) -> None:
    """Its message names a GPU that is missing, else the size."""
    encoder = encoder_of("h264_nvenc")
    text = refusal(Recipe(encoder, encoder.parameter(None), cast(VideoFacts, None), "yuv420p"), 64, 48, said)
    assert text.startswith(start)
    assert text.endswith(end)


def test_nvenc_encodes_8_bits(tmp_path: Path) -> None:
    """Without a GPU, the depth is refused before the encoder."""
    ten = source(tmp_path / "ten.mkv", bits=10)
    with pytest.raises(OptionError, match="hevc_nvenc encodes 8 bits, not 10: choose one with `bits`"):
        vkssim.search_setting(ten, **arguments(encoder="hevc_nvenc", targets="float_ssim=0.9"))


def test_interlaced_video_is_noted(tmp_path: Path) -> None:
    options = {"qp": "0", "flags": "+ildct+ilme", "x264-params": "tff=1"}
    interlaced = source(tmp_path / "fields.mkv", codec="libx264", options=options)
    note = "the source is interlaced; it was encoded as frames; `deinterlace` makes progressive pictures of them"
    asked: dict[str, Any] = {"encoder": "libx264", "options": "preset=ultrafast", **SCALED}
    shots = vkssim.search_shots(interlaced, **arguments(targets=LIMIT, **asked))
    assert shots.report
    assert shots.notes == [note]
    assert note in searched(interlaced).choice.notes


@pytest.mark.parametrize("encoder", ["libx264", "libx265"])
def test_an_odd_size_that_chroma_cannot_have_is_explained(tmp_path: Path, encoder: str) -> None:
    frame = av.VideoFrame.from_ndarray(np.full((71, 63), 99, np.uint8), "gray")
    path = encode_frames(tmp_path / "odd.mkv", [frame.reformat(format="yuv420p")], "ffv1")
    with pytest.raises(OptionError, match="63x71 yuv420p: its width must be a multiple of 2 and its height of 2, because"):
        searched(path, encoder=encoder)
    assert searched(path, encoder="libvpx-vp9", options="cpu-used=8").choice.setting > 0


def test_only_one_setting_of_a_clip_has_two_passes_and_a_range(clip: str) -> None:
    with pytest.raises(OptionError, match="shots are encoded in one pass"):
        vkssim.search_shots(clip, encoder=vkssim.EncoderSpec("libx264", parameter="bitrate", two_pass=True))
    with pytest.raises(OptionError, match="the bit rates of a ladder limit its settings"):
        vkssim.search_ladder(clip, heights=[48], encoder=vkssim.EncoderSpec("libx264", least=20))
