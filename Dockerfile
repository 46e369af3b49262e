# vkssim with its pages and lavapipe, for CPUs and for NVIDIA GPUs. docs/start.md says how to build and run it.

FROM python:3.13-slim-trixie AS build
RUN apt-get update \
    && apt-get install -y --no-install-recommends glslang-tools spirv-tools \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN python -m venv /opt/vkssim \
    && /opt/vkssim/bin/pip install --no-cache-dir --require-hashes --requirement ci/requirements/image.txt \
    && /opt/vkssim/bin/pip install --no-cache-dir --no-deps .

FROM python:3.13-slim-trixie
# NVIDIA's Vulkan driver is libGLX_nvidia, which the NVIDIA container toolkit brings from the host. It needs libx11-6 and libxext6.
RUN apt-get update \
    && apt-get install -y --no-install-recommends libvulkan1 libx11-6 libxext6 mesa-vulkan-drivers \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 vkssim \
    && install -d -o vkssim /work
COPY --from=build /opt/vkssim /opt/vkssim
COPY docker/nvidia_icd.json /etc/vkssim/nvidia_icd.json
ENV PATH=/opt/vkssim/bin:$PATH

# The toolkit brings the parts of the host's driver that are named here: `graphics` is Vulkan, `video` is NVDEC.
ENV NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,video,graphics,utility

# The Vulkan loader reads these driver files and no other. The toolkit also brings the host's file if the host has one, and the loader
# lists a GPU twice if two files name its driver.
ENV VK_DRIVER_FILES=/etc/vkssim/nvidia_icd.json:/usr/share/vulkan/icd.d/lvp_icd.json

USER 1000
WORKDIR /work
ENTRYPOINT ["vkssim"]
CMD ["--help"]
