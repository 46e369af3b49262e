"""The command line: flags, exit codes, outputs, and what it says where."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import pty
import re
import shlex
import sys
from pathlib import Path
from xml.etree import ElementTree

import click
import click.testing
import numpy as np
import pytest

from vkssim.cli import main
from vkssim.cli.command import Command, CommandOption, CommandWithExamples
from vkssim.cli.output import COMPILE_NOTES
from vkssim.host.errors import COMPILE_LOG
from vkssim.metrics import FEATURES

from ..support.clips import raw_bytes, y4m_bytes
from ..support.commands import TINY, fail, pair_words, refuse, succeed, vkssim, vkssim_process
from ..support.golden import clip_paths
from ..support.pictures import clip

pytestmark = pytest.mark.usefixtures("shared_device")

LUMA = clip(6)
DISTORTED = np.roll(LUMA, 1, axis=2)


@pytest.fixture
def raw_pair(tmp_path: Path) -> tuple[str, ...]:
    """The words that score a pair of raw clips."""
    return pair_words(tmp_path, LUMA, DISTORTED)


# -- help and usage ---------------------------------------------------------------------------------------------------


def test_the_list_of_commands_has_whole_sentences_and_exit_codes_follow() -> None:
    text = click.testing.CliRunner().invoke(main, ["--help"], terminal_width=80).stdout
    assert "Exit codes: 0 scored; 1 the scores fail a demand" in text
    listed = text.split("Commands:\n")[1].split("\n\n")[0].splitlines()
    assert len(listed) == len(main.list_commands(click.Context(main)))
    assert all(line.endswith(".") and not line.endswith("...") for line in listed), listed


@pytest.mark.parametrize(
    "error",
    [
        ImportError("libXau.so.6: failed to map segment from shared object"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        OSError("cannot load library: libdav1d.so: cannot allocate memory in static TLS block"),
        MemoryError(),
    ],
    ids=repr,
)
def test_a_library_that_no_memory_is_left_for_is_no_fault_of_vkssim(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def broken(*_arguments: object, **_options: object) -> None:
        raise error

    monkeypatch.setattr("vkssim.engine.engine.score_pair", broken)
    result = vkssim("score", "-r", "a.y4m", "-d", "b.y4m")
    assert result.exit_code == 2
    assert result.stderr.startswith("vkssim: there is not enough memory. ")


@pytest.mark.parametrize(
    "words",
    [
        ("batch", "URL", "-o", "scores.csv"),
        ("batch", "pairs.csv", "-o", "URL"),
        ("batch", "pairs.csv", "-o", "scores.csv", "--frames", "URL"),
        ("compare", "URL", "new.json"),
        ("report", "URL", "-o", "page.html"),
        ("bd-rate", "URL", "--anchor", "codec=a", "--test", "codec=b"),
        ("correlate", "URL"),
    ],
    ids=lambda words: " ".join(words),
)
@pytest.mark.parametrize("url", ["http://host/scores.csv", "memory://scores.csv", "zip://scores.csv::s3://results/all.zip"])
def test_a_url_that_is_not_supported_is_no_path(words: tuple[str, ...], url: str) -> None:
    """A path would lose one of its slashes in messages."""
    result = vkssim(*(url if word == "URL" else word for word in words))
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{url} is a" in " ".join(result.stderr.split())
    assert "URL" in result.stderr


@pytest.mark.parametrize("words", [("compare", "URL", "new.json"), ("report", "URL", "-o", "page.html"), ("correlate", "URL")])
def test_a_command_that_reads_no_url_offers_none(words: tuple[str, ...]) -> None:
    result = vkssim(*("http://me:secret@host/scores.json" if word == "URL" else word for word in words))
    assert result.exit_code == 2
    told = " ".join(result.stderr.split())
    assert "http://…@host/scores.json is a URL; give the path of a file on this machine" in told


def test_results_may_have_a_name_with_two_colons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a file does not exist before it is written."""
    monkeypatch.chdir(tmp_path)
    for name in ("reference.y4m", "distorted.y4m"):
        Path(name).write_bytes(y4m_bytes(LUMA))
    Path("pairs.csv").write_text("reference,distorted\nreference.y4m,distorted.y4m\n")
    succeed("batch", "pairs.csv", "-o", "night::run.csv", *TINY)
    assert "reference.y4m" in Path("night::run.csv").read_text()


