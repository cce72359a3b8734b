#!/bin/sh
# Charges one order, without an interpreter to install: JSON on standard input,
# the exit status is the answer: 0 done, 65 give up, 75 try again.
set -eu

order=$(cat)
# answer OUTCOME STATUS [REASON] notes what happened, when JOURNAL names a file.
answer() {
  [ -z "${JOURNAL:-}" ] || printf '%s %s %s %s\n' "$RSCTL_QUEUE" "$RSCTL_MESSAGE_ID" "$RSCTL_ATTEMPT" "$1" >>"$JOURNAL"
  [ -z "${3:-}" ] || echo "$3" >&2
  exit "$2"
}

case $order in
  *'"card":"BROKEN"'*) answer retry 75 "the bank does not answer" ;;
  *'"card":"SLOW"'*) [ "$RSCTL_ATTEMPT" -ge 3 ] || answer retry 75 "the bank asks to come back" ;;
  *'"card":"UNKNOWN"'*) answer drop 3 "the bank does not know the card" ;;
  *'"card":"'[!\"]*) ;;
  *) answer drop 65 "the order has no card" ;;
esac
answer ack 0
