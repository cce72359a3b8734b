// Package spec turns the bytes of a queues.yaml into a [Spec], or into every
// problem found in it, each with its position.
//
// Parsing is pure: the environment and files reach it through [Options]. What a
// Spec means for the broker is decided by package topology; what it means for
// one delivery, by package settle.
package spec

import (
	"slices"
	"time"
)

// Spec is one parsed and defaulted file. A Spec returned without errors obeys
// every rule that can be checked without a broker.
type Spec struct {
	File            string // as named in messages
	Dir             string // absolute; relative commands and files resolve against it
	Broker          Broker
	DeclareTopology bool
	MaxInMemory     int64 // bytes of bodies that are handled at a time
	Exchanges       []Exchange
	Queues          []Queue

	// For the rules: where broker.management_url, broker.tls and broker.auth stand, and whether declare_topology has
	// a value that was refused.
	managementPos, tlsPos, authPos Pos
	badDeclare                     bool
}

// TLS names the files of an amqps:// connection. Paths are absolute.
type TLS struct {
	CAFile, CertFile, KeyFile, ServerName string
}

// Text is a string that may hold a secret. It prints as Source, so a value that
// came from the environment or from a file never reaches a log or a message.
type Text struct {
	Value  string // what to use
	Source string // what to show: the text as written, URL passwords masked
}

// String returns what may be shown.
func (t Text) String() string { return t.Source }

// QueueType decides who counts attempts: the runtime (classic) or the server
// (quorum).
type QueueType string

// The queue types a spec may name.
const (
	Classic QueueType = "classic"
	Quorum  QueueType = "quorum"
)

// Exchange is one entry of exchanges.
type Exchange struct {
	Name       string
	Type       string
	Durable    bool // default true
	AutoDelete bool
	Internal   bool
	External   bool // must exist; never declared
	Arguments  map[string]any
	Pos        Pos

	written string // the name as the file has it, when it was interpolated
}

// Queue is one entry of queues, with defaults applied.
type Queue struct {
	Name string
	Type QueueType
	Pos  Pos            // of the name
	Keys map[string]Pos // of each key's value as written here; see At

	Durable, Exclusive, AutoDelete bool
	External                       bool // must exist; never declared

	Bindings []Binding
	// The queue's own dead-letter route, for dropped and expired messages; nil
	// when absent (an empty exchange name is the default exchange).
	DeadLetterExchange   *string
	DeadLetterRoutingKey *string
	// Arguments not modelled by a key: bool, int64, float64, string, []any or
	// map[string]any of these.
	Arguments map[string]any

	MaxAttempts    int    // 1 or more; 0: no cap
	DeadLetter     string // queue name; "": none
	DeadLetterBy   DeadLetterBy
	RetryOriginal  RetryOriginal
	RetryPublisher *RetryPublisher
	Delay          *Delay   // nil: none declared
	Backoff        *Backoff // nil: a plain retry stays a plain retry

	Prefetch    int // 1..65535
	Concurrency int // 1 or more
	OrderedBy   *OrderedBy
	Batch       *Batch
	Rate        float64 // handler calls per second; 0: no limit
	MaxBody     int64   // bytes; a larger message ends without its handler. 0: no limit
	Breaker     *Breaker
	Consumer    Consumer
	Handler     *Handler // nil: topology only

	// bad holds the keys whose value has been refused, so that no rule reports
	// what follows from that. Empty on a Spec that Parse returns.
	bad map[string]bool
	// written holds names that were interpolated, as the file has them, because
	// problems never show what a variable stands for.
	written map[string]string
}

// At returns where the value of key stands, or the queue's own position when
// the value was defaulted. Nested keys are joined by dots: "delay.tiers".
func (q *Queue) At(key string) Pos {
	if p, ok := q.Keys[key]; ok {
		return p
	}
	return q.Pos
}

// Binding routes from an exchange to the queue it is written under.
type Binding struct {
	Exchange   string
	RoutingKey string
	Arguments  map[string]any
	Pos        Pos
}

// DeadLetterBy says who moves the spent messages of a quorum queue; "" is
// DeadLetterByServer. On a classic queue it is always rsctl.
type DeadLetterBy string

// The server moves a message past its delivery limit, at most once and without a
// reason of ours; rsctl publishes a copy that says why, at least once.
const (
	DeadLetterByServer DeadLetterBy = "server"
	DeadLetterByRsctl  DeadLetterBy = "rsctl"
)

