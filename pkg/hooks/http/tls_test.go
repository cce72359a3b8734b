package http

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/http/internal/exchange"
	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
	"github.com/rsctl/rsctl/pkg/hooks/setup"
	"github.com/rsctl/rsctl/pkg/spec"
)

// An authority signs certificates for one test.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key = a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "test authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	pemFile(t, a.file(), "CERTIFICATE", a.cert.Raw)
	return a
}

func (a *authority) file() string { return filepath.Join(a.dir, "ca.pem") }

// sign makes a certificate with a key; without an authority yet, it signs itself.
func (a *authority) sign(c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber, c.NotBefore = big.NewInt(time.Now().UnixNano()), time.Now().Add(-48*time.Hour)
	parent, by := a.cert, a.key
	if parent == nil {
		parent, by = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), by)
	if err != nil {
		a.t.Fatal(err)
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return signed, key
}

// pair makes a certificate that ends so long from now.
func (a *authority) pair(life time.Duration) tls.Certificate {
	cert, key := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "worker"}, NotAfter: time.Now().Add(life),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"hook.test"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

// files writes a certificate and its key as a spec names them.
func (a *authority) files(name string, pair tls.Certificate) *spec.TLS {
	a.t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		a.t.Fatal(err)
	}
	return &spec.TLS{
		CAFile:   a.file(),
		CertFile: pemFile(a.t, filepath.Join(a.dir, name+".pem"), "CERTIFICATE", pair.Certificate[0]),
		KeyFile:  pemFile(a.t, filepath.Join(a.dir, name+".key"), "PRIVATE KEY", key),
	}
}

// serveTLS serves with the certificate, and answers with the name in the client's.
func (a *authority) serveTLS(pair tls.Certificate, edit func(conf *tls.Config)) *httptest.Server {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) == 1 {
			w.Header().Set("RSCTL-Outcome", "retry_after 1s "+r.TLS.PeerCertificates[0].Subject.CommonName)
		}
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: x509.NewCertPool()}
	s.TLS.ClientCAs.AddCert(a.cert)
	edit(s.TLS)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	a.t.Cleanup(s.Close)
	return s
}

func asksForCertificates(conf *tls.Config) { conf.ClientAuth = tls.RequireAndVerifyClientCert }

func TestTLS_EndpointSeesTheClientCertificate(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	s := a.serveTLS(a.pair(time.Hour), asksForCertificates)
	h := httpHandler(s.URL)
	h.TLS = a.files("client", a.pair(time.Hour))
	for _, size := range []int{0, 1, exchange.MaxSmallBody + 1} {
		if o := handle(t, h, hooks.Message{Body: make([]byte, size)}); o.Verdict != hooks.RetryAfter || o.Reason != "worker" {
			t.Errorf("%d bytes: got %+v, want what the endpoint says to the certificate", size, o)
		}
	}
}

func TestTLS_RenewedClientCertificateNeedsNoRestart(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	s := a.serveTLS(a.pair(time.Hour), asksForCertificates)
	h := httpHandler(s.URL)
	h.TLS = a.files("client", a.pair(time.Hour))
	hook := newHook(t, h, setup.Options{})
	stranger := newAuthority(t)
	stranger.dir = a.dir
	stranger.files("client", stranger.pair(time.Hour))
	wantTLSRefusal(t, hook, "tls:")
	a.files("client", a.pair(time.Hour))
	if o := hooktest.Handle(t, hook, hooks.Message{}); o.Verdict != hooks.RetryAfter {
		t.Errorf("got %+v, want the renewed certificate to be used", o)
	}
}

func wantTLSRefusal(t *testing.T, hook hooks.Hook, parts ...string) {
	t.Helper()
	_, err := hook.Handle(t.Context(), hooks.Message{Body: []byte("x")})
	hooktest.WantUnavailable(t, "Handle()", err, append(parts, "POST https://127.0.0.1:"))
}

