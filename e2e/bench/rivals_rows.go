package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func rivals(t *tools) []rival {
	return []rival{
		amqpConsume("exec, against amqp-consume", 1),
		amqpConsume("exec, against 4 of them", execInFlight),
		{row: rascalRow(t), hint: "npm's packages rascal and amqplib have it", missing: rascalMissing},
		{row: celeryRow(t), hint: "Debian's package python3-celery has it", debian: "python3-celery", missing: celeryMissing},
	}
}

// amqpConsume: the same trivial command per message. One amqp-consume runs one
// command at a time, which is how it is used; several of them do what rsctl does
// in one process. It does not show when it settles: both sides include
// connecting. A slash at the end of the URL is a vhost without a name to it.
func amqpConsume(name string, processes int) rival {
	return rival{
		hint: "Debian's package amqp-tools has it", debian: "amqp-tools", missing: amqpConsumeMissing,
		row: row{
			name: name, target: 1, count: 2000,
			bare: func(ctx context.Context, b *bench, n int) (time.Duration, error) {
				if err := b.fill(n); err != nil {
					return 0, err
				}
				share := strconv.Itoa(n / processes)
				return inParallel(processes, processes, func() error {
					return quietly(exec.CommandContext(ctx, "amqp-consume", "--url="+strings.TrimSuffix(b.url, "/"), "--queue="+workQueue, "--prefetch-count=2", "--count="+share, "cat"))
				})
			},
			ours: execRow.ours,
		},
	}
}

func amqpConsumeMissing(context.Context, *tools) error {
	_, err := exec.LookPath("amqp-consume")
	return err
}

// rascalPackage has amqplib with it.
const rascalPackage = "rascal@21"

// rascalRow: a POST per message to the same endpoint, as many at a time as the
// prefetch lets in.
func rascalRow(t *tools) row {
	post := load{concurrency: httpInFlight, prefetch: httpInFlight}
	return row{
		name: "http, against Rascal", target: 1, count: 20000,
		bare: func(ctx context.Context, b *bench, n int) (time.Duration, error) {
			if err := b.fill(n); err != nil {
				return 0, err
			}
			server := endpoint(0)
			defer server.Close()
			cmd := exec.CommandContext(ctx, "node", filepath.Join(t.scripts, "rascal.js"),
				b.url, workQueue, server.URL, strconv.Itoa(post.prefetch), strconv.Itoa(n))
			cmd.Env = t.nodeEnv()
			return timed(cmd)
		},
		ours: func(ctx context.Context, b *bench, n int) (time.Duration, error) {
			taken, err := b.postOurs(ctx, n, 0, post)
			return taken.settling(), err
		},
	}
}

func rascalMissing(ctx context.Context, t *tools) error {
	if _, err := exec.LookPath("node"); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "node", "-e", `require.resolve("rascal")`)
	cmd.Env = t.nodeEnv()
	if cmd.Run() != nil {
		return errors.New("no module rascal")
	}
	return nil
}

func (t *tools) nodeEnv() []string {
	folders := filepath.Join(t.dir, "node_modules")
	if more := os.Getenv("NODE_PATH"); more != "" {
		folders += string(os.PathListSeparator) + more
	}
	return append(os.Environ(), "NODE_PATH="+folders)
}

// celeryRow: a task that only looks at its order, in as many processes of the
// same Python, with the same prefetch. Celery's messages hold the order as its
// protocol has it; rsctl's worker is the one in examples/workers.
func celeryRow(t *tools) row {
	work := load{concurrency: workerInFlight, prefetch: 2 * workerInFlight}
	return row{
		name: "worker, against Celery", target: 1, count: 10000,
		bare: func(ctx context.Context, b *bench, n int) (time.Duration, error) {
			if err := b.fillOrders(n, celeryTask); err != nil {
				return 0, err
			}
			cmd := exec.CommandContext(ctx, t.python, "-m", "celery", "-A", "celery_rival", "worker", "--pool=prefork",
				"--concurrency="+strconv.Itoa(workerProcesses), "--loglevel=error", "--without-gossip", "--without-mingle")
			cmd.Dir = t.scripts
			cmd.Env = append(os.Environ(), "RSCTL_AMQP_URL="+b.url, "RIVAL_QUEUE="+workQueue, "RIVAL_COUNT="+strconv.Itoa(n),
				"RIVAL_PREFETCH_PER_PROCESS="+strconv.Itoa(work.prefetch/workerProcesses), "PYTHONDONTWRITEBYTECODE=1", "PYTHONWARNINGS=ignore")
			return timed(cmd)
		},
		ours: func(ctx context.Context, b *bench, n int) (time.Duration, error) {
			if err := b.fillOrders(n, plainOrder); err != nil {
				return 0, err
			}
			h := workerHandler(workerInFlight/workerProcesses, t.python, filepath.Join(t.scripts, "../../../examples/workers/worker.py"))
			taken, err := b.timeKind(ctx, h, n, work)
			return taken.settling(), err
		},
	}
}

// celeryMissing looks for a Python that has Celery: Debian's packages are seen
// by Debian's own only.
func celeryMissing(ctx context.Context, t *tools) error {
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(ctx, python, "-c", "import celery").Run() == nil {
			t.python = python
			return nil
		}
	}
	return errors.New("no Python module celery")
}

func plainOrder(order string, p *amqp.Publishing) { p.Body = []byte(order) }

// celeryTask makes an order a message of Celery's task protocol, version 2.
func celeryTask(order string, p *amqp.Publishing) {
	p.ContentEncoding, p.CorrelationId = "utf-8", p.MessageId
	p.Headers = amqp.Table{
		"lang": "py", "task": "handle", "id": p.MessageId, "root_id": p.MessageId, "parent_id": nil, "group": nil,
		"argsrepr": "", "kwargsrepr": "{}", "origin": "rsctl-bench", "retries": int64(0), "ignore_result": true,
		"eta": nil, "expires": nil, "timelimit": []any{nil, nil},
	}
	p.Body = fmt.Appendf(nil, `[[%s], {}, {"callbacks": null, "errbacks": null, "chain": null, "chord": null}]`, order)
}
