package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
)

// managementTimeout bounds one request, managementBody its answer.
const (
	managementTimeout = 5 * time.Second
	managementBody    = 256 << 20
)

// Management reads arguments, bindings and policies through the management API.
// It never changes anything.
type Management struct {
	base           *url.URL
	vhost          string
	user, password string
	client         *http.Client
}

// NewManagement returns a client for b.ManagementURL, or nil when there is none.
// The credentials are those of that URL, else those of the AMQP URL, which also
// names the vhost. The error is a [*Refusal] and never holds a password.
func NewManagement(b spec.Broker) (*Management, error) {
	if b.ManagementURL.Value == "" {
		return nil, nil
	}
	b, err := b.Current()
	if err != nil {
		return nil, &Refusal{Message: err.Error()}
	}
	uri, err := parseURL(b.URL.Value)
	if err != nil {
		return nil, err
	}
	base, err := url.Parse(b.ManagementURL.Value)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, &Refusal{
			Message: "broker.management_url is not a valid URL",
			Hint:    "write http://host:15672, or https://user:password@host:15671",
		}
	}
	m := &Management{base: base, vhost: uri.Vhost, user: uri.Username, password: uri.Password}
	if base.User != nil {
		m.user = base.User.Username()
		m.password, _ = base.User.Password()
		base.User = nil
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}
	if b.TLS != nil {
		if transport.TLSClientConfig, err = clientTLS(b.TLS); err != nil {
			return nil, err
		}
		if base.Hostname() != uri.Host {
			transport.TLSClientConfig.ServerName = "" // the name of another host
		}
	}
	m.client = &http.Client{Transport: transport, Timeout: managementTimeout, CheckRedirect: stay}
	return m, nil
}

// stay follows no redirect: the next host, or the next scheme, would be told the
// password.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// get reads /api/path into out. The error is one line for people.
func (m *Management) get(ctx context.Context, path string, out any) error {
	u := m.base.JoinPath("api").String() + "/" + path
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
	if err != nil {
		return errors.New("broker.management_url cannot be used")
	}
	req.SetBasicAuth(m.user, m.password)
	res, err := m.client.Do(req)
	if err != nil {
		return fmt.Errorf("%s: %w", m.base.Host, bare(err))
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusUnauthorized, res.StatusCode == http.StatusForbidden:
		return fmt.Errorf("%s: login refused for user %q (it needs the tag management)", m.base.Host, m.user)
	case res.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%s: %s not found", m.base.Host, strings.SplitN(path, "?", 2)[0])
	case res.StatusCode/100 == 3:
		return fmt.Errorf("%s: HTTP status %d: redirects are not followed, because the password would be sent on; correct broker.management_url", m.base.Host, res.StatusCode)
	case res.StatusCode >= 300:
		return fmt.Errorf("%s: HTTP status %d", m.base.Host, res.StatusCode)
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, managementBody)).Decode(out); err != nil {
		return fmt.Errorf("%s: the answer is not that of a management API", m.base.Host)
	}
	return nil
}

// bare removes the URL that net/http puts in front of its errors.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("no answer in time")
	}
	return err
}

func (m *Management) inVhost(kind string) string {
	return kind + "/" + url.PathEscape(m.vhost)
}

// apiQueue and the types below are what the management API tells.
type apiQueue struct {
	Name           string         `json:"name"`
	Type           string         `json:"type"`
	Durable        bool           `json:"durable"`
	AutoDelete     bool           `json:"auto_delete"`
	Arguments      map[string]any `json:"arguments"`
	Policy         string         `json:"policy"`
	OperatorPolicy string         `json:"operator_policy"`
}

type apiBinding struct {
	Source          string         `json:"source"`
	Destination     string         `json:"destination"`
	DestinationType string         `json:"destination_type"`
	RoutingKey      string         `json:"routing_key"`
	Arguments       map[string]any `json:"arguments"`
}

type apiPolicy struct {
	Name       string         `json:"name"`
	Definition map[string]any `json:"definition"`
}

// A view is what the management API showed at one moment; nil: nothing.
type view struct {
	queues   map[string]apiQueue
	bindings map[string]bool
	routes   []topology.Binding // the same, to be followed
	// exchanges are those of the vhost, by name.
	exchanges map[string]topology.Exchange
	policies  map[string]apiPolicy
	operator  map[string]apiPolicy
}

// view reads everything that Check wants; the finding says what could not be
// read. A nil Management sees nothing and says nothing.
func (m *Management) view(ctx context.Context) (*view, *Finding) {
	if m == nil {
		return nil, nil
	}
	v := &view{}
	steps := []func(context.Context, *view) error{m.readQueues, m.readBindings, m.readPolicies, m.readExchanges}
	for _, step := range steps {
		if err := step(ctx, v); err != nil {
			f := Finding{Kind: kindManagement, Name: m.base.Host, State: NotVerified, Detail: err.Error()}
			if v.queues == nil {
				return nil, &f
			}
			return v, &f
		}
	}
	return v, nil
}

func (m *Management) readQueues(ctx context.Context, v *view) error {
	var list []apiQueue
	// With statistics, a queue's policy shows only after some seconds.
	path := m.inVhost("queues") + "?disable_stats=true&columns=name,type,durable,auto_delete,arguments,policy,operator_policy"
	if err := m.get(ctx, path, &list); err != nil {
		return err
	}
	v.queues = make(map[string]apiQueue, len(list))
	for _, q := range list {
		v.queues[q.Name] = q
	}
	return nil
}

func (m *Management) readBindings(ctx context.Context, v *view) error {
	var list []apiBinding
	if err := m.get(ctx, m.inVhost("bindings"), &list); err != nil {
		return err
	}
	v.bindings = make(map[string]bool, len(list))
	for _, b := range list {
		v.bindings[b.key()] = true
		v.routes = append(v.routes, topology.Binding{
			Source: b.Source, Destination: b.Destination, RoutingKey: b.RoutingKey, ToExchange: b.DestinationType == kindExchange,
		})
	}
	return nil
}

func (m *Management) readExchanges(ctx context.Context, v *view) error {
	var list []topology.Exchange // its fields have the API's names
	if err := m.get(ctx, m.inVhost("exchanges")+"?columns=name,type,arguments", &list); err != nil {
		return err
	}
	v.exchanges = make(map[string]topology.Exchange, len(list))
	for _, x := range list {
		v.exchanges[x.Name] = x
	}
	return nil
}

func (m *Management) readPolicies(ctx context.Context, v *view) error {
	var err error
	if v.policies, err = m.policyList(ctx, "policies"); err != nil {
		return err
	}
	v.operator, err = m.policyList(ctx, "operator-policies")
	return err
}

func (m *Management) policyList(ctx context.Context, kind string) (map[string]apiPolicy, error) {
	var list []apiPolicy
	if err := m.get(ctx, m.inVhost(kind), &list); err != nil {
		return nil, err
	}
	byName := make(map[string]apiPolicy, len(list))
	for _, p := range list {
		byName[p.Name] = p
	}
	return byName, nil
}

// key is what tells bindings apart; JSON writes map keys in order.
func (b apiBinding) key() string {
	args := "{}"
	if len(b.Arguments) > 0 {
		if text, err := json.Marshal(b.Arguments); err == nil {
			args = string(text)
		}
	}
	return fmt.Sprintf("%q %q %q %q %s", b.Source, b.DestinationType, b.Destination, b.RoutingKey, args)
}
