package broker_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology/broker"
)

// pair writes a certificate that is its own authority, for localhost and for a
// client, and its key.
func pair(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "app"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: raw}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// asked is what a client of tlsBroker has said.
type asked struct {
	mechanism, user string // user: the name in the certificate
	frame           []byte
}

// tlsBroker offers mechanisms over TLS, and ends the connection once the client
// has chosen one.
func tlsBroker(t *testing.T, cert, key, mechanisms string) (address string, got <-chan asked) {
	t.Helper()
	own, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	text, err := os.ReadFile(cert)
	if err != nil || !pool.AppendCertsFromPEM(text) {
		t.Fatal(err)
	}
	said := make(chan asked, 1)
	ln := listen(t, func(raw net.Conn) {
		c := tls.Server(raw, &tls.Config{Certificates: []tls.Certificate{own}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool})
		if _, err := io.ReadFull(c, make([]byte, 8)); err != nil { // AMQP 0 0 9 1
			return
		}
		var start bytes.Buffer
		start.Write([]byte{0, 10, 0, 10, 0, 9, 0, 0, 0, 0}) // connection.start 0-9 without properties
		for _, text := range []string{mechanisms, "en_US"} {
			_ = binary.Write(&start, binary.BigEndian, uint32(len(text)))
			start.WriteString(text)
		}
		head := []byte{1, 0, 0, 0, 0, 0, 0}
		binary.BigEndian.PutUint32(head[3:], uint32(start.Len()))
		_, _ = c.Write(append(append(head, start.Bytes()...), 0xce))
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		frame := make([]byte, binary.BigEndian.Uint32(head[3:]))
		if _, err := io.ReadFull(c, frame); err != nil {
			return
		}
		properties := 4 + 4 + int(binary.BigEndian.Uint32(frame[4:])) // method, size, table
		size := int(frame[properties])
		said <- asked{string(frame[properties+1 : properties+1+size]), c.ConnectionState().PeerCertificates[0].Subject.CommonName, frame}
	})
	_, port, err := net.SplitHostPort(ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("localhost", port), said
}

func TestExternalLogsInWithTheClientCertificate(t *testing.T) {
	t.Parallel()
	cert, key := pair(t)
	for name, edit := range map[string]func(*spec.Broker){
		"broker.auth": func(b *spec.Broker) { b.Auth = spec.External },
		"the URL":     func(b *spec.Broker) { b.URL.Value += "?auth_mechanism=external" },
	} {
		address, got := tlsBroker(t, cert, key, "PLAIN AMQPLAIN EXTERNAL")
		b := at("amqps://user:s3cret@" + address + "/")
		b.TLS = &spec.TLS{CAFile: cert, CertFile: cert, KeyFile: key}
		edit(&b)
		if _, err := broker.Dial(soon(t), b, "test"); err == nil {
			t.Errorf("%s: connected to a server that hangs up", name)
		}
		if a := <-got; a.mechanism != "EXTERNAL" || a.user != "app" || bytes.Contains(a.frame, []byte("s3cret")) {
			t.Errorf("%s: logged in by %s as %s, or sent the password", name, a.mechanism, a.user)
		}
	}
}

func TestABrokerWithoutExternalIsARefusal(t *testing.T) {
	t.Parallel()
	cert, key := pair(t)
	address, _ := tlsBroker(t, cert, key, "PLAIN AMQPLAIN")
	b := at("amqps://user:s3cret@" + address + "/")
	b.Auth = spec.External
	b.TLS = &spec.TLS{CAFile: cert, CertFile: cert, KeyFile: key}
	_, err := broker.Dial(soon(t), b, "test")
	refusal := wantRefusal(t, err, "no login mechanism that is asked for")
	if refusal.Hint == "" {
		t.Error("no hint")
	}
}
