"""A plan that is bound to buffers: its descriptor sets, the commands that run it, and the timestamps that these take."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from itertools import chain
from typing import Any

import numpy as np

from .api import vk
from .device import Device
from .memory import Buffer
from .pipelines import PipelineBuilder
from .plan import Plan
from .submissions import DispatchPart, Submission

_FIRST_WORKGROUP = struct.Struct("<ii")  # in y and in z, after the push constants of the plan


class Binding:
    """The descriptor sets of a plan's dispatches, for buffers by name. The stack that is passed destroys them."""

    def __init__(
        self, device: Device, stack: ExitStack, plan: Plan, pipelines: PipelineBuilder, buffers: Mapping[str, Buffer]
    ) -> None:
        self._plan = plan
        self._pipelines = [pipelines[dispatch.kernel] for dispatch in plan.dispatches]
        layouts = [pipeline.layout for pipeline in self._pipelines]
        counts = Counter(chain.from_iterable(layout.types for layout in layouts))
        sizes = [vk.VkDescriptorPoolSize(type=kind, descriptorCount=count) for kind, count in counts.items()]

        pool_info = vk.VkDescriptorPoolCreateInfo(maxSets=len(layouts), pPoolSizes=sizes)
        pool = device.create(stack, "DescriptorPool", pool_info)

        info = vk.VkDescriptorSetAllocateInfo(descriptorPool=pool, pSetLayouts=[layout.descriptor_set for layout in layouts])
        self._sets = list(vk.vkAllocateDescriptorSets(device.handle, info))

        writes = []
        for dispatch, layout, descriptor_set in zip(plan.dispatches, layouts, self._sets, strict=True):
            for number, (kind, name) in enumerate(zip(layout.types, dispatch.sources + dispatch.targets, strict=True)):
                buffer = buffers[name]
                if kind == vk.VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER:
                    resource = {"pTexelBufferView": [buffer.texel_view()]}
                else:
                    resource = {"pBufferInfo": [vk.VkDescriptorBufferInfo(buffer=buffer.handle, offset=0, range=buffer.size)]}
                writes.append(
                    vk.VkWriteDescriptorSet(
                        dstSet=descriptor_set, dstBinding=number, descriptorCount=1, descriptorType=kind, **resource
                    )
                )

        vk.vkUpdateDescriptorSets(device.handle, len(writes), writes, 0, None)

    def record(self, commands: Any, submission: Submission, after_each: Callable[[], None]) -> None:
        """Record the parts of one submission; `after_each` is called after every dispatch that ends in it."""
        written = vk.VK_ACCESS_SHADER_WRITE_BIT | vk.VK_ACCESS_TRANSFER_WRITE_BIT
        for number, part in enumerate(submission):
            # The first barrier orders this submission after the previous ones, which used the same work buffers.
            if part.begins_step or number == 0:
                barrier(commands, written, vk.VK_ACCESS_SHADER_READ_BIT | vk.VK_ACCESS_SHADER_WRITE_BIT)
            self._record_part(commands, part)
            if part.ends_dispatch:
                after_each()

    def _record_part(self, commands: Any, part: DispatchPart) -> None:
        dispatch, descriptor_set = self._plan.dispatches[part.number], self._sets[part.number]
        pipeline = self._pipelines[part.number]
        point, layout = vk.VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.layout.pipeline
        vk.vkCmdBindPipeline(commands, point, pipeline.handle)
        vk.vkCmdBindDescriptorSets(commands, point, layout, 0, 1, [descriptor_set], 0, None)
        # vkCmdDispatchBase would also take the beginning of the part, but not every driver heeds it (docs/adr/0002).
        push = dispatch.push + _FIRST_WORKGROUP.pack(part.first_row, part.first_layer)
        vk.vkCmdPushConstants(commands, layout, vk.VK_SHADER_STAGE_COMPUTE_BIT, 0, len(push), vk.ffi.from_buffer(push))
        vk.vkCmdDispatch(commands, *part.groups)


def barrier(commands: Any, written: int, read: int, stage: int | None = None) -> None:
    """Make earlier writes visible to later reads in a stage; by default the stage is that of kernels."""
    memory_barrier = vk.VkMemoryBarrier(srcAccessMask=written, dstAccessMask=read)
    before = vk.VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | vk.VK_PIPELINE_STAGE_TRANSFER_BIT
    after = vk.VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT if stage is None else stage
    vk.vkCmdPipelineBarrier(commands, before, after, 0, 1, [memory_barrier], 0, None, 0, None)


class Timestamps:
    """`number` timestamps for each of a number of slots, on a device with `timestamp_bits`. The stack destroys them."""

    def __init__(self, device: Device, stack: ExitStack, slots: int, number: int) -> None:
        self._device = device
        self._count = number
        self._next = 0
        info = vk.VkQueryPoolCreateInfo(queryType=vk.VK_QUERY_TYPE_TIMESTAMP, queryCount=slots * number)
        self._pool = device.create(stack, "QueryPool", info)

    def reset(self, commands: Any, slot: int) -> None:
        """Record that the timestamps of a slot are taken anew."""
        self._next = 0
        vk.vkCmdResetQueryPool(commands, self._pool, slot * self._count, self._count)

    def write(self, commands: Any, slot: int) -> None:
        """Record the next timestamp of a slot, which is taken when all earlier commands have finished."""
        place = slot * self._count + self._next
        self._next += 1
        vk.vkCmdWriteTimestamp(commands, vk.VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, self._pool, place)

    def seconds(self, slot: int) -> list[float]:
        """Return the seconds from each timestamp of a slot to the next one, once its commands have finished."""
        stamps = np.zeros(self._count, np.uint64)
        vk.vkGetQueryPoolResults(
            self._device.handle,
            self._pool,
            slot * self._count,
            self._count,
            stamps.nbytes,
            vk.ffi.from_buffer(stamps),
            8,
            vk.VK_QUERY_RESULT_64_BIT | vk.VK_QUERY_RESULT_WAIT_BIT,
        )
        valid = np.uint64((1 << self._device.timestamp_bits) - 1)  # counters of fewer bits start again at 0
        ticks = np.diff(stamps) & valid
        seconds: list[float] = (ticks.astype(np.float64) * self._device.info.timestamp_period_ns * 1e-9).tolist()
        return seconds
