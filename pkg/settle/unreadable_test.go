package settle

import "testing"

func TestAnOriginalWhoseCopyIsDeadLetteredEndsByTheRuleOfItsQueue(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		p    Policy
		want Step
	}{
		{Policy{Type: Classic}, Reject{}},
		{Policy{Type: Classic, AckOriginal: true}, Ack{}},
		{Policy{Type: Quorum}, Ack{}},
	} {
		if got := tt.p.AfterCopy(); got != tt.want {
			t.Errorf("%+v: %#v, want %#v", tt.p, got, tt.want)
		}
	}
	for reason, want := range map[string]bool{"": false, ReasonMaxBody: true, ReasonUnreadable: true} {
		if got := (Copy{Reason: reason}).Unseen(); got != want {
			t.Errorf("%q: unseen %v", reason, got)
		}
	}
}
