"""A worker in Python: one JSON line per message in, one per answer out.

Standard output belongs to the answers; print to standard error.
"""

import json
import sys


def handle(request):
    order = json.loads(request["body"])
    if not order.get("sku"):
        return {"outcome": "drop", "reason": "the order has no sku"}
    if order["sku"] == "SOON" and request["attempt"] < 2:
        return {"outcome": "retry_after", "delay": "1s", "reason": "back in stock soon"}
    return {"outcome": "ack"}


for line in sys.stdin:
    request = json.loads(line)
    try:
        answer = handle(request)
    except Exception as error:
        answer = {"outcome": "retry", "reason": str(error)}
    print(json.dumps({"id": request["id"], **answer}), flush=True)
