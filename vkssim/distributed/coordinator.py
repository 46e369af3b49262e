"""Takes pairs of clips apart, has the parts scored, and puts their scores together again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ..errors import RangeError, VkssimError
from ..report.results import ScoreReport
from ..report.thresholds import Demand
from ..scoring.options import Clips, ScoreOptions
from ..scoring.range_file import packed, packed_parts, unpacked, unpacked_parts
from ..scoring.ranges import Part, PartScores, joined
from ..scoring.record import ClipPackets
from ..storage.own_folder import OwnFolder
from .rates import SECONDS
from .scheduler import Scheduler, TaskKey
from .task import Done, Task

_PARTS_EACH = 4  # of a pair that is alone, for each worker, so that none waits long for the last
_PARTS, _WHOLE = "parts", "whole"


@dataclass(frozen=True)
class Job:
    """A pair of clips. `key`, of small letters and digits, is what its scores are kept under meanwhile."""

    key: str
    clips: Clips


OnPart = Callable[[Job, Part, PartScores, Done | None], None]
"""Called with the scores of a part as soon as they are there, in any order; with what it took where this run scored it."""


@dataclass
class _State:
    """A job on its way."""

    job: Job
    parts: list[Part] = field(default_factory=list)
    packets: ClipPackets | None = None
    scores: dict[int, PartScores] = field(default_factory=dict)

    def fits(self, place: int) -> bool:
        """Return whether a part ends and begins with the frames that its neighbours found there."""
        seams = [(first, first + 1) for first in (place - 1, place) if {first, first + 1} <= self.scores.keys()]
        return all(self.scores[first].behind == self.scores[second].begins for first, second in seams)


class Coordinator:
    """Scores jobs on a scheduler.

    Where there is a `folder`, a path or a URL, each part's scores are kept in it until the job is done, and found there by the
    next run: it does only what is missing. The folder is made, and stays. Workers write there what they have scored; what one
    cannot write, because its machine has no such folder for one, is written here.

    Raises OutputError where the folder is not vkssim's.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        options: ScoreOptions,
        *,
        folder: str | None = None,
        seconds: float = SECONDS,
        demands: Sequence[Demand] = (),
        on_part: OnPart = lambda _job, _part, _scores, _done: None,
    ) -> None:
        self._scheduler = scheduler
        self._options = options
        self._path = folder
        self._folder = None if folder is None else OwnFolder(folder)
        self._names: set[str] = set()
        if self._folder is not None:
            self._folder.make()
            self._names = self._folder.names()
        self._seconds = seconds
        self._demands = demands
        self._on_part = on_part
        self._states: dict[int, _State] = {}

    def score(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, ScoreReport | Exception]]:
        """Yield each job's report, or why there is none, as they are done; an error's attribute `report` may have some of it.

        What is kept of a job goes when the next one is asked for. Raises DeviceError where no worker is left.
        """
        waiting = deque(enumerate(jobs))
        while waiting or self._states:
            while waiting and self._scheduler.needs_work:
                number, job = waiting.popleft()
                outcome = self._begin(number, job, len(waiting) + 1)
                if outcome is not None:
                    yield job, outcome
                    self._end(number)
            if not self._states:
                continue
            key, done = self._scheduler.take()
            state = self._states[key.job]
            outcome = self._took(key.job, state, key.place, done)
            if outcome is not None:
                self._scheduler.drop(key.job)
                yield state.job, outcome
                self._end(key.job)

    def _begin(self, number: int, job: Job, jobs: int) -> ScoreReport | Exception | None:
        """Put what is missing of a job into the scheduler; its outcome where nothing is."""
        state = self._states[number] = _State(job)
        found = self._found(state)
        if not all(map(state.fits, state.scores)):
            self._start_over(number, state)
            return None
        for place, scores in state.scores.items():
            self._on_part(job, state.parts[place], scores, None)
        if not found:
            self._scheduler.look()
            least = -(-_PARTS_EACH * self._scheduler.workers // jobs)
            task = Task(job.clips, self._options, None, self._seconds, least, self._path, self._name(job, _WHOLE))
            self._scheduler.put(TaskKey(number, 0), task)
            return None
        if len(state.scores) == len(state.parts):
            return self._joined(state)
        self._put_parts(number, state)
        return None

    def _found(self, state: _State) -> bool:
        """Return whether an earlier run divided or scored the job; what is there of it is in the state then."""
        name = self._name(state.job, _WHOLE)
        whole = self._read(name)
        if whole is not None:
            scores = unpacked(whole, name, self._options)
            state.parts, state.scores = [Part()], {} if scores is None else {0: scores}
            return scores is not None
        name = self._name(state.job, _PARTS)
        parts = self._read(name)
        state.parts, state.packets = (None if parts is None else unpacked_parts(parts, name)) or ([], None)
        for place, part in enumerate(state.parts):
            name = self._part_name(state.job, part)
            data = self._read(name)
            scores = None if data is None else unpacked(data, name, self._options)
            if scores is not None:
                state.scores[place] = scores
        return bool(state.parts)

    def _put_parts(self, number: int, state: _State) -> None:
        for place, part in enumerate(state.parts):
            if place not in state.scores:
                name = self._part_name(state.job, part)
                task = Task(state.job.clips, self._options, part, folder=self._path, name=name)
                self._scheduler.put(TaskKey(number, place), task)

    def _took(self, number: int, state: _State, place: int, done: Done | Exception) -> ScoreReport | Exception | None:
        if isinstance(done, RangeError) and len(state.parts) > 1:
            self._start_over(number, state)
            return None
        if isinstance(done, Exception):
            return done
        if done.scores is None:
            state.parts, state.packets = done.parts, done.packets
            if self._folder is not None:
                name = self._name(state.job, _PARTS)
                self._folder.write(name, packed_parts(done.parts, done.packets, name))
            self._put_parts(number, state)
            return None
        state.parts = state.parts or done.parts
        if self._folder is not None and not (done.kept or done.scores.problem):
            name = self._part_name(state.job, state.parts[place])
            self._folder.write(name, packed(done.scores, name))
        state.scores[place] = done.scores
        if not state.fits(place):
            self._start_over(number, state)
            return None
        self._on_part(state.job, state.parts[place], done.scores, done)
        return self._joined(state) if len(state.scores) == len(state.parts) else None

    def _start_over(self, number: int, state: _State) -> None:
        """Have the clips scored in one part: they are not what their packets promised."""
        self._scheduler.drop(number)
        self._remove(state)
        state.parts, state.packets, state.scores = [Part()], None, {}
        self._put_parts(number, state)

    def _joined(self, state: _State) -> ScoreReport | Exception:
        parts = [state.scores[place] for place in range(len(state.parts))]
        try:
            return joined(parts, state.packets, strict=self._options.strict, demands=self._demands)
        except VkssimError as error:
            return error

    def _end(self, number: int) -> None:
        self._remove(self._states.pop(number))

    def _remove(self, state: _State) -> None:
        if self._folder is not None:
            names = [self._part_name(state.job, part) for part in state.parts]
            self._folder.remove([self._name(state.job, _PARTS), *names, self._name(state.job, _WHOLE)])

    def _read(self, name: str) -> bytes | None:
        return self._folder.read(name) if self._folder is not None and name in self._names else None

    def _name(self, job: Job, name: str) -> str:
        return f"{job.key}.{name}"

    def _part_name(self, job: Job, part: Part) -> str:
        return self._name(job, _WHOLE if part.is_whole else f"{part.first:012d}-{part.stop or ''}")
