#!/bin/sh
# Everything that a GPU machine can tell spillway, in one command: validation/gpu_campaign.sh --help says what.
here=$(cd "$(dirname "$0")" && pwd) || exit 2
python=${PYTHON:-python3}
if ! command -v "$python" >/dev/null 2>&1; then
  echo "gpu_campaign.sh: no $python here; install Python 3.9 or later, or name one in PYTHON" >&2
  exit 2
fi
exec "$python" -B "$here/campaign" "$@"
