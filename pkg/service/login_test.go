package service

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/topology/broker"
)

func TestLoginThatHasWorkedIsTriedForSoLong(t *testing.T) {
	t.Parallel()
	refused := &broker.Refusal{Message: "h:5672: login refused", Login: true}
	lost := errors.New("connect to h:5672: connection refused")
	for _, tt := range []struct {
		name  string
		limit time.Duration
		saw   []error // one a minute
		ends  bool
	}{
		{"a login that never worked", 5 * time.Minute, []error{refused, refused, refused, refused, refused, refused, refused}, false},
		{"refused for less", 5 * time.Minute, []error{nil, refused, refused, refused, refused, refused}, false},
		{"refused for as long", 5 * time.Minute, []error{nil, refused, refused, refused, refused, refused, refused}, true},
		{"works in between", 5 * time.Minute, []error{nil, refused, refused, refused, nil, refused, refused, refused, refused}, false},
		{"an outage in between", 5 * time.Minute, []error{nil, refused, refused, refused, lost, refused, refused, refused, refused}, false},
		{"an outage alone", 5 * time.Minute, []error{nil, lost, lost, lost, lost, lost, lost, lost}, false},
		{"another refusal", 5 * time.Minute, []error{nil, &broker.Refusal{}, &broker.Refusal{}, &broker.Refusal{}, &broker.Refusal{}, &broker.Refusal{}, &broker.Refusal{}}, false},
		{"no limit", 0, []error{nil, refused, refused, refused, refused, refused, refused, refused}, false},
	} {
		ctx, giveUp := context.WithCancelCause(t.Context())
		p := newLogins(tt.limit, giveUp)
		var now time.Time
		p.now = func() time.Time { return now }
		for i, err := range tt.saw {
			now = time.Unix(int64(i)*60, 0)
			p.saw(err)
		}
		var ended *LoginError
		if ends := errors.As(context.Cause(ctx), &ended); ends != tt.ends {
			t.Errorf("%s: ended: %t (%v)", tt.name, ends, context.Cause(ctx))
		}
		if tt.ends && (!errors.Is(ended, refused) || !strings.Contains(ended.Error(), "for 5m: h:5672: login refused")) {
			t.Errorf("%s: %v", tt.name, ended)
		}
		giveUp(nil)
	}
}
