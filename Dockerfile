# One image for the prober and the API (target `service`, the default), one with a Java runtime for the nightly jobs
# (target `jobs`), and one with Hadoop's connector for Cloud Storage on top (target `jobs-gcs`):
#
#   docker build --tag ordering-keys-prober:0.1.0 .
#   docker build --tag ordering-keys-prober:0.1.0-jobs --target jobs .
#   make gcs-connector
#   docker build --tag ordering-keys-prober:0.1.0-jobs-gcs --target jobs-gcs --build-context gcs-connector=build/gcs-connector .
#
# Packages are those of constraints/, by hash. To pin the base by digest as well, without editing this file:
#   --build-context python:3.13-slim-trixie=docker-image://python@sha256:...
#
# The images are built from scratch: each contains the files of a stripped base, so that what was removed is in no layer.
# Nothing is written but to /tmp and /var/lib/ordering-prober, so the root file system may be read-only.

FROM python:3.13-slim-trixie AS tools
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
COPY constraints/build.txt /build/constraints/
RUN python -m venv --without-pip /build/tools \
    && pip --python /build/tools/bin/python install --require-hashes --no-deps --only-binary :all: -r /build/constraints/build.txt \
    && python -m venv --without-pip /opt/ordering-prober

# What is installed changes less often than the project, so it comes first. Tests of packages are left out, and of pyarrow its headers
# and Flight, which nothing here imports.
FROM tools AS service-packages
COPY constraints/runtime.txt /build/constraints/
RUN pip --python /opt/ordering-prober/bin/python install --require-hashes --no-deps --only-binary :all: -r /build/constraints/runtime.txt \
    && find /opt/ordering-prober -type d -name tests -prune -exec rm -rf {} + \
    && cd /opt/ordering-prober/lib/python3.13/site-packages/pyarrow \
    && rm -rf include src *flight*

# pyspark is published as a source distribution only.
FROM tools AS jobs-packages
COPY constraints/jobs.txt /build/constraints/
RUN pip --python /opt/ordering-prober/bin/python install --require-hashes --no-deps --only-binary :all: --no-binary pyspark -r /build/constraints/jobs.txt \
    && find /opt/ordering-prober -type d -name tests -prune -exec rm -rf {} + \
    && cd /opt/ordering-prober/lib/python3.13/site-packages \
    && rm -rf pyspark/examples pyspark/data \
    && cd pyarrow \
    && rm -rf include src *flight*

FROM tools AS project
COPY pyproject.toml README.md LICENSE /build/project/
COPY prober /build/project/prober
COPY api /build/project/api
COPY spark_jobs /build/project/spark_jobs
COPY docs/runbooks /build/project/docs/runbooks
RUN cd /build/project && /build/tools/bin/hatchling build --target wheel --directory /build/dist

FROM service-packages AS service-installed
COPY --from=project /build/dist /build/dist
RUN pip --python /opt/ordering-prober/bin/python install --no-deps --no-index /build/dist/*.whl \
    && /opt/ordering-prober/bin/ordering-prober --version

FROM jobs-packages AS jobs-installed
COPY --from=project /build/dist /build/dist
RUN pip --python /opt/ordering-prober/bin/python install --no-deps --no-index /build/dist/*.whl \
    && /opt/ordering-prober/bin/python -m spark_jobs --help > /dev/null

# What the images are stripped from: an interpreter, and a user without a name to log in with.
FROM python:3.13-slim-trixie AS system
COPY image/strip /build/strip
RUN groupadd --gid 10001 prober \
    && useradd --uid 10001 --gid prober --no-create-home --home-dir /tmp --shell /usr/sbin/nologin prober

FROM system AS service-system
RUN sh /build/strip && rm -rf /build

FROM system AS jobs-system
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-21-jre-headless \
    && sh /build/strip && rm -rf /build

FROM scratch AS jobs
COPY --from=jobs-system / /
RUN install --directory --owner=10001 --group=10001 --mode=0770 /var/lib/ordering-prober
COPY --from=jobs-installed /opt/ordering-prober /opt/ordering-prober
ENV PATH=/opt/ordering-prober/bin:/usr/local/bin:/usr/bin:/bin \
    LANG=C.UTF-8 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
WORKDIR /var/lib/ordering-prober
VOLUME /var/lib/ordering-prober
USER 10001:10001
RUN ["python", "-m", "spark_jobs", "--help"]
ENTRYPOINT ["python", "-m", "spark_jobs.container"]
CMD ["--help"]
ARG REVISION=unknown
LABEL org.opencontainers.image.title="ordering-keys-prober-jobs" \
      org.opencontainers.image.description="Nightly jobs on the history of the ordering-keys prober" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.revision="${REVISION}"

# The folder of --build-context gcs-connector=FOLDER takes the place of this stage.
FROM scratch AS gcs-connector

# Ends with an error unless Hadoop can load the class that it names for gs://.
FROM jobs AS jobs-gcs
COPY --from=gcs-connector / /opt/ordering-prober/lib/python3.13/site-packages/pyspark/jars/
RUN ["java", "-cp", "/opt/ordering-prober/lib/python3.13/site-packages/pyspark/jars/*", "org.apache.hadoop.util.FindClass", "create", "org.apache.hadoop.fs.gs.GoogleHadoopFileSystem"]

FROM scratch AS service
COPY --from=service-system / /
RUN install --directory --owner=10001 --group=10001 --mode=0770 /var/lib/ordering-prober
COPY --from=service-installed /opt/ordering-prober /opt/ordering-prober
ENV PATH=/opt/ordering-prober/bin:/usr/local/bin:/usr/bin:/bin \
    LANG=C.UTF-8 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    ORDERING_PROBER_API__HOST=0.0.0.0
WORKDIR /var/lib/ordering-prober
VOLUME /var/lib/ordering-prober
USER 10001:10001
RUN ["ordering-prober", "--version"]
EXPOSE 8080
# Kubernetes asks /healthz and /readyz itself; this is for everybody else. A port other than 8080 is to be set by the environment.
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen(f\"http://127.0.0.1:{os.environ.get('ORDERING_PROBER_API__PORT', 8080)}/healthz\", timeout=4)"]
ENTRYPOINT ["ordering-prober"]
CMD ["run"]
ARG REVISION=unknown
LABEL org.opencontainers.image.title="ordering-keys-prober" \
      org.opencontainers.image.description="Checks what Google Cloud Pub/Sub guarantees about ordering keys" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.revision="${REVISION}"
