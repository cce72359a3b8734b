#!/bin/sh
# Reserves the goods of one order. The order arrives as JSON on standard input;
# the exit status is the answer: 0 done, 65 give up, 75 try again.
set -eu

order=$(cat)
# record OUTCOME notes what happened, when JOURNAL names a file.
record() {
  [ -z "${JOURNAL:-}" ] || printf '%s %s %s %s\n' "$RSCTL_QUEUE" "$RSCTL_MESSAGE_ID" "$RSCTL_ATTEMPT" "$1" >>"$JOURNAL"
}

case $order in
  *'"sku":""'*)
    record drop
    echo "the order has no SKU" >&2
    exit 65
    ;;
  *'"sku":"SOLD-OUT"'*)
    record retry
    echo "nothing on the shelf" >&2
    exit 75
    ;;
  *'"sku":"RARE"'*)
    if [ "$RSCTL_ATTEMPT" -lt 2 ]; then
      record retry
      echo "stock not counted yet" >&2
      exit 75
    fi
    ;;
esac
record ack
