# dynamo-sglang-k3:1.3.0.post1: rendered from images/dynamo-sglang-k3/Dockerfile.j2 and image.yml.
# No "# syntax=" line: it would make BuildKit ask a public registry for a frontend.
FROM lmsysorg/sglang:kimi-k3

# Packages first, patches last: a changed patch adds a small layer and reuses this one.
COPY lib/ /opt/bringup/lib/
COPY packages.json /opt/bringup/
RUN --mount=type=bind,source=wheels,target=/tmp/wheels \
    PYTHONPATH=/opt/bringup/lib python3 -m bringup.edge.inside.install \
    /opt/bringup/packages.json /tmp/wheels

COPY patches.json /opt/bringup/
RUN PYTHONPATH=/opt/bringup/lib python3 -m bringup.edge.inside.patch \
    /opt/bringup/patches.json /opt/bringup/patches
LABEL "org.opencontainers.image.description"="Kimi K3 on SGLang as a Dynamo worker"
LABEL "org.opencontainers.image.title"="dynamo-sglang-k3"
