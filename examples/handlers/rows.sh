#!/bin/sh
# Inserts a batch of rows: one message per line on standard input, as JSON, and
# one answer per line on descriptor 4. When the script ends before it is done,
# lines are missing, and every message of the batch is tried again.
set -eu

[ -z "${JOURNAL:-}" ] || echo "$RSCTL_QUEUE $RSCTL_BATCH_SIZE" >>"$JOURNAL"

# A quote inside of a body is written \".
while IFS= read -r message; do
  case $message in
  *'\"sku\":\"\"'*) echo "drop the row has no sku" ;;
  *'\"sku\":\"LOCKED\"'*'"attempt":1,'*) echo "retry_after 1s the row is locked" ;;
  *'\"sku\":\"'*) echo ack ;;
  *) echo "retry not a row" ;;
  esac
done >&4
