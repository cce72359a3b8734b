"""Charges one order: JSON on standard input, the exit status is the answer."""

import json
import os
import sys

DONE, GIVE_UP, TRY_AGAIN = 0, 65, 75


def answer(outcome, status, reason=""):
    if journal := os.environ.get("JOURNAL"):
        env = os.environ
        line = f"{env['RSCTL_QUEUE']} {env['RSCTL_MESSAGE_ID']} {env['RSCTL_ATTEMPT']} {outcome}\n"
        with open(journal, "a") as f:
            f.write(line)
    if reason:
        print(reason, file=sys.stderr)
    sys.exit(status)


order = json.load(sys.stdin)
card = order.get("card", "")
if card == "":
    answer("drop", GIVE_UP, "the order has no card")
if card == "BROKEN":
    answer("retry", TRY_AGAIN, "the bank does not answer")
if card == "SLOW" and int(os.environ["RSCTL_ATTEMPT"]) < 3:
    answer("retry", TRY_AGAIN, "the bank asks to come back")
answer("ack", DONE)
