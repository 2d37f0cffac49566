# All Airflow services: Airflow, the services package its tasks call, and the DAGs, from one set of pinned versions.
FROM python:3.11.14-slim-trixie AS build
# PyPI serves torch with CUDA on Linux (3 GB more). For the CPU build: --build-arg
# PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu
ARG PIP_EXTRA_INDEX_URL=""
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY sql sql
COPY services services
RUN pip install --constraint constraints.txt ".[airflow]"

FROM python:3.11.14-slim-trixie
RUN groupadd --gid 10001 vouch && useradd --uid 10001 --gid vouch --no-create-home --shell /usr/sbin/nologin vouch \
    && install --directory --owner vouch --group vouch /opt/airflow /var/log/airflow
COPY --from=build /opt/venv /opt/venv
COPY dags /opt/vouch/dags
COPY plugins /opt/vouch/plugins
COPY docker/probe.py docker/airflow-init.sh docker/airflow-api-server.sh /opt/vouch/
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 HOME=/tmp AIRFLOW_HOME=/opt/airflow
WORKDIR /tmp
USER 10001:10001
EXPOSE 8080
CMD ["airflow", "version"]
