#!/bin/sh
# A worker in shell: one JSON line per message in, one per answer out. Nothing
# but sh is needed, because the id is always the first field and a quote inside
# of a body is written \". Print to standard error (>&2); standard output belongs
# to the answers.

handle() {
  case $1 in
  *'\"sku\":\"\"'*) echo '"outcome":"drop","reason":"the order has no sku"' ;;
  *'\"sku\":\"SOON\"'*'"attempt":1,'*) echo '"outcome":"retry_after","delay":"1s","reason":"back in stock soon"' ;;
  *'\"sku\":\"'*) echo '"outcome":"ack"' ;;
  *) echo '"outcome":"retry","reason":"not an order"' ;;
  esac
}

while IFS= read -r request; do
  id=${request#*'"id":"'}
  printf '{"id":"%s",%s}\n' "${id%%'"'*}" "$(handle "$request")"
done
