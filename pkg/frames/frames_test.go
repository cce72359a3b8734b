package frames

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

func screened(c net.Conn) net.Conn {
	s := Screen(c)
	s.Limit(testFrameMax)
	return s
}

// nested is an entry whose value is so many tables, or arrays, in each other.
func nested(kind byte, depth int) []byte {
	var v []byte
	for range depth {
		inner := table(v)
		v = append([]byte{kind}, inner...)
		if kind == 'F' {
			v = append([]byte("\x01k"), v...)
		}
	}
	if kind == 'F' {
		return v
	}
	return append([]byte("\x01k"), v...)
}

func entries(n int) []byte {
	var b []byte
	for i := range n {
		b = append(b, fmt.Sprintf("\x05%05dV", i)...)
	}
	return b
}

var unreadable = []struct {
	name, reason string
	headers      []byte
}{
	{"tables in each other", "nested deeper", nested('F', 33)},
	{"arrays in each other", "nested deeper", nested('A', 33)},
	{"hundreds of tables in each other", "nested deeper", nested('F', 400)},
	{"an unknown type", "a type that", []byte("\x01kZ")},
	{"a string beyond its table", "is broken", []byte("\x01kS\x00\x00\x00\x09x")},
	{"a name beyond its table", "is broken", []byte("\x7fk")},
	{"a name without a value", "is broken", []byte("\x01k")},
	{"an array with half a number", "is broken", []byte("\x01kA\x00\x00\x00\x02I\x00")},
	{"more than a frame holds", "a frame holds", append(append([]byte("\x01kS\x00\x00\x20\x00"), make([]byte, 8192)...), "\x07x-deathV"...)},
	{"much more than a frame holds", "a frame holds", append([]byte("\x01kS\x00\x0f\x42\x40"), make([]byte, 1_000_000)...)},
}

func TestAMessageThatCannotBeReadComesMarked(t *testing.T) {
	t.Parallel()
	for _, tt := range unreadable {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, screened)
			for range 2 {
				d := s.deliver(header(allFlags, allProperties(tt.headers)))
				m, ok := Marked(d.Headers)
				if !ok || !strings.Contains(m.Reason, tt.reason) {
					t.Errorf("mark %+v, %v; want %q", m, ok, tt.reason)
				}
				if want := bytes.Contains(tt.headers, []byte("x-death")); m.Died != want {
					t.Errorf("died: %v, want %v", m.Died, want)
				}
				if got := fmt.Sprint(d.ContentType, d.ContentEncoding, d.DeliveryMode, d.Priority, d.CorrelationId, d.ReplyTo,
					d.Expiration, d.MessageId, d.Timestamp.Unix(), d.Type, d.UserId, d.AppId); got != "text/plaingzip2 5core1000id7tuapp" {
					t.Errorf("properties %s", got)
				}
				if _, ok := Marked(s.deliver(header(flagMessageID, []byte("\x02id"))).Headers); ok {
					t.Error("the next message is marked, too")
				}
			}
		})
	}
}

func TestPropertiesThatCannotBeToldApartAreLeftOut(t *testing.T) {
	t.Parallel()
	s := newServer(t, screened)
	for _, frame := range [][]byte{
		header(flagContentType, []byte("\x7fshort")),
		header(flagHeaders, []byte("\x00\x00\xff\xff\x01kV")),
		header(flagTimestamp, []byte("short")),
		header(flagHeaders|1, []byte("\x00\x00\x00\x00")),
		header(flagContentType, append([]byte("\x01x"), make([]byte, 9000)...)),
		header(flagHeaders, append([]byte("\xff\xff\xff\xff"), make([]byte, 9000)...)),
		header(flagHeaders, append([]byte("\x00\x00\x00\x09"), make([]byte, 9000)...)),
	} {
		d := s.deliver(frame)
		if m, ok := Marked(d.Headers); !ok || d.ContentType != "" || d.MessageId != "" {
			t.Errorf("%q: mark %+v, %v", frame[:20], m, ok)
		}
	}
}

