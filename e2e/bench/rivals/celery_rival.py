"""A Celery application with one task, which looks at an order and is done.

It acks late, as rsctl does: after the task. When RIVAL_COUNT messages are
settled it prints how many seconds that took from the first on.

    python3 -m celery -A celery_rival worker --without-gossip --without-mingle
"""

import os
import time

from celery import Celery, Task
from celery.worker.request import Request
from kombu import Queue

app = Celery("celery_rival", broker=os.environ["RSCTL_AMQP_URL"])
app.conf.update(
    task_acks_late=True,
    task_ignore_result=True,
    # The queue exists, with arguments that Celery would not ask for.
    task_queues=[Queue(os.environ["RIVAL_QUEUE"], no_declare=True)],
    # Its queue would be of a kind that RabbitMQ 4.3 no longer declares.
    worker_enable_remote_control=False,
    worker_prefetch_multiplier=int(os.environ["RIVAL_PREFETCH_PER_PROCESS"]),
)


class CountedRequest(Request):
    """Settles as any request, and counts; it lives in the consuming process."""

    count = int(os.environ["RIVAL_COUNT"])
    settled = 0
    first = None

    def acknowledge(self):
        super().acknowledge()
        counted = CountedRequest
        counted.first = counted.first or time.monotonic()
        counted.settled += 1
        if counted.settled == counted.count:
            # Celery would make a log line of print.
            os.write(1, f"seconds: {time.monotonic() - counted.first}\n".encode())


class CountedTask(Task):
    Request = CountedRequest


@app.task(base=CountedTask, name="handle")
def handle(order):
    if not order.get("sku"):
        raise ValueError("the order has no sku")
