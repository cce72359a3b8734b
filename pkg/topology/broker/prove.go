package broker

import (
	"context"
	"fmt"

	"github.com/rsctl/rsctl/pkg/topology"
)

// Prove finds out whether the copies of t's queues arrive where they must: a
// waiting queue that leads nowhere, or a delayed exchange that is not bound, lets
// every one of them vanish without a word. It reports what is wrong, as Conflict,
// and what cannot be seen, as NotVerified, and changes nothing.
//
// declared is what the caller has just declared, and so knows; nil: nothing. The
// rest is asked of the server, which tells arguments (with configure permission)
// but no bindings, and if that leaves a doubt read through mgmt, which may be nil.
func Prove(ctx context.Context, s *Session, mgmt *Management, t, declared *topology.Topology) (*Report, error) {
	r := &Report{}
	w := topology.World{Queues: map[string]map[string]any{}, Exchanges: map[string]topology.Exchange{}}
	if declared != nil {
		w = topology.Known(declared)
	}
	if len(doubts(w, t.Trips)) == 0 {
		return r, nil
	}
	eaten, err := s.eaten(ctx, t.Queues)
	if err == nil {
		err = s.explore(ctx, t, &w)
	}
	if err != nil {
		return r, err
	}
	defer func() { r.Findings = append(r.Findings, eaten...) }()
	r.Findings = append(doubts(w, t.Trips), crooked(w, t.Queues)...)
	if len(r.Findings) == 0 || mgmt == nil {
		return r, nil
	}
	view, hidden := mgmt.view(ctx)
	switch {
	case ctx.Err() != nil:
		return r, ctx.Err()
	case view.complete():
		r.Findings = doubts(view.world(), t.Trips)
	case hidden != nil:
		r.Findings = append(r.Findings, *hidden)
	}
	return r, nil
}

// crooked reports levels of the ladder that do not lead to the next one: without
// the bindings, which AMQP does not show, no copy can be followed down to them.
func crooked(w topology.World, queues []topology.Queue) []Finding {
	var out []Finding
	for _, q := range queues {
		have, known := w.Queues[q.Name]
		if q.Origin.Role != topology.RoleLadder || q.AcceptExisting || !known {
			continue
		}
		for _, key := range []string{keyDeadLetter, "x-dead-letter-routing-key", "x-message-ttl"} {
			if show(have[key]) != show(q.Arguments[key]) {
				f := Finding{Kind: kindCopies, Name: q.Name, Origin: q.Origin}
				out = append(out, conflict(f, []difference{{key, show(have[key]), show(q.Arguments[key])}}, nil))
			}
		}
	}
	return out
}

// doubts has one finding for each queue and reason.
func doubts(w topology.World, trips []topology.Trip) []Finding {
	var out []Finding
	said := map[string]bool{}
	for _, trip := range trips {
		d := w.Arrives(trip)
		if d == nil || said[trip.Queue+"\n"+d.Text] {
			continue
		}
		said[trip.Queue+"\n"+d.Text] = true
		f := Finding{Kind: kindCopies, Name: trip.Queue, Origin: topology.Origin{Queues: []string{trip.Queue}, Pos: trip.Pos}}
		if d.Wrong {
			f.State, f.Detail = Conflict, fmt.Sprintf("%s do not arrive in queue %q: %s", trip.What, trip.To, d.Text)
			f.Hint = `declare it as "rsctl explain" says, or correct the spec; a policy that helps is seen only through broker.management_url`
		} else {
			f.State, f.Detail = NotVerified, fmt.Sprintf("whether %s arrive in queue %q depends on what is not visible: %s", trip.What, trip.To, d.Text)
			f.Hint = "set broker.management_url"
		}
		out = append(out, f)
	}
	return out
}

// onlyWrong leaves out what cannot be seen.
func onlyWrong(list []Finding) []Finding {
	var out []Finding
	for _, f := range list {
		if f.State != NotVerified {
			out = append(out, f)
		}
	}
	return out
}