func TestWhatTheLibraryReadsIsNotTouched(t *testing.T) {
	t.Parallel()
	for name, headers := range map[string][]byte{
		"none":                 nil,
		"the deepest tables":   nested('F', 32),
		"the deepest arrays":   nested('A', 32),
		"the largest frame":    append([]byte("\x01kS\x00\x00\x1f\x9c"), make([]byte, 8092)...),
		"every type of header": []byte("\x01at\x01\x01bb\x01\x01cB\x01\x01ds\x00\x01\x01eu\x00\x01\x01fI\x00\x00\x00\x01\x01gi\x00\x00\x00\x01\x01hf\x00\x00\x00\x00\x01iD\x00\x00\x00\x00\x01\x01jl\x00\x00\x00\x00\x00\x00\x00\x01\x01kd\x00\x00\x00\x00\x00\x00\x00\x00\x01lT\x00\x00\x00\x00\x00\x00\x00\x01\x01mS\x00\x00\x00\x01\xff\x01nx\x00\x00\x00\x01\xff\x01oF\x00\x00\x00\x03\x01kV\x01pA\x00\x00\x00\x02VV\x01qV"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := header(allFlags, allProperties(headers))
			if got := through(t, f, testFrameMax, 1); !bytes.Equal(got, f) {
				t.Errorf("changed to %q", got)
			}
			if _, ok := Marked(newServer(t, screened).deliver(f).Headers); ok {
				t.Error("marked")
			}
		})
	}
	for _, tt := range []struct {
		n    int
		same bool
	}{{maxEntries, true}, {maxEntries + 1, false}} {
		f := header(flagHeaders, table(entries(tt.n)))
		if got := through(t, f, 1<<20, 100); bytes.Equal(got, f) != tt.same {
			t.Errorf("%d entries: the same: %v", tt.n, !tt.same)
		}
		array := append([]byte("\x01kA"), table(bytes.Repeat([]byte("V"), tt.n))...)
		f = header(flagHeaders, table(array))
		if got := through(t, f, 1<<20, 100); bytes.Equal(got, f) != tt.same {
			t.Errorf("%d elements: the same: %v", tt.n, !tt.same)
		}
	}
}

// What a publisher sends cannot be taken for a mark, even when it has the form.
func TestAMarkCannotBeForged(t *testing.T) {
	t.Parallel()
	for _, h := range []amqp.Table{
		nil, {}, {markHeader: "+depth"}, {markHeader: ""}, {markHeader: nil}, {markHeader: strings.Repeat("A", len(token)) + "-x"},
	} {
		if m, ok := Marked(h); ok {
			t.Errorf("%v is taken for %+v", h, m)
		}
	}
	want := Mark{Reason: "-+x", Died: true}
	if got, ok := Marked(want.Headers()); !ok || got != want {
		t.Errorf("Marked() = %+v, %v", got, ok)
	}
}

// scripted is a connection that reads as it is told, in pieces.
type scripted struct {
	net.Conn
	r     io.Reader
	piece func() int
}

func (s *scripted) Read(p []byte) (int, error) { return s.r.Read(p[:min(len(p), s.piece())]) }

func through(t testing.TB, in []byte, frameMax, piece int) []byte {
	c := Screen(&scripted{r: bytes.NewReader(in), piece: func() int { return piece }})
	c.Limit(frameMax)
	out, err := io.ReadAll(c)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return out
}

func TestHowReadsAreCutMakesNoDifference(t *testing.T) {
	t.Parallel()
	var in, want []byte
	for i, tt := range unreadable {
		for _, f := range [][]byte{
			method(1, 60, 60, "x"),
			header(allFlags, allProperties([]byte("\x01kV"))),
			frame(3, 1, bytes.Repeat([]byte{byte(i), 2}, 3000)),
			frame(8, 0, nil),
		} {
			in, want = append(in, f...), append(want, f...)
		}
		bad := header(allFlags, allProperties(tt.headers))
		in = append(in, bad...)
		want = append(want, through(t, bad, testFrameMax, 1<<20)...)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for round := range 60 {
		top := []int{1, 2, 8, 100, 5000, 1 << 20}[round%6]
		c := Screen(&scripted{r: bytes.NewReader(in), piece: func() int { return 1 + rnd.IntN(top) }})
		c.Limit(testFrameMax)
		var out []byte
		for {
			p := make([]byte, 1+rnd.IntN(top))
			n, err := c.Read(p)
			out = append(out, p[:n]...)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(out, want) {
			t.Fatalf("pieces up to %d: %d bytes came out, want %d", top, len(out), len(want))
		}
	}
}

func TestWhatIsNotAMQPPassesAndEndsAsItDoes(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"", "A", "AMQP\x00\x00\x09\x01", "HTTP/1.1 400 Bad Request\r\n\r\n"} {
		if got := through(t, []byte(in), 0, 3); len(in) >= headBytes && string(got) != in {
			t.Errorf("%q became %q", in, got)
		}
	}
}
