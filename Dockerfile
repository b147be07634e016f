# One image for every process of the server: docker build --target cpu | gpu.
# Model packs are not in it: they live on the `packs` volume (geo models fetch).
FROM python:3.11-slim-bookworm AS base
ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 \
    GEO_DATA_DIR=/data GEO_PACKS__FOLDER=/packs GEO_API__HOST=0.0.0.0 GEO_LOG__FORMAT=json
# The font draws pages of PDF files that name a Chinese font without bringing it.
RUN apt-get update \
 && apt-get install -y --no-install-recommends fonts-wqy-microhei g++ libgomp1 libnuma1 zstd \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --uid 10001 geo \
 && mkdir /data /packs && chown geo /data /packs
WORKDIR /app
COPY pyproject.toml constraints.txt packs.txt README.md LICENSE ./
COPY core core
COPY ingest ingest
COPY retrieval retrieval
COPY generation generation
COPY api api
COPY migrations migrations

FROM base AS cpu
RUN pip install --no-deps --extra-index-url https://download.pytorch.org/whl/cpu torch==2.13.0+cpu \
 && pip install --no-deps --require-hashes --requirement packs.txt \
 && pip install --no-deps --requirement constraints.txt \
 && pip install --no-deps --no-build-isolation .
USER geo
EXPOSE 8000
ENTRYPOINT ["geo"]
CMD ["serve"]

FROM base AS gpu
# vLLM chooses torch and its CUDA libraries; the lock is of the CPU environment and does not apply.
RUN pip install --no-deps --require-hashes --requirement packs.txt \
 && pip install '.[gpu,ocr]' \
 && pip uninstall --yes torchvision torchaudio torchcodec
USER geo
EXPOSE 8000
ENTRYPOINT ["geo"]
CMD ["serve"]
