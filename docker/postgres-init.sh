# Sourced once by the postgres image, when the data volume is empty: one role and one database for the index, one of
# each for Airflow's metadata. Neither role is a superuser, so the extension is created here.
psql --set=ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres \
    --set=index_password="$INDEX_ROLE_PASSWORD" --set=airflow_password="$AIRFLOW_ROLE_PASSWORD" <<'SQL'
CREATE ROLE vouch LOGIN PASSWORD :'index_password';
CREATE ROLE airflow LOGIN PASSWORD :'airflow_password';
CREATE DATABASE vouch OWNER vouch;
CREATE DATABASE airflow OWNER airflow;
REVOKE CONNECT ON DATABASE vouch, airflow FROM PUBLIC;
\connect vouch
CREATE EXTENSION vector;
SQL
