# The main job on a CPU:  docker build -t mcetm . && docker run --rm -v "$PWD/runs:/mcetm/runs" mcetm
# Another command:        docker run --rm -v "$PWD:/mcetm/data" mcetm .venv/bin/mcetm data inspect data/log.csv

# What is installed; what only the installation needs stays behind in this stage.
FROM python:3.13-slim AS installed
RUN apt-get update && apt-get install --yes --no-install-recommends make
WORKDIR /mcetm
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
# Packages come first, in a layer that a change of the source does not make again: an editable installation
# names the folder of the source and does not look into it.
COPY pyproject.toml Makefile LICENSE ./
RUN mkdir -p src/mcetm src/mcetm_experiments \
    && touch README.md src/mcetm/__init__.py src/mcetm_experiments/__init__.py \
    && make .venv/.installed

FROM python:3.13-slim
COPY --from=installed /usr/bin/make /usr/bin/make
COPY --from=installed /mcetm /mcetm
WORKDIR /mcetm
COPY src ./src
ENV JAX_PLATFORMS=cpu
CMD ["make", "run"]
