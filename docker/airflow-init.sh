# One-shot job: Airflow's metadata schema, and the pool that bounds how many embedding tasks run at once.
set -eu
airflow db migrate
airflow pools set vouch_embedding "$EMBEDDING_SLOTS" "tasks of catalog_refresh that embed texts"
