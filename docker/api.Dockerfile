# The query API and the command line. No Airflow in here.
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
RUN pip install --constraint constraints.txt .

FROM python:3.11.14-slim-trixie
RUN groupadd --gid 10001 vouch && useradd --uid 10001 --gid vouch --no-create-home --shell /usr/sbin/nologin vouch
COPY --from=build /opt/venv /opt/venv
COPY docker/probe.py /opt/vouch/
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 HOME=/tmp
WORKDIR /tmp
USER 10001:10001
EXPOSE 8787
# The options of `vouch serve`, and more than one worker. Their heartbeats must lie in memory: a slow disk would make
# gunicorn kill workers that are well. The app writes its own access log; an asset's id makes a long request line.
CMD ["gunicorn", "services.wsgi:app", "--bind", "0.0.0.0:8787", "--worker-class", "gthread", "--threads", "4", \
     "--graceful-timeout", "30", "--keep-alive", "5", "--limit-request-line", "8190", "--log-level", "warning", \
     "--timeout", "120", "--worker-tmp-dir", "/dev/shm", "--no-control-socket"]
