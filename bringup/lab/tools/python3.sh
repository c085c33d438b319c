#!/bin/sh
# python3 of a practice host: this machine's, with the described packages and libcuda in their place.
own=${0%/*}/../lib/lab/python3
for folder in $(printf '%s' "$PATH" | tr ':' ' '); do
  [ "$folder" -ef "${0%/*}" ] || [ ! -x "$folder/python3" ] || {
    PYTHONPATH=$own PYTHONDONTWRITEBYTECODE=1 exec "$folder/python3" -S "$@"
  }
done
echo 'python3: not found' >&2
exit 127