def test_h_is_the_height(raw_pair: tuple[str, ...]) -> None:
    """As in libvmaf's tool."""
    succeed(*raw_pair)
    fail(2, "It is the height; --help shows the help", "score", "-h")


@pytest.mark.parametrize("words", [(), ("compare",), ("bd-rate",), ("devices",), ("features",), ("completion",)])
def test_h_is_the_help_where_it_is_not_the_height(words: tuple[str, ...]) -> None:
    assert vkssim(*words, "-h").output == vkssim(*words, "--help").output
    assert "-h, --help" in vkssim(*words, "-h").output


@pytest.mark.parametrize(("flag", "last"), [("--help", []), ("--help-all", ["Flags of libvmaf's tool"])])
def test_help_of_score_is_in_sections(flag: str, last: list[str]) -> None:
    """Every option stands in the section that its declaration names, and the sections in one order."""
    text = vkssim("score", flag).output
    titles = [line[:-1] for line in text.splitlines() if re.fullmatch(r"[A-Z][\w' ]+:", line)]
    common = ["Inputs", "Frames", "Pictures", "Metrics", "Outputs", "Verdict", "Device", "General"]
    assert titles == [*common, *last, "Examples"]
    parts = dict(zip(titles, re.split(r"^[A-Z][\w' ]+:$", text, flags=re.MULTILINE)[1:], strict=True))
    for flag, title in {"--offset": "Frames", "--crop": "Pictures", "--strict": "Verdict", "--map": "Outputs"}.items():
        assert [name for name, part in parts.items() if f"  {flag} " in part] == [title]


def test_help_lists_common_options_and_the_whole_help_every_one() -> None:
    """Each name of a common option is that of an option."""
    for name in ("score", "batch", "correlate"):
        command = main.get_command(click.Context(main), name)
        assert isinstance(command, Command)
        brief, whole = (vkssim(name, flag).output for flag in ("--help", "--help-all"))
        for option in command.params:
            if isinstance(option, CommandOption):
                listed = f" {option.opts[-1]} "
                assert listed in whole
                assert (listed in brief) == (option.name in command.common or option.name == "help_all"), listed
        assert set(command.common) <= {option.name for option in command.params}


def _commands() -> list[str]:
    return main.list_commands(click.Context(main))


@pytest.mark.parametrize("name", _commands())
def test_examples_can_be_parsed(name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert isinstance(command, Command)
    for line, _ in command.examples:
        _check_example(command, line)


def test_examples_of_the_group_can_be_parsed() -> None:
    assert isinstance(main, CommandWithExamples)
    assert main.examples
    for line, _ in main.examples:
        command = main.get_command(click.Context(main), line.split()[1])
        assert isinstance(command, Command)
        _check_example(command, line)


def _check_example(command: click.Command, line: str) -> None:
    """Parse the command line of an example, which a shell may redirect or evaluate."""
    words = shlex.split(re.findall(r"vkssim [^)>]*", line)[0])
    assert words[:2] == ["vkssim", command.name]
    command.make_context(command.name, words[2:])


@pytest.mark.parametrize("name", ["", *_commands()])
def test_help_has_each_example_on_a_line_of_its_own(name: str) -> None:
    """No help has marks for the formatter, and none has a command line amid its sentences, where it is wrapped."""
    command = main.get_command(click.Context(main), name) if name else main
    assert isinstance(command, CommandWithExamples)
    flags = {"--help", *(text for parameter in command.params for text in parameter.opts if text == "--help-all")}
    for flag in sorted(flags):
        text = click.testing.CliRunner().invoke(main, [*name.split(), flag], terminal_width=80).stdout
        assert not re.search(r"[\\\x00-\x09\x0b-\x1f]", text)
        sentences, _, rest = text.partition("\nExamples:\n")
        examples = rest.split("\n\n")[0].splitlines()
        for line, _ in command.examples:
            assert re.match(" {4}[A-Z]", examples[examples.index(f"  {line}") + 1]), examples
        assert not re.search(rf"vkssim ({'|'.join(_commands())}) +(?!-)\S+\.\w+", sentences)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-p", "411"), "'411' is not one of '420', '422', '444', '400'"),
        (("-b", "11"), "'11' is not one of"),
        (("-w", "0"), "0 is not in the range"),
        (("--subsample", "0"), "0 is not in the range"),
        (("--frame_cnt", "0"), "0 is not in the range"),
        (("--frame_skip_ref", "-1"), "-1 is not in the range"),
        (("--backend", "cuda"), "'cuda' is not one of"),
        (("--planes", "yu"), "(did you mean yuv?)"),
        (("--backend", "Vulkan"), "(did you mean vulkan?)"),
        (("--fail-under", "float_ssim:percentile5=1"), "(did you mean p5?)"),
        (("--print", "float_ssim:harmonic"), "(did you mean harmonic_mean?)"),
        (("--print", "vmaf"), "--print: vmaf is not scored. Available scores: float_ssim"),
        (("--print", "ssim"), "--print: ssim is not scored (did you mean float_ssim?)"),
        (("--print", "float_ssim:median"), "--print 'float_ssim:median': unknown pooling 'median' (did you mean p50?)"),
        (("--print", "float_ssim=1"), "is not of the form NAME or NAME:POOLING"),
        (("--print", "float_ssim", "--json"), "--print and the report both go to standard output"),
        (("--print", "float_ssim", "--live"), "--print and --live both go to standard output"),
    ],
)
def test_refused_before_anything_is_scored(raw_pair: tuple[str, ...], words: tuple[str, ...], message: str) -> None:
    refuse(message, *raw_pair, *words)