// RetryOriginal says how the original ends once its copy is confirmed.
type RetryOriginal string

// RejectOriginal is basic.reject without requeue (the default: on a queue with
// a dead-letter route each retried original also goes there); AckOriginal is
// basic.ack.
const (
	RejectOriginal RetryOriginal = "reject"
	AckOriginal    RetryOriginal = "ack"
)

// RetryPublisher says how retry and dead-letter copies of a classic queue leave.
type RetryPublisher struct {
	Exchange   string // "": the default exchange; copies keep key = target queue
	Persistent *bool  // nil: as the original
	Priority   *uint8 // nil: as the original
}

// Delay says where a delayed retry waits.
type Delay struct {
	Strategy     string          // timer, hold, dlx_ttl, plugin_dme, levels, native
	WaitingQueue string          // dlx_ttl; "": <queue>.retry
	Tiers        []time.Duration // dlx_ttl; ascending
	Exchange     string          // plugin_dme; "": <queue>.delay
	Min, Max     time.Duration   // native
	Pos          Pos
}

// Backoff turns a plain retry into a delayed one.
type Backoff struct {
	Initial time.Duration
	Factor  float64       // 1 or more; 1 for a constant delay
	Max     time.Duration // 0: no limit
	Jitter  float64       // 0..1; only ever extends a delay
}

// OrderedBy names what deliveries share that must run one at a time.
type OrderedBy struct {
	By     string // header, routing_key or correlation_id
	Header string // with By == header
}

// Batch collects deliveries for one call of the handler: up to Size, or as many as
// have come within Wait of the first.
type Batch struct {
	Size int
	Wait time.Duration
}

// Breaker pauses a queue whose handler has failed so many times in a row. After
// Cooldown one message tries the handler again.
type Breaker struct {
	Failures int
	Cooldown time.Duration
}

// Consumer holds the arguments of basic.consume.
type Consumer struct {
	Priority     int32
	HasPriority  bool
	Exclusive    bool
	SingleActive bool // becomes the queue argument x-single-active-consumer
	Tag          string
}

// HandlerKind is how a handler is called.
type HandlerKind string

// The handler kinds. A handler has exactly one.
const (
	Exec   HandlerKind = "exec"
	Worker HandlerKind = "worker"
	HTTP   HandlerKind = "http"
)

// Handler says what is called with the messages of a queue, and how.
type Handler struct {
	Kind    HandlerKind
	Pos     Pos
	Timeout time.Duration // of one call; default 30s

	// exec and worker
	Command []Text // program and arguments; no shell
	Dir     string // absolute working directory; default the spec's
	Env     []EnvVar
	// InheritOnly names the variables of rsctl's own environment that the process
	// gets; nil: all of them.
	InheritOnly []string
	KillGrace   time.Duration // from SIGTERM to SIGKILL; default 5s
	ExitCodes   []CodeRule    // exec
	Processes   int           // worker; 0: as concurrency
	Pipeline    int           // worker; default 1

	// http
	URL           Text
	Headers       []EnvVar
	Statuses      []CodeRule
	MaxRetryAfter time.Duration // cap on Retry-After; default 1h
	NoKeepAlive   bool          // keep_alive: false, a connection for each request
	Secret        *Text         // signs requests; the first of Secrets
	Secrets       []Text        // all that sign, more than one while a secret is replaced
	TLS           *TLS          // client certificate and CA of the endpoint

	OnUnavailable string // pause or retry
	Reply         bool
	ReplyTo       []string // further reply addresses; * stands for any characters
}

// EnvVar is one name and value: an environment variable or an HTTP header.
type EnvVar struct {
	Name  string
	Value Text
}

// CodeRule maps the codes From..To (exit codes or HTTP statuses) to an outcome.
type CodeRule struct {
	From, To int
	Outcome  Outcome
}

// Outcome is a handler's answer as a spec writes it.
type Outcome struct {
	Kind  string        // ack, drop, retry, retry_after
	Delay time.Duration // with retry_after
}

// Queue returns the queue called name, or nil.
func (s *Spec) Queue(name string) *Queue {
	i := slices.IndexFunc(s.Queues, func(q Queue) bool { return q.Name == name })
	if i < 0 {
		return nil
	}
	return &s.Queues[i]
}
