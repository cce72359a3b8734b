// A worker in Go: one JSON line per message in, one per answer out. Standard
// output belongs to the answers; log goes to standard error.
package main

import (
	"encoding/json"
	"log"
	"os"
)

type request struct {
	ID, Body string
	Attempt  int
}

type answer struct {
	ID      string `json:"id"`
	Outcome string `json:"outcome"`
	Delay   string `json:"delay,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

func handle(r request) answer {
	var order struct{ SKU string }
	if err := json.Unmarshal([]byte(r.Body), &order); err != nil {
		return answer{Outcome: "retry", Reason: err.Error()}
	}
	if order.SKU == "" {
		return answer{Outcome: "drop", Reason: "the order has no sku"}
	}
	if order.SKU == "SOON" && r.Attempt < 2 {
		return answer{Outcome: "retry_after", Delay: "1s", Reason: "back in stock soon"}
	}
	return answer{Outcome: "ack"}
}

func main() {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for in.More() {
		var r request
		if err := in.Decode(&r); err != nil {
			log.Fatal(err)
		}
		a := handle(r)
		a.ID = r.ID
		if err := out.Encode(a); err != nil {
			log.Fatal(err)
		}
	}
}