@pytest.mark.parametrize(("word", "meant"), [("scor", "score"), ("bdrate", "bd-rate")])
def test_a_mistyped_command_is_met_with_the_one_that_was_meant(word: str, meant: str) -> None:
    refuse(f"(did you mean {meant}?)", word)


@pytest.mark.parametrize("words", ["", "a.y4m", "-r a.y4m", "-d a.y4m"])
def test_two_clips_are_needed(words: str) -> None:
    refuse(f"a reference and a distorted clip are needed, and {words or 'no file'} is given", "score", *words.split())


@pytest.mark.parametrize("words", ["REF DIS", "-r REF DIS", "-d DIS REF", "REF -d DIS", "-d DIS -r REF"])
def test_flags_or_places_name_the_clips(raw_pair: tuple[str, ...], words: str) -> None:
    _, _, reference, _, distorted, *rest = raw_pair
    clips = words.replace("REF", reference).replace("DIS", distorted).split()
    scored = json.loads(vkssim("score", *clips, *rest, "-q", "--json").stdout)["scoring"]
    assert [scored[name]["path"] for name in ("reference", "distorted")] == [reference, distorted]


# -- outputs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["json", "xml", "csv", "sub"])
def test_forms_to_standard_output_and_to_a_file(raw_pair: tuple[str, ...], tmp_path: Path, form: str) -> None:
    """The form follows the flag or the ending; both give the same. Nothing else is on standard output."""
    file, by_flag, other = tmp_path / f"scores.{form}", tmp_path / "by_flag", ("-o", "-", f"--{form}")
    printed = succeed(*raw_pair, f"--{form}")
    assert "float_ssim" in printed.stderr, "the summary makes way"
    assert vkssim(*raw_pair, "-o", str(file)).exit_code == vkssim(*raw_pair, "-o", str(by_flag), f"--{form}").exit_code == 0

    assert file.read_text() == printed.stdout == by_flag.read_text()
    assert vkssim(*raw_pair, *other).stdout == printed.stdout
    several = succeed(*raw_pair, "-o", str(file), "-o", "-", "-o", str(by_flag))
    assert file.read_text() == printed.stdout
    assert several.stdout == by_flag.read_text() == vkssim(*raw_pair, "--xml").stdout, "without an ending it is XML"


@pytest.mark.parametrize("name", ["scores", "json", "run.2", ".hidden"])
def test_without_an_ending_it_is_xml(raw_pair: tuple[str, ...], tmp_path: Path, name: str) -> None:
    """As libvmaf's tool has it."""
    succeed(*raw_pair, "-o", str(tmp_path / name))
    assert ElementTree.parse(tmp_path / name).getroot().tag == "VMAF"