// None of these is the fault of the message.
func TestTLS_ConnectionThatCannotBeSecuredSaysWhatToDo(t *testing.T) {
	t.Parallel()
	a, other := newAuthority(t), newAuthority(t)
	plain := func(*tls.Config) {}
	old := func(conf *tls.Config) { asksForCertificates(conf); conf.MaxVersion = tls.VersionTLS12 }
	for _, tt := range []struct {
		name   string
		server *httptest.Server
		tls    *spec.TLS
		parts  []string
	}{
		{"an authority that nobody has named", a.serveTLS(a.pair(time.Hour), plain), nil, []string{"unknown authority", "tls.ca_file"}},
		{"another authority than the one named", a.serveTLS(a.pair(time.Hour), plain), &spec.TLS{CAFile: other.file()}, []string{"unknown authority", "tls.ca_file"}},
		{"a server certificate that has expired", a.serveTLS(a.pair(-time.Hour), plain), &spec.TLS{CAFile: a.file()}, []string{"endpoint's certificate", "expired"}},
		{"a server certificate for another name", a.serveTLS(a.pair(time.Hour), plain), &spec.TLS{CAFile: a.file(), ServerName: "other.example"},
			[]string{"endpoint's certificate", "other.example"}},
		{"a client certificate that is asked for and not named", a.serveTLS(a.pair(time.Hour), asksForCertificates), &spec.TLS{CAFile: a.file()},
			[]string{"certificate required", "tls.cert_file"}},
		{"the same with TLS 1.2", a.serveTLS(a.pair(time.Hour), old), &spec.TLS{CAFile: a.file()}, []string{"tls: ", "tls.cert_file"}},
		{"a client certificate of another authority", a.serveTLS(a.pair(time.Hour), asksForCertificates),
			&spec.TLS{CAFile: a.file(), CertFile: other.files("x", other.pair(time.Hour)).CertFile, KeyFile: filepath.Join(other.dir, "x.key")},
			[]string{"refuses the connection", "x.pem"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := httpHandler(tt.server.URL)
			h.TLS = tt.tls
			wantTLSRefusal(t, newHook(t, h, setup.Options{}), tt.parts...)
		})
	}
	t.Run("an endpoint that does not speak TLS", func(t *testing.T) {
		t.Parallel()
		s := serve(t, func(http.ResponseWriter, *http.Request) {})
		h := httpHandler(strings.Replace(s.URL, "http:", "https:", 1))
		wantTLSRefusal(t, newHook(t, h, setup.Options{}), "does not speak TLS")
	})
}

func TestTLS_ClientCertificateThatCannotBeUsedIsRefused(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	good, expired := a.files("good", a.pair(time.Hour)), a.files("expired", a.pair(-25*time.Hour))
	text := hooktest.WriteFile(t, filepath.Join(a.dir, "text.pem"), "hello", 0o600)
	for _, tt := range []struct {
		name  string
		tls   spec.TLS
		parts []string
	}{
		{"a missing authority", spec.TLS{CAFile: "/no/ca.pem"}, []string{"ca_file", "/no/ca.pem", "no such file"}},
		{"an authority that is none", spec.TLS{CAFile: text}, []string{"ca_file", text, "no PEM certificate"}},
		{"a missing certificate", spec.TLS{CertFile: "/no/c.pem", KeyFile: good.KeyFile}, []string{"cert_file", "/no/c.pem", "no such file"}},
		{"a missing key", spec.TLS{CertFile: good.CertFile, KeyFile: "/no/k.pem"}, []string{"key_file", "/no/k.pem", "no such file"}},
		{"a folder in place of a file", spec.TLS{CertFile: a.dir, KeyFile: good.KeyFile}, []string{"cert_file", a.dir, "is a directory"}},
		{"a certificate that is none", spec.TLS{CertFile: text, KeyFile: good.KeyFile}, []string{"cert_file"}},
		{"the key of another certificate", spec.TLS{CertFile: good.CertFile, KeyFile: expired.KeyFile}, []string{"key_file", "match"}},
		{"a certificate that has expired", *expired, []string{expired.CertFile, "expired on 20", "renew"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := httpHandler("https://127.0.0.1/")
			h.TLS = &tt.tls
			_, err := New(h, setup.Options{})
			if err == nil {
				t.Fatal("New() = nil, want an error")
			}
			for _, p := range tt.parts {
				if !strings.Contains(err.Error(), p) {
					t.Errorf("New() = %q lacks %q", err, p)
				}
			}
		})
	}
}
