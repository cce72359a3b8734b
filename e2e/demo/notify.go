package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
)

// notify is the HTTP endpoint of the queue notifications. It notes each call in
// the journal, as the commands of the other queues do.
type notify struct {
	journal string
	mu      sync.Mutex
}

// startNotify serves on a free port and returns the endpoint's URL.
func startNotify(journal string) (string, *http.Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: &notify{journal: journal}}
	go server.Serve(l) //nolint:errcheck // ends with Close
	return "http://" + l.Addr().String() + "/notify", server, nil
}

func (n *notify) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var note struct{ Mood string }
	if err := json.NewDecoder(r.Body).Decode(&note); err != nil {
		http.Error(w, "not JSON", http.StatusBadRequest)
		return
	}
	attempt, _ := strconv.Atoi(r.Header.Get("RSCTL-Attempt"))
	status, outcome := answer(note.Mood, attempt)
	if err := n.note(r.Header, outcome); err != nil {
		status = http.StatusInternalServerError
	}
	w.WriteHeader(status)
}

func answer(mood string, attempt int) (status int, outcome string) {
	switch {
	case mood == "bad":
		return http.StatusUnprocessableEntity, "drop"
	case mood == "flaky" && attempt < 2:
		return http.StatusServiceUnavailable, "retry"
	case mood == "hopeless":
		return http.StatusInternalServerError, "retry"
	}
	return http.StatusNoContent, "ack"
}

func (n *notify) note(h http.Header, outcome string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	f, err := os.OpenFile(n.journal, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintln(f, h.Get("RSCTL-Queue"), h.Get("RSCTL-Message-Id"), h.Get("RSCTL-Attempt"), outcome)
	return err
}
