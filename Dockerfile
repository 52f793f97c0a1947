# The main job on a CPU:  docker build -t mcetm . && docker run --rm -v "$PWD/runs:/mcetm/runs" mcetm
FROM python:3.13-slim

RUN apt-get update \
    && apt-get install --yes --no-install-recommends make \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /mcetm
COPY pyproject.toml README.md LICENSE Makefile ./
COPY src ./src
RUN make .venv/.installed

ENV JAX_PLATFORMS=cpu
CMD ["make", "run"]
