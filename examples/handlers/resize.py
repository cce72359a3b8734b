"""A worker: one JSON line per message in, one JSON line per answer out.

Standard output belongs to the protocol; print to standard error instead.
"""

import json
import sys

for line in sys.stdin:
    request = json.loads(line)
    try:
        picture = json.loads(request["body"])
        print(f"resizing {picture['name']}", file=sys.stderr)
        answer = {"outcome": "ack"}
    except (KeyError, ValueError) as error:
        answer = {"outcome": "drop", "reason": f"not a picture: {error}"}
    print(json.dumps({"id": request["id"], **answer}), flush=True)
