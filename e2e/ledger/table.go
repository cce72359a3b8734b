package ledger

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// A Row is the account of one fault.
type Row struct {
	Fault   string
	Strikes int // how often it happened
	Account Account
	// MayDie is how many healthy messages may have been dead-lettered; below 0: any
	// number.
	MayDie int
	Err    error // the fault itself could not be made or did not end as it should
}

// Table prints one line per row.
func Table(w io.Writer, rows []Row) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "fault\tstrikes\tin\tacked\tdead-lettered\tof them healthy\tleft\tdeleted\tduplicates\tover the cap\tlost\tlatest\t")
	for _, r := range rows {
		a := r.Account
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t\n",
			r.Fault, r.Strikes, a.In, a.Acked, a.Dead, len(a.HealthyDead), a.Work+a.Waiting, a.Deleted, a.Duplicates, a.OverCap, len(a.Lost), latest(a))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, r := range rows {
		if r.Err != nil {
			fmt.Fprintf(w, "%s: %v\n", r.Fault, r.Err)
		}
		if n := len(r.Account.HealthyDead); r.MayDie >= 0 && n > r.MayDie {
			fmt.Fprintf(w, "%s: %d healthy messages were dead-lettered, at most %d may be: %v\n", r.Fault, n, r.MayDie, r.Account.HealthyDead[:min(n, 20)])
		}
		if n := len(r.Account.Lost); n > 0 {
			fmt.Fprintf(w, "%s: lost %v\n", r.Fault, r.Account.Lost[:min(n, 20)])
		}
	}
	return nil
}

// latest is how long an innocent message waited, where that is measured.
func latest(a Account) string {
	if a.Latest == 0 {
		return "-"
	}
	return a.Latest.Round(time.Millisecond).String()
}
