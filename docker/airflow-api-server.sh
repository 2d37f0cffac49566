# The simple auth manager reads its passwords from a file, and nothing secret may lie in the image or in a volume:
# write the file to memory, then forget the variable.
set -eu
umask 077
python - <<'PYTHON' >"$AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"
import json, os
print(json.dumps({"admin": os.environ["AIRFLOW_ADMIN_PASSWORD"]}))
PYTHON
unset AIRFLOW_ADMIN_PASSWORD
exec airflow api-server