@pytest.mark.parametrize("name", ["scores.txt", "scores.yaml", "scores.parquet", "page.html", "page.HTM", "scores.js\x1b[2Jon"])
def test_unknown_endings_are_refused(raw_pair: tuple[str, ...], tmp_path: Path, name: str) -> None:
    """A file that is not what its name says helps nobody; a flag for the form takes any name."""
    result = refuse(
        "the endings are .json, .xml, .csv, .sub", *raw_pair, "-o", str(tmp_path / "scores.json"), "-o", str(tmp_path / name)
    )
    hint = f"--html {tmp_path / name} writes the page" if "page" in name else "--json --xml --csv --sub give the form"
    assert hint in result.stderr
    assert "\x1b" not in result.stderr
    assert not list(tmp_path.glob("*.json*"))
    succeed(*raw_pair, "-q", "-o", str(tmp_path / name), "--csv")
    assert (tmp_path / name).read_text().startswith("Frame,")


def test_an_output_that_fails_keeps_no_other_from_being_written(raw_pair: tuple[str, ...], tmp_path: Path) -> None:
    fail(2, "/dev/full cannot be written", *raw_pair, "-q", "-o", "/dev/full", "-o", str(tmp_path / "scores.json"))
    assert json.loads((tmp_path / "scores.json").read_text())["frames"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("a.json", "./a.json"), "would overwrite another file of this command"),
        (("-", "/dev/stdout"), "two reports would go to standard output"),
        (("a.json", "a.json.journal"), "the form of a file of any name"),
    ],
)
def test_outputs_that_are_one(
    raw_pair: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    refuse(message, *raw_pair, "-o", names[0], "-o", names[1])
    assert not (tmp_path / "a.json").exists()


@pytest.mark.parametrize("quiet", [(), ("-q",)])
def test_print(raw_pair: tuple[str, ...], quiet: tuple[str, ...]) -> None:
    """The bare numbers are all that is on standard output."""
    words = ("--print", "float_ssim", "--print", "float_ssim:p5")
    result = succeed(*raw_pair, *words, *quiet)
    pooled = json.loads(vkssim(*raw_pair, "--json").stdout)["pooled_metrics"]["float_ssim"]
    assert result.stdout == f"{pooled['mean']:.6f}\n" + f"{pooled['p5']:.6f}\n"
    assert ("float_ssim" in result.stderr) == (not quiet)
    exact = vkssim(*raw_pair, "--print", "float_ssim", "--precision", "max", "-q").stdout
    assert float(exact) == pytest.approx(pooled["mean"], abs=1e-6)
    assert len(exact) > len("0.123456\n")


def test_print_with_a_demand_that_is_not_met(raw_pair: tuple[str, ...]) -> None:
    result = vkssim(*raw_pair, "-q", "--print", "float_ssim:min", "--fail-under", "float_ssim=1.5")
    assert result.exit_code == 1
    assert re.fullmatch(r"\d\.\d{6}\n", result.stdout)


def test_what_was_written_is_said(raw_pair: tuple[str, ...], tmp_path: Path) -> None:
    scores, page, maps = (str(tmp_path / name) for name in ("scores.json", "page.html", "maps"))
    words = (*raw_pair, "-o", scores, "--html", page, "--map", maps)
    said = [line for line in vkssim(*words).stderr.splitlines() if "wrote" in line]
    assert said == [f"vkssim: wrote {name}" for name in (scores, page, f"{maps}/")]
    assert "wrote" not in vkssim(*words, "-q").output
    assert "wrote" not in vkssim(*raw_pair, "-o", "-").output
    assert vkssim("report", scores, "-o", page).stderr.endswith(f"vkssim: wrote {page}\n")


def test_summary_without_an_output(raw_pair: tuple[str, ...]) -> None:
    result = succeed(*raw_pair)
    for word in ("float_ssim", "mean", "harmonic", "6 frames of 32x24, 8 bit", "NumPy"):
        assert word in result.stdout
    assert result.stderr == "", "no progress where there is no terminal"


def test_profile(raw_pair: tuple[str, ...]) -> None:
    result = succeed(*(word if word != "cpu" else "vulkan" for word in raw_pair), "--profile")
    for word in ("where the time goes", "read", "ssim", "whole run"):
        assert word in result.stdout


def test_progress_on_a_terminal() -> None:
    """Frames done, of how many, how fast, and the time left; on the terminal alone."""
    terminal, theirs = pty.openpty()
    few = ("--frame_cnt", "12")  # whose progress fits the terminal's buffer
    words = ("score", *map(str, clip_paths("bbb_576x324")), "--csv", *few, *TINY[:3], "float_psnr")
    process = vkssim_process(*words, stderr=theirs, environment={"COLUMNS": "120", "TERM": "xterm"})
    os.close(theirs)
    shown = os.read(terminal, 1 << 16)
    os.close(terminal)
    assert process.returncode == 0
    assert b"frames/s" in shown
    assert b"left" in shown
    assert b"frames/s" not in process.stdout


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stream", "heard"), [(_Terminal(), ["note: a driver takes long"]), (io.StringIO(), [])])
def test_notices_are_for_terminals(stream: io.StringIO, heard: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr("vkssim.cli.output.say", said.append)
    monkeypatch.setattr(sys, "stderr", stream)
    main(["features"], standalone_mode=False)
    COMPILE_LOG.info("a driver takes long")
    COMPILE_LOG.removeHandler(COMPILE_NOTES)
    assert said == heard


def test_quiet_commands_give_no_notices(raw_pair: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr("vkssim.cli.output.say", said.append)
    COMPILE_LOG.addHandler(COMPILE_NOTES)
    succeed(*raw_pair, "-q")
    COMPILE_LOG.warning("a driver takes long")
    assert said == []


def scores_in(text: str) -> list[list[str]]:
    """The rows of a CSV without the last column, which says how it was scored, and without times, which raw files have not."""
    rows = list(csv.reader(io.StringIO(text)))
    return [row[: -2 if "time" in rows[0] else -1] for row in rows]


# -- pipes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("side", "kind"), [("-r", "raw"), ("-d", "y4m")])
def test_standard_input(raw_pair: tuple[str, ...], side: str, kind: str) -> None:
    """One of the two, raw or Y4M, gives what the file gives."""
    expected = vkssim(*raw_pair, "--csv").stdout
    words = list(raw_pair)
    words[words.index(side) + 1] = "-"
    luma = LUMA if side == "-r" else DISTORTED
    process = vkssim_process(*words, "--csv", "-q", stdin=raw_bytes(luma) if kind == "raw" else y4m_bytes(luma))
    assert process.returncode == 0, process.stderr.decode()
    assert scores_in(process.stdout.decode()) == scores_in(expected)


def test_container_in_a_pipe_is_refused(raw_pair: tuple[str, ...]) -> None:
    words = [word if not word.endswith("ref.yuv") else "-" for word in raw_pair]
    process = vkssim_process(*words, stdin=clip_paths("bbb_576x324_10bit")[0].read_bytes())
    assert process.returncode == 2
    assert b"only raw YUV and Y4M can be read from a pipe" in process.stderr


# -- exit codes -------------------------------------------------------------------------------------------------------


def test_nothing_is_written_where_nothing_was_scored(raw_pair: tuple[str, ...], tmp_path: Path) -> None:
    output = tmp_path / "scores.json"
    result = vkssim(*raw_pair, "--frame_skip_ref", "100", "-o", str(output))
    assert result.exit_code == 2
    assert not output.exists()


def test_selection_flags(raw_pair: tuple[str, ...]) -> None:
    result = vkssim(
        *raw_pair, "--csv", "--frame_skip_ref", "1", "--frame_skip_dist", "1", "--frame_cnt", "5", "--subsample", "2"
    )
    scores = [row[1:] for row in scores_in(vkssim(*raw_pair, "--csv").stdout)[2::2]]
    assert scores_in(result.stdout)[1:] == [[number, *row] for number, row in zip("024", scores, strict=True)]


def test_unexpected_error_is_a_message(raw_pair: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr("vkssim.engine.engine.score_pair", broken)
    fail(2, "unexpected ZeroDivisionError: a fault of ours", *raw_pair)
    monkeypatch.setenv("VKSSIM_TRACEBACK", "1")
    assert isinstance(vkssim(*raw_pair).exception, ZeroDivisionError)


# -- other commands ---------------------------------------------------------------------------------------------------


def test_devices() -> None:
    rows = json.loads(vkssim("devices", "--json").output)
    assert [row["index"] for row in rows] == list(range(len(rows)))
    text = vkssim("devices").output
    for row in rows:
        assert set(row) == {"index", "name", "driver", "pci", "lacks", "kind", "uuid"}
        assert row["name"] in text
        assert row["uuid"] in text


def test_features() -> None:
    text = vkssim("features").output
    for name, feature in FEATURES.items():
        assert name in text
        for option in feature.options:
            assert f"   {option}=" in text
