package spec

import "time"

// maxTTL is the longest TTL a server accepts: ten years.
const maxTTL = 3650 * 24 * time.Hour

// delay reads both forms: a strategy's name, or a mapping with its keys.
func (d *decoder) delay(n *node) *Delay {
	if n == nil {
		return nil
	}
	if n.kind == scalar {
		if n.broken {
			return nil
		}
		return &Delay{Strategy: n.value, Pos: n.pos}
	}
	f := d.fields(n)
	out := &Delay{Strategy: f.text("strategy"), Pos: n.pos, Min: f.duration("min", 0), Max: f.duration("max", 0)}
	if v := f.scalar("waiting_queue"); v != nil {
		out.WaitingQueue = d.name(v, reserve)
	}
	if v := f.scalar("exchange"); v != nil {
		out.Exchange = d.name(v, reserve)
	}
	out.Tiers = d.tiers(n.get("tiers"))
	return out
}

// tiers reads the delays of the waiting queues, which must ascend.
func (d *decoder) tiers(n *node) []time.Duration {
	var tiers []time.Duration
	for _, item := range list(n) {
		if item.broken || item.kind != scalar {
			continue
		}
		dur, ok := d.durationOf(item)
		switch {
		case !ok:
			continue
		case dur < time.Millisecond:
			d.refuse(item, "duration", item.label+" must be at least 1ms, got "+item.shown(), "")
			continue
		case dur > maxTTL:
			d.refuse(item, "duration", item.label+" must be at most 3650d, which is what RabbitMQ holds, got "+item.shown(), "")
			continue
		case len(tiers) > 0 && dur <= tiers[len(tiers)-1]:
			d.refuse(item, "delay-tiers", item.label+" must be longer than the tier before it, got "+item.shown(),
				"write each delay once, the shortest first")
			continue
		}
		tiers = append(tiers, dur)
	}
	return tiers
}

// backoff reads both forms: one constant delay, or a mapping. A delay of zero
// is no backoff at all.
func (d *decoder) backoff(n *node) *Backoff {
	if n == nil {
		return nil
	}
	out := &Backoff{Factor: 1}
	if n.kind == scalar {
		if n.broken {
			return nil
		}
		out.Initial, _ = d.durationOf(n)
	} else {
		f := d.fields(n)
		out.Initial = f.delay("initial", 0)
		out.Factor = f.float("factor", 1)
		out.Max = f.duration("max", 0)
		out.Jitter = f.float("jitter", 0)
	}
	if out.Initial == 0 {
		return nil
	}
	return out
}
