package ledger

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// A Row is the account of one fault.
type Row struct {
	Fault   string
	Strikes int // how often it happened
	Account Account
	Err     error // the fault itself could not be made or did not end as it should
}

// Table prints one line per row.
func Table(w io.Writer, rows []Row) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "fault\tstrikes\tin\tacked\tdead-lettered\tof them healthy\tleft\tdeleted\tduplicates\tover the cap\tlost\t")
	for _, r := range rows {
		a := r.Account
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n",
			r.Fault, r.Strikes, a.In, a.Acked, a.Dead, len(a.HealthyDead), a.Work+a.Waiting, a.Deleted, a.Duplicates, a.OverCap, len(a.Lost))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, r := range rows {
		if r.Err != nil {
			fmt.Fprintf(w, "%s: %v\n", r.Fault, r.Err)
		}
		if n := len(r.Account.Lost); n > 0 {
			fmt.Fprintf(w, "%s: lost %v\n", r.Fault, r.Account.Lost[:min(n, 20)])
		}
	}
	return nil
}
