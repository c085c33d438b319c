# vllm-nixl:v0.24.0-nixl1.1.0: rendered from images/vllm-nixl/Dockerfile.j2 and image.yml.
# No "# syntax=" line: it would make BuildKit ask a public registry for a frontend.
FROM vllm/vllm-openai:v0.24.0

# Packages first, patches last: a changed patch adds a small layer and reuses this one.
COPY lib/ /opt/bringup/lib/
COPY packages.json /opt/bringup/
RUN --mount=type=bind,source=wheels,target=/tmp/wheels \
    PYTHONPATH=/opt/bringup/lib python3 -m bringup.edge.inside.install \
    /opt/bringup/packages.json /tmp/wheels

COPY patches.json /opt/bringup/
RUN PYTHONPATH=/opt/bringup/lib python3 -m bringup.edge.inside.patch \
    /opt/bringup/patches.json /opt/bringup/patches
LABEL "org.opencontainers.image.title"="vllm-nixl"
