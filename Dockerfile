# Sandferry's image: workers, beat and Flower are the same image with another command (compose.yaml).
# BASE is any image with Python >= 3.11, venv and git on Debian's layout.
ARG BASE=python:3.12-slim-bookworm

FROM ${BASE} AS build
# A mirror of the package index, if you have one.
ARG PIP_INDEX_URL
WORKDIR /src
RUN python3 -m venv /opt/sandferry
COPY requirements/worker.txt requirements/
# Wheels only, each with its hash: nothing is built and nothing unknown gets in.
RUN /opt/sandferry/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes --only-binary :all: \
    -r requirements/worker.txt
COPY pyproject.toml README.md LICENSE ./
COPY worker worker
COPY tasks tasks
RUN /opt/sandferry/bin/pip install --no-cache-dir --disable-pip-version-check --no-deps .

FROM ${BASE}
# git checks and delivers what comes back (docs/copy_back.md).
RUN command -v git >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/*; }
RUN useradd --uid 10001 --home-dir /var/lib/sandferry --create-home sandferry
COPY --from=build /opt/sandferry /opt/sandferry
ENV PATH=/opt/sandferry/bin:/usr/local/bin:/usr/bin:/bin PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 10001
# What must outlive a container lies here; the root file system may be read-only, /tmp is to be a tmpfs.
VOLUME /var/lib/sandferry
WORKDIR /var/lib/sandferry
STOPSIGNAL SIGTERM
ENTRYPOINT ["sandferry"]
CMD ["--help"]
