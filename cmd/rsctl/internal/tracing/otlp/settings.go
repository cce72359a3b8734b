package otlp

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"time"
)

const (
	defaultEndpoint = "http://localhost:4318"
	tracesPath      = "/v1/traces"
	defaultTimeout  = 10 * time.Second
)

// settings is what the standard's variables say about the export of traces.
type settings struct {
	url     string
	header  http.Header
	timeout time.Duration // of one export, its repetitions included
	gzip    bool
	tls     *tls.Config // nil: what the system trusts
}

// setting is the value of a variable of the standard; the one for traces alone
// comes before the one for everything.
func setting(name string) string {
	return cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_"+name), os.Getenv("OTEL_EXPORTER_OTLP_"+name))
}

// fromEnvironment reads the settings. Its errors name the variable, and never
// show a value, which may hold a key.
func fromEnvironment() (s settings, err error) {
	if protocol := cmp.Or(setting("PROTOCOL"), "http/protobuf"); protocol != "http/protobuf" {
		return s, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q; rsctl knows http/protobuf alone: "+
			"set it to that, and the endpoint to the collector's port for HTTP, commonly 4318 where gRPC has 4317", protocol)
	}
	if s.url, err = endpoint(); err != nil {
		return s, err
	}
	if s.header, err = parseHeaders(setting("HEADERS")); err != nil {
		return s, err
	}
	if s.timeout, err = parseTimeout(setting("TIMEOUT")); err != nil {
		return s, err
	}
	switch setting("COMPRESSION") {
	case "", "none":
	case "gzip":
		s.gzip = true
	default:
		return s, errors.New("OTEL_EXPORTER_OTLP_COMPRESSION is neither gzip nor none")
	}
	s.tls, err = tlsConfig(setting("CERTIFICATE"), setting("CLIENT_CERTIFICATE"), setting("CLIENT_KEY"))
	return s, err
}

// endpoint is the URL to post to. The standard takes the one for traces as it is,
// and appends a path to the one for everything.
func endpoint() (string, error) {
	name, add := "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "/"
	value := os.Getenv(name)
	if value == "" {
		name, add = "OTEL_EXPORTER_OTLP_ENDPOINT", tracesPath
		value = cmp.Or(os.Getenv(name), defaultEndpoint)
	}
	u, err := url.Parse(strings.TrimSpace(value))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("%s is not an http:// or https:// URL", name)
	}
	if add == tracesPath || u.Path == "" {
		u.Path = path.Join("/", u.Path, add)
	}
	return u.String(), nil
}

// parseHeaders reads name=value pairs with commas between them and values that
// are percent-encoded.
func parseHeaders(text string) (http.Header, error) {
	header := http.Header{}
	for pair := range strings.SplitSeq(text, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		plain, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || name == "" || err != nil {
			return nil, errors.New("OTEL_EXPORTER_OTLP_HEADERS is not a list such as name=value,name=value with percent-encoded values")
		}
		header.Set(name, plain)
	}
	return header, nil
}

func parseTimeout(text string) (time.Duration, error) {
	if text == "" {
		return defaultTimeout, nil
	}
	ms, err := strconv.Atoi(text)
	if err != nil || ms <= 0 {
		return 0, errors.New("OTEL_EXPORTER_OTLP_TIMEOUT is not a number of milliseconds")
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// tlsConfig reads the files that a certificate of the collector or of ours is in;
// a name may be "".
func tlsConfig(authorities, cert, key string) (*tls.Config, error) {
	if authorities == "" && cert == "" && key == "" {
		return nil, nil
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if authorities != "" {
		pem, err := os.ReadFile(authorities)
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("OTEL_EXPORTER_OTLP_CERTIFICATE names a file that holds no PEM certificate")
		}
	}
	if cert == "" && key == "" {
		return conf, nil
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY: %w", err)
	}
	conf.Certificates = []tls.Certificate{pair}
	return conf, nil
}
