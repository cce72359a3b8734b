package http

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/http/internal/exchange"
	"github.com/rsctl/rsctl/pkg/spec"
)

// signers sign a request by Standard Webhooks, one for each secret. An empty
// list signs nothing.
type signers []*webhooks.Webhook

// newSigners reads the secrets: base64, with or without whsec_ in front. Its
// errors never show one.
func newSigners(secrets []spec.Text) (signers, error) {
	var out signers
	for i, s := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(s.Value, "whsec_"))
		if err != nil || len(key) == 0 {
			return nil, fmt.Errorf("handler secret %d is not whsec_ and a key in base64, as made by: echo whsec_$(openssl rand -base64 32)", i+1)
		}
		w, err := webhooks.NewWebhookRaw(key)
		if err != nil {
			return nil, fmt.Errorf("handler secret %d cannot be used", i+1)
		}
		out = append(out, w)
	}
	return out, nil
}

// signatureNames are the headers that a signed request has.
var signatureNames = []string{
	http.CanonicalHeaderKey(webhooks.HeaderWebhookID),
	http.CanonicalHeaderKey(webhooks.HeaderWebhookTimestamp),
	http.CanonicalHeaderKey(webhooks.HeaderWebhookSignature),
}

// checkNames refuses a header of the spec that signing sets.
func (s signers) checkNames(headers []spec.EnvVar) error {
	for _, h := range headers {
		if len(s) > 0 && slices.Contains(signatureNames, http.CanonicalHeaderKey(h.Name)) {
			return fmt.Errorf("handler header %q is set by rsctl, because the handler has a secret", h.Name)
		}
	}
	return nil
}

// sign appends the headers that sign a request with this body made now.
func (s signers) sign(fields []exchange.Field, id string, body []byte, now time.Time) ([]exchange.Field, error) {
	signatures := make([]string, len(s))
	for i, w := range s {
		var err error
		if signatures[i], err = w.Sign(id, now, body); err != nil {
			return nil, fmt.Errorf("cannot sign the request: %w", err)
		}
	}
	return append(fields,
		exchange.Field{Name: signatureNames[0], Value: id},
		exchange.Field{Name: signatureNames[1], Value: strconv.FormatInt(now.Unix(), 10)},
		exchange.Field{Name: signatureNames[2], Value: strings.Join(signatures, " ")},
	), nil
}

// webhookID is the same for every attempt of a message: its message id, in which
// the full stop is escaped too because it divides what is signed, or else a hash
// of what a retry copy keeps.
func webhookID(m *hooks.Message) string {
	if m.MessageID != "" {
		return strings.ReplaceAll(escapeValue(m.MessageID), ".", "%2E")
	}
	h := sha256.New()
	for _, text := range []string{
		m.Queue, m.Exchange, m.RoutingKey, m.CorrelationID, m.Type, m.AppID, m.ReplyTo,
		strconv.FormatInt(m.Timestamp, 10), string(m.Body),
	} {
		_ = binary.Write(h, binary.BigEndian, uint64(len(text))) // a hash takes everything
		h.Write([]byte(text))
	}
	return "msg_" + hex.EncodeToString(h.Sum(nil)[:16])
}
